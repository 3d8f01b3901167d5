"""What columns, labels and people are called in sentences, and which decision is good for them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = ["Event", "MetricWords", "Words"]

Event: TypeAlias = Literal["selected", "not_selected", "outcome", "no_outcome", "right", "wrong"]
"""What may have happened to a person: the decision, the outcome, or whether they agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricWords:
    """How a metric is told.

    Parameters
    ----------
    noun : str
        What it is called.
    event : str, optional
        Of a rate: what is counted.
    among : str, optional
        Of a rate: the people it is counted among; by default all.
    better : {"higher", "lower"}, optional
        Which values are better for the people concerned; None where that is not known.
    """

    noun: str
    event: Event | None = None
    among: Event | None = None
    better: Literal["higher", "lower"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of a result: those of its columns, or those that a plan gives.

    Parameters
    ----------
    people : str
        Who the rows are.
    selected, not_selected, outcome, no_outcome : str
        What follows "45% of them": ``"were labelled high risk"``, ``"have `high_risk` = 1"``.
    favourable : str, optional
        Which of these is good for a person.
    metrics : mapping of str to MetricWords
        How each metric of the result is told.
    labels : mapping of str to str
        What people call a group: ``{"sex.2": "women"}``.
    """

    people: str = "people"
    selected: str = "were selected"
    not_selected: str = "were not selected"
    outcome: str = "have the outcome"
    no_outcome: str = "do not have the outcome"
    favourable: Event | None = None
    metrics: Mapping[str, MetricWords] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def phrase(self, event: Event) -> str:
        """Return what follows "45% of them"."""
        return str(getattr(self, event))

    def to_dict(self) -> dict[str, Any]:
        """Return what is written."""
        return asdict(self) | {
            "labels": dict(self.labels),
            "metrics": {name: asdict(words) for name, words in self.metrics.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Words":
        """Read what `to_dict` wrote."""
        metrics = {name: MetricWords(**words) for name, words in data.get("metrics", {}).items()}
        return cls(**{**data, "metrics": metrics})
