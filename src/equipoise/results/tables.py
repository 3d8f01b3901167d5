"""A result as a table: text as wide as the terminal, and an HTML fragment for notebooks."""

import html
import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import pairwise
from typing import TYPE_CHECKING

from equipoise._names import GroupName, label_order, printable
from equipoise.results.finding import Decision, Finding, Note
from equipoise.results.formats import (
    count,
    decision_word,
    estimate_words,
    interval,
    joint_line,
    number,
    p_value,
    short_points,
)
from equipoise.results.sentences import group_writer, share
from equipoise.results.wording import (
    compared_names,
    headline,
    in_points,
    parts_of,
    parts_words,
    question_words,
)

if TYPE_CHECKING:
    from rich.table import Table

    from equipoise.results.result import AuditResult

__all__ = ["ALL", "MOST", "footnotes", "foremost", "html_table", "in_order", "table", "text_width"]

WIDTH, NARROWEST, WIDEST = 80, 40, 160
MOST = 20
"""Lines of one table; a result with more findings prints the ones that a reader looks for."""

ALL = sys.maxsize
"""As many lines as there are findings."""

_URGENCY = {
    Decision.DETECTED: 0,
    Decision.NOT_DETECTED: 1,
    Decision.WITHIN_MARGIN: 2,
    Decision.NOT_TESTED: 3,
    Decision.ESTIMATED: 4,
}
_GAP = 2
"""Spaces between columns."""


def text_width() -> int:
    """Return how wide text is written: as the terminal, and 80 columns where there is none."""
    if sys.stdout is None or not sys.stdout.isatty():
        return WIDTH
    return min(max(shutil.get_terminal_size((WIDTH, 24)).columns, NARROWEST), WIDEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One line: the name, the cells after it, and what is told below."""

    name: str
    cells: tuple[str, ...] = ()
    below: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sheet:
    """What is printed of a result, in text and in HTML alike."""

    title: tuple[str, ...]
    columns: tuple[str, ...]
    lines: tuple[_Line, ...]
    left_out: str
    joint: str
    notes: tuple[str, ...]


def table(result: "AuditResult", *, most: int = MOST, more: str = "`to_frame()` has all") -> str:
    """Return the result as text, as wide as the terminal.

    Parameters
    ----------
    result : AuditResult
        What to print.
    most : int
        Lines of the table; `ALL` for as many as there are findings.
    more : str
        Where a reader finds the rest.

    Returns
    -------
    str
        The question and its answer in a sentence, a line for each finding, the joint test, and
        the notes.
    """
    width = text_width()
    sheet = _sheet(result, most, more)
    parts = [line for text in sheet.title for line in textwrap.wrap(text, width)]
    parts += ["", _text(sheet, width)]
    if sheet.left_out:
        parts += ["", *textwrap.wrap(sheet.left_out, width)]
    if sheet.joint:
        parts += ["", *textwrap.wrap(sheet.joint, width)]
    if sheet.notes:
        parts.append("")
    for k, note in enumerate(sheet.notes, start=1):
        parts += textwrap.wrap(f"[{k}] {note}", width, subsequent_indent="    ")
    return printable("\n".join(parts))


def html_table(result: "AuditResult") -> str:
    """Return the result as an HTML fragment of at most `MOST` findings; text is escaped."""
    sheet = _sheet(result, MOST, "`to_frame()` has all")
    right = "style='text-align:right'"
    head = "".join(
        f"<th scope='col' {right if 0 < k < len(sheet.columns) - 1 else _LEFT}>"
        f"{html.escape(name)}</th>"
        for k, name in enumerate(sheet.columns)
    )
    body = "".join(_html_line(line, len(sheet.columns)) for line in sheet.lines)
    rest = f"<p>{html.escape(sheet.left_out)}</p>" if sheet.left_out else ""
    title = "".join(f"<p>{html.escape(text)}</p>" for text in sheet.title)
    joint = f"<p>{html.escape(sheet.joint)}</p>" if sheet.joint else ""
    items = "".join(f"<li>{html.escape(note)}</li>" for note in sheet.notes)
    return (
        f"<div class='equipoise'>{title}<table>"
        f"<caption {_LEFT}>{html.escape(question_words(result))}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}{joint}"
        f"<ol>{items}</ol></div>"
    )


_LEFT = "style='text-align:left'"


def _html_line(line: _Line, width: int) -> str:
    name = f"<th scope='row' {_LEFT}>{html.escape(line.name)}</th>"
    cells = "".join(
        f"<td style='text-align:{'left' if k == len(line.cells) - 1 else 'right'}'>"
        f"{html.escape(cell)}</td>"
        for k, cell in enumerate(line.cells)
    )
    if not line.cells:
        name = f"<th scope='rowgroup' colspan='{width}' {_LEFT}>{html.escape(line.name)}</th>"
    row = f"<tr>{name}{cells}</tr>"
    if line.below:
        row += f"<tr><td colspan='{width}' {_LEFT}>{html.escape(line.below)}</td></tr>"
    return row


def _sheet(result: "AuditResult", most: int, more: str) -> _Sheet:
    """Choose the findings to print, and write their cells."""
    shown, left_out = foremost(result, most, more)
    marks, notes = footnotes(shown)
    written = group_writer(shown)
    shares = in_points(result)
    values = [result.details.value_of(finding) for finding in shown.findings]
    rates = shares and any(value is not None for value in values)
    levels = {f.ci.confidence_level for f in shown.findings if f.ci is not None}
    columns = (
        "group",
        *(("share",) if rates else ()),
        "points" if shares else "estimate",
        f"{100 * levels.pop():g}% interval" if len(levels) == 1 else "interval",
        "p",
        "n",
        "decision",
    )
    heading = ""
    lines: list[_Line] = []
    withheld: list[str] = []
    for (above, name), finding, value, mark in zip(
        _names(shown.findings, written), shown.findings, values, marks, strict=True
    ):
        if finding.withheld and finding.decision is not Decision.DETECTED:
            withheld.append(mark)
            continue
        if above != heading:
            lines.append(_Line(name=above))
        heading = above
        own = None if value is None else value["group_value"]
        cells = (
            *(("-" if own is None else share(own),) if rates else ()),
            estimate_words(finding.estimate, shares=shares),
            interval(finding.ci, short_points if shares else number),
            p_value(finding.p_value),
            count(finding),
            decision_word(finding.decision, result.question.words) + mark,
        )
        parts = parts_of(finding, result)
        below = parts_words(parts) + _mark([note for part in parts for note in part.notes], notes)
        lines.append(_Line(name=name, cells=cells, below=below))
    if withheld:
        groups = "1 group" if len(withheld) == 1 else f"{len(withheld)} groups"
        words = f"withheld{''.join(dict.fromkeys(withheld))}"
        lines.append(_Line(name=groups, cells=(*["-"] * (len(columns) - 2), words)))
    return _Sheet(
        title=(
            f"{result.audit}: {result.method}; n = {result.n:,}; alpha = {result.alpha:g}",
            f"Null: {written(result.null)}",
            headline(result),
        ),
        columns=columns,
        lines=tuple(lines),
        left_out=left_out,
        joint="" if result.joint is None else written(joint_line(result.joint)),
        notes=tuple(written(note.message) for note in notes),
    )


def _names(findings: Sequence[Finding], written: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return the heading and the name of each line.

    Where groups have several lines, the group or the estimand is the heading: whichever is repeated
    less often.
    """
    groups = compared_names(findings, written)
    estimands = [written(finding.estimand.words) for finding in findings]
    if not _repeated(findings):
        return [("", name) for name in groups]
    if _runs(estimands) < _runs(groups):
        return [(above, f"  {name}") for above, name in zip(estimands, groups, strict=True)]
    return [(above, f"  {name}") for above, name in zip(groups, estimands, strict=True)]


def _runs(names: Sequence[str]) -> int:
    return 1 + sum(one != other for one, other in pairwise(names))


def _repeated(findings: Sequence[Finding]) -> bool:
    """Whether groups have several lines, so that their name stands above them."""
    return max(Counter(finding.group for finding in findings).values(), default=1) > 1


def _text(sheet: _Sheet, width: int) -> str:
    """Draw the table; names are wrapped, numbers never."""
    from rich.cells import cell_len

    def sizes() -> list[int]:
        rows = [sheet.columns, *((line.name, *line.cells) for line in sheet.lines if line.cells)]
        return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]

    if "share" in sheet.columns and sum(sizes()) + _GAP * (len(sizes()) - 1) > width:
        # The gap is what was asked: where there is no room for both, the share is left out.
        sheet = _without(sheet, sheet.columns.index("share"))
    first, *rest = sizes()
    spare = width - sum(rest) - _GAP * len(rest)
    return _drawn(sheet, [min(first, max(spare, 12)), *rest], width)


def _without(sheet: _Sheet, place: int) -> _Sheet:
    """Leave out a column."""
    columns = sheet.columns[:place] + sheet.columns[place + 1 :]
    lines = tuple(
        replace(line, cells=line.cells[: place - 1] + line.cells[place:]) for line in sheet.lines
    )
    return replace(sheet, columns=columns, lines=lines)


def _drawn(sheet: _Sheet, sizes: Sequence[int], width: int) -> str:
    """Return the lines of a sheet in columns of these sizes, by rich.

    A name that two lines of its column do not hold has a line of the whole table.
    """
    from rich.console import Console, Group
    from rich.padding import Padding
    from rich.text import Text

    grid = _grid(sizes)
    grid.add_row(*map(Text, sheet.columns))
    parts: list[Table | Text | Padding] = [grid]
    for line in sheet.lines:
        name = _wrapped(printable(line.name), sizes[0])
        beside = bool(line.cells) and 0 < len(name) <= 2
        if not beside:
            parts += [Text(printable(line.name)), grid := _grid(sizes)]
        if line.cells:
            grid.add_row(Text("\n".join(name) if beside else ""), *map(Text, line.cells))
        if line.below:
            parts += [Padding(Text(line.below), (0, 0, 0, 4)), grid := _grid(sizes)]
    stream = StringIO()
    wide = max(width, sum(sizes) + _GAP * (len(sizes) - 1))
    console = Console(file=stream, width=wide, color_system=None, force_terminal=False)
    console.print(Group(*(part for part in parts if getattr(part, "row_count", 1))))
    return "\n".join(text.rstrip() for text in stream.getvalue().splitlines())


def _grid(sizes: Sequence[int]) -> "Table":
    """Return an empty table in columns of these sizes: the first and the last begin at the left."""
    from rich.table import Table

    grid = Table.grid(padding=(0, _GAP, 0, 0))
    for k, size in enumerate(sizes):
        inner = 0 < k < len(sizes) - 1
        grid.add_column(width=size, justify="right" if inner else "left", no_wrap=inner)
    return grid


def _wrapped(name: str, width: int) -> list[str]:
    """Break a name into lines, between its parts, words or signs; none if that is too wide."""
    from rich.cells import cell_len

    indent = name[: len(name) - len(name.lstrip())]
    for between in (r"(?<=, )", r"(?<= )", r"(?<=[ =])", r"(?<=[ =\-_/,.])"):
        lines = [indent]
        for piece in re.split(between, name[len(indent) :]):
            if cell_len((lines[-1] + piece).rstrip()) > width and lines[-1].strip():
                lines.append(f"{indent}  ")
            lines[-1] += piece
        if max(cell_len(line.rstrip()) for line in lines) <= width:
            return [line.rstrip() for line in lines]
    return []


def in_order(findings: Sequence[Finding]) -> list[Finding]:
    """Put bins and numbers in their order, where groups of the same columns stand by their letters.

    Any other order, a ranking for instance, is kept, and so are the lines of one group.
    """
    ordered = list(findings)
    if _repeated(findings):
        return ordered
    blocks: dict[tuple[object, ...], list[int]] = {}
    for place, finding in enumerate(findings):
        if isinstance(finding.group, GroupName):
            columns = tuple(column for column, _ in finding.group.parts)
            blocks.setdefault((columns, finding.estimand), []).append(place)
    for places in blocks.values():
        labels = [tuple(label for _, label in _parts(findings[k])) for k in places]
        if labels != sorted(labels):
            continue
        own = sorted(places, key=lambda k: [label_order(v) for _, v in _parts(findings[k])])
        for place, k in zip(places, own, strict=True):
            ordered[place] = findings[k]
    return ordered


def _parts(finding: Finding) -> tuple[tuple[str, str], ...]:
    return finding.group.parts if isinstance(finding.group, GroupName) else ()


def foremost(result: "AuditResult", most: int, more: str) -> tuple["AuditResult", str]:
    """Return the result with the findings to print, and a sentence on the others.

    What was detected comes first where a group has one line; lines of one group stay together, and
    both keep the order of the findings: that of bins and of scores.
    """
    findings = in_order(result.lines)

    def urgency(k: int) -> tuple[int, float, int]:
        p = findings[k].p_value
        return _URGENCY[findings[k].decision], 2.0 if p is None else p, k

    chosen = sorted(sorted(range(len(findings)), key=urgency)[:most])
    if not _repeated(findings):
        chosen.sort(key=lambda k: findings[k].decision is not Decision.DETECTED)
    rest = len(findings) - len(chosen)
    sentence = (
        f"\u2026 {rest:,} more of {len(findings):,} findings: {more}. Those above are what was"
        " detected, then the smallest p-values."
    )
    return replace(result, findings=tuple(findings[k] for k in chosen)), sentence if rest else ""


def footnotes(result: "AuditResult") -> tuple[list[str], list[Note]]:
    """Number the distinct notes; return the marks of each finding and the list."""
    notes: list[Note] = []
    marks = [_mark(finding.notes, notes) for finding in result.findings]
    joint = () if result.joint is None else result.joint.notes
    notes += [note for note in (*joint, *result.notes) if note not in notes]
    return marks, notes


def _mark(own: Sequence[Note], notes: list[Note]) -> str:
    """Return the numbers of notes in a list, to which new ones are added."""
    notes += [note for note in dict.fromkeys(own) if note not in notes]
    return "".join(f" [{notes.index(note) + 1}]" for note in dict.fromkeys(own))
