"""Where a csv file has its names and its fields, found from its first lines."""

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["FIRST", "LINES", "Layout", "csv_rows", "find_layout"]

FIRST = "column_1"
"""What the first column is called where a file has no names."""

LINES = 1_000
"""Lines that are looked at: every label that repeats does so among them."""

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
NO_LETTERS = re.compile(r"[\W_]*\d[\W\d_]*")
"""An amount, a date, a time or a span."""

YEARS = (1500.0, 2200.0)

UNSEEN = 3
"""Cells that speak for a row of data, against one for names: a value that no other row has, in a
column of which all others repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the lines of a csv file are read.

    Parameters
    ----------
    names : tuple of str
        Names of the columns that the file does not have: ``column_1`` and so on where its first
        line is a row of data; empty where they are in the first line.
    named : bool
        Whether the first line has names.
    separator : str
        Between fields.
    spaced : bool
        Whether a blank that belongs to no field follows each separator.
    quote : str
        Around a field: the double quote, or empty where a file has one that is never closed.
    escape : str
        Before a quote inside quotes: another one, or a backslash.
    runs : bool
        Whether several blanks separate as one does, and may stand at the ends of a line.
    skipped : tuple of str
        Lines above the table, which are neither names nor data.
    """

    names: tuple[str, ...] = ()
    named: bool = True
    separator: str = ","
    spaced: bool = False
    quote: str = '"'
    escape: str = '"'
    runs: bool = False
    skipped: tuple[str, ...] = ()


def find_layout(
    lines: Sequence[str],
    *,
    separator: str,
    missing: Collection[str],
    header: bool | None = None,
) -> Layout:
    """Find how a csv file is to be read; the same lines always give the same answer.

    The first line is a row of data when its cells could stand below it and do not look like names:
    no column of numbers has a word or a date there, and more cells are values of their columns
    (numbers, or labels that occur again below) than are labels of no other row; these count
    `UNSEEN` times where every other value occurs again. Numbers that count up, and years, are
    names.

    Parameters
    ----------
    lines : sequence of str
        The first ones of the file.
    separator : str
        What a reader took for it; blanks take its place where no line has it, and every line the
        same number of words.
    missing : collection of str
        Words for missing values.
    header : bool, optional
        Whether the first line has the names, where that is known.

    Returns
    -------
    Layout
    """
    rows, runs = csv_rows(lines, separator), False
    if separator == " " or max(map(len, rows), default=1) == 1:
        ends = [f"{line.rstrip()}\n" for line in lines]
        single, words = csv_rows(lines, " "), csv_rows(ends, " ", runs=True)
        if len({*map(len, words)}) == 1 and len(words[0]) > 1:
            separator, lines, rows, runs = " ", ends, words, words != single
    width = Counter(map(len, rows)).most_common(1)[0][0] if rows else 1
    above = 0 if runs else _above(lines, separator, width)
    title = 0 if runs or header is False else _title(lines, separator, width)
    if title > above and not _begins_with_data(csv_rows(lines[title:], separator), width, missing):
        above = title
    if header is None:
        table = csv_rows(lines[above:], separator, runs=runs)
        header = width == 1 or not _begins_with_data(table, width, missing)
    return Layout(
        names=() if header else tuple(FIRST.replace("1", str(k)) for k in range(1, width + 1)),
        named=header,
        separator=separator,
        runs=runs,
        spaced=separator != " " and width > 1 and _is_spaced(lines[above:], separator),
        skipped=tuple(line.strip() for line in lines[:above]),
    )


def csv_rows(lines: Sequence[str], separator: str, *, runs: bool = False) -> list[list[str]]:
    """Return the fields of each line that has some; several blanks separate as one in `runs`."""
    blanks = separator == " " and not runs
    return [row for _, row in _records(lines, separator, blanks=blanks) if row]


def _records(
    lines: Sequence[str], separator: str, *, blanks: bool
) -> Iterator[tuple[int, list[str]]]:
    """Yield the place of the line where each record begins, and its cells."""
    found = csv.reader(lines, delimiter=separator, skipinitialspace=not blanks)
    begin = 0
    with suppress(csv.Error):  # what is behind a field of extreme length is not looked at
        for row in found:
            yield begin, row
            begin = found.line_num


def _above(lines: Sequence[str], separator: str, width: int) -> int:
    """Count the lines above a table of this width that have a single field, such as a title."""
    for begin, row in _records(lines, separator, blanks=separator == " "):
        if len(row) > 1:
            return begin if len(row) == width else 0
    return 0


def _title(lines: Sequence[str], separator: str, width: int) -> int:
    """Count the lines above a full line of words that fill their first field at most.

    A spreadsheet writes a title with all the separators of the table.
    """
    for begin, row in _records(lines, separator, blanks=separator == " "):
        if any(cell.strip() for cell in row[1:]):
            names = len(row) == width > 2 and all(cell.strip() and not _kind(cell) for cell in row)
            return begin if names else 0
    return 0


def _is_spaced(lines: Sequence[str], separator: str) -> bool:
    rows = (row for _, row in _records(lines, separator, blanks=True))
    return all(cell.startswith(" ") for row in rows for cell in row[1:])


def _begins_with_data(rows: Sequence[Sequence[str]], width: int, missing: Collection[str]) -> bool:
    """Return whether the first of the rows is as wide as a table and looks like those below it."""
    first, *others = rows or [[]]
    return len(first) == width and _is_data(
        first, [row for row in others if len(row) == width], missing
    )


def _is_data(
    first: Sequence[str], others: Sequence[Sequence[str]], missing: Collection[str]
) -> bool:
    """Return whether the first line looks like those below it rather than like their names."""
    evidence = 0
    numbers: list[str] = []
    # A copy of the first line is one where files were joined, and tells nothing.
    below = [row for row in others if row != first]
    for cell, column in zip(first, zip(*below, strict=True), strict=False):
        values = Counter(value for value in column if value not in missing)
        kind = min(map(_kind, values), default=0)
        if cell in missing or not values:
            evidence += cell == "?"
        elif _kind(cell) < kind:
            return False
        elif cell not in values and min(values.values()) > 1:
            evidence -= UNSEEN
        elif kind:
            numbers.append(cell)
        elif cell in values:
            evidence += 1
        elif len(values) <= values.total() / 2:
            evidence -= 1
    return evidence + (0 if _count_up(numbers) else len(numbers)) > 0


def _kind(text: str) -> int:
    """Return 2 for a number, 1 for anything else without letters, 0 for words."""
    text = text.strip()
    return 2 if NUMBER.fullmatch(text) else int(NO_LETTERS.fullmatch(text) is not None)


def _count_up(cells: Sequence[str]) -> bool:
    """Return whether numbers are names: 0, 1, 2 or the like, or years."""
    if not all(cell.isdecimal() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    steps = {after - before for before, after in pairwise(numbers)}
    if steps == {1} and numbers[0] in {0, 1}:
        return True
    growing, falling = all(step > 0 for step in steps), all(step < 0 for step in steps)
    years = all(YEARS[0] <= number <= YEARS[1] for number in numbers)
    even = growing and len(numbers) > 2 and len(steps) == 1
    return even or (years and (growing or falling))
