r"""Sums over cells: the sufficient statistics of every audit that is made of means.

A *cell* is one combination of the group columns. For rows with quantities :math:`q_i` (a vector of
length p) and weights :math:`\omega_i`, a cell holds :math:`\sum \omega q` and
:math:`\sum_s t_s t_s'`, where the independent units s are rows or, when units repeat, clusters and
:math:`t_s` is the sum of :math:`\omega q` over the unit's rows in the cell. Units that have rows in
several cells leave a cross product for each pair of cells, so that the covariance between groups
that share people is exact.

Cells are a value: what `equipoise.data` hands over and `equipoise.stats` takes. They carry the
labels of their cells, and they add.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from equipoise._checks import quoted
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.exceptions import InvalidParameterError

__all__ = [
    "CellMoments",
    "CrossMoments",
    "linear_covariance",
    "merge_cells",
    "number_cells",
    "sum_by",
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
    columns : tuple of str
        The group columns; empty for cells without labels.
    labels : tuple of arrays of shape (K,)
        Text label of each cell in each group column; cells are sorted by label.
    sums : array of shape (K, m)
        Further sums of which no products are needed; weights do not enter.
    dropped : int
        Rows left out because a value was missing.

    Examples
    --------
    The cells of two sites add: groups that only one site has are kept.

    >>> import numpy as np
    >>> def site(groups, selected):
    ...     cells = CellMoments.from_rows(selected, np.arange(len(groups)))
    ...     return replace(cells, columns=("sex",), labels=(np.array(groups, dtype=object),))
    >>> both = site(["F", "M"], [1.0, 0.0]) + site(["M", "X"], [1.0, 1.0])
    >>> both.labels[0].tolist(), both.n.tolist(), both.total[:, 0].tolist()
    (['F', 'M', 'X'], [1, 2, 1], [1.0, 1.0, 1.0])
    """

    n: IntArray
    total: FloatArray
    product: FloatArray
    n_units: int
    cross: CrossMoments | None = None
    columns: tuple[str, ...] = ()
    labels: tuple[AnyArray, ...] = ()
    sums: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    dropped: int = 0

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
            total = sum_by(code, weighted * copies[:, None], size)
            outer = weighted[:, :, None] * weighted[:, None, :] * copies[:, None, None]
            return cls(
                n=n,
                total=total,
                product=sum_by(code, outer, size),
                n_units=round(float(copies.sum())),
            )
        _, unit = np.unique(np.asarray(cluster), return_inverse=True)
        n_units = int(unit.max(initial=-1)) + 1
        pairs, where = np.unique(unit * size + code, return_inverse=True)
        part = sum_by(where, weighted * copies[:, None], len(pairs))
        part_cell = pairs % size
        return cls(
            n=n,
            total=sum_by(part_cell, part, size),
            product=sum_by(part_cell, part[:, :, None] * part[:, None, :], size),
            n_units=n_units,
            cross=_cross_of(pairs // size, part_cell, part),
        )

    def __add__(self, other: "CellMoments") -> "CellMoments":
        """Join the cells of two tables that share no units; cells with equal labels are added."""
        ours, theirs = (self.columns, self.total.shape[1]), (other.columns, other.total.shape[1])
        if ours != theirs or (not self.columns and len(self.n) != len(other.n)):
            raise InvalidParameterError(
                f"cells add when they hold the same sums of the same groups; got {ours[1]} sums by"
                f" {quoted(ours[0])} and {theirs[1]} by {quoted(theirs[0])}."
            )
        pairs = zip(self.labels, other.labels, strict=True)
        cell, labels = number_cells([np.concatenate(pair) for pair in pairs])
        if not self.columns:
            cell = np.tile(np.arange(len(self.n)), 2)
        crosses = [
            (cells.cross, shift)
            for cells, shift in ((self, 0), (other, len(self.n)))
            if cells.cross is not None
        ]
        joined = CellMoments(
            n=np.concatenate([self.n, other.n]),
            total=np.concatenate([self.total, other.total]),
            product=np.concatenate([self.product, other.product]),
            n_units=self.n_units + other.n_units,
            cross=CrossMoments(
                first=np.concatenate([cross.first + shift for cross, shift in crosses]),
                second=np.concatenate([cross.second + shift for cross, shift in crosses]),
                product=np.concatenate([cross.product for cross, _ in crosses]),
            )
            if crosses
            else None,
            columns=self.columns,
            sums=np.concatenate([self.sums, other.sums]),
            dropped=self.dropped + other.dropped,
        )
        return merge_cells(joined, cell, labels=labels)

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


def merge_cells(
    moments: CellMoments, group: AnyArray, *, labels: tuple[AnyArray, ...] = ()
) -> CellMoments:
    """Return the moments of groups of cells; each cell belongs to one group.

    Parameters
    ----------
    moments : CellMoments
        Sums over K cells.
    group : array of shape (K,)
        Group of each cell, 0 to G - 1.
    labels : tuple of arrays of shape (G,)
        Of the groups in each of the columns; without them the groups have no labels.

    Returns
    -------
    CellMoments
        G cells; units with rows in two cells of a group are counted as one.
    """
    code = np.asarray(group, dtype=np.int64)
    size = int(code.max(initial=-1)) + 1
    n = np.bincount(code, weights=moments.n, minlength=size).round().astype(np.int64)
    product = sum_by(code, moments.product, size)
    cross = None
    if moments.cross is not None:
        first, second = code[moments.cross.first], code[moments.cross.second]
        pair = moments.cross.product
        same = first == second
        product += sum_by(first[same], pair[same] + pair[same].transpose(0, 2, 1), size)
        ordered = np.where((first > second)[:, None, None], pair.transpose(0, 2, 1), pair)
        key = np.minimum(first, second) * size + np.maximum(first, second)
        pairs, where = np.unique(key[~same], return_inverse=True)
        if len(pairs):
            cross = CrossMoments(
                first=pairs // size,
                second=pairs % size,
                product=sum_by(where, ordered[~same], len(pairs)),
            )
    return CellMoments(
        n=n,
        total=sum_by(code, moments.total, size),
        product=product,
        n_units=moments.n_units,
        cross=cross,
        columns=moments.columns if labels else (),
        labels=labels,
        sums=sum_by(code, moments.sums, size) if moments.sums.size else moments.sums,
        dropped=moments.dropped,
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
    return replace(
        moments,
        total=moments.total @ change.T,
        product=change @ moments.product @ change.T,
        cross=cross,
    )


def number_cells(labels: Sequence[AnyArray]) -> tuple[IntArray, tuple[AnyArray, ...]]:
    """Number the distinct combinations of labels in sorted order.

    Parameters
    ----------
    labels : sequence of arrays of shape (n,)
        Text, one array for each column.

    Returns
    -------
    cell : array of shape (n,)
        Number of each combination.
    labels : tuple of arrays of shape (K,)
        Labels of each number.
    """
    code = np.zeros(len(labels[0]) if labels else 0, dtype=np.int64)
    for column in labels:
        # Not `numpy.unique`: arrays of text forget a NUL at the end.
        levels = sorted(set(column.tolist()))
        place = {label: k for k, label in enumerate(levels)}
        code = code * len(levels) + np.fromiter((place[x] for x in column), np.int64, len(column))
        # Renumbered after each column: products of many levels would overflow.
        code = np.unique(code, return_inverse=True)[1]
    first = np.unique(code, return_index=True)[1]
    return code, tuple(column[first] for column in labels)


def sum_by(code: AnyArray, values: FloatArray, size: int) -> FloatArray:
    """Sum an array over its first axis by code; the result has shape (size, ...)."""
    flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
    sums = [np.bincount(code, weights=column, minlength=size) for column in flat.T]
    return np.array(sums).T.reshape((size, *values.shape[1:]))


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
    product = sum_by(where, part[a][:, :, None] * part[b][:, None, :], len(pairs))
    return CrossMoments(first=pairs // k, second=pairs % k, product=product)
