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

from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.exceptions import InvalidParameterError

__all__ = [
    "CrossSums",
    "GroupsAndRests",
    "QuantityCross",
    "QuantitySums",
    "UnitSums",
    "groups_and_rests",
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
            return np.asarray(self.u / self.w)

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
        cube = self.uuu - 3 * m * self.uuw + 3 * m**2 * self.uww - m**3 * self.w3
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(cube / self.w**3)

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

    def __add__(self, other: "CrossSums") -> "CrossSums":
        return CrossSums(
            uu=self.uu + other.uu,
            uw=self.uw + other.uw,
            ww=self.ww + other.ww,
            w2w2=self.w2w2 + other.w2w2,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsAndRests:
    """Sums of every group and of everyone outside it, when units span groups.

    Parameters
    ----------
    group, rest : UnitSums
        Arrays of shape (G,).
    cross : CrossSums, optional
        Arrays of shape (G, 2, 2), group first; None when no unit spans.
    """

    group: UnitSums
    rest: UnitSums
    cross: CrossSums | None = None


def groups_and_rests(
    u: AnyArray,
    w: AnyArray,
    unit: IntArray,
    group: IntArray,
    *,
    total_u: AnyArray,
    total_w: AnyArray,
    n_groups: int | None = None,
    centre: float = 0.0,
) -> GroupsAndRests:
    """Sum units that span groups, which may overlap, into groups and their rests.

    With t the total of a unit in a group and T its total in the whole table, a rest has the sums of
    T - t: those of all units, with T replaced by T - t in the units that touch the group. One
    table of (unit, group) totals joined with the totals of units gives every group and every rest.

    Parameters
    ----------
    u, w : array of shape (p,)
        Totals of one unit in one group, a row for each pair that has rows.
    unit, group : array of shape (p,)
        Codes of the pair.
    total_u, total_w : array of shape (n,)
        Totals of each unit in the whole table.
    n_groups : int, optional
        G; by default one more than the largest code.
    centre : float, default 0
        Number near the overall mean.

    Returns
    -------
    GroupsAndRests

    Examples
    --------
    Two people answered in both waves, a third in the second one only.

    >>> import numpy as np
    >>> both = groups_and_rests([1.0, 2.0, 4.0, 5.0, 6.0], np.ones(5), np.array([0, 1, 0, 1, 2]),
    ...                         np.array([0, 0, 1, 1, 1]), total_u=[5.0, 7.0, 6.0],
    ...                         total_w=[2.0, 2.0, 1.0])
    >>> both.group.mean.tolist(), both.rest.mean.tolist(), both.rest.n.tolist()
    ([1.5, 5.0], [5.0, 1.5], [3.0, 2.0])
    """
    w, whole_w = np.asarray(w, np.float64), np.asarray(total_w, np.float64)
    u = np.asarray(u, np.float64) - centre * w
    whole_u = np.asarray(total_u, np.float64) - centre * whole_w
    size = int(np.max(group, initial=-1)) + 1 if n_groups is None else n_groups

    def add(term: FloatArray) -> FloatArray:
        return np.bincount(group, weights=term, minlength=size).astype(np.float64)

    outside_u, outside_w = whole_u[unit] - u, whole_w[unit] - w
    # Differences of equal floats may leave noise where a unit has nothing outside the group.
    empty = np.abs(outside_w) <= 1e-12 * np.abs(whole_w[unit])
    outside_u, outside_w = np.where(empty, 0.0, outside_u), np.where(empty, 0.0, outside_w)
    own = UnitSums(**_monomials(u, w, add), centre=centre)
    outside = UnitSums(**_monomials(outside_u, outside_w, add), centre=centre)
    touching = UnitSums(**_monomials(whole_u[unit], whole_w[unit], add), centre=centre)
    everyone = UnitSums(
        **_monomials(whole_u, whole_w, lambda term: np.asarray(term.sum())), centre=centre
    )
    rest = everyone - touching + outside
    zero = np.zeros(size)

    def pair(first: FloatArray, second: FloatArray) -> FloatArray:
        return np.stack([np.stack([zero, first], -1), np.stack([second, zero], -1)], -2)

    uu, ww = add(u * outside_u), add(w * outside_w)
    cross = CrossSums(
        uu=pair(uu, uu),
        uw=pair(add(u * outside_w), add(outside_u * w)),
        ww=pair(ww, ww),
        w2w2=pair(*(2 * [add(w**2 * outside_w**2)])),
    )
    return GroupsAndRests(group=own, rest=rest, cross=cross if ww.any() else None)


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
