"""Every sentence and number that a person reads: print, HTML and command line agree."""

import html
import textwrap
from typing import TYPE_CHECKING

from equipoise.audits.finding import ConfidenceInterval, Decision, Finding, JointTest, Note

if TYPE_CHECKING:
    from equipoise.audits.result import AuditResult

__all__ = ["decision_word", "headline", "html_table", "interval", "number", "p_value", "table"]

WIDTH = 80

DECISION_WORDS = {
    Decision.DETECTED: "detected",
    Decision.NOT_DETECTED: "not detected",
    Decision.WITHIN_MARGIN: "within margin",
    Decision.NOT_TESTED: "not tested",
}


def number(value: float | None) -> str:
    """Write a number with three significant digits."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if 0.001 <= abs(value) < 100_000:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{value:.2e}"


def p_value(value: float | None) -> str:
    """Write a p-value; never ``0.000``."""
    if value is None:
        return "-"
    if value < 0.001:
        return "<0.001"
    return f"{value:.3f}"


def interval(ci: ConfidenceInterval | None) -> str:
    """Write an interval as ``[low, high]``; a side without bound is open."""
    if ci is None:
        return "-"
    low = "(-inf" if ci.low is None else f"[{number(ci.low)}"
    high = "inf)" if ci.high is None else f"{number(ci.high)}]"
    return f"{low}, {high}"


def decision_word(decision: Decision) -> str:
    """Return the word for a decision."""
    return DECISION_WORDS[decision]


def headline(result: "AuditResult") -> str:
    """Say in one sentence what was found."""
    detected = [f for f in result.findings if f.decision is Decision.DETECTED]
    within = [f for f in result.findings if f.decision is Decision.WITHIN_MARGIN]
    tested = [f for f in result.findings if f.decision is not Decision.NOT_TESTED]
    untested = len(result.findings) - len(tested)
    if detected:
        worst = max(detected, key=lambda f: abs(f.estimate or 0.0))
        sentence = (
            f"{len(detected)} of {len(tested)} tested: {result.alternative}; the largest is"
            f" {worst.group}, {worst.estimand} {number(worst.estimate)}"
            f" (interval {interval(worst.ci)})."
        )
    elif within and len(within) == len(tested):
        sentence = f"All {len(tested)} tested are shown to be within the margin."
    elif tested:
        sentence = (
            f"None of {len(tested)} tested: {result.alternative}; this does not show equality."
        )
    else:
        sentence = "Nothing could be tested."
    if untested:
        sentence += f" {untested} could not be tested."
    return sentence


def joint_line(joint: JointTest) -> str:
    """Write the joint test on one line."""
    if joint.p_value is None:
        return f"Joint: {joint.null}: not tested"
    df = "" if joint.df is None else f", df {joint.df:g}"
    return (
        f"Joint: {joint.null}: statistic {number(joint.statistic)}{df},"
        f" p {p_value(joint.p_value)}, {decision_word(joint.decision)}"
    )


def table(result: "AuditResult") -> str:
    """Return the result as text of at most 80 columns."""
    marks, footnotes = _footnotes(result)
    header = ("group", "estimate", "interval", "p", "n", "decision")
    rows = [header] + [
        (
            finding.group,
            number(finding.estimate),
            interval(finding.ci),
            p_value(finding.p_value),
            f"{finding.n}",
            decision_word(finding.decision) + mark,
        )
        for finding, mark in zip(result.findings, marks, strict=True)
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
    if result.joint is not None:
        lines += ["", *textwrap.wrap(joint_line(result.joint), WIDTH)]
    if footnotes:
        lines.append("")
    for k, note in enumerate(footnotes, start=1):
        lines += textwrap.wrap(f"[{k}] {note.message}", WIDTH, subsequent_indent="    ")
    return "\n".join(lines)


def html_table(result: "AuditResult") -> str:
    """Return the result as an HTML fragment; text from the data is escaped."""
    marks, footnotes = _footnotes(result)
    head = "".join(
        f"<th scope='col'>{name}</th>"
        for name in ("group", "estimand", "estimate", "interval", "p", "n", "decision")
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in _html_cells(finding, mark))
        + "</tr>"
        for finding, mark in zip(result.findings, marks, strict=True)
    )
    title = "".join(f"<p>{html.escape(line)}</p>" for line in _title(result) if line)
    joint = "" if result.joint is None else f"<p>{html.escape(joint_line(result.joint))}</p>"
    notes = "".join(f"<li>{html.escape(note.message)}</li>" for note in footnotes)
    return (
        f"<div class='equipoise'>{title}<table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{joint}<ol>{notes}</ol></div>"
    )


def _html_cells(finding: Finding, mark: str) -> tuple[str, ...]:
    return (
        finding.group,
        finding.estimand,
        number(finding.estimate),
        interval(finding.ci),
        p_value(finding.p_value),
        f"{finding.n}",
        decision_word(finding.decision) + mark,
    )


def _title(result: "AuditResult") -> list[str]:
    title = f"{result.audit}: {result.method}; n = {result.n}; alpha = {result.alpha:g}"
    return [
        *textwrap.wrap(title, WIDTH),
        *textwrap.wrap(f"Null: {result.null}", WIDTH),
        *textwrap.wrap(headline(result), WIDTH),
        "",
    ]


def _footnotes(result: "AuditResult") -> tuple[list[str], list[Note]]:
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
