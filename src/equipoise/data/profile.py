"""What the columns of a table look like: kind, levels, missing values."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import narwhals as nw

from equipoise.data.duckdb import csv_layout, resolve
from equipoise.data.frame import open_frame
from equipoise.data.layout import Layout
from equipoise.data.query import fetch
from equipoise.exceptions import DataError

__all__ = ["LOOKED_AT", "ColumnProfile", "profile", "read_layout"]

LOOKED_AT = 100_000
"""Rows that are looked at; a guess needs no more."""

FEW = 30
"""Columns with at most this many distinct values have their levels listed."""


Kind: TypeAlias = Literal["number", "boolean", "text", "nested", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """One column.

    Parameters
    ----------
    name : str
        Of the column.
    kind : {"number", "boolean", "text", "nested", "other"}
        What it holds; "nested" are lists and structures, of which nothing more is known.
    distinct, missing, n : int
        Distinct values, missing values and rows that were looked at.
    low, high : float, optional
        Range of a number.
    whole : bool
        Whether a number has whole values only.
    levels : tuple
        The distinct values in order, when there are few.
    """

    name: str
    kind: Kind
    distinct: int
    missing: int
    n: int
    low: float | None = None
    high: float | None = None
    whole: bool = False
    levels: tuple[Any, ...] = ()

    @property
    def binary(self) -> bool:
        """Whether it has exactly two values."""
        return self.distinct == 2


def profile(data: Any) -> list[ColumnProfile]:
    """Look at the first rows of a table.

    Parameters
    ----------
    data : frame, relation, dict of arrays, or path
        As `Audit` takes it.

    Returns
    -------
    list of ColumnProfile
        In the order of the columns.
    """
    frame = fetch(open_frame(data).head(LOOKED_AT))
    if len(frame) == 0:
        raise DataError("The table has no rows. Pass a file with at least one row of data.")
    return [_column(frame[name]) for name in frame.columns]


def read_layout(path: str) -> Layout:
    """Return how a file is read, as `Audit` reads it: which names its columns have.

    Parameters
    ----------
    path : str
        Of csv or parquet files.

    Returns
    -------
    Layout
    """
    files, kind = resolve(path)
    return csv_layout(files, path) if kind == "csv" else Layout()


def _column(column: "nw.Series[Any]") -> ColumnProfile:
    kind: Kind = "other"
    if column.dtype.is_nested() or column.dtype == nw.Unknown:
        missing = column.null_count()
        kind = "nested" if missing < len(column) else "other"
        distinct = len(column) - missing
        return ColumnProfile(
            name=column.name, kind=kind, distinct=distinct, missing=missing, n=len(column)
        )
    if column.dtype.is_numeric():
        kind = "number"
        column = column.cast(nw.Float64).fill_nan(None)
    elif column.dtype == nw.Boolean:
        kind = "boolean"
    elif column.dtype in {nw.String, nw.Categorical, nw.Enum}:
        kind = "text"
    values = column.drop_nulls()
    every = values.unique()
    levels: tuple[Any, ...] = ()
    if kind != "other" and len(every) <= FEW:
        levels = tuple(sorted(every.to_list()))
    number = kind == "number" and len(every) > 0
    whole = number and bool((values == values.round(0)).all())
    return ColumnProfile(
        name=column.name,
        kind=kind,
        distinct=len(every),
        missing=len(column) - len(values),
        n=len(column),
        low=float(values.min()) if number else None,
        high=float(values.max()) if number else None,
        whole=whole,
        levels=tuple(int(level) for level in levels) if whole else levels,
    )
