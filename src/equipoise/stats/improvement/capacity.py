r"""Select a fixed share of people by a score, ties included.

A rule that selects the top share :math:`\kappa` of a score S decides
:math:`D = 1\{S > q\} + \pi\,1\{S = q\}`: everyone above the cut-off, and of those who share the
score at it as many as there is room for, by lot. D is a chance, so nothing depends on the order of
rows, on names or on outcomes, and the share is met exactly. The cut-off is estimated: what that
adds to the influence of a row is in `equipoise.stats.improvement.rules`.
"""

from dataclasses import dataclass, replace

import numpy as np

from equipoise._checks import check_finite, check_fraction
from equipoise._typing import AnyArray, BoolArray, FloatArray
from equipoise.exceptions import InvalidParameterError

__all__ = [
    "Decisions",
    "cut_top_share",
    "match_share",
    "select_top",
    "top_share_cutoff",
]

# 0.29 * 100 is 28.999...: a share that means a whole number selects that number.
ROUNDING = 1e-9
# Averages over trees differ in the last bit where the scores are equal.
SAME_SCORE = 1e-12
NEAR_SHARE = 0.02
NEAR_LEAST = 20
BLOCK = 50
"""Rows with the score at the cut-off from which they alone describe people there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What a rule decides about some rows.

    Parameters
    ----------
    chance : array of shape (n,)
        Chance of selection: 0, 1, or what lies between them for people who draw lots.
    capacity : float, optional
        Share that the rule selects in every sample; without it, decisions are fixed.
    near : array of bool, optional
        Rows that would be selected next, or dropped next; with `capacity`.
    cutoff, at_cutoff : float, optional
        Score at the cut-off, and the chance of those who have it.
    tied : int
        How many have it.
    score : array of shape (n,), optional
        Score behind the decisions.
    threshold : float, optional
        Where the score is cut for the true minus the false positive rate, from other rows.
    """

    chance: FloatArray
    capacity: float | None = None
    near: BoolArray | None = None
    cutoff: float | None = None
    at_cutoff: float | None = None
    tied: int = 0
    score: FloatArray | None = None
    threshold: float | None = None

    def share(self, weight: AnyArray | None = None, count: AnyArray | None = None) -> float:
        """Return the share of people, or of weight, that is selected."""
        w = _masses(len(self.chance), weight, count)
        return float(w @ self.chance / w.sum())

    def repeated(self, times: int) -> "Decisions":
        """Return the decisions about all rows, repeated."""
        if times == 1:
            return self
        return replace(
            self,
            chance=np.tile(self.chance, times),
            near=None if self.near is None else np.tile(self.near, times),
            score=None if self.score is None else np.tile(self.score, times),
        )

    def fixed(self) -> "Decisions":
        """Return the same decisions, held fixed."""
        return Decisions(chance=self.chance, score=self.score, threshold=self.threshold)


def _masses(n: int, weight: AnyArray | None, count: AnyArray | None) -> FloatArray:
    masses = np.ones(n) if weight is None else check_finite("weight", weight, ndim=1)
    return masses if count is None else masses * np.asarray(count, dtype=np.float64)


def cut_top_share(
    score: AnyArray,
    capacity: float,
    *,
    weight: AnyArray | None = None,
    count: AnyArray | None = None,
) -> Decisions:
    """Select the top share of a score; those at the cut-off draw lots.

    Parameters
    ----------
    score : array of shape (n,)
        Higher is selected first. Scores that agree in twelve digits are equal.
    capacity : float
        Share of people (of weight), in (0, 1).
    weight : array of shape (n,), optional
        Sampling weights.
    count : array of shape (n,), optional
        How many identical rows each row stands for.

    Returns
    -------
    Decisions
        `near` holds the rows with the score at the cut-off if they are at least 50, else those of
        the nearest ranks, 1% of the rows (and at least 10) on either side.

    Raises
    ------
    InvalidParameterError
        If the capacity is less than one row.

    Examples
    --------
    Half of eight people are selected; five of them share the second best score.

    >>> found = cut_top_share([0.9, 0.8, 0.1], 0.5, count=[2, 5, 1])
    >>> found.chance.tolist(), found.tied
    ([1.0, 0.4, 0.0], 5)

    Two of the five: each has a chance of 40%.
    """
    values = check_finite("score", score, ndim=1)
    share = check_fraction("capacity", capacity)
    if weight is None and count is None:
        scores = _Scores.of_rows(values, share)
    else:
        scores = _Scores.of_masses(values, weight, count)
    if share * scores.n < 1.0 - ROUNDING:
        raise InvalidParameterError(
            f"a capacity of {capacity:g} selects nobody among {scores.n:.0f} rows; raise it."
        )
    room = share * scores.total
    cutoff = scores.at(room * (1.0 - ROUNDING))
    slack = SAME_SCORE * abs(cutoff)
    above, tied = values > cutoff + slack, np.abs(values - cutoff) <= slack
    chance = min((room - scores.mass(above)) / scores.mass(tied), 1.0)
    if chance > 1.0 - ROUNDING:
        chance = 1.0
    n_tied = scores.rows(tied)
    near = tied
    if n_tied < BLOCK:
        reach = max(NEAR_SHARE * scores.n, NEAR_LEAST) / 2.0
        rank = scores.rows(above)
        high = scores.at_rank(rank - reach + 1.0)
        low = scores.at_rank(rank + n_tied + reach)
        near = (values <= high + slack) & (values >= low - slack)
    return Decisions(
        chance=above + chance * tied,
        capacity=share,
        near=near,
        cutoff=cutoff,
        at_cutoff=chance,
        tied=round(n_tied),
        score=values,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores:
    """Scores in descending order, as far as they matter, and how much stands at or above each.

    Parameters
    ----------
    score : array of shape (m,)
        Descending.
    reached, ranks : array of shape (m,)
        Mass, and rows, down to each; they begin with what is left out above.
    masses, copies : array of shape (n,), optional
        Of all rows; ones without them.
    n, total : float
        Rows and mass in all.
    """

    score: FloatArray
    reached: FloatArray
    ranks: FloatArray
    masses: FloatArray | None
    copies: FloatArray | None
    n: float
    total: float

    @classmethod
    def of_rows(cls, values: FloatArray, share: float) -> "_Scores":
        """Sort the ranks about the cut-off alone."""
        n = len(values)
        middle = int(np.clip(np.floor(n * (1.0 - share)), 0, n - 1))
        reach = int(max(NEAR_SHARE * n, NEAR_LEAST)) + 2 * BLOCK
        low, high = max(middle - reach, 0), min(middle + reach, n - 1)
        window = np.sort(np.partition(values, [low, high])[low : high + 1])[::-1]
        ranks = np.arange(n - high, n - low + 1, dtype=np.float64)
        return cls(
            score=window,
            reached=ranks,
            ranks=ranks,
            masses=None,
            copies=None,
            n=float(n),
            total=float(n),
        )

    @classmethod
    def of_masses(
        cls, values: FloatArray, weight: AnyArray | None, count: AnyArray | None
    ) -> "_Scores":
        """Sort all rows."""
        masses = _masses(len(values), weight, count)
        copies = _masses(len(values), None, count)
        order = np.argsort(-values, kind="stable")
        return cls(
            score=values[order],
            reached=np.cumsum(masses[order]),
            ranks=np.cumsum(copies[order]),
            masses=masses,
            copies=copies,
            n=float(copies.sum()),
            total=float(masses.sum()),
        )

    def at(self, least: float) -> float:
        """Return the highest score such that it and those above have at least that mass."""
        return self._found(self.reached, least)

    def at_rank(self, rank: float) -> float:
        """Return the score of a rank; the first or the last beyond the ends."""
        return self._found(self.ranks, float(np.clip(rank, 1.0, self.n)))

    def _found(self, reached: FloatArray, least: float) -> float:
        place = int(np.searchsorted(reached, least * (1.0 - ROUNDING)))
        return float(self.score[min(place, len(self.score) - 1)])

    def mass(self, rows: BoolArray) -> float:
        """Return the mass of some rows."""
        if self.masses is None:
            return float(np.count_nonzero(rows))
        return float(self.masses[rows].sum())

    def rows(self, rows: BoolArray) -> float:
        """Return how many rows some rows stand for."""
        if self.copies is None:
            return float(np.count_nonzero(rows))
        return float(self.copies[rows].sum())


def match_share(
    decisions: AnyArray,
    capacity: float,
    *,
    weight: AnyArray | None = None,
    count: AnyArray | None = None,
) -> Decisions:
    """Bring given decisions to a share, by lot among the selected or among the others.

    Parameters
    ----------
    decisions : array of shape (n,)
        0 or 1.
    capacity : float
        Share of people (of weight), in (0, 1).
    weight, count : array of shape (n,), optional
        As in `cut_top_share`.

    Returns
    -------
    Decisions
        Whose share is the capacity.

    Examples
    --------
    Three of four are selected, two may be:

    >>> match_share([1, 1, 1, 0], 0.5).chance.round(3).tolist()
    [0.667, 0.667, 0.667, 0.0]
    """
    chosen = check_finite("decisions", decisions, ndim=1)
    target = check_fraction("capacity", capacity)
    share = Decisions(chance=chosen).share(weight, count)
    if share > target:
        return Decisions(chance=chosen * (target / share), capacity=target, near=chosen > 0)
    fill = (target - share) / (1.0 - share)
    return Decisions(chance=chosen + (1.0 - chosen) * fill, capacity=target, near=chosen < 1)


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
    w = _masses(len(values), weight, None)
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
        Decides between equal scores, smaller first; by default the order of the rows. An audit
        does not decide: it counts the chance, see `cut_top_share`.
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
    values = check_finite("score", score, ndim=1)
    share = check_fraction("capacity", capacity)
    w = _masses(len(values), weight, None)
    second = np.arange(len(values)) if tie is None else np.asarray(tie)
    order = np.lexsort((second, -values))
    selected = np.zeros(len(values), dtype=np.bool_)
    selected[order] = np.cumsum(w[order]) <= share * w.sum() * (1 + ROUNDING)
    if not selected.any():
        raise InvalidParameterError(
            f"a capacity of {capacity:g} selects nobody among {len(values)} rows; raise it."
        )
    return selected
