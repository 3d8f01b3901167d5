"""A plan may hold any value for any option; the answer is a result or one sentence."""

import inspect

import numpy as np
import pytest

import equipoise as eq
from equipoise.exceptions import EquipoiseError
from equipoise.results.question import questions
from support.soundness import assert_sound

RNG = np.random.default_rng(3)
N = 80
TABLE = {
    "g": RNG.choice(["a", "b"], N),
    "y": RNG.integers(0, 2, N),
    "p": RNG.integers(0, 2, N),
    "q": RNG.integers(0, 2, N),
    "week": RNG.integers(1, 4, N),
    "s": RNG.random(N).round(2),
    "t": RNG.integers(0, 2, N),
    "e": RNG.normal(size=N),
}
NEEDED = {
    "disparity": {"metric": "ppv"},
    "flag": {"metric": "ppv"},
    "certify": {"metric": "ppv", "margin": 0.1},
    "compare": {"metric": "accuracy", "baseline": "q"},
    "impact_ratios": {},
    "monitor": {"metric": "accuracy", "time": "week"},
    "discover": {"metric": "accuracy", "features": ["g", "q"]},
    "decompose": {"metric": "ppv", "given": "t"},
    "predictive_parity": {"unit": "row"},
    "score_quality": {},
    "multicalibration": {},
    "policy": {"budget": 0.4},
    "marginal_outcome": {"threshold": 0.5, "unit": "row"},
    "improvability": {
        "candidate": "q",
        "accuracy": "accuracy",
        "n_splits": 1,
        "n_resamples": 99,
    },
    "necessity": {"candidate": "q", "accuracy": "accuracy", "inference": "analytic"},
    "drop_table": {"estimator": "sklearn.linear_model.LogisticRegression"},
    "inequality": {"benefits": "speicher"},
    "treatment_effects": {"n_repeats": 1},
}
VALUES = (True, -1, 0, 3.5, 1e308, float("nan"), "", "x", [], [1], ["x", 2], {}, {"x": 1})
"""What a TOML file can say."""


def test_every_question_is_attacked():
    assert set(NEEDED) == set(questions())


@pytest.mark.parametrize("question", NEEDED)
def test_any_value_of_an_option_ends_in_a_result_or_a_sentence(question, monkeypatch, tmp_path):
    # A state is a file.
    monkeypatch.chdir(tmp_path)
    audit = eq.Audit(
        TABLE, group="g", y_true="y", y_pred="p", y_score="s", treatment="t", effect_pred="e"
    )
    method = getattr(audit, question)
    names = [name for name in inspect.signature(method).parameters if name != "rng"]
    broken = []
    for name in names:
        for value in VALUES:
            try:
                assert_sound(method(**(NEEDED[question] | {name: value})))
            except EquipoiseError as error:
                if "\n" in str(error):
                    broken.append((name, value, "more than one line"))
            except Exception as error:  # noqa: BLE001 - the point of the test
                broken.append((name, value, repr(error)[:120]))
    assert not broken


@pytest.mark.parametrize("role", [*inspect.signature(eq.Audit.__init__).parameters][2:])
def test_any_value_of_a_role_ends_in_a_result_or_a_sentence(role):
    roles = {"group": "g", "y_true": "y", "y_pred": "p"}
    broken = []
    for value in VALUES:
        try:
            eq.Audit(TABLE, **(roles | {role: value})).disparity("accuracy")
        except EquipoiseError:
            continue
        except Exception as error:  # noqa: BLE001 - the point of the test
            broken.append((value, repr(error)[:120]))
    assert not broken
