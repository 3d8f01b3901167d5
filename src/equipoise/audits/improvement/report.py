"""From tested splits to a result: findings, the joint test, details and remarks."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise._typing import SplitRule
from equipoise.audits.improvement.candidates import described
from equipoise.audits.improvement.form import Criterion, Form, SplitResult
from equipoise.audits.improvement.notes import remarks
from equipoise.audits.improvement.questions import Curve, ImprovementDetails
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.improvement.frontier import (
    DeltaCurve,
    central_p_value,
    combine_splits,
    delta_curve,
)
from equipoise.stats.improvement.test import CriterionTest

__all__ = ["not_tested", "result"]

RULES: tuple[SplitRule, ...] = ("median", "exch_median", "bonferroni")


def not_tested(form: Form, reason: str) -> AuditResult:
    """Return a result that says why nothing was tested."""
    note = Note(code="too-few-selected", message=reason[:1].upper() + reason[1:])
    sizes = form.rows.group_sizes
    findings = tuple(
        Finding(
            group=criterion.group,
            estimand=criterion.estimand,
            decision=Decision.NOT_TESTED,
            n=_rows_of(form, criterion, sizes),
            method=form.method(0),
            reference="status quo",
            notes=(note,),
        )
        for criterion in form.criteria
    )
    return AuditResult(
        audit="improvability",
        null=form.null,
        alternative="the candidate is a less discriminatory alternative",
        alpha=form.alpha,
        method=form.method(0),
        n=int(form.rows.group_sizes.sum()),
        findings=findings,
        joint=JointTest(
            null=form.null,
            decision=Decision.NOT_TESTED,
            method="intersection-union",
            notes=(note,),
        ),
        notes=form.rows.notes,
        details=ImprovementDetails(
            metric=form.criteria[0].metric,
            noun=form.criteria[0].noun,
            groups=list(form.rows.names),
        ),
    )


def result(form: Form, splits: Sequence[SplitResult]) -> AuditResult:
    """Combine the splits."""
    p_splits = np.array([split.test.p_value for split in splits])
    p_value = float(combine_splits(p_splits, form.combine))
    detected = p_value <= form.alpha
    limit = None if detected else _limit(splits)
    joint = JointTest(
        null=form.null,
        decision=Decision.DETECTED if detected else Decision.NOT_DETECTED,
        method="intersection-union",
        statistic=_median_z(splits),
        p_value=p_value,
    )
    return AuditResult(
        audit="improvability",
        null=form.null,
        alternative="the candidate is a less discriminatory alternative",
        alpha=form.alpha,
        method=form.method(len(splits)),
        n=int(form.rows.group_sizes.sum()),
        findings=tuple(_finding(form, splits, k) for k in range(len(form.criteria))),
        joint=joint,
        notes=(*form.rows.notes, *remarks(form, splits, limit)),
        details=_details(form, splits, p_splits, limit),
    )


def _rows_of(form: Form, criterion: Criterion, sizes: Any) -> int:
    if criterion.group in form.rows.names:
        return int(sizes[form.rows.names.index(criterion.group)])
    return int(sizes.sum())


def _finding(form: Form, splits: Sequence[SplitResult], k: int) -> Finding:
    """One requirement over all splits; bounds are medians, as the p-value is."""
    criterion = form.criteria[k]
    tests = [split.tests[k] for split in splits]
    p_splits = np.array([test.p_value for test in tests])
    p = float(combine_splits(p_splits, form.combine))
    tail = (1.0 - form.confidence_level) / 2.0
    bounds = np.array([test.interval(tail / (2.0 if len(tests) > 1 else 1.0)) for test in tests])
    estimate = float(np.median([test.estimate for test in tests]))
    low, high = (float(bound) for bound in np.median(bounds, axis=0))
    sizes = form.rows.group_sizes
    return Finding(
        group=criterion.group,
        estimand=criterion.estimand,
        decision=Decision.DETECTED if p <= form.alpha else Decision.NOT_DETECTED,
        n=_rows_of(form, criterion, sizes),
        method=form.method(len(splits)),
        estimate=estimate,
        ci=ConfidenceInterval(low=low, high=high, confidence_level=form.confidence_level),
        statistic=_z(tests[int(np.argsort([t.estimate for t in tests])[(len(tests) - 1) // 2])]),
        p_value=p,
        p_value_raw=float(central_p_value(p_splits, form.combine)),
        reference="status quo",
    )


def _z(test: CriterionTest) -> float | None:
    ratios = [estimate / se for estimate, se in test.contrasts if se > 0]
    return min(ratios) if len(ratios) == len(test.contrasts) else None


def _median_z(splits: Sequence[SplitResult]) -> float | None:
    worst = []
    for split in splits:
        zs = [_z(test) for test in split.tests]
        known = [z for z in zs if z is not None]
        if len(known) < len(zs):
            return None
        worst.append(min(known))
    return float(np.median(worst))


def _limit(splits: Sequence[SplitResult]) -> str:
    """Say what likely stands in the way: too little data, or a candidate that is no better."""
    better = [min(test.estimate for test in split.tests) > 0 for split in splits]
    return "data" if np.mean(better) > 0.5 else "search"


def _details(
    form: Form, splits: Sequence[SplitResult], p_splits: Any, limit: str | None
) -> ImprovementDetails:
    curves = _curves(form, splits)
    binding = Counter(
        form.criteria[int(np.argmax([test.p_value for test in split.tests]))].words
        for split in splits
    )
    sensitivity = None
    cutoffs = [split.cutoff_p_values for split in splits if split.cutoff_p_values is not None]
    if len(cutoffs) == len(splits):
        fixed, moving = (
            combine_splits(np.array(p), form.combine) for p in zip(*cutoffs, strict=True)
        )
        sensitivity = {"fixed": float(fixed), "estimated": float(moving)}
    fitted = [split.algorithm for split in splits if split.algorithm is not None]
    return ImprovementDetails(
        metric=form.criteria[0].metric,
        noun=form.criteria[0].noun,
        fairness=[c.metric for c in form.criteria if c.kind == "fairness"],
        groups=list(form.rows.names),
        capacity=form.capacity,
        combine=form.combine,
        margin_scale=form.question.margin_scale,
        delta_accuracy=form.delta_accuracy,
        delta_fairness=form.delta_fairness,
        splits=[_split_record(form, k, split) for k, split in enumerate(splits, start=1)],
        p_values=[float(p) for p in p_splits],
        p_median=float(np.median(p_splits)),
        p_combined={rule: float(combine_splits(p_splits, rule)) for rule in RULES},
        binding=binding.most_common(1)[0][0],
        limit=limit,
        deltas={name: curve.largest for name, curve in curves.items()},
        delta_curves={
            name: Curve(delta=curve.delta.tolist(), p_value=curve.p_value.tolist())
            for name, curve in curves.items()
        },
        cutoff_sensitivity=sensitivity,
        candidates=fitted or None,
    )


def _split_record(form: Form, number: int, split: SplitResult) -> dict[str, Any]:
    estimates = split.evidence.estimates
    first = [[estimates.position(0, t, g) for g in (0, 1)] for t in (0, 1)]
    draws = estimates.draws
    return {
        "split": number,
        "n_train": split.n_train,
        "n_test": split.n_test,
        "p_value": split.test.p_value,
        "criteria": [
            {
                "criterion": criterion.words,
                "a1": test.candidate,
                "a0": test.status_quo,
                "p_value": test.p_value,
            }
            for criterion, test in zip(form.criteria, split.tests, strict=True)
        ],
        "accuracy": estimates.value[0, :, : len(form.rows.names)].tolist(),
        "accuracy_covariance": [
            estimates.covariance[np.ix_(rows, rows)].tolist() for rows in first
        ],
        "rows_counted": estimates.support[0, :, : len(form.rows.names)].tolist(),
        "selected": split.selected,
        "resampling": "none" if draws is None else draws.law,
        "candidate": described(split.algorithm, form.rows.feature_names),
    }


def _curves(form: Form, splits: Sequence[SplitResult]) -> dict[str, DeltaCurve]:
    """Largest improvement of each kind; accuracy only where a gain can be expressed."""
    evidence = [split.evidence for split in splits]
    names = [c.group for c in form.criteria if c.kind == "accuracy"]
    first = len(form.rows.names) if form.question.population else 0
    numbers = list(range(first, first + len(names)))
    positive = all((split.evidence.estimates.value[0, 0, numbers] > 0).all() for split in splits)

    def curve(*, fairness: bool = False, groups: Sequence[int] = ()) -> DeltaCurve:
        return delta_curve(
            evidence,
            question=form.question,
            alpha=form.alpha,
            combine=form.combine,
            fairness=fairness,
            groups=groups,
        )

    found = {"fairness": curve(fairness=True)}
    if positive or form.question.margin_scale == "absolute":
        found["joint accuracy"] = curve(groups=numbers)
        for name, g in zip(names, numbers, strict=True):
            if len(names) > 1:
                found[f"accuracy {name}"] = curve(groups=[g])
    return found
