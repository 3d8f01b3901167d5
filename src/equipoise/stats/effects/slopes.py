r"""Whether predicted differences inside a group are those of the effects.

An error says that predictions for a group are too high on average; it says nothing of who in the
group gains more. The slope :math:`\beta_g` of the effect on the prediction does ([1]_): one where
predictions are right, zero where they tell nothing, below zero where they are upside down. It is
the slope of the doubly robust score on the prediction, a smooth function of sums by arm.

References
----------
.. [1] V. Chernozhukov, M. Demirer, E. Duflo and I. Fernandez-Val (2018), Generic machine learning
   inference on heterogeneous treatment effects in randomized experiments.
   https://doi.org/10.3386/w24678
"""

from dataclasses import dataclass

import numpy as np

from equipoise._typing import BoolArray, EffectMeasure, FloatArray, IntArray
from equipoise.moments import CellMoments, linear_covariance
from equipoise.stats.delta import Linearised, covariance_by_group
from equipoise.stats.effects.collapse import slope_parts
from equipoise.stats.small_samples import JointTest, joint_test, normal_root

__all__ = ["MIN_SLOPE_DF", "GroupSlopes", "group_slopes"]

MIN_SLOPE_DF = 20.0
"""Degrees of freedom below which a slope is not tested: 63 units with normal predictions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSlopes:
    """Slopes of the effect on the prediction, and their differences.

    Parameters
    ----------
    tested : array of shape (T,)
        Groups with a slope.
    slope, se, df : array of shape (T,)
        Estimates, standard errors and degrees of freedom.
    difference, difference_se, difference_df : array of shape (T,)
        Slope of a group minus that of the other tested groups, averaged by size; NaN with one
        group.
    equal : JointTest
        That all slopes are equal.
    """

    tested: IntArray
    slope: FloatArray
    se: FloatArray
    df: FloatArray
    difference: FloatArray
    difference_se: FloatArray
    difference_df: FloatArray
    equal: JointTest

    def root(self, value: float) -> FloatArray:
        """Return the root of the hypothesis that each slope is `value`.

        Parameters
        ----------
        value : float
            One for right predictions, zero for predictions that tell nothing.

        Returns
        -------
        array of shape (T,)
        """
        return normal_root((self.slope - value) / self.se, self.df)

    def difference_root(self) -> FloatArray:
        """Return the root of the hypothesis that a slope is that of the other groups."""
        return normal_root(self.difference / self.difference_se, self.difference_df)


def group_slopes(
    moments: CellMoments,
    names: tuple[str, ...],
    units: FloatArray,
    *,
    measure: EffectMeasure = "difference",
    n_strata: int = 1,
) -> GroupSlopes:
    r"""Estimate the slope of the effect on the prediction in every group.

    The null hypotheses are :math:`\beta_g = 1`, :math:`\beta_g = 0`, and that all are equal.

    Parameters
    ----------
    moments : CellMoments
        Sums of `slope_quantities` by (group, stratum, arm).
    names : tuple of str
        The quantities.
    units : array of shape (G,)
        Independent units of each group; zero for a group that is not tested.
    measure : {"relative", "difference"}
        Effect measure.
    n_strata : int, default 1
        Strata within which treatment was assigned.

    Returns
    -------
    GroupSlopes
        Without groups below `MIN_SLOPE_DF` degrees of freedom, and those whose predictions or
        outcomes do not vary.

    Notes
    -----
    With shares of treated by group and stratum, and arm means as outcome models, the slope is
    :math:`\{\mathrm{cov}_1(f, y) - \mathrm{cov}_0(f, y)\} / \mathrm{var}(f)`, the covariances those
    of the arms. Variances have the factor n/(n - 2); the reference is t on
    :math:`(\sum d^2)^2 / \sum d^4 - 1` degrees of freedom, d the predictions minus their mean: a
    few far ones may decide a slope alone.

    Examples
    --------
    Those for whom 2 is predicted gain 1, those for whom 1 is predicted gain 2.

    >>> import numpy as np
    >>> from equipoise.stats.effects.collapse import row_quantities, slope_quantities
    >>> f, t = np.tile([1.0, 2.0], 40), np.repeat([0, 1], 40)
    >>> y = np.where(t == 1, 3.0 - f, 0.0) + np.tile([0.0, 0.0, 0.1, 0.1], 20)
    >>> names = slope_quantities("difference")
    >>> sums = CellMoments.from_rows(row_quantities(names, y=y, f=f), t)
    >>> float(group_slopes(sums, names, np.array([80.0])).slope[0].round(6))
    -1.0
    """
    n_cells = 2 * n_strata
    total = moments.total.reshape(-1, n_cells, len(names))
    with np.errstate(divide="ignore", invalid="ignore"):
        both, spread = slope_parts(total, names, measure=measure, n_strata=n_strata)
        level = total[:, :, -1].sum(axis=1) / np.maximum(total[:, :, 0].sum(axis=1), 1e-300)
        slope = both / spread
    finite = np.isfinite(slope.value) & np.isfinite(slope.gradient).all(axis=(1, 2))
    # Predictions that are all the same leave rounding noise.
    varies = np.abs(spread.value) > 1e-12 * np.abs(level)
    enough = units / _kurtosis(moments, names, n_cells) - 1.0
    varies &= _outcomes_vary(moments, slope, spread.value, names)
    tested = np.flatnonzero(finite & varies & (spread.value > 0) & (enough >= MIN_SLOPE_DF))
    used = np.isin(np.arange(len(total)), tested)
    slope = Linearised(
        value=np.where(used, slope.value, 0.0),
        gradient=np.where(used[:, None, None], slope.gradient, 0.0),
    )
    n = units[tested]
    factor = np.sqrt(n / (n - 2.0))
    covariance = _covariance(moments, slope, tested) * np.outer(factor, factor)
    own_df = enough[tested]
    variance = np.diag(covariance)
    size = total[tested, :, 0].sum(axis=1)
    others = size.sum() - size
    with np.errstate(divide="ignore", invalid="ignore"):
        contrast = np.eye(len(n)) - (1.0 - np.eye(len(n))) * size / others[:, None]
    value = slope.value[tested]
    difference_variance = np.diag(contrast @ covariance @ contrast.T)
    parts = contrast**2 * variance
    with np.errstate(divide="ignore", invalid="ignore"):
        df = parts.sum(axis=1) ** 2 / (parts**2 / own_df).sum(axis=1)
        return GroupSlopes(
            tested=tested,
            slope=value,
            se=np.sqrt(variance),
            df=own_df,
            difference=contrast @ value,
            difference_se=np.sqrt(difference_variance),
            difference_df=df,
            equal=joint_test(
                normal_root(contrast @ value / np.sqrt(difference_variance), df), share=size
            ),
        )


def _outcomes_vary(
    moments: CellMoments, slope: Linearised, spread: FloatArray, names: tuple[str, ...]
) -> BoolArray:
    """Whether a slope has a variance beyond rounding; not where outcomes are constant."""
    finite = np.isfinite(slope.value) & np.isfinite(slope.gradient).all(axis=(1, 2))
    usable = Linearised(
        value=np.where(finite, slope.value, 0.0),
        gradient=np.where(finite[:, None, None], slope.gradient, 0.0),
    )
    total = moments.total.reshape(len(finite), -1, len(names)).sum(axis=1)
    outcome = names.index("wy" if "wy" in names else "y")
    n = np.maximum(total[:, 0], 1e-300)
    level = total[:, outcome] / n
    scale = usable.value**2 + level**2 / np.where(spread > 0, spread, np.inf)
    variance = covariance_by_group(moments, [usable])[:, 0, 0]
    # Sums of products leave rounding noise of about 1e-16 of their size.
    return np.asarray(variance > 1e-12 * scale / n)


def _covariance(moments: CellMoments, slope: Linearised, tested: IntArray) -> FloatArray:
    """Covariance of the slopes of tested groups; units may span groups."""
    own = covariance_by_group(moments, [slope])[tested, 0, 0]
    cross, n_cells = moments.cross, slope.gradient.shape[1]
    inside = cross is None or np.array_equal(cross.first // n_cells, cross.second // n_cells)
    if inside or not len(tested):
        return np.diag(own)
    coefficient = np.zeros((len(tested), *slope.gradient.shape))
    coefficient[np.arange(len(tested)), tested] = slope.gradient[tested]
    flat = coefficient.reshape(len(tested), -1, coefficient.shape[-1])
    return linear_covariance(
        moments, [np.ascontiguousarray(flat[:, :, k].T) for k in range(flat.shape[2])]
    )


def _kurtosis(moments: CellMoments, names: tuple[str, ...], n_cells: int) -> FloatArray:
    """Fourth moment of the predictions of a group over the square of the second; at least three.

    Where sums do not tell, because rows have weights, clusters or relative effects, it is three.
    """
    n_groups = len(moments.n) // n_cells
    plain = np.array_equal(moments.product[:, 0, 0], moments.n)
    if not plain or "ff" not in names:
        return np.full(n_groups, 3.0)
    f, ff = names.index("f"), names.index("ff")
    product = moments.product.reshape(n_groups, n_cells, *moments.product.shape[1:]).sum(axis=1)
    n = np.maximum(product[:, 0, 0], 1.0)
    m1, m2, m3, m4 = (product[:, a, b] / n for a, b in ((0, f), (f, f), (f, ff), (ff, ff)))
    second = m2 - m1**2
    fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
    ratio = np.divide(fourth, second**2, out=np.full(n_groups, 3.0), where=second > 0)
    return np.asarray(np.maximum(ratio, 3.0))
