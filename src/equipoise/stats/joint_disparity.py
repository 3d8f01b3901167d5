r"""One test that all disparities are zero.

Groups that overlap or nest repeat each other: the average of a partition against the population,
or a union beside its parts, adds no hypothesis. Degrees of freedom are therefore counted from the
*atoms*, the distinct patterns of membership, and not from a covariance matrix, whose rank is
rounding noise exactly under the null.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse, special

from equipoise._checks import check_option
from equipoise._typing import AnyArray, DisparityMethod, FloatArray, IntArray
from equipoise.stats.binomial import deviance
from equipoise.stats.comparison import Comparison, Target, compare, cross_products
from equipoise.stats.empirical_likelihood import Samples, joint_likelihood, likelihood, profile
from equipoise.stats.moments import CellMoments
from equipoise.stats.row_roots import Units

__all__ = ["JointDisparity", "joint_test"]

_SPARSE_BELOW = 5.0
# Beyond this the dual problem is dense and slow; first and second moments decide.
_LARGEST_DUAL = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class JointDisparity:
    """Test that every group has the metric of its target.

    Parameters
    ----------
    statistic : float
        Chi-square with `df` degrees of freedom under the null; NaN when nothing can be tested.
    df : int
        Independent hypotheses among the groups.
    p_value : float
        NaN when nothing can be tested.
    n_groups, n_atoms : int
        Groups that entered, and distinct patterns of membership among their rows.
    status : str
        "ok"; "vacuous": no hypothesis is left; "hull": the null is outside the convex hull and the
        statistic is that of the Euclidean likelihood.
    method : str
        "profile_el", "influence_el", "el", "score", "influence_eel", "plug_in_el", "plug_in_eel"
        or "none".
    """

    statistic: float
    df: int
    p_value: float
    n_groups: int
    n_atoms: int
    status: str
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Design:
    """Atoms, independent groups and what is subtracted for the estimated target."""

    atom: IntArray  # of each cell; -1 outside every group and the target
    n_atoms: int
    basis: IntArray  # independent groups
    incidence: Any  # sparse, (atoms, df): which atoms make up a group of the basis
    reference: FloatArray  # (atoms,): which make up the estimated target
    share: FloatArray  # (df,): size of the group over that of the target
    saturated: bool  # the null makes all atoms equal

    @property
    def directions(self) -> FloatArray:
        """Coefficients of u - theta w in the moments of the basis, for each atom."""
        return np.asarray(self.incidence.toarray() - np.outer(self.reference, self.share))


def joint_test(
    moments: CellMoments,
    membership: Any,
    target: Target,
    *,
    binary: bool,
    method: DisparityMethod = "auto",
    units: Units | None = None,
    use: AnyArray | None = None,
) -> JointDisparity:
    r"""Test that no group differs from its target.

    Parameters
    ----------
    moments : CellMoments
        Sums of (u, w) in K cells.
    membership : boolean matrix of shape (K, m)
        Cells that make up each group; dense or scipy-sparse.
    target : Target
        What groups are compared with. The null "every group equals the rest" is the same as
        "every group equals the population".
    binary : bool
        True when u and w are 0 or 1 without weights or clusters.
    method : {"auto", "el", "eel", "plug_in"}
        As in `disparities`. "auto" takes the score (Pearson) statistic of a 0/1 metric when an
        atom has fewer than 5 ones or zeros.
    units : Units, optional
        The rows, for empirical likelihood of real-valued metrics.
    use : array of shape (m,), optional
        Groups to test, for instance those with `Disparities.status` "ok"; all by default. Groups
        without rows and groups equal to their target never count.

    Returns
    -------
    JointDisparity

    Notes
    -----
    With A the incidence matrix of atoms and groups and r that of the reference, the degrees of
    freedom are rank(A), less one when the target is estimated and r is in the span of A.

    *Deviations from* [1]_: condition C5 (a regular covariance matrix) fails at the null for any
    nested collection or partition, the paper's own among them; here the rank is structural.

    References
    ----------
    .. [1] Empirical likelihood-based fairness auditing (ELFA).

    Examples
    --------
    Do three schools admit at the same rate?

    >>> import numpy as np
    >>> y = np.repeat([1.0, 0, 1, 0, 1, 0], [30, 70, 45, 55, 35, 65])
    >>> school = np.repeat([0, 1, 2], 100)
    >>> cells = CellMoments.from_rows(np.stack([y, np.ones(300)], axis=1), school)
    >>> test = joint_test(cells, np.eye(3, dtype=bool), Target(kind="population"), binary=True)
    >>> print(f"{test.statistic:.3f} on {test.df} degrees of freedom, p = {test.p_value:.3f}")
    5.005 on 2 degrees of freedom, p = 0.082

    Three groups make two comparisons; the evidence is weak.
    """
    check_option("method", method, DisparityMethod)
    if target.kind == "rest":
        target = Target(kind="population")
    groups = sparse.csc_array(membership, dtype=np.float64)
    c = compare(moments, groups, target)
    kept = (c.group[:, 1] > 0) & ~c.same
    if use is not None:
        kept &= np.asarray(use, dtype=np.bool_)
    groups = groups[:, np.flatnonzero(kept)]
    c = compare(moments, groups, target)
    design = _design(moments, groups, target, c, plug_in=method == "plug_in")
    df = len(design.basis)
    if df == 0:
        return _report(np.nan, design, groups, "vacuous", "none")
    known = not target.estimated or method == "plug_in"
    euclidean = "plug_in_eel" if method == "plug_in" else "influence_eel"
    eligible = binary or units is not None
    if method == "eel" or not eligible or target.kind == "external" or df > _LARGEST_DUAL:
        if binary and method != "eel":
            return _report(_score(moments, design, c), design, groups, "ok", "score")
        statistic = _euclidean(moments, groups, target, c, design, known=known)
        return _report(statistic, design, groups, "ok", euclidean)
    if binary:
        ones, n = _by_atom(moments.total.T, design)
        if method == "auto" and min(ones.min(), (n - ones).min()) < _SPARSE_BELOW:
            return _report(_score(moments, design, c), design, groups, "ok", "score")
    statistic, name = _empirical(moments, design, c, units if not binary else None, known=known)
    if np.isinf(statistic):
        statistic = _euclidean(moments, groups, target, c, design, known=known)
        return _report(statistic, design, groups, "hull", euclidean)
    return _report(statistic, design, groups, "ok", "plug_in_el" if method == "plug_in" else name)


def _report(
    statistic: float, design: _Design, groups: Any, status: str, method: str
) -> JointDisparity:
    df = len(design.basis)
    return JointDisparity(
        statistic=float(statistic),
        df=df,
        p_value=float(special.chdtrc(df, statistic)) if df else np.nan,
        n_groups=groups.shape[1],
        n_atoms=design.n_atoms,
        status=status,
        method=method,
    )


def _design(
    moments: CellMoments, groups: Any, target: Target, c: Comparison, *, plug_in: bool
) -> _Design:
    size, m = groups.shape
    mask = np.ones(size) if target.kind == "population" else np.zeros(size)
    mask = mask if target.cells is None else target.cells.astype(np.float64)
    estimated = target.estimated and not plug_in
    mask = mask if estimated else np.zeros(size)
    # Equal rows of [groups, target] get equal sums of random 62-bit keys, different rows do not.
    keys = np.random.default_rng(0).integers(2**62, size=m + 1)
    pattern = groups.astype(np.int64) @ keys[:m] + mask.astype(np.int64) * keys[m]
    covered = (moments.total[:, 1] > 0) & ((np.diff(groups.tocsr().indptr) > 0) | (mask > 0))
    _, first, code = np.unique(pattern[covered], return_index=True, return_inverse=True)
    atom = np.full(size, -1, dtype=np.int64)
    atom[covered] = code
    incidence = groups[np.flatnonzero(covered)[first], :]
    reference = mask[np.flatnonzero(covered)[first]]
    basis = _one_group_each(incidence, reference, estimated=estimated)
    if basis is None:
        basis = _basis(incidence, reference, estimated=estimated)
    share = c.group[:, 1] / c.target[:, 1] if estimated else np.zeros(m)
    return _Design(
        atom=atom,
        n_atoms=len(first),
        basis=basis,
        incidence=incidence[:, basis],
        reference=reference,
        share=share[basis],
        saturated=len(basis) + int(estimated) == len(first),
    )


def _one_group_each(incidence: Any, reference: FloatArray, *, estimated: bool) -> IntArray | None:
    """Groups of a single atom as the basis, where every atom has one; otherwise None.

    All intersections of the group columns make such a collection, by the ten thousand; it needs no
    linear algebra. With an estimated target one atom of the reference needs, and gets, no group.
    """
    by_group = incidence.tocsc()
    single = np.flatnonzero(np.diff(by_group.indptr) == 1)
    own = np.full(len(reference), -1, dtype=np.int64)
    own[by_group.indices[by_group.indptr[single]]] = single
    alone = np.flatnonzero(own < 0)
    if not estimated:
        return None if len(alone) else np.sort(own)
    if not len(alone) and reference.any():
        own[np.flatnonzero(reference)[-1]] = -1
    elif len(alone) != 1 or reference.sum() != 1 or reference[alone[0]] == 0:
        return None
    return np.sort(own[own >= 0])


def _basis(incidence: Any, reference: FloatArray, *, estimated: bool) -> IntArray:
    """Independent groups, after the target is projected out."""
    gram = (incidence.T @ incidence).toarray()
    scale = np.sqrt(np.diag(gram))
    if estimated:
        # rank(A) - 1{r in span(A)} is the rank of A beside r: project r out.
        edge = incidence.T @ reference
        gram -= np.outer(edge, edge) / reference.sum()
    return _independent(gram / np.outer(scale, scale))


def _independent(gram: FloatArray) -> IntArray:
    """Independent columns of a matrix with the given Gram matrix, by pivoted Cholesky.

    Sizes are those before the target was projected out, so that rounding noise stays small.
    """
    if not len(gram):
        return np.zeros(0, dtype=np.int64)
    _, pivot, rank, _ = linalg.lapack.dpstrf(gram, tol=1e-9)
    return np.sort(pivot[:rank] - 1).astype(np.int64)


def _by_atom(columns: FloatArray, design: _Design) -> FloatArray:
    used = design.atom >= 0
    return np.stack(
        [np.bincount(design.atom[used], column[used], design.n_atoms) for column in columns]
    )


def _score(moments: CellMoments, design: _Design, c: Comparison) -> float:
    """Score statistic of a 0/1 metric: binomial variance at the common rate."""
    ones, n = _by_atom(moments.total.T, design)
    theta = float(c.target_value[0])
    share, inside = design.share, design.incidence
    residual = ones - theta * n
    if design.saturated:
        return _separate(residual, theta * (1.0 - theta) * n, n, design, c.target_variance)
    total = inside.T @ residual - share * (design.reference @ residual)
    overlap = np.outer(share, inside.T @ (n * design.reference))
    spread = (inside.T @ (sparse.diags_array(n) @ inside)).toarray() - overlap - overlap.T
    spread += (n @ design.reference) * np.outer(share, share)
    size = c.group[design.basis, 1]
    external = c.target_variance * np.outer(size, size)
    return _quadratic(total, theta * (1.0 - theta) * spread + external)


def _euclidean(
    moments: CellMoments,
    groups: Any,
    target: Target,
    c: Comparison,
    design: _Design,
    *,
    known: bool,
) -> float:
    """Euclidean likelihood from the moments of the cells."""
    b = design.basis
    theta = float(c.target_value[0])
    if design.saturated and moments.cross is None:
        u, w = _by_atom(moments.total.T, design)
        uu, uw, ww = _by_atom(moments.product.reshape(-1, 4).T[[0, 1, 3]], design)
        spread = np.maximum(uu - 2.0 * theta * uw + theta**2 * ww, 0.0)
        spread[spread <= 1e-12 * (uu + theta**2 * ww)] = 0.0
        quadratic = _separate(u - theta * w, spread, w, design, c.target_variance)
        return quadratic / (1.0 - quadratic / moments.n_units)
    size = c.group[b, 1]
    share = np.zeros(len(b)) if known else size / c.target[b, 1]
    alpha = np.stack([np.ones(len(b)), np.full(len(b), -theta)])
    beta = np.stack([-share, theta * share])
    total = c.group[b, 0] - theta * size
    variance = cross_products(moments, groups[:, b], target, alpha, beta)
    variance += c.target_variance * np.outer(size, size)
    return _quadratic(total, variance - np.outer(total, total) / moments.n_units)


def _separate(
    residual: FloatArray,
    spread: FloatArray,
    size: FloatArray,
    design: _Design,
    external: float,
) -> float:
    """Quadratic form of a saturated design, whose atoms are independent, without a matrix.

    An estimated target takes out the direction of `size`: the limit of an external estimate whose
    variance grows (Sherman-Morrison).
    """
    varies = spread > 0.0
    r, n, d = residual[varies], size[varies], spread[varies]
    own, edge, norm = np.sum(r**2 / d), np.sum(r * n / d), np.sum(n**2 / d)
    if not design.reference.any():
        return float(own - external * edge**2 / (1.0 + external * norm))
    # An atom in which nothing varies pins the common value down.
    return float(own - edge**2 / norm if varies.all() else own)


def _quadratic(total: FloatArray, variance: FloatArray) -> float:
    try:
        solution = linalg.solve(variance, total, assume_a="sym")
    except linalg.LinAlgError:
        # Groups in which nothing varies: they carry no evidence, the others decide.
        solution = linalg.lstsq(variance, total)[0]
    return float(total @ solution)


def _empirical(
    moments: CellMoments, design: _Design, c: Comparison, units: Units | None, *, known: bool
) -> tuple[float, str]:
    """Empirical likelihood statistic and its name; infinite outside the hull."""
    theta = float(c.target_value[0])
    if units is None:
        ones, n = _by_atom(moments.total.T, design)
        if design.saturated:
            centre = theta if known else ones.sum() / n.sum()
            statistic = float(deviance(ones, n, np.full(len(n), centre)).sum())
            return statistic, "el" if known else "profile_el"
        value = np.tile([1.0 - theta, -theta], design.n_atoms)
        times = np.stack([ones, n - ones], axis=1).ravel()
        start = 2 * np.arange(design.n_atoms)
        statistic = joint_likelihood(value, start, design.directions, count=times)
        return statistic, "el" if known else "influence_el"
    atom = design.atom[units.cell]
    used = np.flatnonzero((atom >= 0) & ((units.u != 0.0) | (units.w != 0.0)))
    order = used[np.argsort(atom[used], kind="stable")]
    u, w, atom = units.u[order], units.w[order], atom[order]
    count = None if units.count is None else units.count[order]
    start = np.flatnonzero(np.diff(atom, prepend=-1))
    if units.unit is not None:
        weight = (u - theta * w) * (1.0 if count is None else count)
        _, unit = np.unique(units.unit[order], return_inverse=True)
        table = sparse.coo_array((weight, (unit, atom))).tocsr()
        table.resize((table.shape[0], design.n_atoms))
        totals = table @ design.directions
        ones = np.ones(len(totals))
        return joint_likelihood(ones, np.arange(len(totals)), totals), "influence_el"
    if design.saturated and bool(np.all(w == w[0])):
        samples = Samples.of_means(*np.split(u / w[0], start[1:]), count=count)
        if known:
            fit = likelihood(samples, np.full(design.n_atoms, theta))
            return float(fit.statistic.sum()), "el"
        return profile(samples, np.zeros(design.n_atoms))[0], "profile_el"
    statistic = joint_likelihood(u - theta * w, start, design.directions, count=count)
    return statistic, "el" if known else "influence_el"
