"""Sizes and coverages of tests of changes, paired and between periods."""

import numpy as np
import pytest
from scipy import stats

import equipoise as eq
from equipoise.audits.disparity.earlier import gaps_since
from equipoise.stats.disparity.change import (
    PairedCounts,
    gap_changes,
    paired_change_test,
    period_change_test,
    profile_test,
)
from equipoise.stats.disparity.contrasts import Mover, PairedChange, RateChange, WilsonRate
from equipoise.stats.disparity.growth import growth_between
from equipoise.stats.pairs import Pairs
from simulate.over_time import sides
from support.rates import assert_at_least, assert_at_most, assert_rate

pytestmark = pytest.mark.calibration

NOMINAL = 0.05
Z = 1.959963984540054


def paired(rng, n, p01, p10, r):
    counts = rng.multinomial(n, [p01, p10, 1 - p01 - p10], size=r).astype(float)
    return PairedChange(counts[:, 0], counts[:, 1], np.full(r, float(n)), exact_below=0)


def missed(found, truth):
    low, high = found.interval(np.full(len(found.estimate), Z))
    return ((low > truth + 1e-12) | (high < truth - 1e-12)).sum()


GAPS = [
    (20, 100, (0.1, 0.1), (0.1, 0.1)),
    (50, 500, (0.02, 0.02), (0.02, 0.02)),
    (20, 1000, (0.05, 0.0), (0.1, 0.05)),
    (50, 500, (0.10, 0.02), (0.10, 0.02)),
    (100, 1000, (0.05, 0.01), (0.08, 0.04)),
    (500, 5000, (0.05, 0.03), (0.05, 0.03)),
    (8, 40, (0.3, 0.1), (0.05, 0.2)),
    (300, 300, (0.01, 0.0), (0.0, 0.01)),
]


@pytest.mark.parametrize(("n", "n_reference", "group", "reference"), GAPS)
def test_intervals_of_paired_gap_changes_miss_no_more_than_they_say(
    rng, n, n_reference, group, reference
):
    r = 10_000
    one = np.ones(r)
    found = Mover((paired(rng, n, *group, r), paired(rng, n_reference, *reference, r)), (one, -one))
    truth = group[0] - group[1] - reference[0] + reference[1]
    assert_at_most(missed(found, truth), r, NOMINAL)


def test_intervals_of_large_paired_gap_changes_miss_as_often_as_they_say(rng):
    r = 10_000
    one = np.ones(r)
    found = Mover((paired(rng, 800, 0.08, 0.05, r), paired(rng, 4000, 0.1, 0.1, r)), (one, -one))
    assert_rate(missed(found, 0.03), r, NOMINAL)


def rejection_given_changed_rows(largest):
    """Chance that "no change" is rejected at 5% given how many rows changed, by enumeration."""
    changed = np.arange(largest + 1)
    gained = np.concatenate([np.arange(k + 1.0) for k in changed])
    k = np.repeat(changed, changed + 1).astype(float)
    found = PairedChange(gained, k - gained, np.full(len(k), 1000.0))
    rejected = np.abs(found.root(np.zeros(len(k)))) >= Z
    return np.bincount(k.astype(int), weights=rejected * stats.binom.pmf(gained, k, 0.5))


@pytest.mark.parametrize(("share", "worst"), [(0.3, 0.0535), (0.5, 0.054), (1.0, 0.065)])
def test_the_test_of_no_change_keeps_its_level_nearly(share, worst):
    """All rows of two models on n rows when up to a share of them changes, by enumeration."""
    given = rejection_given_changed_rows(300)
    size = max(
        (stats.binom.pmf(np.arange(n + 1), n, p) * given[: n + 1]).sum()
        for n in (10, 20, 30, 40, 50, 60, 75, 100, 150, 200, 300)
        for p in np.linspace(0.005, share, 60)
    )
    assert worst - 0.003 < size <= worst


PERIODS = [(20, 200, 0.1, 0.1), (50, 500, 0.3, 0.3), (30, 3000, 0.05, 0.02), (200, 2000, 0.5, 0.4)]


@pytest.mark.parametrize(("n", "n_reference", "p", "p_reference"), PERIODS)
def test_intervals_between_periods_miss_no_more_than_they_say(rng, n, n_reference, p, p_reference):
    r = 10_000
    one = np.ones(r)

    def wilson(size, rate):
        return WilsonRate(rng.binomial(size, rate, r).astype(float), np.full(r, float(size)))

    parts = (wilson(n, p), wilson(n, p), wilson(n_reference, p_reference))
    found = Mover((*parts, wilson(n_reference, p_reference)), (one, -one, -one, one))
    assert_at_most(missed(found, 0.0), r, 0.053)


PARTITIONS = [((30,) * 6, 0.05), ((14, 100, 1000, 3000), 0.04), ((200, 300, 400), 0.1)]


@pytest.mark.parametrize(("sizes", "p"), PARTITIONS)
def test_the_joint_test_keeps_its_level(rng, sizes, p):
    r = 300
    n = np.array(sizes, dtype=float)
    hits = periods = 0
    for _ in range(r):
        counts = np.array([rng.multinomial(k, [p, p, 1 - 2 * p]) for k in sizes], dtype=float)
        change = PairedChange(counts[:, 0], counts[:, 1], n, exact_below=0)
        hits += profile_test(change).p_value <= NOMINAL
        ones = rng.binomial(sizes, 2 * p, size=(2, len(sizes))).astype(float)
        periods += profile_test(RateChange(ones[0], n, ones[1], n)).p_value <= NOMINAL
    assert_at_most(hits, r, NOMINAL)
    assert_at_most(periods, r, NOMINAL)


def growth_of(rng, sizes, old, new, agreement, r):
    """Gap growth of r groups with given old and new rates of (group, reference)."""
    cells = np.empty((4, r, 2))
    for side in range(2):
        p, q = old[side], new[side]
        both = p * q + agreement * np.sqrt(p * (1 - p) * q * (1 - q))
        law = [both, p - both, q - both, 1 - p - q + both]
        cells[:, :, side] = rng.multinomial(sizes[side], law, size=r).T
    both, lost, gained, neither = cells.reshape(4, -1)
    table = PairedCounts(both=both, lost=lost, gained=gained, neither=neither)
    group, reference = sides(r)
    return gap_changes(table, group, reference, names=("",) * r).growth


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((0.30, 0.30), (0.33, 0.30)),
        ((0.30, 0.30), (0.27, 0.30)),
        ((0.35, 0.30), (0.38, 0.30)),
        ((0.31, 0.30), (0.26, 0.30)),
    ],
)
def test_the_gate_passes_a_gap_that_grew_by_the_margin_no_more_often_than_alpha(rng, old, new):
    r, margin = 1000, 0.03
    found = growth_of(rng, (400, 1200), old, new, 0.7, r)
    assert_at_most((found.bound(NOMINAL) <= margin).sum(), r, NOMINAL)


def test_a_gate_that_takes_the_sign_from_the_estimate_would_pass_too_often(rng):
    r, margin = 1000, 0.03
    passed = 0
    for new in (0.33, 0.27):
        found = growth_of(rng, (800, 4000), (0.30, 0.30), (new, 0.30), 0.9, r)
        z = np.full(r, 1.6448536269514722)
        low, high = found.difference.interval(z)
        low_total, high_total = found.total.interval(z)
        up = found.gap_old > 0
        naive = np.where(up, np.maximum(high, -low_total), np.maximum(high_total, -low))
        passed += (naive <= margin).sum()
    assert_at_least(passed, 2 * r, 0.07)


def test_gaps_that_did_not_grow_are_not_said_to_have_grown(rng):
    r = 1000
    found = growth_of(rng, (300, 900), (0.35, 0.30), (0.35, 0.30), 0.6, r)
    assert_at_most((found.p_grown(0.0) <= NOMINAL).sum(), r, NOMINAL)


def test_the_gate_passes_large_groups_without_growth(rng):
    r = 300
    found = growth_of(rng, (2500, 8000), (0.32, 0.30), (0.32, 0.30), 0.8, r)
    assert_at_least((found.bound(NOMINAL) <= 0.03).sum(), r, 0.9)


def reported(rng, n, p, r):
    """Estimates and intervals of r gaps, as the results of an audit report them."""
    x, y = (rng.binomial(size, rate, r).astype(float) for size, rate in zip(n, p, strict=True))
    found = Pairs.of(x, np.full(r, float(n[0])), y, np.full(r, float(n[1])))
    return np.stack([x / n[0] - y / n[1], *found.interval(0.95)])


@pytest.mark.parametrize(
    ("old_n", "new_n", "old_p", "new_p"),
    [
        ((8, 40), (8, 40), (0.4, 0.4), (0.4, 0.4)),
        ((50, 500), (50, 500), (0.15, 0.05), (0.15, 0.05)),
        ((30, 3000), (300, 3000), (0.02, 0.02), (0.02, 0.02)),
        ((1000, 4000), (20, 200), (0.35, 0.3), (0.35, 0.3)),
        ((25, 25), (1000, 4000), (0.35, 0.25), (0.35, 0.25)),
        ((200, 2000), (200, 2000), (0.6, 0.5), (0.4, 0.5)),
        ((400, 400), (400, 400), (0.95, 0.75), (0.95, 0.75)),
    ],
)
def test_gaps_of_a_baseline_that_did_not_grow_are_not_said_to_have_grown(
    rng, old_n, new_n, old_p, new_p
):
    r = 4000
    found = growth_between(reported(rng, old_n, old_p, r), reported(rng, new_n, new_p, r))
    assert_at_most((found.p_grown(0.0) <= NOMINAL).sum(), r, NOMINAL)
    # Holm asks for smaller p-values too.
    assert_at_most((found.p_grown(0.0) <= NOMINAL / 5).sum(), r, NOMINAL / 5)


def test_gaps_of_a_baseline_that_grew_are_found(rng):
    r = 1000
    old = reported(rng, (1000, 4000), (0.33, 0.3), r)
    grown = growth_between(old, reported(rng, (1000, 4000), (0.43, 0.3), r)).p_grown(0.0)
    assert_at_least((grown <= NOMINAL).sum(), r, 0.8)


@pytest.mark.slow
@pytest.mark.parametrize("draw", ["normal", "lognormal"])
def test_few_real_values_of_a_baseline_are_not_said_to_have_grown(rng, draw):
    """Their intervals are those of a t law, read as if they were normal ones."""
    r, hits = 400, 0
    for _ in range(r):
        before, now = (
            eq.Audit(
                {"g": ["a"] * 12 + ["b"] * 80, "x": getattr(rng, draw)(size=92)},
                group="g",
                y_score="x",
            ).disparity("mean_score", reference={"g": "b"})
            for _ in range(2)
        )
        hits += gaps_since(before, now)[0].p_value <= NOMINAL
    assert_at_most(hits, r, NOMINAL)


def test_pairing_finds_what_two_samples_do_not(rng):
    r = 300
    one = np.ones(r)
    pairs = Mover((paired(rng, 800, 0.05, 0.02, r), paired(rng, 4000, 0.04, 0.04, r)), (one, -one))
    # The same gap change is found in .04 of unpaired samples of these sizes.
    assert_at_least(missed(pairs, 0.0), r, 0.6)


def test_a_predictive_value_is_compared_at_its_level(rng):
    r, n = 300, 2500
    hits = joint = 0
    for _ in range(r):
        group = np.where(rng.random(n) < 0.25, "a", "b")
        truth = (rng.random(n) < 0.4).astype(float)
        base = rng.random(n)
        old, new = ((0.6 * base + 0.4 * rng.random(n) < 0.3 + 0.3 * truth) * 1.0 for _ in range(2))
        found = paired_change_test(
            truth * old, truth * new, group, w_before=old, w_after=new, reference="b"
        )
        hits += found.gap_change.p_value_raw[0] <= NOMINAL
        joint += found.p_value <= NOMINAL
    assert_rate(hits, r, NOMINAL)
    assert_rate(joint, r, NOMINAL)


@pytest.mark.parametrize("n_users", [16, 60])
def test_users_in_both_periods_are_compared_at_the_level(rng, n_users):
    r, visits = 200, 12
    hits = blind = 0
    for _ in range(r):
        user = np.repeat(np.arange(n_users), visits)
        group = np.where(np.arange(n_users) % 3 == 0, "a", "b")[user]
        # Half of the users change their ways between the periods.
        habit = rng.normal(size=(2, n_users))
        new = np.tile(np.arange(visits) >= visits // 2, n_users)
        effect = np.where(user % 2 == 0, habit[0][user], habit[new.astype(int), user])
        y = effect + rng.normal(size=len(user))
        found = period_change_test(y, group, new, cluster=user, reference="b")
        hits += found.gap_change.p_value_raw[0] <= NOMINAL
        rows = period_change_test(y, group, new, reference="b")
        blind += rows.gap_change.p_value_raw[0] <= NOMINAL
    assert_at_most(hits, r, 0.06)
    assert_at_least(blind, r, 0.1)


@pytest.mark.parametrize("draw", ["normal", "lognormal"])
def test_real_values_of_few_rows_are_compared_at_the_level(rng, draw):
    r = 400
    hits = 0
    for _ in range(r):
        group = np.repeat(["a", "b"], [12, 80])
        before = rng.normal(size=92)
        change = getattr(rng, draw)(size=92)
        found = paired_change_test(before, before + change, group, reference="b")
        hits += found.gap_change.p_value_raw[0] <= NOMINAL
    # The law of few units, which borrows the shape: .03 to .06 in its own grid.
    assert_at_most(hits, r, 0.06)


def test_swapping_models_at_random_changes_nothing(rng):
    """Groups of 5 to 4,000 rows whose old and new decisions are exchangeable."""
    r, sizes = 100, (5, 14, 60, 300, 4000)
    hits, gaps = 0, np.zeros(len(sizes))
    group = np.repeat(np.arange(len(sizes)), sizes)
    for _ in range(r):
        first = (rng.random(len(group)) < 0.2 + 0.1 * group).astype(float)
        second = np.where(rng.random(len(group)) < 0.9, first, 1 - first)
        swap = rng.random(len(group)) < 0.5
        found = paired_change_test(
            np.where(swap, first, second), np.where(swap, second, first), group, reference="rest"
        )
        hits += found.p_value <= NOMINAL
        gaps += found.gap_change.p_value_raw <= NOMINAL
    assert_at_most(hits, r, NOMINAL)
    for one in gaps:
        assert_at_most(one, r, 0.055)


def test_two_periods_of_counts_and_of_rows_tell_the_same(rng):
    """Counts and the law of few units agree where rows are many."""
    r = 60
    counted, by_rows = [], []
    for _ in range(r):
        group = rng.choice(["a", "b"], size=4000)
        new = rng.random(4000) < 0.5
        y = (rng.random(4000) < 0.4).astype(float)
        counted.append(period_change_test(y, group, new, reference="b").gap_change.p_value_raw[0])
        rows = period_change_test(y, group, new, reference="b", weight=np.ones(4000))
        by_rows.append(rows.gap_change.p_value_raw[0])
    np.testing.assert_allclose(by_rows, counted, atol=0.02)
