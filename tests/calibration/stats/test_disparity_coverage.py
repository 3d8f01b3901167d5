"""Coverage and size of the tests of one disparity, for every kind of target and overlap."""

import numpy as np
import pytest
from scipy import stats

from equipoise.stats.disparity.gaps import Target, Units
from equipoise.stats.disparity.likelihoods import Samples, likelihood, profile
from equipoise.stats.disparity.references import compare
from equipoise.stats.disparity.row_roots import RowRoots
from oracles.disparity import adjusted, moments_of
from simulate.disparity import (
    assessed,
    binary_comparison,
    mean_comparison,
    regions,
    true_values,
)
from support.rates import assert_at_most, assert_rate

pytestmark = pytest.mark.calibration

DISJOINT = [
    (0.63, 0.59, 0.05, 0.5),
    (0.63, 0.59, 0.2, 0.4),
    (0.63, 0.59, 0.3, 0.3),
    (0.63, 0.59, 0.5, 0.2),
    (0.63, 0.59, 0.72, 0.28),
    (0.63, 0.59, 0.8, 0.1),
    (0.2, 0.1, 0.5, 0.2),
    (0.2, 0.1, 0.8, 0.1),
]
REPS = 5000


@pytest.mark.parametrize(("p_group", "p_reference", "share", "reference"), DISJOINT)
def test_rates_against_a_disjoint_reference_are_covered(
    rng, p_group, p_reference, share, reference
):
    shares, rates = (share, 0.0, reference), (p_group, 0.0, p_reference)
    comparison = binary_comparison(*regions(rng, REPS, 2000, shares, rates), n_units=2000)
    group, target = true_values(shares, rates)
    for method in ("auto", "el", "eel"):
        for level in (0.90, 0.95):
            p = assessed(comparison, binary=True, method=method, null=group - target).p_value
            # Discrete counts of 0.1 x 100 rows: within .007 of nominal in an exact enumeration.
            assert_rate((p > 1 - level).sum(), REPS, level, below=0.007, above=0.004)


@pytest.mark.parametrize(("p_group", "p_reference", "share", "reference"), DISJOINT)
def test_plug_in_intervals_cover_what_the_weight_predicts(
    rng, p_group, p_reference, share, reference
):
    shares, rates = (share, 0.0, reference), (p_group, 0.0, p_reference)
    comparison = binary_comparison(*regions(rng, REPS, 2000, shares, rates), n_units=2000)
    group, target = true_values(shares, rates)
    found = assessed(comparison, binary=True, method="plug_in", null=group - target)
    predicted = float(np.median(found.plug_in_coverage()))
    assert predicted < 0.94
    assert_rate((found.p_value > 0.05).sum(), REPS, predicted, below=0.012, above=0.012)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.8, 0.95])
def test_rates_against_the_population_are_covered(rng, share):
    for rate in (0.6, 0.75):
        shares, rates = (0.0, share, 1.0 - share), (0.0, rate, 0.6)
        comparison = binary_comparison(*regions(rng, REPS, 1000, shares, rates), n_units=1000)
        group, target = true_values(shares, rates)
        for method in ("auto", "eel"):
            p = assessed(comparison, binary=True, method=method, null=group - target).p_value
            assert_rate((p > 0.05).sum(), REPS, 0.95, below=0.006, above=0.004)
        plug_in = assessed(comparison, binary=True, method="plug_in", null=group - target)
        # Far too wide: a group of half the population "covers" 99.4%.
        assert (plug_in.p_value > 0.05).mean() > 0.95


@pytest.mark.parametrize(
    "shares", [(0.2, 0.2, 0.3), (0.0, 0.2, 0.3), (0.4, 0.1, 0.0)], ids=["partial", "in", "around"]
)
def test_rates_of_groups_that_overlap_the_reference_are_covered(rng, shares):
    for rates in ((0.6, 0.5, 0.4), (0.15, 0.1, 0.1)):
        comparison = binary_comparison(*regions(rng, REPS, 1000, shares, rates), n_units=1000)
        group, target = true_values(shares, rates)
        for scale, null in (("difference", group - target), ("ratio", group / target)):
            view = binary_comparison(
                *regions(rng, REPS, 1000, shares, rates), n_units=1000, scale=scale
            )
            for method in ("auto", "eel"):
                p = assessed(view, binary=True, method=method, null=null).p_value
                # The law of a pair is strict: it covers more, up to .97 with 200 rows a side.
                assert_rate((p > 0.05).sum(), REPS, 0.95, below=0.008, above=0.02)
        assert comparison.n.min() > 50


def test_impact_ratios_are_covered(rng):
    for share, reference in ((0.2, 0.4), (0.8, 0.1)):
        shares, rates = (share, 0.0, reference), (0.24, 0.0, 0.3)
        comparison = binary_comparison(
            *regions(rng, REPS, 2000, shares, rates), n_units=2000, scale="ratio"
        )
        p = assessed(comparison, binary=True, null=0.8).p_value
        assert_rate((p > 0.05).sum(), REPS, 0.95, below=0.005, above=0.004)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 12])
@pytest.mark.parametrize("reference", [10, 50, 300])
def test_small_groups_are_not_flagged_too_often(size, reference):
    """All outcomes of a small group, by their probability, over rates from .02 to .98."""
    own, other = (
        a.ravel()
        for a in np.meshgrid(np.arange(size + 1.0), np.arange(reference + 1.0), indexing="ij")
    )
    ones = np.stack([own, 0 * own, other], axis=1)
    n = np.tile([float(size), 0.0, float(reference)], (len(own), 1))
    found = assessed(binary_comparison(ones, n, n_units=1000), binary=True)
    one_sided = (found.p_greater(0.0), found.p_less(0.0))
    rates = np.linspace(0.02, 0.98, 25)
    chance = np.array(
        [stats.binom.pmf(own, size, r) * stats.binom.pmf(other, reference, r) for r in rates]
    )
    two_sided = chance[:, found.p_value <= 0.05].sum(axis=1)
    each = np.array([chance[:, p <= 0.05].sum(axis=1) for p in one_sided])
    # Strict below five rows; then that of a mid-P test, which is right on average over rates.
    assert two_sided.max() <= (0.05 if size < 5 else 0.075)
    assert each.max() <= (0.05 if size < 5 else 0.09)
    assert max(two_sided.mean(), each.mean()) <= 0.055


def test_population_target_of_small_groups_has_the_size_it_claims(rng):
    for share, rate in ((0.002, 0.6), (0.004, 0.05), (0.01, 0.3)):
        shares, rates = (0.0, share, 1.0 - share), (0.0, rate, rate)
        ones, n = regions(rng, REPS, 1500, shares, rates)
        used = n[:, 1] > 0
        found = assessed(binary_comparison(ones[used], n[used], n_units=1500), binary=True)
        for p in (found.p_value, found.p_greater(0.0), found.p_less(0.0)):
            # The exact enumeration above allows up to .09 one-sided at the worst rate.
            assert_at_most((p <= 0.05).sum(), used.sum(), 0.07)


def skewed_coverage(rng, reps, n, share, kind):
    """Share of simulated tables whose true gap is not rejected: exponentials, means 1.2 and 1."""
    hits = 0
    groups = np.array([[True], [False]])
    for _ in range(reps):
        cell = (rng.random(n) >= share).astype(np.int64)
        u = rng.exponential(np.where(cell == 0, 1.2, 1.0))
        target = Target(kind=kind)
        truth = 0.2 if kind == "rest" else 0.2 * (1.0 - share)
        units = Units(u=u, w=np.ones(n), cell=cell)
        c = compare(moments_of(u, np.ones(n), cell, 2), groups, target)
        rows = RowRoots.of(units, c, groups, target)
        code = "profile_el" if kind == "rest" else "influence_el"
        root = rows.root(code)(np.array([truth]), np.array([0]), 1)[0]
        hits += abs(root) <= stats.norm.isf(0.025)
    return hits


@pytest.mark.parametrize(("kind", "share"), [("rest", 0.5), ("rest", 0.9), ("population", 0.5)])
def test_skewed_means_are_covered(rng, kind, share):
    reps = 600
    # One side has 60 exponentials: small-sample error of about .015, spec sections 3.4 and 6.
    assert_rate(skewed_coverage(rng, reps, 600, share, kind), reps, 0.95, below=0.015, above=0.005)


@pytest.mark.parametrize(
    ("draw", "n", "plain", "adjusted_level"),
    [
        ("exponential", 10, 0.865, 0.913),
        ("exponential", 20, 0.910, 0.933),
        ("exponential", 50, 0.936, 0.946),
        ("normal", 10, 0.899, 0.946),
        ("normal", 30, 0.939, 0.954),
    ],
)
def test_small_samples_have_the_known_coverage(rng, draw, n, plain, adjusted_level):
    reps = 10_000
    x = rng.exponential(size=reps * n) if draw == "exponential" else rng.normal(1.0, 1.0, reps * n)
    sample = Samples(
        base=x, slope=np.full(reps * n, -1.0), start=np.arange(reps, dtype=np.int64) * n
    )
    truth = np.ones(reps)
    cut = stats.chi2.isf(0.05, 1)
    # Coverage of 20,000 replications in the specification, section 6.
    inside = likelihood(sample, truth).statistic <= cut
    assert_rate(inside.sum(), reps, plain, below=0.008, above=0.008)
    inside = likelihood(adjusted(sample), truth).statistic <= cut
    assert_rate(inside.sum(), reps, adjusted_level, below=0.008, above=0.008)


def test_adjustment_of_both_samples_helps_a_small_skewed_group(rng):
    reps, hits = 700, np.zeros(2)
    for _ in range(reps):
        two = Samples.of_means(rng.exponential(size=20), rng.exponential(size=200))
        for k, samples in enumerate((two, adjusted(two))):
            hits[k] += profile(samples, np.zeros(2))[0] <= stats.chi2.isf(0.05, 1)
    assert_rate(hits[0], reps, 0.913, below=0.01, above=0.01)
    assert_rate(hits[1], reps, 0.9325, below=0.01, above=0.01)


@pytest.mark.parametrize(
    ("icc", "naive"), [(0.01, 0.945), (0.1, 0.896), (0.3, 0.794), (0.6, 0.677)]
)
def test_clusters_are_covered_and_rows_are_not(rng, icc, naive):
    """200 users with five rows each; coverage by rows as in spec section 7."""
    reps, users, rows = 2000, 200, 5
    member = rng.random((reps, users)) < 0.4
    shared = rng.normal(size=(reps, users, 1)) * np.sqrt(icc)
    u = 1.0 + shared + rng.normal(size=(reps, users, rows)) * np.sqrt(1.0 - icc)
    totals = mean_comparison(
        u.sum(axis=2), np.full((reps, users), float(rows)), member, n_units=users
    )
    p = assessed(totals, binary=False, method="eel").p_value
    assert_rate((p > 0.05).sum(), reps, 0.95, below=0.01, above=0.005)
    flat = mean_comparison(
        u.reshape(reps, -1),
        np.ones((reps, users * rows)),
        np.repeat(member, rows, axis=1),
        n_units=users * rows,
    )
    p = assessed(flat, binary=False, method="eel").p_value
    assert_rate((p > 0.05).sum(), reps, naive, below=0.015, above=0.015)


def test_informative_sampling_needs_the_weights(rng):
    """Rows of the group with large values are sampled more often; their weights undo it."""
    reps, n, truth = 1000, 1500, 0.3
    member = rng.random((reps, n)) < 0.4
    value = rng.exponential(size=(reps, n)) + truth * member
    chance = np.where(member, np.clip(0.2 + 0.2 * value, 0.0, 0.9), 0.4)
    kept = rng.random((reps, n)) < chance
    weight = kept / chance
    weighted = mean_comparison(value * weight, weight, member, n_units=n)
    p = assessed(weighted, binary=False, method="eel", null=truth).p_value
    assert_rate((p > 0.05).sum(), reps, 0.95, below=0.012, above=0.005)
    ignored = mean_comparison(value * kept, kept.astype(float), member, n_units=n)
    p = assessed(ignored, binary=False, method="eel", null=truth).p_value
    assert (p > 0.05).mean() < 0.2


def one_mean(x):
    """Comparison of the mean of each row of a matrix with the known target 0."""
    everyone = np.ones(x.shape, dtype=bool)
    return mean_comparison(x, np.ones(x.shape), everyone, n_units=x.shape[1], known=0.0)


@pytest.mark.parametrize(
    ("width", "paper"), [(0.0, 0.101), (0.5, 0.067), (1.0, 0.055), (2.0, 0.051), (4.0, 0.051)]
)
def test_interval_null_has_its_size_at_any_width(rng, width, paper):
    """The true mean, 0, is the upper end of the null; spec section 4 has the paper's size."""
    reps, n = 10_000, 200
    found = assessed(one_mean(rng.normal(size=(reps, n))), binary=False, method="eel")
    low, high = -width / np.sqrt(n), 0.0
    p = found.p_outside(low, high)
    for alpha in (0.01, 0.05, 0.10):
        assert_rate((p <= alpha).sum(), reps, alpha, below=0.002, above=0.004)
    nearer = np.maximum(-found.root(low), found.root(high))
    outside = (found.estimate < low) | (found.estimate > high)
    assert_rate((outside & (stats.norm.sf(nearer) <= 0.05)).sum(), reps, paper, above=0.004)


def test_equivalence_is_rarely_shown_at_the_margin(rng):
    reps, n = 10_000, 400
    x = rng.normal(0.1, 1.0, size=(reps, n))
    found = assessed(one_mean(x), binary=False, method="eel")
    assert_rate((found.p_within(-0.1, 0.1) <= 0.05).sum(), reps, 0.05, below=0.03, above=0.003)
    x = rng.normal(0.0, 0.3, size=(2000, n))
    found = assessed(one_mean(x), binary=False, method="eel")
    assert (found.p_within(-0.1, 0.1) <= 0.05).mean() > 0.99


def test_null_p_values_are_uniform_where_they_decide(rng):
    shares, rates = (0.4, 0.0, 0.5), (0.5, 0.0, 0.5)
    comparison = binary_comparison(*regions(rng, 4000, 20_000, shares, rates), n_units=20_000)
    found = assessed(comparison, binary=True)
    # Doubled strict tails pile up at 1.
    for p in (found.p_value, found.p_greater(0.0), found.p_less(0.0)):
        for level in (0.01, 0.05, 0.1, 0.25):
            assert_rate((p <= level).sum(), 4000, level, below=0.15 * level)


def test_power_reaches_what_the_normal_approximation_says(rng):
    shares, rates = (0.2, 0.0, 0.5), (0.45, 0.0, 0.4)
    comparison = binary_comparison(*regions(rng, REPS, 4000, shares, rates), n_units=4000)
    se = np.sqrt(0.45 * 0.55 / 800 + 0.4 * 0.6 / 2000)
    expected = stats.norm.sf(1.96 - 0.05 / se)
    p = assessed(comparison, binary=True).p_value
    assert_rate((p <= 0.05).sum(), REPS, expected, below=0.01, above=0.01)
