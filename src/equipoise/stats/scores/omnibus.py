r"""One test for several groups, and the pairs that differ, by closed testing.

With pooled regression m and shares :math:`\pi_g(s) = P(G = g | S = s)` the cumulative sums

.. math:: R_g(t) = \sum_i \omega_i (Y_i - m(S_i)) (1\{G_i = g\} - \pi_g(S_i)) 1(S_i \le t)

add up to zero over the groups; the statistic is the largest :math:`R(t)' V_0^- R(t)`, where
:math:`V_0 = \hat\sigma^2 \sum_i \omega_i^2 (\mathrm{diag}\,\pi - \pi \pi')` has one variance for
all groups, so that a tiny one cannot inflate it. With two groups it is the square of `cusum_test`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
import scipy

from equipoise._checks import check_rng
from equipoise._typing import AnyArray, FloatArray, IntArray, ParityAdjust, Rng
from equipoise.stats.multiplicity import adjusted_p_values, gaussian_draws, tail_share
from equipoise.stats.scores.cells import (
    AnyScoreCells,
    CellCounts,
    LinearBlock,
    Recipe,
    cell_counts,
    fitted_moments,
    mid_ranks,
    mixture,
)
from equipoise.stats.scores.curves import MAX_LEVELS
from equipoise.stats.scores.kernel import PooledFit

__all__ = [
    "OmnibusTest",
    "ParityFamily",
    "Residuals",
    "closed_pairs",
    "parity_family",
    "shaffer_pairs",
    "subsets_to_test",
]

N_DRAWS = 5000
N_STEPS = 50
"""Shares of the groups' mixture at which sums are recorded; fewer of very many groups."""
MOST_CLOSED = {False: 6, True: 4}
"""Groups of which all subsets are tested, without and with clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OmnibusTest:
    """Whether a score means the same in all of several groups.

    Parameters
    ----------
    statistic, p_value : float
        Largest quadratic form of the cumulative sums, and its p-value.
    location : float
        Score at which it is largest.
    """

    statistic: float
    p_value: float
    location: float


@dataclass(frozen=True)
class Residuals:
    """Cumulative sums of residuals of any of the groups of `cells`.

    Without clusters every test follows from one table of sums by group and score.

    Parameters
    ----------
    cells : ScoreCells or PartitionedCells
        The rows, on few enough scores.
    rng : numpy.random.Generator or int, optional
        Source of the draws; all tests use the same.
    """

    cells: AnyScoreCells
    rng: Rng = None

    @cached_property
    def counts(self) -> CellCounts:
        """Squared weights by group and score."""
        return self.cells.reduce(cell_counts)

    @cached_property
    def units(self) -> IntArray:
        """Independent units of each group."""
        return self.cells.units_in_group()

    @cached_property
    def numeric(self) -> list[int]:
        """Groups in an order made of numbers, so that their names do not matter."""
        mass, total = self.cells.sums()
        return sorted(range(len(mass)), key=lambda g: (mass[g].sum(), total[g].sum()))

    @cached_property
    def normal(self) -> FloatArray:
        """Standard normal draws, (steps, draws, groups - 1); fewer of very many groups."""
        k = self.cells.n_groups - 1
        shape = (N_STEPS, min(N_DRAWS, max(30_000 // k, 1000)), k)
        return check_rng(self.rng).standard_normal(shape)

    def test(self, groups: Sequence[int]) -> OmnibusTest | None:
        """Test some groups together; `None` when every residual is zero."""
        members = [g for g in self.numeric if g in set(groups)]
        mass, total = (sums[members] for sums in self.cells.sums())
        fit = _Fit.of(mass, total, int(self.units[members].sum()), clustered=self.cells.clustered)
        spread = np.einsum("jb,b->jb", fit.share, self.counts.square[members].sum(axis=0))
        second = np.diag(spread.sum(axis=1)) - spread @ fit.share.T
        counts = [part[members] for part in self.counts[1:]]
        square, square_total, square_square = counts
        error = square_square - 2.0 * fit.pooled * square_total + fit.pooled**2 * square
        variance = float(error.sum() / square.sum()) if square.sum() > 0.0 else 0.0
        # With clusters the sums have weights, not their squares: times the weight of a unit.
        unit = mass.sum() / self.units[members].sum() if self.cells.clustered else 1.0
        scale = variance * unit * second[1:, 1:]
        if variance <= 0.0 or not np.all(np.diag(scale) > 0.0):
            return None
        moves = _moves(fit, total - mass * fit.pooled)
        whiten = scipy.linalg.cholesky(
            np.linalg.pinv(scale, rcond=1e-9, hermitian=True)
            + 1e-12 / np.trace(scale) * np.eye(len(scale)),
            lower=True,
        )
        path = np.cumsum(moves, axis=0) @ whiten
        form = np.sum(path**2, axis=1)
        draws = (
            self._clustered(members, fit, whiten)
            if self.cells.clustered
            else self._independent(fit, error, whiten)
        )
        # Before the first score all sums are zero, and they stay so in balanced tables.
        best = int(fit.step[np.argmax(form[fit.step])])
        return OmnibusTest(
            statistic=float(form[best]),
            p_value=float(tail_share(draws, form[[best]])[0]),
            location=float(self.cells.support[np.flatnonzero(fit.step <= best)[-1]]),
        )

    def _independent(self, fit: "_Fit", error: FloatArray, whiten: FloatArray) -> FloatArray:
        """Draw the largest form: increments of different steps are independent."""
        k = len(whiten)
        sums = np.zeros((self.normal.shape[1], k))
        largest = np.zeros(len(sums))
        for step in range(fit.n_steps):
            own = fit.step == step
            product = np.einsum("gb,gjb,glb->jl", error[:, own], *[fit.factor[:, :, own]] * 2)
            if np.trace(product) > 0.0:
                sums += self.normal[step, :, :k] @ (_root(product).T @ whiten)
            largest = np.maximum(largest, np.einsum("ij,ij->i", sums, sums))
        return largest

    def _clustered(self, members: list[int], fit: "_Fit", whiten: FloatArray) -> FloatArray:
        """Draw the largest form from the covariance of all increments over clusters."""
        cells = self.cells.select(members)
        k = len(whiten)
        recipe = Recipe(_blocks, fit)
        covariance = cells.reduce(fitted_moments, recipe).covariance
        draws = gaussian_draws(covariance, n_draws=N_DRAWS, rng=self.rng)
        path = np.cumsum(draws.reshape(N_DRAWS, fit.n_steps, k), axis=1) @ whiten
        return np.asarray(np.max(np.sum(path**2, axis=2), axis=1))


class _Fit(NamedTuple):
    """Pooled regression and shares of some groups on the support.

    `factor` is 1{g} - share, (groups, groups - 1, scores): what a row of a group moves the sums of
    all groups but the first by. `step` is where a score enters the path.
    """

    pooled: FloatArray
    share: FloatArray
    factor: FloatArray
    step: AnyArray
    n_steps: int

    @classmethod
    def of(cls, mass: FloatArray, total: FloatArray, n_units: int, *, clustered: bool) -> "_Fit":
        n_groups, size = mass.shape
        ranks, blend = mid_ranks(mass), mixture(mass)
        width = 0.0 if size <= MAX_LEVELS else 0.306 * max(n_units, 1) ** -0.2
        everyone = mass.sum(axis=0)
        fit = PooledFit.of(ranks, everyone, total.sum(axis=0), width, share=blend)
        share = np.clip([fit.fitted(own) for own in mass], 0.0, 1.0)
        share /= np.maximum(share.sum(axis=0), 1e-300)
        factor = np.eye(n_groups)[:, 1:, None] - share[None, 1:, :]
        steps = N_STEPS if n_groups <= 10 else 40
        if clustered:
            steps = max(min(steps, 400 // n_groups), 10)
        step = np.minimum((ranks * steps).astype(np.int64), steps - 1)
        return cls(fit.value, share, factor, step, steps)


def _moves(fit: _Fit, residual: FloatArray) -> FloatArray:
    """Return what each step moves the sums by, (steps, groups - 1)."""
    term = np.einsum("gb,gjb->bj", residual, fit.factor)
    moves = np.zeros((fit.n_steps, term.shape[1]))
    np.add.at(moves, fit.step, term)
    return moves


class _Blocks(NamedTuple):
    blocks: list[LinearBlock]


def _blocks(fit: _Fit) -> _Blocks:
    """Return the moves as statistics of cells, ordered by step, then by group."""
    n_groups, k, size = fit.factor.shape
    coefficient = np.zeros((n_groups, size, fit.n_steps, k))
    at = np.arange(size)
    for g in range(n_groups):
        coefficient[g, at, fit.step] = fit.factor[g].T
    flat = coefficient.reshape(n_groups * size, fit.n_steps * k)
    return _Blocks([LinearBlock(flat, np.tile(fit.pooled, n_groups))])


def _root(matrix: FloatArray) -> FloatArray:
    """Return a lower triangular root of a covariance that may be singular."""
    ridge = 1e-9 * float(np.trace(matrix)) / len(matrix)
    return np.asarray(np.linalg.cholesky(matrix + ridge * np.eye(len(matrix))))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityFamily:
    """All groups at once, and the pairs of them.

    Parameters
    ----------
    omnibus : OmnibusTest or None
        Of all groups; `None` when every residual is zero.
    p_value : array
        Of each pair, adjusted; NaN where it was not tested.
    method : {"closed", "shaffer", "holm"}
        How.
    n_subsets : int
        Subsets of groups tested.
    """

    omnibus: OmnibusTest | None
    p_value: FloatArray
    method: str
    n_subsets: int


def parity_family(
    cells: AnyScoreCells,
    groups: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    raw: FloatArray,
    *,
    adjust: ParityAdjust = "closed",
    reference: int | None = None,
    rng: Rng = None,
) -> ParityFamily:
    """Test all groups at once, and adjust the p-values of pairs for their number.

    Parameters
    ----------
    cells : ScoreCells or PartitionedCells
        The rows, on few enough scores.
    groups : sequence of int
        Those that are large enough, at least three.
    pairs : sequence of (int, int)
        Pairs of them.
    raw : array of shape (len(pairs),)
        Their p-values; NaN was not tested.
    adjust : {"closed", "holm"}
        "closed" tests every subset of few groups, and uses Shaffer's factors for many.
    reference : int, optional
        The group that all pairs share.
    rng : numpy.random.Generator or int, optional
        Source of the draws.

    Returns
    -------
    ParityFamily
    """
    residuals = Residuals(cells, rng)
    omnibus = residuals.test(groups)
    if adjust == "holm":
        return ParityFamily(
            omnibus=omnibus, p_value=adjusted_p_values(raw, "holm"), method="holm", n_subsets=1
        )
    if len(groups) > MOST_CLOSED[cells.clustered]:
        p = 1.0 if omnibus is None else omnibus.p_value
        adjusted = shaffer_pairs(raw, p, len(groups))
        return ParityFamily(omnibus=omnibus, p_value=adjusted, method="shaffer", n_subsets=1)
    known = {frozenset(pair): 1.0 for pair in combinations(groups, 2)}
    if reference is not None:
        known = {pair: p for pair, p in known.items() if reference in pair}
    for pair, p in zip(pairs, raw.tolist(), strict=True):
        if not np.isnan(p):
            known[frozenset(pair)] = p
    for subset in subsets_to_test(groups, reference):
        found = omnibus if len(subset) == len(groups) else residuals.test(subset)
        known[frozenset(subset)] = 1.0 if found is None else found.p_value
    adjusted = closed_pairs(groups, known, pairs, reference=reference)
    return ParityFamily(
        omnibus=omnibus,
        p_value=np.where(np.isnan(raw), np.nan, adjusted),
        method="closed",
        n_subsets=len(known),
    )


def closed_pairs(
    groups: Sequence[int],
    p_value: Mapping[frozenset[int], float],
    pairs: Sequence[tuple[int, int]],
    *,
    reference: int | None = None,
) -> FloatArray:
    r"""Adjust the p-values of pairs by closed testing over partitions of the groups.

    The hypothesis of a pair is that a score means the same in both. Every intersection of such
    hypotheses is a partition of the groups into blocks within which it means the same; its p-value
    is the smallest of its blocks' times their number, and a pair's the largest over the partitions
    that keep it together.

    Parameters
    ----------
    groups : sequence of int
        All groups tested.
    p_value : mapping of frozenset of int to float
        Of every subset of at least two groups (with a reference: of every one that has it).
    pairs : sequence of (int, int)
        Of which p-values are wanted.
    reference : int, optional
        The group that all pairs share.

    Returns
    -------
    array of shape (len(pairs),)

    References
    ----------
    .. [1] R. Marcus, E. Peritz and K. R. Gabriel (1976), On closed testing procedures with special
       reference to ordered analysis of variance, Biometrika 63. https://doi.org/10.2307/2335748

    Examples
    --------
    Two groups agree, the third differs from both. Which pairs remain at 5%?

    >>> p = {frozenset(s): v for s, v in (((0, 1), .6), ((0, 2), .01), ((1, 2), .02),
    ...                                   ((0, 1, 2), .015))}
    >>> closed_pairs([0, 1, 2], p, [(0, 1), (0, 2), (1, 2)]).tolist()
    [0.6, 0.015, 0.02]

    Those with the third.
    """
    adjusted = np.zeros(len(pairs))
    if reference is not None:
        for subset, p in p_value.items():
            for k, pair in enumerate(pairs):
                if subset.issuperset(pair):
                    adjusted[k] = max(adjusted[k], p)
        return adjusted
    for partition in _partitions(list(groups)):
        blocks = [block for block in partition if len(block) > 1]
        if blocks:
            p = min(1.0, len(blocks) * min(p_value[frozenset(block)] for block in blocks))
            for k, pair in enumerate(pairs):
                if any(set(pair) <= set(block) for block in blocks):
                    adjusted[k] = max(adjusted[k], p)
    return adjusted


def subsets_to_test(groups: Sequence[int], reference: int | None) -> list[tuple[int, ...]]:
    """Return the sets of at least three groups whose tests `closed_pairs` needs."""
    return [
        subset
        for size in range(3, len(groups) + 1)
        for subset in combinations(groups, size)
        if reference is None or reference in subset
    ]


def shaffer_pairs(p_value: FloatArray, omnibus: float, n_groups: int) -> FloatArray:
    r"""Adjust the p-values of pairs by Holm with Shaffer's factor, after an omnibus test.

    If not all groups agree, at most :math:`\binom{G-1}{2}` of the pairs can be true together.

    Parameters
    ----------
    p_value : array
        Of the pairs; NaN is not tested.
    omnibus : float
        P-value that all groups agree.
    n_groups : int
        G.

    Returns
    -------
    array

    References
    ----------
    .. [1] J. P. Shaffer (1986), Modified sequentially rejective multiple test procedures, Journal
       of the American Statistical Association 81. https://doi.org/10.2307/2289016

    Examples
    --------
    >>> shaffer_pairs(np.array([0.001, 0.2]), 0.003, 8).round(3).tolist()
    [0.003, 0.2]
    """
    p = np.asarray(p_value, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    most = (n_groups - 1) * (n_groups - 2) // 2
    left = len(order) - np.arange(len(order))
    result = p.copy()
    scaled = np.maximum.accumulate(p[order] * np.minimum(left, most))
    result[order] = np.minimum(np.maximum(scaled, omnibus), 1.0)
    return result


def _partitions(items: list[int]) -> Iterator[list[list[int]]]:
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for size in range(len(rest) + 1):
        for chosen in combinations(rest, size):
            left = [item for item in rest if item not in chosen]
            for tail in _partitions(left):
                yield [[first, *chosen], *tail]
