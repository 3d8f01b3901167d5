"""How scores are distributed in groups: rows on bins that all groups share, as a picture has them.

Rows at each score are known before anything is tested, so that no row is read again.
"""

from dataclasses import dataclass

import numpy as np

from equipoise._typing import FloatArray, IntArray
from equipoise.stats.scores.cells import AnyScoreCells, mixture, weighted_quantile
from equipoise.stats.scores.rows import sum_by

__all__ = ["N_BARS", "ScoreHistogram", "score_histogram"]

N_BARS = 40
"""Distinct scores up to which each has a bin of its own, and equal bins of more."""
TAIL = 0.005
"""Share of the groups' mixture on either side that may lie beyond the equal bins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreHistogram:
    """Rows of groups by score.

    Parameters
    ----------
    low, high : array of shape (k,)
        Ends of the bins, equal where a bin is one score. The first and the last bin reach to the
        lowest and the highest score.
    rows : array of shape (n_groups, k)
        Rows in each bin, of weight and cluster whatever.
    """

    low: FloatArray
    high: FloatArray
    rows: IntArray


def score_histogram(cells: AnyScoreCells, *, edge: float | None = None) -> ScoreHistogram:
    """Count the rows of every group on common bins.

    A few scores far away would leave the others one bin: where the range between the quantiles at
    0.5% and 99.5% is less than half of the whole, bins are equal in there.

    Parameters
    ----------
    cells : ScoreCells or PartitionedCells
        The rows.
    edge : float, optional
        A score at which a bin must begin.

    Returns
    -------
    ScoreHistogram
    """
    present = np.flatnonzero(cells.counts.sum(axis=0))
    score, rows = cells.support[present], cells.counts[:, present]
    if len(score) <= N_BARS:
        return ScoreHistogram(low=score, high=score, rows=rows)
    first, last = float(score[0]), float(score[-1])
    inner = weighted_quantile(score, mixture(rows.astype(np.float64)), np.array([TAIL, 1.0 - TAIL]))
    start, end = inner if 0.0 < np.ptp(inner) < 0.5 * (last - first) else (first, last)
    width = (end - start) / N_BARS
    origin = edge if edge is not None and start < edge < end else start
    # What rounding makes of a whole number of widths is that number.
    before, after = (np.ceil(part / width - 1e-9) for part in (origin - start, end - origin))
    ends = origin + width * np.arange(-before, after + 1.0)
    size = len(ends) - 1
    place = np.clip(np.searchsorted(ends, score, side="right") - 1, 0, size - 1)
    number = (np.arange(len(rows))[:, None] * size + place).ravel()
    low, high = ends[:-1].copy(), ends[1:].copy()
    low[0], high[-1] = min(low[0], first), max(high[-1], last)
    summed = sum_by(number, rows.ravel().astype(np.float64), len(rows) * size)
    return ScoreHistogram(
        low=low, high=high, rows=summed.reshape(len(rows), size).round().astype(np.int64)
    )
