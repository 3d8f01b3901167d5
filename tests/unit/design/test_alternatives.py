"""Planning the search for an alternative: by hand, and against simulated tests."""

import numpy as np
import pytest
from scipy import special

import equipoise as eq
from equipoise.design import power, sample_size
from equipoise.exceptions import InvalidParameterError


def test_equal_accuracy_by_hand():
    """(1.645 + 0.842)^2 q / l^2."""
    assert sample_size("improvability", differing=0.1, accuracy_loss=0.01).n == 6183
    found = power("improvability", n=6183, differing=0.1, accuracy_loss=0.01)
    assert found.all_groups == pytest.approx(0.8, abs=1e-3)
    assert "18549 rows in all" in str(found)


def test_independent_requirements_multiply():
    found = power("improvability", n=900, effects=[0.1, 0.1], cov=np.eye(2))
    one = special.ndtr(3.0 - 1.6448536)
    assert found.power == pytest.approx([one, one])
    assert found.all_groups == pytest.approx(one**2, abs=0.01)


def test_candidates_tested_together_need_more_rows():
    options = {"effects": [0.05, 0.05], "cov": [[1.0, 0.2], [0.2, 1.0]]}
    sizes = [
        sample_size("improvability", n_candidates=k, correlation=rho, **options).n
        for k, rho in ((1, 0.0), (20, 0.8), (20, 0.0))
    ]
    assert sizes[0] < sizes[1] <= sizes[2]


def test_power_is_that_of_simulated_tests():
    rng = np.random.default_rng(1)
    cov = np.array([[1.0, -0.3], [-0.3, 2.0]])
    planned = power("improvability", n=400, effects=[0.15, 0.2], cov=cov)
    root = np.linalg.cholesky(cov)
    means = [0.15, 0.2] + rng.standard_normal((4000, 2)) @ root.T / 20
    shown = (means / (np.sqrt(np.diag(cov)) / 20) > 1.6448536).all(axis=1)
    assert planned.all_groups == pytest.approx(shown.mean(), abs=0.03)


def test_a_pilot_says_how_many_rows():
    rng = np.random.default_rng(7)
    race = rng.choice(["a", "b"], size=1500)
    sickness = rng.gamma(2.0, 2.0, size=1500)
    table = {
        "race": race,
        "sick": (sickness > 4).astype(int),
        "visits": rng.poisson(3 * sickness),
        "cost": sickness * np.where(race == "b", 0.4, 0.7),
    }
    result = eq.Audit(table, group="race", y_true="sick", y_score="cost").improvability(
        "visits",
        accuracy="accuracy",
        accuracy_of="population",
        fairness="selection_rate",
        capacity=0.3,
        accuracy_loss=0.05,
        higher_group="race=a",
    )
    needed = sample_size("improvability", pilot=result)
    assert len(needed.power) == 3
    assert power("improvability", n=needed.n, pilot=result).all_groups >= 0.8
    again = eq.AuditResult.from_dict(result.to_dict())
    assert sample_size("improvability", pilot=again).n == needed.n


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "in one way"),
        ({"differing": 0.1}, "up to a loss only"),
        ({"effects": [0.1], "cov": np.eye(2)}, "covariance of the 1 effects"),
        ({"effects": [-0.1], "cov": np.eye(1)}, "expected not to be met"),
    ],
)
def test_odd_plans_are_refused(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        sample_size("improvability", **options)


def test_other_questions_need_shares():
    with pytest.raises(InvalidParameterError, match="pass `share`"):
        power("disparity", n=100, rate=0.5)


def test_a_pilot_that_was_not_tested_says_nothing_of_power():
    rows = {"g": ["a"] * 6 + ["b"] * 6, "y": [0, 1] * 6, "d": [0, 1] * 6, "r": [1, 0] * 6}
    audit = eq.Audit(rows, group="g", y_true="y", y_pred="d")
    pilot = audit.improvability("r", accuracy="accuracy", n_resamples=99)
    assert {f.decision for f in pilot.findings} == {eq.Decision.NOT_TESTED}
    with pytest.raises(InvalidParameterError, match="the pilot was not tested"):
        sample_size("improvability", pilot=pilot)
