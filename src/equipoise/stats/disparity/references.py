r"""Sums of a group, of what it is compared with, and of their overlap.

A metric has the value :math:`\theta_G = \sum_G u / \sum_G w` in group G. Every statistic of a
disparity is a function of the sums of (u, w) over the group, over the target's rows R and over the
rows in both, and of their second moments over independent units. Here they are formed for all
groups at once from the cells, whatever the overlap, the clusters and the weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy
from scipy import sparse

from equipoise._checks import check_number, check_option
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, Scale
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments

__all__ = [
    "Comparison",
    "Target",
    "TargetKind",
    "compare",
    "covariance",
    "cross_products",
    "target_mask",
]

TargetKind: TypeAlias = Literal["known", "population", "reference", "rest", "external"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the groups are compared with.

    Parameters
    ----------
    kind : {"known", "population", "reference", "rest", "external"}
        A given number; the metric over all cells; over the cells of a reference; over the cells
        outside the group; or an estimate from an independent sample.
    value : float
        The number, or the external estimate.
    se : float
        Standard error of the external estimate.
    cells : array of shape (K,), optional
        True for the cells of the reference.
    """

    kind: TargetKind
    value: float = 0.0
    se: float = 0.0
    cells: BoolArray | None = None

    def __post_init__(self) -> None:
        check_option("kind", self.kind, TargetKind)
        check_number("value", self.value)
        check_number("se", self.se, low=0.0)
        if (self.kind == "reference") != (self.cells is not None):
            raise InvalidParameterError(
                f"`cells` belongs to a target of kind 'reference', and only there; got kind "
                f"{self.kind!r} with cells {'given' if self.cells is not None else 'absent'}."
            )

    @property
    def estimated(self) -> bool:
        """Whether the target is computed from the same rows as the groups."""
        return self.kind in {"population", "reference", "rest"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Sums for m groups and their targets; index 0 is u, index 1 is w.

    Parameters
    ----------
    group, target, overlap : array of shape (m, 2)
        Totals of (u, w) in the group, in the target's rows and in both.
    group_group, group_target, target_target : array of shape (m, 2, 2)
        Sums over units of the outer products of their totals.
    group_value, target_value : array of shape (m,)
        The metric; NaN where the denominator is zero.
    target_variance : float
        Square of the standard error of an external estimate, otherwise 0.
    n, n_target : array of shape (m,)
        Rows that count (those with a denominator) in the group and in the target.
    n_units : int
        Independent units in the whole table.
    same : array of shape (m,)
        True where the group has exactly the rows of its target, or all of them when the target is
        the rest.
    scale : {"difference", "ratio"}
        How group and target are compared.
    """

    group: FloatArray
    target: FloatArray
    overlap: FloatArray
    group_group: FloatArray
    group_target: FloatArray
    target_target: FloatArray
    group_value: FloatArray
    target_value: FloatArray
    target_variance: float
    n: IntArray
    n_target: IntArray
    n_units: int
    same: BoolArray
    scale: Scale

    @property
    def estimate(self) -> FloatArray:
        """Disparities: difference from the target, or ratio to it."""
        if self.scale == "ratio":
            with np.errstate(divide="ignore", invalid="ignore"):
                return self.group_value / self.target_value
        return self.group_value - self.target_value

    @property
    def se(self) -> FloatArray:
        r"""Standard errors :math:`\sqrt{\sum \varphi^2}` from the influence function."""
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.sqrt(self.spread(self.estimate, np.arange(len(self.group))))
            unit = self.target_value if self.scale == "ratio" else 1.0
            return spread / (self.group[:, 1] * np.abs(unit))

    def as_known(self) -> "Comparison":
        """The same comparison with the target taken as a known number (the plug-in view)."""
        zero = np.zeros_like(self.group_target)
        return replace(
            self,
            target=np.zeros_like(self.target),
            group_target=zero,
            target_target=zero,
            target_variance=0.0,
        )

    @property
    def disjoint(self) -> BoolArray:
        """True where group and target share no rows that count."""
        return np.asarray(self.overlap[:, 1] == 0.0)

    def hypothesised(self, null: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        """Value of the group under the null, and its derivative in the value of the target."""
        theta = self.target_value[which]
        if self.scale == "ratio":
            return null * theta, null
        return theta + null, np.ones_like(theta)

    def spread(self, null: FloatArray, which: IntArray) -> FloatArray:
        r"""Sum over units of the squared estimating function at `null`.

        The function is :math:`(u - \tau w) 1_G - \tau' (W_G / W_R)(u - \hat\theta w) 1_R` with
        :math:`\tau` the hypothesised value of the group: the second term is the influence of the
        estimated target.
        """
        tau, rate = self.hypothesised(null, which)
        theta, size = self.target_value[which], self.group[which, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(self.target[which, 1] > 0, rate * size / self.target[which, 1], 0.0)
        g = np.stack([np.ones_like(tau), -tau], axis=1)
        r = np.stack([-factor, factor * theta], axis=1)
        within = np.einsum("ja,jab,jb->j", g, self.group_group[which], g)
        between = np.einsum("ja,jab,jb->j", g, self.group_target[which], r)
        target = np.einsum("ja,jab,jb->j", r, self.target_target[which], r)
        external = self.target_variance * (rate * size) ** 2
        return np.asarray(np.maximum(within + 2.0 * between + target, 0.0) + external)


def compare(
    moments: CellMoments,
    membership: Any,
    target: Target,
    *,
    scale: Scale = "difference",
    n: AnyArray | None = None,
) -> Comparison:
    """Sum the cells into groups, targets and overlaps.

    Parameters
    ----------
    moments : CellMoments
        Sums of (u, w) in K cells.
    membership : boolean matrix of shape (K, m)
        Cells that make up each group; dense or scipy-sparse.
    target : Target
        What groups are compared with.
    scale : {"difference", "ratio"}
        Kept for the estimate.
    n : array of shape (K,), optional
        Rows with a denominator in each cell. By default the sum of w where w is 0 or 1, and
        otherwise all rows.

    Returns
    -------
    Comparison
    """
    check_option("scale", scale, Scale)
    groups = _as_sparse(membership, len(moments.n))
    m = groups.shape[1]
    rows = _rows_that_count(moments) if n is None else np.asarray(n, dtype=np.float64)
    total = np.column_stack([moments.total, rows])
    group = groups.T @ total
    group_group = np.empty((m, 2, 2))
    group_all = np.empty((m, 2, 2))
    all_all = np.empty((2, 2))
    group_target = np.zeros((m, 2, 2))
    target_target = np.zeros((m, 2, 2))
    mask = target_mask(target, moments)
    for a in range(2):
        for b in range(2):
            kernel = moments.kernel(a, b)
            group_group[:, a, b] = np.asarray(groups.multiply(kernel @ groups).sum(axis=0)).ravel()
            group_all[:, a, b] = groups.T @ (kernel @ np.ones(len(moments.n)))
            all_all[a, b] = kernel.sum()
            group_target[:, a, b] = groups.T @ (kernel @ mask)
            target_target[:, a, b] = mask @ (kernel @ mask)
    sums = np.broadcast_to(mask @ total, (m, 3)).copy()
    overlap = groups.T @ (total * mask[:, None])
    # Rows of zero weight are rows, but say nothing.
    live = (rows > 0) & (moments.product.diagonal(axis1=1, axis2=2).sum(axis=1) > 0)
    counted = groups.T @ (live & (mask == 0)).astype(np.float64)
    inside = groups.T @ (live & (mask > 0)).astype(np.float64)
    same = (counted == 0) & (inside == np.count_nonzero(live & (mask > 0)))
    if target.kind == "rest":
        sums = total.sum(axis=0) - group
        overlap = np.zeros((m, 3))
        group_target = group_all - group_group
        target_target = all_all - group_all - group_all.transpose(0, 2, 1) + group_group
        same = groups.T @ live.astype(np.float64) == np.count_nonzero(live)
    if not target.estimated:
        same = np.zeros(m, dtype=np.bool_)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A numerator where the denominator is zero has no mean: NaN, never infinite.
        value = np.where(group[:, 1] != 0.0, group[:, 0] / group[:, 1], np.nan)
        theta = np.where(sums[:, 1] != 0.0, sums[:, 0] / sums[:, 1], np.nan)
    if not target.estimated:
        theta = np.full(m, float(target.value))
    return Comparison(
        group=group[:, :2],
        target=sums[:, :2],
        overlap=overlap[:, :2],
        group_group=group_group,
        group_target=group_target,
        target_target=target_target,
        group_value=value,
        target_value=theta,
        target_variance=target.se**2 if target.kind == "external" else 0.0,
        n=group[:, 2].round().astype(np.int64),
        n_target=sums[:, 2].round().astype(np.int64),
        n_units=moments.n_units,
        same=same,
        scale=scale,
    )


def covariance(
    moments: CellMoments, membership: Any, target: Target, comparisons: Sequence[Comparison]
) -> FloatArray:
    r"""Covariance matrix of all disparities, by their influence functions.

    The influence function of disparity j is constant times (u, w) on the rows of the group plus
    constant times (u, w) on the rows of the target, so that the matrix needs only products of
    groups with groups, of groups with the target, and of the target with itself.

    Parameters
    ----------
    moments : CellMoments
        Sums of the (u, w) of M metrics, one metric after the other, in K cells.
    membership : boolean matrix of shape (K, m)
        Cells that make up each group.
    target : Target
        What groups are compared with.
    comparisons : sequence of Comparison
        Sums of the same groups, one for each metric.

    Returns
    -------
    array of shape (M * m, M * m)
        All groups of the first metric come first. Rows and columns of groups without an estimate
        are zero.
    """
    parts = [_influence(c, target) for c in comparisons]
    alpha, beta = (scipy.linalg.block_diag(*(part[k] for part in parts)) for k in range(2))
    groups = sparse.hstack([_as_sparse(membership, len(moments.n))] * len(parts), format="csc")
    own = cross_products(moments, groups, target, alpha, beta)
    slope = scipy.linalg.block_diag(*(part[2][:, None] for part in parts))
    return np.asarray(own + slope @ (slope * [c.target_variance for c in comparisons]).T)


def _influence(c: Comparison, target: Target) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Coefficients of (u, w) on the rows of groups and targets; slope in an external target."""
    ratio = c.scale == "ratio"
    unit = c.target_value if ratio else np.ones_like(c.target_value)
    rate = c.estimate if ratio else np.ones_like(c.target_value)
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = _finite(1.0 / (c.group[:, 1] * unit))
        outer = _finite(rate / (c.target[:, 1] * unit)) if target.estimated else 0.0 * inner
        slope = _finite(rate / unit)
    alpha = np.stack([inner, -inner * _finite(c.group_value)])
    return alpha, np.stack([-outer, outer * _finite(c.target_value)]), slope


def cross_products(
    moments: CellMoments, membership: Any, target: Target, alpha: FloatArray, beta: FloatArray
) -> FloatArray:
    """Sums over units of products of moments that are constant on a group and on the target.

    Parameters
    ----------
    moments : CellMoments
        Sums of p quantities in K cells.
    membership : boolean matrix of shape (K, m)
        Cells that make up each group.
    target : Target
        What groups are compared with.
    alpha, beta : array of shape (p, m)
        Coefficients of the quantities on the rows of the group, and on those of the target.

    Returns
    -------
    array of shape (m, m)
    """
    groups = _as_sparse(membership, len(moments.n))
    mask = target_mask(target, moments)
    if target.kind == "rest":
        # The complement of G is everything minus G.
        alpha, mask = alpha - beta, np.ones(len(moments.n))
    result = np.zeros((groups.shape[1], groups.shape[1]))
    for a in range(len(alpha)):
        for b in range(len(alpha)):
            kernel = moments.kernel(a, b)
            pairs = (groups.T @ (kernel @ groups)).toarray()
            result += alpha[a][:, None] * pairs * alpha[b]
            shared = np.outer(alpha[a] * (groups.T @ (kernel @ mask)), beta[b])
            result += shared + shared.T
            result += (mask @ (kernel @ mask)) * np.outer(beta[a], beta[b])
    return result


def _finite(values: FloatArray) -> FloatArray:
    return np.where(np.isfinite(values), values, 0.0)


def _as_sparse(membership: Any, size: int) -> Any:
    groups = sparse.csc_array(membership, dtype=np.float64)
    if groups.shape[0] != size:
        raise InvalidParameterError(
            f"`membership` must have one row for each of the {size} cells; got {groups.shape[0]}."
        )
    return groups


def target_mask(target: Target, moments: CellMoments) -> FloatArray:
    """Return 1 for the cells of the population or reference, 0 elsewhere and for other targets."""
    size = len(moments.n)
    if target.kind == "population":
        return np.ones(size)
    if target.cells is None:
        return np.zeros(size)
    if target.cells.shape != (size,):
        raise InvalidParameterError(
            f"`cells` must have one entry for each of the {size} cells; "
            f"got shape {target.cells.shape}."
        )
    mask = target.cells.astype(np.float64)
    if not mask @ moments.total[:, 1] > 0:
        raise InvalidParameterError(
            "The reference selects no rows on which the metric is defined. "
            "Choose another reference."
        )
    return mask


def _rows_that_count(moments: CellMoments) -> FloatArray:
    """Rows with w = 1 where w is an indicator, otherwise every row."""
    w, square = moments.total[:, 1], moments.product[:, 1, 1]
    counts = bool(np.all(np.abs(w - square) <= 1e-9 * np.maximum(np.abs(w), 1.0)))
    return w.round() if counts and moments.cross is None else moments.n.astype(np.float64)
