r"""Evidence about gaps, batch by batch.

In each batch b a group with :math:`n_g` rows and :math:`s_g` ones is held against its reference
within the same batch: :math:`U_b = w_b (\bar y_g - \bar y_r)` with
:math:`w_b = n_g n_r / (n_g + n_r)`, the number observed minus the number expected. Nothing is ever
compared across batches, so a base rate that drifts, or a mix of people that follows it, raises no
alarm: a test of the pooled sums then alarms always.

The null hypothesis is that in *no* batch the gap is larger than the margin. Rates need no
approximation: given the batch's margins the count is hypergeometric, whatever the rate, and every
batch of any size has an exact e-value ([1]_ with batches as risk sets; with a margin the
growth-optimal e-values of [2]_). Real values, weights and clusters use a normal approximation with
small bets. The evidence is collected by `equipoise.stats.sequential`.

References
----------
.. [1] J. ter Schure, M. F. Perez-Ortiz, A. Ly and P. Grünwald (2024), The anytime-valid logrank
   test, New England Journal of Statistics in Data Science 2, 190-214, doi:10.51387/24-NEJSDS65.
.. [2] R. J. Turner, A. Ly and P. D. Grünwald (2024), Generic E-variables for exact sequential
   k-sample tests that allow for optional stopping, Journal of Statistical Planning and Inference
   230, 106116, doi:10.1016/j.jspi.2023.106116.
.. [3] T. Sato (1989), On the variance estimator for the Mantel-Haenszel risk difference,
   Biometrics 45, 1323-1324.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special

from equipoise._checks import check_finite, check_number, check_option
from equipoise._typing import Alternative, AnyArray, BoolArray, FloatArray, IntArray
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.binomial import difference_fit
from equipoise.stats.hypergeometric import log_mean
from equipoise.stats.sequential import (
    TUNING,
    ChangeDate,
    date_change,
    e_process,
    mixture_radius,
)

__all__ = ["BatchSums", "BatchUnits", "GapSequence", "gap_sequence"]

LOG_ODDS = np.array([0.1, 0.2, 0.4, 0.8, 1.6])
SLOPES = np.array([0.025, 0.05, 0.1])
"""Bets on real values, in standard deviations; larger ones fail on skewed values in small
groups."""

BURN_IN = 50
OUTCOMES = 5
_EDGE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchUnits:
    """Sums of clusters, one entry for each cluster, batch and cell.

    Parameters
    ----------
    batch, cluster, cell : array of shape (E,)
        Codes from 0.
    w, u : array of shape (E,)
        Sums over the cluster's rows in the cell and batch.
    """

    batch: IntArray
    cluster: IntArray
    cell: IntArray
    w: FloatArray
    u: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSums:
    """Sums of a metric u / w over T batches and C cells; batches of several tables add.

    Parameters
    ----------
    n : array of shape (T, C)
        Rows on which the metric is defined.
    w, u, ww, uw, uu : array of shape (T, C)
        Sums of the denominator, the numerator and their products over rows, weights inside.
    binary : bool
        True for a rate of independent unweighted rows: then w = 1 and u is 0 or 1.
    units : BatchUnits, optional
        Present when rows come in clusters.
    """

    n: FloatArray
    w: FloatArray
    u: FloatArray
    ww: FloatArray
    uw: FloatArray
    uu: FloatArray
    binary: bool
    units: BatchUnits | None = None

    @classmethod
    def of_counts(cls, n: object, ones: object) -> "BatchSums":
        """Sums of a rate from its counts.

        Parameters
        ----------
        n, ones : array of shape (T, C)
            Rows and ones in each batch and cell.

        Returns
        -------
        BatchSums
        """
        rows, s = check_finite("n", n, ndim=2), check_finite("ones", ones, ndim=2)
        if rows.shape != s.shape or (s < 0).any() or (s > rows).any():
            raise InvalidParameterError(
                "`ones` must lie between 0 and `n` in every batch and cell."
            )
        return cls(n=rows, w=rows, u=s, ww=rows, uw=s, uu=s, binary=True)

    @classmethod
    def from_rows(
        cls,
        u: object,
        batch: AnyArray,
        cell: AnyArray,
        *,
        w: object = None,
        weight: object = None,
        cluster: AnyArray | None = None,
        n_batches: int | None = None,
        n_cells: int | None = None,
    ) -> "BatchSums":
        """Sum rows in memory.

        Parameters
        ----------
        u : array of shape (n,)
            Numerator of the metric.
        batch, cell : array of shape (n,)
            Codes from 0.
        w : array of shape (n,), optional
            Denominator; 1 by default. Rows with w = 0 do not count.
        weight : array of shape (n,), optional
            Sampling weight of a row.
        cluster : array of shape (n,), optional
            Unit of each row, any labels.
        n_batches, n_cells : int, optional
            T and C; by default one more than the largest code.

        Returns
        -------
        BatchSums
        """
        top = check_finite("u", u, ndim=1)
        below = np.ones(len(top)) if w is None else check_finite("w", w, ndim=1)
        binary = bool(
            weight is None
            and cluster is None
            and np.isin(below, (0.0, 1.0)).all()
            and np.isin(top, (0.0, 1.0)).all()
        )
        if weight is not None:
            omega = check_finite("weight", weight, ndim=1)
            top, below = top * omega, below * omega
        t, c = np.asarray(batch, dtype=np.int64), np.asarray(cell, dtype=np.int64)
        counts = below != 0
        top, below, t, c = top[counts], below[counts], t[counts], c[counts]
        n_t = int(t.max(initial=-1)) + 1 if n_batches is None else n_batches
        n_c = int(c.max(initial=-1)) + 1 if n_cells is None else n_cells

        def summed(values: FloatArray) -> FloatArray:
            sums = np.bincount(t * n_c + c, weights=values, minlength=n_t * n_c)
            return np.asarray(sums, dtype=np.float64).reshape(n_t, n_c)

        units = (
            None if cluster is None else _units_of(np.asarray(cluster)[counts], t, c, below, top)
        )
        return cls(
            n=summed(np.ones(len(top))),
            w=summed(below),
            u=summed(top),
            ww=summed(below**2),
            uw=summed(top * below),
            uu=summed(top**2),
            binary=binary,
            units=units,
        )


def _units_of(
    cluster: AnyArray, batch: IntArray, cell: IntArray, w: FloatArray, u: FloatArray
) -> BatchUnits:
    """Sum the rows of each cluster, batch and cell."""
    _, unit = np.unique(cluster, return_inverse=True)
    n_units, n_cells = int(unit.max(initial=0)) + 1, int(cell.max(initial=0)) + 1
    key, entry = np.unique((batch * n_units + unit) * n_cells + cell, return_inverse=True)
    return BatchUnits(
        batch=key // n_cells // n_units,
        cluster=key // n_cells % n_units,
        cell=key % n_cells,
        w=np.asarray(np.bincount(entry, weights=w), dtype=np.float64),
        u=np.asarray(np.bincount(entry, weights=u), dtype=np.float64),
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """Sums of a group or of its reference, (T, J)."""

    n: FloatArray
    w: FloatArray
    u: FloatArray
    ww: FloatArray
    uw: FloatArray
    uu: FloatArray

    @classmethod
    def of(cls, sums: BatchSums, cells: BoolArray) -> "_Side":
        join = cells.astype(np.float64)
        n, *parts = (part @ join for part in (sums.n, sums.w, sums.u, sums.ww, sums.uw, sums.uu))
        # Rows without weight are no rows.
        return cls(np.where(parts[2] > 0.0, n, 0.0), *parts)

    @property
    def size(self) -> FloatArray:
        """Effective rows; the rows themselves without weights."""
        return np.where(self.n > 0, self.w**2 / np.where(self.n > 0, self.ww, 1.0), 0.0)

    @property
    def mean(self) -> FloatArray:
        return self.u / np.where(self.n > 0, self.w, 1.0)

    @property
    def row_variance(self) -> FloatArray:
        """Within-batch variance of a row; a batch with one row takes that of the batches so far."""
        square = np.maximum(self.uu - 2.0 * self.mean * self.uw + self.mean**2 * self.ww, 0.0)
        own = square / np.where(self.n > 0, self.ww, 1.0) * self.n / np.maximum(self.n - 1.0, 1.0)
        df = np.maximum(self.n - 1.0, 0.0)
        so_far = np.cumsum(df, axis=0)
        with np.errstate(invalid="ignore"):
            pooled = np.cumsum(own * df, axis=0) / so_far
        return np.where(df > 0, own, pooled)


@dataclass(frozen=True, slots=True, kw_only=True)
class GapSequence:
    """Evidence about the gaps of J groups after each of T batches; one metric.

    Parameters
    ----------
    status : array of str, shape (J,)
        "ok"; "apart": never in the same batch as its reference; "alone": one unit on a side in
        every batch, whose variance is not known; "constant": all outcomes alike;
        "scale": a real-valued metric before 50 rows (clusters) on each side.
    n, n_reference : array of shape (T, J)
        Rows of the batch.
    gap : array of shape (T, J)
        Average gap since the start; NaN before both sides were seen.
    log_e : array of shape (T, J)
        Logarithm of the e-process of "no gap beyond the margin in any batch so far".
    shown : array of shape (T, J)
        True from the first look at which an interval may be shown.
    log_factor : array of shape (T, J, K)
        Logarithm of the e-value of each batch and bet.
    informative : array of shape (T, J)
        Batches that count.
    score, variance, weight : array of shape (T, J)
        U, its variance and what a gap of 1 would add to it, batch by batch.
    margin : float
        Largest gap under the null.
    alternative : {"two-sided", "greater", "less"}
        Direction of gaps that raise an alarm.
    exact : bool
        Whether the e-process is exact in samples of any size.
    """

    status: AnyArray
    n: FloatArray
    n_reference: FloatArray
    gap: FloatArray
    log_e: FloatArray
    shown: BoolArray
    log_factor: FloatArray
    informative: BoolArray
    score: FloatArray
    variance: FloatArray
    weight: FloatArray
    margin: float
    alternative: Alternative
    exact: bool
    _spread: FloatArray = field(repr=False)
    _rho: FloatArray = field(repr=False)

    def interval(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Intervals for the average gap since the start, right at all looks together.

        Parameters
        ----------
        alpha : float
            Chance that a group's interval ever misses.

        Returns
        -------
        low, high : array of shape (T, J)
            NaN where none is shown.
        """
        divisor = np.cumsum(self.weight, axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            radius = mixture_radius(self._spread, self._rho, alpha) / divisor
        radius = np.where(self.shown, radius, np.nan)
        return self.gap - radius, self.gap + radius

    def date(self, finding: int, batch: int) -> ChangeDate:
        """Since when, for an alarm in a given batch.

        Parameters
        ----------
        finding : int
            Group, 0 to J - 1.
        batch : int
            Batch of the alarm.

        Returns
        -------
        ChangeDate
        """
        until = slice(0, batch + 1)
        score, variance = self.score[until, finding], self.variance[until, finding]
        if self.alternative != "two-sided":
            sign = 1 if self.alternative == "greater" else -1
            beyond = score - sign * self.margin * self.weight[until, finding]
            return date_change(beyond, variance, sign=sign)
        if self.margin == 0.0:
            return date_change(score, variance)
        sign = 1 if score.sum() > 0 else -1
        return date_change(
            score - sign * self.margin * self.weight[until, finding], variance, sign=sign
        )


def gap_sequence(
    sums: BatchSums,
    group: AnyArray,
    reference: AnyArray | float,
    *,
    population: bool = False,
    margin: float = 0.0,
    alternative: Alternative = "two-sided",
) -> GapSequence:
    r"""Evidence about the gaps of several groups after every batch.

    The null hypothesis is that in no batch a group's gap exceeds the margin.

    Parameters
    ----------
    sums : BatchSums
        Sums by batch, in order of arrival, and cell.
    group : boolean array of shape (C, J)
        Cells of each group.
    reference : boolean array of shape (C, J), or float
        Cells that each group is held against, disjoint from it; or a known value.
    population : bool, default False
        Report the gap to everybody; `reference` is then the rest. The evidence is the same.
    margin : float, default 0
        Largest gap under the null.
    alternative : {"two-sided", "greater", "less"}
        Which gaps count against the null.

    Returns
    -------
    GapSequence

    Notes
    -----
    Factors of a batch, the logarithm of an e-value for each bet :math:`\beta`: rates without
    margin, :math:`\beta s_g - \log \sum_x h(x) e^{\beta x}` with h hypergeometric; with margin,
    the likelihood ratio of an alternative fixed by earlier batches to the null point nearest to it
    (Miettinen and Nurminen's cubic); known value, the binomial likelihood ratio; everything else,
    :math:`\lambda U_b - |\lambda| m w_b - \lambda^2 V_b / 2`.

    Intervals: rates use the variance of Sato (1989); clusters the sum over clusters of squares of
    their sums over all batches.

    Examples
    --------
    Ten weeks, 30 of 100 against 60 of 300 selected in each: an alarm?

    >>> weeks = BatchSums.of_counts(np.full((10, 2), (100, 300)), np.full((10, 2), (30, 60)))
    >>> both = np.eye(2, dtype=bool)
    >>> found = gap_sequence(weeks, both[:, :1], both[:, 1:])
    >>> np.exp(found.log_e[[1, 9], 0]).round(1).tolist()
    [4.9, 11500732.3]

    Not after two weeks, clearly after ten.
    """
    check_option("alternative", alternative, Alternative)
    m = check_number("margin", margin, low=0.0)
    if not len(sums.n):
        raise DataError("There is no batch yet.")
    own = np.asarray(group, dtype=np.bool_)
    side = _Side.of(sums, own)
    value, cells, other = 0.0, None, None
    if isinstance(reference, np.ndarray):
        cells = reference.astype(np.bool_)
        if (cells & own).any():
            raise InvalidParameterError("A group and its reference must not share cells.")
        other = _Side.of(sums, cells)
    else:
        value = check_number("reference", reference)
    pair = _pair_of(side, other, value, population=population)
    exact, met = sums.binary and sums.units is None, pair.together
    if exact:
        found = _rate_evidence(side, other, pair, _signed(LOG_ODDS, alternative), m, value)
    else:
        units = _rows_so_far(side, other)
        if sums.units is not None:
            variance, units = _cluster_variance(sums.units, own, cells, pair, side, other)
            pair = replace(pair, variance=variance)
        pair = pair.restricted(met & np.isfinite(pair.variance))
        found = _mean_evidence(pair, units, _signed(SLOPES, alternative), m)
    return GapSequence(
        status=_status(met, pair.together, found, exact=exact),
        n=side.n,
        n_reference=np.zeros_like(side.n) if other is None else other.n,
        gap=pair.running,
        log_e=e_process(found.factor, informative=found.informative),
        shown=found.shown,
        log_factor=found.factor,
        informative=found.informative,
        score=pair.score,
        variance=found.variance,
        weight=pair.divisor,
        margin=m,
        alternative=alternative,
        exact=exact,
        _spread=found.spread,
        _rho=found.rho,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """Log e-values of batches, and what their intervals are made of."""

    factor: FloatArray
    informative: BoolArray
    variance: FloatArray
    spread: FloatArray
    rho: FloatArray
    shown: BoolArray


@dataclass(frozen=True, slots=True)
class _Pair:
    """Group against reference within batches, (T, J)."""

    together: BoolArray
    weight: FloatArray
    score: FloatArray
    variance: FloatArray
    divisor: FloatArray
    share: FloatArray

    def restricted(self, keep: BoolArray) -> "_Pair":
        return _Pair(
            keep,
            *(
                np.where(keep, part, 0.0)
                for part in (self.weight, self.score, self.variance, self.divisor, self.share)
            ),
        )

    @property
    def running(self) -> FloatArray:
        """Average gap since the start."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.cumsum(self.score, axis=0) / np.cumsum(self.divisor, axis=0)


def _pair_of(side: _Side, other: _Side | None, value: float, *, population: bool) -> _Pair:
    size = side.size
    if other is None:
        weight, gap, share = size, side.mean - value, np.zeros_like(size)
        together = side.n > 0
        mean_variance = side.row_variance / np.where(together, size, 1.0)
        divisor = weight
    else:
        together = (side.n > 0) & (other.n > 0)
        total = np.where(together, side.w + other.w, 1.0)
        share = np.where(together, side.w / total, 0.0)
        gap = side.mean - other.mean
        both = np.where(together, size + other.size, 1.0)
        # A gap to everybody is (1 - share) times the gap to the rest.
        weight = size * (1.0 - share) if population else size * other.size / both
        divisor = size if population else weight
        mean_variance = side.row_variance / np.where(together, size, 1.0)
        mean_variance = mean_variance + other.row_variance / np.where(together, other.size, 1.0)
    return _Pair(
        together,
        np.where(together, weight, 0.0),
        np.where(together, weight * gap, 0.0),
        np.where(together, weight**2 * mean_variance, 0.0),
        np.where(together, divisor, 0.0),
        share if population else np.zeros_like(size),
    )


def _rate_evidence(
    side: _Side,
    other: _Side | None,
    pair: _Pair,
    bets: FloatArray,
    margin: float,
    value: float,
) -> _Evidence:
    spread, rho, shown = _rate_spread(side, other, pair)
    return _Evidence(
        factor=_rate_factors(side, other, pair, bets, margin, value),
        informative=pair.together,
        variance=_count_variance(side, other, pair, value),
        spread=spread,
        rho=rho,
        shown=shown,
    )


def _mean_evidence(
    pair: _Pair, units: tuple[FloatArray, ...], bets: FloatArray, margin: float
) -> _Evidence:
    """Normal factors; the batches that set the scale are not tested."""
    spread = np.cumsum(pair.variance, axis=0)
    ready = _enough(*units) & (spread > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        sigma2 = _at_first(spread / np.cumsum(pair.weight, axis=0), ready)
    scaled = np.vstack([np.zeros((1, ready.shape[1]), dtype=np.bool_), ready[:-1]])
    informative = pair.together & scaled
    slope = bets / np.sqrt(sigma2)[:, None]
    beyond = pair.score[..., None] - np.sign(bets) * margin * pair.divisor[..., None]
    factor = slope * beyond - slope**2 * pair.variance[..., None] / 2.0
    return _Evidence(
        factor=np.where(informative[..., None], factor, 0.0),
        informative=informative,
        variance=pair.variance,
        spread=spread,
        rho=sigma2 / TUNING**2,
        shown=ready,
    )


def _rate_factors(
    side: _Side,
    other: _Side | None,
    pair: _Pair,
    bets: FloatArray,
    margin: float,
    value: float,
) -> FloatArray:
    """Exact factors of rates, (T, J, K)."""
    result = np.zeros((*side.n.shape, len(bets)))
    at = np.nonzero(pair.together)
    n1, s1 = side.n[at], side.u[at]
    if other is None:
        result[at] = _known_factors(n1, s1, value, bets, margin)
        return result
    n2, s2 = other.n[at], other.u[at]
    if margin == 0.0:
        result[at] = np.outer(s1, bets) - log_mean(n1 + n2, s1 + s2, n1, bets)
        return result
    past_n, past_s = np.cumsum(other.n, axis=0) - other.n, np.cumsum(other.u, axis=0) - other.u
    base = ((1.0 + past_s) / (2.0 + past_n))[at]
    result[at] = _restricted_factors((n1, s1, n2, s2), base, bets, margin / (1.0 - pair.share[at]))
    return result


def _restricted_factors(
    counts: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    base: FloatArray,
    bets: FloatArray,
    margin: FloatArray,
) -> FloatArray:
    """Likelihood ratios of an alternative to the nearest null point with a gap at the margin."""
    n1, s1, n2, s2 = (part[:, None] for part in counts)
    m = np.where(margin < 0.999, margin, 0.0)[:, None]
    gap = np.sign(bets) * m
    low, high = np.maximum(_EDGE, _EDGE - gap), np.minimum(1.0 - _EDGE, 1.0 - _EDGE - gap)
    p2 = np.clip(base[:, None], low, high)
    p1 = special.expit(special.logit(p2 + gap) + bets)
    n1b, n2b = np.broadcast_to(n1, p1.shape), np.broadcast_to(n2, p1.shape)
    q1, q2 = difference_fit(n1b * p1, n1b, n2b * p2, n2b, gap)
    factor = _log_ratio(s1, n1, p1, q1) + _log_ratio(s2, n2, p2, q2)
    return np.where(margin[:, None] < 0.999, factor, 0.0)


def _known_factors(
    n: FloatArray, ones: FloatArray, value: float, bets: FloatArray, margin: float
) -> FloatArray:
    null = value + np.sign(bets) * margin
    possible = (null > 0.0) & (null < 1.0)
    q = np.where(possible, null, 0.5)
    p = special.expit(special.logit(q) + bets)
    return np.where(possible, _log_ratio(ones[:, None], n[:, None], p, q), 0.0)


def _log_ratio(ones: FloatArray, n: FloatArray, p: FloatArray, q: FloatArray) -> FloatArray:
    return np.asarray(
        special.xlogy(ones, p)
        - special.xlogy(ones, q)
        + special.xlog1py(n - ones, -p)
        - special.xlog1py(n - ones, -q)
    )


def _rate_spread(
    side: _Side, other: _Side | None, pair: _Pair
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Variance of the sum of scores, scale of its boundary, and where an interval is shown."""
    keep = pair.together
    n1, s1 = np.where(keep, side.n, 0.0), np.where(keep, side.u, 0.0)
    if other is None:
        n, s = np.cumsum(n1, axis=0), np.cumsum(s1, axis=0)
        shown = _enough(n) & (s >= OUTCOMES) & (n - s >= OUTCOMES)
        # Two ones and two zeros are added: the plain variance missed in .057 of runs at .05.
        p = (s + 2.0) / (n + 4.0)
        spread = n * p * (1.0 - p)
    else:
        n2, s2 = np.where(keep, other.n, 0.0), np.where(keep, other.u, 0.0)
        both = np.where(keep, n1 + n2, 1.0)
        first = (n1**2 * s2 - n2**2 * s1 + n1 * n2 * (n2 - n1) / 2.0) / both**2
        second = (s1 * (n2 - s2) + s2 * (n1 - s1)) / (2.0 * both)
        gap = np.cumsum(pair.score, axis=0) / np.maximum(np.cumsum(n1 * n2 / both, axis=0), 1e-300)
        spread = np.maximum(gap * np.cumsum(first, axis=0) + np.cumsum(second, axis=0), 0.0)
        shown = np.ones(keep.shape, dtype=np.bool_)
        for rows, ones in ((n1, s1), (n2, s2)):
            n, s = np.cumsum(rows, axis=0), np.cumsum(ones, axis=0)
            shown &= _enough(n) & (s >= OUTCOMES) & (n - s >= OUTCOMES)
        n, s = np.cumsum(n1 + n2, axis=0), np.cumsum(s1 + s2, axis=0)
    p = (s + 0.5) / (n + 1.0)
    return spread, _at_first(p * (1.0 - p), shown) / TUNING**2, shown


def _count_variance(side: _Side, other: _Side | None, pair: _Pair, value: float) -> FloatArray:
    """Variance of a batch's score under "no gap"."""
    if other is None:
        return np.where(pair.together, side.n * value * (1.0 - value), 0.0)
    n, s = side.n + other.n, side.u + other.u
    variance = side.n * other.n * s * (n - s) / np.maximum(n**2 * (n - 1.0), 1.0)
    return np.where(pair.together, variance, 0.0)


def _cluster_variance(
    units: BatchUnits,
    group: BoolArray,
    reference: BoolArray | None,
    pair: _Pair,
    side: _Side,
    other: _Side | None,
) -> tuple[FloatArray, tuple[FloatArray, ...]]:
    """Growth of the sum over clusters of squared sums, and clusters seen so far on each side.

    Residuals are from the mean of their side in the batch, which takes c / (c - 1) of c clusters. A
    batch with one cluster on a side says nothing of the variance: NaN.
    """
    shape = pair.score.shape
    n_clusters = int(units.cluster.max(initial=-1)) + 1
    total = np.zeros((n_clusters, shape[1]))
    seen = np.zeros((2, n_clusters, shape[1]), dtype=np.bool_)
    spread, count = np.zeros(shape), np.zeros((2, *shape))
    alone = np.zeros(shape, dtype=np.bool_)
    parts = [(group, side, side.mean, 1.0)]
    if reference is not None and other is not None:
        parts.append((reference, other, other.mean, -1.0))
    order = np.argsort(units.batch, kind="stable")
    ends = np.searchsorted(units.batch[order], np.arange(shape[0] + 1))
    for b in range(shape[0]):
        here = order[ends[b] : ends[b + 1]]
        cluster, cell = units.cluster[here], units.cell[here]
        w, u = units.w[here][:, None], units.u[here][:, None]
        own, place = np.unique(cluster, return_inverse=True)
        sides = [cells[cell] & (w != 0) for cells, *_ in parts]
        present = np.zeros((len(parts), len(own), shape[1]), dtype=np.bool_)
        for belongs, side_present in zip(sides, present, strict=True):
            np.logical_or.at(side_present, place, belongs)
        clusters = present.sum(axis=1)
        kept = pair.together[b] & (clusters >= 2).all(axis=0)
        alone[b] = pair.together[b] & ~kept
        z = np.zeros((len(cluster), shape[1]))
        for k, (belongs, (_, sums, mean, sign)) in enumerate(zip(sides, parts, strict=True)):
            few = np.sqrt(clusters[k] / np.maximum(clusters[k] - 1.0, 1.0))
            scale = few * sign * pair.weight[b] / np.where(sums.n[b] > 0, sums.w[b], 1.0)
            z += np.where(belongs & kept, scale * (u - mean[b] * w), 0.0)
            np.logical_or.at(seen[k], cluster, belongs & kept)
            count[k, b] = seen[k].sum(axis=0)
        np.add.at(total, cluster, z)
        spread[b] = (total**2).sum(axis=0)
    growth = np.diff(np.maximum.accumulate(spread, axis=0), axis=0, prepend=0.0)
    return np.where(alone, np.nan, growth), tuple(count[: len(parts)])


def _rows_so_far(side: _Side, other: _Side | None) -> tuple[FloatArray, ...]:
    return tuple(np.cumsum(one.n, axis=0) for one in (side, other) if one is not None)


def _enough(*units: FloatArray) -> BoolArray:
    return np.asarray(
        np.logical_and.reduce([part >= BURN_IN for part in np.broadcast_arrays(*units)])
    )


def _at_first(values: FloatArray, ready: BoolArray) -> FloatArray:
    """Return the value at the first look that is ready, by column; NaN where none is."""
    first = values[np.argmax(ready, axis=0), np.arange(values.shape[1])]
    return np.where(ready.any(axis=0), first, np.nan)


def _signed(sizes: FloatArray, alternative: Alternative) -> FloatArray:
    if alternative == "greater":
        return sizes
    return -sizes if alternative == "less" else np.concatenate([sizes, -sizes])


def _status(met: BoolArray, together: BoolArray, found: _Evidence, *, exact: bool) -> AnyArray:
    """Say why nothing is known; of the batches with both sides (`met`) those `together` count."""
    status = np.full(together.shape[1], "ok", dtype=object)
    if exact:
        # Logarithms of sums of one term are zero but for rounding.
        status[(np.abs(found.factor) < 1e-12).all(axis=(0, 2))] = "constant"
    else:
        status[~found.shown.any(axis=0)] = "scale"
        status[found.spread[-1] == 0.0] = "constant"
    status[~together.any(axis=0)] = "alone"
    status[~met.any(axis=0)] = "apart"
    return status
