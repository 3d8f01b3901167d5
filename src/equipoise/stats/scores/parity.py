r"""The tests that a score means the same in two groups, or what it says in one.

Kernel differences of residuals from the pooled regression say where; the orthogonal cumulative sum
(`equipoise.stats.scores.curves`) says whether. Both treat clusters as the independent units.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import special

from equipoise._checks import check_finite, check_fraction
from equipoise._typing import AnyArray, BoolArray, FloatArray, ParityUnit, Rng
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.multiplicity import SimultaneousTest
from equipoise.stats.rows import check_lengths, code_clusters, code_pair
from equipoise.stats.scores.cells import (
    AnyScoreCells,
    InfluenceMoments,
    LinearBlock,
    Recipe,
    ScoreCells,
    check_unit,
    fitted_moments,
)
from equipoise.stats.scores.curves import (
    Bands,
    Differences,
    OrderingViolation,
    ParityTest,
    check_groups,
    check_weights,
    common_support,
    curve_at,
    cusum_test,
    differences_at,
    informative,
    score_bandwidth,
    score_grid,
    worst_ordering_violation,
)
from equipoise.stats.scores.kernel import (
    PooledFit,
    Smoother,
    curve_block,
    difference_block,
    group_curve_block,
    paper_bandwidth,
    smoother,
)

__all__ = [
    "calibration_test",
    "compare_groups",
    "compare_with_score",
    "composite_parity_test",
    "parity_test",
]


def parity_test(
    y_true: AnyArray,
    y_score: AnyArray,
    group: AnyArray,
    *,
    reference: object = None,
    cluster: AnyArray | None = None,
    unit: ParityUnit | None = None,
    weight: AnyArray | None = None,
    grid: AnyArray | None = None,
    bandwidth: float | None = None,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> ParityTest:
    r"""Test that the mean outcome at every score is the same in two groups.

    The null hypothesis is :math:`E(Y | S = s, G = 1) = E(Y | S = s, G = 0)` for every score s that
    both groups have. Group 0 is the reference, and differences are group 1 minus group 0.

    Parameters
    ----------
    y_true, y_score : array of shape (n,)
        Outcome, any real numbers; score, on any scale.
    group : array of shape (n,)
        Two labels.
    reference : object, optional
        Label of group 0; by default the first in order.
    cluster : array of shape (n,), optional
        Who a row belongs to; a cluster may be in both groups.
    unit : {"cluster", "row"}, optional
        Hypothesis: "cluster" weighs every cluster alike (user-level parity), "row" every row
        (aggregate parity). They differ when activity is related to the outcome, so with `cluster`
        one must be named.
    weight : array of shape (n,), optional
        Sampling weights.
    grid : array, optional
        Scores at which curves are compared; by default 21 quantiles from 1% to 99%.
    bandwidth : float, optional
        Standard deviation of the kernel; 0 compares equal scores. By default a rule of thumb, or 0
        when the score has at most 30 values.
    confidence_level : float, default 0.95
        Simultaneous level of the bands.
    rng : numpy.random.Generator or int, optional
        Source of the multiplier draws.

    Returns
    -------
    ParityTest
        `p_value` is that of the global test, `estimate` the average difference; `differences` says
        at which scores.

    Raises
    ------
    DataError
        If there are not two groups, one is too small, or scores or outcomes do not vary.

    Notes
    -----
    With the pooled local-linear fit m and Nadaraya-Watson weights :math:`l_g(s)` of each group,
    :math:`D(s) = \sum_{G=1} l_1 e - \sum_{G=0} l_0 e`, :math:`e = Y - m(S)`. Under parity the
    smoothing bias is that of a residual with mean zero, and vanishes. D is linear in Y: its
    influence values carry the estimation of m. Grid points with fewer than 10 units of information,
    (units within a bandwidth in the smaller group) times m(1 - m), are dropped (30 units when the
    outcome is not binary).

    *Deviations from* [1]_: the paper compares Nadaraya-Watson curves of the raw outcomes; their
    bias depends on each group's density of scores, and with Beta(5, 2) against Beta(2, 5) scores
    that test rejects exact parity 99.5% of the time at level 5%. One bandwidth for both groups,
    max-t instead of Bonferroni, Satterthwaite degrees, clusters that span groups.

    References
    ----------
    .. [1] DiCiccio, Hsu, Yu, Nandy and Basu, "Detection and Mitigation of Algorithmic Bias via
       Predictive Rate Parity".

    Examples
    --------
    Scores are honest in group 0; in group 1 the outcome is ten points more likely. Is it seen?

    >>> import numpy as np
    >>> from equipoise.stats import parity_test
    >>> rng = np.random.default_rng(1)
    >>> group, score = rng.integers(2, size=4000), rng.uniform(0.1, 0.8, size=4000)
    >>> outcome = rng.uniform(size=4000) < score + 0.1 * group
    >>> test = parity_test(outcome, score, group)
    >>> test.p_value < 0.001, round(test.estimate, 2)
    (True, 0.09)

    It is, and the average difference is near ten points.
    """
    check_lengths(y_true=y_true, y_score=y_score, group=group, cluster=cluster, weight=weight)
    pair = code_pair(group, reference)
    cells = ScoreCells.from_rows(
        y_true,
        y_score,
        pair.code,
        n_groups=2,
        cluster=code_clusters(cluster),
        unit=check_unit(unit, cluster),
        weight=weight,
    )
    test = compare_groups(
        cells, grid=grid, bandwidth=bandwidth, confidence_level=confidence_level, rng=rng
    )
    return replace(test, groups=pair.labels)


def composite_parity_test(
    y_true: AnyArray,
    y_score: AnyArray,
    group: AnyArray,
    weights: Sequence[float],
    *,
    cluster: AnyArray | None = None,
    unit: ParityUnit | None = None,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> ParityTest:
    r"""Test parity of a weighted sum of scores for the same sum of outcomes.

    The null hypothesis is that :math:`E(\sum_k w_k Y^k | \sum_k w_k S^k = s, G)` is the same in
    both groups. Calibrating each objective by itself does not bring it about.

    Parameters
    ----------
    y_true, y_score : array of shape (n, k)
        Outcomes and scores of k objectives.
    group : array of shape (n,)
        0 or 1.
    weights : sequence of k floats
        Of the objectives.
    cluster, unit, confidence_level, rng
        As in `parity_test`.

    Returns
    -------
    ParityTest

    Examples
    --------
    Clicks and replies are each predicted honestly; is their sum?

    >>> import numpy as np
    >>> rng = np.random.default_rng(2)
    >>> group, score = rng.integers(2, size=2000), rng.uniform(0.2, 0.8, size=(2000, 2))
    >>> outcome = rng.uniform(size=(2000, 2)) < score
    >>> test = composite_parity_test(outcome, score, group, [1.0, 0.5])
    >>> test.cusum.ks_p_value > 0.05
    True

    No difference is detected, which is right here.
    """
    y, s = check_finite("y_true", y_true, ndim=2), check_finite("y_score", y_score, ndim=2)
    w = check_finite("weights", weights, ndim=1)
    if y.shape != s.shape or len(w) != y.shape[1]:
        raise InvalidParameterError(
            f"`y_true`, `y_score` and `weights` must agree; got {y.shape}, {s.shape}, {w.shape}."
        )
    return parity_test(
        y @ w, s @ w, group, cluster=cluster, unit=unit, confidence_level=confidence_level, rng=rng
    )


def compare_groups(
    cells: AnyScoreCells,
    *,
    grid: AnyArray | None = None,
    bandwidth: float | None = None,
    confidence_level: float = 0.95,
    n_comparisons: int = 1,
    paper: bool = False,
    rng: Rng = None,
) -> ParityTest:
    """Test parity of group 1 and group 0 of `cells`; see `parity_test`.

    Parameters
    ----------
    cells : ScoreCells or PartitionedCells
        Rows of two groups.
    grid, bandwidth, confidence_level, rng
        As in `parity_test`.
    n_comparisons : int, default 1
        Pairs of groups read together; bands and adjusted p-values allow for them (Bonferroni).
    paper : bool, default False
        The paper's own test instead: differences of Nadaraya-Watson curves with its bandwidth,
        Bonferroni over grid points. It does not hold its level when score densities differ.

    Returns
    -------
    ParityTest
    """
    check_fraction("confidence_level", confidence_level)
    n_units = check_groups(cells)
    low, high = cells.outcome_range
    if low == high:
        raise DataError(f"`y_true` must vary; every outcome is {low:g} and nothing can differ.")
    bands = Bands(confidence_level, n_comparisons, rng)
    support = cells.support
    mass, total = cells.sums()
    check_weights(mass)
    compared = score_grid(support, mass.sum(axis=0), grid)
    points = compared.points
    h = score_bandwidth(cells, bandwidth)
    widths = paper_bandwidth(points, n_units.sum()) if paper else np.full(len(points), h)
    recipe = Recipe(_two_group_fit, points, support, mass, total, h, widths, paper)
    fit = recipe.made
    pooled, lines = fit.pooled, fit.lines
    local = cells.units_within(points - widths, points + widths)
    middle = np.interp(points, support, pooled.value)
    enough = informative(local, middle, binary=cells.binary)
    both = np.logical_and.reduce(enough)
    keep = (lines[0].mass > 0.0) & (lines[1].mass > 0.0) if paper else both
    moments = cells.reduce(fitted_moments, recipe)
    values = np.array([fit.level @ t for fit, t in zip(lines, total, strict=True)])
    differences = differences_at(compared, fit.estimate, local.min(axis=0), moments, keep, bands)
    if paper and differences is not None:
        differences = _bonferroni(differences, bands)
    share = np.clip(pooled.fitted(mass[1]), 0.0, 1.0)
    factor = np.concatenate([-share, 1.0 - share])
    cusum = cusum_test(cells, np.tile(pooled.value, 2), factor, rng=rng)
    overlap = float(mass.ravel() @ factor**2)
    return ParityTest(
        differences=differences,
        dropped=points[~keep],
        cusum=cusum,
        average=None if cusum is None else cusum.total / overlap,
        average_se=None if cusum is None else cusum.total_se / overlap,
        curves=tuple(
            curve_at(points, values[k], moments, (k + 1) * len(points), enough[k], bands)
            for k in (0, 1)
        ),
        support=common_support(support, mass),
        ordering=_ordering(points, values, moments, both),
        bandwidth=None if paper or h == 0.0 else h,
        n_units=n_units,
        n_rows=cells.n_rows,
        confidence_level=confidence_level,
    )


class _TwoGroupFit(NamedTuple):
    """The pooled regression, the curve of each group, their difference, and influence values.

    The first block is that of the difference, then one for each curve.
    """

    pooled: PooledFit
    lines: list[Smoother]
    estimate: FloatArray
    blocks: list[LinearBlock]


def _two_group_fit(
    points: FloatArray,
    support: FloatArray,
    mass: FloatArray,
    total: FloatArray,
    bandwidth: float,
    widths: FloatArray,
    paper: bool,
) -> _TwoGroupFit:
    pooled = PooledFit.of(support, mass.sum(axis=0), total.sum(axis=0), bandwidth)
    raw = [smoother(points, support, m, widths, degree=0) for m in mass]
    lines = [smoother(points, support, m, widths) for m in mass]
    if paper:
        block = difference_block(raw, points, support, total)
        estimate = raw[1].level @ total[1] - raw[0].level @ total[0]
    else:
        block, estimate = _residual_difference(raw, pooled, mass, total)
    curves = [group_curve_block(k, lines[k], points, support, total) for k in (0, 1)]
    return _TwoGroupFit(pooled, lines, estimate, [block, *curves])


def _residual_difference(
    raw: Sequence[Smoother], pooled: PooledFit, mass: FloatArray, total: FloatArray
) -> tuple[LinearBlock, FloatArray]:
    # c = v - A'(P'v): what a row adds directly, less what it adds through the pooled fit.
    v = np.concatenate([-raw[0].level.T, raw[1].level.T])
    through = mass[1][:, None] * raw[1].level.T - mass[0][:, None] * raw[0].level.T
    back = pooled.level.T @ (pooled.interpolation.T @ through)
    residual = (total - mass * pooled.value).ravel()
    block = LinearBlock(v - np.concatenate([back, back]), np.tile(pooled.value, 2))
    return block, residual @ v


def _ordering(
    points: FloatArray, values: FloatArray, moments: InfluenceMoments, keep: BoolArray
) -> OrderingViolation | None:
    at = np.flatnonzero(keep)
    p = len(points)
    rows = np.concatenate([p + at, 2 * p + at])
    return worst_ordering_violation(
        points[at], values[:, at], moments.covariance[np.ix_(rows, rows)]
    )


def _bonferroni(differences: Differences, bands: Bands) -> Differences:
    """Replace max-t by the paper's normal p-values and Bonferroni over grid points."""
    se = differences.test.standard_error
    z = differences.estimate / se
    number = len(z) * bands.n_comparisons
    p_value = 2.0 * special.ndtr(-np.abs(z))
    adjusted = np.minimum(p_value * number, 1.0)
    half = -special.ndtri((1.0 - bands.confidence_level) / (2.0 * number)) * se
    return Differences(
        points=differences.points,
        estimate=differences.estimate,
        n_local=differences.n_local,
        test=SimultaneousTest(
            standard_error=se,
            statistic=z,
            p_value=p_value,
            p_value_adjusted=adjusted,
            low=differences.estimate - half,
            high=differences.estimate + half,
            max_p_value=float(adjusted.min()),
            sum_p_value=differences.test.sum_p_value,
        ),
    )


def calibration_test(
    y_true: AnyArray,
    y_score: AnyArray,
    *,
    cluster: AnyArray | None = None,
    unit: ParityUnit | None = None,
    weight: AnyArray | None = None,
    grid: AnyArray | None = None,
    bandwidth: float | None = None,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> ParityTest:
    r"""Test that the mean outcome equals the score, at every score.

    The null hypothesis is :math:`E(Y | S = s) = s` for every score s. Differences are outcome minus
    score. To compare groups call it on the rows of each, or use `parity_test`.

    Parameters
    ----------
    y_true, y_score : array of shape (n,)
        Outcome; score, between 0 and 1 when outcomes are 0 or 1.
    cluster : array of shape (n,), optional
        Who a row belongs to.
    unit : {"cluster", "row"}, optional
        Whether every cluster or every row weighs alike; must be named with `cluster`.
    weight : array of shape (n,), optional
        Sampling weights.
    grid, bandwidth, confidence_level, rng
        As in `parity_test`.

    Returns
    -------
    ParityTest
        Without `support` and `ordering`, which need two groups.

    Notes
    -----
    The null hypothesis fixes the regression, so that residuals are outcome minus score and there is
    no smoothing bias to correct.

    References
    ----------
    .. [1] C. DiCiccio, B. Hsu, Y. Yu, P. Nandy and K. Basu (2023), Detection and mitigation of
       algorithmic bias via predictive rate parity, FAccT. https://doi.org/10.1145/3593013.3594117

    Examples
    --------
    Outcomes follow the square of the score. Is the score a probability?

    >>> import numpy as np
    >>> from equipoise.stats import calibration_test
    >>> rng = np.random.default_rng(3)
    >>> score = rng.uniform(size=2000)
    >>> test = calibration_test(rng.uniform(size=2000) < score**2, score)
    >>> test.p_value < 0.001, round(test.estimate, 2)
    (True, -0.15)

    It is not: outcomes are 15 points rarer than the score says.
    """
    n = check_lengths(y_true=y_true, y_score=y_score, cluster=cluster, weight=weight)
    cells = ScoreCells.from_rows(
        y_true,
        y_score,
        np.zeros(n, dtype=np.int64),
        cluster=code_clusters(cluster),
        unit=check_unit(unit, cluster),
        weight=weight,
    )
    return compare_with_score(
        cells, grid=grid, bandwidth=bandwidth, confidence_level=confidence_level, rng=rng
    )


def compare_with_score(
    cells: AnyScoreCells,
    *,
    grid: AnyArray | None = None,
    bandwidth: float | None = None,
    confidence_level: float = 0.95,
    n_comparisons: int = 1,
    rng: Rng = None,
) -> ParityTest:
    """Test that the mean outcome of one group equals the score; see `calibration_test`.

    Parameters
    ----------
    cells : ScoreCells or PartitionedCells
        Rows of one group.
    grid, bandwidth, confidence_level, n_comparisons, rng
        As in `compare_groups`.

    Returns
    -------
    ParityTest
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
        confidence_level=confidence_level,
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
