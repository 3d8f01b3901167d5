r"""The Mantel-Haenszel family: one comparison of two proportions across strata.

Stratum k has x1 of n1 ones in the group and x0 of n0 in the comparator, N = n1 + n0. The weights
n1 n0 / N make pooled estimates that are right both for a few large strata and for many sparse ones,
down to matched pairs; so are the variances here.

References
----------
.. [1] N. Mantel and W. Haenszel (1959), Statistical aspects of the analysis of data from
   retrospective studies of disease, Journal of the National Cancer Institute 22, 719-748.
   doi:10.1093/jnci/22.4.719
.. [2] J. Robins, N. Breslow and S. Greenland (1986), Estimators of the Mantel-Haenszel variance
   consistent in both sparse data and large-strata limiting models, Biometrics 42, 311-323.
   doi:10.2307/2531052
.. [3] S. Greenland and J. Robins (1985), Estimation of a common effect parameter from sparse
   follow-up data, Biometrics 41, 55-68. doi:10.2307/2530643
.. [4] T. Sato (1989), On the variance estimator for the Mantel-Haenszel risk difference, Biometrics
   45, 1323-1324.
.. [5] R. E. Tarone (1985), On heterogeneity tests based on efficient scores, Biometrika 72, 91-95.
   doi:10.1093/biomet/72.1.91
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy import linalg, special

from equipoise._checks import check_fraction
from equipoise._typing import BoolArray, FloatArray, IntArray, Scale
from equipoise.stats.binomial import difference_fit, log_ways
from equipoise.stats.disparity.pair_scores import outer_ends, ratio_fit

__all__ = [
    "ChiSquare",
    "PooledEstimate",
    "StratumCounts",
    "generalised_test",
    "score_intervals",
]

# Strata of fewer rows say nothing about whether odds ratios differ.
_SPARSE = 10
# Strata that are searched together: their arrays stay in the cache of a processor.
_BATCH = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChiSquare:
    """A statistic with a chi-square law under its null.

    Parameters
    ----------
    statistic : float
        The value.
    df : int
        Degrees of freedom.
    """

    statistic: float
    df: int

    @property
    def p_value(self) -> float:
        """Chance of a larger statistic under the null; NaN without degrees of freedom."""
        return float(special.chdtrc(self.df, self.statistic)) if self.df else np.nan

    def __str__(self) -> str:
        """One line for people."""
        return f"chi-square {self.statistic:.3g} on {self.df} df, p = {self.p_value:.3g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledEstimate:
    """An estimate with a standard error on the scale where it is nearly normal.

    Parameters
    ----------
    value : float
        Difference, ratio or odds ratio.
    se : float
        Standard error of the value, or of its logarithm.
    logarithm : bool
        Whether `se` is that of the logarithm.
    """

    value: float
    se: float
    logarithm: bool

    def confidence_interval(self, confidence_level: float = 0.95) -> tuple[float, float]:
        """Normal interval, on the logarithmic scale for ratios.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval.

        Returns
        -------
        low, high : float
        """
        level = check_fraction("confidence_level", confidence_level)
        reach = float(special.ndtri((1.0 + level) / 2.0)) * self.se
        if self.logarithm:
            return self.value * float(np.exp(-reach)), self.value * float(np.exp(reach))
        return self.value - reach, self.value + reach


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumCounts:
    """Ones and rows of a group and its comparator in K strata that have rows of both.

    Parameters
    ----------
    x1, n1, x0, n0 : array of shape (K,)
        Ones and rows of the group, ones and rows of the comparator.
    """

    x1: FloatArray
    n1: FloatArray
    x0: FloatArray
    n0: FloatArray

    @property
    def size(self) -> FloatArray:
        """Rows of each stratum."""
        return np.asarray(self.n1 + self.n0)

    @property
    def overlap_weights(self) -> FloatArray:
        """Mantel-Haenszel weights, n1 n0 / N."""
        return np.asarray(self.n1 * self.n0 / self.size)

    def informative(self) -> BoolArray:
        """Strata in which the outcome varies.

        Returns
        -------
        array of bool, shape (K,)
        """
        ones = self.x1 + self.x0
        return np.asarray((ones > 0) & (ones < self.size))

    def where(self, kept: BoolArray) -> "StratumCounts":
        """Return some of the strata.

        Parameters
        ----------
        kept : array of bool, shape (K,)
            Which.

        Returns
        -------
        StratumCounts
        """
        return StratumCounts(x1=self.x1[kept], n1=self.n1[kept], x0=self.x0[kept], n0=self.n0[kept])

    def estimate(self, weights: FloatArray, scale: Scale) -> float:
        """Weighted difference of rates, or ratio of weighted rates.

        Parameters
        ----------
        weights : array of shape (K,)
            Weights of the strata.
        scale : {"difference", "ratio"}
            How rates are compared.

        Returns
        -------
        float
            NaN for a ratio to zero.
        """
        one, zero = float(weights @ (self.x1 / self.n1)), float(weights @ (self.x0 / self.n0))
        if scale == "difference":
            return (one - zero) / float(weights.sum())
        return one / zero if zero > 0.0 else np.nan

    def root(self, null: float, weights: FloatArray, scale: Scale) -> float:
        """Signed root of the stratified score statistic.

        With the overlap weights and no disparity its square is the Cochran-Mantel-Haenszel
        statistic without continuity correction.

        Parameters
        ----------
        null : float
            Hypothesised difference or ratio, the same in every stratum.
        weights : array of shape (K,)
            Weights of the strata.
        scale : {"difference", "ratio"}
            How rates are compared.

        Returns
        -------
        float
            Standard normal under the null, zero when nothing varies.
        """
        return float(_roots(self, weights, np.array([len(weights)]), np.array([null]), scale)[0])

    def interval(self, critical: float, weights: FloatArray, scale: Scale) -> tuple[float, float]:
        """Disparities whose root is between minus and plus `critical`.

        Parameters
        ----------
        critical : float
            1.96 for a 95% interval.
        weights : array of shape (K,)
            Weights of the strata.
        scale : {"difference", "ratio"}
            How rates are compared.

        Returns
        -------
        low, high : float
            A ratio may be unbounded.
        """
        low, high = score_intervals([self], [weights], critical, scale)
        return float(low[0]), float(high[0])

    def cochran_test(self, *, correct: bool = False) -> ChiSquare:
        """Cochran-Mantel-Haenszel test of no association in any stratum.

        Parameters
        ----------
        correct : bool, default False
            Yates' correction, as in R's `mantelhaen.test` by default: none where the observed
            number is within one half of the expected one.

        Returns
        -------
        ChiSquare
        """
        n, ones = self.size, self.x1 + self.x0
        gap = abs(float((self.x1 - self.n1 * ones / n).sum()))
        variance = float((self.n1 * self.n0 * ones * (n - ones) / (n**2 * (n - 1.0))).sum())
        if correct and gap >= 0.5:
            gap -= 0.5
        return ChiSquare(statistic=gap**2 / variance if variance > 0.0 else 0.0, df=1)

    def exact_p_value(self) -> float:
        """Two-sided exact p-value of no association given all margins of all strata.

        The distribution of the group's number of ones is a convolution of hypergeometric ones;
        values no more likely than the observed one count.

        Returns
        -------
        float
        """
        chance, least = np.ones(1), 0
        for n1, n0, ones in zip(self.n1, self.n0, self.x1 + self.x0, strict=True):
            count = np.arange(max(0.0, ones - n0), min(n1, ones) + 1.0)
            log = log_ways(n1, count) + log_ways(n0, ones - count)
            part = np.exp(log - log.max())
            chance = np.convolve(chance, part / part.sum())
            least += int(count[0])
        observed = chance[int(self.x1.sum()) - least]
        return min(float(chance[chance <= observed * (1.0 + 1e-7)].sum()), 1.0)

    @property
    def shortfall(self) -> float:
        """Ones that the group lacks to the common rate of each stratum."""
        return float((self.n1 * (self.x1 + self.x0) / self.size - self.x1).sum())

    @property
    def odds_ratio(self) -> PooledEstimate:
        """Mantel-Haenszel odds ratio; standard error of its logarithm of [2]_."""
        n = self.size
        r, s = self.x1 * (self.n0 - self.x0) / n, self.x0 * (self.n1 - self.x1) / n
        p, q = (self.x1 + self.n0 - self.x0) / n, (self.x0 + self.n1 - self.x1) / n
        up, down = float(r.sum()), float(s.sum())
        if up <= 0.0 or down <= 0.0:
            return PooledEstimate(value=np.nan, se=np.nan, logarithm=True)
        variance = float(p @ r) / (2.0 * up**2) + float(p @ s + q @ r) / (2.0 * up * down)
        variance += float(q @ s) / (2.0 * down**2)
        return PooledEstimate(value=up / down, se=float(np.sqrt(variance)), logarithm=True)

    @property
    def ratio(self) -> PooledEstimate:
        """Mantel-Haenszel ratio of rates; standard error of its logarithm of [3]_."""
        n = self.size
        up, down = float((self.x1 * self.n0 / n).sum()), float((self.x0 * self.n1 / n).sum())
        if up <= 0.0 or down <= 0.0:
            return PooledEstimate(value=np.nan, se=np.nan, logarithm=True)
        spread = (self.n1 * self.n0 * (self.x1 + self.x0) - self.x1 * self.x0 * n) / n**2
        se = float(np.sqrt(spread.sum() / (up * down)))
        return PooledEstimate(value=up / down, se=se, logarithm=True)

    @property
    def difference(self) -> PooledEstimate:
        """Mantel-Haenszel difference of rates; standard error of [4]_."""
        n, w = self.size, self.overlap_weights
        value = self.estimate(w, "difference")
        p = (
            self.n1**2 * self.x0
            - self.n0**2 * self.x1
            + self.n1 * self.n0 * (self.n0 - self.n1) / 2
        )
        q = (self.x1 * (self.n0 - self.x0) + self.x0 * (self.n1 - self.x1)) / (2.0 * n)
        variance = (value * float((p / n**2).sum()) + float(q.sum())) / float(w.sum()) ** 2
        return PooledEstimate(value=value, se=float(np.sqrt(max(variance, 0.0))), logarithm=False)

    def homogeneity_test(self) -> ChiSquare | None:
        """Breslow-Day test, with the correction of [5]_, that odds ratios are the same.

        Returns
        -------
        ChiSquare or None
            None when most strata have fewer than ten rows: too sparse to tell.
        """
        kept = np.flatnonzero(self.informative())
        odds = self.odds_ratio.value
        if len(kept) < 2 or np.median(self.size[kept]) < _SPARSE or not np.isfinite(odds):
            return None
        x1, n1, n0 = self.x1[kept], self.n1[kept], self.n0[kept]
        ones = x1 + self.x0[kept]
        # Expected ones of the group at the common odds ratio: a quadratic.
        a = 1.0 - odds
        b = n0 - ones + odds * (n1 + ones)
        c = -odds * n1 * ones
        # The root inside the margins, in the form that survives an odds ratio of one.
        expected = -2.0 * c / (b + np.sqrt(np.maximum(b**2 - 4.0 * a * c, 0.0)))
        inverse = 1.0 / expected + 1.0 / (ones - expected) + 1.0 / (n1 - expected)
        variance = 1.0 / (inverse + 1.0 / (n0 - ones + expected))
        gap = x1 - expected
        statistic = float((gap**2 / variance).sum() - gap.sum() ** 2 / variance.sum())
        return ChiSquare(statistic=statistic, df=len(kept) - 1)


def score_intervals(
    tables: Sequence[StratumCounts],
    weights: Sequence[FloatArray],
    critical: float,
    scale: Scale,
) -> tuple[FloatArray, FloatArray]:
    """Intervals by the stratified score of many comparisons, which are searched together.

    Parameters
    ----------
    tables : sequence of StratumCounts
        One for each comparison.
    weights : sequence of arrays
        Weights of the strata of each.
    critical : float
        1.96 for 95% intervals.
    scale : {"difference", "ratio"}
        How rates are compared.

    Returns
    -------
    low, high : array of shape (m,)
        A ratio may be unbounded.
    """
    place = np.cumsum([len(one) for one in weights]) // _BATCH
    low, high = np.empty(len(tables)), np.empty(len(tables))
    for part in np.unique(place):
        chosen = np.flatnonzero(place == part).tolist()
        low[chosen], high[chosen] = _intervals_together(
            [tables[k] for k in chosen], [weights[k] for k in chosen], critical, scale
        )
    return low, high


def _intervals_together(
    tables: list[StratumCounts], weights: list[FloatArray], critical: float, scale: Scale
) -> tuple[FloatArray, FloatArray]:
    size = np.array([len(one) for one in weights])
    every, w = _one_below_the_other(tables), np.concatenate(weights)
    owner = np.repeat(np.arange(len(size)), size)

    def root(null: FloatArray, which: IntArray) -> FloatArray:
        if len(which) == len(size):
            return _roots(every, w, size, null, scale)
        asked = np.zeros(len(size), dtype=np.bool_)
        asked[which] = True
        kept = asked[owner]
        return _roots(every.where(kept), w[kept], size[which], null, scale)

    start = np.array([t.estimate(v, scale) for t, v in zip(tables, weights, strict=True)])
    natural = 1.0 if scale == "ratio" else 0.0
    distance = start - natural if scale == "difference" else np.log(np.maximum(start, 1e-300))
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.abs(distance / root(np.full(len(size), natural), np.arange(len(size))))
    return outer_ends(root, start, step, critical, scale=scale)


def _one_below_the_other(tables: list[StratumCounts]) -> StratumCounts:
    names = [field.name for field in fields(StratumCounts)]
    return StratumCounts(**{n: np.concatenate([getattr(t, n) for t in tables]) for n in names})


def _roots(
    counts: StratumCounts, weights: FloatArray, size: IntArray, null: FloatArray, scale: Scale
) -> FloatArray:
    """Roots of comparisons whose strata stand one below the other, `size` of each."""
    ratio = scale == "ratio"
    value = np.repeat(null, size)
    fit = ratio_fit if ratio else difference_fit
    x1, n1, x0, n0 = counts.x1, counts.n1, counts.x0, counts.n0
    first, second = fit(x1, n1, x0, n0, value)
    # A large ratio is read from the other side, which keeps the contrast finite.
    a = 1.0 / np.maximum(value, 1.0) if ratio else 1.0
    b = np.minimum(value, 1.0) if ratio else 1.0
    gap = a * x1 / n1 - b * x0 / n0 - (0.0 if ratio else value)
    variance = a**2 * first * (1.0 - first) / n1 + b**2 * second * (1.0 - second) / n0
    variance *= counts.size / (counts.size - 1.0)
    begin = np.cumsum(size) - size
    total, whole = np.add.reduceat(weights * gap, begin), np.add.reduceat(weights, begin)
    spread = np.add.reduceat(weights**2 * variance, begin)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(total) <= 1e-12 * whole, 0.0, total / np.sqrt(spread))


def generalised_test(size: FloatArray, total: FloatArray, square: FloatArray) -> ChiSquare:
    """Cochran-Mantel-Haenszel test that several groups have equal means in every stratum.

    Parameters
    ----------
    size, total : array of shape (K, G)
        Rows of each stratum and group, and sums of the outcome over them.
    square : array of shape (K,)
        Sums of the squared outcome over each stratum.

    Returns
    -------
    ChiSquare
        Given the margins of every stratum; for 0/1 outcomes that of R's `mantelhaen.test`.

    Examples
    --------
    >>> size = np.array([[20.0, 30.0, 25.0], [40.0, 10.0, 20.0]])
    >>> ones = np.array([[5.0, 9.0, 10.0], [12.0, 5.0, 9.0]])
    >>> print(generalised_test(size, ones, ones.sum(axis=1)))
    chi-square 2.76 on 2 df, p = 0.252
    """
    n = size.sum(axis=1)
    kept = n > 1
    size, total, n = size[kept], total[kept], n[kept]
    mean = total.sum(axis=1) / n
    spread = np.maximum(square[kept] - n * mean**2, 0.0) / (n - 1.0)
    gap = (total - size * mean[:, None]).sum(axis=0)
    weighted = size * spread[:, None]
    covariance = np.diag(weighted.sum(axis=0)) - (weighted / n[:, None]).T @ size
    return quadratic_test(gap, covariance)


def quadratic_test(gap: FloatArray, covariance: FloatArray) -> ChiSquare:
    """Test that all gaps are zero; their covariance may be singular."""
    values, vectors = linalg.eigh(covariance)
    kept = values > 1e-10 * max(float(values[-1]), 1e-300)
    part = vectors[:, kept].T @ gap
    return ChiSquare(statistic=float((part**2 / values[kept]).sum()), df=int(kept.sum()))
