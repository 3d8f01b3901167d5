"""The command line: results on stdout, messages on stderr, an exit code that says it all."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from equipoise.audits.audit import Audit
from equipoise.audits.finding import Decision
from equipoise.audits.plan import read_plan, run_check
from equipoise.audits.result import AuditResult
from equipoise.data.datasets import load_compas_counts
from equipoise.exceptions import EquipoiseError

__all__ = ["app", "main"]

app = typer.Typer(
    name="equipoise",
    help="Does an algorithm treat groups differently, is it necessary, and what to do about it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class FailOn(StrEnum):
    """What makes `audit` exit with 1."""

    DETECTED = "detected"
    NOT_WITHIN_MARGIN = "not-within-margin"
    NEVER = "never"


@app.callback()
def _commands() -> None:
    """Keep sub-commands, also while there is a single one."""


@app.command()
def demo() -> None:
    """Audit the bundled COMPAS counts."""
    audit = Audit(
        load_compas_counts(),
        group=["race", "sex"],
        count="count",
        y_true="two_year_recid",
        y_pred="high_risk",
        y_score="decile_score",
    )
    caucasian = {"race": "Caucasian"}
    _show(audit.disparity("ppv", reference=caucasian, simultaneous=True))
    _show(audit.flag("fpr", margin=0.05, reference=caucasian))
    _show(audit.certify("accuracy", margin=0.05, depth=1))


@app.command()
def audit(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.")],
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the results to this file.")
    ] = None,
    engine: Annotated[str, typer.Option(help="What reads the data: duckdb or spark.")] = "duckdb",
    fail_on: Annotated[FailOn, typer.Option(help="Exit with 1 on this outcome.")] = FailOn.NEVER,
) -> None:
    """Ask the questions of a plan."""
    read = read_plan(plan)
    asked = Audit(read.path, engine=engine, **read.roles)
    results = [run_check(asked, check) for check in read.checks]
    for result in results:
        _show(result)
    if json_file is not None:
        text = json.dumps([result.to_dict() for result in results], indent=2, allow_nan=False)
        json_file.write_text(text + "\n", encoding="utf-8")
    if any(_trips(result, fail_on) for result in results):
        raise typer.Exit(1)


def main() -> None:
    """Run the command line; an error of ours is one line on stderr and exit code 2."""
    try:
        app()
    except EquipoiseError as error:
        sys.stderr.write(f"equipoise: {error}\n")
        sys.exit(2)


def _show(result: AuditResult) -> None:
    typer.echo(f"{result}\n")


def _trips(result: AuditResult, fail_on: FailOn) -> bool:
    if fail_on is FailOn.DETECTED:
        return result.detected
    if fail_on is FailOn.NOT_WITHIN_MARGIN:
        decisions = [finding.decision for finding in result.findings]
        return any(decision is not Decision.WITHIN_MARGIN for decision in decisions)
    return False
