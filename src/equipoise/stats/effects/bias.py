r"""Test whether predicted treatment effects are equally accurate in every group.

The algorithmic bias of a group is :math:`A_g = b_g - b_{-g}`: its prediction error minus that of
the rest ([1]_, Definition 2). Both the error and the bias are ratios whose numerator and
denominator are means, so the test of a value a and the interval come from the law of u - a d: that
of few units (`equipoise.stats.effects.roots`) where sums of the third order are at hand, else the
normal one of :math:`S(a) = (u - a d) / \sqrt{\mathrm{Var}(u - a d)}` (score, Fieller).

References
----------
.. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel and F. von Wangenheim (2026), Detecting and
   mitigating group bias in heterogeneous treatment effects (earlier: Detecting and mitigating
   algorithmic bias in treatment effect estimation). doi:10.48550/arXiv.2602.20383
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_number, check_option
from equipoise._typing import BoolArray, EffectAdjust, EffectTest, FloatArray, IntArray, Rest, Rng
from equipoise.exceptions import DataError
from equipoise.moments import linear_covariance
from equipoise.stats.delta import Linearised, covariance_by_group
from equipoise.stats.effects.collapse import collapse_parts
from equipoise.stats.effects.errors import GroupErrors, group_errors
from equipoise.stats.effects.ratio_tests import Ratio, RatioLaw, RatioTests, ratio_tests
from equipoise.stats.effects.roots import (
    ContrastRoots,
    LinearRoots,
    RelativeRoots,
    quantity_sums,
)
from equipoise.stats.small_samples import joint_bonferroni, joint_test, shrunk_correlation

__all__ = [
    "ChiSquareTest",
    "TreatmentBias",
    "bias_covariance",
    "bias_estimates",
    "effect_tests",
    "error_covariance",
    "error_tests",
    "treatment_bias",
]


Roots: TypeAlias = ContrastRoots | LinearRoots | RelativeRoots
"""Laws of few units, for the tested groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChiSquareTest:
    """One test for all groups."""

    statistic: float
    df: int
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TreatmentBias:
    """Prediction errors and algorithmic bias of every tested group.

    Parameters
    ----------
    tested : array of shape (T,)
        Group codes, in the order of all arrays.
    error : RatioTests
        Of :math:`b_g = 0`.
    bias : RatioTests
        Of :math:`b_g = b_{-g}`.
    rest : array of shape (T,)
        The error :math:`B_{-g}` of the rest of each group.
    equal, zero : ChiSquareTest
        That all errors are equal; that all are zero.
    df : array of shape (T,)
        Degrees of freedom of the tests of biases; infinite for normal ones.
    """

    tested: IntArray
    error: RatioTests
    bias: RatioTests
    rest: FloatArray
    equal: ChiSquareTest
    zero: ChiSquareTest
    df: FloatArray


def treatment_bias(
    errors: GroupErrors,
    *,
    rest: Rest = "stratified",
    test: EffectTest = "auto",
    adjust: EffectAdjust = "holm",
    margin: float | None = None,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> TreatmentBias:
    r"""Test every group's prediction error against zero and against the rest.

    The null hypotheses are :math:`b_g = 0` (Eq. (24)) and :math:`b_g = b_{-g}` (Eq. (26)); the
    joint ones, that all errors are zero and that all are equal.

    Parameters
    ----------
    errors : GroupErrors
        From `group_errors`.
    rest : {"stratified", "pooled"}
        The rest of a group averages the arm means of the other groups by size, or pools their rows.
    test : {"auto", "score", "wald"}
        "auto" is the law of few units: t with measured degrees of freedom, and for relative effects
        of a 0/1 outcome the conditional mid-P of events. Without sums of the third order, or with
        `arm_ratio`, it is "score", the normal law with the variance at the hypothesis. The Wald
        test of a relative effect has size .107 with 5 control positives and .052 with 50.
    adjust : {"holm", "bonferroni", "bh", "by", "max_t", "none"}
        For the number of groups; "max_t" is the step-down method of Romano and Wolf.
    margin : float, optional
        Also test that the bias is at least this far from zero (equivalence).
    confidence_level : float, default 0.95
        Of the intervals, which are not adjusted.
    rng : Generator, int or None
        For "max_t".

    Returns
    -------
    TreatmentBias

    Raises
    ------
    DataError
        With fewer than two tested groups, or a pooled rest whose treated shares differ by group.

    Notes
    -----
    :math:`b_{-g} = \sum_{h \ne g} w_h b_h / \sum w_h` with :math:`w_h = n_h E[Y(0) | h]`: the rest
    is weighted by outcomes, not by size alone, and a few groups with errors give every other group
    a bias; so the error itself is tested too. Group sizes are taken as random, as the rows are.

    *Deviations from* [1]_: normal reference instead of :math:`t_{n_g - 2}`, which ignores the rest;
    the rest is stratified, because a pooled ratio of means is confounded when the treated share
    differs by group; with two groups :math:`A_1 = -A_2` is one test.

    References
    ----------
    .. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel and F. von Wangenheim (2026).
       doi:10.48550/arXiv.2602.20383

    Examples
    --------
    The same effect of 1.5 is predicted for both groups. Is it equally right in both?

    >>> import numpy as np
    >>> from equipoise.stats.effects.errors import effect_moments, group_errors
    >>> y = np.concatenate([np.repeat([1, 0], [k, 1000 - k]) for k in (100, 150, 100, 230)])
    >>> t = np.tile(np.repeat([0, 1], 1000), 2)
    >>> g = np.repeat([0, 1], 2000)
    >>> found = treatment_bias(group_errors(effect_moments(y, t, np.full(4000, 1.5), g)))
    >>> found.bias.estimate.round(2).tolist(), found.bias.p_value.round(3).tolist()
    ([0.8, -0.8], [0.016, 0.016])

    No: predictions for the first group are too high, relative to the second, by 0.8.
    """
    check_option("rest", rest, Rest)
    check_option("test", test, EffectTest)
    check_option("adjust", adjust, EffectAdjust)
    level = check_fraction("confidence_level", confidence_level)
    if margin is not None:
        check_number("margin", margin, low=0.0)
    if len(errors.tested) < 2:
        raise DataError(
            "a comparison with the rest needs at least two groups with both arms and, for relative"
            f" effects, control positives; {len(errors.tested)} remain. Merge groups."
        )
    if rest == "pooled":
        _check_shares(errors)
    contrast, rest_error = _contrast(errors, rest, test)
    roots = _roots(errors, test) if rest == "stratified" else None
    z = float(-special.ndtri((1.0 - level) / 2.0))
    error = error_tests(errors, test=test, adjust=adjust, confidence_level=level)
    law: RatioLaw = contrast if roots is None else _RootLaw(roots, bias=True)
    family = adjust
    if len(errors.tested) == 2 and np.count_nonzero(errors.weight.value) == 2:
        weaker = int(np.argmin(errors.control_strength))
        law = contrast.mirrored(weaker) if roots is None else _RootLaw(roots, True, weaker)
        family = "none"
    correlation = None
    if family == "max_t":
        covariance = bias_covariance(errors, rest=rest)
        scale = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(scale, scale)
        if roots is not None:
            correlation = shrunk_correlation(correlation, roots.df(bias=True))
    bias = ratio_tests(law, z=z, adjust=family, correlation=correlation, margin=margin, rng=rng)
    if roots is None:
        equal, zero = _joint_tests(errors, error.statistic)
    else:
        equal, zero = _joint_tests_of_roots(errors, bias.statistic, error.statistic)
    return TreatmentBias(
        tested=errors.tested,
        error=error,
        bias=bias,
        rest=rest_error,
        equal=equal,
        zero=zero,
        df=np.full(len(errors.tested), np.inf) if roots is None else roots.df(bias=True),
    )


def error_tests(
    errors: GroupErrors,
    *,
    test: EffectTest = "auto",
    adjust: EffectAdjust = "holm",
    confidence_level: float = 0.95,
) -> RatioTests:
    r"""Test that the prediction error of each group is zero, Eq. (24) of [1]_.

    Parameters
    ----------
    errors : GroupErrors
        From `group_errors`.
    test, adjust, confidence_level
        As in `treatment_bias`; groups are independent here, so "max_t" means "holm".

    Returns
    -------
    RatioTests

    References
    ----------
    .. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel and F. von Wangenheim (2026).
       doi:10.48550/arXiv.2602.20383

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.stats.effects.errors import effect_moments, group_errors
    >>> y, t = np.tile([1, 0, 0, 1, 1, 0], 40), np.tile([0, 0, 0, 1, 1, 1], 40)
    >>> found = error_tests(group_errors(effect_moments(y, t, np.full(240, 1.5), [0] * 240)))
    >>> round(found.low[0], 2), round(found.high[0], 2)
    (-1.18, -0.01)
    """
    z = -float(special.ndtri((1.0 - check_fraction("confidence_level", confidence_level)) / 2.0))
    roots = _roots(errors, test)
    law: RatioLaw = _own(errors, test) if roots is None else _RootLaw(roots, bias=False)
    return ratio_tests(law, z=z, adjust="holm" if adjust == "max_t" else adjust)


def effect_tests(errors: GroupErrors, *, confidence_level: float = 0.95) -> RatioTests:
    """Estimate the effect in each tested group, with an interval.

    Parameters
    ----------
    errors : GroupErrors
        From `group_errors`.
    confidence_level : float, default 0.95
        Of the intervals.

    Returns
    -------
    RatioTests
        An effect is minus the error of predictions that are all zero, so that it has the same law.
    """
    idle = [k for k, name in enumerate(errors.names) if "f" in name]
    moments, units = errors.moments, errors.moments.units
    keep = np.ones(len(errors.names))
    keep[idle] = 0.0
    if units is not None:
        third = units.third * keep[:, None, None] * keep[:, None] * keep
        units = replace(units, third=third, fourth=units.fourth * keep, fifth=units.fifth * keep)
    cross = moments.cross
    if cross is not None:
        cross = replace(cross, product=cross.product * keep[:, None] * keep)
    without = group_errors(
        replace(
            moments,
            total=moments.total * keep,
            product=moments.product * keep[:, None] * keep,
            units=units,
            cross=cross,
        ),
        measure="relative" if errors.measure == "relative" else "difference",
        collapse=errors.collapse,
        names=errors.names,
        arm_ratio=errors.arm_ratio,
        split=errors.split,
        n_strata=errors.n_strata,
        binary=errors.binary,
    )
    # Without any law the score test, which needs none, has nothing to test.
    test: EffectTest = "auto" if len(without.tested) else "score"
    found = error_tests(without, test=test, adjust="none", confidence_level=confidence_level)
    place = {int(g): k for k, g in enumerate(without.tested)}
    # Where outcomes do not vary there is an effect, and no law of it.
    pick = [place.get(int(g), -1) for g in errors.tested]
    known = np.array(pick) >= 0

    def taken(values: FloatArray, otherwise: FloatArray) -> FloatArray:
        chosen = values[np.maximum(pick, 0)] if len(values) else otherwise
        return np.where(known, chosen, otherwise)

    def ends(values: tuple[float | None, ...]) -> tuple[float | None, ...]:
        return tuple(None if k < 0 or (end := values[k]) is None else -end for k in pick)

    nothing = np.zeros(len(pick))
    return replace(
        found,
        estimate=errors.effect,
        se=taken(found.se, errors.effect_se),
        statistic=-taken(found.statistic, nothing),
        p_value_raw=taken(found.p_value_raw, nothing + 1.0),
        p_value=taken(found.p_value, nothing + 1.0),
        low=ends(found.high),
        high=ends(found.low),
        method=tuple("none" if k < 0 else found.method[k] for k in pick),
    )


def error_covariance(errors: GroupErrors, se: FloatArray | None = None) -> FloatArray:
    """Return the joint covariance of the errors of all tested groups.

    Parameters
    ----------
    errors : GroupErrors
        From `group_errors`.
    se : array of shape (T,), optional
        Standard errors to keep; the correlations are those of the sums.

    Returns
    -------
    array of shape (T, T)
    """
    tested, b = errors.tested, errors.error
    coefficient = np.zeros((len(b), *errors.numerator.gradient.shape))
    own = errors.numerator.gradient[tested] - _outer(b, errors.denominator.gradient[tested])
    coefficient[np.arange(len(b)), tested] = _outer(1.0 / errors.denominator.value[tested], own)
    covariance = (
        linear_covariance(errors.moments, _by_quantity(coefficient))
        if _units_cross_groups(errors)
        else np.diag(errors.error_se**2)
    )
    if se is None:
        return covariance
    scale = se / np.sqrt(np.diag(covariance))
    return np.asarray(covariance * np.outer(scale, scale))


@dataclass(frozen=True, slots=True)
class _RootLaw:
    """Errors, or biases, of tested groups by the law of few units.

    With two groups the bias is one number with two signs: that of group `weaker` counts.
    """

    roots: "Roots"
    bias: bool
    weaker: int | None = None

    @property
    def method(self) -> tuple[str, ...]:
        counts = isinstance(self.roots, RelativeRoots) and self.roots.counts
        return ("mid-p" if counts else "t",) * len(self.roots.error)

    @property
    def estimate(self) -> FloatArray:
        error = self.roots.error
        return self._signed(np.asarray(error - self.roots.rest_error) if self.bias else error)

    @property
    def se(self) -> FloatArray:
        return np.abs(self._signed(self.roots.se(bias=self.bias)))

    def root(self, value: float) -> FloatArray:
        if self.weaker is None:
            return self.roots.root(value, bias=self.bias)
        sign = np.where(np.arange(2) == self.weaker, 1.0, -1.0)
        values = np.array([self.roots.root(s * value, bias=self.bias)[self.weaker] for s in sign])
        return np.asarray(sign * values)

    def interval(self, critical: float) -> tuple[FloatArray, FloatArray]:
        low, high = self.roots.interval(critical, bias=self.bias)
        if self.weaker is None:
            return low, high
        own = np.arange(2) == self.weaker
        k = self.weaker
        return np.where(own, low[k], -high[k]), np.where(own, high[k], -low[k])

    def _signed(self, values: FloatArray) -> FloatArray:
        if self.weaker is None:
            return values
        return np.asarray(np.where(np.arange(2) == self.weaker, 1.0, -1.0) * values[self.weaker])


def _roots(errors: GroupErrors, test: EffectTest) -> "Roots | None":
    """Return the law of few units of the tested groups, where the sums allow it."""
    if errors.adjusted is not None and test == "auto":
        return errors.adjusted
    if test != "auto" or errors.moments.units is None or errors.arm_ratio is not None:
        return None
    tested = errors.tested
    inflation = _inflation(errors)
    counts = errors.binary and errors.collapse == "control" and errors.names[1] == "y"
    if counts and errors.n_strata == 1 and not errors.split:
        cells = (tested[:, None] * 2 + np.arange(2)).ravel()
        clustered = errors.moments.n_units < int(errors.moments.n.sum())
        return RelativeRoots.from_sums(
            quantity_sums(errors.moments)[cells],
            counts=True,
            clustered=clustered,
            inflation=inflation,
        )
    roots = LinearRoots.of(
        errors.moments,
        tested,
        errors.numerator,
        errors.denominator,
        weight=errors.weight.value,
        covariance=_unbiased(errors),
        inflation=inflation,
        binary=errors.binary,
    )
    return roots.contrasts(errors.moments, tested) if errors.measure == "difference" else roots


def _unbiased(errors: GroupErrors) -> FloatArray:
    """Covariance of numerators and denominators over n - 1 instead of n."""
    n = errors.n_eff.min(axis=1)
    return np.asarray(errors.covariance * (n / np.maximum(n - 1.0, 1.0))[:, None, None])


def _inflation(errors: GroupErrors) -> FloatArray | None:
    """Standard errors of biases over those with independent groups; None where they are."""
    if not _units_cross_groups(errors):
        return None
    linked, _ = _contrast(errors, "stratified", "auto")
    alone, _ = _contrast(errors, "stratified", "auto", linked=False)
    return np.asarray(linked.se / alone.se)


def _joint_tests_of_roots(
    errors: GroupErrors, bias: FloatArray, error: FloatArray
) -> tuple[ChiSquareTest, ChiSquareTest]:
    """Test that all errors are equal, and that all are zero, from the roots of single tests."""
    share = (errors.weight.value * errors.denominator.value)[errors.tested]
    equal = joint_test(bias, share=share)
    # Errors of groups that share units are correlated; their squares do not add up.
    zero = joint_bonferroni(error) if _units_cross_groups(errors) else joint_test(error)
    return tuple(  # type: ignore[return-value]
        ChiSquareTest(
            statistic=float(found.statistic), df=int(found.df), p_value=float(found.p_value)
        )
        for found in (equal, zero)
    )


def bias_estimates(
    errors: GroupErrors, *, rest: Rest = "stratified"
) -> tuple[FloatArray, FloatArray]:
    """Return the bias of every tested group and its standard error, without tests.

    Parameters
    ----------
    errors : GroupErrors
        From `group_errors`.
    rest : {"stratified", "pooled"}
        As in `treatment_bias`.

    Returns
    -------
    tuple of two arrays of shape (T,)

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.stats.effects.errors import effect_moments, group_errors
    >>> y, t = np.tile([1, 0, 1, 1], 40), np.tile([0, 0, 1, 1], 40)
    >>> bias, _ = bias_estimates(group_errors(effect_moments(y, t, 1.0 + y, np.repeat([0, 1], 80))))
    >>> bias.tolist()
    [0.0, 0.0]
    """
    contrast, _ = _contrast(errors, rest, "auto")
    return contrast.estimate, contrast.se


def bias_covariance(errors: GroupErrors, *, rest: Rest = "stratified") -> FloatArray:
    """Return the joint covariance of the biases of all tested groups.

    Parameters
    ----------
    errors : GroupErrors
        From `group_errors`.
    rest : {"stratified", "pooled"}
        As in `treatment_bias`.

    Returns
    -------
    array of shape (T, T)

    Examples
    --------
    Two groups have one bias with two signs.

    >>> import numpy as np
    >>> from equipoise.stats.effects.errors import effect_moments, group_errors
    >>> y, t = np.tile([1, 0, 1, 1, 1, 0, 0, 1], 20), np.tile([0, 0, 1, 1, 0, 0, 1, 1], 20)
    >>> found = bias_covariance(group_errors(effect_moments(y, t, 1.0 + t, np.repeat([0, 1], 80))))
    >>> bool(np.isclose(found[0, 1], -found[0, 0]))
    True
    """
    coefficient = _contrast_coefficients(errors, rest, errors.error)
    d = errors.denominator.value[errors.tested]
    return linear_covariance(errors.moments, _by_quantity(coefficient / d[:, None, None, None]))


def _use_score(errors: GroupErrors, test: EffectTest) -> BoolArray:
    return np.full(len(errors.tested), test != "wald" and errors.measure == "relative")


def _own(errors: GroupErrors, test: EffectTest) -> Ratio:
    v = errors.covariance[errors.tested]
    return Ratio(
        u=errors.numerator.value[errors.tested],
        d=errors.denominator.value[errors.tested],
        c0=v[:, 0, 0],
        c1=v[:, 0, 1],
        c2=v[:, 1, 1],
        score=_use_score(errors, test),
    )


def _contrast(
    errors: GroupErrors, rest: Rest, test: EffectTest, *, linked: bool = True
) -> tuple[Ratio, FloatArray]:
    """Return A_g as a ratio with numerator U_g - B_rest D_g, and B_rest."""
    own = _own(errors, test)
    value, variance = _rest_by_totals(errors, rest)
    u = own.u - value * own.d
    if not (linked and _units_cross_groups(errors)):
        return (
            Ratio(
                u=u,
                d=own.d,
                c0=own.c0 - 2 * value * own.c1 + value**2 * own.c2 + own.d**2 * variance,
                c1=own.c1 - value * own.c2,
                c2=own.c2,
                score=own.score,
            ),
            value,
        )
    tested = errors.tested
    numerator = _contrast_coefficients(errors, rest, value)
    denominator = np.zeros_like(numerator)
    denominator[np.arange(len(tested)), tested] = errors.denominator.gradient[tested]
    both = linear_covariance(errors.moments, _by_quantity(np.concatenate([numerator, denominator])))
    k = np.arange(len(tested))
    return (
        Ratio(
            u=u,
            d=own.d,
            c0=both[k, k],
            c1=both[k, k + len(tested)],
            c2=both[k + len(tested), k + len(tested)],
            score=own.score,
        ),
        value,
    )


def _rest_by_totals(errors: GroupErrors, rest: Rest) -> tuple[FloatArray, FloatArray]:
    """Return B_rest and its variance from totals minus the group; units within groups only."""
    tested = errors.tested
    if rest == "pooled":
        numerator, denominator = _pooled_rest(errors)
        function = numerator / denominator
        flat = errors.moments.product
        product = flat.reshape(len(errors.n), -1, *flat.shape[1:])
        others = product.sum(axis=0) - product[tested]
        g = function.gradient
        return function.value, np.einsum("tcp,tcpq,tcq->t", g, others, g)
    numerator, denominator = errors.weight * errors.numerator, errors.weight * errors.denominator
    v = covariance_by_group(errors.moments, [numerator, denominator])
    top = numerator.value.sum() - numerator.value[tested]
    bottom = denominator.value.sum() - denominator.value[tested]
    value = top / bottom
    v = v.sum(axis=0) - v[tested]
    variance = (v[:, 0, 0] - 2 * value * v[:, 0, 1] + value**2 * v[:, 1, 1]) / bottom**2
    return value, variance


def _pooled_rest(errors: GroupErrors) -> tuple[Linearised, Linearised]:
    total = errors.moments.total.reshape(len(errors.n), -1, errors.moments.total.shape[1])
    usable = (errors.weight.value > 0)[:, None, None]
    total = np.where(usable, total, 0.0)
    implied, treated, control, _ = collapse_parts(
        total.sum(axis=0) - total[errors.tested],
        measure=errors.measure,
        collapse=errors.collapse,
        names=errors.names,
        arm_ratio=errors.arm_ratio,
        split=errors.split,
        n_strata=errors.n_strata,
    )
    return implied - treated, control


def _contrast_coefficients(errors: GroupErrors, rest: Rest, at: FloatArray) -> FloatArray:
    """Return the influence of every cell on U_g - b D_g - D_g B_rest at b = `at`.

    Shape (T, G, C, p). At B_rest it is the influence on the numerator of the score, at B_g that on
    D_g times the bias.
    """
    tested = errors.tested
    value, _ = _rest_by_totals(errors, rest)
    d = errors.denominator.value[tested]
    k = np.arange(len(tested))
    shape = errors.numerator.gradient.shape
    if rest == "pooled":
        numerator, denominator = _pooled_rest(errors)
        influence = (numerator / denominator).gradient
        coefficient = np.broadcast_to(influence[:, None], (len(tested), *shape)).copy()
        coefficient[:, errors.weight.value == 0] = 0.0
    else:
        top, bottom = errors.weight * errors.numerator, errors.weight * errors.denominator
        scale = bottom.value.sum() - bottom.value[tested]
        coefficient = top.gradient[None] - value[:, None, None, None] * bottom.gradient[None]
        coefficient = coefficient / scale[:, None, None, None]
    coefficient = -d[:, None, None, None] * coefficient
    coefficient[k, tested] = errors.numerator.gradient[tested] - _outer(
        at, errors.denominator.gradient[tested]
    )
    return coefficient


def _by_quantity(coefficient: FloatArray) -> list[FloatArray]:
    """Turn (m, G, C, p) into p matrices (G C, m)."""
    m, p = coefficient.shape[0], coefficient.shape[3]
    flat = coefficient.reshape(m, -1, p)
    return [np.ascontiguousarray(flat[:, :, k].T) for k in range(p)]


def _units_cross_groups(errors: GroupErrors) -> bool:
    cross = errors.moments.cross
    if cross is None:
        return False
    n_cells = len(errors.moments.n) // len(errors.n)
    return bool(np.any(cross.first // n_cells != cross.second // n_cells))


def _check_shares(errors: GroupErrors) -> None:
    n = errors.n[errors.tested]
    share = errors.n_treated[errors.tested] / n
    overall = float(errors.n_treated.sum() / errors.n.sum())
    gap = np.abs(share - overall)
    noise = np.sqrt(overall * (1.0 - overall) / n)
    worst = int(np.argmax(np.where(gap > 4.0 * noise, gap, 0.0)))
    if gap[worst] > 0.05 and gap[worst] > 4.0 * noise[worst]:
        raise DataError(
            "a pooled rest needs the same treated share in every group; it ranges from"
            f' {share.min():.2f} to {share.max():.2f}. Use rest="stratified".'
        )


def _joint_tests(errors: GroupErrors, z: FloatArray) -> tuple[ChiSquareTest, ChiSquareTest]:
    """Test that all errors are equal, and that all are zero.

    The first is generalised least squares around a common error; the second sums the squared
    statistics `z` of the groups, or takes the Wald form when units link groups.
    """
    b = errors.error
    linked = _units_cross_groups(errors)
    inverse = (
        np.linalg.pinv(error_covariance(errors)) if linked else np.diag(1.0 / errors.error_se**2)
    )
    deviation = b - (inverse @ b).sum() / inverse.sum()
    equal = float(deviation @ inverse @ deviation)
    zero = float(b @ inverse @ b) if linked else float(z @ z)
    return _chi_square(equal, len(b) - 1), _chi_square(zero, len(b))


def _chi_square(statistic: float, df: int) -> ChiSquareTest:
    return ChiSquareTest(statistic=statistic, df=df, p_value=float(special.chdtrc(df, statistic)))


def _outer(factor: FloatArray, gradient: FloatArray) -> FloatArray:
    product: FloatArray = factor[:, None, None] * gradient
    return product
