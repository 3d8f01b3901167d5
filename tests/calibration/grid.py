"""Measure size and coverage over a grid of designs, peers included; write docs/calibration.md.

``python tests/calibration/grid.py`` measures the grid. With a file of rates, recorded by
``EQUIPOISE_RATES=RATES.jsonl pytest -m calibration --slow`` (see `rates.py`), it writes
docs/calibration-tests.md from them instead; with a page as well, the rates replace the table that
ends that page.
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from equipoise.moments import CellMoments  # noqa: E402
from equipoise.stats.disparity.joint import joint_test  # noqa: E402
from equipoise.stats.disparity.likelihoods import Samples, likelihood  # noqa: E402
from equipoise.stats.disparity.references import Target  # noqa: E402
from oracles.disparity import adjusted  # noqa: E402
from simulate.disparity import (  # noqa: E402
    assessed,
    binary_comparison,
    mean_comparison,
    regions,
    true_values,
)

CUT = stats.chi2.isf(0.05, 1)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One measured rate, the rate it should have, and why it differs if it does."""

    family: str
    design: str
    what: str
    nominal: float
    hits: int
    trials: int
    reason: str = ""

    @property
    def rate(self):
        return self.hits / self.trials

    @property
    def bounds(self):
        low = stats.binom.ppf(0.0005, self.trials, self.nominal) / self.trials
        return low, stats.binom.isf(0.0005, self.trials, self.nominal) / self.trials

    @property
    def inside(self):
        return self.bounds[0] <= self.rate <= self.bounds[1]

    @property
    def safe(self):
        """Whether it errs by rejecting too seldom."""
        return (self.rate > self.nominal) == (self.nominal > 0.5)


@dataclass(frozen=True, kw_only=True)
class Design:
    """Tables of one kind, and how far its rates are known to be off.

    `simulate(rng, trials)` returns, for each rate, how often it happened and among how many.
    `limits` has the worst true rate that is known and documented, by rate, and `cause` why.
    """

    family: str
    name: str
    simulate: Callable
    limits: dict = field(default_factory=dict)
    cause: str = ""

    def cells(self, rng, trials):
        """Measure the rates; those out of bounds get a second look at ten times the tables."""
        found = self._measured(rng, trials)
        if all(cell.inside for cell in found):
            return found
        second = self._measured(rng, trials, times=10)
        return [
            cell if cell.inside else replace(cell, reason=self._reason(more))
            for cell, more in zip(found, second, strict=True)
        ]

    def _measured(self, rng, trials, times=1):
        total = {}
        for _ in range(times):
            for what, counts in self.simulate(rng, trials).items():
                total[what] = np.add(total.get(what, (0, 0)), counts)
        return [
            Cell(
                family=self.family,
                design=self.name,
                what=what,
                nominal=NOMINAL[what],
                hits=int(hits),
                trials=int(tables),
            )
            for what, (hits, tables) in total.items()
        ]

    def _reason(self, more):
        """Explain a rate by what a second look, with other random numbers, found."""
        seen = f"{more.rate:.4f} in {more.trials} further tables"
        if more.inside:
            return f"chance: {seen}"
        if more.safe:
            return f"conservative: {seen}; {self.cause}"
        limit = self.limits.get(more.what, more.nominal)
        known = more.rate >= limit if more.nominal > 0.5 else more.rate <= limit
        return f"known limit: {seen}; {self.cause}" if known else ""


NOMINAL = {"coverage 95%": 0.95, "size above, 5%": 0.05, "size below, 5%": 0.05}
SKEWED = {"coverage 95%": 0.88}


def _measure(designs, rng, trials, thin):
    for design in designs[::thin]:
        yield from design.cells(rng, trials)


def rates(rng, trials, *, thin=1):
    """Gaps of rates: coverage at 95% and size of both one-sided tests at 5%."""
    designs = [
        _rate_design(n, share, rate, target)
        for n in (200, 1000, 5000)
        for share in (0.05, 0.2, 0.5)
        for rate in (0.02, 0.3, 0.98)
        for target in ("rest", "population")
    ]
    return _measure(designs, rng, trials, thin)


def _rate_design(n, share, rate, target):
    shares = (share, 0.0, 1.0 - share) if target == "rest" else (0.0, share, 1.0 - share)

    def simulate(rng, trials):
        ones, size = regions(rng, trials, n, shares, (rate, rate, rate))
        used = size[:, :2].sum(axis=1) > 0
        found = assessed(binary_comparison(ones[used], size[used], n_units=n), binary=True)
        tested = np.isfinite(found.p_value)
        rejected = [
            (p[tested] <= 0.05).sum()
            for p in (found.p_value, found.p_greater(0.0), found.p_less(0.0))
        ]
        total = tested.sum()
        return {
            "coverage 95%": (total - rejected[0], total),
            "size above, 5%": (rejected[1], total),
            "size below, 5%": (rejected[2], total),
        }

    few = n * share * min(rate, 1.0 - rate)
    return Design(
        family="gap of rates",
        name=f"n = {n}, share {share}, rate {rate}, {target}",
        simulate=simulate,
        cause=f"{few:.3g} events expected in the group [1]",
    )


def overlap(rng, trials, *, thin=1):
    """Groups that overlap their reference in part, contain it or lie inside it."""
    designs = [
        _overlap_design(shares, values, scale)
        for shares in [(0.2, 0.2, 0.3), (0.0, 0.2, 0.3), (0.4, 0.1, 0.0)]
        for values in ((0.6, 0.5, 0.4), (0.15, 0.1, 0.1))
        for scale in ("difference", "ratio")
    ]
    return _measure(designs, rng, trials, thin)


def _overlap_design(shares, values, scale):
    group, target = true_values(shares, values)
    null = group - target if scale == "difference" else group / target

    def simulate(rng, trials):
        ones, size = regions(rng, trials, 2000, shares, values)
        view = binary_comparison(ones, size, n_units=2000, scale=scale)
        inside = assessed(view, binary=True, null=null).p_value > 0.05
        return {"coverage 95%": (inside.sum(), trials)}

    return Design(
        family="overlapping reference",
        name=f"shares {shares}, rates {values}, {scale}",
        simulate=simulate,
        cause=f"{2000 * np.dot(shares[1:], values[1:]):.3g} events expected in the reference [1]",
    )


def _draw(rng, name, shape):
    if name == "normal":
        return rng.normal(size=shape)
    if name == "exponential":
        return rng.exponential(size=shape) - 1.0
    return rng.lognormal(0.0, 1.0, size=shape) - np.exp(0.5)


def means(rng, trials, *, thin=1):
    """Means of skewed quantities against a known target, by (adjusted) empirical likelihood."""
    designs = [
        _mean_design(law, n)
        for law in ("normal", "exponential", "lognormal")
        for n in (20, 50, 200, 1000)
    ]
    return _measure(designs, rng, trials, thin)


def _mean_design(law, n):
    def simulate(rng, trials):
        x = _draw(rng, law, trials * n)
        sample = Samples(base=x, slope=np.full(x.size, -1.0), start=np.arange(trials) * n)
        sample = adjusted(sample) if n < 100 else sample
        inside = likelihood(sample, np.zeros(trials)).statistic <= CUT
        return {"coverage 95%": (inside.sum(), trials)}

    return Design(
        family="mean, empirical likelihood",
        name=f"{law}, n = {n}",
        simulate=simulate,
        limits={} if law == "normal" else SKEWED,
        cause=f"{n} rows [2]",
    )


def clusters_and_weights(rng, trials, *, thin=1):
    """Repeated units and unequal sampling weights, by the Euclidean likelihood."""
    designs = [
        _cluster_design(*units)
        for units in [(300, 5, 0.0), (300, 5, 0.3), (300, 10, 0.1), (1000, 2, 0.8)]
    ] + [_weight_design(*rows) for rows in [(300, 0.5), (300, 1.0), (1000, 1.0)]]
    return _measure(designs, rng, trials, thin)


def _cluster_design(units, rows, icc):
    def simulate(rng, trials):
        member = rng.random((trials, units)) < 0.3
        shared = rng.normal(size=(trials, units)) * np.sqrt(icc) * rows
        u = shared + rng.normal(size=(trials, units)) * np.sqrt((1.0 - icc) * rows)
        c = mean_comparison(u, np.full((trials, units), float(rows)), member, n_units=units)
        p = assessed(c, binary=False, method="eel").p_value
        return {"coverage 95%": ((p > 0.05).sum(), trials)}

    return Design(
        family="clusters",
        name=f"{units} units of {rows} rows, correlation {icc}",
        simulate=simulate,
        cause=f"about {0.3 * units:.0f} units in the group [2]",
    )


def _weight_design(n, spread):
    def simulate(rng, trials):
        member = rng.random((trials, n)) < 0.3
        weight = rng.lognormal(0.0, spread, size=(trials, n))
        c = mean_comparison(rng.normal(size=(trials, n)) * weight, weight, member, n_units=n)
        p = assessed(c, binary=False, method="eel").p_value
        return {"coverage 95%": ((p > 0.05).sum(), trials)}

    return Design(
        family="weights",
        name=f"n = {n}, log-normal weights of spread {spread}",
        simulate=simulate,
        cause=f"about {0.3 * n * np.exp(-(spread**2)):.0f} effective rows in the group [2]",
    )


def peers(rng, trials):
    """Intervals of the peers where all groups have the same rate."""
    for sizes, rate in [((500, 500), 0.4), ((300,) * 4, 0.4), ((3696, 2454, 637, 377), 0.4)]:
        n = np.array(sizes)
        contains = np.zeros(2)
        for _ in range(trials):
            ones = rng.binomial(n, rate)
            drawn = rng.multinomial(
                n.sum(), np.stack([ones, n - ones]).T.ravel() / n.sum(), size=500
            )
            pairs = drawn.reshape(500, len(n), 2)
            share = pairs[:, :, 0] / pairs.sum(axis=2)
            gap = share.max(axis=1) - share.min(axis=1)
            contains[0] += np.quantile(gap, 0.025) <= 0.0
            contains[1] += _joint(ones, n) > 0.05
        name = f"{len(n)} equal groups of {'/'.join(map(str, sizes))} rows, rate {rate}"
        yield Cell(
            family="fairlearn, max - min, percentile bootstrap (its formula, on counts)",
            design=name,
            what="95% interval contains 0",
            nominal=0.95,
            hits=int(contains[0]),
            trials=trials,
            reason="a maximum minus a minimum is above zero in every resample",
        )
        yield Cell(
            family="equipoise, joint test",
            design=name,
            what="no gap detected at 5%",
            nominal=0.95,
            hits=int(contains[1]),
            trials=trials,
        )
    yield from _fairaudit(rng, 200)


def _joint(ones, n):
    """P-value of our test that all groups have the same rate."""
    x, size = ones.astype(float), n.astype(float)
    total = np.stack([x, size], axis=1)
    product = np.stack([np.stack([x, x], axis=1), np.stack([x, size], axis=1)], axis=1)
    cells = CellMoments(n=n, total=total, product=product, n_units=int(n.sum()))
    groups = np.eye(len(n), dtype=bool)
    return joint_test(cells, groups, Target(kind="population"), binary=True).p_value


def _fairaudit(rng, trials):
    try:
        from fairaudit import Auditor, Metric
    except ImportError:
        return
    n, m, covered = 800, 4, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(trials):
            group = rng.integers(0, m, n)
            z = (rng.random(n) < 0.4).astype(float)
            audit = Auditor(group.reshape(-1, 1), z, z, Metric("statistical_parity"))
            dummies = group[:, None] == np.arange(m)
            options = {"seed": seed, "B": 200}
            audit.calibrate_groups(0.05, "interval", dummies, bootstrap_params=options)
            bounds = [audit.query_group(k)[0][0] for k in range(m)]
            covered += all(min(b) <= 0.0 <= max(b) for b in bounds)
    yield Cell(
        family="fairaudit, simultaneous bootstrap bounds (its code)",
        design=f"{m} equal groups, n = {n}, rate 0.4, 200 resamples",
        what="95% bounds contain 0 for all",
        nominal=0.95,
        hits=int(covered),
        trials=trials,
    )


FAMILIES = (rates, overlap, means, clusters_and_weights)


def measured(seed, *, trials=4000, thin=1):
    """Measure all cells of the grid, or every `thin`-th design."""
    generator = np.random.default_rng(seed)
    return [cell for family in FAMILIES for cell in family(generator, trials, thin=thin)]


PAGE = """# Calibration

How often the tests err, measured. Every rate below was simulated with a fixed seed; *accepted* is
the range that a binomial law with the nominal rate gives with probability 0.999, so that of
{cells} cells of the grid about {expected:.1f} would fall outside by chance. Every cell that did was
measured again, with other random numbers and ten times the tables; the last column says what that
showed: *chance* (the second rate is inside its own, narrower range), *conservative* (the test
rejects too seldom), or a *known limit* (it rejects too often, by no more than is documented in the
footnote).

```console
$ make calibration      # the grid took {minutes} CPU minutes, the tests about 11
```

Few units, skewed values, uneven weights, small arms and rare events, with the tests that people use
instead beside them: [the edges](calibration-edges.md).

A fast subset runs with every change: [the grid, thinned](../tests/calibration/test_grid.py), and
the tests of [tests/calibration](../tests/README.md).

## Summary

{summary}

## The grid

Coverage of 95% intervals is the share of tables in which the test of the *true* gap does not
reject (test and interval are the same function, see the
[law](../tests/property/test_audit_laws.py)). The code is
[tests/calibration/grid.py](../tests/calibration/grid.py).

{grid}

**[1]** With few events a rate takes few values, and no test can have exactly 5% at every rate.
The tests of rates keep 5% at the worst of them, by
[enumeration of all outcomes](../tests/property/test_decisions_and_intervals.py), and so reject less
often at others. On the side where no event at all is no surprise they never reject.

**[2]** The chi-square limit of a likelihood ratio has an error of order 1/n that grows with
skewness and kurtosis: see the rates of the log-normal here and of
[other laws](../tests/calibration/stats/test_disparity_coverage.py). Below 100 rows the adjusted
likelihood is used, which reduces it.

## Peers, on the same designs

All groups have the same rate, so a 95% interval for the gap should contain zero 95 times in 100.

{peers}

fairlearn's interval is recomputed on counts by its documented formula (percentiles of the
bootstrapped maximum minus minimum); the same happens with its own code, see below. fairaudit is
run as published.

{fairlearn}

## Looking every week

A system without a gap, and gaps of several sizes, watched for years: the share of runs with an
alarm (no gap), and the median week of the alarm with the share that ever found it. 300 rows a week,
30% of them of the group, rate .4; 400 runs. The last column is the week at which one test, made
once, would have had power .5 and .8: it knows when to look. Only the monitor and Bonferroni keep
their level of .05; [the script](../tests/calibration/monitor_delays.py).

{delays}

## Every other claim

Size, coverage and power of predictive parity, marginal outcomes, improvability, inequality,
treatment effects, joint tests, multiplicity, simultaneous intervals and planned power: the
[rates measured by the calibration tests](calibration-tests.md).
"""


TESTS_PAGE = """# Rates measured by the calibration tests

{count} rates, recorded while the tests ran, none of them outside what is accepted ([how a rate is
judged](../tests/README.md)). *Accepted* includes what a test allows for a known finite-sample
error; the source of the allowance stands beside it in the test. Some lines are about methods of
papers that do *not* hold their level: the test pins down by how much.

*Claimed* is a rate, or the most or least that a rate may be. Where a rate is claimed and the
measured one lies outside the plain binomial range, within the allowance of its test, the last
column says why; two of these were measured again with another seed, in 100,000 tables each.

{rows}
"""


OUTSIDE = {
    "rates of groups that overlap the reference are covered: around": (
        'small counts: `method="eel"`, not the default, with about ten reference events; 0.937 when'
        " measured again, the default 0.956"
    ),
    "rates against a disjoint reference are covered": (
        "conservative: the test keeps its level at the worst rate, and a group is small"
    ),
    "rates against the population are covered: 0.05": (
        "conservative: the test keeps its level at the worst rate, and the group is small"
    ),
    "rates of groups that overlap the reference are covered": (
        "conservative: the test keeps its level at the worst rate"
    ),
    "interval null has its size at any width: 0.0-0.101": "chance: 0.101 when measured again",
    "the score covers a gap in matched pairs conservatively": (
        "conservative: the fit of a pair at the null spreads more than the pair"
    ),
    "standardised differences are covered: normal": (
        "conservative: 30 rows against 300 have few effective units"
    ),
    "two categories have the size of one pair: 0.05-100": (
        "conservative: five of a hundred rows are few, and discrete"
    ),
    "equivalence is rarely shown at the margin": (
        "conservative: two one-sided tests both have to reject"
    ),
    "score holds its level from five control positives and wald from fifty: 5-": (
        "conservative: five positives are few, and discrete"
    ),
    "score holds its level from five control positives and wald from fifty: 10-": (
        "the Wald test, liberal at ten positives, which is why it is not the default"
    ),
}
"""Why a claimed rate was not met, by the beginning of the test's name."""


HEADER = "| test | trials | claimed | measured | accepted | outside because |"


def claim(row):
    """Say what is claimed of a recorded rate, and why it is not met where it is not."""
    if row["low"] == 0.0:
        return f"at most {row['nominal']:.3g}", ""
    if row["high"] == 1.0:
        return f"at least {row['nominal']:.3g}", ""
    low, high = stats.binom.ppf([0.0005, 0.9995], row["trials"], row["nominal"]) / row["trials"]
    if low <= row["rate"] <= high:
        return f"{row['nominal']:.3g}", ""
    reasons = [why for start, why in OUTSIDE.items() if name_of(row).startswith(start)]
    return f"{row['nominal']:.3g}", reasons[0] if reasons else "**unexplained**"


def name_of(row):
    """Name a test in words."""
    return (
        row["test"]
        .partition("::")[2]
        .removesuffix(" (call)")
        .replace("|", "/")
        .replace("_", " ")
        .replace("[", ": ")
        .replace("]", "")
        .removeprefix("test ")
    )


def table(cells):
    """Write cells as a Markdown table."""
    lines = ["| family | design | what | trials | measured | accepted | outside because |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for cell in cells:
        low, high = cell.bounds
        reason = "" if cell.inside else (cell.reason or "**unexplained**")
        lines.append(
            f"| {cell.family} | {cell.design} | {cell.what} | {cell.trials} | {cell.rate:.4f} |"
            f" {low:.3f} - {high:.3f} | {reason} |"
        )
    return "\n".join(lines)


def summary(cells):
    """Count cells by family."""
    lines = ["| family | cells | inside | chance | conservative | known limit | unexplained |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for family in dict.fromkeys(cell.family for cell in cells):
        mine = [cell for cell in cells if cell.family == family]
        outside = [cell for cell in mine if not cell.inside]
        words = [cell.reason.partition(":")[0] for cell in outside]
        counts = [words.count(word) for word in ("chance", "conservative", "known limit", "")]
        lines.append(
            f"| {family} | {len(mine)} | {len(mine) - len(outside)} |"
            f" {' | '.join(map(str, counts))} |"
        )
    return "\n".join(lines)


def recorded_table(file):
    """Write what calibration tests recorded as a Markdown table."""
    lines = [HEADER, "| --- | --- | --- | --- | --- | --- |"]
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        path = row["test"].partition("::")[0]
        claimed, reason = claim(row)
        lines.append(
            f"| [{name_of(row)}](../{path}) | {row['trials']} | {claimed} | {row['rate']:.4f} |"
            f" {row['low']:.3f} - {row['high']:.3f} | {reason} |"
        )
    return "\n".join(lines)


def recorded(file):
    """Write docs/calibration-tests.md from what the calibration tests recorded."""
    rows = recorded_table(file)
    text = TESTS_PAGE.format(rows=rows, count=len(rows.splitlines()) - 2)
    (ROOT / "docs" / "calibration-tests.md").write_text(text, encoding="utf-8")


def renewed(file, page):
    """Put what some calibration tests recorded in place of the table that ends a page."""
    text = page.read_text(encoding="utf-8").partition(HEADER)[0]
    page.write_text(f"{text}{recorded_table(file)}\n", encoding="utf-8")


def fairlearn_itself(rng, runs=5):
    """Run fairlearn's own bootstrap on four equal groups; say how often zero was inside."""
    try:
        from fairlearn.metrics import MetricFrame, selection_rate
    except ImportError:
        return "fairlearn was not installed in this run."
    inside = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run in range(runs):
            group = rng.integers(0, 4, 1200)
            y = (rng.random(1200) < 0.4).astype(int)
            frame = MetricFrame(
                metrics=selection_rate,
                y_true=y,
                y_pred=y,
                sensitive_features=group,
                n_boot=100,
                ci_quantiles=[0.025, 0.975],
                random_state=run,
            )
            inside += float(frame.difference_ci()[0]) <= 0.0
    return (
        "fairlearn's own code, four equal groups of about 300, rate 0.4, 100 resamples: the 95%"
        f" interval contained zero in {inside} of {runs} runs."
    )


def grid():
    """Measure the grid and the peers; write docs/calibration.md."""
    seed = int(os.environ.get("EQUIPOISE_SEED", "20240601"))
    started = time.process_time()
    cells = measured(seed)
    rivals = list(peers(np.random.default_rng(seed), 1000))
    note = fairlearn_itself(np.random.default_rng(seed))
    text = PAGE.format(
        cells=len(cells),
        expected=len(cells) / 1000,
        minutes=f"{(time.process_time() - started) / 60.0:.0f}",
        summary=summary(cells),
        grid=table(cells),
        peers=table(rivals),
        fairlearn=note,
        delays=(Path(__file__).parent / "monitor_delays.md").read_text(encoding="utf-8").rstrip(),
    )
    (ROOT / "docs" / "calibration.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        renewed(sys.argv[1], Path(sys.argv[2]))
    elif len(sys.argv) > 1:
        recorded(sys.argv[1])
    else:
        grid()
