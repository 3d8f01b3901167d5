"""What an audit says of one group, and the words it may use."""

import math
from dataclasses import dataclass
from enum import StrEnum

from equipoise.exceptions import InvalidParameterError
from equipoise.results.estimand import Estimand

__all__ = [
    "INTERVAL_UNADJUSTED",
    "ConfidenceInterval",
    "Decision",
    "Finding",
    "JointTest",
    "Note",
]


class Decision(StrEnum):
    """Outcome of a test. Failing to reject is `NOT_DETECTED`: it shows nothing.

    `ESTIMATED` is a number without a test.
    """

    DETECTED = "detected"
    NOT_DETECTED = "not detected"
    WITHIN_MARGIN = "within margin"
    NOT_TESTED = "not tested"
    ESTIMATED = "estimated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A remark for the reader; each code has a heading in ``docs/notes.md``.

    Parameters
    ----------
    code : str
        Short name of the kind of remark.
    message : str
        The remark.
    """

    code: str
    message: str


INTERVAL_UNADJUSTED = Note(
    code="interval-unadjusted",
    message="The decision rests on the adjusted p-value, the interval stands alone: it can exclude"
    " zero where the decision does not.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceInterval:
    """An interval and its level; ``0 in ci`` asks whether zero lies inside.

    Parameters
    ----------
    low, high : float or None
        Ends; `None` means that the data give no bound on that side.
    confidence_level : float, default 0.95
        The level.
    """

    low: float | None
    high: float | None
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if bound is not None and not math.isfinite(bound):
                raise InvalidParameterError(
                    f"an interval bound must be finite or None; got {bound}."
                )
        if self.low is not None and self.high is not None and self.low > self.high:
            raise InvalidParameterError(f"an interval needs low <= high; got {self}.")

    def __contains__(self, value: float) -> bool:
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of an audit: a group, its estimate with an interval, and a decision.

    Parameters
    ----------
    group : str
        Written ``race=Black & sex=Female``.
    estimand : Estimand or str
        What is estimated, for instance ``"fpr difference"``.
    decision : Decision
        `NOT_TESTED` exactly when there is no p-value and no estimate, with a note that says why;
        `ESTIMATED` where there is an estimate and no test.
    n : int
        Rows used.
    method : str
        The test.
    estimate, ci, statistic, p_value, p_value_raw : optional
        Numbers, all finite; `p_value` is adjusted when the audit adjusts, `p_value_raw` never.
    reference : str
        What the group is compared with.
    notes : tuple of Note
        Remarks on this line.
    withheld : bool
        Whether the numbers were left out because the group is too small to be told.
    """

    group: str
    estimand: Estimand
    decision: Decision
    n: int
    method: str
    estimate: float | None = None
    ci: ConfidenceInterval | None = None
    statistic: float | None = None
    p_value: float | None = None
    p_value_raw: float | None = None
    reference: str = ""
    notes: tuple[Note, ...] = ()
    withheld: bool = False

    def __post_init__(self) -> None:
        estimand: object = self.estimand
        if not isinstance(estimand, Estimand):
            object.__setattr__(self, "estimand", Estimand(str(estimand)))
        # A sum of finite numbers is finite: one look at it does for the many that are.
        numbers = (self.estimate or 0.0) + (self.statistic or 0.0)
        numbers += (self.p_value or 0.0) + (self.p_value_raw or 0.0)
        if not math.isfinite(numbers):
            self._check_numbers()
        self._check_decision()

    def _check_numbers(self) -> None:
        """Raise if a number is not finite."""
        for name in ("estimate", "statistic", "p_value", "p_value_raw"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise InvalidParameterError(
                    f"`{name}` of {self.group!r} must be finite; got {value}."
                )

    def _check_decision(self) -> None:
        """Raise if the decision does not go with the numbers."""
        if self.withheld:
            if self.estimate is not None or self.p_value is not None or self.ci is not None:
                raise InvalidParameterError(f"{self.group!r} is withheld but has numbers.")
        elif self.decision is Decision.NOT_TESTED:
            if self.estimate is not None or self.p_value is not None:
                raise InvalidParameterError(f"{self.group!r} is not tested but has an estimate.")
            if not self.notes:
                raise InvalidParameterError(f"{self.group!r} is not tested; a note must say why.")
        elif self.estimate is None:
            raise InvalidParameterError(f"{self.group!r} was tested but has no estimate.")
        elif self.decision is Decision.ESTIMATED and self.p_value is not None:
            raise InvalidParameterError(f"{self.group!r} is only estimated but has a p-value.")

    @property
    def is_reference(self) -> bool:
        """Whether this group is what the others are compared with: nothing was asked of it."""
        return any(note.code == "vacuous" for note in self.notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTest:
    """One test for all groups at once.

    Parameters
    ----------
    null : str
        The hypothesis in words.
    decision : Decision
        `NOT_TESTED` needs a note.
    method : str
        The test.
    statistic, df, p_value : optional
        Finite numbers; `df` is `None` when the reference law is not a chi-square.
    notes : tuple of Note
        Remarks.
    """

    null: str
    decision: Decision
    method: str
    statistic: float | None = None
    df: float | None = None
    p_value: float | None = None
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        for name in ("statistic", "df", "p_value"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise InvalidParameterError(
                    f"`{name}` of the joint test must be finite; got {value}."
                )
        untested = self.decision is Decision.NOT_TESTED
        if untested != (self.p_value is None) or (untested and not self.notes):
            raise InvalidParameterError("a joint test has a p-value, or a note that says why not.")
