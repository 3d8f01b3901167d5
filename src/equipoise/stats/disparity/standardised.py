r"""Gaps of scores without a unit: standardised mean differences, and scoring rates.

The standardised mean difference is the difference of two means over a standard deviation, times a
hundred in lending. The scoring rate of a category is the share of its people with a score above the
median of everybody's (6 RCNY 5-300). Both divide by, or cut at, something estimated from the same
rows; their influence functions allow for it.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import special

from equipoise._checks import check_finite, check_fraction, check_option
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.exceptions import GroupTooSmallError
from equipoise.stats.small_samples import normal_root
from equipoise.stats.summary import Interval

__all__ = [
    "Deviation",
    "ScoringRates",
    "StandardisedDifference",
    "StudentisedGap",
    "scoring_rates",
    "standardised_mean_difference",
    "studentised",
]

Deviation: TypeAlias = Literal["population", "pooled"]

# Bandwidth of the density at the median, in interquartile ranges times n^(-1/5).
_BANDWIDTH = 0.79


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentisedGap:
    """A gap with Student's law on the effective units of its influence function.

    Parameters
    ----------
    estimate, se : float
        The gap and its standard error.
    degrees : float
        Effective units of the standard error.
    """

    estimate: float
    se: float
    degrees: float

    @property
    def statistic(self) -> float:
        """Signed root of the test of no gap, on the normal scale."""
        return self.root(0.0)

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no gap."""
        return float(2.0 * special.ndtr(-abs(self.statistic)))

    def root(self, null: float) -> float:
        """Signed root at a hypothesised gap: that of Student's t with `degrees` degrees of freedom.

        Parameters
        ----------
        null : float
            The gap.

        Returns
        -------
        float
        """
        t = (self.estimate - null) / self.se * np.sqrt((self.degrees - 1.0) / self.degrees)
        return float(normal_root(np.array(t), self.degrees))

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Interval of the difference.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval.

        Returns
        -------
        Interval
        """
        level = check_fraction("confidence_level", confidence_level)
        quantile = float(special.stdtrit(self.degrees, (1.0 + level) / 2.0))
        reach = quantile * self.se / float(np.sqrt((self.degrees - 1.0) / self.degrees))
        return Interval(self.estimate - reach, self.estimate + reach)


def studentised(influence: FloatArray, cluster: AnyArray | None) -> tuple[float, float]:
    """Standard error of an estimate and its effective units, from the influence of every row.

    Parameters
    ----------
    influence : array of shape (n,)
        Of each row; rows of one unit are added.
    cluster : array of shape (n,), optional
        Unit of each row.

    Returns
    -------
    se, degrees : float
    """
    if cluster is not None:
        unit = np.unique(cluster, return_inverse=True)[1]
        influence = np.asarray(np.bincount(unit, influence), dtype=np.float64)
    square, n = float((influence**2).sum()), len(influence)
    if n < 2 or square <= 0.0:
        raise GroupTooSmallError("The gap does not vary between units; there is nothing to test.")
    degrees = square**2 / float((influence**4).sum())
    return float(np.sqrt(square * n / (n - 1.0))), max(degrees, 1.0 + 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardisedDifference(StudentisedGap):
    """Difference of two means in standard deviations; fields as in `StudentisedGap`."""

    def __str__(self) -> str:
        """One line for people."""
        low, high = self.confidence_interval()
        return f"{self.estimate:.3g} standard deviations ({low:.3g} to {high:.3g})"


def standardised_mean_difference(
    y: AnyArray,
    member: AnyArray,
    *,
    comparator: AnyArray | None = None,
    sd: Deviation = "population",
    cluster: AnyArray | None = None,
) -> StandardisedDifference:
    """Difference of the means of two groups over a standard deviation.

    Parameters
    ----------
    y : array of shape (n,)
        Scores or outcomes of all rows.
    member : array of bool, shape (n,)
        Rows of the group.
    comparator : array of bool, shape (n,), optional
        Rows it is compared with; by default all others.
    sd : {"population", "pooled"}
        Standard deviation of all rows, as in lending, or within the two groups (Cohen's d).
    cluster : array of shape (n,), optional
        Unit of each row.

    Returns
    -------
    StandardisedDifference

    Examples
    --------
    >>> y = np.arange(40.0)
    >>> print(standardised_mean_difference(y, y % 2 == 0))
    -0.0855 standard deviations (-0.754 to 0.583)
    """
    check_option("sd", sd, Deviation)
    value = check_finite("y", y, ndim=1)
    one = np.asarray(member).astype(np.bool_)
    two = ~one if comparator is None else np.asarray(comparator).astype(np.bool_)
    n1, n2 = int(one.sum()), int(two.sum())
    if min(n1, n2) < 2:
        raise GroupTooSmallError(f"Both groups need two rows; got {n1} and {n2}.")
    m1, m2 = value[one].mean(), value[two].mean()
    if sd == "population":
        centred = value - value.mean()
        divisor, everyone = len(value) - 1.0, np.ones(len(value), dtype=np.bool_)
    else:
        centred = value - np.where(one, m1, m2)
        divisor, everyone = n1 + n2 - 2.0, one | two
    centred = np.where(everyone, centred, 0.0)
    variance = float(centred @ centred) / divisor
    if variance <= 0.0:
        raise GroupTooSmallError("The outcome does not vary; it has no standard deviation.")
    s = float(np.sqrt(variance))
    estimate = float(m1 - m2) / s
    influence = np.where(one, (value - m1) / n1, 0.0) - np.where(two, (value - m2) / n2, 0.0)
    spread = np.where(everyone, (centred**2 - variance) / int(everyone.sum()), 0.0)
    influence = influence / s - estimate / (2.0 * variance) * spread
    se, degrees = studentised(influence, cluster)
    return StandardisedDifference(estimate=estimate, se=se, degrees=degrees)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringRates:
    """Shares of each category with a score above the median of everybody.

    Parameters
    ----------
    median : float
        Median of all scores.
    n, above : array of shape (k,)
        People of each category, and how many have a score above the median.
    covariance : array of shape (k, k)
        Of the rates, with the median estimated.
    """

    median: float
    n: IntArray
    above: IntArray
    covariance: FloatArray

    @property
    def rate(self) -> FloatArray:
        """Scoring rates."""
        return np.asarray(self.above / self.n)

    @property
    def se(self) -> FloatArray:
        """Standard errors of the rates."""
        return np.sqrt(np.diag(self.covariance))


def scoring_rates(score: AnyArray, category: IntArray) -> ScoringRates:
    """Share of every category with a score above the median of everybody.

    Parameters
    ----------
    score : array of shape (n,)
        Scores of all rows, of unknown category too.
    category : array of shape (n,)
        Codes 0 to k - 1, or -1 where the category is not known; such rows count for the median.

    Returns
    -------
    ScoringRates
        `above` and `n` are counts for `impact_ratio_test` and its companions; where groups are
        equal, the error of the median cancels in their comparison.

    Examples
    --------
    >>> rates = scoring_rates(np.arange(10.0), np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, -1]))
    >>> rates.above.tolist(), rates.median
    ([0, 4], 4.5)
    """
    value = check_finite("score", score, ndim=1)
    code = np.asarray(category, dtype=np.int64)
    size = int(code.max()) + 1
    total = len(value)
    median = float(np.median(value))
    over = value > median
    n = np.bincount(code[code >= 0], minlength=size)
    above = np.bincount(code[(code >= 0) & over], minlength=size)
    member = code[:, None] == np.arange(size)
    influence = np.where(member, over[:, None] - above / n, 0.0) / n
    influence -= np.outer(over - over.mean(), _density_ratio(value, median, member)) / total
    return ScoringRates(
        median=median, n=n, above=above, covariance=np.asarray(influence.T @ influence)
    )


def _density_ratio(value: FloatArray, median: float, member: AnyArray) -> FloatArray:
    """Density of every category at the median, over that of everybody; zero at an atom."""
    n = len(value)
    # The median sits on an atom when the shares below and up to it are both far from one half.
    distance = np.abs(np.array([np.mean(value < median), np.mean(value <= median)]) - 0.5)
    if distance.min() > 3.0 * 0.5 / np.sqrt(n):
        return np.zeros(member.shape[1])
    low, high = np.quantile(value, [0.25, 0.75])
    near = np.abs(value - median) <= _BANDWIDTH * (high - low) * n**-0.2
    return np.asarray(member[near].mean(axis=0) * n / member.sum(axis=0))
