"""``equipoise audit`` and ``equipoise demo``: run a plan, print findings, write the report."""

import json
import os
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from equipoise._typing import Engine, FailOn
from equipoise.audits import wording
from equipoise.audits.dossier import Dossier
from equipoise.audits.execution import execute
from equipoise.audits.gate import junit_xml, outcome, tripped
from equipoise.audits.plan import Plan, PlannedCheck, read_plan
from equipoise.audits.tables import WIDTH, table
from equipoise.cli.files import check_writable, write_all

__all__ = ["audit", "demo"]

STDOUT = Path("-")

Output = Annotated[
    Path | None, typer.Option("--output", metavar="HTML", help="Write the report to this file.")
]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="JSON", help="Write the results to this file; - for stdout."),
]
Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="XML", help="Write JUnit XML, a case for each subgroup."),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="One line for each check; no progress, no tables.")
]


def audit(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="The questions to ask.")],
    output: Output = None,
    json_file: Json = None,
    junit: Junit = None,
    engine: Annotated[Engine, typer.Option(help="What reads the data.")] = "duckdb",
    fail_on: Annotated[
        FailOn,
        typer.Option(
            help="Exit with 1 if a check says so: a gate for pipelines. It acts on tests and"
            " intervals, never on point estimates."
        ),
    ] = "never",
    quiet: Quiet = False,
) -> None:
    """Ask the questions of a plan; print findings, write the report."""
    check_writable(output, None if json_file == STDOUT else json_file, junit)
    asked = read_plan(plan)
    dossier = _answered(asked, engine, quiet=quiet or json_file == STDOUT)
    stopped = tripped(dossier.checks, fail_on)
    _deliver(dossier, output, json_file, junit, fail_on, quiet=quiet)
    if stopped:
        names = ", ".join(check.id for check in stopped)
        typer.echo(
            f"equipoise: gate --fail-on {fail_on} tripped by {len(stopped)} of"
            f" {len(dossier.checks)} checks: {names}",
            err=True,
        )
        raise typer.Exit(1)


def demo(
    output: Output = None, json_file: Json = None, junit: Junit = None, quiet: Quiet = False
) -> None:
    """Audit the bundled COMPAS counts, as a tour."""
    check_writable(output, None if json_file == STDOUT else json_file, junit)
    with as_file(files("equipoise") / "plans") as folder:
        dossier = _answered(
            read_plan(folder / "demo.toml"), "duckdb", quiet=quiet or json_file == STDOUT
        )
    _deliver(dossier, output, json_file, junit, "never", quiet=quiet)


def _answered(plan: Plan, engine: Engine, *, quiet: bool) -> Dossier:
    with _progress(len(plan.checks), quiet=quiet) as started:
        return execute(plan, engine=engine, started=started)


@contextmanager
def _progress(total: int, *, quiet: bool) -> "Iterator[_Started | None]":
    """Show on stderr which check is under way: a bar on a terminal, lines in a log."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("reading the data", total=total)
        yield _Started(progress=progress, task=task, log=not console.is_terminal)


class _Started:
    """Called when a check starts."""

    def __init__(self, *, progress: "object", task: int, log: bool) -> None:
        self.progress, self.task, self.log, self.number = progress, task, log, 0

    def __call__(self, check: PlannedCheck) -> None:
        self.number += 1
        if self.log:
            typer.echo(f"check {self.number}: {check.id}", err=True)
        self.progress.update(self.task, completed=self.number - 1, description=check.id)  # type: ignore[attr-defined]


def _deliver(
    dossier: Dossier,
    output: Path | None,
    json_file: Path | None,
    junit: Path | None,
    fail_on: FailOn,
    *,
    quiet: bool,
) -> None:
    """Print the findings and write the files that were asked for, all or none."""
    texts: dict[Path, str] = {}
    results = json.dumps(dossier.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if json_file is not None and json_file != STDOUT:
        texts[json_file] = results
    if junit is not None:
        texts[junit] = junit_xml(dossier.checks, fail_on)
    if output is not None:
        from equipoise.report.html import html_report

        texts[output] = html_report(dossier)
    _print(results if json_file == STDOUT else findings(dossier, quiet=quiet))
    write_all(texts)
    if texts and not quiet:
        typer.echo(f"wrote {', '.join(map(str, texts))}", err=True)


def _print(text: str) -> None:
    try:
        typer.echo(text, nl=False)
    except BrokenPipeError:
        # The reader has gone (`equipoise audit ... | head`); the files are still wanted.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def findings(dossier: Dossier, *, quiet: bool) -> str:
    """Return what a run prints: a table for each check, or a line when `quiet`."""
    if quiet:
        return "".join(
            f"{check.id}: {outcome(check.result).value}: {wording.headline(check.result)}\n"
            for check in dossier.checks
        )
    rule = "=" * WIDTH
    parts = [
        f"{rule}\n{check.id}: {wording.question_words(check.result)}\n{rule}\n"
        f"{table(check.result)}\n\n"
        for check in dossier.checks
    ]
    levels = [check.result.alpha for check in dossier.checks]
    parts.append(textwrap.fill(wording.multiplicity_words(levels, dossier.multiplicity), WIDTH))
    return "".join(parts) + "\n"
