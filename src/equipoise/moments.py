r"""Sums over cells: the sufficient statistics of every audit that is made of means.

A *cell* is one combination of the group columns. For rows with quantities :math:`q_i` (a vector of
length p) and weights :math:`\omega_i`, a cell holds :math:`\sum \omega q` and
:math:`\sum_s t_s t_s'`, where the independent units s are rows or, when units repeat, clusters and
:math:`t_s` is the sum of :math:`\omega q` over the unit's rows in the cell. Units that have rows in
several cells leave a cross product for each pair of cells, so that the covariance between groups
that share people is exact.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from equipoise._typing import AnyArray, FloatArray, IntArray

__all__ = [
    "CellMoments",
    "CrossMoments",
    "linear_covariance",
    "merge_cells",
    "transform_quantities",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossMoments:
    """Products of the totals of units that have rows in two different cells.

    Parameters
    ----------
    first, second : array of shape (e,)
        The two cells of a pair, ``first < second``.
    product : array of shape (e, p, p)
        Sum over units of (total in `first`) times (total in `second`) transposed.
    """

    first: IntArray
    second: IntArray
    product: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMoments:
    """First and second moments of p row quantities in each of K cells.

    Parameters
    ----------
    n : array of shape (K,)
        Rows in each cell.
    total : array of shape (K, p)
        Weighted sums of the quantities.
    product : array of shape (K, p, p)
        Sum over independent units of the outer product of their weighted sums.
    n_units : int
        Independent units in all: rows, or clusters.
    cross : CrossMoments, optional
        Present when units have rows in several cells.
    """

    n: IntArray
    total: FloatArray
    product: FloatArray
    n_units: int
    cross: CrossMoments | None = None

    @classmethod
    def from_rows(
        cls,
        quantities: AnyArray,
        cell: AnyArray,
        *,
        n_cells: int | None = None,
        cluster: AnyArray | None = None,
        weight: AnyArray | None = None,
        count: AnyArray | None = None,
    ) -> "CellMoments":
        """Sum rows in memory; the engines of `equipoise.data` do the same in one query.

        Parameters
        ----------
        quantities : array of shape (n, p)
            One column for each quantity.
        cell : array of shape (n,)
            Cell of each row, 0 to K - 1.
        n_cells : int, optional
            K; by default one more than the largest code.
        cluster : array of shape (n,), optional
            Unit of each row, any labels.
        weight : array of shape (n,), optional
            Sampling weight of a row.
        count : array of shape (n,), optional
            How many identical rows a row stands for.

        Returns
        -------
        CellMoments
        """
        q = np.asarray(quantities, dtype=np.float64)
        q = q[:, None] if q.ndim == 1 else q
        code = np.asarray(cell, dtype=np.int64)
        size = int(code.max(initial=-1)) + 1 if n_cells is None else n_cells
        copies = np.ones(len(q)) if count is None else np.asarray(count, dtype=np.float64)
        weighted = q if weight is None else q * np.asarray(weight, dtype=np.float64)[:, None]
        n = np.bincount(code, weights=copies, minlength=size).round().astype(np.int64)
        if cluster is None:
            total = _sum_by(code, weighted * copies[:, None], size)
            outer = weighted[:, :, None] * weighted[:, None, :] * copies[:, None, None]
            return cls(
                n=n,
                total=total,
                product=_sum_by(code, outer, size),
                n_units=round(float(copies.sum())),
            )
        _, unit = np.unique(np.asarray(cluster), return_inverse=True)
        n_units = int(unit.max(initial=-1)) + 1
        pairs, where = np.unique(unit * size + code, return_inverse=True)
        part = _sum_by(where, weighted * copies[:, None], len(pairs))
        part_cell = pairs % size
        return cls(
            n=n,
            total=_sum_by(part_cell, part, size),
            product=_sum_by(part_cell, part[:, :, None] * part[:, None, :], size),
            n_units=n_units,
            cross=_cross_of(pairs // size, part_cell, part),
        )

    def kernel(self, a: int, b: int) -> Any:
        """Sums over units of (total of quantity `a` in a cell) times (total of `b` in another).

        Parameters
        ----------
        a, b : int
            Two of the p quantities.

        Returns
        -------
        sparse matrix of shape (K, K)
            Diagonal when no unit has rows in several cells.
        """
        kernel: Any = sparse.diags_array(self.product[:, a, b])
        if self.cross is None:
            return kernel
        shape = (len(self.n), len(self.n))
        pair = self.cross
        upper = sparse.coo_array((pair.product[:, a, b], (pair.first, pair.second)), shape=shape)
        lower = sparse.coo_array((pair.product[:, b, a], (pair.second, pair.first)), shape=shape)
        return (kernel + upper + lower).tocsr()


def linear_covariance(moments: CellMoments, coefficients: list[Any]) -> FloatArray:
    r"""Return the covariance of statistics that are linear in the rows.

    Statistic j is :math:`\sum_i c_{k(i)j}' \omega_i q_i` with one coefficient vector for each cell
    k and statistic j; its rows have mean zero when the coefficients are an influence function. The
    result is :math:`\sum_s (\cdot)(\cdot)'` over independent units.

    Parameters
    ----------
    moments : CellMoments
        Sums over K cells of p quantities.
    coefficients : list of p matrices of shape (K, m)
        Dense or scipy-sparse; one for each quantity.

    Returns
    -------
    array of shape (m, m)
    """
    p = moments.total.shape[1]
    m = coefficients[0].shape[1]
    covariance = np.zeros((m, m))
    for a in range(p):
        for b in range(p):
            kernel = moments.kernel(a, b)
            term = coefficients[a].T @ (kernel @ coefficients[b])
            covariance += term.toarray() if sparse.issparse(term) else np.asarray(term)
    return covariance


def merge_cells(moments: CellMoments, group: AnyArray) -> CellMoments:
    """Return the moments of groups of cells; each cell belongs to one group.

    Parameters
    ----------
    moments : CellMoments
        Sums over K cells.
    group : array of shape (K,)
        Group of each cell, 0 to G - 1.

    Returns
    -------
    CellMoments
        G cells; units with rows in two cells of a group are counted as one.
    """
    code = np.asarray(group, dtype=np.int64)
    size = int(code.max(initial=-1)) + 1
    n = np.bincount(code, weights=moments.n, minlength=size).round().astype(np.int64)
    product = _sum_by(code, moments.product, size)
    cross = None
    if moments.cross is not None:
        first, second = code[moments.cross.first], code[moments.cross.second]
        pair = moments.cross.product
        same = first == second
        product += _sum_by(first[same], pair[same] + pair[same].transpose(0, 2, 1), size)
        ordered = np.where((first > second)[:, None, None], pair.transpose(0, 2, 1), pair)
        key = np.minimum(first, second) * size + np.maximum(first, second)
        pairs, where = np.unique(key[~same], return_inverse=True)
        if len(pairs):
            cross = CrossMoments(
                first=pairs // size,
                second=pairs % size,
                product=_sum_by(where, ordered[~same], len(pairs)),
            )
    return CellMoments(
        n=n,
        total=_sum_by(code, moments.total, size),
        product=product,
        n_units=moments.n_units,
        cross=cross,
    )


def transform_quantities(moments: CellMoments, change: FloatArray) -> CellMoments:
    """Return the moments of linear combinations of the quantities.

    Parameters
    ----------
    moments : CellMoments
        Sums of p quantities.
    change : array of shape (q, p)
        Row j holds the coefficients of new quantity j.

    Returns
    -------
    CellMoments
        With q quantities.
    """
    cross = moments.cross
    if cross is not None:
        cross = CrossMoments(
            first=cross.first, second=cross.second, product=change @ cross.product @ change.T
        )
    return CellMoments(
        n=moments.n,
        total=moments.total @ change.T,
        product=change @ moments.product @ change.T,
        n_units=moments.n_units,
        cross=cross,
    )


def _sum_by(code: AnyArray, values: FloatArray, size: int) -> FloatArray:
    flat = values.reshape(len(values), -1)
    sums = [np.bincount(code, weights=column, minlength=size) for column in flat.T]
    return np.stack(sums, axis=1).reshape((size, *values.shape[1:]))


def _cross_of(unit: IntArray, cell: IntArray, part: FloatArray) -> CrossMoments | None:
    """Cross products of units with several cells; rows are sorted by unit, then cell."""
    sizes = np.bincount(unit)
    if sizes.max(initial=0) <= 1:
        return None
    first, second = [], []
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    for lag in range(1, int(sizes.max())):
        # Entry r of a unit meets entry r + lag: all pairs, without a loop over units.
        rows = np.flatnonzero(np.arange(len(unit)) - start[unit] + lag < sizes[unit])
        first.append(rows)
        second.append(rows + lag)
    a, b = np.concatenate(first), np.concatenate(second)
    k = int(cell.max()) + 1
    pairs, where = np.unique(cell[a] * k + cell[b], return_inverse=True)
    product = _sum_by(where, part[a][:, :, None] * part[b][:, None, :], len(pairs))
    return CrossMoments(first=pairs // k, second=pairs % k, product=product)
