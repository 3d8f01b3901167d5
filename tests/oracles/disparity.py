"""Second implementations of the disparity statistics: rows, dense moments, generic solvers."""

import numpy as np
from scipy import optimize

from equipoise.moments import CellMoments
from equipoise.stats.disparity.likelihoods import Samples
from equipoise.stats.disparity.references import Target


def moments_of(u, w, cell, n_cells, **options):
    options = {"order": 3, **options}
    return CellMoments.from_rows(np.stack([u, w], axis=1), cell, n_cells=n_cells, **options)


def target_rows(target, group, cell):
    if target.kind == "population":
        return np.ones(len(cell), dtype=bool)
    if target.kind == "rest":
        return ~group
    if target.kind == "reference":
        return target.cells[cell]
    return np.zeros(len(cell), dtype=bool)


def influence_moments(u, w, cell, membership, target, null, *, scale="difference", cluster=None):
    """Rows (or clusters) x groups: the estimating functions with the influence of the target."""
    columns = []
    for j in range(membership.shape[1]):
        group = membership[cell, j]
        rows = target_rows(target, group, cell)
        theta = u[rows].sum() / w[rows].sum() if target.estimated else target.value
        tau, rate = (null * theta, null) if scale == "ratio" else (theta + null, 1.0)
        z = np.where(group, u - tau * w, 0.0)
        if target.estimated:
            z -= rate * w[group].sum() / w[rows].sum() * np.where(rows, u - theta * w, 0.0)
        columns.append(z)
    z = np.stack(columns, axis=1)
    if cluster is None:
        return z
    return np.stack([z[cluster == c].sum(axis=0) for c in np.unique(cluster)])


def el_statistic(z):
    """Empirical likelihood by minimising the dual with Owen's extended logarithm."""
    z = np.asarray(z, dtype=float).reshape(len(z), -1)
    z = z / np.abs(z).max(axis=0)
    n = len(z)

    def log_star(x):
        small = x < 1.0 / n
        t = np.where(small, 1.0, x)
        quadratic = np.log(1.0 / n) - 1.5 + 2.0 * n * x - 0.5 * (n * x) ** 2
        value = np.where(small, quadratic, np.log(t))
        first = np.where(small, 2.0 * n - n**2 * x, 1.0 / t)
        second = np.where(small, -(n**2), -1.0 / t**2)
        return value, first, second

    def dual(lam):
        value, first, _ = log_star(1.0 + z @ lam)
        return -value.sum(), -z.T @ first

    def hessian(lam):
        return -(z.T * log_star(1.0 + z @ lam)[2]) @ z

    fit = optimize.minimize(
        dual,
        np.zeros(z.shape[1]),
        jac=True,
        hess=hessian,
        method="trust-exact",
        options={"gtol": 1e-12, "maxiter": 1000},
    )
    return -2.0 * fit.fun


def eel_statistic(z):
    z = np.asarray(z, dtype=float).reshape(len(z), -1)
    mean = z.mean(axis=0)
    return len(z) * mean @ np.linalg.solve(np.cov(z.T, bias=True).reshape(z.shape[1], -1), mean)


def random_table(rng, *, n=400, n_cells=6, binary=False):
    cell = rng.integers(n_cells, size=n)
    u = (
        rng.binomial(1, 0.3 + 0.05 * cell).astype(float)
        if binary
        else (rng.exponential(1.0 + 0.1 * cell))
    )
    return u, np.ones(n), cell


TARGETS = {
    "known": Target(kind="known", value=0.45),
    "population": Target(kind="population"),
    "reference": Target(kind="reference", cells=np.array([0, 0, 1, 1, 1, 0], dtype=bool)),
    "rest": Target(kind="rest"),
}
GROUPS = np.array(
    [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0, 1],
        [0, 0, 1, 1, 0, 0],
    ],
    dtype=bool,
).T


def adjusted(samples):
    """Add to each sample the pseudo-row of Chen, Variyath and Abraham (2008).

    It lies at minus the mean times max(1, log(n) / 2), so that zero is inside the hull. The audits
    do not use it; simulations hold it against the plain likelihood.
    """
    n = samples.sums(np.ones_like(samples.base))
    level = np.maximum(1.0, np.log(n) / 2.0)
    ends = samples.start + samples.size
    return Samples(
        base=np.insert(samples.base, ends, -level * samples.sums(samples.base) / n),
        slope=np.insert(samples.slope, ends, -level * samples.sums(samples.slope) / n),
        start=samples.start + np.arange(len(n)),
        count=None if samples.count is None else np.insert(samples.count, ends, 1.0),
    )
