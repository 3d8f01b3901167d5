import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.frontier import (
    SplitEvidence,
    central_p_value,
    combine_splits,
    delta_curve,
)
from equipoise.stats.improvement.test import ImprovementQuestion, compare_utilities
from simulate.improvability import paired_selection

P = [0.30, 0.01, 0.04, 0.02, 0.20]


def test_rules_by_hand():
    assert combine_splits(P, "median") == pytest.approx(0.08)
    assert combine_splits(P, "bonferroni") == pytest.approx(0.05)
    # Lower medians of the first k: .30, .01, .04, .02, .04.
    assert combine_splits(P, "exch_median") == pytest.approx(0.02)


def test_even_number_of_splits_takes_the_lower_median():
    assert combine_splits([0.01, 0.02, 0.03, 0.9], "median") == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("rule", "central"), [("median", 0.02), ("bonferroni", 0.01), ("exch_median", 0.01)]
)
def test_the_central_p_value_is_what_the_rule_multiplies(rule, central):
    p = [0.03, 0.01, 0.9, 0.02]
    assert central_p_value(p, rule) == pytest.approx(central)
    assert combine_splits(p, rule) >= central_p_value(p, rule)


def test_only_the_exchangeable_rule_depends_on_the_order():
    back = P[::-1]
    assert combine_splits(P, "median") == combine_splits(back, "median")
    assert combine_splits(P, "bonferroni") == combine_splits(back, "bonferroni")
    assert combine_splits(P, "exch_median") != combine_splits(
        [0.3, 0.2, 0.04, 0.02, 0.01], "exch_median"
    )


@pytest.mark.parametrize("rule", ["median", "exch_median", "bonferroni"])
def test_one_split_keeps_its_p_value_and_the_result_is_at_most_one(rule):
    assert combine_splits([0.7], rule) == pytest.approx(0.7)
    assert combine_splits([0.9, 0.8, 0.95], rule) == 1.0


def test_every_column_is_combined_on_its_own():
    table = np.array([P, [0.5] * 5]).T
    np.testing.assert_allclose(combine_splits(table), [0.08, 1.0])


def test_invalid_rules_are_not_offered():
    with pytest.raises(InvalidParameterError, match="'median', 'exch_median', 'bonferroni'"):
        combine_splits(P, "min")


@pytest.mark.parametrize("bad", [[], [0.1, 1.2], 0.3])
def test_p_values_must_be_a_list_of_probabilities(bad):
    with pytest.raises(InvalidParameterError, match="one p-value in"):
        combine_splits(bad)


@pytest.fixture
def splits(rng):
    design = {"capacity": 0.2, "minority": 0.4, "status_quo": [5.0, 6.5], "candidate": [7.0, 7.2]}
    return [
        SplitEvidence(
            estimates=paired_selection(rng, n=8000, n_resamples=999, **design), directions=[(1, 0)]
        )
        for _ in range(3)
    ]


@pytest.mark.parametrize("method", ["signed", "paper"])
def test_accuracy_delta_is_where_the_test_stops_to_reject(splits, method):
    question = ImprovementQuestion(method=method)
    curve = delta_curve(splits, question=question, groups=(0,))

    def combined(delta):
        p = [
            compare_utilities(
                split.estimates,
                directions=split.directions,
                question=question,
                delta_accuracy=[delta, 0.0],
            ).p_value
            for split in splits
        ]
        return 2 * np.median(p)

    step = curve.delta[1] / 40
    assert combined(curve.largest) <= 0.05 < combined(curve.largest + 1.01 * step)


def test_basic_bootstrap_delta_has_the_closed_form(splits):
    evidence = splits[:1]
    estimates = evidence[0].estimates
    curve = delta_curve(evidence, question=ImprovementQuestion(method="paper"), groups=(1,))
    value, draws = estimates.value[0], estimates.draws.value.reshape(-1, 2, 2)
    # p(delta) is the share of draws with delta_j <= delta.
    delta_j = (2 * value[1, 1] - draws[:, 1, 1]) / (2 * value[0, 1] - draws[:, 0, 1]) - 1
    exact = np.sort(delta_j)[int(0.05 * len(delta_j))]
    assert curve.largest == pytest.approx(exact, abs=curve.delta[1] / 20)


def test_fairness_delta_stays_below_the_estimated_reduction(splits):
    curve = delta_curve(splits, question=ImprovementQuestion(), fairness=True)
    reductions = [
        1 - np.ptp(s.estimates.value[0, 1]) / np.ptp(s.estimates.value[0, 0]) for s in splits
    ]
    assert 0 < curve.largest < max(reductions) == pytest.approx(curve.delta[-1])
    assert curve.p_value[0] <= 0.05 < curve.p_value[-1]


def test_stricter_level_and_rule_show_less(splits):
    question = ImprovementQuestion()
    usual = delta_curve(splits, question=question, groups=(0, 1)).largest
    strict = delta_curve(splits, question=question, groups=(0, 1), alpha=0.01).largest
    single = delta_curve(splits[:1], question=question, groups=(0,)).largest
    both = delta_curve(splits[:1], question=question, groups=(0, 1)).largest
    assert strict < usual
    assert both <= single


def test_no_improvement_has_no_largest_delta(rng):
    estimates = paired_selection(
        rng, n=4000, capacity=0.2, minority=0.4, status_quo=[5.0, 6.5], candidate=[4.0, 6.0]
    )
    evidence = [SplitEvidence(estimates=estimates, directions=[(1, 0)])]
    question = ImprovementQuestion(inference="analytic")
    curve = delta_curve(evidence, question=question, groups=(0,))
    assert curve.largest is None
    assert curve.delta.tolist() == [0.0]


def test_absolute_and_relative_deltas_differ_by_the_status_quo(splits):
    relative = delta_curve(
        splits[:1], question=ImprovementQuestion(inference="analytic"), groups=(0,)
    )
    absolute = delta_curve(
        splits[:1],
        question=ImprovementQuestion(inference="analytic", margin_scale="absolute"),
        groups=(0,),
    )
    assert absolute.largest == pytest.approx(5 * relative.largest, rel=0.1)


def test_everything_is_shown_when_the_gap_vanishes_without_noise():
    from equipoise.stats.improvement.utilities import UtilityEstimates

    value = np.array([[[1.0, 2.0], [3.0, 3.0]]])
    estimates = UtilityEstimates(
        value=value,
        covariance=np.eye(4) * 1e-24,
        support=np.full((1, 2, 2), 100),
        n_groups=2,
        n_units=400,
    )
    curve = delta_curve(
        [SplitEvidence(estimates=estimates, directions=[(1, 0)])],
        question=ImprovementQuestion(inference="analytic"),
        fairness=True,
    )
    assert curve.largest == pytest.approx(1.0)


def test_a_delta_must_be_required_of_something(splits):
    with pytest.raises(InvalidParameterError, match="at least one split, and `fairness` or"):
        delta_curve(splits, question=ImprovementQuestion())
    with pytest.raises(InvalidParameterError, match="at least one split"):
        delta_curve([], question=ImprovementQuestion(), fairness=True)
