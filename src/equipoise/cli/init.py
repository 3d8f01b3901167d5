"""``equipoise init``: look at a table and write a plan."""

import os
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise._typing import Template
from equipoise.cli.files import check_outputs, write_all
from equipoise.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from equipoise.plans.draft import Draft

__all__ = ["init"]

NEEDS: dict[Template, tuple[str, ...]] = {
    "four-fifths": ("y_pred",),
    "nyc-ll144": ("y_pred",),
    "lending": ("y_pred", "y_true", "features"),
}
"""Roles without which a template cannot run."""


def init(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A csv or parquet file.")],
    output: Annotated[
        Path, typer.Option("--output", metavar="TOML", help="Write the plan to this file.")
    ] = Path("audit.toml"),
    template: Annotated[
        Template | None,
        typer.Option(help="Ask the questions of a rule instead of the usual ones."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing plan.")] = False,
) -> None:
    """Look at a table, guess the roles of its columns, write a plan."""
    from equipoise.data.fingerprint import sources
    from equipoise.data.profile import profile
    from equipoise.plans.draft import draft, draft_text

    check_outputs(output, inputs={"the data": sources(data)})
    if output.exists() and not force:
        raise InvalidParameterError(
            f"{str(output)!r} exists. Pass `--force` to replace it, or another `--output`."
        )
    drafted = draft(profile(data))
    checks = None if template is None else template_checks(template, drafted)
    here = os.path.relpath(data, output.parent) if not os.path.isabs(data) else data  # noqa: PTH117
    write_all({output: draft_text(drafted, path=Path(here).as_posix(), checks=checks)})
    for role, reason in drafted.reasons.items():
        typer.echo(f"{role} = {drafted.roles[role]}: {reason}", err=True)
    typer.echo(f"wrote {output}; now run: equipoise audit {output} --output report.html", err=True)


def template_checks(name: Template, drafted: "Draft") -> str:
    """Return the questions of a shipped plan, once the draft has the roles that they need."""
    if name == "lending":
        features = [*drafted.numbers, *filter(None, [drafted.roles.get("y_score")])]
        drafted.roles["features"] = features
        drafted.reasons["features"] = "numbers without another part: what a candidate may use"
    for role in NEEDS[name]:
        if not drafted.roles.get(role):
            raise InvalidParameterError(
                f"Template {name!r} needs `{role}`, and no column looks like it. Name the column"
                " clearly, or copy the questions of the template into a plan of your own."
            )
    text = (files("equipoise.plans") / "templates" / f"{name}.toml").read_text(encoding="utf-8")
    return text[text.index("# ---- questions") :]
