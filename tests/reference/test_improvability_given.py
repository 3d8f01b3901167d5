"""Numbers of given 0/1 decisions at margin zero, as they were before ties were broken by lot."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import equipoise as eq

KEPT = json.loads(Path(__file__).with_name("improvability_given.json").read_text())
ROLES = {"group": "race", "y_true": "sick", "y_pred": "called", "features": ["visits"]}


def clinic(n=3000):
    """Patients called by past cost; their numbers are kept beside this file."""
    rng = np.random.default_rng(20240509)
    race = rng.choice(["a", "b", "c"], size=n, p=[0.5, 0.35, 0.15])
    sickness = rng.gamma(2.0, 2.0, size=n)
    cost = sickness * np.where(race == "b", 0.4, 0.7)
    visits = rng.poisson(3 * sickness).astype(float)
    return {
        "race": race,
        "sick": (sickness > 4).astype(int),
        "cost": cost,
        "called": (cost > 4).astype(int),
        "visits": visits,
        "other": (visits > 12).astype(int),
        "conditions": rng.poisson(sickness).astype(float),
        "person": np.arange(n) // 2,
        "wt": rng.integers(1, 4, size=n),
    }


CASES = {
    "ready": ({}, "other", {"accuracy": "accuracy", "n_resamples": 999, "rng": 1}),
    "ready tpr": (
        {},
        "other",
        {
            "accuracy": "accuracy",
            "fairness": ["tpr", "selection_rate"],
            "accuracy_of": "population",
            "n_resamples": 999,
            "rng": 1,
        },
    ),
    "fitted": (
        {},
        LogisticRegression(),
        {"accuracy": "accuracy", "n_resamples": 499, "n_splits": 3, "rng": 1},
    ),
    "weights": ({"weight": "wt"}, "other", {"accuracy": "ppv", "n_resamples": 499, "rng": 1}),
    "clusters": (
        {"cluster": "person"},
        "other",
        {"accuracy": "accuracy", "n_resamples": 499, "rng": 1},
    ),
    "analytic": ({}, "other", {"accuracy": "accuracy", "inference": "analytic"}),
    "outcome": (
        {"y_true": "conditions", "features": None},
        "other",
        {"accuracy": "selected_outcome", "n_resamples": 499, "rng": 1},
    ),
}


@pytest.mark.parametrize("groups", ["two", "three"])
@pytest.mark.parametrize("case", CASES)
def test_numbers_of_given_decisions_do_not_change(case, groups):
    roles, candidate, options = CASES[case]
    table = clinic()
    if groups == "two":
        table = {name: values[table["race"] != "c"] for name, values in clinic().items()}
    result = eq.Audit(table, **(ROLES | roles)).improvability(candidate, **options)
    found = [result.joint.p_value] + [
        value
        for finding in result.findings
        for value in (finding.estimate, finding.p_value, finding.ci.low, finding.ci.high)
    ]
    np.testing.assert_allclose(found, KEPT[f"{groups} {case}"], rtol=1e-12, atol=1e-15)
