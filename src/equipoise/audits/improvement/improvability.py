"""Test whether there is a less discriminatory alternative to the status quo."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from equipoise._checks import check_fraction, check_integer, check_option, check_rng, quoted
from equipoise._typing import (
    AccuracyOf,
    FloatArray,
    ImprovementMethod,
    Inference,
    IntArray,
    MarginScale,
    Rng,
    SplitRule,
)
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.improvement import report
from equipoise.audits.improvement.candidates import selection_rule
from equipoise.audits.improvement.decision_cells import read_cells
from equipoise.audits.improvement.decision_rows import (
    DecisionRows,
    read_rows,
    utility_name,
    worse_when_larger,
)
from equipoise.audits.improvement.form import Criterion, Form, SplitResult
from equipoise.audits.improvement.trial import Setting, judge
from equipoise.audits.progress import progress_bar
from equipoise.data.metrics import Metric, find_metric
from equipoise.data.table import Table
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.results.result import AuditResult
from equipoise.search.sample import Algorithm, SelectionRule, TrainingSample
from equipoise.stats.improvement.test import (
    Direction,
    ImprovementQuestion,
    gap_direction,
)

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["improvability"]


@question_method
def improvability(
    self: "Audit",
    candidate: object,
    *,
    accuracy: str | Metric,
    fairness: str | Metric | Sequence[str | Metric] | None = None,
    delta_accuracy: float = 0.0,
    delta_fairness: float = 0.0,
    capacity: float | None = None,
    n_splits: int = 5,
    train_fraction: float = 2 / 3,
    n_resamples: int = 10_000,
    method: ImprovementMethod = "signed",
    combine: SplitRule = "median",
    accuracy_of: AccuracyOf = "group",
    margin_scale: MarginScale = "relative",
    inference: Inference = "bootstrap",
    higher_group: str | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> Asking[AuditResult]:
    """Say whether there is a less discriminatory alternative to the status quo.

    The null hypothesis is that the candidate does not raise accuracy for every group, or does
    not reduce the gap between groups. The status quo is `y_pred`, or the top share of `y_score`
    when a `capacity` is given. The candidate is found on one part of the rows and judged on the
    other, several times.

    Parameters
    ----------
    candidate : estimator, search object, callable or str
        A scikit-learn estimator (cut at the capacity, if there is one), an object of
        `equipoise.search`, a function from a `TrainingSample` to an algorithm, the name of a
        column with a ready score or decision (no split is made, and the result says so), or the
        import path of a known estimator such as ``"sklearn.linear_model.LassoCV"``.
    accuracy : str or Metric
        What must not get worse, larger is better: ``"accuracy"``, ``"selected_outcome"``, ...
    fairness : str, Metric or list of them, optional
        Metrics whose gap between groups must shrink; by default `accuracy`.
    delta_accuracy, delta_fairness : float, default 0
        How large an improvement must be: accuracy times 1 + delta, gap times 1 - delta.
    capacity : float, optional
        Share of people that may be selected.
    n_splits, train_fraction : int, float
        How often the rows are split, and the share that the candidate is built on.
    n_resamples : int
        Bootstrap samples for each split.
    method : {"signed", "paper"}
        Signed gap statistic, or the squared one of the paper, which has less power.
    combine : {"median", "exch_median", "bonferroni"}
        How p-values of the splits make one: twice their median, or another valid rule.
    accuracy_of : {"group", "population"}
        Whether accuracy must rise in every group or overall.
    margin_scale : {"relative", "absolute"}
        Whether `delta_accuracy` is a share of the status quo's accuracy or an amount.
    inference : {"bootstrap", "analytic"}
        Studentised bootstrap, or the normal law at once.
    higher_group : str, optional
        With two groups, the one known beforehand to have the higher fairness metric; else it is
        read off the training rows.
    alpha : float, default 0.05
        Level of the test.
    confidence_level : float, default 0.95
        Level of the intervals.
    rng : int or numpy Generator, optional
        For splits and bootstrap.

    Returns
    -------
    AuditResult
        Findings are the requirements; `joint` is the claim that all are met. `details` has, for
        each split, the value of candidate (`a1`) and status quo (`a0`) and the p-value of every
        requirement; `deltas`, the largest improvements that are shown; which requirement binds;
        if nothing is shown, whether data or search is the likely limit; and, in memory only,
        the fitted `candidates` of the splits, whose `decide` takes new rows.

    Examples
    --------
    Past cost decides who is called sick, and one group costs less when equally sick. Would a
    model of the visits be right more often, and more evenly?

    >>> import equipoise as eq, numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(7)
    >>> race = rng.choice(["a", "b"], size=3000)
    >>> sickness = rng.gamma(2.0, 2.0, size=3000)
    >>> data = {"race": race, "sick": (sickness > 4).astype(int),
    ...         "visits": rng.poisson(3 * sickness),
    ...         "called": (sickness * np.where(race == "b", 0.4, 0.7) > 4).astype(int)}
    >>> audit = eq.Audit(data, group="race", y_true="sick", y_pred="called", features="visits")
    >>> result = audit.improvability(LogisticRegression(), accuracy="accuracy", n_resamples=999)
    >>> str(result.joint.decision), bool(result.details["deltas"]["fairness"] > 0.5)
    ('detected', True)

    Yes: accuracy rises in both groups, and the gap shrinks by more than half.
    """
    check_fraction("alpha", alpha)
    check_fraction("confidence_level", confidence_level)
    check_fraction("train_fraction", train_fraction)
    check_option("accuracy_of", accuracy_of, AccuracyOf)
    check_option("combine", combine, SplitRule)
    if capacity is not None:
        check_fraction("capacity", capacity)
    splits = check_integer("n_splits", n_splits, low=1)
    metrics, numbers = _criteria(accuracy, fairness)
    question = ImprovementQuestion(
        fairness=numbers,
        population=accuracy_of == "population",
        margin_scale=margin_scale,
        method=method,
        inference=inference,
    )
    table = self.table
    ready = candidate if isinstance(candidate, str) and candidate in table.schema else None
    rule = None if ready else selection_rule(candidate, capacity=capacity)
    rows = yield from _read(table, metrics, ready, capacity)
    if len(rows.names) < 2:
        raise InvalidParameterError(
            f"a gap needs at least two groups; the table has only {rows.names[0]!r}."
        )
    setting = Setting(
        rows=rows,
        metrics=metrics,
        question=question,
        capacity=capacity,
        delta_accuracy=delta_accuracy,
        delta_fairness=delta_fairness,
        n_resamples=check_integer("n_resamples", n_resamples, low=99),
        direction=_known_direction(rows.names, higher_group),
    )
    form = Form(
        rows=rows,
        criteria=_named_criteria(rows.names, metrics, question),
        question=question,
        combine=combine,
        alpha=alpha,
        confidence_level=confidence_level,
        capacity=capacity,
        n_resamples=n_resamples,
        delta_accuracy=delta_accuracy,
        delta_fairness=delta_fairness,
        ready=ready,
        direction_known=higher_group is not None or rule is not None,
    )
    generator = check_rng(rng)
    try:
        if rule is None:
            results = [_evaluate_ready(setting, generator)]
        else:
            results = _evaluate_splits(setting, rule, splits, train_fraction, generator)
    except GroupTooSmallError as error:
        return report.not_tested(form, str(error))
    return report.result(form, results)


def _read(
    table: Table, metrics: tuple[str | Metric, ...], ready: str | None, capacity: float | None
) -> Asking[DecisionRows]:
    """Read what is judged; rows of a Spark DataFrame are counted there if they can be."""
    if ready is not None and table.frame.implementation.is_pyspark():
        counted = yield from read_cells(table, metrics, candidate=ready, capacity=capacity)
        if counted is not None:
            return counted
    return (yield from read_rows(table, metrics, candidate=ready, features=ready is None))


def _criteria(
    accuracy: str | Metric, fairness: str | Metric | Sequence[str | Metric] | None
) -> tuple[tuple[str | Metric, ...], tuple[int, ...]]:
    """Distinct metrics, accuracy first, and the number of each fairness metric."""
    better = worse_when_larger(accuracy)
    if better is not None:
        raise InvalidParameterError(
            f"`accuracy` must be larger when better; {utility_name(accuracy)!r} is larger when"
            f" worse. Use {better!r}; as `fairness` either will do."
        )
    if fairness is None:
        wanted: list[str | Metric] = [accuracy]
    elif isinstance(fairness, (str, Metric)):
        wanted = [fairness]
    else:
        wanted = list(fairness) if isinstance(fairness, Sequence) else []
    if not wanted:
        raise InvalidParameterError(
            f"`fairness` must be a metric or a list of metrics; got {fairness!r}."
        )
    metrics: list[str | Metric] = [accuracy]
    names = [utility_name(accuracy)]
    numbers = []
    for metric in wanted:
        if utility_name(metric) not in names:
            metrics.append(metric)
            names.append(utility_name(metric))
        numbers.append(names.index(utility_name(metric)))
    return tuple(metrics), tuple(dict.fromkeys(numbers))


def _known_direction(names: tuple[str, ...], higher_group: str | None) -> Direction | None:
    if higher_group is None:
        return None
    if higher_group not in names or len(names) != 2:
        raise InvalidParameterError(
            f"`higher_group` must be one of two groups, written as in the result; got"
            f" {higher_group!r} among {quoted(names)}."
        )
    high = names.index(higher_group)
    return high, 1 - high


def _named_criteria(
    names: tuple[str, ...], metrics: tuple[str | Metric, ...], question: ImprovementQuestion
) -> tuple[Criterion, ...]:
    """Requirements in the order of the tests: accuracy of the groups, then the gaps."""
    both = " vs ".join(names) if len(names) == 2 else "all groups"
    whose = ("everyone",) if question.population else names
    asked: list[tuple[int, str, Literal["accuracy", "fairness"]]] = [
        *((0, group, "accuracy") for group in whose),
        *((c, both, "fairness") for c in question.fairness),
    ]
    found = [find_metric(metric) for metric in metrics]
    return tuple(
        Criterion(metric=found[c].name, noun=found[c].words, group=group, kind=kind)
        for c, group, kind in asked
    )


def _evaluate_ready(setting: Setting, rng: np.random.Generator) -> SplitResult:
    """Judge a ready candidate on all rows."""
    everyone = np.arange(len(setting.rows.y))
    decisions = np.column_stack([setting.status_quo(everyone), setting.ready(everyone)])
    if np.array_equal(decisions[:, 0], decisions[:, 1]):
        raise InvalidParameterError(
            "the candidate decides as the status quo does for everyone; there is nothing to test."
            " Give another candidate."
        )
    directions: list[Direction | None] = [setting.direction] * len(setting.question.fairness)
    scores = None
    if setting.rows.score is not None and setting.rows.candidate is not None:
        scores = np.column_stack([setting.rows.score, setting.rows.candidate])
    return judge(setting, everyone, decisions, directions, None, 0, scores, rng, number=None)


def _evaluate_splits(
    setting: Setting,
    rule: SelectionRule,
    n_splits: int,
    train_fraction: float,
    rng: np.random.Generator,
) -> list[SplitResult]:
    """Split, search on the training rows, judge on the others."""
    seeds = rng.integers(2**31 - 1, size=n_splits)
    results = []
    with progress_bar("Splits") as advance:
        for k, generator in enumerate(rng.spawn(n_splits)):
            train, test = setting.rows.split(int(seeds[k]), train_fraction)
            results.append(_evaluate_split(setting, rule, train, test, k + 1, generator))
            if advance is not None:
                advance(k + 1, n_splits)
    return results


def _evaluate_split(
    setting: Setting,
    rule: SelectionRule,
    train: IntArray,
    test: IntArray,
    number: int,
    rng: np.random.Generator,
) -> SplitResult:
    for part, name in ((train, "training"), (test, "test")):
        _check_groups(setting.rows, part, f"the {name} part of split {number}")
    sample = _training_sample(setting, train)
    directions = _directions(setting, sample, f"the training part of split {number}")
    algorithm = rule.select(sample)
    decided = algorithm.decide(setting.rows.X[test], weight=setting.weight(test))
    return judge(
        setting,
        test,
        np.column_stack([setting.status_quo(test), decided]),
        directions,
        algorithm,
        len(train),
        _scores(setting, algorithm, test),
        rng,
        number=number,
    )


def _check_groups(rows: DecisionRows, part: IntArray, where: str) -> None:
    size = np.bincount(rows.group[part], minlength=len(rows.names))
    if size.min() == 0:
        raise GroupTooSmallError(
            f"every group needs rows in {where}; {rows.names[int(np.argmin(size))]!r} has none."
            " Merge groups, or change `train_fraction`."
        )


def _training_sample(setting: Setting, train: IntArray) -> TrainingSample:
    rows = setting.rows
    utilities = [rows.utility(metric, train) for metric in setting.metrics]
    return TrainingSample(
        X=rows.X[train],
        y=rows.y[train],
        group=rows.group[train],
        status_quo=setting.status_quo(train),
        accuracy=utilities[0],
        fairness=tuple(utilities[c] for c in setting.question.fairness),
        feature_names=rows.feature_names,
        weight=setting.weight(train),
        names=rows.names,
    )


def _directions(setting: Setting, sample: TrainingSample, where: str) -> list[Direction | None]:
    """Return the direction of each fairness gap of the status quo on the training rows."""
    weight = 1.0 if sample.weight is None else sample.weight
    directions: list[Direction | None] = []
    for c, utility in zip(setting.question.fairness, sample.fairness, strict=True):
        u, w = utility(sample.status_quo)
        total = np.bincount(sample.group, weights=w * weight, minlength=sample.n_groups)
        if (total == 0).any():
            raise GroupTooSmallError(
                f"{utility_name(setting.metrics[c])!r} of the status quo rests on 0 rows of"
                f" {sample.names[int(np.argmin(total))]!r} in {where}. Merge groups, raise the"
                " capacity, or use more data."
            )
        known = setting.direction
        directions.append(
            known or gap_direction(u * weight, w * weight, sample.group, n_groups=sample.n_groups)
        )
    return directions


def _scores(setting: Setting, algorithm: Algorithm, test: IntArray) -> FloatArray | None:
    """Scores of both rules, if both cut a score at the capacity."""
    score = getattr(algorithm, "score", None)
    if setting.rows.score is None or score is None or setting.rows.status_quo is not None:
        return None
    return np.column_stack([setting.rows.score[test], score(setting.rows.X[test])])
