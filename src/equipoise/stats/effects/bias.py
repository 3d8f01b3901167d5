r"""Test whether predicted treatment effects are equally accurate in every group.

The algorithmic bias of a group is :math:`A_g = b_g - b_{-g}`: its prediction error minus that of
the rest ([1]_, Definition 2). Both the error and the bias are ratios whose numerator and
denominator are means, so the test of a value and the interval come from
:math:`S(a) = (u - a d) / \sqrt{\mathrm{Var}(u - a d)}` (score, Fieller), which holds its level
from five control positives; the Wald test does from fifty.

References
----------
.. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel, F. von Wangenheim, "Detecting and
   Mitigating Algorithmic Bias in Treatment Effect Estimation".
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_number, check_option
from equipoise._typing import BoolArray, EffectAdjust, EffectTest, FloatArray, IntArray, Rest, Rng
from equipoise.exceptions import DataError
from equipoise.moments import linear_covariance
from equipoise.stats.delta import Linearised, covariance_by_group
from equipoise.stats.effects.collapse import collapse_parts
from equipoise.stats.effects.errors import GroupErrors
from equipoise.stats.effects.ratio_tests import Ratio, RatioTests, ratio_tests

__all__ = [
    "ChiSquareTest",
    "TreatmentBias",
    "bias_covariance",
    "bias_estimates",
    "error_tests",
    "treatment_bias",
]


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
    """

    tested: IntArray
    error: RatioTests
    bias: RatioTests
    rest: FloatArray
    equal: ChiSquareTest
    zero: ChiSquareTest


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
        "auto" is the score test for relative effects and the z test for differences, where the two
        agree. The Wald test of a relative effect has size .107 with 5 control positives and .052
        with 50; choosing it by the number observed has size .071 around 50, so "auto" never mixes.
    adjust : {"holm", "bonferroni", "bh", "by", "max_t", "none"}
        For the number of groups.
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
    .. [1] Persson et al., see the module.

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
    ([0.8, -0.8], [0.024, 0.024])

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
    score = _use_score(errors, test)
    own = _own(errors)
    contrast, rest_error = _contrast(errors, rest)
    equal, zero = _joint_tests(errors, own.statistic(0.0, score))
    z = float(-special.ndtri((1.0 - level) / 2.0))
    error = error_tests(errors, test=test, adjust=adjust, confidence_level=level)
    family = adjust
    if len(errors.tested) == 2 and np.count_nonzero(errors.weight.value) == 2:
        weaker = int(np.argmin(errors.control_strength))
        contrast, score, family = contrast.mirrored(weaker), np.repeat(score[weaker], 2), "none"
    correlation = None
    if family == "max_t":
        covariance = bias_covariance(errors, rest=rest)
        scale = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(scale, scale)
    return TreatmentBias(
        tested=errors.tested,
        error=error,
        bias=ratio_tests(
            contrast, score, z=z, adjust=family, correlation=correlation, margin=margin, rng=rng
        ),
        rest=rest_error,
        equal=equal,
        zero=zero,
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
    .. [1] Persson et al., see the module.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.stats.effects.errors import effect_moments, group_errors
    >>> y, t = np.tile([1, 0, 1, 1], 40), np.tile([0, 0, 1, 1], 40)
    >>> found = error_tests(group_errors(effect_moments(y, t, np.full(160, 1.5), [0] * 160)))
    >>> round(found.low[0], 2), round(found.high[0], 2)
    (-1.06, -0.14)
    """
    z = -float(special.ndtri((1.0 - check_fraction("confidence_level", confidence_level)) / 2.0))
    score = _use_score(errors, test)
    return ratio_tests(_own(errors), score, z=z, adjust="holm" if adjust == "max_t" else adjust)


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
    contrast, _ = _contrast(errors, rest)
    return contrast.u / contrast.d, contrast.se()


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


def _own(errors: GroupErrors) -> Ratio:
    v = errors.covariance[errors.tested]
    return Ratio(
        u=errors.numerator.value[errors.tested],
        d=errors.denominator.value[errors.tested],
        c0=v[:, 0, 0],
        c1=v[:, 0, 1],
        c2=v[:, 1, 1],
    )


def _contrast(errors: GroupErrors, rest: Rest) -> tuple[Ratio, FloatArray]:
    """Return A_g as a ratio with numerator U_g - B_rest D_g, and B_rest."""
    own = _own(errors)
    value, variance = _rest_by_totals(errors, rest)
    u = own.u - value * own.d
    if not _units_cross_groups(errors):
        return (
            Ratio(
                u=u,
                d=own.d,
                c0=own.c0 - 2 * value * own.c1 + value**2 * own.c2 + own.d**2 * variance,
                c1=own.c1 - value * own.c2,
                c2=own.c2,
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
        arm_ratio=errors.arm_ratio,
        split=errors.split,
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
    if linked:
        tested = errors.tested
        coefficient = np.zeros((len(b), *errors.numerator.gradient.shape))
        own = errors.numerator.gradient[tested] - _outer(b, errors.denominator.gradient[tested])
        coefficient[np.arange(len(b)), tested] = _outer(1.0 / errors.denominator.value[tested], own)
        inverse = np.linalg.pinv(linear_covariance(errors.moments, _by_quantity(coefficient)))
    else:
        inverse = np.diag(1.0 / errors.error_se**2)
    deviation = b - (inverse @ b).sum() / inverse.sum()
    equal = float(deviation @ inverse @ deviation)
    zero = float(b @ inverse @ b) if linked else float(z @ z)
    return _chi_square(equal, len(b) - 1), _chi_square(zero, len(b))


def _chi_square(statistic: float, df: int) -> ChiSquareTest:
    return ChiSquareTest(statistic=statistic, df=df, p_value=float(special.chdtrc(df, statistic)))


def _outer(factor: FloatArray, gradient: FloatArray) -> FloatArray:
    product: FloatArray = factor[:, None, None] * gradient
    return product
