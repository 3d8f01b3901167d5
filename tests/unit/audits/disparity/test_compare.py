import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import equipoise as eq
from equipoise import Decision
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError
from equipoise.plans.dossier import Check
from equipoise.plans.gate import tripped
from equipoise.results.wording import headline
from equipoise.stats.disparity.change import paired_change_test, period_change_test

RNG = np.random.default_rng(8)
N = 1200
TABLE = {
    "g": RNG.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2]),
    "h": RNG.choice(["x", "y"], N),
    "y": RNG.integers(0, 2, N),
    "old": RNG.integers(0, 2, N),
    "s": RNG.random(N),
    "r": RNG.random(N),
    "w": RNG.uniform(0.5, 2.0, N),
    "u": RNG.integers(0, 150, N).astype(str),
    "month": RNG.choice(["2026-01", "2026-02", "2026-03"], N),
}
FLIP = RNG.random(N) < np.where(TABLE["g"] == "c", 0.7, 0.05)
TABLE["new"] = np.where(FLIP, 1, TABLE["old"])
ROLES = {"group": "g", "y_true": "y", "y_pred": "new", "y_score": "s"}


def audit(**changes):
    return eq.Audit(TABLE, **(ROLES | changes))


def numbers(result, kind):
    return {
        f.group.removeprefix("g="): (f.estimate, f.p_value_raw, f.p_value)
        for f in result.findings
        if f.estimand.kind == kind
    }


def assert_same(result, found):
    for kind, test in (("change", found.change), ("gap change", found.gap_change)):
        ours = numbers(result, kind)
        assert set(ours) == set(found.groups)
        for j, group in enumerate(found.groups):
            expected = (test.estimate[j], test.p_value_raw[j], test.p_value[j])
            assert_allclose(ours[group], expected, rtol=1e-9)
    assert_allclose(result.joint.p_value, found.p_value, rtol=1e-9)


def test_two_models_agree_with_the_engine_on_arrays():
    w = (TABLE["y"] == 0).astype(float)
    direct = paired_change_test(
        TABLE["old"] * w, TABLE["new"] * w, TABLE["g"], w_before=w, reference="rest"
    )
    result = audit().compare("fpr", baseline="old", reference="rest")
    assert_same(result, direct)
    assert result.method.startswith("Tango")
    row = result.details["changes"][2]
    c = (TABLE["g"] == "c") & (TABLE["y"] == 0)
    assert row["gained"] == (FLIP & c & (TABLE["old"] == 0)).sum()
    assert row["lost"] == 0


def test_a_metric_whose_rows_depend_on_the_decision_uses_influence_functions():
    old, new = TABLE["old"], TABLE["new"]
    direct = paired_change_test(
        TABLE["y"] * old, TABLE["y"] * new, TABLE["g"], w_before=old, w_after=new
    )
    result = audit().compare("ppv", baseline="old")
    assert_same(result, direct)
    assert "influence" in result.method


def test_scores_are_compared_where_the_metric_uses_scores():
    errors = [(TABLE["y"] - TABLE[s]) ** 2 for s in ("r", "s")]
    direct = paired_change_test(*errors, TABLE["g"], weight=TABLE["w"], cluster=TABLE["u"])
    result = audit(weight="w", cluster="u").compare("squared_error", baseline="r")
    assert_same(result, direct)
    assert result.details["n_clusters"] == 150


@pytest.mark.parametrize("extra", [{}, {"cluster": "u"}, {"weight": "w"}])
def test_two_periods_agree_with_the_engine_on_arrays(extra):
    keep = np.isin(TABLE["month"], ["2026-01", "2026-03"])
    direct = period_change_test(
        TABLE["new"][keep],
        TABLE["g"][keep],
        (TABLE["month"] == "2026-03")[keep],
        **{name: TABLE[column][keep] for name, column in extra.items()},
    )
    result = audit(time="month", **extra).compare(
        "selection_rate", baseline="2026-01", candidate="2026-03"
    )
    assert_same(result, direct)
    assert result.details["kind"] == "periods"


def test_all_other_periods_are_the_candidate_by_default():
    both = audit(time="month").compare(
        "selection_rate", baseline="2026-01", candidate=["2026-02", "2026-03"]
    )
    assert audit().compare("selection_rate", baseline="2026-01", period="month") == both


@pytest.mark.parametrize("extra", [{}, {"cluster": "u"}, {"weight": "w"}])
def test_two_tables_are_two_periods(extra):
    parts = []
    for late in (False, True):
        rows = (TABLE["month"] == "2026-03") == late
        part = {name: column[rows] for name, column in TABLE.items()}
        parts.append(eq.Audit(part, **(ROLES | extra)))
    result = parts[1].compare("accuracy", baseline=parts[0])
    correct = (TABLE["y"] == TABLE["new"]).astype(float)
    direct = period_change_test(
        correct,
        TABLE["g"],
        TABLE["month"] == "2026-03",
        **{name: TABLE[column] for name, column in extra.items()},
    )
    assert_same(result, direct)
    assert result.details["kind"] == "tables"


def test_a_margin_makes_a_gate():
    strict = audit().compare("selection_rate", baseline="old", margin=0.0)
    loose = audit().compare("selection_rate", baseline="old", margin=0.9)
    assert strict.details["gate"]["within"] is False
    assert "Not within the margin: for g: c" in str(strict).replace("\n", " ")
    assert loose.details["gate"]["within"] is True
    within = headline(loose)
    assert within.startswith("Within the margin: no group's gap in selection rate grew by more")
    assert re.search(r"percentage points, g: \w\); [a-z0-9]", within)
    growth = [f for f in loose.findings if f.estimand.kind == "gap growth"]
    assert {f.decision for f in growth} == {Decision.WITHIN_MARGIN}
    assert {f.ci.low for f in growth} == {None}
    assert max(f.ci.high for f in growth) == loose.details["gate"]["bound"]


def test_a_gap_that_grew_is_detected_without_a_margin():
    result = audit().compare("selection_rate", baseline="old", reference="rest")
    grown = {
        f.group for f in result.findings if f.estimand.kind == "gap growth" and f.p_value < 0.05
    }
    assert "g=c" in grown
    assert "grew (most: g: c" in str(result).replace("\n", " ")


def test_a_signed_gap_looks_in_one_direction():
    up = audit().compare(
        "selection_rate", baseline="old", gap="signed", direction="increase", margin=0.0
    )
    down = audit().compare(
        "selection_rate", baseline="old", gap="signed", direction="decrease", margin=0.0
    )
    c_up, c_down = (
        next(f for f in r.findings if f.group == "g=c" and f.estimand.kind == "gap growth")
        for r in (up, down)
    )
    assert c_up.decision is Decision.DETECTED
    assert c_down.decision is Decision.WITHIN_MARGIN
    assert c_up.estimate == -c_down.estimate


def test_models_that_decide_alike_get_a_sentence():
    table = TABLE | {"same": TABLE["new"].copy()}
    result = eq.Audit(table, **ROLES).compare("fpr", baseline="same")
    assert "same and new agree on every row that counts" in str(result).replace("\n", " ")
    assert {f.p_value for f in result.findings if f.estimand.kind == "change"} == {1.0}
    again = eq.Audit(table | {"q": TABLE["s"]}, **ROLES).compare("squared_error", baseline="q")
    assert again.details["alike"]


def test_a_named_reference_and_groups_that_share_rows_with_it():
    result = audit(group=["g", "h"]).compare("fpr", baseline="old", reference={"g": "a"})
    codes = {
        f.group: [note.code for note in f.notes]
        for f in result.findings
        if f.estimand.kind == "gap change"
    }
    assert codes["g=a"] == ["vacuous"]
    assert codes["h=x"] == ["overlaps-reference"]
    tested = {f.group for f in result.findings if f.p_value is not None}
    assert {"g=b", "g=c & h=y"} <= tested


def test_a_group_without_rows_is_not_tested():
    table = TABLE | {"y": np.where(TABLE["g"] == "c", 1, TABLE["y"])}
    result = eq.Audit(table, **ROLES).compare("fpr", baseline="old")
    empty = [f for f in result.findings if f.group == "g=c"]
    assert {f.decision for f in empty} == {Decision.NOT_TESTED}
    assert {f.notes[0].code for f in empty} == {"empty-denominator"}


def test_few_units_and_constant_changes_are_not_tested():
    few = eq.Audit(
        {"g": list("aabbbbbbbb"), "y": [0.1, 0.2] * 5, "s": [0.3] * 10, "r": range(10)},
        group="g",
        y_true="y",
        y_score="s",
    ).compare("mean_score", baseline="r")
    assert {f.notes[0].code for f in few.findings if f.p_value is None} == {"too-small"}
    shifted = np.arange(40.0)
    moved = eq.Audit(
        {"g": ["a", "b"] * 20, "r": shifted, "s": shifted + np.array([1.0, 2.0] * 20)},
        group="g",
        y_score="s",
    ).compare("mean_score", baseline="r")
    assert {f.notes[0].code for f in moved.findings if f.p_value is None} == {"degenerate"}


def test_one_group_has_no_gap_but_a_change():
    result = eq.Audit(TABLE | {"all": ["x"] * N}, **(ROLES | {"group": "all"})).compare(
        "fpr", baseline="old"
    )
    assert result.joint.decision is Decision.NOT_TESTED
    gap, growth, change = result.findings
    assert gap.is_reference
    assert growth.is_reference
    assert change.p_value is not None


def test_text_decisions_are_compared_too():
    words = {0: "no", 1: "yes"}
    table = TABLE | {name: [words[v] for v in TABLE[name].tolist()] for name in ("old", "new", "y")}
    result = eq.Audit(table, **(ROLES | {"positive": "yes"})).compare("fpr", baseline="old")
    expected = audit().compare("fpr", baseline="old")
    assert result.findings == expected.findings
    with pytest.raises(DataError, match="must be numeric"):
        eq.Audit(table, **(ROLES | {"y_true": None})).compare("mean_score", baseline="old")


def test_rows_missing_in_one_column_are_dropped_from_both():
    old = TABLE["old"].astype(float)
    old[:7] = np.nan
    table = TABLE | {"old": old}
    with pytest.raises(MissingValuesError, match="'old' has 7 missing values"):
        eq.Audit(table, **ROLES).compare("selection_rate", baseline="old")
    result = eq.Audit(table, missing="drop", **ROLES).compare("selection_rate", baseline="old")
    assert result.n == N - 7
    assert "missing-dropped" in {note.code for note in result.notes}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "new"}, "the same column 'new'"),
        ({"baseline": "olt"}, "Did you mean 'old'"),
        ({"baseline": 3}, "neither a column nor another `Audit`"),
        ({"baseline": "old", "candidate": 7}, "`candidate` must name a column; got 7"),
        ({"baseline": "old", "metric": "mean_outcome"}, "neither decision nor score"),
        ({"baseline": "old", "gap": "signed"}, 'belongs to `gap="signed"`'),
        ({"baseline": "old", "direction": "up", "gap": "signed"}, "'increase', 'decrease'"),
        ({"baseline": "2026-09", "period": "month"}, "Did you mean '2026-0"),
        ({"baseline": [], "period": "month"}, "names no period"),
        ({"baseline": {"x": 1}, "period": "month"}, "must name periods"),
        (
            {"baseline": "2026-01", "candidate": "2026-01", "period": "month"},
            "both have '2026-01'",
        ),
        (
            {"baseline": ["2026-01", "2026-02", "2026-03"], "period": "month"},
            "no other period is left",
        ),
        ({"baseline": "old", "reference": "highest"}, "the data choose"),
        ({"baseline": "old", "reference": eq.External(0.3, 0.1)}, "an error of its own"),
        ({"baseline": "old", "reference": 0.3}, 'must be "population"'),
        ({"baseline": "old", "margin": -1}, "margin"),
    ],
)
def test_what_cannot_be_compared_gets_a_sentence(options, message):
    with pytest.raises((InvalidParameterError, DataError), match=message):
        audit().compare(**({"metric": "fpr"} | options))


def test_two_tables_need_the_same_roles():
    with pytest.raises(InvalidParameterError, match="`group` is"):
        audit().compare("fpr", baseline=audit(group="h"))
    with pytest.raises(InvalidParameterError, match="`cluster` is"):
        audit().compare("fpr", baseline=audit(cluster="u"))
    with pytest.raises(InvalidParameterError, match="leave out"):
        audit().compare("fpr", baseline=audit(), candidate="old")
    one = audit()
    with pytest.raises(InvalidParameterError, match="the same table"):
        one.compare("fpr", baseline=one)


def test_joint_change_without_a_single_one_is_said():
    result = audit().compare("fpr", baseline="old", adjust="bonferroni")
    calm = [f for f in result.findings if f.estimand.kind == "gap change"]
    quiet = replace(
        result, findings=tuple(replace(f, decision=Decision.NOT_DETECTED) for f in calm)
    )
    assert "no single group is shown" in headline(quiet)
    still = replace(quiet, joint=replace(result.joint, decision=Decision.NOT_DETECTED))
    assert "this does not show that there is none" in headline(still)
    none = replace(
        result,
        details=replace(result.details, gate={"within": False, "margin": 0.1, "worst": None}),
    )
    assert "no gap could be tested" in headline(none)


def test_the_picture_joins_old_and_new_gaps():
    result = audit(group=["g", "h"]).compare("fpr", baseline="old", reference={"g": "a"})
    axes = result.plot()
    gids = {artist.get_gid() for artist in axes.get_children()}
    assert {"finding-0", "finding-1", "finding-1-before"} <= gids
    many = eq.Audit(TABLE | {"k": RNG.integers(0, 60, N)}, **(ROLES | {"group": "k"})).compare(
        "selection_rate", baseline="old"
    )
    folded = many.plot().get_yticklabels()[-1].get_text()
    assert folded.endswith("see the table")


def test_a_period_without_rows_of_the_metric_is_not_tested():
    n = 24
    data = {"g": ["a", "b"] * 12, "y": [1] * n, "p": [0, 1, 1] * 8, "t": ["x"] * 12 + ["y"] * 12}
    audit = eq.Audit(data, group="g", y_true="y", y_pred="p")
    result = audit.compare("fpr", baseline="x", candidate="y", period="t")
    assert {finding.decision for finding in result.findings} == {Decision.NOT_TESTED}


def test_one_group_shows_nothing_to_be_within_a_margin():
    data = {"g": ["a"] * 20, "y": [0, 1] * 10, "p": [0, 1, 1, 1] * 5, "q": [1, 1, 0, 1] * 5}
    audit = eq.Audit(data, group="g", y_true="y", y_pred="p")
    result = audit.compare("accuracy", baseline="q", margin=0.1)
    assert result.details["gate"]["within"] is False
    assert "no gap could be tested" in headline(result)


@pytest.mark.parametrize("reference", ["population", "rest", {"g": "x"}])
def test_a_group_of_one_period_is_not_shown_to_be_within_the_margin(reference):
    rows = {"g": ["x", "y"] * 4000, "t": [1] * 4000 + [2] * 4000, "p": [0, 0, 1, 1] * 2000}
    late = {"g": ["new"] * 40, "t": [2] * 40, "p": [0, 1] * 20}
    both = {name: rows[name] + late[name] for name in rows}
    options = {"baseline": 1, "candidate": 2, "margin": 0.1, "reference": reference}

    def compared(data):
        audit = eq.Audit(data, group="g", y_pred="p", time="t")
        return audit.compare("selection_rate", **options)

    assert compared(rows).details["gate"]["within"]
    result = compared(both)
    gate = result.details["gate"]
    assert not gate["within"]
    assert gate["untested"] == ["g=new"]
    assert headline(result).startswith(
        "Not shown to be within the margin: g: new could not be tested (largest bound of the others"
    )
    check = Check(id="c", question="compare", options=options, result=result)
    assert tripped([check], "not-within-margin") == (check,)
    assert tripped([check], "worse") == ()
    (growth,) = [f for f in result.findings if f.group == "g=new" and "growth" in f.estimand]
    assert growth.notes[0].code == "one-side-only"
    assert "after the change only" in growth.notes[0].message


def test_the_bound_of_a_few_people_is_not_told():
    table = TABLE | {"g": np.where(np.arange(N) < 4, "tiny", TABLE["g"])}
    result = eq.Audit(table, **ROLES).compare("selection_rate", baseline="old", margin=0.1)
    assert result.details["gate"]["worst"] == "g=tiny"
    told = result.disclosed()
    assert told.details["gate"]["bound"] is None
    assert headline(told).startswith(
        "Not shown to be within the margin: for g: tiny, whose numbers are withheld, growth by more"
        " than 10.0 percentage points cannot be excluded"
    )


def test_a_headline_names_no_group_whose_numbers_are_withheld():
    rows = {
        "g": ["few"] * 300 + ["some"] * 400 + ["many"] * 700 + ["most"] * 2000,
        "old": [0, 1] * 1700,
        "new": [1] * 300 + [0, 1] * 200 + [0, 0, 0, 1] * 175 + [0, 1] * 1000,
    }
    audit = eq.Audit(rows, group="g", y_pred="new")
    result = audit.compare("selection_rate", baseline="old", reference="rest")
    assert ", most for g: few, from" in headline(result)
    assert re.search(r"; 2 gaps grew \(most: g: few, [0-9.]+ percentage po", headline(result))
    # The next smallest group is withheld too, so that the smallest does not follow.
    some, none = headline(result.disclosed(min_cell=350)), headline(result.disclosed(min_cell=5000))
    assert ", of those not withheld most for g: many, from" in some
    assert re.search(r"; 2 gaps grew \(of those not withheld most: g: many, [0-9.]+ perc", some)
    assert none.endswith("(joint test p <0.001); 2 gaps grew.")
    assert "few" not in none


def test_where_no_gap_changed_the_values_that_did_are_told():
    rows = np.arange(400)
    data = {"g": np.where(rows % 2, "a", "b"), "old": (rows // 2) % 2, "new": np.ones(400, int)}
    result = eq.Audit(data, group="g").compare("selection_rate", baseline="old", candidate="new")
    assert not any(
        f.decision is Decision.DETECTED for f in result.findings if "gap" in f.estimand.kind
    )
    told = headline(result)
    assert told.startswith("No change of a gap in selection rate was detected between old and new")
    changed = "; the selection rate itself changed in 2 of 2 groups, most for g: "
    assert changed in told
    assert told.endswith(", where it is 50.0 percentage points higher.")
