"""How often tests of one group err where the shape of its values is not known: what notes quote.

One group is compared with a known number, alone or beside ten times as many normal values, and with
everybody there. Of every design and size: how often tests reject a true null at 5%, two-sided and
on the worse side, and once p-values of one side count several fold, as `flag` and `certify` have
them (a false "within the margin" is as frequent, the margin being far wider than the interval).
A note quotes by the effective units and by the skewness that is measured. A design counts for a
class of skewness when a tenth of the tables that err are in it; the worst design is quoted.

Writes the worst design of each cell to `noted_rates.md`, which `MEASURED` of
`equipoise.audits.disparity.unknown_shapes` repeats, and how many tables carry a note. In some
minutes:

    PYTHONPATH=src:tests python tests/calibration/noted_rates.py
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import special

from equipoise.audits.disparity.unknown_shapes import (
    MEASURED,
    SKEWNESS,
    Rates,
    units_of_unknown_shape,
    units_of_unseen_tail,
)
from equipoise.stats.disparity.means import MeanComparison
from equipoise.stats.small_samples import one_sided_fold, pooled_shape
from equipoise.stats.unit_sums import UnitSums
from simulate import units as simulate

SEED, N_TABLES = 77, 4000
HEAVY = "lognormal", "lognormal 1.5", "95% zeros", "outliers", "pareto 2.5"
LAWS = (
    *HEAVY, "pareto 3.5", "zero-inflated", "gamma .3", "weibull .6", "likert", "exponential",
    "poisson .05", "negative binomial", "outliers on both sides", "u-shaped", "one in a hundred",
)  # fmt: skip
HARMLESS = "normal", "uniform", "exponential", "poisson .4"
PAGE = Path(__file__).with_suffix(".md")
TARGETS = "known", "known, beside normal", "population, beside normal"
SIZES = (
    5, 8, 11, 12, 15, 19, 20, 25, 30, 39, 40, 50, 59, 60, 70, 79, 80, 90, 99, 100, 125, 149, 150,
    175, 199, 200, 300, 499, 500, 700, 1000, 2000,
)  # fmt: skip
CLASSES = len(SKEWNESS) + 1
LEAST_SHARE = 0.1


class Tested(NamedTuple):
    """Tests of one group of many tables, with a true null."""

    root: np.ndarray
    fold: np.ndarray
    noted: np.ndarray
    column: np.ndarray

    def wrong(self):
        """Which tables err: two-sided, one-sided and one-sided with p-values several fold."""
        less, greater = special.ndtr(self.root), special.ndtr(-self.root)
        side = less if np.mean(less <= 0.05) > np.mean(greater <= 0.05) else greater
        guarded = less if self.left(less) > self.left(greater) else greater
        return Rates(
            one_sided=side <= 0.05,
            two_sided=2.0 * np.minimum(less, greater) <= 0.05,
            guarded=self.fold * guarded <= 0.05,
        )

    def left(self, p):
        """Share of tables that err on one side although p-values count several fold."""
        return np.mean(self.fold * p <= 0.05)


def tables(rng, law, n, target, n_tables=N_TABLES):
    """Compare a group of n values of a law, the first of each table."""
    u, w, mean = simulate.rows(rng, law, [n], n_tables)
    sums = UnitSums.of_units(u - mean * w, w)
    if target != "known":
        others = rng.standard_normal((n_tables, 1, 10 * n))
        both = [sums[:, 0], UnitSums.of_units(others, np.ones_like(others))[:, 0]]
        sums = UnitSums.stack(both)
    shape = pooled_shape(sums).expand()
    if target.startswith("known"):
        found = MeanComparison.with_known(sums, shape, 0.0)
    else:
        found = MeanComparison.with_rest(sums, sums.sum().expand(-1) - sums, shape, population=True)
    units, root = found.units(), found.root(0.0)[:, 0]
    column = np.searchsorted(SKEWNESS, units.skewness[:, 0], side="right")
    tested = np.isfinite(root)
    columns = root, folds(units)[:, 0], noted(units)[:, 0], column
    return Tested(*(values[tested] for values in columns))


def noted(units):
    """Whether findings about real values carry a note."""
    return units_of_unknown_shape(units) | units_of_unseen_tail(units)


def folds(units):
    """How many fold p-values of one side count."""
    least = np.minimum(units.n_eff, units.n_eff_target)
    return np.where(units_of_unknown_shape(units), one_sided_fold(least, units.skewness), 1.0)


def within(rng, law, n, n_tables=N_TABLES):
    """Shares of tables: false "within" one standard deviation; true, without and with guard."""
    u, w, mean = simulate.rows(rng, law, [n], n_tables)
    margin = u.std()
    found, at_margin = (simulate.against_known(u, w, mean - gap) for gap in (0.0, margin))
    tested = np.isfinite(found.root(0.0)[:, 0])

    def shown(comparison, z):
        return (comparison.root(margin) < -z)[:, 0] & (comparison.root(-margin) > z)[:, 0]

    cut = critical(folds(found.units()))
    shares = shown(at_margin, cut), shown(found, critical(1.0)), shown(found, cut)
    return [float(x[tested].mean()) for x in shares]


def critical(fold):
    """Roots from which one-sided tests reject at 5%."""
    return -special.ndtri(0.05 / fold)


def quoted(n, column):
    """Rates that notes quote for so many units in a class of skewness."""
    return max(row for row in MEASURED if row[0] <= n)[1][column]


def in_classes(tested):
    """For each class, the rates of a design that counts there, else zeros."""
    wrong = tested.wrong()
    rates = np.zeros((CLASSES, len(wrong)))
    for k, hits in enumerate(wrong):
        places = tested.column[hits & tested.noted]
        share = np.bincount(places, minlength=CLASSES) / max(hits.sum(), 1)
        rates[:, k] = np.where(share >= LEAST_SHARE, hits.mean(), 0.0)
    return rates


def worst_designs(rng):
    """Largest rates for each number of units, class and kind of test, and their designs."""
    starts = [start for start, _ in MEASURED]
    worst = np.zeros((len(starts), CLASSES, len(Rates._fields)))
    design = np.full(worst.shape, "none errs more often than as many with fewer units", object)
    for target in TARGETS:
        for law in LAWS:
            for n in SIZES:
                if target != "known" and n > 300:
                    continue
                row = np.searchsorted(starts, n, side="right") - 1
                rates = in_classes(tables(rng, law, n, target))
                above = rates > worst[row]
                design[row][above] = f"{n} {law}, {target}"
                worst[row][above] = rates[above]
    for row in range(1, len(starts)):
        worst[row] = np.where(worst[row] > 0.0, worst[row], worst[row - 1])
    return starts, worst, design


def as_quoted(rate):
    """A rate as notes tell it: never below the nominal one, in whole percent above it."""
    return max(0.05, round(float(np.ceil(100.0 * rate - 1e-6)) / 100.0, 2))


def read():
    """What the page says that notes quote, in the form of `MEASURED`."""
    rows = re.findall(
        r"^\| (\d+) \| (\d) \| (\S+) \| (\S+) \| (\S+) \|", PAGE.read_text(), re.MULTILINE
    )
    found = {}
    for start, column, *rates in rows:
        found.setdefault(float(start), {})[int(column)] = Rates(*map(as_quoted, map(float, rates)))
    return tuple((start, tuple(of[k] for k in range(CLASSES))) for start, of in found.items())


def quoted_table():
    """The table of the notes page: two-sided rates, those of one side, and what is left of them."""
    lines = ["| effective units | harmless | skewed | very skewed |", "| --- | --- | --- | --- |"]
    for start, rates in MEASURED:
        cells = (f"{r.two_sided:.0%} ({r.one_sided:.0%}, {r.guarded:.0%})" for r in rates)
        lines.append(f"| from {max(start, 4)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def noted_shares(rng):
    """Shares of tables of harmless values that carry a note."""
    columns = "shape-unknown, alone", "or tail-unseen", "shape-unknown, of ten", "or tail-unseen"
    lines = [f"| values | n | {' | '.join(columns)} |", "| --- " * 6 + "|"]
    for law in HARMLESS:
        for n in (12, 40, 80, 150, 200, 400):
            cells = []
            for groups in (1, 10):
                u, w, mean = simulate.rows(rng, law, [n] * groups, 1000)
                units = simulate.against_known(u, w, mean).units()
                cells += [units_of_unknown_shape(units)[:, 0], noted(units)[:, 0]]
            lines.append(f"| {law} | {n} | " + " | ".join(f"{x.mean():.2f}" for x in cells) + " |")
    return lines


def main():
    starts, worst, design = worst_designs(np.random.default_rng(SEED))
    lines = [
        "# Rates that notes of unknown shapes quote\n",
        "Written by `tests/calibration/noted_rates.py`, which says what the columns are.\n",
        "| effective units from | class of skewness | "
        + " | ".join(Rates._fields)
        + " | designs |",
        "| --- " * 6 + "|",
    ]
    for k, start in enumerate(starts):
        for column in range(CLASSES):
            rates = " | ".join(f"{rate:.4f}" for rate in worst[k, column])
            of = "; ".join(dict.fromkeys(design[k, column]))
            lines.append(f"| {start} | {column} | {rates} | {of} |")
    lines += ["\nShare of groups that carry a note, against a known number:\n"]
    lines += noted_shares(np.random.default_rng([SEED, 1]))
    lines += [
        "\nShown within a margin of one standard deviation that is reached, and that is not:\n",
        "| values | n | false, guarded | true | true, guarded |",
        "| --- " * 5 + "|",
    ]
    rng = np.random.default_rng([SEED, 2])
    for law in ("normal", "exponential", "lognormal", "lognormal 1.5", "95% zeros"):
        for n in (5, 12, 20, 40, 60, 100, 200, 500):
            shares = " | ".join(f"{x:.3f}" for x in within(rng, law, n))
            lines.append(f"| {law} | {n} | {shares} |")
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for start, rates in read():
        print(f"    ({start:g}, ({', '.join(map(told, rates))})),")


def told(rates):
    """Rates as the module has them."""
    return "Rates(" + ", ".join(f"{rate:.2f}" for rate in rates) + ")"


if __name__ == "__main__":
    main()
