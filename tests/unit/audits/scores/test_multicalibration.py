import numpy as np
import pytest
from numpy.testing import assert_allclose

import equipoise as eq
from equipoise.exceptions import DataError, InvalidParameterError


@pytest.fixture
def table(rng):
    n = 4_000
    sex, age = rng.choice(["f", "m"], n), rng.choice(["old", "young"], n)
    score = rng.uniform(0.15, 0.8, n)
    wrong = (sex == "f") & (age == "old")
    y = (rng.random(n) < score + 0.12 * wrong).astype(int)
    return {"sex": sex, "age": age, "score": score, "y": y}


def audit(table, **roles):
    return eq.Audit(table, **({"group": ["sex", "age"], "y_true": "y", "y_score": "score"} | roles))


def test_the_segment_that_is_wrong_is_found_in_one_query(table):
    result = audit(table).multicalibration(rng=0)
    found = {f.group: f for f in result.findings}
    assert len(found) == 8
    assert found["sex=f & age=old"].decision == "detected"
    assert found["sex=m & age=young"].decision == "not detected"
    assert result.joint.decision == "detected"
    assert len(result.sql()) == 1
    assert "segments" in str(result)
    own = (table["sex"] == "f") & (table["age"] == "old")
    assert_allclose(found["sex=f & age=old"].estimate, np.mean((table["y"] - table["score"])[own]))


def test_segments_may_be_other_columns_than_groups(table):
    result = audit(table, group="sex").multicalibration(["age"], hypothesis="parity", rng=0)
    assert [f.group for f in result.findings] == ["age=old", "age=young"]


def test_a_count_stands_for_as_many_rows(table):
    half = {name: values[:2_000] for name, values in table.items()}
    twice = audit({name: np.tile(values, 2) for name, values in half.items()})
    counted = audit(half | {"n": np.full(2_000, 2)}, count="n")
    for one, two in zip(
        twice.multicalibration(rng=0).findings,
        counted.multicalibration(rng=0).findings,
        strict=True,
    ):
        assert_allclose([one.estimate, one.p_value], [two.estimate, two.p_value])
        assert one.n == two.n


def test_repeated_rows_are_not_evidence(table):
    """Every row four times is as much as one row, when the copies are known to be one person."""
    few = {name: values[:600] for name, values in table.items()}
    four = {name: np.tile(values, 4) for name, values in few.items()}
    once = audit(few).multicalibration(depth=1, rng=0)
    rows = audit(four).multicalibration(depth=1, rng=0)
    people = audit(four | {"u": np.tile(np.arange(600), 4)}, cluster="u")
    found = people.multicalibration(depth=1, rng=0)
    assert_allclose(
        [f.p_value for f in found.findings], [f.p_value for f in once.findings], atol=0.1
    )
    assert rows.joint.p_value < 0.5 * once.joint.p_value
    assert_allclose([f.estimate for f in found.findings], [f.estimate for f in once.findings])
    assert people.multicalibration(hypothesis="parity", rng=0).joint.p_value > 0.001


def test_a_segment_of_few_people_is_not_tested_and_says_so(table):
    own = (table["sex"] == "f") & (table["age"] == "old")
    people = np.where(own, np.arange(4_000) % 3, np.arange(4_000))
    result = audit(table | {"u": people}, cluster="u").multicalibration(rng=0)
    found = {f.group: f for f in result.findings}
    few = found["sex=f & age=old"]
    assert few.decision == "not tested"
    assert few.notes[0].code == "too-few-units"
    assert "3.0 effective" in few.notes[0].message
    assert found["sex=m & age=young"].decision == "not detected"


def test_scores_that_claim_certainty_are_refuted_by_one_row(table):
    sure = (table["score"] > 0.4).astype(float)
    wrong = int(np.sum(sure != table["y"]))
    result = audit(table | {"score": sure}).multicalibration(rng=0)
    assert {f.decision.value for f in result.findings} == {"not tested"}
    (note,) = (note for note in result.notes if note.code == "refuted-certainty")
    assert note.message.startswith(f"{wrong} rows")
    parity = audit(table | {"score": sure}).multicalibration(hypothesis="parity", rng=0)
    assert "refuted-certainty" not in {note.code for note in parity.notes}


def test_what_cannot_be_tested_is_named(table):
    rare = table["sex"].copy()
    rare[:12] = "x"
    result = audit(table | {"sex": rare}).multicalibration(depth=1, rng=0)
    (none,) = [f for f in result.findings if f.decision == "not tested"]
    assert none.group == "sex=x"
    assert "information" in none.notes[0].message


@pytest.mark.parametrize(
    ("change", "roles", "error", "message"),
    [
        ({"score": np.full(4_000, 2.0)}, {}, DataError, r"in \[0, 1\]; 4000 rows are outside"),
        ({"score": np.full(4_000, -1e40)}, {}, DataError, r"in \[0, 1\]; 4000 rows are outside"),
        ({"y": np.arange(4_000) % 3}, {}, DataError, "`y_true` must be 0 or 1"),
        ({}, {"group": None}, InvalidParameterError, "columns that make `segments`"),
    ],
)
def test_what_is_refused(table, change, roles, error, message):
    with pytest.raises(error, match=message):
        audit(table | change, **roles).multicalibration()
