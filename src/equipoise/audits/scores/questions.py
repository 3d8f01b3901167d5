"""The questions about scores: what is asked, and how an answer is told."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, TypedDict

from equipoise.results.assumptions import Assumption
from equipoise.results.details import Details, details_of
from equipoise.results.disclosure import is_few, withheld_places
from equipoise.results.finding import Decision
from equipoise.results.formats import number, p_value
from equipoise.results.question import Question, Section
from equipoise.results.result import AuditResult
from equipoise.results.sentences import LEADING, capital, known_group_words, points
from equipoise.results.wording import decided, joint_detected, joint_p, most_words

__all__ = [
    "MARGINAL_OUTCOME",
    "MULTICALIBRATION",
    "PREDICTIVE_PARITY",
    "SCORE_QUALITY",
    "Bars",
    "Curve",
    "Distribution",
    "MarginDetails",
    "ParityDetails",
    "QualityDetails",
    "SegmentDetails",
    "drawn_scores",
    "largest_groups",
    "rows_told",
]

SECTION = Section(
    id="meaning",
    heading="Does the score mean the same for everyone?",
    lead="Whether people with the same score have the same outcomes, whichever group they"
    " belong to.",
)


class Curve(TypedDict):
    """Mean outcome of a group by score, with its band."""

    group: str
    grid: list[float]
    estimate: list[float]
    low: list[float]
    high: list[float]


class Bars(TypedDict):
    """Rows of a group in each bin; None where there are too few to be told."""

    group: str
    rows: list[int | None]


class Distribution(TypedDict):
    """Rows of the groups by score, on bins that all share.

    A bin with equal ends is one score; the first and the last reach to the lowest and the highest.
    """

    low: list[float]
    high: list[float]
    groups: list[Bars]


def _group_rows(scores: Distribution | None) -> dict[str, int]:
    """Return the rows of the groups, but of those of whom some are withheld already."""
    groups = [] if scores is None else scores["groups"]
    return {one["group"]: rows_told(one) for one in groups if None not in one["rows"]}


def _told(
    scores: Distribution | None, min_cell: int, cut: float | None = None
) -> Distribution | None:
    """Leave out the counts of a few people, and those that give them away.

    Where findings count the rows from a cut on, these add up on either side of it.
    """
    if scores is None or min_cell <= 1:
        return scores
    above = [cut is not None and low >= cut for low in scores["low"]]
    bars = [
        Bars(group=one["group"], rows=_told_rows(one["rows"], min_cell, above))
        for one in scores["groups"]
    ]
    return Distribution(low=scores["low"], high=scores["high"], groups=bars)


def _told_rows(rows: list[int | None], min_cell: int, above: list[bool]) -> list[int | None]:
    known = [0 if row is None else row for row in rows]
    if None in rows:
        # What gives them away was left out with those that were left out before.
        hidden = [row is None or is_few(row, min_cell) for row in rows]
    else:
        sides = [
            [row if part is side else 0 for row, part in zip(known, above, strict=True)]
            for side in {*above}
        ]
        hidden = withheld_places(sides, min_cell)
    return [None if gone else row for row, gone in zip(known, hidden, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParityDetails(Details):
    """Curves of the groups and numbers of their comparisons.

    Parameters
    ----------
    hypothesis, unit : str
        What was tested, and what weighs alike.
    confidence_level : float
        Level of the averages, and simultaneous level of the bands.
    binary : bool
        Whether outcomes are 0 or 1, so that differences are points.
    average : dict, optional
        The average difference shown best: estimate, se, low, high, overlap.
    order : dict, optional
        The strongest reversal of order: groups, scores, gap, p-value.
    definition2 : dict, optional
        The joint p-value, and the p-values of its parts.
    curves : list of Curve
        One for each group.
    pairs : list of dict
        One for each comparison: average difference, p-values, common scores.
    scores : Distribution, optional
        Rows of each group by score.
    """

    hypothesis: str = "parity"
    unit: str = "row"
    confidence_level: float = 0.95
    binary: bool = False
    average: dict[str, Any] | None = None
    order: dict[str, Any] | None = None
    definition2: dict[str, Any] | None = None
    curves: list[Curve] = field(default_factory=list)
    pairs: list[dict[str, Any]] = field(default_factory=list)
    scores: Distribution | None = None

    def group_rows(self) -> dict[str, int]:
        """Return the rows of the groups."""
        return _group_rows(self.scores)

    def told(self, min_cell: int) -> "ParityDetails":
        """Return the details without scores that a few people have."""
        return replace(self, scores=_told(self.scores, min_cell))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginDetails(Details):
    """The threshold, and the outcomes of each pair of groups there.

    Parameters
    ----------
    threshold : float, optional
        Where people were compared.
    unit : str
        What weighs alike.
    margins : list of dict
        One for each pair that could be compared.
    scores : Distribution, optional
        Rows of each group by score, below the threshold too.
    """

    threshold: float | None = None
    unit: str = "row"
    margins: list[dict[str, Any]] = field(default_factory=list)
    scores: Distribution | None = None

    def group_rows(self) -> dict[str, int]:
        """Return the rows of the groups."""
        return _group_rows(self.scores)

    def told(self, min_cell: int) -> "MarginDetails":
        """Return the details without scores that a few people have."""
        return replace(self, scores=_told(self.scores, min_cell, self.threshold))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QualityDetails(Details):
    """Metrics of a score, and of the one it is compared with, by group.

    Parameters
    ----------
    metrics : list of str
        Which.
    baseline : str, optional
        Column of the other score.
    n_bins : int
        Of the calibration error.
    groups : list of dict
        Metric, estimate and interval of each group and score.
    """

    metrics: list[str] = field(default_factory=list)
    baseline: str | None = None
    n_bins: int = 15
    groups: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentDetails(Details):
    """How segments were made and judged.

    Parameters
    ----------
    hypothesis : str
        What was tested.
    depth, n_cuts : int
        Columns that are combined at most; scores at which sums are looked at.
    min_information : float
        Least information of a segment that is tested.
    information : list of dict
        Of each segment.
    """

    hypothesis: str = "calibration"
    depth: int = 2
    n_cuts: int = 20
    min_information: float = 10.0
    information: list[dict[str, Any]] = field(default_factory=list)


def _multicalibration(result: AuditResult) -> str:
    wrong = decided(result, Decision.DETECTED)
    tested = sum(f.decision is not Decision.NOT_TESTED for f in result.findings)
    p = joint_p(result)
    if p is None:
        return f"None of {len(result.findings)} segments has enough rows for a test"
    what = (
        "differ from the score"
        if details_of(result.details, SegmentDetails).hypothesis == "calibration"
        else "differ from those of others with the same score"
    )
    test = f"(p {p_value(p)} for all segments together)"
    if not wrong:
        return (
            f"In none of {tested} segments outcomes were shown to {what} {test}; this does not"
            " show that the score is right in each"
        )
    return (
        f"Outcomes {what} in {len(wrong)} of {tested} segments,"
        f" {most_words(wrong, result, clearly=True)} {test}"
    )


def _score_quality(result: AuditResult) -> str:
    differing = decided(result, Decision.DETECTED)
    p = joint_p(result)
    test = "" if p is None else f" (largest difference p {p_value(p)})"
    between = [f for f in differing if f.estimand.kind == "gap"]
    changed = [f for f in differing if f.estimand.kind == "change"]
    parts = []
    if between:
        parts.append(f"the score is better in some groups, {most_words(between, result)}")
    if changed:
        parts.append(f"the two scores differ, {most_words(changed, result)}")
    if parts:
        return capital("; ".join(parts)) + test
    if p is None:
        return "The quality of the score is given for each group, and not compared"
    return (
        f"No difference in the quality of the score was detected{test};"
        " this does not show that it is the same"
    )


def _predictive_parity(result: AuditResult) -> str:
    details = details_of(result.details, ParityDetails)
    differing = [f for f in decided(result, Decision.DETECTED) if f.estimand.kind != "order"]
    p = joint_p(result)
    test = "" if p is None else f" (global test p {p_value(p)})"
    size = _average_words(result, details)
    order = _order_words(result, details)
    start = f"{size}; " if size else ""
    calibration = details.hypothesis == "calibration"
    if not (joint_detected(result) or differing):
        none, same = "in what a score means was detected between the groups", "it means the same"
        if calibration:
            none = "between outcomes and the score was detected in any group"
            same = "the score is right in each"
        return capital(f"{start}no difference {none}{test}; this does not show that {same}{order}")
    found = (
        "the score is not the mean outcome in every group"
        if calibration
        else "the same score does not mean the same in every group"
    )
    if p is not None and not joint_detected(result):
        test = f" at some scores, though the global test detects nothing (p {p_value(p)})"
    changing = ""
    if details.average is None or details.average["low"] <= 0.0 <= details.average["high"]:
        changing = "" if details.average is None else ", and on average no difference is shown"
        if any(not finding.withheld for finding in differing):
            changing += f": {most_words(differing, result)}"
    return capital(f"{start}{found}{test}{changing}{order}")


def rows_told(bars: Bars) -> int:
    """Return the rows of a group, without those that are withheld."""
    return sum(row or 0 for row in bars["rows"])


def drawn_scores(scores: Distribution | None, groups: Sequence[str]) -> list[Bars]:
    """Return the bars of the groups, in their order, unless these are small or withheld."""
    known = {} if scores is None else {one["group"]: one for one in scores["groups"]}
    return [
        known[group] for group in groups if group in known and rows_told(known[group]) >= LEADING
    ]


def largest_groups(scores: Distribution | None) -> list[str]:
    """Return the groups whose scores are known, that with most rows first."""
    found = [] if scores is None else scores["groups"]
    return [one["group"] for one in sorted(found, key=rows_told, reverse=True)]


def _described(result: AuditResult) -> str:
    """Say between which scores half of the largest groups lies."""
    scores: Distribution | None = result.details["scores"]
    told = drawn_scores(scores, largest_groups(scores))
    if scores is None or not told:
        return ""
    named = [
        f"{known_group_words(one['group'], result)} between"
        f" {' and '.join(number(end) for end in _middle_half(scores, one))}"
        for one in told[:3]
    ]
    more = f", and {len(told) - 3} more" if len(told) > 3 else ""
    return f" Half of the scores lie: {', '.join(named)}{more}."


def _middle_half(scores: Distribution, bars: Bars) -> tuple[float, float]:
    """Return the ends of the bins in which the first and the third quarter of the rows end."""
    so_far = list(accumulate(row or 0 for row in bars["rows"]))
    first, last = (next(k for k, n in enumerate(so_far) if 4 * n >= q * so_far[-1]) for q in (1, 3))
    return scores["low"][first], scores["high"][last]


def _average_words(result: AuditResult, details: ParityDetails) -> str:
    """Say how large the largest average difference is, before any p-value."""
    average = details.average
    if average is None:
        return ""
    estimate, low, high = (average[name] for name in ("estimate", "low", "high"))
    side = "above" if estimate > 0.0 else "below"
    if estimate <= 0.0:
        # In the direction in which the difference is told.
        low, high = -high, -low
    what = average["reference"] or "the score"
    ends = " to ".join(_points(end, details) for end in (low, high))
    unit = " points" if details.binary else ""
    return (
        f"At equal scores the mean outcome of {known_group_words(average['group'], result)} is"
        f" {_points(abs(estimate), details)}{unit} {side} that of"
        f" {known_group_words(what, result)}"
        f" ({100 * details.confidence_level:g}% interval of the difference {ends}; average over the"
        " scores)"
        if average["reference"]
        else f"The mean outcome of {known_group_words(average['group'], result)} is"
        f" {_points(abs(estimate), details)}{unit} {side} {what}"
        f" ({100 * details.confidence_level:g}% interval of the difference {ends})"
    )


def _points(number_of: float, details: ParityDetails) -> str:
    return points(number_of) if details.binary else number(number_of)


def _order_words(result: AuditResult, details: ParityDetails) -> str:
    """Say which order is reversed, if one is shown to be."""
    found = details.order
    if found is None or found["p_value"] > result.alpha:
        return ""
    low, high = (
        number(ends[0]) if ends[0] == ends[1] else f"{number(ends[0])} to {number(ends[1])}"
        for ends in (found["scores_low"], found["scores_high"])
    )
    groups = [known_group_words(found[name], result) for name in ("group_high", "group_low")]
    gap = _points(found["gap"], details) + (" points" if details.binary else "")
    return (
        f"; order is reversed: {groups[0]} with scores {high} have an outcome {gap} below that of"
        f" {groups[1]} with scores {low} (p {p_value(found['p_value'])})"
    )


def _marginal_outcome(result: AuditResult) -> str:
    differing = decided(result, Decision.DETECTED)
    threshold = details_of(result.details, MarginDetails).threshold
    where = "at the cut-off" if threshold is None else f"at the cut-off {number(threshold)}"
    if differing:
        return (
            f"People {where} do not have the same expected outcome in every group,"
            f" {most_words(differing, result)}"
        )
    if joint_detected(result):
        return (
            f"People {where} do not have the same expected outcome in every group"
            f" (joint test p {p_value(joint_p(result))})"
        )
    return (
        f"No difference in expected outcome between groups was detected {where};"
        " this does not show that people there are treated alike"
    )


PREDICTIVE_PARITY = Question(
    name="predictive_parity",
    answer="equipoise.audits.scores.parity:predictive_parity",
    drawing="equipoise.plot.curves:score_curves",
    sentence="Does a score mean the same in every group?",
    section=SECTION,
    headline=_predictive_parity,
    legend="Lines are mean outcomes by score, one for each group; shaded bands hold for all scores"
    " together. The average difference at equal scores and its interval stand above; bars below are"
    " the share of each group's rows by score.",
    described=_described,
    details=ParityDetails,
    assumptions=(
        Assumption(
            text="The groups share the scores at which they are compared.",
            status="checked",
            remark="Scores that only one group has are left out or not tested.",
        ),
        Assumption(
            text="The mean outcome changes smoothly with the score.",
            status="not checked",
            remark="A jump narrower than the scores that a line names is averaged away.",
        ),
    ),
)
MARGINAL_OUTCOME = Question(
    name="marginal_outcome",
    answer="equipoise.audits.scores.margins:marginal_outcome",
    drawing="equipoise.plot.curves:margin_intervals",
    sentence="Are people at the cut-off treated alike?",
    section=SECTION,
    headline=_marginal_outcome,
    legend="Points are differences of outcomes at the cut-off, bars are intervals. Below, the share"
    " of each group's rows by score, and the cut-off.",
    described=_described,
    details=MarginDetails,
    assumptions=(
        Assumption(
            text="The mean outcome changes smoothly up to the cut-off.",
            status="not checked",
            remark="The fit uses the rows next to the cut-off, from one side.",
        ),
        Assumption(
            text="The score given is the score that was used for the decision.",
            status="not checked",
            remark="A decision taken on other grounds moves the margin elsewhere.",
        ),
    ),
)
SCORE_QUALITY = Question(
    name="score_quality",
    answer="equipoise.audits.scores.quality:score_quality",
    drawing="equipoise.plot.curves:quality_intervals",
    sentence="How good is the score in each group?",
    section=SECTION,
    subject="quality of the score",
    headline=_score_quality,
    legend="Points are metrics of each group with their intervals; one panel for each metric.",
    details=QualityDetails,
    assumptions=(
        Assumption(
            text="The rows were not used to fit the score or its calibration.",
            status="not checked",
            remark="On rows that a model was fitted to, every metric looks better than it is.",
        ),
    ),
)
MULTICALIBRATION = Question(
    name="multicalibration",
    answer="equipoise.audits.scores.multicalibration:multicalibration",
    sentence="Is the score right in every segment?",
    section=SECTION,
    headline=_multicalibration,
    legend="Points are mean outcomes less mean scores of the segments; p-values allow for all of"
    " them.",
    details=SegmentDetails,
    assumptions=(
        Assumption(
            text="Rows, or the clusters named, are independent.",
            status="not checked",
            remark="Rows that repeat a person make p-values too small where no cluster is named.",
        ),
        Assumption(
            text="The rows were not used to fit the score or its calibration.",
            status="not checked",
            remark="On rows that a model was fitted to, a score looks better than it is.",
        ),
    ),
)
