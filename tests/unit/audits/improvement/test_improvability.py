import json

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

import equipoise as eq
from equipoise.exceptions import (
    DataError,
    InvalidParameterError,
    MissingValuesError,
    NotBinaryError,
)
from equipoise.plot.improvement import split_p_values
from equipoise.results.finding import Decision
from equipoise.results.result import AuditResult
from equipoise.search import LinearRule, ReweightedRule, TopShare
from support.clinic import ROLES, clinic
from support.engines import ENGINES, on_engine

FAST = {"n_resamples": 199, "n_splits": 3}


@pytest.fixture
def table(rng):
    return clinic(rng)


@pytest.fixture
def result(table):
    return eq.Audit(table, **ROLES).improvability(LogisticRegression(), accuracy="accuracy", **FAST)


def test_an_alternative_that_is_better_in_every_respect_is_found(result):
    assert result.joint.decision is eq.Decision.DETECTED
    assert result.detected
    assert [f.group for f in result.findings] == ["race=a", "race=b", "race=a vs race=b"]
    assert [f.estimand for f in result.findings] == [
        "accuracy gain",
        "accuracy gain",
        "accuracy gap reduction",
    ]
    for finding in result.findings:
        assert finding.p_value <= result.joint.p_value
        assert finding.ci.low < finding.estimate < finding.ci.high
        assert finding.ci.low > 0
    text = str(result)
    assert "less discriminatory alternative is shown" in text.replace("\n", " ")


def test_details_hold_the_table_of_every_split(result, table):
    details = result.details
    assert len(details["splits"]) == 3
    for split in details["splits"]:
        assert split["n_train"] == 2000
        assert split["n_test"] == 1000
        p = [record["p_value"] for record in split["criteria"]]
        assert split["p_value"] == max(p)
        gap = split["criteria"][2]
        assert gap["a0"] == pytest.approx(abs(np.diff(split["accuracy"][0])[0]))
        assert gap["a1"] == pytest.approx(abs(np.diff(split["accuracy"][1])[0]))
    assert details["p_values"] == [split["p_value"] for split in details["splits"]]
    assert details["p_combined"]["median"] == pytest.approx(2 * np.median(details["p_values"]))
    assert result.joint.p_value == details["p_combined"]["median"]
    assert set(details["deltas"]) == {
        "fairness",
        "joint accuracy",
        "accuracy race=a",
        "accuracy race=b",
    }
    assert 0 < details["deltas"]["fairness"] < 1
    assert details["deltas"]["joint accuracy"] <= details["deltas"]["accuracy race=a"]
    assert details["binding"] in {record["criterion"] for record in split["criteria"]}


def test_result_survives_json(result):
    text = json.dumps(result.to_dict(), allow_nan=False)
    again = AuditResult.from_dict(json.loads(text))
    assert str(again) == str(result)


def test_fitted_candidates_are_at_hand_but_not_written(result):
    fitted = result.details["fitted"]
    assert len(fitted) == 3
    for split, candidate in zip(result.details["splits"], fitted, strict=True):
        assert candidate.decide([[0.0], [90.0]]).tolist() == [0.0, 1.0]
        slope = split["candidate"]["coefficients"]["visits"]
        assert candidate.model.coef_[0, 0] == slope
    assert "fitted" not in result.to_dict()["details"]


def test_delta_is_where_the_test_at_that_delta_stops(table, result):
    audit = eq.Audit(table, **ROLES)
    largest = result.details["deltas"]["fairness"]
    for delta, shown in ((largest - 0.01, True), (largest + 0.01, False)):
        again = audit.improvability(
            LogisticRegression(), accuracy="accuracy", delta_fairness=delta, **FAST
        )
        assert again.detected == shown


def test_same_seed_same_answer_and_another_seed_another_split(table, result):
    audit = eq.Audit(table, **ROLES)
    again = audit.improvability(LogisticRegression(), accuracy="accuracy", rng=0, **FAST)
    other = audit.improvability(LogisticRegression(), accuracy="accuracy", rng=1, **FAST)
    assert again == result
    assert other != result
    assert other.details["splits"][0]["accuracy"] != result.details["splits"][0]["accuracy"]


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_agree_whatever_the_order_of_rows(table, result, rng, engine):
    order = rng.permutation(len(table["race"]))
    shuffled = pa.table({name: values[order] for name, values in table.items()})
    again = eq.Audit(on_engine(engine, shuffled), **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", **FAST
    )
    for one, two in zip(again.details["splits"], result.details["splits"], strict=True):
        np.testing.assert_allclose(one["accuracy"], two["accuracy"], rtol=1e-9)
    np.testing.assert_allclose(again.details["p_values"], result.details["p_values"], rtol=1e-9)


def test_score_with_capacity_is_the_status_quo(table):
    audit = eq.Audit(
        table, group="race", y_true="conditions", y_score="cost", features=["visits", "cost"]
    )
    result = audit.improvability(
        LinearRegression(), accuracy="selected_outcome", capacity=0.2, **FAST
    )
    for split in result.details["splits"]:
        counted = np.array(split["rows_counted"])
        assert counted.sum(axis=1).tolist() == [200, 200]
        assert split["candidate"]["estimator"] == "LinearRegression"
        assert set(split["candidate"]["coefficients"]) == {"visits", "cost"}
    assert result.details["cutoff"] == "estimated"
    fixed = audit.improvability(
        LinearRegression(), accuracy="selected_outcome", capacity=0.2, cutoff="fixed", **FAST
    )
    assert fixed.joint.p_value == pytest.approx(result.joint.p_value, abs=0.2)
    assert fixed.joint.statistic != result.joint.statistic
    assert result.details["shares"]["status_quo"] == pytest.approx(0.2, abs=1e-9)
    assert result.details["shares"]["candidate"] == pytest.approx(0.2, abs=1e-9)
    same = audit.improvability(
        TopShare(LinearRegression(), 0.2), accuracy="selected_outcome", capacity=0.2, **FAST
    )
    assert same.details["p_values"] == result.details["p_values"]


def test_ready_score_is_judged_without_a_split_and_says_so(table):
    audit = eq.Audit(table, group="race", y_true="conditions", y_score="cost")
    options = {"accuracy": "selected_outcome", "capacity": 0.2, "n_resamples": 999}
    result = audit.improvability("visits", **options)
    assert len(result.details["splits"]) == 1
    assert result.details["splits"][0]["n_train"] == 0
    codes = {note.code for note in result.notes}
    assert {"ready-candidate", "direction-unknown"} <= codes
    told = audit.improvability("visits", higher_group="race=a", **options)
    assert "direction-unknown" not in {note.code for note in told.notes}
    unknown = result.details["splits"][0]["criteria"][2]["p_value"]
    known = told.details["splits"][0]["criteria"][2]["p_value"]
    assert unknown == pytest.approx(min(2 * known, 1.0)) or known > 0.5


def test_ready_decisions_need_no_capacity(table):
    table["other"] = (table["visits"] > 12).astype(int)
    result = eq.Audit(table, **ROLES).improvability("other", accuracy="accuracy", n_resamples=199)
    assert result.joint.decision is eq.Decision.DETECTED


def test_clusters_stay_whole(table):
    audit = eq.Audit(table, cluster="person", **ROLES)
    rows = audit.improvability(LogisticRegression(), accuracy="accuracy", **FAST)
    assert [split["n_train"] for split in rows.details["splits"]] == [2000] * 3
    from equipoise.audits.asking import ask
    from equipoise.audits.improvement.rows import read_decisions

    read = ask(read_decisions(audit.table, ["accuracy"], features=True))
    train, _, test = read.split(5, 2 / 3)
    assert not set(read.unit[train]) & set(read.unit[test])
    assert len(train) + len(test) == 3000


def test_counted_rows_are_repeated_rows(rng):
    cells = clinic(rng, 400)
    repeated = {name: np.repeat(values, cells["wt"]) for name, values in cells.items()}
    one = eq.Audit(cells, count="wt", **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", **FAST
    )
    two = eq.Audit(repeated, **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", **FAST
    )
    assert one.n == two.n == repeated["wt"].size


def test_weights_reach_utilities_and_models(table):
    plain = eq.Audit(table, **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", **FAST
    )
    weighted = eq.Audit(table, weight="wt", **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", **FAST
    )
    assert weighted.details["splits"][0]["accuracy"] != plain.details["splits"][0]["accuracy"]


def test_search_objects_and_functions_are_candidates(table):
    audit = eq.Audit(table, **ROLES)
    searched = audit.improvability(ReweightedRule(), accuracy="accuracy", **FAST)
    assert searched.detected
    assert "visits" in searched.details["splits"][0]["candidate"]["coefficients"]

    def threshold(sample):
        cut = sample.X[sample.y == 1].mean() * 0.7
        return lambda X: (X[:, 0] > cut).astype(float)

    result = audit.improvability(threshold, accuracy="accuracy", **FAST)
    assert result.detected
    assert result.details["splits"][0]["candidate"] == {"rule": "threshold"}


def test_an_infeasible_program_says_so_with_the_least_violation(rng):
    table = clinic(rng, 600)
    table["called"] = table["sick"]
    table["called"][:30] = 1 - table["sick"][:30]
    result = eq.Audit(table, **ROLES).improvability(
        LinearRule(max_rows=40, strictness=0.2), accuracy="accuracy", **FAST
    )
    note = next(note for note in result.notes if note.code == "infeasible-search")
    assert "misses them by" in note.message
    assert result.joint.decision is eq.Decision.NOT_DETECTED


def test_named_estimators_come_from_a_list_and_nothing_is_evaluated(table):
    audit = eq.Audit(table, **ROLES)
    result = audit.improvability(
        "sklearn.linear_model.LogisticRegression", accuracy="accuracy", **FAST
    )
    assert result.detected
    with pytest.raises(InvalidParameterError, match=r"neither a column nor a known estimator"):
        audit.improvability("os.system", accuracy="accuracy")
    with pytest.raises(InvalidParameterError, match=r"Did you mean 'sklearn.linear_model.LassoCV'"):
        audit.improvability("sklearn.linear_model.Lasso", accuracy="accuracy")


def test_metrics_of_your_own_see_the_candidates_decisions(table):
    right = eq.Metric("right", 1 - (nw.col("called") - nw.col("sick")).abs())
    audit = eq.Audit(table, **ROLES)
    own = audit.improvability(LogisticRegression(), accuracy=right, **FAST)
    named = audit.improvability(LogisticRegression(), accuracy="accuracy", **FAST)
    np.testing.assert_allclose(own.details["p_values"], named.details["p_values"], rtol=1e-9)
    assert own.findings[0].estimand == "right gain"


def test_several_fairness_metrics_all_have_to_narrow(table):
    result = eq.Audit(table, **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", fairness=["tpr", "fpr"], **FAST
    )
    assert [f.estimand for f in result.findings[2:]] == ["tpr gap reduction", "fpr gap reduction"]
    # The status quo makes no false positives, so their gap cannot narrow.
    assert result.findings[3].decision is eq.Decision.NOT_DETECTED
    assert not result.detected
    assert result.findings[2].decision is eq.Decision.DETECTED


def test_population_accuracy_is_one_requirement(table):
    result = eq.Audit(table, **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", accuracy_of="population", **FAST
    )
    assert [f.group for f in result.findings] == ["everyone", "race=a vs race=b"]
    assert set(result.details["deltas"]) == {"fairness", "joint accuracy"}


def test_three_groups_are_compared_by_their_largest_gap(table, rng):
    table["race"] = np.where(rng.random(3000) < 0.3, "c", table["race"])
    result = eq.Audit(table, **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", **FAST
    )
    assert result.findings[-1].group == "all groups"
    assert len(result.findings) == 4


@pytest.mark.parametrize(
    "options",
    [
        {"method": "paper"},
        {"inference": "analytic"},
        {"combine": "exch_median"},
        {"combine": "bonferroni"},
        {"margin_scale": "absolute"},
    ],
)
def test_every_option_changes_the_answer(table, result, options):
    other = eq.Audit(table, **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", **FAST, **options
    )
    assert (
        other.details["deltas"] != result.details["deltas"]
        or other.details["p_values"] != result.details["p_values"]
        or other.joint.p_value != result.joint.p_value
    )


def test_a_candidate_that_is_no_better_points_at_the_search(table):
    result = eq.Audit(table, **ROLES).improvability(
        lambda _: lambda X: np.arange(len(X)) % 2, accuracy="accuracy", **FAST
    )
    assert result.details["limit"] == "search"
    assert "limit-search" in {note.code for note in result.notes}
    assert "another search" in " ".join(str(result).split())


def test_too_little_data_points_at_the_data(rng):
    table = clinic(rng, 260)
    result = eq.Audit(table, **ROLES).improvability(
        "sklearn.linear_model.LogisticRegression", accuracy="accuracy", alpha=1e-6, **FAST
    )
    assert result.details["limit"] == "data"
    assert "more data" in str(result)


def test_equal_accuracy_asks_for_a_tolerated_loss(table):
    # As many right decisions turned wrong as wrong ones turned right.
    called, right = table["called"], table["called"] == table[ROLES["y_true"]]
    turned = [*np.flatnonzero(right)[:15], *np.flatnonzero(~right)[:15]]
    table["other"] = np.where(np.isin(np.arange(3000), turned), 1 - called, called)
    audit = eq.Audit(table, **ROLES)
    options = {"accuracy": "accuracy", "fairness": "selection_rate", "n_resamples": 199}
    result = audit.improvability("other", accuracy_of="population", **options)
    assert result.details["limit"] == "margin"
    assert "state a tolerated loss" in " ".join(str(result).split())
    assert "more data" not in str(result)


def test_a_group_with_too_few_selected_is_not_tested(table):
    audit = eq.Audit(table, group="race", y_true="conditions", y_score="cost", features=["visits"])
    result = audit.improvability(
        LinearRegression(), accuracy="selected_outcome", capacity=0.005, **FAST
    )
    assert result.joint.decision is eq.Decision.NOT_TESTED
    assert {f.decision for f in result.findings} == {eq.Decision.NOT_TESTED}
    note = result.findings[0].notes[0]
    assert note.code == "too-few-selected"
    assert "rests on 0 rows of 'race=b' in the" in note.message
    json.dumps(result.to_dict(), allow_nan=False)


def test_fewer_than_ten_selected_are_not_tested(table):
    audit = eq.Audit(table, group="race", y_true="conditions", y_score="cost")
    result = audit.improvability("visits", accuracy="selected_outcome", capacity=0.02)
    message = result.findings[0].notes[0].message
    assert "of the status quo rests on" in message
    assert "at least 10 are needed" in message


def test_a_group_absent_from_a_part_is_not_tested(table):
    table["race"][:] = "a"
    table["race"][:1] = "b"
    result = eq.Audit(table, **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", **FAST
    )
    message = result.joint.notes[0].message
    assert "rests on 0 rows of 'race=b'" in message
    assert "part of split" in message


def test_a_candidate_equal_to_the_status_quo_is_noted(table):
    ready = eq.Audit(table, **ROLES).improvability("called", accuracy="accuracy")
    assert ready.joint.p_value == 1.0
    assert "same-decisions" in {note.code for note in ready.notes}
    cost = eq.Audit(table, **(ROLES | {"features": ["cost"]}))
    result = cost.improvability(
        lambda _: lambda X: (X[:, 0] > 4).astype(float), accuracy="accuracy", **FAST
    )
    assert result.joint.p_value == 1.0
    assert "same-decisions" in {note.code for note in result.notes}


def test_selecting_fewer_people_without_a_capacity_is_noted(table):
    table["strict"] = (table["cost"] > 4.6).astype(int)
    audit = eq.Audit(table, group="race", y_true="conditions", y_pred="called")
    result = audit.improvability("strict", accuracy="selected_outcome", n_resamples=199)
    assert "different-share" in {note.code for note in result.notes}


def test_a_status_quo_without_gap_is_noted(table, rng):
    table["called"] = rng.integers(2, size=3000)
    result = eq.Audit(table, **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", **FAST
    )
    assert "even-status-quo" in {note.code for note in result.notes}


def test_outcomes_known_only_for_the_selected_are_refused(table):
    outcome = table["sick"].astype(float)
    outcome[table["called"] == 0] = np.nan
    table["sick"] = outcome
    with pytest.raises(DataError, match="labels are selective"):
        eq.Audit(table, **ROLES).improvability(LogisticRegression(), accuracy="accuracy")
    dropped = eq.Audit(table, missing="drop", **ROLES)
    result = dropped.improvability(LogisticRegression(), accuracy="accuracy")
    assert result.joint.decision is eq.Decision.NOT_TESTED
    assert result.joint.notes[0].code == "selective-labels"


def test_outcomes_missing_mostly_for_low_scores_are_refused_too(table, rng):
    outcome = table["sick"].astype(float)
    outcome[rng.random(3000) < np.where(table["cost"] < 2, 0.2, 0.02)] = np.nan
    roles = {"group": "race", "y_true": "sick", "y_score": "cost", "features": ["visits"]}
    audit = eq.Audit(table | {"sick": outcome}, missing="drop", **roles)
    result = audit.improvability(LogisticRegression(), accuracy="accuracy", capacity=0.2, **FAST)
    assert result.joint.decision is eq.Decision.NOT_TESTED
    assert "lower half of the score" in result.joint.notes[0].message


def test_outcomes_missing_at_random_are_dropped_after_the_cut(table, rng):
    outcome = table["sick"].astype(float)
    outcome[rng.random(3000) < 0.1] = np.nan
    roles = {"group": "race", "y_true": "sick", "y_score": "cost"}
    audit = eq.Audit(table | {"sick": outcome}, missing="drop", **roles)
    result = audit.improvability("visits", accuracy="tpr", capacity=0.2, n_resamples=199)
    assert result.n == int((~np.isnan(outcome)).sum())
    assert result.details["shares"]["status_quo"] == pytest.approx(0.2, abs=1e-9)
    top = np.argsort(-table["cost"])[:600]
    known = ~np.isnan(outcome[top]) & (table["race"][top] == "a")
    hits = outcome[top][known].sum()
    positives = np.nansum(outcome[table["race"] == "a"])
    assert result.details["splits"][0]["accuracy"][0][0] == pytest.approx(hits / positives)


def test_outcomes_missing_mostly_for_the_unselected_are_not_judged(table, rng):
    table["called"] = (table["cost"] > 2).astype(int)
    outcome = table["sick"].astype(float)
    outcome[rng.random(3000) < np.where(table["called"] == 0, 0.2, 0.05)] = np.nan
    table["sick"] = outcome
    result = eq.Audit(table, missing="drop", **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", **FAST
    )
    assert result.joint.decision is eq.Decision.NOT_TESTED
    assert "missing-dropped" in {note.code for note in result.notes}


def test_prices_are_decisions_too(rng):
    """Example 4 of the paper: a price, and a profit if it is accepted."""
    n = 2000
    group = rng.choice(["a", "b"], size=n)
    income = rng.gamma(4.0, 1.0, size=n)
    worth = income * rng.uniform(0.8, 1.2, size=n)
    table = {
        "group": group,
        "income": income,
        "worth": worth,
        "price": np.where(group == "a", 0.5, 0.2) * income,
    }
    profit = eq.Metric(
        "profit", nw.when(nw.col("worth") >= nw.col("price")).then(nw.col("price")).otherwise(0.0)
    )
    audit = eq.Audit(table, group="group", y_true="worth", y_pred="price", features=["income"])
    result = audit.improvability(
        lambda _: lambda X: 0.79 * X[:, 0], accuracy=profit, margin_scale="absolute", **FAST
    )
    assert result.joint.decision is eq.Decision.DETECTED
    assert result.findings[0].estimand == "profit gain"
    expected = np.mean((0.79 * income - table["price"])[group == "a"])
    assert result.findings[0].estimate == pytest.approx(expected, rel=0.1)


def test_a_score_without_capacity_is_no_status_quo(table):
    audit = eq.Audit(table, group="race", y_true="sick", y_score="cost", features=["visits"])
    with pytest.raises(InvalidParameterError, match="needs a `capacity`"):
        audit.improvability(LogisticRegression(), accuracy="accuracy", **FAST)


def test_named_searches_keep_the_capacity(table):
    audit = eq.Audit(
        table, group="race", y_true="conditions", y_score="cost", features=["visits", "cost"]
    )
    result = audit.improvability(
        "equipoise.search.ReweightedRule", accuracy="selected_outcome", capacity=0.2, **FAST
    )
    assert np.sum(result.details["splits"][0]["rows_counted"][1]) == 200


def test_missing_features_are_explained_or_dropped(table):
    table["visits"][:7] = np.nan
    with pytest.raises(MissingValuesError, match="'visits' has 7 missing values in 3000 rows"):
        eq.Audit(table, **ROLES).improvability(LogisticRegression(), accuracy="accuracy")
    result = eq.Audit(table, missing="drop", **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", **FAST
    )
    assert result.n == 2993
    assert any("7 rows with a missing value" in note.message for note in result.notes)
    twice = table | {"times": np.full(len(table["visits"]), 2)}
    result = eq.Audit(twice, missing="drop", count="times", **ROLES).improvability(
        LogisticRegression(), accuracy="accuracy", **FAST
    )
    assert any("14 rows with a missing value" in note.message for note in result.notes)


@pytest.mark.parametrize(
    ("roles", "options", "error", "message"),
    [
        ({"features": ["race"]}, {}, DataError, "column 'race' is String"),
        ({"features": None}, {}, InvalidParameterError, "pass their names as `features`"),
        ({"group": ()}, {}, InvalidParameterError, "pass `group`"),
        ({"y_pred": None}, {}, InvalidParameterError, "`y_score` with a `capacity`"),
        ({}, {"accuracy": "fpr"}, InvalidParameterError, "Use 'tnr'"),
        (
            {},
            {"accuracy": "mean_outcome"},
            InvalidParameterError,
            "does not depend on the decision",
        ),
        ({}, {"capacity": 3}, InvalidParameterError, r"`capacity` must be in \(0, 1\)"),
        ({}, {"n_splits": 0}, InvalidParameterError, "`n_splits`"),
        ({}, {"n_resamples": 10}, InvalidParameterError, "`n_resamples`"),
        ({}, {"combine": "mean"}, InvalidParameterError, "'median', 'exch_median'"),
        ({}, {"fairness": []}, InvalidParameterError, "must be a metric or a list of"),
        ({}, {"higher_group": "b"}, InvalidParameterError, "written as in the result"),
        ({}, {"candidate": 3}, InvalidParameterError, "`candidate` must be"),
        (
            {},
            {"candidate": ReweightedRule(capacity=0.2), "capacity": 0.1},
            InvalidParameterError,
            "own capacity is 0.2",
        ),
        ({}, {"candidate": lambda _: 3}, InvalidParameterError, "it returned int"),
        (
            {},
            {"candidate": lambda _: lambda _: [1.0]},
            InvalidParameterError,
            "one finite decision",
        ),
        ({}, {"candidate": DummyRegressor()}, NotBinaryError, "needs decisions of 0 and 1"),
        ({}, {"delta_fairness": 1.5}, InvalidParameterError, "`delta_fairness`"),
    ],
)
def test_bad_input_is_explained(table, roles, options, error, message):
    audit = eq.Audit(table, **(ROLES | roles))
    call = {"candidate": LogisticRegression(), "accuracy": "accuracy"} | FAST | options
    with pytest.raises(error, match=message):
        audit.improvability(call.pop("candidate"), **call)


def test_one_group_has_no_gap(table):
    table["race"][:] = "a"
    with pytest.raises(InvalidParameterError, match="the table has only 'race=a'"):
        eq.Audit(table, **ROLES).improvability(LogisticRegression(), accuracy="accuracy")


def test_pictures_show_planes_splits_and_deltas(result):
    axes = result.plot()
    assert len(axes.figure.axes) == 3
    plane, splits, deltas = axes.figure.axes
    assert plane.get_xlabel() == "accuracy, race: a"
    assert len(splits.lines) == 4
    assert len(deltas.lines) >= 4
    axes.figure.canvas.draw()
    from equipoise.plot.intervals import new_axes

    own = new_axes()
    assert result.plot(ax=own) is own


def test_the_legend_of_splits_tells_requirements_apart(table):
    audit = eq.Audit(table, group="race", y_true="conditions", y_pred="called", features="visits")
    found = audit.improvability("visits", accuracy="selected_outcome", capacity=0.12, **FAST)
    legend = split_p_values(found).get_legend()
    labels = [text.get_text() for text in legend.get_texts()]
    assert len(set(labels)) == len(labels)
    assert labels[:3] == [
        "race: a: mean outcome among the selected",
        "race: b: mean outcome among the selected",
        "gap: mean outcome among the selected",
    ]


def test_progress_is_silent_unless_stderr_is_a_terminal(table, capsys):
    eq.Audit(table, **ROLES).improvability(LogisticRegression(), accuracy="accuracy", **FAST)
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out == ""


def test_progress_is_shown_on_a_terminal(table, capsys, monkeypatch):
    import sys

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    eq.Audit(table, **ROLES).improvability(LogisticRegression(), accuracy="accuracy", **FAST)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Splits" in captured.err


def test_a_plan_names_its_candidate(table, tmp_path):
    from equipoise.plans.plan import parse_plan
    from equipoise.plans.run import execute

    pd.DataFrame(table).to_csv(tmp_path / "patients.csv", index=False)
    text = """
[data]
path = "patients.csv"
group = "race"
y_true = "sick"
y_pred = "called"
features = ["visits"]

[[check]]
question = "improvability"
candidate = "sklearn.linear_model.LogisticRegression"
accuracy = "accuracy"
fairness = ["accuracy", "tpr"]
n_splits = 3
n_resamples = 199
"""
    dossier = execute(parse_plan(text, folder=tmp_path))
    assert dossier.checks[0].result.joint.decision is eq.Decision.DETECTED
    evil = text.replace("sklearn.linear_model.LogisticRegression", "subprocess.Popen")
    with pytest.raises(InvalidParameterError, match="known estimator"):
        execute(parse_plan(evil, folder=tmp_path))


def test_a_criterion_without_any_row_is_not_tested():
    data = {"g": ["a", "b"] * 30, "y": [0] * 60, "p": [0, 1, 1] * 20, "q": [1, 0] * 30}
    audit = eq.Audit(data, group="g", y_true="y", y_pred="p")
    result = audit.improvability("q", accuracy="tpr", inference="analytic")
    assert {finding.decision for finding in result.findings} == {Decision.NOT_TESTED}


@pytest.mark.parametrize("frontier", [[], "many", 0.1])
def test_a_frontier_of_no_losses_is_refused(table, frontier):
    options = FAST | {"accuracy": "accuracy", "frontier": frontier}
    with pytest.raises(InvalidParameterError, match="`frontier` must be true, false or a list"):
        eq.Audit(table, **ROLES).improvability(LogisticRegression(), **options)
