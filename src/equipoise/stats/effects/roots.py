r"""Roots of the errors of predicted effects when arms have few independent units.

The error of a group is :math:`B_g = \tau^f_g - \tau_g` and its bias :math:`A_g` is the error minus
that of the other groups ([1]_). For effects measured as differences both are contrasts of sides
(group, arm) and have the law of `small_samples`. For relative effects of a 0/1 outcome the events
of the two arms are counts: the test is that of two Poisson means given their sum ([2]_), with
effective counts ([3]_) where predictions, weights or clusters spread them.

References
----------
.. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel and F. von Wangenheim (2026), Detecting and
   mitigating group bias in heterogeneous treatment effects (earlier: Detecting and mitigating
   algorithmic bias in treatment effect estimation). doi:10.48550/arXiv.2602.20383
.. [2] J. Przyborowski and H. Wilenski (1940), Homogeneity of results in testing samples from
   Poisson series, Biometrika 31, 313-323. https://doi.org/10.1093/biomet/31.3-4.313
.. [3] M. P. Fay and E. J. Feuer (1997), Confidence intervals for directly standardized rates,
   Statistics in Medicine 16, 791-801.
   doi:10.1002/(SICI)1097-0258(19970415)16:7<791::AID-SIM500>3.0.CO;2-#
.. [4] W. Lin (2013), Agnostic notes on regression adjustments to experimental data, Annals of
   Applied Statistics 7, 295-318. https://doi.org/10.1214/12-AOAS583
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import special

from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.stats.delta import Linearised
from equipoise.stats.inversion import invert
from equipoise.stats.small_samples import (
    MIN_DF,
    MIN_UNITS,
    Contrast,
    ContrastLaw,
    Links,
    Shape,
    combine,
    contrast_law,
    normal_root,
    pooled_shape,
    quotient,
    side_contrast,
)
from equipoise.stats.unit_sums import CrossSums, QuantityCross, QuantitySums, UnitSums

__all__ = [
    "ContrastRoots",
    "EffectContrasts",
    "LinearRoots",
    "RelativeRoots",
    "adjusted_effect_contrasts",
    "arm_sides",
    "arm_units",
    "bias_contrasts",
    "difference_contrasts",
    "plausible_skewness",
    "quantity_sums",
]

# Events at which the dispersion of an arm counts as much as that of all groups.
_BORROW_EVENTS = 30.0
_FARTHEST = 37.0
# An arm pooled over fewer units than so many times those of a group: one or two groups alike.
_LONE = 2.5


class _Doubt(NamedTuple):
    """How far the spread of few units is believed.

    The other arm counts in the shape of an arm for `units` times 1 + skewness^2 units, at most for
    `most`, and for none from `enough` own units on; `events` as in `side_contrast`.
    """

    units: float
    most: float
    enough: float
    events: float


_VALUES = _Doubt(units=0.3, most=60.0, enough=400.0, events=0.0)
# 1 + skewness^2 rows of a rare 0/1 outcome are about one event.
_EVENTS = _Doubt(units=1.0, most=60.0, enough=400.0, events=3.0)
# Events that may be expected where none was seen: the exact bound of 97.5%.
_UNSEEN = 3.69


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectContrasts:
    """Errors and biases of groups as contrasts.

    Parameters
    ----------
    error, bias : Contrast
        B and A, arrays of shape (G,). The rest of a group is made of the other tested groups.
    tested : array of bool of shape (G,)
        Groups with enough units in both arms.
    size : array of shape (G,)
        Sum of weights of each group.
    """

    error: Contrast
    bias: Contrast
    tested: BoolArray
    size: FloatArray


def difference_contrasts(
    sums: QuantitySums, *, cross: QuantityCross | None = None
) -> EffectContrasts:
    r"""Errors of predicted differences from sums by (group, arm).

    With u = y + (share of controls) f in the control arm and u = -y + (share of treated) f in the
    treated arm, :math:`B_g` is the sum of the two means.

    Parameters
    ----------
    sums : QuantitySums
        Sums of (one, outcome, predicted effect) in cell ``2 g + arm``.
    cross : QuantityCross, optional
        When clusters have rows in several cells.

    Returns
    -------
    EffectContrasts

    Examples
    --------
    Predictions of 2 for a group in which treatment adds 1.

    >>> import numpy as np
    >>> y, arm = np.array([1.0, 2, 3, 4, 2, 3, 4, 5]), np.repeat([0, 1], 4)
    >>> rows = np.column_stack([np.ones(8), y, np.full(8, 2.0)])
    >>> found = difference_contrasts(QuantitySums.from_rows(rows, arm))
    >>> found.error.estimate.tolist()
    [1.0]
    """
    w = sums.first[:, 0].reshape(-1, 2)
    size = w.sum(axis=1)
    share = quotient(w, size[:, None])
    sign = np.broadcast_to(np.array([1.0, -1.0]), w.shape)
    direction = np.stack([np.zeros_like(w), sign, share], axis=-1).reshape(-1, 3)
    arms = sums.along(direction)
    sides = arm_sides(arms.reshape(-1, 2))
    links = None if cross is None else Links.between(arms, cross.along(direction))
    return _contrasts(sides, size, links)


def bias_contrasts(error: Contrast, size: FloatArray, tested: BoolArray) -> Contrast:
    """Error of each group minus that of the other tested groups, when no unit spans groups.

    Parameters
    ----------
    error : Contrast
        Errors, arrays of shape (..., G).
    size : array of shape (..., G)
        Weights of the groups in a rest.
    tested : array of bool of shape (..., G)
        Groups that make up rests.

    Returns
    -------
    Contrast
    """
    weight = np.where(tested, size, 0.0)
    parts = error * weight
    total = parts.sum()
    everyone = total.reshape(*total.estimate.shape, 1)
    others = np.sum(weight, axis=-1, keepdims=True) - weight
    rest: Contrast = everyone.without(parts) * quotient(np.ones_like(others), others)
    return error - rest


def adjusted_effect_contrasts(
    outcome: AnyArray,
    treatment: AnyArray,
    group: AnyArray,
    covariates: AnyArray,
    *,
    effect_pred: AnyArray | None = None,
    n_groups: int | None = None,
) -> EffectContrasts:
    r"""Errors of predicted differences after regression adjustment in each arm ([4]_).

    An arm with n rows and k covariates has residual variance on n - k - 1 degrees of freedom, and
    its prediction at the mean of the group the leverage :math:`1/n + d'(X'X)^{-1} d`, with d the
    distance of that mean from the mean of the arm. The spread of the predicted effects over the
    group is a third, independent side.

    Parameters
    ----------
    outcome, treatment, group : array of shape (n,)
        Response, arm (0 or 1) and group code of each row.
    covariates : array of shape (n, k)
        Measured before treatment.
    effect_pred : array of shape (n,), optional
        Predicted effects; zero by default, so that the error is minus the effect.
    n_groups : int, optional
        G; by default one more than the largest code.

    Returns
    -------
    EffectContrasts
        Without skewness: their law is t.
    """
    y, x = np.asarray(outcome, np.float64), np.asarray(covariates, np.float64)
    arm, code = np.asarray(treatment, np.int64), np.asarray(group, np.int64)
    f = np.zeros(len(y)) if effect_pred is None else np.asarray(effect_pred, np.float64)
    size = int(code.max(initial=-1)) + 1 if n_groups is None else n_groups
    k = x.shape[1]
    mean, v, leverage, df, rows = (np.zeros((size, 3)) for _ in range(5))
    for g in range(size):
        member = code == g
        centre = x[member].mean(axis=0) if member.any() else np.zeros(k)
        effect = -f[member]
        for a, sign in ((0, -1.0), (1, 1.0)):
            own = member & (arm == a)
            n = int(own.sum())
            rows[g, a], df[g, a] = n, n - k - 1
            if n <= k + 1:
                continue
            design = np.column_stack([np.ones(n), x[own] - centre])
            inverse = np.linalg.pinv(design.T @ design)
            coefficient = inverse @ design.T @ y[own]
            residual = y[own] - design @ coefficient
            mean[g, a] = -sign * coefficient[0]
            v[g, a], leverage[g, a] = residual @ residual / (n - k - 1), inverse[0, 0]
            effect = effect + sign * ((x[member] - centre) @ coefficient[1:])
        n = int(member.sum())
        if n > 1:
            mean[g, 2] = f[member].mean()
            v[g, 2], leverage[g, 2] = effect.var(ddof=1), 1.0 / n
        rows[g, 2], df[g, 2] = n, n - 1
    usable = np.where(df > 0, df, 0.0)
    pool = quotient((usable * v).sum(axis=0), usable.sum(axis=0))
    own_part = rows / (rows + 100.0)
    spread = (own_part * v + (1.0 - own_part) * pool) * leverage
    zero = np.zeros_like(v)
    floor = 0.25 * np.minimum(1.0, 20.0 / np.maximum(rows, 1.0)) * pool
    # The third side has no floor: predicted effects that do not vary are no accident.
    floor[:, 2] = 0.0
    variance = np.maximum(v, floor) * leverage
    sides = Contrast(
        estimate=mean,
        variance=variance,
        model_variance=spread,
        shape_variance=spread,
        shape_third=zero,
        satterthwaite=quotient(spread**2, df),
        own_variance=v * leverage,
        own_third=zero,
        own_third_variance=zero,
        scatter=v * leverage,
        n_units=rows,
        # What the covariates leave counts as units.
        n_eff=np.maximum(df, 0.0),
        df=np.maximum(df, 0.0),
    )
    return _contrasts(sides, rows[:, 2], None)


def quantity_sums(moments: CellMoments) -> QuantitySums:
    """Sums over units, the third order included, of cells that hold them.

    Parameters
    ----------
    moments : CellMoments
        With `units`.

    Returns
    -------
    QuantitySums
    """
    units = moments.units
    if units is None:
        raise InvalidParameterError("the law of few units needs sums of the third order.")
    return QuantitySums(
        n=units.n[:, 0],
        first=moments.total,
        second=moments.product,
        third=units.third,
        w4=units.fourth[:, 0],
        w5=units.fifth[:, 0],
    )


def arm_units(moments: CellMoments, names: tuple[str, ...], n_cells: int) -> UnitSums:
    """Count the independent units of each arm, by their weights.

    Parameters
    ----------
    moments : CellMoments
        Sums by (group, cell); odd cells are treated.
    names : tuple of str
        The quantities; rows count by "w" where there is one.
    n_cells : int
        Cells of a group.

    Returns
    -------
    UnitSums
        Of shape (G, 2), with u = 0; NaN without sums of higher order.
    """
    k = names.index("w") if "w" in names else 0
    n_groups = len(moments.n) // n_cells

    def arms(values: FloatArray) -> FloatArray:
        return np.asarray(values.reshape(n_groups, -1, 2).sum(axis=1))

    units = moments.units
    zero = np.zeros((n_groups, 2))
    blank = np.full(len(moments.n), np.nan)
    return UnitSums(
        n=arms(blank if units is None else units.n[:, k]),
        w=arms(moments.total[:, k]),
        w2=arms(blank if units is None else moments.product[:, k, k]),
        w3=arms(blank if units is None else units.third[:, k, k, k]),
        w4=arms(blank if units is None else units.fourth[:, k]),
        w5=arms(blank if units is None else units.fifth[:, k]),
        **dict.fromkeys(("u", "uu", "uw", "uuu", "uuw", "uww"), zero),
        centre=0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastRoots:
    """Tests of errors and biases that are contrasts of means.

    Parameters
    ----------
    error_contrast, bias_contrast : Contrast
        Of T groups.
    plausible : array of shape (T,), default NaN
        Skewness that an error may have too: see `plausible_skewness`.
    """

    error_contrast: Contrast
    bias_contrast: Contrast
    plausible: FloatArray | float = np.nan

    @property
    def error(self) -> FloatArray:
        """Estimated errors."""
        return self.error_contrast.estimate

    @property
    def rest_error(self) -> FloatArray:
        """Estimated errors of the rests."""
        return np.asarray(self.error_contrast.estimate - self.bias_contrast.estimate)

    def se(self, *, bias: bool = False) -> FloatArray:
        """Standard errors of the errors, or of the biases."""
        return self._law(bias=bias).se

    def df(self, *, bias: bool = False) -> FloatArray:
        """Degrees of freedom of the tests."""
        return self._law(bias=bias).df

    def root(self, null: AnyArray | float = 0.0, *, bias: bool = False) -> FloatArray:
        """Root of the error, or of the bias, at a hypothesised value."""
        return self._law(bias=bias).root(null)

    def interval(self, critical: float, *, bias: bool = False) -> tuple[FloatArray, FloatArray]:
        """Errors, or biases, that are not rejected."""
        return self._law(bias=bias).interval(critical)

    def _law(self, *, bias: bool) -> ContrastLaw:
        if bias:
            return contrast_law(self.bias_contrast)
        return contrast_law(self.error_contrast, plausible=self.plausible)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearRoots:
    r"""Tests of errors :math:`B = U/D` from the influence of each row on U and D.

    At the hypothesised error b the mean of U - b D is zero, and the influence of a row on it is
    linear in the quantities of the row: each arm of a group, over all strata, is a side. The error
    of the rest enters as a number with a standard error; for differences, where D is one,
    `contrasts` has the law of all sides together.

    Parameters
    ----------
    sums : QuantitySums
        In the cells of T groups, (group, stratum, arm).
    numerator, denominator : Linearised
        U and D.
    weight : array of shape (T,)
        Of each group in a rest; for ratios that of the mean outcome too.
    covariance : array of shape (T, 2, 2)
        Of U and D, for the error of a rest.
    inflation : array of shape (T,)
        Standard error of a bias over that with independent groups, where units span groups.
    binary : bool, default False
        Whether outcomes are 0/1.
    """

    sums: QuantitySums
    numerator: Linearised
    denominator: Linearised
    weight: FloatArray
    covariance: FloatArray
    inflation: FloatArray
    binary: bool = False

    @classmethod
    def of(
        cls,
        moments: CellMoments,
        tested: IntArray,
        numerator: Linearised,
        denominator: Linearised,
        *,
        weight: FloatArray,
        covariance: FloatArray,
        inflation: FloatArray | None = None,
        binary: bool = False,
    ) -> "LinearRoots":
        """Prepare the tests of some groups.

        Parameters
        ----------
        moments : CellMoments
            Sums of all groups, with `units`.
        tested : array of shape (T,)
            Groups to test.
        numerator, denominator : Linearised
            U and D of all groups.
        weight : array of shape (G,)
            Of each group in a rest.
        covariance : array of shape (G, 2, 2)
            Of U and D.
        inflation : array of shape (T,), optional
            As in the class.
        binary : bool, default False
            As in the class.

        Returns
        -------
        LinearRoots
        """
        n_cells = numerator.gradient.shape[1]
        cells = (tested[:, None] * n_cells + np.arange(n_cells)).ravel()
        return cls(
            sums=quantity_sums(moments)[cells],
            numerator=numerator.take(tested),
            denominator=denominator.take(tested),
            weight=weight[tested],
            covariance=covariance[tested],
            inflation=np.ones(len(tested)) if inflation is None else inflation,
            binary=binary,
        )

    def contrasts(self, moments: CellMoments, tested: IntArray) -> ContrastRoots:
        """Return errors and biases of differences as contrasts of all arms.

        Parameters
        ----------
        moments : CellMoments
            Sums of all groups.
        tested : array of shape (T,)
            The groups of these roots.

        Returns
        -------
        ContrastRoots

        Examples
        --------
        Is the mean of 4, 5, 6, 9 larger than that of 1, 2, 3, 4 by 5?

        >>> import numpy as np
        >>> from equipoise.stats.effects.errors import effect_moments, group_errors
        >>> y, arm = [1.0, 2, 3, 4, 4, 5, 6, 9], np.repeat([0, 1], 4)
        >>> found = group_errors(effect_moments(y, arm, np.full(8, 5.0), np.zeros(8),
        ...                                     measure="difference"),
        ...                      measure="difference", collapse="mean")
        >>> roots = LinearRoots.of(found.moments, found.tested, found.numerator, found.denominator,
        ...                        weight=found.weight.value, covariance=found.covariance)
        >>> float(roots.contrasts(found.moments, found.tested).root(0.0)[0].round(2))
        0.91
        """
        b = np.zeros(len(self.weight))
        arms = self._arms(b, self._every)
        sides = arm_sides(arms, binary=self.binary)
        links = None
        if moments.cross is not None:
            links = Links.between(
                arms.reshape(-1), _side_cross(moments, tested, self._direction(b, self._every))
            )
        found = _contrasts(sides, self.weight, links)
        value = self.numerator.value
        others = self.weight.sum() - self.weight
        rest = quotient((self.weight * value).sum() - self.weight * value, others, 0.0)
        # The influence of rows says how an estimate varies, not what it is.
        return ContrastRoots(
            error_contrast=replace(found.error, estimate=value),
            bias_contrast=replace(found.bias, estimate=value - rest),
            plausible=plausible_skewness(arms, sides),
        )

    def root(self, null: AnyArray | float = 0.0, *, bias: bool = False) -> FloatArray:
        """Root of the error, or of the bias, the error minus that of the other groups.

        Parameters
        ----------
        null : float or array of shape (T,), default 0
            Hypothesised value.
        bias : bool, default False
            Of the bias.

        Returns
        -------
        array of shape (T,)
            Positive when predictions are too high.
        """
        rest, variance = self._rest(bias=bias)
        b = rest + np.asarray(null, np.float64)
        return self._law(b, self._every, variance, self._pools()).root()

    def interval(self, critical: float, *, bias: bool = False) -> tuple[FloatArray, FloatArray]:
        """Errors, or biases, that are not rejected.

        Parameters
        ----------
        critical : float
            Largest absolute root that is not rejected.
        bias : bool, default False
            Of the biases.

        Returns
        -------
        low, high : array of shape (T,)
        """
        rest, variance = self._rest(bias=bias)
        pools = self._pools()

        def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
            return self._law(null + rest[which], which, variance[which], pools).root()

        ends = np.full(len(rest), np.inf)
        return invert(
            root, self.error - rest, self.se(bias=bias), critical=critical, low=-ends, high=ends
        )

    def se(self, *, bias: bool = False) -> FloatArray:
        """Standard errors of the errors, or of the biases."""
        law = self._law(self.error, self._every, self._rest(bias=bias)[1], self._pools())
        return np.asarray(law.se / self.denominator.value)

    def df(self, *, bias: bool = False) -> FloatArray:
        """Degrees of freedom of the tests."""
        rest, variance = self._rest(bias=True)
        if not bias:
            rest, variance = self.error, np.zeros(len(rest))
        return self._law(rest, self._every, variance, self._pools()).df

    @property
    def error(self) -> FloatArray:
        """Estimated errors."""
        return np.asarray(self.numerator.value / self.denominator.value)

    @property
    def rest_error(self) -> FloatArray:
        """Estimated errors of the rests."""
        return self._rest(bias=True)[0]

    @property
    def _every(self) -> IntArray:
        return np.arange(len(self.weight))

    def _direction(self, b: FloatArray, which: IntArray) -> FloatArray:
        """Influence on U - b D of the quantities in each cell, times the size of the arm."""
        n_cells = self.numerator.gradient.shape[1]
        size = self.sums.first[:, 0].reshape(-1, n_cells // 2, 2).sum(axis=1)[which]
        moved = b[:, None, None] * self.denominator.gradient[which]
        gradient = self.numerator.gradient[which] - moved
        return np.asarray(gradient * np.tile(size, n_cells // 2)[:, :, None])

    def _arms(self, b: FloatArray, which: IntArray) -> UnitSums:
        """Sums of the arms of the groups numbered `which`, at hypothesised errors."""
        direction = self._direction(b, which)
        n_groups, n_cells, p = direction.shape
        cells = (which[:, None] * n_cells + np.arange(n_cells)).ravel()
        found = self.sums[cells].along(direction.reshape(-1, p))
        return found.reshape(n_groups, n_cells // 2, 2).sum(axis=1)

    def _pools(self) -> tuple["_Pool", "_Pool"]:
        """Shapes of the two arms over all groups, as functions of the hypothesised error."""
        grid = _Grid.around(float(np.abs(self.error).max(initial=0.0)))
        every = [self._arms(np.full(len(self.weight), b), self._every) for b in grid.points]
        arms = UnitSums.stack(every, axis=-2)
        return _Pool.of(grid, arms[..., 0]), _Pool.of(grid, arms[..., 1])

    def _rest(self, *, bias: bool) -> tuple[FloatArray, FloatArray]:
        """Error of the other groups, and its variance; zero for the error itself."""
        if not bias:
            return np.zeros(len(self.weight)), np.zeros(len(self.weight))
        top, bottom = self.weight * self.numerator.value, self.weight * self.denominator.value
        below = bottom.sum() - bottom
        rest = quotient(top.sum() - top, below, 0.0)
        v = self.weight[:, None, None] ** 2 * self.covariance
        others = v.sum(axis=0) - v
        spread = others[:, 0, 0] - 2 * rest * others[:, 0, 1] + rest**2 * others[:, 1, 1]
        return rest, quotient(np.maximum(spread, 0.0), below**2)

    def _law(
        self,
        b: FloatArray,
        which: IntArray,
        rest_variance: FloatArray,
        pools: tuple["_Pool", "_Pool"],
    ) -> ContrastLaw:
        """Law of U - b D, for the groups numbered `which`."""
        control, treated = (pool.at(b) for pool in pools)
        shape = Shape(
            variance=np.stack([control.variance, treated.variance], axis=-1),
            skewness=np.stack([control.skewness, treated.skewness], axis=-1),
            n=np.stack([control.n, treated.n], axis=-1),
        )
        own = arm_sides(self._arms(b, which), shape=shape, binary=self.binary).sum()
        d = self.denominator.value[which]
        rest = Contrast.constant(np.zeros(len(b)), se=d * np.sqrt(rest_variance))
        law = contrast_law(own + rest)
        wider = np.where(rest_variance > 0, self.inflation[which], 1.0)
        return replace(law, estimate=self.numerator.value[which] - b * d, se=law.se * wider)


def _side_cross(moments: CellMoments, tested: IntArray, direction: FloatArray) -> CrossSums:
    """Products of units with rows in two sides of tested groups."""
    pair = moments.cross
    if pair is None or pair.squares is None:
        raise InvalidParameterError("units that span sides need their squared products.")
    n_cells = direction.shape[1]
    place = np.full(len(moments.n) // n_cells, -1)
    place[tested] = np.arange(len(tested))
    inside = (place[pair.first // n_cells] >= 0) & (place[pair.second // n_cells] >= 0)
    first, second = pair.first[inside], pair.second[inside]
    product, squares = pair.product[inside], pair.squares[inside, 0]
    side = [2 * place[cell // n_cells] + cell % 2 for cell in (first, second)]
    if np.any(side[0] == side[1]):
        raise DataError(
            "a cluster has rows in several strata of one arm; strata must be made of whole"
            " clusters. Name coarser strata, or leave the clusters out if rows were randomised."
        )
    a, b = (direction[place[cell // n_cells], cell % n_cells] for cell in (first, second))
    size = 2 * len(tested)
    uu, uw, wu, ww, w2w2 = np.zeros((5, size, size))
    np.add.at(uu, tuple(side), np.einsum("ea,eab,eb->e", a, product, b))
    np.add.at(uw, tuple(side), np.einsum("ea,ea->e", a, product[:, :, 0]))
    np.add.at(wu, tuple(side), np.einsum("eb,eb->e", b, product[:, 0, :]))
    np.add.at(ww, tuple(side), product[:, 0, 0])
    np.add.at(w2w2, tuple(side), squares)
    return CrossSums(uu=uu + uu.T, uw=uw + wu.T, ww=ww + ww.T, w2w2=w2w2 + w2w2.T)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeRoots:
    r"""Tests of the errors of predicted relative effects.

    At the hypothesised error b the mean N of y (f - b) in the control arm equals the mean M of y in
    the treated arm. For a 0/1 outcome N and M are effective counts times a dispersion, and the
    p-value is the mid-P of the treated count given the sum of both. Otherwise N - M is a contrast.

    Parameters
    ----------
    control, treated : QuantitySums
        Sums of (one, outcome, outcome times predicted effect) in each group.
    counts : bool
        Whether the outcome is 0/1.
    clustered : bool
        Units are clusters: the root of the counts is referred to t.
    error, rest_error : array of shape (G,)
        B, and that of the other tested groups; NaN where it is not defined.
    rest_variance : array of shape (G,)
        Variance of `rest_error`.
    status : array of str of shape (G,)
        "ok", "too-few-units" or "no-control-positives".
    size : array of shape (G,)
        Sum of weights of each group.
    inflation : array of shape (G,)
        Standard error of a bias over that with independent groups, where units span groups.
    implied_pool : array of shape (2, 4)
        Variances of units and means of y (f - b) of the controls, over all groups, at four b.
    treated_pool : float
        Variances of units over means of the outcomes of the treated, over all groups.
    """

    control: QuantitySums
    treated: QuantitySums
    counts: bool
    clustered: bool
    error: FloatArray
    rest_error: FloatArray
    rest_variance: FloatArray
    status: AnyArray
    size: FloatArray
    inflation: FloatArray
    implied_pool: FloatArray
    treated_pool: float

    @classmethod
    def from_sums(
        cls,
        sums: QuantitySums,
        *,
        counts: bool,
        clustered: bool = False,
        inflation: FloatArray | None = None,
    ) -> "RelativeRoots":
        """Prepare the tests of all groups.

        Parameters
        ----------
        sums : QuantitySums
            Sums of (one, outcome, outcome times predicted effect) in cell ``2 g + arm``.
        counts : bool
            Whether the outcome is 0/1.
        clustered : bool, default False
            Whether units are clusters.
        inflation : array of shape (G,), optional
            As in the class.

        Returns
        -------
        RelativeRoots

        Examples
        --------
        Predictions say that an offer doubles sales; 100 of 1000 bought without it, 150 with it.

        >>> import numpy as np
        >>> y = np.r_[np.ones(100), np.zeros(900), np.ones(150), np.zeros(850)]
        >>> rows = np.column_stack([np.ones(2000), y, 2.0 * y])
        >>> sums = QuantitySums.from_rows(rows, np.repeat([0, 1], 1000))
        >>> tests = RelativeRoots.from_sums(sums, counts=True)
        >>> low, high = tests.interval(1.96)
        >>> [round(float(x[0]), 2) for x in (tests.error, low, high)]
        [0.5, 0.09, 0.82]

        They are too high, by 0.1 to 0.8.
        """
        control, treated = sums[0::2], sums[1::2]
        arms = sums.along(_OUTCOME)
        level = np.nan_to_num(arms.mean[0::2])
        enough = (arms.n_eff >= MIN_UNITS - 1e-9) & (arms.df >= MIN_DF - 1e-9)
        status = np.select(
            [~enough.reshape(-1, 2).all(axis=1), ~(level > 0)],
            ["too-few-units", "no-control-positives"],
            "ok",
        )
        implied = control.along(_PREDICTED).mean
        error = quotient(implied - arms.mean[1::2], level, np.nan)
        size = sums.first[:, 0].reshape(-1, 2).sum(axis=1)
        weight = np.where(status == "ok", size, 0.0)
        bottom = weight * level
        top = np.where(bottom > 0, bottom * error, 0.0)
        rest = quotient(top.sum() - top, bottom.sum() - bottom, np.nan)
        at = np.nan_to_num(rest)
        grid = _Grid.of(control)
        spread = weight[:, None] ** 2 * (
            _mean_variance(control[:, None], grid.directions)
            + _mean_variance(treated, _OUTCOME)[:, None]
        )
        others = grid.at(at, spread.sum(axis=0) - spread)
        return cls(
            control=control,
            treated=treated,
            counts=counts,
            clustered=clustered,
            error=error,
            rest_error=rest,
            rest_variance=quotient(np.maximum(others, 0.0), (bottom.sum() - bottom) ** 2, 0.0),
            status=status,
            size=size,
            inflation=np.ones(len(size)) if inflation is None else inflation,
            implied_pool=np.stack(
                [
                    np.nansum(_unit_variance(control, grid.directions), axis=0),
                    np.nansum(control[:, None].along(grid.directions).mean, axis=0),
                ]
            ),
            treated_pool=float(
                quotient(
                    np.nansum(_unit_variance(treated, _OUTCOME)), np.nansum(arms.mean[1::2]), 0.0
                )
            ),
        )

    def se(self, *, bias: bool = False) -> FloatArray:
        """Standard errors of the errors, or of the biases."""
        b = np.nan_to_num(self.error)
        variance = _mean_variance(self.control, _implied(b)) + _mean_variance(
            self.treated, _OUTCOME
        )
        own = quotient(variance, self.control.along(_OUTCOME).mean ** 2, 0.0)
        if not bias:
            return np.sqrt(own)
        return np.asarray(np.sqrt(own + self.rest_variance) * self.inflation)

    def df(self, *, bias: bool = False) -> FloatArray:
        """Degrees of freedom of the tests; infinite where events are counted."""
        every = np.arange(len(self.size))
        if self.counts and not self.clustered:
            return np.full(len(every), np.inf)
        at = self.rest_error if bias else self.error
        return self._law(np.nan_to_num(at), every, self._rest(bias=bias)[1]).df

    def root(self, null: AnyArray | float = 0.0, *, bias: bool = False) -> FloatArray:
        """Root of the error, or of the bias, the error minus that of the other tested groups.

        Parameters
        ----------
        null : float or array of shape (G,), default 0
            Hypothesised value.
        bias : bool, default False
            Of the bias.

        Returns
        -------
        array of shape (G,)
            Positive when predictions are too high; NaN where nothing is tested.
        """
        rest, variance = self._rest(bias=bias)
        tested = (self.status == "ok") & np.isfinite(rest)
        b = np.where(tested, rest, 0.0) + np.asarray(null, np.float64)
        return np.where(tested, self._root(b, np.arange(len(rest)), variance), np.nan)

    def interval(self, critical: float, *, bias: bool = False) -> tuple[FloatArray, FloatArray]:
        """Errors, or biases, that are not rejected.

        Parameters
        ----------
        critical : float
            Largest absolute root that is not rejected.
        bias : bool, default False
            Of the biases.

        Returns
        -------
        low, high : array of shape (G,)
        """
        rest, variance = self._rest(bias=bias)
        estimate = np.where(self.status == "ok", self.error - rest, np.nan)

        def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
            return self._root(null + rest[which], which, variance[which])

        ends = np.full(len(estimate), np.inf)
        return invert(root, estimate, self.se(bias=bias), critical=critical, low=-ends, high=ends)

    def _rest(self, *, bias: bool) -> tuple[FloatArray, FloatArray]:
        """Error of the other groups, and its variance; zero for the error itself."""
        nothing = np.zeros(len(self.size))
        return (self.rest_error, self.rest_variance) if bias else (nothing, nothing)

    def _root(self, b: FloatArray, which: IntArray, rest_variance: FloatArray) -> FloatArray:
        wider = np.where(rest_variance > 0, self.inflation[which], 1.0)
        if not self.counts:
            return self._law(b, which, rest_variance).root() / wider
        return self._count_root(b, which, rest_variance) / wider

    def _count_root(self, b: FloatArray, which: IntArray, rest_variance: FloatArray) -> FloatArray:
        control, treated = self.control[which], self.treated[which]
        implied, observed = control.along(_implied(b)), treated.along(_OUTCOME)
        grid = _Grid.of(self.control)
        pool0, events0 = (grid.at(b, values) for values in self.implied_pool)
        d0 = _dispersion(implied, quotient(pool0, events0))
        d1 = _dispersion(observed, np.full(len(b), self.treated_pool))
        n, m = implied.mean, observed.mean
        scale0, scale1 = d0 * implied.share(2), d1 * observed.share(2)
        p_up = _mid_p(
            quotient(n, scale0), quotient(m, scale1), quotient(scale0, scale0 + scale1, 0.5)
        )
        root = np.clip(special.ndtri(p_up), -_FARTHEST, _FARTHEST)
        # Nothing is implied: whatever was observed rules b out.
        root = np.where(n > 0, root, np.where(m > 0, -_FARTHEST, 0.0))
        # An estimated error of the rest widens both, and then rules nothing out by itself.
        own = scale0 * np.maximum(n, 0.0) + scale1 * m
        level = control.along(_OUTCOME)
        extra = level.mean**2 * rest_variance
        wide = np.where(n > 0, root, quotient(n - m, np.sqrt(own))) * np.sqrt(
            quotient(own, own + extra)
        )
        root = np.where(rest_variance > 0, wide, root)
        if self.clustered:
            root = normal_root(root, self._law(b, which, rest_variance).df)
        # Outcomes that are all alike are no counts of rare events.
        alike = (d1 <= 0.0) | (level.scatter <= 0.0)
        if alike.any():
            root = np.where(alike, self._law(b, which, rest_variance).root(), root)
        return np.asarray(root)

    def _law(self, b: FloatArray, which: IntArray, rest_variance: FloatArray) -> ContrastLaw:
        """Law of N - M, which is zero when the error is b."""
        grid = _Grid.of(self.control)
        shape = _Pool.of(grid, self.control[:, None].along(grid.directions)).at(b)
        control = self.control[which]
        level = control.along(_OUTCOME).mean
        observed = self.treated.along(_OUTCOME)
        seen = pooled_shape(observed).expand()
        implied = side_contrast(
            control.along(_implied(b)), _doubted(shape, seen), events=_VALUES.events
        )
        treated = side_contrast(observed[which], _doubted(seen, shape), events=_VALUES.events)
        rest = Contrast.constant(np.zeros(len(b)), se=level * np.sqrt(rest_variance))
        return contrast_law(implied - treated + rest)


_OUTCOME, _PREDICTED = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])


def _implied(b: FloatArray) -> FloatArray:
    """Coefficients of y (f - b)."""
    return np.stack([np.zeros_like(b), -b, np.ones_like(b)], axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Sums over groups are cubic in b: four values give them at every b."""

    points: FloatArray

    @classmethod
    def of(cls, control: QuantitySums) -> "_Grid":
        total = control.first.sum(axis=0)
        return cls.around(total[2] / total[1] if total[1] else 0.0)

    @classmethod
    def around(cls, typical: float) -> "_Grid":
        return cls(points=np.array([-1.0, 0.0, 1.0, 2.0]) * (abs(typical) or 1.0))

    @property
    def directions(self) -> FloatArray:
        return _implied(self.points)

    def at(self, b: FloatArray, values: FloatArray) -> FloatArray:
        """Interpolate values (..., 4) at b."""
        weight = [
            np.prod([(b - x) / (own - x) for x in self.points if x != own], axis=0)
            for own in self.points
        ]
        return np.asarray(np.sum(np.stack(weight, axis=-1) * values, axis=-1))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """Shape of an arm over all groups as a function of the hypothesised error.

    Every group is taken at the error of the one that is tested, so that the law of a group does not
    depend on what is asked of the others. `variance` and `third` are sums at the points of a grid.
    """

    grid: _Grid
    variance: FloatArray
    third: FloatArray
    factors: tuple[float, float]
    n: float

    @classmethod
    def of(cls, grid: _Grid, sides: UnitSums) -> "_Pool":
        """From sides of shape (groups, points)."""
        n2, n3 = sides.n**2, sides.n**3
        return cls(
            grid=grid,
            variance=np.nansum(n2 * sides.scatter, axis=0),
            third=np.nansum(n3 * sides.third_scatter, axis=0),
            factors=(
                float(np.sum(n2[:, 0] * sides.variance_factor[:, 0])),
                float(np.sum(n3[:, 0] * sides.third_factor[:, 0])),
            ),
            n=float(sides.n[:, 0].sum()),
        )

    def at(self, b: FloatArray) -> Shape:
        """Shape at each error."""
        variance = quotient(self.grid.at(b, self.variance), self.factors[0], 0.0)
        third = quotient(self.grid.at(b, self.third), self.factors[1], 0.0)
        variance = np.maximum(variance, 0.0)
        return Shape(
            variance=variance, skewness=quotient(third, variance**1.5), n=np.full(len(b), self.n)
        )


def arm_sides(arms: UnitSums, *, shape: Shape | None = None, binary: bool = False) -> Contrast:
    """Means of the arms of each group, with the shape of an arm over all groups.

    Parameters
    ----------
    arms : UnitSums
        Of shape (..., G, 2); outcomes have opposite signs in the two arms.
    shape : Shape, optional
        Of the arms, of the same shape; by default pooled over the groups.
    binary : bool, default False
        Whether outcomes are 0/1.

    Returns
    -------
    Contrast
        Of the same shape.

    Notes
    -----
    Few outcomes that are mostly zero may all be zero: the arm that says so has no spread of its
    own, and its mean is as far from the truth as it ever is. Where the other arm varies more, its
    shape therefore counts for some units. How many grows with the kurtosis, as do the units that a
    variance needs, and that is at least one more than the squared skewness.

    Examples
    --------
    None of five controls buys anything, and one of twenty others does.

    >>> import numpy as np
    >>> y, arm = np.r_[np.zeros(5), -10.0, np.zeros(19)], np.repeat([0, 1], [5, 20])
    >>> sides = arm_sides(UnitSums.from_rows(y, np.ones(25), arm).reshape(1, 2))
    >>> sides.variance.round(2).tolist()
    [[0.14, 0.25]]
    """
    doubt = _EVENTS if binary else _VALUES
    pool = pooled_shape(arms, axis=-2).expand(-2) if shape is None else shape
    other = _mirrored(pool)
    if binary:
        pool = _of_events(pool, other)
        other = _mirrored(pool)
    shape = _doubted(pool, other, doubt)
    return side_contrast(arms, shape, events=doubt.events)


def plausible_skewness(arms: UnitSums, sides: Contrast) -> FloatArray:
    """Skewness that the error of a group may have where its two arms are skewed alike.

    The shape of each arm is borrowed apart. Arms of one shape and size make an error without any
    skewness, whatever a few units of each look like, and so may those of a group that lends most of
    its own shape; arms of one shape and of two sizes make one with less.

    Parameters
    ----------
    arms : UnitSums
        Of shape (..., G, 2); outcomes have opposite signs in the two arms.
    sides : Contrast
        Their means, of the same shape.

    Returns
    -------
    array of shape (..., G)
        Between zero and the skewness with the shapes apart.

    Examples
    --------
    One group with arms of eight and eight, one with twelve and four.

    >>> import numpy as np
    >>> side = np.repeat([0, 1, 2, 3, 4, 5], [8, 8, 12, 4, 20, 20])
    >>> y = np.random.default_rng(0).exponential(size=72) * np.where(side % 2, -1, 1)
    >>> arms = UnitSums.from_rows(y, np.ones(72), side).reshape(3, 2)
    >>> plausible_skewness(arms, arm_sides(arms))[:2].round(2).tolist()
    [0.0, -0.23]
    """
    n, s3 = sides.n_units, np.nan_to_num(arms.share(3))
    of_units = quotient(sides.shape_third, s3) * [1.0, -1.0]
    alike = quotient((n * of_units).sum(axis=-1), n.sum(axis=-1)) * (s3[..., 0] - s3[..., 1])
    apart = sides.shape_third.sum(axis=-1)
    third = np.clip(alike, np.minimum(apart, 0.0), np.maximum(apart, 0.0))
    lone = np.any(n.sum(axis=-2, keepdims=True) < _LONE * n, axis=-1)
    return np.where(lone, 0.0, quotient(third, sides.shape_variance.sum(axis=-1) ** 1.5))


def _mirrored(shape: Shape) -> Shape:
    """Shape of the other arm, whose outcomes have the other sign."""
    return Shape(
        variance=shape.variance[..., ::-1],
        skewness=-shape.skewness[..., ::-1],
        n=shape.n[..., ::-1],
    )


def _of_events(shape: Shape, other: Shape) -> Shape:
    """Shape of 0/1 outcomes: where fewer events were seen than there may be, that of so many.

    Ones are the rare outcome unless the other arm is skewed to the other side.
    """
    rate = np.minimum(quotient(_UNSEEN, shape.n), 0.5)
    variance = rate * (1.0 - rate)
    sign = np.where(other.skewness == 0.0, [1.0, -1.0], np.sign(other.skewness))
    skewness = sign * quotient(1.0 - 2.0 * rate, np.sqrt(variance))
    return replace(
        shape,
        variance=np.maximum(shape.variance, variance),
        skewness=np.where(shape.variance < variance, skewness, shape.skewness),
    )


def _doubted(shape: Shape, other: Shape, doubt: _Doubt = _VALUES) -> Shape:
    """Shape of an arm, drawn towards that of the other arm where that one varies more."""
    units = np.minimum(doubt.units * (1.0 + other.skewness**2), doubt.most)
    units = units * np.maximum(1.0 - shape.n / doubt.enough, 0.0)
    part = np.where(other.variance > shape.variance, quotient(units, units + shape.n), 0.0)
    return Shape(
        variance=shape.variance + part * (other.variance - shape.variance),
        skewness=shape.skewness + part * (other.skewness - shape.skewness),
        n=shape.n,
    )


def _contrasts(sides: Contrast, size: FloatArray, links: Links | None) -> EffectContrasts:
    """Errors as sums over the sides of a group, and biases."""
    n_groups, n_sides = sides.estimate.shape
    one = np.eye(n_groups)
    own = np.repeat(one, n_sides, axis=1)
    flat = sides.reshape(-1)
    error = sides.sum() if links is None else combine(flat, own, links)
    tested = contrast_law(error).tested
    if links is None:
        return EffectContrasts(
            error=error, bias=bias_contrasts(error, size, tested), tested=tested, size=size
        )
    weight = np.where(tested, size, 0.0) * (1.0 - one)
    share = quotient(weight, weight.sum(axis=1, keepdims=True))
    bias = combine(flat, own - np.repeat(share, n_sides, axis=1), links)
    return EffectContrasts(error=error, bias=bias, tested=tested, size=size)


def _unit_variance(sums: QuantitySums, direction: FloatArray) -> FloatArray:
    """Variance of unit means of u = direction'q, for each group and direction."""
    side = sums.along(direction) if direction.ndim == 1 else sums[:, None].along(direction)
    return quotient(side.scatter, side.variance_factor)


def _mean_variance(sums: QuantitySums, direction: FloatArray) -> FloatArray:
    """Variance of the mean; one direction, one for each group, or (groups, directions)."""
    side = sums.along(direction)
    return quotient(side.scatter, side.variance_factor) * np.nan_to_num(side.share(2))


def _dispersion(side: UnitSums, pool: FloatArray) -> FloatArray:
    """Variance over mean of units, drawn towards that of all groups when events are few."""
    own = quotient(quotient(side.scatter, side.variance_factor), side.mean)
    events = quotient(side.mean, own * np.nan_to_num(side.share(2)))
    trust = events / (events + _BORROW_EVENTS)
    return trust * own + (1.0 - trust) * pool


def _mid_p(control: FloatArray, treated: FloatArray, share: FloatArray) -> FloatArray:
    """Probability of at least so many treated events given their sum, half of equality."""
    low, high = np.maximum(control, 1e-300), np.maximum(treated, 1e-300)
    at_least = np.where(treated > 0, special.betainc(high, control + 1.0, share), 1.0)
    more = np.where(control > 0, special.betainc(treated + 1.0, low, share), 0.0)
    return np.asarray(0.5 * (at_least + more))
