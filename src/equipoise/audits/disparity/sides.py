"""Groups beside what they are held against: unions of cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from equipoise._checks import check_number
from equipoise._typing import AnyArray, BoolArray, IntArray
from equipoise.data.groups import Labelled, matching_cells, subgroup_name, subgroups
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import number_cells
from equipoise.results.finding import Note

__all__ = [
    "External",
    "FinestGroups",
    "Reference",
    "Sides",
    "finest_groups",
    "sides_of",
]


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


VACUOUS = Note(code="vacuous", message="This group is what the others are compared with.")
OVERLAP = Note(
    code="overlaps-reference",
    message="The group shares rows with what it would be compared with, so that no gap between them"
    " is tested here. Name a reference in the same columns.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinestGroups:
    """Combinations of the group columns, sorted by label.

    Parameters
    ----------
    columns : tuple of str
        The group columns.
    labels : tuple of arrays of shape (C,)
        Text label of each combination in each column.
    place : array of shape (K,)
        Combination of each of the cells that it was made from.
    """

    columns: tuple[str, ...]
    labels: tuple[AnyArray, ...]
    place: IntArray

    @property
    def size(self) -> int:
        """C, the number of combinations."""
        return len(self.labels[0])


def finest_groups(cells: Sequence[Labelled], columns: tuple[str, ...]) -> FinestGroups:
    """Join the cells of one or more tables by their group columns, whatever other keys they have.

    Parameters
    ----------
    cells : sequence of Labelled
        The first keys are the group columns.
    columns : tuple of str
        The group columns.

    Returns
    -------
    FinestGroups
        `place` runs through the cells of all tables.
    """
    if not columns:
        raise InvalidParameterError("this question compares groups; pass `group` to `Audit`.")
    labels = [np.concatenate([part.labels[k] for part in cells]) for k in range(len(columns))]
    place, known = number_cells(labels)
    return FinestGroups(columns=columns, labels=known, place=place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Subgroups and what each is held against.

    Parameters
    ----------
    names : tuple of str
        Written ``race=Black & sex=Female``, m of them.
    own, other : boolean array of shape (C, m)
        Finest groups of each subgroup and of its reference; none where they would overlap.
    words : str
        The reference, for a sentence.
    population : bool
        Whether gaps are to everybody; `other` is then the rest.
    known : float, optional
        A number in the place of a reference.
    why : tuple of Note or None
        Why a subgroup has no reference.
    """

    names: tuple[str, ...]
    own: BoolArray
    other: BoolArray
    words: str
    population: bool = False
    known: float | None = None
    why: tuple[Note | None, ...] = ()


def sides_of(
    groups: Labelled, reference: object, depth: int | None, *, question: str, numbers: bool
) -> Sides:
    """Form every subgroup and its reference.

    Parameters
    ----------
    groups : Labelled
        The finest groups.
    reference : "population", "rest", dict or float
        What subgroups are held against.
    depth : int, optional
        How many columns may be combined.
    question : str
        For messages.
    numbers : bool
        Whether a known number can stand in the place of the reference.

    Returns
    -------
    Sides
    """
    named = subgroups(groups, depth=depth)
    own = np.asarray(named.membership.toarray(), dtype=np.bool_)
    parts: dict[str, Any] = {"names": named.names, "own": own}
    nothing: tuple[Note | None, ...] = (None,) * len(named.names)
    if isinstance(reference, Mapping) and reference:
        cells = matching_cells(groups, dict(reference))
        labels = tuple(str(label) for label in reference.values())
        shared = np.asarray((own & cells[:, None]).any(axis=0))
        inside = np.asarray((own <= cells[:, None]).all(axis=0))
        why = [
            VACUOUS if within else OVERLAP if overlaps else None
            for within, overlaps in zip(inside, shared, strict=True)
        ]
        other = cells[:, None] & ~shared[None, :]
        return Sides(
            **parts, other=other, words=subgroup_name(tuple(reference), labels), why=tuple(why)
        )
    if isinstance(reference, str) and reference in {"population", "rest"}:
        everybody = np.asarray(own.all(axis=0))
        return Sides(
            **parts,
            other=~own,
            words=f"the {reference}",
            population=reference == "population",
            why=tuple(VACUOUS if alone else None for alone in everybody),
        )
    if numbers and isinstance(reference, (int, float)) and not isinstance(reference, bool):
        value = check_number("reference", reference)
        return Sides(**parts, other=~own, words=f"{value:g}", known=value, why=nothing)
    possible = '"population", "rest", a dict such as {"race": "White"}'
    possible += " or a number" if numbers else ""
    reason = ""
    if isinstance(reference, External) or reference in ("highest", "lowest"):
        reason = " A reference that the data choose, or that comes with an error of its own, has no"
        reason += f" valid test in {question}."
    raise InvalidParameterError(
        f"`reference` of {question} must be {possible}; got {reference!r}.{reason}"
    )
