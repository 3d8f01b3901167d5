r"""Law of the audits' tests of means, before there are units: t, less what skewness costs.

A test is passed when the estimate exceeds so many of its standard errors, and both are random.
With an estimate of skewness :math:`\lambda` the covariance of the two is :math:`\lambda` as well:
a large mean comes with a large error where values are skewed to the right. The audits take
:math:`\lambda` out as far as they see it, so that the critical value moves too: gaps towards the
long side of values are easier to show, gaps towards the short side harder.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._typing import AnyArray, BoolArray, FloatArray
from equipoise.stats.small_samples import (
    LARGEST_SKEWNESS,
    MIN_UNITS,
    normal_root,
    one_sided_fold,
    shape_is_unknown,
    with_skewness,
    without_skewness,
)

__all__ = ["PlannedSide", "UnitLaw", "normal_law", "unit_law"]

_FARTHEST = 30.0
_ERRORS = 101
"""Standard errors that stand for all."""
_MANY = 1e6
"""Degrees of freedom from which a law is normal."""
# Chosen on gamma values (tests/calibration/design): what is promised is found, up to 0.03.
_FAVOURABLE, _ADVERSE = 10.0, 1.0
"""Units of normal values that hide half of the skewness; of others 1 + skewness^2 times as many."""
_KURTOSIS, _KURTOSIS_OF_SKEWED = 2.0, 2.0
_NOISE = 36.0
"""Variance of the skewness of m values, times m: 6 of normal values, 50 of t with four degrees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSide:
    """Units of a group, or of what it is compared with.

    Parameters
    ----------
    units : array
        How many.
    variance : array
        Of the mean of the side.
    skewness : array
        Of the mean of a unit.
    sign : {1.0, -1.0}
        How the mean counts.
    """

    units: FloatArray
    variance: FloatArray
    skewness: FloatArray
    sign: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLaw:
    """Of the test of each group.

    Parameters
    ----------
    se : array
        Standard error of the estimate.
    df : array
        Degrees of freedom.
    skewness : array
        Of the estimate.
    seen : array of shape (2, m)
        Part of it that is taken out when it is on the side of the gap, and when it is not.
    doubt : array
        Variance of the square of the standard error, over its own square, beyond that of normal
        values.
    uneven : float
        Rows over effective rows, which skewness and the root of the doubt grow with.
    cost : array
        What is seen of skewness where there is none, and taken out, in squares of the statistic.
    fold, unknown : array
        Tests of one side are `fold` times as strict in the share `unknown` of samples.
    tested : array of bool
        Whether there are units enough.
    """

    se: FloatArray
    df: FloatArray
    skewness: FloatArray
    seen: FloatArray
    doubt: FloatArray
    uneven: float
    cost: FloatArray
    fold: FloatArray
    unknown: FloatArray
    tested: BoolArray

    def reach(
        self, shift: AnyArray | float, tail: AnyArray | float, sign: AnyArray | float = 1.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the critical value of a t test, and where its statistic is centred.

        Parameters
        ----------
        shift : array
            Effect, in standard errors.
        tail : array
            One-sided level.
        sign : {1.0, -1.0}
            With -1 the gap is one below; `shift` is its size.

        Returns
        -------
        critical, centre : array
            The first is infinite where skewness leaves no bound.
        """
        critical, (narrow, wide) = self._edge(tail, sign)
        at = np.where(np.isfinite(critical), critical, 0.0)
        # What weights leave open is no help to effects that are too small to be found.
        centre = at + (shift - at) / np.where(shift < at, narrow, wide)
        # Where more is skewed than is taken out the law is not known so well.
        far = sign * self.skewness < -LARGEST_SKEWNESS
        return critical, np.where(far, np.minimum(centre, shift), centre)

    def both(self, up: FloatArray, down: FloatArray, tail: AnyArray | float) -> FloatArray:
        """Chance that a test above and one below succeed with the same standard error.

        Parameters
        ----------
        up, down : array
            What each is centred at, in standard errors.
        tail : array
            One-sided level.

        Returns
        -------
        array
        """
        middle = (np.arange(_ERRORS) + 0.5)[:, None] / _ERRORS
        df = np.minimum(self.df, _MANY)
        error = np.sqrt(special.chdtri(df, middle) / df)
        chance = -np.ones_like(error)
        for shift, sign in ((up, 1.0), (down, -1.0)):
            critical, centre = self.reach(shift, tail, sign)
            with np.errstate(invalid="ignore"):
                chance += special.ndtr(centre - critical * error)
        return np.where(self.tested, np.maximum(chance, 0.0).mean(axis=0), 0.0)

    def least(self, chance: float, tail: AnyArray | float) -> FloatArray:
        """Smallest effect, in standard errors, that a two-sided test finds on either side.

        Parameters
        ----------
        chance : float
            Power.
        tail : array
            One-sided level.

        Returns
        -------
        array
            Infinite where nothing is tested.
        """
        return np.maximum(self._least(chance, tail, 1.0), self._least(chance, tail, -1.0))

    def _least(self, chance: float, tail: AnyArray | float, sign: float) -> FloatArray:
        """Smallest effect on one side, which `beyond` gives the chance."""
        critical, (narrow, wide) = self._edge(tail, sign)
        found = self.tested & np.isfinite(critical)
        # The search for a noncentral law of less than one degree of freedom does not end.
        df = np.where(found, np.minimum(self.df, _MANY), 1.0)
        at = np.where(found, critical, 0.0)
        centre = special.nctdtrinc(df, 1.0 - chance, at)
        shift = at + (centre - at) * np.where(centre < at, narrow, wide)
        far = sign * self.skewness < -LARGEST_SKEWNESS
        return np.where(found, np.where(far, np.maximum(shift, centre), shift), np.inf)

    def root(self, shift: AnyArray, sign: AnyArray | float = 1.0) -> FloatArray:
        """Return where the statistic on the normal scale is centred; arguments as in `reach`."""
        t = np.maximum(without_skewness(shift, self._taken(sign)), 0.0)
        cost = np.maximum(self.cost, 1e-9)
        plain = (np.sqrt(1.0 + 4.0 * cost * t) - 1.0) / (2.0 * cost)
        return np.where(self.tested, normal_root(plain, self.df), 0.0)

    def _taken(self, sign: AnyArray | float) -> FloatArray:
        """Skewness that is taken out on the side of the gap."""
        skewness = sign * self.skewness
        part = np.where(skewness > 0, self.seen[0], self.seen[1])
        return np.asarray(np.clip(part * skewness, -LARGEST_SKEWNESS, LARGEST_SKEWNESS))

    def _edge(
        self, tail: AnyArray | float, sign: AnyArray | float
    ) -> tuple[FloatArray, FloatArray]:
        """Critical value, and spreads of what is compared with it beside that of normal values.

        The estimate, and its standard error so many times; without uneven weights, and with them.
        """
        q = np.where(self.tested, -special.stdtrit(self.df, tail), 0.0)
        critical = with_skewness(q + self.cost * q**2, self._taken(sign))
        at = np.where(np.isfinite(critical), critical, 0.0)
        plain = 1.0 + 0.5 * at**2 / self.df
        at = at / np.array([[self.uneven], [1.0]])
        spread = plain - at * sign * self.skewness + 0.25 * at**2 * self.doubt
        return critical, np.sqrt(spread / plain)

    def beyond(
        self, shift: AnyArray | float, tail: AnyArray | float, sign: AnyArray | float = 1.0
    ) -> FloatArray:
        """Chance that a test succeeds; arguments as in `reach`."""
        critical, centre = self.reach(shift, tail, sign)
        # The noncentral law is not computed far from its centre, where nothing is left to chance.
        near = np.clip(centre, -_FARTHEST, _FARTHEST)
        df = np.minimum(self.df, _MANY)
        with np.errstate(invalid="ignore"):
            below = special.nctdtr(df, near, critical)
            # It is not a number in places of its tails, where the error is known as well as normal.
            tail_of = (critical * (1.0 - 0.25 / df) - near) / np.sqrt(1.0 + 0.5 * critical**2 / df)
        below = np.where(np.isnan(below), special.ndtr(tail_of), below)
        below = np.where(np.isinf(self.df), special.ndtr(critical - centre), below)
        return np.where(self.tested & np.isfinite(critical), 1.0 - below, 0.0)


def normal_law(se: FloatArray) -> UnitLaw:
    """Law of groups whose tests are normal.

    Parameters
    ----------
    se : array
        Standard errors.

    Returns
    -------
    UnitLaw
    """
    none, one = np.zeros_like(se), np.ones_like(se)
    return UnitLaw(
        se=se,
        df=one * np.inf,
        skewness=none,
        seen=np.stack([one, one]),
        doubt=none,
        uneven=1.0,
        cost=none,
        fold=one,
        unknown=none,
        tested=one > 0,
    )


def unit_law(
    sides: Sequence[PlannedSide],
    *,
    pool: AnyArray | float,
    uneven: float = 1.0,
    external: float = 0.0,
) -> UnitLaw:
    """Law of sums and differences of sides that share no units.

    Parameters
    ----------
    sides : list of PlannedSide
        A group and what it is compared with, or arms.
    pool : array
        Units that the audits borrow skewness and variance from.
    uneven : float, default 1
        Rows over effective rows, where weights differ.
    external : float, default 0
        Variance of a target that is estimated elsewhere.

    Returns
    -------
    UnitLaw
    """
    units, variance = (
        np.array([getattr(side, name) for side in sides]) for name in ("units", "variance")
    )
    skewness = uneven * np.array([side.sign * side.skewness for side in sides])
    least, total = units.min(axis=0), variance.sum(axis=0) + external
    # Welch's degrees; a side of one unit is not tested.
    shared = np.sum(variance**2 / np.maximum(units - 1.0, 1e-9), axis=0)
    third = np.sum(skewness * variance**1.5 / np.sqrt(units), axis=0)
    kurtosis = _KURTOSIS * uneven**2 + _KURTOSIS_OF_SKEWED * skewness**2
    # As in audits; a group that is nearly everybody has only its own shape.
    lone = np.asarray(pool < 1.5 * least)
    skewed = np.abs(skewness).max(axis=0)
    hidden = 1.0 + skewed**2
    favourable = np.where(lone, 0.0, pool / (pool + _FAVOURABLE * uneven**2 * hidden))
    noise, limit = uneven * np.sqrt(_NOISE / least), 0.1 * np.sqrt(least)
    looks_skewed = special.ndtr((skewed - limit) / noise) + special.ndtr(-(skewed + limit) / noise)
    unknown = shape_is_unknown(pool, least) | (lone & (least < 100.0))
    return UnitLaw(
        se=np.sqrt(total),
        df=total**2 / (shared * uneven),
        skewness=third / total**1.5,
        seen=np.stack([favourable, pool / (pool + _ADVERSE * hidden)]),
        doubt=np.sum(variance**2 * kurtosis / units, axis=0) / total**2,
        uneven=uneven,
        # In few units some skewness is always seen, and what is seen counts.
        cost=np.where(lone, 0.5, 0.25) / least,
        fold=one_sided_fold(least, skewed),
        unknown=np.where(unknown, 1.0, looks_skewed),
        tested=least >= MIN_UNITS,
    )
