"""How a person reads a number, an interval, a name and a decision."""

from collections.abc import Callable, Iterable, Mapping

from equipoise._numbers import number, p_value
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest

__all__ = [
    "all_of",
    "count",
    "counted",
    "decision_word",
    "estimate_words",
    "index_number",
    "interval",
    "joint_line",
    "listed",
    "none_of",
    "number",
    "p_value",
    "short_points",
    "shortened",
    "to_be",
    "with_article",
]

DECISION_WORDS = {
    Decision.DETECTED: "detected",
    Decision.NOT_DETECTED: "not detected",
    Decision.WITHIN_MARGIN: "within margin",
    Decision.NOT_TESTED: "not tested",
    Decision.ESTIMATED: "estimated",
}


def counted(count: int, noun: str) -> str:
    """Write how many there are of something: 1 group, 2 groups, 2 categories."""
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else several}"


def to_be(count: int) -> str:
    """Return the verb of a sentence about so many: is, are."""
    return "is" if count == 1 else "are"


def all_of(count: int, noun: str) -> str:
    """Begin a sentence about all of several: "All 2 groups are", "The only group is"."""
    return f"The only {noun} is" if count == 1 else f"All {counted(count, noun)} are"


def none_of(count: int, noun: str) -> str:
    """Begin a sentence about none of several: "None of 2 groups was", "The only group was not"."""
    return f"The only {noun} was not" if count == 1 else f"None of {counted(count, noun)} was"


def index_number(value: float | None) -> str:
    """Write a part of an index, which has a scale of its own: no less than 0.001 of it."""
    if value is None or value == 0.0 or abs(value) >= 0.001:
        return number(value)
    return "<0.001" if value > 0.0 else ">-0.001"


def interval(ci: ConfidenceInterval | None, write: Callable[[float], str] = number) -> str:
    """Write an interval as ``[low, high]``; a side without bound is open."""
    if ci is None:
        return "-"
    low = "(-inf" if ci.low is None else f"[{write(ci.low)}"
    high = "inf)" if ci.high is None else f"{write(ci.high)}]"
    return f"{low}, {high}"


def short_points(value: float) -> str:
    """Write percentage points with one decimal, or two where one would be a single digit."""
    size = 100.0 * value
    return f"{size:.1f}" if abs(size) >= 0.95 else f"{size:z.2f}"


def estimate_words(value: float | None, *, shares: bool) -> str:
    """Write an estimate: differences of shares with their sign, in percentage points."""
    if value is None or not shares:
        return number(value)
    text = short_points(value)
    return f"+{text}" if value > 0.0 and float(text) else text


def decision_word(decision: Decision, words: Mapping[Decision, str] | None = None) -> str:
    """Return the word for a decision; `words` are those that a question has of its own."""
    return (DECISION_WORDS | dict(words or {}))[decision]


def with_article(noun: str) -> str:
    """Put "a" or "an" before a noun."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def listed(names: Iterable[str], word: str = "and") -> str:
    """List names as people do: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last


def shortened(name: str, width: int = 60) -> str:
    """Cut the middle of a name from the data to leave `width` characters; the table has it in full.

    Long names often begin alike: both ends stay.
    """
    end = (width - 1) // 3
    return name if len(name) <= width else f"{name[: width - 1 - end]}…{name[-end:]}"


def count(finding: Finding) -> str:
    """Write the rows of a finding, unless they are too few to be told."""
    return "withheld" if finding.withheld else f"{finding.n:,}"


def joint_line(joint: JointTest) -> str:
    """Write the joint test on one line."""
    if joint.p_value is None:
        return f"Joint: {joint.null}: not tested"
    statistic = "" if joint.statistic is None else f"statistic {number(joint.statistic)}, "
    df = "" if joint.df is None else f"df {joint.df:g}, "
    return (
        f"Joint: {joint.null}: {statistic}{df}"
        f"p {p_value(joint.p_value)}, {decision_word(joint.decision)}"
    )
