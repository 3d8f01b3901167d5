"""Groups: from the raw keys of a query to labels, cells, and subgroups of any depth."""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from equipoise._checks import check_depth, nearest, quoted
from equipoise._names import GroupName
from equipoise._typing import AnyArray, BoolArray, IntArray
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.moments import number_cells

if TYPE_CHECKING:
    from scipy import sparse

__all__ = [
    "MAX_CELLS",
    "GroupTable",
    "Labelled",
    "Subgroups",
    "absent",
    "cell_names",
    "check_cells",
    "encode",
    "group_tables",
    "label_of",
    "labels_of",
    "look_alike",
    "matching_cells",
    "n_subgroups",
    "place",
    "subgroup_name",
    "subgroups",
]

MAX_CELLS = 500_000
EXACT = 2.0**53
"""Whole numbers below this are themselves as floats."""

DAY = 86_400 * 10**9
"""Nanoseconds of a day."""

MAX_SUBGROUPS = 100_000
"""Combinations of several columns that are compared at most."""


class Labelled(Protocol):
    """Cells with the text label of each in each group column."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The group columns."""

    @property
    def labels(self) -> tuple[AnyArray, ...]:
        """Arrays of shape (K,), one for each column."""


def label_of(value: object) -> str:
    """Write a value of a group column as text: the one way from a raw key to its label.

    Dates and times are ISO, those with a zone in UTC; spans are days and a clock. Numbers that are
    equal have one label.
    """
    if isinstance(value, datetime):
        # Offsets of a zone change during the year: in local time two moments may look alike.
        moment = value if value.tzinfo is None else value.astimezone(UTC)
        return moment.replace(tzinfo=None).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        # Not `normalize`, which keeps 28 digits.
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    if hasattr(value, "nanoseconds"):
        return _span(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        # A column of whole numbers becomes one of floats as soon as a value is missing.
        return str(int(value))
    return str(value)


def _span(value: Any) -> str:
    """Write Arrow's triple of months, days and nanoseconds as a span of Python is written.

    To DuckDB a month is 30 days and a day 24 hours: spans that it finds equal have one label.
    """
    days, rest = divmod(value.nanoseconds, DAY)
    days += 30 * value.months + value.days
    try:
        return str(timedelta(days=days, microseconds=rest // 1000))
    except OverflowError:
        return f"{days} days, {rest} ns"


def labels_of(key: AnyArray) -> AnyArray:
    """Return the label of each raw key; a value is written once, however often it occurs."""
    if key.dtype != object:
        values, inverse = np.unique(key, return_inverse=True)
        known = np.array([label_of(value) for value in values.tolist()], dtype=object)
        return np.asarray(known[inverse])
    written = {value: label_of(value) for value in set(key.tolist())}
    labels = np.empty(len(key), dtype=object)
    labels[:] = [written[value] for value in key.tolist()]
    return labels


def look_alike(labels: Iterable[str]) -> list[tuple[str, str]]:
    """Return labels that differ from an earlier one in case or in what nobody sees, after that one.

    Examples
    --------
    >>> look_alike(["a", "b", "A", "b "])
    [('A', 'a'), ('b', 'b ')]
    """
    first: dict[str, str] = {}
    pairs = ((first.setdefault(_seen(label), label), label) for label in sorted({*labels}))
    return [(one, other) for one, other in pairs if one != other]


def _seen(label: str) -> str:
    """Return what of a label is seen: no marks without width, one blank for several, no case."""
    if not label.isascii():
        composed = unicodedata.normalize("NFC", label)
        label = "".join(sign for sign in composed if unicodedata.category(sign) != "Cf")
    return " ".join(label.split()).casefold()


def encode(keys: Sequence[AnyArray], n: int) -> tuple[IntArray, tuple[AnyArray, ...]]:
    """Number the distinct combinations of raw keys of n rows in the sorted order of their labels.

    Without keys all rows are one cell, without a label.
    """
    if not keys:
        return np.zeros(n, dtype=np.int64), ()
    return number_cells([labels_of(key) for key in keys])


def place(keys: Sequence[AnyArray], cells: Labelled) -> IntArray:
    """Return the cell of each combination of raw keys; raise if there is no such cell."""
    known = {key: k for k, key in enumerate(zip(*cells.labels, strict=True))}
    rows = zip(*[labels_of(key) for key in keys], strict=True)
    try:
        return np.array([known[row] for row in rows], dtype=np.int64)
    except KeyError as error:
        raise unknown_group(cells.columns, error.args[0]) from None


def unknown_group(columns: tuple[str, ...], labels: tuple[str, ...]) -> DataError:
    """Say that a later query met a group that an earlier one had not."""
    return DataError(
        f"The table changed while it was read: {subgroup_name(columns, labels)!r} was not there"
        " before."
    )


def absent(keys: AnyArray) -> BoolArray:
    """Return where a key is null, or not a number."""
    # NaN is the one value that differs from itself.
    return np.asarray((keys == None) | (keys != keys), dtype=np.bool_)  # noqa: E711, PLR0124


def check_cells(size: int, group: tuple[str, ...]) -> None:
    """Raise if the group columns make more cells than an audit can use."""
    if size > MAX_CELLS:
        raise DataError(
            f"The group columns {quoted(group)} make {size} cells; the limit is {MAX_CELLS}."
            " Name coarser columns, or give `bins` for numeric ones."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgroups:
    """Named unions of cells.

    Parameters
    ----------
    names : tuple of str
        Written ``race=Black & sex=Female``.
    membership : sparse bool matrix of shape (K, m)
        Which cells make up each subgroup.
    """

    names: tuple[str, ...]
    membership: "sparse.csc_array"


def subgroup_name(columns: tuple[str, ...], labels: tuple[str, ...]) -> GroupName:
    """Write a subgroup as ``race=Black & sex=Female``."""
    return GroupName(zip(columns, labels, strict=True))


def cell_names(columns: tuple[str, ...], labels: tuple[AnyArray, ...]) -> tuple[str, ...]:
    """Write every cell as a subgroup of all columns, in the order of its labels."""
    return tuple(
        subgroup_name(columns, tuple(str(label) for label in row))
        for row in zip(*labels, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTable:
    """The disjoint categories that some of the group columns make.

    Parameters
    ----------
    columns : tuple of str
        The columns that are combined.
    names : tuple of str
        Of the categories, written ``race=Black & sex=Female``, in the order of their labels.
    labels : tuple of tuple of str
        Of each category in each of the columns.
    category : array of shape (K,)
        Number of each cell's category.
    """

    columns: tuple[str, ...]
    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    category: IntArray


def group_tables(cells: Labelled, *, depth: int | None = None) -> list[GroupTable]:
    """Return the categories of every combination of at most `depth` of the group columns.

    Single columns come first, then pairs, and so on; inside, labels are sorted.

    Parameters
    ----------
    cells : CellMoments, or anything with labels
        Labels of the cells.
    depth : int, optional
        By default all columns are combined.

    Returns
    -------
    list of GroupTable
    """
    columns = cells.columns
    if not columns:
        raise InvalidParameterError("this question compares groups; pass `group` to `Audit`.")
    limit = check_depth(depth) or len(columns)
    labels = tuple(tuple(map(str, own.tolist())) for own in cells.labels)
    return list(_group_tables(columns, labels, min(limit, len(columns))))


@lru_cache(maxsize=2)
def _group_tables(
    columns: tuple[str, ...], labels: tuple[tuple[str, ...], ...], limit: int
) -> tuple[GroupTable, ...]:
    """Make the tables; the checks of a plan ask for the same ones, each after the other."""
    codes = [number_cells([np.array(own, dtype=object)])[0] for own in labels]
    _check_subgroups([int(code.max()) + 1 for code in codes], len(codes[0]), limit)
    tables = []
    for size in range(1, limit + 1):
        for chosen in combinations(range(len(columns)), size):
            key = np.zeros(len(labels[0]), dtype=np.int64)
            for k in chosen:
                key = np.unique(key * (codes[k].max() + 1) + codes[k], return_inverse=True)[1]
            _, first, category = np.unique(key, return_index=True, return_inverse=True)
            picked = tuple(columns[k] for k in chosen)
            category.flags.writeable = False
            own = tuple(zip(*([labels[k][i] for i in first] for k in chosen), strict=True))
            names = tuple(subgroup_name(picked, label) for label in own)
            tables.append(GroupTable(columns=picked, names=names, labels=own, category=category))
    return tuple(tables)


def subgroups(cells: Labelled, *, depth: int | None = None) -> Subgroups:
    """Return every subgroup that combines at most `depth` of the group columns.

    Parameters
    ----------
    cells : CellMoments, or anything with labels
        Labels of the cells.
    depth : int, optional
        By default all columns are combined.

    Returns
    -------
    Subgroups
        In the order of `group_tables`.
    """
    from scipy import sparse

    tables = group_tables(cells, depth=depth)
    start = np.cumsum([0, *(len(table.names) for table in tables)])
    size = len(cells.labels[0])
    row = np.tile(np.arange(size), len(tables))
    col = np.concatenate(
        [table.category + first for table, first in zip(tables, start[:-1], strict=True)]
    )
    membership = sparse.csc_array(
        (np.ones(len(row), dtype=bool), (row, col)), shape=(size, int(start[-1]))
    )
    names = tuple(name for table in tables for name in table.names)
    return Subgroups(names=names, membership=membership)


def _check_subgroups(levels: Sequence[int], n_cells: int, depth: int) -> None:
    """Raise before the work if columns are combined into more subgroups than can be compared."""
    total = 0
    for size in range(1, depth + 1):
        before = total
        for chosen in combinations(levels, size):
            total += min(math.prod(chosen), n_cells)
            if size > 1 and total > MAX_SUBGROUPS:
                raise InvalidParameterError(
                    f"{len(levels)} group columns make more than {MAX_SUBGROUPS} subgroups at"
                    f" depth {size}. Pass `depth={size - 1}` (at most {before} subgroups), or name"
                    " fewer columns."
                )


def n_subgroups(cells: Labelled) -> int:
    """Return how many subgroups combine any of the group columns."""
    levels = [len(set(labels.tolist())) for labels in cells.labels]
    every = math.prod(size + 1 for size in levels) - 1
    return min(every, len(cells.labels[0]) * (2 ** len(levels) - 1)) if levels else 0


def matching_cells(cells: Labelled, reference: dict[str, object]) -> BoolArray:
    """Return which cells have the labels of `reference`, such as ``{"race": "White"}``."""
    match: BoolArray = np.ones(len(cells.labels[0]), dtype=bool)
    for column, label in reference.items():
        if column not in cells.columns:
            raise InvalidParameterError(
                f"`reference` names {column!r}, which is not a group column."
                f"{nearest(column, cells.columns)} Group columns: {quoted(cells.columns)}."
            )
        labels: AnyArray = cells.labels[cells.columns.index(column)]
        chosen = labels == str(label)
        if not chosen.any():
            known = sorted(set(labels.tolist()))
            shown = quoted(known[:20]) + (", ..." if len(known) > 20 else "")
            raise DataError(
                f"`reference` selects no rows: {column!r} has no value {str(label)!r}."
                f"{nearest(str(label), known)} Values: {shown}."
            )
        match &= chosen
    if not match.any():
        raise DataError(f"`reference` selects no rows: no cell has all of {reference}.")
    return match
