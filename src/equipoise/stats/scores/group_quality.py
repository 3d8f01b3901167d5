r"""How good a score is in each group: calibration error, AUC and Brier score, with intervals.

Every metric is a mean over independent units to first order, so that differences between groups,
and between two scores of the same rows, have variances that allow for shared clusters and for the
pairing of the scores.
"""

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import optimize, sparse, special

from equipoise._checks import check_finite, check_fraction, check_integer, check_option
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, QualityMetric, Rng
from equipoise.exceptions import DataError
from equipoise.stats.influence import InfluenceSums, auc_influence, without_noise
from equipoise.stats.rows import check_lengths
from equipoise.stats.scores.cells import weighted_quantile
from equipoise.stats.summary import Interval

__all__ = [
    "CalibrationError",
    "GroupQuality",
    "QualityDifference",
    "QualityValue",
    "calibration_error",
    "group_quality",
    "parity_error",
]

MIN_CLASS = 10
"""Rows of each outcome that a group must have."""
MIN_ROWS = 10
"""Rows that a group and the rest must have in a bin in which they are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationError:
    r"""Root mean squared calibration error, without the part that is chance.

    Parameters
    ----------
    estimate : float
        :math:`\sqrt{\max(0, \sum_b q_b (d_b^2 - v_b))}` over bins with equal counts, d the mean of
        outcome minus score, v its variance and q the share of a bin.
    total, eigenvalues : float, array
        :math:`\sum_b q_b d_b^2`; variances of its parts.
    """

    estimate: float
    total: float
    eigenvalues: FloatArray

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        r"""Return an interval of the error.

        The sum of squares has about a gamma law with mean :math:`\theta^2 + \sum \lambda` and
        variance :math:`2 \sum \lambda^2 + 4 \max(\lambda) \theta^2`; the interval holds every
        :math:`\theta` that it does not reject.

        Parameters
        ----------
        confidence_level : float, default 0.95
            Of the interval.

        Returns
        -------
        Interval
        """
        tail = 0.5 * (1.0 - check_fraction("confidence_level", confidence_level))
        if self.eigenvalues.sum() <= 0.0:
            return Interval(self.estimate, self.estimate)
        top = np.sqrt(self.total) + 20.0 * np.sqrt(self.eigenvalues.sum()) + 1e-6
        return Interval(self._inverse(1.0 - tail, float(top)), self._inverse(tail, float(top)))

    def _below(self, theta: float) -> float:
        """Return the chance of a sum of squares up to the one observed, at an error of theta."""
        mean = theta**2 + self.eigenvalues.sum()
        spread = 2.0 * np.sum(self.eigenvalues**2) + 4.0 * self.eigenvalues.max() * theta**2
        return float(special.gammainc(mean**2 / spread, self.total * mean / spread))

    def _inverse(self, level: float, top: float) -> float:
        """Return the error at which that chance is `level`; it falls in the error."""
        if self._below(0.0) <= level:
            return 0.0
        return float(optimize.brentq(lambda theta: self._below(theta) - level, 0.0, top))


def calibration_error(
    y_true: AnyArray,
    y_score: AnyArray,
    *,
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
    count: AnyArray | None = None,
    n_bins: int = 15,
) -> CalibrationError:
    r"""Estimate how far a score is from the outcomes, freed from chance.

    Parameters
    ----------
    y_true, y_score : array of shape (n,)
        Outcome and score.
    cluster : array of shape (n,), optional
        Who a row belongs to.
    weight, count : array of shape (n,), optional
        Sampling weight, and how many rows a row stands for.
    n_bins : int, default 15
        Bins with equal counts.

    Returns
    -------
    CalibrationError

    Notes
    -----
    The usual expected calibration error of a perfect score is .043 with 1,000 rows and .019 with
    5,000: it measures chance. Here the variance of each bin is taken off [1]_.

    References
    ----------
    .. [1] A. Kumar, P. Liang and T. Ma (2019), Verified uncertainty calibration, NeurIPS.
       doi:10.48550/arXiv.1909.10155

    Examples
    --------
    Outcomes follow the square of the score. How far off is it?

    >>> import numpy as np
    >>> rng = np.random.default_rng(3)
    >>> score = rng.uniform(size=5000)
    >>> error = calibration_error(rng.uniform(size=5000) < score**2, score)
    >>> low, high = error.confidence_interval()
    >>> round(error.estimate, 2), bool(low < np.sqrt(1 / 30) < high)
    (0.18, True)

    By eighteen points.
    """
    check_lengths(y_true=y_true, y_score=y_score, cluster=cluster, weight=weight, count=count)
    check_integer("n_bins", n_bins, low=1)
    return _calibration_error(_checked_rows(y_true, y_score, cluster, weight, count), n_bins)


def _checked_rows(
    y_true: AnyArray,
    y_score: AnyArray,
    cluster: AnyArray | None,
    weight: AnyArray | None,
    count: AnyArray | None,
) -> "_Rows":
    y, s = check_finite("y_true", y_true, ndim=1), check_finite("y_score", y_score, ndim=1)
    ones = np.ones(len(y))
    return _Rows(
        y,
        s,
        ones if weight is None else check_finite("weight", weight, ndim=1),
        ones if count is None else check_finite("count", count, ndim=1),
        None if cluster is None else np.unique(np.asarray(cluster), return_inverse=True)[1],
    )


class _Rows(NamedTuple):
    """Rows of one group: outcome, score, weight, copies and unit."""

    y: FloatArray
    s: FloatArray
    weight: FloatArray
    copies: FloatArray
    unit: IntArray | None

    @property
    def mass(self) -> FloatArray:
        return self.weight * self.copies


def _calibration_error(rows: _Rows, n_bins: int) -> CalibrationError:
    mass = rows.mass
    levels, place = np.unique(rows.s, return_inverse=True)
    by_level = np.asarray(np.bincount(place, mass), dtype=np.float64)
    cuts = np.unique(weighted_quantile(levels, by_level, np.arange(1, n_bins) / n_bins))
    place = np.searchsorted(cuts, rows.s, side="left")
    weight = np.bincount(place, mass, minlength=len(cuts) + 1)
    full = weight > 0.0
    error = rows.y - rows.s
    mean = np.bincount(place, mass * error, minlength=len(weight)) / np.where(full, weight, 1.0)
    share = weight / weight.sum()
    # Influence of a row on the mean of its bin, in units whose squares add up.
    psi = (error - mean[place]) * np.sqrt(share[place]) / np.where(full, weight, 1.0)[place]
    n = np.bincount(place, rows.copies, minlength=len(weight))
    psi *= np.sqrt(n / np.maximum(n - 1.0, 1.0))[place]
    return _mean_square(rows, place, psi, float(share @ mean**2), len(weight))


def _mean_square(
    rows: _Rows, place: IntArray, psi: FloatArray, total: float, n_bins: int
) -> CalibrationError:
    """Free a sum of squares from chance; psi is the influence of a row on the root of its part."""
    if rows.unit is None:
        square = rows.copies * (rows.weight * psi) ** 2
        covariance = np.diag(np.bincount(place, square, minlength=n_bins))
    else:
        units = sparse.coo_array((rows.mass * psi, (rows.unit, place))).tocsr()
        covariance = np.asarray((units.T @ units).todense())
    eigenvalues = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
    estimate = float(np.sqrt(max(0.0, total - eigenvalues.sum())))
    return CalibrationError(estimate=estimate, total=total, eigenvalues=eigenvalues)


def parity_error(
    y_true: AnyArray,
    y_score: AnyArray,
    member: AnyArray,
    *,
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
    count: AnyArray | None = None,
    n_bins: int = 15,
) -> CalibrationError | None:
    r"""Estimate how far a group is from the rest at equal scores, freed from chance.

    Parameters
    ----------
    y_true, y_score : array of shape (n,)
        Outcome and score.
    member : array of bool of shape (n,)
        Whether a row belongs to the group.
    cluster : array of shape (n,), optional
        Who a row belongs to.
    weight, count : array of shape (n,), optional
        Sampling weight, and how many rows a row stands for.
    n_bins : int, default 15
        Bins, of equal share of both in equal parts; fewer where the smaller side would have fewer
        than twenty rows in each.

    Returns
    -------
    CalibrationError or None
        :math:`\sqrt{\sum_b q_b d_b^2}` over the scores of the group, d the difference of the mean
        outcomes after a line in the score that both share, and q the part of the group in a bin;
        `None` without a bin in which both have ten rows.

    Examples
    --------
    The same score means ten points more in one group.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score, member = rng.uniform(0.1, 0.8, size=8000), rng.integers(2, size=8000) == 1
    >>> outcome = rng.uniform(size=8000) < score + 0.1 * member
    >>> round(parity_error(outcome, score, member).estimate, 2)
    0.08
    """
    check_lengths(y_true=y_true, y_score=y_score, member=member, cluster=cluster, weight=weight)
    check_integer("n_bins", n_bins, low=1)
    rows = _checked_rows(y_true, y_score, cluster, weight, count)
    return _parity_error(rows, np.asarray(member, np.bool_), n_bins)


def _parity_error(rows: _Rows, member: BoolArray, n_bins: int) -> CalibrationError | None:
    side = member.astype(np.int64)
    both = np.bincount(side, rows.mass, minlength=2)
    if (both <= 0.0).any():
        return None
    n_side = np.bincount(side, rows.copies * (rows.weight > 0.0), minlength=2)
    n_bins = int(np.clip(n_side.min() // (2 * MIN_ROWS), 1, n_bins))
    levels, level = np.unique(rows.s, return_inverse=True)
    mixed = np.asarray(np.bincount(level, rows.mass / both[side]), dtype=np.float64)
    cuts = np.unique(weighted_quantile(levels, mixed, np.arange(1, n_bins) / n_bins))
    size = len(cuts) + 1
    place = np.searchsorted(cuts, rows.s, side="left")
    cell = 2 * place + side

    def sums(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(cell, values, minlength=2 * size).reshape(size, 2))

    weight, n = sums(rows.mass), sums(rows.copies * (rows.weight > 0.0))
    low, high = np.full((size, 2), np.inf), np.full((size, 2), -np.inf)
    np.minimum.at(low, (place, side), rows.s)
    np.maximum.at(high, (place, side), rows.s)
    # Two sides of a gap between scores are not compared, though a bin may hold both.
    used = (n >= MIN_ROWS).all(axis=1) & (low.max(axis=1) <= high.min(axis=1))
    if not used.any():
        return None
    safe = np.where(weight > 0.0, weight, 1.0)
    s_mean, y_mean = sums(rows.mass * rows.s) / safe, sums(rows.mass * rows.y) / safe
    # Inside a bin outcomes follow a line in the score, with one slope for both sides.
    s, y = rows.s - s_mean[place, side], rows.y - y_mean[place, side]
    spread = np.bincount(place, rows.mass * s * s, minlength=size)
    slope = np.divide(
        np.bincount(place, rows.mass * s * y, minlength=size),
        spread,
        where=spread > 1e-12 * np.maximum(weight.sum(axis=1), 1e-300),
        out=np.zeros(size),
    )
    difference = y_mean[:, 1] - y_mean[:, 0] - slope * (s_mean[:, 1] - s_mean[:, 0])
    share = np.where(used, weight[:, 1], 0.0) / weight[used, 1].sum()
    factor = np.sqrt(n / np.maximum(n - 1.0, 1.0)) / safe * np.array([-1.0, 1.0])
    psi = (y - slope[place] * s) * (np.sqrt(share)[:, None] * factor)[place, side]
    total = float(share @ np.where(used, difference, 0.0) ** 2)
    return _mean_square(rows, place, psi, total, size)


def _brier(rows: _Rows) -> tuple[float, FloatArray]:
    loss = (rows.y - rows.s) ** 2
    mass = rows.mass
    value = float(mass @ loss / mass.sum())
    n = mass.sum() ** 2 / np.sum(rows.copies * rows.weight**2)
    factor = np.sqrt(n / max(n - 1.0, 1.0))
    return value, factor * without_noise(loss - value) / mass.sum()


def _auc(rows: _Rows) -> tuple[float, FloatArray]:
    return auc_influence(rows.y, rows.s, rows.weight, rows.copies)


SQUARES = {"rmsce", "parity_error"}
"""Metrics that are roots of mean squares; near zero they have no symmetric law."""


def _square(
    metric: QualityMetric, rows: _Rows, everyone: _Rows, own: BoolArray, n_bins: int
) -> CalibrationError | None:
    if metric == "rmsce":
        return _calibration_error(rows, n_bins)
    return _parity_error(everyone, own, n_bins)


MEANS = {"auc": _auc, "brier": _brier}
"""Metrics that are means to first order: value, and influence of a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityValue:
    """One metric of one score in one group, with an interval.

    Parameters
    ----------
    metric : str
        Which.
    group, score : int
        Group; 0 for the score, 1 for the one it is compared with.
    estimate, low, high : float
        Value and interval of it alone.
    """

    metric: QualityMetric
    group: int
    score: int
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityDifference:
    """A difference between two groups, or between two scores in one group (`group == other`).

    Parameters
    ----------
    metric : str
        Which.
    group, other : int
        The first less the second; equal for the score less the one it is compared with.
    estimate, low, high : float
        Difference; interval that holds for all differences together.
    statistic, p_value, p_value_adjusted : float
        On the normal scale; alone, and for all differences together.
    """

    metric: QualityMetric
    group: int
    other: int
    estimate: float
    low: float
    high: float
    statistic: float
    p_value: float
    p_value_adjusted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuality:
    """Metrics of each group, and their differences.

    Parameters
    ----------
    values : tuple of QualityValue
        By metric, group and score.
    differences : tuple of QualityDifference
        Between groups, then between scores.
    too_small : dict of int to int
        Groups left out, with how many rows of the rarer outcome they have.
    apart : tuple of int
        Groups without a parity error: too few rows of the rest have their scores.
    """

    values: tuple[QualityValue, ...]
    differences: tuple[QualityDifference, ...]
    too_small: dict[int, int]
    apart: tuple[int, ...] = ()


def group_quality(
    y_true: AnyArray,
    y_score: AnyArray,
    group: AnyArray,
    *,
    baseline: AnyArray | None = None,
    metrics: tuple[QualityMetric, ...] = ("rmsce", "auc", "brier"),
    pairs: tuple[tuple[int, int], ...] = (),
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
    count: AnyArray | None = None,
    n_bins: int = 15,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> GroupQuality:
    """Return metrics of a score by group, and test their differences.

    The null hypotheses are that a metric is the same in two groups, or for two scores of the same
    rows.

    Parameters
    ----------
    y_true, y_score : array of shape (n,)
        Outcome, 0 or 1; score.
    group : array of shape (n,)
        Codes 0 to G - 1.
    baseline : array of shape (n,), optional
        Another score of the same rows.
    metrics : tuple of {"rmsce", "auc", "brier", "parity_error"}
        Root mean squared calibration error, area under the ROC curve, mean squared error, and root
        mean squared difference from the rest at equal scores.
    pairs : tuple of (int, int)
        Groups whose metrics are compared.
    cluster : array of shape (n,), optional
        Who a row belongs to.
    weight, count : array of shape (n,), optional
        Sampling weight, and how many rows a row stands for.
    n_bins : int, default 15
        Of the calibration error.
    confidence_level : float, default 0.95
        Of the intervals; those of differences hold together.
    rng : numpy.random.Generator or int, optional
        Of the law of the largest difference.

    Returns
    -------
    GroupQuality

    Notes
    -----
    Calibration and parity errors have no difference: their law near zero is not symmetric. Read
    their intervals.

    References
    ----------
    .. [1] E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson (1988), Comparing the areas under two
       or more correlated receiver operating characteristic curves, Biometrics 44.
       https://doi.org/10.2307/2531595

    Examples
    --------
    Does noise in group 1's score make it rank people worse?

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> group, risk = rng.integers(2, size=3000), rng.uniform(size=3000)
    >>> outcome = rng.uniform(size=3000) < risk
    >>> score = np.where(group == 1, (risk + rng.uniform(size=3000)) / 2, risk)
    >>> found = group_quality(outcome, score, group, metrics=("auc",), pairs=((1, 0),))
    >>> found.differences[0].high < 0
    True

    It does.
    """
    check_lengths(y_true=y_true, y_score=y_score, group=group, baseline=baseline, cluster=cluster)
    check_integer("n_bins", n_bins, low=1)
    level = check_fraction("confidence_level", confidence_level)
    for metric in metrics:
        check_option("metrics", metric, QualityMetric)
    scores = _checked_scores(y_score, baseline, metrics)
    y, code = _checked_outcomes(y_true), np.asarray(group)
    ones = np.ones(len(y))
    w = ones if weight is None else check_finite("weight", weight, ndim=1)
    times = ones if count is None else check_finite("count", count, ndim=1)
    unit = None if cluster is None else np.unique(np.asarray(cluster), return_inverse=True)[1]
    values, too_small, apart = [], {}, set()
    influence = _Influence(InfluenceSums(weight=w, count=times, unit=unit))
    n_groups = int(code.max(initial=-1)) + 1
    for g in range(n_groups):
        own = code == g
        fewest = int(min(times[own & (w > 0.0) & (y == k)].sum() for k in (0.0, 1.0)))
        if fewest < MIN_CLASS:
            too_small[g] = fewest
            continue
        members = None if unit is None else unit[own]
        for metric, k in product(metrics, range(len(scores))):
            rows = _Rows(y[own], scores[k][own], w[own], times[own], members)
            if metric in SQUARES:
                error = _square(metric, rows, _Rows(y, scores[k], w, times, unit), own, n_bins)
                if error is None:
                    apart.add(g)
                    continue
                estimate, ends = error.estimate, error.confidence_interval(level)
            else:
                estimate, psi = MEANS[metric](rows)
                ends = influence.add((metric, g, k), estimate, own, psi, level)
            # Sums of weights may carry a share past one by rounding.
            estimate, low, high = np.clip([estimate, ends.low, ends.high], 0.0, 1.0).tolist()
            values.append(
                QualityValue(metric=metric, group=g, score=k, estimate=estimate, low=low, high=high)
            )
    paired = [(g, g) for g in range(n_groups)] if baseline is not None else []
    return GroupQuality(
        values=tuple(values),
        differences=influence.differences(
            [
                (metric, g, h)
                for metric in metrics
                for g, h in (*pairs, *paired)
                if metric not in SQUARES and not {g, h} & too_small.keys()
            ],
            level,
            rng,
        ),
        too_small=too_small,
        apart=tuple(sorted(apart)),
    )


def _checked_outcomes(y_true: AnyArray) -> FloatArray:
    y = check_finite("y_true", y_true, ndim=1)
    if not np.all((y == 0.0) | (y == 1.0)):
        raise DataError("`y_true` must be 0 or 1 for the quality of a score; it has other values.")
    return y


def _checked_scores(
    y_score: AnyArray, baseline: AnyArray | None, metrics: tuple[QualityMetric, ...]
) -> list[FloatArray]:
    scores = [check_finite("y_score", y_score, ndim=1)]
    if baseline is not None:
        scores.append(check_finite("baseline", baseline, ndim=1))
    for s in scores if {"rmsce", "brier"} & set(metrics) else []:
        if s.min(initial=0.0) < 0.0 or s.max(initial=1.0) > 1.0:
            raise DataError(
                "scores must lie in [0, 1] for a calibration error or a Brier score; they reach"
                f" from {s.min():g} to {s.max():g}. Ask for `metrics=['auc']` alone."
            )
    return scores


class _Influence:
    """Influence values of the metrics that are means, kept as sums over units."""

    def __init__(self, rows: InfluenceSums) -> None:
        self.rows = rows
        self.kept: dict[tuple[QualityMetric, int, int], tuple[float, FloatArray]] = {}

    def add(
        self,
        key: tuple[QualityMetric, int, int],
        estimate: float,
        own: AnyArray,
        psi: FloatArray,
        level: float,
    ) -> Interval:
        """Keep a metric; return the interval of it alone."""
        whole = np.zeros(len(self.rows.weight))
        whole[own] = psi
        self.kept[key] = estimate, self.rows.sums(whole)
        return self.rows.interval(*self.kept[key], level)

    def differences(
        self, wanted: list[tuple[QualityMetric, int, int]], level: float, rng: Rng
    ) -> tuple[QualityDifference, ...]:
        """Test differences together; those without variance are left out."""
        found = []
        for metric, g, h in wanted:
            first = self.kept[metric, g, 0]
            second = self.kept[metric, h, 1 if g == h else 0]
            sums = first[1] - second[1]
            if np.any(sums != 0.0):
                found.append(((metric, g, h), first[0] - second[0], sums))
        if not found:
            return ()
        test = self.rows.test(
            np.array([estimate for _, estimate, _ in found]),
            np.array([sums for *_, sums in found]),
            confidence_level=level,
            rng=rng,
        )
        return tuple(
            QualityDifference(
                metric=key[0],
                group=key[1],
                other=key[2],
                estimate=estimate,
                low=float(test.low[k]),
                high=float(test.high[k]),
                statistic=float(test.statistic[k]),
                p_value=float(test.p_value[k]),
                p_value_adjusted=float(test.p_value_adjusted[k]),
            )
            for k, (key, estimate, _) in enumerate(found)
        )
