r"""What corrections of predicted effects leave for new rows, what they buy, and what they cost.

Algorithm 1 of [1]_: estimate errors and corrections on one half of the data, measure what remains
on the other, swap, repeat with new halves. The errors of random halves follow the normal law of
the errors of the whole: with :math:`\hat B \sim N(b, \Sigma)` and an own draw
:math:`Z \sim N(0, \Sigma)`, the two numbers :math:`\hat B \pm Z` are independent with covariance
:math:`2 \Sigma`, as the errors of two halves are ([2]_, [3]_). So no row is read, keyed or sorted
for a half.

A correction subtracts an amount :math:`c_g` from the predictions of a group whose error is
:math:`b_g`. It buys a smaller error of the group, and it can cost two things: accuracy for persons,
and the value of the decisions that rest on the predictions. The first is no price at all: for any
score :math:`\Gamma` with the right mean,

.. math:: E[(\Gamma - f + c_g)^2 - (\Gamma - f)^2 \mid g] = c_g^2 - 2 c_g b_g
          = (b_g - c_g)^2 - b_g^2,

so that the personal squared loss changes by what the squared error of the group changes by ([1]_,
section 6.5, sees a trade-off there). Decisions are another matter: a group whose predictions were
too high is treated less.

References
----------
.. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel and F. von Wangenheim (2026), Detecting and
   mitigating group bias in heterogeneous treatment effects (earlier: Detecting and mitigating
   algorithmic bias in treatment effect estimation). doi:10.48550/arXiv.2602.20383
.. [2] N. L. Oliveira, J. Lei and R. J. Tibshirani (2022), Unbiased test error estimation in the
   Poisson means problem via coupled bootstrap techniques. https://doi.org/10.48550/arXiv.2212.01943
.. [3] J. Leiner, B. Duan, L. Wasserman and A. Ramdas (2025), Data fission: splitting a single data
   point, Journal of the American Statistical Association 120, 135-146.
   https://doi.org/10.1080/01621459.2023.2270748
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from scipy import special

from equipoise._checks import (
    check_finite,
    check_fraction,
    check_integer,
    check_option,
    check_rng,
)
from equipoise._typing import AnyArray, Correction, EffectMeasure, FloatArray, IntArray, Rng
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.stats.effects.collapse import effect_quantities, row_quantities
from equipoise.stats.effects.corrections import MANY_GROUPS, default_correction, effect_correction
from equipoise.stats.effects.effect_scores import EffectScores
from equipoise.stats.effects.errors import group_errors, with_both_arms
from equipoise.stats.effects.policy import PolicyRule, ValueChange, value_change
from equipoise.stats.influence import InfluenceSums

__all__ = [
    "CorrectionPrice",
    "EffectEvaluation",
    "ExperimentRows",
    "Recommendation",
    "correction_prices",
    "crossfitted_amounts",
    "evaluate_corrections",
    "policy_prices",
    "recommend_correction",
    "thinned_errors",
]


N_FOLDS = 10
"""Parts of the evaluation of the recommended rule: corrections come from nine of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectEvaluation:
    """What each correction leaves on data that it has not seen.

    Parameters
    ----------
    corrections : tuple of str
        The rules, in the order of the arrays.
    error_mean_square, bias_mean_square : array of shape (R,)
        Estimates without sampling noise of the mean over groups of :math:`(b_g - c_g)^2`, and of
        the same for the bias against the rest. Can be negative when nothing remains.
    error_spread : array of shape (R,)
        Standard deviation of `error_mean_square` between repeats.
    raw_mean_square : array of shape (R,)
        Mean of the squared estimates, sampling noise included.
    rejected : array of shape (R,)
        Share of groups whose remaining error is tested non-zero at `alpha`.
    n_repeats, n_groups : int
        Halvings, each used both ways; groups.
    """

    corrections: tuple[str, ...]
    error_mean_square: FloatArray
    bias_mean_square: FloatArray
    error_spread: FloatArray
    raw_mean_square: FloatArray
    rejected: FloatArray
    n_repeats: int
    n_groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Whether to correct, and what it is expected to change.

    Parameters
    ----------
    rule : str
        "none", unless it is shown that predictions err.
    candidate : str
        The rule that would be used.
    p_zero : float
        Of the test that no group's predictions err.
    delta, delta_se : float
        Change of the mean over groups of the squared error by the candidate, on data that it has
        not seen, and its standard error; below zero is better.
    """

    rule: str
    candidate: str
    p_zero: float
    delta: float
    delta_se: float


def thinned_errors(
    error: AnyArray,
    covariance: AnyArray,
    *,
    n_folds: int = 2,
    n_repeats: int = 1,
    rng: Rng = None,
) -> FloatArray:
    r"""Draw what the errors of random parts of the rows could be.

    Parameters
    ----------
    error : array of shape (G,)
        Errors of all rows.
    covariance : array of shape (G, G)
        Of the errors.
    n_folds : int, default 2
        Parts of equal size, K.
    n_repeats : int, default 1
        Partitions.
    rng : Generator, int or None
        For the draws; the names of the groups do not matter.

    Returns
    -------
    array of shape (n_repeats, n_folds, G)
        Parts are independent with covariance :math:`K \Sigma`; their mean is `error`.

    Examples
    --------
    >>> import numpy as np
    >>> halves = thinned_errors([0.1, 0.3], np.eye(2) * 0.01, rng=0)[0]
    >>> halves.mean(axis=0).round(3).tolist()
    [0.1, 0.3]
    """
    b = check_finite("error", error, ndim=1)
    v = check_finite("covariance", covariance, ndim=2)
    if v.shape != (len(b), len(b)):
        raise InvalidParameterError(
            f"`covariance` must be {len(b)} by {len(b)}, as `error` has {len(b)} groups; got"
            f" {v.shape}."
        )
    generator = check_rng(rng)
    # An order made of numbers: draws do not depend on the names of the groups.
    order = np.lexsort((b, np.diag(v)))
    values, vectors = np.linalg.eigh(v[np.ix_(order, order)])
    # The sign of an eigenvector is arbitrary; a symmetric root has none.
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    draws = generator.standard_normal((n_repeats, n_folds, len(b)))
    draws -= draws.mean(axis=1, keepdims=True)
    noise = np.empty_like(draws)
    noise[..., order] = np.sqrt(n_folds) * (draws @ root)
    return np.asarray(b + noise)


def evaluate_corrections(
    error: AnyArray,
    covariance: AnyArray,
    *,
    weight: AnyArray | None = None,
    corrections: tuple[Correction, ...] | None = None,
    n_repeats: int = 10,
    alpha: float = 0.05,
    rng: Rng = None,
) -> EffectEvaluation:
    r"""Compare corrections by what they leave on the other half, split and swap.

    Parameters
    ----------
    error : array of shape (G,)
        Prediction errors of two groups or more.
    covariance : array of shape (G, G)
        Of the errors.
    weight : array of shape (G,), optional
        Of the groups in the rest of the others; by default equal.
    corrections : tuple of str, optional
        Rules to compare; by default all, "npmle" from 50 groups only.
    n_repeats : int, default 10
        Halvings.
    alpha : float, default 0.05
        Level of "mean_if_detected" and of `rejected`.
    rng : Generator, int or None
        For the halves.

    Returns
    -------
    EffectEvaluation

    Notes
    -----
    The remaining mean square is estimated by the mean of
    :math:`(\tilde B_g - c_g)^2 - \tilde s_g^2` with :math:`\tilde B_g` from the other half; the
    raw mean square is mostly noise.
    *Deviations from* [1]_: halves follow the normal law of the errors, no rows are split; exact
    variances instead of 50 bootstrap draws; no second split into prediction and estimation sets;
    each group of the rest is corrected by its own amount.

    References
    ----------
    .. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel and F. von Wangenheim (2026).
       doi:10.48550/arXiv.2602.20383

    Examples
    --------
    Six groups whose errors are no larger than their standard errors. Should they be corrected?

    >>> import numpy as np
    >>> error = np.array([0.03, -0.05, 0.02, 0.04, -0.01, -0.03])
    >>> found = evaluate_corrections(error, np.eye(6) * 0.05**2, corrections=("none", "mean"),
    ...                              rng=0)
    >>> bool(found.error_mean_square[1] > found.error_mean_square[0])
    True

    No: subtracting the estimates would add their noise.
    """
    b = check_finite("error", error, ndim=1)
    v = check_finite("covariance", covariance, ndim=2)
    if len(b) < 2:
        raise InvalidParameterError(f"an evaluation needs at least two groups; got {len(b)}.")
    check_integer("n_repeats", n_repeats, low=1)
    level = check_fraction("alpha", alpha)
    rules = corrections or all_rules(len(b))
    for rule in rules:
        check_option("corrections", rule, Correction)
    share = np.ones(len(b)) if weight is None else check_finite("weight", weight, ndim=1)
    contrast = np.eye(len(b)) - (1.0 - np.eye(len(b))) * share / (share.sum() - share)[:, None]
    halves = thinned_errors(b, v, n_repeats=n_repeats, rng=rng)
    variance = 2.0 * np.diag(v)
    se = np.sqrt(variance)
    bias_variance = 2.0 * np.diag(contrast @ v @ contrast.T)
    critical = -float(special.ndtri(level / 2))
    parts = np.empty((n_repeats, 2, len(rules), 4))
    for repeat, half in np.ndindex(n_repeats, 2):
        seen, new = halves[repeat, half], halves[repeat, 1 - half]
        for k, rule in enumerate(rules):
            left = new - effect_correction(seen, se, method=rule, alpha=level).amount
            parts[repeat, half, k] = (
                np.mean(left**2 - variance),
                np.mean((contrast @ left) ** 2 - bias_variance),
                np.mean(left**2),
                np.mean(np.abs(left / se) > critical),
            )
    by_repeat = parts.mean(axis=1)
    means = by_repeat.mean(axis=0)
    return EffectEvaluation(
        corrections=tuple(rules),
        error_mean_square=means[:, 0],
        bias_mean_square=means[:, 1],
        error_spread=by_repeat[:, :, 0].std(axis=0),
        raw_mean_square=means[:, 2],
        rejected=means[:, 3],
        n_repeats=n_repeats,
        n_groups=len(b),
    )


def all_rules(n_groups: int) -> tuple[Correction, ...]:
    """Return the rules that so many groups allow: "npmle" needs 50."""
    return tuple(c for c in get_args(Correction) if c != "npmle" or n_groups >= MANY_GROUPS)


def recommend_correction(
    error: AnyArray,
    covariance: AnyArray,
    *,
    p_zero: float,
    alpha: float = 0.05,
    rng: Rng = None,
) -> Recommendation:
    r"""Say whether to correct predictions, and what it is expected to change.

    Parameters
    ----------
    error : array of shape (G,)
        Prediction errors.
    covariance : array of shape (G, G)
        Of the errors.
    p_zero : float
        Of the test that all errors are zero.
    alpha : float, default 0.05
        Level at which that test allows a correction.
    rng : Generator, int or None
        For the ten parts.

    Returns
    -------
    Recommendation

    Notes
    -----
    The change of risk :math:`\frac{1}{G} \sum (c_g^2 - 2 c_g \tilde B_g)`, with c from nine parts
    and :math:`\tilde B` from the tenth, is unbiased: the noise of :math:`\tilde B` cancels.
    The rule with the smallest estimate is not recommended for being the smallest: that recommends
    something in 37% of tables of three groups without any error, the test in 6%.

    Examples
    --------
    >>> import numpy as np
    >>> found = recommend_correction([0.3, -0.2], np.eye(2) * 0.05**2, p_zero=1e-6, rng=0)
    >>> found.rule, bool(found.delta < 0)
    ('bayes_zero', True)
    """
    b = check_finite("error", error, ndim=1)
    v = check_finite("covariance", covariance, ndim=2)
    level = check_fraction("alpha", alpha)
    rule = default_correction(len(b))
    folds = thinned_errors(b, v, n_folds=N_FOLDS, rng=rng)[0]
    others = (N_FOLDS * b - folds) / (N_FOLDS - 1)
    se = np.sqrt(np.diag(v) * N_FOLDS / (N_FOLDS - 1))
    amounts = np.stack([effect_correction(seen, se, method=rule).amount for seen in others])
    change = np.mean(amounts**2 - 2.0 * amounts * folds, axis=1)
    # Folds are independent of each other; an amount is given its own fold.
    spread = 4.0 * N_FOLDS * np.einsum("kg,gh,kh->k", amounts, v, amounts) / len(b) ** 2
    return Recommendation(
        rule=rule if p_zero <= level else "none",
        candidate=rule,
        p_zero=float(p_zero),
        delta=float(change.mean()),
        delta_se=float(np.sqrt(spread.sum()) / N_FOLDS),
    )


MOST_DEALT = 10_000_000
"""Copies of rows that are dealt out one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionPrice:
    """What one rule buys and costs, on data that it has not seen.

    Parameters
    ----------
    rule : str
        The correction.
    group_error : float
        Root mean square over groups, by size, of the errors that it leaves; sampling noise is taken
        out.
    loss, loss_se : float
        Change of the personal squared error; below zero is better.
    """

    rule: Correction
    group_error: float
    loss: float
    loss_se: float


def correction_prices(
    error: AnyArray,
    covariance: AnyArray,
    *,
    weight: AnyArray | None = None,
    corrections: tuple[Correction, ...],
    alpha: float = 0.05,
    n_repeats: int = 10,
    rng: Rng = None,
) -> tuple[CorrectionPrice, ...]:
    r"""Return the group error and the personal loss that each rule leads to.

    Parameters
    ----------
    error : array of shape (G,)
        Prediction errors.
    covariance : array of shape (G, G)
        Of the errors.
    weight : array of shape (G,), optional
        Sizes of the groups; by default equal.
    corrections : tuple of str
        The rules.
    alpha : float, default 0.05
        Level of "mean_if_detected".
    n_repeats : int, default 10
        Partitions into ten parts; amounts come from nine of them and are judged on the tenth.
    rng : Generator, int or None
        For the parts.

    Returns
    -------
    tuple of CorrectionPrice

    Examples
    --------
    Two groups err by three standard errors in opposite directions.

    >>> import numpy as np
    >>> none, shrunk = correction_prices([0.3, -0.3], np.eye(2) * 0.1**2, rng=0,
    ...                                  corrections=("none", "bayes_zero"))
    >>> bool(shrunk.group_error < none.group_error), bool(shrunk.loss < 0), none.loss
    (True, True, 0.0)
    """
    b = check_finite("error", error, ndim=1)
    v = check_finite("covariance", covariance, ndim=2)
    level = check_fraction("alpha", alpha)
    check_integer("n_repeats", n_repeats, low=1)
    size = np.ones(len(b)) if weight is None else check_finite("weight", weight, ndim=1)
    share = size / size.sum()
    parts = thinned_errors(b, v, n_folds=N_FOLDS, n_repeats=n_repeats, rng=rng)
    parts = parts.reshape(-1, len(b))
    others = (N_FOLDS * b - parts) / (N_FOLDS - 1)
    se = np.sqrt(np.diag(v) * N_FOLDS / (N_FOLDS - 1))
    before = float(share @ (b**2 - np.diag(v)))
    found = []
    for rule in corrections:
        c = np.stack([effect_correction(x, se, method=rule, alpha=level).amount for x in others])
        loss = float(np.mean((c**2 - 2.0 * c * parts) @ share))
        # Parts are independent of each other, and an amount is judged on a part of its own.
        spread = 4.0 * float(np.mean(np.einsum("kg,gh,kh->k", c * share, v, c * share)))
        found.append(
            CorrectionPrice(
                rule=rule,
                group_error=float(np.sqrt(max(before + loss, 0.0))),
                loss=loss,
                loss_se=float(np.sqrt(spread)),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExperimentRows:
    """Rows of an experiment with two arms.

    Parameters
    ----------
    outcome, predicted : array of shape (n,)
        Response; predicted effect.
    treated : array of bool of shape (n,)
        Arm.
    group, stratum : array of int of shape (n,)
        Codes from 0.
    n_strata : int
        Strata within which treatment was assigned.
    chance : array of shape (n,), optional
        Known chance of treatment.
    scores : EffectScores
        Doubly robust scores.
    rows : InfluenceSums
        Weights, counts and units.
    """

    outcome: FloatArray
    predicted: FloatArray
    treated: AnyArray
    group: IntArray
    stratum: IntArray
    n_strata: int
    chance: FloatArray | None
    scores: EffectScores
    rows: InfluenceSums

    def dealt(self, rng: np.random.Generator) -> tuple["ExperimentRows", IntArray]:
        """Deal the rows out to ten parts, whole units together.

        Parameters
        ----------
        rng : numpy.random.Generator
            For the parts; the order of the rows and the names of groups do not matter.

        Returns
        -------
        ExperimentRows
            The rows; one that stands for several is split between the parts.
        array of int of shape (n,)
            The part of each.
        """
        rows, unit = self.rows, self.rows.unit
        size = np.bincount(self.group, rows.count)[self.group]
        arm = np.asarray(self.treated, np.float64)
        # Only proportions of weights count.
        weight = rows.weight / rows.weight.mean()
        values = (self.scores.score, self.predicted, self.outcome, weight, arm, size)
        if unit is not None:
            sums = [np.bincount(unit, weight * rows.count * x) for x in values]
            order = np.lexsort([np.round(x, 9) for x in sums])
            part = np.empty(len(order), dtype=np.int64)
            part[order] = rng.permutation(np.arange(len(order)) % N_FOLDS)
            return self, part[unit]
        order = np.lexsort([np.round(x, 9) for x in values])
        copies = _dealt(rows.count[order].astype(np.int64), rng)
        if len(copies) == int(copies.sum()):
            part = np.empty(len(order), dtype=np.int64)
            part[order] = copies.argmax(axis=1)
            return self, part
        place, part = np.nonzero(copies)
        index, count = order[place], copies[place, part].astype(np.float64)
        own = replace(self.scores[index], mass=rows.weight[index] * count)
        split = ExperimentRows(
            outcome=self.outcome[index],
            predicted=self.predicted[index],
            treated=self.treated[index],
            group=self.group[index],
            stratum=self.stratum[index],
            n_strata=self.n_strata,
            chance=None if self.chance is None else self.chance[index],
            scores=own,
            rows=InfluenceSums(weight=rows.weight[index], count=count),
        )
        return split, part

    def errors(self, keep: AnyArray, measure: EffectMeasure) -> tuple[IntArray, FloatArray]:
        """Return the groups of some rows that have an error; and errors and standard errors."""
        weighted = self.chance is not None
        names = effect_quantities(measure, _PLAIN[measure], weighted=weighted)
        w = None
        if self.chance is not None:
            w = np.where(self.treated, 1.0 / self.chance, 1.0 / (1.0 - self.chance))
        cell = 2 * (self.group * self.n_strata + self.stratum) + self.treated
        values = row_quantities(names, y=self.outcome, f=self.predicted, w=w)
        moments = CellMoments.from_rows(
            values[keep],
            cell[keep],
            n_cells=2 * self.n_strata * (int(self.group.max()) + 1),
            cluster=None if self.rows.unit is None else self.rows.unit[keep],
            weight=self.rows.weight[keep],
            count=self.rows.count[keep],
        )
        found = group_errors(
            with_both_arms(moments, self.n_strata)[0],
            measure=measure,
            collapse=_PLAIN[measure],
            names=names,
            n_strata=self.n_strata,
        )
        return found.tested, np.stack([found.error, found.error_se])


def _dealt(count: IntArray, rng: np.random.Generator) -> IntArray:
    """Deal copies of rows out to ten parts, (n, 10): as many rows would be, written out."""
    total = int(count.sum())
    if total > MOST_DEALT:
        # Of so many the parts are alike in law, and cheaper to draw.
        return rng.multinomial(count, np.full(N_FOLDS, 1.0 / N_FOLDS))
    hand = rng.permutation(np.resize(np.arange(N_FOLDS, dtype=np.uint8), total))
    place = np.repeat(np.arange(len(count)), count) * N_FOLDS + hand
    return np.bincount(place, minlength=len(count) * N_FOLDS).reshape(-1, N_FOLDS)


_PLAIN: dict[EffectMeasure, str] = {"relative": "control", "difference": "mean"}
"""The collapse that needs no model."""


def crossfitted_amounts(
    experiment: ExperimentRows,
    part: IntArray,
    *,
    measure: EffectMeasure,
    corrections: tuple[Correction, ...],
    alpha: float = 0.05,
) -> dict[Correction, FloatArray]:
    """Return what each rule subtracts from the prediction of a row, from rows of other parts.

    Parameters
    ----------
    experiment : ExperimentRows
        n rows.
    part : array of int of shape (n,)
        As `ExperimentRows.dealt` gives them.
    measure : {"relative", "difference"}
        What the predictions predict.
    corrections : tuple of str
        The rules.
    alpha : float, default 0.05
        Level of "mean_if_detected".

    Returns
    -------
    dict of str to array of shape (n,)
        Zero for groups whose error the other parts do not tell.
    """
    level = check_fraction("alpha", alpha)
    amounts = {rule: np.zeros(len(part)) for rule in corrections}
    n_groups = int(experiment.group.max()) + 1
    for k in np.unique(part):
        mine = part == k
        tested, (error, se) = experiment.errors(~mine, measure)
        usable = np.isfinite(error) & np.isfinite(se) & (se > 0.0)
        if not usable.any():
            continue
        for rule, amount in amounts.items():
            found = effect_correction(error[usable], se[usable], method=rule, alpha=level)
            by_group = np.zeros(n_groups)
            by_group[tested[usable]] = found.amount
            amount[mine] = by_group[experiment.group[mine]]
    return amounts


def policy_prices(
    experiment: ExperimentRows,
    *,
    measure: EffectMeasure,
    corrections: tuple[Correction, ...],
    threshold: float | None = None,
    budget: float | None = None,
    cost: float = 0.0,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> Mapping[Correction, ValueChange]:
    """Return what each correction changes in whom a rule treats, and what that is worth.

    Parameters
    ----------
    experiment : ExperimentRows
        The rows.
    measure : {"relative", "difference"}
        What the predictions predict.
    corrections : tuple of str
        The rules of correction.
    threshold, budget : float, optional
        Smallest prediction that is treated, or share of all rows; one of the two.
    cost : float, default 0
        Of treating one person, in units of the outcome.
    alpha : float, default 0.05
        Level of "mean_if_detected".
    confidence_level : float, default 0.95
        Of the intervals.
    rng : Generator, int or None
        For ten parts of the rows: amounts come from nine of them and are judged on the tenth.

    Returns
    -------
    dict of str to ValueChange
    """
    rows, part = experiment.dealt(check_rng(rng))
    amounts = crossfitted_amounts(rows, part, measure=measure, corrections=corrections, alpha=alpha)

    def treated(predicted: FloatArray) -> PolicyRule:
        return PolicyRule.of(predicted, rows.rows, threshold=threshold, budget=budget)

    before = treated(rows.predicted)
    return {
        rule: value_change(
            rows.scores,
            rows.rows,
            before,
            treated(rows.predicted - amount),
            cost=cost,
            confidence_level=confidence_level,
        )
        for rule, amount in amounts.items()
    }
