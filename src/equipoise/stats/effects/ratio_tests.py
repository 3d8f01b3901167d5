r"""Tests and intervals for ratios of means: score (Fieller) and Wald.

:math:`S(a) = (u - a d) / \sqrt{\mathrm{Var}(u - a d)}` has mean zero at the true ratio whatever
the sample size, because numerator and denominator enter linearly; the Wald statistic divides first
and needs a denominator well away from zero.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from equipoise._typing import Adjust, BoolArray, EffectAdjust, FloatArray, Rng
from equipoise.stats.multiplicity import adjusted_p_values, gaussian_draws, step_down_shares
from equipoise.stats.summary import Interval, normal_quantile

__all__ = [
    "Ratio",
    "RatioLaw",
    "RatioTests",
    "ratio_tests",
    "score_interval",
    "step_down_p_values",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioTests:
    """One test and interval for each tested group.

    Parameters
    ----------
    estimate, se, statistic : array of shape (T,)
        The estimate, its delta-method standard error, and the test statistic of zero.
    p_value_raw, p_value : array of shape (T,)
        Two-sided, before and after the adjustment for several groups.
    low, high : tuple of float or None
        Interval at the confidence level; `None` where the data give no bound.
    method : tuple of str
        "t" and "mid-p" for the laws of few units, "score" or "wald".
    source : RatioLaw
        What was tested.
    equivalence_p_value : array of shape (T,), optional
        For the hypothesis that the value is at least `margin` away from zero; adjusted.
    """

    estimate: FloatArray
    se: FloatArray
    statistic: FloatArray
    p_value_raw: FloatArray
    p_value: FloatArray
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    method: tuple[str, ...]
    source: "RatioLaw"
    equivalence_p_value: FloatArray | None = None

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return an interval for each group by itself; infinite where there is no bound.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of each interval.

        Returns
        -------
        Interval
            Arrays of shape (T,).
        """
        z = normal_quantile(confidence_level)
        return Interval(*_reaching_zero(self.statistic, self.source.interval(z), z))


class RatioLaw(Protocol):
    """Tests of one number for each of T groups, by their roots on the normal scale."""

    @property
    def method(self) -> tuple[str, ...]:
        """The test of each group."""

    @property
    def estimate(self) -> FloatArray:
        """The numbers."""

    @property
    def se(self) -> FloatArray:
        """Their standard errors."""

    def root(self, value: float) -> FloatArray:
        """Return the statistic of a hypothesised value."""

    def interval(self, critical: float) -> tuple[FloatArray, FloatArray]:
        """Return the values whose root is at most `critical`; infinite without a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Ratios u/d, one for each group, with Var(u - a d) = c0 - 2 a c1 + a^2 c2; a `RatioLaw`.

    Parameters
    ----------
    u, d : array of shape (T,)
        Numerators and denominators.
    c0, c1, c2 : array of shape (T,)
        Var(u), Cov(u, d), Var(d).
    score : array of bool of shape (T,)
        Score test where true, Wald elsewhere.
    """

    u: FloatArray
    d: FloatArray
    c0: FloatArray
    c1: FloatArray
    c2: FloatArray
    score: BoolArray

    @property
    def method(self) -> tuple[str, ...]:
        """The test of each group."""
        return tuple("score" if s else "wald" for s in self.score)

    @property
    def estimate(self) -> FloatArray:
        """The ratios."""
        return np.asarray(self.u / self.d)

    @property
    def se(self) -> FloatArray:
        """Standard errors of the ratios, by the delta method."""
        a = self.estimate
        return np.asarray(np.sqrt(self.c0 - 2.0 * a * self.c1 + a**2 * self.c2) / self.d)

    def root(self, value: float) -> FloatArray:
        """Return the test statistic of `value`: variance at `value` (score) or at the estimate."""
        centre = np.where(self.score, value, self.estimate)
        variance = self.c0 - 2.0 * centre * self.c1 + centre**2 * self.c2
        z: FloatArray = (self.u - value * self.d) / np.sqrt(variance)
        return z

    def interval(self, critical: float) -> tuple[FloatArray, FloatArray]:
        """Return the values whose statistic is at most `critical`."""
        parts = zip(self.u, self.d, self.c0, self.c1, self.c2, strict=True)
        fieller = np.array([score_interval(*row, critical) for row in parts]).reshape(-1, 2)
        estimate, se = self.estimate, self.se
        return (
            np.where(self.score, fieller[:, 0], estimate - critical * se),
            np.where(self.score, fieller[:, 1], estimate + critical * se),
        )

    def mirrored(self, source: int) -> "Ratio":
        """Two groups have one contrast: both get that of `source`, with opposite signs."""
        sign = np.where(np.arange(2) == source, 1.0, -1.0)
        pick = np.array([source, source])
        return Ratio(
            u=sign * self.u[pick],
            d=self.d[pick],
            c0=self.c0[pick],
            c1=sign * self.c1[pick],
            c2=self.c2[pick],
            score=self.score[pick],
        )


def ratio_tests(
    law: RatioLaw,
    *,
    z: float,
    adjust: EffectAdjust,
    correlation: FloatArray | None = None,
    margin: float | None = None,
    rng: Rng = None,
) -> RatioTests:
    """Test that each ratio is zero, and with a margin that it is at least so far from zero.

    Parameters
    ----------
    law : RatioLaw
        How each ratio is tested.
    z : float
        Normal quantile of the intervals.
    adjust : str
        How p-values are adjusted; "max_t" uses `correlation`.
    correlation : array of shape (T, T), optional
        Of the estimates.
    margin : float, optional
        For the equivalence test, adjusted by Holm's method with "max_t".
    rng : Generator, int or None
        For "max_t".

    Returns
    -------
    RatioTests

    Examples
    --------
    >>> one = np.ones(1)
    >>> law = Ratio(u=0.3 * one, d=one, c0=0.01 * one, c1=0 * one, c2=0 * one, score=one > 0)
    >>> found = ratio_tests(law, z=1.96, adjust="none")
    >>> float(found.statistic[0].round(3)), float(found.p_value[0].round(4))
    (3.0, 0.0027)
    """
    statistic = law.root(0.0)
    raw = 2.0 * special.ndtr(-np.abs(statistic))
    simple: Adjust = "holm" if adjust == "max_t" else adjust
    if correlation is None:
        adjusted = adjusted_p_values(raw, simple)
    else:
        adjusted = step_down_p_values(statistic, correlation, rng=rng)
    equivalence = None
    if margin is not None:
        above, below = special.ndtr(-law.root(-margin)), special.ndtr(law.root(margin))
        equivalence = adjusted_p_values(np.maximum(above, below), simple)
    low, high = _reaching_zero(statistic, law.interval(z), z)
    return RatioTests(
        estimate=law.estimate,
        se=law.se,
        statistic=statistic,
        p_value_raw=raw,
        p_value=adjusted,
        low=tuple(float(x) if np.isfinite(x) else None for x in low),
        high=tuple(float(x) if np.isfinite(x) else None for x in high),
        method=law.method,
        source=law,
        equivalence_p_value=equivalence,
    )


def _reaching_zero(
    statistic: FloatArray, ends: tuple[FloatArray, FloatArray], z: float
) -> tuple[FloatArray, FloatArray]:
    """Let intervals reach zero where its test does not reject it.

    A statistic need not fall all the way to zero and beyond.
    """
    low, high = ends
    kept = np.abs(statistic) <= z
    return (
        np.where(kept, np.minimum(low, 0.0), low),
        np.where(kept, np.maximum(high, 0.0), high),
    )


def step_down_p_values(
    roots: FloatArray, correlation: FloatArray, *, rng: Rng = None
) -> FloatArray:
    """P-values adjusted step by step by the law of the largest of the remaining roots.

    Parameters
    ----------
    roots : array of shape (m,)
        Statistics on the normal scale.
    correlation : array of shape (m, m)
        Of the statistics.
    rng : Generator, int or None
        For the draws, in the order of the roots.

    Returns
    -------
    array of shape (m,)

    Examples
    --------
    The smallest p-value is that of the largest of all, the largest stays as it is.

    >>> step_down_p_values(np.array([1.0, 3.2]), np.eye(2)).round(2).tolist()
    [0.32, 0.0]
    """
    order = np.argsort(-np.abs(roots), kind="stable")
    draws = np.abs(gaussian_draws(np.asarray(correlation)[np.ix_(order, order)], rng=rng))
    seen = np.abs(roots[order])
    adjusted = np.empty(len(order))
    # Draws tell a p-value to three digits; it is never below that of the single test.
    alone = 2.0 * special.ndtr(-seen)
    adjusted[order] = np.maximum.accumulate(np.maximum(step_down_shares(seen, draws), alone))
    return adjusted


def score_interval(
    u: float, d: float, c0: float, c1: float, c2: float, z: float
) -> tuple[float, float]:
    r"""Invert the score test of a ratio: Fieller's interval.

    Parameters
    ----------
    u, d : float
        Numerator and denominator.
    c0, c1, c2 : float
        Var(u), Cov(u, d), Var(d).
    z : float
        Normal quantile.

    Returns
    -------
    tuple of float
        Roots of :math:`(u - a d)^2 = z^2 (c_0 - 2 a c_1 + a^2 c_2)`; both infinite when
        :math:`d^2 \le z^2 c_2`: the denominator may be zero and nothing is ruled out on either
        side.

    Examples
    --------
    >>> low, high = score_interval(0.02, 0.1, 0.0001, 0.0, 0.0, 1.96)
    >>> round(low, 3), round(high, 3)
    (0.004, 0.396)
    """
    lead = d * d - z * z * c2
    if lead <= 0.0:
        return -np.inf, np.inf
    middle = u * d - z * z * c1
    # The estimate u/d satisfies the inequality, so the discriminant is not negative.
    root = np.sqrt(max(middle * middle - lead * (u * u - z * z * c0), 0.0))
    return float((middle - root) / lead), float((middle + root) / lead)
