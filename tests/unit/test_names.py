import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise._names import GroupName, condition, joined_labels

TEXT = st.text(alphabet='ab"=& \\', max_size=9)
PARTS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=3)


@given(one=PARTS, other=PARTS)
def test_groups_that_differ_have_names_that_differ(one, other):
    assert (str(GroupName(one)) == str(GroupName(other))) == (one == other)


@given(one=st.tuples(TEXT, TEXT), other=st.tuples(TEXT, TEXT))
def test_labels_that_differ_are_joined_to_words_that_differ(one, other):
    assert (joined_labels(one) == joined_labels(other)) == (one == other)


def test_labels_of_every_day_are_written_as_they_are():
    assert condition("firm", "Smith & Sons") == "firm=Smith & Sons"
    assert condition("income", "a=b") == "income=a=b"
    assert str(GroupName([("race", 'the "other"'), ("sex", "f")])) == 'race=the "other" & sex=f'


@pytest.mark.parametrize(
    ("question", "options"),
    [("disparity", ["selection_rate"]), ("flag", ["selection_rate"]), ("multicalibration", [])],
)
def test_a_label_that_reads_like_an_intersection_is_another_group(question, options):
    rng = np.random.default_rng(0)
    n = 2000
    race, sex = rng.choice(["a", "b", "a & sex=m"], n), rng.choice(["m", "f"], n)
    rows = {"race": race, "sex": sex, "p": rng.integers(2, size=n), "s": rng.random(n)}
    audit = eq.Audit(rows, group=["race", "sex"], y_true="p", y_pred="p", y_score="s")
    found = {f.group: f.n for f in getattr(audit, question)(*options).findings}
    assert len(found) == 3 + 2 + 6
    assert found['race="a & sex=m"'] == np.sum(race == "a & sex=m")
    assert found["race=a & sex=m"] == np.sum((race == "a") & (sex == "m"))


def test_a_few_people_are_withheld_under_the_name_of_many():
    rows = {"race": ["a"] * 400 + ["a & sex=m"] * 300, "sex": ["m"] * 3 + ["f"] * 397 + ["m"] * 300}
    rows["p"] = [0, 1] * 350
    result = eq.Audit(rows, group=["race", "sex"], y_pred="p").disparity("selection_rate")
    (few,) = [f for f in result.findings if f.n == 3]
    (told,) = [f for f in result.disclosed(min_cell=10).findings if f.group == few.group]
    assert told.withheld
