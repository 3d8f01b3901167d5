r"""Effects of a randomised treatment by group, and the error of predicted effects.

The prediction error of a group is :math:`b_g = \tau^f_g - \tau_g`: the predicted effects of its
members, collapsed to the group, minus the effect in the group ([1]_, Eqs. (5)-(10)). Both are
smooth functions of sums by (group, arm), so that a table of a few sums per arm is enough for the
estimates and their exact delta-method variances.

Write :math:`D` for the mean outcome without treatment, :math:`M` with it, and :math:`N` for the
mean outcome with treatment that the predictions imply. Then :math:`\tau = M/D`,
:math:`\tau^f = N/D`, and the error solves :math:`U - b D = 0` with :math:`U = N - M`. For effects
measured as differences :math:`D = 1`.

References
----------
.. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel and F. von Wangenheim (2026), Detecting and
   mitigating group bias in heterogeneous treatment effects (earlier: Detecting and mitigating
   algorithmic bias in treatment effect estimation). doi:10.48550/arXiv.2602.20383
"""

from dataclasses import dataclass, replace

import numpy as np

from equipoise._checks import check_finite, check_option
from equipoise._typing import AnyArray, BoolArray, Collapse, EffectMeasure, FloatArray, IntArray
from equipoise.exceptions import DataError, NotBinaryError
from equipoise.moments import CellMoments, CrossMoments, UnitMoments
from equipoise.stats.delta import Linearised, covariance_by_group
from equipoise.stats.effects.collapse import (
    collapse_parts,
    effect_quantities,
    resolve_collapse,
    row_quantities,
)
from equipoise.stats.effects.roots import (
    ContrastRoots,
    EffectContrasts,
    arm_units,
    bias_contrasts,
)
from equipoise.stats.small_samples import MIN_DF, MIN_UNITS

__all__ = [
    "UNTESTED",
    "GroupErrors",
    "corrected_errors",
    "effect_moments",
    "group_errors",
    "with_both_arms",
]

UNTESTED = {
    "one-arm-only": "fewer than two rows in one arm",
    "too-few-units": "fewer than four effective independent units in one arm",
    "no-control-positives": "the mean outcome without treatment is not positive",
    "no-variation": "the outcome does not vary",
}
"""Why a group has no error: note code and words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupErrors:
    r"""Effects, collapsed predictions and prediction errors by group.

    Arrays of shape (T,) follow `tested`; the others have one entry for each of the G groups.

    Parameters
    ----------
    measure, collapse : str
        The effect measure, and how predictions were collapsed.
    moments : CellMoments
        The sums, group-major.
    n, n_control, n_treated : array of shape (G,)
        Rows.
    tested : array of shape (T,)
        Groups that have an error.
    untested : dict
        The other groups, each with a key of ``UNTESTED``.
    effect, effect_se, predicted, predicted_se : array of shape (T,)
        The effect :math:`\tau` and the collapsed predictions :math:`\tau^f`.
    error, error_se : array of shape (T,)
        :math:`B = \tau^f - \tau` and its standard error.
    second_order_bias : array of shape (T,)
        Bias of `error` of order 1/n; subtract it for a bias-corrected error.
    control_strength : array of shape (T,)
        :math:`D^2/\mathrm{Var}(D)`: for a rare 0/1 outcome the number of control positives; zero
        for differences, whose D is not estimated.
    numerator, denominator : Linearised
        U and D for all groups; zero for groups with one arm only.
    weight : Linearised
        Size of each group, as it enters the rest of the others.
    covariance : array of shape (G, 2, 2)
        Of U and D.
    arm_ratio : float, optional
        Set for data of positives only.
    split : bool
        Whether effects and predictions come from separate halves.
    names : tuple of str
        The quantities.
    n_strata : int
        Strata within which treatment was assigned.
    binary : bool
        Whether outcomes are 0/1.
    n_units, n_eff, df : array of shape (G, 2)
        Independent units of each arm, effective ones, and degrees of freedom of its variance; NaN
        without sums of higher order.
    adjusted : ContrastRoots, optional
        The law of the tested groups after regression adjustment.
    """

    measure: str
    collapse: str
    moments: CellMoments
    n: IntArray
    n_control: IntArray
    n_treated: IntArray
    tested: IntArray
    untested: dict[int, str]
    effect: FloatArray
    effect_se: FloatArray
    predicted: FloatArray
    predicted_se: FloatArray
    error: FloatArray
    error_se: FloatArray
    second_order_bias: FloatArray
    control_strength: FloatArray
    numerator: Linearised
    denominator: Linearised
    weight: Linearised
    covariance: FloatArray
    arm_ratio: float | None
    split: bool
    names: tuple[str, ...]
    n_strata: int
    binary: bool
    n_units: FloatArray
    n_eff: FloatArray
    df: FloatArray
    adjusted: ContrastRoots | None = None


def effect_moments(
    outcome: AnyArray,
    treatment: AnyArray,
    effect_pred: AnyArray,
    group: AnyArray,
    *,
    measure: EffectMeasure = "relative",
    collapse: Collapse = "auto",
    control_pred: AnyArray | None = None,
    treated_pred: AnyArray | None = None,
    half: AnyArray | None = None,
    n_groups: int | None = None,
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
    count: AnyArray | None = None,
) -> CellMoments:
    """Sum rows by (group, arm), ready for `group_errors`.

    Parameters
    ----------
    outcome, treatment, effect_pred : array of shape (n,)
        The response, the arm (0 or 1) and the predicted effect of each row.
    group : array of shape (n,)
        Group codes 0 to G - 1.
    measure, collapse : str
        As in `group_errors`.
    control_pred, treated_pred : array of shape (n,), optional
        Predictions of the outcome without and with treatment, made on other data or cross-fitted.
    half : array of shape (n,), optional
        0 for the prediction set, 1 for the estimation set; with it cells are (group, half, arm).
    n_groups : int, optional
        G; by default one more than the largest code.
    cluster, weight, count : array of shape (n,), optional
        Unit of randomisation or repeated unit; sampling weight; multiplicity.

    Returns
    -------
    CellMoments
        Cell ``2 g + arm``, or ``4 g + 2 half + arm``.

    Raises
    ------
    NotBinaryError
        If `treatment` is not 0/1.
    DataError
        If an outcome is negative and the collapse weights by outcomes.

    Examples
    --------
    >>> import numpy as np
    >>> sums = effect_moments([1, 0, 1, 1], [0, 0, 1, 1], [1.2, 1.1, 1.3, 1.2], [0, 0, 0, 0])
    >>> sums.total.tolist()
    [[2.0, 1.0, 1.2], [2.0, 2.0, 2.5]]
    """
    y = check_finite("outcome", outcome, ndim=1)
    t = check_finite("treatment", treatment, ndim=1)
    f = check_finite("effect_pred", effect_pred, ndim=1)
    mu0 = None if control_pred is None else check_finite("control_pred", control_pred, ndim=1)
    mu1 = None if treated_pred is None else check_finite("treated_pred", treated_pred, ndim=1)
    bad = np.setdiff1d(t, [0.0, 1.0])
    if bad.size:
        raise NotBinaryError(
            f"`treatment` must be 0 (control) or 1 (treated); found {bad[0]:g}. Code the arms as 0"
            " and 1, one audit for each pair of arms."
        )
    kind = resolve_collapse(
        measure, collapse, control_pred=mu0 is not None, treated_pred=mu1 is not None
    )
    if kind in {"control", "positives"} and y.size and float(y.min()) < 0:
        raise DataError(
            f'collapse="{kind}" weights by outcomes, which must not be negative; the smallest is'
            f' {y.min():g}. Use measure="difference", or collapse="aipw" with `control_pred`.'
        )
    names = effect_quantities(measure, kind, treated_pred=mu1 is not None)
    code = np.asarray(group, dtype=np.int64)
    size = int(code.max(initial=-1)) + 1 if n_groups is None else n_groups
    cells = 2 if half is None else 4
    cell = code * cells + t.astype(np.int64)
    if half is not None:
        cell += 2 * np.asarray(half, dtype=np.int64)
    return CellMoments.from_rows(
        row_quantities(names, y=y, f=f, mu0=mu0, mu1=mu1),
        cell,
        n_cells=size * cells,
        cluster=cluster,
        weight=weight,
        count=count,
        order=3,
    )


def with_both_arms(moments: CellMoments, n_strata: int) -> tuple[CellMoments, IntArray]:
    """Leave out the strata of a group in which one arm has no rows.

    Parameters
    ----------
    moments : CellMoments
        Sums by (group, stratum, arm).
    n_strata : int
        S.

    Returns
    -------
    CellMoments
        With zeros in those cells.
    array of shape (G,)
        Rows left out of each group.
    """
    n = moments.n.reshape(-1, 2)
    keep = np.repeat(n.min(axis=1) > 0, 2)
    left_out = np.where(keep, 0, moments.n).reshape(-1, 2 * n_strata).sum(axis=1)
    if keep.all():
        return moments, left_out

    def kept(values: FloatArray) -> FloatArray:
        return np.where(keep.reshape(-1, *[1] * (values.ndim - 1)), values, 0.0)

    units, cross = moments.units, moments.cross
    if units is not None:
        units = UnitMoments(
            n=kept(units.n),
            third=kept(units.third),
            fourth=kept(units.fourth),
            fifth=kept(units.fifth),
        )
    if cross is not None:
        both = keep[cross.first] & keep[cross.second]
        cross = CrossMoments(
            first=cross.first[both],
            second=cross.second[both],
            product=cross.product[both],
            squares=None if cross.squares is None else cross.squares[both],
        )
    kept_moments = replace(
        moments,
        n=np.where(keep, moments.n, 0),
        total=kept(moments.total),
        product=kept(moments.product),
        units=units,
        cross=cross,
    )
    return kept_moments, left_out


def group_errors(
    moments: CellMoments,
    *,
    measure: EffectMeasure = "relative",
    collapse: str = "control",
    names: tuple[str, ...] | None = None,
    arm_ratio: float | None = None,
    split: bool = False,
    n_strata: int = 1,
    binary: bool | None = None,
    adjusted: EffectContrasts | None = None,
) -> GroupErrors:
    r"""Estimate the effect, the collapsed predictions and the prediction error of every group.

    Parameters
    ----------
    moments : CellMoments
        Sums of `effect_quantities` by (group, arm), group-major; with `split` by
        (group, half, arm), with strata by (group, stratum, arm), in which a stratum of a group has
        both arms or no rows at all (`with_both_arms`).
    measure : {"relative", "difference"}
        :math:`E Y(1) / E Y(0)` (Eq. (15)) or :math:`E Y(1) - E Y(0)` (Eq. (55)).
    collapse : {"control", "aipw", "hajek", "mean", "weighted", "positives"}
        How predictions are averaged; see Notes.
    names : tuple of str, optional
        The quantities; by default those of the collapse.
    arm_ratio : float, optional
        Treated rows per control row by design, when the table holds the positive outcomes only.
    split : bool, default False
        Predictions from half 0, effects from half 1, as the paper does.
    n_strata : int, default 1
        Strata within which treatment was assigned; means of arms are averages over the strata.
    binary : bool, optional
        Whether outcomes are 0/1; by default found from the sums, where rows are independent and
        have no weights.
    adjusted : EffectContrasts, optional
        Errors of differences after regression adjustment of rows in memory; groups that it does not
        test have no error.

    Returns
    -------
    GroupErrors

    Notes
    -----
    With sums of higher order, a group with fewer than four effective units in an arm has no error.

    The target of a relative collapse is :math:`E[Y(0) f]/E[Y(0)]`.

    ============ =========================================== ====================================
    collapse     formula                                     consistent when
    ============ =========================================== ====================================
    "control"    mean of yf over mean of y, controls (19)    always, for outcomes >= 0
    "aipw"       augmented means of (yf; mu0 f), (y; mu0)    always, whatever mu0
    "hajek"      sum of mu0 f over sum of mu0                mu0 right in shape
    "weighted"   mean of mu0 f over control mean (16)        mu0 right in shape and scale; blind to
                                                             an error in p0 when f = p1/p0, mu0 = p0
    "positives"  (20)                                        f constant in the group only
    "mean"       mean of f (56)                              differences: always; relative: f
                                                             uncorrelated with Y(0) only
    ============ =========================================== ====================================

    *Deviations from* [1]_: no split, because the covariance is carried by the influence function
    and for a 0/1 outcome the two parts are uncorrelated (splitting doubles the variance); the
    variance of C.1 is that of :math:`m_0/m_1` and omits the collapse, here it is that of
    :math:`\tau^f - m_1/m_0`; variances are those of B, not of :math:`\sqrt n B`.

    References
    ----------
    .. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel and F. von Wangenheim (2026).
       doi:10.48550/arXiv.2602.20383

    Examples
    --------
    Predictions say that an offer doubles sales. Does it?

    >>> import numpy as np
    >>> y = np.r_[np.ones(100), np.zeros(900), np.ones(150), np.zeros(850)]
    >>> t = np.repeat([0, 1], 1000)
    >>> sums = effect_moments(y, t, np.full(2000, 2.0), np.zeros(2000, dtype=int))
    >>> found = group_errors(sums)
    >>> [round(float(x[0]), 3) for x in (found.effect, found.error, found.error_se)]
    [1.5, 0.5, 0.182]

    It raises them by half: predictions are too high by 0.5, with a standard error of 0.18.
    """
    check_option("measure", measure, EffectMeasure)
    n_cells = 4 if split else 2 * n_strata
    n_groups = len(moments.n) // n_cells
    total = moments.total.reshape(n_groups, n_cells, -1)
    arms = moments.n.reshape(n_groups, n_cells // 2, 2).sum(axis=1)
    smallest = moments.n.reshape(n_groups, n_cells).min(axis=1) if split else arms.min(axis=1)
    known = names or effect_quantities(measure, collapse, treated_pred=total.shape[2] == 6)
    units = arm_units(moments, known, n_cells)
    few = (units.n_eff < MIN_UNITS - 1e-9) | (units.df < MIN_DF - 1e-9)
    enough: BoolArray = np.asarray(~few.any(axis=1) | (moments.units is None))
    if adjusted is not None:
        enough = enough & adjusted.tested
    with np.errstate(divide="ignore", invalid="ignore"):
        implied, treated, control, weight = collapse_parts(
            total,
            measure=measure,
            collapse=collapse,
            names=known,
            arm_ratio=arm_ratio,
            split=split,
            n_strata=n_strata,
        )
        numerator = implied - treated
    finite = np.isfinite(numerator.gradient).all(axis=(1, 2)) & np.isfinite(numerator.value)
    finite &= np.isfinite(control.gradient).all(axis=(1, 2))
    usable = finite & (smallest >= 2) & enough
    numerator, control = _keep(numerator, usable), _keep(control, usable)
    weight = _keep(weight, usable)
    covariance = covariance_by_group(moments, [numerator, control])
    varies = _varies(moments, numerator) & _varies(moments, _residual(numerator, control))
    untested = _untested(arms, enough, usable, control.value, varies)
    tested = np.array([g for g in range(n_groups) if g not in untested], dtype=np.int64)
    d = control.take(tested)
    if measure == "relative":
        effect, predicted = treated.take(tested) / d, implied.take(tested) / d
    else:
        effect, predicted = treated.take(tested), implied.take(tested)
    error = numerator.take(tested) / d
    variance = _scatter_covariance(moments, [effect, predicted, error], tested, n_groups)
    v = covariance[tested]
    return GroupErrors(
        measure=measure,
        collapse=collapse,
        moments=moments,
        n=arms.sum(axis=1),
        n_control=arms[:, 0],
        n_treated=arms[:, 1],
        tested=tested,
        untested=untested,
        effect=effect.value,
        effect_se=np.sqrt(variance[:, 0, 0]),
        predicted=predicted.value,
        predicted_se=np.sqrt(variance[:, 1, 1]),
        error=error.value,
        error_se=np.sqrt(variance[:, 2, 2]),
        second_order_bias=(error.value * v[:, 1, 1] - v[:, 0, 1]) / d.value**2,
        control_strength=_ratio(d.value**2, v[:, 1, 1]),
        numerator=numerator,
        denominator=control,
        weight=weight,
        covariance=covariance,
        arm_ratio=arm_ratio,
        split=split,
        names=known,
        n_strata=n_strata,
        binary=_is_binary(moments, known) if binary is None else binary,
        n_units=units.n,
        n_eff=units.n_eff,
        df=units.df,
        adjusted=None
        if adjusted is None
        else ContrastRoots(
            error_contrast=adjusted.error[tested],
            bias_contrast=bias_contrasts(
                adjusted.error[tested], adjusted.size[tested], np.ones(len(tested), dtype=bool)
            ),
        ),
    )


def corrected_errors(errors: GroupErrors, amount: FloatArray) -> GroupErrors:
    r"""Return the errors that remain when `amount` is subtracted from the predictions.

    With amounts from the same data, an interval for the remaining error
    :math:`b_g - c_g` is the interval for :math:`b_g` shifted by the realised :math:`c_g`; it covers
    at its level. With amounts from other data the tests of the result are those of Eqs. (50) and
    (51) of [1]_.

    Parameters
    ----------
    errors : GroupErrors
        From `group_errors`.
    amount : array of shape (T,)
        What to subtract for each tested group; the others stay as they are.

    Returns
    -------
    GroupErrors

    Notes
    -----
    *Deviation from* [1]_: line 18 of Algorithm 1 corrects the rest as one group; here each group of
    the rest has its own correction, as when the correction is used.

    References
    ----------
    .. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel and F. von Wangenheim (2026).
       doi:10.48550/arXiv.2602.20383

    Examples
    --------
    >>> import numpy as np
    >>> y, t = np.tile([1, 0, 1, 1], 50), np.tile([0, 0, 1, 1], 50)
    >>> found = group_errors(effect_moments(y, t, np.full(200, 1.8), np.zeros(200, dtype=int)))
    >>> float(corrected_errors(found, np.array([-0.1])).error[0].round(6))
    -0.1
    """
    c = np.zeros(len(errors.n))
    c[errors.tested] = amount
    shift = Linearised(value=c, gradient=np.zeros_like(errors.numerator.gradient))
    numerator = errors.numerator - errors.denominator * shift
    return replace(
        errors,
        predicted=errors.predicted - amount,
        error=errors.error - amount,
        numerator=numerator,
        covariance=covariance_by_group(errors.moments, [numerator, errors.denominator]),
    )


def _keep(function: Linearised, usable: BoolArray) -> Linearised:
    return Linearised(
        value=np.where(usable, function.value, 0.0),
        gradient=np.where(usable[:, None, None], function.gradient, 0.0),
    )


def _is_binary(moments: CellMoments, names: tuple[str, ...]) -> bool:
    """Return whether outcomes are seen to be 0/1: sums of y and of its square agree."""
    alone = moments.cross is None and np.array_equal(moments.product[:, 0, 0], moments.n)
    if "y" not in names or not alone:
        return False
    k = names.index("y")
    return bool(np.array_equal(moments.product[:, k, k], moments.total[:, k]))


def _untested(
    arms: IntArray, enough: BoolArray, usable: BoolArray, control: FloatArray, varies: BoolArray
) -> dict[int, str]:
    reasons: dict[int, str] = {}
    for g in range(len(arms)):
        if arms[g].min() < 2:
            reasons[g] = "one-arm-only"
        elif not enough[g]:
            reasons[g] = "too-few-units"
        elif not usable[g] or control[g] <= 0:
            reasons[g] = "no-control-positives"
        elif not varies[g]:
            reasons[g] = "no-variation"
    return reasons


def _residual(numerator: Linearised, control: Linearised) -> Linearised:
    """Return U - B D with B held at its estimate: its variance is that of the error."""
    error = np.zeros_like(control.value)
    np.divide(numerator.value, control.value, out=error, where=control.value > 0)
    return numerator - control * Linearised(value=error, gradient=np.zeros_like(control.gradient))


def _varies(moments: CellMoments, function: Linearised) -> BoolArray:
    """Return where the variance of a function is more than the rounding error of its terms."""
    gradient = np.abs(function.gradient)
    product = np.abs(moments.product).reshape(*gradient.shape, gradient.shape[2])
    scale = np.einsum("gcp,gcpq,gcq->g", gradient, product, gradient)
    varies: BoolArray = covariance_by_group(moments, [function])[:, 0, 0] > 1e-13 * scale
    return varies


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    ratio = np.zeros_like(numerator)
    np.divide(numerator, denominator, out=ratio, where=denominator > 0)
    return ratio


def _scatter_covariance(
    moments: CellMoments, functions: list[Linearised], tested: IntArray, n_groups: int
) -> FloatArray:
    """Covariance of functions that exist for tested groups only."""
    full = []
    for function in functions:
        gradient = np.zeros((n_groups, *function.gradient.shape[1:]))
        gradient[tested] = function.gradient
        full.append(Linearised(value=np.zeros(n_groups), gradient=gradient))
    return covariance_by_group(moments, full)[tested]
