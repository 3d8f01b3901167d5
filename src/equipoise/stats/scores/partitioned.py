r"""Score cells whose rows stay where they are: sums over parts that hold whole units.

Everything that the kernel tests ask of rows is a sum over independent units. So a function of
`ScoreCells` is sent to every part, runs there on the units of the part, and the arrays that come
back are added up, part by part in a fixed order. The tests see an object with the questions of
`ScoreCells` and do not know the difference.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.stats.scores.cells import InfluenceMoments, ScoreCells, Sums, influence_moments

__all__ = ["AnyScoreCells", "PartitionedCells", "Recipe", "fitted_moments"]

Made = TypeVar("Made")

Parts: TypeAlias = Callable[
    [Callable[[ScoreCells], tuple[AnyArray, ...]]], Sequence[tuple[FloatArray, ...]]
]
"""Applies a function to the cells of each part; returns its arrays, flat, in the order of parts."""


class Recipe(Generic[Made]):
    """Something large that is made from small inputs, and made again wherever it is sent.

    Kernel coefficients of many scores at many points would take longer to send than to compute.
    """

    def __init__(self, make: Callable[..., Made], *inputs: Any) -> None:
        self._make, self._inputs = make, inputs

    @cached_property
    def made(self) -> Made:
        """The thing itself."""
        return self._make(*self._inputs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the inputs alone."""
        return Recipe, (self._make, *self._inputs)


def fitted_moments(cells: ScoreCells, fit: Recipe[Any]) -> InfluenceMoments:
    """Sum the products of the influence values of a fit, its `blocks`, over units."""
    return influence_moments(cells, fit.made.blocks)


class _Summary(NamedTuple):
    mass: FloatArray
    total: FloatArray
    n_rows: IntArray
    units_in_group: IntArray
    n_units: IntArray
    not_binary: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionedCells:
    """What `ScoreCells` offers, of rows in several parts.

    Parameters
    ----------
    parts : callable
        Applies a function to the `ScoreCells` of every part that has rows.
    none : ScoreCells
        The same cells without rows: groups, scores, and the shape of every answer.
    summary : tuple of arrays
        Sums by (group, score), rows and units.
    outcome_range : (float, float)
        Smallest and largest outcome.
    """

    parts: Parts
    none: ScoreCells
    summary: _Summary
    outcome_range: tuple[float, float]

    @classmethod
    def of(cls, parts: Parts, none: ScoreCells) -> "PartitionedCells":
        """Sum up the parts; a part may have no row left."""
        found = parts(_described)
        zero = _described(none)
        return cls(
            parts=parts,
            none=none,
            summary=_Summary(*_added(zero[:-1], found)),
            outcome_range=(
                min((float(part[-1][0]) for part in found), default=np.inf),
                max((float(part[-1][1]) for part in found), default=-np.inf),
            ),
        )

    @property
    def support(self) -> FloatArray:
        """Scores of the cells."""
        return self.none.support

    @property
    def clustered(self) -> bool:
        """Whether units can have several rows."""
        return self.none.clustered

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.none.n_groups

    @property
    def n_rows(self) -> IntArray:
        """Rows in each group."""
        return self.summary.n_rows

    @property
    def n_units(self) -> int:
        """Independent units."""
        return int(self.summary.n_units)

    @property
    def binary(self) -> bool:
        """Whether every outcome is 0 or 1."""
        return not self.summary.not_binary

    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Return the sums of weights and of weighted outcomes, each of shape (n_groups, b)."""
        return self.summary.mass, self.summary.total

    def units_in_group(self) -> IntArray:
        """Return the number of units with a row in each group."""
        return self.summary.units_in_group

    def units_within(self, low: FloatArray, high: FloatArray) -> IntArray:
        """Count the units that have a score in each window; shape (n_groups, len(low))."""
        return self.reduce(ScoreCells.units_within, low, high)

    def reduce(self, function: Callable[..., Sums], *arguments: Any) -> Sums:
        """Apply an additive function to every part, and add up what it makes of them."""
        zero: Any = function(self.none, *arguments)
        found = self.parts(partial(_arrays, function, arguments))
        several = isinstance(zero, tuple)
        added = _added(zero if several else (zero,), found)
        total: Sums = type(zero)(*added) if several else added[0]
        return total

    def select(self, groups: Sequence[int]) -> "PartitionedCells":
        """Return the rows of some groups, renumbered in the order given; weights are unchanged."""
        if list(groups) == list(range(self.n_groups)):
            return self
        return self._narrowed(partial(_selected, list(groups)))

    def above(self, threshold: float) -> "PartitionedCells":
        """Return the rows with a score of at least `threshold`; units without any are dropped."""
        return self._narrowed(partial(_above, threshold))

    def _narrowed(self, narrow: Callable[[ScoreCells], ScoreCells]) -> "PartitionedCells":
        parts = self.parts
        return PartitionedCells.of(
            lambda function: parts(partial(_composed, function, narrow)), narrow(self.none)
        )


AnyScoreCells: TypeAlias = ScoreCells | PartitionedCells
"""Rows by group and score, wherever they are."""


def _described(cells: ScoreCells) -> tuple[AnyArray, ...]:
    """Return the fields of the summary, then the range of outcomes."""
    outcome = cells.rows.outcome.astype(np.float64)
    return (
        *cells.sums(),
        cells.n_rows,
        cells.units_in_group(),
        np.array(cells.n_units),
        np.array(int(not cells.binary)),
        np.array([outcome.min(initial=np.inf), outcome.max(initial=-np.inf)]),
    )


def _arrays(
    function: Callable[..., Any], arguments: tuple[Any, ...], cells: ScoreCells
) -> tuple[AnyArray, ...]:
    found = function(cells, *arguments)
    return found if isinstance(found, tuple) else (found,)


def _added(zero: tuple[AnyArray, ...], parts: Sequence[tuple[FloatArray, ...]]) -> list[Any]:
    """Add up the arrays of the parts, which come flat, in the shapes of `zero`."""
    return [
        sum((part[k] for part in parts), np.zeros(array.size))
        .reshape(array.shape)
        .astype(array.dtype)
        for k, array in enumerate(zero)
    ]


def _selected(groups: list[int], cells: ScoreCells) -> ScoreCells:
    return cells.select(groups)


def _above(threshold: float, cells: ScoreCells) -> ScoreCells:
    return cells.above(threshold)


def _composed(
    function: Callable[[ScoreCells], tuple[AnyArray, ...]],
    narrow: Callable[[ScoreCells], ScoreCells],
    cells: ScoreCells,
) -> tuple[AnyArray, ...]:
    return function(narrow(cells))
