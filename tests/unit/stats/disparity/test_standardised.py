import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.exceptions import GroupTooSmallError
from equipoise.stats.disparity.standardised import (
    _density_ratio,
    scoring_rates,
    standardised_mean_difference,
)


def test_differences_over_both_deviations_by_hand(rng):
    y, member = rng.normal(size=60) + 3.0, np.arange(60) < 20
    gap = y[:20].mean() - y[20:].mean()
    assert_allclose(standardised_mean_difference(y, member).estimate, gap / y.std(ddof=1))
    pooled = (19 * y[:20].var(ddof=1) + 39 * y[20:].var(ddof=1)) / 58
    cohen = standardised_mean_difference(y, member, sd="pooled")
    assert_allclose(cohen.estimate, gap / np.sqrt(pooled))
    low, high = cohen.confidence_interval()
    assert (low <= 0.0 <= high) == (cohen.p_value > 0.05)


@pytest.mark.parametrize("sd", ["population", "pooled"])
def test_the_standard_error_is_that_of_the_jackknife(rng, sd):
    y, member = rng.exponential(size=600), np.arange(600) < 200
    y[member] += 2.0
    found = standardised_mean_difference(y, member, sd=sd)
    left = [
        standardised_mean_difference(np.delete(y, i), np.delete(member, i), sd=sd).estimate
        for i in range(600)
    ]
    jackknife = np.sqrt(599 / 600 * ((left - np.mean(left)) ** 2).sum())
    assert_allclose(found.se, jackknife, rtol=0.03)


def test_a_third_group_counts_in_the_population_only(rng):
    y, group = rng.normal(size=90), np.repeat([0, 1, 2], 30)
    found = standardised_mean_difference(y, group == 0, comparator=group == 1)
    assert_allclose(found.estimate, (y[:30].mean() - y[30:60].mean()) / y.std(ddof=1))
    alone = standardised_mean_difference(y[:60], group[:60] == 0, sd="pooled")
    beside = standardised_mean_difference(y, group == 0, comparator=group == 1, sd="pooled")
    assert_allclose(beside.estimate, alone.estimate)
    assert_allclose(beside.se, alone.se, rtol=0.01)


def test_clusters_are_summed(rng):
    y, member = rng.normal(size=40), np.arange(40) % 2 == 0
    one = standardised_mean_difference(y, member, cluster=np.arange(40))
    assert_allclose(one.se, standardised_mean_difference(y, member).se)
    assert standardised_mean_difference(y, member, cluster=np.arange(40) // 4).se != one.se


def test_nothing_to_standardise_by_is_refused():
    with pytest.raises(GroupTooSmallError, match="need two rows; got 1 and 4"):
        standardised_mean_difference(np.arange(5.0), np.arange(5) == 0)
    with pytest.raises(GroupTooSmallError, match="does not vary"):
        standardised_mean_difference(np.ones(6), np.arange(6) < 3)


def test_people_of_unknown_category_count_for_the_median():
    score = np.array([1.0, 2, 3, 4, 5, 6, 7, 8])
    rates = scoring_rates(score, np.array([0, 0, 1, 1, -1, -1, -1, -1]))
    assert rates.median == 4.5
    assert rates.above.tolist() == [0, 0]


def test_the_error_of_the_median_makes_complementary_rates_move_together(rng):
    # Two halves of the population: their rates add up to one, whatever the median.
    rates = scoring_rates(rng.normal(size=4000), np.arange(4000) % 2)
    assert_allclose(rates.rate.sum(), 1.0, atol=1e-3)
    total = np.ones(2) @ rates.covariance @ np.ones(2)
    assert total < 0.02 * np.trace(rates.covariance)


def test_a_median_on_an_atom_does_not_move():
    score = np.repeat([0.0, 1.0, 2.0], [300, 400, 300])
    category = np.tile([0, 1], 500)
    rates = scoring_rates(score, category)
    p = rates.rate[0]
    assert_allclose(rates.covariance[0, 0], p * (1 - p) / 500)


def test_a_median_is_an_atom_when_both_sides_are_far_from_one_half():
    member = np.arange(100)[:, None] % 2 == np.arange(2)
    edge = np.concatenate([np.zeros(52), np.linspace(0.01, 1.0, 48)])
    assert (_density_ratio(edge, 0.0, member) > 0.0).all()
    atom = np.repeat([0.0, 1.0, 2.0], [20, 60, 20])
    assert _density_ratio(atom, 1.0, member).tolist() == [0.0, 0.0]


def test_standard_errors_of_scoring_rates_are_roots_of_their_variances():
    rates = scoring_rates(np.arange(40.0), np.tile([0, 1], 20))
    np.testing.assert_allclose(rates.se**2, np.diag(rates.covariance))
    np.testing.assert_allclose(rates.rate, 0.5)
