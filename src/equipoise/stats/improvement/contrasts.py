"""One-sided tests of linear contrasts of utilities, at many margins from one set of draws."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import special

from equipoise._typing import FloatArray, IntArray
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.utilities import BootstrapDraws, UtilityEstimates

__all__ = ["ContrastLaw", "ContrastLine", "drawn", "standard_error"]

ContrastLaw: TypeAlias = Literal["studentised", "basic", "normal"]

# Rounding leaves a relative variance of this size where the truth is zero.
NO_VARIANCE = 1e-14


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastLine:
    """A contrast that moves linearly with delta: (base + delta slope)' U - delta margin.

    The null hypothesis is that it is at most zero.

    Parameters
    ----------
    base, slope : array of shape (R,)
        Coefficients of the ratios of a `UtilityEstimates`.
    margin : float
        Subtracted once for each unit of delta.
    """

    base: FloatArray
    slope: FloatArray
    margin: float = 0.0

    def at(self, estimates: UtilityEstimates, delta: float) -> tuple[float, float]:
        """Return estimate and standard error at one delta."""
        contrast = self.base + delta * self.slope
        estimate = contrast @ estimates.value.ravel() - delta * self.margin
        return float(estimate), standard_error(contrast, estimates.covariance)

    def p_values(
        self, estimates: UtilityEstimates, deltas: FloatArray, law: ContrastLaw
    ) -> FloatArray:
        """Return one-sided p-values at every delta, from the same draws.

        Parameters
        ----------
        estimates : UtilityEstimates
            With draws unless the law is "normal".
        deltas : array of shape (D,)
            Where to test.
        law : {"studentised", "basic", "normal"}
            Bootstrap of the studentised contrast, bootstrap of the contrast, or the normal law.

        Returns
        -------
        array of shape (D,)
        """
        pairs = [self.at(estimates, float(delta)) for delta in deltas]
        estimate, se = np.array([e for e, _ in pairs]), np.array([s for _, s in pairs])
        varies = se > 0
        t = estimate / np.where(varies, se, 1.0)
        if law == "normal":
            p = special.ndtr(-t)
        elif law == "basic":
            shift = self._deviation(estimates, drawn(estimates), deltas)
            p = (shift >= estimate).mean(axis=0)
        else:
            p = self._studentised(estimates, drawn(estimates), deltas, t)
        # Without variation there is nothing to compare the estimate with: not shown.
        return np.where(varies, p, 1.0)

    def _deviation(
        self, estimates: UtilityEstimates, draws: BootstrapDraws, deltas: FloatArray
    ) -> FloatArray:
        """Bootstrap minus sample contrast, (J, D); infinite where undefined."""
        used = self._used()
        shift = draws.value[:, used] - estimates.value.ravel()[used]
        deviation = (shift @ self.base[used])[:, None] + np.outer(shift @ self.slope[used], deltas)
        deviation[~draws.defined[:, used].all(axis=1)] = np.inf
        return deviation

    def _studentised(
        self,
        estimates: UtilityEstimates,
        draws: BootstrapDraws,
        deltas: FloatArray,
        t: FloatArray,
    ) -> FloatArray:
        used = self._used()
        covariance = draws.covariance[:, used[:, None], used]
        from_base = covariance @ self.base[used]
        from_slope = covariance @ self.slope[used]
        level = from_base @ self.base[used]
        mixed = from_base @ self.slope[used]
        square = from_slope @ self.slope[used]
        deviation = self._deviation(estimates, draws, deltas)
        variance = level[:, None] + 2.0 * np.outer(mixed, deltas) + np.outer(square, deltas**2)
        spread = np.sqrt(np.maximum(variance, 0.0))
        # A resample without spread cannot be studentised; it counts as extreme.
        extreme = (deviation >= t * spread) | (variance <= 0.0)
        p: FloatArray = (1.0 + extreme.sum(axis=0)) / (len(deviation) + 1.0)
        return p

    def _used(self) -> IntArray:
        return np.flatnonzero((self.base != 0) | (self.slope != 0))


def standard_error(contrast: FloatArray, covariance: FloatArray) -> float:
    """Return the standard error of a contrast; exactly zero when only rounding is left."""
    variance = float(contrast @ covariance @ contrast)
    scale = float(contrast**2 @ np.diag(covariance))
    return float(np.sqrt(variance)) if variance > NO_VARIANCE * scale else 0.0


def drawn(estimates: UtilityEstimates) -> BootstrapDraws:
    """Return the bootstrap draws; raise if there are none."""
    if estimates.draws is None:
        raise InvalidParameterError(
            "the bootstrap needs draws; pass `n_resamples` to `estimate_utilities`, or ask for"
            ' inference="analytic".'
        )
    return estimates.draws
