r"""The law of a contrast of means when independent units are few.

Every audit made of means compares *sides*: a group, its rest, an arm of a group. A contrast
:math:`\sum_s c_s \mu_s` is studentised with unbiased variances of the sides; the skewness of its
law is taken out with a third moment that is mostly borrowed from all sides of the same kind; the
result is compared with t on Bell-McCaffrey and Satterthwaite degrees of freedom and mapped to the
normal scale. That root z serves p-values, one-sided tests, equivalence tests, intervals and joint
tests alike, so that none of them contradicts another. Sums over units are all it needs.

Nothing is tested with fewer than four effective units on a side.

References
----------
.. [1] R. M. Bell and D. F. McCaffrey (2002), Bias reduction in standard errors for linear
   regression with multi-stage samples, Survey Methodology 28, 169-181.
.. [2] P. Hall (1992), On the removal of skewness by transformation, Journal of the Royal
   Statistical Society B 54, 221-228. https://doi.org/10.1111/j.2517-6161.1992.tb01876.x
.. [3] X.-H. Zhou and P. Dinh (2005), Nonparametric confidence intervals for the one- and
   two-sample problems, Biostatistics 6, 187-200. https://doi.org/10.1093/biostatistics/kxi002
.. [4] J. E. Pustejovsky and E. Tipton (2018), Small-sample methods for cluster-robust variance
   estimation and hypothesis testing in fixed effects models, Journal of Business and Economic
   Statistics 36, 672-683. https://doi.org/10.1080/07350015.2016.1247004
.. [5] M. B. Brown and A. B. Forsythe (1974), The small sample behavior of some statistics which
   test the equality of several means, Technometrics 16, 129-132.
   https://doi.org/10.1080/00401706.1974.10489158
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import special

from equipoise._checks import check_option
from equipoise._typing import AnyArray, BoolArray, FloatArray
from equipoise.stats.unit_sums import CrossSums, UnitSums

__all__ = [
    "LARGEST_SKEWNESS",
    "MIN_DF",
    "MIN_UNITS",
    "VERY_SKEWED",
    "Contrast",
    "ContrastLaw",
    "JointTest",
    "Links",
    "Shape",
    "ShapeRule",
    "combine",
    "contrast_law",
    "influence_correlation",
    "joint_bonferroni",
    "joint_test",
    "likelihood_is_long_enough",
    "normal_root",
    "one_sided_fold",
    "pooled_shape",
    "quotient",
    "shape_is_unknown",
    "shrunk_correlation",
    "side_contrast",
    "with_skewness",
    "without_skewness",
]

ShapeRule: TypeAlias = Literal["checked", "borrowed", "none"]

MIN_UNITS = 4.0
"""Effective units that each side needs."""
MIN_DF = 2.0
"""Degrees of freedom that the variance of each side needs."""

# Units, and rare events, at which a side's own variance and skewness count as much as the borrowed.
_BORROW, _BORROW_EVENTS = 100.0, 10.0
# A side that happens not to vary has at least this part of the pooled variance, up to 20 units.
_FLOOR, _FLOOR_UNITS = 0.25, 20.0
LARGEST_SKEWNESS = 0.6
"""Skewness of an estimate beyond which no more is taken out."""
# Own and borrowed skewness may differ by half a standard error before the own one is heard.
_DOUBT = 0.5
_SMALLEST_TAIL = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Variance and skewness of unit means, pooled over sides of one kind.

    Parameters
    ----------
    variance, skewness : array
        Of the mean of a unit.
    n : array
        Units that they come from.
    """

    variance: FloatArray
    skewness: FloatArray
    n: FloatArray

    def expand(self, axis: int = -1) -> "Shape":
        """The same shape with one more axis, to go with several sides."""
        return Shape(
            variance=np.expand_dims(self.variance, axis),
            skewness=np.expand_dims(self.skewness, axis),
            n=np.expand_dims(self.n, axis),
        )


def pooled_shape(sums: UnitSums, *, axis: int = -1) -> Shape:
    """Pool variance and skewness within sides.

    Parameters
    ----------
    sums : UnitSums
        Sides of one kind: all groups of a metric, or one arm in all groups.
    axis : int, default -1
        The axis of sides.

    Returns
    -------
    Shape

    Examples
    --------
    >>> import numpy as np
    >>> sums = UnitSums.from_rows([1.0, 2.0, 3.0, 10.0, 14.0], np.ones(5), [0, 0, 0, 1, 1])
    >>> float(pooled_shape(sums).variance.round(4))  # (2 + 8) / (2 + 1)
    3.3333
    """
    n2, n3 = sums.n**2, sums.n**3
    variance = quotient(
        np.nansum(n2 * sums.scatter, axis=axis), (n2 * sums.variance_factor).sum(axis=axis)
    )
    third = quotient(
        np.nansum(n3 * sums.third_scatter, axis=axis), (n3 * sums.third_factor).sum(axis=axis)
    )
    return Shape(
        variance=variance, skewness=quotient(third, variance**1.5), n=sums.n.sum(axis=axis)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    r"""An estimate :math:`\sum c_s \mu_s` and the cumulants that its law is made of.

    Contrasts of independent sides add; a factor multiplies each term by its own power. So
    ``(group - rest) * 0.9`` reads like the formula and carries everything along.

    Parameters
    ----------
    estimate : array
        The contrast.
    variance : array
        Its estimated variance: unbiased, and at least part of the pooled one.
    model_variance : array
        Its variance with that of the sides drawn towards the pooled one; for the degrees of
        freedom.
    shape_variance, shape_third : array
        Second and third cumulant with the shape borrowed, the variance wholly. An outlier raises
        the mean and the variance of its side together; were the skewness of the contrast to follow
        that variance, it would favour the side of the outlier.
    satterthwaite : array
        Sum of (model variance of a side)^2 over its degrees of freedom.
    own_variance, own_third, own_third_variance : array
        Cumulants from the sides alone, and the sampling variance of the third for normal values.
    scatter : array
        Variance without any correction; needed where units span sides.
    n_units, n_eff, df : array
        Smallest number of units, effective units and degrees of freedom of a side.
    """

    estimate: FloatArray
    variance: FloatArray
    model_variance: FloatArray
    shape_variance: FloatArray
    shape_third: FloatArray
    satterthwaite: FloatArray
    own_variance: FloatArray
    own_third: FloatArray
    own_third_variance: FloatArray
    scatter: FloatArray
    n_units: FloatArray
    n_eff: FloatArray
    df: FloatArray

    @classmethod
    def constant(cls, value: AnyArray | float, *, se: AnyArray | float = 0.0) -> "Contrast":
        """A known number, or an estimate from another sample with its standard error."""
        value, variance = np.asarray(value, np.float64), np.asarray(se, np.float64) ** 2
        zero, many = np.zeros_like(variance), np.full_like(variance, np.inf)
        return cls(
            estimate=value,
            variance=variance,
            model_variance=variance,
            shape_variance=variance,
            shape_third=zero,
            satterthwaite=zero,
            own_variance=variance,
            own_third=zero,
            own_third_variance=zero,
            scatter=variance,
            n_units=many,
            n_eff=many,
            df=many,
        )

    def __add__(self, other: "Contrast") -> "Contrast":
        terms = {name: getattr(self, name) + getattr(other, name) for name in _DEGREE}
        least = {name: np.minimum(getattr(self, name), getattr(other, name)) for name in _LEAST}
        return Contrast(**terms, **least)

    def __sub__(self, other: "Contrast") -> "Contrast":
        return self + other * -1.0

    def __mul__(self, factor: AnyArray | float) -> "Contrast":
        c = np.asarray(factor, np.float64)
        # A side that does not enter may be empty, and then has no mean.
        used = c != 0
        with np.errstate(invalid="ignore"):
            terms = {
                name: np.where(used, getattr(self, name) * c**degree, 0.0)
                for name, degree in _DEGREE.items()
            }
        least = {name: np.where(used, getattr(self, name), np.inf) for name in _LEAST}
        return Contrast(**terms, **least)

    def __getitem__(self, index: Any) -> "Contrast":
        return Contrast(**{name: getattr(self, name)[index] for name in (*_DEGREE, *_LEAST)})

    def reshape(self, *shape: int) -> "Contrast":
        """The same contrasts in arrays of another shape."""
        terms = {name: getattr(self, name).reshape(shape) for name in (*_DEGREE, *_LEAST)}
        return Contrast(**terms)

    def sum(self, axis: int = -1) -> "Contrast":
        """Sum of independent contrasts along an axis."""
        terms = {name: getattr(self, name).sum(axis=axis) for name in _DEGREE}
        least = {name: getattr(self, name).min(axis=axis) for name in _LEAST}
        return Contrast(**terms, **least)

    def without(self, part: "Contrast") -> "Contrast":
        """The other summands of a sum that contains `part`."""
        terms = {name: getattr(self, name) - getattr(part, name) for name in _DEGREE}
        return replace(self, **terms)


_DEGREE = {
    "estimate": 1,
    "variance": 2,
    "model_variance": 2,
    "shape_variance": 2,
    "shape_third": 3,
    "satterthwaite": 4,
    "own_variance": 2,
    "own_third": 3,
    "own_third_variance": 6,
    "scatter": 2,
}
_LEAST = ("n_units", "n_eff", "df")


def side_contrast(sums: UnitSums, shape: Shape, *, events: float = 1.0) -> Contrast:
    r"""Mean of a side, with its cumulants.

    With h = w / sum of w and :math:`s_k = \sum h^k`, the variance of the mean is
    :math:`v s_2` and its third cumulant :math:`\kappa s_3`, when the means of units have variance v
    and third cumulant :math:`\kappa`. Side and pool share the word in proportion n to 100 + 10
    skewness^2, that of the pool: of rare events a side tells no more than those that it has.

    A side of rare events that happens to have none, or few, is estimated to vary least exactly when
    its mean is farthest from the truth. One event is expected among about 1 + skewness^2 units; of
    n effective units a side therefore has at least the part m / (m + n) of the pooled variance, m =
    `events` (1 + skewness^2).

    Parameters
    ----------
    sums : UnitSums
        Sums of each side.
    shape : Shape
        Of the sides of the same kind; broadcasts against `sums`.
    events : float, default 1
        Events that count for the pooled variance beside those of the side.

    Returns
    -------
    Contrast

    Examples
    --------
    The variance of the mean of 1, 2, 6 is 7 / 3.

    >>> sums = UnitSums.from_rows([1.0, 2.0, 6.0], [1.0, 1.0, 1.0], [0, 0, 0])
    >>> side_contrast(sums, pooled_shape(sums)).variance.round(4).tolist()
    [2.3333]
    """
    s2, s3 = np.nan_to_num(sums.share(2)), np.nan_to_num(sums.share(3))
    n_eff, df = sums.n_eff, sums.df
    v = quotient(sums.scatter, sums.variance_factor)
    third = quotient(sums.third_scatter, sums.third_factor)
    own = sums.n / (sums.n + _BORROW + _BORROW_EVENTS * shape.skewness**2)
    pooled = np.broadcast_to(shape.variance, v.shape)
    model = own * v + (1.0 - own) * pooled
    skewness = own * quotient(third, v**1.5) + (1.0 - own) * shape.skewness
    rare = events * (1.0 + shape.skewness**2) * s2
    floor = np.maximum(_FLOOR * np.minimum(1.0, _FLOOR_UNITS * s2), rare / (1.0 + rare))
    floor *= shape.variance
    spread = model * s2
    size = np.maximum(n_eff, 3.01)
    noise = 6.0 * size / ((size - 1.0) * (size - 2.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        satterthwaite = np.where(spread > 0, spread**2 / df, 0.0)
    return Contrast(
        estimate=sums.mean,
        variance=np.maximum(v, floor) * s2,
        model_variance=spread,
        shape_variance=pooled * s2,
        shape_third=skewness * pooled**1.5 * s3,
        satterthwaite=satterthwaite,
        own_variance=v * s2,
        own_third=third * s3,
        own_third_variance=noise * v**3 * s3**2,
        scatter=sums.scatter,
        n_units=sums.n,
        n_eff=n_eff,
        df=df,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """What units that have rows in two sides add to the law of a contrast.

    Parameters
    ----------
    scatter : array of shape (..., S, S)
        Covariance of the means of two sides, without correction; zero diagonal.
    satterthwaite : array of shape (..., S, S)
        How much their variance estimates share, over the root of their degrees; zero diagonal.
    """

    scatter: FloatArray
    satterthwaite: FloatArray

    @classmethod
    def between(cls, sides: UnitSums, cross: CrossSums) -> "Links":
        """Links of S sides.

        Parameters
        ----------
        sides : UnitSums
            Arrays of shape (..., S).
        cross : CrossSums
            Arrays of shape (..., S, S) with the same centre.

        Returns
        -------
        Links
        """
        m, size = np.nan_to_num(sides.offset), sides.w
        rows, columns = m[..., :, None], m[..., None, :]
        turned = np.swapaxes(cross.uw, -1, -2)
        product = cross.uu - columns * cross.uw - rows * turned + rows * columns * cross.ww
        apart = ~np.eye(m.shape[-1], dtype=bool)
        # A side of one unit has no degrees of freedom, one of none no weights.
        q = np.sqrt(np.maximum(np.nan_to_num(sides.w4 * sides.df), 0.0))
        # By Cauchy and Schwarz; rounding alone would link a side that does not vary.
        sd = np.sqrt(np.maximum(np.nan_to_num(sides.scatter), 0.0))
        largest = sd[..., :, None] * sd[..., None, :]
        scatter = quotient(product, size[..., :, None] * size[..., None, :])
        shared = quotient(cross.w2w2, q[..., :, None] * q[..., None, :])
        return cls(
            scatter=np.where(apart, np.clip(scatter, -largest, largest), 0.0),
            satterthwaite=np.where(apart, shared, 0.0),
        )


def combine(sides: Contrast, coefficients: AnyArray, links: Links | None = None) -> Contrast:
    r"""Return :math:`\sum_s c_s \mu_s`.

    Parameters
    ----------
    sides : Contrast
        Means of S sides, arrays of shape (..., S).
    coefficients : array of shape (..., S)
        One row for each contrast.
    links : Links, optional
        When units have rows in several sides.

    Returns
    -------
    Contrast

    Notes
    -----
    With links the variance is :math:`\sum_i \varphi_i^2` over units, :math:`\varphi_i = \sum_s c_s
    e_{is} / W_s`, inflated as the variances of the sides are; when all units are in all sides alike
    the degrees of freedom are n - 1.
    """
    c = np.asarray(coefficients, np.float64)
    total = (sides * c).sum()
    if links is None:
        return total
    spread = np.where(c != 0, c**2 * sides.model_variance, 0.0)
    shared = np.einsum("...s,...st,...t->...", c, links.scatter, c)
    overlap = np.einsum("...s,...st,...t->...", spread, links.satterthwaite, spread)
    inflation = np.maximum(1.0 + quotient(shared, total.scatter), 0.0)
    return replace(
        total,
        variance=total.variance * np.where(inflation > 1e-12, inflation, 0.0),
        satterthwaite=total.satterthwaite + overlap,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastLaw:
    """Tests and intervals of contrasts.

    Parameters
    ----------
    estimate, se, df : array
        The contrast, its standard error and its degrees of freedom.
    low, high : array
        Range of the skewness that is taken out; the more cautious end counts.
    n_units, n_eff : array
        Of the smaller side.
    status : array of str
        "ok"; "empty": a side without units; "too-few-units"; "no-variation".
    """

    estimate: FloatArray
    se: FloatArray
    df: FloatArray
    low: FloatArray
    high: FloatArray
    n_units: FloatArray
    n_eff: FloatArray
    status: AnyArray

    @property
    def tested(self) -> BoolArray:
        """True where there is a law."""
        return np.asarray(self.status == "ok")

    @property
    def shape(self) -> AnyArray:
        """How skewness was taken out: "checked", "borrowed" or "none"."""
        return np.where(
            self.low < self.high, "checked", np.where(self.low == 0.0, "none", "borrowed")
        )

    def root(self, null: AnyArray | float = 0.0) -> FloatArray:
        """Test statistic on the normal scale; NaN where nothing is tested.

        Parameters
        ----------
        null : float or array, default 0
            Hypothesised contrast.

        Returns
        -------
        array
            Decreasing in `null`; one-sided p-values are the normal tails beyond it.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            t = (self.estimate - null) / self.se
            up = np.maximum(without_skewness(t, self.low), 0.0)
            down = np.minimum(without_skewness(t, self.high), 0.0)
            root = normal_root(np.where(t > 0, up, down), self.df)
        return np.where(self.tested, root, np.nan)

    def interval(self, critical: AnyArray | float) -> tuple[FloatArray, FloatArray]:
        """Contrasts that are not rejected.

        Parameters
        ----------
        critical : float
            Largest absolute root that is not rejected: 1.96 for a marginal 95% interval.

        Returns
        -------
        low, high : array
            Infinite on a side where skewness leaves no bound; NaN where nothing is tested.
        """
        q = -special.stdtrit(self.df, special.ndtr(-np.asarray(critical, np.float64)))
        with np.errstate(invalid="ignore"):
            low = self.estimate - self.se * with_skewness(q, self.low)
            high = self.estimate - self.se * with_skewness(-q, self.high)
        return np.where(self.tested, low, np.nan), np.where(self.tested, high, np.nan)


def contrast_law(
    contrast: Contrast, *, shape: ShapeRule = "checked", plausible: AnyArray | float = np.nan
) -> ContrastLaw:
    r"""Studentise a contrast and take out its skewness.

    Parameters
    ----------
    contrast : Contrast
        Estimates and cumulants.
    shape : {"checked", "borrowed", "none"}
        "borrowed": the skewness :math:`\lambda` of the model. "checked": also the nearest value
        within half a standard error of the contrast's own skewness, and all between; the smallest
        absolute root counts. "none": t without a correction for skewness.
    plausible : array, default NaN
        A skewness that is in the range of "checked" too: none at all where the shape is not
        borrowed from others, so that it checks nothing. NaN is none.

    Returns
    -------
    ContrastLaw

    Notes
    -----
    :math:`g(T) = \frac{3}{2 \lambda} (e^{2 \lambda T / 3} - 1) + \lambda / 6` is the exponential
    transformation of [3]_ of the module, monotone for every :math:`\lambda`, unlike the cubic of
    [2]_.

    Examples
    --------
    Do 1, 2, 4, 5, 8 and 2, 9, 11, 14 have the same mean? Without shape this is Welch's test with
    more degrees of freedom, because nothing here says that the variances differ.

    >>> import numpy as np
    >>> sums = UnitSums.from_rows([1.0, 2, 4, 5, 8, 2, 9, 11, 14], np.ones(9), [0] * 5 + [1] * 4)
    >>> sides = side_contrast(sums, pooled_shape(sums))
    >>> law = contrast_law(combine(sides, np.array([-1.0, 1.0])), shape="none")
    >>> [round(float(x), 3) for x in (law.estimate, law.se, law.df)]
    [5.0, 2.828, 6.489]
    """
    check_option("shape", shape, ShapeRule)
    c = contrast
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(c.satterthwaite > 0, c.model_variance**2 / c.satterthwaite, np.inf)
    low = high = np.zeros_like(c.variance)
    if shape != "none":
        limit = LARGEST_SKEWNESS
        low = high = np.clip(quotient(c.shape_third, c.shape_variance**1.5), -limit, limit)
    if shape == "checked":
        own = quotient(c.own_third, c.own_variance**1.5)
        doubt = _DOUBT * np.sqrt(quotient(c.own_third_variance, c.own_variance**3))
        heard = np.clip(np.clip(low, own - doubt, own + doubt), -limit, limit)
        heard = np.where(c.own_variance > 0, heard, low)
        low, high = np.minimum(low, heard), np.maximum(high, heard)
        also = np.clip(plausible, -limit, limit)
        low, high = np.fmin(low, also), np.fmax(high, also)
    status = np.select(
        [
            c.n_units == 0,
            # Equal weights give 4 effective units up to rounding.
            (c.n_eff < MIN_UNITS - 1e-9) | ~(c.df >= MIN_DF - 1e-9),
            ~(c.variance > 0),
        ],
        ["empty", "too-few-units", "no-variation"],
        "ok",
    )
    return ContrastLaw(
        estimate=c.estimate,
        se=np.sqrt(c.variance),
        df=df,
        low=low,
        high=high,
        n_units=c.n_units,
        n_eff=c.n_eff,
        status=status,
    )


def normal_root(t: AnyArray, df: AnyArray | float) -> FloatArray:
    """Map a statistic with a t law to the normal scale, tail by tail.

    The square of the statistic has the law F(1, df): an empirical likelihood root gets the F law in
    place of chi-square in this way.

    Parameters
    ----------
    t : array
        Statistic.
    df : array
        Degrees of freedom; infinite leaves it as it is.

    Returns
    -------
    array

    Examples
    --------
    >>> normal_root(np.array([2.776, -2.776]), 4.0).round(2).tolist()
    [1.96, -1.96]
    """
    t = np.asarray(t, np.float64)
    tail = np.maximum(special.stdtr(df, -np.abs(t)), _SMALLEST_TAIL)
    return np.asarray(np.sign(t) * -special.ndtri(tail))


def likelihood_is_long_enough(n_eff: AnyArray | float, skewness: AnyArray | float) -> BoolArray:
    """Whether empirical likelihood with the F law is as good as the root from sums.

    Parameters
    ----------
    n_eff : array
        Effective units of the smaller side.
    skewness : array
        Largest absolute skewness of unit means in a side.

    Returns
    -------
    array of bool
        From 20 effective units on both sides and a skewness of the mean of at most 0.2;
        elsewhere intervals are too short.
    """
    size = np.asarray(n_eff, np.float64)
    return (size >= 20.0) & (np.abs(skewness) <= 0.2 * np.sqrt(size))


def shape_is_unknown(n_pool: AnyArray | float, n_eff: AnyArray | float) -> BoolArray:
    """Whether there was too little to borrow a shape from.

    Parameters
    ----------
    n_pool : array
        Units of the pooled shape.
    n_eff : array
        Effective units of the smaller side.

    Returns
    -------
    array of bool
        Below 50 units of the same kind and 30 on a side: right only if values are not very skewed.
    """
    return (np.asarray(n_pool) < 50.0) & (np.asarray(n_eff) < 30.0)


VERY_SKEWED = 4.0
"""Skewness that a sample of exponential values hardly ever has."""
_FOLDS = ((0, 5.0, 5.0), (20, 3.0, 5.0), (40, 2.0, 5.0), (100, 1.5, 4.0), (200, 1.25, 3.0),
          (500, 1.25, 2.0), (1000, 1.25, 1.75))  # fmt: skip


def one_sided_fold(n_eff: AnyArray | float, skewness: AnyArray | float = 0.0) -> FloatArray:
    """How many fold p-values of one side count where the shape of values is not known.

    Parameters
    ----------
    n_eff : array
        Effective units of the smaller side.
    skewness : array, default 0
        Largest absolute skewness of unit means in a side.

    Returns
    -------
    array
        From 5 with the fewest to 1.25 from 200 units on, and more for a skewness of 4 or more:
        what is left is in tests/calibration/noted_rates.py.

    Examples
    --------
    >>> one_sided_fold([12.0, 20.0, 500.0]).tolist()
    [5.0, 3.0, 1.25]
    >>> one_sided_fold(500.0, 6.0).tolist()
    2.0
    """
    units, plain, skewed = np.array(_FOLDS).T
    row = np.searchsorted(units[1:], np.nan_to_num(n_eff), side="right")
    return np.asarray(np.where(np.asarray(skewness) >= VERY_SKEWED, skewed[row], plain[row]))


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTest:
    """One test of several contrasts.

    Parameters
    ----------
    statistic : array
        Chi-square with `df` degrees of freedom; the smallest p-value with "bonferroni".
    df : array
        Degrees of freedom, or number of tests with "bonferroni".
    p_value : array
        NaN when nothing is tested.
    method : {"sum_of_squares", "bonferroni"}
        How the tests were put together.
    """

    statistic: FloatArray
    df: FloatArray
    p_value: FloatArray
    method: Literal["sum_of_squares", "bonferroni"]


def joint_test(root: AnyArray, *, share: AnyArray | None = None) -> JointTest:
    r"""Test that all contrasts are zero, from their roots.

    Parameters
    ----------
    root : array of shape (..., G)
        Roots of groups that make up a partition, against a known target, or each against the
        others; NaN is not tested and does not count.
    share : array of shape (..., G), optional
        Sizes of the groups when each is compared with the others or with all.

    Returns
    -------
    JointTest

    Notes
    -----
    :math:`\sum (1 - a_g) z_g^2` with the shares :math:`a_g`, as in [5]_ of the module; exactly
    chi-square with G - 1 degrees of freedom for known equal variances. Two groups give the p-value
    of their difference.

    Examples
    --------
    >>> test = joint_test(np.array([2.1, -2.1]), share=np.array([30.0, 70.0]))
    >>> round(float(test.statistic), 2), float(test.df)
    (4.41, 1.0)
    """
    z = np.asarray(root, np.float64)
    tested = np.isfinite(z)
    square = np.where(tested, z, 0.0) ** 2
    count = tested.sum(axis=-1).astype(np.float64)
    if share is None:
        statistic, df = square.sum(axis=-1), count
    else:
        size = np.where(tested, share, 0.0)
        part = quotient(size, size.sum(axis=-1, keepdims=True))
        statistic, df = ((1.0 - part) * square).sum(axis=-1), count - 1.0
    with np.errstate(invalid="ignore"):
        p = np.where(df > 0, special.chdtrc(np.maximum(df, 1.0), statistic), np.nan)
    return JointTest(
        statistic=np.asarray(statistic), df=np.asarray(df), p_value=p, method="sum_of_squares"
    )


def joint_bonferroni(root: AnyArray) -> JointTest:
    """Test that all contrasts are zero when groups overlap in any way.

    Parameters
    ----------
    root : array of shape (..., G)
        Roots; NaN is not tested and does not count.

    Returns
    -------
    JointTest

    Examples
    --------
    >>> round(float(joint_bonferroni(np.array([2.5, 0.3])).p_value), 3)
    0.025
    """
    p = 2.0 * special.ndtr(-np.abs(np.asarray(root, np.float64)))
    count = np.isfinite(p).sum(axis=-1).astype(np.float64)
    smallest = np.where(np.isfinite(p), p, 1.0).min(axis=-1, initial=1.0)
    return JointTest(
        statistic=np.where(count > 0, smallest, np.nan),
        df=count,
        p_value=np.where(count > 0, np.minimum(smallest * count, 1.0), np.nan),
        method="bonferroni",
    )


def influence_correlation(
    sides: Contrast, coefficients: AnyArray, links: Links | None = None
) -> FloatArray:
    r"""Correlation of the roots of several contrasts of the same sides, for max-t.

    Parameters
    ----------
    sides : Contrast
        Means of S sides, arrays of shape (S,).
    coefficients : array of shape (m, S)
        One row for each contrast.
    links : Links, optional
        When units have rows in several sides.

    Returns
    -------
    array of shape (m, m)
        Of the influence values :math:`\sum_s c_s e_{is} / W_s`; a contrast whose influence is zero
        counts as independent of the others.
    """
    c = np.asarray(coefficients, np.float64)
    kernel = np.diag(sides.scatter)
    if links is not None:
        kernel = kernel + links.scatter
    covariance = c @ kernel @ c.T
    sd = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    correlation = quotient(covariance, np.outer(sd, sd))
    np.fill_diagonal(correlation, 1.0)
    return correlation


def shrunk_correlation(correlation: AnyArray, df: AnyArray | float) -> FloatArray:
    r"""Draw correlations that few units estimate towards zero, so that max-t keeps its level.

    Parameters
    ----------
    correlation : array of shape (m, m)
        Of the influence values.
    df : array
        Degrees of freedom of the contrasts; the smallest counts.

    Returns
    -------
    array of shape (m, m)

    Notes
    -----
    :math:`r - \frac{2}{\nu} r (1 - r^2)`: a correlation of one, of a group with its rest, stays
    one, and the matrix stays positive semi-definite (Schur's product theorem). With 5 and 10
    clusters that span 3 to 15 groups the familywise error at 5% is .043 to .060; it is .048 to .067
    without.

    Examples
    --------
    >>> shrunk_correlation(np.array([[1.0, 0.5], [0.5, 1.0]]), 4.0)
    array([[1.    , 0.3125],
           [0.3125, 1.    ]])
    """
    r = np.asarray(correlation, np.float64)
    part = min(2.0 / float(np.min(df)), 1.0)
    return np.asarray((1.0 - part) * r + part * r**3)


def without_skewness(t: FloatArray, skewness: FloatArray) -> FloatArray:
    """Monotone transformation whose law is t."""
    flat = np.abs(skewness) < 1e-6
    s = np.where(flat, 1.0, skewness)
    bent = 1.5 / s * np.expm1(2.0 * s * t / 3.0) + s / 6.0
    return np.where(flat, t + skewness * t**2 / 3.0 + skewness / 6.0, bent)


def with_skewness(g: FloatArray, skewness: FloatArray) -> FloatArray:
    """Inverse of `without_skewness`; infinite beyond its range."""
    flat = np.abs(skewness) < 1e-6
    s = np.where(flat, 1.0, skewness)
    inside = 2.0 * s / 3.0 * (g - s / 6.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bent = np.where(inside > -1.0, 1.5 / s * np.log1p(inside), -np.sign(s) * np.inf)
    straight = g - skewness / 6.0
    return np.where(flat, straight - skewness * straight**2 / 3.0, bent)


def quotient(numerator: Any, denominator: Any, otherwise: float = 0.0) -> FloatArray:
    """Return the quotient where the denominator is positive, and `otherwise` elsewhere."""
    top, bottom = np.broadcast_arrays(
        np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)
    )
    result = np.full(top.shape, otherwise)
    np.divide(top, bottom, out=result, where=bottom > 0)
    return result
