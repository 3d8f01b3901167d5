"""Products of the sums of clusters: within cells, and between cells that share clusters.

Clusters come by the million, so that each is summed once. Few cells are columns of one query by
cluster; many are rows of a table by cluster and cell, kept while it is joined with itself.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from equipoise._typing import AnyArray, FloatArray
from equipoise.data.groups import Labelled, place
from equipoise.data.query import CLUSTER, collect, engine_error, from_engine
from equipoise.moments import CellMoments, CrossMoments

__all__ = ["ClusterProducts", "cluster_products"]

CELL = "__eq_cell"
SOURCE, KEPT = "__eq_source", "__eq_kept"
MOST_COLUMNS = 16
"""Sums of one cluster, cells times quantities, that are columns."""
LITERALS = (str, bool, int, float)
"""Types of labels that every engine compares with a constant alike."""


class ClusterProducts(NamedTuple):
    """Sums over clusters of products of their sums.

    `product` has shape (cells, p, p); `cross` has the pairs of cells that share clusters, if any;
    `n_units` counts the clusters.
    """

    product: FloatArray
    cross: CrossMoments | None
    n_units: int

    def of(self, cells: CellMoments, quantities: list[int]) -> CellMoments:
        """Return cells with the products of some of the quantities."""
        cross = self.cross
        if cross is not None:
            cross = replace(cross, product=cross.product[:, quantities][:, :, quantities])
        product = self.product[:, quantities][:, :, quantities]
        return replace(cells, product=product, n_units=self.n_units, cross=cross)


def cluster_products(
    rows: "nw.LazyFrame[Any]",
    keys: dict[str, AnyArray],
    known: Labelled,
    names: list[str],
) -> ClusterProducts:
    """Sum over clusters the products of the sums of their rows.

    Parameters
    ----------
    rows : narwhals.LazyFrame
        Complete rows: the cluster, the keys of the cell, and the quantities by name.
    keys : dict of arrays of shape (K,)
        Keys of each cell.
    known : Labelled
        Their columns and labels.
    names : list of str
        The p quantities.

    Returns
    -------
    ClusterProducts
    """
    cells = list(zip(*(key.tolist() for key in keys.values()), strict=True)) if keys else [()]
    simple = all(isinstance(value, LITERALS) for cell in cells for value in cell)
    if len(cells) == 1 or (simple and len(cells) * len(names) <= MOST_COLUMNS):
        return _side_by_side(rows, list(keys), cells, names)
    return _joined(rows, list(keys), known, names)


def _side_by_side(
    rows: "nw.LazyFrame[Any]", keys: list[str], cells: Sequence[tuple[Any, ...]], names: list[str]
) -> ClusterProducts:
    """Sum each cell in columns of its own, by cluster, then multiply the columns."""
    number = nw.lit(0)
    for k, cell in enumerate(cells[1:], 1):
        same = [nw.col(key) == value for key, value in zip(keys, cell, strict=True)]
        number = (
            nw.when(nw.all_horizontal(*same, ignore_nulls=False)).then(nw.lit(k)).otherwise(number)
        )
    slots = list(product(range(len(cells)), names))
    sums = [
        nw.when(nw.col(CELL) == k).then(nw.col(a)).otherwise(0.0).sum().alias(f"s{j}")
        for j, (k, a) in enumerate(slots)
    ]
    numbered = rows.select(CLUSTER, *names, number.alias(CELL))
    units = numbered.group_by(CLUSTER).agg(*sums)
    pairs = [(i, j) for i in range(len(slots)) for j in range(i, len(slots))]
    result = collect(
        units.select(
            nw.len().alias("units"),
            *[(nw.col(f"s{i}") * nw.col(f"s{j}")).sum().alias(f"{i}*{j}") for i, j in pairs],
        )
    )
    every = np.empty((len(slots), len(slots)))
    for i, j in pairs:
        every[i, j] = every[j, i] = result[f"{i}*{j}"][0]
    p, size = len(names), len(cells)
    blocks = every.reshape(size, p, size, p).transpose(0, 2, 1, 3)
    first, second = np.triu_indices(size, 1)
    shared = np.any(blocks[first, second] != 0.0, axis=(1, 2))
    first, second = first[shared], second[shared]
    cross = CrossMoments(first=first, second=second, product=blocks[first, second])
    own = blocks[np.arange(size), np.arange(size)]
    return ClusterProducts(own, cross if shared.any() else None, int(result["units"][0]))


def _joined(
    rows: "nw.LazyFrame[Any]", keys: list[str], known: Labelled, names: list[str]
) -> ClusterProducts:
    """Sum by cluster and cell, and join the sums of each cluster with each other."""
    query = rows.group_by(CLUSTER, *keys).agg(*[nw.col(a).sum() for a in names])
    size, p = len(known.labels[0]), len(names)
    with _kept(query) as parts:
        own = [(nw.col(a) * nw.col(b)).sum().alias(f"{a}*{b}") for a, b in product(names, names)]
        result = collect(parts.group_by(keys).agg(nw.len().alias("parts"), *own), keys=keys)
        within = np.empty((size, p, p))
        within[place([result[key] for key in keys], known)] = _matrices(result, names)
        units = collect(parts.select(nw.col(CLUSTER).n_unique().alias("units")))
        n_units = int(units["units"][0])
        if int(result["parts"].sum()) == n_units:
            return ClusterProducts(within, None, n_units)
        between = [
            (nw.col(a) * nw.col(f"{b}__2")).sum().alias(f"{a}*{b}")
            for a, b in product(names, names)
        ]
        keys2 = [f"{key}__2" for key in keys]
        pairs = parts.join(parts, on=CLUSTER, suffix="__2")
        result = collect(pairs.group_by([*keys, *keys2]).agg(*between), keys=[*keys, *keys2])
    first = place([result[key] for key in keys], known)
    second = place([result[key] for key in keys2], known)
    upper = np.flatnonzero(first < second)
    upper = upper[np.lexsort([second[upper], first[upper]])]
    cross = CrossMoments(
        first=first[upper], second=second[upper], product=_matrices(result, names)[upper]
    )
    return ClusterProducts(within, cross, n_units)


def _matrices(result: dict[str, AnyArray], names: list[str]) -> FloatArray:
    """Return the products by name as matrices."""
    p = len(names)
    columns = [result[f"{a}*{b}"] for a, b in product(names, names)]
    return np.stack(columns, axis=1).reshape(-1, p, p)


@contextmanager
def _kept(frame: "nw.LazyFrame[Any]") -> "Iterator[nw.LazyFrame[Any]]":
    """Run a query once, and keep its rows in the engine for others."""
    native = frame.to_native()
    if not frame.implementation.is_duckdb():
        kept = native.persist()
        try:
            yield nw.from_native(kept)
        finally:
            kept.unpersist()
        return
    try:
        # A temporary table goes to disk when memory is short; a fetched result would not.
        native.query(SOURCE, f"CREATE OR REPLACE TEMP TABLE {KEPT} AS FROM {SOURCE}")
    except Exception as error:
        if not from_engine(error):
            raise
        raise engine_error(error) from error
    try:
        yield nw.from_native(native.query(SOURCE, f"FROM {KEPT}"))
    finally:
        native.query(SOURCE, f"DROP TABLE {KEPT}")
