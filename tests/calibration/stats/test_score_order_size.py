"""Size and power of the test of order, of several groups at once, and share of points tested."""

import numpy as np
import pytest

from equipoise.stats.scores.cells import ScoreCells, coarse
from equipoise.stats.scores.margins import compare_margins
from equipoise.stats.scores.omnibus import Residuals, parity_family
from equipoise.stats.scores.order import order_test
from equipoise.stats.scores.parity import parity_test
from support.rates import assert_at_least, assert_at_most, assert_rate

pytestmark = pytest.mark.calibration


@pytest.mark.parametrize("rates", [(0.7, 0.7), (0.05, 0.05)])
def test_order_keeps_its_level_at_the_boundary(rng, rates):
    trials, hits, n = 400, 0, 300 if rates[0] > 0.5 else 600
    group = np.repeat([0, 1], n)
    for k in range(trials):
        y = (rng.uniform(size=2 * n) < np.repeat(rates, n)).astype(float)
        hits += order_test(ScoreCells.from_rows(y, group, group), rng=k).p_value <= 0.05
    assert_rate(hits, trials, 0.05)


@pytest.mark.parametrize(("n", "share", "ratio"), [(1000, 0.1, 3.0), (300, 0.5, 3.0)])
def test_order_keeps_its_level_where_outcomes_of_one_group_vary_more(rng, n, share, ratio):
    trials, hits = 100, 0
    for k in range(trials):
        group, score = (rng.uniform(size=n) < share).astype(int), rng.uniform(size=n)
        y = rng.normal(size=n) * np.where(group == 1, ratio, 1.0)
        hits += order_test(coarse(ScoreCells.from_rows(y, score, group)), rng=k).p_value <= 0.05
    assert_at_most(hits, trials, 0.05)


def test_order_finds_the_example_of_the_paper(rng):
    trials, hits = 100, 0
    group = np.repeat([0, 1], 500)
    for k in range(trials):
        y = (rng.uniform(size=1000) < np.repeat([0.8, 0.6], 500)).astype(float)
        hits += order_test(ScoreCells.from_rows(y, group, group), rng=k).p_value <= 0.05
    assert_at_least(hits, trials, 0.99)


def four_groups(rng, gaps, n=1500):
    group = rng.integers(4, size=n)
    score = rng.beta(2 + 0.5 * group, 4 - 0.5 * group)
    y = (rng.uniform(size=n) < np.clip(score + np.array(gaps)[group], 0, 1)).astype(float)
    return coarse(ScoreCells.from_rows(y, score, group))


def test_several_groups_at_once_keep_their_level(rng):
    trials, hits = 200, 0
    for k in range(trials):
        hits += Residuals(four_groups(rng, (0, 0, 0, 0)), k).test(range(4)).p_value <= 0.05
    assert_rate(hits, trials, 0.05)


def test_closed_testing_finds_more_than_holm_and_keeps_its_level(rng):
    trials, wrong, found = 40, 0, np.zeros(2)
    pairs = [(b, a) for a in range(4) for b in range(a + 1, 4)]
    false = np.array([3 in pair for pair in pairs])
    for k in range(trials):
        cells = four_groups(rng, (0, 0, 0, 0.12))
        residuals = Residuals(cells, k)
        raw = np.array([residuals.test(pair).p_value for pair in pairs])
        p = [
            parity_family(cells, range(4), pairs, raw, adjust=adjust, rng=k).p_value
            for adjust in ("closed", "holm")
        ]
        wrong += np.any(p[0][~false] <= 0.05)
        found += [np.sum(each[false] <= 0.05) for each in p]
    assert_at_most(wrong, trials, 0.05)
    assert found[0] >= found[1]


def test_at_two_thousand_rows_most_points_are_tested(rng):
    tested = []
    for k in range(20):
        group = np.arange(2000) % 2
        score = np.where(group == 1, rng.beta(5, 2, 2000), rng.beta(2, 5, 2000))
        test = parity_test(rng.uniform(size=2000) < score, score, group, rng=k)
        tested.append(len(test.differences.points))
    assert min(tested) >= 8
    assert np.mean(tested) >= 11


def test_a_steep_curve_at_the_threshold_keeps_its_level(rng):
    trials, hits, n = 200, 0, 10_000
    for _ in range(trials):
        group, score = rng.integers(2, size=n), rng.uniform(0.5, 1, size=n)
        steep = 0.2 + 0.6 * (1 - np.exp(-12 * (score - 0.5)))
        y = (rng.uniform(size=n) < np.where(group == 1, steep, 0.2)).astype(float)
        (test,) = compare_margins(ScoreCells.from_rows(y, score, group), 0.5, [(1, 0)])
        hits += test.p_value <= 0.05
    assert_at_most(hits, trials, 0.05)


def test_decisions_and_intervals_at_the_threshold_never_contradict_each_other(rng):
    pairs = [(b, a) for a in range(4) for b in range(a + 1, 4)]
    trials, wrong = 100, 0
    for k in range(trials):
        group = rng.choice(4, size=1500, p=[0.5, 0.3, 0.15, 0.05])
        score = rng.uniform(size=1500)
        mean = 0.4 + np.array([0.1, 0.3, 0.6, 0.9])[group] * (score - 0.5)
        y = (rng.uniform(size=1500) < mean).astype(float)
        found = compare_margins(ScoreCells.from_rows(y, score, group), 0.5, pairs, rng=k)
        tests = [test for test in found if not isinstance(test, str)]
        assert all((t.low <= 0 <= t.high) == (t.p_value_adjusted > 0.05) for t in tests)
        wrong += any(test.p_value_adjusted <= 0.05 for test in tests)
    assert_at_most(wrong, trials, 0.05)
