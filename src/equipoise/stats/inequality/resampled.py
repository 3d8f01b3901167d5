r"""Intervals of an index from its rows, for benefits whose large values decide it.

The error of an index is skewed, and its standard error is small exactly when the sample lacks the
large benefits that a further one would have: a normal law covers 70 to 85% of the time where it
claims 95%. Two remedies are taken together, both on the logarithm of the index and studentised in
every resample: rows (or clusters) drawn with replacement, and the same with the largest values
redrawn from a Pareto law fitted to them, which can produce values beyond the largest seen ([1]_,
[2]_). Each end of the interval is the wider of the two.

References
----------
.. [1] R. Davidson and E. Flachaire (2007), Asymptotic and bootstrap inference for inequality and
   poverty measures, Journal of Econometrics 141, 141-166. doi:10.1016/j.jeconom.2007.01.009
.. [2] F. A. Cowell and E. Flachaire (2007), Income distribution and inequality measurement: the
   problem of extreme values, Journal of Econometrics 141, 1044-1072.
   doi:10.1016/j.jeconom.2007.01.001
.. [3] B. M. Hill (1975), A simple general approach to inference about the tail of a distribution,
   Annals of Statistics 3, 1163-1174. doi:10.1214/aos/1176343247
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from equipoise._checks import check_fraction, check_rng
from equipoise._typing import AnyArray, FloatArray, IntArray, Rng
from equipoise.moments import sum_by
from equipoise.stats.inequality.index import (
    check_benefits,
    check_order,
    kernel,
    kernel_slope,
    mean_benefit,
)

__all__ = [
    "MOST_UNITS",
    "ResampledIntervals",
    "kernel_coefficients",
    "power",
    "resampled_intervals",
    "resampled_unit_intervals",
]

TAIL = 0.6
"""Values redrawn from the Pareto law, in multiples of the root of the number of rows; [2]_."""
FEWEST = 10
"""Rows below which no tail is fitted."""
MOST_UNITS = 20_000
"""Rows or clusters beyond which the normal law takes the place of resamples."""
FEW_UNITS = 500
"""Clusters up to which the jackknife is asked too."""
RESAMPLES, FEWEST_RESAMPLES, DRAWN = 999, 299, 4_000_000
"""Resamples of small and of large tables, and units drawn in all in between."""
BLOCK = 2_000_000
"""Values held at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResampledIntervals:
    """Intervals of the index, its within-group part, and what each group adds to the latter.

    Parameters
    ----------
    total, within : (float, float or None)
        Ends; None where the data give no bound.
    within_group : tuple of (float, float or None)
        Of each group.
    tail_index : float, optional
        Exponent of the Pareto law of the largest values; None where there is no such tail (equal
        largest values, clusters).
    """

    total: tuple[float, float | None]
    within: tuple[float, float | None]
    within_group: tuple[tuple[float, float | None], ...]
    tail_index: float | None


def resampled_intervals(
    benefits: AnyArray,
    group: AnyArray | None = None,
    *,
    order: float = 1.0,
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
    confidence_level: float = 0.95,
    n_resamples: int | None = None,
    rng: Rng = None,
) -> ResampledIntervals:
    r"""Return intervals of an index and of its within-group part by the studentised bootstrap.

    Parameters
    ----------
    benefits : array of shape (n,)
        At least zero.
    group : array of shape (n,), optional
        Group of each row, 0 to G - 1.
    order : float, default 1
        Order of the index.
    cluster : array of shape (n,), optional
        Unit of each row; units are drawn whole.
    weight : array of shape (n,), optional
        Of each row.
    confidence_level : float, default 0.95
        Of each interval.
    n_resamples : int, optional
        Of either kind; by default 999, fewer for more than 4,000 units, but at least 299.
    rng : int or Generator, optional
        Source of the draws; None means seed 0. Neither the order of rows nor the names of groups
        and clusters matter.

    Returns
    -------
    ResampledIntervals

    Notes
    -----
    With :math:`T^* = (\ln I^* - \ln I)/\mathrm{se}^*` and its quantiles q the interval is
    :math:`I \exp(-q_{1-\alpha/2}\mathrm{se})` to :math:`I \exp(-q_{\alpha/2}\mathrm{se})`. The
    Pareto law has the exponent of [3]_ from the largest :math:`\sqrt n` values, at least 1/2 above
    what the index needs to be finite, and replaces the largest :math:`0.6\sqrt n`; the index of
    that law takes the place of I in its :math:`T^*`. Simulated coverage is on the calibration page.

    Examples
    --------
    The benefits of 60 people, most small and a few large: how unequal may they be?

    >>> import numpy as np
    >>> benefits = np.exp(special.ndtri((np.arange(60) + 0.5) / 60) * 0.8)
    >>> low, high = resampled_intervals(benefits).total
    >>> print(f"{low:.2f} to {high:.2f}")
    0.20 to 0.70
    """
    a = check_order(order)
    b = check_benefits(benefits, a)
    w = np.ones(len(b)) if weight is None else np.asarray(weight, dtype=np.float64)
    g = np.zeros(len(b), dtype=np.int64) if group is None else np.asarray(group)
    b = b / mean_benefit(b, w)
    sums = np.stack([w, w * b, w * power(b, a)], axis=1)
    if cluster is not None:
        return resampled_unit_intervals(
            sums,
            g,
            cluster,
            order=a,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            rng=rng,
        )
    place = _places(sums, g)
    rows = np.lexsort((w, b, place[g]))
    return _intervals(
        _Sample.of(sums[rows], place[g][rows]), place, a, confidence_level, n_resamples, rng
    )


def resampled_unit_intervals(
    sums: FloatArray,
    group: IntArray,
    unit: AnyArray,
    *,
    order: float = 1.0,
    confidence_level: float = 0.95,
    n_resamples: int | None = None,
    rng: Rng = None,
) -> ResampledIntervals:
    """Return the same intervals from sums over the rows of each unit in each group.

    Parameters
    ----------
    sums : array of shape (m, 3)
        Sums of weight, weight times benefit, and weight times `power` of the benefit.
    group : array of shape (m,)
        0 to G - 1.
    unit : array of shape (m,)
        Any labels; sums of one unit and group are added.
    order, confidence_level, n_resamples, rng
        As in `resampled_intervals`.

    Returns
    -------
    ResampledIntervals

    Examples
    --------
    >>> import numpy as np
    >>> benefit = np.arange(1.0, 31.0)
    >>> sums = np.stack([np.ones(30), benefit, power(benefit, 2.0)], axis=1)
    >>> clusters = np.arange(30) // 2
    >>> by_unit = resampled_unit_intervals(sums, np.zeros(30, dtype=int), clusters, order=2.0)
    >>> by_row = resampled_intervals(benefit, order=2.0, cluster=clusters)
    >>> np.allclose(by_unit.total, by_row.total)
    True
    """
    a = check_order(order)
    place = _places(sums, group)
    size = len(place)
    _, code = np.unique(np.asarray(unit), return_inverse=True)
    pairs, where = np.unique(code * size + place[group], return_inverse=True)
    part = sum_by(where, sums, len(pairs))
    code, g = pairs // size, pairs % size
    # The second half tells apart in which groups units are.
    rank = _ranks(sum_by(code, np.hstack([part, part * (g[:, None] + 1.0)]), int(code[-1]) + 1))
    rows = np.lexsort((g, rank[code]))
    sample = _Sample.of(part[rows], g[rows], unit=rank[code][rows])
    return _intervals(sample, place, a, confidence_level, n_resamples, rng)


def _places(sums: FloatArray, group: IntArray) -> IntArray:
    """Number the groups by their sums, so that names do not matter to the draws."""
    return _ranks(sum_by(group, sums, int(group.max(initial=0)) + 1))


def _ranks(sums: FloatArray) -> IntArray:
    """Order by weights and benefits, whatever their unit and the last digits of sums."""
    keys = np.delete(sums, np.arange(2, sums.shape[1], 3), axis=1)
    keys = np.round(keys / keys.sum(axis=0), 12)
    rank = np.empty(len(sums), dtype=np.int64)
    rank[np.lexsort(keys.T)] = np.arange(len(sums))
    return rank


def _intervals(
    sample: "_Sample", place: IntArray, a: float, level: float, asked: int | None, rng: Rng
) -> ResampledIntervals:
    check_fraction("confidence_level", level)
    n_resamples = max(FEWEST_RESAMPLES, min(RESAMPLES, DRAWN // sample.n_units))
    n_resamples = n_resamples if asked is None else asked
    observed = _parts(sample, a)
    generator = check_rng(rng)
    sources = [_Source(sample=sample, log=observed.log)]
    tail = _Tail.of(sample, a)
    if tail is not None:
        law = _parts(tail.expected(sample, a), a)
        sources.append(_Source(sample=sample, log=law.log, tail=tail))
    ends = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])
    quantiles = np.array(
        [
            np.quantile(
                source.studentised(a, n_resamples, generator), ends, axis=0, method="inverted_cdf"
            )
            for source in sources
        ]
    )
    low, high = quantiles[:, 0].min(axis=0), quantiles[:, 1].max(axis=0)
    found = [*map(_interval, observed.log[0], _error(sample, observed, a), low, high)]
    return ResampledIntervals(
        total=found[0],
        within=found[1],
        within_group=tuple(found[2 + k] for k in place),
        tail_index=None if tail is None else tail.exponent,
    )


def _error(sample: "_Sample", observed: "_Parts", a: float) -> FloatArray:
    """Return standard errors; of few clusters the larger of these and the jackknife's.

    An index is curved in the totals of a cluster that is a tenth of the table; leaving clusters out
    one by one sees that, the influence function does not.
    """
    error: FloatArray = observed.error[0]
    n = sample.n_units
    if sample.unit is None or not 2 < n <= FEW_UNITS:
        return error
    log = _parts(replace(sample, times=1.0 - np.eye(n)), a).log
    with np.errstate(invalid="ignore"):
        spread = np.sqrt((n - 1.0) / n * ((log - log.mean(axis=0)) ** 2).sum(axis=0))
    return np.asarray(np.fmax(error, spread))


def _interval(log: float, error: float, low: float, high: float) -> tuple[float, float | None]:
    if not (np.isfinite(log) and np.isfinite(error)):
        return 0.0, None
    with np.errstate(over="ignore", invalid="ignore"):
        first, last = np.exp(log - error * np.array([high, low]))
    return float(first) if first < np.inf else 0.0, float(last) if last < np.inf else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """Resamples of rows, or of the parts of units in groups, in an order made of numbers.

    `w`, `b`, `p` are weight, benefit and its power, times the weight, of shape (B, m); `times` of
    shape (B, U) says how often each unit was drawn (then their first axis has length 1).
    """

    w: FloatArray
    b: FloatArray
    p: FloatArray
    group: IntArray
    n_groups: int
    unit: IntArray | None = None
    times: FloatArray | None = None

    @classmethod
    def of(cls, sums: FloatArray, group: IntArray, *, unit: IntArray | None = None) -> "_Sample":
        """Return the rows themselves, once."""
        w, b, p = sums.T[:, None]
        return cls(w=w, b=b, p=p, group=group[None], n_groups=int(group.max()) + 1, unit=unit)

    @property
    def size(self) -> int:
        """B."""
        return len(self.w if self.times is None else self.times)

    @property
    def n_units(self) -> int:
        """U."""
        return self.w.shape[1] if self.unit is None else int(self.unit[-1]) + 1

    def by_group(self, values: FloatArray) -> FloatArray:
        """Sum over groups: (B, G)."""
        if self.times is not None:
            values = values * self.times[:, self.unit]
        key = self.group + self.n_groups * np.arange(self.size)[:, None]
        return self._summed(key, values, self.n_groups)

    def by_unit(self, values: FloatArray) -> FloatArray:
        """Sum over the rows of each unit: (B, U)."""
        if self.unit is None:
            return values
        key = self.unit + self.n_units * np.arange(len(values))[:, None]
        return self._summed(key, values, self.n_units)

    def squares(self, values: FloatArray) -> FloatArray:
        """Sum the squared totals of the units that were drawn: (B,)."""
        square = self.by_unit(values) ** 2
        drawn = square if self.times is None else square * self.times
        return np.asarray(drawn.sum(axis=1))

    def of_groups(self, values: FloatArray) -> FloatArray:
        """Return the value of each row's group: (B, m)."""
        rows = np.broadcast_to(self.group, (self.size, self.group.shape[1]))
        return np.asarray(np.take_along_axis(values, rows, axis=1))

    @staticmethod
    def _summed(key: IntArray, values: FloatArray, size: int) -> FloatArray:
        sums = np.bincount(key.ravel(), values.ravel(), size * len(values))
        return np.asarray(sums, dtype=np.float64).reshape(len(values), size)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Logarithms of total, within and within-group parts, with standard errors: (B, 2 + G)."""

    log: FloatArray
    error: FloatArray


def power(benefit: FloatArray, order: float) -> FloatArray:
    r"""Return :math:`b^a`, ln b at order 0 and b ln b at order 1.

    Examples
    --------
    >>> power(np.array([0.0, 2.0]), 2.0).tolist()
    [0.0, 4.0]
    """
    if order == 1.0:
        return np.asarray(special.xlogy(benefit, benefit))
    # Infinite at zero for orders up to 0; indices refuse such benefits in a sentence.
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(benefit) if order == 0.0 else benefit**order)


def kernel_coefficients(
    mean: FloatArray | float, order: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Write the kernel of a relative benefit x as c0 + c1 x + c2 p, p the `power` of the benefit.

    Parameters
    ----------
    mean : float or array
        Mean benefit.
    order : float
        Order of the index.

    Returns
    -------
    c0, c1, c2 : arrays of the shape of `mean`

    Examples
    --------
    At order 2 the kernel is half the square of x - 1.

    >>> [float(c) for c in kernel_coefficients(2.0, 2.0)]
    [0.5, -1.0, 0.125]
    """
    mu = np.asarray(mean, dtype=np.float64)
    one = np.ones_like(mu)
    if order == 1.0:
        return one, -1.0 - np.log(mu), 1.0 / mu
    if order == 0.0:
        return np.log(mu) - 1.0, one, -one
    return one / order, one / (1.0 - order), mu**-order / (order * (order - 1.0))


def _parts(sample: _Sample, a: float) -> _Parts:
    """Compute the index and its parts in every resample; formulas as in `decompose`."""
    w, b, by_group, of = sample.w, sample.b, sample.by_group, sample.of_groups
    weight = by_group(w)
    whole = weight.sum(axis=1)
    mean = by_group(b).sum(axis=1) / whole
    # A resample in which nobody benefits has no index.
    mean = np.where(mean > 0.0, mean, np.nan)
    safe = np.where(weight > 0.0, weight, 1.0)
    share = weight / whole[:, None]
    r = np.where(weight > 0.0, by_group(b) / safe / mean[:, None], 1.0)
    constant, slope, curve = (x[:, None] for x in kernel_coefficients(mean, a))
    x = b / mean[:, None]
    k = constant * w + slope * x + curve * sample.p
    f_r, slope_r = kernel(r, a), kernel_slope(r, a)
    f_mean = np.where(weight > 0.0, by_group(k) / safe, 0.0)
    within_group = share * np.maximum(f_mean - f_r, 0.0)
    within, between = within_group.sum(axis=1), (share * f_r).sum(axis=1)
    total = within + between
    apart = x - of(r) * w
    inner = k - of(f_r) * w - of(slope_r) * apart
    outer = w + a * (x - w)
    # n / (n - 1) for units of equal size; one unit says nothing of its variance.
    alone = by_group(w**2) / safe**2
    larger = np.where(alone < 1.0 - 1e-9, 1.0 / np.maximum(1.0 - alone, 1e-9), 0.0)
    noise = np.sqrt(of(larger)) * apart
    variance = by_group(noise**2) / np.where(share > 0.0, share, 1.0)
    bias = 0.5 * (variance.sum(axis=1) - sample.squares(noise)) / whole**2
    everyone = sample.by_unit(outer)
    their = everyone if sample.unit is None else everyone[:, sample.unit]
    group_variance = (
        by_group(inner**2)
        - 2.0 * within_group * by_group(inner * their)
        + within_group**2 * sample.squares(outer)[:, None]
    )
    spread = np.column_stack(
        [
            sample.squares(k - total[:, None] * outer),
            sample.squares(inner - within[:, None] * outer),
            np.maximum(group_variance, 0.0),
        ]
    )
    units = sample.n_units
    corrected = total - np.maximum(between - bias, 0.0)
    value = np.column_stack([total, corrected, within_group])
    # Equal benefits leave rounding errors of both signs.
    value = np.where(value > 1e-14, value, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(spread * units / max(units - 1, 1)) / whole[:, None] / value
        return _Parts(log=np.log(value), error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tail:
    """A Pareto law of the largest values: `start` times a uniform to the power -1/`exponent`."""

    start: float
    exponent: float

    @classmethod
    def of(cls, sample: _Sample, a: float) -> "_Tail | None":
        """Fit it; None for clusters, for few rows and where the largest values are alike."""
        n = sample.n_units
        if sample.unit is not None or n < FEWEST:
            return None
        with np.errstate(invalid="ignore"):
            largest = np.sort(np.where(sample.w > 0.0, sample.b / sample.w, 0.0)[0])
        fitted = max(round(np.sqrt(n)), 5)
        redrawn = max(int(np.ceil(TAIL * np.sqrt(n))), 2)
        threshold, start = largest[-fitted - 1], largest[-redrawn - 1]
        if not (threshold > 0.0 and largest[-1] > start):
            return None
        exponent = 1.0 / float(np.mean(np.log(largest[-fitted:] / threshold)))
        return cls(start=float(start), exponent=max(exponent, max(a, 1.0) + 0.5))

    def draw(self, sample: _Sample, a: float, rng: np.random.Generator) -> _Sample:
        """Replace the values of a resample that lie in the tail."""
        value = self.start * rng.random(sample.b.shape) ** (-1.0 / self.exponent)
        return self._with(sample, value, power(value, a))

    def expected(self, sample: _Sample, a: float) -> _Sample:
        """Replace them by their means, for the index of the law that resamples are drawn from."""
        e, x = self.exponent, self.start
        if a == 0.0:
            p = np.log(x) + 1.0 / e
        elif a == 1.0:
            p = x * e / (e - 1.0) * (np.log(x) + 1.0 / (e - 1.0))
        else:
            p = x**a * e / (e - a)
        return self._with(sample, np.array(x * e / (e - 1.0)), np.array(p))

    def _with(self, sample: _Sample, value: FloatArray, p: FloatArray) -> _Sample:
        with np.errstate(invalid="ignore"):
            above = sample.b > self.start * sample.w
        return replace(
            sample,
            b=np.where(above, sample.w * value, sample.b),
            p=np.where(above, sample.w * p, sample.p),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A law that resamples are drawn from, with the logarithms of its own index and parts."""

    sample: _Sample
    log: FloatArray
    tail: _Tail | None = None

    def studentised(self, a: float, n_resamples: int, rng: np.random.Generator) -> FloatArray:
        """Return (log of a resample - log of the law) / error of the resample."""
        block = max(BLOCK // self.sample.w.size, 1)
        parts = [
            _parts(self._draw(min(block, n_resamples - start), a, rng), a)
            for start in range(0, n_resamples, block)
        ]
        log, error = (np.concatenate([getattr(p, x) for p in parts]) for x in ("log", "error"))
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (log - self.log) / error
        # Without any spread a resample has the lowest index there is.
        return np.where(np.isnan(t), -np.inf, t)

    def _draw(self, size: int, a: float, rng: np.random.Generator) -> _Sample:
        sample, n = self.sample, self.sample.n_units
        if sample.unit is not None:
            times = rng.multinomial(n, np.full(n, 1.0 / n), size=size).astype(np.float64)
            return replace(sample, times=times)
        rows = rng.integers(n, size=(size, n))
        w, b, p, group = (x[0][rows] for x in (sample.w, sample.b, sample.p, sample.group))
        drawn = replace(sample, w=w, b=b, p=p, group=group)
        return drawn if self.tail is None else self.tail.draw(drawn, a, rng)
