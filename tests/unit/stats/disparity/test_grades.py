from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.exceptions import GroupTooSmallError
from equipoise.stats.disparity.grades import (
    ManyGroups,
    _best_cut,
    _cheapest,
    _normal_errors,
    _normal_law,
    _ties,
    grade_groups,
)


@pytest.fixture
def means(rng):
    variance = rng.uniform(0.5, 2.0, 30)
    truth = rng.normal(size=30) * 2.0
    return ManyGroups(
        value=truth + rng.normal(size=30) * np.sqrt(variance),
        n=np.arange(30.0) + 40.0,
        variance=variance,
    )


def test_the_variance_by_chance_is_taken_off_by_hand():
    # Ten groups at 0.2 and ten at 0.4 of 50 rows: 0.2 (0.8) / 49 and 0.4 (0.6) / 49 by chance.
    groups = ManyGroups(value=np.repeat([0.2, 0.4], 10), n=np.full(20, 50.0))
    assert_allclose(groups.spread.variance, 20 * 0.01 / 19 - (0.16 + 0.24) / 2 / 49)
    assert_allclose(groups.spread.statistic, 20 * 0.01 / (0.3 * 0.7 / 50))


def test_the_interval_holds_the_variances_that_q_does_not_reject(means):
    spread = means.spread
    low, high = spread.confidence_interval(0.9)
    for end, tail in ((low, 0.95), (high, 0.05)):
        total = means.variance + end**2
        mean = (means.value / total).sum() / (1.0 / total).sum()
        q = ((means.value - mean) ** 2 / total).sum()
        assert_allclose(q, stats.chi2.ppf(tail, 29), rtol=1e-8)
    assert low < spread.estimate < high
    assert str(spread).startswith("true values of 30 groups have standard deviation")


def test_zero_is_inside_exactly_when_equality_is_not_rejected_by_the_same_tail():
    groups = ManyGroups(value=np.linspace(0.2, 0.4, 20), n=np.full(20, 60.0))
    p = groups.spread.p_value
    assert 0.001 < p < 0.5
    assert groups.spread.confidence_interval(1.0 - 2.02 * p).low > 0.0
    assert groups.spread.confidence_interval(1.0 - 1.98 * p).low == 0.0


def test_chances_of_a_wrong_order_are_those_of_a_naive_count(means):
    z, variance = means.scores()
    mean, own = _normal_law(z, variance)
    wrong = _normal_errors(mean, own)
    expected = stats.norm.cdf(0.0, mean[3] - mean[7], np.sqrt(own[3] + own[7]))
    assert_allclose(wrong[3, 7], expected)


def test_ties_are_as_likely_as_the_distances_of_all_pairs_say(rng):
    # Two values nine standard errors apart: half of the pairs are equal in truth.
    z = np.repeat([0.0, 9.0], 100) + rng.normal(size=200)
    tie = _ties(z, np.ones(200))
    same = np.equal.outer(np.repeat([0, 1], 100), np.repeat([0, 1], 100))
    assert tie[same].mean() > 0.9
    assert tie[~same].mean() < 0.01
    assert_allclose(tie, tie.T)
    # Without any difference every pair may be one.
    assert _ties(rng.normal(size=200), np.ones(200)).mean() > 0.9


def cuts(size):
    """All cuts of an ordered list into blocks."""
    for marks in product((0, 1), repeat=size - 1):
        yield np.concatenate([[0], np.cumsum(marks)])


def test_the_cut_is_the_best_of_all_cuts(rng):
    for _ in range(5):
        size = 8
        wrong = np.triu(rng.uniform(0.0, 0.5, (size, size)), 1)
        for price in (1.0, 3.0, 10.0):

            def gain(block, wrong=wrong, price=price):
                apart = block[:, None] < block[None, :]
                return apart.sum() - price * wrong[apart].sum()

            best = max(gain(block) for block in cuts(size))
            assert_allclose(gain(_cheapest(wrong, price)), best)
        block = _best_cut(wrong, 0.1)
        apart = block[:, None] < block[None, :]
        assert wrong[apart].sum() <= 0.1 * apart.sum()


def test_equal_groups_have_one_grade(rng):
    n = np.full(40, 200.0)
    found = grade_groups(ManyGroups(value=rng.binomial(200, 0.3, 40) / n, n=n))
    assert (found.n_grades, found.ordered, found.misranked) == (1, 0, 0.0)
    nobody = grade_groups(ManyGroups(value=np.zeros(20), n=np.full(20, 50.0)))
    assert nobody.n_grades == 1
    assert nobody.spread.p_value == 1.0


def test_grades_follow_the_values_and_not_the_order_of_groups(means):
    found = grade_groups(means, level=0.2)
    assert found.n_grades > 1
    assert 0.0 < found.misranked <= 0.2
    turned = ManyGroups(value=means.value[::-1], n=means.n[::-1], variance=means.variance[::-1])
    assert (grade_groups(turned, level=0.2).grade[::-1] == found.grade).all()
    # Grade 1 has the highest expected values.
    assert (np.diff(found.grade[np.argsort(-found.shrunk)]) >= 0).all()
    negative = ManyGroups(value=-means.value, n=means.n, variance=means.variance)
    other = grade_groups(negative, level=0.2)
    assert (other.grade == found.n_grades + 1 - found.grade).all()
    assert "are expected to be wrong" in str(found)


def test_a_smaller_level_orders_fewer_pairs(means):
    ordered = [grade_groups(means, level=level).ordered for level in (0.02, 0.05, 0.1, 0.3)]
    assert ordered == sorted(ordered)


def test_few_groups_are_refused():
    with pytest.raises(GroupTooSmallError, match="grades need 20 to 1,000 groups; got 3"):
        ManyGroups(value=np.zeros(3), n=np.ones(3))


def test_rates_have_the_variance_of_their_angles():
    """Anscombe 1948: asin(sqrt((x + 3/8) / (n + 3/4))) has variance 1 / (4 n + 2)."""
    groups = ManyGroups(value=np.full(400, 0.3), n=np.full(400, 60.0))
    assert_allclose(groups.scores()[1], 1.0 / 242.0)
    x = np.arange(61)
    angle = np.arcsin(np.sqrt((x + 0.375) / 60.75))
    chance = stats.binom.pmf(x, 60, 0.3)
    variance = chance @ angle**2 - (chance @ angle) ** 2
    assert_allclose(groups.scores()[1][0], variance, rtol=0.02)
