"""The explorer starts with what the data say, as far as they say it and it can be entered."""

import math

import numpy as np
import pytest

from equipoise.audits.audit import Audit
from equipoise.design import benefit_design
from equipoise.report.explorer import DEFAULTS, FIELDS, explorer_state

LIMITS = {name: (low, high) for name, _, low, high, _ in FIELDS}


def decisions(outcome):
    rows = np.arange(len(outcome))
    return Audit(
        {"g": rows // 2 % 2, "y": outcome, "d": rows % 2}, group="g", y_true="y", y_pred="d"
    )


@pytest.mark.parametrize("outcome", [0, 1])
def test_without_both_outcomes_the_explorer_starts_with_an_example(outcome):
    found = decisions(np.full(200, outcome)).inequality("speicher")
    state = explorer_state([found])
    assert not state["from_data"]
    assert state["inputs"] == DEFAULTS


@pytest.mark.parametrize("share", [0.00005, 0.0017, 0.5, 0.9983, 0.99995])
def test_every_value_that_the_explorer_starts_with_can_be_entered(share):
    outcome = np.arange(20_000) < 20_000 * share
    state = explorer_state([decisions(outcome.astype(int)).inequality("speicher", order=60)])
    assert state["from_data"]
    assert all(low <= state["inputs"][name] <= high for name, (low, high) in LIMITS.items())
    assert state["inputs"]["base_rate"] == pytest.approx(share, abs=1e-3)
    assert all(map(math.isfinite, state["outputs"].values()))


def test_a_design_with_hardly_any_benefit_is_shown_with_the_smallest_that_can_be_entered():
    design = benefit_design(0.5, 3, "punitive", minimum_benefit=1e-5)
    state = explorer_state([decisions(np.arange(400) // 4 % 2).inequality(design)])
    assert state["inputs"]["minimum_benefit"] == LIMITS["minimum_benefit"][0]
