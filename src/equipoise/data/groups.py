"""Subgroups as unions of cells, to any depth of intersection."""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse

from equipoise._checks import check_integer, nearest, quoted
from equipoise._typing import AnyArray, BoolArray, IntArray
from equipoise.data.batches import RowReader
from equipoise.data.cells import Cells, Rows
from equipoise.exceptions import DataError, InvalidParameterError

__all__ = ["Subgroups", "matching_cells", "n_subgroups", "subgroup_name", "subgroups"]


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


def subgroup_name(columns: tuple[str, ...], labels: tuple[str, ...]) -> str:
    """Write a subgroup as ``race=Black & sex=Female``."""
    return " & ".join(f"{c}={label}" for c, label in zip(columns, labels, strict=True))


def cell_names(columns: tuple[str, ...], labels: tuple[AnyArray, ...]) -> tuple[str, ...]:
    """Write every cell as a subgroup of all columns, in the order of its labels."""
    return tuple(
        subgroup_name(columns, tuple(str(label) for label in row))
        for row in zip(*labels, strict=True)
    )


def subgroups(cells: Cells | Rows, *, depth: int | None = None) -> Subgroups:
    """Return every subgroup that combines at most `depth` of the group columns.

    Single columns come first, then pairs, and so on; inside, labels are sorted.

    Parameters
    ----------
    cells : Cells or Rows
        Labels of the cells.
    depth : int, optional
        By default all columns are combined.

    Returns
    -------
    Subgroups
    """
    columns = cells.columns
    if not columns:
        raise InvalidParameterError("this question compares groups; pass `group` to `Audit`.")
    limit = len(columns) if depth is None else check_integer("depth", depth, low=1)
    codes = [np.unique(labels.astype(str), return_inverse=True) for labels in cells.labels]
    names: list[str] = []
    rows: list[IntArray] = []
    cols: list[IntArray] = []
    for size in range(1, min(limit, len(columns)) + 1):
        for chosen in combinations(range(len(columns)), size):
            key = np.zeros(len(cells.labels[0]), dtype=np.int64)
            for k in chosen:
                key = key * len(codes[k][0]) + codes[k][1]
            _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
            rows.append(np.arange(len(key)))
            cols.append(inverse + len(names))
            picked = tuple(columns[k] for k in chosen)
            names.extend(
                subgroup_name(picked, tuple(str(cells.labels[k][i]) for k in chosen)) for i in first
            )
    row, col = np.concatenate(rows), np.concatenate(cols)
    membership = sparse.csc_array(
        (np.ones(len(row), dtype=bool), (row, col)), shape=(len(cells.labels[0]), len(names))
    )
    return Subgroups(names=tuple(names), membership=membership)


def n_subgroups(cells: Cells | Rows) -> int:
    """Return how many subgroups combine any of the group columns."""
    levels = [len(set(labels.tolist())) for labels in cells.labels]
    every = math.prod(size + 1 for size in levels) - 1
    return min(every, len(cells.labels[0]) * (2 ** len(levels) - 1)) if levels else 0


def matching_cells(cells: Cells | Rows | RowReader, reference: dict[str, object]) -> BoolArray:
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
