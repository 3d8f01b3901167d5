r"""Sums over independent units: all that the small-sample law of a mean needs.

A *unit* is a row or, where rows repeat, a cluster; it has the totals :math:`(u_i, w_i)` over its
rows, weights inside, and a *side* (a group, its rest, an arm of a group) has the mean
:math:`\sum u / \sum w`. Variance, skewness and degrees of freedom of that mean follow from sums of
products of u and w, the third order included, and of powers of w up to the fifth. Sums add, so
that engines, sites and batches give the same numbers, and no row is read again.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse

from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import MONOMIALS, CellMoments, SharedUnits, sum_by

__all__ = [
    "CrossSums",
    "QuantityCross",
    "QuantitySums",
    "UnitSums",
    "shared_units",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSums:
    r"""Sums over the units of each side; arrays of one shape.

    Parameters
    ----------
    n : array
        Units with w other than zero.
    w, w2, w3, w4, w5 : array
        Sums of the powers of w.
    u, uu, uw, uuu, uuw, uww : array
        Sums of products, with `centre` times w subtracted from u.
    centre : float
        A number near the overall mean. No formula depends on it; rounding does.

    Examples
    --------
    Three people in one group, two in another.

    >>> import numpy as np
    >>> sums = UnitSums.from_rows([1.0, 2.0, 6.0, 4.0, 5.0], np.ones(5), [0, 0, 0, 1, 1])
    >>> sums.mean.tolist(), sums.n_eff.tolist(), sums.df.tolist()
    ([3.0, 4.5], [3.0, 2.0], [2.0, 1.0])
    """

    n: FloatArray
    w: FloatArray
    w2: FloatArray
    w3: FloatArray
    w4: FloatArray
    w5: FloatArray
    u: FloatArray
    uu: FloatArray
    uw: FloatArray
    uuu: FloatArray
    uuw: FloatArray
    uww: FloatArray
    centre: float = 0.0

    @classmethod
    def of_units(
        cls, u: AnyArray, w: AnyArray, *, centre: float = 0.0, axis: int = -1
    ) -> "UnitSums":
        """Sum an array of units along one axis.

        Parameters
        ----------
        u, w : array
            Totals of each unit; w broadcasts against u.
        centre : float, default 0
            Number near the overall mean.
        axis : int, default -1
            The axis of units.

        Returns
        -------
        UnitSums
        """
        u, w = np.broadcast_arrays(np.asarray(u, np.float64), np.asarray(w, np.float64))
        return cls(
            **_monomials(u - centre * w, w, lambda term: np.asarray(term.sum(axis=axis))),
            centre=centre,
        )

    @classmethod
    def from_rows(
        cls,
        u: AnyArray,
        w: AnyArray,
        side: AnyArray,
        *,
        n_sides: int | None = None,
        cluster: AnyArray | None = None,
        weight: AnyArray | None = None,
        count: AnyArray | None = None,
        centre: float | None = None,
    ) -> "UnitSums":
        """Sum rows in memory.

        Parameters
        ----------
        u, w : array of shape (n,)
            Numerator and denominator of the mean.
        side : array of shape (n,)
            Side of each row, 0 to S - 1.
        n_sides : int, optional
            S; by default one more than the largest code.
        cluster : array of shape (n,), optional
            Unit of each row, any labels; its rows within a side are summed first.
        weight : array of shape (n,), optional
            Sampling weight of a row.
        count : array of shape (n,), optional
            How many identical rows a row stands for.
        centre : float, optional
            By default the overall mean.

        Returns
        -------
        UnitSums
            Arrays of shape (S,).
        """
        rows = np.column_stack([np.asarray(w, np.float64), np.asarray(u, np.float64)])
        totals, code, copies, _ = _unit_totals(rows, side, cluster, weight, count)
        w, u = totals.T
        size = int(np.max(side, initial=-1)) + 1 if n_sides is None else n_sides
        if centre is None:
            whole = float(copies @ w)
            centre = float(copies @ u) / whole if whole else 0.0

        def add(term: FloatArray) -> FloatArray:
            return np.bincount(code, weights=term * copies, minlength=size).astype(np.float64)

        return cls(**_monomials(u - centre * w, w, add), centre=centre)

    @classmethod
    def of_cells(cls, moments: CellMoments) -> "UnitSums":
        """Sums of (u, w) in each of K cells.

        Parameters
        ----------
        moments : CellMoments
            With moments of higher order; without them u and w are 0 or 1, u at most w, and rows
            are the units.

        Returns
        -------
        UnitSums
        """
        u, w = moments.total.T
        if moments.units is None:
            counts = moments.product[:, [0, 1], [0, 1]]
            if not np.allclose(counts, moments.total, rtol=1e-9, atol=1e-9):
                raise InvalidParameterError(
                    "the law of few units needs moments of higher order; sum the rows with"
                    " `order=3`."
                )
            return cls(n=w, w=w, w2=w, w3=w, w4=w, w5=w, u=u, uu=u, uw=u, uuu=u, uuw=u, uww=u)
        product, third = moments.product, moments.units.third
        return cls(
            n=moments.units.n[:, 1],
            w=w,
            w2=product[:, 1, 1],
            w3=third[:, 1, 1, 1],
            w4=moments.units.fourth[:, 1],
            w5=moments.units.fifth[:, 1],
            u=u,
            uu=product[:, 0, 0],
            uw=product[:, 0, 1],
            uuu=third[:, 0, 0, 0],
            uuw=third[:, 0, 0, 1],
            uww=third[:, 0, 1, 1],
        )

    @classmethod
    def of_monomials(cls, sums: FloatArray) -> "UnitSums":
        """Sums in the order of `equipoise.moments.MONOMIALS` along the last axis."""
        return cls(**{name: sums[..., k] for k, name in enumerate(MONOMIALS)}, centre=0.0)

    @property
    def monomials(self) -> FloatArray:
        """The sums along a last axis, in the order of `equipoise.moments.MONOMIALS`."""
        return np.stack([getattr(self, name) for name in MONOMIALS], axis=-1)

    def __add__(self, other: "UnitSums") -> "UnitSums":
        return self._with(other, np.add)

    def __sub__(self, other: "UnitSums") -> "UnitSums":
        return self._with(other, np.subtract)

    def __getitem__(self, index: Any) -> "UnitSums":
        return self._each(lambda term: np.asarray(term[index]))

    def sum(self, axis: int = -1) -> "UnitSums":
        """Sums of all sides along an axis; right when no unit is in two of them."""
        return self._each(lambda term: np.asarray(term.sum(axis=axis)))

    def reshape(self, *shape: int) -> "UnitSums":
        """The same sums in arrays of another shape."""
        return self._each(lambda term: term.reshape(shape))

    def expand(self, axis: int) -> "UnitSums":
        """The same sums with one more axis."""
        return self._each(lambda term: np.expand_dims(term, axis))

    @staticmethod
    def stack(sides: "list[UnitSums]", axis: int = -1) -> "UnitSums":
        """Several sides along a new axis.

        Parameters
        ----------
        sides : list of UnitSums
            Of one shape, or shapes that broadcast, and one centre.
        axis : int, default -1
            Where the new axis goes.

        Returns
        -------
        UnitSums
        """
        first = sides[0]
        for side in sides[1:]:
            _check_centre(first, side)
        names = [field.name for field in fields(first) if field.name != "centre"]
        terms = {
            name: np.stack(np.broadcast_arrays(*(getattr(s, name) for s in sides)), axis=axis)
            for name in names
        }
        return UnitSums(**terms, centre=first.centre)

    @property
    def offset(self) -> FloatArray:
        """Mean minus the centre; NaN for a side without units."""
        with np.errstate(divide="ignore", invalid="ignore"):
            # What is left of a population may have lost its weight to rounding, but not its sum.
            return np.where(self.w > 0, self.u / self.w, np.nan)

    @property
    def mean(self) -> FloatArray:
        """Sum of u over sum of w."""
        return self.centre + self.offset

    def share(self, power: int) -> FloatArray:
        r"""Sum over units of :math:`h^k`, with h = w / sum of w."""
        moment = (self.w, self.w2, self.w3, self.w4, self.w5)[power - 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(moment / self.w**power)

    @property
    def n_eff(self) -> FloatArray:
        """Effective number of units, (sum of w)^2 over sum of w^2; 0 for a side without any."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.w2 > 0, self.w**2 / self.w2, 0.0)

    @property
    def df(self) -> FloatArray:
        r"""Degrees of freedom of the variance of the mean ([1]_); n - 1 when all w are equal.

        Satterthwaite's degrees of :math:`\sum h^2 (x - \bar x)^2` when unit means x have one
        variance.

        References
        ----------
        .. [1] R. M. Bell and D. F. McCaffrey (2002), Bias reduction in standard errors for linear
           regression with multi-stage samples, Survey Methodology 28, 169-181.
        """
        s2, s3, s4, s5 = (self.share(k) for k in (2, 3, 4, 5))
        spread = s4 + 4 * s2 * s4 + 2 * s3**2 + s2**4 - 4 * s5 - 4 * s2**2 * s3
        with np.errstate(divide="ignore", invalid="ignore"):
            df = self.variance_factor**2 / spread
        # A single unit has both equal to zero up to rounding.
        return np.where(self.variance_factor > 1e-12, df, 0.0)

    @property
    def variance_factor(self) -> FloatArray:
        """Expected `scatter` when unit means have variance one."""
        s2, s3 = self.share(2), self.share(3)
        return np.asarray(np.maximum(np.nan_to_num(s2 - 2 * s3 + s2**2), 0.0))

    @property
    def third_factor(self) -> FloatArray:
        """Expected `third_scatter` when unit means have third cumulant one."""
        s3, s4, s5 = (self.share(k) for k in (3, 4, 5))
        return np.asarray(np.maximum(np.nan_to_num(s3 - 3 * s4 + 3 * s5 - s3**2), 0.0))

    @property
    def scatter(self) -> FloatArray:
        r""":math:`\sum e^2 / W^2` with e = u - mean times w."""
        m = self.offset
        square = self.uu - 2 * m * self.uw + m**2 * self.w2
        with np.errstate(divide="ignore", invalid="ignore"):
            # Units that do not vary leave rounding noise.
            noise = square <= 1e-13 * (self.uu + m**2 * self.w2)
            return np.where(noise, 0.0, square / self.w**2)

    @property
    def third_scatter(self) -> FloatArray:
        r""":math:`\sum e^3 / W^3`."""
        m = self.offset
        terms = self.uuu, -3 * m * self.uuw, 3 * m**2 * self.uww, -(m**3) * self.w3
        cube = terms[0] + terms[1] + terms[2] + terms[3]
        with np.errstate(divide="ignore", invalid="ignore"):
            # Where the mean is thousands of times the spread, what is left is rounding.
            noise = np.abs(cube) <= 1e-12 * np.sum(np.abs(terms), axis=0)
            return np.where(noise, 0.0, cube / self.w**3)

    def _each(self, change: Callable[[FloatArray], FloatArray]) -> "UnitSums":
        names = [field.name for field in fields(self) if field.name != "centre"]
        return UnitSums(**{name: change(getattr(self, name)) for name in names}, centre=self.centre)

    def _with(
        self, other: "UnitSums", operation: Callable[[FloatArray, FloatArray], FloatArray]
    ) -> "UnitSums":
        _check_centre(self, other)
        names = [field.name for field in fields(self) if field.name != "centre"]
        terms = {name: operation(getattr(self, name), getattr(other, name)) for name in names}
        return UnitSums(**terms, centre=self.centre)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossSums:
    """Sums over units with rows in two sides, for every pair of S sides.

    Parameters
    ----------
    uu, uw, ww, w2w2 : array of shape (..., S, S)
        Sums of (u in the first side) times (u in the second), and so on; u is centred as in
        `UnitSums`.
    """

    uu: FloatArray
    uw: FloatArray
    ww: FloatArray
    w2w2: FloatArray

    @classmethod
    def of_units(cls, u: AnyArray, w: AnyArray, *, centre: float = 0.0) -> "CrossSums":
        """Multiply the totals of units in each pair of sides.

        Parameters
        ----------
        u, w : array of shape (..., n, S)
            Totals of each unit in each side; zero where it has no rows.
        centre : float, default 0
            That of the sums of the sides.

        Returns
        -------
        CrossSums
        """
        w = np.asarray(w, np.float64)
        u = np.asarray(u, np.float64) - centre * w
        uu, uw, ww, w2w2 = (
            np.einsum("...ns,...nt->...st", a, b)
            for a, b in ((u, u), (u, w), (w, w), (w * w, w * w))
        )
        return cls(uu=uu, uw=uw, ww=ww, w2w2=w2w2)

    @classmethod
    def of_links(cls, link: FloatArray) -> "CrossSums":
        """Sums of three sides from `equipoise.moments.SharedUnits.link`, of shape (m, 3, 5)."""
        uu, uw, ww, w2w2 = (np.zeros((*link.shape[:-2], 3, 3)) for _ in range(4))
        for k, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
            one, other = (..., a, b), (..., b, a)
            uu[one] = uu[other] = link[..., k, 0]
            uw[one], uw[other] = link[..., k, 1], link[..., k, 2]
            ww[one] = ww[other] = link[..., k, 3]
            w2w2[one] = w2w2[other] = link[..., k, 4]
        return cls(uu=uu, uw=uw, ww=ww, w2w2=w2w2)

    def __add__(self, other: "CrossSums") -> "CrossSums":
        return CrossSums(
            uu=self.uu + other.uu,
            uw=self.uw + other.uw,
            ww=self.ww + other.ww,
            w2w2=self.w2w2 + other.w2w2,
        )


def shared_units(
    u: AnyArray,
    w: AnyArray,
    unit: AnyArray,
    cell: AnyArray,
    membership: Any,
    inside: AnyArray,
) -> SharedUnits:
    """Sum rows of units that span groups, which may overlap, and what is outside the groups.

    The engines of `equipoise.data` do the same by queries.

    Parameters
    ----------
    u, w : array of shape (n,)
        Numerator and denominator of each row, weights and counts inside.
    unit, cell : array of shape (n,)
        Unit and cell of each row.
    membership : boolean matrix of shape (K, m)
        Cells that make up each group.
    inside : array of shape (K,)
        Cells of the reference; all of them for "population" and "rest".

    Returns
    -------
    SharedUnits

    Examples
    --------
    Two people answered in both waves, a third in the second one only.

    >>> import numpy as np
    >>> shared = shared_units([1.0, 2.0, 4.0, 5.0, 6.0], np.ones(5), [0, 1, 0, 1, 2],
    ...                       [0, 0, 1, 1, 1], np.eye(2), [True, True])
    >>> own = UnitSums.of_monomials(shared.side[:, 1])
    >>> own.mean.tolist(), own.n.tolist()
    ([1.5, 5.0], [2.0, 3.0])
    """
    rows = np.column_stack([np.asarray(u, np.float64), np.asarray(w, np.float64)])
    code = np.asarray(cell, dtype=np.int64)
    part, part_cell, _, owner = _unit_totals(rows, code, unit, None, None)
    groups = sparse.csr_array(membership, dtype=np.float64)
    size, mask = groups.shape[1], np.asarray(inside, dtype=np.float64)
    counted = part * mask[part_cell][:, None]
    whole = sum_by(owner, counted, int(owner.max(initial=-1)) + 1)
    place = groups[part_cell].tocoo()
    pairs, where = np.unique(owner[place.row] * size + place.col, return_inverse=True)
    group, touched = pairs % size, whole[pairs // size]
    own, both = (sum_by(where, values[place.row], len(pairs)) for values in (part, counted))
    sides = [_left(own, both), both, _left(touched, both)]

    def add(term: FloatArray) -> FloatArray:
        return sum_by(group, term[:, None], size)[:, 0]

    def sums(totals: FloatArray, over: Callable[[FloatArray], FloatArray]) -> FloatArray:
        terms = _monomials(totals[:, 0], totals[:, 1], over)
        return np.stack([terms[name] for name in MONOMIALS], axis=-1)

    links = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        (ua, wa), (ub, wb) = sides[a].T, sides[b].T
        terms = (ua * ub, ua * wb, wa * ub, wa * wb, (wa * wb) ** 2)
        links.append(np.stack([add(term) for term in terms], axis=-1))
    return SharedUnits(
        side=np.stack([sums(side, add) for side in sides], axis=1),
        link=np.stack(links, axis=1),
        touching=sums(touched, add),
        everyone=sums(whole, lambda term: np.asarray(term.sum())),
        reference=(),
        columns=((),) * size,
        labels=((),) * size,
    )


def _left(whole: FloatArray, part: FloatArray) -> FloatArray:
    """Subtract a part; what is left of equal sums is nothing, and not their rounding."""
    none = np.abs(whole[:, 1] - part[:, 1]) <= 1e-12 * np.abs(whole[:, 1])
    return np.where(none[:, None], 0.0, whole - part)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantitySums:
    r"""Sums of products of p quantities over units, the third order included.

    From one table of such sums come the `UnitSums` of every linear combination u = a'q, for
    instance of the outcome minus a hypothesised effect. The first quantity is w.

    Parameters
    ----------
    n : array of shape (S,)
        Units with w other than zero.
    first, second, third : array of shape (S, p), (S, p, p) and (S, p, p, p)
        Sums of q, of its outer product, and of its triple outer product.
    w4, w5 : array of shape (S,)
        Sums of powers of the first quantity.
    """

    n: FloatArray
    first: FloatArray
    second: FloatArray
    third: FloatArray
    w4: FloatArray
    w5: FloatArray

    @classmethod
    def from_rows(
        cls,
        quantities: AnyArray,
        side: AnyArray,
        *,
        n_sides: int | None = None,
        cluster: AnyArray | None = None,
        weight: AnyArray | None = None,
        count: AnyArray | None = None,
    ) -> "QuantitySums":
        """Sum rows in memory.

        Parameters
        ----------
        quantities : array of shape (n, p)
            One column for each quantity, w first.
        side : array of shape (n,)
            Side of each row, 0 to S - 1.
        n_sides : int, optional
            S; by default one more than the largest code.
        cluster, weight, count : array of shape (n,), optional
            As in `UnitSums.from_rows`.

        Returns
        -------
        QuantitySums
        """
        q, code, copies, _ = _unit_totals(
            np.asarray(quantities, np.float64), side, cluster, weight, count
        )
        size = int(np.max(side, initial=-1)) + 1 if n_sides is None else n_sides

        def add(terms: FloatArray) -> FloatArray:
            flat = terms.reshape(len(terms), -1).T
            sums = [np.bincount(code, weights=column * copies, minlength=size) for column in flat]
            return np.stack(sums, axis=-1).reshape((size, *terms.shape[1:]))

        w = q[:, 0]
        return cls(
            n=add((w != 0).astype(np.float64)),
            first=add(q),
            second=add(np.einsum("na,nb->nab", q, q)),
            third=add(np.einsum("na,nb,nc->nabc", q, q, q)),
            w4=add(w**4),
            w5=add(w**5),
        )

    def __add__(self, other: "QuantitySums") -> "QuantitySums":
        terms = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return QuantitySums(**terms)

    def __getitem__(self, index: Any) -> "QuantitySums":
        return QuantitySums(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def along(self, direction: AnyArray) -> UnitSums:
        """Sums of u = direction'q beside w.

        Parameters
        ----------
        direction : array of shape (..., S, p) or (p,)
            Coefficients of the quantities.

        Returns
        -------
        UnitSums
        """
        a = np.asarray(direction, np.float64)
        w = self.first[..., 0]
        shape = np.broadcast_shapes(w.shape, a.shape[:-1])
        terms = {
            "n": self.n,
            "w": w,
            "w2": self.second[..., 0, 0],
            "w3": self.third[..., 0, 0, 0],
            "w4": self.w4,
            "w5": self.w5,
            "u": np.einsum("...a,...a->...", a, self.first),
            "uu": np.einsum("...a,...b,...ab->...", a, a, self.second),
            "uw": np.einsum("...a,...a->...", a, self.second[..., 0]),
            "uuu": np.einsum("...a,...b,...c,...abc->...", a, a, a, self.third),
            "uuw": np.einsum("...a,...b,...ab->...", a, a, self.third[..., 0]),
            "uww": np.einsum("...a,...a->...", a, self.third[..., 0, 0]),
        }
        return UnitSums(
            **{name: np.broadcast_to(term, shape) for name, term in terms.items()}, centre=0.0
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityCross:
    """Products of p quantities of units with rows in two sides, for every pair of S sides.

    Parameters
    ----------
    product : array of shape (S, S, p, p)
        Sum over units of (total in the first side) times (total in the second) transposed.
    w2w2 : array of shape (S, S)
        Sum of products of the squares of the first quantity.
    """

    product: FloatArray
    w2w2: FloatArray

    @classmethod
    def from_rows(
        cls,
        quantities: AnyArray,
        side: AnyArray,
        cluster: AnyArray,
        *,
        n_sides: int | None = None,
        weight: AnyArray | None = None,
        count: AnyArray | None = None,
    ) -> "QuantityCross | None":
        """Multiply rows in memory; None when no unit has rows in two sides.

        Parameters
        ----------
        quantities, side, cluster, n_sides, weight, count
            As in `QuantitySums.from_rows`.

        Returns
        -------
        QuantityCross or None
        """
        rows = np.asarray(quantities, np.float64)
        size = int(np.max(side, initial=-1)) + 1 if n_sides is None else n_sides
        totals, code, _, owner = _unit_totals(rows, side, cluster, weight, count)
        if np.bincount(owner).max(initial=0) <= 1:
            return None
        table = np.zeros((int(owner.max()) + 1, size, rows.shape[1]))
        table[owner, code] = totals
        square = table[:, :, 0] ** 2
        return cls(
            product=np.einsum("nsa,ntb->stab", table, table, optimize=True),
            w2w2=square.T @ square,
        )

    def along(self, direction: AnyArray) -> CrossSums:
        """Cross sums of u = direction'q beside w.

        Parameters
        ----------
        direction : array of shape (S, p)
            Coefficients of the quantities in each side.

        Returns
        -------
        CrossSums
        """
        a = np.asarray(direction, np.float64)
        return CrossSums(
            uu=np.einsum("sa,tb,stab->st", a, a, self.product),
            uw=np.einsum("sa,sta->st", a, self.product[..., 0]),
            ww=self.product[..., 0, 0],
            w2w2=self.w2w2,
        )


def _check_centre(first: UnitSums, second: UnitSums) -> None:
    if first.centre != second.centre:
        raise InvalidParameterError(
            f"Sums add when they have one centre; got {first.centre:g} and {second.centre:g}."
        )


def _monomials(
    u: FloatArray, w: FloatArray, add: Callable[[FloatArray], FloatArray]
) -> dict[str, FloatArray]:
    """Sum every product that `UnitSums` holds."""
    ww, uu = w * w, u * u
    return {
        "n": add((w != 0).astype(np.float64)),
        "w": add(w),
        "w2": add(ww),
        "w3": add(ww * w),
        "w4": add(ww * ww),
        "w5": add(ww * ww * w),
        "u": add(u),
        "uu": add(uu),
        "uw": add(u * w),
        "uuu": add(uu * u),
        "uuw": add(uu * w),
        "uww": add(u * ww),
    }


def _unit_totals(
    rows: FloatArray,
    side: AnyArray,
    cluster: AnyArray | None,
    weight: AnyArray | None,
    count: AnyArray | None,
) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Totals of every (unit, side); its side, how many such units there are, and the unit."""
    code = np.asarray(side, dtype=np.int64)
    copies = np.ones(len(rows)) if count is None else np.asarray(count, np.float64)
    if weight is not None:
        rows = rows * np.asarray(weight, np.float64)[:, None]
    if cluster is None:
        return rows, code, copies, np.arange(len(rows))
    _, unit = np.unique(np.asarray(cluster), return_inverse=True)
    size = int(code.max(initial=-1)) + 1
    pairs, where = np.unique(unit * size + code, return_inverse=True)
    totals = np.stack([np.bincount(where, weights=column * copies) for column in rows.T], axis=1)
    return totals.astype(np.float64), pairs % size, np.ones(len(pairs)), pairs // size
