r"""Survey designs: strata of the design and finite populations in the sums over units.

In a stratified sample units are drawn within strata, so that only their spread around the mean of
their stratum is random, and less of it when a large share of a finite stratum was drawn:

.. math:: V = \sum_h (1 - f_h) \frac{n_h}{n_h - 1} \sum_c (t_{hc} - \bar t_h)(t_{hc} - \bar t_h)'

for the totals t of primary units c in stratum h (Binder 1983 [1]_). Written into the products of
`CellMoments`, every estimate made of those sums gets the variance of the design.

References
----------
.. [1] D. A. Binder (1983), On the variances of asymptotically normal estimators from complex
   surveys, International Statistical Review 51, 279-292. doi:10.2307/1402588
.. [2] T. Lumley (2004), Analysis of complex survey samples, Journal of Statistical Software 9(8).
   doi:10.18637/jss.v009.i08
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import sparse, special

from equipoise._checks import check_finite, check_option
from equipoise._typing import AnyArray, FloatArray, IntArray, Scale
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.moments import CellMoments, CrossMoments
from equipoise.stats.disparity.category_means import fieller_coefficients
from equipoise.stats.disparity.pair_scores import outer_ends
from equipoise.stats.multiplicity import correlations
from equipoise.stats.small_samples import normal_root

__all__ = [
    "DesignMeans",
    "DesignPairs",
    "LonelyUnit",
    "design_degrees",
    "survey_means",
    "survey_moments",
]

LonelyUnit: TypeAlias = Literal["raise", "certainty", "adjust"]


def survey_moments(
    quantities: AnyArray,
    cell: AnyArray,
    *,
    strata: AnyArray,
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
    population: AnyArray | None = None,
    n_cells: int | None = None,
    lonely: LonelyUnit = "raise",
) -> CellMoments:
    """Sums over cells whose products are those of a stratified design.

    Parameters
    ----------
    quantities : array of shape (n, p)
        One column for each quantity.
    cell : array of shape (n,)
        Cell of each row, 0 to K - 1.
    strata : array of shape (n,)
        Stratum of the design.
    cluster : array of shape (n,), optional
        Primary unit of each row, numbered within strata or overall; by default rows are units.
    weight : array of shape (n,), optional
        Sampling weights.
    population : array of shape (n,), optional
        Units of the row's stratum in the population; without it the population is infinite.
    n_cells : int, optional
        K; by default one more than the largest code.
    lonely : {"raise", "certainty", "adjust"}
        A stratum with a single unit: an error; no variance; or its distance from the mean of all
        units.

    Returns
    -------
    CellMoments
        `linear_covariance` of an influence function is its variance under the design.
    """
    check_option("lonely", lonely, LonelyUnit)
    q = np.asarray(quantities, dtype=np.float64)
    q = q[:, None] if q.ndim == 1 else q
    code = np.asarray(cell, dtype=np.int64)
    size = int(code.max(initial=-1)) + 1 if n_cells is None else n_cells
    rows = q if weight is None else q * check_finite("weight", weight, ndim=1)[:, None]
    stratum = np.unique(np.asarray(strata), return_inverse=True)[1]
    unit, of_unit = _units(stratum, cluster)
    n_units = len(of_unit)
    units = np.bincount(of_unit)
    factor = _factors(units, stratum, population, lonely)
    p = q.shape[1]
    column = (code[:, None] * p + np.arange(p)).ravel()
    total = sparse.csr_array(
        (rows.ravel(), (np.repeat(unit, p), column)), shape=(n_units, size * p)
    )
    mean = (_indicator(of_unit).T @ total).toarray() / units[:, None]
    # A lone unit is measured from the mean of all units.
    centre = np.where((units == 1)[:, None], total.sum(axis=0) / n_units, mean)
    product = (total.T @ sparse.diags_array(factor[of_unit]) @ total).toarray()
    shared = (mean * (units * factor)[:, None]).T @ centre
    product += (centre * (units * factor)[:, None]).T @ centre - shared - shared.T
    product = product.reshape(size, p, size, p)
    first, second = np.triu_indices(size, k=1)
    return CellMoments(
        n=np.bincount(code, minlength=size).astype(np.int64),
        total=np.asarray(total.sum(axis=0)).reshape(size, p),
        product=product[np.arange(size), :, np.arange(size), :],
        n_units=n_units,
        cross=CrossMoments(first=first, second=second, product=product[first, :, second, :]),
    )


def design_degrees(strata: AnyArray, cluster: AnyArray | None = None) -> int:
    """Degrees of freedom of a design: primary units less strata.

    Parameters
    ----------
    strata : array of shape (n,)
        Stratum of the design.
    cluster : array of shape (n,), optional
        Primary unit of each row.

    Returns
    -------
    int
    """
    stratum = np.unique(np.asarray(strata), return_inverse=True)[1]
    return len(_units(stratum, cluster)[1]) - int(stratum.max()) - 1


def survey_means(
    y: AnyArray,
    category: IntArray,
    *,
    strata: AnyArray,
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
    population: AnyArray | None = None,
    lonely: LonelyUnit = "raise",
) -> "DesignMeans":
    """Means of categories under a stratified design, ready to be compared.

    Parameters
    ----------
    y : array of shape (n,)
        Outcome.
    category : array of shape (n,)
        Codes 0 to k - 1.
    strata, cluster, weight, population, lonely : optional
        The design, as in `survey_moments`.

    Returns
    -------
    DesignMeans
        For `compare_means_with_extreme`, or pair by pair.

    Examples
    --------
    Sixteen schools were drawn from two districts; do the two groups have equal means?

    >>> rng = np.random.default_rng(0)
    >>> y, group, school = rng.normal(size=160), np.arange(160) % 2, np.arange(160) // 10
    >>> means = survey_means(y, group, strata=school // 8, cluster=school)
    >>> pair = means.pairs(np.array([1]), np.array([0]), "difference")
    >>> abs(float(pair.root(np.zeros(1))[0])) < 1.96
    True

    That they are is not excluded.
    """
    outcome = check_finite("y", y, ndim=1)
    code = np.asarray(category, dtype=np.int64)
    pilot = float(outcome.mean())
    moments = survey_moments(
        np.column_stack([outcome - pilot, np.ones(len(outcome))]),
        code,
        strata=strata,
        cluster=cluster,
        weight=weight,
        population=population,
        lonely=lonely,
    )
    total, size = moments.total.T
    value = total / size
    slope = np.diag(1.0 / size)
    kernel = [[moments.kernel(a, b).toarray() for b in (0, 1)] for a in (0, 1)]
    level = -np.diag(value / size)
    covariance = sum(
        one @ kernel[a][b] @ two.T
        for a, one in enumerate((slope, level))
        for b, two in enumerate((slope, level))
    )
    return DesignMeans(
        value=pilot + value,
        covariance=np.asarray(covariance),
        df=design_degrees(strata, cluster),
        n=moments.n,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignMeans:
    """Means of k categories with the covariance of a survey design.

    Parameters
    ----------
    value : array of shape (k,)
        The means.
    covariance : array of shape (k, k)
        Under the design.
    df : int
        Degrees of freedom of the design.
    n : array of shape (k,)
        Rows.
    """

    value: FloatArray
    covariance: FloatArray
    df: int
    n: IntArray

    @property
    def variance(self) -> FloatArray:
        """Variances of the means."""
        return np.diag(self.covariance)

    def pairs(self, first: IntArray, second: IntArray, scale: Scale) -> "DesignPairs":
        """Return pairs of the categories.

        Parameters
        ----------
        first, second : array of shape (e,)
            Numbers of the categories.
        scale : {"difference", "ratio"}
            How the means are compared.

        Returns
        -------
        DesignPairs
        """
        return DesignPairs(means=self, first=first, second=second, scale=scale)

    def pair_correlation(self, first: IntArray, second: IntArray) -> FloatArray:
        """Correlation of the differences of pairs.

        Parameters
        ----------
        first, second : array of shape (e,)
            Numbers of the categories.

        Returns
        -------
        array of shape (e, e)
        """
        contrast = np.eye(len(self.value))[first] - np.eye(len(self.value))[second]
        return correlations(contrast @ self.covariance @ contrast.T)


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignPairs:
    """Pairs of means of a survey, with Student's law on the degrees of freedom of the design.

    Parameters
    ----------
    means : DesignMeans
        The means of all categories.
    first, second : array of shape (e,)
        Numbers of the categories of each pair.
    scale : {"difference", "ratio"}
        Whether the hypothesised value is a difference or a ratio.
    """

    means: DesignMeans
    first: IntArray
    second: IntArray
    scale: Scale

    def root(self, null: FloatArray) -> FloatArray:
        """Signed root of each pair on the normal scale (Fieller's, for ratios).

        Parameters
        ----------
        null : array of shape (e,)
            Hypothesised values.

        Returns
        -------
        array of shape (e,)
        """
        value = np.asarray(null, dtype=np.float64)
        if self.scale == "ratio":
            gap, variance = self._contrast(*fieller_coefficients(value))
        else:
            one = np.ones_like(value)
            gap, variance = self._contrast(one, one)
            gap = gap - value
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(gap == 0.0, 0.0, gap / np.sqrt(variance))
        return normal_root(t, self.means.df)

    def interval(self, critical: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Values whose root is between minus and plus `critical`.

        Parameters
        ----------
        critical : float or array of shape (e,)
            1.96 for a 95% interval of one pair.

        Returns
        -------
        low, high : array of shape (e,)
        """
        m, i, j = self.means, self.first, self.second
        if self.scale == "difference":
            gap, variance = self._contrast(np.ones(len(i)), np.ones(len(i)))
            quantile = -special.stdtrit(m.df, special.ndtr(-np.asarray(critical)))
            return gap - quantile * np.sqrt(variance), gap + quantile * np.sqrt(variance)

        def root(null: FloatArray, which: IntArray) -> FloatArray:
            return m.pairs(i[which], j[which], "ratio").root(null)

        with np.errstate(divide="ignore", invalid="ignore"):
            ratio, relative = m.value[i] / m.value[j], m.variance / m.value**2
        return outer_ends(root, ratio, np.sqrt(relative[i] + relative[j]), critical, scale="ratio")

    def _contrast(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        m, i, j = self.means, self.first, self.second
        variance = a**2 * m.covariance[i, i] + b**2 * m.covariance[j, j]
        variance -= 2.0 * a * b * m.covariance[i, j]
        return a * m.value[i] - b * m.value[j], np.maximum(variance, 0.0)


def _units(stratum: IntArray, cluster: AnyArray | None) -> tuple[IntArray, IntArray]:
    """Number of each row's primary unit, and the stratum of every unit."""
    if cluster is None:
        return np.arange(len(stratum)), stratum
    label = np.unique(np.asarray(cluster), return_inverse=True)[1]
    pairs, unit = np.unique(stratum * (int(label.max()) + 1) + label, return_inverse=True)
    return unit, pairs // (int(label.max()) + 1)


def _indicator(code: IntArray) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(code)), (np.arange(len(code)), code)))


def _factors(
    units: IntArray, stratum: IntArray, population: AnyArray | None, lonely: LonelyUnit
) -> FloatArray:
    """What multiplies the spread of each stratum."""
    alone = np.flatnonzero(units == 1)
    if len(alone) and lonely == "raise":
        raise GroupTooSmallError(
            f"{len(alone)} strata of the design have a single unit, whose variance is not known. "
            'Merge strata, or pass `lonely="certainty"` or `lonely="adjust"`.'
        )
    sampled = np.zeros(len(units))
    if population is not None:
        whole = np.zeros(len(units))
        np.maximum.at(whole, stratum, check_finite("population", population, ndim=1))
        if (whole < units).any():
            h = int(np.flatnonzero(whole < units)[0])
            raise InvalidParameterError(
                f"`population` must be at least the number of units drawn; a stratum has "
                f"{units[h]} units of a population of {whole[h]:g}."
            )
        sampled = units / whole
    with np.errstate(divide="ignore"):
        factor = (1.0 - sampled) * units / np.maximum(units - 1.0, 1e-300)
    factor[alone] = 0.0 if lonely == "certainty" else 1.0
    return np.asarray(factor)
