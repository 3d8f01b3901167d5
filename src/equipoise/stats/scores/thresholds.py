r"""Thresholds by group at which marginal outcomes are equal.

Find v with :math:`t_g = f_g^{-1}(v)` for every group. The level v is that of a reference group at
the old threshold t, or the one that keeps the overall positive rate,
:math:`\sum_g p_g (1 - F_g(t_g)) = \sum_g p_g (1 - F_g(t))`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import optimize

from equipoise._checks import check_fraction, check_integer, check_number, check_option, check_rng
from equipoise._typing import AnyArray, FloatArray, IntArray, Rng, Ties
from equipoise.exceptions import DataError, EstimationError, InvalidParameterError
from equipoise.stats.scores.calibrators import monotone
from equipoise.stats.scores.cells import ScoreCells, weighted_quantile
from equipoise.stats.scores.kernel import GRID_LEVELS, rule_of_thumb, smoother
from equipoise.stats.scores.rows import sum_by

__all__ = ["GroupThresholds", "equal_margin_thresholds"]

N_BINS = 1024
SMALLEST_SLOPE = 1e-6
LARGEST_LEVEL = 1.0 / 200.0
"""Share of people with one score, above which scores are taken as levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupThresholds:
    """Thresholds with equal marginal outcomes.

    Parameters
    ----------
    threshold, low, high : array of shape (n_groups,)
        New threshold of each group with its confidence interval.
    extrapolated : array of bool, shape (n_groups,)
        Whether the new threshold lies below the old one, where no outcome was used.
    outcome : float
        Mean outcome at the new thresholds.
    outcome_before : array of shape (n_groups,)
        Mean outcome of each group at the old threshold.
    rate_before, rate_after : float
        Overall positive rate.
    n_failed : int
        Resamples without a solution; they are left out of the intervals.
    accept_at : array of shape (n_groups,)
        Share of people with exactly the threshold that is accepted; 1 where scores hardly repeat.
    bracket : array of shape (n_groups, 2)
        Mean outcome just below the threshold and at it, where scores are levels; else `outcome`.
    n_levels : int or None
        Distinct scores, where they are levels.
    """

    threshold: FloatArray
    low: FloatArray
    high: FloatArray
    extrapolated: AnyArray
    outcome: float
    outcome_before: FloatArray
    rate_before: float
    rate_after: float
    n_failed: int
    accept_at: FloatArray
    bracket: FloatArray
    n_levels: int | None = None


class _Rule(NamedTuple):
    """Thresholds, the outcome at them, that at the old one, rates before and after, and ties."""

    threshold: FloatArray
    outcome: float
    before: FloatArray
    rates: tuple[float, float]
    accept_at: FloatArray
    bracket: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    """Increasing mean outcome by score, continued as a line below the old threshold."""

    nodes: FloatArray
    values: FloatArray

    def inverse(self, outcome: float) -> float:
        return float(np.interp(outcome, self.values, self.nodes))


def equal_margin_thresholds(
    y_true: AnyArray,
    y_score: AnyArray,
    group: AnyArray,
    threshold: float,
    *,
    reference: int | None = None,
    labels_below: bool = False,
    ties: Ties = "randomise",
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
    n_resamples: int = 200,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> GroupThresholds:
    r"""Find a threshold for each group so that people at it have the same mean outcome.

    Parameters
    ----------
    y_true : array of shape (n,)
        Outcome; below `threshold` it is used only with `labels_below` and may be NaN otherwise.
    y_score : array of shape (n,)
        Score.
    group : array of shape (n,)
        Codes 0 to G - 1.
    threshold : float
        The common threshold in use.
    reference : int, optional
        Group that keeps its threshold; by default the overall positive rate is kept.
    labels_below : bool, default False
        Whether outcomes below the threshold are known.
    ties : {"randomise", "attainable", "error"}
        What to do where many people share a score, so that no threshold keeps the positive rate:
        accept a share of those at one threshold, so that it is kept in expectation; accept none of
        them, for the nearest rate below; or raise.
    cluster : array of shape (n,), optional
        Units that are resampled; by default rows.
    weight : array of shape (n,), optional
        Sampling weights.
    n_resamples : int, default 200
        Of the bootstrap over units.
    confidence_level : float, default 0.95
        Of the percentile intervals.
    rng : numpy.random.Generator or int, optional
        Of the bootstrap.

    Returns
    -------
    GroupThresholds

    Raises
    ------
    EstimationError
        If no outcome level is reached by every group, so that margins cannot be equal.

    Notes
    -----
    *Deviations from the paper*: Eq. (2) has the integrand f F with the curve of the first group for
    all; the positive rate is what the text means, and is used. Theorem 4 needs increasing curves
    with overlapping ranges. Below the old threshold the curve is the line of the one-sided
    local-linear fit; test again after the change.

    *Levels.* Where a score repeats (one value holds more than 1 in 200 people), the mean outcomes
    of a group's levels are made increasing, and the levels of all groups are filled from the
    highest outcome down until the positive rate is reached; of the level at which it is reached a
    share is accepted. Then :math:`\sum_g p_g [P(S > t_g) + \rho_g P(S = t_g)]` is the old rate
    identically, and everybody accepted has a mean outcome at least that of everybody refused.

    Examples
    --------
    Group 1 is ten points better at every score; loans start at 0.5. Where should they start?

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> group, score = rng.integers(2, size=40_000), rng.uniform(size=40_000)
    >>> repaid = (rng.uniform(size=40_000) < 0.1 + 0.7 * score + 0.1 * group).astype(float)
    >>> new = equal_margin_thresholds(repaid, score, group, 0.5, labels_below=True, n_resamples=50)
    >>> bool(new.threshold[0] > 0.5 > new.threshold[1]), round(new.rate_after, 2)
    (True, 0.5)

    Higher for group 0, lower for group 1, with as many loans as before.
    """
    at = check_number("threshold", threshold)
    level = check_fraction("confidence_level", confidence_level)
    check_integer("n_resamples", n_resamples, low=2)
    check_option("ties", ties, Ties)
    data = _Data.of(y_true, y_score, group, at, labels_below, cluster, weight)
    if reference is not None and not 0 <= reference < data.n_groups:
        raise InvalidParameterError(f"`reference` must be a group code; got {reference!r}.")
    everyone = np.ones(data.n_units)
    found = _solve(data, everyone, reference, ties)
    generator = check_rng(rng)
    draws, n_failed = [], 0
    for _ in range(n_resamples):
        counts = generator.multinomial(data.n_units, np.full(data.n_units, 1.0 / data.n_units))
        try:
            # A resample without its old rate is no error of the rule.
            usual: Ties = "randomise" if ties == "error" else ties
            rule = _solve(data, counts.astype(np.float64), reference, usual)
            draws.append(rule.threshold)
        except EstimationError:
            n_failed += 1
    if len(draws) < n_resamples / 2:
        raise EstimationError(
            f"{n_failed} of {n_resamples} resamples have no common outcome level; the ranges of the"
            " groups barely overlap and no interval can be given."
        )
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(np.array(draws), [tail, 1.0 - tail], axis=0)
    return GroupThresholds(
        threshold=found.threshold,
        low=np.minimum(low, found.threshold),
        high=np.maximum(high, found.threshold),
        extrapolated=np.zeros(data.n_groups, dtype=bool)
        if labels_below
        else found.threshold < at - 1e-12,
        outcome=found.outcome,
        outcome_before=found.before,
        rate_before=found.rates[0],
        rate_after=found.rates[1],
        n_failed=n_failed,
        accept_at=found.accept_at,
        bracket=found.bracket,
        n_levels=len(data.cells.support) if data.tied else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    """Rows by group, score and unit; labelled rows are those whose outcome may be used."""

    cells: ScoreCells
    labelled: FloatArray
    row_unit: IntArray
    row_weight: FloatArray
    threshold: float
    first: int
    bandwidth: float
    tied: bool

    @property
    def n_groups(self) -> int:
        return self.cells.n_groups

    @property
    def n_units(self) -> int:
        return len(self.cells.rows.copies)

    @classmethod
    def of(
        cls,
        y_true: AnyArray,
        y_score: AnyArray,
        group: AnyArray,
        threshold: float,
        labels_below: bool,
        cluster: AnyArray | None,
        weight: AnyArray | None,
    ) -> "_Data":
        score = np.asarray(y_score, dtype=np.float64)
        outcome = np.asarray(y_true, dtype=np.float64)
        if not labels_below:
            outcome = np.where(score >= threshold, outcome, 0.0)
        levels, code = np.unique(score, return_inverse=True)
        share = np.bincount(code, weights=None if weight is None else np.asarray(weight))
        many = len(levels) > N_BINS
        tied = not many and bool(share.max(initial=0.0) > LARGEST_LEVEL * share.sum())
        cells = ScoreCells.from_rows(
            outcome,
            score,
            group,
            # Rows are resampled one by one, so each is a cluster of its own.
            cluster=np.arange(len(score)) if cluster is None else cluster,
            unit="row",
            weight=weight,
            n_bins=N_BINS if many else None,
            edge=threshold,
        )
        first = 0 if labels_below else int(np.searchsorted(cells.support, threshold))
        if first >= len(cells.support) - 1 or cells.support[-1] <= threshold:
            raise DataError(
                f"`threshold` must be below the highest score, {cells.support[-1]:g};"
                f" got {threshold:g}."
            )
        position = cells.rows.cell % len(cells.support)
        return cls(
            cells=cells,
            labelled=(position >= first).astype(np.float64),
            row_unit=cells.rows.unit,
            row_weight=cells.rows.weight,
            threshold=threshold,
            first=first,
            bandwidth=rule_of_thumb(cells),
            tied=tied,
        )


def _solve(data: _Data, counts: FloatArray, reference: int | None, ties: Ties) -> _Rule:
    cells = data.cells
    shape = (data.n_groups, len(cells.support))
    weight = data.row_weight * counts[data.row_unit]
    everyone = sum_by(cells.rows.cell, weight, shape[0] * shape[1]).reshape(shape)
    known = weight * data.labelled
    mass = sum_by(cells.rows.cell, known, shape[0] * shape[1]).reshape(shape)
    total = sum_by(cells.rows.cell, known * cells.rows.outcome, shape[0] * shape[1]).reshape(shape)
    if data.tied:
        return _level_rule(data, everyone, mass, total, reference, ties)
    curves = [_curve(data, mass[g], total[g]) for g in range(data.n_groups)]
    before = np.array([float(np.interp(data.threshold, c.nodes, c.values)) for c in curves])
    lowest = max(curve.values[0] for curve in curves)
    highest = min(curve.values[-1] for curve in curves)
    if lowest >= highest:
        raise EstimationError(
            "no mean outcome is reached by every group: the ranges of the groups' curves do not"
            " overlap, so no thresholds make marginal outcomes equal."
        )

    # Linear between neighbouring scores, so that the rate is continuous in the threshold.
    above = np.concatenate(
        [np.cumsum(everyone[:, ::-1], axis=1)[:, ::-1], np.zeros((shape[0], 1))], axis=1
    )
    edges = np.concatenate([cells.support, [cells.support[-1] + 1e-12]])

    def rate(thresholds: list[float]) -> float:
        chosen = [np.interp(t, edges, above[g]) for g, t in enumerate(thresholds)]
        return float(sum(chosen) / everyone.sum())

    old = rate([data.threshold] * data.n_groups)

    def excess(outcome: float) -> float:
        return rate([curve.inverse(outcome) for curve in curves]) - old

    if reference is not None:
        level = float(before[reference])
        if not lowest <= level <= highest:
            raise EstimationError(
                f"the reference group's mean outcome at the threshold, {level:.3g}, is not reached"
                f" by every group; they share {lowest:.3g} to {highest:.3g}."
            )
    elif excess(lowest) < 0.0 or excess(highest) > 0.0:
        raise EstimationError(
            "no common outcome level keeps the positive rate: the groups share mean outcomes from"
            f" {lowest:.3g} to {highest:.3g} only. Name a reference group instead."
        )
    else:
        level = float(optimize.brentq(excess, lowest, highest, xtol=1e-10))
    thresholds = np.array([curve.inverse(level) for curve in curves])
    if reference is not None:
        thresholds[reference] = data.threshold
    rates = (old, rate(thresholds.tolist()))
    same = np.full((data.n_groups, 2), level)
    return _Rule(thresholds, level, before, rates, np.ones(data.n_groups), same)


def _level_rule(
    data: _Data,
    everyone: FloatArray,
    mass: FloatArray,
    total: FloatArray,
    reference: int | None,
    ties: Ties,
) -> _Rule:
    """Fill the levels of all groups from the highest mean outcome down."""
    support = data.cells.support
    means = np.array([_level_means(data, m, t) for m, t in zip(mass, total, strict=True)])
    old_level = int(np.searchsorted(support, data.threshold))
    share = everyone / everyone.sum()
    old = float(share[:, old_level:].sum())
    accepted = np.zeros_like(share)
    if reference is not None:
        wanted = float(means[reference, old_level])
        accepted[means >= wanted] = 1.0
        accepted[reference] = np.arange(len(support)) >= old_level
    else:
        group, level = (index.ravel() for index in np.indices(share.shape))
        # Levels of a group that share a mean are taken from the highest score down.
        order = np.lexsort((-share.ravel(), -level, -means.ravel()))
        room = old - np.concatenate([[0.0], np.cumsum(share.ravel()[order])[:-1]])
        part = np.clip(room / np.maximum(share.ravel()[order], 1e-300), 0.0, 1.0)
        part[part < 1e-9] = 0.0
        part[part > 1.0 - 1e-9] = 1.0
        accepted[group[order], level[order]] = part
    inner = (accepted > 0.0) & (accepted < 1.0) & (share > 0.0)
    if ties == "error" and inner.any():
        raise EstimationError(
            f"no thresholds keep the positive rate {old:.4g}: scores repeat, and"
            f" {len(support)} levels do not divide people so. Use `ties='randomise'` or"
            " `ties='attainable'`."
        )
    if ties == "attainable":
        accepted[inner] = 0.0
    lowest = np.array(
        [np.flatnonzero(own)[0] if own.any() else len(support) - 1 for own in accepted > 0.0]
    )
    rows = np.arange(len(accepted))
    at = accepted[rows, lowest]
    bracket = np.stack([means[rows, np.maximum(lowest - 1, 0)], means[rows, lowest]], axis=1)
    rate = float(np.sum(share * accepted))
    value = float(bracket[:, 1].min())
    return _Rule(support[lowest], value, means[:, old_level], (old, rate), at, bracket)


def _level_means(data: _Data, mass: FloatArray, total: FloatArray) -> FloatArray:
    """Return increasing mean outcomes of a group by level; a line where no outcome is known."""
    known = np.flatnonzero(mass > 0.0)
    if not len(known):
        raise EstimationError("a group has no outcome above the threshold; its curve is unknown.")
    values = monotone(total[known] / mass[known], mass[known])
    means = np.interp(np.arange(len(mass)), known, values)
    if data.first > 0:
        support = data.cells.support
        slope = SMALLEST_SLOPE
        if len(known) > 1:
            centre = np.average(support[known], weights=mass[known])
            spread = mass[known] @ (support[known] - centre) ** 2
            slope = max(float(mass[known] @ ((support[known] - centre) * values) / spread), slope)
        below = np.arange(len(mass)) < data.first
        means[below] = values[0] + slope * (support[below] - data.threshold)
    return np.asarray(means)


def _curve(data: _Data, mass: FloatArray, total: FloatArray) -> _Curve:
    if not np.any(mass > 0.0):
        raise EstimationError("a group has no outcome above the threshold; its curve is unknown.")
    support = data.cells.support
    nodes = np.unique(weighted_quantile(support, mass, GRID_LEVELS))
    start = support[0] if data.first == 0 else data.threshold
    nodes = np.unique(np.concatenate([[start], nodes[nodes > start]]))
    fit = smoother(nodes, support, mass, data.bandwidth)
    values = monotone(fit.level @ total, np.maximum(fit.mass, 1e-12))
    if data.first > 0:
        slope = max(float((fit.slope @ total)[0]), SMALLEST_SLOPE)
        below = float(support[0])
        nodes = np.concatenate([[below], nodes])
        values = np.concatenate([[values[0] + slope * (below - data.threshold)], values])
    # Flat stretches get a slope too small to matter, so that the inverse is a function.
    return _Curve(nodes=nodes, values=values + SMALLEST_SLOPE * (nodes - nodes[0]))
