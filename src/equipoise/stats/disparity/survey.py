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

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse, special

from equipoise._checks import check_finite, check_option
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, Scale
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.moments import CellMoments, CrossMoments, linear_covariance
from equipoise.stats.disparity.category_means import fieller_coefficients
from equipoise.stats.disparity.gaps import Disparities, GroupedCells
from equipoise.stats.disparity.pair_scores import outer_ends
from equipoise.stats.disparity.references import Comparison, Target, compare, target_mask
from equipoise.stats.multiplicity import correlations
from equipoise.stats.small_samples import MIN_UNITS, normal_root

__all__ = [
    "DesignMeans",
    "DesignPairs",
    "LonelyUnit",
    "SurveyDesign",
    "SurveyLaw",
    "design_degrees",
    "design_of_cells",
    "design_of_rows",
    "means_of_sums",
    "survey_disparities",
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
    rows_of = np.bincount(code, minlength=size)
    return _cells(rows_of, np.asarray(total.sum(axis=0)).reshape(size, p), product, n_units)


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
    return means_of_sums(moments, df=design_degrees(strata, cluster), pilot=pilot)


def means_of_sums(moments: CellMoments, *, df: float, pilot: float = 0.0) -> "DesignMeans":
    """Means of categories from sums alone, with their sandwich covariance.

    Parameters
    ----------
    moments : CellMoments
        Of the numerator and the denominator of the mean; one cell for each category.
    df : float
        Degrees of freedom of the covariance.
    pilot : float, default 0
        What was taken from every numerator.

    Returns
    -------
    DesignMeans
    """
    total, size = moments.total.T
    value = total / size
    slope, level = np.diag(1.0 / size), -np.diag(value / size)
    covariance = linear_covariance(moments, [slope, level])
    return DesignMeans(value=pilot + value, covariance=covariance, df=df, n=moments.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignMeans:
    """Means of k categories with the covariance of a survey design.

    Parameters
    ----------
    value : array of shape (k,)
        The means.
    covariance : array of shape (k, k)
        Under the design.
    df : float
        Degrees of freedom of the design.
    n : array of shape (k,)
        Rows.
    """

    value: FloatArray
    covariance: FloatArray
    df: float
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
        return DesignPairs(
            first=self.value[first],
            second=self.value[second],
            first_variance=self.variance[first],
            second_variance=self.variance[second],
            covariance=self.covariance[first, second],
            df=self.df,
            scale=scale,
        )

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
    first, second : array of shape (e,)
        The two means of each pair.
    first_variance, second_variance, covariance : array of shape (e,)
        Of the two means under the design.
    df : float or array of shape (e,)
        Degrees of freedom.
    scale : {"difference", "ratio"}
        Whether the hypothesised value is a difference or a ratio.
    """

    first: FloatArray
    second: FloatArray
    first_variance: FloatArray
    second_variance: FloatArray
    covariance: FloatArray
    df: FloatArray | float
    scale: Scale

    @property
    def estimate(self) -> FloatArray:
        """Differences or ratios."""
        if self.scale == "difference":
            return self.first - self.second
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.first / self.second

    @property
    def se(self) -> FloatArray:
        """Standard errors of the estimates."""
        rate = self.estimate if self.scale == "ratio" else np.ones_like(self.first)
        unit = np.abs(self.second) if self.scale == "ratio" else np.ones_like(self.first)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sqrt(self._contrast(np.ones_like(rate), rate)[1]) / unit

    def root(self, null: FloatArray) -> FloatArray:
        """Signed root of each pair on the normal scale (Fieller's, for ratios).

        Parameters
        ----------
        null : array of shape (e,)
            Hypothesised values.

        Returns
        -------
        array of shape (e,)
            Zero where nothing varies: nothing is known of such a pair.
        """
        value = np.asarray(null, dtype=np.float64)
        if self.scale == "ratio":
            gap, variance = self._contrast(*fieller_coefficients(value))
        else:
            one = np.ones_like(value)
            gap, variance = self._contrast(one, one)
            gap = gap - value
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where((gap == 0.0) | (variance == 0.0), 0.0, gap / np.sqrt(variance))
        return normal_root(t, self.df)

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
        if self.scale == "difference":
            quantile = -special.stdtrit(self.df, special.ndtr(-np.asarray(critical)))
            reach = np.where(self.se > 0.0, quantile * self.se, np.inf)
            return self.estimate - reach, self.estimate + reach

        def root(null: FloatArray, which: IntArray) -> FloatArray:
            return self.take(which).root(null)

        with np.errstate(divide="ignore", invalid="ignore"):
            relative = self.first_variance / self.first**2 + self.second_variance / self.second**2
        return outer_ends(root, self.estimate, np.sqrt(relative), critical, scale="ratio")

    def take(self, which: IntArray) -> "DesignPairs":
        """Return some of the pairs.

        Parameters
        ----------
        which : array of int
            Their numbers.

        Returns
        -------
        DesignPairs
        """
        names = ("first", "second", "first_variance", "second_variance", "covariance")
        parts = {name: getattr(self, name)[which] for name in names}
        df = np.broadcast_to(np.asarray(self.df, dtype=np.float64), self.first.shape)[which]
        return replace(self, **parts, df=df)

    def _contrast(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        variance = a**2 * self.first_variance + b**2 * self.second_variance
        variance -= 2.0 * a * b * self.covariance
        return a * self.first - b * self.second, np.maximum(variance, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyDesign:
    """Sums of a stratified sample, and how many units every group of cells rests on.

    Parameters
    ----------
    moments : CellMoments
        Of (u, w) in K cells; the products are those of the design.
    weight : sparse matrix of shape (r, K)
        Sum of w of every primary unit in every cell; of independent rows, of every stratum.
    square : array of shape (K,), optional
        Sums of squares of w; only where rows are the units.
    rows : sparse matrix of shape (r, K)
        Rows behind `weight`.
    stratum : array of shape (r,)
        Stratum of the design.
    finite : bool
        Whether populations of strata are known.
    """

    moments: CellMoments
    weight: sparse.csr_array
    rows: sparse.csr_array
    stratum: IntArray
    square: FloatArray | None
    finite: bool

    @property
    def n_strata(self) -> int:
        """Strata of the design."""
        return int(self.stratum.max(initial=-1)) + 1

    def degrees(self, membership: Any) -> FloatArray:
        """Degrees of freedom of the variance in groups of cells: units less strata that have some.

        Parameters
        ----------
        membership : boolean matrix of shape (K, m)
            Cells that make up each group.

        Returns
        -------
        array of shape (m,)
        """
        groups = sparse.csc_array(membership, dtype=np.float64)
        inside = self.rows @ groups
        present = inside.copy()
        present.data = np.sign(present.data)
        units = (inside if self.square is not None else present).sum(axis=0)
        strata = _indicator(self.stratum).T @ present
        strata.data = np.sign(strata.data)
        return np.asarray(units - strata.sum(axis=0), dtype=np.float64)

    def effective(self, membership: Any) -> FloatArray:
        """Effective units in groups of cells.

        Parameters
        ----------
        membership : boolean matrix of shape (K, m)
            Cells that make up each group.

        Returns
        -------
        array of shape (m,)
        """
        groups = sparse.csc_array(membership, dtype=np.float64)
        inside = self.weight @ groups
        total = np.asarray(inside.sum(axis=0))
        square = (
            np.asarray((inside**2).sum(axis=0)) if self.square is None else self.square @ groups
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.nan_to_num(total**2 / square))


def design_of_cells(
    moments: CellMoments, cell: IntArray, strata: IntArray, *, population: FloatArray | None = None
) -> SurveyDesign:
    """Design of independent rows from sums by cell and stratum alone.

    Parameters
    ----------
    moments : CellMoments
        Of (u, w), in cells that lie in one stratum each.
    cell : array of shape (C,)
        Group cell of each, 0 to K - 1.
    strata : array of shape (C,)
        Its stratum, 0 to H - 1.
    population : array of shape (C,), optional
        Rows of its stratum in the population.

    Returns
    -------
    SurveyDesign
    """
    size, p = int(cell.max()) + 1, moments.total.shape[1]
    units = np.bincount(strata, moments.n)
    factor = _factors(units, strata, population, "raise")
    total = np.zeros((len(units), size, p))
    np.add.at(total, (strata, cell), moments.total)
    own = np.zeros((size, p, p))
    np.add.at(own, cell, moments.product * factor[strata][:, None, None])
    flat = total.reshape(len(units), -1)
    product = -((flat * (factor / units)[:, None]).T @ flat).reshape(size, p, size, p)
    product[np.arange(size), :, np.arange(size), :] += own
    place = (moments.n, (strata, cell))
    return SurveyDesign(
        moments=_cells(np.bincount(cell, moments.n, size), total.sum(axis=0), product, units.sum()),
        weight=sparse.csr_array((moments.total[:, 1], (strata, cell)), shape=(len(units), size)),
        rows=sparse.csr_array(place, shape=(len(units), size), dtype=np.float64),
        stratum=np.arange(len(units)),
        square=np.bincount(cell, moments.product[:, 1, 1], size).astype(np.float64),
        finite=population is not None,
    )


def design_of_rows(
    u: FloatArray,
    w: FloatArray,
    cell: IntArray,
    *,
    strata: IntArray,
    cluster: IntArray,
    population: FloatArray | None = None,
) -> SurveyDesign:
    """Design of clusters, from rows.

    Parameters
    ----------
    u, w : array of shape (n,)
        Numerator and denominator of the metric, weights multiplied in.
    cell : array of shape (n,)
        Cell of each row, 0 to K - 1.
    strata, cluster : array of shape (n,)
        Stratum and primary unit of each row.
    population : array of shape (n,), optional
        Units of its stratum in the population.

    Returns
    -------
    SurveyDesign
    """
    unit, of_unit = _units(strata, cluster)
    moments = survey_moments(
        np.column_stack([u, w]), cell, strata=strata, cluster=cluster, population=population
    )
    shape = (len(of_unit), len(moments.n))
    return SurveyDesign(
        moments=moments,
        weight=sparse.csr_array((w, (unit, cell)), shape=shape),
        rows=sparse.csr_array((np.ones(len(w)), (unit, cell)), shape=shape),
        stratum=of_unit,
        square=None,
        finite=population is not None,
    )


def _cells(n: AnyArray, total: FloatArray, product: FloatArray, n_units: float) -> CellMoments:
    """Cells with the products of a design; every pair of cells has one."""
    size = len(n)
    first, second = np.triu_indices(size, k=1)
    return CellMoments(
        n=np.asarray(n).round().astype(np.int64),
        total=total,
        product=product[np.arange(size), :, np.arange(size), :],
        n_units=int(n_units),
        cross=CrossMoments(first=first, second=second, product=product[first, :, second, :]),
    )


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
            "Merge strata."
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


FEW_EVENTS = 5.0
"""Effective ones or zeros below which a rate of a survey is not tested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyLaw:
    """Student's law of every group beside its target.

    Parameters
    ----------
    pairs : DesignPairs
        Means of groups and targets.
    tested : array of shape (m,)
        Which groups have a test.
    """

    pairs: DesignPairs
    tested: BoolArray

    @property
    def method(self) -> AnyArray:
        """Name of the test of each group."""
        return np.full(len(self.tested), "survey", dtype=object)

    def signed_root(self, null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG002
        """Roots at `null` of the groups numbered `which`.

        Parameters
        ----------
        null : array of shape (len(which),)
            Hypothesised disparities.
        which : array of int
            Numbers of the groups.
        tail : {1, -1}
            Does not matter: the law is continuous.

        Returns
        -------
        array of shape (len(which),)
        """
        return self.pairs.take(which).root(null)

    def interval(self, critical: float) -> tuple[FloatArray, FloatArray]:
        """Disparities whose roots are at most `critical` in size.

        Parameters
        ----------
        critical : float
            1.96 for a 95% interval.

        Returns
        -------
        low, high : array of shape (m,)
        """
        low, high = np.full((2, len(self.tested)), np.nan)
        which = np.flatnonzero(self.tested)
        if len(which):
            low[which], high[which] = self.pairs.take(which).interval(critical)
        return low, high


def survey_disparities(
    design: SurveyDesign,
    membership: Any,
    target: Target,
    *,
    scale: Scale = "difference",
    confidence_level: float = 0.95,
    n: AnyArray | None = None,
    zero_one: bool = False,
) -> Disparities:
    """Estimate and test the disparity of every group under a survey design.

    Variances are those of linearised domain means, as in R's survey (Lumley 2004); degrees of
    freedom are the units less the strata of the side that has fewer.

    Parameters
    ----------
    design : SurveyDesign
        Sums with the products of the design.
    membership : boolean matrix of shape (K, m)
        Cells that make up each group.
    target : Target
        What groups are compared with.
    scale : {"difference", "ratio"}
        Group minus target, or group over target.
    confidence_level : float, default 0.95
        Of the intervals.
    n : array of shape (K,), optional
        Rows on which the metric is defined.
    zero_one : bool, default False
        Whether the metric is a rate: its means are far from normal where ones or zeros are few, and
        such groups have no test.

    Returns
    -------
    Disparities
    """
    c = compare(design.moments, membership, target, scale=scale, n=n)
    groups = sparse.csc_array(membership, dtype=np.float64)
    mask = _targets(target, design, groups)
    status = np.full(len(c.n), "ok", dtype="<U13")
    df, effective = (
        np.minimum(measure(groups), measure(mask)) if target.estimated else measure(groups)
        for measure in (design.degrees, design.effective)
    )
    pairs = _pairs(c, target, np.maximum(df, 1.0))
    with np.errstate(invalid="ignore"):
        flat = ~(pairs.se > 1e-7 * np.abs(pairs.first))
    # A side that does not vary in the sample would look as if it were known.
    flat |= ~(pairs.first_variance > 0.0)
    if target.estimated:
        flat |= ~(pairs.second_variance > 0.0)
    status[flat | ~np.isfinite(c.estimate)] = "degenerate"
    if zero_one:
        own = design.effective(groups) * _rarer(c.group_value)
        other = design.effective(mask) * _rarer(c.target_value) if target.estimated else own
        status[np.minimum(own, other) < FEW_EVENTS] = "rare"
    status[(effective < MIN_UNITS - 1e-9) | (df < 1.0)] = "too_few_units"
    if target.estimated:
        status[~(c.target[:, 1] > 0)] = "empty"
    status[c.same] = "vacuous"
    status[~(c.group[:, 1] > 0)] = "empty"
    tested = status == "ok"
    law = SurveyLaw(pairs=pairs, tested=tested)
    low, high = law.interval(float(special.ndtri((1.0 + confidence_level) / 2.0)))
    null = 1.0 if scale == "ratio" else 0.0
    which = np.flatnonzero(tested)
    root = np.full(len(tested), np.nan)
    root[which] = law.signed_root(np.full(len(which), null), which, 1)
    bounded = np.isfinite(low) & np.isfinite(high)
    return Disparities(
        estimate=c.estimate,
        se=pairs.se,
        group_value=c.group_value,
        target_value=c.target_value,
        n=c.n,
        n_target=c.n_target,
        null=null,
        statistic=root**2,
        p_value=2.0 * special.ndtr(-np.abs(root)),
        ci_low=low,
        ci_high=high,
        confidence_level=confidence_level,
        status=np.where(tested & ~bounded, "unbounded", status),
        method=np.where(tested, law.method, "none").astype(object),
        units=None,
        plug_in_weight=np.ones(len(c.n)),
        _law=law,
        _cells=GroupedCells(
            moments=design.moments, membership=membership, target=target, comparison=c
        ),
    )


def _rarer(rate: FloatArray) -> FloatArray:
    """Share of ones or of zeros, whichever are fewer."""
    return np.nan_to_num(np.minimum(rate, 1.0 - rate))


def _targets(target: Target, design: SurveyDesign, groups: Any) -> Any:
    """Cells of the target of every group, (K, m)."""
    if target.kind == "rest":
        return sparse.csc_array(1.0 - groups.toarray())
    mask = target_mask(target, design.moments)
    return sparse.csc_array(np.repeat(mask[:, None], groups.shape[1], axis=1))


def _pairs(c: Comparison, target: Target, df: FloatArray) -> DesignPairs:
    """Means of groups and targets with their variances, from residuals at those means."""

    def variance(
        product: FloatArray, one: tuple[FloatArray, FloatArray], two: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        (value, size), (other, whole) = one, two
        residual = product[:, 0, 0] - other * product[:, 0, 1] - value * product[:, 1, 0]
        residual += value * other * product[:, 1, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(residual / (size * whole))

    group, fixed = (c.group_value, c.group[:, 1]), np.zeros(len(c.n))
    own = variance(c.group_group, group, group)
    if not target.estimated:
        known = np.full(len(c.n), c.target_variance)
        parts = {"second_variance": known, "covariance": fixed}
    else:
        other = (c.target_value, c.target[:, 1])
        parts = {
            "second_variance": variance(c.target_target, other, other),
            "covariance": variance(c.group_target, group, other),
        }
    return DesignPairs(
        first=c.group_value,
        second=c.target_value,
        first_variance=own,
        df=df,
        scale=c.scale,
        **parts,
    )
