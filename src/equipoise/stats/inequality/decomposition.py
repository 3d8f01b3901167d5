r"""Inequality within and between groups, of one model or two, with the error of every part.

Everything is computed from sums over groups. In relative benefits :math:`x = b/\mu` the index is
the mean of :math:`\tilde f(x)`, and with :math:`r_g` the mean of x in group g and :math:`\pi_g` its
share,

.. math:: I = \sum_g \pi_g\{E_g\tilde f(x) - \tilde f(r_g)\} + \sum_g \pi_g \tilde f(r_g),

which is Eq. (2) of [1]_ with every term at least zero. Influence functions are linear in
:math:`(1, x, \tilde f(x))`, so that their variances follow from the second moments of these three
quantities per group: rows, clusters and weights are all the same to the formulas. Two models on the
same rows have six such quantities.

References
----------
.. [1] "Utility as fair pricing".
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from equipoise._checks import check_fraction
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments, linear_covariance, transform_quantities
from equipoise.stats.inequality.benefits import BenefitMoments
from equipoise.stats.inequality.index import (
    check_benefits,
    check_order,
    kernel,
    kernel_slope,
    mean_benefit,
)
from equipoise.stats.mixture import ChiSquareMixture

__all__ = [
    "BetweenTest",
    "EntropyDecomposition",
    "IndexDifference",
    "PairedComparison",
    "between_interval",
    "between_test",
    "compare_paired",
    "decompose",
    "influence_coefficients",
    "log_interval",
]

ROUNDING = 1e-13


@dataclass(frozen=True, slots=True, kw_only=True)
class EntropyDecomposition:
    """Index, its within- and between-group parts, and each group's share in both.

    Parameters
    ----------
    order, mean : float
        Order of the index; mean benefit.
    n : array of shape (G,)
        Rows of each group.
    total, within, between : float
        ``total = within + between``.
    total_se, within_se, between_se : float
        Standard errors from the influence functions; that of `between` is meaningless near zero,
        where `between_interval` takes over.
    between_bias, between_corrected : float
        Bias of the plug-in `between` to first order; `between` less its bias, and at least zero.
    share, relative_mean : array of shape (G,)
        Share of the population, and mean benefit of the group over that of the population.
    within_group, between_group : array of shape (G,)
        Contributions; they add up to `within` and `between`.
    within_group_se, between_root, between_root_se : array of shape (G,)
        Standard error of the first; signed square root of the second (negative below the mean) and
        its standard error.
    group_index : tuple of float or None
        Index inside each group; None where every benefit is zero.
    """

    order: float
    mean: float
    n: IntArray
    total: float
    within: float
    between: float
    total_se: float
    within_se: float
    between_se: float
    between_bias: float
    between_corrected: float
    share: FloatArray
    relative_mean: FloatArray
    within_group: FloatArray
    between_group: FloatArray
    within_group_se: FloatArray
    between_root: FloatArray
    between_root_se: FloatArray
    group_index: tuple[float | None, ...]

    def contribution_interval(
        self, group: int, *, confidence_level: float = 0.95
    ) -> tuple[float, float]:
        """Return the interval of a group's between contribution.

        Taken on the signed root, which is smooth at zero, and squared: it starts at zero exactly
        when the group's mean cannot be told from the population's.
        """
        z = _quantile(confidence_level)
        low = self.between_root[group] - z * self.between_root_se[group]
        high = self.between_root[group] + z * self.between_root_se[group]
        largest = max(abs(low), abs(high))
        smallest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
        return float(smallest**2), float(largest**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class BetweenTest:
    """Test that all groups have the same mean benefit.

    Parameters
    ----------
    statistic : float
        Twice the between component: the squared relative gaps, weighted by group size.
    p_value : float
        Probability of a larger value under equal means; one when no benefit varies.
    law : ChiSquareMixture
        Null law of `statistic`.
    """

    statistic: float
    p_value: float
    law: ChiSquareMixture


def decompose(benefits: BenefitMoments) -> EntropyDecomposition:
    r"""Split the index into its parts within and between groups, with standard errors.

    Parameters
    ----------
    benefits : BenefitMoments
        Sums by group.

    Returns
    -------
    EntropyDecomposition

    Notes
    -----
    With x the relative benefit of a row in group g, the influence functions are

    - total: :math:`\tilde f(x) - I - aI(x-1)`;
    - between: :math:`\tilde f(r_g) - I_b + \tilde f'(r_g)(x - r_g) - aI_b(x-1)`; within is the
      difference;
    - within contribution w of group h:
      :math:`1_h\{\tilde f(x) - \tilde f(r_h) - \tilde f'(r_h)(x - r_h)\} - w - aw(x-1)`;
    - between contribution c of group h:
      :math:`1_h\{\tilde f(r_h) + \tilde f'(r_h)(x - r_h)\} - c - \pi_h r_h\tilde f'(r_h)(x-1)`.

    Group sizes are random, as in a sample of the population. The plug-in between component is too
    large by half the trace of its null covariance; `between_corrected` takes that off.

    *Deviations from the paper*: centred kernel, so that the contributions of groups are at least
    zero; the paper has no sampling error.

    Examples
    --------
    Two groups with benefits (1, 3) and (2, 2): where is the inequality?

    >>> parts = decompose(BenefitMoments.from_rows([1, 3, 2, 2], [0, 0, 1, 1], order=2.0))
    >>> parts.total, parts.within, parts.between
    (0.0625, 0.0625, 0.0)

    All of it is inside the first group.
    """
    a, moments = benefits.order, benefits.moments
    whole = float(moments.total[:, 0].sum())
    share, r, f_mean = _group_means(moments)
    f_r = kernel(r, a)
    spread = np.maximum(f_mean - f_r, 0.0)
    within_group, between_group = share * spread, share * f_r
    within, between = float(within_group.sum()), float(between_group.sum())
    covariance = linear_covariance(moments, list(influence_coefficients(benefits))) / whole**2
    root, root_se, within_group_se = _group_errors(benefits, share, r, within_group)
    bias = 0.5 * _null_law(moments).mean
    se = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return EntropyDecomposition(
        order=a,
        mean=benefits.mean,
        n=moments.n,
        total=within + between,
        within=within,
        between=between,
        total_se=float(se[0]),
        within_se=float(se[1]),
        between_se=float(se[2]),
        between_bias=bias,
        between_corrected=max(between - bias, 0.0),
        share=share,
        relative_mean=r,
        within_group=within_group,
        between_group=between_group,
        within_group_se=within_group_se,
        between_root=root,
        between_root_se=root_se,
        group_index=tuple(
            float(v / m**a) if m > 0.0 else None for v, m in zip(spread, r, strict=True)
        ),
    )


def between_test(benefits: BenefitMoments) -> BetweenTest:
    r"""Test that the between-group component is zero: all groups have the same mean benefit.

    Parameters
    ----------
    benefits : BenefitMoments
        Sums by group; at least two groups with rows.

    Returns
    -------
    BetweenTest

    Notes
    -----
    Under the null :math:`2 I_b` is :math:`\sum_k \lambda_k \chi^2_1` to first order, the same for
    every order since :math:`\tilde f''(1) = 1`; the weights are the eigenvalues of the covariance
    of :math:`\sqrt{\pi_g}(r_g - 1)`. For independent rows that is :math:`D(I - ss')D/(n\mu^2)` with
    :math:`D` the standard deviations and :math:`s = \sqrt\pi`. Nothing is divided by a group's
    variance, so groups with constant benefits do no harm. A Wald test on the influence function has
    size zero for two groups, and a test with pooled variance one of 0.3 to 0.4 when variances
    differ. Without units that span groups nothing is quadratic in the number of groups; with them
    the eigenvalues of a matrix of that size are needed.

    Examples
    --------
    >>> rows = BenefitMoments.from_rows([1, 2, 1, 2, 1, 2], [0, 0, 0, 1, 1, 1], order=1.0)
    >>> round(between_test(rows).p_value, 2)
    0.39

    Six rows show no difference between the groups; they do not show that there is none.
    """
    moments = benefits.moments
    if np.count_nonzero(moments.total[:, 0] > 0.0) < 2:
        raise InvalidParameterError(
            "the between-group test needs at least two groups with rows; got"
            f" {np.count_nonzero(moments.total[:, 0] > 0.0)}."
        )
    share, r, _ = _group_means(moments)
    # Twice the component at any order tends to this; at order 2 they are equal.
    statistic = float(2.0 * np.sum(share * kernel(r, benefits.order)))
    law = _null_law(moments)
    p_value = float(statistic < 1e-12) if law.degenerate else law.sf(statistic)
    return BetweenTest(statistic=statistic, p_value=p_value, law=law)


def log_interval(
    estimate: float, se: float, *, confidence_level: float = 0.95
) -> tuple[float, float | None]:
    r"""Return the log-Wald interval :math:`I e^{\pm z\,\mathrm{se}/I}` of a positive index.

    An index of zero has no upper bound from its standard error: the second value is None.

    Examples
    --------
    >>> low, high = log_interval(0.10, 0.01)
    >>> round(low, 3), round(high, 3)
    (0.082, 0.122)
    """
    z = _quantile(confidence_level)
    if not estimate > 0.0:
        return 0.0, None
    width = z * se / estimate
    if width > 700.0:
        return 0.0, None
    return float(estimate * np.exp(-width)), float(estimate * np.exp(width))


def between_interval(
    parts: EntropyDecomposition, test: BetweenTest, *, confidence_level: float = 0.95
) -> tuple[float, float | None]:
    r"""Return an interval of the between component that starts at zero unless the test rejects.

    Where the test of level 1 - `confidence_level` rejects, it is the log-Wald interval around the
    bias-corrected component. Otherwise :math:`\sqrt{2I_b}` is a norm whose error is at most the
    root of the mixture's quantile q, and the interval is zero to
    :math:`(\sqrt{I_b} + \sqrt{q/2})^2`.

    Examples
    --------
    >>> rows = BenefitMoments.from_rows([1, 2, 1, 2, 1, 2], [0, 0, 0, 1, 1, 1], order=1.0)
    >>> between_interval(decompose(rows), between_test(rows))[0]
    0.0
    """
    tail = 1.0 - check_fraction("confidence_level", confidence_level)
    if test.p_value <= tail and parts.between_corrected > 0.0:
        return log_interval(
            parts.between_corrected, parts.between_se, confidence_level=confidence_level
        )
    if test.law.degenerate:
        return 0.0, None
    radius = np.sqrt(0.5 * test.law.isf(tail))
    return 0.0, float((np.sqrt(parts.between) + radius) ** 2)


def _quantile(confidence_level: float) -> float:
    level = check_fraction("confidence_level", confidence_level)
    return float(special.ndtri(0.5 + 0.5 * level))


def _group_means(moments: CellMoments) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return shares, relative means and mean kernels; empty groups count as average."""
    size = moments.total[:, 0]
    safe = np.where(size > 0.0, size, 1.0)
    r = np.where(size > 0.0, moments.total[:, 1] / safe, 1.0)
    return size / size.sum(), r, np.where(size > 0.0, moments.total[:, 2] / safe, 0.0)


def influence_coefficients(benefits: BenefitMoments) -> FloatArray:
    """Return the influence functions of total, within and between as coefficients.

    Parameters
    ----------
    benefits : BenefitMoments
        Sums by group.

    Returns
    -------
    array of shape (3, G, 3)
        Quantity (1, x, kernel), group of the row, part. A row's influence on a part is the sum of
        its three quantities times the coefficients of its group.
    """
    a = benefits.order
    share, r, f_mean = _group_means(benefits.moments)
    f_r, slope = kernel(r, a), kernel_slope(r, a)
    index, between = float(np.sum(share * f_mean)), float(np.sum(share * f_r))
    ones = np.ones(len(r))
    total = np.stack([(a - 1.0) * index * ones, -a * index * ones, ones])
    apart = np.stack([f_r - slope * r + (a - 1.0) * between, slope - a * between, np.zeros(len(r))])
    return np.stack([total, total - apart, apart], axis=2)


def _group_errors(
    benefits: BenefitMoments, share: FloatArray, r: FloatArray, within_group: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return signed roots of the between contributions, their errors, and the within errors.

    A contribution's influence has a part on the group's own rows and a part on all rows, so three
    small moment matrices per group replace a G x G covariance.
    """
    a, moments = benefits.order, benefits.moments
    whole = float(moments.total[:, 0].sum())
    own, shared = moments.product, _row_sums(moments)
    everyone = shared.sum(axis=0)
    f_r, slope = kernel(r, a), kernel_slope(r, a)
    zero, one = np.zeros(len(r)), np.ones(len(r))

    def error(inner: FloatArray, outer: FloatArray) -> FloatArray:
        variance = (
            np.einsum("gi,gij,gj->g", inner, own, inner)
            + 2.0 * np.einsum("gi,gij,gj->g", inner, shared, outer)
            + np.einsum("gi,ij,gj->g", outer, everyone, outer)
        )
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)) / whole)

    within_se = error(
        np.stack([slope * r - f_r, -slope, one], axis=1),
        np.stack([(a - 1.0) * within_group, -a * within_group, zero], axis=1),
    )
    # c = pi f(r) and its signed root s: the influence of s is that of c over 2s. Dividing f and f'
    # by the root of f first keeps the limit at r = 1, where f/(r-1)^2 is 1/2.
    root_f = np.where(r < 1.0, -1.0, 1.0) * np.sqrt(f_r)
    ratio = np.where(np.abs(root_f) > 1e-9, slope / np.where(root_f == 0.0, 1.0, root_f), 2.0**0.5)
    half = 0.5 * np.sqrt(share)
    safe = np.where(share > 0.0, np.sqrt(share), 1.0)
    root_se = error(
        0.5 * np.stack([(root_f - ratio * r), ratio, zero], axis=1) / safe[:, None],
        half[:, None] * np.stack([ratio * r - root_f, -ratio * r, zero], axis=1),
    )
    return np.sqrt(share) * root_f, root_se, within_se


def _null_law(moments: CellMoments) -> ChiSquareMixture:
    """Return the law of the sum of pi (r - 1)^2 when all groups have the same mean."""
    share, r, _ = _group_means(moments)
    whole = float(moments.total[:, 0].sum())
    own = moments.product
    variance = own[:, 1, 1] - 2.0 * r * own[:, 0, 1] + r * r * own[:, 0, 0]
    # What is left of equal benefits after subtraction is rounding error.
    variance = np.where(variance > ROUNDING * own[:, 1, 1], variance, 0.0)
    safe = np.where(share > 0.0, share, 1.0)
    diagonal = variance / (whole**2 * safe)
    if moments.cross is None:
        # P diag(d) P and diag(d) - ww' with w = sqrt(d pi) have the same eigenvalues but zero.
        return ChiSquareMixture(weights=diagonal, removed=diagonal * share)
    i, j, q = moments.cross.first, moments.cross.second, moments.cross.product
    value = q[:, 1, 1] - r[i] * q[:, 0, 1] - r[j] * q[:, 1, 0] + r[i] * r[j] * q[:, 0, 0]
    covariance = np.diag(diagonal)
    scaled = value / (whole**2 * np.sqrt(safe[i] * safe[j]))
    covariance[i, j] += scaled
    covariance[j, i] += scaled
    s = np.sqrt(share)
    half = covariance - np.outer(s, s @ covariance)
    eigenvalues = np.linalg.eigvalsh(half - np.outer(half @ s, s))
    return ChiSquareMixture(weights=np.maximum(eigenvalues, 0.0))


def _row_sums(moments: CellMoments) -> FloatArray:
    """Return, for each group, the product of its unit totals with those of the whole table."""
    sums = moments.product.copy()
    if moments.cross is not None:
        np.add.at(sums, moments.cross.first, moments.cross.product)
        np.add.at(sums, moments.cross.second, moments.cross.product.transpose(0, 2, 1))
    return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDifference:
    """First model less second model, with a Wald interval and test.

    Parameters
    ----------
    estimate, se : float
        Difference and its standard error.
    low, high : float
        Interval.
    p_value : float
        Two-sided; one when the two models give the same benefits.
    """

    estimate: float
    se: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedComparison:
    """Differences of the index and of its two parts.

    Parameters
    ----------
    total, within, between : IndexDifference
        The test of `between` is meant for components that are not zero in both models.
    """

    total: IndexDifference
    within: IndexDifference
    between: IndexDifference


def compare_paired(
    first: object,
    second: object,
    group: object = None,
    *,
    order: float = 1.0,
    cluster: AnyArray | None = None,
    weight: AnyArray | None = None,
    count: AnyArray | None = None,
    confidence_level: float = 0.95,
) -> PairedComparison:
    r"""Compare the inequality of two models that were applied to the same rows.

    The null hypothesis is that the index (or a part of it) is the same under both models.

    Parameters
    ----------
    first, second : array of shape (n,)
        Benefits under the two models, row by row.
    group : array of shape (n,), optional
        Group of each row, 0 to G - 1.
    order : float, default 1
        Order of the index.
    cluster, weight, count : array of shape (n,), optional
        As in `BenefitMoments.from_rows`.
    confidence_level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    PairedComparison

    Notes
    -----
    The influence function of a difference is the difference of the influence functions, so that the
    correlation between two models that share rows is accounted for.

    Examples
    --------
    Does the second rule, which errs on fewer people, give a lower index?

    >>> import numpy as np
    >>> first = np.repeat([0.0, 1.0, 2.0], [20, 70, 10])
    >>> second = np.repeat([0.0, 1.0, 2.0], [10, 80, 10])
    >>> total = compare_paired(first, second, order=2.0).total
    >>> round(total.estimate, 3), total.p_value < 0.01
    (0.079, True)

    Yes: by 0.079.
    """
    a = check_order(order)
    level = check_fraction("confidence_level", confidence_level)
    b1, b2 = check_benefits(first, a), check_benefits(second, a)
    if b1.shape != b2.shape:
        raise InvalidParameterError(
            f"two models must be compared on the same rows; got {b1.size} and {b2.size} benefits."
        )
    ones = np.ones(len(b1))
    omega = ones if weight is None else np.asarray(weight, dtype=np.float64)
    copies = ones if count is None else np.asarray(count, dtype=np.float64)
    m1, m2 = mean_benefit(b1, omega * copies), mean_benefit(b2, omega * copies)
    moments = CellMoments.from_rows(
        np.stack([ones, b1 / m1, kernel(b1 / m1, a), b2 / m2, kernel(b2 / m2, a)], axis=1),
        np.zeros(len(b1), dtype=np.int64) if group is None else np.asarray(group),
        cluster=cluster,
        weight=weight,
        count=count,
    )
    pick = np.eye(5)
    one = BenefitMoments(order=a, mean=m1, moments=transform_quantities(moments, pick[[0, 1, 2]]))
    two = BenefitMoments(order=a, mean=m2, moments=transform_quantities(moments, pick[[0, 3, 4]]))
    c1, c2 = influence_coefficients(one), influence_coefficients(two)
    coefficients = [c1[0] - c2[0], c1[1], c1[2], -c2[1], -c2[2]]
    whole = float(moments.total[:, 0].sum())
    variance = np.diag(linear_covariance(moments, coefficients)) / whole**2
    parts = decompose(one), decompose(two)
    z = float(special.ndtri(0.5 + 0.5 * level))

    def difference(name: str, v: float) -> IndexDifference:
        gap = getattr(parts[0], name) - getattr(parts[1], name)
        se = float(np.sqrt(max(v, 0.0)))
        p = 1.0 if gap == 0.0 else float(2.0 * special.ndtr(-abs(gap) / se)) if se > 0.0 else 0.0
        return IndexDifference(estimate=gap, se=se, low=gap - z * se, high=gap + z * se, p_value=p)

    names = ("total", "within", "between")
    return PairedComparison(
        **{name: difference(name, float(v)) for name, v in zip(names, variance, strict=True)}
    )
