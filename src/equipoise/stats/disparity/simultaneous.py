"""Intervals and p-values of disparities that hold for all groups together."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._checks import check_fraction
from equipoise._typing import FloatArray, Rng
from equipoise.stats.disparity.gaps import Disparities
from equipoise.stats.multiplicity import correlations, max_t

__all__ = ["LARGEST_MAX_T", "SimultaneousDisparities", "simultaneous_disparities"]

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
    found: Disparities, *, confidence_level: float = 0.95, rng: Rng = None
) -> SimultaneousDisparities:
    """Return intervals and p-values that allow for the number of groups.

    Parameters
    ----------
    found : Disparities
        Of groups that may overlap; their covariance counts.
    confidence_level : float, default 0.95
        Joint coverage.
    rng : Generator, int or None
        For the law of the largest root.

    Returns
    -------
    SimultaneousDisparities
    """
    level = check_fraction("confidence_level", confidence_level)
    tested = found.tested
    count = int(tested.sum())
    p = np.full(len(tested), np.nan)
    if count == 0:
        return SimultaneousDisparities(
            low=found.ci_low, high=found.ci_high, p_value=p, critical=np.nan, rule="max-t"
        )
    if count > LARGEST_MAX_T:
        rule, critical = "Bonferroni", float(-special.ndtri((1.0 - level) / (2 * count)))
        p[tested] = np.minimum(found.p_value[tested] * count, 1.0)
    else:
        law = max_t(correlations(found.covariance()[np.ix_(tested, tested)]), rng=rng)
        rule, critical = "max-t", law.critical(level)
        # From the two-sided p-value: an exact test has a different root for each side.
        raw = found.p_value[tested]
        p[tested] = np.maximum(law.p_values(-special.ndtri(raw / 2.0)), raw)
    low, high = found.interval(critical)
    return SimultaneousDisparities(low=low, high=high, p_value=p, critical=critical, rule=rule)
