"""How soon a monitor finds a gap, beside tests that look every week or once.

``python tests/calibration/monitor_delays.py`` prints the tables of docs/calibration.md: 300 rows a
week, 30% of them of the group, rate .4.
"""

import sys

import numpy as np
from scipy import stats

from equipoise.stats.disparity.monitor import raise_alarms
from simulate.over_time import monitors, rates, sizes

ROWS, SHARE, RATE, LEVEL = 300, 0.3, 0.4, 0.05


def score(n, ones):
    """Return the score root of two rates; the last axis is (group, rest)."""
    total, hits = n.sum(axis=-1), ones.sum(axis=-1)
    variance = n.prod(axis=-1) * hits * (total - hits) / (total**2 * (total - 1.0))
    return (ones[..., 0] - n[..., 0] * hits / total) / np.sqrt(np.maximum(variance, 1e-300))


def first(over):
    """Return the first week of each replication, infinity without one."""
    return np.where(over.any(axis=0), over.argmax(axis=0) + 1.0, np.inf)


def weeks_needed(gap, power):
    """Return the weeks after which one test of everything so far has the power."""
    z = stats.norm.ppf(1 - LEVEL / 2) + stats.norm.ppf(power)
    variance = RATE * (1 - RATE) * (1 / SHARE + 1 / (1 - SHARE)) / ROWS
    return z**2 * variance / gap**2


def delays(rng, gap, batches, start, replications):
    """Return when each way of looking raises its first alarm."""
    n = sizes(rng, batches, replications, ROWS, SHARE)
    late = (np.arange(batches) >= start)[:, None]
    p = np.stack([RATE + gap * late + 0 * n[..., 0], np.full(n.shape[:2], RATE)], axis=-1)
    sums = rates(rng, n, p)
    ones = sums.u.reshape(n.shape)
    found = monitors(sums, replications)
    ours = raise_alarms([found], adjust="none").batch
    weekly = 2 * stats.norm.sf(np.abs(score(n, ones)))
    so_far = 2 * stats.norm.sf(np.abs(score(n.cumsum(axis=0), ones.cumsum(axis=0))))
    return {
        "monitor": np.where(ours >= 0, ours + 1.0, np.inf),
        "monitor, one of 10 groups": first(found.log_e >= np.log(10 / LEVEL)),
        "weekly, Bonferroni": first(weekly <= LEVEL / batches),
        "weekly, naive": first(weekly <= LEVEL),
        "all so far, naive": first(so_far <= LEVEL),
    }


def table(replications=400, seed=0):
    rng = np.random.default_rng(seed)
    designs = [
        ("no gap, 52 weeks", 0.0, 52, 0),
        ("no gap, 260 weeks", 0.0, 260, 0),
        (".10 from the start", 0.10, 52, 0),
        (".05 from the start", 0.05, 52, 0),
        (".03 from the start", 0.03, 104, 0),
        (".05 from week 27", 0.05, 104, 26),
    ]
    lines = []
    for name, gap, batches, start in designs:
        found = delays(rng, gap, batches, start, replications)
        cells = []
        for weeks in found.values():
            share = np.isfinite(weeks).mean()
            middle = np.median(weeks)
            when = "never" if np.isinf(middle) else f"{middle:.0f}"
            cells.append(f"{share:.3f}" if not gap else f"{when} ({share:.2f})")
        oracle = "-"
        if gap:
            oracle = f"{start + weeks_needed(gap, 0.5):.0f} / {start + weeks_needed(gap, 0.8):.0f}"
        lines.append(f"| {name} | {' | '.join(cells)} | {oracle} |")
    head = ["design", *found, "one test, power .5 / .8"]
    rule = "|".join(["---"] * len(head))
    return "\n".join([f"| {' | '.join(head)} |", f"|{rule}|", *lines])


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
