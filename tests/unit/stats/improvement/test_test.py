from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.stats.improvement.test import (
    Gap,
    ImprovementQuestion,
    Margins,
    compare_utilities,
    gap_direction,
    p_value_curve,
)
from equipoise.stats.improvement.utilities import (
    BootstrapDraws,
    ContrastLine,
    UtilityEstimates,
    estimate_utilities,
)
from simulate.improvability import paired_selection

ANALYTIC = ImprovementQuestion(inference="analytic")


def known(value, covariance, *, groups=2):
    """Estimates with a given law."""
    value = np.asarray(value, dtype=float).reshape(-1, 2, groups)
    return UtilityEstimates(
        value=value,
        covariance=np.asarray(covariance, dtype=float),
        support=np.full(value.shape, 1000),
        n_groups=groups,
        n_units=4000,
    )


@pytest.fixture
def sample(rng):
    return paired_selection(
        rng,
        n=6000,
        capacity=0.1,
        minority=0.3,
        status_quo=[5.0, 6.5],
        candidate=[7.0, 7.3],
        n_resamples=999,
    )


def test_analytic_p_values_by_hand():
    # Status quo 5 and 6, candidate 7 and 6.5, all with variance .01 and independent.
    estimates = known([5.0, 6.0, 7.0, 6.5], np.eye(4) * 0.01)
    test = compare_utilities(
        estimates, directions=[(1, 0)], question=ANALYTIC, delta_accuracy=0.05, delta_fairness=0.2
    )
    se = 0.1 * np.sqrt(1 + 1.05**2)
    assert test.accuracy[0].p_value == pytest.approx(stats.norm.sf((7 - 1.05 * 5) / se))
    assert test.accuracy[1].p_value == pytest.approx(stats.norm.sf((6.5 - 1.05 * 6) / se))
    # Gap 1 -> -.5 with c = .8: contrasts .8 - .5 and .8 + .5.
    gap_se = 0.1 * np.sqrt(2 + 2 * 0.8**2)
    assert test.fairness[0].p_value == pytest.approx(stats.norm.sf(0.3 / gap_se))
    assert (test.fairness[0].status_quo, test.fairness[0].candidate) == (1.0, 0.5)
    assert test.p_value == max(t.p_value for t in (*test.accuracy, *test.fairness))
    assert test.binding is test.accuracy[1]


def test_absolute_margins_by_hand():
    estimates = known([-1.0, 1.0, 1.0, 1.2], np.eye(4) * 0.01)
    question = ImprovementQuestion(inference="analytic", margin_scale="absolute")
    test = compare_utilities(
        estimates, directions=[(1, 0)], question=question, delta_accuracy=[0.5, 0.1]
    )
    se = 0.1 * np.sqrt(2)
    assert test.accuracy[0].p_value == pytest.approx(stats.norm.sf(1.5 / se))
    assert test.accuracy[1].p_value == pytest.approx(stats.norm.sf(0.1 / se))


def test_relative_gain_on_a_negative_utility_is_refused():
    estimates = known([-1.0, 1.0, 1.0, 1.2], np.eye(4) * 0.01)
    with pytest.raises(InvalidParameterError, match=r'got -1\. Pass margin_scale="absolute"'):
        compare_utilities(estimates, directions=[(1, 0)], question=ANALYTIC, delta_accuracy=0.1)
    compare_utilities(estimates, directions=[(1, 0)], question=ANALYTIC)


def test_squared_statistic_by_hand():
    estimates = known([5.0, 6.0, 7.0, 7.5], np.eye(4) * 0.01)
    question = ImprovementQuestion(method="paper", inference="analytic")
    test = compare_utilities(estimates, directions=[None], question=question, delta_fairness=0.1)
    a, b, keep = -0.5, -1.0, 0.81
    se = np.sqrt((2 * a) ** 2 * 0.02 + (2 * keep * b) ** 2 * 0.02)
    assert test.fairness[0].p_value == pytest.approx(stats.norm.cdf((a**2 - keep * b**2) / se))


def test_bootstrap_p_values_are_the_printed_counts(sample):
    question = ImprovementQuestion(method="paper")
    test = compare_utilities(sample, directions=[None], question=question)
    value, draws = sample.value[0], sample.draws.value.reshape(-1, 2, 2)
    for g in (0, 1):
        t = value[1, g] - value[0, g]
        t_star = draws[:, 1, g] - draws[:, 0, g]
        assert test.accuracy[g].p_value == np.mean(t_star - t >= t)
    squared = (draws[:, 1, 0] - draws[:, 1, 1]) ** 2 - (draws[:, 0, 0] - draws[:, 0, 1]) ** 2
    t_f = (value[1, 0] - value[1, 1]) ** 2 - (value[0, 0] - value[0, 1]) ** 2
    assert test.fairness[0].p_value == np.mean(squared - t_f <= t_f)


def test_studentised_p_value_is_the_share_of_larger_t(sample):
    test = compare_utilities(sample, directions=[(1, 0)], question=ImprovementQuestion())
    contrast = np.array([-1.0, 0.0, 1.0, 0.0])
    t = contrast @ sample.value.ravel() / np.sqrt(contrast @ sample.covariance @ contrast)
    t_star = ((sample.draws.value - sample.value.ravel()) @ contrast) / np.sqrt(
        np.einsum("jrs,r,s->j", sample.draws.covariance, contrast, contrast)
    )
    assert test.accuracy[0].p_value == pytest.approx((1 + np.sum(t_star >= t)) / 1000)


def test_unknown_direction_doubles_the_p_value(sample):
    question = ImprovementQuestion()
    told = compare_utilities(sample, directions=[(1, 0)], question=question)
    untold = compare_utilities(sample, directions=[None], question=question)
    wrong = compare_utilities(sample, directions=[(0, 1)], question=question)
    assert untold.fairness[0].p_value == pytest.approx(2 * told.fairness[0].p_value)
    assert wrong.fairness[0].p_value > 0.9


def test_candidate_equal_to_the_status_quo_is_never_an_improvement(rng):
    y = rng.poisson(3, size=400).astype(float)
    d = np.repeat((np.arange(400) % 4 == 0).astype(float)[:, None], 2, axis=1)
    estimates = estimate_utilities(
        (y[:, None] * d)[:, None], d[:, None], np.arange(400) % 8 // 4, n_groups=2, n_resamples=99
    )
    for method in ("signed", "paper"):
        for inference in ("bootstrap", "analytic"):
            question = ImprovementQuestion(method=method, inference=inference)
            test = compare_utilities(estimates, directions=[(0, 1)], question=question)
            assert test.accuracy[0].p_value == test.accuracy[1].p_value == 1.0


def test_population_accuracy_is_one_requirement(rng):
    u = rng.random((300, 1, 2))
    u[:, 0, 1] += 0.2
    group = np.arange(300) % 3
    estimates = estimate_utilities(u, np.ones_like(u), group, n_groups=3, population=True)
    question = ImprovementQuestion(population=True, inference="analytic")
    test = compare_utilities(estimates, directions=[(0, 1)], question=question)
    assert [t.group for t in test.accuracy] == [3]
    change = u[:, 0, 1] - u[:, 0, 0]
    t = change.mean() / (change.std() / np.sqrt(300))
    assert test.accuracy[0].p_value == pytest.approx(stats.norm.sf(t), rel=1e-9)
    assert len(test.fairness[0].contrasts) == 6


def test_largest_gap_of_three_groups_must_shrink():
    # Status quo 3, 2, 1 (direction 0 over 2), candidate 4, 4, 4 - s: gap s.
    for s, shown in ((0.5, True), (1.9, False), (2.5, False)):
        estimates = known([3.0, 2.0, 1.0, 4.0, 4.0, 4.0 - s], np.eye(6) * 0.01, groups=3)
        test = compare_utilities(estimates, directions=[(0, 2)], question=ANALYTIC)
        assert (test.fairness[0].p_value < 0.05) == shown
        assert test.fairness[0].candidate == pytest.approx(s)


def test_several_fairness_criteria_all_have_to_improve():
    value = [5.0, 6.0, 7.0, 7.1, 0.2, 0.6, 0.3, 0.9]
    estimates = known(value, np.eye(8) * 1e-4)
    question = ImprovementQuestion(fairness=(0, 1), inference="analytic")
    test = compare_utilities(estimates, directions=[(1, 0), (1, 0)], question=question)
    assert test.fairness[0].p_value < 0.01
    assert test.fairness[1].p_value > 0.99
    assert test.binding is test.fairness[1]


def test_p_value_grows_with_delta(sample):
    deltas = np.linspace(0, 0.9, 40)
    options = {"directions": [(1, 0)], "question": ImprovementQuestion()}
    for target in ({"fairness": True}, {"groups": (0,)}, {"groups": (0, 1)}):
        p = p_value_curve(sample, deltas, **options, **target)
        assert (np.diff(p) >= 0).all()
        single = compare_utilities(
            sample,
            **options,
            delta_fairness=deltas[7] if "fairness" in target else 0.0,
            delta_accuracy=[deltas[7] * (g in target.get("groups", ())) for g in (0, 1)],
        )
        assert p[7] == pytest.approx(single.p_value)


def test_interval_of_a_minimum_covers_both_contrasts():
    estimates = known([5.0, 6.0, 7.0, 7.0], np.eye(4) * 0.01)
    gap = compare_utilities(estimates, directions=[(1, 0)], question=ANALYTIC).fairness[0]
    low, high = gap.interval(0.025)
    assert gap.estimate == pytest.approx(1.0)
    assert low == pytest.approx(1 - 1.959964 * 0.2, abs=1e-5)
    assert high == pytest.approx(1 + 2.241403 * 0.2, abs=1e-5)


def test_direction_names_the_highest_and_the_lowest_group():
    assert gap_direction([1, 2, 9, 4], [1, 1, 1, 1], [0, 1, 2, 3], n_groups=4) == (2, 0)
    assert gap_direction([1, 1], [1, 1], [0, 1], n_groups=2) == (0, 1)
    with pytest.raises(GroupTooSmallError, match="group 1 has no training row"):
        gap_direction([1.0], [1.0], [0], n_groups=2)


def test_samples_without_spread_or_denominator_count_as_extreme():
    estimates = known([0.0, 0.0, 1.0, 1.0], np.eye(4) * 0.01)
    value = np.tile([0.0, 0.0, 1.0, 1.0], (4, 1))
    covariance = np.tile(np.eye(4) * 0.01, (4, 1, 1))
    covariance[0] = 0.0
    defined = np.ones((4, 4), dtype=bool)
    defined[1, 2] = False
    draws = BootstrapDraws(value=value, covariance=covariance, defined=defined, law="cells")
    estimates = UtilityEstimates(
        value=estimates.value,
        covariance=estimates.covariance,
        support=estimates.support,
        n_groups=2,
        n_units=9,
        draws=draws,
    )
    line = ContrastLine(base=np.array([-1.0, 0, 1, 0]), slope=np.zeros(4))
    assert line.p_values(estimates, np.zeros(1), "studentised") == pytest.approx(3 / 5)
    assert line.p_values(estimates, np.zeros(1), "basic") == pytest.approx(1 / 4)


def test_fewer_than_ten_rows_are_refused(rng):
    w = np.ones((40, 1, 2))
    w[9:20, 0, 1] = 0
    estimates = estimate_utilities(w * rng.random((40, 1, 2)), w, np.arange(40) // 20, n_groups=2)
    with pytest.raises(GroupTooSmallError, match="candidate has 9 in group 0"):
        compare_utilities(estimates, directions=[(0, 1)], question=ANALYTIC)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta_fairness": 1.0}, "`delta_fairness` must be below 1"),
        ({"delta_fairness": [0.1, 0.2]}, "one for each of 1 fairness"),
        ({"delta_accuracy": -1.0}, "must be below 1"),
        ({"delta_accuracy": [0.1, 0.1, 0.1]}, "one for each of 2 groups"),
        ({"directions": []}, "one entry for each of 1 fairness"),
        ({"question": ImprovementQuestion(population=True)}, "population=True"),
        ({"question": ImprovementQuestion()}, "the bootstrap needs draws"),
    ],
)
def test_bad_arguments_are_explained(change, message):
    options = {"directions": [(1, 0)], "question": ANALYTIC} | change
    estimates = known([5.0, 6.0, 7.0, 6.5], np.eye(4) * 0.01)
    with pytest.raises(InvalidParameterError, match=message):
        compare_utilities(estimates, **options)


def test_squared_statistic_needs_two_groups_and_a_gap_at_least_two():
    paper = ImprovementQuestion(method="paper", inference="analytic")
    with pytest.raises(InvalidParameterError, match="defined for two groups; got 3"):
        compare_utilities(
            known(np.arange(6.0), np.eye(6), groups=3), directions=[None], question=paper
        )
    with pytest.raises(InvalidParameterError, match="at least two groups"):
        compare_utilities(
            known([1.0, 2.0], np.eye(2), groups=1), directions=[None], question=ANALYTIC
        )
    with pytest.raises(InvalidParameterError, match="'signed', 'paper'"):
        ImprovementQuestion(method="squared")


def test_gaps_to_a_reference_by_hand():
    # Status quo .2 .5 .6, candidate .4 .5 .55; the first is the reference.
    estimates = known([0.2, 0.5, 0.6, 0.4, 0.5, 0.55], np.eye(6) * 0.01, groups=3)
    gap = Gap(criterion=0, groups=(0, 1, 2), reference=0)
    question = replace(ANALYTIC, between=(gap,))
    test = compare_utilities(estimates, directions=[(2, 0)], question=question)
    assert test.fairness[0].status_quo == pytest.approx(0.4)
    assert test.fairness[0].candidate == pytest.approx(0.15)
    assert sorted(value for value, _ in test.fairness[0].contrasts) == pytest.approx(
        [0.4 - 0.15, 0.4 - 0.1, 0.4 + 0.1, 0.4 + 0.15]
    )
    assert gap.direction(estimates.value[0, 0]) == (2, 0)


def test_gaps_follow_the_groups_that_are_kept():
    gap = Gap(criterion=0, groups=(1, 2, 3), reference=3)
    assert gap.among([0, 1, 3]) == Gap(criterion=0, groups=(1, 2), reference=2)
    assert gap.among([0, 1, 2]) is None
    assert Gap(criterion=0, groups=(0, 1)).among([1, 2]) is None


def test_a_held_gap_is_asked_the_same_at_every_delta():
    estimates = known([0.2, 0.6, 0.5, 0.5, 0.4, 0.5, 0.5, 0.5], np.eye(8) * 1e-4, groups=4)
    moves, held = Gap(criterion=0, groups=(0, 1)), Gap(criterion=0, groups=(2, 3), held=True)
    question = replace(ANALYTIC, between=(moves, held), population=False)
    p = p_value_curve(
        estimates,
        np.array([0.1, 0.5]),
        directions=[(1, 0), (2, 3)],
        question=question,
        fairness=True,
        margins=Margins(accuracy=-0.5, tolerance=[0.0, 0.1]),
    )
    only = p_value_curve(
        estimates,
        np.array([0.1, 0.5]),
        directions=[(1, 0)],
        question=replace(ANALYTIC, between=(moves,)),
        fairness=True,
        margins=Margins(accuracy=-0.5),
    )
    # The held gap stays at zero, .1 tolerated, its standard error .02: the same at both deltas.
    np.testing.assert_allclose(p, np.maximum(only, stats.norm.sf(0.1 / 0.02)), rtol=1e-6)
