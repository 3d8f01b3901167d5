"""``equipoise report``: rebuild the page from results."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.files import check_outputs, write_all
from equipoise.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from equipoise.plans.dossier import Dossier

__all__ = ["report"]


def report(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS.json", help="Written by `equipoise audit --json`.")
    ],
    output: Annotated[
        Path, typer.Option("--output", metavar="HTML", help="Write the report to this file.")
    ] = Path("report.html"),
) -> None:
    """Rebuild the report from results, without the data."""
    from equipoise.report.html import html_report

    check_outputs(output, inputs={"the results": [results]})
    write_all({output: html_report(_read(results))})
    typer.echo(f"wrote {output}", err=True)


def _read(file: Path) -> "Dossier":
    from equipoise.plans.dossier import Dossier

    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidParameterError(
            f"Results {str(file)!r} not found. `equipoise audit PLAN.toml --json FILE` writes them."
        ) from error
    except OSError as error:
        raise InvalidParameterError(f"{str(file)!r} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidParameterError(f"{str(file)!r} is not JSON: {error}.") from error
    return Dossier.from_dict(content)
