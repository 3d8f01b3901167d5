r"""Search for subgroups in one part of the rows, test them in the other.

For outcomes without an exact test of every slice: real values, clusters, weights. A beam search
with conditions at finer cuts picks a few candidates in the discovery part, where their estimates
are too large (the winner's curse); only the test part, which the search has not seen, says how
large they are.

References
----------
.. [1] E. Chung and J. P. Romano (2013), Exact and asymptotically robust permutation tests, Annals
   of Statistics 41, 484-507, doi:10.1214/13-AOS1090.
.. [2] J. J. Goeman and A. Solari (2011), Multiple testing for exploratory research, Statistical
   Science 26, 584-597, doi:10.1214/11-STS356.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import special

from equipoise._checks import check_finite, check_fraction, check_integer, check_rng
from equipoise._typing import Alternative, AnyArray, BoolArray, FloatArray, IntArray, Rng
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.disparity.conditions import BinnedFeature
from equipoise.stats.disparity.contrasts import (
    IntervalEstimate,
    Mover,
    WilsonRate,
    stacked_laws,
    unit_law,
)
from equipoise.stats.disparity.discovery import Discovery, Subgroup
from equipoise.stats.hypergeometric import tails
from equipoise.stats.multiplicity import adjusted_p_values

__all__ = ["PermutedContrast", "at_least", "split_discovery", "split_rows"]

BEAM = 100
LARGEST_SEARCH = 200_000
N_DRAWS = 9_999
FEWEST_DRAWS = 1_999
NEARLY_NORMAL = 0.02
"""Skewness over the root of the smaller side up to which Welch's z serves."""

_SALT = 0x9E3779B97F4A7C15

_Score: TypeAlias = tuple[float, float, float]
"""How well a slice does, the best first: minus its score, its rows, 1 if it lies below."""


def split_rows(
    n: int, *, share: float = 0.5, cluster: AnyArray | None = None, seed: int = 0
) -> BoolArray:
    """Choose the rows that are searched, whole clusters at a time, by a hash of their number.

    Parameters
    ----------
    n : int
        Rows.
    share : float, default 0.5
        Share of the rows (clusters) to search.
    cluster : array of shape (n,), optional
        Unit of each row.
    seed : int, default 0
        Another seed, another split.

    Returns
    -------
    boolean array of shape (n,)
        True for rows to search.

    Examples
    --------
    >>> bool(450 < split_rows(1000).sum() < 550)
    True
    """
    part = check_fraction("split", share)
    unit = (
        np.arange(n) if cluster is None else np.unique(np.asarray(cluster), return_inverse=True)[1]
    )
    state = _mixed(unit.astype(np.uint64) + np.uint64((seed + 1) * _SALT % 2**64))
    return np.asarray(state.astype(np.float64) < part * 2.0**64)


def _mixed(state: AnyArray) -> AnyArray:
    """Spread 64 bits: the finaliser of splitmix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(state ^ (state >> np.uint64(31)))


def _own_order(
    y: FloatArray,
    numbers: Sequence[AnyArray],
    features: Sequence[BinnedFeature],
    cluster: AnyArray | None,
) -> tuple[IntArray, IntArray | None]:
    """Return an order of the rows, and numbers of the clusters, made of what they hold.

    Neither the order in which rows came nor the names of levels and clusters count; rows, or
    clusters, that are alike in everything stand side by side. Levels of a feature are told apart by
    their rows and outcomes, and only where these tie by their place.
    """
    rank = np.unique(y, return_inverse=True)[1]
    content = _mixed(rank.astype(np.uint64) + np.uint64(_SALT))
    keys = [np.unique(one, return_inverse=True)[1] for one in numbers]
    keys += [_places(one.code, one.n_codes, content)[one.code] for one in features]
    for key in keys:
        content = _mixed(content * np.uint64(_SALT) + key.astype(np.uint64))
    if cluster is None:
        return np.argsort(content, kind="stable"), None
    unit = np.unique(cluster, return_inverse=True)[1]
    number = _places(unit, int(unit.max()) + 1, content)[unit]
    return np.lexsort((content, number)), number


def _places(part: IntArray, n_parts: int, content: AnyArray) -> IntArray:
    """Put parts of the rows in an order made of their sizes and of what their rows hold."""
    total = np.zeros(n_parts, dtype=np.uint64)
    np.add.at(total, part, content)
    place = np.empty(n_parts, dtype=np.int64)
    place[np.lexsort((total, np.bincount(part, minlength=n_parts)))] = np.arange(n_parts)
    return place


@dataclass(frozen=True, slots=True)
class PermutedContrast:
    """A difference of means with the law of its studentised permutations.

    Parameters
    ----------
    estimate, se : array of shape (1,)
        Difference and Welch's standard error.
    draws : array of shape (B,)
        Studentised differences of permuted rows, in increasing order.
    """

    estimate: FloatArray
    se: FloatArray
    draws: FloatArray

    def root(self, null: FloatArray) -> FloatArray:
        """Permutation p-value on the normal scale."""
        t = float(((self.estimate - null) / self.se)[0])
        above = len(self.draws) - np.searchsorted(self.draws, t, side="left")
        below = np.searchsorted(self.draws, t, side="right")
        p = (1.0 + np.array([above, below])) / (1.0 + len(self.draws))
        smaller = min(float(p.min()), 0.5)
        sign = 1.0 if p[0] <= p[1] else -1.0
        return np.array([-sign * float(special.ndtri(smaller))])

    def interval(self, critical: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gap minus the upper and the lower quantile of the permuted ones."""
        tail = float(special.ndtr(-np.max(critical)))
        # The k-th largest of B draws has p-value k / (B + 1).
        k = int(np.floor(tail * (len(self.draws) + 1.0))) - 1
        low, high = (self.draws[k], self.draws[-1 - k]) if k >= 0 else (-np.inf, np.inf)
        return self.estimate - high * self.se, self.estimate - low * self.se


def split_discovery(
    y: FloatArray,
    features: Sequence[BinnedFeature],
    *,
    depth: int = 3,
    min_rows: int = 50,
    alternative: Alternative = "two-sided",
    weight: object = None,
    cluster: AnyArray | None = None,
    n_candidates: int = 10,
    split: object = 0.5,
    alpha: float = 0.05,
    rng: Rng = None,
) -> Discovery:
    """Find subgroups in one part of the rows and test them in the other.

    Parameters
    ----------
    y : array of shape (n,)
        Outcome.
    features : sequence of BinnedFeature
        What conditions are made of; several may come from the same column.
    depth, min_rows, alternative, weight, cluster, n_candidates, split, alpha
        As in `discover_subgroups`.
    rng : int, Generator or None
        Of the permutations.

    Returns
    -------
    Discovery
        p-values by Holm, intervals by Bonferroni.
    """
    level = check_fraction("alpha", alpha)
    most = check_integer("n_candidates", n_candidates, low=1)
    omega = None if weight is None else check_finite("weight", weight, ndim=1)
    if isinstance(split, np.ndarray) and split.shape != y.shape:
        raise InvalidParameterError(
            f"`split` must hold one entry for each of the {len(y)} rows; got {split.shape}."
        )
    given = [one for one in (omega, split) if isinstance(one, np.ndarray)]
    order, number = _own_order(y, given, features, cluster)
    y, features = y[order], [one.take(order) for one in features]
    omega = None if omega is None else omega[order]
    cluster = None if number is None else number[order]
    search = _searched(split, order, cluster)
    considered = _at_most(search, LARGEST_SEARCH)
    share = float(considered.mean())
    columns = _Columns.of([one.take(considered) for one in features])
    slices, looked = _beam(
        y[considered],
        np.ones(int(considered.sum())) if omega is None else omega[considered],
        columns,
        depth=check_integer("depth", depth, low=1),
        least=max(int(min_rows * share), 5),
        alternative=alternative,
    )
    chosen = _forward(y[considered], columns, slices, most)
    test = ~search
    outside = _Columns.of([one.take(test) for one in features])
    unit = None if cluster is None else np.unique(np.asarray(cluster)[test], return_inverse=True)[1]
    masks = [outside.rows(one) for one in chosen]
    # A candidate that is nearly empty in the test part cannot be tested there.
    tested = [k for k, mask in enumerate(masks) if min(mask.sum(), (~mask).sum()) >= 10]
    inside = [masks[k] for k in tested]
    gaps: list[IntervalEstimate]
    if omega is not None or unit is not None:
        weights = np.ones(len(y)) if omega is None else omega
        units = np.arange(int(test.sum())) if unit is None else unit
        gaps = [_unit_gap(y[test], mask, weights[test], units) for mask in inside]
    elif np.isin(y, (0.0, 1.0)).all():
        gaps = [_RateGap.of(y[test], mask) for mask in inside]
    else:
        gaps = _mean_gaps(y[test], inside, check_rng(rng))
    raw = np.array([_p(one, alternative) for one in gaps])
    known = ~np.isnan(raw)
    tested = [k for k, ok in zip(tested, known, strict=True) if ok]
    gaps = [one for one, ok in zip(gaps, known, strict=True) if ok]
    raw = raw[known]
    adjusted = adjusted_p_values(raw, method="holm")
    factor = max(len(tested), 1)
    z = np.array([-float(special.ndtri(level / factor / 2.0))])
    found = []
    for k, gap, p, p_adjusted in zip(tested, gaps, raw, adjusted, strict=True):
        value, rest = (_mean(y[test], rows, omega, test) for rows in (masks[k], ~masks[k]))
        low, high = gap.interval(z)
        found.append(
            Subgroup(
                label=columns.label(chosen[k]),
                n=int(masks[k].sum()),
                value=value,
                rest=rest,
                statistic=float(gap.root(np.zeros(1))[0]),
                p_value_raw=float(p),
                p_value=float(p_adjusted),
                ci_low=float(low[0]),
                ci_high=float(high[0]),
                words=columns.said(chosen[k]),
            )
        )
    rejected = sorted(
        (one for one in found if one.p_value <= level), key=lambda one: -abs(one.bound)
    )
    missed = sorted((one for one in found if one.p_value > level), key=lambda one: one.p_value_raw)
    everybody = np.ones(int(test.sum()), dtype=np.bool_)
    return Discovery(
        subgroups=tuple(rejected),
        rejected=tuple(rejected),
        nearest=tuple(missed[:5]),
        n_slices=looked,
        n_tests=factor,
        n=int(test.sum()),
        value=_mean(y[test], everybody, omega, test),
        sd=float(y[test].std()),
        alpha=level,
        method="split",
        at_least=at_least(raw, level),
    )


def _searched(split: object, order: IntArray, cluster: AnyArray | None) -> BoolArray:
    """Return which of the ordered rows are searched: those that were named, or a share."""
    if not isinstance(split, np.ndarray):
        search = split_rows(len(order), share=check_fraction("split", split), cluster=cluster)
    else:
        search = split[order].astype(np.bool_)
    if search.all() or not search.any():
        raise DataError(
            "`split` leaves one of the two parts empty: there are too few rows or clusters to"
            " search in one part and test in the other, or all of them were named for one."
        )
    return search


def at_least(p_values: FloatArray, alpha: float = 0.05) -> int:
    r"""How many of several null hypotheses are false, at least.

    Closed testing with Simes' test (Hommel): with h the size of the largest intersection that is
    not rejected, :math:`\max_u 1 - u + \#\{i: h p_i \le u \alpha\}` ([1]_). The number is right
    with confidence 1 - alpha for independent or positively dependent tests.

    Parameters
    ----------
    p_values : array of shape (m,)
        One for each hypothesis.
    alpha : float, default 0.05
        Chance that there are fewer.

    Returns
    -------
    int

    References
    ----------
    .. [1] J. J. Goeman and A. Solari (2011), doi:10.1214/11-STS356.

    Examples
    --------
    >>> at_least(np.array([0.001, 0.02, 0.03, 0.9]))
    2
    """
    p = np.sort(np.asarray(p_values, dtype=np.float64))
    m = len(p)
    h = 0
    for i in range(1, m + 1):
        if (p[m - i :] > np.arange(1, i + 1) * alpha / i).all():
            h = i
    if h == 0:
        return m
    return max(0, *(1 - u + int((h * p <= u * alpha).sum()) for u in range(1, m + 1)))


def _at_most(rows: BoolArray, limit: int) -> BoolArray:
    """Return the rows, or as many of them as the limit allows, spread over the table."""
    at = np.flatnonzero(rows)
    if len(at) <= limit:
        return rows
    kept = np.zeros(len(rows), dtype=np.bool_)
    kept[at[np.linspace(0, len(at) - 1, limit).astype(np.int64)]] = True
    return kept


@dataclass(frozen=True, slots=True)
class _Columns:
    """All conditions as columns of zeros and ones, with the feature that each is about."""

    labels: tuple[str, ...]
    words: tuple[str, ...]
    feature: AnyArray
    holds: AnyArray

    @classmethod
    def of(cls, features: Sequence[BinnedFeature]) -> "_Columns":
        labels, words, owner, masks = [], [], [], []
        for one in features:
            for k, label in enumerate(one.labels):
                if label not in labels:
                    labels.append(label)
                    words.append(one.words[k])
                    owner.append(one.name)
                    masks.append(one.holds[k][one.code])
        if not labels:
            raise DataError("No feature splits the rows: each has a single value.")
        return cls(tuple(labels), tuple(words), np.array(owner), np.array(masks))

    def rows(self, conditions: tuple[int, ...]) -> BoolArray:
        return np.asarray(np.logical_and.reduce(self.holds[list(conditions)]))

    def said(self, conditions: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(self.words[c] for c in conditions)

    def label(self, conditions: tuple[int, ...]) -> str:
        return " & ".join(self.labels[c] for c in conditions)


def _beam(
    y: FloatArray,
    weight: FloatArray,
    columns: _Columns,
    *,
    depth: int,
    least: int,
    alternative: Alternative,
) -> tuple[dict[tuple[int, ...], _Score], int]:
    """Score slices level by level, extending the best of each; return those kept, and how many."""
    residual = weight * (y - (weight * y).sum() / weight.sum())
    residual = residual / max(float(np.sqrt((residual**2).mean())), 1e-300)
    n = len(y)
    holds = columns.holds.astype(np.float32)
    kept: dict[tuple[int, ...], _Score] = {}
    level: list[tuple[int, ...]] = [()]
    looked: set[tuple[int, ...]] = set()
    for _ in range(depth):
        masks = np.array(
            [columns.rows(one) if one else np.ones(n, dtype=np.bool_) for one in level]
        ).astype(np.float32)
        rows = (masks @ holds.T).astype(np.float64)
        sums = ((masks * residual.astype(np.float32)) @ holds.T).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            z = sums / np.sqrt(rows * (1.0 - rows / n))
        scored: dict[tuple[int, ...], _Score] = {}
        for k, one in enumerate(level):
            taken = set(columns.feature[list(one)]) if one else set()
            before = masks[k].sum()
            for c in np.flatnonzero((rows[k] >= least) & (n - rows[k] >= least)):
                if columns.feature[c] in taken or rows[k, c] == before:
                    continue
                longer = tuple(sorted((*one, int(c))))
                looked.add(longer)
                if (alternative == "greater" and z[k, c] < 0) or (
                    alternative == "less" and z[k, c] > 0
                ):
                    continue
                # A slice and its complement tie; rounding must not choose between them, but size
                # and direction, before the place of the conditions.
                score = round(abs(float(z[k, c])), 4)
                scored[longer] = (-score, float(rows[k, c]), float(z[k, c] < 0))
        level = sorted(scored, key=lambda one: (scored[one], one))[:BEAM]
        kept.update({one: scored[one] for one in level})
        if not level:
            break
    return kept, len(looked)


def _forward(
    y: FloatArray, columns: _Columns, slices: dict[tuple[int, ...], _Score], most: int
) -> list[tuple[int, ...]]:
    """Forward selection on residuals; shorter slices win within 1 of the best score."""
    names = sorted(slices, key=lambda one: (slices[one], one))
    if not names:
        return []
    masks = np.array([columns.rows(one) for one in names], dtype=np.float64)
    masks -= masks.mean(axis=1, keepdims=True)
    length = np.array([len(one) for one in names])
    residual = y - y.mean()
    chosen: list[tuple[int, ...]] = []
    for _ in range(most):
        size = (masks**2).sum(axis=1)
        free = size > 1e-9 * len(y)
        product = masks @ residual
        z = np.where(free, np.abs(product) / np.sqrt(np.where(free, size, 1.0)), 0.0)
        z = np.round(z / max(float(residual.std()), 1e-300), 6)
        best = z.max()
        if best < 2.0:
            break
        close = np.flatnonzero(z >= max(best - 1.0, 2.0))
        pick = close[np.lexsort((-z[close], length[close]))[0]]
        chosen.append(names[pick])
        direction = masks[pick] / np.sqrt(size[pick])
        masks = masks - np.outer(masks @ direction, direction)
        residual = residual - (residual @ direction) * direction
    return chosen


def _mean_gaps(
    y: FloatArray, masks: list[BoolArray], rng: np.random.Generator
) -> list[IntervalEstimate]:
    """Gaps of means: Welch's t where skewness does not matter, else studentised permutations."""
    centred = (y - y.mean()) / y.std()
    skewness = abs(float((centred**3).mean()))
    size = [int(mask.sum()) for mask in masks]
    skewed = [skewness > NEARLY_NORMAL * np.sqrt(min(k, len(y) - k)) for k in size]
    laws = _permuted(
        centred, sorted({k for k, rough in zip(size, skewed, strict=True) if rough}), rng
    )
    gaps: list[IntervalEstimate] = []
    for mask, k, rough in zip(masks, size, skewed, strict=True):
        if not rough:
            gaps.append(_unit_gap(y, mask, np.ones(len(y)), np.arange(len(y))))
            continue
        first, second = y[mask], y[~mask]
        estimate = np.array([first.mean() - second.mean()])
        se = np.array([np.sqrt(first.var(ddof=1) / k + second.var(ddof=1) / (len(y) - k))])
        if se[0] == 0.0:
            estimate = np.array([np.nan])
        gaps.append(PermutedContrast(estimate, se, laws[k]))
    return gaps


def _permuted(
    values: FloatArray, sizes: list[int], rng: np.random.Generator
) -> dict[int, FloatArray]:
    """Studentised differences between the first k of shuffled rows and the others, sorted, by k."""
    if not sizes:
        return {}
    n = len(values)
    draws = int(np.clip(1e8 / n, FEWEST_DRAWS, N_DRAWS))
    shuffled = values.copy()
    sums = np.empty((2, draws, len(sizes)))
    starts = [0, *sizes[:-1]]
    for b in range(draws):
        rng.shuffle(shuffled)
        part = shuffled[: sizes[-1]]
        sums[0, b] = np.add.reduceat(part, starts).cumsum()
        sums[1, b] = np.add.reduceat(part**2, starts).cumsum()
    k = np.array(sizes, dtype=np.float64)
    rest = np.array([values.sum(), (values**2).sum()])[:, None, None] - sums
    mean, mean_rest = sums[0] / k, rest[0] / (n - k)
    variance = (sums[1] / k - mean**2) / (k - 1.0)
    variance += (rest[1] / (n - k) - mean_rest**2) / (n - k - 1.0)
    t = (mean - mean_rest) / np.sqrt(np.maximum(variance, 1e-300))
    return {size: np.sort(t[:, j]) for j, size in enumerate(sizes)}


def _unit_gap(y: FloatArray, inside: BoolArray, w: FloatArray, unit: IntArray) -> IntervalEstimate:
    """Gap of weighted means with the law of few independent units."""
    totals = np.zeros((2, int(unit.max(initial=-1)) + 1, 2))
    for quantity, values in enumerate((w * y, w)):
        np.add.at(totals[quantity], (unit, np.where(inside, 0, 1)), values)
    return stacked_laws([unit_law(totals[0], totals[1], np.array([1.0, -1.0]))])


@dataclass(frozen=True, slots=True)
class _RateGap:
    """Gap of two rates: exact conditional test when few are expected, else the score."""

    ones: FloatArray
    n: FloatArray
    ones_rest: FloatArray
    n_rest: FloatArray

    @classmethod
    def of(cls, y: FloatArray, inside: BoolArray) -> "_RateGap":
        sums = (y[inside].sum(), inside.sum(), y[~inside].sum(), (~inside).sum())
        return cls(*(np.array([float(one)]) for one in sums))

    @property
    def estimate(self) -> FloatArray:
        return self.ones / self.n - self.ones_rest / self.n_rest

    def interval(self, critical: FloatArray) -> tuple[FloatArray, FloatArray]:
        one = np.ones(1)
        parts = (WilsonRate(self.ones, self.n), WilsonRate(self.ones_rest, self.n_rest))
        return Mover(parts, (one, -one)).interval(critical)

    def root(self, null: FloatArray) -> FloatArray:  # noqa: ARG002
        total, hits = self.n + self.n_rest, self.ones + self.ones_rest
        expected = np.minimum(self.n, self.n_rest) * np.minimum(hits, total - hits) / total
        if expected[0] >= 25.0:
            variance = self.n * self.n_rest * hits * (total - hits) / (total**2 * (total - 1.0))
            return np.asarray((self.ones - self.n * hits / total) / np.sqrt(variance))
        greater, less = tails(self.ones, total, hits, self.n)
        root = np.minimum(np.minimum(greater, less), 0.5)
        return np.asarray(np.where(greater <= less, -special.ndtri(root), special.ndtri(root)))


def _p(gap: IntervalEstimate, alternative: Alternative) -> float:
    root = float(gap.root(np.zeros(1))[0])
    if alternative == "two-sided":
        return min(2.0 * float(special.ndtr(-abs(root))), 1.0)
    return float(special.ndtr(-root if alternative == "greater" else root))


def _mean(y: FloatArray, rows: BoolArray, weight: FloatArray | None, test: BoolArray) -> float:
    if weight is None:
        return float(y[rows].mean())
    w = weight[test][rows]
    return float((w * y[rows]).sum() / w.sum())
