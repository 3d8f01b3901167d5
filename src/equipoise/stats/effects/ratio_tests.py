r"""Tests and intervals for ratios of means: score (Fieller) and Wald.

:math:`S(a) = (u - a d) / \sqrt{\mathrm{Var}(u - a d)}` has mean zero at the true ratio whatever
the sample size, because numerator and denominator enter linearly; the Wald statistic divides first
and needs a denominator well away from zero.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._typing import Adjust, BoolArray, EffectAdjust, FloatArray, Rng
from equipoise.stats.multiplicity import adjusted_p_values, max_t_p_values
from equipoise.stats.summary import Interval, normal_quantile

__all__ = ["Ratio", "RatioTests", "ratio_tests", "score_interval"]


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
        "score" or "wald".
    ratio : Ratio
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
    ratio: "Ratio"
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
        score = np.array([method == "score" for method in self.method], dtype=np.bool_)
        bounds = self.ratio.bounds(normal_quantile(confidence_level), score)
        return Interval(
            np.array([-np.inf if low is None else low for low, _ in bounds]),
            np.array([np.inf if high is None else high for _, high in bounds]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Ratios u/d, one for each group, with Var(u - a d) = c0 - 2 a c1 + a^2 c2.

    Parameters
    ----------
    u, d : array of shape (T,)
        Numerators and denominators.
    c0, c1, c2 : array of shape (T,)
        Var(u), Cov(u, d), Var(d).
    """

    u: FloatArray
    d: FloatArray
    c0: FloatArray
    c1: FloatArray
    c2: FloatArray

    def statistic(self, value: float, score: BoolArray) -> FloatArray:
        """Return the test statistic of `value`: variance at `value` (score) or at the estimate."""
        centre = np.where(score, value, self.u / self.d)
        variance = self.c0 - 2.0 * centre * self.c1 + centre**2 * self.c2
        z: FloatArray = (self.u - value * self.d) / np.sqrt(variance)
        return z

    def se(self) -> FloatArray:
        """Return the delta-method standard error of u/d."""
        a = self.u / self.d
        return np.sqrt(self.c0 - 2.0 * a * self.c1 + a**2 * self.c2) / self.d

    def bounds(self, z: float, score: BoolArray) -> list[tuple[float | None, float | None]]:
        """Return the interval of each group: the values whose statistic is at most `z`."""
        estimate, se = self.u / self.d, self.se()
        parts = (self.u, self.d, self.c0, self.c1, self.c2)
        return [
            score_interval(*row, z)
            if score[k]
            else (float(estimate[k] - z * se[k]), float(estimate[k] + z * se[k]))
            for k, row in enumerate(zip(*parts, strict=True))
        ]

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
        )


def ratio_tests(
    ratio: Ratio,
    score: BoolArray,
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
    ratio : Ratio
        Numerators, denominators and their covariances.
    score : array of bool of shape (T,)
        Score test where true, Wald elsewhere.
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
    >>> found = ratio_tests(Ratio(u=0.3 * one, d=one, c0=0.01 * one, c1=0 * one, c2=0 * one),
    ...                     np.array([True]), z=1.96, adjust="none")
    >>> float(found.statistic[0].round(3)), float(found.p_value[0].round(4))
    (3.0, 0.0027)
    """
    statistic = ratio.statistic(0.0, score)
    raw = 2.0 * special.ndtr(-np.abs(statistic))
    simple: Adjust = "holm" if adjust == "max_t" else adjust
    if correlation is None:
        adjusted = adjusted_p_values(raw, simple)
    else:
        adjusted = max_t_p_values(statistic, correlation, rng=rng)
    equivalence = None
    if margin is not None:
        above = special.ndtr(-ratio.statistic(-margin, score))
        below = special.ndtr(ratio.statistic(margin, score))
        equivalence = adjusted_p_values(np.maximum(above, below), simple)
    estimate, se = ratio.u / ratio.d, ratio.se()
    bounds = ratio.bounds(z, score)
    return RatioTests(
        estimate=estimate,
        se=se,
        statistic=statistic,
        p_value_raw=raw,
        p_value=adjusted,
        low=tuple(low for low, _ in bounds),
        high=tuple(high for _, high in bounds),
        method=tuple("score" if s else "wald" for s in score),
        ratio=ratio,
        equivalence_p_value=equivalence,
    )


def score_interval(
    u: float, d: float, c0: float, c1: float, c2: float, z: float
) -> tuple[float | None, float | None]:
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
    tuple of float or None
        Roots of :math:`(u - a d)^2 = z^2 (c_0 - 2 a c_1 + a^2 c_2)`; both `None` when
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
        return None, None
    middle = u * d - z * z * c1
    # The estimate u/d satisfies the inequality, so the discriminant is not negative.
    root = np.sqrt(max(middle * middle - lead * (u * u - z * z * c0), 0.0))
    return float((middle - root) / lead), float((middle + root) / lead)
