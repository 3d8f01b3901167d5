"""Comparisons with the highest category among equal, unequal, lopsided and clustered ones."""

import numpy as np
import pytest

from equipoise.stats.disparity.category_means import CategoryMeans
from equipoise.stats.disparity.extremes import (
    compare_counts_with_extreme,
    compare_means_with_extreme,
    permutation_p_value,
)
from simulate.regulator import (
    FOURTEEN,
    LOPSIDED,
    bounds_cover,
    joint_coverage,
    selection_tables,
    shown_below,
)
from support.rates import assert_at_least, assert_at_most, assert_rate

pytestmark = [pytest.mark.calibration, pytest.mark.slow]


@pytest.mark.parametrize("n", [500, 2000, 10_000])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_equal_categories_are_seldom_shown_lower_and_hardly_ever_below_four_fifths(rng, n, rate):
    reps = 1000
    applicants, selected = selection_tables(rng, reps, n, FOURTEEN, rate)
    assert_at_most((~joint_coverage(applicants, selected, rate)).sum(), reps, 0.055)
    assert_at_most(shown_below(applicants, selected, 0.8).any(axis=1).sum(), reps, 0.01)


def test_the_printed_minimum_of_equal_categories_is_usually_below_four_fifths(rng):
    applicants, selected = selection_tables(rng, 2000, 2000, FOURTEEN, 0.3)
    eligible = applicants >= 0.02 * 2000
    rate = np.where(eligible, selected / np.maximum(applicants, 1), np.nan)
    below = np.nanmin(rate, axis=1) / np.nanmax(rate, axis=1) < 0.8
    assert_rate(below.sum(), 2000, 0.78)


@pytest.mark.parametrize("rate", [0.02, 0.05, 0.1, 0.95])
def test_a_lopsided_table_of_rare_events_keeps_its_level(rng, rate):
    reps = 1000
    applicants, selected = selection_tables(rng, reps, 500, LOPSIDED, rate)
    assert_at_most((~joint_coverage(applicants, selected, rate)).sum(), reps, 0.05)


@pytest.mark.parametrize("scale", ["ratio", "difference"])
@pytest.mark.parametrize(
    "rates",
    [np.linspace(0.25, 0.5, 14), np.append(np.full(13, 0.3), 0.5), np.tile([0.5, 0.4], 7)],
    ids=["ladder", "one best", "exactly four fifths"],
)
def test_joint_intervals_cover_unequal_rates(rng, rates, scale):
    reps = 500
    applicants, selected = selection_tables(rng, reps, 2000, FOURTEEN, rates)
    assert_at_least(joint_coverage(applicants, selected, rates, scale=scale).sum(), reps, 0.95)


def test_a_category_at_exactly_four_fifths_is_seldom_shown_below(rng):
    reps = 500
    rates = np.tile([0.5, 0.4], 7)
    applicants, selected = selection_tables(rng, reps, 2000, FOURTEEN, rates)
    assert_at_most(shown_below(applicants, selected, 0.8).any(axis=1).sum(), reps, 0.05)


@pytest.mark.parametrize("n", [100, 500, 2000])
@pytest.mark.parametrize("small", [0.05, 0.5])
def test_two_categories_have_the_size_of_one_pair(rng, n, small):
    reps = 4000
    applicants, selected = selection_tables(rng, reps, n, [small, 1.0 - small], 0.3)
    covered = joint_coverage(applicants, selected, 0.3)
    # Discrete: .033 with 5 of 100 rows in one category, .043 to .055 otherwise (4,000 each).
    assert_rate((~covered).sum(), reps, 0.05, below=0.02, above=0.004)


@pytest.mark.parametrize("n", [1200, 10_000])
@pytest.mark.parametrize(
    "rates",
    [[0.3, 0.35, 0.4, 0.5], [0.5, 0.4, 0.35, 0.3], [0.3, 0.3, 0.3, 0.5], [0.4, 0.4, 0.5, 0.5]],
)
def test_bounds_that_certify_cover_together_with_unequal_arms(rng, n, rates):
    reps, shares = 2000, [0.4, 0.3, 0.2, 0.1]
    applicants, selected = selection_tables(rng, reps, n, shares, rates)
    assert_at_least(bounds_cover(applicants, selected, rates, shares).sum(), reps, 0.95)


def test_the_certificate_of_every_category_is_rare_at_exactly_the_margin(rng):
    reps = 400
    applicants, selected = selection_tables(rng, reps, 2000, [0.25] * 4, [0.4, 0.5, 0.5, 0.5])
    certified = [
        compare_counts_with_extreme(x, n).p_value_within(0.8) <= 0.05
        for x, n in zip(selected, applicants, strict=True)
    ]
    assert_at_most(sum(certified), reps, 0.05)


def test_the_permutation_test_is_exact_in_a_table_of_rare_events(rng):
    reps = 300
    applicants, selected = selection_tables(rng, reps, 300, [0.7, 0.1, 0.1, 0.1], 0.03)
    p = [
        permutation_p_value(x, n, n_resamples=999)
        for x, n in zip(selected, applicants, strict=True)
    ]
    assert_at_most((np.array(p) <= 0.05).sum(), reps, 0.05)


def clustered_table(rng, clusters, size, *, nested, sd=1.0):
    """Rows of equal categories in clusters with a random intercept on the logit scale."""
    cluster = np.repeat(np.arange(clusters), size)
    rate = 1.0 / (1.0 + np.exp(0.8 - sd * rng.normal(size=clusters)))
    y = (rng.random(len(cluster)) < rate[cluster]).astype(float)
    category = (np.arange(clusters) % 4)[cluster] if nested else rng.integers(0, 4, len(cluster))
    return y, category, cluster


@pytest.mark.parametrize(
    ("clusters", "size", "nested"),
    [(150, 8, True), (60, 8, False), (10, 30, False), (5, 60, False), (24, 12, True)],
)
def test_clustered_categories_keep_their_level(rng, clusters, size, nested):
    reps = 250
    rejected = 0
    for _ in range(reps):
        y, category, cluster = clustered_table(rng, clusters, size, nested=nested)
        means = CategoryMeans.from_rows(y, category, n_categories=4, cluster=cluster)
        rejected += compare_means_with_extreme(means, scale="difference").p_value <= 0.05
    assert_at_most(rejected, reps, 0.05)


@pytest.mark.parametrize(
    ("draw", "above"),
    [
        (lambda rng, n: rng.normal(size=n), 0.0),
        (lambda rng, n: rng.exponential(size=n), 0.0),
        (lambda rng, n: rng.lognormal(size=n), 0.0),
    ],
    ids=["normal", "exponential", "lognormal"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_means_of_equal_categories_are_seldom_shown_lower(rng, draw, above, weighted):
    reps = 500
    category = np.repeat(np.arange(5), [200, 100, 50, 25, 25])
    rejected = 0
    for _ in range(reps):
        weight = rng.exponential(size=len(category)) if weighted else None
        means = CategoryMeans.from_rows(
            draw(rng, len(category)), category, n_categories=5, weight=weight
        )
        rejected += compare_means_with_extreme(means, scale="difference").p_value <= 0.05
    assert_at_most(rejected, reps, 0.05 + above)
