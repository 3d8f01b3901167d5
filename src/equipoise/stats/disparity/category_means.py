r"""Means of disjoint categories with weights and clusters, and roots of their pairs.

The mean of a category is a ratio of sums over independent units (rows, or clusters), and a pair of
categories is a contrast of two such means with the law of few units (`small_samples`): unbiased
variances, skewness taken out, Bell-McCaffrey degrees of freedom, mapped to the normal scale. On the
ratio scale the contrast is Fieller's, one mean minus the ratio times the other.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, Scale
from equipoise.stats.disparity.pair_scores import outer_ends
from equipoise.stats.small_samples import (
    MIN_DF,
    MIN_UNITS,
    Contrast,
    ContrastLaw,
    Links,
    combine,
    contrast_law,
    influence_correlation,
    pooled_shape,
    shrunk_correlation,
    side_contrast,
)
from equipoise.stats.unit_sums import CrossSums, UnitSums

__all__ = ["CategoryMeans", "MeanPairs", "fieller_coefficients"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryMeans:
    """Weighted means of k categories.

    Parameters
    ----------
    sides : Contrast
        Means of the categories with their cumulants, arrays of shape (k,).
    n : array of shape (k,)
        Rows.
    links : Links, optional
        When units have rows in several categories.
    """

    sides: Contrast
    n: IntArray
    links: Links | None = None

    @classmethod
    def from_rows(
        cls,
        y: FloatArray,
        category: IntArray,
        *,
        n_categories: int,
        weight: FloatArray | None = None,
        cluster: AnyArray | None = None,
    ) -> "CategoryMeans":
        """Sum rows by unit and category.

        Parameters
        ----------
        y : array of shape (n,)
            Outcomes.
        category : array of shape (n,)
            Codes 0 to k - 1.
        n_categories : int
            k; every category needs a row of positive weight.
        weight : array of shape (n,), optional
            Sampling weights.
        cluster : array of shape (n,), optional
            Unit of each row; by default rows are independent.

        Returns
        -------
        CategoryMeans
        """
        return cls.from_ratios(
            y,
            np.ones(len(y)),
            category,
            n_categories=n_categories,
            weight=weight,
            cluster=cluster,
        )

    @classmethod
    def from_ratios(
        cls,
        u: FloatArray,
        w: FloatArray,
        category: IntArray,
        *,
        n_categories: int,
        weight: FloatArray | None = None,
        cluster: AnyArray | None = None,
        count: FloatArray | None = None,
    ) -> "CategoryMeans":
        """Sum rows whose category has the mean of u over the mean of w.

        Parameters
        ----------
        u, w : array of shape (n,)
            Numerator and denominator.
        category : array of shape (n,)
            Codes 0 to k - 1.
        n_categories : int
            k; every category needs a row of positive weight.
        weight : array of shape (n,), optional
            Sampling weights.
        cluster : array of shape (n,), optional
            Unit of each row; by default rows are independent.
        count : array of shape (n,), optional
            How many identical rows a row stands for.

        Returns
        -------
        CategoryMeans
        """
        sums = UnitSums.from_rows(
            u, w, category, n_sides=n_categories, cluster=cluster, weight=weight, count=count
        )
        links = None
        if cluster is not None:
            rows = np.ones(len(u)) if weight is None else weight
            rows = rows if count is None else rows * count
            links = _links(sums, rows * u, rows * w, category, cluster)
        return cls(
            sides=side_contrast(sums, pooled_shape(sums)),
            n=np.bincount(category, count, n_categories).round().astype(np.int64),
            links=links,
        )

    @property
    def value(self) -> FloatArray:
        """The means; what rounding leaves of a mean of zero is zero."""
        value = self.sides.estimate
        return np.where(np.abs(value) <= 1e-14 * np.abs(value).max(), 0.0, value)

    @property
    def variance(self) -> FloatArray:
        """Variances of the means."""
        return self.sides.variance

    @property
    def enough(self) -> BoolArray:
        """Categories with four effective units or more, and two degrees of freedom."""
        units, degrees = self.sides.n_eff, self.sides.df
        return np.asarray((units >= MIN_UNITS - 1e-9) & (degrees >= MIN_DF - 1e-9))

    def pairs(self, first: IntArray, second: IntArray, scale: Scale) -> "MeanPairs":
        """Return pairs of the categories.

        Parameters
        ----------
        first, second : array of shape (e,)
            Numbers of the categories.
        scale : {"difference", "ratio"}
            How the means are compared.

        Returns
        -------
        MeanPairs
        """
        return MeanPairs(means=self, first=first, second=second, scale=scale)

    def pair_correlation(self, first: IntArray, second: IntArray) -> FloatArray | None:
        """Correlation of the roots of pairs that share units.

        Parameters
        ----------
        first, second : array of shape (e,)
            Numbers of the categories.

        Returns
        -------
        array of shape (e, e) or None
            None when no unit has rows in two categories.
        """
        if self.links is None:
            return None
        one = np.ones(len(first))
        c = _coefficients(first, second, one, one, len(self.n))
        degrees = contrast_law(combine(self.sides, c, self.links)).df
        return shrunk_correlation(influence_correlation(self.sides, c, self.links), degrees)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanPairs:
    """Pairs of means, and the scale on which they are compared.

    Parameters
    ----------
    means : CategoryMeans
        The means of all categories.
    first, second : array of shape (e,)
        Numbers of the categories of each pair.
    scale : {"difference", "ratio"}
        Whether the hypothesised value is a difference or a ratio.
    """

    means: CategoryMeans
    first: IntArray
    second: IntArray
    scale: Scale

    @property
    def estimate(self) -> FloatArray:
        """Observed differences or ratios."""
        one, two = self.means.value[self.first], self.means.value[self.second]
        if self.scale == "difference":
            return one - two
        with np.errstate(divide="ignore", invalid="ignore"):
            return one / two

    def root(self, null: FloatArray) -> FloatArray:
        """Signed root of each pair at a hypothesised value.

        Parameters
        ----------
        null : array of shape (e,)
            Hypothesised values.

        Returns
        -------
        array of shape (e,)
            Standard normal under the null, zero where nothing varies.
        """
        value = np.asarray(null, dtype=np.float64)
        one = np.ones_like(value)
        if self.scale == "ratio":
            root = self._law(*fieller_coefficients(value)).root()
        else:
            root = self._law(one, one).root(value)
        return np.nan_to_num(root)

    def interval(self, critical: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Values whose root is between minus and plus `critical`.

        Parameters
        ----------
        critical : float or array of shape (e,)
            1.96 for a 95% interval of one pair.

        Returns
        -------
        low, high : array of shape (e,)
            Infinite where no value on that side is rejected.
        """
        if self.scale == "difference":
            one = np.ones(len(self.first))
            low, high = self._law(one, one).interval(critical)
            # Where nothing varies nothing is known.
            return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
        m, i, j = self.means, self.first, self.second

        def root(null: FloatArray, which: IntArray) -> FloatArray:
            return m.pairs(i[which], j[which], "ratio").root(null)

        with np.errstate(divide="ignore", invalid="ignore"):
            relative = m.variance / m.value**2
        se = np.sqrt(relative[i] + relative[j])
        return outer_ends(root, self.estimate, se, critical, scale="ratio")

    def _law(self, a: FloatArray, b: FloatArray) -> ContrastLaw:
        """Law of a times the first mean minus b times the second."""
        m = self.means
        c = _coefficients(self.first, self.second, a, b, len(m.n))
        return contrast_law(combine(m.sides, c, m.links))


def fieller_coefficients(ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients a, b of "a times the first mean = b times the second" at a ratio.

    Parameters
    ----------
    ratio : array
        First over second mean; a large one is read from the other side, so that both are finite.

    Returns
    -------
    a, b : array

    Examples
    --------
    >>> [one.tolist() for one in fieller_coefficients(np.array([0.5, 4.0, np.inf]))]
    [[1.0, 0.25, 0.0], [0.5, 1.0, 1.0]]
    """
    return 1.0 / np.maximum(ratio, 1.0), np.minimum(ratio, 1.0)


def _coefficients(
    first: IntArray, second: IntArray, a: FloatArray, b: FloatArray, size: int
) -> FloatArray:
    c = np.zeros((len(first), size))
    c[np.arange(len(first)), first] = a
    c[np.arange(len(first)), second] -= b
    return c


def _links(
    sums: UnitSums, u: FloatArray, w: FloatArray, category: IntArray, cluster: AnyArray
) -> Links | None:
    """What units with rows in several categories add, or None if there are none."""
    unit = np.unique(cluster, return_inverse=True)[1]
    shape = (int(unit.max()) + 1, len(sums.n))
    size = sparse.csr_array((w, (unit, category)), shape=shape)
    if (np.diff(size.indptr) <= 1).all():
        return None
    total = sparse.csr_array((u - sums.centre * w, (unit, category)), shape=shape)
    square = size.power(2)
    cross = CrossSums(
        uu=(total.T @ total).toarray(),
        uw=(total.T @ size).toarray(),
        ww=(size.T @ size).toarray(),
        w2w2=(square.T @ square).toarray(),
    )
    return Links.between(sums, cross)
