"""The tables of the methods page, at their full number of replications; run with --slow -s."""

import numpy as np
import pytest
from scipy import special, stats

from equipoise.stats.inequality.decomposition import between_test, decompose
from equipoise.stats.inequality.index import kernel
from simulate.entropy import (
    SIX,
    index_of,
    kappa_population,
    moments_of,
    rare_low,
    unequal_variances,
)

pytestmark = [pytest.mark.calibration, pytest.mark.slow]


def speicher(accuracy):
    return [0.0, 1.0, 2.0], [0.6 * (1 - accuracy), accuracy, 0.4 * (1 - accuracy)]


# Population, order, n, coverage of Wald and log-Wald in the spec (20,000 replications).
COVERAGE = [
    ("Speicher, accuracy .9", speicher(0.9), 1.0, 200, 0.924, 0.949),
    ("Speicher, accuracy .9", speicher(0.9), 2.0, 1000, 0.949, 0.952),
    ("Speicher, accuracy .7", speicher(0.7), 0.5, 200, 0.943, 0.948),
    ("kappa, FPR .03", kappa_population(0.03), 0.5, 200, 0.869, 0.945),
    ("kappa, FPR .03", kappa_population(0.03), 0.5, 1000, 0.937, 0.960),
    ("kappa, FPR .005", kappa_population(0.005), 0.5, 200, 0.454, 0.431),
    ("kappa, FPR .005", kappa_population(0.005), 0.5, 1000, 0.844, 0.920),
    ("kappa, FPR .005", kappa_population(0.005), 0.5, 5000, 0.930, 0.941),
]


@pytest.mark.parametrize("row", COVERAGE, ids=lambda row: f"{row[0]}-{row[3]}")
def test_coverage_row(rng, row):
    name, (levels, probabilities), order, n, wald, log = row
    trials = 20_000
    levels = np.asarray(levels)
    counts = rng.multinomial(n, probabilities, size=trials) / n
    x = levels / (counts @ levels)[:, None]
    ft = np.where(counts > 0, kernel(x, order), 0.0)
    index = np.sum(counts * ft, axis=1)
    influence = ft - index[:, None] - order * index[:, None] * (x - 1.0)
    se = np.sqrt(np.sum(counts * influence**2, axis=1) / n)
    first = decompose(moments_of((counts[0] * n).round().astype(int), levels, order))
    assert (index[0], se[0]) == pytest.approx((first.total, first.total_se))
    truth, z = index_of(levels, probabilities, order), special.ndtri(0.975)
    by_wald = np.mean(np.abs(index - truth) <= z * se)
    safe = np.where(index > 0, index, 1.0)
    by_log = np.mean((index > 0) & (np.abs(np.log(safe / truth)) <= z * se / safe))
    print(f"{name} | {order:g} | {n} | {wald:.3f} {by_wald:.3f} | {log:.3f} {by_log:.3f}")
    # How false positives and negatives share the errors is not in the spec; it moves the rows.
    assert by_log == pytest.approx(log, abs=0.03)


def two_groups(spread, share):
    spread = np.asarray(spread)
    rows = np.stack([spread / 2, 1 - spread, spread / 2], axis=1)
    return [0.0, 1.0, 2.0], rows, np.asarray(share)


SIZE = [
    ("G=2, equal variances", two_groups([0.3, 0.3], [0.5, 0.5]), 500, 0.040),
    ("G=2 10/90, unequal", two_groups([0.8, 0.1], [0.1, 0.9]), 2000, 0.056),
    ("G=6 unequal", (*unequal_variances(), SIX), 500, 0.087),
    ("G=6 unequal", (*unequal_variances(), SIX), 10_000, 0.051),
    ("G=6, kappa levels, rare low", (*rare_low(), SIX), 500, 0.032),
    ("G=6, kappa levels, rare low", (*rare_low(), SIX), 2000, 0.047),
    ("G=6, kappa levels, rare low", (*rare_low(), SIX), 10_000, 0.052),
]


@pytest.mark.parametrize("row", SIZE, ids=lambda row: f"{row[0]}-{row[2]}")
def test_size_row(rng, row):
    name, (levels, rows, share), n, spec = row
    trials = 2000
    rejected = np.zeros(4)
    for flat in rng.multinomial(n, (share[:, None] * rows).ravel(), size=trials):
        counts = flat.reshape(rows.shape)
        moments = moments_of(counts, levels, 1.0)
        size = counts.sum(axis=1)
        mean = counts @ np.asarray(levels) / size
        variance = counts @ np.asarray(levels) ** 2 / size - mean**2
        whole, pooled = np.average(mean, weights=size), np.average(variance, weights=size)
        weight = size / np.maximum(variance, 1e-9)
        centre = np.average(mean, weights=weight)
        parts = decompose(moments)
        df = len(share) - 1
        rejected += [
            between_test(moments).p_value <= 0.05,
            stats.chi2.sf(np.sum(weight * (mean - centre) ** 2), df) <= 0.05,
            stats.chi2.sf(np.sum(size * (mean - whole) ** 2) / pooled, df) <= 0.05,
            parts.between > 1.645 * parts.between_se,
        ]
    joint, wald, pool, z = rejected / trials
    print(f"{name} | {n} | {spec:.3f} {joint:.3f} | {wald:.3f} | {pool:.3f} | {z:.3f}")
    assert joint <= max(spec, 0.05) + 0.02
