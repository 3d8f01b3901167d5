"""Naive second implementations: one number at a time, sums over the whole support."""

import itertools
import math

import numpy as np
from scipy import stats


def asymptotic_confidence_sequence(x, t, *, alpha, rho, sigma):
    """Waudby-Smith and others (2024): mean and half-width after t values, with a fixed scale."""
    mean = sum(x[:t]) / t
    spread = math.sqrt(sum((value - mean) ** 2 for value in x[:t]) / t)
    # Their boundary for unit variance at intrinsic time t s^2 / sigma^2.
    time = t * spread**2 / sigma**2
    radius = math.sqrt(
        2
        * (time * rho**2 + 1)
        / (time**2 * rho**2)
        * math.log(math.sqrt(time * rho**2 + 1) / alpha)
    )
    return mean, radius * sigma * time / t


def conditional_factor(n1, s1, n2, s2, beta):
    """E-value of a batch: the hypergeometric likelihood tilted by beta."""
    law = stats.hypergeom(n1 + n2, s1 + s2, n1)
    low, high = law.support()
    mean = sum(law.pmf(x) * math.exp(beta * x) for x in range(low, high + 1))
    return math.exp(beta * s1) / mean


def e_process(factors):
    """Wealth of bets started in every batch, one by one: factors is a list of lists by batch."""
    start = [0.5] + [1 / (2 * t * (t - 1)) for t in range(2, len(factors) + 1)]
    path = []
    for t in range(1, len(factors) + 1):
        wealth = 0.0
        for k in range(len(factors[0])):
            for s in range(t):
                wealth += start[s] * math.prod(factors[b][k] for b in range(s, t))
        path.append(wealth / len(factors[0]) + 1 - sum(start[:t]))
    return path


def e_holm(e):
    """Smallest average over all sets that contain a hypothesis."""
    indices = range(len(e))
    return [
        min(
            np.mean([e[i] for i in chosen])
            for size in range(1, len(e) + 1)
            for chosen in itertools.combinations(indices, size)
            if j in chosen
        )
        for j in indices
    ]


def tango_interval(gained, lost, n, level=0.95):
    """Values of the change that the score test keeps, on a fine grid."""
    z = stats.norm.ppf((1 + level) / 2)
    d = np.linspace(-1, 1, 200_001)[1:-1]
    # Most likely rate of "lost" given the change, by the quadratic of Tango (1998).
    a, b, c = 2 * n, -gained - lost + (2 * n - gained + lost) * d, -lost * d * (1 - d)
    q = (np.sqrt(b * b - 4 * a * c) - b) / (2 * a)
    variance = n * (2 * q + d * (1 - d))
    kept = d[(gained - lost - n * d) ** 2 <= z**2 * variance]
    return kept[0], kept[-1]


def slices(y, columns, depth, least):
    """All conjunctions of (column, value) pairs: name, rows and ones, as sets of rows."""
    conditions = [
        (name, value) for name, column in columns.items() for value in sorted(set(column))
    ]
    found = {}
    n = len(y)
    for size in range(1, depth + 1):
        for chosen in itertools.combinations(conditions, size):
            if len({name for name, _ in chosen}) < size:
                continue
            rows = frozenset(
                i for i in range(n) if all(columns[name][i] == value for name, value in chosen)
            )
            found[chosen] = rows
    result = {}
    for chosen, rows in found.items():
        same = [
            found[chosen[:k] + chosen[k + 1 :]] == rows
            for k in range(len(chosen))
            if len(chosen) > 1
        ]
        if least <= len(rows) <= n - least and not any(same):
            result[frozenset(chosen)] = (len(rows), sum(y[i] for i in rows))
    return result


def closed_simes(p, alpha):
    """Smallest number of false hypotheses by testing every intersection."""
    m = len(p)
    kept = [
        set(chosen)
        for size in range(1, m + 1)
        for chosen in itertools.combinations(range(m), size)
        if all(
            value > (k + 1) * alpha / size for k, value in enumerate(sorted(p[i] for i in chosen))
        )
    ]
    # The largest intersection that is not rejected may be all true.
    return m - max((len(chosen) for chosen in kept), default=0)
