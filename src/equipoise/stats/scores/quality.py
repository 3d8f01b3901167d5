r"""How far a score is from the outcomes: the four metrics of the paper, and paired differences.

Confidence intervals that do not overlap are not a test of a difference: two scores of the same rows
are compared on the same resamples.
"""

from dataclasses import dataclass, fields

import numpy as np

from equipoise._checks import check_finite, check_fraction, check_integer, check_rng
from equipoise._typing import AnyArray, FloatArray, IntArray, Rng
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.scores.cells import weighted_quantile
from equipoise.stats.scores.kernel import GRID_LEVELS, paper_bandwidth
from equipoise.stats.scores.rows import sum_by

__all__ = ["QualityComparison", "ScoreQuality", "compare_quality", "score_quality"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreQuality:
    r"""The metrics of section 7 of the paper.

    Parameters
    ----------
    calibration_error : float
        Mean over grid points of :math:`\sum_g |\hat f_g(s) - s|`.
    parity_error : float
        Mean over grid points of :math:`\sum_{g \ne g'} |\hat f_g(s) - \hat f_{g'}(s)|`; every pair
        counts twice, as printed.
    auc : float
        Area under the ROC curve.
    expected_calibration_error : float
        Mean distance of mean score and mean outcome over equal-width bins, by bin size.
    """

    calibration_error: float
    parity_error: float
    auc: float
    expected_calibration_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityComparison:
    """Two scores of the same rows.

    Parameters
    ----------
    before, after : ScoreQuality
        Metrics of each score.
    difference : ScoreQuality
        After minus before.
    low, high : ScoreQuality
        Percentile interval of the difference, by resampling clusters.
    """

    before: ScoreQuality
    after: ScoreQuality
    difference: ScoreQuality
    low: ScoreQuality
    high: ScoreQuality


def score_quality(
    y_true: AnyArray,
    y_score: AnyArray,
    group: AnyArray,
    *,
    weight: AnyArray | None = None,
    points: AnyArray | None = None,
    n_bins: int = 10,
) -> ScoreQuality:
    """Return calibration error, parity error, AUC and expected calibration error.

    Parameters
    ----------
    y_true, y_score : array of shape (n,)
        Outcome, 0 or 1; score.
    group : array of shape (n,)
        Codes 0 to G - 1.
    weight : array of shape (n,), optional
        Weight of a row.
    points : array, optional
        Scores at which curves are read; by default quantiles from 1% to 99%.
    n_bins : int, default 10
        Of the expected calibration error.

    Returns
    -------
    ScoreQuality

    Notes
    -----
    Curves are Nadaraya-Watson with the paper's bandwidth, n the number of rows. The metrics say
    nothing of sampling error; see `compare_quality`.

    Examples
    --------
    How good is a score that is exactly right?

    >>> import numpy as np
    >>> score = np.repeat([0.25, 0.75], 400)
    >>> outcome = np.tile([1, 0, 0, 0], 100).tolist() + np.tile([1, 1, 1, 0], 100).tolist()
    >>> quality = score_quality(outcome, score, np.tile([0, 1, 1, 0], 200))
    >>> quality.expected_calibration_error, quality.auc
    (0.0, 0.75)

    It has no calibration error in bins.
    """
    rows = _Rows.of(y_true, y_score, group, points, n_bins)
    w = np.ones(len(rows.outcome)) if weight is None else check_finite("weight", weight, ndim=1)
    return rows.quality(w)


def compare_quality(
    y_true: AnyArray,
    before: AnyArray,
    after: AnyArray,
    group: AnyArray,
    *,
    cluster: AnyArray | None = None,
    n_resamples: int = 200,
    confidence_level: float = 0.95,
    n_bins: int = 10,
    rng: Rng = None,
) -> QualityComparison:
    """Compare two scores of the same rows by paired resampling of clusters.

    Parameters
    ----------
    y_true : array of shape (n,)
        Outcome, 0 or 1, of rows that neither score was fitted on: split first, resample after.
    before, after : array of shape (n,)
        The two scores.
    group : array of shape (n,)
        Codes 0 to G - 1.
    cluster : array of shape (n,), optional
        Who a row belongs to; by default rows are resampled.
    n_resamples : int, default 200
        Bootstrap resamples.
    confidence_level : float, default 0.95
        Of the intervals.
    n_bins : int, default 10
        Of the expected calibration error.
    rng : numpy.random.Generator or int, optional
        Of the resamples.

    Returns
    -------
    QualityComparison

    Examples
    --------
    Does squaring an honest score harm it?

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score, group = rng.uniform(size=2000), rng.integers(2, size=2000)
    >>> outcome = rng.uniform(size=2000) < score
    >>> found = compare_quality(outcome, score, score**2, group, rng=1)
    >>> found.low.expected_calibration_error > 0, round(found.difference.auc, 3)
    (True, 0.0)

    Its calibration, yes; its ranking, no.
    """
    level = check_fraction("confidence_level", confidence_level)
    check_integer("n_resamples", n_resamples, low=2)
    pair = [_Rows.of(y_true, score, group, None, n_bins) for score in (before, after)]
    size = len(pair[0].outcome)
    unit = np.arange(size) if cluster is None else np.unique(cluster, return_inverse=True)[1]
    n_units = int(unit.max()) + 1
    generator = check_rng(rng)
    draws = np.empty((n_resamples, len(fields(ScoreQuality))))
    for k in range(n_resamples):
        counts = generator.multinomial(n_units, np.full(n_units, 1.0 / n_units))
        weight = counts.astype(np.float64)[unit]
        draws[k] = _vector(pair[1].quality(weight)) - _vector(pair[0].quality(weight))
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(draws, [tail, 1.0 - tail], axis=0)
    first, second = (rows.quality(np.ones(size)) for rows in pair)
    return QualityComparison(
        before=first,
        after=second,
        difference=_quality(_vector(second) - _vector(first)),
        low=_quality(low),
        high=_quality(high),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows with the kernels of every grid point, which do not depend on the weights."""

    outcome: FloatArray
    score: FloatArray
    group: IntArray
    points: FloatArray
    kernel: FloatArray
    level: IntArray
    bin: IntArray
    n_bins: int

    @classmethod
    def of(
        cls,
        y_true: AnyArray,
        y_score: AnyArray,
        group: AnyArray,
        points: AnyArray | None,
        n_bins: int,
    ) -> "_Rows":
        outcome = check_finite("y_true", y_true, ndim=1)
        score = check_finite("y_score", y_score, ndim=1)
        codes = np.asarray(group, dtype=np.int64)
        check_integer("n_bins", n_bins, low=1)
        if not len(outcome) == len(score) == len(codes):
            raise InvalidParameterError(
                f"arrays must have one length; got {len(outcome)}, {len(score)}, {len(codes)}."
            )
        if not np.array_equal(np.unique(outcome), [0.0, 1.0]):
            raise DataError("`y_true` must have both 0 and 1, and nothing else.")
        support, level = np.unique(score, return_inverse=True)
        mass = np.bincount(level).astype(np.float64)
        grid = (
            weighted_quantile(support, mass, GRID_LEVELS)
            if points is None
            else check_finite("points", points, ndim=1)
        )
        h = paper_bandwidth(grid, len(score))
        u = (score[None, :] - grid[:, None]) / h[:, None]
        return cls(
            outcome=outcome,
            score=score,
            group=codes,
            points=grid,
            kernel=np.exp(-0.5 * u * u),
            level=level.astype(np.int64),
            bin=np.clip((score * n_bins).astype(np.int64), 0, n_bins - 1),
            n_bins=n_bins,
        )

    def quality(self, weight: FloatArray) -> ScoreQuality:
        curves = []
        for g in range(int(self.group.max()) + 1):
            own = weight * (self.group == g)
            below = self.kernel @ own
            if np.any(below <= 0.0):
                raise DataError(f"group {g} has no score near some grid point; choose `points`.")
            curves.append(self.kernel @ (own * self.outcome) / below)
        values = np.array(curves)
        gaps = np.abs(values[:, None] - values[None, :])
        n = sum_by(self.bin, weight, self.n_bins)
        total = sum_by(self.bin, weight * (self.outcome - self.score), self.n_bins)
        return ScoreQuality(
            calibration_error=float(np.abs(values - self.points).sum(axis=0).mean()),
            parity_error=float(gaps.sum(axis=(0, 1)).mean()),
            auc=self._auc(weight),
            expected_calibration_error=float(np.abs(total).sum() / n.sum()),
        )

    def _auc(self, weight: FloatArray) -> float:
        size = int(self.level.max()) + 1
        positive = sum_by(self.level, weight * self.outcome, size)
        negative = sum_by(self.level, weight * (1.0 - self.outcome), size)
        below = np.cumsum(negative) - 0.5 * negative
        return float(positive @ below / (positive.sum() * negative.sum()))


def _vector(quality: ScoreQuality) -> FloatArray:
    return np.array([getattr(quality, field.name) for field in fields(ScoreQuality)])


def _quality(values: FloatArray) -> ScoreQuality:
    names = [field.name for field in fields(ScoreQuality)]
    return ScoreQuality(**dict(zip(names, values.tolist(), strict=True)))
