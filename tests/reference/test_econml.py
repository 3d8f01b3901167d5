"""EconML's validation and ours agree on what both estimate.

The values were made by ``econml/dr_tester.py`` with EconML 0.17.0, in an environment of its own.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, LogisticRegression

import equipoise as eq
from equipoise.moments import CellMoments
from equipoise.stats.effects.collapse import row_quantities, slope_quantities
from equipoise.stats.effects.slopes import group_slopes

VALUES = json.loads((Path(__file__).parent / "econml" / "values.json").read_text())


@pytest.fixture(scope="module")
def rows():
    """The second half of the experiment, with the predictions of a linear T-learner."""
    rng = np.random.default_rng(11)
    n = 4_000
    x = rng.normal(size=n)
    t = rng.integers(2, size=n)
    y = x + t * (1.0 + 0.5 * x) + rng.normal(size=n)
    train = np.arange(n) < 2_000
    mu = [
        LinearRegression().fit(x[train & (t == a), None], y[train & (t == a)]).predict(x[:, None])
        for a in (0, 1)
    ]
    e = LogisticRegression().fit(x[train, None], t[train]).predict_proba(x[:, None])[:, 1]
    table = {"x": x, "t": t, "y": y, "e": e, "mu0": mu[0], "mu1": mu[1], "f": mu[1] - mu[0]}
    table = {name: values[~train] for name, values in table.items()}
    return table | {"g": np.arange(2_000) % 2}


def test_errors_of_groups_are_means_of_prediction_minus_doubly_robust_outcome(rows):
    audit = eq.Audit(rows, group="g", y_true="y", treatment="t", effect_pred="f")
    found = audit.treatment_effects(
        measure="difference", control_pred="mu0", treated_pred="mu1"
    ).details
    # They estimate the chance of treatment by a logistic regression, here it is the share.
    assert_allclose(found["B"], VALUES["error"], atol=0.01)
    assert_allclose(found["tau"], VALUES["effect"], atol=0.01)
    assert min(found["B_se"]) > 0.05


def test_their_outcome_is_the_doubly_robust_score(rows):
    """Common quantity: the score whose means are effects, with their nuisance models."""
    t, y, f = rows["t"], rows["y"], rows["f"]
    score = f + t * (y - rows["mu1"]) / rows["e"]
    score -= (1 - t) * (y - rows["mu0"]) / (1 - rows["e"])
    groups = [rows["g"] == k for k in (0, 1)]
    assert_allclose([score[own].mean() for own in groups], VALUES["effect"], rtol=1e-10)
    assert_allclose([(f - score)[own].mean() for own in groups], VALUES["error"], rtol=1e-9)
    assert_allclose(score.mean(), VALUES["ate"], rtol=1e-10)
    assert_allclose(np.polyfit(f, score, 1)[0], VALUES["slope"], rtol=1e-9)


def test_slopes_agree_within_a_standard_error(rows):
    names = slope_quantities("difference")
    sums = CellMoments.from_rows(row_quantities(names, y=rows["y"], f=rows["f"]), rows["t"])
    found = group_slopes(sums, names, np.array([2_000.0]))
    assert abs(found.slope[0] - VALUES["slope"]) < found.se[0]
