"""What leaving out a feature does to the gap and to accuracy."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_rng, nearest, quoted
from equipoise._typing import FloatArray, IntArray, Rng
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.improvement.candidates import selection_rule
from equipoise.audits.improvement.gaps import check_groups
from equipoise.audits.improvement.questions import DropDetails
from equipoise.audits.improvement.rows import (
    SCORE_UTILITIES,
    DecisionRows,
    read_decisions,
    utility_name,
    utility_words,
)
from equipoise.audits.improvement.trial import Setting
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.results.estimand import Estimand, EstimandKind
from equipoise.results.finding import ConfidenceInterval, Decision, Finding
from equipoise.results.result import AuditResult
from equipoise.search.sample import SelectionRule
from equipoise.stats.improvement.candidates import CandidateLines, joint_law
from equipoise.stats.improvement.capacity import Decisions
from equipoise.stats.improvement.test import MIN_SUPPORT, ImprovementQuestion, Margins

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["drop_table"]


@question_method
def drop_table(
    self: "Audit",
    estimator: object,
    features: Sequence[str] | None = None,
    *,
    accuracy: str = "accuracy",
    fairness: str = "selection_rate",
    capacity: float | None = None,
    train_fraction: float = 2 / 3,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> Asking[AuditResult]:
    """Say what leaving out each feature does to the gap and to accuracy.

    A model with all features and one without each of them are fitted to the same rows and compared
    on others. Nothing is tested: intervals hold for all features together.

    Parameters
    ----------
    estimator : estimator
        Of scikit-learn, or the import path of a known one.
    features : list of str, optional
        Features to leave out, one at a time; by default each that the audit has.
    accuracy, fairness : str
        Metrics of decisions: what the model is for, and whose gap between groups counts.
    capacity : float, optional
        Share of people that may be selected.
    train_fraction : float
        Share of rows that models are fitted to.
    confidence_level : float, default 0.95
        Joint level of all intervals.
    rng : int or numpy Generator, optional
        For the split.

    Returns
    -------
    AuditResult
        Two findings for each feature: the change of the gap between the groups that the full model
        favours most and least on the training rows, and the change of accuracy.

    Examples
    --------
    A postcode stands for group and says little else. What would leaving it out do?

    >>> import equipoise as eq, numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(1)
    >>> race = rng.choice(["a", "b"], size=3000)
    >>> income = rng.normal(size=3000)
    >>> postcode = (race == "a") + 0.3 * rng.normal(size=3000)
    >>> repaid = (income + 0.5 * (race == "a") + rng.normal(size=3000) > 0).astype(int)
    >>> audit = eq.Audit({"race": race, "repaid": repaid, "granted": repaid, "income": income,
    ...                   "postcode": postcode}, group="race", y_true="repaid", y_pred="granted",
    ...                  features=["income", "postcode"])
    >>> table = audit.drop_table(LogisticRegression(), ["postcode"], capacity=0.5)
    >>> gap, right = table.findings
    >>> bool(gap.ci.high < -0.05), bool(right.ci.low > -0.05)
    (True, True)

    It would take more than five points off the gap, and cost less than five of accuracy.
    """
    check_fraction("train_fraction", train_fraction)
    check_fraction("confidence_level", confidence_level)
    for metric in (accuracy, fairness):
        if utility_name(metric) in SCORE_UTILITIES:
            raise InvalidParameterError(f"{metric!r} judges scores; pass a metric of decisions.")
    metrics = (accuracy,) if fairness == accuracy else (accuracy, fairness)
    rule = selection_rule(estimator, capacity=capacity)
    rows = yield from read_decisions(self.table, metrics, features=True, capacity=capacity)
    dropped = _dropped(rows, features)
    gap = len(metrics) - 1
    setting = Setting(
        rows=rows,
        metrics=metrics,
        logs=(),
        question=ImprovementQuestion(fairness=(gap,), population=True, inference="analytic"),
        margins=Margins(),
        capacity=capacity,
        capacity_match="near",
        cutoff="estimated",
        n_resamples=0,
        higher=(),
        alpha=1.0 - confidence_level,
        prefer="safe",
    )
    generator = check_rng(rng)
    fit, _, test = rows.split(int(generator.integers(2**31 - 1)), train_fraction)
    everything = np.arange(rows.X.shape[1])
    full, seen = _decided(setting, rule, everything, fit, (fit, test))
    others = [
        _decided(setting, rule, np.delete(everything, j), fit, (test,))[0]
        for j in (rows.feature_names.index(name) for name in dropped)
    ]
    high, low = _direction(setting, seen, fit, gap)
    estimates = setting.estimates(test, [full, *others])
    if estimates.support.min() < MIN_SUPPORT:
        raise GroupTooSmallError(
            f"a metric rests on {estimates.support.min()} rows of a group among the test rows; at"
            f" least {MIN_SUPPORT} are needed. Merge groups, or use more data."
        )
    contrasts = np.zeros((2 * len(others), estimates.value.size))
    for k in range(len(others)):
        for model, sign in ((k + 1, 1.0), (0, -1.0)):
            contrasts[2 * k, estimates.position(gap, model, high)] = sign
            contrasts[2 * k, estimates.position(gap, model, low)] = -sign
            contrasts[2 * k + 1, estimates.position(0, model, len(rows.names))] = sign
    value, loadings = estimates.loadings(contrasts)
    se = np.array([estimates.contrast(row)[1] for row in contrasts])
    critical = _critical(value, se, loadings, confidence_level, generator)
    whose = f"{rows.names[high]} vs {rows.names[low]}"
    kinds: tuple[tuple[str, EstimandKind, str], ...] = (
        (fairness, "gap", whose),
        (accuracy, "gain", "everyone"),
    )
    findings = [
        Finding(
            group=f"without {dropped[k // 2]}",
            estimand=Estimand(utility_name(metric), kind, noun=f"{utility_words(metric)}, {who}"),
            decision=Decision.ESTIMATED,
            n=len(test),
            method="normal law, joint intervals of all features",
            estimate=float(value[k]),
            ci=ConfidenceInterval(
                low=float(value[k] - critical * se[k]),
                high=float(value[k] + critical * se[k]),
                confidence_level=confidence_level,
            ),
            reference="all features",
        )
        for k in range(len(value))
        for metric, kind, who in [kinds[k % 2]]
    ]
    return AuditResult(
        audit="drop_table",
        null="none: changes are estimated, not tested",
        alternative="none",
        alpha=1.0 - confidence_level,
        method="one split; joint intervals of all features",
        n=len(rows.y),
        findings=tuple(findings),
        notes=rows.notes,
        details=DropDetails(
            features=dropped,
            critical=critical,
            n_train=len(fit),
            n_test=len(test),
            gap=float(estimates.value[gap, 0, high] - estimates.value[gap, 0, low]),
            accuracy=float(estimates.value[0, 0, len(rows.names)]),
        ),
    )


def _dropped(rows: DecisionRows, features: Sequence[str] | None) -> list[str]:
    """Return the features that are left out, one at a time."""
    wanted = list(rows.feature_names if features is None else features)
    for name in wanted:
        if name not in rows.feature_names:
            raise InvalidParameterError(
                f"{name!r} is not a feature of the audit.{nearest(name, rows.feature_names)}"
                f" Features: {quoted(rows.feature_names)}."
            )
    if len(rows.feature_names) < 2 or not wanted:
        raise InvalidParameterError(
            "a feature can be left out only where there are at least two, and one is named."
        )
    check_groups(rows)
    return wanted


def _decided(
    setting: Setting,
    rule: SelectionRule,
    columns: IntArray,
    fit: IntArray,
    parts: tuple[IntArray, ...],
) -> tuple[Decisions, Decisions]:
    """Fit with some features; return what is decided about the last part, and about the first."""
    names = tuple(setting.rows.feature_names[j] for j in columns)
    seen = replace(
        setting,
        rows=replace(setting.rows, X=setting.rows.X[:, columns], feature_names=names),
    )
    algorithm = rule.select(seen.training_sample(fit))
    decided = [seen.by_algorithm(algorithm, part, "the model") for part in parts]
    return decided[-1], decided[0]


def _direction(
    setting: Setting, decisions: Decisions, part: IntArray, criterion: int
) -> tuple[int, int]:
    """Return the groups that the full model favours most and least on the training rows."""
    values = setting.estimates(part, (decisions, decisions)).value[criterion, 0]
    values = values[: len(setting.rows.names)]
    high = int(np.argmax(values))
    return high, min((g for g in range(len(values)) if g != high), key=lambda g: float(values[g]))


def _critical(
    value: FloatArray,
    se: FloatArray,
    loadings: FloatArray,
    level: float,
    rng: np.random.Generator,
) -> float:
    """Return what all studentised changes stay within, at the joint level."""
    varies = np.flatnonzero(se > 0)
    single = float(-special.ndtri((1.0 - level) / 2.0))
    if not len(varies):
        return single
    lines = CandidateLines(
        estimate=value[varies],
        se=se[varies],
        df=np.full(len(varies), 1e9),
        loadings=loadings[varies] / se[varies][:, None],
        owner=np.arange(len(varies)),
        accuracy=np.zeros(len(varies), dtype=np.bool_),
    )
    return max(joint_law(lines, rng=rng).reach_of_both_signs(1.0 - level), single)
