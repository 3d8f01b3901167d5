"""``equipoise init``: look at a table and write a plan."""

import os
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise._typing import Template
from equipoise.cli.files import check_outputs, write_all
from equipoise.cli.streams import echo
from equipoise.exceptions import DataError, InvalidParameterError

if TYPE_CHECKING:
    from equipoise.plans.draft import Draft

__all__ = ["init"]

NEEDS: dict[Template, tuple[str, ...]] = {
    "four-fifths": ("y_pred",),
    "nyc-ll144": ("y_pred",),
    "lending": ("y_pred", "y_true"),
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
    favourable: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="Which decision is good for the person: 1, 0 or a label; guessed if not given.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing plan.")] = False,
) -> None:
    """Look at a table, guess the roles of its columns, write a plan."""
    from equipoise.audits.audit import Audit
    from equipoise.data.fingerprint import sources
    from equipoise.data.profile import profile, read_layout
    from equipoise.plans.draft import draft, give_favourable
    from equipoise.plans.draft_text import draft_text, remarks, unread_text

    check_outputs(output, inputs={"the data": sources(data)})
    if output.exists() and not force:
        raise InvalidParameterError(
            f"{str(output)!r} exists. Pass `--force` to replace it, or another `--output`."
        )
    here = os.path.relpath(data, output.parent) if not os.path.isabs(data) else data  # noqa: PTH117
    path = Path(here).as_posix()
    try:
        columns = profile(data)
        drafted = draft(columns, read_layout(data))
    except DataError as error:
        if not sources(data):
            raise
        write_all({output: unread_text(path=path, reason=str(error))})
        raise DataError(f"{error} {output} holds a plan to complete.") from error
    try:
        Audit(data, **drafted.roles)
    except DataError as error:
        drafted.warning = f"{drafted.warning} {error}".strip()
    if favourable is not None:
        give_favourable(drafted, columns, favourable)
    checks = None if template is None else template_checks(template, drafted)
    text = draft_text(drafted, path=path, checks=checks)
    write_all({output: text})
    for role, reason in drafted.reasons.items():
        echo(f"{role} = {drafted.roles[role]}: {reason}", err=True)
    for remark in filter(None, (drafted.warning, *remarks(drafted))):
        echo(remark, err=True)
    whole = "group" in drafted.roles and "\n[[check]]" in text
    then = "" if whole else "complete it as its comments say, then "
    echo(f"wrote {output}; now {then}run: equipoise audit {output} --output report.html", err=True)


def template_checks(name: Template, drafted: "Draft") -> str:
    """Return the questions of a shipped plan, once the draft has the roles that they need."""
    from equipoise.plans.draft_text import odds_text

    if name == "lending":
        # A candidate uses no identifier, no protected attribute and not the audited score.
        drafted.roles["features"] = list(drafted.numbers)
        drafted.reasons["features"] = "numbers without another part: what a candidate may use"
    decided = "y_pred" in {*drafted.roles, *drafted.undecided[:1]}
    scored = name == "nyc-ll144" and "y_score" in drafted.roles and not decided
    for role in () if scored else NEEDS[name]:
        if drafted.roles.get(role):
            continue
        if role in drafted.undecided:
            column = drafted.undecided[1]
            raise InvalidParameterError(
                f"Template {name!r} needs `{role}`: `{column}` is {drafted.left[column]}."
            )
        raise InvalidParameterError(
            f"Template {name!r} needs `{role}`, and no column looks like it. Name the column"
            " clearly, or copy the questions of the template into a plan of your own."
        )
    if "y_true" in NEEDS[name] and drafted.at_odds == drafted.roles["y_true"]:
        raise InvalidParameterError(
            f"Template {name!r} compares decisions with outcomes. {odds_text(drafted)}"
        )
    if drafted.roles.get("favourable") is None:
        raise InvalidParameterError(
            f"Template {name!r} needs to know which decision is good for the person, and no column"
            " name says it. Pass `--favourable LABEL`: 1, 0 or a label."
        )
    if scored and drafted.roles["favourable"] != 1:
        raise InvalidParameterError(
            f"Template {name!r} counts high scores, and a high `{drafted.roles['y_score']}` is not"
            " said to be good. Name a column with the opposite of the score, and pass"
            " `--favourable 1`."
        )
    _selected_is_favourable(drafted)
    text = (files("equipoise.plans") / "templates" / f"{name}.toml").read_text(encoding="utf-8")
    asked = text[text.index("# ---- questions") :]
    if scored:
        ratios = 'question = "impact_ratios"\n'
        asked = asked.replace(ratios, f'{ratios}metric = "scoring_rate"\n')
    if name == "nyc-ll144" and len(drafted.roles.get("group", ())) != 2:
        layout = 'layout = "nyc-ll144"'
        asked = asked.replace(
            layout, f"# {layout}  needs two group columns, sex and race/ethnicity"
        )
    return asked if drafted.roles.get("features", True) else _without_candidates(asked, drafted)


def _without_candidates(text: str, drafted: "Draft") -> str:
    """Leave out the questions that build an alternative: there is nothing to build it from."""
    del drafted.roles["features"], drafted.reasons["features"]
    kept = [part for part in text.split("\n\n") if "candidate = " not in part]
    return "\n\n".join(kept).rstrip() + (
        "\n\n# Whether a less discriminatory alternative exists is not asked: no column is free for"
        "\n# a candidate to use. Name some under `features` in [data], or a column with the"
        '\n# decisions of an alternative, in a [[check]] with question = "improvability".\n'
    )


def _selected_is_favourable(drafted: "Draft") -> None:
    """Let the good decision be the one that counts as 1, as the questions of a rule take it."""
    good = drafted.roles["favourable"]
    if good == drafted.roles.get("positive", 1):
        return
    drafted.roles["positive"] = good
    drafted.reasons["positive"] = (
        "the rule speaks of the favourable decision, so the label that is good for the person"
        " counts as 1, in decisions and outcomes alike"
    )
    if score := drafted.roles.pop("y_score", None):
        del drafted.reasons["y_score"]
        drafted.left[score] = (
            "a score; high ones are taken to go with the label that counts as 1, and the rule has"
            " another one: use a column with the opposite"
        )
