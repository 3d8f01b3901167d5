"""Whether the score of a group equals its mean outcome: calibration to the diagonal."""

from typing import NamedTuple

import numpy as np

from equipoise._checks import check_fraction
from equipoise._typing import AnyArray, FloatArray, Rng
from equipoise.exceptions import DataError
from equipoise.stats.scores.cells import LinearBlock
from equipoise.stats.scores.curves import (
    Bands,
    ParityTest,
    check_groups,
    check_weights,
    curve_at,
    differences_at,
    informative,
    score_bandwidth,
    score_grid,
)
from equipoise.stats.scores.cusum import cusum_test
from equipoise.stats.scores.kernel import Smoother, curve_block, smoother
from equipoise.stats.scores.partitioned import AnyScoreCells, Recipe, fitted_moments

__all__ = ["calibration_test"]


def calibration_test(
    cells: AnyScoreCells,
    *,
    grid: AnyArray | None = None,
    bandwidth: float | None = None,
    confidence_level: float = 0.95,
    n_comparisons: int = 1,
    rng: Rng = None,
) -> ParityTest:
    """Test that the mean outcome of one group equals the score, at every score.

    The null hypothesis fixes the regression, so residuals are outcome minus score and there is no
    smoothing bias to correct. Differences are outcome minus score.

    Parameters
    ----------
    cells : ScoreCells or PartitionedCells
        Rows of one group.
    grid, bandwidth, confidence_level, n_comparisons, rng
        As in `compare_groups`.

    Returns
    -------
    ParityTest
        Without `support` and `ordering`, which need two groups.

    Examples
    --------
    Outcomes follow the square of the score. Is the score a probability?

    >>> import numpy as np
    >>> from equipoise.stats.scores.cells import ScoreCells
    >>> rng = np.random.default_rng(3)
    >>> score = rng.uniform(size=2000)
    >>> outcome = rng.uniform(size=2000) < score**2
    >>> cells = ScoreCells.from_rows(outcome, score, np.zeros(2000, dtype=int))
    >>> test = calibration_test(cells)
    >>> test.cusum.ks_p_value < 0.001, round(test.average, 2)
    (True, -0.15)

    It is not: outcomes are 15 points rarer than the score says.
    """
    check_fraction("confidence_level", confidence_level)
    n_units = check_groups(cells)
    if cells.binary and (cells.support[0] < 0.0 or cells.support[-1] > 1.0):
        raise DataError(
            "`y_score` must lie in [0, 1] to be compared with a 0/1 outcome; it reaches from"
            f" {cells.support[0]:g} to {cells.support[-1]:g}. Test parity between groups, or"
            " calibrate the score first."
        )
    mass, total = (sums[0] for sums in cells.sums())
    check_weights(mass[None])
    compared = score_grid(cells.support, mass, grid)
    points = compared.points
    h = score_bandwidth(cells, bandwidth)
    local = cells.units_within(points - h, points + h)
    fit = Recipe(_diagonal_fit, points, cells.support, mass, total, h)
    raw, line, _ = fit.made
    value = line.level @ total
    enough = informative(local, np.clip(points, 0.0, 1.0), binary=cells.binary)[0]
    moments = cells.reduce(fitted_moments, fit)
    bands = Bands(confidence_level, n_comparisons, rng)
    cusum = cusum_test(cells, cells.support, np.ones(len(cells.support)), rng=rng)
    return ParityTest(
        differences=differences_at(
            compared, raw.level @ (total - mass * cells.support), local[0], moments, enough, bands
        ),
        dropped=points[~enough],
        cusum=cusum,
        average=None if cusum is None else cusum.total / float(mass.sum()),
        average_se=None if cusum is None else cusum.total_se / float(mass.sum()),
        curves=(curve_at(points, value, moments, len(points), enough, bands),),
        support=None,
        ordering=None,
        bandwidth=None if h == 0.0 else h,
        n_units=n_units,
        n_rows=cells.n_rows,
    )


class _DiagonalFit(NamedTuple):
    """Mean residual and curve of one group, as smoothers, and their influence values."""

    raw: Smoother
    line: Smoother
    blocks: list[LinearBlock]


def _diagonal_fit(
    points: FloatArray, support: FloatArray, mass: FloatArray, total: FloatArray, bandwidth: float
) -> _DiagonalFit:
    raw = smoother(points, support, mass, bandwidth, degree=0)
    line = smoother(points, support, mass, bandwidth)
    blocks = [LinearBlock(raw.level.T, support), curve_block(line, points, support, total)]
    return _DiagonalFit(raw, line, blocks)
