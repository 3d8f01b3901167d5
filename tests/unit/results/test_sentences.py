"""Gaps are told in the words of the columns, and say who is worse off."""

import pickle
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import equipoise as eq
from equipoise._names import GroupName
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision
from equipoise.results.sentences import (
    gap_sentence,
    group_words,
    group_writer,
    lead,
    lead_sentence,
    least,
    pair_sentence,
    points,
    share,
    size_sentence,
    worse_off,
)
from equipoise.results.wording import headline, largest, names
from equipoise.results.words import MetricWords, Words
from support.specimens import finding, joint, result

FOUND = Decision.DETECTED
FPR = MetricWords(noun="false positive rate", event="selected", among="no_outcome", better="lower")
SELECTED = MetricWords(noun="selection rate", event="selected", better="higher")
DEMO = Words(
    people="defendants",
    selected="were labelled high risk",
    not_selected="were labelled low risk",
    no_outcome="did not reoffend",
    metrics={"fpr": FPR},
    labels={"race.A": "African-American people", "race.B": "Black defendants", "sex.m": "men"},
)
RATE = Estimand("selection_rate", "gap", scale="difference", noun="selection rate")


def told(line, own, other, **changes):
    values = [{"group": line.group, "group_value": own, "target_value": other, "se": 0.01}]
    details = changes.pop("details", {}) | {"values": values}
    return gap_sentence(line, result(findings=[line], details=details, **changes))


def test_a_gap_in_error_rates_has_both_rates_the_bound_and_who_is_worse_off():
    line = finding(
        GroupName([("race", "A")]), 0.214, 0.167, 0.26, n=1795, reference="race=Caucasian"
    )
    assert told(line, 0.448, 0.235, words=DEMO, details={"simultaneous": True}) == (
        "Among defendants who did not reoffend, 44.8% of African-American people and 23.5% of"
        " race=Caucasian were labelled high risk: 21.4 percentage points more, at least 16.7"
        " (joint 95% interval 16.7 to 26.0; 1,795 defendants), so African-American people are"
        " worse off"
    )


def test_fewer_of_the_bad_label_is_better_and_numbers_stay_positive():
    line = finding("race=B", -0.05, -0.08, -0.02)
    sentence = told(line, 0.1, 0.15, words=DEMO)
    assert "5.0 percentage points fewer, at least 2.0 (95% interval 2.0 to 8.0" in sentence
    assert sentence.endswith("so race=B are better off")


@pytest.mark.parametrize(("own", "other", "event"), [(0.2, 0.3, "high"), (0.8, 0.7, "low")])
def test_of_a_decision_and_its_opposite_the_rarer_is_named(own, other, event):
    words = Words(
        selected="were high", not_selected="were low", metrics={"selection_rate": SELECTED}
    )
    line = finding("g=1", own - other, own - other - 0.05, own - other + 0.05, estimand=RATE)
    sentence = told(line, own, other, words=words)
    assert sentence.startswith(f"20.0% of g=1 and 30.0% of everybody were {event}: 10.0 percentage")
    assert "points fewer, at least 5.0" in sentence
    assert sentence.endswith("are worse off" if event == "high" else "are better off")


def test_at_one_half_the_favourable_wording_does_not_depend_on_the_coding():
    for event in ("selected", "not_selected"):
        told_by = MetricWords(noun="rate", event=event)
        words = Words(metrics={"selection_rate": told_by})
        line = finding("g=1", 0.0, -0.1, 0.1, estimand=RATE)
        assert "were selected" in told(line, 0.5, 0.5, words=words)


def test_a_ratio_of_rates_is_told_as_times_the_rate():
    line = finding(
        "g=1", 0.67, 0.56, 0.8, estimand=Estimand("selection_rate", "gap", scale="ratio")
    )
    words = Words(selected="were called", metrics={"selection_rate": SELECTED})
    assert told(line, 0.064, 0.097, words=words, details={"null_value": 1.0}) == (
        "6.4% of g=1 and 9.7% of everybody were called: 0.67 times the rate, at most 0.8 (95%"
        " interval 0.56 to 0.8; 100 people), so g=1 are worse off"
    )


def test_accuracy_is_told_as_right_decisions():
    right = MetricWords(noun="accuracy", event="right", better="higher")
    line = finding("g=1", -0.1, -0.2, -0.05, estimand=Estimand("accuracy", "gap"))
    sentence = told(line, 0.6, 0.7, words=Words(metrics={"accuracy": right}))
    assert sentence.startswith(
        "The decision is right for 60.0% of g=1 and 70.0% of everybody: 10.0"
    )


def test_numbers_of_any_kind_name_their_noun():
    mean = MetricWords(noun="mean of `cost`")
    line = finding("g=1", 12.5, 2.0, 20.0, estimand=Estimand("mean_outcome", "gap"))
    words = Words(metrics={"mean_outcome": mean})
    assert told(line, 112.5, 100.0, words=words).startswith(
        "The mean of `cost` is 112 for g=1 and 100 for everybody: 12.5 higher, at least 2"
    )


@pytest.mark.parametrize("reference", ["0.5", "0.5 (external, se 0.01)"])
def test_a_number_is_no_group_beside_which_another_stands(reference):
    line = finding(
        GroupName([("race", "A")]), -0.1, -0.2, -0.05, reference=reference, estimand=RATE
    )
    selected = Words(metrics={"selection_rate": SELECTED}, people="people")
    sentence = told(line, 0.4, 0.5, words=selected)
    assert sentence.startswith(
        "40.0% of race: A were selected, compared with 50.0%: 10.0 percentag"
    )
    right = Words(metrics={"selection_rate": MetricWords(noun="accuracy", event="right")})
    sentence = told(line, 0.4, 0.5, words=right)
    assert sentence.startswith("The decision is right for 40.0% of race: A, compared with 50.0%: ")
    mean = Words(metrics={"selection_rate": MetricWords(noun="mean of `cost`")})
    sentence = told(line, 0.4, 0.5, words=mean)
    assert sentence.startswith("The mean of `cost` is 0.4 for race: A, compared with 0.5: 0.1 lowe")


def test_without_an_interval_the_number_of_people_is_still_said():
    line = finding("g=1", 0.1, ci=None)
    assert told(line, 0.4, 0.3, words=DEMO).endswith(
        "10.0 percentage points more (100 defendants), so g=1 are worse off"
    )


def test_rows_of_clusters_are_not_called_people():
    line = finding("g=1", 0.1, 0.05, 0.2)
    assert "100 rows" in told(line, 0.4, 0.3, details={"n_clusters": 12})


def test_no_gap_is_neither_worse_nor_better():
    line = finding("g=1", 0.0, -0.1, 0.1)
    assert worse_off(line, result(findings=[line], words=DEMO)) is None


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ([("race", "A")], "African-American people"),
        ([("sex", "m"), ("race", "A")], "African-American men"),
        ([("race", "B"), ("sex", "m")], "Black men"),
        ([("race", "B"), ("sex", "f")], "Black defendants, sex: f"),
        ([("age", "25-45")], "age: 25-45"),
        ([("race", "X"), ("sex", "m")], "those men"),
    ],
)
def test_groups_are_named_as_people_say_them(parts, name):
    labels = dict(DEMO.labels) | {"race.X & sex.m": "those men"}
    words = Words(people="defendants", labels=labels)
    assert group_words(GroupName(parts), words) == name


def test_a_name_keeps_its_parts_when_pickled():
    name = GroupName([("race", "A & b=c"), ("sex", "m")])
    again = pickle.loads(pickle.dumps(name))
    assert (again, again.parts) == (name, name.parts)


def test_what_is_shown_decides_who_leads_not_the_estimate():
    wide = finding("g=wide", 0.4, 0.01, 0.8, decision=FOUND, n=40)
    narrow = finding("g=narrow", 0.2, 0.15, 0.25, decision=FOUND, n=900)
    tiny = finding("g=tiny", 0.9, 0.6, 1.0, decision=FOUND, n=5)
    better = finding("g=better", -0.5, -0.6, -0.4, decision=FOUND, n=900)
    audit = result(findings=[wide, narrow, tiny, better], words=DEMO)
    assert lead(audit.findings, audit) == narrow
    assert lead([tiny], audit) is None
    assert lead_sentence([tiny], audit) == ""
    assert headline(result(findings=[tiny])) == (
        "1 of 1 group differs at the 5% level, all of them smaller than 30 rows."
    )
    assert headline(result(findings=[wide, narrow]).disclosed(min_cell=1000)) == (
        "2 of 2 groups differ at the 5% level, all of them withheld."
    )


def test_of_two_gaps_that_mirror_each_other_the_name_does_not_decide_which_leads():
    less = finding("g=less", -0.2, -0.25, -0.15, decision=FOUND, reference="the rest")
    more = finding("g=more", 0.2, 0.15, 0.25, decision=FOUND, reference="the rest")
    for lines in ([less, more], [more, less]):
        audit = result(findings=lines)
        assert lead(lines, audit) == largest(lines, audit) == less
        assert names(lines, audit) == "g=less; g=more"


def test_five_people_are_not_named_by_a_flag():
    tiny = finding("g=tiny", 0.9, 0.6, 1.0, decision=FOUND, n=5)
    assert "tiny" not in headline(result("flag", [tiny], details={"alternative": "greater"}))
    assert "tiny" not in headline(result("certify", [tiny], details={"margin": 0.1}))


def test_a_joint_difference_without_a_group_says_so():
    audit = result(findings=[finding("g=1", 0.1, -0.1, 0.3)], joint=joint())
    assert "differs between groups (joint test p <0.001), though none of 1 is shown" in headline(
        audit
    )


@pytest.mark.parametrize(
    ("low", "high", "scale", "distance"),
    [
        (0.1, 0.3, "difference", 0.1),
        (-0.3, -0.2, "difference", 0.2),
        (-0.1, 0.3, "difference", 0.0),
        (None, -0.2, "difference", 0.2),
        (0.1, None, "difference", 0.1),
        (0.5, 0.5, "ratio", 0.693147),
        (0.0, 0.0, "ratio", float("inf")),
    ],
)
def test_what_is_shown_is_the_end_of_the_interval_nearest_to_nothing(low, high, scale, distance):
    null = 1.0 if scale == "ratio" else 0.0
    line = finding("g=1", 0.2, low, high, estimand=Estimand("fpr", "gap", scale=scale))
    assert least(line, null) == pytest.approx(distance, rel=1e-5)


def test_nothing_is_shown_without_an_interval():
    assert least(finding("g=1", 0.2, ci=None), 0.0) == 0.0


def test_shares_have_one_decimal_and_small_ones_two_digits():
    assert [share(value) for value in (0.448, 0.0042, 0.0)] == ["44.8%", "0.42%", "0.0%"]
    assert points(-0.05) == "-5.0"
    assert {points(-0.0), points(1e-16), points(-1e-16)} == {"0.0"}


def test_words_survive_the_file():
    audit = result(findings=[finding(GroupName([("race", "A")]), 0.1, 0.05, 0.2)], words=DEMO)
    again = type(audit).from_dict(audit.to_dict())
    assert again.words == DEMO
    assert again.findings[0].group.parts == (("race", "A"),)


def paired(line, own, other, **changes):
    values = [{"group": line.group, "group_value": own, "target_value": other, "se": None}]
    return pair_sentence(line, result(findings=[line], details={"values": values}, **changes))


def test_of_a_pair_whoever_is_worse_off_comes_first_and_the_good_decision_is_counted():
    better = MetricWords(noun="selection rate", event="selected", better="lower")
    words = Words(
        selected="were denied",
        not_selected="were approved",
        favourable="not_selected",
        metrics={"selection_rate": better},
    )
    line = finding("g=1", -0.3, -0.4, -0.2, estimand=RATE, reference="g=2")
    assert paired(line, 0.4, 0.7, words=words) == (
        "30.0% of g=2 and 60.0% of g=1 were approved, so g=2 are worse off"
    )
    unknown = Words(metrics={"selection_rate": MetricWords(noun="rate", event="selected")})
    assert paired(line, 0.4, 0.7, words=unknown) == "40.0% of g=1 and 70.0% of g=2 were selected"
    assert paired(line, None, 0.7, words=words) == ""


def test_a_pair_of_numbers_names_their_noun():
    mean = MetricWords(noun="mean of `cost`", better="lower")
    line = finding("g=1", 12.5, 2.0, 20.0, estimand=Estimand("cost", "gap"), reference="g=2")
    assert paired(line, 112.5, 100.0, words=Words(metrics={"cost": mean})) == (
        "The mean of `cost` is 112 for g=1 and 100 for g=2, so g=1 are worse off"
    )


@pytest.mark.parametrize(
    ("metric", "scale", "estimate", "sentence"),
    [
        (
            MetricWords(noun="rate", event="selected", among="outcome", better="higher"),
            "difference",
            -0.1,
            "who have the outcome, 10.0 percentage points fewer of g=1 than of g=2 were selected",
        ),
        (
            MetricWords(noun="rate", event="not_selected", better="lower"),
            "difference",
            -0.1,
            "10.0 percentage points more of g=1 than of g=2 were selected",
        ),
        (
            MetricWords(noun="rate", event="selected"),
            "ratio",
            1.2,
            "the rate of g=1 is 1.2 times that of g=2",
        ),
        (
            MetricWords(noun="accuracy", event="right", better="higher"),
            "difference",
            0.1,
            "the accuracy of g=1 is 0.1 higher than that of g=2",
        ),
    ],
)
def test_the_size_of_a_gap_is_told_without_values(metric, scale, estimate, sentence):
    words = Words(favourable="selected", metrics={"m": metric})
    estimand = Estimand("m", "gap", scale=scale)
    line = finding("g=1", estimate, ci=None, estimand=estimand, reference="g=2")
    details = {"null_value": 1.0 if scale == "ratio" else 0.0}
    audit = result(findings=[line], words=words, details=details)
    comma = " " if sentence.startswith("who") else ", "
    end = {True: ", so g=1 are worse off", False: ", so g=1 are better off", None: ""}
    whole = f"{sentence} (100 people){end[worse_off(line, audit)]}"
    assert size_sentence(line, audit, alike="age") == f"Among people alike in age{comma}{whole}"
    alone = f"among people {whole}" if sentence.startswith("who") else whole
    assert size_sentence(line, audit) == alone[:1].upper() + alone[1:]


def test_what_is_shown_of_a_gap_is_the_near_end_of_its_interval():
    def finding(low, high, scale="difference"):
        return SimpleNamespace(
            ci=ConfidenceInterval(low=low, high=high), estimand=SimpleNamespace(scale=scale)
        )

    assert least(finding(0.1, 0.3), 0.0) == pytest.approx(0.1)
    assert least(finding(-0.3, -0.1), 0.0) == pytest.approx(0.1)
    assert least(finding(None, 0.3), 0.0) == 0.0
    assert least(finding(0.25, 0.5, "ratio"), 1.0) == pytest.approx(np.log(2.0))
    assert least(SimpleNamespace(ci=None), 0.0) == 0.0


def test_labels_that_do_not_join_are_set_apart():
    both = GroupName([("sex", "m"), ("race", "C")])
    labels = {"sex.m": "men", "race.C": "defendants of other races"}
    assert group_words(both, Words(people="defendants", labels=labels)) == labels["race.C"].join(
        ["men, ", ""]
    )
    labels["race.C"] = "Asian defendants"
    assert group_words(both, Words(people="defendants", labels=labels)) == "Asian men"


def test_a_reference_that_the_data_chose_is_named_as_a_group():
    best = finding(GroupName([("sex", "w")]), 1.0, 1.0, 1.0, estimand=RATE)
    line = finding(
        GroupName([("sex", "m")]), -0.2, -0.3, -0.1, estimand=RATE, reference="the highest (sex=w)"
    )
    values = [{"group": line.group, "group_value": 0.4, "target_value": 0.6, "se": 0.01}]
    tables = [{"highest": "sex=w", "categories": ["sex=m", "sex=w"]}]
    words = Words(metrics={"selection_rate": SELECTED}, selected="were hired")
    found = result(findings=[best, line], words=words, details={"values": values, "tables": tables})
    assert gap_sentence(line, found).startswith("40.0% of sex: m and 60.0% of sex: w were hired")


def writer(*groups, labels=None):
    """What writes the groups of a result of these columns and labels."""
    lines = [finding(GroupName(parts), 0.1, 0.0, 0.2) for parts in groups]
    return group_writer(result(findings=lines, words=Words(labels=labels or {})))


@pytest.mark.parametrize(
    ("groups", "text", "words"),
    [
        ([[("g", "a")]], "a gap to g=a, as a test", "a gap to g: a, as a test"),
        ([[("g", "a")], [("g", "ab")]], "g=ab, g=a", "g: ab, g: a"),
        ([[("g", "a")], [("g", "a b")]], "from g=a b or g=a", "from g: a b or g: a"),
        ([[("g", "a")]], "g=ab, g=a-b, g=a.5 and bag=a, x-g=a", None),
        ([[("g", "<b>")], [("g", "a.*(")]], "g=<b>: p, g=a.*(", "g: <b>: p, g: a.*("),
        ([[("g", "a.*")]], "g=axx and g=a+", None),
        ([[("gap", "no")]], "no gap, and no gap=no", "no gap, and no gap: no"),
        ([[("g", "a")]], "g=a & h=x, h=x & g=a", None),
        ([[("g", "a"), ("h", "x")], [("g", "a")]], "(g=a & h=x)", "(g: a, h: x)"),
        ([[("g", r"\1")]], r"g=\1", r"g: \1"),
        ([[("g", "h=b")], [("h", "b")]], "g=h=b; h=b", "g: h=b; h: b"),
    ],
)
def test_groups_in_a_text_are_written_in_words(groups, text, words):
    assert writer(*groups)(text) == (text if words is None else words)


def test_words_of_a_plan_are_not_read_again():
    written = writer([("g", "a")], [("h", "b")], labels={"g.a": "people with h=b", "h.b": "women"})
    assert written("g=a or h=b") == "people with h=b or women"
    assert writer()("no group differs from g=a") == "no group differs from g=a"


NAMES = st.text(min_size=1, max_size=6).filter(lambda text: text.strip() == text != "")


@given(st.lists(st.tuples(NAMES, NAMES), max_size=4), st.text(st.sampled_from('ab=&. -<"\\(')))
def test_a_text_without_names_of_groups_is_unchanged(groups, text):
    assume(not any(GroupName([pair]) in text for pair in groups))
    assert writer(*([pair] for pair in groups))(text) == text


@given(NAMES, NAMES)
def test_a_group_at_the_end_of_a_text_is_written_whole(column, label):
    name = GroupName([(column, label)])
    assert writer(name.parts)(f"no group differs from {name}") == (
        f"no group differs from {column}: {label}"
    )


def test_the_numbers_of_people_of_both_sides_are_told_where_the_other_is_a_group():
    rows = {"g": ["a"] * 60 + ["b"] * 90, "d": [1] * 40 + [0] * 20 + [1] * 20 + [0] * 70}
    audit = eq.Audit(rows, group="g", y_pred="d")
    assert "; 90 and 60 people)" in headline(
        audit.disparity("selection_rate", reference={"g": "a"})
    )
    beside_all = headline(audit.disparity("selection_rate"))
    assert re.search(r"; (60|90) people\)", beside_all)
