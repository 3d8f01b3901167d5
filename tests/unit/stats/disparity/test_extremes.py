import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.disparity.category_means import CategoryMeans
from equipoise.stats.disparity.extremes import (
    CorrelatedLaw,
    IndependentLaw,
    OnePair,
    compare_counts_with_extreme,
    compare_means_with_extreme,
    permutation_p_value,
)
from equipoise.stats.disparity.pair_scores import ProportionPairs
from equipoise.stats.disparity.survey import survey_means
from equipoise.stats.multiplicity import correlations
from equipoise.stats.pairs import Pairs

HIRED, N = np.array([30.0, 45.0, 52.0, 12.0]), np.array([100.0, 110.0, 120.0, 80.0])


def test_the_joint_interval_is_the_smallest_of_all_pairs_at_tukeys_value():
    compared = compare_counts_with_extreme(HIRED, N)
    critical = stats.studentized_range.ppf(0.95, 4, np.inf) / np.sqrt(2)
    low, high = compared.confidence_interval()
    for i in range(4):
        j = np.delete(np.arange(4), i)
        ends = ProportionPairs(
            x1=np.full(3, HIRED[i]), n1=np.full(3, N[i]), x2=HIRED[j], n2=N[j], scale="ratio"
        ).interval(critical)
        assert_allclose(low[i], min(1.0, ends[0].min()), rtol=1e-8)
        assert_allclose(high[i], min(1.0, ends[1].min()), rtol=1e-8)


def test_the_p_value_is_tukeys_tail_of_the_largest_root():
    compared = compare_counts_with_extreme(HIRED, N)
    pair = ProportionPairs(x1=HIRED[[3]], n1=N[[3]], x2=HIRED[[2]], n2=N[[2]], scale="ratio").root(
        np.ones(1)
    )[0]
    known = stats.studentized_range.sf(-pair * np.sqrt(2), 4, np.inf)
    assert_allclose(compared.p_values()[3], known, rtol=1e-6)
    assert_allclose(compared.p_value, known, rtol=1e-6)
    assert_allclose(compared.statistic, -pair)
    assert compared.p_values()[2] == 1.0


def test_two_categories_have_the_law_of_every_pair():
    compared = compare_counts_with_extreme(HIRED[:2], N[:2])
    pair = Pairs.of(HIRED[[0]], N[[0]], HIRED[[1]], N[[1]], scale="ratio")
    assert_allclose(compared.p_value, pair.p_value(1.0)[0], rtol=1e-9)
    assert_allclose(compared.p_values_raw(0.8)[0], pair.p_value(0.8)[0], rtol=1e-9)
    low, high = pair.interval(0.95)
    assert_allclose(
        [compared.confidence_interval()[k][0] for k in (0, 1)], [low[0], min(high[0], 1)]
    )
    certified = compared.bounds(0.95)[0]
    assert_allclose(certified, pair.interval(0.9)[0][0], rtol=1e-6)
    assert_allclose(compared.p_values_within(0.5)[0], pair.p_value(0.5, "greater")[0], rtol=1e-6)


def test_pairs_have_ends_at_critical_values_of_their_own():
    pair = OnePair(Pairs.of(HIRED[[0, 3]], N[[0, 3]], HIRED[[1, 1]], N[[1, 1]]))
    low, high = pair.interval(np.array([1.0, 2.0]))
    assert_allclose([low[0], high[0]], [end[0] for end in pair.interval(1.0)])
    assert_allclose([low[1], high[1]], [end[1] for end in pair.interval(2.0)])


@pytest.mark.parametrize("reference", ["highest", "lowest"])
@pytest.mark.parametrize("scale", ["ratio", "difference"])
@pytest.mark.parametrize("law", ["independent", "correlated"])
def test_a_category_is_certified_exactly_when_its_bound_is_inside(reference, scale, law):
    if law == "independent":
        compared = compare_counts_with_extreme(HIRED, N, reference=reference, scale=scale)
    else:
        y, group = np.arange(1.0, 161.0) % 7, np.arange(160) % 4
        means = survey_means(y + group, group, strata=np.arange(160) // 80)
        compared = compare_means_with_extreme(means, reference=reference, scale=scale)
    for level in (0.6, 0.9, 0.95, 0.99):
        bounds = compared.bounds(level)
        for limit in np.linspace(0.2, 0.98, 14):
            at = limit if scale == "ratio" else limit - 1.0
            at = at if reference == "highest" else (1.0 / at if scale == "ratio" else -at)
            inside = bounds >= at if reference == "highest" else bounds <= at
            p = compared.p_values_within(at)
            # Draws have a smallest step, and are never surer than a single pair.
            clear = np.abs(p - (1.0 - level)) > (1e-6 if law == "independent" else 4e-3)
            assert ((p <= 1.0 - level) == inside)[clear].all(), (level, at)


def test_the_lowest_is_the_highest_of_the_others_selections():
    gap = compare_counts_with_extreme(HIRED, N, reference="lowest", scale="difference")
    rest = compare_counts_with_extreme(N - HIRED, N, reference="highest", scale="difference")
    assert_allclose(gap.estimate, -rest.estimate)
    assert_allclose(gap.p_values(), rest.p_values())
    assert_allclose(gap.confidence_interval()[0], -rest.confidence_interval()[1], atol=1e-9)
    assert_allclose(gap.bounds(), -rest.bounds(), atol=1e-9)


def test_a_category_below_the_minimum_is_compared_but_never_the_extreme():
    eligible = np.array([True, True, False, True])
    compared = compare_counts_with_extreme(HIRED, N, eligible=eligible)
    assert compared.extreme == 1
    assert compared.estimate[2] > 1.0
    assert compared.confidence_interval()[1][2] > 1.0


def test_bounds_that_certify_are_sharper_than_intervals_and_never_show_a_gap():
    compared = compare_counts_with_extreme(HIRED, N)
    bounds = compared.bounds()
    assert (bounds >= compared.confidence_interval()[0]).all()
    # The last category is clearly not the best one; only the three others are candidates.
    likely = (HIRED + 0.5) / (N + 1.0)
    law = IndependentLaw.of(likely, likely * (1.0 - likely) / N, "ratio")
    critical = law.one_sided(0.95)
    ends = [
        ProportionPairs(x1=HIRED[[3]], n1=N[[3]], x2=HIRED[[j]], n2=N[[j]], scale="ratio").interval(
            critical[j]
        )[0][0]
        for j in (0, 1, 2)
        if ProportionPairs(x1=HIRED[[2]], n1=N[[2]], x2=HIRED[[j]], n2=N[[j]], scale="ratio").root(
            np.ones(1)
        )[0]
        <= critical[j]
    ]
    assert_allclose(bounds[3], min(ends), rtol=1e-8)


def test_every_category_is_certified_by_its_worst_pair():
    compared = compare_counts_with_extreme(np.full(3, 500.0), np.full(3, 1000.0))
    pair = ProportionPairs(
        x1=np.array([500.0]),
        n1=np.array([1000.0]),
        x2=np.array([500.0]),
        n2=np.array([1000.0]),
        scale="ratio",
    ).root(np.array([0.8]))[0]
    assert_allclose(compared.p_value_within(0.8), stats.norm.sf(pair))


def test_nobody_or_everybody_selected_shows_nothing():
    nobody = compare_counts_with_extreme(np.zeros(3), np.full(3, 50.0))
    assert np.isnan(nobody.estimate).all()
    assert nobody.p_value == 1.0
    everybody = compare_counts_with_extreme(np.full(3, 50.0), np.full(3, 50.0))
    assert_allclose(everybody.estimate, 1.0)
    assert everybody.p_value == 1.0
    assert_allclose(everybody.confidence_interval()[1], 1.0)


def test_one_category_cannot_be_compared():
    with pytest.raises(InvalidParameterError, match="needs two categories"):
        compare_counts_with_extreme(np.array([3.0]), np.array([9.0]))


def test_ratios_of_negative_means_are_refused():
    means = CategoryMeans.from_rows(np.arange(-10.0, 10.0), np.repeat([0, 1], 10), n_categories=2)
    with pytest.raises(InvalidParameterError, match='scale="difference"'):
        compare_means_with_extreme(means)


def simulated(variance):
    first, second = np.triu_indices(len(variance), k=1)
    contrast = np.eye(len(variance))[first] - np.eye(len(variance))[second]
    correlation = correlations(contrast @ np.diag(variance) @ contrast.T)
    return CorrelatedLaw.simulate(correlation, first, second)


def test_the_simulated_law_of_independent_estimates_is_tukeys_and_dunnetts():
    variance = 1 / N
    exact = IndependentLaw.of(np.ones(4), variance, "difference")
    drawn = simulated(variance)
    # Equal variances would make Tukey's value exact; unequal ones make it conservative by 1%.
    assert_allclose(drawn.critical(0.95), exact.critical(0.95), rtol=0.015)
    assert_allclose(drawn.one_sided(0.95), exact.one_sided(0.95), rtol=0.02)
    assert_allclose(drawn.tail(np.array([2.0])), exact.tail(np.array([2.0])), rtol=0.05)
    assert drawn.tail(np.array([-1.0])) == 1.0


def test_the_simulated_critical_value_agrees_with_its_tail():
    law = simulated(1 / N)
    critical = law.critical(0.95)
    assert law.tail(np.array([critical * (1 + 1e-9)])) <= 0.05
    assert law.tail(np.array([critical * (1 - 1e-9)])) > 0.05 - 1e-12


def test_permutations_of_a_two_by_two_table_are_fishers_ordering():
    p = permutation_p_value(np.array([1, 8]), np.array([10, 10]), n_resamples=20_000, rng=1)
    assert_allclose(p, stats.fisher_exact([[1, 9], [8, 2]])[1], atol=0.002)


def test_permutations_do_not_depend_on_the_order_of_categories():
    x, n = np.array([4, 4, 9, 1]), np.array([10, 20, 15, 12])
    p = permutation_p_value(x, n, n_resamples=500)
    assert permutation_p_value(x[::-1], n[::-1], n_resamples=500) == p


@pytest.mark.parametrize("scale", ["difference", "ratio"])
def test_independent_estimates_in_other_units_share_alike(scale):
    value, variance = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0])
    whole = IndependentLaw.of(value, variance, scale).shared
    small = IndependentLaw.of(value, variance * 1e-6, scale).shared
    assert_allclose(small, whole)
    assert IndependentLaw.of(value, np.zeros(3), scale).shared.tolist() == [[0.5] * 3] * 3


def test_a_simulated_critical_value_is_never_below_that_of_one_pair():
    """Draws of a pair that is barely correlated with itself fall short of a normal law."""
    law = CorrelatedLaw(largest=np.linspace(0.0, 1.5, 99), against=np.zeros((99, 2)))
    assert law.critical(0.95) == pytest.approx(stats.norm.ppf(0.975))
    assert law.critical(0.5) == pytest.approx(max(stats.norm.ppf(0.75), 0.75), abs=0.02)
