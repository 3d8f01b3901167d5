r"""Empirical likelihood of means from power sums: many rows are read once.

A row of cell c has the estimating function :math:`z_i = b + d y_i`, where :math:`y_i \in [-1, 1]`
is its value, centred and scaled in its cell, and b and d depend on the hypothesis alone. With
:math:`\kappa = \lambda d / (1 + \lambda b)`,

.. math:: \sum_{i \in c} \log(1 + \lambda z_i) = n_c \log(1 + \lambda b)
          + \sum_k (-1)^{k+1} \frac{\kappa^k}{k} \sum_{i \in c} y_i^k

so that the power sums of the cells answer every hypothesis. What the series leaves out after an
even power K is at most :math:`|\kappa|^{K+1} \sum y^K / ((K + 1)(1 - |\kappa|))`. The dual is
self-concordant: with Newton decrement :math:`\delta < 1/2` at the multiplier found, its maximum is
at most :math:`\delta^2` higher [1]_. Both together bound the error of the statistic; a hypothesis
far from the data, or one value that is far from all others, makes the bound large, and the rows are
read instead.

References
----------
.. [1] S. Boyd and L. Vandenberghe (2004), Convex Optimization, Cambridge University Press,
   Eq. (9.50). doi:10.1017/CBO9780511804441
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from equipoise._typing import FloatArray, IntArray

__all__ = ["CellSeries", "SeriesSamples"]

POWERS = 24
_TOLERANCE = 1e-12
_ITERATIONS = 60
_LARGEST = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSeries:
    """Power sums of the values of K cells, each cell centred at its mean and scaled to [-1, 1].

    Parameters
    ----------
    n : array of shape (K,)
        Rows.
    centre, scale : array of shape (K,)
        Mean, and largest distance from it.
    low, high : array of shape (K,)
        Smallest and largest scaled value.
    power : array of shape (POWERS + 1, K)
        Sums of the powers of the scaled values.
    """

    n: FloatArray
    centre: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray
    power: FloatArray

    @classmethod
    def of(
        cls, values: FloatArray, start: IntArray, *, count: FloatArray | None = None
    ) -> "CellSeries":
        """Sum the powers of rows that are sorted by cell.

        Parameters
        ----------
        values : array of shape (N,)
            Cell after cell.
        start : array of shape (K + 1,)
            Where each cell begins, and where the last one ends.
        count : array of shape (N,), optional
            How many times a row occurs.

        Returns
        -------
        CellSeries

        Examples
        --------
        >>> series = CellSeries.of(np.array([1.0, 3.0, 5.0]), np.array([0, 2, 3]))
        >>> series.centre.tolist(), series.power[2].tolist()
        ([2.0, 5.0], [2.0, 0.0])
        """
        k = len(start) - 1
        n, centre, scale, low, high = (np.zeros(k) for _ in range(5))
        power = np.zeros((POWERS + 1, k))
        # A cell at a time: its rows stay in the cache while their powers are summed.
        for c, (first, last) in enumerate(pairwise(start)):
            if first == last:
                continue
            x = values[first:last]
            times = None if count is None else count[first:last]
            n[c] = last - first if times is None else times.sum()
            if n[c] == 0.0:
                continue
            if times is not None:
                # A row that occurs no times has no value.
                x, times = x[times > 0.0], times[times > 0.0]
            centre[c] = np.average(x, weights=times)
            y = x - centre[c]
            scale[c] = np.abs(y).max()
            if scale[c] > 0.0:
                y /= scale[c]
            low[c], high[c] = y.min(), y.max()
            term = np.ones(len(y)) if times is None else times.astype(np.float64)
            power[0, c] = n[c]
            for p in range(1, POWERS + 1):
                term = term * y
                power[p, c] = term.sum()
        return cls(n=n, centre=centre, scale=scale, low=low, high=high, power=power)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSamples:
    r"""Samples made of whole cells; rows of an entry are :math:`f (x_i - \theta) + c s`.

    Parameters
    ----------
    cells : CellSeries
        Power sums.
    sample, cell : array of shape (E,)
        The cells of each sample, one entry each, sorted by sample; no sample is empty.
    base, factor, slope : array of shape (E,)
        Value at the centre of the cell, :math:`f (\bar x - \theta)`; f; and s.
    """

    cells: CellSeries
    sample: IntArray
    cell: IntArray
    base: FloatArray
    factor: FloatArray
    slope: FloatArray

    def statistic(self, parameter: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Empirical likelihood statistic of each sample at a value of its parameter.

        Parameters
        ----------
        parameter : array of shape (S,)
            Hypothesised values c.

        Returns
        -------
        statistic : array of shape (S,)
            Infinite where zero is outside the convex hull of the sample.
        error : array of shape (S,)
            Bound of what the series leaves out; infinite where it does not converge.

        Examples
        --------
        Is a mean of 2.2 compatible with the values 1, 2, 2.5, 3?

        >>> values = np.array([1.0, 2.0, 2.5, 3.0])
        >>> cells = CellSeries.of(values, np.array([0, 4]))
        >>> one = {"sample": np.zeros(1, int), "cell": np.zeros(1, int)}
        >>> sample = SeriesSamples(
        ...     cells=cells, **one, base=cells.centre, factor=np.ones(1), slope=-np.ones(1))
        >>> statistic, error = sample.statistic(np.array([2.2]))
        >>> print(f"{statistic[0]:.4f} {error[0] < 1e-6}")
        0.0425 True

        It is: the statistic is below 3.84.
        """
        c, of = self.cells, self.cell
        first = np.flatnonzero(np.diff(self.sample, prepend=-1))
        number = np.arange(len(first)).repeat(np.diff(first, append=len(self.sample)))
        b = self.base + self.slope * parameter[number]
        d = self.factor * c.scale[of]
        ends = np.stack([b + d * c.low[of], b + d * c.high[of]])
        largest = np.maximum.reduceat(ends.max(axis=0), first)
        smallest = np.minimum.reduceat(ends.min(axis=0), first)
        flat = (largest == 0.0) & (smallest == 0.0)
        inside = (smallest < 0.0) & (largest > 0.0)
        n = np.add.reduceat(c.n[of], first)
        power = c.power[:, of]

        def total(values: FloatArray) -> FloatArray:
            return np.asarray(np.add.reduceat(values, first))

        with np.errstate(divide="ignore", invalid="ignore"):
            # At the root every weight 1 / (n (1 + lambda z)) is at most one.
            low = np.where(inside, (1.0 / n - 1.0) / largest, 0.0)
            high = np.where(inside, (1.0 / n - 1.0) / smallest, 0.0)
            square = total(b**2 * power[0] + d**2 * power[2])
            lam = np.where(inside, np.clip(total(b * power[0]) / square, low, high), 0.0)
        for _ in range(_ITERATIONS):
            slope, bend, kappa, one = _derivatives(lam[number], b, d, power)
            gradient, curvature = total(slope), np.where(inside, total(bend), 1.0)
            step = gradient / curvature
            if np.all(np.abs(gradient * step)[inside] < _TOLERANCE):
                break
            low, high = np.where(gradient > 0, lam, low), np.where(gradient < 0, lam, high)
            moved = lam + step
            outside = (moved <= low) | (moved >= high)
            lam = np.where(inside, np.where(outside, 0.5 * (low + high), moved), 0.0)
        logs = power[0] * np.log1p(lam[number] * b) + _log_series(kappa, power)
        error = self._error(kappa, one, b, d, power)
        left, pull, weaker = (total(part) for part in error)
        with np.errstate(divide="ignore", invalid="ignore"):
            decrement = (np.abs(gradient) + pull) ** 2 / (curvature - weaker)
        converges = (weaker < curvature) & (decrement < 0.25)
        bound = np.where(converges, 2.0 * (left + decrement), np.inf)
        statistic = np.where(inside, np.maximum(2.0 * total(logs), 0.0), np.inf)
        return np.where(flat, 0.0, statistic), np.where(inside, bound, 0.0)

    @staticmethod
    def _error(
        kappa: FloatArray, one: FloatArray, b: FloatArray, d: FloatArray, power: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What the sums of logarithms, and their two derivatives, leave out at most."""
        size, last = np.abs(kappa), power[POWERS]
        room = np.where(size < _LARGEST, 1.0 - size, np.nan)
        left = size ** (POWERS + 1) * last / ((POWERS + 1) * room)
        reach = (np.abs(b) + np.abs(d)) / one
        pull = reach * size**POWERS * last / room
        weaker = reach**2 * POWERS * size ** (POWERS - 1) * last / room**2
        # Beyond the radius nothing is known.
        left, pull, weaker = (np.nan_to_num(part, nan=np.inf) for part in (left, pull, weaker))
        return left, pull, weaker


def _derivatives(
    lam: FloatArray, b: FloatArray, d: FloatArray, power: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sums of z / (1 + lambda z) and of its square, by entry; kappa and 1 + lambda b."""
    one = 1.0 + lam * b
    kappa = lam * d / one
    # Outside the radius of convergence only the direction matters: the rows decide.
    x = -np.clip(kappa, -_LARGEST, _LARGEST)
    plain, first, h0, h1, h2 = (np.zeros_like(x) for _ in range(5))
    for k in range(POWERS, -1, -1):
        plain = plain * x + power[k]
        if k < POWERS:
            first = first * x + power[k + 1]
            h1 = h1 * x + (k + 1.0) * power[k + 1]
        if k < POWERS - 1:
            h2 = h2 * x + (k + 1.0) * power[k + 2]
        h0 = h0 * x + (k + 1.0) * power[k]
    slope = (b * plain + d * first) / one
    bend = (b**2 * h0 + 2.0 * b * d * h1 + d**2 * h2) / one**2
    return slope, bend, kappa, one


def _log_series(kappa: FloatArray, power: FloatArray) -> FloatArray:
    """Sums of log(1 + kappa y), by entry."""
    x = -np.clip(kappa, -_LARGEST, _LARGEST)
    value = np.zeros_like(x)
    for k in range(POWERS, 0, -1):
        value = (value - power[k] / k) * x
    return value
