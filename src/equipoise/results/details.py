"""Numbers beyond the table: a typed record for each family, a dictionary on the wire."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, NotRequired, Self, TypedDict, TypeVar

from equipoise.exceptions import InvalidParameterError
from equipoise.results.finding import Finding

__all__ = ["IN_MEMORY", "Details", "GroupValue", "details_of"]

D = TypeVar("D", bound="Details")


class GroupValue(TypedDict):
    """The metric of one group and of what it is compared with; named where there are several."""

    group: str
    metric: NotRequired[str]
    group_value: float | None
    target_value: float | None
    se: float | None


IN_MEMORY = {"in_memory": True}
"""Metadata of a field that is never written: objects that live in this process only."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Details:
    """What every picture and table may ask of a result; families add their own.

    The record also reads as a dictionary: ``result.details["null_value"]``.

    Parameters
    ----------
    null_value : float
        Where estimates lie if there is nothing to find.
    bounds : list of float, optional
        Ends of what is tolerated.
    n_clusters : int, optional
        Independent units, where rows repeat them.
    values : list of GroupValue
        The metric of each group, where findings compare groups.
    """

    null_value: float = 0.0
    bounds: list[float] | None = None
    n_clusters: int | None = None
    values: list[GroupValue] = field(default_factory=list)

    def value_of(self, finding: Finding) -> GroupValue | None:
        """Return the values behind a finding, where it compares a group with another."""
        metric = finding.estimand.metric
        for value in self.values:
            if value["group"] == finding.group and value.get("metric", metric) == metric:
                return value
        return None

    def group_rows(self) -> dict[str, int]:
        """Return the rows of the groups, where findings count those of pairs; else nothing."""
        return {}

    def told(self, min_cell: int) -> Self:  # noqa: ARG002
        """Return what may leave the process when fewer than `min_cell` rows must not be told."""
        return self

    def __getitem__(self, name: str) -> Any:
        if name not in self.__dataclass_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __contains__(self, name: object) -> bool:
        return name in self.__dataclass_fields__

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dataclass_fields__)

    def __eq__(self, other: object) -> bool:
        # Fitted objects that were made alike are different objects; what is written decides.
        written = other.to_dict() if isinstance(other, Details) else other
        return self.to_dict() == written

    __hash__ = None  # type: ignore[assignment]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a number by its name, or `default` where there is none of that name."""
        return getattr(self, name) if name in self else default

    def keys(self) -> tuple[str, ...]:
        """Return the names, so that ``dict(details)`` works."""
        return tuple(self.__dataclass_fields__)

    def to_dict(self) -> dict[str, Any]:
        """Return what is written: everything but what lives in memory only."""
        return {
            part.name: getattr(self, part.name)
            for part in fields(self)
            if not part.metadata.get("in_memory")
        }


def details_of(details: Details, kind: type[D]) -> D:
    """Return the details as those of a family, or raise."""
    if not isinstance(details, kind):
        raise InvalidParameterError(
            f"a result with {kind.__name__} is needed here; got {type(details).__name__}."
        )
    return details
