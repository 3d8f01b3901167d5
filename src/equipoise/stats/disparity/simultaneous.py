"""Intervals and p-values of disparities that hold for all groups together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._checks import check_fraction
from equipoise._typing import FloatArray, Rng
from equipoise.moments import CellMoments
from equipoise.stats.disparity.gaps import Disparities, joint_covariance
from equipoise.stats.multiplicity import correlations, max_t
from equipoise.stats.small_samples import shrunk_correlation

__all__ = ["LARGEST_MAX_T", "SimultaneousDisparities", "simultaneous_disparities", "together"]

LARGEST_MAX_T = 3000
"""More groups than this are adjusted by Bonferroni: their correlation matrix would not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimultaneousDisparities:
    """Intervals that cover all disparities together, with p-values to match.

    Parameters
    ----------
    low, high, p_value : array of shape (m,)
        NaN where a group was not tested.
    critical : float
        Critical value of the intervals; NaN when no group was tested.
    rule : {"max-t", "Bonferroni"}
        How the number of groups is allowed for.
    """

    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    critical: float
    rule: str


def simultaneous_disparities(
    found: Disparities | Sequence[Disparities],
    *,
    moments: CellMoments | None = None,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> SimultaneousDisparities:
    """Return intervals and p-values that allow for the number of groups, and of metrics.

    Parameters
    ----------
    found : Disparities, or a sequence of them
        Of groups that may overlap, in one metric or in several; their covariance counts.
    moments : CellMoments, optional
        With several metrics: sums of the (u, w) of all, as in `joint_covariance`.
    confidence_level : float, default 0.95
        Joint coverage.
    rng : Generator, int or None
        For the law of the largest root.

    Returns
    -------
    SimultaneousDisparities
        The groups of several metrics stand one metric after the other.
    """
    level = check_fraction("confidence_level", confidence_level)
    parts = [found] if isinstance(found, Disparities) else list(found)
    tested, raw = (
        np.concatenate(x) for x in zip(*((f.tested, f.p_value) for f in parts), strict=True)
    )
    count = int(tested.sum())
    p = np.full(len(tested), np.nan)
    rule, critical = "max-t", np.nan
    if count > LARGEST_MAX_T:
        rule, critical = "Bonferroni", float(-special.ndtri((1.0 - level) / (2 * count)))
        p[tested] = np.minimum(raw[tested] * count, 1.0)
    elif count:
        # Draws run in an order made of numbers: the names of groups must not matter.
        order = np.flatnonzero(tested)
        value, n, df = (
            np.concatenate(x)[order]
            for x in zip(*((f.group_value, f.n, _degrees(f)) for f in parts), strict=True)
        )
        place = np.lexsort((value, n))
        order = order[place]
        matrix = parts[0].covariance() if moments is None else joint_covariance(parts, moments)
        correlation = shrunk_correlation(correlations(matrix[np.ix_(order, order)]), df[place])
        p[order], critical = together(raw[order], correlation, level, rng=rng)
    ends = [f.interval(critical) if count else (f.ci_low, f.ci_high) for f in parts]
    low, high = (np.concatenate(end) for end in zip(*ends, strict=True))
    return SimultaneousDisparities(low=low, high=high, p_value=p, critical=critical, rule=rule)


def _degrees(found: Disparities) -> FloatArray:
    """Degrees of freedom of each test; infinite where counts are sufficient."""
    return np.full(len(found.n), np.inf) if found.units is None else found.units.df


def together(
    p_value: FloatArray, correlation: FloatArray, confidence_level: float, *, rng: Rng = None
) -> tuple[FloatArray, float]:
    """P-values that allow for the number of tests, and the critical value of their intervals.

    Parameters
    ----------
    p_value : array of shape (m,)
        Two-sided p-values, one by one.
    correlation : array of shape (m, m)
        Of the estimates.
    confidence_level : float
        Joint coverage.
    rng : Generator, int or None
        For the law of the largest root.

    Returns
    -------
    p_value : array of shape (m,)
    critical : float
    """
    law = max_t(correlation, rng=rng)
    # No draw makes a family narrower than one of its intervals alone: p-values do not either.
    single = float(-special.ndtri((1.0 - confidence_level) / 2.0))
    # From the two-sided p-value: an exact test has a different root for each side.
    adjusted = np.maximum(law.p_values(-special.ndtri(p_value / 2.0)), p_value)
    return adjusted, max(law.critical(confidence_level), single)
