r"""What corrections of predicted effects buy, and what they cost.

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
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from equipoise._checks import check_finite, check_fraction, check_integer, check_rng
from equipoise._typing import AnyArray, Correction, EffectMeasure, FloatArray, IntArray, Rng
from equipoise.moments import CellMoments
from equipoise.stats.effects.collapse import effect_quantities, row_quantities
from equipoise.stats.effects.corrections import effect_correction
from equipoise.stats.effects.effect_scores import EffectScores
from equipoise.stats.effects.errors import group_errors, with_both_arms
from equipoise.stats.effects.evaluation import N_FOLDS, thinned_errors
from equipoise.stats.effects.policy import PolicyRule, ValueChange, value_change
from equipoise.stats.influence import InfluenceSums

__all__ = [
    "CorrectionPrice",
    "ExperimentRows",
    "correction_prices",
    "crossfitted_amounts",
    "policy_prices",
]


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
