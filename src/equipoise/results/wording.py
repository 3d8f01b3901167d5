"""Every sentence that a person reads: print, HTML and command line agree."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise._names import GroupName
from equipoise._typing import Multiplicity
from equipoise.results.finding import Decision, Finding
from equipoise.results.formats import (
    counted,
    decision_word,
    index_number,
    interval,
    listed,
    number,
    p_value,
    shortened,
)
from equipoise.results.sentences import (
    LEADING,
    group_words,
    least,
    points,
    whole_group_words,
)

if TYPE_CHECKING:
    from equipoise.results.result import AuditResult

__all__ = [
    "amount",
    "compared_names",
    "compared_noun",
    "decided",
    "estimated",
    "finding_words",
    "foremost_word",
    "gap_metrics",
    "gap_size",
    "headline",
    "in_points",
    "joint_detected",
    "joint_p",
    "largest",
    "legend_words",
    "level",
    "metric_words",
    "most_words",
    "multiplicity_words",
    "names",
    "parts_of",
    "parts_words",
    "picture_words",
    "quantity_words",
    "question_words",
    "reference_words",
    "tested",
    "unnamed_words",
    "value",
]


def question_words(result: "AuditResult") -> str:
    """Write the question that a result answers, with its metric where it has one."""
    return result.question.sentence.format(metric=quantity_words(result))


def finding_words(result: "AuditResult", findings: Sequence[Finding] | None = None) -> list[str]:
    """Write the findings of a result, or some of them, on a line each."""
    groups = compared_names(result.findings, lambda name: whole_group_words(name, result.words))
    asked = {id(finding) for finding in (result.findings if findings is None else findings)}
    return [
        _line_words(group, finding, result)
        for group, finding in zip(groups, result.findings, strict=True)
        if id(finding) in asked
    ]


def _line_words(group: str, finding: Finding, result: "AuditResult") -> str:
    if finding.withheld:
        return f"{group}: withheld"
    if finding.decision is Decision.NOT_TESTED:
        return f"{group}: not tested, n = {finding.n:,}"
    p = "" if finding.p_value is None else f", p {p_value(finding.p_value)}"
    return (
        f"{group}: {finding.estimand.words} {amount(finding)}{p},"
        f" n = {finding.n:,}, {decision_word(finding.decision, result.question.words)}"
    )


def picture_words(result: "AuditResult") -> tuple[str, str]:
    """Return a title and a description of a result's picture for those who cannot see it."""
    numbers = estimated(result)
    title = question_words(result)
    if not numbers:
        asked = counted(len(result.findings), "group")
        return title, f"Nothing could be tested for the {asked} asked for."
    ordered = sorted(numbers, key=lambda finding: finding.estimate or 0.0)
    lowest, highest = ordered[0], ordered[-1]
    counts = ", ".join(
        f"{len(found)} {decision_word(decision, result.question.words)}"
        for decision in Decision
        if (found := decided(result, decision))
    )
    described = result.question.described
    more = "" if described is None else described(result)
    return title, (
        f"{headline(result)} Estimates run from {gap_size(lowest.estimate, result)}"
        f" ({group_words(lowest.group, result.words)}) to {gap_size(highest.estimate, result)}"
        f" ({group_words(highest.group, result.words)}); {counts}."
        f"{more} The table has every value."
    )


def legend_words(result: "AuditResult") -> str:
    """Say how to read the picture of a result."""
    return result.question.legend


def multiplicity_words(levels: Sequence[float], multiplicity: Multiplicity) -> str:
    """Say how often a plan like this one reports something when there is nothing to report."""
    if len(levels) == 1:
        return f"The plan asks one question, at the {100 * levels[0]:g}% level."
    bound = 100 * min(sum(levels), 1.0)
    if multiplicity == "bonferroni":
        return (
            f"The plan asks {len(levels)} questions and shares one level of {bound:.3g}% among them"
            " (Bonferroni): the chance that any of them is answered wrongly is at most that, as far"
            " as each keeps its own level."
        )
    return (
        f"The plan asks {len(levels)} questions, each at its own level, which add up to"
        f" {bound:.3g}%: if there were nothing to find anywhere, the chance that at least one of"
        ' them reports something could be as large as that. Set multiplicity = "bonferroni" under'
        " [report] to share one level among them."
    )


def headline(result: "AuditResult") -> str:
    """Say in one sentence what was found, for a reader who reads nothing else.

    A test that does not reject shows nothing, and the sentence says so.
    """
    asked = [finding for finding in result.lines if not finding.is_reference]
    untested = [finding for finding in asked if finding.decision is Decision.NOT_TESTED]
    if len(untested) == len(asked) and joint_p(result) is None:
        reasons = [note.message for finding in untested for note in finding.notes[:1]]
        return f"Nothing could be tested{': ' + reasons[0].rstrip('.') if reasons else ''}."
    sentence = result.question.headline(result)
    if untested:
        sentence += f"; {len(untested):,} of {len(asked):,} could not be tested"
    return f"{sentence}."


def compared_names(findings: Sequence[Finding], written: Callable[[str], str]) -> list[str]:
    """Name the group of each finding, and its reference where lines would look alike without."""
    lines = Counter((finding.group, finding.estimand) for finding in findings)
    if max(lines.values(), default=1) == 1:
        return [written(finding.group) for finding in findings]
    return [
        f"{written(finding.group)} compared with {written(finding.reference)}"
        if finding.reference
        else written(finding.group)
        for finding in findings
    ]


def decided(result: "AuditResult", decision: Decision) -> list[Finding]:
    """Return the findings with that decision, of those with a line of their own."""
    return [f for f in result.lines if f.decision is decision]


def tested(result: "AuditResult") -> list[Finding]:
    """Return the findings that rest on a test."""
    untested = (Decision.NOT_TESTED, Decision.ESTIMATED)
    return [f for f in result.lines if f.decision not in untested]


def estimated(result: "AuditResult") -> list[Finding]:
    """Return the findings with a number, tested or not, of those with a line of their own."""
    return [f for f in result.lines if f.estimate is not None]


def parts_of(finding: Finding, result: "AuditResult") -> list[Finding]:
    """Return what is told beside a finding: the other estimands of its group."""
    lines = result.lines
    first = next(f for f in lines if f.group == finding.group)
    if finding is not first:
        return []
    return [f for f in result.findings if f.group == finding.group and f not in lines]


def parts_words(parts: Sequence[Finding]) -> str:
    """Write what is told beside a finding on one line."""
    return "; ".join(f"{f.estimand.words} {number(f.estimate)}{_ends(f)}" for f in parts)


def _ends(finding: Finding) -> str:
    return "" if finding.ci is None else f" {interval(finding.ci)}"


def joint_detected(result: "AuditResult") -> bool:
    """Whether the test for all groups at once is `DETECTED`."""
    return result.joint is not None and result.joint.decision is Decision.DETECTED


def joint_p(result: "AuditResult") -> float | None:
    """Return the p-value of the test for all groups at once."""
    return None if result.joint is None else result.joint.p_value


def _distance(finding: Finding, result: "AuditResult") -> float:
    return abs((finding.estimate or 0.0) - result.details.null_value)


def largest(findings: Sequence[Finding], result: "AuditResult") -> Finding:
    """Return the finding furthest from the null value; of two on either side, the one below."""
    return max(findings, key=lambda f: (_distance(f, result), -(f.estimate or 0.0)))


def most_words(findings: Sequence[Finding], result: "AuditResult", *, clearly: bool = False) -> str:
    """Tell the finding furthest from the null value, or the clearest, of those not withheld."""
    told = [finding for finding in findings if not finding.withheld]
    if not told:
        return "with numbers that are withheld"
    most = "most clearly" if clearly else "most"
    chosen = max(told, key=lambda f: abs(f.statistic or 0.0)) if clearly else largest(told, result)
    return f"{foremost_word(told, findings, most)} for {value(chosen, result)}"


def foremost_word(told: Sequence[Finding], findings: Sequence[Finding], word: str = "most") -> str:
    """Write "most" or the like of those that are `told`, which may be some of the findings."""
    return word if len(told) == len(findings) else f"of those not withheld {word}"


def names(findings: Sequence[Finding], result: "AuditResult", most: int = 3) -> str:
    """Name the groups of which most is shown, of at least `LEADING` rows, and count the others."""
    null = result.details.null_value
    large = [finding for finding in findings if finding.n >= LEADING]
    large.sort(key=lambda f: (-least(f, null), -_distance(f, result), f.estimate or 0.0))
    several = compared_noun(result, "") != ""
    named = [
        group_words(finding.group, result.words)
        + (f" ({finding.estimand.noun})" if several else "")
        for finding in large[:most]
    ]
    rest = len(findings) - len(named)
    if not named:
        return f"{rest} {unnamed_words(findings, f'of fewer than {LEADING} rows')}"
    return "; ".join(named) + (f"; and {rest} more" if rest else "")


def unnamed_words(findings: Sequence[Finding], few: str) -> str:
    """Say why none of the groups is named: they have `few` rows, or are withheld."""
    return " or ".join(dict.fromkeys("withheld" if f.withheld else few for f in findings))


def compared_noun(result: "AuditResult", group: str) -> str:
    """Name one of what is counted: a `group`, or a comparison where there are several metrics."""
    return group if len(gap_metrics(result)) < 2 else "comparison"


def gap_metrics(result: "AuditResult") -> dict[str, str]:
    """Return the metrics whose gaps are compared, and what each is called."""
    return {f.estimand.metric: f.estimand.noun for f in result.findings if f.estimand.kind == "gap"}


def in_points(result: "AuditResult") -> bool:
    """Whether estimates are differences of shares of people, which are told in points."""
    asked = [finding.estimand.metric for finding in result.findings]
    told = [result.words.metrics.get(metric) for metric in asked or [result.details.get("metric")]]
    scales = {finding.estimand.scale for finding in result.findings}
    rates = all(words is not None and words.event is not None for words in told)
    return bool(told) and rates and "ratio" not in scales


def gap_size(value: float | None, result: "AuditResult") -> str:
    """Write the size of a gap in the unit of the result: points, where shares are compared."""
    if value is None or not in_points(result):
        return _writer(result.findings)(value)
    return f"{points(value)} percentage points"


def metric_words(result: "AuditResult") -> str:
    """Name the quantity that the findings are about, or the quantities."""
    several = gap_metrics(result)
    if len(several) > 1:
        return listed(several.values())
    # Where nothing is found, what was looked for still has its name.
    found = result.findings[0].estimand.noun if result.findings else result.details.get("noun")
    return found or "metric"


def level(result: "AuditResult") -> str:
    """Write the level of the tests."""
    return f"{100 * result.alpha:g}%"


def reference_words(result: "AuditResult") -> str:
    """Name what the groups are compared with, if that is the same for all."""
    compared = tested(result) or result.findings
    references = {finding.reference for finding in compared if finding.reference}
    named = result.details.get("reference")
    if named in ("highest", "lowest"):
        return f"the {named} {metric_words(result)}"
    if len(references) != 1:
        return "the reference"
    (one,) = references
    return group_words(one, result.words) if isinstance(one, GroupName) else shortened(one)


def quantity_words(result: "AuditResult") -> str:
    """Name the quantity, and in what the people compared are alike."""
    given = result.details.get("given")
    return metric_words(result) + (f" among people alike in {listed(given)}" if given else "")


_INDICES = {"index", "contribution"}


def _writer(findings: Sequence[Finding]) -> Callable[[float | None], str]:
    """Return how the numbers of findings are written in a sentence."""
    index = bool(findings) and all(f.estimand.kind in _INDICES for f in findings)
    return index_number if index else number


def _bounds(finding: Finding) -> str:
    ci, write = finding.ci, _writer([finding])
    if ci is None:
        return ""
    share = f"{100 * ci.confidence_level:g}%"
    if ci.low is None and ci.high is None:
        return f" ({share} interval without bounds)"
    if ci.high is None:
        return f" ({share} bound: at least {write(ci.low)})"
    if ci.low is None:
        return f" ({share} bound: at most {write(ci.high)})"
    return f" ({share} interval {write(ci.low)} to {write(ci.high)})"


def amount(finding: Finding) -> str:
    """Write an estimate with its interval."""
    return f"{_writer([finding])(finding.estimate)}{_bounds(finding)}"


def value(finding: Finding, result: "AuditResult") -> str:
    """Write whose estimate it is, of what, and how large: what is below with positive numbers."""
    group = group_words(finding.group, result.words)
    estimand, estimate = finding.estimand, finding.estimate
    if finding.withheld or estimate is None:
        return f"{group}, whose numbers are withheld"
    ci, below = finding.ci, estimate < 0.0
    if ci is not None and below:
        low, high = (None if end is None else -end for end in (ci.high, ci.low))
        ci = replace(ci, low=low, high=high)
    told = replace(finding, estimate=abs(estimate), ci=ci)
    if estimand.kind == "gap" and estimand.scale == "difference" and finding.reference:
        side = "below" if below else "above"
        reference = group_words(finding.reference, result.words)
        return (
            f"{group}, whose {estimand.noun} is {number(told.estimate)} {side} that of"
            f" {reference}{_bounds(told)}"
        )
    groups = compared_names(result.findings, lambda name: group_words(name, result.words))
    size = f"{number(told.estimate)} below zero{_bounds(told)}" if below else amount(told)
    return f"{groups[result.findings.index(finding)]}, {estimand.words} {size}"
