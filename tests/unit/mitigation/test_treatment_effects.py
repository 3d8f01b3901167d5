import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import (
    check_get_params_invariance,
    check_no_attributes_set_in_init,
    check_parameters_default_constructible,
    check_set_params,
)

import equipoise as eq
from equipoise.exceptions import (
    DataError,
    InvalidParameterError,
    NotBinaryError,
)
from equipoise.mitigation import EffectDebiaser
from equipoise.stats.effects.bias import error_tests
from equipoise.stats.effects.corrections import CORRECTIONS, effect_correction
from equipoise.stats.effects.errors import effect_moments, group_errors


@pytest.fixture
def trial(rng):
    n = 30_000
    g, t = rng.integers(6, size=n), rng.integers(2, size=n)
    y = (rng.random(n) < 0.2 * (1 + 0.2 * t)).astype(float)
    return {"X": 1.2 + 0.5 * (g == 2), "y": y, "treatment": t, "group": g}


def test_amounts_are_those_of_the_engine(trial):
    debiaser = EffectDebiaser().fit(**trial)
    errors = group_errors(
        effect_moments(trial["y"], trial["treatment"], trial["X"], trial["group"])
    )
    expected = effect_correction(errors.error, error_tests(errors).se, method="eb")
    assert debiaser.correction_ == "eb"
    assert_allclose(debiaser.amount_, expected.amount)
    assert debiaser.prior_sd_ == expected.prior.sd
    assert debiaser.common_ == expected.prior.mean
    assert list(debiaser.error_.values()) == pytest.approx(errors.error.tolist())


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_every_rule_subtracts_its_amount(trial, correction):
    debiaser = EffectDebiaser(correction=correction).fit(**trial)
    new = debiaser.transform(np.array([[1.0], [1.0]]), group=[2, 0])
    assert new.shape == (2, 1)
    assert_allclose(new[:, 0], 1.0 - debiaser.amount_[[2, 0]])


def test_correcting_leaves_a_smaller_error_on_new_data(trial, rng):
    debiaser = EffectDebiaser().fit(**trial)
    n = 60_000
    g, t = rng.integers(6, size=n), rng.integers(2, size=n)
    y = (rng.random(n) < 0.2 * (1 + 0.2 * t)).astype(float)
    f = 1.2 + 0.5 * (g == 2)
    before, after = (
        group_errors(effect_moments(y, t, x, g)).error[2]
        for x in (f, debiaser.transform(f, group=g))
    )
    assert before > 0.4
    assert abs(after) < 0.2


def test_fit_transform_is_fit_then_transform(trial):
    both = EffectDebiaser().fit_transform(**trial)
    assert_allclose(both, EffectDebiaser().fit(**trial).transform(trial["X"], group=trial["group"]))


def test_labels_may_be_text(trial):
    names = np.array(list("abcdef"))
    text = EffectDebiaser().fit(**(trial | {"group": names[trial["group"]]}))
    assert_allclose(text.amount_, EffectDebiaser().fit(**trial).amount_)
    assert text.transform([1.0], group=["c"])[0] < 0.9


def test_an_unseen_group_is_an_error_or_gets_the_common_correction(trial):
    with pytest.raises(DataError, match=r"1 groups were not in the data of `fit`: '9'"):
        EffectDebiaser().fit(**trial).transform([1.0], group=[9])
    lenient = EffectDebiaser(unseen="common").fit(**trial)
    assert_allclose(lenient.transform([1.0], group=[9]), 1.0 - lenient.common_)


def test_a_group_that_cannot_be_tested_gets_the_common_correction(trial):
    t = np.where(trial["group"] == 5, 1, trial["treatment"])
    debiaser = EffectDebiaser().fit(**(trial | {"treatment": t}))
    assert debiaser.untested_ == {5: "fewer than two rows in one arm"}
    assert debiaser.amount_[5] == debiaser.common_


def test_few_groups_are_shrunk(trial):
    few = {k: v[trial["group"] < 3] for k, v in trial.items()}
    debiaser = EffectDebiaser().fit(**few)
    assert debiaser.correction_ == "bayes_zero"
    assert debiaser.amount_[2] > 0.4


def test_what_is_detected_is_what_the_audit_detects(trial):
    table = {"y": trial["y"], "t": trial["treatment"], "f": trial["X"], "g": trial["group"]}
    table = {name: values[:900] for name, values in table.items()}
    audit = eq.Audit(table, group="g", y_true="y", treatment="t", effect_pred="f")
    details = audit.treatment_effects().details
    debiaser = EffectDebiaser(correction="mean_if_detected").fit(
        table["f"], table["y"], treatment=table["t"], group=table["g"]
    )
    assert_allclose(debiaser.amount_, details["corrections"]["mean_if_detected"])
    p = np.array(details["B_p_value"])
    assert_allclose(debiaser.amount_ != 0, p <= 0.05)
    other = EffectDebiaser(correction="mean_if_detected").fit_errors(
        details["group"], details["B"], details["B_se"], p_value=details["B_p_value"]
    )
    assert_allclose(other.amount_, debiaser.amount_)
    # Labels as the audit prints them, and plain ones.
    for labels in (["g=2", "g=0"], [2, 0], ["2", "0"]):
        assert_allclose(other.transform([1.5, 1.5], group=labels), 1.5 - debiaser.amount_[[2, 0]])


def test_several_group_columns_are_written_as_the_audit_writes_them(trial, rng):
    sex = np.where(rng.random(len(trial["y"])) < 0.5, "F", "M")
    table = {
        "y": trial["y"],
        "t": trial["treatment"],
        "f": trial["X"],
        "g": trial["group"],
        "sex": sex,
    }
    audit = eq.Audit(table, group=["g", "sex"], y_true="y", treatment="t", effect_pred="f")
    details = audit.treatment_effects().details
    columns = {"g": table["g"], "sex": sex}
    debiaser = EffectDebiaser().fit(table["f"], table["y"], treatment=table["t"], group=columns)
    assert debiaser.groups_.tolist() == details["group"]
    assert_allclose(debiaser.amount_, details["corrections"]["eb"], rtol=1e-8)
    first = debiaser.transform([1.5], group={"g": [2], "sex": ["M"]})
    for form in (["g=2 & sex=M"], ["2 & M"], np.array([["2", "M"]])):
        assert_allclose(debiaser.transform([1.5], group=form), first)
    arrays = EffectDebiaser().fit(
        table["f"],
        table["y"],
        treatment=table["t"],
        group=np.column_stack([table["g"].astype(str), sex]),
    )
    assert_allclose(arrays.transform([1.5], group=["2 & M"]), first)
    with pytest.raises(InvalidParameterError, match="one label for each of 1 rows; got 2"):
        debiaser.transform([1.5], group={"g": [2, 1], "sex": ["M", "F"]})


def test_a_short_label_that_two_groups_share_means_neither():
    debiaser = EffectDebiaser(correction="mean").fit_errors(
        ["sex=F", "grade=F", "grade=M"], [0.1, 0.2, 0.3], [0.1] * 3
    )
    assert debiaser.transform([1.0], group=["M"]).tolist() == [0.7]
    with pytest.raises(DataError, match="were not in the data of `fit`: 'F'"):
        debiaser.transform([1.0], group=["F"])


def test_without_groups_all_rows_are_one(trial):
    one = EffectDebiaser(correction="mean").fit(
        trial["X"], trial["y"], treatment=trial["treatment"]
    )
    assert_allclose(one.transform([1.5]), 1.5 - one.amount_[0])


def test_weights_clusters_and_outcome_models_are_used(trial, rng):
    plain = EffectDebiaser(correction="mean").fit(**trial)
    weighted = EffectDebiaser(correction="mean").fit(
        **trial, sample_weight=rng.uniform(0.5, 2, len(trial["y"]))
    )
    assert not np.allclose(plain.amount_, weighted.amount_)
    clustered = EffectDebiaser(correction="mean").fit(
        **trial, cluster=np.arange(len(trial["y"])) // 3
    )
    assert list(clustered.error_se_.values()) != list(plain.error_se_.values())
    augmented = EffectDebiaser(correction="mean").fit(
        **trial, control_pred=np.full(len(trial["y"]), 0.1)
    )
    assert_allclose(augmented.amount_, plain.amount_, atol=0.02)
    difference = EffectDebiaser(correction="mean", measure="difference").fit(
        **(trial | {"X": trial["X"] - 1.0})
    )
    assert difference.amount_[0] == pytest.approx(0.16, abs=0.03)


def test_bad_input_is_named(trial):
    with pytest.raises(NotBinaryError, match="`treatment` must be 0"):
        EffectDebiaser().fit(**(trial | {"treatment": trial["treatment"] + 1}))
    with pytest.raises(InvalidParameterError, match="one label for each of"):
        EffectDebiaser().fit(**(trial | {"group": [1, 2]}))
    with pytest.raises(InvalidParameterError, match="one for each row"):
        EffectDebiaser().fit(**(trial | {"X": np.ones((4, 2))}))
    with pytest.raises(InvalidParameterError, match="Did you mean 'eb'"):
        EffectDebiaser(correction="ebb").fit(**trial)
    with pytest.raises(InvalidParameterError, match="`group` is needed"):
        EffectDebiaser().fit(**trial).transform([1.0])
    with pytest.raises(InvalidParameterError, match="one label for each of 1 rows"):
        EffectDebiaser().fit(**trial).transform([1.0], group=[1, 2])
    with pytest.raises(DataError, match="nothing can be corrected"):
        EffectDebiaser().fit([1.0] * 4, [0.0] * 4, treatment=[0, 0, 1, 1])
    with pytest.raises(NotFittedError):
        EffectDebiaser().transform([1.0])


def test_it_behaves_like_a_scikit_learn_estimator():
    debiaser = EffectDebiaser(correction="mean", alpha=0.1)
    assert clone(debiaser).get_params() == debiaser.get_params()
    name = "EffectDebiaser"
    check_parameters_default_constructible(name, EffectDebiaser())
    check_no_attributes_set_in_init(name, EffectDebiaser())
    check_get_params_invariance(name, EffectDebiaser())
    check_set_params(name, EffectDebiaser())


def test_rows_of_two_columns_are_not_merged_by_what_joins_them():
    y, arm = np.tile([0, 0, 1, 1, 1], 80), np.tile([0, 1], 200)
    group = np.array([["a & b", "c"]] * 200 + [["a", "b & c"]] * 200)
    fitted = EffectDebiaser(measure="difference").fit(
        np.full(400, 0.5), y, treatment=arm, group=group
    )
    assert fitted.groups_.tolist() == ['"a & b" & c', 'a & "b & c"']
