"""What subgroups are compared with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["External", "Reference"]


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


Reference: TypeAlias = str | float | Mapping[str, Any] | External
