"""A result as a table: text of 80 columns, and an HTML fragment for notebooks."""

import html
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise.results.finding import Decision, Finding, Note
from equipoise.results.formats import (
    decision_word,
    interval,
    joint_line,
    number,
    p_value,
    printable,
)
from equipoise.results.wording import headline

if TYPE_CHECKING:
    from equipoise.results.result import AuditResult

__all__ = ["WIDTH", "footnotes", "html_table", "table"]

WIDTH = 80
MOST = 60
"""Lines of one table; a result with more findings prints the ones that a reader looks for."""

_URGENCY = {
    Decision.DETECTED: 0,
    Decision.NOT_DETECTED: 1,
    Decision.WITHIN_MARGIN: 2,
    Decision.NOT_TESTED: 3,
    Decision.ESTIMATED: 4,
}


def table(result: "AuditResult") -> str:
    """Return the result as text of at most 80 columns, and of at most `MOST` findings."""
    shown, left_out = _shown(result)
    marks, notes = footnotes(shown)
    header = ("group", "estimate", "interval", "p", "n", "decision")
    repeated = len({finding.group for finding in shown.findings}) < len(shown.findings)
    rows = [header] + [
        (
            f"{finding.group}, {finding.estimand}" if repeated else finding.group,
            number(finding.estimate),
            interval(finding.ci),
            p_value(finding.p_value),
            f"{finding.n}",
            decision_word(finding.decision, result.question.words) + mark,
        )
        for finding, mark in zip(shown.findings, marks, strict=True)
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(len(header))]
    spare = WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1)
    widths[0] = min(widths[0], max(spare, 12))
    lines = _title(result)
    for row in rows:
        name, *rest = row
        cells = [cell.rjust(width) for cell, width in zip(rest[:-1], widths[1:-1], strict=True)]
        parts = textwrap.wrap(name, widths[0]) or [""]
        lines.append("  ".join([parts[0].ljust(widths[0]), *cells, rest[-1]]).rstrip())
        lines += [f"  {part}" for part in parts[1:]]
    if left_out:
        lines += ["", *textwrap.wrap(left_out, WIDTH)]
    if result.joint is not None:
        lines += ["", *textwrap.wrap(joint_line(result.joint), WIDTH)]
    if notes:
        lines.append("")
    for k, note in enumerate(notes, start=1):
        lines += textwrap.wrap(f"[{k}] {note.message}", WIDTH, subsequent_indent="    ")
    return printable("\n".join(lines))


def html_table(result: "AuditResult") -> str:
    """Return the result as an HTML fragment of at most `MOST` findings; text is escaped."""
    shown, left_out = _shown(result)
    marks, notes = footnotes(shown)
    head = "".join(
        f"<th scope='col'>{name}</th>"
        for name in ("group", "estimand", "estimate", "interval", "p", "n", "decision")
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in _html_cells(finding, mark, result))
        + "</tr>"
        for finding, mark in zip(shown.findings, marks, strict=True)
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
    findings = result.findings
    if len(findings) <= MOST:
        return result, ""

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
        finding.group,
        finding.estimand,
        number(finding.estimate),
        interval(finding.ci),
        p_value(finding.p_value),
        f"{finding.n}",
        decision_word(finding.decision, result.question.words) + mark,
    )


def _title(result: "AuditResult") -> list[str]:
    title = f"{result.audit}: {result.method}; n = {result.n}; alpha = {result.alpha:g}"
    return [
        *textwrap.wrap(title, WIDTH),
        *textwrap.wrap(f"Null: {result.null}", WIDTH),
        *textwrap.wrap(headline(result), WIDTH),
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
