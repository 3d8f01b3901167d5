import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.exceptions import DataError
from equipoise.stats.scores.group_quality import (
    _brier,
    _Rows,
    calibration_error,
    group_quality,
    parity_error,
)


@pytest.fixture
def rows(rng):
    group, score = rng.integers(2, size=1500), rng.uniform(size=1500)
    return (rng.uniform(size=1500) < score).astype(float), score, group


def test_the_area_is_the_share_of_ordered_pairs():
    y, s = np.repeat([0.0, 1.0], 12), np.concatenate([np.arange(12), np.arange(12) + 3.0])
    found = group_quality(y, s, np.zeros(24, dtype=int), metrics=("auc",))
    pairs = [(a > b) + 0.5 * (a == b) for a in s[12:] for b in s[:12]]
    assert found.values[0].estimate == pytest.approx(np.mean(pairs))


def test_the_brier_score_is_a_mean_with_its_standard_error(rows):
    y, s, group = rows
    found = group_quality(y, s, group, metrics=("brier",), pairs=((1, 0),))
    loss = [(y - s)[group == g] ** 2 for g in (0, 1)]
    assert [v.estimate for v in found.values] == pytest.approx([part.mean() for part in loss])
    se = np.sqrt(sum(np.var(part, ddof=1) / len(part) for part in loss))
    z = (loss[1].mean() - loss[0].mean()) / se
    assert found.differences[0].statistic == pytest.approx(z, rel=0.01, abs=0.01)


def test_interval_and_adjusted_p_value_agree(rows):
    y, s, group = rows
    found = group_quality(y, s, group, baseline=s**2, pairs=((1, 0),), confidence_level=0.9, rng=1)
    # Between groups twice; a monotone map leaves the areas as they are.
    assert len(found.differences) == 4
    for d in found.differences:
        assert (d.low <= 0 <= d.high) == (d.p_value_adjusted > 0.1)
        assert d.p_value_adjusted >= d.p_value


def test_a_monotone_map_changes_calibration_and_not_ranking(rows):
    y, s, group = rows
    found = group_quality(y, s, group, baseline=s**2)
    # Areas are the same for both scores, so that there is nothing to test.
    assert {d.metric for d in found.differences} == {"brier"}
    assert all(d.estimate < 0 and d.p_value_adjusted < 0.001 for d in found.differences)


def test_counts_are_rows_and_one_row_clusters_are_rows(rows, rng):
    y, s, group = rows
    count = rng.integers(1, 4, size=1500)
    counted = group_quality(y, s, group, count=count, pairs=((1, 0),), rng=1)
    again = group_quality(*(np.repeat(a, count) for a in rows), pairs=((1, 0),), rng=1)
    plain = group_quality(y, s, group, pairs=((1, 0),), rng=1)
    each = group_quality(y, s, group, cluster=np.arange(1500), pairs=((1, 0),), rng=1)
    for one, other in ((counted, again), (plain, each)):
        for a, b in zip(
            one.values + one.differences, other.values + other.differences, strict=True
        ):
            assert (a.estimate, a.low, a.high) == pytest.approx((b.estimate, b.low, b.high))


def test_repeated_people_widen_intervals(rows):
    y, s, group = (np.repeat(a, 5) for a in rows)
    person = np.repeat(np.arange(1500), 5)
    naive, users = (group_quality(y, s, group, cluster=c) for c in (None, person))
    for a, b in zip(naive.values, users.values, strict=True):
        assert b.high - b.low > 1.5 * (a.high - a.low)


def test_a_group_with_few_outcomes_is_left_out(rows):
    y, s, group = rows
    y = np.where((group == 1) & (np.cumsum(group) > 5), 0.0, y)
    found = group_quality(y, s, group, pairs=((1, 0),))
    assert set(found.too_small) == {1}
    assert found.differences == ()


def test_a_perfect_score_has_no_error_and_chance_is_taken_off(rng):
    score = rng.uniform(size=1000)
    errors = [calibration_error(rng.uniform(size=1000) < score, score) for _ in range(40)]
    assert np.mean([error.estimate for error in errors]) < 0.025
    assert np.mean([error.confidence_interval().low == 0.0 for error in errors]) > 0.9


def test_an_error_without_variance_has_no_width():
    error = calibration_error(np.full(30, 1.0), np.full(30, 0.75))
    assert error.estimate == 0.25
    assert error.confidence_interval() == (0.25, 0.25)


def test_wrong_values_are_refused(rows):
    y, s, group = rows
    with pytest.raises(DataError, match="`y_true` must be 0 or 1"):
        group_quality(2 * y, s, group)
    with pytest.raises(DataError, match="scores must lie in"):
        group_quality(y, 3 * s, group)
    assert group_quality(y, 3 * s, group, metrics=("auc",)).values


def test_a_score_that_is_the_same_for_everybody_differs_nowhere(rng):
    y, group = np.tile([0.0, 1.0], 60), np.repeat([0, 1], 60)
    for _ in range(20):
        weight = rng.lognormal(size=120)
        found = group_quality(y, np.full(120, 0.5), group, weight=weight, pairs=((1, 0),))
        assert found.differences == ()


def parity_rows(rng, n=3_000, gap=0.1):
    member = rng.random(n) < 0.4
    s = np.where(member, rng.beta(2, 3, n), rng.beta(3, 2, n))
    return (rng.random(n) < 0.1 + 0.7 * s + gap * member).astype(float), s, member


def test_the_parity_error_is_a_mean_square_over_bins_less_chance(rng):
    """By hand with one bin: a regression on the score and the group."""
    y, s, member = parity_rows(rng)
    found = parity_error(y, s, member, n_bins=1)
    centred = [np.where(member, x - x[member].mean(), x - x[~member].mean()) for x in (s, y)]
    slope = centred[0] @ centred[1] / (centred[0] @ centred[0])
    gap = (y - slope * s)[member].mean() - (y - slope * s)[~member].mean()
    residual = centred[1] - slope * centred[0]
    variance = sum(residual[side].var(ddof=1) / side.sum() for side in (member, ~member))
    assert_allclose(found.total, gap**2)
    assert_allclose(found.eigenvalues.sum(), variance)
    assert_allclose(found.estimate, np.sqrt(gap**2 - variance))


def test_copies_widen_nothing_when_they_are_one_person(rng):
    y, s, member = parity_rows(rng, 800)
    twice = [np.tile(values, 2) for values in (y, s, member)]
    once = parity_error(y, s, member)
    people = parity_error(*twice, cluster=np.tile(np.arange(800), 2))
    counted = parity_error(y, s, member, count=np.full(800, 2.0))
    rows = parity_error(*twice)
    assert_allclose(people.eigenvalues.sum(), once.eigenvalues.sum(), rtol=0.05)
    assert_allclose(counted.estimate, rows.estimate)
    assert_allclose(np.sort(counted.eigenvalues), np.sort(rows.eigenvalues))


def test_units_with_the_same_rows_on_both_sides_show_no_difference_and_no_error(rng):
    """What a person adds to one side cancels with what the same person adds to the other."""
    s, y = rng.uniform(size=400), (rng.random(400) < 0.5).astype(float)
    twice, member = [np.tile(values, 2) for values in (y, s)], np.repeat([True, False], 400)
    assert parity_error(*twice, member).eigenvalues.sum() > 0.01
    people = parity_error(*twice, member, cluster=np.tile(np.arange(400), 2))
    assert people.total == 0.0
    assert_allclose(people.eigenvalues, 0.0, atol=1e-15)


def test_groups_without_common_scores_have_no_parity_error(rng):
    member = np.repeat([True, False], 200)
    s = np.where(member, rng.uniform(0, 0.4, 400), rng.uniform(0.6, 1, 400))
    y = (rng.random(400) < 0.5).astype(float)
    assert parity_error(y, s, member, n_bins=8) is None
    assert parity_error(y, s, member, n_bins=7) is None
    found = group_quality(y, s, member.astype(int), metrics=("parity_error",), n_bins=8)
    assert found.apart == (0, 1)
    assert not found.values


def test_the_error_of_a_brier_score_is_that_of_a_mean(rng):
    """Seven rows, where n - 1 and n + 1 differ by a quarter."""
    y, s = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]), rng.random(7)
    rows = _Rows(y=y, s=s, weight=np.ones(7), copies=np.ones(7), unit=np.arange(7))
    value, psi = _brier(rows)
    loss = (y - s) ** 2
    assert value == pytest.approx(loss.mean())
    assert np.sum(psi**2) == pytest.approx(np.var(loss, ddof=1) / 7)
