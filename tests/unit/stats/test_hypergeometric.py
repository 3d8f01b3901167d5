import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

from equipoise.stats.hypergeometric import log_mean, smallest_tails, tails

TABLES = [(8, 4, 4), (10, 0, 3), (10, 10, 3), (5, 3, 5), (30, 7, 12), (400, 90, 25), (60, 50, 40)]


@pytest.mark.parametrize(("n", "ones", "size"), TABLES)
def test_tails_are_those_of_scipy_at_every_count(n, ones, size):
    law = stats.hypergeom(n, ones, size)
    low, high = law.support()
    x = np.arange(low, high + 1)
    greater, less = tails(x, *(np.full(len(x), part) for part in (n, ones, size)))
    assert_allclose(greater, law.sf(x - 1), rtol=1e-9)
    assert_allclose(less, law.cdf(x), rtol=1e-9)
    most, least = smallest_tails([n], [ones], [size])
    assert_allclose((most[0], least[0]), (greater[-1], less[0]), rtol=1e-9)


@pytest.mark.parametrize(("n", "ones", "size"), TABLES)
def test_the_mean_of_a_tilt_is_the_sum_over_the_support(n, ones, size):
    law = stats.hypergeom(n, ones, size)
    x = np.arange(law.support()[0], law.support()[1] + 1)
    bets = np.array([-1.6, -0.1, 0.0, 0.4, 1.6])
    direct = [np.log((law.pmf(x) * np.exp(beta * x)).sum()) for beta in bets]
    assert_allclose(log_mean([n], [ones], [size], bets)[0], direct, rtol=1e-9, atol=1e-12)


def test_large_batches_are_summed_about_the_tilted_mode():
    # A window of 40 standard deviations about the mean would miss most of the sum: 20,000 of each
    # side, half of them ones, are tilted by 76 standard deviations at an odds ratio of 5.
    n, ones, size, beta = 40_000, 20_000, 20_000, 1.6
    x = np.arange(size + 1)
    choose = special.gammaln
    log_h = 2 * (choose(size + 1) - choose(x + 1) - choose(size - x + 1))
    log_h -= choose(n + 1) - 2 * choose(size + 1)
    whole = special.logsumexp(log_h + beta * x)
    sd = np.sqrt(size * size * ones * (n - ones) / (n**2 * (n - 1)))
    near = np.abs(x - size / 2) <= 40 * sd
    assert_allclose(log_mean([n], [ones], [size], [beta])[0, 0], whole, rtol=1e-10)
    assert special.logsumexp((log_h + beta * x)[near]) < whole - 500
