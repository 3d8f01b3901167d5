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
from equipoise._typing import AnyArray, BoolArray, FloatArray, ParityUnit, Rng, Smoothing
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.multiplicity import SimultaneousTest
from equipoise.stats.rows import check_lengths, code_clusters, code_pair
from equipoise.stats.scores.cells import (
    AnyScoreCells,
    LinearBlock,
    Recipe,
    ScoreCells,
    check_unit,
    coarse,
    fitted_moments,
    mixture,
)
from equipoise.stats.scores.curves import (
    Axis,
    Bands,
    Differences,
    Neighbourhoods,
    ParityTest,
    average_of,
    check_groups,
    check_weights,
    common_support,
    curve_at,
    cusum_test,
    differences_at,
    informative,
    neighbourhoods,
    score_axis,
    score_grid,
)
from equipoise.stats.scores.kernel import (
    PooledFit,
    Smoother,
    difference_block,
    paper_bandwidth,
    smoother,
)
from equipoise.stats.scores.order import order_test

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
    smoothing: Smoothing = "rank",
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
        Standard deviation of the kernel in units of the score; 0 compares equal scores. By default
        it is chosen by `smoothing`.
    smoothing : {"rank", "score"}, default "rank"
        "rank" smooths over ranks of the score in the equal mixture of the groups, and widens the
        kernel at a score until both groups have enough information; a score with at most 30 values
        is first compared value by value. "score" smooths over the score with one width.
    confidence_level : float, default 0.95
        Simultaneous level of the bands.
    rng : numpy.random.Generator or int, optional
        Source of the multiplier draws.

    Returns
    -------
    ParityTest
        `estimate` is the average difference at equal scores, with `confidence_interval`; `p_value`
        that of the global test, `differences` says at which scores; `order` tests the second half
        of the definition.

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
    outcome is not binary); before that, widths grow up to a quarter of the ranks. D compares
    residuals, so that a wide kernel does not bias it under parity.

    With :math:`a = 1\{G = 1\} - \pi(S)` the average is
    :math:`\delta = \sum \omega a e / \sum \omega a^2`, residual on residual [2]_: the
    difference weighted by the overlap :math:`\pi (1 - \pi)` of the groups [3]_. Its influence
    values are :math:`\omega a (e - \delta a)`, right whether or not there is a difference.

    *Deviations from* [1]_: the paper compares Nadaraya-Watson curves of the raw outcomes; their
    bias depends on each group's density of scores, and with Beta(5, 2) against Beta(2, 5) scores
    that test rejects exact parity 99.5% of the time at level 5%. One bandwidth for both groups,
    max-t instead of Bonferroni, Satterthwaite degrees, clusters that span groups.

    References
    ----------
    .. [1] C. DiCiccio, B. Hsu, Y. Yu, P. Nandy and K. Basu (2023), Detection and mitigation of
       algorithmic bias via predictive rate parity, FAccT, 1801-1816. doi:10.1145/3593013.3594117
    .. [2] P. M. Robinson (1988), Root-n-consistent semiparametric regression, Econometrica 56.
       https://doi.org/10.2307/1912705
    .. [3] F. Li, K. L. Morgan and A. M. Zaslavsky (2018), Balancing covariates via propensity
       score weighting, Journal of the American Statistical Association 113.
       https://doi.org/10.1080/01621459.2016.1260466

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
        cells,
        grid=grid,
        bandwidth=bandwidth,
        smoothing=smoothing,
        confidence_level=confidence_level,
        rng=rng,
    )
    return replace(test, groups=pair.labels, order=order_test(coarse(cells), rng=rng))


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
    smoothing: Smoothing = "rank",
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
    grid, bandwidth, smoothing, confidence_level, rng
        As in `parity_test`.
    n_comparisons : int, default 1
        Pairs of groups read together; bands and adjusted p-values allow for them (Bonferroni).
    paper : bool, default False
        The paper's own test instead: differences of Nadaraya-Watson curves with its bandwidth,
        Bonferroni over grid points. It does not hold its level when score densities differ.

    Returns
    -------
    ParityTest
        Without the test of order.
    """
    check_fraction("confidence_level", confidence_level)
    n_units = check_groups(cells)
    low, high = cells.outcome_range
    if low == high:
        raise DataError(f"`y_true` must vary; every outcome is {low:g} and nothing can differ.")
    bands = Bands(confidence_level, n_comparisons, rng)
    check_weights(cells.sums()[0])
    cells = coarse(cells)
    support = cells.support
    mass, total = cells.sums()
    compared = score_grid(support, mass, grid)
    points = compared.points
    axis = score_axis(cells, "score" if paper else smoothing, bandwidth)
    near = (
        _paper_neighbourhoods(cells, points, n_units.sum())
        if paper
        else neighbourhoods(cells, axis, points)
    )
    at = np.interp(points, support, axis.values)
    recipe = Recipe(_two_group_fit, at, axis, mass, total, near.width, paper)
    fit = recipe.made
    pooled = fit.pooled
    near_both = [part.mass > 0.0 for part in fit.raw] if paper else near.enough
    keep: BoolArray = np.logical_and.reduce(near_both)
    moments = cells.reduce(fitted_moments, recipe)
    differences = differences_at(compared, fit.estimate, near, moments, keep, bands)
    if paper and differences is not None:
        differences = _bonferroni(differences, bands)
    p = len(points)
    cusum = cusum_test(cells, np.tile(pooled.value, 2), fit.factor, rng=rng)
    return ParityTest(
        differences=differences,
        dropped=points[~keep],
        cusum=cusum,
        average=average_of(
            fit.average,
            float(moments.covariance[-1, -1]),
            float(moments.fourth[-1]),
        ),
        overlap=float(mass.ravel() @ fit.factor**2 / mass.sum()),
        curves=tuple(
            curve_at(points, fit.values[k], moments, (k + 1) * p, near.enough[k], bands)
            for k in (0, 1)
        ),
        support=common_support(support, mass),
        bandwidth=None if paper or axis.grows or axis.bandwidth == 0.0 else axis.bandwidth,
        n_units=n_units,
        n_rows=cells.n_rows,
        confidence_level=confidence_level,
    )


def _paper_neighbourhoods(cells: AnyScoreCells, points: FloatArray, n_units: int) -> Neighbourhoods:
    """Return the paper's bandwidth at each point, and who is within it."""
    width = paper_bandwidth(points, n_units)
    window = np.array([points - width, points + width])
    units = cells.units_within(*window)
    mass, total = (sums.sum(axis=0) for sums in cells.sums())
    middle = np.interp(points, cells.support, total / np.where(mass > 0.0, mass, 1.0))
    enough = informative(units, middle, binary=cells.binary)
    return Neighbourhoods(width, units, enough, window.T)


class _TwoGroupFit(NamedTuple):
    """The pooled regression, differences, curves and their average, and influence values.

    `values` are the curves of the groups; `factor` is 1{G = 1} less the share of group 1. The first
    block is that of the differences, then one for each curve, then the average.
    """

    pooled: PooledFit
    raw: list[Smoother]
    estimate: FloatArray
    values: FloatArray
    factor: FloatArray
    average: float
    blocks: list[LinearBlock]


def _two_group_fit(
    at: FloatArray,
    axis: Axis,
    mass: FloatArray,
    total: FloatArray,
    widths: FloatArray,
    paper: bool,
) -> _TwoGroupFit:
    place = axis.values
    pooled = PooledFit.of(
        place, mass.sum(axis=0), total.sum(axis=0), axis.bandwidth, share=mixture(mass)
    )
    raw = [smoother(at, place, m, widths, degree=0) for m in mass]
    residual = total - mass * pooled.value
    means = np.array([part.level @ own for part, own in zip(raw, residual, strict=True)])
    if paper:
        block = difference_block(raw, at, place, total)
        estimate = raw[1].level @ total[1] - raw[0].level @ total[0]
    else:
        block = _residual_difference(raw, pooled, mass)
        estimate = means[1] - means[0]
    middle = pooled.coefficients(at)
    # A curve is the common one plus the mean residual of its group, so that the difference of two
    # curves is the difference tested, and rows are compared with the curve of their own group.
    fitted = np.concatenate([pooled.value + np.interp(place, at, own) for own in means])
    curves = [_curve_block(k, raw[k], middle, pooled, mass[k], fitted) for k in (0, 1)]
    share = np.clip(pooled.fitted(mass[1]), 0.0, 1.0)
    factor = np.concatenate([-share, 1.0 - share])
    weight = float(mass.ravel() @ factor**2)
    average = float(factor @ residual.ravel()) / weight if weight > 0.0 else 0.0
    both = np.tile(pooled.value, 2) + average * factor
    over = LinearBlock((factor / (weight or 1.0))[:, None], both)
    values = middle @ total.sum(axis=0) + means
    blocks = [block, *curves, over]
    return _TwoGroupFit(pooled, raw, estimate, values, factor, average, blocks)


def _residual_difference(
    raw: Sequence[Smoother], pooled: PooledFit, mass: FloatArray
) -> LinearBlock:
    # c = v - A'(P'v): what a row adds directly, less what it adds through the pooled fit.
    v = np.concatenate([-raw[0].level.T, raw[1].level.T])
    through = mass[1][:, None] * raw[1].level.T - mass[0][:, None] * raw[0].level.T
    back = pooled.level.T @ (pooled.interpolation.T @ through)
    return LinearBlock(v - np.concatenate([back, back]), np.tile(pooled.value, 2))


def _curve_block(
    k: int,
    raw: Smoother,
    middle: FloatArray,
    pooled: PooledFit,
    mass: FloatArray,
    fitted: FloatArray,
) -> LinearBlock:
    """Return the influence values of the pooled fit at the points plus group k's mean residual."""
    own = raw.level.T
    through = pooled.level.T @ (pooled.interpolation.T @ (mass[:, None] * own))
    common = middle.T - through
    parts = [common + own if g == k else common for g in (0, 1)]
    return LinearBlock(np.concatenate(parts), fitted)


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
        window=differences.window,
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
    smoothing: Smoothing = "rank",
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
    grid, bandwidth, smoothing, confidence_level, rng
        As in `parity_test`.

    Returns
    -------
    ParityTest
        Without `support` and `order`, which need two groups.

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
        cells,
        grid=grid,
        bandwidth=bandwidth,
        smoothing=smoothing,
        confidence_level=confidence_level,
        rng=rng,
    )


def compare_with_score(
    cells: AnyScoreCells,
    *,
    grid: AnyArray | None = None,
    bandwidth: float | None = None,
    smoothing: Smoothing = "rank",
    confidence_level: float = 0.95,
    n_comparisons: int = 1,
    rng: Rng = None,
) -> ParityTest:
    """Test that the mean outcome of one group equals the score; see `calibration_test`.

    Parameters
    ----------
    cells : ScoreCells or PartitionedCells
        Rows of one group.
    grid, bandwidth, smoothing, confidence_level, n_comparisons, rng
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
    check_weights(cells.sums()[0])
    cells = coarse(cells)
    mass, total = (sums[0] for sums in cells.sums())
    compared = score_grid(cells.support, mass[None], grid)
    points = compared.points
    axis = score_axis(cells, smoothing, bandwidth)
    near = neighbourhoods(cells, axis, points)
    at = np.interp(points, cells.support, axis.values)
    fit = Recipe(_diagonal_fit, at, axis, cells.support, mass, total, near.width)
    moments = cells.reduce(fitted_moments, fit)
    bands = Bands(confidence_level, n_comparisons, rng)
    p = len(points)
    return ParityTest(
        differences=differences_at(
            compared, fit.made.estimate, near, moments, near.enough[0], bands
        ),
        dropped=points[~near.enough[0]],
        cusum=cusum_test(cells, cells.support, np.ones(len(cells.support)), rng=rng),
        average=average_of(
            fit.made.average, float(moments.covariance[-1, -1]), float(moments.fourth[-1])
        ),
        curves=(curve_at(points, points + fit.made.estimate, moments, p, near.enough[0], bands),),
        support=None,
        bandwidth=None if axis.grows or axis.bandwidth == 0.0 else axis.bandwidth,
        n_units=n_units,
        n_rows=cells.n_rows,
        confidence_level=confidence_level,
    )


class _DiagonalFit(NamedTuple):
    """Mean residual of one group by score and over all, and influence values.

    Blocks are those of the differences, of the curve and of the average.
    """

    estimate: FloatArray
    average: float
    blocks: list[LinearBlock]


def _diagonal_fit(
    at: FloatArray,
    axis: Axis,
    support: FloatArray,
    mass: FloatArray,
    total: FloatArray,
    widths: FloatArray,
) -> _DiagonalFit:
    raw = smoother(at, axis.values, mass, widths, degree=0)
    residual = total - mass * support
    estimate = raw.level @ residual
    average = float(residual.sum() / mass.sum())
    fitted = support + np.interp(axis.values, at, estimate)
    everyone = np.full((len(support), 1), 1.0 / mass.sum())
    blocks = [
        LinearBlock(raw.level.T, support),
        LinearBlock(raw.level.T, fitted),
        LinearBlock(everyone, support + average),
    ]
    return _DiagonalFit(estimate, average, blocks)
