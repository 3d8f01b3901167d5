"""Predictive parity: kernel curves of two groups with standard errors over users.

Both sides compute the local-linear curves of two groups and the difference of their
Nadaraya-Watson curves at 21 scores, with standard errors that sum over users before they square.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import close, compare, measure, show

import equipoise as eq
from equipoise.stats.scores.cells import LinearBlock, ScoreCells, influence_moments
from equipoise.stats.scores.kernel import (
    GRID_LEVELS,
    curve_block,
    difference_block,
    kernel_regression,
    smoother,
)

BANDWIDTH = 0.02
N_BINS = 4096


def draw(n, users):
    rng = np.random.default_rng(0)
    user = rng.integers(users, size=n)
    score = rng.beta(2, 3, size=n)
    y = (rng.uniform(size=n) < score).astype(float)
    return y, score, user % 2, user, np.quantile(score, GRID_LEVELS)


def million():
    return draw(1_000_000, 100_000)


def ten_million():
    return draw(10_000_000, 1_000_000)


def two_thousand():
    y, score, *_ = draw(2000, 500)
    return y, score, np.quantile(score, GRID_LEVELS)


def of_group(k, block):
    """Influence values of the curve of group k; rows of the other group have none."""
    parts = [np.zeros_like(block.coefficient), np.zeros_like(block.coefficient)]
    parts[k] = block.coefficient
    return LinearBlock(np.concatenate(parts), np.concatenate([block.centre, block.centre]))


def ours(inputs):
    """Sums over bins of the score, one sparse product with the users."""
    y, score, group, user, points = inputs
    cells = ScoreCells.from_rows(y, score, group, cluster=user, unit="cluster", n_bins=N_BINS)
    mass, total = cells.sums()
    lines = [smoother(points, cells.support, m, BANDWIDTH) for m in mass]
    raw = [smoother(points, cells.support, m, BANDWIDTH, degree=0) for m in mass]
    blocks = [of_group(k, curve_block(lines[k], points, cells.support, total[k])) for k in (0, 1)]
    blocks.append(difference_block(raw, points, cells.support, total))
    variance = np.diag(influence_moments(cells, blocks).covariance)
    estimate = [fit.level @ t for fit, t in zip(lines, total, strict=True)]
    estimate.append(raw[1].level @ total[1] - raw[0].level @ total[0] + 1.0)
    return {"estimate": np.concatenate(estimate), "standard error": np.sqrt(variance)}


def plain_numpy(inputs):
    """A kernel for each point and row, summed by user."""
    y, score, group, user, points = inputs
    n_users = int(user.max()) + 1
    weight = 1.0 / np.bincount(user)[user]
    estimate = np.empty((3, len(points)))
    variance = np.empty((3, len(points)))
    for k, point in enumerate(points):
        u = (score - point) / BANDWIDTH
        kernel = weight * np.exp(-0.5 * u * u)
        difference = np.zeros(n_users)
        for g in (0, 1):
            own = kernel * (group == g)
            q0, q1, q2 = own.sum(), own @ u, own @ (u * u)
            det = q0 * q2 - q1 * q1
            t0, t1 = own @ y, own @ (u * y)
            level, slope = (q2 * t0 - q1 * t1) / det, (q0 * t1 - q1 * t0) / det
            line = own * (q2 - q1 * u) / det * (y - level - slope * u)
            psi = np.bincount(user, weights=line, minlength=n_users)
            estimate[g, k], variance[g, k] = level, psi @ psi
            raw = np.bincount(user, weights=own * (y - t0 / q0) / q0, minlength=n_users)
            difference += raw if g == 1 else -raw
            estimate[2, k] = t0 / q0 if g == 0 else 1.0 + t0 / q0 - estimate[2, k]
        variance[2, k] = difference @ difference
    return {"estimate": estimate.ravel(), "standard error": np.sqrt(variance).ravel()}


def small(inputs):
    y, score, points = inputs
    return kernel_regression(y, score, points, bandwidth=BANDWIDTH).estimate


def kernel_reg(inputs):
    from statsmodels.nonparametric.kernel_regression import KernelReg

    warnings.simplefilter("ignore")
    y, score, points = inputs
    return KernelReg(y, score, "c", reg_type="ll", bw=[BANDWIDTH]).fit(points)[0]


def parquet(n, users):
    """Path of a parquet file with a text group; written once."""
    path = Path(tempfile.gettempdir()) / f"equipoise-parity-{n}-{users}.parquet"
    if not path.exists():
        y, score, group, user, _ = draw(n, users)
        names = pa.DictionaryArray.from_arrays(pa.array(group.astype("int8")), ["men", "women"])
        columns = {"y": y.astype("int8"), "score": score, "user": user, "sex": names}
        pq.write_table(pa.table(columns), path)
    return str(path)


def file_of_ten_million():
    return parquet(10_000_000, 1_000_000)


def file_of_two_million_users():
    return parquet(10_000_000, 2_000_000)


def audit(path):
    """The whole audit: global test, differences, curves with bands, overlap, order."""
    roles = {"group": "sex", "y_true": "y", "y_score": "score", "cluster": "user"}
    result = eq.Audit(path, **roles).predictive_parity(unit="cluster")
    return result.joint.p_value


def rows():
    return [
        compare(
            "two curves and their difference, 1e6 rows, 1e5 users, 21 points",
            measure(ours, million),
            measure(plain_numpy, million),
            peer="numpy, kernels by point and user",
            same=close(5e-3),
        ),
        compare(
            "one local-linear curve, 2,000 rows, 21 points",
            measure(small, two_thousand),
            measure(kernel_reg, two_thousand),
            peer="statsmodels KernelReg",
            same=close(1e-8),
        ),
    ]


def large_rows():
    numpy_sums = measure(plain_numpy, ten_million, repeats=1)
    file_of_ten_million()
    file_of_two_million_users()
    only = "The peer computes two curves and a difference; the audit does much else besides."
    return [
        compare(
            "two curves and their difference, 1e7 rows, 1e6 users, 21 points",
            measure(ours, ten_million),
            numpy_sums,
            peer="numpy, kernels by point and user",
            target="20x faster, under 2 GB",
            same=close(5e-3),
        ),
        compare(
            "whole audit from parquet, 1e7 rows, 1e6 users",
            measure(audit, file_of_ten_million, repeats=1),
            numpy_sums,
            peer="numpy, curves alone, arrays in memory",
            target="10x faster, under 1 GB",
            note=only,
        ),
        compare(
            "whole audit from parquet, 1e7 rows, 2e6 users",
            measure(audit, file_of_two_million_users, repeats=1),
            numpy_sums,
            peer="numpy, curves alone, arrays in memory",
            target="10x faster, under 1 GB",
            note=only,
        ),
    ]


if __name__ == "__main__":
    show(rows())
