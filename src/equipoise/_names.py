"""The name of a group, which knows the columns and labels it is made of."""

from collections.abc import Iterable
from typing import Self

__all__ = ["GroupName"]


class GroupName(str):
    """A group written ``race=Black & sex=Female``, with its parts beside it.

    Parameters
    ----------
    parts : iterable of (str, str)
        Column and label of each condition.

    Examples
    --------
    >>> group = GroupName([("race", "Black"), ("sex", "Female")])
    >>> print(group, group.parts[1])
    race=Black & sex=Female ('sex', 'Female')
    """

    __slots__ = ("parts",)

    parts: tuple[tuple[str, str], ...]

    def __new__(cls, parts: Iterable[tuple[str, str]]) -> Self:
        """Write the name, and keep the parts beside it."""
        pairs = tuple(parts)
        self = super().__new__(cls, " & ".join([f"{column}={label}" for column, label in pairs]))
        self.parts = pairs
        return self

    def __getnewargs__(self) -> tuple[tuple[tuple[str, str], ...]]:  # type: ignore[override]
        return (self.parts,)
