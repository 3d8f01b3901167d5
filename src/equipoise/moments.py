r"""Sums over cells: the sufficient statistics of every audit that is made of means.

A *cell* is one combination of the group columns. For rows with quantities :math:`q_i` (a vector of
length p) and weights :math:`\omega_i`, a cell holds :math:`\sum \omega q` and
:math:`\sum_s t_s t_s'`, where the independent units s are rows or, when units repeat, clusters and
:math:`t_s` is the sum of :math:`\omega q` over the unit's rows in the cell. Units that have rows in
several cells leave a cross product for each pair of cells, so that the covariance between groups
that share people is exact.

The law of a mean of few units needs more: how many units there are, products of the third order,
and powers up to the fifth. They are summed where a question asks for them. Sums of these orders
over a union of cells do not follow from pairs of cells when units have rows in several;
`SharedUnits` holds them for every subgroup beside what is outside it.

Cells are a value: what `equipoise.data` hands over and `equipoise.stats` takes. They carry the
labels of their cells, and they add.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from equipoise._checks import quoted
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.exceptions import InvalidParameterError

__all__ = [
    "MONOMIALS",
    "CellMoments",
    "CrossMoments",
    "SharedUnits",
    "UnitMoments",
    "linear_covariance",
    "merge_cells",
    "number_cells",
    "roll_up",
    "some_cells",
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
    squares : array of shape (e, p), optional
        Sum over units of the products of their squared totals, where third-order sums were asked
        for.
    """

    first: IntArray
    second: IntArray
    product: FloatArray
    squares: FloatArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitMoments:
    """Moments of higher order over the independent units of K cells.

    Parameters
    ----------
    n : array of shape (K, p)
        Units in which each quantity is other than zero.
    third : array of shape (K, p, p, p)
        Sum over units of the triple outer product of their weighted sums.
    fourth, fifth : array of shape (K, p)
        Sums of powers of each quantity.
    """

    n: FloatArray
    third: FloatArray
    fourth: FloatArray
    fifth: FloatArray

    def __getitem__(self, quantities: list[int]) -> "UnitMoments":
        """Keep some of the quantities."""
        q = np.array(quantities)
        return UnitMoments(
            n=self.n[:, q],
            third=self.third[:, q[:, None, None], q[:, None], q],
            fourth=self.fourth[:, q],
            fifth=self.fifth[:, q],
        )

    def merged(self, code: IntArray, size: int) -> "UnitMoments":
        """Sums over groups of cells that share no unit."""
        terms = {
            name: sum_by(code, getattr(self, name), size)
            for name in ("n", "third", "fourth", "fifth")
        }
        return UnitMoments(**terms)


MONOMIALS = ("n", "w", "w2", "w3", "w4", "w5", "u", "uu", "uw", "uuu", "uuw", "uww")
"""Products of the totals (u, w) of a unit that the law of a mean needs; n is 1 where w is not 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedUnits:
    """Sums over units that have rows in several subgroups, for the quantities (u, w).

    With t the total of a unit in a subgroup, T that in the reference (all rows, unless another is
    named) and b that in both, each of m subgroups has three sides: t - b, b and T - b. The sums of
    the third side over units that have no row in the subgroup are those of `everyone` less those of
    `touching`, so that tables whose units are different people add.

    Parameters
    ----------
    side : array of shape (m, 3, 12)
        Sums of the `MONOMIALS` of each side over units with rows in the subgroup.
    link : array of shape (m, 3, 5)
        Sums of uu, uw, wu, ww and w2w2 of the sides (0, 1), (0, 2) and (1, 2).
    touching : array of shape (m, 12)
        Sums of the monomials of T over units with rows in the subgroup.
    everyone : array of shape (12,)
        The same over all units.
    reference : tuple of (str, str)
        Columns and labels of the reference; empty for all rows.
    columns : tuple of tuple of int, length m
        Group columns that define each subgroup.
    labels : tuple of tuple of str, length m
        Its labels in them.
    """

    side: FloatArray
    link: FloatArray
    touching: FloatArray
    everyone: FloatArray
    reference: tuple[tuple[str, str], ...]
    columns: tuple[tuple[int, ...], ...]
    labels: tuple[tuple[str, ...], ...]

    def take(self, chosen: IntArray) -> "SharedUnits":
        """Keep some of the subgroups."""
        return replace(
            self,
            side=self.side[chosen],
            link=self.link[chosen],
            touching=self.touching[chosen],
            columns=tuple(self.columns[k] for k in chosen),
            labels=tuple(self.labels[k] for k in chosen),
        )

    def __add__(self, other: "SharedUnits") -> "SharedUnits":
        """Join the sums of two tables that share no units."""
        names = sorted(
            {*zip(self.columns, self.labels, strict=True)}
            | {*zip(other.columns, other.labels, strict=True)},
            key=lambda name: (len(name[0]), *name),
        )
        place = {name: k for k, name in enumerate(names)}
        codes = [
            [place[name] for name in zip(part.columns, part.labels, strict=True)]
            for part in (self, other)
        ]
        code = np.array([*codes[0], *codes[1]], dtype=np.int64)
        terms = {
            name: sum_by(
                code, np.concatenate([getattr(self, name), getattr(other, name)]), len(names)
            )
            for name in ("side", "link", "touching")
        }
        return SharedUnits(
            **terms,
            everyone=self.everyone + other.everyone,
            reference=self.reference,
            columns=tuple(columns for columns, _ in names),
            labels=tuple(labels for _, labels in names),
        )


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
    units : UnitMoments, optional
        Moments of higher order, where they were asked for.
    shared : SharedUnits, optional
        The same for subgroups, where also units have rows in several cells.

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
    units: UnitMoments | None = None
    shared: SharedUnits | None = None

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
        order: Literal[2, 3] = 2,
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
        order : {2, 3}
            3 for the moments of higher order too.

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
                units=_unit_moments(weighted, code, size, copies) if order == 3 else None,
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
            cross=_cross_of(pairs // size, part_cell, part, squares=order == 3),
            units=_unit_moments(part, part_cell, size) if order == 3 else None,
        )

    def __add__(self, other: "CellMoments") -> "CellMoments":
        """Join the cells of two tables that share no units; cells with equal labels are added."""
        mine, others = (self.columns, self.total.shape[1]), (other.columns, other.total.shape[1])
        if mine != others or (not self.columns and len(self.n) != len(other.n)):
            raise InvalidParameterError(
                f"cells add when they hold the same sums of the same groups; got {mine[1]} sums by"
                f" {quoted(mine[0])} and {others[1]} by {quoted(others[0])}."
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
                squares=_joined([cross.squares for cross, _ in crosses]),
            )
            if crosses
            else None,
            columns=self.columns,
            sums=np.concatenate([self.sums, other.sums]),
            dropped=self.dropped + other.dropped,
            units=None
            if self.units is None or other.units is None
            else UnitMoments(
                n=np.concatenate([self.units.n, other.units.n]),
                third=np.concatenate([self.units.third, other.units.third]),
                fourth=np.concatenate([self.units.fourth, other.units.fourth]),
                fifth=np.concatenate([self.units.fifth, other.units.fifth]),
            ),
        )
        shared = None
        known = self.shared or other.shared
        if known is not None:
            ours, theirs = (
                cells.shared or _separate_units(cells, known.reference) for cells in (self, other)
            )
            shared = ours + theirs
        return replace(merge_cells(joined, cell, labels=labels), shared=shared)

    def first(self, size: int) -> "CellMoments":
        """Return the first cells only, without labels.

        Parameters
        ----------
        size : int
            How many.

        Returns
        -------
        CellMoments
            Units that had rows in other cells too are still counted in `n_units`; moments of higher
            order are left out.
        """
        cross = self.cross
        if cross is not None:
            kept = (cross.first < size) & (cross.second < size)
            cross = CrossMoments(
                first=cross.first[kept], second=cross.second[kept], product=cross.product[kept]
            )
        return replace(
            self,
            n=self.n[:size],
            total=self.total[:size],
            product=self.product[:size],
            cross=cross,
            columns=(),
            labels=(),
            sums=self.sums[:size],
            units=None,
            shared=None,
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
        from scipy import sparse

        kernel: Any = sparse.diags_array(self.product[:, a, b])
        if self.cross is None:
            return kernel
        shape = (len(self.n), len(self.n))
        pair = self.cross
        upper = sparse.coo_array((pair.product[:, a, b], (pair.first, pair.second)), shape=shape)
        lower = sparse.coo_array((pair.product[:, b, a], (pair.second, pair.first)), shape=shape)
        return (kernel + upper + lower).tocsr()


def _separate_units(cells: CellMoments, reference: tuple[tuple[str, str], ...]) -> SharedUnits:
    """Return the sums of every subgroup of a table in which each unit has rows in one cell."""
    units, total, product = cells.units, cells.total, cells.product
    if units is None:
        raise InvalidParameterError("cells of clusters add when both hold sums of higher order.")
    third = units.third
    sums = np.stack(
        [
            units.n[:, 1],
            *(total[:, 1], product[:, 1, 1], third[:, 1, 1, 1], units.fourth[:, 1]),
            units.fifth[:, 1],
            *(total[:, 0], product[:, 0, 0], product[:, 0, 1]),
            *(third[:, 0, 0, 0], third[:, 0, 0, 1], third[:, 0, 1, 1]),
        ],
        axis=1,
    )
    inside = np.ones(len(cells.n), dtype=np.bool_)
    for column, label in reference:
        inside &= cells.labels[cells.columns.index(column)] == label
    # A unit is in the reference with all its rows, or with none.
    sides = np.stack([sums * ~inside[:, None], sums * inside[:, None], 0.0 * sums], axis=1)
    columns: list[tuple[int, ...]] = []
    labels: list[tuple[str, ...]] = []
    side = []
    for size in range(1, len(cells.columns) + 1):
        for chosen in combinations(range(len(cells.columns)), size):
            code, own = number_cells([cells.labels[k] for k in chosen])
            side.append(sum_by(code, sides, len(own[0])))
            labels.extend(zip(*(label.tolist() for label in own), strict=True))
            columns.extend([chosen] * len(own[0]))
    every = np.concatenate(side)
    return SharedUnits(
        side=every,
        link=np.zeros((len(every), 3, 5)),
        touching=every[:, 1],
        everyone=sides[:, 1].sum(axis=0),
        reference=reference,
        columns=tuple(columns),
        labels=tuple(labels),
    )


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
    from scipy import sparse

    p = moments.total.shape[1]
    m = coefficients[0].shape[1]
    covariance = np.zeros((m, m))
    for a in range(p):
        for b in range(p):
            if moments.cross is None and not sparse.issparse(coefficients[b]):
                weighted = moments.product[:, a, b, None] * coefficients[b]
            else:
                weighted = moments.kernel(a, b) @ coefficients[b]
            term = coefficients[a].T @ weighted
            covariance += term.toarray() if sparse.issparse(term) else np.asarray(term)
    return covariance


def merge_cells(
    moments: CellMoments,
    group: AnyArray,
    *,
    labels: tuple[AnyArray, ...] = (),
    n_groups: int | None = None,
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
    n_groups : int, optional
        G; by default one more than the largest number.

    Returns
    -------
    CellMoments
        G cells; units with rows in two cells of a group are counted as one.
    """
    code = np.asarray(group, dtype=np.int64)
    size = int(code.max(initial=-1)) + 1 if n_groups is None else n_groups
    n = np.bincount(code, weights=moments.n, minlength=size).round().astype(np.int64)
    product = sum_by(code, moments.product, size)
    cross, units = None, moments.units
    if moments.cross is not None:
        first, second = code[moments.cross.first], code[moments.cross.second]
        pair, squares = moments.cross.product, moments.cross.squares
        same = first == second
        if same.any():
            # Of units with rows in two cells of a group only the second order is known.
            units = squares = None
        product += sum_by(first[same], pair[same] + pair[same].transpose(0, 2, 1), size)
        ordered = np.where((first > second)[:, None, None], pair.transpose(0, 2, 1), pair)
        key = np.minimum(first, second) * size + np.maximum(first, second)
        pairs, where = np.unique(key[~same], return_inverse=True)
        if len(pairs):
            cross = CrossMoments(
                first=pairs // size,
                second=pairs % size,
                product=sum_by(where, ordered[~same], len(pairs)),
                squares=None if squares is None else sum_by(where, squares[~same], len(pairs)),
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
        units=None if units is None else units.merged(code, size),
    )


def roll_up(moments: CellMoments, columns: Sequence[str]) -> CellMoments:
    """Return the cells of fewer columns.

    Parameters
    ----------
    moments : CellMoments
        Sums over cells with labels, of units that have rows in one cell each.
    columns : sequence of str
        Some of its columns.

    Returns
    -------
    CellMoments
    """
    if not columns:
        return merge_cells(moments, np.zeros(len(moments.n)))
    chosen = [moments.labels[moments.columns.index(column)] for column in columns]
    group, labels = number_cells(chosen)
    return merge_cells(replace(moments, columns=tuple(columns)), group, labels=labels)


def some_cells(moments: CellMoments, chosen: IntArray) -> CellMoments:
    """Return some of the cells of units that have rows in one cell each, without labels.

    Parameters
    ----------
    moments : CellMoments
        Sums over K cells.
    chosen : array of int
        Which of them.

    Returns
    -------
    CellMoments
    """
    units = moments.units
    return CellMoments(
        n=moments.n[chosen],
        total=moments.total[chosen],
        product=moments.product[chosen],
        n_units=moments.n_units,
        units=None
        if units is None
        else UnitMoments(
            n=units.n[chosen],
            third=units.third[chosen],
            fourth=units.fourth[chosen],
            fifth=units.fifth[chosen],
        ),
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
        With q quantities; moments of higher order are left out.
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
        units=None,
        shared=None,
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
        texts = column.tolist()
        levels = sorted(set(texts))
        place = {label: k for k, label in enumerate(levels)}
        code = code * len(levels) + np.array([place[text] for text in texts], dtype=np.int64)
        # Renumbered after each column: products of many levels would overflow.
        code = np.unique(code, return_inverse=True)[1]
    first = np.unique(code, return_index=True)[1]
    return code, tuple(column[first] for column in labels)


def sum_by(code: AnyArray, values: FloatArray, size: int) -> FloatArray:
    """Sum an array over its first axis by code; the result has shape (size, ...)."""
    flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
    sums = [np.bincount(code, weights=column, minlength=size) for column in flat.T]
    return np.array(sums).T.reshape((size, *values.shape[1:]))


def _unit_moments(
    part: FloatArray, cell: IntArray, size: int, copies: FloatArray | None = None
) -> UnitMoments:
    """Moments of higher order of the totals of units, each in one cell."""
    many = np.ones(len(part)) if copies is None else copies
    each = part * many[:, None]
    return UnitMoments(
        n=sum_by(cell, (part != 0.0) * many[:, None], size),
        third=sum_by(cell, np.einsum("na,nb,nc->nabc", each, part, part), size),
        fourth=sum_by(cell, each * part**3, size),
        fifth=sum_by(cell, each * part**4, size),
    )


def _joined(parts: list[FloatArray | None]) -> FloatArray | None:
    """Put arrays together if all are there."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


def _cross_of(
    unit: IntArray, cell: IntArray, part: FloatArray, *, squares: bool
) -> CrossMoments | None:
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
    square = sum_by(where, part[a] ** 2 * part[b] ** 2, len(pairs)) if squares else None
    return CrossMoments(first=pairs // k, second=pairs % k, product=product, squares=square)
