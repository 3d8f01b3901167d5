"""Coverage of resampled intervals of an index, where the normal law covers 70 to 85%."""

import numpy as np
import pytest
from scipy import special

from equipoise.stats.inequality.benefits import BenefitMoments
from equipoise.stats.inequality.decomposition import decompose, log_interval
from equipoise.stats.inequality.resampled import resampled_intervals
from support.rates import assert_at_least, assert_rate

pytestmark = pytest.mark.calibration

ROWS = np.arange(10_000)


def lognormal(sd, n):
    def draw(rng):
        return {"benefits": rng.lognormal(0.0, sd, n)}

    return draw


def gamma(shape, n, groups):
    def draw(rng):
        return {"benefits": rng.gamma(shape, size=n) + 1e-300, "group": ROWS[:n] % groups}

    return draw


def clusters(units, rows, groups):
    def draw(rng):
        unit = np.repeat(np.arange(units), rows)
        noise = 0.4 * rng.normal(size=len(unit))
        benefits = np.exp(0.4 * rng.normal(size=units)[unit] + noise)
        return {"benefits": benefits, "cluster": unit, "group": ROWS[: len(unit)] % groups}

    return draw


def weighted(rng):
    return {
        "benefits": rng.lognormal(0.0, 0.5, 100),
        "weight": rng.gamma(1.0, size=100),
        "group": ROWS[:100] % 2,
    }


# Design, order, truth of total and within (groups are alike), least coverage that is claimed.
DESIGNS = {
    "log-normal .8, 60 rows": (lognormal(0.8, 60), 1.0, 0.32, 0.93),
    "log-normal .5, 30 rows": (lognormal(0.5, 30), 0.0, 0.125, 0.93),
    "log-normal 1, 300 rows": (lognormal(1.0, 300), 2.0, (np.e - 1.0) / 2.0, 0.93),
    "gamma .4, 120 rows": (gamma(0.4, 120, 3), 2.0, 1.25, 0.93),
    "gamma 2, 20 groups of 12": (
        gamma(2.0, 240, 20),
        1.0,
        special.digamma(3.0) - np.log(2.0),
        0.93,
    ),
    "uniform weights of CV 1": (weighted, 1.0, 0.125, 0.93),
    "20 clusters": (clusters(20, 6, 2), 1.0, 0.16, 0.93),
    "20 clusters that span groups": (clusters(20, 6, 3), 1.0, 0.16, 0.92),
    "10 clusters": (clusters(10, 10, 2), 1.0, 0.16, 0.91),
}
TRIALS = {True: 2_000, False: 150}


@pytest.mark.parametrize("name", DESIGNS)
def test_intervals_cover(name, rng, request):
    draw, order, truth, least = DESIGNS[name]
    trials = TRIALS[request.config.getoption("--slow")]
    covered = np.zeros(2)
    for k in range(trials):
        found = resampled_intervals(**draw(rng), order=order, n_resamples=199, rng=k)
        for part, (low, high) in enumerate((found.total, found.within)):
            covered[part] += low <= truth and (high is None or truth <= high)
    for hits in covered:
        assert_at_least(int(hits), trials, least)


def test_the_normal_law_does_not(rng):
    covered = 0
    for _ in range(1_000):
        parts = decompose(BenefitMoments.from_rows(rng.lognormal(0.0, 0.8, 60), order=1.0))
        low, high = log_interval(parts.total, parts.total_se)
        covered += low <= 0.32 <= high
    assert_rate(covered, 1_000, 0.84, below=0.02, above=0.02)
