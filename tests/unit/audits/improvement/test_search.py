"""Ties, capacity, margins, several candidates and small groups in `improvability`."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import equipoise as eq
from equipoise.audits.improvement.candidates import selection_rule
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError, NotBinaryError
from equipoise.results.result import AuditResult
from equipoise.search import LinearRule, ReweightedRule, TopShare
from support.clinic import ROLES, clinic

QUICK = {"inference": "analytic", "n_splits": 3}
WHOLE = {"accuracy": "accuracy", "fairness": "selection_rate", "accuracy_of": "population"}


@pytest.fixture
def table(rng):
    return clinic(rng)


def scored(table, **roles):
    return eq.Audit(table, **({"group": "race", "y_true": "sick", "y_score": "cost"} | roles))


def codes(result):
    return {note.code for note in result.notes}


def test_a_coarse_score_compared_with_itself_finds_nothing(table):
    band = np.digitize(table["cost"], [1.0, 2.0, 3.0]).astype(float)
    table |= {"band": band, "again": 10 * band + 3}
    audit = scored(table, y_score="band")
    result = audit.improvability("again", capacity=0.3, **WHOLE, **QUICK)
    assert result.joint.p_value == 1.0
    assert "it decides as the status quo does for everyone" in " ".join(str(result).split())


def test_two_scores_without_an_order_decide_alike_by_lot(table):
    table |= {"flat": np.full(len(table["cost"]), 2.0), "level": np.full(len(table["cost"]), 7.5)}
    result = scored(table, y_score="flat").improvability("level", capacity=0.3, **WHOLE, **QUICK)
    assert result.joint.p_value == 1.0
    assert str(result.joint.decision) == "not detected"
    assert result.details["limit"] == "same"
    assert "same-decisions" in codes(result)
    assert result.details["shares"]["status_quo"] == pytest.approx(0.3, abs=1e-9)
    one = scored(table, y_score="flat").improvability("visits", capacity=0.3, **WHOLE, **QUICK)
    assert one.details["limit"] != "same"


def test_ties_are_chances_and_the_shares_are_exact(table):
    table["band"] = np.digitize(table["cost"], [1.0, 2.0, 3.0]).astype(float)
    result = scored(table, y_score="band").improvability("visits", capacity=0.3, **WHOLE, **QUICK)
    shares = result.details["shares"]
    assert shares["status_quo"] == pytest.approx(0.3, abs=1e-9)
    assert shares["candidate"] == pytest.approx(0.3, abs=1e-9)
    top = table["band"] == 3
    chance = (0.3 * 3000 - top.sum()) / (table["band"] == 2).sum()
    if chance < 0:
        chance, tied = 0.3 * 3000 / top.sum(), top
    else:
        tied = table["band"] == 2
    decision = np.where(tied, chance, (table["band"] > table["band"][tied][0]) * 1.0)
    for name in "ab":
        expected = decision[table["race"] == name].mean()
        assert shares["by_group"][f"race={name}"][0] == pytest.approx(expected, abs=1e-12)
    note = next(note for note in result.notes if note.code == "ties")
    assert f"{tied.sum():,} people share the score of the status quo" in note.message
    assert result.details["ties"]["status_quo"]["chance"] == pytest.approx(chance)


def test_decisions_that_exceed_the_capacity_are_refused(table, rng):
    table["most"] = (rng.random(3000) < 0.6).astype(float)
    audit = scored(table)
    with pytest.raises(InvalidParameterError, match=r"selects \d+\.\d%, the capacity is 10.0%"):
        audit.improvability("most", capacity=0.1, **WHOLE, **QUICK)
    forced = audit.improvability("most", capacity=0.1, capacity_match="randomise", **WHOLE, **QUICK)
    assert forced.details["shares"]["candidate"] == pytest.approx(0.1, abs=1e-9)
    message = next(note.message for note in forced.notes if note.code == "capacity-matched")
    assert "dropped by lot" in message
    near = table | {"near": (np.argsort(np.argsort(-table["visits"])) < 290).astype(float)}
    result = scored(near).improvability("near", capacity=0.1, **WHOLE, **QUICK)
    assert result.details["shares"]["candidate"] == pytest.approx(0.1, abs=1e-9)
    assert "added by lot" in str([note.message for note in result.notes])


def test_functions_that_score_are_cut_and_those_that_decide_are_held(table):
    audit = scored(table, features=["visits"])
    options = {"capacity": 0.2, **WHOLE, **QUICK}
    scoring = audit.improvability(lambda _: lambda X: X[:, 0], **options)
    assert scoring.details["shares"]["candidate"] == pytest.approx(0.2, abs=1e-9)
    with pytest.raises(InvalidParameterError, match=r"the capacity is 20\.0%"):
        audit.improvability(lambda _: lambda X: (X[:, 0] > 3).astype(float), **options)
    training = audit.improvability(
        TopShare(LogisticRegression(), 0.2, cutoff="training"), **options
    )
    assert training.details["shares"]["candidate"] == pytest.approx(0.2, abs=1e-9)


def test_searches_inherit_the_capacity(table):
    audit = scored(table, features=["visits", "conditions"])
    result = audit.improvability(ReweightedRule(), capacity=0.2, **WHOLE, **QUICK)
    assert result.details["shares"]["candidate"] == pytest.approx(0.2, abs=1e-9)
    assert result.details["fitted"][0].capacity == 0.2
    assert selection_rule(LinearRule(max_rows=30), capacity=0.2).capacity == 0.2


def test_a_capacity_and_prices_do_not_go_together(table):
    audit = eq.Audit(table, group="race", y_true="sick", y_pred="cost", features=["visits"])
    price = eq.Metric("price", "cost")
    with pytest.raises(InvalidParameterError, match="status quo's decisions are not 0 and 1"):
        audit.improvability(lambda _: lambda X: X[:, 0], accuracy=price, capacity=0.2)


def test_different_shares_are_in_the_headline(table):
    table["more"] = (table["visits"] > 11).astype(int)
    result = eq.Audit(table, **ROLES).improvability("more", accuracy="accuracy", **QUICK)
    assert result.detected
    now, then = table["called"].mean(), table["more"].mean()
    words = f"while selecting {then:.1%} instead of {now:.1%}"
    assert words in " ".join(str(result).split())
    note = next(note for note in result.notes if note.code == "different-share")
    assert f"{then:.1%} of people, the status quo {now:.1%}" in note.message


def swapped(table, share, rng):
    """The status quo, with equal numbers of selected a and unselected b exchanged."""
    decision = table["called"].copy()
    leave = np.flatnonzero((table["race"] == "a") & (decision == 1) & (table["sick"] == 1))
    enter = np.flatnonzero((table["race"] == "b") & (decision == 0) & (table["sick"] == 1))
    n = int(share * min(len(leave), len(enter)))
    decision[rng.choice(leave, n, replace=False)] = 0
    decision[rng.choice(enter, n, replace=False)] = 1
    return decision


def test_equal_accuracy_is_shown_with_a_tolerated_loss(table, rng):
    table["fairer"] = swapped(table, 0.3, rng)
    audit = eq.Audit(table, **ROLES)
    options = {"higher_group": "race=a", **WHOLE, **QUICK}
    strict = audit.improvability("fairer", **options)
    assert strict.joint.decision is eq.Decision.NOT_DETECTED
    assert strict.details["limit"] == "margin"
    loss = audit.improvability("fairer", accuracy_loss=0.05, **options)
    assert loss.detected
    assert "loses at most 5.0% of accuracy" in " ".join(str(loss).split())
    assert "loses more than 5.0% of accuracy overall" in loss.null
    same = audit.improvability("fairer", delta_accuracy=-0.05, **options)
    assert same.joint.p_value == loss.joint.p_value
    absolute = audit.improvability("fairer", accuracy_loss=0.03, margin_scale="absolute", **options)
    assert absolute.details["reduction_at_least"] > 0
    assert "loses at most 0.03" in " ".join(str(absolute).split())


def test_p_values_fall_with_the_tolerated_loss(table, rng):
    table["fairer"] = swapped(table, 0.3, rng)
    audit = eq.Audit(table, **ROLES)
    p = [
        audit.improvability(
            "fairer", accuracy_loss=loss, higher_group="race=a", **WHOLE, **QUICK
        ).joint.p_value
        for loss in (0.0, 0.005, 0.01, 0.05)
    ]
    assert p == sorted(p, reverse=True)


def test_margins_by_group_and_by_metric(table):
    table["other"] = (table["visits"] > 12).astype(int)
    audit = eq.Audit(table, **ROLES)
    options = {"accuracy": "accuracy", "fairness": ["tpr", "selection_rate"], **QUICK}
    result = audit.improvability(
        "other",
        accuracy_loss={"a": 0.02},
        delta_fairness={"tpr": 0.1},
        fairness_tolerance={"selection_rate": 0.5},
        **options,
    )
    assert result.details["delta_accuracy"] == [-0.02, 0.0]
    assert result.details["delta_fairness"] == [0.1, 0.0]
    assert result.details["fairness_tolerance"] == [0.0, 0.5]
    assert "within the margins of the groups" in result.null
    plain = audit.improvability("other", **options)
    by_a, by_b = (f.estimate for f in result.findings[:2])
    a0 = plain.details["splits"][0]["accuracy"][0]
    assert by_a == pytest.approx(plain.findings[0].estimate + 0.02 * a0[0])
    assert by_b == pytest.approx(plain.findings[1].estimate)
    assert result.findings[3].estimate == pytest.approx(plain.findings[3].estimate + 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accuracy_loss": 0.1, "delta_accuracy": 0.1}, "pass one of them"),
        ({"accuracy_loss": {"race=x": 0.1}}, "no group 'race=x'"),
        ({"accuracy_loss": {"race=a": 0.1}, "accuracy_of": "population"}, 'accuracy_of="group"'),
        ({"accuracy_loss": -0.1}, "`accuracy_loss`"),
        ({"accuracy_loss": 1.0}, "must be below 1"),
        ({"delta_fairness": {"tprr": 0.1}}, "Did you mean 'tpr'"),
        ({"candidates": ["other"]}, "got both"),
        ({"candidate": None}, "got neither"),
        ({"candidate": None, "candidates": []}, "`candidates` is empty"),
        ({"candidate": None, "candidates": "other"}, "a list or a dict"),
        ({"candidate": None, "candidates": ["other", LogisticRegression()]}, "tried together"),
        ({"air_floor": 0.8}, 'pass scale="ratio"'),
        ({"scale": "log"}, "'difference', 'ratio'"),
        ({"method": "paper", "accuracy_loss": 0.1}, "knows improvements only"),
        ({"min_group_size": 3}, "`min_group_size`"),
        ({"choose": "best"}, "'validation', 'all'"),
        ({"choose": "validation"}, "ready column"),
        ({"candidate": LogisticRegression(), "choose": "all"}, "are fitted"),
    ],
)
def test_bad_input_is_explained(table, options, message):
    table["other"] = (table["visits"] > 12).astype(int)
    call = {"candidate": "other", "accuracy": "accuracy", "fairness": "tpr"} | QUICK | options
    with pytest.raises(InvalidParameterError, match=message):
        eq.Audit(table, **ROLES).improvability(call.pop("candidate"), **call)


def test_the_group_itself_is_no_feature_unless_allowed(table):
    table["sex_code"] = np.where(table["race"] == "b", 7.0, 2.0)
    audit = eq.Audit(table, **(ROLES | {"features": ["visits", "sex_code"]}))
    with pytest.raises(InvalidParameterError, match="'sex_code' is the group itself"):
        audit.improvability(LogisticRegression(), accuracy="accuracy", **QUICK)
    result = audit.improvability(
        LogisticRegression(), accuracy="accuracy", allow_group_feature=True, **QUICK
    )
    assert "group-feature" in codes(result)
    assert "it uses the attribute itself" in " ".join(str(result).split())
    named = eq.Audit(table, **(ROLES | {"group": "sex_code", "features": ["visits", "sex_code"]}))
    with pytest.raises(InvalidParameterError, match="'sex_code' is the group itself"):
        named.improvability(LogisticRegression(), accuracy="accuracy", **QUICK)


def test_several_candidates_are_put_in_order_on_other_rows(table):
    audit = eq.Audit(table, **(ROLES | {"features": ["visits", "conditions"]}))
    result = audit.improvability(
        candidates={
            "logit": LogisticRegression(),
            "stump": DecisionTreeClassifier(max_depth=1, random_state=0),
            "noise": lambda _: lambda X: (X[:, 0].astype(int) % 2).astype(float),
        },
        accuracy="accuracy",
        frontier=True,
        **QUICK,
    )
    assert result.detected
    details = result.details
    assert details["n_candidates"] == 3
    assert "2.5" in details["order_rule"]
    split = details["splits"][0]
    assert (split["n_train"], split["n_validation"], split["n_test"]) == (1500, 500, 1000)
    by_name = {row["name"]: row for row in details["candidates"]}
    assert by_name["noise"]["state"] == "open"
    assert by_name["noise"]["rank"] == 3.0
    assert by_name[details["winner"]["name"]]["state"] == "shown"
    assert sum(row["first_in"] for row in details["candidates"]) == 3
    assert "first of 3 candidates in the order fixed on other rows" in " ".join(str(result).split())
    reductions = [step["reduction"] for step in details["frontier"]]
    assert reductions == sorted(reductions)
    assert reductions[-1] > 0
    again = AuditResult.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
    assert str(again) == str(result)


def test_in_one_split_p_values_are_those_of_a_fixed_sequence(table):
    audit = eq.Audit(table, **(ROLES | {"features": ["visits", "conditions"]}))
    result = audit.improvability(
        candidates=[LogisticRegression(), LogisticRegression(C=0.01), DecisionTreeClassifier()],
        accuracy="accuracy",
        prefer="certain",
        inference="analytic",
        n_splits=1,
    )
    rows = sorted(result.details["candidates"], key=lambda row: row["rank"] or 9)
    known = [row["p_adjusted"] for row in rows if row["p_adjusted"] is not None]
    assert known == sorted(known)
    assert known[0] == result.joint.p_value
    assert "LogisticRegression 2" in {row["name"] for row in rows}


def ready_columns(table, rng):
    noise = {f"noise{k}": (rng.random(3000) < 0.4).astype(float) for k in range(3)}
    return (
        table
        | noise
        | {
            "good": (table["visits"] > 12).astype(float),
            "better": (table["visits"] > 11).astype(float),
        }
    )


def test_ready_columns_are_tested_together(table, rng):
    wide = ready_columns(table, rng)
    names = ["good", "better", "noise0", "noise1", "noise2"]
    audit = eq.Audit(wide, **ROLES)
    result = audit.improvability(
        candidates=names, accuracy="accuracy", higher_group="race=a", frontier=[0.0, 0.1], rng=3
    )
    assert result.detected
    rows = {row["name"]: row for row in result.details["candidates"]}
    assert {rows[name]["state"] for name in names[2:]} == {"shown not to"}
    assert rows["good"]["state"] == "shown"
    alone = audit.improvability(
        "good", accuracy="accuracy", higher_group="race=a", inference="analytic"
    )
    assert rows["good"]["p_adjusted"] >= alone.joint.p_value
    assert rows["good"]["p"] == pytest.approx(alone.joint.p_value, rel=0.5)
    assert result.details["winner"]["lower"] < result.details["winner"]["gain_unadjusted"]
    assert [step["loss"] for step in result.details["frontier"]] == [0.0, 0.1]
    backwards = audit.improvability(
        candidates=names[::-1], accuracy="accuracy", higher_group="race=a", rng=3
    )
    assert backwards.joint.p_value == pytest.approx(result.joint.p_value)
    unknown = audit.improvability(candidates=names, accuracy="accuracy", rng=3)
    assert unknown.joint.p_value >= result.joint.p_value


def test_a_list_that_is_ruled_out_says_so_and_no_more(table, rng):
    wide = ready_columns(table, rng)
    audit = eq.Audit(wide, **ROLES)
    result = audit.improvability(
        candidates=["noise0", "noise1", "noise2"],
        accuracy="accuracy",
        higher_group="race=a",
        draws_iid=True,
    )
    text = " ".join(str(result).split())
    assert "None of the 3 listed alternatives meets the requirement" in text
    assert "says nothing about alternatives not listed" in text
    found = result.details["sufficiency"]
    assert found["listed"]["all"]
    assert found["random_search"]["success_at_most"] == pytest.approx(1 - 0.025 ** (1 / 3))


def test_candidates_on_which_too_little_rests_are_not_tested(table, rng):
    wide = ready_columns(table, rng)
    wide["few"] = (table["visits"] > 55).astype(float)
    result = eq.Audit(wide, **ROLES).improvability(candidates=["good", "few"], accuracy="ppv")
    rows = {row["name"]: row["state"] for row in result.details["candidates"]}
    assert rows["few"] == "not tested"
    wide["fewer"] = (table["visits"] > 54).astype(float)
    neither = eq.Audit(wide, **ROLES).improvability(candidates=["fewer", "few"], accuracy="ppv")
    assert neither.joint.decision is eq.Decision.NOT_TESTED


def test_few_clusters_are_not_tested_together(table, rng):
    wide = ready_columns(table, rng) | {"site": np.arange(3000) % 20}
    audit = eq.Audit(wide, cluster="site", **ROLES)
    with pytest.raises(GroupTooSmallError, match="needs 30 clusters; the table has 20"):
        audit.improvability(candidates=["good", "better"], accuracy="accuracy")


def with_tiny_group(table, n=12):
    race = table["race"].astype("<U5")
    race[:n] = "tiny"
    race[n : 2 * n] = "small"
    return table | {"race": race}


def test_small_groups_are_left_out_pooled_or_refused(table):
    table["other"] = (table["visits"] > 12).astype(int)
    wide = with_tiny_group(table)
    audit = eq.Audit(wide, **ROLES)
    result = audit.improvability("other", accuracy="accuracy", **QUICK)
    assert result.details["groups"] == ["race=a", "race=b"]
    assert set(result.details["groups_left_out"]) == {"race=tiny", "race=small"}
    assert "among 2 of 4 groups" in " ".join(str(result).split())
    assert "groups-left-out" in codes(result)
    pooled = audit.improvability("other", accuracy="accuracy", small_groups="pool", **QUICK)
    assert pooled.details["groups_left_out"] == {"other": 24}
    wider = eq.Audit(with_tiny_group(table, 20), **ROLES)
    pooled = wider.improvability(
        "other", accuracy="accuracy", small_groups="pool", accuracy_loss={"race=a": 0.1}, **QUICK
    )
    assert pooled.details["groups"] == ["race=a", "race=b", "other"]
    assert pooled.details["delta_accuracy"] == [-0.1, 0.0, 0.0]
    assert "groups-pooled" in codes(pooled)
    with pytest.raises(GroupTooSmallError, match="rests on 12 rows of 'race=small'"):
        audit.improvability("other", accuracy="accuracy", small_groups="refuse", **QUICK)


def test_small_groups_are_left_out_of_a_search(table):
    audit = eq.Audit(with_tiny_group(table), **ROLES)
    result = audit.improvability(
        candidates=[LogisticRegression(), DecisionTreeClassifier(max_depth=2)],
        accuracy="accuracy",
        **QUICK,
    )
    assert result.details["groups"] == ["race=a", "race=b"]
    assert result.detected
    wide = with_tiny_group(table) | {
        "x": (table["visits"] > 12).astype(float),
        "z": (table["visits"] > 11).astype(float),
    }
    ready = eq.Audit(wide, **ROLES).improvability(candidates=["x", "z"], accuracy="accuracy")
    assert ready.details["groups"] == ["race=a", "race=b"]
    pooled = eq.Audit(wide, **ROLES).improvability(
        candidates=["x", "z"], accuracy="accuracy", small_groups="pool"
    )
    assert pooled.details["groups"] == ["race=a", "race=b"]
    wide["race"] = np.where(np.arange(3000) < 5, "z", "a")
    alone = eq.Audit(wide, **ROLES).improvability(candidates=["x", "z"], accuracy="accuracy")
    assert alone.joint.decision is eq.Decision.NOT_TESTED


def test_a_middling_group_is_compared_when_no_other_is_left(table):
    table["other"] = (table["visits"] > 12).astype(int)
    race = np.where(np.arange(3000) < 25, "b", "a")
    audit = eq.Audit(table | {"race": race}, **ROLES)
    result = audit.improvability("other", accuracy="accuracy", **QUICK)
    assert result.joint.p_value is not None
    assert "few-selected" in codes(result)


def test_ratios_are_compared_on_the_log_scale(table):
    table["other"] = (table["visits"] > 12).astype(int)
    audit = eq.Audit(table, **ROLES)
    options = {"accuracy": "accuracy", "fairness": "selection_rate", **QUICK}
    result = audit.improvability("other", scale="ratio", higher_group="race=a", **options)
    a, b = table["race"] == "a", table["race"] == "b"
    now = np.log(table["called"][a].mean() / table["called"][b].mean())
    then = abs(np.log(table["other"][a].mean() / table["other"][b].mean()))
    assert result.findings[-1].estimate == pytest.approx(now - then)
    assert result.detected
    floor = audit.improvability(
        "other", scale="ratio", air_floor=0.8, higher_group="race=a", **options
    )
    assert floor.findings[-1].estimate == pytest.approx(-then - np.log(0.8))
    assert floor.detected
    same = audit.improvability("other", accuracy="accuracy", scale="ratio", n_resamples=199)
    assert len(same.findings) == 3
    table["none"] = np.where(b, 0, table["called"])
    without = eq.Audit(table, **ROLES)
    with pytest.raises(InvalidParameterError, match="ratios need rates above zero"):
        without.improvability("none", scale="ratio", **options)


def test_decisions_that_are_not_0_or_1_need_a_capacity(table):
    with pytest.raises(NotBinaryError, match="needs decisions of 0 and 1"):
        eq.Audit(table, **ROLES).improvability("cost", accuracy="accuracy", **QUICK)
