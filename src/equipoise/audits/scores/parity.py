"""Does a score mean the same in every group, or what it says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._checks import check_finite, check_fraction, check_option
from equipoise._typing import (
    CalibrationHypothesis,
    FloatArray,
    ParityAdjust,
    ParityMethod,
    ParityUnit,
    Rng,
    Smoothing,
)
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.scores.questions import Curve, ParityDetails
from equipoise.audits.scores.sample import (
    ScoreSample,
    composite,
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
from equipoise.results.formats import number
from equipoise.results.result import AuditResult
from equipoise.stats.multiplicity import adjusted_p_values
from equipoise.stats.scores.cells import coarse
from equipoise.stats.scores.curves import MIN_UNITS, GroupCurve, ParityTest
from equipoise.stats.scores.omnibus import ParityFamily, parity_family
from equipoise.stats.scores.order import OrderTest, order_test
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
ORDER_WORDS = "largest reversal of order between runs of scores, one-sided"
AVERAGE_WORDS = "overlap-weighted difference of residuals; decided by the cumulative sum"
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
HYPOTHESES["parity, order"] = (
    HYPOTHESES["parity"][0]
    + ", and in no group lower at a higher score than in another at a lower one",
    "at some score the mean outcome differs, or order is reversed",
)
HYPOTHESES["calibration, order"] = HYPOTHESES["calibration"]
AVERAGE_NOTE = Note(
    code="interval-unadjusted",
    message="The interval is that of the average over scores and is not adjusted; the decision and"
    " the p-value are those of the global test, which looks at every score.",
)
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
    p_value: float | None = None

    @property
    def raw(self) -> float:
        """P-value of the global test; NaN where it could not be made."""
        return np.nan if self.test is None or self.note is not None else self.test.p_value

    @property
    def statistic(self) -> float:
        """Statistic of the global test; NaN where it could not be made."""
        return np.nan if self.test is None else self.test.statistic


@question_method
def predictive_parity(
    self: "Audit",
    *,
    unit: ParityUnit | None = None,
    grid: Sequence[float] | None = None,
    bandwidth: float | str = "auto",
    smoothing: Smoothing = "rank",
    method: ParityMethod = "pooled_residual",
    hypothesis: CalibrationHypothesis = "parity",
    order: bool = True,
    adjust: ParityAdjust = "closed",
    reference: Mapping[str, Any] | None = None,
    y_true: Sequence[str] | None = None,
    y_score: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> Asking[AuditResult]:
    """Say whether a score means the same in every group, and where it does not.

    The null hypothesis is that people with equal scores have equal mean outcomes whatever
    their group, and that nobody with a lower score has a higher one than another group's higher.
    The first finding of a comparison is the average difference at equal scores, with its interval,
    decided by a cumulative sum of residuals that looks at every score; then come differences at
    single scores, with a band that holds for all of them; the last finding is about order. `joint`
    is one decision for all of it.

    Parameters
    ----------
    unit : {"cluster", "row"}, optional
        Whether every cluster or every row weighs alike; must be said with clusters, because
        the two hypotheses differ when activity is related to the outcome.
    grid : list of float, optional
        Scores at which curves are compared; by default 21 quantiles, or every value of a score
        with at most 30.
    bandwidth : "auto" or float
        Standard deviation of the kernel in units of the score; 0 compares equal scores only. A
        number implies smoothing over scores.
    smoothing : {"rank", "score"}
        "rank" smooths over ranks of the score, and widens the kernel at a score until every group
        has enough information there; "score" smooths over the score with one width.
    method : {"pooled_residual", "paper"}
        "paper" is the test of the paper, for replication; it does not keep its level when
        scores are distributed differently in the groups.
    hypothesis : {"parity", "calibration"}
        "calibration" compares each group's outcome with the score itself.
    order : bool, default True
        Whether order is tested too (the second half of the definition), which needs no common
        scores; `joint` then allows for two tests.
    adjust : {"closed", "holm"}
        How the comparisons of three or more groups share the level: closed testing over subsets of
        the groups, or Holm.
    reference : dict, optional
        The group others are compared with, such as ``{"race": "White"}``; by default all pairs
        are compared.
    y_true, y_score : list of str, optional
        Columns of several outcomes and of their scores, whose weighted sums are compared instead
        of the columns with these roles.
    weights : list of float, optional
        Of the sums; by default 1 each.
    alpha : float, default 0.05
        Level of the tests.
    confidence_level : float, default 0.95
        Level of the average's interval, and simultaneous level of the bands.
    rng : int or numpy Generator, optional
        For the multiplier draws.

    Returns
    -------
    AuditResult
        `details` has ``average`` (the average difference shown best), ``order``, ``definition2``
        (the joint p-value and its parts), ``curves`` (of each group: grid, estimate, low, high),
        ``pairs`` (of each comparison: average difference, p-values, common scores, differences by
        score) and ``scores`` (rows of each group by score).

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
    >>> average = result.findings[0]
    >>> average.decision.value, round(average.estimate, 2), round(average.ci.low, 2)
    ('detected', 0.25, 0.21)

    It does not: at equal scores the outcome of Black people is 25 points more frequent on average,
    and at least 21.
    """
    check_fraction("alpha", alpha)
    check_fraction("confidence_level", confidence_level)
    check_option("method", method, ParityMethod)
    check_option("hypothesis", hypothesis, CalibrationHypothesis)
    check_option("adjust", adjust, ParityAdjust)
    check_option("smoothing", smoothing, Smoothing)
    paper = method == "paper"
    if grid is not None and not np.size(grid):
        raise InvalidParameterError("`grid` has no score; leave it out, or name at least one.")
    options: dict[str, Any] = {
        "grid": None if grid is None else check_finite("grid", grid, ndim=1),
        "bandwidth": parity_bandwidth(bandwidth),
        "smoothing": smoothing,
        "confidence_level": confidence_level,
        "rng": rng,
    }
    table = composite(self.table, y_true, y_score, weights)
    counted = parity_unit(table, unit)
    outcome = Quantity("y_true", None, table.y_true)
    rows = yield score_rows(table, outcome, {"y_true": "number", "y_score": "number"})
    reversal, family = None, None
    with score_sample(rows, counted) as whole:
        scores = whole.distribution()
        sample = replace(whole, cells=coarse(whole.cells))
        if hypothesis == "calibration":
            if paper:
                raise InvalidParameterError(
                    "`method='paper'` tests parity; leave `hypothesis` out."
                )
            comparisons = _against_the_diagonal(sample, options)
        else:
            pairs = pairs_of(sample, reference)
            comparisons = _between_groups(sample, pairs, options, paper=paper)
            if not paper:
                shared = None if reference is None else pairs[0][1]
                comparisons, family = _family(
                    sample, pairs, comparisons, adjust=adjust, reference=shared, rng=rng
                )
                if order:
                    around = None if reference is None else pairs
                    reversal = order_test(sample.cells, pairs=around, rng=rng)
    shown: dict[str, Any] = {
        "alpha": alpha,
        "confidence_level": confidence_level,
        "method": METHOD_WORDS["calibration" if hypothesis == "calibration" else method],
        "paper": paper,
    }
    null, alternative = HYPOTHESES[hypothesis if paper or not order else hypothesis + ", order"]
    definition = _definition(comparisons, family, reversal, hypothesis, paper=paper)
    findings = [f for c in comparisons for f in _findings(c, **shown)]
    if reversal is not None:
        findings.append(_order_finding(sample, reversal, alpha))
    return AuditResult(
        audit="predictive_parity",
        null=null,
        alternative=alternative,
        alpha=alpha,
        method=shown["method"],
        n=sample.n,
        findings=tuple(findings),
        joint=_joint(comparisons, definition, null, alpha, paper=paper),
        notes=(
            *sample.notes,
            *((PAPER_NOTE,) if paper else ()),
            *_remarks(sample, comparisons, family),
        ),
        details=ParityDetails(
            hypothesis=hypothesis,
            unit=counted,
            n_clusters=sample.cells.n_units if sample.cells.clustered else None,
            confidence_level=confidence_level,
            binary=sample.cells.binary,
            average=_leading_average(comparisons),
            order=None if reversal is None else _order_record(sample, reversal),
            definition2=None if definition is None else definition.record(),
            curves=_curves(comparisons),
            pairs=_pairs(comparisons),
            scores=scores,
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
    return None if test.comparable else _apart(test, " They are not compared at equal scores.")


def _apart(test: ParityTest, then: str) -> Note:
    share = (0.0, 0.0) if test.support is None else test.support.share
    first, second = (f"{100 * part:.0f}%" for part in share)
    return Note(
        code="no-common-scores",
        message=f"The groups have few scores in common: those that both have hold {second} of the"
        f" group and {first} of its reference.{then} Order can be tested, and calibration in each"
        " group, which implies parity.",
    )


def _family(
    sample: ScoreSample,
    pairs: tuple[tuple[int, int], ...],
    comparisons: list[_Comparison],
    *,
    adjust: ParityAdjust,
    reference: int | None,
    rng: Rng,
) -> tuple[list[_Comparison], ParityFamily | None]:
    """Adjust the global p-values of the pairs for their number; test all groups at once."""
    raw = np.array([c.raw for c in comparisons])
    large = np.flatnonzero(sample.cells.units_in_group() >= MIN_UNITS).tolist()
    inside = [k for k, pair in enumerate(pairs) if set(pair) <= set(large)]
    family, adjusted = None, raw.copy()
    if len(large) > 2 and len(inside) > 1:
        family = parity_family(
            sample.cells,
            large,
            [pairs[k] for k in inside],
            raw[inside],
            adjust=adjust,
            reference=reference,
            rng=rng,
        )
        adjusted[inside] = family.p_value
    return _with_p_values(comparisons, adjusted), family


def _with_p_values(comparisons: list[_Comparison], p: FloatArray) -> list[_Comparison]:
    return [
        replace(c, p_value=None if np.isnan(value) else float(value))
        for c, value in zip(comparisons, p, strict=True)
    ]


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
    holm = adjusted_p_values(np.array([c.raw for c in found]), "holm")
    return _with_p_values(found, holm)


def _sentence(error: Exception) -> str:
    text = str(error)
    return text[:1].upper() + text[1:]


def _findings(
    comparison: _Comparison, *, alpha: float, confidence_level: float, method: str, paper: bool
) -> list[Finding]:
    """The average difference, then one finding for each grid point, in the order of the score."""
    test = comparison.test
    common: dict[str, Any] = {
        "group": comparison.group,
        "n": comparison.n,
        "reference": comparison.reference or "the score itself",
    }
    if test is None or comparison.note is not None:
        return [
            Finding(
                **common,
                method=method,
                estimand=AVERAGE if comparison.reference else AVERAGE_ERROR,
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
                method=method,
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
                        method=method,
                        estimand=_at(float(point), at.window[k]),
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
    first = [] if paper else _average_finding(comparison, test, common, alpha, confidence_level)
    return [*first, *(finding for _, finding in sorted(rows, key=lambda row: row[0]))]


AVERAGE = Estimand("outcome at equal scores", "outcome", scale="difference")
AVERAGE_ERROR = Estimand("outcome less score", "outcome", scale="difference")


def _average_finding(
    comparison: _Comparison,
    test: ParityTest,
    common: dict[str, Any],
    alpha: float,
    confidence_level: float,
) -> list[Finding]:
    average, p = test.average, comparison.p_value
    if average is None or test.cusum is None or p is None:
        return []
    low, high = average.confidence_interval(confidence_level)
    notes: tuple[Note, ...] = (AVERAGE_NOTE,)
    if test.support is not None and not test.support.testable:
        notes += (_apart(test, " Only these are compared."),)
    return [
        Finding(
            **common,
            method=AVERAGE_WORDS,
            estimand=AVERAGE if comparison.reference else AVERAGE_ERROR,
            estimate=average.estimate,
            ci=ConfidenceInterval(
                low=float(low), high=float(high), confidence_level=confidence_level
            ),
            statistic=test.cusum.ks_statistic,
            p_value=p,
            decision=Decision.DETECTED if p <= alpha else Decision.NOT_DETECTED,
            notes=notes,
        )
    ]


def _at(score: float, window: FloatArray | None = None) -> Estimand:
    metric, noun = f"outcome at score {number(score)}", None
    if window is not None and window[0] < window[1]:
        ends = " to ".join(number(float(end)) for end in window)
        noun = f"outcome near score {number(score)} (scores {ends})"
    return Estimand(metric, "outcome", scale="difference", noun=noun)


def _order_finding(sample: ScoreSample, found: OrderTest, alpha: float) -> Finding:
    """Say whether lower scores of one group mean more than higher ones of another."""
    low, high = sample.names[found.group_low], sample.names[found.group_high]
    lower, higher = (_scores(ends) for ends in (found.scores_low, found.scores_high))
    return Finding(
        group=low,
        reference=high,
        estimand=Estimand(
            "order",
            "order",
            scale="difference",
            noun=f"outcome at scores {lower} less that of {high} at scores {higher}",
        ),
        n=int(sample.cells.n_rows[[found.group_low, found.group_high]].sum()),
        method=ORDER_WORDS,
        estimate=found.gap,
        ci=ConfidenceInterval(
            low=found.bound if np.isfinite(found.bound) else None, high=None, confidence_level=0.95
        ),
        statistic=found.statistic if np.isfinite(found.statistic) else None,
        p_value=found.p_value,
        decision=Decision.DETECTED if found.p_value <= alpha else Decision.NOT_DETECTED,
    )


def _scores(ends: tuple[float, float]) -> str:
    low, high = (number(end) for end in ends)
    return low if low == high else f"{low} to {high}"


def _order_record(sample: ScoreSample, found: OrderTest) -> dict[str, Any]:
    return {
        "group_low": sample.names[found.group_low],
        "group_high": sample.names[found.group_high],
        "scores_low": list(found.scores_low),
        "scores_high": list(found.scores_high),
        "gap": found.gap,
        "se": found.se,
        "statistic": found.statistic if np.isfinite(found.statistic) else None,
        "p_value": found.p_value,
        "bound": found.bound if np.isfinite(found.bound) else None,
        "n_contrasts": found.n_contrasts,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Definition:
    """One p-value for all of the definition, its statistic and the p-values of its parts."""

    p_value: float
    statistic: float | None
    parts: dict[str, float | None]
    method: str

    def record(self) -> dict[str, Any]:
        return {"p_value": self.p_value, "parts": self.parts}


def _definition(
    comparisons: list[_Comparison],
    family: ParityFamily | None,
    reversal: OrderTest | None,
    hypothesis: CalibrationHypothesis,
    *,
    paper: bool,
) -> _Definition | None:
    """Combine the global test and that of order; `None` when neither could be made."""
    if paper:
        return None
    tested = [c for c in comparisons if c.p_value is not None]
    parity, statistic, words = None, None, CUSUM_WORDS
    if family is not None and family.omnibus is not None and tested:
        parity, statistic = family.omnibus.p_value, family.omnibus.statistic
        words += ", all groups at once"
    elif tested:
        # Draws have a smallest p-value, which several comparisons may share.
        best = min(tested, key=lambda c: (c.p_value or 0.0, c.raw, -c.statistic))
        parity, statistic = best.p_value, best.statistic
        if len(tested) > 1:
            words += f", Holm over {len(tested)} comparisons"
    parts = {"parity": parity, "order": None if reversal is None else reversal.p_value}
    # Where groups share too little, equality at common scores says little about the definition.
    shared = hypothesis == "calibration" or any(
        c.test is not None and c.test.support is not None and c.test.support.testable
        for c in tested
    )
    if reversal is None:
        if parity is None:
            return None
        return _Definition(p_value=parity, statistic=statistic, parts=parts, method=words)
    if parity is None or not shared:
        value = reversal.statistic if np.isfinite(reversal.statistic) else None
        return _Definition(
            p_value=reversal.p_value, statistic=value, parts=parts, method=ORDER_WORDS
        )
    combined = min(1.0, 2.0 * min(parity, reversal.p_value))
    return _Definition(
        p_value=combined,
        statistic=statistic,
        parts=parts,
        method=f"{words}, and order; twice the smaller p-value",
    )


def _joint(
    comparisons: list[_Comparison],
    definition: _Definition | None,
    null: str,
    alpha: float,
    *,
    paper: bool,
) -> JointTest:
    """One decision: the definition's, or that of the paper's smallest p-value."""
    words = METHOD_WORDS["paper"] if paper else CUSUM_WORDS
    bands = [
        c.test.differences.test
        for c in comparisons
        if paper and c.test is not None and c.test.differences is not None
    ]
    if bands:
        best = min(bands, key=lambda test: test.max_p_value)
        definition = _Definition(
            p_value=best.max_p_value,
            statistic=float(np.abs(best.statistic).max()),
            parts={},
            method=words,
        )
    if definition is None:
        first = next((c.note for c in comparisons if c.note is not None), None)
        why = first or Note(
            code="little-information", message="Too few people near any score for a comparison."
        )
        return JointTest(null=null, decision=Decision.NOT_TESTED, method=words, notes=(why,))
    detected = definition.p_value <= alpha
    return JointTest(
        null=null,
        decision=Decision.DETECTED if detected else Decision.NOT_DETECTED,
        method=definition.method,
        statistic=definition.statistic,
        p_value=definition.p_value,
    )


FAMILY_WORDS = {
    "closed": "Average differences are decided by closed testing over {n} subsets of the groups",
    "shaffer": "Average differences are decided by Holm with Shaffer's factor, after the test of"
    " all groups at once",
    "holm": "Average differences are decided by Holm",
}


def _remarks(
    sample: ScoreSample, comparisons: list[_Comparison], family: ParityFamily | None
) -> list[Note]:
    notes = []
    if len(sample.cells.support) <= 30:
        notes.append(
            Note(
                code="few-scores",
                message=f"The score has {len(sample.cells.support)} values; groups are compared at"
                " each of them, with neighbouring ones where people are few.",
            )
        )
    if len(comparisons) > 1:
        words = FAMILY_WORDS["holm" if family is None else family.method]
        count = 0 if family is None else family.n_subsets
        notes.append(
            Note(
                code="multiplicity",
                message=f"{words.format(n=count)}; their intervals are not adjusted. Bands allow"
                f" for {len(comparisons)} comparisons (Bonferroni).",
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
    return notes


def _curves(comparisons: list[_Comparison]) -> list[Curve]:
    """Curve of each group, from its comparison with the largest other one."""
    curves: dict[str, GroupCurve] = {}
    tested = [(c, c.test) for c in comparisons if c.test is not None]
    # Which comparison comes first is a matter of names; how many rows it has is not.
    for c, test in sorted(tested, key=lambda pair: (-pair[0].n, pair[1].p_value)):
        names = (c.reference, c.group) if c.reference else (c.group,)
        for name, curve in zip(names, test.curves, strict=True):
            curves.setdefault(name, curve)
    present = dict.fromkeys(name for c, _ in tested for name in (c.reference, c.group) if name)
    return [
        Curve(
            group=name,
            grid=curves[name].points.tolist(),
            estimate=curves[name].estimate.tolist(),
            low=curves[name].low.tolist(),
            high=curves[name].high.tolist(),
        )
        for name in present
    ]


def _leading_average(comparisons: list[_Comparison]) -> dict[str, Any] | None:
    """Return the numbers of the average difference that is shown best, or is furthest from zero."""
    found = [
        c
        for c in comparisons
        if c.p_value is not None and c.test is not None and c.test.average is not None
    ]
    best = min(found, key=_evidence, default=None)
    if best is None or best.test is None:
        return None
    return {"group": best.group, "reference": best.reference or None} | _average_record(best.test)


def _evidence(comparison: _Comparison) -> tuple[float, float]:
    average = None if comparison.test is None else comparison.test.average
    size = 0.0 if average is None else abs(average.estimate) / average.se
    return comparison.p_value or 0.0, -size


def _average_record(test: ParityTest) -> dict[str, Any]:
    average = test.average
    if average is None:
        return {}
    low, high = average.confidence_interval(test.confidence_level)
    return {
        "estimate": average.estimate,
        "se": average.se,
        "low": float(low),
        "high": float(high),
        "overlap": test.overlap,
    }


def _pairs(comparisons: list[_Comparison]) -> list[dict[str, Any]]:
    records = []
    for c in comparisons:
        record: dict[str, Any] = {"group": c.group, "reference": c.reference or None, "n": c.n}
        if c.test is not None:
            record |= _numbers(c.test) | {"cusum_p_value_adjusted": c.p_value}
        records.append(record)
    return records


def _numbers(test: ParityTest) -> dict[str, Any]:
    cusum, at, shared, average = test.cusum, test.differences, test.support, test.average
    return {
        "bandwidth": test.bandwidth,
        "n_clusters": test.n_units.tolist(),
        "average_difference": None if average is None else average.estimate,
        "average_difference_se": None if average is None else average.se,
        "overlap": test.overlap,
        "cusum_p_value": None if cusum is None else cusum.ks_p_value,
        "cusum_cvm_p_value": None if cusum is None else cusum.cvm_p_value,
        "cusum_location": None if cusum is None else cusum.location,
        "max_t_p_value": None if at is None else at.test.max_p_value,
        "cvm_p_value": None if at is None else at.test.sum_p_value,
        "common_scores": None if shared is None else [shared.low, shared.high],
        "common_share": None if shared is None else shared.share.tolist(),
        "grid": [] if at is None else at.points.tolist(),
        "window": [] if at is None else at.window.tolist(),
        "difference": [] if at is None else at.estimate.tolist(),
        "low": [] if at is None else at.test.low.tolist(),
        "high": [] if at is None else at.test.high.tolist(),
    }
