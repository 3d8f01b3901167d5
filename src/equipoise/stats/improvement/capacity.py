"""Select a fixed share of people by a score."""

import numpy as np

from equipoise._checks import check_finite, check_fraction
from equipoise._typing import AnyArray, BoolArray, IntArray
from equipoise.exceptions import InvalidParameterError

__all__ = ["select_top", "selected_copies", "top_share_cutoff"]


# 0.29 * 100 is 28.999...: a share that means a whole number selects that number.
ROUNDING = 1e-9


def top_share_cutoff(score: AnyArray, capacity: float, *, weight: AnyArray | None = None) -> float:
    """Return the cut-off q such that ``score >= q`` selects at most a share `capacity`.

    Parameters
    ----------
    score : array of shape (n,)
        Higher is selected first.
    capacity : float
        Share of people, in (0, 1).
    weight : array of shape (n,), optional
        Sampling weights or counts.

    Returns
    -------
    float
        The smallest score for which the share of rows at or above it is at most `capacity`; if
        ties at the top exceed the capacity, the largest score.

    Examples
    --------
    Which score admits three of ten?

    >>> top_share_cutoff([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.3)
    8.0
    """
    values = check_finite("score", score, ndim=1)
    share = check_fraction("capacity", capacity)
    w = np.ones(len(values)) if weight is None else check_finite("weight", weight, ndim=1)
    if not len(values):
        raise InvalidParameterError("a cut-off needs at least one score; got none.")
    known, where = np.unique(values, return_inverse=True)
    above = np.cumsum(np.bincount(where, weights=w)[::-1])[::-1]
    fits = np.flatnonzero(above <= share * w.sum() * (1 + ROUNDING))
    return float(known[fits[0]] if len(fits) else known[-1])


def select_top(
    score: AnyArray,
    capacity: float,
    *,
    tie: AnyArray | None = None,
    weight: AnyArray | None = None,
) -> BoolArray:
    """Select as many rows with the highest scores as the capacity allows.

    Parameters
    ----------
    score : array of shape (n,)
        Higher is selected first.
    capacity : float
        Share of rows (or of their weight), in (0, 1).
    tie : array of shape (n,), optional
        Decides between equal scores, smaller first; by default the order of the rows.
    weight : array of shape (n,), optional
        Sampling weights.

    Returns
    -------
    array of bool

    Examples
    --------
    >>> select_top([0.2, 0.9, 0.9, 0.1], 0.25).tolist()
    [False, True, False, False]
    """
    count = np.ones(len(np.asarray(score)), dtype=np.int64)
    return selected_copies(score, capacity, count, tie=tie, weight=weight) > 0


def selected_copies(
    score: AnyArray,
    capacity: float,
    count: AnyArray,
    *,
    tie: AnyArray | None = None,
    weight: AnyArray | None = None,
) -> IntArray:
    """Return how many of the identical rows that each row stands for are selected.

    Parameters
    ----------
    score, capacity, tie, weight
        As in `select_top`; the weight is that of one of the identical rows.
    count : array of shape (n,)
        How many identical rows each stands for.

    Returns
    -------
    array of int

    Examples
    --------
    Half of eight people are selected; five of them have the second best score.

    >>> selected_copies([0.9, 0.8, 0.1], 0.5, [2, 5, 1]).tolist()
    [2, 2, 0]
    """
    values = check_finite("score", score, ndim=1)
    share = check_fraction("capacity", capacity)
    w = np.ones(len(values)) if weight is None else check_finite("weight", weight, ndim=1)
    second = np.arange(len(values)) if tie is None else np.asarray(tie)
    order = np.lexsort((second, -values))
    each, copies = w[order], np.asarray(count, dtype=np.int64)[order]
    whole = np.cumsum(each * copies)
    limit = share * whole[-1] * (1 + ROUNDING) if len(whole) else 0.0
    chosen = np.where(whole <= limit, copies, 0)
    last = int(np.searchsorted(whole, limit, side="right"))
    if last < len(whole):
        room = limit - (whole[last - 1] if last else 0.0)
        chosen[last] = min(copies[last], int(room // each[last]))
    if not chosen.any():
        raise InvalidParameterError(
            f"a capacity of {capacity:g} selects nobody among {copies.sum()} rows; raise it."
        )
    selected = np.zeros(len(values), dtype=np.int64)
    selected[order] = chosen
    return selected
