"""Does a score mean the same in every group, or what it says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._checks import check_finite, check_fraction, check_option
from equipoise._typing import CalibrationHypothesis, ParityMethod, ParityUnit, Rng
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.scores.questions import Curve, ParityDetails
from equipoise.audits.scores.sample import (
    ScoreSample,
    pairs_of,
    parity_bandwidth,
    parity_unit,
    score_rows,
    score_sample,
)
from equipoise.data.table import Quantity
from equipoise.exceptions import DataError, GroupTooSmallError, InvalidParameterError
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.formats import number, p_value
from equipoise.results.result import AuditResult
from equipoise.stats.multiplicity import adjusted_p_values
from equipoise.stats.scores.curves import GroupCurve, ParityTest
from equipoise.stats.scores.parity import compare_groups, compare_with_score

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["predictive_parity"]

METHOD_WORDS = {
    "pooled_residual": "kernel differences of pooled residuals, max-t",
    "paper": "Nadaraya-Watson differences, Bonferroni (the paper's)",
    "calibration": "kernel mean of outcome minus score, max-t",
}
CUSUM_WORDS = "cumulative sum of residuals (Kolmogorov-Smirnov)"
HYPOTHESES = {
    "parity": (
        "at every score the mean outcome is the same in all groups",
        "at some score the mean outcome differs",
    ),
    "calibration": (
        "in every group the mean outcome equals the score",
        "at some score the mean outcome is not the score",
    ),
}
PAPER_NOTE = Note(
    code="paper-parity",
    message="The paper's test compares raw kernel curves; where the groups' scores are distributed"
    " differently it rejects exact parity far more often than its level.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """One group against its reference; `test` is None when it could not be made, `note` says why.

    `reference` is empty for calibration to the diagonal.
    """

    group: str
    reference: str
    n: int
    test: ParityTest | None
    note: Note | None = None


@question_method
def predictive_parity(
    self: "Audit",
    *,
    unit: ParityUnit | None = None,
    grid: Sequence[float] | None = None,
    bandwidth: float | str = "auto",
    method: ParityMethod = "pooled_residual",
    hypothesis: CalibrationHypothesis = "parity",
    reference: Mapping[str, Any] | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> Asking[AuditResult]:
    """Say whether a score means the same in every group, and where it does not.

    The null hypothesis is that people with equal scores have equal mean outcomes whatever
    their group. `joint` tests it at all scores at once, by a cumulative sum of residuals;
    each finding is the difference at one score, with a band that holds for all of them.

    Parameters
    ----------
    unit : {"cluster", "row"}, optional
        Whether every cluster or every row weighs alike; must be said with clusters, because
        the two hypotheses differ when activity is related to the outcome.
    grid : list of float, optional
        Scores at which curves are compared; by default 21 quantiles, or every value of a score
        with at most 30.
    bandwidth : "auto" or float
        Standard deviation of the kernel; 0 compares equal scores only.
    method : {"pooled_residual", "paper"}
        "paper" is the test of the paper, for replication; it does not keep its level when
        scores are distributed differently in the groups.
    hypothesis : {"parity", "calibration"}
        "calibration" compares each group's outcome with the score itself.
    reference : dict, optional
        The group others are compared with, such as ``{"race": "White"}``; by default all pairs
        are compared.
    alpha : float, default 0.05
        Level of the tests.
    confidence_level : float, default 0.95
        Simultaneous level of the bands.
    rng : int or numpy Generator, optional
        For the multiplier draws.

    Returns
    -------
    AuditResult
        `details` has ``curves`` (of each group: grid, estimate, low, high) and ``pairs`` (of
        each comparison: average difference, p-values, common scores, differences by score).

    Examples
    --------
    Does a COMPAS decile mean the same chance of a new offence for two groups?

    >>> import equipoise as eq
    >>> audit = eq.Audit(
    ...     {
    ...         "race": ["Black", "White"] * 400,
    ...         "score": [1, 1, 2, 2, 3, 3, 4, 4] * 100,
    ...         "again": [0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1] * 50,
    ...     },
    ...     group="race", y_true="again", y_score="score",
    ... )
    >>> result = audit.predictive_parity(reference={"race": "White"})
    >>> [(f.estimand, f.estimate) for f in result.findings if f.decision == "detected"]
    [('outcome at score 2', 0.5), ('outcome at score 3', 0.5)]

    At scores 2 and 3 it does not.
    """
    check_fraction("alpha", alpha)
    check_fraction("confidence_level", confidence_level)
    check_option("method", method, ParityMethod)
    check_option("hypothesis", hypothesis, CalibrationHypothesis)
    options: dict[str, Any] = {
        "grid": None if grid is None else check_finite("grid", grid, ndim=1),
        "bandwidth": parity_bandwidth(bandwidth),
        "confidence_level": confidence_level,
        "rng": rng,
    }
    table = self.table
    counted = parity_unit(table, unit)
    outcome = Quantity("y_true", None, table.y_true)
    rows = yield score_rows(table, outcome, {"y_true": "number", "y_score": "number"})
    with score_sample(rows, counted) as sample:
        if hypothesis == "calibration":
            if method == "paper":
                raise InvalidParameterError(
                    "`method='paper'` tests parity; leave `hypothesis` out."
                )
            comparisons = _against_the_diagonal(sample, options)
        else:
            pairs = pairs_of(sample, reference)
            comparisons = _between_groups(sample, pairs, options, paper=method == "paper")
    shown: dict[str, Any] = {
        "alpha": alpha,
        "confidence_level": confidence_level,
        "method": METHOD_WORDS["calibration" if hypothesis == "calibration" else method],
    }
    null, alternative = HYPOTHESES[hypothesis]
    notes = [*sample.notes]
    if method == "paper":
        notes.append(PAPER_NOTE)
    notes += _remarks(sample, comparisons, alpha)
    return AuditResult(
        audit="predictive_parity",
        null=null,
        alternative=alternative,
        alpha=alpha,
        method=shown["method"],
        n=sample.n,
        findings=tuple(f for c in comparisons for f in _findings(c, **shown)),
        joint=_joint(comparisons, null, alpha, paper=method == "paper"),
        notes=tuple(notes),
        details=ParityDetails(
            hypothesis=hypothesis,
            unit=counted,
            n_clusters=sample.cells.n_units if sample.cells.clustered else None,
            confidence_level=confidence_level,
            curves=_curves(comparisons),
            pairs=_pairs(comparisons),
        ),
    )


def _between_groups(
    sample: ScoreSample,
    pairs: tuple[tuple[int, int], ...],
    options: dict[str, Any],
    *,
    paper: bool,
) -> list[_Comparison]:
    found = []
    for group, reference in pairs:
        cells = sample.cells.select([reference, group])
        test, note = None, None
        try:
            test = compare_groups(cells, n_comparisons=len(pairs), paper=paper, **options)
            note = _not_comparable(test)
        except GroupTooSmallError as error:
            note = Note(code="group-too-small", message=_sentence(error))
        except DataError as error:
            # What is wrong with every pair is wrong with the table.
            if len(sample.cells.support) < 2 or len(pairs) == 1:
                raise
            note = Note(code="not-comparable", message=_sentence(error))
        found.append(
            _Comparison(
                group=sample.names[group],
                reference=sample.names[reference],
                n=int(cells.n_rows.sum()),
                test=test,
                note=note,
            )
        )
    return found


def _not_comparable(test: ParityTest) -> Note | None:
    shared = test.support
    if shared is None or shared.testable:
        return None
    first, second = (f"{100 * share:.0f}%" for share in shared.share)
    return Note(
        code="no-common-scores",
        message="The groups have too few scores in common to be compared: the scores that both have"
        f" hold {second} of the group and {first} of its reference; half of each is needed.",
    )


def _against_the_diagonal(sample: ScoreSample, options: dict[str, Any]) -> list[_Comparison]:
    found = []
    for k, name in enumerate(sample.names):
        cells = sample.cells.select([k])
        test, note = None, None
        try:
            test = compare_with_score(cells, n_comparisons=len(sample.names), **options)
        except GroupTooSmallError as error:
            note = Note(code="group-too-small", message=_sentence(error))
        found.append(
            _Comparison(group=name, reference="", n=int(cells.n_rows.sum()), test=test, note=note)
        )
    return found


def _sentence(error: Exception) -> str:
    text = str(error)
    return text[:1].upper() + text[1:]


def _findings(
    comparison: _Comparison, *, alpha: float, confidence_level: float, method: str
) -> list[Finding]:
    """One finding for each grid point, in the order of the score."""
    test = comparison.test
    common: dict[str, Any] = {
        "group": comparison.group,
        "n": comparison.n,
        "method": method,
        "reference": comparison.reference or "the score itself",
    }
    if test is None or comparison.note is not None:
        return [
            Finding(
                **common,
                estimand=Estimand("outcome at equal scores", "outcome", scale="difference"),
                decision=Decision.NOT_TESTED,
                notes=() if comparison.note is None else (comparison.note,),
            )
        ]
    dropped = Note(
        code="little-information",
        message="Too few people near this score for a comparison there.",
    )
    rows = [
        (
            float(point),
            Finding(
                **common,
                estimand=_at(float(point)),
                decision=Decision.NOT_TESTED,
                notes=(dropped,),
            ),
        )
        for point in test.dropped
    ]
    if test.differences is not None:
        at = test.differences
        for k, point in enumerate(at.points):
            adjusted = float(at.test.p_value_adjusted[k])
            rows.append(
                (
                    float(point),
                    Finding(
                        **common,
                        estimand=_at(float(point)),
                        estimate=float(at.estimate[k]),
                        ci=ConfidenceInterval(
                            low=float(at.test.low[k]),
                            high=float(at.test.high[k]),
                            confidence_level=confidence_level,
                        ),
                        statistic=float(at.test.statistic[k]),
                        p_value=adjusted,
                        p_value_raw=float(at.test.p_value[k]),
                        decision=Decision.DETECTED if adjusted <= alpha else Decision.NOT_DETECTED,
                    ),
                )
            )
    return [finding for _, finding in sorted(rows, key=lambda row: row[0])]


def _at(score: float) -> Estimand:
    return Estimand(f"outcome at score {number(score)}", "outcome", scale="difference")


def _global_p(comparison: _Comparison, *, paper: bool) -> float | None:
    test = comparison.test
    if test is None or comparison.note is not None:
        return None
    if paper:
        return None if test.differences is None else test.differences.test.max_p_value
    return None if test.cusum is None else test.cusum.ks_p_value


def _joint(comparisons: list[_Comparison], null: str, alpha: float, *, paper: bool) -> JointTest:
    """Smallest global p-value over the comparisons, adjusted for their number (Holm)."""
    p = [_global_p(c, paper=paper) for c in comparisons]
    words = METHOD_WORDS["paper"] if paper else CUSUM_WORDS
    tested = [k for k, value in enumerate(p) if value is not None]
    if not tested:
        first = next((c.note for c in comparisons if c.note is not None), None)
        why = first or Note(
            code="little-information", message="Too few people near any score for a comparison."
        )
        return JointTest(null=null, decision=Decision.NOT_TESTED, method=words, notes=(why,))
    best = min(tested, key=lambda k: p[k] or 0.0)
    # The paper's p-values allow for the number of comparisons already.
    smallest = min(1.0, (p[best] or 0.0) * (1 if paper else len(tested)))
    test = comparisons[best].test
    statistic = None if test is None or test.cusum is None else test.cusum.ks_statistic
    if paper and test is not None and test.differences is not None:
        statistic = float(np.abs(test.differences.test.statistic).max())
    return JointTest(
        null=null,
        decision=Decision.DETECTED if smallest <= alpha else Decision.NOT_DETECTED,
        method=words + (f", Holm over {len(tested)} comparisons" if len(tested) > 1 else ""),
        statistic=statistic,
        p_value=smallest,
    )


def _remarks(sample: ScoreSample, comparisons: list[_Comparison], alpha: float) -> list[Note]:
    notes = []
    if len(sample.cells.support) <= 30:
        notes.append(
            Note(
                code="few-scores",
                message=f"The score has {len(sample.cells.support)} values; groups are compared at"
                " each of them, without smoothing.",
            )
        )
    cells = sample.cells
    if cells.clustered:
        spanning = int(cells.units_in_group().sum()) - cells.n_units
        if spanning:
            notes.append(
                Note(
                    code="clusters-span-groups",
                    message=f"Some clusters have rows in several groups ({spanning} memberships"
                    " beyond the first); their dependence is allowed for.",
                )
            )
    for c in comparisons:
        order = None if c.test is None else c.test.ordering
        if order is not None and order.p_value <= alpha:
            names = (c.reference, c.group)
            lower, higher = names[order.group_low], names[1 - order.group_low]
            notes.append(
                Note(
                    code="ordering",
                    message=f"Order is violated: {lower} at score {number(order.score_low)} has a"
                    f" higher mean outcome than {higher} at score {number(order.score_high)}, by"
                    f" {number(order.gap)} (p {p_value(order.p_value)}).",
                )
            )
    return notes


def _curves(comparisons: list[_Comparison]) -> list[Curve]:
    """Curve of each group, from the first comparison that has it."""
    curves: dict[str, GroupCurve] = {}
    for c in comparisons:
        if c.test is not None:
            names = (c.reference, c.group) if c.reference else (c.group,)
            for name, curve in zip(names, c.test.curves, strict=True):
                curves.setdefault(name, curve)
    return [
        Curve(
            group=name,
            grid=curve.points.tolist(),
            estimate=curve.estimate.tolist(),
            low=curve.low.tolist(),
            high=curve.high.tolist(),
        )
        for name, curve in curves.items()
    ]


def _pairs(comparisons: list[_Comparison]) -> list[dict[str, Any]]:
    raw = np.array([np.nan if (p := _global_p(c, paper=False)) is None else p for c in comparisons])
    holm = adjusted_p_values(raw, "holm")
    records = []
    for c, p in zip(comparisons, holm, strict=True):
        record: dict[str, Any] = {"group": c.group, "reference": c.reference or None, "n": c.n}
        if c.test is not None:
            record |= _numbers(c.test) | {"cusum_p_value_holm": None if np.isnan(p) else float(p)}
        records.append(record)
    return records


def _numbers(test: ParityTest) -> dict[str, Any]:
    cusum, at, shared = test.cusum, test.differences, test.support
    return {
        "bandwidth": test.bandwidth,
        "n_clusters": test.n_units.tolist(),
        "average_difference": test.average,
        "average_difference_se": test.average_se,
        "cusum_p_value": None if cusum is None else cusum.ks_p_value,
        "cusum_cvm_p_value": None if cusum is None else cusum.cvm_p_value,
        "cusum_location": None if cusum is None else cusum.location,
        "max_t_p_value": None if at is None else at.test.max_p_value,
        "cvm_p_value": None if at is None else at.test.sum_p_value,
        "common_scores": None if shared is None else [shared.low, shared.high],
        "common_share": None if shared is None else shared.share.tolist(),
        "grid": [] if at is None else at.points.tolist(),
        "difference": [] if at is None else at.estimate.tolist(),
        "low": [] if at is None else at.test.low.tolist(),
        "high": [] if at is None else at.test.high.tolist(),
    }
