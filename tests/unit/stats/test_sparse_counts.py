import numpy as np
import pytest
from scipy import stats

from equipoise.stats.pairs import Pairs
from equipoise.stats.sparse_counts import (
    _moments,
    _tables,
    equal_rates_test,
    smallest_expected_count,
)
from support.rates import assert_at_most, assert_rate


def array(*values):
    return np.array(values, dtype=float)


def test_enumeration_adds_up_the_tables_with_the_same_margins():
    ones, n = array(1, 4, 0), array(3, 8, 4)
    test = equal_rates_test(ones, n)
    total, every = 0.0, 0.0
    for a in range(4):
        for b in range(6):
            c = 5 - a - b
            if 0 <= c <= 4:
                chance = stats.multivariate_hypergeom.pmf([a, b, c], [3, 8, 4], 5)
                table = np.array([[a, b, c], [3 - a, 8 - b, 4 - c]])
                statistic = stats.chi2_contingency(table, correction=False).statistic
                every += chance
                total += chance * (statistic >= test.statistic - 1e-9)
    assert test.method == "enumeration"
    np.testing.assert_allclose([every, test.p_value], [1.0, total])
    assert test.df == 2


def test_a_known_rate_is_enumerated_without_margins():
    ones, n, rate = array(2, 0), array(2, 3), 0.2
    test = equal_rates_test(ones, n, rate=rate)
    x, y = np.meshgrid(np.arange(3), np.arange(4), indexing="ij")
    chance = np.outer(
        stats.binom.pmf(np.arange(3), 2, rate), stats.binom.pmf(np.arange(4), 3, rate)
    )
    value = (x - 0.4) ** 2 / 0.32 + (y - 0.6) ** 2 / 0.48
    np.testing.assert_allclose(test.statistic, 1.6**2 / 0.32 + 0.6**2 / 0.48)
    np.testing.assert_allclose(test.p_value, chance[value >= test.statistic - 1e-9].sum())
    assert test.df == 2


def test_two_samples_are_a_pair():
    test = equal_rates_test(array(9, 40), array(70, 150))
    pair = Pairs.of(array(40), array(150), array(9), array(70)).p_value(0.0)[0]
    np.testing.assert_allclose(test.p_value, pair, rtol=1e-9)
    assert (test.method, test.df) == ("pair", 1)


def test_one_sample_and_a_known_rate_are_binomial():
    test = equal_rates_test(array(5), array(94), rate=0.1)
    np.testing.assert_allclose(test.p_value, 2 * stats.binom.cdf(5, 94, 0.1))
    assert test.method == "binomial"


def test_without_variation_nothing_differs():
    for ones in (array(0, 0, 0), array(4, 5, 6)):
        assert equal_rates_test(ones, array(4, 5, 6)).p_value == 1.0


@pytest.mark.parametrize("rate", [None, 0.1])
def test_order_of_the_samples_does_not_matter(rate):
    rng = np.random.default_rng(3)
    n = rng.integers(3, 40, 30).astype(float)
    ones = rng.binomial(n.astype(int), 0.1).astype(float)
    first = equal_rates_test(ones, n, rate=rate)
    assert first.method == "monte_carlo"
    for order in (np.arange(30)[::-1], rng.permutation(30)):
        assert equal_rates_test(ones[order], n[order], rate=rate) == first


@pytest.mark.parametrize("rate", [None, 0.3])
def test_moments_are_those_of_the_enumerated_law(rate):
    n, total = array(3, 4, 5, 8), 6.0
    most = np.minimum(n, total) if rate is None else n
    chance, value = _tables(total, n, most, rate)
    chance = chance / chance.sum()
    mean = chance @ value
    np.testing.assert_allclose(
        _moments(total, n, rate), [mean, chance @ (value - mean) ** 2], rtol=1e-9
    )


def test_expected_counts_are_those_of_ones_or_zeros():
    np.testing.assert_allclose(smallest_expected_count(array(8, 9), array(10, 10)), 1.5)
    np.testing.assert_allclose(smallest_expected_count(array(8, 9), array(10, 20), 0.4), 4.0)


SPARSE = [
    ("five of 3 beside two of 2000", np.array([3.0] * 5 + [2000.0] * 2), 0.02, None),
    ("sizes 3 to 5000", np.round(np.geomspace(3, 5000, 100)), 0.005, None),
    ("sizes 3 to 20", np.round(np.linspace(3, 20, 100)), 0.03, None),
    ("sizes 3 to 20, known", np.round(np.linspace(3, 20, 100)), 0.03, 0.03),
]


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("n", "rate", "known"), [s[1:] for s in SPARSE], ids=[s[0] for s in SPARSE]
)
def test_size_of_the_joint_test_with_rare_events(n, rate, known, rng):
    # Chi-square rejected .252, .177, .080 and .153 of these.
    trials = 200
    ones = rng.binomial(n.astype(int), rate, (trials, len(n))).astype(float)
    hits = sum(equal_rates_test(row, n, rate=known).p_value <= 0.05 for row in ones)
    assert_at_most(hits, trials, 0.05)


@pytest.mark.calibration
@pytest.mark.parametrize("known", [False, True])
def test_size_with_thousands_of_samples(known, rng):
    n = rng.integers(3, 21, 6000)
    trials, rate = 1000, 0.003
    ones = rng.binomial(n, rate, (trials, len(n))).astype(float)
    tests = [equal_rates_test(row, n.astype(float), rate=rate if known else None) for row in ones]
    assert tests[0].method == "moments"
    assert_rate(sum(t.p_value <= 0.05 for t in tests), trials, 0.05)


@pytest.mark.parametrize("seed", range(3))
def test_thousands_of_small_groups_are_tested_by_two_moments(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 9, 5001).astype(float)
    ones = rng.binomial(n.astype(int), 0.3).astype(float)
    many = equal_rates_test(ones, n)
    assert many.method == "moments"
    # With so many groups the chi-square law itself is near.
    assert many.p_value == pytest.approx(stats.chi2.sf(many.statistic, many.df), abs=0.06)
    ones[:200] = n[:200]
    assert equal_rates_test(ones, n).p_value < 1e-12
