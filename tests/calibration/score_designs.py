"""Bands, global test, average and order of scores over ten designs in which parity is true.

``python tests/calibration/score_designs.py [tables]`` prints a table of the method page: rejections
at 5%, how many of 21 points have a band, and in how many tables any has.
"""

import sys

import numpy as np
from scipy import special

from equipoise.stats.scores.parity import parity_test


def _scores(rng, n, share, first, second, mean, cluster=None):
    group = (rng.random(n) < share).astype(int)
    score = np.where(group == 1, second(n), first(n))
    return (rng.random(n) < mean(score)).astype(float), score, group, cluster


def _beta(rng, *shape):
    return lambda n: rng.beta(*shape, size=n)


def shifted(rng, n=2_000):
    """Two thirds of each group lie where the other has few."""
    return _scores(rng, n, 0.5, _beta(rng, 5, 2), _beta(rng, 2, 5), lambda s: s)


def skewed(rng, n=2_000):
    """Scores crowd near zero and outcomes are rare."""
    return _scores(rng, n, 0.5, _beta(rng, 0.7, 5), _beta(rng, 0.5, 8), lambda s: s)


def lending(rng, n=2_000):
    """A minority of 14% with somewhat lower scores, most applicants approved."""
    return _scores(rng, n, 0.14, _beta(rng, 8, 1.2), _beta(rng, 4, 1.5), lambda s: s)


def long_tail(rng, n=2_000):
    """Scores are lognormal."""
    return _scores(
        rng,
        n,
        0.5,
        lambda k: rng.lognormal(0.0, 1.0, k),
        lambda k: rng.lognormal(0.4, 1.0, k),
        lambda s: s / (1 + s),
    )


def deciles(rng, n=2_000):
    """Ten levels and a minority of 10%."""
    group = (rng.random(n) < 0.1).astype(int)
    score = np.clip(np.floor(rng.normal(5.5 - group, 2.5, n)), 1, 10)
    return (rng.random(n) < score / 11).astype(float), score, group, None


def repeated(rng, n=2_400):
    """Clusters of four whose outcomes share a latent normal of correlation .6."""
    unit = np.repeat(np.arange(n // 4), 4)
    group = rng.integers(2, size=n // 4)[unit]
    score = rng.beta(2, 2, n)
    latent = np.sqrt(0.6) * rng.standard_normal(n // 4)[unit] + np.sqrt(0.4) * rng.standard_normal(
        n
    )
    return (special.ndtr(latent) < score).astype(float), score, group, unit


def steep(rng, n=2_000):
    """A steep curve between shifted normal scores."""
    return _scores(
        rng,
        n,
        0.5,
        lambda k: rng.normal(0, 1, k),
        lambda k: rng.normal(1, 1, k),
        lambda s: special.ndtr(2 * s),
    )


def flat(rng, n=2_000, rate=0.3, share=0.5):
    """Scores say nothing about outcomes."""
    return _scores(
        rng, n, share, _beta(rng, 2, 2), _beta(rng, 2, 2), lambda s: np.full_like(s, rate)
    )


DESIGNS = {
    "Beta(5, 2) against Beta(2, 5), n = 1,000": lambda rng: shifted(rng, 1_000),
    "the same, n = 2,000": shifted,
    "skewed and rare: Beta(.7, 5) against Beta(.5, 8), n = 2,000": skewed,
    "a minority of 14%, most approved, n = 2,000": lending,
    "lognormal scores, shifted, n = 2,000": long_tail,
    "ten levels, a minority of 10%, n = 2,000": deciles,
    "600 clusters of 4, correlation .6": repeated,
    "steep curve, shifted normal scores, n = 2,000": steep,
    "flat at .3, n = 2,000": flat,
    "flat at .06, a fifth in the smaller group, n = 2,000": lambda rng: flat(rng, 2_000, 0.06, 0.2),
}


def outcome(rows, rng):
    """Return the p-values of band, global test, average and order, and the points with a band."""
    y, score, group, unit = rows
    test = parity_test(
        y, score, group, cluster=unit, unit=None if unit is None else "cluster", rng=rng
    )
    band = test.differences
    points = 0 if band is None else int(np.isfinite(band.test.low).sum())
    return (
        1.0 if band is None else band.test.max_p_value,
        test.cusum.ks_p_value,
        test.average.p_value,
        1.0 if test.order is None else test.order.p_value,
        points,
    )


def simulate(rng, design, tables):
    """Return the rates of rejection, the mean number of points and the share with a band."""
    found = np.array([outcome(design(rng), rng) for _ in range(tables)])
    return (
        *(found[:, :4] <= 0.05).mean(axis=0),
        found[:, 4].mean(),
        (found[:, 4] > 0).mean(),
    )


def table(tables=400, seed=0):
    head = [
        "design, parity true",
        "band",
        "global",
        "average",
        "order",
        "points of 21",
        "with a band",
    ]
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join([' --- '] * len(head))}|"]
    for name, design in DESIGNS.items():
        rng = np.random.default_rng(seed)
        *rates, points, some = simulate(rng, design, tables)
        cells = [f"{rate:.3f}".lstrip("0") for rate in rates] + [f"{points:.1f}", f"{some:.0%}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table(*map(int, sys.argv[1:])) + "\n")
