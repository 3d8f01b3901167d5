"""Gates for a test suite: two lines that say which subgroup is in the way.

They act on decisions, hence on tests and intervals, never on a point estimate. What the data cannot
settle is an outcome of its own, `InconclusiveError`, which a suite may treat as it likes.
"""

from collections.abc import Sequence

from equipoise.exceptions import InvalidParameterError
from equipoise.plans.gate import Outcome, asks_for_margin, outcome
from equipoise.results import wording
from equipoise.results.finding import Decision, Finding
from equipoise.results.result import AuditResult

__all__ = ["DetectedError", "InconclusiveError", "assert_not_detected", "assert_within_margin"]


class DetectedError(AssertionError):
    """A subgroup, or the joint test, is `DETECTED`."""


class InconclusiveError(AssertionError):
    """Some subgroup is neither shown to be within the margin nor beyond it."""


def assert_not_detected(result: AuditResult) -> None:
    """Raise if an audit detects something; the message lists the subgroups.

    Not raising does not show that there is nothing: the data may be too few. Use
    `assert_within_margin` on a `certify` result for a claim that needs evidence.

    Parameters
    ----------
    result : AuditResult
        Any audit.

    Raises
    ------
    DetectedError
        An `AssertionError`, with the headline and a line for each subgroup.

    Examples
    --------
    Does the accuracy of COMPAS differ by more than 5 points for a sex?

    >>> import equipoise as eq
    >>> from equipoise.testing import assert_not_detected
    >>> audit = eq.Audit(eq.datasets.load_compas_counts(), group="sex", count="count",
    ...                  y_true="two_year_recid", y_pred="high_risk")
    >>> assert_not_detected(audit.flag("accuracy", margin=0.05, alternative="outside"))

    No such difference is detected.
    """
    if outcome(result) is Outcome.DETECTED:
        found = [f for f in result.findings if f.decision is Decision.DETECTED]
        raise DetectedError(_message(result, found))


def assert_within_margin(result: AuditResult) -> None:
    """Raise unless every subgroup is shown to be within the margin.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.certify`, or another audit that was given a margin to show.

    Raises
    ------
    DetectedError
        If a subgroup is shown to be beyond the margin.
    InconclusiveError
        If the data settle it for some subgroups only; the message lists the others. Catch it to
        skip a test instead of failing it.

    Examples
    --------
    Is the accuracy of COMPAS shown to be within 5 points for every race?

    >>> import equipoise as eq
    >>> from equipoise.testing import InconclusiveError, assert_within_margin
    >>> audit = eq.Audit(eq.datasets.load_compas_counts(), group="race", count="count",
    ...                  y_true="two_year_recid", y_pred="high_risk")
    >>> try:
    ...     assert_within_margin(audit.certify("accuracy", margin=0.05))
    ... except InconclusiveError as unsettled:
    ...     print(str(unsettled).splitlines()[1])
    race: Asian: accuracy difference 0.19 (90% interval 0.0554 to 0.276), p 1.000, n = 32,
    inconclusive

    Not for all: 32 people do not settle it.
    """
    if not asks_for_margin(result):
        raise InvalidParameterError(
            f"`assert_within_margin` needs the result of `certify`; got one of {result.audit!r}."
        )
    assert_not_detected(result)
    if outcome(result) is not Outcome.WITHIN_MARGIN:
        unsettled = [f for f in result.lines if f.decision is not Decision.WITHIN_MARGIN]
        raise InconclusiveError(_message(result, unsettled))


def _message(result: AuditResult, findings: Sequence[Finding]) -> str:
    return "\n".join([wording.headline(result), *wording.finding_words(result, findings)])
