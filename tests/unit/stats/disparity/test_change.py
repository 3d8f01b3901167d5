import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.disparity.change import (
    PairedCounts,
    gap_changes,
    paired_change_test,
    period_change_test,
    profile_test,
)
from equipoise.stats.disparity.contrasts import PairedChange, RateChange
from oracles.over_time import tango_interval


def rows_of(counts):
    """Rows of two models from counts (both, lost, gained, neither) by group."""
    before, after, group = [], [], []
    for name, (both, lost, gained, neither) in counts.items():
        before += [1] * both + [1] * lost + [0] * gained + [0] * neither
        after += [1] * both + [0] * lost + [1] * gained + [0] * neither
        group += [name] * (both + lost + gained + neither)
    return np.array(before, float), np.array(after, float), np.array(group)


TABLE = {"a": (40, 5, 14, 41), "b": (100, 20, 24, 256), "c": (9, 1, 0, 20)}


def test_changes_and_gaps_by_hand():
    found = paired_change_test(*rows_of(TABLE), reference="b")
    assert found.groups == ("a", "c")
    assert_allclose(found.old, [0.45, 10 / 30])
    assert_allclose(found.new, [0.54, 9 / 30])
    assert_allclose(found.gap_change.estimate, [0.09 - 0.01, -1 / 30 - 0.01])
    everybody = paired_change_test(*rows_of(TABLE))
    rest = paired_change_test(*rows_of(TABLE), reference="rest")
    share = np.array([100, 400, 30]) / 530
    assert_allclose(everybody.gap_change.estimate, (1 - share) * rest.gap_change.estimate)
    assert_allclose(everybody.gap_change.p_value_raw, rest.gap_change.p_value_raw, rtol=1e-6)


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_the_change_of_a_group_is_tested_as_by_mcnemar(name):
    found = paired_change_test(*rows_of(TABLE))
    both, lost, gained, neither = TABLE[name]
    table = [[both, lost], [gained, neither]]
    few = lost + gained < 10
    theirs = mcnemar(table, exact=few, correction=False)
    at = found.groups.index(name)
    assert_allclose(found.change.p_value_raw[at], theirs.pvalue, rtol=1e-9)
    low, high = found.change.confidence_interval()
    direct = tango_interval(gained, lost, both + lost + gained + neither)
    if few:
        direct = (min(direct[0], 0.0), max(direct[1], 0.0))
    assert_allclose((low[at], high[at]), direct, atol=2e-5)


def test_identical_models_change_nothing():
    y, _, group = rows_of(TABLE)
    found = paired_change_test(y, y, group)
    assert_allclose(found.change.estimate, 0.0)
    assert_allclose(found.gap_change.p_value, 1.0)
    assert found.p_value == 1.0
    low, high = found.change.confidence_interval()
    assert (low < 0).all()
    assert (high > 0).all()


def test_rows_outside_the_denominator_do_not_count():
    before, after, group = rows_of(TABLE)
    w = (np.arange(len(before)) % 3 > 0).astype(float)
    whole = paired_change_test(before, after, group, w_before=w)
    part = paired_change_test(before[w == 1], after[w == 1], group[w == 1])
    assert_allclose(whole.gap_change.p_value_raw, part.gap_change.p_value_raw)
    assert whole.method == part.method == "tango"


def test_a_predictive_value_is_compared_by_influence(rng):
    n = 3000
    group = rng.choice(["a", "b"], size=n)
    truth = (rng.random(n) < 0.4).astype(float)
    old, new = ((rng.random(n) < 0.3 + 0.4 * truth).astype(float) for _ in range(2))
    found = paired_change_test(
        truth * old, truth * new, group, w_before=old, w_after=new, reference="b"
    )
    a, b = group == "a", group == "b"
    direct = truth[a & (new == 1)].mean() - truth[a & (old == 1)].mean()
    direct -= truth[b & (new == 1)].mean() - truth[b & (old == 1)].mean()
    assert found.method == "influence"
    assert_allclose(found.gap_change.estimate, [direct])


def test_real_values_on_the_same_rows_are_nearly_a_paired_t_test(rng):
    # Skewness is taken out besides.
    before, group = rng.normal(size=400), np.repeat(["a", "b"], [150, 250])
    after = before + rng.normal(0.03, 0.5, size=400)
    found = paired_change_test(before, after, group, reference="rest")
    change = after - before
    for name, p in zip(found.groups, found.change.p_value_raw, strict=True):
        assert_allclose(p, stats.ttest_1samp(change[group == name], 0).pvalue, rtol=0.3)
    welch = stats.ttest_ind(change[group == "a"], change[group == "b"], equal_var=False)
    assert_allclose(found.gap_change.p_value_raw, welch.pvalue, rtol=0.3)


def test_two_periods_are_a_difference_of_differences(rng):
    group = rng.choice(["a", "b"], size=800)
    new = rng.random(800) < 0.5
    y = (rng.random(800) < 0.4).astype(float)
    found = period_change_test(y, group, new, reference="b")
    a, b = group == "a", group == "b"
    mean = lambda rows: y[rows].mean()  # noqa: E731
    direct = mean(a & new) - mean(a & ~new) - mean(b & new) + mean(b & ~new)
    assert_allclose(found.gap_change.estimate, [direct])
    assert found.method == "wilson"


def test_people_in_both_periods_are_paired(rng):
    # Everybody comes twice with nearly the same outcome.
    y = np.tile((rng.random(200) < 0.4).astype(float), 2) + 1e-3 * rng.random(400)
    group, new = np.tile(rng.choice(["a", "b"], size=200), 2), np.repeat([False, True], 200)
    known = period_change_test(y, group, new, cluster=np.tile(np.arange(200), 2))
    blind = period_change_test(y, group, new)
    assert_allclose(known.gap_change.estimate, blind.gap_change.estimate)
    low, high = known.confidence_interval()
    blind_low, blind_high = blind.confidence_interval()
    assert (high - low).max() < 0.01 < (blind_high - blind_low).min()


@pytest.mark.parametrize("kind", ["absolute", "increase", "decrease"])
@pytest.mark.parametrize("margin", [0.0, 0.02, 0.1])
def test_the_bound_is_within_the_margin_exactly_when_its_p_value_is_small(kind, margin):
    found = paired_change_test(*rows_of(TABLE), gap=kind)
    for alpha in (0.05, 0.2, 0.6):
        within = found.growth.p_within(margin) <= alpha
        assert (within == (found.growth.bound(alpha) <= margin)).all()
        assert found.gate(margin, alpha=alpha) == bool(within.all())


def test_growth_is_about_the_size_of_a_gap():
    # The gap goes from -10 to +10 points: no growth, but an increase of 20.
    table = {"a": (20, 0, 20, 60), "b": (60, 0, 0, 140)}
    before, after, group = rows_of(table)
    size = paired_change_test(before, after, group, reference="b")
    signed = paired_change_test(before, after, group, reference="b", gap="increase")
    assert_allclose(size.growth.estimate, [0.0], atol=1e-12)
    assert_allclose(signed.growth.estimate, [0.2])
    assert signed.growth.p_grown(0.05)[0] < 0.01
    assert size.growth.p_grown(0.05)[0] > 0.5


def test_a_gap_that_grew_for_sure_is_shown():
    table = {"a": (100, 10, 150, 740), "b": (1000, 100, 100, 8800)}
    found = paired_change_test(*rows_of(table), reference="b")
    assert found.growth.p_grown(0.05)[0] < 1e-5
    assert not found.gate(0.05)


def test_the_larger_the_groups_the_smaller_the_bound():
    def scaled(k):
        table = {"a": (30 * k, 3 * k, 3 * k, 64 * k), "b": (60 * k, 6 * k, 6 * k, 128 * k)}
        return paired_change_test(*rows_of(table), reference="b").growth.bound()[0]

    assert scaled(1) > scaled(4) > scaled(16) > 0


def test_empty_and_lonely_groups_are_not_tested():
    counts = PairedCounts(
        both=np.array([5.0, 0.0]),
        lost=np.array([1.0, 0.0]),
        gained=np.array([2.0, 0.0]),
        neither=np.array([9.0, 0.0]),
    )
    eye = np.eye(2, dtype=bool)
    found = gap_changes(counts, eye, ~eye, names=("only", "nobody"))
    assert found.status.tolist() == ["alone", "empty"]
    assert np.isfinite(found.change.p_value_raw[0])
    assert np.isnan(found.gap_change.p_value).all()
    assert "not tested (empty, n = 0)" in str(found)
    assert not found.gate(0.1)


def test_three_clusters_are_too_few(rng):
    y, group = rng.normal(size=90), np.repeat(["a", "b"], [30, 60])
    cluster = np.concatenate([np.repeat([0, 1, 2], 10), np.repeat(np.arange(3, 23), 3)])
    found = paired_change_test(y, y + rng.normal(size=90), group, cluster=cluster)
    assert found.status.tolist() == ["too_few", "too_few"]
    assert not found.gate(10.0)


def test_the_profile_test_of_large_samples_is_cochrans_q():
    n, p1, p0 = np.full(3, 1e6), np.array([0.300, 0.301, 0.302]), np.array([0.300, 0.299, 0.3005])
    found = profile_test(RateChange(n * p1, n, n * p0, n))
    estimate, weight = p1 - p0, n / (p1 * (1 - p1) + p0 * (1 - p0))
    q = (weight * (estimate - (weight @ estimate) / weight.sum()) ** 2).sum()
    assert_allclose((found.statistic, found.p_value), (q, stats.chi2.sf(q, 2)), rtol=1e-3)


def test_the_profile_test_leaves_empty_groups_out():
    full = PairedChange(np.array([9.0, 1.0]), np.array([1.0, 9.0]), np.array([90.0, 90.0]))
    more = PairedChange(
        np.array([9.0, 1.0, 0.0]), np.array([1.0, 9.0, 0.0]), np.array([90.0, 90.0, 0.0])
    )
    assert profile_test(full) == profile_test(more)


def test_groups_that_share_clusters_are_tested_together(rng):
    cluster = np.repeat(np.arange(40), 6)
    group = np.tile(["a", "b", "c"], 80)
    before = rng.normal(size=240)
    after = before + rng.normal(size=40)[cluster] + 1e-3 * rng.normal(size=240)
    found = paired_change_test(before, after, group, cluster=cluster)
    assert (found.joint.method, found.joint.df) == ("bonferroni", 3)
    # A change of the cluster moves all groups alike: the gaps change by the small noise only.
    low, high = found.confidence_interval()
    assert (high - low).max() < 0.002
    alone = paired_change_test(before, after, group)
    assert alone.joint.method == "sum_of_squares"


def test_rows_that_all_change_by_the_same_amount_have_no_law(rng):
    before = rng.integers(0, 8, size=60).astype(float)
    group = np.repeat(["a", "b"], 30)
    found = paired_change_test(before, before + (group == "a"), group)
    assert found.status.tolist() == ["no_variation", "no_variation"]
    same = paired_change_test(before, before.copy(), group)
    assert same.status.tolist() == ["ok", "ok"]
    assert_allclose(same.gap_change.p_value, 1.0)
    assert same.p_value == 1.0


def test_a_group_without_rows_in_a_period_is_empty(rng):
    group, new = np.repeat(["a", "b", "c"], 40), rng.random(120) < 0.5
    new[group == "c"] = True
    found = period_change_test(rng.normal(size=120), group, new)
    assert found.status.tolist() == ["ok", "ok", "empty"]


def test_results_can_be_kept():
    found = paired_change_test(*rows_of(TABLE))
    copy = pickle.loads(pickle.dumps(found))
    assert_allclose(copy.growth.bound(), found.growth.bound())
    assert_allclose(copy.statistic, found.statistic)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_change_test([0.0, 1.0], [0.0], ["a", "b"]), "same rows; got 2 and 1"),
        (lambda: paired_change_test([0.0], [1.0], ["a"], reference="z"), "one of the groups 'a'"),
        (lambda: paired_change_test([0.0], [1.0], ["a"], gap="both"), "gap"),
        (lambda: period_change_test([0.0], ["a"], np.array([1])), "true or false"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InvalidParameterError, match=message):
        call()


def test_overlapping_sides_are_refused():
    counts = PairedCounts(both=np.ones(2), lost=np.ones(2), gained=np.ones(2), neither=np.ones(2))
    eye = np.eye(2, dtype=bool)
    with pytest.raises(InvalidParameterError, match="share rows"):
        gap_changes(counts, eye, eye, names=("a", "b"))
