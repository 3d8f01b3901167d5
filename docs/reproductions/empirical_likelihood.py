"""Tables 1 and 3 of the empirical-likelihood paper: ``python empirical_likelihood.py``.

Prints the numbers that docs/reproductions/empirical_likelihood.md keeps, about a minute; with
``figures`` writes its Figures 1 to 3 into `figures`, beside this file, half a minute.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from equipoise.plot.simulations import power_curves, quantile_plot
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


def region_statistics(model, n, m, reps, seed):
    """EL and EEL statistics of the true disparities (known target 0), chi-square with m."""
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
    return each, euclidean


def table_1(model, n, m, reps, seed):
    """Coverage of the joint 95% regions, EL and EEL."""
    cut = stats.chi2.isf(0.05, m)
    return tuple((one <= cut).mean() for one in region_statistics(model, n, m, reps, seed))


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


def figure_1(reps=1000):
    """Q-Q plots of both statistics under both models, n = 2000 and m = 5."""
    figure = Figure(figsize=(9.6, 2.9), layout="constrained")
    panels = iter(figure.subplots(1, 4))
    for k, name in enumerate(("EL", "EEL")):
        for model in (1, 2):
            axes = next(panels)
            found = region_statistics(model, 2000, 5, reps, seed=model)[k]
            quantile_plot(
                found,
                lambda q: stats.chi2.ppf(q, 5),
                words=("chi-square quantile", f"{name} statistic"),
                ax=axes,
            )
            axes.set_title(f"Model 5.{model}", fontsize="small")
    return figure


MARGIN = 0.05
TRUTHS = np.linspace(-0.5, 0.5, 21)
HYPOTHESES = {
    "is 0.05": lambda equal, above, below: equal,
    "is at least 0.05": lambda equal, above, below: below,
    "is at most 0.05": lambda equal, above, below: above,
}


def p_values(values, bound):
    """Two-sided and one-sided p-values of EL, then of the t test, for a mean of `bound`."""
    reps, n = values.shape
    start = np.arange(reps) * n
    samples = Samples(base=values.ravel(), slope=np.full(values.size, -1.0), start=start)
    mean = values.mean(axis=1)
    root = np.sign(mean - bound) * np.sqrt(likelihood(samples, np.full(reps, bound)).statistic)
    t = (mean - bound) / (values.std(axis=1, ddof=1) / np.sqrt(n))
    return [
        (2 * law(np.abs(z)), law(z), law(-z))
        for z, law in ((root, stats.norm.sf), (t, lambda x: stats.t.sf(x, n - 1)))
    ]


def rejections(n, reps, seed, *, skewed):
    """Share rejected at 5% by test and hypothesis, at each of the true disparities."""
    rng = np.random.default_rng(seed)
    names = [*HYPOTHESES, "is between -0.05 and 0.05"]
    found = {(test, name): [] for test in ("EL", "t") for name in names}
    for truth in TRUTHS:
        noise = rng.exponential(size=(reps, n)) - 1 if skewed else rng.standard_normal((reps, n))
        upper, lower = (p_values(truth + noise, bound) for bound in (MARGIN, -MARGIN))
        for k, test in enumerate(("EL", "t")):
            for name, side in HYPOTHESES.items():
                found[test, name].append(np.mean(side(*upper[k]) <= 0.05))
            outside = np.minimum(upper[k][1], lower[k][2])
            found[test, names[-1]].append(np.mean(outside <= 0.05))
    return found


def figure_2_3(*, skewed, reps=500):
    """Power of EL and t tests of four hypotheses by the true disparity."""
    figure = Figure(figsize=(9.6, 3.0), layout="constrained")
    panels = figure.subplots(1, 4, sharey=True)
    found = {n: rejections(n, reps, seed=n, skewed=skewed) for n in (50, 200)}
    for axes, name in zip(panels, [*HYPOTHESES, "is between -0.05 and 0.05"], strict=True):
        curves = {f"{test}, n = {n}": found[n][test, name] for n in found for test in ("EL", "t")}
        power_curves(TRUTHS, curves, ax=axes)
        axes.set_title(f"null: {name}", fontsize="small")
    return figure


def draw(folder):
    """Write the figures into a folder; return the paths."""
    figures = {
        "quantiles": figure_1,
        "power_normal": lambda: figure_2_3(skewed=False),
        "power_exponential": lambda: figure_2_3(skewed=True),
    }
    written = []
    with mpl.rc_context({"svg.hashsalt": "equipoise", "font.size": 8}):
        for name, figure in figures.items():
            path = Path(folder) / f"empirical_likelihood_{name}.svg"
            figure().savefig(path, metadata={"Date": None, "Creator": None})
            written.append(path)
    return written


if __name__ == "__main__":
    if sys.argv[1:] == ["figures"]:
        sys.exit(draw(Path(__file__).parent / "figures") is None)
    for n, reps in ((2000, 2000), (4000, 2000), (8000, 1000)):
        for model in (1, 2):
            for m in (2, 5, 10):
                el, eel = table_1(model, n, m, reps, seed=100 * model + m + n)
                print(f"table 1: n={n} model={model} m={m:2d} EL {el:.4f} EEL {eel:.4f}")
    for tau in (0.0, 0.05, 0.10, 0.15, 0.25, 0.40):
        rate, found = table_3(tau)
        print(f"table 3: tau={tau:.2f} FFR {rate:.4f} power {found:.4f}")
