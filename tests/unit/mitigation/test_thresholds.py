import numpy as np
import pytest

from equipoise.exceptions import (
    ApproximationWarning,
    DataError,
    EstimationError,
    InvalidParameterError,
)
from equipoise.mitigation import MarginalThresholds
from equipoise.stats.scores.thresholds import equal_margin_thresholds


def straight(rng, n=60_000, gap=0.1, slope=0.7):
    """Uniform scores, outcome 0.1 + slope s + gap g: margins are equal when t0 - t1 = gap / slope.

    Keeping the rate at one half with equal groups gives t = 0.5 +- gap / (2 slope).
    """
    group, score = rng.integers(2, size=n), rng.uniform(size=n)
    return 0.1 + slope * score + gap * group, score, group


def test_thresholds_equal_the_closed_form_when_the_curve_is_known(rng):
    y, score, group = straight(rng)
    new = equal_margin_thresholds(y, score, group, 0.5, labels_below=True, n_resamples=10)
    half = 0.1 / 1.4
    np.testing.assert_allclose(new.threshold, [0.5 + half, 0.5 - half], atol=0.005)
    assert new.rate_after == pytest.approx(new.rate_before, abs=1e-4)
    np.testing.assert_allclose(new.outcome_before, [0.45, 0.55], atol=0.005)
    assert new.outcome == pytest.approx(0.5, abs=0.005)
    assert not new.extrapolated.any()


def test_the_line_is_continued_below_the_threshold_and_marked(rng):
    y, score, group = straight(rng)
    hidden = np.where(score < 0.5, np.nan, y)
    new = equal_margin_thresholds(hidden, score, group, 0.5, n_resamples=10)
    half = 0.1 / 1.4
    np.testing.assert_allclose(new.threshold, [0.5 + half, 0.5 - half], atol=0.005)
    np.testing.assert_array_equal(new.extrapolated, [False, True])


def test_a_reference_group_keeps_its_threshold(rng):
    y, score, group = straight(rng)
    new = equal_margin_thresholds(
        y, score, group, 0.5, reference=1, labels_below=True, n_resamples=10
    )
    np.testing.assert_allclose(new.threshold, [0.5 + 0.1 / 0.7, 0.5], atol=0.005)
    with pytest.raises(InvalidParameterError, match="`reference` must be a group code"):
        equal_margin_thresholds(y, score, group, 0.5, reference=5)


def test_intervals_cover_the_truth_and_widen_with_the_level(rng):
    mean, score, group = straight(rng, n=20_000)
    y = (rng.uniform(size=len(mean)) < mean).astype(float)
    narrow, wide = (
        equal_margin_thresholds(
            y, score, group, 0.5, labels_below=True, confidence_level=level, n_resamples=60, rng=3
        )
        for level in (0.5, 0.95)
    )
    assert np.all(wide.high - wide.low > narrow.high - narrow.low)
    assert np.all((wide.low < [0.571, 0.429]) & (wide.high > [0.571, 0.429]))


def test_clusters_widen_the_intervals(rng):
    mean, score, group = straight(rng, n=4000)
    user = 2 * rng.integers(150, size=4000) + group
    y = mean + 0.3 * rng.normal(size=300)[user]
    keywords = {"labels_below": True, "n_resamples": 60, "rng": 1}
    rows = equal_margin_thresholds(y, score, group, 0.5, **keywords)
    users = equal_margin_thresholds(y, score, group, 0.5, cluster=user, **keywords)
    assert (users.high - users.low).mean() > 1.3 * (rows.high - rows.low).mean()


def test_ranges_that_do_not_overlap_have_no_solution(rng):
    _, score, group = straight(rng, n=4000)
    y = np.where(group == 1, 0.6 + 0.3 * score, 0.1 + 0.3 * score)
    with pytest.raises(EstimationError, match="ranges of the groups' curves do not overlap"):
        equal_margin_thresholds(y, score, group, 0.5, labels_below=True)


def test_a_rate_that_cannot_be_kept_is_an_error(rng):
    score, group = rng.uniform(size=8000), np.repeat([0, 1], 4000)
    y = np.where(group == 1, 0.5 + 0.5 * score, 0.1 + 0.5 * score)
    with pytest.raises(EstimationError, match="is not reached by every group"):
        equal_margin_thresholds(y, score, group, 0.1, reference=0, labels_below=True)
    with pytest.raises(EstimationError, match="no common outcome level keeps the positive rate"):
        equal_margin_thresholds(y, score, group, 0.02, labels_below=True)


def test_threshold_above_the_scores_is_refused(rng):
    y, score, group = straight(rng, n=500)
    with pytest.raises(DataError, match="`threshold` must be below the highest score"):
        equal_margin_thresholds(y, score, group, 2.0)


def test_estimator_decides_by_group_and_marks_extrapolation(rng):
    y, score, group = straight(rng)
    names = np.array(["A", "B"])[group]
    hidden = np.where(score < 0.5, np.nan, y)
    rule = MarginalThresholds(0.5, n_resamples=10, random_state=0)
    with pytest.warns(ApproximationWarning, match="thresholds of 'B' lie below 0.5"):
        rule.fit(score, hidden, group=names)
    assert rule.extrapolated_ == {"A": False, "B": True}
    np.testing.assert_array_equal(rule.predict([0.5, 0.5], group=["A", "B"]), [0, 1])
    low, high = rule.intervals_["A"]
    assert low <= rule.thresholds_["A"] <= high
    assert rule.positive_rate_[0] == pytest.approx(rule.positive_rate_[1], abs=1e-3)


def test_estimator_with_one_group_keeps_the_threshold(rng):
    rule = MarginalThresholds(0.3).fit([[0.1], [0.4]], [0, 1])
    np.testing.assert_array_equal(rule.predict([[0.2], [0.35]]), [0, 1])


def test_estimator_refuses_an_unknown_reference(rng):
    y, score, group = straight(rng, n=500)
    with pytest.raises(InvalidParameterError, match="`reference` must be one of '0', '1'; got 7"):
        MarginalThresholds(0.5, reference=7).fit(score, y, group=group)
    rule = MarginalThresholds(0.5, reference=1, labels_below=True, n_resamples=5)
    assert rule.fit(score, y, group=group).thresholds_[1] == 0.5


def barely_overlapping(seed):
    rng = np.random.default_rng(seed)
    score, group = rng.uniform(size=300), np.repeat([0, 1], 150)
    y = np.where(group == 1, 0.45, 0.2) + 0.3 * score + 0.4 * rng.normal(size=300)
    return y, score, group


def test_resamples_without_a_solution_are_counted_and_refused_when_most():
    keywords = {"reference": 0, "labels_below": True, "n_resamples": 20, "rng": 0}
    found = equal_margin_thresholds(*barely_overlapping(5), 0.6, **keywords)
    assert found.n_failed == 9
    with pytest.raises(EstimationError, match="12 of 20 resamples have no common outcome level"):
        equal_margin_thresholds(*barely_overlapping(58), 0.6, **keywords)


def test_a_group_without_outcomes_above_the_threshold_is_an_error(rng):
    score = np.concatenate([rng.uniform(0, 0.4, 300), rng.uniform(0, 1, 300)])
    with pytest.raises(EstimationError, match="a group has no outcome above the threshold"):
        equal_margin_thresholds(score, score, np.repeat([0, 1], 300), 0.5)


def deciles(seed, n=3000):
    rng = np.random.default_rng(seed)
    group, score = rng.choice(["m", "w"], size=n, p=[0.7, 0.3]), rng.integers(1, 11, size=n)
    y = (rng.uniform(size=n) < 0.05 * score + 0.1 * (group == "w")).astype(int)
    return y, score, group, rng.uniform(0.5, 2.0, size=n)


@pytest.mark.parametrize("seed", range(5))
def test_deciles_keep_the_rate_that_is_promised(seed):
    y, score, group, weight = deciles(seed)
    rule = MarginalThresholds(5, labels_below=True, n_resamples=5)
    with pytest.warns(ApproximationWarning, match="nearly equal with 10 levels of the score"):
        rule.fit(score, y, weight, group=group)
    before = np.average(score >= 5, weights=weight)
    chance = rule.predict_proba_accept(score, group=group)
    assert rule.positive_rate_ == pytest.approx((before, before), abs=1e-12)
    assert np.average(chance, weights=weight) == pytest.approx(before, abs=1e-12)
    drawn = rule.predict(score, group=group, random_state=1)
    assert np.all(drawn[chance == 1.0] == 1)
    assert np.all(drawn[chance == 0.0] == 0)
    assert np.average(drawn, weights=weight) == pytest.approx(before, abs=0.03)
    # Everybody accepted has a mean outcome at least that of everybody refused.
    assert (
        max(below for below, _ in rule.bracket_.values())
        <= min(at for _, at in rule.bracket_.values()) + 1e-12
    )
    assert sum(0 < share < 1 for share in rule.accept_at_.values()) <= 1


def test_the_attainable_rate_is_below_and_an_error_can_be_asked_for():
    y, score, group, _ = deciles(1)
    with pytest.warns(ApproximationWarning, match="levels"):
        rule = MarginalThresholds(5, labels_below=True, n_resamples=5, ties="attainable").fit(
            score, y, group=group
        )
    before, after = rule.positive_rate_
    assert after < before
    assert after == pytest.approx(rule.predict(score, group=group).mean())
    with pytest.raises(EstimationError, match="no thresholds keep the positive rate"):
        MarginalThresholds(5, labels_below=True, n_resamples=5, ties="error").fit(
            score, y, group=group
        )


def test_levels_of_a_reference_keep_its_threshold():
    y, score, group, _ = deciles(2, n=20_000)
    with pytest.warns(ApproximationWarning, match="levels"):
        rule = MarginalThresholds(5, reference="m", labels_below=True, n_resamples=5).fit(
            score, y, group=group
        )
    assert rule.thresholds_["m"] == 5
    assert rule.thresholds_["w"] < 5
    assert set(rule.accept_at_.values()) == {1.0}


def test_levels_below_the_threshold_without_labels_continue_a_line():
    y, score, group, _ = deciles(3, n=6000)
    hidden = np.where(score >= 5, y, np.nan)
    with pytest.warns(ApproximationWarning) as told:
        rule = MarginalThresholds(5, n_resamples=5).fit(score, hidden, group=group)
    assert any("extrapolate a line" in str(each.message) for each in told)
    assert rule.extrapolated_ == {"m": False, "w": True}


def test_one_level_with_labels_gives_a_flat_line():
    y, score, group, _ = deciles(3)
    hidden = np.where(score >= 9, y, np.nan)
    keep = (score != 10) | (group == "w")
    with pytest.warns(ApproximationWarning):
        rule = MarginalThresholds(9, n_resamples=5, random_state=0).fit(
            score[keep], hidden[keep], group=group[keep]
        )
    assert rule.positive_rate_[1] == pytest.approx(rule.positive_rate_[0])
