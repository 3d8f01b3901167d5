"""Tables 1 and 3 of the empirical-likelihood paper: ``python empirical_likelihood.py``.

Prints the figures that docs/reproductions/empirical_likelihood.md keeps; about a minute.
"""

import numpy as np
from scipy import stats

from equipoise.stats.disparity.likelihoods import Samples, likelihood
from equipoise.stats.multiplicity import adjusted_p_values


def samples_by_interval(metric, x, m):
    """Rows of every replication sorted into the m intervals of x."""
    reps, n = x.shape
    key = np.floor(x * m).astype(np.int64) + m * np.arange(reps)[:, None]
    order = np.argsort(key, axis=None, kind="stable")
    values = metric.ravel()[order]
    start = np.searchsorted(key.ravel()[order], np.arange(reps * m))
    return Samples(base=values, slope=np.full(reps * n, -1.0), start=start)


def table_1(model, n, m, reps, seed):
    """Coverage of the joint 95% regions, EL and EEL, of the true disparities (known target 0)."""
    rng = np.random.default_rng(seed)
    x = rng.random((reps, n))
    noise = rng.standard_normal((reps, n))
    metric = noise**2 if model == 1 else noise**2 * x
    samples = samples_by_interval(metric, x, m)
    low, high = np.arange(m) / m, (np.arange(m) + 1) / m
    truth = np.ones(m) if model == 1 else (low + high) / 2
    each = likelihood(samples, np.tile(truth, reps)).statistic.reshape(reps, m).sum(axis=1)
    gap = samples.base - np.repeat(np.tile(truth, reps), samples.size)
    total = samples.sums(gap).reshape(reps, m)
    spread = samples.sums(gap**2).reshape(reps, m)
    # Disjoint groups: the second-moment matrix is diagonal; centring is a rank-one change.
    quadratic = (total**2 / spread).sum(axis=1)
    euclidean = quadratic / (1.0 - quadratic / n)
    cut = stats.chi2.isf(0.05, m)
    return (each <= cut).mean(), (euclidean <= cut).mean()


def table_3(tau, reps=2000, n=1000, seed=300):
    """False flagging rate and power of Benjamini-Hochberg at 5%, margin 0.05, two groups."""
    rng = np.random.default_rng(seed)
    x = rng.random((reps, n))
    metric = 2.0 * tau * x + rng.standard_normal((reps, n))
    samples = samples_by_interval(metric, x, 2)
    margin = np.full(2 * reps, 0.05)
    size = samples.size
    estimate = samples.sums(samples.base) / size
    root = np.sign(estimate - margin) * np.sqrt(likelihood(samples, margin).statistic)
    p = stats.norm.sf(root).reshape(reps, 2)
    rejected = np.array([adjusted_p_values(row, "bh") <= 0.05 for row in p])
    half = x < 0.5
    mean_x = np.stack([np.where(part, x, 0).sum(1) / part.sum(1) for part in (half, ~half)], 1)
    null = 2.0 * tau * mean_x <= 0.05
    false = (rejected & null).sum(axis=1) / np.maximum(rejected.sum(axis=1), 1)
    real = (~null).sum(axis=1)
    found = (rejected & ~null).sum(axis=1) / np.maximum(real, 1)
    return false.mean(), found[real > 0].mean() if real.any() else 0.0


if __name__ == "__main__":
    for n, reps in ((2000, 2000), (4000, 2000), (8000, 1000)):
        for model in (1, 2):
            for m in (2, 5, 10):
                el, eel = table_1(model, n, m, reps, seed=100 * model + m + n)
                print(f"table 1: n={n} model={model} m={m:2d} EL {el:.4f} EEL {eel:.4f}")
    for tau in (0.0, 0.05, 0.10, 0.15, 0.25, 0.40):
        rate, found = table_3(tau)
        print(f"table 3: tau={tau:.2f} FFR {rate:.4f} power {found:.4f}")
