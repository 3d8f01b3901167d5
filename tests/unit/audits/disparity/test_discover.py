import re

import numpy as np
import pytest

import equipoise as eq
from equipoise import Decision
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.report.over_time_tables import discover_tables
from equipoise.results.disclosure import disclosed
from equipoise.results.wording import headline, question_words
from equipoise.stats.disparity.discovery import discover_subgroups

RNG = np.random.default_rng(7)
N = 6000
AGE = RNG.integers(18, 80, N)
HOME = RNG.choice(["rent", "own"], N)
YOUNG = (AGE <= 33) & (HOME == "rent")
TABLE = {
    "age": AGE,
    "home": HOME,
    "region": RNG.choice(list("nsew"), N),
    "y": RNG.integers(0, 2, N),
    "s": RNG.lognormal(size=N) + 0.8 * YOUNG,
    "w": RNG.uniform(0.5, 2.0, N),
    "u": RNG.integers(0, 2500, N).astype(str),
    "kind": np.where(RNG.random(N) < 0.5, "discover", "test"),
    "one": np.ones(N),
    "id": [f"person {k}" for k in range(N)],
}
WRONG = RNG.random(N) < 0.2 + 0.18 * YOUNG
TABLE["p"] = np.where(WRONG, 1 - TABLE["y"], TABLE["y"])
FEATURES = ["age", "home", "region"]
ROLES = {"y_true": "y", "y_pred": "p", "y_score": "s", "features": FEATURES}


def audit(**changes):
    return eq.Audit(TABLE, **(ROLES | changes))


def test_the_lattice_agrees_with_the_engine_on_arrays():
    direct = discover_subgroups(WRONG, {name: TABLE[name] for name in FEATURES})
    result = audit().discover("error_rate")
    assert [f.group for f in result.findings] == [one.label for one in direct.subgroups]
    assert [f.p_value for f in result.findings] == [one.p_value for one in direct.subgroups]
    assert result.details["n_rejected"] == len(direct.rejected)
    assert result.findings[0].group == "age <= 33 & home=rent"


def test_the_headline_says_it_as_a_person_would():
    told = headline(audit().discover("error_rate"))
    clearest = r"whose home is rent, ([\d.]+) percentage points higher, at least ([\d.]+) percent"
    found = re.search(clearest, told)
    assert found is not None
    assert 0.0 < float(found[2]) < float(found[1])
    assert "5% chance that any is false" in told
    calm = headline(audit().discover("error_rate", features="region"))
    assert "Nothing found among 4 subgroups" in calm
    assert re.search(r"80% chance from a gap of about [\d.]+ percentage points\.", calm)


def test_a_subgroup_is_not_the_clearest_where_others_are_withheld():
    wrong = np.arange(4000) % 10 < np.repeat([9, 4, 2, 1], [300, 700, 1000, 2000])
    job = np.repeat(list("abcd"), [300, 700, 1000, 2000])
    table = {"job": job, "y": np.zeros(4000), "p": wrong.astype(int)}
    result = eq.Audit(table, y_true="y", y_pred="p").discover("error_rate", features="job")
    assert "; the clearest: people whose job is a, " in headline(result)
    few = headline(result.disclosed(min_cell=301))
    assert "; the clearest of those not withheld: people whose" in few


def test_the_question_names_what_was_looked_for_though_nothing_is_found():
    calm = audit().discover("error_rate", features="region")
    assert not calm.findings
    assert question_words(calm) == "Which subgroups that nobody named differ in error rate?"


def test_a_subgroup_is_printed_as_its_conditions_are_said():
    result = audit().discover("error_rate")
    for text in (str(result), result._repr_html_()):
        assert "age is at most 33, home is rent" in text
        assert "home=rent" not in text


def test_subgroups_that_larger_ones_explain_are_folded():
    result = audit().discover("error_rate")
    assert result.details["n_rejected"] > len(result.findings)
    assert "folded" in {note.code for note in result.notes}
    said, folded, nearest = discover_tables(result)
    assert said.rows[0][0] == "people whose age is at most 33 and whose home is rent"
    assert all(row[0].startswith("people whose ") for row in (*folded.rows, *nearest.rows))
    assert folded.rows
    assert nearest.rows
    assert len(discover_tables(audit().discover("error_rate", features="region"))) == 1


def test_rows_outside_the_denominator_do_not_count():
    result = audit().discover("fpr")
    negative = TABLE["y"] == 0
    assert result.n == negative.sum()
    direct = discover_subgroups(
        TABLE["p"][negative], {name: TABLE[name][negative] for name in FEATURES}
    )
    assert [f.group for f in result.findings] == [one.label for one in direct.subgroups]


@pytest.mark.parametrize("extra", [{}, {"cluster": "u"}, {"weight": "w"}])
def test_real_values_clusters_and_weights_are_searched_in_one_part(extra):
    result = audit(**extra).discover("mean_score", rng=1)
    assert result.details["method"] == "split"
    assert any("home=rent" in f.group for f in result.findings)
    assert result.details["at_least"] >= 1
    assert result.details["n_tested_rows"] < N
    assert {f.decision for f in result.findings} == {Decision.DETECTED}


def test_a_column_can_say_which_rows_are_searched():
    result = audit().discover("error_rate", method="split", split="kind")
    assert result.details["n_tested_rows"] == (TABLE["kind"] == "test").sum()
    with pytest.raises(DataError, match='must hold "discover" and "test"'):
        audit().discover("mean_score", split="region")


def test_groups_are_features_by_default_and_missing_is_a_level():
    home = HOME.astype(object)
    home[WRONG & (RNG.random(N) < 0.9)] = None
    table = TABLE | {"home": home}
    result = eq.Audit(table, y_true="y", y_pred="p", group="home").discover("error_rate")
    assert result.details["features"] == ["home"]
    assert "home=missing" in {f.group for f in result.findings}
    age = AGE.astype(float)
    age[WRONG & (RNG.random(N) < 0.5)] = np.nan
    found = eq.Audit(TABLE | {"age": age}, **ROLES).discover("error_rate", features="age")
    assert "age=missing" in {f.group for f in found.findings}
    whole = [None if np.isnan(a) else int(a) for a in age]
    again = eq.Audit(TABLE | {"age": whole}, **ROLES).discover("error_rate", features="age")
    assert [f.group for f in again.findings] == [f.group for f in found.findings]


def test_decimals_dates_and_truth_values_are_features():
    from datetime import date
    from decimal import Decimal

    table = TABLE | {
        "amount": [Decimal(int(a)) / 2 for a in AGE],
        "day": [date(2026, 1, 1 + int(a) % 3) for a in AGE],
        "rents": (HOME == "rent").tolist(),
    }
    result = eq.Audit(table, **ROLES).discover("error_rate", features=["amount", "day", "rents"])
    assert result.findings[0].group == "amount <= 16.5 & rents=True"


def test_huge_integers_of_which_some_are_missing_are_a_feature():
    code = [None if k % 50 == 0 else (2**62, -(2**63))[k % 2] for k in range(400)]
    table = {"code": code, "y": [0, 1] * 200, "p": [1, 1, 0, 0] * 100}
    found = eq.Audit(table, y_true="y", y_pred="p").discover("accuracy", features=["code"])
    assert found.n == 400
    assert found.details["n_rejected"] == 0


def test_a_count_is_that_many_rows_whatever_the_method():
    times = np.random.default_rng(0).integers(0, 5, N)
    counted = TABLE | {"k": times}
    repeated = {name: np.repeat(column, times) for name, column in TABLE.items()}
    for options in ({"metric": "error_rate"}, {"metric": "mean_score", "rng": 1}):
        one = eq.Audit(counted, count="k", **ROLES).discover(**options)
        two = eq.Audit(repeated, **ROLES).discover(**options)
        assert one.to_dict() == two.to_dict()


def test_one_sided_searches_look_one_way():
    low = audit().discover("error_rate", alternative="less")
    assert all(f.estimate < 0 for f in low.findings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": ["id"]}, "like an identifier"),
        ({"features": ["p"]}, "'p' is the y_pred that the metric is made of"),
        ({"features": ["ages"]}, "Did you mean 'age'"),
        ({"features": ["one"]}, "No feature splits the rows"),
        ({"features": ["one"], "metric": "mean_score"}, "No feature splits the rows"),
        ({"metric": "mean_score", "method": "lattice"}, "pass method='split'"),
        ({"metric": eq.Metric("r", "s", "w")}, "denominator is 0 or 1"),
        ({"metric": eq.Metric("c", "one")}, "the same in all rows"),
        ({"depth": 0}, "depth"),
        ({"min_size": 0.5, "features": "region"}, "No subgroup has"),
        ({"method": "tree"}, "'auto', 'lattice', 'split'"),
    ],
)
def test_what_cannot_be_searched_gets_a_sentence(options, message):
    with pytest.raises((InvalidParameterError, DataError), match=message):
        audit().discover(**({"metric": "error_rate"} | options))


def test_more_sentences():
    with pytest.raises(InvalidParameterError, match="needs columns to make subgroups of"):
        audit(features=None).discover("error_rate")
    with pytest.raises(DataError, match="the cluster, an identifier"):
        audit(cluster="u").discover("error_rate", features=["age", "u"])
    with pytest.raises(DataError, match="not defined on any row"):
        eq.Audit(TABLE | {"y": np.ones(N, int)}, **ROLES).discover("fpr")


def test_the_picture_is_a_ranked_forest():
    result = audit().discover("error_rate")
    axes = result.plot()
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels[0] == "age is at most 33, home is rent"
    # Intervals allow for everything that was looked at.
    assert "95% intervals, joint" in axes.figure.get_suptitle()
    bounds = [row["bound"] for row in result.details["shown"]]
    assert bounds == sorted(bounds, key=lambda bound: -abs(bound))


@pytest.mark.parametrize("roles", [{}, {"weight": "w"}, {"cluster": "c"}, {"split": "part"}])
def test_a_split_search_knows_neither_the_order_of_rows_nor_names(roles):
    rng = np.random.default_rng(3)
    n = 2500
    # Outcomes, weights and features tie in many rows.
    table = {
        "a": rng.choice(["x", "y", "z"], n),
        "b": rng.integers(0, 3, n),
        "age": rng.integers(18, 80, n),
        "w": rng.integers(1, 4, n),
        "c": rng.integers(0, 700, n),
        "part": rng.choice(["discover", "test"], n),
    }
    table["y"] = rng.integers(0, 6, n) + 1.5 * ((table["a"] == "x") & (table["b"] == 1))
    split = roles.pop("split", 0.5)

    def found(data):
        result = eq.Audit(data, y_true="y", **roles).discover(
            "mean_outcome", features=["a", "b", "age"], split=split, rng=1
        )
        told = [*result.details["shown"], *result.details["nearest"]]
        return [(one["n"], one["gap"], one["p_value"]) for one in told]

    order = rng.permutation(n)
    other = {name: column[order] for name, column in table.items()}
    assert found(other) == found(table)
    named = {"x": "q", "y": "b", "z": "a"}
    other["a"] = np.array([named[level] for level in other["a"]])
    other["c"] = 9999 - other["c"]
    assert found(other) == found(table)
    assert found(table)


def test_a_detected_subgroup_says_when_its_interval_is_wider_than_its_test():
    rng = np.random.default_rng(0)
    n = 3000
    table = {"a": rng.choice(["x", "y"], n), "b": rng.choice(["u", "v"], n)}
    table["y"] = rng.normal(size=n) + 0.5 * (table["a"] == "x") + 0.5 * (table["b"] == "u")
    result = eq.Audit(table, y_true="y").discover("mean_outcome", features=["a", "b"], rng=1)
    tests = result.details["n_tests"]
    noted = [bool(f.notes) for f in result.findings]
    assert noted == [f.p_value < min(tests * f.p_value_raw, 1.0) for f in result.findings]
    assert any(noted)
    assert not all(noted)
    assert {note.code for f in result.findings for note in f.notes} == {"interval-unadjusted"}


def test_nobody_is_told_by_the_difference_of_two_subgroups():
    rng = np.random.default_rng(4)
    n = 4000
    job, flat = rng.choice(["a", "b"], n), np.array(["yes"] * n)
    flat[np.flatnonzero(job == "a")[:2]] = "no"
    flat[np.flatnonzero(job == "b")[:900]] = "no"
    wrong = rng.random(n) < np.where(job == "a", 0.4, 0.2)
    table = {"job": job, "flat": flat, "y": np.zeros(n), "p": wrong.astype(int)}
    result = eq.Audit(table, y_true="y", y_pred="p").discover(
        "error_rate", features=["job", "flat"], depth=2
    )
    names = {one["group"]: one["n"] for one in result.details["rejected"]}
    assert names["job=a"] - names["job=a & flat=yes"] == 2
    told = {one["group"] for one in disclosed(result).details["rejected"]}
    assert "job=a" in told
    assert "job=a & flat=yes" not in told
    assert disclosed(result, 1) is result
