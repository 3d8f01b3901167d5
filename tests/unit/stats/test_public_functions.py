"""The functions of `equipoise.stats` give the numbers of the audits, and explain what is wrong."""

import importlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, LogisticRegression

import equipoise as eq
from equipoise import stats
from equipoise.exceptions import (
    DataError,
    GroupTooSmallError,
    InvalidParameterError,
    MissingValuesError,
)
from equipoise.stats import entropy_decomposition, improvement_test
from equipoise.stats.inequality import arrays as entropy_arrays

EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(scope="module")
def people():
    """2,000 rows of 500 people in three groups; some people are in several."""
    rng = np.random.default_rng(5)
    group = rng.choice(["b", "a", "c"], p=[0.5, 0.3, 0.2], size=2000)
    score = rng.uniform(0.05, 0.95, size=2000)
    y = (rng.uniform(size=2000) < np.clip(score + 0.08 * (group == "a"), 0, 1)).astype(int)
    treated = rng.integers(2, size=2000)
    return {
        "group": group,
        "score": score,
        "y": y,
        "decision": (score > np.where(group == "a", 0.45, 0.5)).astype(int),
        "candidate": (score + 0.08 * (group == "a") > 0.5).astype(int),
        "loss": rng.gamma(2.0, 1.0 + (group == "b"), size=2000),
        "weight": rng.uniform(0.5, 2.0, size=2000),
        "person": rng.integers(500, size=2000),
        "treated": treated,
        "effect": 1.2 + 0.1 * (group == "c") + 0 * score,
        "bought": (rng.uniform(size=2000) < 0.3 + 0.1 * treated).astype(int),
    }


def audit_of(people, **roles):
    return eq.Audit(people, group="group", **roles)


def names(result):
    return [finding.group.removeprefix("group=") for finding in result.findings]


def numbers(findings):
    columns = ("estimate", "statistic", "p_value_raw")
    found = {name: [getattr(f, name) for f in findings] for name in columns}
    return found | {"low": [f.ci.low for f in findings], "high": [f.ci.high for f in findings]}


def assert_same_gaps(test, result, level):
    findings = [f for f in result.findings if f.p_value is not None]
    expected = numbers(findings)
    assert list(test.groups) == [f.group.removeprefix("group=") for f in findings]
    assert_allclose(test.estimate, expected["estimate"], **EXACT)
    assert_allclose(test.statistic, expected["statistic"], **EXACT)
    assert_allclose(test.p_value, expected["p_value_raw"], **EXACT)
    assert_allclose(test.confidence_interval(level).low, expected["low"], **EXACT)
    assert_allclose(test.confidence_interval(level).high, expected["high"], **EXACT)


@pytest.mark.parametrize("scale", ["difference", "ratio"])
@pytest.mark.parametrize(
    ("reference", "asked"),
    [
        ("population", "population"),
        ("rest", "rest"),
        ("b", {"group": "b"}),
        (0.4, 0.4),
        ((0.4, 0.02), eq.External(0.4, se=0.02)),
    ],
)
def test_disparity_test_is_the_audit(people, reference, asked, scale):
    value, se = reference if isinstance(reference, tuple) else (reference, 0.0)
    test = stats.disparity_test(
        people["decision"], people["group"], reference=value, reference_se=se, scale=scale
    )
    audit = audit_of(people, y_pred="decision")
    result = audit.disparity("selection_rate", reference=asked, scale=scale, confidence_level=0.9)
    assert_same_gaps(test, result, 0.9)


@pytest.mark.parametrize("roles", [{}, {"weight": "weight"}, {"cluster": "person"}])
@pytest.mark.parametrize("method", ["auto", "eel", "plug_in"])
def test_disparity_test_is_the_audit_of_means_with_weights_and_clusters(people, roles, method):
    arrays = {name: people[column] for name, column in roles.items()}
    test = stats.disparity_test(people["loss"], people["group"], method=method, **arrays)
    audit = audit_of(people, y_true="loss", **roles)
    assert_same_gaps(test, audit.disparity("mean_outcome", method=method), 0.95)


def test_a_denominator_makes_a_rate(people):
    y, decision = people["y"], people["decision"]
    test = stats.disparity_test(y * decision, people["group"], denominator=y)
    result = audit_of(people, y_true="y", y_pred="decision").disparity("tpr")
    assert_same_gaps(test, result, 0.95)
    assert test.n.sum() == y.sum()


@pytest.mark.parametrize("column", ["decision", "loss"])
def test_joint_disparity_test_is_the_audit(people, column):
    test = stats.joint_disparity_test(people[column], people["group"])
    role, metric = (
        ("y_pred", "selection_rate") if column == "decision" else ("y_true", "mean_outcome")
    )
    result = audit_of(people, **{role: column}).disparity(metric, simultaneous=True)
    joint = result.joint
    assert_allclose(
        [test.statistic, test.df, test.p_value], [joint.statistic, joint.df, joint.p_value], **EXACT
    )
    assert_allclose(test.estimate, numbers(result.findings)["estimate"], **EXACT)
    assert_allclose(test.confidence_interval().low, numbers(result.findings)["low"], **EXACT)


def test_el_test_is_the_audit_of_one_group(people):
    one = {name: values[people["group"] == "c"] for name, values in people.items()}
    test = stats.el_test(one["loss"], 2.2)
    audit = eq.Audit(one, group="group", y_true="loss")
    (finding,) = audit.disparity("mean_outcome", reference=2.2, method="el").findings
    assert_allclose([test.statistic, test.p_value], [finding.statistic, finding.p_value], **EXACT)
    assert_allclose(np.subtract(test.confidence_interval(), 2.2), [finding.ci.low, finding.ci.high])
    assert test.estimate == pytest.approx(one["loss"].mean())


@pytest.mark.parametrize("clustered", [False, True])
def test_parity_test_is_the_audit(people, clustered):
    two = {name: values[people["group"] != "c"] for name, values in people.items()}
    extra = {"cluster": two["person"], "unit": "row"} if clustered else {}
    test = stats.parity_test(two["y"], two["score"], two["group"], **extra)
    roles = {"cluster": "person"} if clustered else {}
    audit = audit_of(two, y_true="y", y_score="score", **roles)
    result = audit.predictive_parity(unit="row")
    parts = result.details["definition2"]["parts"]
    assert_allclose([test.p_value, test.order.p_value], [parts["parity"], parts["order"]])
    assert test.groups == ("a", "b")
    assert_allclose(test.estimate, result.details["pairs"][0]["average_difference"], **EXACT)
    tested = [f for f in result.findings if f.p_value_raw is not None]
    assert_allclose(test.differences.estimate, numbers(tested)["estimate"], **EXACT)
    assert_allclose(test.differences.test.low, numbers(tested)["low"], **EXACT)


def test_naming_the_reference_turns_a_pair_around(people):
    keep = people["group"] != "c"
    rows = [people[name][keep] for name in ("y", "score", "group")]
    plain, turned = stats.parity_test(*rows), stats.parity_test(*rows, reference="b")
    assert turned.groups == ("b", "a")
    assert_allclose(turned.estimate, -plain.estimate, rtol=1e-9)
    plain, turned = (
        stats.marginal_outcome_test(*rows, 0.5, reference=r, bandwidth=0.2) for r in ("a", "b")
    )
    assert_allclose(turned.estimate, -plain.estimate, rtol=1e-9)
    assert_allclose(turned.p_value, plain.p_value, rtol=1e-9)


def test_calibration_test_is_the_audit_of_one_group(people):
    one = {name: values[people["group"] == "b"] for name, values in people.items()}
    test = stats.calibration_test(one["y"], one["score"])
    audit = audit_of(one, y_true="y", y_score="score")
    result = audit.predictive_parity(hypothesis="calibration")
    assert_allclose([test.statistic, test.p_value], [result.joint.statistic, result.joint.p_value])
    tested = [f for f in result.findings if f.p_value_raw is not None]
    assert_allclose(test.differences.estimate, numbers(tested)["estimate"], **EXACT)


def test_marginal_outcome_test_is_the_audit(people):
    two = {name: values[people["group"] != "c"] for name, values in people.items()}
    test = stats.marginal_outcome_test(two["y"], two["score"], two["group"], 0.4, bandwidth=0.2)
    audit = audit_of(two, y_true="y", y_score="score")
    (finding,) = audit.marginal_outcome(0.4, bandwidth=0.2, confidence_level=0.9).findings
    found = [test.estimate, test.statistic, test.p_value, *test.confidence_interval(0.9)]
    expected = [finding.estimate, finding.statistic, finding.p_value]
    assert_allclose(found, [*expected, finding.ci.low, finding.ci.high], **EXACT)


@pytest.mark.parametrize("inference", ["analytic", "bootstrap"])
def test_improvement_test_is_the_audit(people, inference):
    right = {name: people[name] == people["y"] for name in ("decision", "candidate")}
    options = {"inference": inference, "n_resamples": 999, "rng": 3}
    test = stats.improvement_test(
        right["decision"], right["candidate"], people["group"], cluster=people["person"], **options
    )
    audit = audit_of(people, y_true="y", y_pred="decision", cluster="person")
    result = audit.improvability(
        "candidate", accuracy="accuracy", fairness="accuracy", confidence_level=0.9, **options
    )
    requirements = (*test.accuracy, *test.fairness)
    assert_allclose([r.p_value for r in requirements], numbers(result.findings)["p_value_raw"])
    assert_allclose(
        [r.estimate for r in requirements], numbers(result.findings)["estimate"], **EXACT
    )
    assert test.p_value == pytest.approx(result.joint.p_value, abs=1e-12)


def test_improvement_test_takes_a_rate_and_a_known_direction(people):
    keep = people["group"] != "c"
    y, old, new, group = (people[k][keep] for k in ("y", "decision", "candidate", "group"))
    test = stats.improvement_test(
        y * old,
        y * new,
        group,
        status_quo_denominator=old,
        candidate_denominator=new,
        higher_group="a",
        inference="analytic",
    )
    audit = eq.Audit(
        {"group": group, "y": y, "old": old, "new": new}, group="group", y_true="y", y_pred="old"
    )
    result = audit.improvability(
        "new", accuracy="ppv", fairness="ppv", higher_group="group=a", inference="analytic"
    )
    assert_allclose(
        [t.p_value for t in (*test.accuracy, *test.fairness)],
        numbers(result.findings)["p_value_raw"],
        **EXACT,
    )


@pytest.mark.parametrize("roles", [{}, {"weight": "weight"}, {"cluster": "person"}])
def test_entropy_functions_are_the_audit(people, roles):
    arrays = {name: people[column] for name, column in roles.items()}
    test = stats.entropy_decomposition(people["loss"], people["group"], order=2, **arrays)
    result = audit_of(people, **roles).inequality("loss", order=2, confidence_level=0.9)
    total, within, between = result.findings[:3]
    assert_allclose(test.estimate, total.estimate, **EXACT)
    assert_allclose([test.statistic, test.p_value], [between.statistic, between.p_value], **EXACT)
    for part, finding in {"total": total, "within": within, "between": between}.items():
        ends = test.confidence_interval(0.9, part=part)
        assert_allclose(ends, [finding.ci.low, finding.ci.high], **EXACT)
    weight = arrays.get("weight")
    assert_allclose(stats.entropy_index(people["loss"], order=2, weight=weight), test.estimate)


@pytest.mark.parametrize("measure", ["relative", "difference"])
@pytest.mark.parametrize("roles", [{}, {"cluster": "person"}])
def test_treatment_bias_test_is_the_audit(people, measure, roles):
    arrays = {name: people[column] for name, column in roles.items()}
    test = stats.treatment_bias_test(
        people["bought"],
        people["treated"],
        people["effect"],
        people["group"],
        measure=measure,
        **arrays,
    )
    audit = audit_of(people, y_true="bought", treatment="treated", effect_pred="effect", **roles)
    result = audit.treatment_effects(measure=measure, n_repeats=0)
    assert_same_gaps_of_effects(test, result)
    rule = result.details["recommended"]["candidate"]
    amount = stats.effect_correction(test.error, test.error_se).amount
    assert_allclose(amount, result.details["corrections"][rule], **EXACT)


def assert_same_gaps_of_effects(test, result):
    biases = [f for f in result.findings if f.estimand.kind == "bias"]
    expected = numbers(biases)
    assert [f"group={group}" for group in test.groups] == [f.group for f in biases]
    assert_allclose(test.estimate, expected["estimate"], **EXACT)
    assert_allclose(test.p_value_raw, expected["p_value_raw"], **EXACT)
    assert_allclose(test.p_value, [f.p_value for f in biases], **EXACT)
    assert_allclose(test.confidence_interval().low, expected["low"], **EXACT)
    assert_allclose(test.equal.p_value, result.joint.p_value, **EXACT)


def test_adjusted_p_values_and_max_t_are_those_of_the_audits(people):
    audit = audit_of(people, y_pred="decision")
    flagged = audit.flag("selection_rate", adjust="holm")
    raw = np.array([f.p_value_raw for f in flagged.findings])
    assert_allclose(
        stats.adjusted_p_values(raw, "holm"), [f.p_value for f in flagged.findings], **EXACT
    )
    law = stats.max_t(np.eye(1), rng=1)
    assert law.critical() == pytest.approx(1.96, abs=0.03)


# What every result owes.


def every_result(people, third="c"):
    keep = people["group"] != third
    y, score, group = (people[name][keep] for name in ("y", "score", "group"))
    arms = (people["bought"], people["treated"], people["effect"])
    return {
        "disparity_test": stats.disparity_test(people["loss"], people["group"]),
        "joint_disparity_test": stats.joint_disparity_test(people["loss"], people["group"]),
        "el_test": stats.el_test(people["loss"], 3.0),
        "parity_test": stats.parity_test(y, score, group),
        "calibration_test": stats.calibration_test(y, score),
        "marginal_outcome_test": stats.marginal_outcome_test(y, score, group, 0.5, bandwidth=0.2),
        "improvement_test": stats.improvement_test(
            people["decision"] == people["y"],
            people["candidate"] == people["y"],
            people["group"],
            inference="analytic",
        ),
        "entropy_decomposition": stats.entropy_decomposition(people["loss"], people["group"]),
        "treatment_bias_test": stats.treatment_bias_test(*arms, people["group"]),
        "impact_ratio_test": stats.impact_ratio_test(people["decision"], people["group"]),
        "stratified_disparity_test": stats.stratified_disparity_test(
            people["decision"], people["group"], people["y"]
        ),
        "doubly_robust_disparity_test": stats.doubly_robust_disparity_test(
            y,
            group == np.unique(group)[0],
            score[:, None],
            outcome_learner=LinearRegression(),
            group_learner=LogisticRegression(),
        ),
        "paired_change_test": stats.paired_change_test(
            people["decision"], people["candidate"], people["group"]
        ),
        "period_change_test": stats.period_change_test(
            people["decision"], people["group"], people["treated"] == 1
        ),
    }


def test_every_test_has_a_statistic_a_p_value_an_interval_that_nests_and_words(people):
    found = every_result(people)
    assert set(found) == {
        name for name in stats.__all__ if name.endswith("_test") or name == "entropy_decomposition"
    }
    for name, result in found.items():
        assert np.all(np.isfinite(result.statistic)), name
        assert np.all((np.asarray(result.p_value) >= 0) & (np.asarray(result.p_value) <= 1)), name
        wide, narrow = result.confidence_interval(0.99), result.confidence_interval(0.5)
        assert np.all(wide.low <= narrow.low), name
        assert np.all(narrow.high <= wide.high), name
        estimate = np.asarray(result.estimate)
        assert np.all((narrow.low <= estimate) & (estimate <= narrow.high)), name
        lines = str(result).splitlines()
        # One gap is one line; a line for each group says how it was compared.
        assert len(lines) >= (1 if name == "doubly_robust_disparity_test" else 3), name
        assert max(map(len, lines)) <= (120 if name == "stratified_disparity_test" else 100), name
        assert "nan" not in str(result), name
        pickle.loads(pickle.dumps(result))
        with pytest.raises(InvalidParameterError, match="`confidence_level` must be in"):
            result.confidence_interval(95)


def test_the_order_of_rows_and_the_names_of_groups_do_not_matter(people):
    order = np.random.default_rng(0).permutation(2000)
    shuffled = {name: values[order] for name, values in people.items()}
    renamed = {"a": 3, "b": 2, "c": 1}
    shuffled["group"] = np.array([renamed[label] for label in shuffled["group"]])
    first, second = every_result(people), every_result(shuffled, third=1)
    for name in ("disparity_test", "treatment_bias_test"):
        assert second[name].groups == (1, 2, 3)
        assert_allclose(second[name].p_value[::-1], first[name].p_value, rtol=1e-8)
    for name in ("joint_disparity_test", "entropy_decomposition", "improvement_test"):
        assert_allclose(second[name].p_value, first[name].p_value, rtol=1e-8)


def test_labels_of_several_types_are_groups_too():
    y = np.tile([1, 0, 0, 1, 1, 0], 20)
    mixed = np.array([1, "x", ("p", "q")] * 40 + [None], dtype=object)[:120]
    test = stats.disparity_test(y, mixed)
    assert test.groups == (1, "x", ("p", "q"))


def test_weight_k_is_a_row_k_times_for_an_index(people):
    times = np.random.default_rng(1).integers(1, 4, size=200)
    loss = people["loss"][:200]
    weighted = stats.entropy_decomposition(loss, weight=times)
    assert weighted.estimate == pytest.approx(stats.entropy_index(np.repeat(loss, times)))


# What is wrong is explained.


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: stats.disparity_test([1, 0, 1], ["a", "b"]), InvalidParameterError, "`group` 2"),
        (lambda: stats.disparity_test([], []), DataError, "there are no rows"),
        (lambda: stats.disparity_test([1, np.nan], [0, 1]), InvalidParameterError, "1 of 2 values"),
        (lambda: stats.disparity_test([1, 0], ["a", None]), MissingValuesError, "`group` has 1"),
        (
            lambda: stats.disparity_test([1, 0], [0, 1], cluster=[1.0, np.nan]),
            MissingValuesError,
            "`cluster` has 1",
        ),
        (lambda: stats.disparity_test([1, 0], [7, 7]), InvalidParameterError, "has one group"),
        (
            lambda: stats.disparity_test([1, 0], ["a", "b"], reference="c"),
            InvalidParameterError,
            "'c' is no group. Groups: 'a', 'b'",
        ),
        (
            lambda: stats.disparity_test([1, 0], ["rest", "b"], reference="rest"),
            InvalidParameterError,
            "Rename the group",
        ),
        (
            lambda: stats.disparity_test([1, 0], [[0, 1], [1, 0]]),
            InvalidParameterError,
            "one label for each row",
        ),
        (
            lambda: stats.disparity_test([1, 0], [0, 1], weight=[-1.0, 1.0]),
            InvalidParameterError,
            "`weight` must be at least 0",
        ),
        (lambda: stats.el_test([2.0, 2.0, 2.0], 1.0), GroupTooSmallError, "cannot be tested"),
        (
            lambda: stats.parity_test([1, 0, 1], [0.1, 0.2, 0.3], ["a", "b", "c"]),
            DataError,
            "two groups here; it has 3",
        ),
        (
            lambda: stats.calibration_test([1, 0], [0.1, 0.2], cluster=[1, 2]),
            InvalidParameterError,
            "`unit` must be named",
        ),
        (
            lambda: stats.improvement_test([1, 0], np.ones((2, 2)), [0, 1]),
            InvalidParameterError,
            "must have the same shape",
        ),
        (
            lambda: stats.improvement_test(
                [1, 0], [1, 1], [0, 1], candidate_denominator=[[1, 1]] * 2
            ),
            InvalidParameterError,
            "must have the same shape",
        ),
        (
            lambda: stats.improvement_test([1, 0, 1], [1, 1, 1], [0, 1, 2], higher_group=0),
            InvalidParameterError,
            "`higher_group` is for two groups",
        ),
        (
            lambda: stats.improvement_test([1, 0], [1, 1], [0, 1], higher_group=2),
            InvalidParameterError,
            "`higher_group` 2 is no group",
        ),
        (lambda: stats.entropy_decomposition([1, 2], ["a", "a"]), DataError, "at least 2 groups"),
        (
            lambda: stats.entropy_decomposition([1, 2]).confidence_interval(part="between"),
            InvalidParameterError,
            "needs `group`",
        ),
        (
            lambda: stats.treatment_bias_test([1, 0], [0, 1], [1.0, 1.0], ["a", "a"]),
            DataError,
            "at least 2 groups",
        ),
    ],
)
def test_errors_say_what_must_hold(call, error, words):
    with pytest.raises(error, match=words):
        call()


# The list of the package.


def test_dir_shows_the_functions_and_each_is_where_the_list_says():
    assert set(stats.__all__) <= set(dir(stats))
    assert set(stats.__all__) == set(stats._HOME)
    for name, home in stats._HOME.items():
        module = importlib.import_module(f"equipoise.stats.{home}")
        assert name in module.__all__
        assert getattr(stats, name) is getattr(module, name)
    with pytest.raises(AttributeError, match="has no attribute 'ttest'"):
        stats.ttest  # noqa: B018


def test_the_package_loads_no_engine_before_it_is_used():
    code = (
        "import sys, equipoise.stats as s; dir(s);"
        " assert not [m for m in sys.modules if m.startswith('equipoise.stats.')];"
        " s.entropy_index; assert 'equipoise.stats.disparity' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_denominators_of_another_shape_are_refused():
    u, w = np.ones((8, 1)), np.ones((8, 2))
    with pytest.raises(InvalidParameterError, match=r"utilities have shape .* they must agree"):
        improvement_test(
            u, u, np.repeat(["a", "b"], 4), status_quo_denominator=w, candidate_denominator=w
        )


def test_an_index_of_many_rows_has_the_interval_of_its_standard_error(monkeypatch):
    benefits = np.random.default_rng(1).gamma(2.0, size=400)
    found = entropy_decomposition(benefits)
    monkeypatch.setattr(entropy_arrays, "MOST_UNITS", 399)
    low, high = found.confidence_interval()
    reach = 1.959963984540054 * found.parts.total_se / found.estimate
    np.testing.assert_allclose([low, high], found.estimate * np.exp([-reach, reach]), rtol=1e-6)
    shown = str(found).splitlines()
    assert shown[0] == "Generalized entropy index of order 1"
    assert [line.split()[0] for line in shown[1:]] == ["part", "total"]
