"""Who is worse off, by how much: gaps as sentences in the words of the columns.

Any question whose findings compare groups may call `lead_sentence`; the numbers come from the
finding, both values from ``details.values``, and the words from `AuditResult.words`.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from equipoise._names import GroupName
from equipoise.results.finding import ConfidenceInterval, Finding
from equipoise.results.formats import number, shortened
from equipoise.results.words import Event, MetricWords, Words

if TYPE_CHECKING:
    from equipoise.results.result import AuditResult

__all__ = [
    "LEADING",
    "capital",
    "gap_sentence",
    "group_words",
    "group_writer",
    "known_group_words",
    "lead",
    "lead_sentence",
    "least",
    "pair_sentence",
    "points",
    "reference_name",
    "share",
    "size_sentence",
    "whole_group_words",
    "worse_off",
]

LEADING = 30
"""Rows that a group needs before a sentence names it."""

_OPPOSITE: dict[Event, Event] = {
    "selected": "not_selected",
    "not_selected": "selected",
    "outcome": "no_outcome",
    "no_outcome": "outcome",
}
_VERDICTS = {"right", "wrong"}
_NUMBER = re.compile(r"-?[\d.]+(e[-+]?\d+)?( \(external, se .*\))?$")
"""What stands in the place of a reference that is a number; groups have the name of a column."""
_EVERYBODY = {"the population": "everybody", "the rest": "everybody else"}


def share(value: float) -> str:
    """Write a share in per cent: one decimal, or two digits where that would be none."""
    return f"{points(value)}%"


def points(value: float) -> str:
    """Write a difference of shares in percentage points; what rounding leaves of none is none."""
    size = 100.0 * value
    if abs(size) < 1e-9 or abs(size) >= 0.95:
        return f"{size:z.1f}"
    return f"{size:.2f}" if abs(size) >= 0.095 else f"{size:.2g}"


def group_words(name: str, words: Words) -> str:
    """Name a group in a sentence; a long name is cut, the table has it in full."""
    return shortened(whole_group_words(name, words))


def known_group_words(name: str, result: "AuditResult") -> str:
    """Name a group of the details as the findings know it."""
    known = {str(name): name for f in result.findings for name in (f.group, f.reference)}
    return group_words(known.get(name, name), result.words)


def reference_name(finding: Finding, result: "AuditResult") -> str:
    """Name what a group is compared with, also where the data chose it."""
    tables = result.details.get("tables") or ()
    names = (one.get("highest") for one in tables if finding.group in one.get("categories", ()))
    chosen = next(names, None)
    group = next((line.group for line in result.lines if line.group == chosen), finding.reference)
    return group_words(group, result.words) or "the reference"


def group_writer(result: "AuditResult") -> Callable[[str], str]:
    """Return a function that writes the groups which a text names as people say them.

    It is for texts that are written before anybody gave words, such as a null hypothesis; a name
    that is a part of a longer word, or of another intersection, is none of these groups.
    """
    known = {g for f in result.findings for g in (f.group, f.reference) if isinstance(g, GroupName)}
    words = {str(name): whole_group_words(name, result.words) for name in known}
    # Subgroups that nobody named have conditions beside labels.
    found = result.details.get("shown") or ()
    words |= {one["group"]: ", ".join(one["words"]) for one in found}
    names = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    whole = re.compile(rf"(?<![\w=./-])(?<!& )(?:{names})(?! & |[-.,:/'\"=]?\w)")

    def written(text: str) -> str:
        if isinstance(text, GroupName):
            return whole_group_words(text, result.words)
        if text in words:
            return words[text]
        # Every name has the sign between a column and its label.
        if not words or "=" not in text:
            return text
        return whole.sub(lambda found: words[found[0]], text)

    return written


def whole_group_words(name: str, words: Words) -> str:
    """Name a group as people say it: by the labels of the plan, else by column and value."""
    if not isinstance(name, GroupName):
        return _EVERYBODY.get(name, name)
    whole = words.labels.get(" & ".join(f"{column}.{label}" for column, label in name.parts))
    if whole is not None:
        return whole
    known = [words.labels.get(f"{column}.{label}") for column, label in name.parts]
    said = [label for label in known if label is not None]
    if len(said) < len(known):
        return ", ".join(
            label or f"{column}: {value}"
            for label, (column, value) in zip(known, name.parts, strict=True)
        )
    # "African-American people" and "men" are African-American men.
    ends = (f" {words.people}", " people")
    if len(said) > 1 and " " in said[-1] and not any(label.endswith(ends) for label in said):
        return ", ".join(said)  # "men, defendants of other races"
    said.sort(key=lambda label: not label.endswith(ends))
    first = [label.removesuffix(ends[0]).removesuffix(ends[1]) for label in said[:-1]]
    return " ".join([*first, said[-1]])


def least(finding: Finding, null: float) -> float:
    """Return how far the interval stays from the null value: the part of the gap that is shown.

    On the ratio scale the distance is that of logarithms. Zero where the interval holds the null
    value, or there is none.
    """
    ci = finding.ci
    near = None
    if ci is not None and null not in ci:
        near = ci.low if ci.low is not None and ci.low > null else ci.high
    if near is None:
        return 0.0
    if finding.estimand.scale != "ratio":
        return abs(near - null)
    return abs(math.log(near / null)) if near > 0.0 < null else math.inf


def worse_off(finding: Finding, result: "AuditResult") -> bool | None:
    """Say whether the group is worse off than what it is compared with; None if not known."""
    told = result.words.metrics.get(finding.estimand.metric)
    if told is None or told.better is None or finding.estimate is None:
        return None
    gap = finding.estimate - result.details.null_value
    if gap == 0.0:
        return None
    return (gap > 0.0) == (told.better == "lower")


def lead(findings: Sequence[Finding], result: "AuditResult") -> Finding | None:
    """Return the finding that a summary names first, if one may be named at all.

    Groups of at least `LEADING` rows; those that are worse off before those that are better off;
    then the largest distance that is shown, whatever the estimate. Of two groups that are each
    other's rest, whose gaps are of one size, the one with less comes first, whatever its name.
    """
    large = [finding for finding in findings if finding.n >= LEADING]

    def order(finding: Finding) -> tuple[bool, float, float, float]:
        null = result.details.null_value
        gap = (finding.estimate or 0.0) - null
        return worse_off(finding, result) is not False, least(finding, null), abs(gap), -gap

    return max(large, key=order) if large else None


def lead_sentence(findings: Sequence[Finding], result: "AuditResult") -> str:
    """Tell the leading finding as a sentence without full stop; empty if none may lead."""
    first = lead(findings, result)
    return "" if first is None else gap_sentence(first, result)


def gap_sentence(finding: Finding, result: "AuditResult") -> str:
    """Tell a gap: both values, the difference, what is shown of it, and who is worse off.

    Parameters
    ----------
    finding : Finding
        With an estimate.
    result : AuditResult
        The finding is one of its own; ``details.values`` has the values of both sides.

    Returns
    -------
    str
        Without the full stop.
    """
    words = result.words
    told = words.metrics.get(finding.estimand.metric, MetricWords(noun=finding.estimand.noun))
    group, reference = group_words(finding.group, words), reference_name(finding, result)
    if _NUMBER.match(finding.reference or ""):
        reference = ""
    values = result.details.value_of(finding)
    own = None if values is None else values["group_value"]
    other = None if values is None else values["target_value"]
    if told.event is not None and own is not None and other is not None:
        sentence = _rates(finding, result, told, (group, reference), (own, other))
    else:
        sentence = _amounts(finding, result, told, (group, reference), (own, other))
    worse = worse_off(finding, result)
    if worse is None:
        return sentence
    return f"{sentence}, so {group} are {'worse' if worse else 'better'} off"


def pair_sentence(finding: Finding, result: "AuditResult") -> str:
    """Tell the values of both sides, whoever is worse off first, without the size of the gap.

    Where it is known which decision is good for people, that one is counted, so that how labels are
    coded changes no word.

    Parameters
    ----------
    finding : Finding
        With an estimate.
    result : AuditResult
        ``details.values`` has the values of both sides.

    Returns
    -------
    str
        Without the full stop; empty if a value is not known.
    """
    words = result.words
    told, event, flipped = _good_event(finding, result)
    values = result.details.value_of(finding)
    if values is None or values["group_value"] is None or values["target_value"] is None:
        return ""
    worse = worse_off(finding, result)
    sides = [
        (group_words(finding.group, words), values["group_value"]),
        (reference_name(finding, result), values["target_value"]),
    ]
    (first, one), (second, two) = sides[::-1] if worse is False else sides
    if event is None:
        sentence = f"the {told.noun} is {number(one)} for {first} and {number(two)} for {second}"
    else:
        counted = (1.0 - one, 1.0 - two) if flipped else (one, two)
        sentence = _shares(words, event, told.among, (first, second), counted)
    return capital(sentence if worse is None else f"{sentence}, so {first} are worse off")


def size_sentence(finding: Finding, result: "AuditResult", *, alike: str = "") -> str:
    """Tell the size of a gap whose sides have no values of their own, and who is worse off.

    Parameters
    ----------
    finding : Finding
        With an estimate.
    result : AuditResult
        The finding is one of its own.
    alike : str
        In what the people compared are alike.

    Returns
    -------
    str
        Without the full stop.
    """
    words = result.words
    told, event, flipped = _good_event(finding, result)
    group, reference = group_words(finding.group, words), group_words(finding.reference, words)
    estimate = finding.estimate or 0.0
    among = [f"alike in {alike}"] if alike else []
    if finding.estimand.scale == "ratio":
        size = f"is {number(estimate)} times that of {reference}{_shown(finding, result, number)}"
        sentence = f"the {told.noun} of {group} {size}"
    elif event is None or event in _VERDICTS:
        side = "higher" if estimate >= 0.0 else "lower"
        size = f"{number(abs(estimate))} {side} than that of {reference}"
        sentence = f"the {told.noun} of {group} is {size}{_shown(finding, result, number)}"
    else:
        more = "more" if (estimate >= 0.0) is not flipped else "fewer"
        size = f"{points(abs(estimate))} percentage points {more} of {group} than of {reference}"
        sentence = f"{size} {words.phrase(event)}{_shown(finding, result, points)}"
        if told.among is not None:
            among.append(f"who {words.phrase(told.among)}")
    start = f"among {words.people} {' '.join(among)}, " if among else ""
    worse = worse_off(finding, result)
    end = "" if worse is None else f", so {group} are {'worse' if worse else 'better'} off"
    return capital(f"{start}{sentence}{end}")


def _good_event(finding: Finding, result: "AuditResult") -> tuple[MetricWords, Event | None, bool]:
    """Return the words of a metric, what to count, and whether that is the opposite."""
    words = result.words
    told = words.metrics.get(finding.estimand.metric, MetricWords(noun=finding.estimand.noun))
    if told.event is not None and _OPPOSITE.get(told.event, told.event) == words.favourable:
        return told, words.favourable, True
    return told, told.event, False


def _shares(
    words: Words,
    event: Event,
    among: Event | None,
    names: tuple[str, str],
    values: tuple[float, float],
) -> str:
    """Tell two shares of people; a number beside which a group stands has no name."""
    (group, reference), (own, other) = names, values
    one, two = f"{share(own)} of {group}", f"{share(other)} of {reference}"
    if event in _VERDICTS:
        start = f"the decision is {event} for {one}"
        return f"{start} and {two}" if reference else f"{start}, compared with {share(other)}"
    start = "" if among is None else f"among {words.people} who {words.phrase(among)}, "
    if not reference:
        return f"{start}{one} {words.phrase(event)}, compared with {share(other)}"
    return f"{start}{one} and {two} {words.phrase(event)}"


def _rates(
    finding: Finding,
    result: "AuditResult",
    told: MetricWords,
    names: tuple[str, str],
    values: tuple[float, float],
) -> str:
    """Tell a gap between two shares of people."""
    words, event, flip = result.words, told.event, 1.0
    ratio = finding.estimand.scale == "ratio"
    if told.among is None and event in _OPPOSITE and not ratio and _commoner(event, values):
        # Of a decision and its opposite the rarer is named: how it is coded does not matter.
        event, flip = _OPPOSITE[event], -1.0
        values = (1.0 - values[0], 1.0 - values[1])
    sentence = "" if event is None else _shares(words, event, told.among, names, values)
    if ratio:
        size = f"{number(finding.estimate)} times the rate"
        return capital(f"{sentence}: {size}{_shown(finding, result, number)}")
    gap = flip * (finding.estimate or 0.0)
    more = "more" if gap >= 0.0 else "fewer"
    size = f"{points(abs(gap))} percentage points {more}"
    return capital(f"{sentence}: {size}{_shown(finding, result, points)}")


def _commoner(event: Event, values: tuple[float, float]) -> bool:
    """Whether the opposite of an event is rarer; a tie goes to the first of a pair of names."""
    middle = 0.5 * (values[0] + values[1])
    return middle > 0.5 or (middle == 0.5 and event in {"not_selected", "no_outcome"})


def _amounts(
    finding: Finding,
    result: "AuditResult",
    told: MetricWords,
    names: tuple[str, str],
    values: tuple[float | None, float | None],
) -> str:
    """Tell a gap between two numbers of any kind."""
    (group, reference), (own, other) = names, values
    estimate = finding.estimate or 0.0
    if own is None or other is None:
        sentence = f"the {told.noun} differs between {group} and {reference}"
    else:
        beside = f" and {number(other)} for {reference}"
        sentence = f"the {told.noun} is {number(own)} for {group}"
        sentence += beside if reference else f", compared with {number(other)}"
    if finding.estimand.scale == "ratio":
        return capital(f"{sentence}: {number(estimate)} times{_shown(finding, result, number)}")
    side = "higher" if estimate >= 0.0 else "lower"
    return capital(f"{sentence}: {number(abs(estimate))} {side}{_shown(finding, result, number)}")


def _shown(finding: Finding, result: "AuditResult", write: Callable[[float], str]) -> str:
    """Write the part of a gap that is shown, the interval, and the numbers of people."""
    null = result.details.null_value
    rows = "rows" if result.details.n_clusters else result.words.people
    compared = next(
        (
            f.n
            for f in result.findings
            if f.group == finding.reference and f.estimand.metric == finding.estimand.metric
        ),
        0,
    )
    size = f"{finding.n:,} and {compared:,} {rows}" if compared else f"{finding.n:,} {rows}"
    ci = finding.ci
    if ci is None:
        return f" ({size})"
    said = ""
    if null not in ci:
        above = ci.low is not None and ci.low > null
        near = (ci.low if above else ci.high) or 0.0
        if finding.estimand.scale == "ratio":
            said = f", at {'least' if above else 'most'} {number(near)}"
        else:
            said = f", at least {write(abs(near - null))}"
    joint = "joint " if result.details.get("simultaneous") else ""
    return f"{said} ({joint}{_interval(finding, ci, write)}; {size})"


def _interval(finding: Finding, ci: ConfidenceInterval, write: Callable[[float], str]) -> str:
    """Write an interval in the direction in which its gap is told, with positive numbers."""
    level = f"{100 * ci.confidence_level:g}% interval"
    low, high = ci.low, ci.high
    if finding.estimand.scale != "ratio" and (finding.estimate or 0.0) < 0.0:
        low, high = (None if high is None else -high), (None if low is None else -low)
    if low is None and high is None:
        return f"{level} without bounds"
    if high is None:
        return f"{level} {write(low or 0.0)} or more"
    if low is None:
        return f"{level} {write(high)} or less"
    return f"{level} {write(low)} to {write(high)}"


def capital(sentence: str) -> str:
    """Begin a sentence with a capital letter."""
    return sentence[:1].upper() + sentence[1:]
