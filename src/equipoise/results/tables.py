"""A result as a table: text as wide as the terminal, and an HTML fragment for notebooks."""

import html
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise.results.finding import Decision, Finding, Note
from equipoise.results.formats import (
    count,
    decision_word,
    interval,
    joint_line,
    number,
    p_value,
    printable,
)
from equipoise.results.wording import headline, parts_words

if TYPE_CHECKING:
    from equipoise.results.result import AuditResult

__all__ = ["footnotes", "html_table", "table", "text_width"]

WIDTH, WIDEST = 80, 160
MOST = 60
"""Lines of one table; a result with more findings prints the ones that a reader looks for."""

_URGENCY = {
    Decision.DETECTED: 0,
    Decision.NOT_DETECTED: 1,
    Decision.WITHIN_MARGIN: 2,
    Decision.NOT_TESTED: 3,
    Decision.ESTIMATED: 4,
}


def text_width() -> int:
    """Return how wide text is written: as the terminal, and 80 columns where there is none."""
    if sys.stdout is None or not sys.stdout.isatty():
        return WIDTH
    return min(max(shutil.get_terminal_size((WIDTH, 24)).columns, 60), WIDEST)


def table(result: "AuditResult") -> str:
    """Return the result as text, as wide as the terminal, and of at most `MOST` findings."""
    width = text_width()
    shown, left_out = _shown(result)
    marks, notes = footnotes(shown)
    header = ("group", "estimate", "interval", "p", "n", "decision")
    times = Counter(finding.group for finding in shown.findings)
    rows = [header] + [
        (
            f"{name}, {finding.estimand}" if times[finding.group] > 1 else name,
            number(finding.estimate),
            interval(finding.ci),
            p_value(finding.p_value),
            count(finding),
            decision_word(finding.decision, result.question.words) + mark,
        )
        for name, finding, mark in zip(
            _compared(shown.findings), shown.findings, marks, strict=True
        )
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(len(header))]
    spare = width - sum(widths[1:]) - 2 * (len(widths) - 1)
    widths[0] = min(widths[0], max(spare, 12))
    lines = _title(result, width)
    beside = [""] + [parts_words(finding, result) for finding in shown.findings]
    for row, more in zip(rows, beside, strict=True):
        name, *rest = row
        cells = [cell.rjust(size) for cell, size in zip(rest[:-1], widths[1:-1], strict=True)]
        parts = textwrap.wrap(name, widths[0], break_long_words=False) or [""]
        if max(map(len, parts)) > widths[0]:
            # A word that does not fit has a line of its own; none is broken in the middle.
            lines += textwrap.wrap(name, width, break_long_words=True)
            parts = [""]
        lines.append("  ".join([parts[0].ljust(widths[0]), *cells, rest[-1]]).rstrip())
        lines += [f"  {part}" for part in parts[1:]]
        lines += textwrap.wrap(more, width - 4, initial_indent="    ", subsequent_indent="    ")
    if left_out:
        lines += ["", *textwrap.wrap(left_out, width)]
    if result.joint is not None:
        lines += ["", *textwrap.wrap(joint_line(result.joint), width)]
    if notes:
        lines.append("")
    for k, note in enumerate(notes, start=1):
        lines += textwrap.wrap(f"[{k}] {note.message}", width, subsequent_indent="    ")
    return printable("\n".join(lines))


def _compared(findings: Sequence[Finding]) -> list[str]:
    """Name the group of each finding, and its reference where lines would look alike without."""
    lines = Counter((finding.group, finding.estimand) for finding in findings)
    if max(lines.values(), default=1) == 1:
        return [finding.group for finding in findings]
    return [
        f"{finding.group} compared with {finding.reference}" if finding.reference else finding.group
        for finding in findings
    ]


def html_table(result: "AuditResult") -> str:
    """Return the result as an HTML fragment of at most `MOST` findings; text is escaped."""
    shown, left_out = _shown(result)
    marks, notes = footnotes(shown)
    folded = len(result.lines) < len(result.findings)
    more = ("beside",) if folded else ()
    head = "".join(
        f"<th scope='col'>{name}</th>"
        for name in ("group", "estimand", "estimate", "interval", "p", "n", "decision", *more)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td>{html.escape(cell)}</td>"
            for cell in (
                name,
                *_html_cells(finding, mark, result),
                *([parts_words(finding, result)] if folded else []),
            )
        )
        + "</tr>"
        for name, finding, mark in zip(
            _compared(shown.findings), shown.findings, marks, strict=True
        )
    )
    rest = f"<p>{html.escape(left_out)}</p>" if left_out else ""
    title = "".join(f"<p>{html.escape(line)}</p>" for line in _title(result) if line)
    joint = "" if result.joint is None else f"<p>{html.escape(joint_line(result.joint))}</p>"
    items = "".join(f"<li>{html.escape(note.message)}</li>" for note in notes)
    return (
        f"<div class='equipoise'>{title}<table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{rest}{joint}<ol>{items}</ol></div>"
    )


def _shown(result: "AuditResult") -> tuple["AuditResult", str]:
    """Return the result with the findings to print, and a sentence on the others."""
    findings = result.lines
    if len(findings) <= MOST:
        return replace(result, findings=findings), ""

    def urgency(k: int) -> tuple[int, float, int]:
        p = findings[k].p_value
        return _URGENCY[findings[k].decision], 2.0 if p is None else p, k

    chosen = sorted(sorted(range(len(findings)), key=urgency)[:MOST])
    sentence = (
        f"{MOST} of {len(findings)} findings are shown: what was detected first, then the smallest"
        " p-values. `to_frame()` has all."
    )
    return replace(result, findings=tuple(findings[k] for k in chosen)), sentence


def _html_cells(finding: Finding, mark: str, result: "AuditResult") -> tuple[str, ...]:
    return (
        finding.estimand,
        number(finding.estimate),
        interval(finding.ci),
        p_value(finding.p_value),
        count(finding),
        decision_word(finding.decision, result.question.words) + mark,
    )


def _title(result: "AuditResult", width: int = WIDTH) -> list[str]:
    title = f"{result.audit}: {result.method}; n = {result.n}; alpha = {result.alpha:g}"
    return [
        *textwrap.wrap(title, width),
        *textwrap.wrap(f"Null: {result.null}", width),
        *textwrap.wrap(headline(result), width),
        "",
    ]


def footnotes(result: "AuditResult") -> tuple[list[str], list[Note]]:
    """Number the distinct notes; return the marks of each finding and the list."""
    notes: list[Note] = []
    marks = []
    for finding in result.findings:
        numbers = []
        for note in finding.notes:
            if note not in notes:
                notes.append(note)
            numbers.append(notes.index(note) + 1)
        marks.append("".join(f" [{k}]" for k in numbers))
    joint = () if result.joint is None else result.joint.notes
    notes += [note for note in (*joint, *result.notes) if note not in notes]
    return marks, notes
