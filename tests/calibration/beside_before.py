"""Size and power of the first version and of this one, on the same tables.

    python tests/calibration/beside_before.py CHECKOUT

CHECKOUT holds an earlier version of the repository. Each version is asked through `Audit` in a
process of its own. Rates are enumerated: a group for every count, and chances by the binomial law.
For means, clusters and weights every table has groups at the reference, above and below it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy import stats

HERE = Path(__file__).parents[2]
LEVEL, N_TABLES, SEED, SHIFT = 0.05, 600, 7, 3.0
KNOWN = [(n, rate) for n in (15, 40, 100, 300) for rate in (0.05, 0.2, 0.5)]
PAIRS = [(*rows, rate) for rows in ((12, 40), (40, 120), (80, 400)) for rate in (0.1, 0.4)]
# Law, rows of a group, rows of the rest (none: the reference is known), rows of a cluster, cv of
# the weights.
MEANS = {
    "normal, 12 rows, known": ("normal", 12, 0, 1, 0.0),
    "normal, 20 among 280": ("normal", 20, 220, 1, 0.0),
    "uniform, 30 among 300": ("uniform", 30, 210, 1, 0.0),
    "poisson (4), 60, known": ("poisson", 60, 0, 1, 0.0),
    "exponential, 400, known": ("exponential", 400, 0, 1, 0.0),
    "exponential, 200 among 2,000": ("exponential", 200, 1400, 1, 0.0),
    "normal, 50 clusters of 5, known": ("normal", 250, 0, 5, 0.0),
    "normal, 40 clusters of 5 among 400": ("normal", 200, 1400, 5, 0.0),
    "normal, 100, weights of cv .5, known": ("normal", 100, 0, 1, 0.5),
}
LAWS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: (rng.random(n) - 0.5) * np.sqrt(12.0),
    "poisson": lambda rng, n: (rng.poisson(4.0, n) - 4.0) / 2.0,
    "exponential": lambda rng, n: rng.exponential(size=n) - 1.0,
}


def _name(group):
    """The value of `g`; groups were text once."""
    return group.removeprefix("g=") if isinstance(group, str) else group["g"]


def p_values(eq, columns, wanted, metric, **options):
    """P-values of the groups `wanted`, and the estimates."""
    import pandas as pd

    roles = {"cluster": "c"} if "c" in columns else {}
    roles |= {"weight": "w"} if "w" in columns else {}
    reference = options.pop("reference")
    audit = eq.Audit(pd.DataFrame(columns), group="g", y_true="y", **roles)
    findings = audit.disparity(metric, reference=reference).findings
    found = {_name(f.group): f for f in findings}
    raw = [found[name].p_value_raw for name in wanted]
    at = [found[name].estimate for name in wanted]
    return np.array([np.nan if p is None else p for p in raw], float), np.array(at, float)


def rejected(p, estimate):
    """Two rows: rejected from above, from below."""
    sure = p <= LEVEL
    return np.stack([sure & (estimate > 0.0), sure & (estimate < 0.0)])


def of_known_rate(eq, n, rate):
    counts = np.arange(n + 1)
    names = [f"{x:04d}" for x in counts]
    y = (np.arange(n)[None, :] < counts[:, None]).astype(int).ravel()
    columns = {"g": np.repeat(names, n), "y": y}
    tails = rejected(*p_values(eq, columns, names, "mean_outcome", reference=rate))
    return [[float(stats.binom.pmf(counts, n, at) @ tail) for tail in tails]
            for at in shifted(rate, n, 0)]  # fmt: skip


def of_two_rates(eq, n1, n2, rate):
    counts = np.arange(n1 + 1)
    names = [f"{x:04d}" for x in counts]
    y = (np.arange(n1)[None, :] < counts[:, None]).astype(int).ravel()
    least, most = stats.binom.ppf([1e-6, 1 - 1e-6], n2, rate).astype(int)
    total = np.zeros((3, 2))
    for x2 in range(least, most + 1):
        columns = {
            "g": np.concatenate([np.repeat(names, n1), np.full(n2, "other")]),
            "y": np.concatenate([y, (np.arange(n2) < x2).astype(int)]),
        }
        reference = {"g": "other"}
        tails = rejected(*p_values(eq, columns, names, "mean_outcome", reference=reference))
        chance = stats.binom.pmf(x2, n2, rate)
        for k, at in enumerate(shifted(rate, n1, n2)):
            total[k] += chance * (tails @ stats.binom.pmf(counts, n1, at))
    return total.tolist()


def shifted(rate, n1, n2):
    """The rate itself, and some standard errors above and below it."""
    se = np.sqrt(rate * (1 - rate) * (1 / n1 + (1 / n2 if n2 else 0.0)))
    return rate, min(rate + SHIFT * se, 1.0), max(rate - SHIFT * se, 0.0)


def of_means(eq, law, n, others, size, cv):
    rng, draw = np.random.default_rng(SEED), LAWS[law]
    se = np.sqrt((1.0 + (size - 1) * 0.2) * (1.0 + cv**2) * (1 / n + (1 / others if others else 0)))
    names = ["at", "up", "down"]
    shift = np.repeat([0.0, SHIFT * se, -SHIFT * se, 0.0], [n, n, n, others])
    g = np.repeat([*names, "others"], [n, n, n, others])
    total = np.zeros((3, 2))
    for _ in range(N_TABLES):
        units = len(g) // size
        y = draw(rng, len(g))
        if size > 1:
            y = np.sqrt(0.8) * y + np.sqrt(0.2) * np.repeat(draw(rng, units), size)
        columns = {"g": g, "y": y + shift}
        if size > 1:
            columns["c"] = np.repeat(np.arange(units), size)
        if cv:
            columns["w"] = rng.lognormal(-0.5 * np.log(1 + cv**2), np.sqrt(np.log(1 + cv**2)),
                                         len(g))  # fmt: skip
        reference = {"g": "others"} if others else 0.0
        tails = rejected(*p_values(eq, columns, names, "mean_outcome", reference=reference))
        total += tails.T
    return (total / N_TABLES).tolist()


def measured():
    """What the version that is imported says, as JSON."""
    import equipoise as eq

    found = {}
    for n, rate in KNOWN:
        found[f"rate {rate}, {n} rows, known"] = of_known_rate(eq, n, rate)
    for n1, n2, rate in PAIRS:
        found[f"rate {rate}, {n1} rows against {n2}"] = of_two_rates(eq, n1, n2, rate)
    for name, design in MEANS.items():
        found[name] = of_means(eq, *design)
    print(json.dumps(found))


def main():
    """Print both versions, a line a design."""
    there, here = (
        json.loads(
            subprocess.run(
                [sys.executable, __file__],
                env={**os.environ, "PYTHONPATH": str(place / "src")},
                check=True,
                capture_output=True,
                text=True,
            ).stdout.splitlines()[-1]
        )
        for place in (Path(sys.argv[1]), HERE)
    )
    print("| design | size before | now | power up before | now | down before | now |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in here:
        cells = []
        for before, now in zip(there[name], here[name], strict=True):
            side = len(cells) // 2
            value = [sum(v) if side == 0 else v[side - 1] for v in (before, now)]
            cells += [f"{v:.3f}" for v in value]
        print("| " + " | ".join([name, *cells]) + " |")


if __name__ == "__main__":
    measured() if len(sys.argv) == 1 else main()
