"""``equipoise report``: rebuild the page from results."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli.files import check_outputs, write_all
from equipoise.cli.streams import echo

__all__ = ["report"]


def report(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS.json", help="Written by `equipoise audit --json`.")
    ],
    output: Annotated[
        Path, typer.Option("--output", metavar="HTML", help="Write the report to this file.")
    ] = Path("report.html"),
) -> None:
    """Rebuild the report from results, without the data; say whether they were edited."""
    from equipoise.plans.dossier import Dossier, read_results
    from equipoise.plans.seal import check_seal
    from equipoise.report.html import html_report

    check_outputs(output, inputs={"the results": [results]})
    record = read_results(results)
    dossier = Dossier.from_dict(record)
    seal = check_seal(record)
    if seal.edited:
        dossier = replace(dossier, title=f"{dossier.title} (edited after the audit)")
    write_all({output: html_report(dossier)})
    echo(seal.words, err=True)
    echo(f"wrote {output}", err=True)
