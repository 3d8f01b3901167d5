"""Size and power of the improvability test, beside the kept simulations of its method page."""

import numpy as np
import pytest
from scipy import stats

from equipoise.stats.improvement.frontier import combine_splits
from equipoise.stats.improvement.test import ImprovementQuestion, compare_utilities
from equipoise.stats.improvement.utilities import (
    BootstrapDraws,
    UtilityEstimates,
    estimate_utilities,
)
from simulate.improvability import paired_selection
from support.rates import assert_at_least, assert_at_most, assert_rate

pytestmark = pytest.mark.calibration

SIGNED = ImprovementQuestion()
PAPER = ImprovementQuestion(method="paper")
ANALYTIC = ImprovementQuestion(inference="analytic")


def gap_p_values(estimates, questions, *, delta=0.0):
    return [
        compare_utilities(estimates, directions=[(1, 0)], question=question, delta_fairness=delta)
        .fairness[0]
        .p_value
        for question in questions
    ]


def rejections(rng, reps, questions, **design):
    """Rejections of the fairness part at 5%; 16,000 people, top 3%, minority of 12%."""
    hits = np.zeros(len(questions), dtype=int)
    for _ in range(reps):
        estimates = paired_selection(rng, n=16_000, capacity=0.03, minority=0.12, **design)
        hits += np.array(gap_p_values(estimates, questions)) <= 0.05
    return hits


@pytest.mark.parametrize(
    ("status_quo", "candidate"),
    [([5.0, 6.5], [7.0, 8.5]), ([5.0, 6.5], [8.5, 7.0])],
    ids=["same gap", "gap changes sign"],
)
def test_size_at_an_unchanged_gap(rng, status_quo, candidate):
    reps = 500
    signed, paper = rejections(
        rng, reps, [SIGNED, PAPER], status_quo=status_quo, candidate=candidate, n_resamples=299
    )
    # Kept simulations: signed .055-.069 and squared .054-.056 with about 58 minority selections.
    assert_rate(signed, reps, 0.05, above=0.02)
    assert_rate(paper, reps, 0.05, below=0.02, above=0.02)


def test_size_is_below_the_level_when_both_are_even(rng):
    reps = 400
    design = {"status_quo": [6.0, 6.0], "candidate": [7.0, 7.0]}
    hits = rejections(rng, reps, [ANALYTIC], **design)
    # Kept simulations: .004, far below the level.
    assert_at_most(hits[0], reps, 0.02)


def test_signed_statistic_has_more_power_than_the_squared_one(rng):
    """Gap 1.5 -> 0: .754 signed and .590 squared in 500 repetitions of this design.

    The kept simulation of a similar design has .761 and .548.
    """
    reps = 400
    design = {"status_quo": [5.0, 6.5], "candidate": [7.0, 7.0]}
    signed, paper = rejections(rng, reps, [SIGNED, PAPER], **design, n_resamples=299)
    assert_rate(signed, reps, 0.754, below=0.02, above=0.02)
    assert_rate(paper, reps, 0.590, below=0.02, above=0.02)
    assert signed > paper + 0.06 * reps


def gaussian_estimates(rng, mean, covariance, *, n_draws):
    """Estimates with the normal law of two gaps, and draws from the same law around them."""
    root = np.linalg.cholesky(covariance)
    gaps = mean + root @ rng.standard_normal(2)
    # Ratios: status quo of groups 0 and 1, candidate of groups 0 and 1; group 0 is fixed at 0.
    full = np.zeros((4, 4))
    full[np.ix_([1, 3], [1, 3])] = covariance[::-1, ::-1]
    value = np.array([0.0, gaps[1], 0.0, gaps[0]])
    drawn = np.zeros((n_draws, 4))
    noise = rng.standard_normal((n_draws, 2)) @ root.T
    drawn[:, 3], drawn[:, 1] = gaps[0] + noise[:, 0], gaps[1] + noise[:, 1]
    return UtilityEstimates(
        value=value.reshape(1, 2, 2),
        covariance=full,
        support=np.full((1, 2, 2), 1000),
        n_groups=2,
        n_units=4000,
        draws=BootstrapDraws(
            value=drawn,
            covariance=np.broadcast_to(full, (n_draws, 4, 4)),
            defined=np.ones((n_draws, 4), dtype=bool),
            law="gaussian",
        ),
    )


@pytest.mark.parametrize(
    ("delta", "squared", "signed"),
    [(0.0, 0.012, 0.045), (0.5, 0.051, 0.029), (0.725, 0.155, 0.0), (0.9, 0.182, 0.0)],
)
def test_size_at_the_boundary_of_large_reductions(rng, delta, squared, signed):
    """Gap exactly (1 - delta) times the old one, covariance of the hold-out data.

    The kept simulation (5000 repetitions) has the expected rates; the squared statistic
    over-rejects at large delta, the signed one never.
    """
    reps, sd_a, sd_b, corr, b = 1200, 0.323, 0.417, 0.588, 1.417
    covariance = np.array([[sd_a**2, corr * sd_a * sd_b], [corr * sd_a * sd_b, sd_b**2]])
    hits = np.zeros(2, dtype=int)
    for _ in range(reps):
        estimates = gaussian_estimates(rng, np.array([(1 - delta) * b, b]), covariance, n_draws=399)
        hits += np.array(gap_p_values(estimates, [PAPER, ANALYTIC], delta=delta)) < 0.05
    assert_rate(hits[0], reps, squared, below=0.008, above=0.008)
    assert_rate(hits[1], reps, signed, below=0.008, above=0.008)
    assert_at_most(hits[1], reps, 0.05)


@pytest.mark.parametrize("selected", [13, 54])
def test_studentised_bootstrap_holds_its_size_in_small_groups(rng, selected):
    """Kept simulation: fairness .055-.061, minority accuracy .049-.067 at nominal .05."""
    reps = 600
    hits = np.zeros(2, dtype=int)
    used = 0
    for _ in range(reps):
        estimates = paired_selection(
            rng,
            n=4000,
            capacity=0.05,
            minority=selected / 200,
            status_quo=[5.0, 6.5],
            candidate=[7.0, 8.5],
            n_resamples=299,
        )
        if estimates.support.min() < 10:
            continue
        used += 1
        shift = compare_utilities(
            estimates,
            directions=[(1, 0)],
            question=ImprovementQuestion(margin_scale="absolute"),
            delta_accuracy=[0.0, 2.0],
        )
        hits += [shift.fairness[0].p_value <= 0.05, shift.accuracy[1].p_value <= 0.05]
    assert_at_most(hits[0], used, 0.075)
    assert_at_most(hits[1], used, 0.075)


def test_sampling_weights_enter_the_standard_error(rng):
    """Kept simulation: sd .158 against a mean standard error of .157, size .046-.061."""
    reps, n, hits = 800, 2000, 0
    estimate, se = np.empty((2, reps))
    for r in range(reps):
        u = rng.normal(size=(n, 1, 2)) + 1
        weight = rng.gamma(2.0, 0.5, size=n)
        estimates = estimate_utilities(
            u, np.ones_like(u), np.arange(n) % 10 // 8, n_groups=2, weight=weight
        )
        test = compare_utilities(estimates, directions=[(1, 0)], question=ANALYTIC)
        (estimate[r], se[r]) = test.accuracy[1].contrasts[0]
        hits += test.accuracy[1].p_value <= 0.05
    assert_rate(hits, reps, 0.05, above=0.01)
    assert np.mean(se) == pytest.approx(np.std(estimate), rel=0.1)


def test_clusters_are_needed_and_enough(rng):
    """Ten rows a person that share an effect: without clusters the size explodes."""
    reps, people = 400, 120
    hits = np.zeros(2, dtype=int)
    cluster = np.repeat(np.arange(people), 10)
    group = cluster % 2
    for _ in range(reps):
        effect = rng.normal(size=people)[cluster]
        u = np.zeros((len(cluster), 1, 2))
        u[:, 0, 1] = effect + rng.normal(size=len(cluster))
        for k, units in enumerate((cluster, None)):
            estimates = estimate_utilities(
                u, np.ones_like(u), group, n_groups=2, cluster=units, n_resamples=199, rng=rng
            )
            test = compare_utilities(estimates, directions=[(0, 1)], question=SIGNED)
            hits[k] += test.accuracy[0].p_value <= 0.05
    assert_rate(hits[0], reps, 0.05, above=0.01)
    assert_at_least(hits[1], reps, 0.2)


def test_three_groups_hold_their_size_and_have_power(rng):
    """Kept simulation: size .052-.063 at an unchanged gap, power .908 for gap 1 -> .2."""
    reps, n = 500, 3000
    hits = np.zeros(2, dtype=int)
    group = np.arange(n) % 3
    for _ in range(reps):
        for k, candidate in enumerate(([2.0, 2.5, 3.0], [2.6, 2.7, 2.8])):
            u = rng.normal(size=(n, 1, 2))
            u[:, 0, 0] += np.array([0.0, 0.5, 1.0])[group]
            u[:, 0, 1] += np.array(candidate)[group]
            estimates = estimate_utilities(u, np.ones_like(u), group, n_groups=3)
            test = compare_utilities(estimates, directions=[(2, 0)], question=ANALYTIC)
            hits[k] += test.fairness[0].p_value <= 0.05
    assert_rate(hits[0], reps, 0.05, above=0.015)
    assert_at_least(hits[1], reps, 0.9)


def split_p_values(rng, reps, n_splits, z, *, n=600, n_test=200):
    """P-values of a mean test on random thirds of the same 600 rows; z is its full-sample drift."""
    rows = rng.standard_normal((reps, n)) + z / np.sqrt(n)
    p = np.empty((n_splits, reps))
    for k in range(n_splits):
        part = np.argsort(rng.random((reps, n)), axis=1)[:, :n_test]
        test = np.take_along_axis(rows, part, axis=1)
        p[k] = stats.norm.sf(test.mean(axis=1) * np.sqrt(n_test))
    return p


@pytest.mark.parametrize("n_splits", [5, 21])
def test_split_rules_hold_their_level(rng, n_splits):
    """Kept simulation: median .004/.002, exchangeable .055/.050, Bonferroni .047; min p .20/.44."""
    reps = 2000
    p = split_p_values(rng, reps, n_splits, 0.0)
    for rule in ("median", "exch_median", "bonferroni"):
        assert_at_most(int((combine_splits(p, rule) <= 0.05).sum()), reps, 0.05)
    assert_at_least(int((p.min(axis=0) <= 0.05).sum()), reps, 0.15)


def test_power_of_the_split_rules(rng):
    """Kept simulation at a drift of 3 on the test third: .923, .971, .981."""
    reps = 2000
    p = split_p_values(rng, reps, 5, 3 * np.sqrt(3))
    power = {
        rule: int((combine_splits(p, rule) <= 0.05).sum())
        for rule in ("median", "exch_median", "bonferroni")
    }
    assert_rate(power["median"], reps, 0.923, below=0.02, above=0.02)
    assert_rate(power["exch_median"], reps, 0.971, below=0.02, above=0.02)
    assert_rate(power["bonferroni"], reps, 0.981, below=0.02, above=0.02)
