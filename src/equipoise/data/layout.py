"""Where a csv file has its names and its fields, found from its first lines."""

import csv
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["FIRST", "LINES", "Layout", "find_layout"]

FIRST = "column_1"
"""What the first column is called where a file has no names."""

LINES = 1_000
"""Lines that are looked at: every label that repeats does so among them."""

NO_LETTERS = re.compile(r"[\W_]*\d[\W\d_]*")
"""A number, an amount, a date or a time."""

YEARS = (1500.0, 2200.0)


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
    skipped : tuple of str
        Lines above the table, which are neither names nor data.
    """

    names: tuple[str, ...] = ()
    named: bool = True
    separator: str = ","
    spaced: bool = False
    quote: str = '"'
    escape: str = '"'
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
    no column of numbers has a word there, and more cells are values of their columns (numbers, or
    labels that occur again below) than are labels of no other row. Numbers that count up, and
    years, are names.

    Parameters
    ----------
    lines : sequence of str
        The first ones of the file.
    separator : str
        What a reader took for it; a blank takes its place where no line has it, and every line the
        same number of blanks.
    missing : collection of str
        Words for missing values.
    header : bool, optional
        Whether the first line has the names, where that is known.

    Returns
    -------
    Layout
    """
    rows = _cells(lines, separator)
    if max(map(len, rows), default=1) == 1:
        apart = _cells(lines, " ")
        if len({*map(len, apart)}) == 1 and len(apart[0]) > 1:
            separator, rows = " ", apart
    width = Counter(map(len, rows)).most_common(1)[0][0] if rows else 1
    above = _above(lines, separator, width)
    first, *others = _cells(lines[above:], separator) or [[]]
    if header is None:
        alike = [row for row in others if len(row) == width]
        header = width == 1 or len(first) != width or not _is_data(first, alike, missing)
    return Layout(
        names=() if header else tuple(FIRST.replace("1", str(k)) for k in range(1, width + 1)),
        named=header,
        separator=separator,
        spaced=separator != " " and width > 1 and _is_spaced(lines[above:], separator),
        skipped=tuple(line.strip() for line in lines[:above]),
    )


def _cells(lines: Sequence[str], separator: str) -> list[list[str]]:
    found = csv.reader(lines, delimiter=separator, skipinitialspace=separator != " ")
    return [row for row in found if row]


def _above(lines: Sequence[str], separator: str, width: int) -> int:
    """Count the lines above a table of this width that have a single field, such as a title."""
    for k, line in enumerate(lines):
        fields = max(map(len, _cells([line], separator)), default=0)
        if fields > 1:
            return k if fields == width else 0
    return 0


def _is_spaced(lines: Sequence[str], separator: str) -> bool:
    cells = [cell for row in csv.reader(lines, delimiter=separator) for cell in row[1:]]
    return all(cell.startswith(" ") for cell in cells)


def _is_data(
    first: Sequence[str], others: Sequence[Sequence[str]], missing: Collection[str]
) -> bool:
    """Return whether the first line looks like those below it rather than like their names."""
    evidence = 0
    numbers: list[str] = []
    for cell, column in zip(first, zip(*others, strict=True), strict=False):
        values = [value for value in column if value not in missing]
        numeric = bool(values) and all(map(_is_number, values))
        if cell in missing or not values:
            evidence += cell == "?"
        elif numeric and not _is_number(cell):
            return False
        elif numeric:
            numbers.append(cell)
        elif cell in values:
            evidence += 1
        elif len({*values}) <= len(values) / 2:
            evidence -= 1
    return evidence + (0 if _count_up(numbers) else len(numbers)) > 0


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return NO_LETTERS.fullmatch(text) is not None
    return True


def _count_up(cells: Sequence[str]) -> bool:
    """Return whether numbers are names: 0, 1, 2 or the like, or years."""
    if not all(cell.isdecimal() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    steps = {after - before for before, after in pairwise(numbers)}
    if steps == {1} and numbers[0] in {0, 1}:
        return True
    growing = all(step > 0 for step in steps)
    years = all(YEARS[0] <= number <= YEARS[1] for number in numbers)
    return growing and ((len(numbers) > 2 and len(steps) == 1) or years)
