"""What subgroups are compared with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from equipoise._typing import Extreme

__all__ = ["External", "Reference", "is_extreme"]


@dataclass(frozen=True, slots=True)
class External:
    """A target estimated elsewhere, from data independent of the table.

    Parameters
    ----------
    value : float
        The estimate.
    se : float
        Its standard error.
    """

    value: float
    se: float


Reference: TypeAlias = str | float | Mapping[str, Any] | External | None


def is_extreme(reference: object) -> bool:
    """Whether the reference is the highest or the lowest category."""
    return isinstance(reference, str) and reference in get_args(Extreme)
