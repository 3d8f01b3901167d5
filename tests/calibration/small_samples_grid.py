"""Few units over a grid of designs, beside the tests that people use instead.

Writes `small_samples_grid.md` next to this file, in a few minutes:

    PYTHONPATH=src:tests python tests/calibration/small_samples_grid.py

Designs were fixed before the run; sizes and laws are partly those on which the constants of the law
were chosen, partly others. Rates are at 5%: two-sided, greater, less, joint. "Liberal" is above .06
by more than two Monte Carlo standard errors.
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np
from scipy import stats

from equipoise.stats.disparity.means import MeanComparison
from equipoise.stats.effects.roots import arm_sides, bias_contrasts, plausible_skewness
from equipoise.stats.small_samples import (
    contrast_law,
    joint_test,
    pooled_shape,
)
from equipoise.stats.unit_sums import UnitSums
from simulate import units as simulate
from simulate.peers import (
    covers,
    kish,
    korn_graubard,
    t_interval,
    welch,
    welch_james,
    welch_of_rest,
)

TWO_SIDED, ONE_SIDED = stats.norm.ppf(0.975), stats.norm.ppf(0.95)
SEED, N_TABLES = 20, 2500


class Report:
    """Lines of a table, and how many rates were liberal."""

    def __init__(self, title, *columns):
        self.lines = [
            f"\n## {title}\n",
            "| " + " | ".join(columns) + " |",
            "|---" * len(columns) + "|",
        ]
        self.claims = self.liberal = 0

    def rate(self, hits):
        hits = hits[np.isfinite(hits)]
        if not len(hits):
            return "-"
        rate = hits.mean()
        self.claims += 1
        self.liberal += rate > 0.06 + 2 * np.sqrt(0.06 * 0.94 / len(hits))
        return f"{rate:.3f}"

    def add(self, *cells):
        self.lines.append("| " + " | ".join(str(c) for c in cells) + " |")
        sys.stderr.write(self.lines[-1] + "\n")

    def law(self, name, root, share=None, *extra):
        tested = np.isfinite(root)

        def hits(found):
            return np.where(tested, found, np.nan).ravel()

        joint = joint_test(root, share=share).p_value
        cells = [hits(np.abs(root) > TWO_SIDED), hits(root > ONE_SIDED), hits(root < -ONE_SIDED)]
        cells = [self.rate(cell) for cell in cells]
        cells.append(self.rate(np.where(np.isfinite(joint), joint <= 0.05, np.nan)))
        self.add(name, *cells, f"{1 - tested.mean():.2f}", *extra)


def rows_grid(rng):
    report = Report("Rows", "design", "two-sided", "greater", "less", "joint", "not tested")
    for law, n, g in product(
        ("normal", "exponential", "lognormal", "left beta", "poisson .4"), (5, 12, 40), (2, 6, 25)
    ):
        u, w, mean = simulate.rows(rng, law, [n] * g, N_TABLES)
        root = simulate.against_population(u, w, centre=mean).root(0.0)
        report.law(f"{law} {g} x {n}, population", root, w.sum(-1))
    for law, n, g in product(
        ("exponential", "lognormal", "zero-inflated", "t3", "inverse gaussian"), (6, 15, 60), (1, 8)
    ):
        u, w, mean = simulate.rows(rng, law, [n] * g, N_TABLES)
        report.law(f"{law} {g} x {n}, known", simulate.against_known(u, w, mean).root(0.0))
    for law, n, m in product(("exponential", "lognormal", "gamma .6"), (6, 20, 50), (60, 1000)):
        u, w, mean = simulate.rows(rng, law, [n, m], N_TABLES)
        root = simulate.against_population(u, w, centre=mean).root(0.0)
        report.law(f"{law} {n} among {m}, population", root[:, :1])
    return report


def clusters_grid(rng):
    report = Report("Clusters", "design", "two-sided", "greater", "less", "joint", "not tested")
    for k, icc, cv, g in product((4, 5, 10, 20, 40), (0.05, 0.3), (0.0, 0.8), (1, 5)):
        u, w, rate = simulate.clusters(rng, k, g, 1500, icc=icc, rate=0.3, size_cv=cv)
        found = simulate.against_known(u, w, rate) if g == 1 else simulate.against_population(u, w)
        kind = "known" if g == 1 else "population"
        name = f"{g} x {k} clusters, icc {icc}, size cv {cv}, {kind}"
        report.law(name, found.root(0.0), None if g == 1 else w.sum(-1))
    for k, g, icc in product((4, 6, 10, 30), (2, 5), (0.05, 0.4)):
        u, w, _ = simulate.spanning_clusters(rng, k, g, 1500, icc=icc)
        root = simulate.spanning_population(u, w).root(0.0)
        report.law(f"{k} clusters spanning {g} groups, icc {icc}", root, w.sum(-2))
    return report


def weights_grid(rng):
    report = Report("Weights", "design", "two-sided", "greater", "less", "joint", "not tested")
    for n, cv, law in product((15, 60, 250), (0.5, 1.0, 2.0), ("rate", "exponential", "normal")):
        rate = 0.25 if law == "rate" else None
        u, w, mean = simulate.weighted_rows(rng, law, n, 5, cv, 1500, rate=rate)
        report.law(
            f"{law} 5 x {n}, weights cv {cv}, known", simulate.against_known(u, w, mean).root(0.0)
        )
        root = simulate.against_population(u, w).root(0.0)
        report.law(f"{law} 5 x {n}, weights cv {cv}, population", root, w.sum(-1))
    return report


def shapes_grid(rng):
    report = Report(
        "Shapes that differ", "design", "two-sided", "greater", "less", "joint", "not tested"
    )
    pairs = [
        ("normal", "exponential"), ("normal", "lognormal"), ("mirrored exponential", "exponential"),
        ("lognormal", "normal"), ("exponential", "left beta"), ("uniform", "gamma .6"),
    ]  # fmt: skip
    for (small, large), n in product(pairs, (10, 25, 60)):
        parts = []
        for law, size in ((small, n), (large, 500)):
            u, _, mean = simulate.rows(rng, law, [size], N_TABLES)
            parts.append(UnitSums.of_units(u[:, 0] - mean, 1.0))
        shape = pooled_shape(UnitSums.stack(parts))
        root = MeanComparison.with_rest(*parts, shape, population=True).root(0.0)
        report.law(f"{small} {n} among {large} 500", root[:, None])
    return report


def arms(rng, law, g, n0, n1):
    """Values of both arms, the law of errors and the roots of biases."""
    control, treated = (simulate.rows(rng, law, [n] * g, N_TABLES)[0] for n in (n0, n1))
    error, law = effect_errors(control, treated)
    size = np.full((N_TABLES, g), float(n0 + n1))
    bias = contrast_law(bias_contrasts(error, size, law.tested)).root()
    return control, treated, law, np.where(law.tested, bias, np.nan), size


def effect_errors(control, treated):
    """Errors of predictions of zero, and their law."""
    sums = UnitSums.stack([UnitSums.of_units(control, 1.0), UnitSums.of_units(-treated, 1.0)])
    sides = arm_sides(sums)
    error = sides.sum()
    return error, contrast_law(error, plausible=plausible_skewness(sums, sides))


def welch_of_arms(control, treated):
    """Control less treated, and Welch's 95% interval."""
    n0, n1 = control.shape[-1], treated.shape[-1]
    gap = control.mean(-1) - treated.mean(-1)
    v0, v1 = control.var(-1, ddof=1) / n0, treated.var(-1, ddof=1) / n1
    return gap, welch(gap, v0, v1, n0, n1)


def arms_grid(rng):
    report = Report("Arms", "design", "two-sided", "greater", "less", "joint", "not tested")
    for law, (n0, n1), g in product(
        ("normal", "exponential", "lognormal", "zero-inflated", "uniform"),
        ((3, 3), (4, 4), (10, 10), (6, 40), (30, 30), (50, 50)),
        (2, 10),
    ):
        _, _, error, bias, size = arms(rng, law, g, n0, n1)
        report.law(f"{law} {g} groups {n0}+{n1}: error", error.root())
        report.law(f"{law} {g} groups {n0}+{n1}: bias", bias, size)
    return report


def peers(rng):
    """The promises: on the same tables, coverage beside the usual intervals."""
    report = Report(
        "Peers on the same tables: coverage of 95% intervals, size of 5% joint tests",
        "design", "root", "not tested", "CR1 t", "Korn-Graubard", "at Kish size", "Welch",
        "joint root", "Welch-James",
    )  # fmt: skip

    def add(name, ours, value, peers, joint=("", "")):
        """Coverage; of peers also the median length as a multiple of that of the root."""
        tested = ~np.isnan(ours[0])
        length = np.median((ours[1] - ours[0])[tested])
        cells = [f"{covers(ours, value)[tested].mean():.3f}", f"{1 - tested.mean():.2f}"]
        for peer in ("CR1 t", "Korn-Graubard", "Kish", "Welch"):
            ends = peers.get(peer)
            if ends is None:
                cells.append("")
                continue
            times = np.median((ends[1] - ends[0])[tested]) / length
            cells.append(f"{covers(ends, value)[tested].mean():.3f} ({times:.2f})")
        report.add(name, *cells, *joint)

    for k, icc, cv in (
        (10, 0.2, 0.0),
        (10, 0.2, 0.6),
        (20, 0.2, 0.0),
        (20, 0.2, 0.6),
        (12, 0.5, 0.0),
    ):
        u, w, rate = simulate.clusters(rng, k, 6, N_TABLES, icc=icc, rate=0.3, size_cv=cv)
        ours = simulate.against_known(u, w, 0.0).interval(TWO_SIDED)
        others = {"CR1 t": t_interval(u, w), "Korn-Graubard": korn_graubard(u, w, w.sum(-1))}
        add(f"6 x {k} clusters, icc {icc}, size cv {cv}, rate .3", ours, rate, others)
    u, w, mean = simulate.clusters(rng, 15, 6, N_TABLES, icc=0.3)
    ours = simulate.against_known(u, w, 0.0).interval(TWO_SIDED)
    add("6 x 15 clusters, icc .3, lognormal", ours, mean, {"CR1 t": t_interval(u, w)})

    def add_weighted(name, u, w, rate):
        ours = simulate.against_known(u, w, 0.0).interval(TWO_SIDED)
        others = {
            "CR1 t": t_interval(u, w),
            "Korn-Graubard": korn_graubard(u, w, u.shape[-1]),
            "Kish": kish(u, w),
        }
        add(name, ours, rate, others)

    for n, cv, rate in ((40, 2.0, 0.2), (200, 2.0, 0.2), (40, 1.0, 0.5), (100, 1.0, 0.1)):
        u, w, _ = simulate.weighted_rows(rng, None, n, 6, cv, N_TABLES, rate=rate)
        add_weighted(f"6 x {n} rows, weights cv {cv:g}, rate {rate}", u, w, rate)
    (own,) = rng.spawn(1)
    for n in (40, 100, 400):
        u, w, rate = simulate.rates_that_go_with_weights(
            own, n, 6, 1.0, N_TABLES, rate=0.02, heavy_rate=0.5
        )
        add_weighted(f"6 x {n} rows, weights cv 1, rate .02, of large weights .5", u, w, rate)
    designs = [
        ("normal", 10, 12), ("normal", 30, 12), ("exponential", 10, 12), ("lognormal", 6, 30),
        ("zero-inflated", 6, 40),
    ]  # fmt: skip
    for law, g, n in designs:
        u, w, mean = simulate.rows(rng, law, [n] * g, N_TABLES)
        found = simulate.against_population(u, w, centre=mean)
        joint = np.mean(joint_test(found.root(0.0), share=w.sum(-1)).p_value <= 0.05)
        james = welch_james(u.mean(-1), u.var(-1, ddof=1) / n, n - 1.0)
        # Group minus rest; the gap to everyone is that times the share of the rest.
        rest = tuple(end * (1.0 - 1.0 / g) for end in welch_of_rest(u, w))
        add(
            f"{law} {g} x {n}, population", found.interval(TWO_SIDED), 0.0, {"Welch": rest},
            (f"{joint:.3f}", f"{np.mean(~(james > 0.05)):.3f}"),
        )  # fmt: skip
    for law, n0, n1 in product(("normal", "exponential", "lognormal"), (4, 10), (4, 10)):
        control, treated, error, bias, size = arms(rng, law, 8, n0, n1)
        v0, v1 = control.var(-1, ddof=1) / n0, treated.var(-1, ddof=1) / n1
        gap, ends = welch_of_arms(control, treated)
        df = (v0 + v1) ** 2 / (v0**2 / (n0 - 1) + v1**2 / (n1 - 1))
        joint = np.mean(joint_test(bias, share=size).p_value <= 0.05)
        james = np.mean(welch_james(gap, v0 + v1, df) <= 0.05)
        add(
            f"{law}, 8 groups, arms {n0}+{n1}", error.interval(TWO_SIDED), 0.0,
            {"Welch": ends}, (f"{joint:.3f}", f"{james:.3f}"),
        )  # fmt: skip
    return report


def power(rng):
    """Detected shifts of a group, in standard errors, beside Welch's test.

    The tails say how often each rejects a true null from below and from above, .025 each when
    right; the last powers are those with both tails set to .025 by simulation.
    """
    report = Report(
        "Power of two-sided 5% tests",
        "design", "test", "true null, below", "above", "shift up", "down",
        "up, tails right", "down, tails right",
    )  # fmt: skip

    def add(name, roots):
        for test, (null, up, down) in roots.items():
            low, high = np.quantile(null, (0.025, 0.975))
            cells = (
                np.mean(null < -TWO_SIDED), np.mean(null > TWO_SIDED),
                np.mean(np.abs(up) > TWO_SIDED), np.mean(np.abs(down) > TWO_SIDED),
                np.mean(up > high), np.mean(down < low),
            )  # fmt: skip
            report.add(name, test, *(f"{c:.3f}" for c in cells))

    designs = [
        ("normal", 20, 280), ("exponential", 20, 280), ("lognormal", 40, 400), ("normal", 8, 60),
        ("uniform", 12, 12),
    ]  # fmt: skip
    for law, n, m in designs:
        u, w, mean = simulate.rows(rng, law, [n, m], 4 * N_TABLES)
        sd = u[:, 1].std(axis=-1).mean() * np.sqrt(1 / n + 1 / m)
        tables = [u + w * np.array([shift * sd, 0.0])[:, None] for shift in (0.0, 3.0, -3.0)]
        roots = {
            "root": [
                simulate.against_population(moved, w, centre=mean).root(0.0)[:, 0]
                for moved in tables
            ],
            "Welch": [welch_root(welch_of_rest(moved, w))[:, 0] for moved in tables],
        }
        add(f"{law} {n} among {m}, 3 standard errors", roots)
    for law, n0, n1 in (
        ("normal", 4, 4), ("normal", 10, 10), ("exponential", 10, 10), ("exponential", 34, 6),
        ("lognormal", 10, 10),
    ):  # fmt: skip
        control, treated = (simulate.rows(rng, law, [n] * 8, N_TABLES)[0] for n in (n0, n1))
        sd = np.hypot(control.std() / np.sqrt(n0), treated.std() / np.sqrt(n1))
        moved = [treated - shift * sd * (np.arange(8) == 0)[:, None] for shift in (0.0, 3.0, -3.0)]
        roots = {
            "root": [effect_errors(control, one)[1].root()[:, 0] for one in moved],
            "Welch": [welch_root(welch_of_arms(control, one)[1])[:, 0] for one in moved],
        }
        add(f"{law}, arms {n0}+{n1}, 3 standard errors", roots)
    return report


def welch_root(ends):
    """Welch's statistic in units in which its 95% interval reaches 1.96 to either side."""
    return TWO_SIDED * (ends[0] + ends[1]) / (ends[1] - ends[0])


def main():
    reports = [
        make(np.random.default_rng([SEED, k]))
        for k, make in enumerate(
            (peers, power, rows_grid, clusters_grid, weights_grid, shapes_grid, arms_grid)
        )
    ]
    claims, liberal = (sum(getattr(r, name) for r in reports) for name in ("claims", "liberal"))
    head = (
        f"# Few units: the grid\n\n{liberal} of {claims} rates are liberal: above .06 by more than "
        "two Monte Carlo standard errors.\n"
    )
    text = head + "".join("\n".join(r.lines) + "\n" for r in reports)
    Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
