"""Many segments of rows that repeat few people, with scores that are right.

``python tests/calibration/segment_designs.py [tables]`` prints a table of the method page: how
often a segment is said to be off at 5%, and how many of the eleven segments are tested.
"""

import sys

import numpy as np
import pandas as pd
from scipy import special

import equipoise as eq


def rows(rng, *, n_clusters, size, correlation, nested, levels=None, shape=(2, 3)):
    """Draw clusters whose outcomes share a latent normal; at every score the mean is the score.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_clusters, size : int
        Clusters, and rows of each.
    correlation : float
        Of the latent normals of a cluster.
    nested : bool
        Whether all rows of a cluster are in one segment.
    levels : int, optional
        Scores are the middles of so many equal parts of [0, 1].
    shape : tuple of float
        Of the beta law of the scores.
    """
    unit = np.repeat(np.arange(n_clusters), size)
    pattern = rng.permutation(n_clusters)[unit] % 6 if nested else rng.integers(6, size=len(unit))
    s = rng.beta(*shape, size=len(unit))
    if levels is not None:
        s = (np.floor(s * levels) + 0.5) / levels
    latent = np.sqrt(correlation) * rng.standard_normal(n_clusters)[unit]
    latent += np.sqrt(1 - correlation) * rng.standard_normal(len(unit))
    return pd.DataFrame(
        {
            "a": pattern // 3,
            "b": pattern % 3,
            "unit": unit,
            "score": s,
            "y": (special.ndtr(latent) < s).astype(int),
        }
    )


DESIGNS = {
    "12 clusters of 100, each in one segment, correlation .1": {
        "n_clusters": 12,
        "size": 100,
        "correlation": 0.1,
        "nested": True,
    },
    "30 clusters of 40, each in one segment, correlation .3": {
        "n_clusters": 30,
        "size": 40,
        "correlation": 0.3,
        "nested": True,
    },
    "120 clusters of 10, each in one segment, correlation .3": {
        "n_clusters": 120,
        "size": 10,
        "correlation": 0.3,
        "nested": True,
    },
    "8 clusters of 150, in all segments, correlation .1": {
        "n_clusters": 8,
        "size": 150,
        "correlation": 0.1,
        "nested": False,
    },
    "20 clusters of 60, in all segments, correlation .3": {
        "n_clusters": 20,
        "size": 60,
        "correlation": 0.3,
        "nested": False,
    },
    "300 clusters of 5, in all segments, correlation .6": {
        "n_clusters": 300,
        "size": 5,
        "correlation": 0.6,
        "nested": False,
    },
    "the same, ten values of the score": {
        "n_clusters": 300,
        "size": 5,
        "correlation": 0.6,
        "nested": False,
        "levels": 10,
    },
    "20 clusters of 60, in all segments, correlation .3, ten values": {
        "n_clusters": 20,
        "size": 60,
        "correlation": 0.3,
        "nested": False,
        "levels": 10,
    },
    "rare: 60 clusters of 40, each in one segment, correlation .3": {
        "n_clusters": 60,
        "size": 40,
        "correlation": 0.3,
        "nested": True,
        "shape": (1, 15),
    },
}


def outcome(table, hypothesis, rng):
    """Return whether a segment is said to be off, and how many are tested."""
    audit = eq.Audit(table, group=["a", "b"], y_true="y", y_score="score", cluster="unit")
    result = audit.multicalibration(depth=2, hypothesis=hypothesis, rng=rng)
    p = [f.p_value for f in result.findings if f.p_value is not None]
    return min(p, default=1.0) <= 0.05, len(p)


def simulate(rng, design, hypothesis, tables):
    """Return the rate of rejections and the mean number of tested segments."""
    found = [outcome(rows(rng, **design), hypothesis, rng) for _ in range(tables)]
    return np.mean(found, axis=0)


def table(tables=200, seed=0):
    head = ["design, scores right", "calibration", "parity", "segments of 11 tested"]
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join([' --- '] * len(head))}|"]
    for name, design in DESIGNS.items():
        rng = np.random.default_rng(seed)
        (wrong, tested), (unequal, _) = (
            simulate(rng, design, hypothesis, tables) for hypothesis in ("calibration", "parity")
        )
        rates = [f"{rate:.3f}".lstrip("0") for rate in (wrong, unequal)]
        lines.append(f"| {name} | {' | '.join(rates)} | {tested:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table(*map(int, sys.argv[1:])) + "\n")
