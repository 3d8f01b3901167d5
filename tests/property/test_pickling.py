"""Results are plain data: what an audit returns and what its engines compute can be pickled."""

import pickle
import sys
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from scipy import sparse

from equipoise.stats.disparity.gaps import Disparities
from support.cases import CASES, table

ASKED = [
    "disparity-loans-plain",
    "disparity-loans-simultaneous",
    "disparity-wages-mean_outcome",
    "disparity-visits-clusters",
    "disparity-loans-plug_in",
    "flag-compas-counts",
    "certify-loans-plain",
    "predictive_parity-loans-plain",
    "predictive_parity-loans-calibration",
    "marginal_outcome-visits-rows",
    "improvability-loans-column",
    "improvability-loans-capacity",
    "inequality-loans-plain",
    "inequality-compas-design",
    "treatment_effects-trial-plain",
    "treatment_effects-trial-split",
]


def computed_by(question):
    """Return what a question answers, and the public dataclasses that its engines returned."""
    seen = {}

    def note(frame, event, value):
        kind = type(value)
        engine = kind.__module__.startswith("equipoise.stats") and is_dataclass(value)
        # Partitioned cells are a view of rows that stay in the engine, not a result.
        if event == "return" and engine and not kind.__name__.startswith(("_", "Partitioned")):
            seen.setdefault(kind, value)

    sys.setprofile(note)
    try:
        answer = question()
    finally:
        sys.setprofile(None)
    return answer, list(seen.values())


def copied(value):
    return pickle.loads(pickle.dumps(value))


def assert_same(one, two):
    assert type(one) is type(two)
    if is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(two, field.name))
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, two)
    elif sparse.issparse(one):
        assert (one != two).nnz == 0
    elif isinstance(one, tuple | list):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            assert_same(a, b)
    elif isinstance(one, dict):
        assert list(one) == list(two)
        assert_same(list(one.values()), list(two.values()))
    else:
        assert one == two or (one != one and two != two)  # noqa: PLR0124  (nan)


@pytest.mark.parametrize("name", ASKED)
def test_an_answer_and_the_results_of_its_engines_survive_pickling(name):
    case = CASES[name]
    answer, engines = computed_by(lambda: case.ask(table(case.table)))
    assert copied(answer).to_dict() == answer.to_dict()
    assert str(copied(answer)) == str(answer)
    assert engines
    for value in engines:
        assert_same(copied(value), value)


def test_every_question_is_asked_here():
    assert {name.split("-")[0] for name in ASKED} == {c.question for c in CASES.values()}


@pytest.mark.parametrize("name", ["disparity-loans-plug_in", "disparity-wages-mean_outcome"])
def test_pickled_disparities_still_test_and_invert(name):
    case = CASES[name]
    _, engines = computed_by(lambda: case.ask(table(case.table)))
    (found,) = (value for value in engines if isinstance(value, Disparities))
    again = copied(found)
    np.testing.assert_array_equal(again.p_outside(-0.01, 0.02), found.p_outside(-0.01, 0.02))
    np.testing.assert_array_equal(again.interval(2.5), found.interval(2.5))
    np.testing.assert_array_equal(again.covariance(), found.covariance())
