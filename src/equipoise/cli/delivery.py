"""What ``equipoise audit`` does with a plan: progress, tables on stdout, files."""

import json
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from equipoise._names import printable_json
from equipoise._typing import Engine, FailOn
from equipoise.audits.disparity.earlier import GapPair
from equipoise.audits.progress import drawn_on
from equipoise.cli.files import write_all
from equipoise.cli.streams import echo
from equipoise.exceptions import ResourceError
from equipoise.plans.answer import answer
from equipoise.plans.baseline import growth_words
from equipoise.plans.dossier import Check, Dossier
from equipoise.plans.gate import junit_xml
from equipoise.plans.plan import Plan, PlannedCheck
from equipoise.plans.run import execute
from equipoise.plans.seal import sealed
from equipoise.report.ll144 import bias_audit
from equipoise.results import wording
from equipoise.results.tables import ALL, MOST, table, text_width

__all__ = ["STDOUT", "answered", "deliver", "findings"]

STDOUT = Path("-")
REST = "--all prints them, --output and --json write them"


def answered(plan: Plan, engine: Engine, *, quiet: bool) -> Dossier:
    """Ask the questions of a plan, with progress on stderr."""
    with _progress(len(plan.checks), quiet=quiet) as started:
        return execute(plan, engine=engine, started=started)


@contextmanager
def _progress(total: int, *, quiet: bool) -> "Iterator[_Started | None]":
    """Show on stderr which check is under way: a bar on a terminal, lines in a log."""
    if quiet:
        with drawn_on(None):
            yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    display = Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with display as progress, drawn_on(progress):
        task = progress.add_task("reading the data", total=total)
        yield _Started(progress=progress, task=task, log=not console.is_terminal)


class _Started:
    """Called when a check starts."""

    def __init__(self, *, progress: "object", task: int, log: bool) -> None:
        self.progress, self.task, self.log, self.number = progress, task, log, 0

    def __call__(self, check: PlannedCheck) -> None:
        self.number += 1
        if self.log:
            echo(f"check {self.number}: {check.id}", err=True)
        self.progress.update(self.task, completed=self.number - 1, description=check.id)  # type: ignore[attr-defined]


def deliver(
    dossier: Dossier,
    output: Path | None,
    json_file: Path | None,
    junit: Path | None,
    fail_on: FailOn,
    *,
    quiet: bool,
    every: bool = False,
    grown: dict[str, tuple[GapPair, ...]] | None = None,
    key: Any = None,
) -> None:
    """Print the findings and write the files that were asked for, all or none.

    Groups below the disclosure limit leave this process in no form.
    """
    dossier = dossier.disclosed()
    texts: dict[Path, str] = {}
    written = sealed(dossier.to_dict() | {"answer": " ".join(answer(dossier))}, key)
    results = json.dumps(written, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    results = printable_json(results)
    if json_file is not None and json_file != STDOUT:
        texts[json_file] = results
    if junit is not None:
        texts[junit] = junit_xml(dossier.checks, fail_on, grown=grown)
    if output is not None:
        from equipoise.report.html import html_report

        texts[output] = html_report(dossier)
    lost = None
    since = "" if grown is None else growth_words(grown, dossier)
    try:
        text = (
            results if json_file == STDOUT else findings(dossier, quiet=quiet, every=every) + since
        )
        echo(text, nl=False)
    except ResourceError as error:
        lost = error  # the files are still wanted
    write_all(texts)
    if lost is not None:
        raise lost
    if texts and not quiet:
        echo(f"wrote {', '.join(map(str, texts))}", err=True)


def _heading(check: Check, width: int) -> str:
    return textwrap.fill(f"{check.id}: {wording.question_words(check.result)}", width)


def findings(dossier: Dossier, *, quiet: bool, every: bool = False) -> str:
    """Return what a run prints: the answer, and unless `quiet` a table for each check.

    A table has its first lines, or with `every` all of them.
    """
    width = text_width()
    paragraph = textwrap.fill(" ".join(answer(dossier)), width) + "\n"
    if quiet:
        return paragraph
    rule = "=" * width
    parts = [paragraph + "\n"] + [
        f"{rule}\n{_heading(check, width)}\n{rule}\n"
        f"{table(check.result, most=ALL if every else MOST, more=REST)}\n\n"
        for check in dossier.checks
    ]
    if (rules := bias_audit(dossier)) is not None:
        parts.append(f"{rule}\nSummary of the bias audit, 6 RCNY 5-300 to 5-304\n{rule}\n")
        parts.append(f"{rules.text()}\n")
    levels = [check.result.alpha for check in dossier.checks]
    parts.append(textwrap.fill(wording.multiplicity_words(levels, dossier.multiplicity), width))
    return "".join(parts) + "\n"
