"""What users see is what they saw: results, tables, pages and command line, frozen.

After a change that is meant, ``python tests/golden/bless.py`` stores the new state.
"""

import copy

import pytest

from golden.cases import CASES, ON_SPARK, RUNS, table
from golden.golden import EXPECTED, differences, seen_in_case, seen_in_run, stored
from support.engines import on_engine

HOW = "If this is meant, run `python tests/golden/bless.py` and write a changelog fragment."


def assert_same(expected, actual, **options):
    found = differences(expected, actual, **options)
    assert not found, "\n".join([f"{len(found)} differences. {HOW}", *found[:40]])


@pytest.mark.parametrize("name", CASES)
def test_a_question_shows_what_it_showed(name):
    assert_same(stored(name), seen_in_case(name))


@pytest.mark.parametrize("name", RUNS)
def test_the_command_line_prints_and_writes_what_it_did(name, tmp_path):
    assert_same(stored(name), seen_in_run(name, tmp_path))


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", ON_SPARK)
def test_spark_gives_the_same_answer(name):
    data = on_engine("spark", table(CASES[name].table))
    assert_same(stored(name), seen_in_case(name, data), tolerance=1e-9)


def test_every_question_is_frozen_and_nothing_else():
    assert {file.stem for file in EXPECTED.glob("*.json")} == {*CASES, *RUNS}
    assert {case.question for case in CASES.values()} == {
        "disparity",
        "flag",
        "certify",
        "predictive_parity",
        "marginal_outcome",
        "improvability",
        "inequality",
        "treatment_effects",
    }


def changed(seen, change):
    other = copy.deepcopy(seen)
    change(other)
    return differences(seen, other)


def test_a_changed_number_or_word_is_seen():
    seen = stored("disparity-loans-plain")
    finding = seen["to_dict"]["findings"][0]
    estimate = finding["estimate"]

    def number(value, key="estimate"):
        return changed(seen, lambda new: new["to_dict"]["findings"][0].update({key: value}))

    assert number(estimate * (1 + 1e-8)) == [
        f"to_dict.findings[0].estimate: was {estimate!r}, is {estimate * (1 + 1e-8)!r}"
    ]
    assert number(estimate * (1 + 1e-11)) == []
    assert number(None)
    assert number("Detected", "decision")
    assert changed(seen, lambda new: new["to_dict"]["findings"].pop())
    assert changed(seen, lambda new: new["to_dict"]["details"].pop("metric"))
    assert changed(seen, lambda new: new["to_dict"].update(more=1))
    assert changed(seen, lambda new: new["str"].append("One more line."))
    assert changed(seen, lambda new: new["html"].__setitem__(0, "<div>"))


def test_a_tiny_p_value_is_not_taken_for_zero():
    assert differences({"p_value": 1e-30}, {"p_value": 0.0})
    assert differences({"p_value": 1e-30}, {"p_value": 2e-30})
    assert not differences({"estimate": 1e-16}, {"estimate": 0.0})


def test_true_is_not_one():
    assert differences({"simultaneous": True}, {"simultaneous": 1})
