"""Coverage of the interval of the parity error, in designs that played no part in its choice.

``python tests/calibration/parity_error_designs.py [tables]`` prints a table of the method page: how
often the 95% interval covers the root mean squared difference at equal scores, where there is none,
where there is one, and where it changes its sign; and the mean of the estimates.
"""

import sys

import numpy as np
from scipy import special

from equipoise.stats.scores.group_quality import parity_error


def _members(rng, n, share):
    return rng.random(n) < share


def _independent(rng, n, share, own, other, mean, gap):
    member = _members(rng, n, share)
    s = np.where(member, own(n), other(n))
    return rng.random(n) < np.clip(mean(s) + gap(s) * member, 0, 1), s, member, None


def _clusters(rng, n_clusters, size, correlation, gap, *, across=False, levels=None):
    unit = np.repeat(np.arange(n_clusters), size)
    member = _members(rng, len(unit), 0.4) if across else _members(rng, n_clusters, 0.4)[unit]
    s = np.where(member, rng.beta(2, 4, len(unit)), rng.beta(4, 3, len(unit)))
    if levels:
        s = (np.floor(s * levels) + 0.5) / levels
    latent = np.sqrt(correlation) * rng.standard_normal(n_clusters)[unit]
    latent += np.sqrt(1 - correlation) * rng.standard_normal(len(unit))
    chance = 0.1 + 0.7 * s + gap(s) * member
    return special.ndtr(latent) < chance, s, member, unit


def _line(s):
    return 0.1 + 0.7 * s


DESIGNS = {
    "lognormal scores, shifted, n = 2,000": lambda rng, gap: _independent(
        rng,
        2_000,
        0.5,
        lambda k: rng.lognormal(0.4, 1.0, k),
        lambda k: rng.lognormal(0.0, 1.0, k),
        lambda s: 0.1 + 0.7 * s / (1 + s),
        gap,
    ),
    "two humps against one, n = 3,000": lambda rng, gap: _independent(
        rng,
        3_000,
        0.3,
        lambda k: np.where(rng.random(k) < 0.5, rng.beta(2, 8, k), rng.beta(8, 2, k)),
        lambda k: rng.beta(3, 3, k),
        _line,
        gap,
    ),
    "a twentieth in the group, n = 4,000": lambda rng, gap: _independent(
        rng,
        4_000,
        0.05,
        lambda k: rng.beta(2, 3, k),
        lambda k: rng.beta(3, 2, k),
        _line,
        gap,
    ),
    "ten values, a tenth in the group, n = 2,000": lambda rng, gap: _independent(
        rng,
        2_000,
        0.1,
        lambda k: rng.integers(1, 10, k) / 10,
        lambda k: rng.integers(2, 11, k) / 10,
        _line,
        gap,
    ),
    "two values, n = 600": lambda rng, gap: _independent(
        rng,
        600,
        0.3,
        lambda k: rng.integers(2, size=k).astype(float),
        lambda k: (rng.random(k) < 0.7).astype(float),
        _line,
        gap,
    ),
    "a wave instead of a line, n = 2,000": lambda rng, gap: _independent(
        rng,
        2_000,
        0.4,
        lambda k: rng.beta(2, 3, k),
        lambda k: rng.beta(3, 2, k),
        lambda s: 0.4 + 0.25 * np.sin(9 * s),
        gap,
    ),
    "small: n = 300": lambda rng, gap: _independent(
        rng, 300, 0.4, lambda k: rng.beta(2, 3, k), lambda k: rng.beta(3, 2, k), _line, gap
    ),
    "400 clusters of 5, correlation .6": lambda rng, gap: _clusters(rng, 400, 5, 0.6, gap),
    "the same, ten values": lambda rng, gap: _clusters(rng, 400, 5, 0.6, gap, levels=10),
    "60 clusters of 40, correlation .2": lambda rng, gap: _clusters(rng, 60, 40, 0.2, gap),
    "20 clusters of 100, correlation .1": lambda rng, gap: _clusters(rng, 20, 100, 0.1, gap),
    "20 clusters of 100 across both sides, correlation .3": lambda rng, gap: _clusters(
        rng, 20, 100, 0.3, gap, across=True
    ),
}
GAPS = {
    "none": (0.0, lambda s: 0.0 * s),
    "constant .08": (0.08, lambda s: np.full_like(s, 0.08)),
    "sign changes": (0.08, lambda s: np.where(s > 0.5, 0.08, -0.08)),
}


def simulate(rng, design, gap, tables):
    """Return coverage, the mean estimate, and the share of tables with an estimate."""
    truth, curve = GAPS[gap]
    hits, estimates = [], []
    for _ in range(tables):
        y, s, member, unit = design(rng, curve)
        found = parity_error(y, s, member, cluster=unit)
        if found is None:
            continue
        low, high = found.confidence_interval()
        hits.append(low <= truth <= high)
        estimates.append(found.estimate)
    return np.mean(hits), np.mean(estimates), len(hits) / tables


def table(tables=400, seed=0):
    head = ["design"]
    for words in ("no difference", "difference .08", ".08 up and down"):
        head += [f"{words}: covers", "mean estimate"]
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join([' --- '] * len(head))}|"]
    for name, design in DESIGNS.items():
        rng = np.random.default_rng(seed)
        cells = []
        for gap in GAPS:
            covers, mean, _ = simulate(rng, design, gap, tables)
            cells += [f"{covers:.3f}".lstrip("0"), f"{mean:.3f}".lstrip("0")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table(*map(int, sys.argv[1:])) + "\n")
