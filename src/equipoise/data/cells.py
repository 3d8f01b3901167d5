"""Results of the table queries, and the numbering of cells by their labels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

import numpy as np

from equipoise._checks import quoted
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.exceptions import DataError

__all__ = [
    "MAX_CELLS",
    "Cells",
    "Rows",
    "Totals",
    "absent",
    "check_cells",
    "encode",
    "label_text",
    "place",
]

MAX_CELLS = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Sums over the cells of the group columns, sorted by label.

    Parameters
    ----------
    columns : tuple of str
        The group columns.
    labels : tuple of arrays of shape (K,)
        Text label of each cell in each group column.
    n, total, product, n_units, cross
        As in `equipoise.moments.CellMoments`; `cross` is (first, second, product) or None.
    sums : dict of arrays of shape (K,)
        Further sums that were asked for.
    dropped : int
        Rows left out because a value was missing.
    """

    columns: tuple[str, ...]
    labels: tuple[AnyArray, ...]
    n: IntArray
    total: FloatArray
    product: FloatArray
    n_units: int
    cross: tuple[IntArray, IntArray, FloatArray] | None = None
    sums: dict[str, FloatArray] = field(default_factory=dict)
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Complete rows in memory, with the cell and the unit of each.

    Cells are numbered as in `Cells`: sorted by label. `unit` is None without clusters, `weight` and
    `count` are None when those roles are absent.
    """

    columns: tuple[str, ...]
    labels: tuple[AnyArray, ...]
    values: dict[str, AnyArray]
    cell: IntArray
    unit: IntArray | None = None
    weight: FloatArray | None = None
    count: FloatArray | None = None
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Grouped sums: `keys` by name, rows `n` (counts included), and `sums` by name."""

    keys: dict[str, AnyArray]
    n: IntArray
    sums: dict[str, FloatArray]
    dropped: int = 0


def _text(values: AnyArray) -> AnyArray:
    """Write labels as text; dates and times are ISO, in their own time zone."""
    return np.array([_label(value) for value in values.tolist()], dtype=object)


def label_text(values: Sequence[object]) -> AnyArray:
    """Write distinct labels as text that sorts like the labels of cells."""
    return np.array([_label(value) for value in values], dtype=str)


def _label(value: object) -> str:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat()
    return value.isoformat() if isinstance(value, date) else str(value)


def encode(keys: Sequence[AnyArray], n: int) -> tuple[IntArray, tuple[AnyArray, ...]]:
    """Number the distinct combinations of keys of n rows in the sorted order of their labels.

    Without keys all rows are one cell, without a label.
    """
    codes = np.zeros(n, dtype=np.int64)
    levels = []
    for key in keys:
        if key.dtype == object:
            raw, inverse = _unique_objects(key)
        else:
            raw, inverse = np.unique(key, return_inverse=True)
        labels, place = np.unique(_text(raw).astype(str), return_inverse=True)
        codes = codes * len(labels) + place[inverse]
        levels.append(labels.astype(object))
    distinct, cell = np.unique(codes, return_inverse=True)
    parts: list[AnyArray] = []
    rest = distinct
    for labels in reversed(levels):
        parts.append(labels[rest % len(labels)])
        rest = rest // len(labels)
    return cell.astype(np.int64), tuple(reversed(parts))


def _unique_objects(values: AnyArray) -> tuple[AnyArray, IntArray]:
    """Number objects in order of appearance; they need not be comparable."""
    order: dict[object, int] = {}
    inverse = np.fromiter((order.setdefault(v, len(order)) for v in values), np.int64, len(values))
    raw = np.empty(len(order), dtype=object)
    raw[:] = list(order)
    return raw, inverse


def absent(keys: AnyArray) -> BoolArray:
    """Return where a key is null, or not a number."""
    # NaN is the one value that differs from itself.
    return np.asarray((keys == None) | (keys != keys), dtype=np.bool_)  # noqa: E711, PLR0124


def place(keys: Sequence[AnyArray], labels: tuple[AnyArray, ...]) -> IntArray:
    """Return the cell of each combination of raw keys among the known cells."""
    known = {key: k for k, key in enumerate(zip(*labels, strict=True))}
    rows: Iterable[tuple[object, ...]] = zip(*[_text(key) for key in keys], strict=True)
    return np.array([known[key] for key in rows], dtype=np.int64)


def check_cells(size: int, group: tuple[str, ...]) -> None:
    """Raise if the group columns make more cells than an audit can use."""
    if size > MAX_CELLS:
        raise DataError(
            f"The group columns {quoted(group)} make {size} cells; the limit is {MAX_CELLS}."
            " Name coarser columns, or give `bins` for numeric ones."
        )
