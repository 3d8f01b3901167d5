"""Several attributes, a reference, and each gap by itself."""

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import LogisticRegression

import equipoise as eq
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.search import FeaturePath, FrontierRule

ASKED = {
    "accuracy": "accuracy",
    "fairness": "selection_rate",
    "accuracy_of": "population",
    "inference": "analytic",
}
APART = {"attributes": "separately"}


def people(n=1500, seed=4):
    rng = np.random.default_rng(seed)
    race = rng.choice(["black", "hispanic", "white"], size=n, p=[0.3, 0.2, 0.5])
    sex = rng.choice(["f", "m"], size=n)
    x = rng.normal(size=n)
    now = x + 0.8 * rng.normal(size=n)
    now += np.select([race == "white", race == "black"], [0.6, -0.3], 0.0) + 0.3 * (sex == "m")
    return {
        "race": race,
        "sex": sex,
        "y": (x + rng.normal(size=n) > 0).astype(int),
        "now": now,
        "then": x + 0.5 * rng.normal(size=n),
        "called": (now > 0.5).astype(int),
        "other": (x > 0.3).astype(int),
        "x": x,
        "w": rng.integers(1, 4, size=n),
    }


def audit(table=None, *, group=("race", "sex"), **roles):
    return eq.Audit(people() if table is None else table, group=list(group), y_true="y", **roles)


def rates(table, column, chance):
    """Rate of each group, and the influence of every row on it."""
    found = {}
    for level in np.unique(table[column]):
        member = table[column] == level
        rate = chance[member].mean()
        found[level] = rate, member * (chance - rate) / member.sum()
    return found


def least_z(table, column, pairs, direction, d=0.0, m=0.0):
    """Smallest estimate and z of the lines of a gap, from influence values alone."""
    before, after = (rates(table, column, table[name]) for name in ("called", "other"))
    high, low = direction
    lines = []
    for g, h in pairs:
        value = (1 - d) * (before[high][0] - before[low][0]) + m - (after[g][0] - after[h][0])
        psi = (1 - d) * (before[high][1] - before[low][1]) - (after[g][1] - after[h][1])
        lines.append((value, value / np.sqrt(psi @ psi)))
    return min(value for value, _ in lines), min(z for _, z in lines)


def both(*pairs):
    return [order for g, h in pairs for order in ((g, h), (h, g))]


def test_each_attribute_is_a_requirement_of_its_own():
    table = people()
    result = audit(y_pred="called").improvability("other", **ASKED, **APART)
    names = [finding.group for finding in result.findings]
    assert names == ["everyone", "all groups of race", "sex=f vs sex=m"]
    assert [finding.n for finding in result.findings] == [1500, 1500, 1500]
    assert result.n == 1500
    races = both(("black", "white"), ("black", "hispanic"), ("hispanic", "white"))
    value, z = least_z(table, "race", races, ("white", "black"))
    assert result.findings[1].estimate == pytest.approx(value, abs=1e-12)
    assert result.findings[1].p_value == pytest.approx(6 * special.ndtr(-z), rel=1e-6)
    value, z = least_z(table, "sex", both(("f", "m")), ("m", "f"))
    assert result.findings[2].estimate == pytest.approx(value, abs=1e-12)
    assert result.findings[2].p_value == pytest.approx(2 * special.ndtr(-z), rel=1e-6)
    assert result.details["attributes"] == ["race", "sex"]
    assert result.joint.p_value == max(finding.p_value for finding in result.findings)


@pytest.mark.parametrize(
    "roles", [{"y_pred": "called"}, {"y_pred": "called", "weight": "w"}, {"y_score": "now"}]
)
def test_one_attribute_separately_is_that_attribute(roles):
    table = people() | {"one": np.array(["everyone", "nobody"] * 750)}
    options = ASKED | ({"capacity": 0.3} if "y_score" in roles else {})
    candidate = "then" if "y_score" in roles else "other"
    alone = audit(table, group=["sex"], **roles).improvability(candidate, **options)
    pair = audit(table, group=["sex", "race"], **roles).improvability(candidate, **options, **APART)
    for k in (0, 1):
        one, two = alone.findings[k], pair.findings[k]
        assert (one.estimate, one.p_value, one.ci.low, one.ci.high) == pytest.approx(
            (two.estimate, two.p_value, two.ci.low, two.ci.high), rel=1e-9
        )


def test_a_reference_leaves_only_gaps_to_it():
    table = people()
    result = audit(group=["race"], y_pred="called").improvability(
        "other", **ASKED, reference="hispanic"
    )
    finding = result.findings[1]
    assert finding.group == "all groups vs race=hispanic"
    pairs = both(("black", "hispanic"), ("hispanic", "white"))
    value, z = least_z(table, "race", pairs, ("white", "hispanic"))
    assert finding.estimate == pytest.approx(value, abs=1e-12)
    assert finding.p_value == pytest.approx(min(4 * special.ndtr(-z), 1.0), rel=1e-6)


def test_each_gap_shrinks_by_its_own_share():
    table = people()
    result = audit(group=["race"], y_pred="called").improvability(
        "other",
        **ASKED,
        gap="each",
        reference="white",
        delta_fairness={"black": 0.2, "hispanic": 0.1},
        higher_group="race=white",
    )
    assert [f.group for f in result.findings[1:]] == [
        "race=black vs race=white",
        "race=hispanic vs race=white",
    ]
    for finding, who, d in zip(result.findings[1:], ("black", "hispanic"), (0.2, 0.1), strict=True):
        value, z = least_z(table, "race", both((who, "white")), ("white", who), d)
        assert finding.estimate == pytest.approx(value, abs=1e-12)
        assert finding.p_value == pytest.approx(special.ndtr(-z), rel=1e-6)
        assert finding.n == np.isin(table["race"], (who, "white")).sum()


def test_each_of_two_groups_is_the_worst_of_two():
    asked = {"higher_group": "sex=m"} | ASKED
    alone = audit(group=["sex"], y_pred="called").improvability("other", **asked)
    each = audit(group=["sex"], y_pred="called").improvability(
        "other", **asked, gap="each", reference="m"
    )
    assert each.joint.p_value == alone.joint.p_value
    assert each.findings[1].ci == alone.findings[1].ci


def test_attributes_that_are_not_named_need_not_shrink():
    table = people(6000)
    result = audit(table, y_pred="called").improvability(
        "other", **ASKED, **APART, delta_fairness={"race": 0.1}, accuracy_loss=0.05
    )
    value, _ = least_z(table, "sex", both(("f", "m")), ("m", "f"), m=0.01)
    assert result.findings[2].estimate == pytest.approx(value, abs=1e-12)
    assert result.details["delta_fairness"] == [0.1, 0.0]
    assert result.details["fairness_tolerance"] == [0.0, 0.01]
    note = next(note for note in result.notes if note.code == "held-gaps")
    assert "sex=f vs sex=m (0.01)" in note.message
    # What is shown of the reduction is about race alone.
    assert result.details["deltas"]["fairness"] > 0.1
    assert "keeps the selection rate gap of sex=f vs sex=m within" in str(result).replace("\n", " ")
    wider = audit(table, y_pred="called").improvability(
        "other", **ASKED, **APART, delta_fairness={"race": 0.1}, fairness_tolerance={"sex": 0.05}
    )
    assert wider.details["fairness_tolerance"] == [0.0, 0.05]


def test_a_held_gap_that_grows_forbids_the_claim():
    table = people()
    table["other"] = np.where(
        table["sex"] == "m", table["other"], table["other"] & (table["x"] > 1)
    )
    result = audit(table, y_pred="called").improvability(
        "other",
        **(ASKED | {"accuracy": "ppv"}),
        **APART,
        delta_fairness={"race": 0.0},
        frontier=True,
        accuracy_loss=0.5,
    )
    assert str(result.joint.decision) == "not detected"
    assert result.details["frontier"] == []


def test_candidates_are_fitted_and_put_in_order_with_attributes_apart():
    result = audit(y_score="now", features=["x", "now"]).improvability(
        {"plain": LogisticRegression(), "path": FrontierRule(LogisticRegression(), lambdas=2)},
        **ASKED,
        **APART,
        capacity=0.3,
        accuracy_loss=0.05,
        n_splits=1,
        rng=1,
        frontier=[0.1],
    )
    assert result.details["n_candidates"] == 3
    assert result.details["shares"]["by_group"].keys() == set(result.details["groups"])
    assert {row["rank"] for row in result.details["candidates"]} == {1.0, 2.0, 3.0}
    path = audit(y_score="now", features=["x", "now"]).improvability(
        FeaturePath(LogisticRegression()), **ASKED, **APART, capacity=0.3, n_splits=1, rng=1
    )
    assert path.details["splits"][0]["chosen"].startswith("FeaturePath without")


def test_small_groups_are_pooled_within_their_attribute():
    table = people()
    table["race"] = np.where(np.arange(1500) < 12, "asian", table["race"]).astype(object)
    table["race"][12:20] = "other indian"
    left = audit(table, y_pred="called").improvability("other", **ASKED, **APART)
    assert left.details["groups_left_out"].keys() == {"race=asian", "race=other indian"}
    pooled = audit(table, y_pred="called").improvability(
        "other", **ASKED, **APART, small_groups="pool", min_group_size=15
    )
    assert "race=other" in pooled.details["groups"]
    assert "race=asian" not in pooled.details["groups"]
    apart = audit(table, y_pred="called").improvability(
        "other",
        **ASKED,
        **APART,
        small_groups="pool",
        min_group_size=15,
        gap="each",
        reference={"race": "white", "sex": "m"},
        delta_fairness={"race=asian": 0.2, "race=other indian": 0.1, "black": 0.0},
    )
    assert "race=other vs race=white" in [finding.group for finding in apart.findings]
    assert max(apart.details["delta_fairness"]) == 0.2


def test_a_small_reference_is_not_pooled_away_or_left_out():
    table = people()
    table["race"] = np.where(np.arange(1500) < 12, "asian", table["race"]).astype(object)
    table["race"][12:20] = "other indian"
    with pytest.raises(GroupTooSmallError, match="reference 'race=asian' is too small"):
        audit(table, group=["race"], y_pred="called").improvability(
            "other", **ASKED, reference="asian", small_groups="pool", min_group_size=15
        )
    result = audit(table, group=["race"], y_pred="called").improvability(
        "other", **ASKED, reference="other indian"
    )
    assert str(result.joint.decision) == "not tested"
    assert "rests on 8 rows of 'race=other indian'" in result.joint.notes[0].message


def test_an_attribute_with_one_testable_group_is_not_tested():
    table = people()
    table["sex"] = np.where(np.arange(1500) < 6, "f", "m")
    result = audit(table, y_pred="called").improvability("other", **ASKED, **APART)
    assert str(result.joint.decision) == "not tested"
    assert "'sex=f'" in result.joint.notes[0].message


def test_outcomes_that_are_not_known_are_bounded_for_each_attribute():
    table = people()
    table["y"] = np.where(np.arange(1500) % 10 == 0, np.nan, table["y"])
    bounded = audit(table, y_pred="called").improvability(
        "other", **(ASKED | {"fairness": "tpr"}), **APART, unlabelled="worst", accuracy_loss=0.3
    )
    known = audit(table, y_pred="called", missing="drop").improvability(
        "other", **(ASKED | {"fairness": "tpr"}), **APART, accuracy_loss=0.3
    )
    for worst, seen in zip(bounded.findings, known.findings, strict=True):
        assert worst.estimate < seen.estimate


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"gap": "each"}, 'gap="each" compares every group with a `reference`'),
        (APART | {"gap": "each", "reference": "white"}, "'sex' has none"),
        ({"reference": {"race": "white"}}, "judged separately"),
        (APART | {"reference": {"rase": "white"}}, "Did you mean 'race'"),
        (APART | {"reference": "whit"}, "there is no group 'whit'"),
        (APART | {"delta_fairness": {"rase": 0.1}}, "Did you mean 'race'"),
        (APART | {"higher_group": {"race": "white"}}, "one of two groups"),
        ({"method": "paper", "reference": "x"}, "compares two groups"),
        ({"gap": "all"}, "`gap` must be one of"),
        ({"attributes": "apart"}, "`attributes` must be one of"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(options, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        audit(y_pred="called").improvability("other", **(ASKED | options))


def test_too_many_directions_are_refused_and_named_ones_are_not():
    table = people()
    rng = np.random.default_rng(1)
    for k in range(9):
        table[f"c{k}"] = np.where(rng.random(1500) < 0.1, table["called"], table["other"])
    several = [f"c{k}" for k in range(9)]
    two = ASKED | {"fairness": ["selection_rate", "tpr"]}
    with pytest.raises(InvalidParameterError, match="may point in 900 ways"):
        audit(table, y_pred="called").improvability(several, **two)
    result = audit(table, y_pred="called").improvability(
        several,
        **ASKED,
        gap="each",
        reference="race=white & sex=m",
        higher_group="race=white & sex=m",
        rng=1,
    )
    assert result.details["n_candidates"] == 9


def test_a_ready_column_among_many_groups_has_a_frontier():
    """The gap among eight groups may point in 56 ways: 3,584 comparisons."""
    rng = np.random.default_rng(1)
    n = 8000
    group, y = rng.integers(8, size=n), rng.integers(2, size=n)
    table = {
        "g": np.array(list("abcdefgh"))[group],
        "y": y,
        "now": (rng.random(n) < np.where(y == 1, 0.8, 0.4) - 0.04 * group).astype(int),
        "then": (rng.random(n) < np.where(y == 1, 0.75, 0.25)).astype(int),
    }
    asked = eq.Audit(table, group="g", y_true="y", y_pred="now")
    options = {"fairness": "selection_rate", "accuracy_of": "population", "inference": "analytic"}
    result = asked.improvability("then", accuracy="accuracy", frontier=True, **options)
    (step,) = result.details["frontier"]
    assert step["candidate"] == "then"
    assert 0.0 < step["reduction"] < 0.28


@pytest.mark.parametrize("kind", ["indicator", "recoded", "finer"])
def test_features_that_tell_one_of_several_attributes_are_refused(kind):
    table = people()
    code = np.searchsorted(["black", "hispanic", "white"], table["race"])
    table["z"] = {
        "indicator": (code == 1).astype(float),
        "recoded": np.where(table["sex"] == "m", 2.5, -1.0),
        "finer": 10.0 * code + np.arange(1500) % 3,
    }[kind]
    asked = audit(table, y_score="now", features=["x", "z"])
    with pytest.raises(InvalidParameterError, match="'z' is the group itself, or tells it"):
        asked.improvability(LogisticRegression(), **ASKED, capacity=0.3)
    allowed = asked.improvability(
        LogisticRegression(), **ASKED, capacity=0.3, allow_group_feature=True, n_splits=1, rng=1
    )
    assert "group-feature" in [note.code for note in allowed.notes]


def test_the_dossier_tells_the_disparity_of_each_attribute():
    result = audit(y_pred="called").necessity("other", **ASKED, **APART)
    first = result.details["steps"][0]["answer"]
    assert "race=black is" in first
    assert "sex=f is" in first
    assert "race=black" not in first.partition("; ")[2]


def test_a_status_quo_that_selects_another_share_is_held_to_the_capacity():
    table = people()
    asked = audit(table, group=["sex"], y_pred="called")
    with pytest.raises(InvalidParameterError, match="the status quo selects"):
        asked.improvability("then", **ASKED, capacity=0.1)
    result = asked.improvability("then", **ASKED, capacity=0.1, capacity_match="randomise")
    assert result.details["shares"]["status_quo"] == pytest.approx(0.1, abs=1e-9)
    assert "capacity-matched" in [note.code for note in result.notes]


def test_a_trait_that_only_one_group_has_does_not_tell_the_group():
    table = people()
    for sex in ("f", "m"):
        table["z"] = ((table["sex"] == sex) & (np.arange(1500) % 9 == 0)).astype(float)
        result = audit(table, group=["sex"], y_score="now", features=["x", "z"]).improvability(
            LogisticRegression(), **ASKED, capacity=0.3, n_splits=1, rng=1
        )
        assert "group-feature" not in [note.code for note in result.notes]


def test_a_copy_of_the_group_with_noise_is_refused():
    table = people()
    table["z"] = (table["sex"] == "m") + 1e-6 * np.random.default_rng(1).normal(size=1500)
    with pytest.raises(InvalidParameterError, match="'z' is the group itself, or tells it"):
        audit(table, y_score="now", features=["x", "z"]).improvability(
            LogisticRegression(), **ASKED, capacity=0.3
        )


def test_what_is_open_is_told_by_joint_bounds():
    table = people(4000)
    table["weak"] = 0.5 * table["x"] + np.random.default_rng(2).normal(size=4000)
    asked = audit(table, group=["sex"], y_score="now")
    options = ASKED | {"capacity": 0.3, "higher_group": "sex=m"}
    one = asked.improvability("weak", **options, rng=1)
    bounds = one.details["open_bounds"]
    words = " ".join(str(one).split())
    assert "narrows the gap by at least" in words
    assert "a loss of accuracy is not excluded" in words
    low, high = one.findings[1].ci.low, one.findings[0].ci.low
    # Two bounds at once: each is weaker than one alone at 5%, near those at 2.5%.
    assert bounds["reduction"] == pytest.approx(low, abs=0.005)
    assert bounds["loss"] == pytest.approx(-high, abs=0.003)
    several = asked.improvability(["weak", "x"], **options, rng=1, accuracy_loss=0.0)
    assert several.details["n_candidates"] == 2


@pytest.mark.parametrize("options", [{"scale": "ratio"}, {"several": True}])
def test_the_printed_statistics_are_for_one_candidate_and_differences(options):
    several = options.pop("several", False)
    with pytest.raises(InvalidParameterError, match="judges one candidate by differences"):
        audit(group=["sex"], y_pred="called").improvability(
            ["other", "called"] if several else "other",
            **(ASKED | {"method": "paper"} | options),
        )


def test_the_winner_of_several_pays_for_being_chosen():
    table = people(3000)
    table["twin"] = table["then"].copy()
    asked = audit(table, group=["sex"], y_score="now")
    options = ASKED | {"capacity": 0.3, "higher_group": "sex=m", "accuracy_loss": 0.05}
    alone = asked.improvability("then", **options)
    pair = asked.improvability(["then", "twin"], **options, rng=1)
    assert pair.details["reduction_at_least"] < alone.details["reduction_at_least"]
