"""Judge a candidate beside the status quo on rows it was not built on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise._typing import FloatArray, IntArray
from equipoise.audits.improvement.decision_rows import DecisionRows, capacity_needed, utility_name
from equipoise.audits.improvement.form import SplitResult
from equipoise.data.metrics import Metric
from equipoise.exceptions import GroupTooSmallError
from equipoise.search.sample import Algorithm, Utility
from equipoise.stats.improvement.capacity import ScoredDecisions, select_top, with_estimated_cutoffs
from equipoise.stats.improvement.frontier import SplitEvidence
from equipoise.stats.improvement.test import (
    MIN_SUPPORT,
    Direction,
    ImprovementQuestion,
    ImprovementTest,
    compare_utilities,
)
from equipoise.stats.improvement.utilities import (
    UtilityEstimates,
    counted_units,
    estimate_utilities,
)

__all__ = ["Setting", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What stays the same in every split.

    Parameters
    ----------
    rows : DecisionRows
        All rows.
    metrics : tuple of str or Metric
        Distinct metrics, accuracy first.
    question : ImprovementQuestion
        What counts as an improvement.
    capacity : float, optional
        Share of people that may be selected.
    delta_accuracy, delta_fairness : float
        How large an improvement must be.
    n_resamples : int
        Bootstrap samples.
    direction : (int, int), optional
        Groups of higher and lower fairness metric, if known beforehand.
    """

    rows: DecisionRows
    metrics: tuple[str | Metric, ...]
    question: ImprovementQuestion
    capacity: float | None
    delta_accuracy: float
    delta_fairness: float
    n_resamples: int
    direction: Direction | None

    def status_quo(self, part: IntArray) -> FloatArray:
        """Decisions in use about some rows."""
        if self.rows.status_quo is not None:
            return self.rows.status_quo[part]
        return self._top(self.rows.score, part)

    def ready(self, part: IntArray) -> FloatArray:
        """Decisions of a ready candidate column."""
        values = self.rows.candidate
        if values is not None and not np.isin(values, (0.0, 1.0)).all() and self.capacity:
            return self._top(values, part)
        return np.zeros(0) if values is None else values[part]

    def weight(self, part: IntArray) -> FloatArray | None:
        """Weights of some rows."""
        return None if self.rows.weight is None else self.rows.weight[part]

    def _top(self, score: FloatArray | None, part: IntArray) -> FloatArray:
        if score is None or self.capacity is None:
            raise capacity_needed()
        return select_top(score[part], self.capacity, weight=self.weight(part)).astype(np.float64)


def judge(
    setting: Setting,
    test: IntArray,
    decisions: FloatArray,
    directions: list[Direction | None],
    algorithm: Algorithm | None,
    n_train: int,
    scores: FloatArray | None,
    rng: np.random.Generator,
    *,
    number: int | None,
) -> SplitResult:
    """Estimate the utilities of both rules on the test rows and test the requirements."""
    rows, question = setting.rows, setting.question
    utilities = [rows.utility(metric, test) for metric in setting.metrics]
    u, w = _quantities(utilities, decisions)
    options: dict[str, Any] = {
        "weight": setting.weight(test),
        "cluster": None if rows.unit is None else rows.unit[test],
    }
    count = None if rows.count is None else rows.count[test]
    where = "the table" if number is None else f"the test part of split {number}"
    _check_support(setting, w, rows.group[test], options["cluster"], count, where)
    estimates = estimate_utilities(
        u,
        w,
        rows.group[test],
        n_groups=len(rows.names),
        population=question.population,
        n_resamples=setting.n_resamples if question.inference == "bootstrap" else 0,
        rng=rng,
        count=count,
        **options,
    )
    evidence = SplitEvidence(estimates=estimates, directions=directions)
    return SplitResult(
        evidence=evidence,
        test=_tested(setting, estimates, directions, question),
        algorithm=algorithm,
        n_train=n_train,
        n_test=len(test) if count is None else int(count.sum()),
        selected=_selected_shares(decisions, rows.group[test], len(rows.names), count),
        same=bool(np.array_equal(decisions[:, 0], decisions[:, 1])),
        cutoff_p_values=_cutoff_sensitivity(
            setting, evidence, u, w, utilities, decisions, scores, rows.group[test], options
        ),
    )


def _tested(
    setting: Setting,
    estimates: UtilityEstimates,
    directions: Sequence[Direction | None],
    question: ImprovementQuestion,
) -> ImprovementTest:
    return compare_utilities(
        estimates,
        directions=directions,
        question=question,
        delta_accuracy=setting.delta_accuracy,
        delta_fairness=setting.delta_fairness,
    )


def _quantities(
    utilities: Sequence[Utility], decisions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return u and w of every criterion under both rules, each of shape (n, C, 2)."""
    pairs = [[utility(column) for column in decisions.T] for utility in utilities]
    u = np.stack([[pair[0] for pair in both] for both in pairs]).transpose(2, 0, 1)
    w = np.stack([[pair[1] for pair in both] for both in pairs]).transpose(2, 0, 1)
    return u, w


def _check_support(
    setting: Setting,
    w: FloatArray,
    group: IntArray,
    cluster: IntArray | None,
    count: IntArray | None,
    where: str,
) -> None:
    names = setting.rows.names
    support = counted_units(w, group, n_groups=len(names), count=count, cluster=cluster)
    least = int(support.min())
    if least < MIN_SUPPORT:
        c, algorithm, g = np.argwhere(support == least)[0]
        units = "rows" if cluster is None else "clusters"
        raise GroupTooSmallError(
            f"{utility_name(setting.metrics[c])!r} of the {('status quo', 'candidate')[algorithm]}"
            f" rests on {least} {units} of {names[g]!r} in {where}; at least {MIN_SUPPORT} are"
            " needed. Merge groups, raise the capacity, or use more data."
        )


def _selected_shares(
    decisions: FloatArray, group: IntArray, n_groups: int, count: IntArray | None
) -> list[list[float]]:
    copies = np.ones(len(group)) if count is None else count
    return [
        [float(np.average(d[group == g], weights=copies[group == g])) for g in range(n_groups)]
        for d in decisions.T
    ]


def _cutoff_sensitivity(
    setting: Setting,
    evidence: SplitEvidence,
    u: FloatArray,
    w: FloatArray,
    utilities: Sequence[Utility],
    decisions: FloatArray,
    scores: FloatArray | None,
    group: IntArray,
    options: dict[str, Any],
) -> tuple[float, float] | None:
    """Analytic p-values with decisions fixed, and with cut-offs estimated."""
    if scores is None or setting.capacity is None:
        return None
    none, everyone = np.zeros(len(u)), np.ones(len(u))
    changes = [(utility(none), utility(everyone)) for utility in utilities]
    rules = ScoredDecisions(
        numerator=u,
        denominator=w,
        change_numerator=np.stack([after[0] - before[0] for before, after in changes], axis=1),
        change_denominator=np.stack([after[1] - before[1] for before, after in changes], axis=1),
        score=scores,
        selected=decisions,
        group=group,
        **options,
    )
    analytic = replace(setting.question, inference="analytic")
    fixed = _tested(setting, evidence.estimates, evidence.directions, analytic)
    moving = with_estimated_cutoffs(evidence.estimates, rules)
    return fixed.p_value, _tested(setting, moving, evidence.directions, analytic).p_value
