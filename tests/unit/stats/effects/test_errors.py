import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.exceptions import DataError, InvalidParameterError, NotBinaryError
from equipoise.stats.effects.collapse import collapse_parts, effect_quantities, resolve_collapse
from equipoise.stats.effects.effect_scores import lin_outcomes
from equipoise.stats.effects.errors import (
    corrected_errors,
    effect_moments,
    group_errors,
    with_both_arms,
)


def rows(*arms):
    """Rows from (group, arm, positives, rows) with a prediction of 2."""
    y = np.concatenate([np.repeat([1.0, 0.0], [k, n - k]) for _, _, k, n in arms])
    t = np.concatenate([np.full(n, arm) for _, arm, _, n in arms])
    g = np.concatenate([np.full(n, group) for group, _, _, n in arms])
    return y, t, np.full(len(y), 2.0), g


def test_effect_error_and_standard_error_by_hand():
    # 10% without, 15% with treatment: tau 1.5, error 0.5.
    found = group_errors(effect_moments(*rows((0, 0, 100, 1000), (0, 1, 150, 1000))))
    assert_allclose([found.effect[0], found.predicted[0], found.error[0]], [1.5, 2.0, 0.5])
    # Var(m1)/m0^2 + tau^2 Var(m0)/m0^2
    variance = (0.15 * 0.85 / 1000 + 1.5**2 * 0.1 * 0.9 / 1000) / 0.01
    assert_allclose(found.effect_se[0] ** 2, variance)
    assert_allclose(found.predicted_se[0], 0.0, atol=1e-9)
    assert_allclose(found.error_se[0], found.effect_se[0])
    # -tau v0 / (n0 m0^2) = -1.5 * 0.09 / 10
    assert_allclose(found.second_order_bias[0], -1.5 * 0.09 / 10)
    assert_allclose(found.control_strength[0], 0.01 / (0.09 / 1000))


def test_difference_by_hand():
    found = group_errors(
        effect_moments(*rows((0, 0, 100, 1000), (0, 1, 150, 1000)), measure="difference"),
        measure="difference",
        collapse="mean",
    )
    assert_allclose([found.effect[0], found.error[0]], [0.05, 1.95])
    assert_allclose(found.error_se[0] ** 2, 0.15 * 0.85 / 1000 + 0.1 * 0.9 / 1000)
    assert_allclose(found.control_strength, 0.0)


def test_a_stratum_with_one_arm_is_left_out_and_counted():
    y, t, f, _ = rows((0, 0, 100, 1000), (0, 1, 150, 1000), (0, 1, 7, 10))
    stratum = np.repeat([0, 1], [2000, 10])
    moments = effect_moments(y, t, f, stratum)  # of one group: its strata stand where groups do
    kept, left_out = with_both_arms(moments, 2)
    assert left_out.tolist() == [10]
    assert kept.n.tolist() == [1000, 1000, 0, 0]
    assert_allclose(kept.total[:2], moments.total[:2])
    assert not kept.total[2:].any()
    assert not kept.product[2:].any()
    assert with_both_arms(kept, 2)[1].tolist() == [0]


def test_groups_that_cannot_be_tested_say_why():
    found = group_errors(
        effect_moments(
            *rows(
                (0, 0, 10, 100),
                (0, 1, 10, 100),
                (1, 0, 10, 100),
                (2, 0, 0, 100),
                (2, 1, 10, 100),
                (3, 0, 50, 50),
                (3, 1, 50, 50),
            )
        )
    )
    assert found.untested == {1: "one-arm-only", 2: "no-control-positives", 3: "no-variation"}
    assert found.tested.tolist() == [0]
    assert np.isfinite(found.error).all()


def test_a_group_without_control_positives_still_counts_in_the_rest():
    with_it = group_errors(
        effect_moments(*rows((0, 0, 9, 90), (0, 1, 9, 90), (1, 0, 0, 90), (1, 1, 9, 90)))
    )
    assert with_it.weight.value[1] == 180
    assert with_it.numerator.value[1] == pytest.approx(-0.1)


@pytest.mark.parametrize(
    ("measure", "collapse", "control", "treated", "expected"),
    [
        ("relative", "auto", False, False, "control"),
        ("relative", "auto", True, False, "aipw"),
        ("difference", "auto", False, False, "mean"),
        ("difference", "auto", True, True, "aipw"),
        ("difference", "auto", True, False, "mean"),
        ("difference", "mean", True, True, "mean"),
        ("difference", "aipw", True, True, "aipw"),
        ("relative", "positives", False, False, "positives"),
    ],
)
def test_auto_takes_the_consistent_collapse(measure, collapse, control, treated, expected):
    found = resolve_collapse(measure, collapse, control_pred=control, treated_pred=treated)
    assert found == expected


@pytest.mark.parametrize(
    ("measure", "collapse", "match"),
    [
        ("difference", "control", "belongs to relative effects"),
        ("difference", "aipw", "without and with treatment"),
        ("relative", "hajek", "needs predictions of the outcome without treatment"),
        ("ratio", "auto", "`measure` must be one of"),
        ("relative", "weigthed", "Did you mean 'weighted'"),
    ],
)
def test_a_collapse_that_does_not_fit_is_refused(measure, collapse, match):
    with pytest.raises(InvalidParameterError, match=match):
        resolve_collapse(measure, collapse, control_pred=False, treated_pred=False)


def test_every_collapse_names_its_quantities():
    for collapse in ("control", "positives", "mean", "weighted", "hajek", "aipw"):
        assert effect_quantities("relative", collapse)[:2] == ("one", "y")
    assert effect_quantities("difference", "aipw") == ("one", "y", "f", "mu0", "mu1")


def test_treatment_must_be_zero_or_one():
    with pytest.raises(NotBinaryError, match=r"found 2.*Code the arms as 0"):
        effect_moments([1, 0], [0, 2], [1, 1], [0, 0])


def test_negative_outcomes_are_refused_by_outcome_weighting_only():
    with pytest.raises(DataError, match=r"must not be negative; the smallest is -1"):
        effect_moments([1, -1], [0, 1], [1, 1], [0, 0])
    effect_moments([1, -1], [0, 1], [1, 1], [0, 0], measure="difference")


def test_missing_predictions_are_refused():
    with pytest.raises(InvalidParameterError, match="`effect_pred` must be finite"):
        effect_moments([1, 0], [0, 1], [1, np.nan], [0, 0])


def test_a_correction_moves_prediction_and_error_and_keeps_the_standard_error():
    errors = group_errors(effect_moments(*rows((0, 0, 100, 1000), (0, 1, 150, 1000))))
    left = corrected_errors(errors, np.array([0.4]))
    assert_allclose([left.predicted[0], left.error[0]], [1.6, 0.1])
    assert_allclose(left.error_se, errors.error_se)
    assert_allclose(left.effect, errors.effect)


def test_regression_adjustment_needs_rows():
    with pytest.raises(DataError, match="needs at least 3 rows in each arm"):
        lin_outcomes([1.0, 2, 3, 4], [0, 0, 1, 1], [0] * 4, np.ones((4, 1)))


def test_inputs_are_not_changed():
    y, t, f, g = rows((0, 0, 10, 100), (0, 1, 15, 100))
    copies = [a.copy() for a in (y, t, f, g)]
    group_errors(effect_moments(y, t, f, g))
    for a, b in zip((y, t, f, g), copies, strict=True):
        assert_allclose(a, b)


@pytest.mark.parametrize("measure", ["relative", "difference"])
def test_halves_are_read_from_their_own_cells(measure):
    """Predictions of the first half, effects of the second; by hand from four cells."""
    total = np.array([[[10.0, 4.0, 3.0], [20.0, 9.0, 7.0], [30.0, 15.0, 6.0], [40.0, 30.0, 8.0]]])
    names = ("one", "y", "f") if measure == "difference" else ("one", "y", "yf")
    collapse = "mean" if measure == "difference" else "control"
    n, m, d, size = collapse_parts(
        total, measure=measure, collapse=collapse, names=names, split=True
    )
    assert size.value == [100.0]
    if measure == "difference":
        assert (n.value, m.value, d.value) == ([10.0 / 30.0], [30.0 / 40.0 - 0.5], [1.0])
    else:
        assert (m.value, d.value) == ([30.0 / 40.0], [0.5])
        assert_allclose(n.value, 3.0 / 4.0 * 0.5)
