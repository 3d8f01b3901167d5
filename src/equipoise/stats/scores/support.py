"""The scores that cells are made of: distinct values, or the means of narrow equal bins.

The rows may lie in several parts on several machines. They are asked for integers, extremes and
sums only, by the same arithmetic wherever they are, so that every engine makes the same bins.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.stats.scores.unit_rows import pieces, sum_by

__all__ = ["ScoreBins", "ScoreSupport", "score_support"]

ScoreParts: TypeAlias = Callable[
    [Callable[[FloatArray], tuple[FloatArray, ...]]], Sequence[tuple[FloatArray, ...]]
]
"""Applies a function to the scores of each part that has any, and returns what it found."""

TAIL = 1e-4
"""Share of the rows on either side that may lie outside the equal bins."""
BUCKETS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBins:
    """Equal bins between extreme quantiles: a few outliers must not make all bins wide.

    Parameters
    ----------
    origin, width : float
        Where a bin begins; a score equal to it falls on its right whatever the rounding.
    first, last : float
        Lowest and highest bin, counted from the origin; scores beyond them share these two.
    """

    origin: float
    width: float
    first: float
    last: float

    @property
    def size(self) -> int:
        """Bins, with one more at each end for scores on the other side of the origin."""
        return int(self.last - self.first) + 3

    def number(self, score: FloatArray) -> AnyArray:
        """Return the bin of each score, from 0 to `size` - 1."""
        found = np.empty(len(score), dtype=np.int32)
        for rows in pieces(len(score)):
            place = np.floor((score[rows] - self.origin) / self.width)
            number = np.clip(place, self.first, self.last)
            if self.last < 0.0:
                number[place >= 0.0] = self.last + 1.0
            if self.first >= 0.0:
                number[place < 0.0] = self.first - 1.0
            found[rows] = number - (self.first - 1.0)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSupport:
    """Scores, ascending, and how a score is placed among them.

    Parameters
    ----------
    values : array of shape (b,)
        Distinct scores, or mean scores of the bins that have any.
    bins : ScoreBins, optional
        `None` for distinct scores.
    place : array, optional
        Position of each bin among the values.
    """

    values: FloatArray
    bins: ScoreBins | None = None
    place: IntArray | None = None

    def position(self, score: FloatArray) -> IntArray:
        """Return the position of each score among the values."""
        if self.bins is None or self.place is None:
            return np.searchsorted(self.values, score).astype(np.int32)
        return self.place[self.bins.number(score)]


def score_support(
    parts: ScoreParts, *, n_bins: int | None, edge: float | None = None, exact_rows: int = 0
) -> ScoreSupport:
    """Agree on the scores that all parts use.

    Parameters
    ----------
    parts : callable
        Applies a function to the scores of each part.
    n_bins : int, optional
        How many equal bins to use between extreme quantiles; `None` for exact scores.
    edge : float, optional
        A score at which a bin must begin.
    exact_rows : int, default 0
        Scores of at most this many rows are exact.

    Returns
    -------
    ScoreSupport

    Examples
    --------
    Where do the scores 0.1, 0.5 and 0.9 lie, when one machine has seen two of them?

    >>> pieces = [np.array([0.9, 0.1]), np.array([0.5, 0.5])]
    >>> support = score_support(
    ...     lambda function: [function(piece) for piece in pieces], n_bins=9, exact_rows=4
    ... )
    >>> support.position(np.array([0.5, 0.9])).tolist()
    [1, 2]

    At the second and third place.
    """
    extent = [] if n_bins is None else [part[0] for part in parts(_extent)]
    ends = np.unique([end for _, *both in extent for end in both])
    if n_bins is None or len(ends) < 2 or sum(n for n, *_ in extent) <= exact_rows:
        found = [values for (values,) in parts(_distinct)]
        return ScoreSupport(values=np.unique(np.concatenate([np.empty(0), *found])))
    inner = np.array(_inner_range(parts, float(ends[0]), float(ends[-1])))
    width = float(inner[1] - inner[0]) / n_bins
    origin = float(ends[0] if edge is None else edge)
    first, last = np.floor((inner - origin) / width) + np.array([-1.0, 1.0]) * (n_bins // 2)
    bins = ScoreBins(origin=origin, width=width, first=float(first), last=float(last))
    n, total = (sum(sums) for sums in zip(*parts(partial(_bin_sums, bins)), strict=True))
    full = n > 0.0
    # The mean score of a bin makes the error of binning second order in the width.
    return ScoreSupport(
        values=total[full] / n[full], bins=bins, place=(np.cumsum(full) - 1).astype(np.int32)
    )


def _extent(score: FloatArray) -> tuple[FloatArray, ...]:
    return (np.array([len(score), score.min(), score.max()]),)


def _distinct(score: FloatArray) -> tuple[FloatArray, ...]:
    return (np.unique(score),)


def _bin_sums(bins: ScoreBins, score: FloatArray) -> tuple[FloatArray, ...]:
    number = bins.number(score)
    return sum_by(number, None, bins.size), sum_by(number, score, bins.size)


def _inner_range(parts: ScoreParts, low: float, high: float) -> tuple[float, float]:
    """Narrow the range to the buckets of the extreme quantiles, until it hardly shrinks.

    Counts are integers and the edges follow from counts, so every engine finds the same range.
    """
    a, b = low, high
    while True:
        width = (b - a) / BUCKETS
        if not a < a + width or not b - width < b:
            # Nearly all scores are one value.
            return low, high
        (counts,) = (sum(c) for c in zip(*parts(partial(_bucket_counts, a, width)), strict=True))
        share = np.cumsum(counts) / counts.sum()
        i = int(np.clip(np.searchsorted(share, TAIL, side="right") - 1, 0, BUCKETS - 1))
        j = int(np.clip(np.searchsorted(share, 1.0 - TAIL) - 1, i, BUCKETS - 1))
        before = b - a
        a, b = a + i * width, a + (j + 1) * width
        if 2.0 * (b - a) > before:
            return a, b


def _bucket_counts(low: float, width: float, score: FloatArray) -> tuple[FloatArray, ...]:
    """Count the scores of each bucket; the first and the last count what lies outside."""
    bins = ScoreBins(origin=low, width=width, first=-1.0, last=float(BUCKETS))
    return (sum_by(bins.number(score), None, bins.size)[1:-1],)
