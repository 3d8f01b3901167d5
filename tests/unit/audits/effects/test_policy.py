import numpy as np
import pytest
from numpy.testing import assert_allclose

import equipoise as eq
from equipoise.audits.effects.questions import CORRECTION_WORDS
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.plot.effects import correction_prices
from equipoise.report.effect_tables import effect_tables


@pytest.fixture
def table(rng):
    n = 3_000
    group, offer = rng.choice(["A", "B"], n), rng.integers(2, size=n)
    effect = rng.normal(1.0, 1.0, n)
    return {
        "group": group,
        "offer": offer,
        "y": offer * effect + rng.normal(size=n),
        "predicted": effect - 0.8 * (group == "B"),
    }


def audit(table, **roles):
    known = {"group": "group", "y_true": "y", "treatment": "offer", "effect_pred": "predicted"}
    return eq.Audit(table, **(known | roles))


def test_a_rule_that_passes_a_group_over_is_seen(table):
    result = audit(table).policy(budget=0.3, rng=0)
    found = {(f.group, str(f.estimand)): f for f in result.findings}
    treated = table["predicted"] >= np.quantile(table["predicted"], 0.7)
    for name in "AB":
        share = found[f"group={name}", "share"]
        assert_allclose(share.estimate, treated[table["group"] == name].mean(), atol=2e-3)
    gap = found["group=B", "share difference"]
    assert gap.decision == "detected"
    assert gap.estimate < -0.2
    # Those of group B who are treated gain more: the bar is higher for them.
    assert found["group=B", "gain per treated difference"].estimate > 0.3
    assert "30%" in str(result)
    assert result.plot() is not None


def test_strata_are_respected(table, rng):
    stratum = rng.integers(2, size=3_000)
    offer = (rng.random(3_000) < np.where(stratum == 1, 0.8, 0.2)).astype(int)
    y = 3.0 * stratum + offer * 1.0 + 0.1 * rng.normal(size=3_000)
    rows = table | {"offer": offer, "y": y, "stratum": stratum}
    pooled = audit(rows).policy(threshold=-9.0, rng=0)
    within = audit(rows).policy(threshold=-9.0, strata="stratum", rng=0)
    gain = [
        next(f.estimate for f in one.findings if f.estimand == "gain per member")
        for one in (pooled, within)
    ]
    assert gain[0] > 2.0
    assert_allclose(gain[1], 1.0, atol=0.05)
    assert_allclose(
        audit(rows, strata="stratum").policy(threshold=-9.0, rng=0).findings[1].estimate, gain[1]
    )


def test_predictions_upside_down_in_one_group_are_found_by_their_ranking(rng):
    """Right on average, and anti-correlated with the effects inside the group."""
    n = 4_000
    group, offer = rng.choice(["A", "B"], n), rng.integers(2, size=n)
    effect = rng.normal(1.0, 0.7, n)
    predicted = np.where(group == "B", 2.0 - effect, effect)
    table = {"group": group, "offer": offer, "predicted": predicted}
    result = audit(table | {"y": offer * effect + rng.normal(size=n)}).treatment_effects(
        measure="difference", ranking="autoc", rng=0
    )
    found = {(f.group, f.estimand.kind): f for f in result.findings}
    assert found["group=B", "bias"].decision == "not detected"
    assert found["group=B", "ranking"].ci.high < 0.0
    assert found["group=A", "ranking"].ci.low > 0.0
    assert found["group=B", "ranking difference"].decision == "detected"
    assert [one["group"] for one in result.details["rankings"]] == ["group=A", "group=B"]
    assert "ranking" in str(result)


def test_asking_for_a_ranking_changes_no_other_number(table):
    plain = audit(table).treatment_effects(measure="difference", rng=1)
    more = audit(table).treatment_effects(measure="difference", ranking="qini", rng=1)
    assert more.findings[: len(plain.findings)] == plain.findings
    assert len(more.findings) == len(plain.findings) + 4


def test_a_constant_prediction_has_no_ranking(table):
    rows = table | {"predicted": np.where(table["group"] == "B", 1.0, table["predicted"])}
    result = audit(rows).treatment_effects(measure="difference", ranking="qini", rng=0)
    (none,) = [
        f for f in result.findings if f.estimand.kind == "ranking" and f.decision == "not tested"
    ]
    assert "every prediction is the same" in none.notes[0].message


@pytest.mark.parametrize("rule", [{"threshold": 0.0}, {"threshold": 1.0}, {"budget": 0.3}])
def test_a_rule_that_treats_all_alike_has_no_difference_in_shares(table, rng, rule):
    names = rng.choice(list("ABCDE"), 3_000, p=[0.3, 0.3, 0.2, 0.1, 0.1])
    result = audit(table | {"predicted": np.full(3_000, 0.1), "group": names}).policy(**rule, rng=0)
    assert {str(f.estimand) for f in result.findings if f.estimand.metric == "share"} == {"share"}


@pytest.mark.parametrize(
    ("change", "roles", "options", "error", "message"),
    [
        ({}, {}, {}, InvalidParameterError, "either `threshold` or `budget`"),
        (
            {"offer": np.arange(3_000) % 3},
            {},
            {"budget": 0.5},
            InvalidParameterError,
            "one treatment; this table has '1', '2' beside '0'",
        ),
        (
            {"e": np.zeros(3_000)},
            {"propensity": "e"},
            {"budget": 0.5},
            DataError,
            "between 0 and 1",
        ),
        ({}, {"group": None}, {"budget": 0.5}, InvalidParameterError, "compares groups"),
        (
            {},
            {"effect_pred": {1: "predicted"}},
            {"budget": 0.5},
            InvalidParameterError,
            "one column as `effect_pred`",
        ),
    ],
)
def test_what_is_refused(table, change, roles, options, error, message):
    with pytest.raises(error, match=message):
        audit(table | change, **roles).policy(**options)


def test_a_group_with_one_arm_is_left_out_and_counted(table):
    group = np.where(np.arange(3_000) % 3 == 0, "C", table["group"])
    offer = np.where(group == "B", 1, table["offer"])
    rows = table | {"group": group, "offer": offer}
    result = audit(rows).policy(threshold=0.0, rng=0)
    assert any(note.code == "one-arm-strata" for note in result.notes)
    (none,) = [f for f in result.findings if f.group == "group=B"]
    assert none.decision == "not tested"
    assert "one arm" in none.notes[0].message
    assert {f.group for f in result.findings} == {"group=A", "group=B", "group=C"}


def test_every_correction_has_its_price(table):
    """What a rule buys (group error) and costs (personal loss, value of decisions)."""
    result = audit(table).treatment_effects(measure="difference", threshold=0.0, cost=0.1, rng=0)
    found = {entry["rule"]: entry for entry in result.details["frontier"]}
    assert set(found) == set(result.details["corrections"])
    none, best = found["none"], found["bayes_zero"]
    assert (none["loss"], none["value"], none["flipped"]) == (0.0, 0.0, 0.0)
    # Predictions for B are .8 too low: a correction mends the groups, and persons with them.
    assert best["group_error"] < 0.3 * none["group_error"]
    assert best["loss"] + 4 * best["loss_se"] < 0.0
    assert_allclose(best["group_error"] ** 2 - none["group_error"] ** 2, best["loss"], rtol=1e-9)
    assert best["value_low"] < best["value"] < best["value_high"]
    assert 0.05 < best["flipped"] < 0.3
    assert result.details["rule"] == {"threshold": 0.0, "budget": None, "cost": 0.1}


def test_prices_without_a_rule_are_those_of_accuracy(table):
    plain = audit(table).treatment_effects(measure="difference", rng=0)
    ruled = audit(table).treatment_effects(measure="difference", budget=0.3, rng=0)
    assert plain.details["rule"] is None
    assert all(entry["value"] is None for entry in plain.details["frontier"])
    # A rule adds columns and changes no other number.
    for one, other in zip(plain.details["frontier"], ruled.details["frontier"], strict=True):
        assert one["loss"] == other["loss"]
    assert [f.estimate for f in plain.findings] == [f.estimate for f in ruled.findings]
    assert plain.details["evaluation"] == ruled.details["evaluation"]


def test_prices_are_drawn_and_reported(table):
    result = audit(table).treatment_effects(measure="difference", budget=0.3, rng=0)
    points = correction_prices(result).get_lines()
    drawn = {line.get_gid() for line in points}
    rules = [entry["rule"] for entry in result.details["frontier"]]
    assert drawn >= {f"price-{rule}" for rule in rules}
    place = {line.get_gid(): line for line in points}["price-mean"]
    entry = result.details["frontier"][rules.index("mean")]
    assert_allclose(place.get_xydata()[0], [entry["group_error"], entry["value"]])
    without = audit(table).treatment_effects(measure="difference", rng=0)
    assert "squared error" in correction_prices(without).get_ylabel()
    html = result._repr_html_()
    assert html
    captions = [one.caption for one in effect_tables(result)]
    assert any("buys and costs" in caption for caption in captions)
    (prices,) = (one for one in effect_tables(result) if "buys and costs" in one.caption)
    assert [row[0] for row in prices.rows] == [f"{CORRECTION_WORDS[r]} ({r})" for r in rules]
    labels = {line.get_label() for line in points}
    assert labels >= {CORRECTION_WORDS[rule] for rule in rules}
    assert prices.columns[-1] == "Changed"


def test_the_price_needs_one_treatment_and_one_of_threshold_and_budget(table):
    with pytest.raises(InvalidParameterError, match="either"):
        audit(table).treatment_effects(measure="difference", threshold=0.0, budget=0.3)
    several = table | {"offer": np.arange(3_000) % 3}
    predictions = {"1": "predicted", "2": "predicted"}
    with pytest.raises(InvalidParameterError, match="one treatment"):
        audit(several, effect_pred=predictions).treatment_effects(
            measure="difference", threshold=0.0
        )


def test_few_clusters_tell_neither_shares_nor_gains(table, rng):
    """Two clusters in each arm of a group: no test, with the reason, whatever the rows."""
    unit = rng.integers(300, size=3_000)
    arm = np.where(unit < 4, unit % 2, rng.integers(2, size=300)[unit])
    rows = table | {"unit": unit, "offer": arm, "group": np.where(unit < 4, "few", "many")}
    found = audit(rows, cluster="unit").policy(threshold=1.0, rng=0).findings
    few = [f for f in found if f.group == "group=few"]
    assert {f.decision.value for f in few if f.estimand != "share"} == {"not tested"}
    assert any("effective independent units" in f.notes[0].message for f in few if f.notes)
    assert not [f for f in found if f.decision == "detected"]
    ranked = audit(rows, cluster="unit").treatment_effects(
        measure="difference", ranking="autoc", rng=0
    )
    (untested,) = (
        f for f in ranked.findings if f.estimand.kind == "ranking" and f.group == "group=few"
    )
    assert untested.decision == "not tested"


def test_strata_that_are_used_are_not_said_to_be_unused(table, rng):
    rows = table | {"stratum": rng.integers(2, size=3_000)}
    result = audit(rows, strata="stratum").policy(threshold=1.0, rng=0)
    assert "strata-not-used" not in {note.code for note in result.notes}


def test_extreme_chances_are_noted_and_impossible_ones_counted(table):
    chance = np.where(np.arange(3_000) < 7, 0.001, 0.5)
    result = audit(table | {"e": chance}, propensity="e").policy(threshold=1.0, rng=0)
    (note,) = (note for note in result.notes if note.code == "extreme-propensity")
    assert "7 rows" in note.message
    with pytest.raises(DataError, match="7 rows"):
        audit(table | {"e": np.where(chance < 0.1, 0.0, 0.5)}, propensity="e").policy(threshold=1.0)


def test_constant_outcomes_have_no_slope(table):
    result = audit(table | {"y": np.full(3_000, 0.3)}).treatment_effects(
        measure="difference", rng=0
    )
    assert not [f for f in result.findings if f.estimand.kind == "slope"]
    assert [entry["slope"] for entry in result.details["slopes"]] == [None, None]
