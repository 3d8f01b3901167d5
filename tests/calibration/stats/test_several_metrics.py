"""The family of several metrics keeps its level: few people, correlated metrics, clusters."""

import numpy as np
import pytest

import equipoise as eq
from support.rates import assert_at_most

pytestmark = pytest.mark.calibration

METRICS = ["selection_rate", "fpr", "accuracy", "mean_score"]


def null_table(rng, n, clusters):
    """Three unequal groups that differ in nothing; score, decision and outcome are related."""
    user = np.arange(n) if clusters is None else rng.integers(clusters, size=n)
    shift = 0.0 if clusters is None else rng.normal(size=clusters)[user]
    score = rng.exponential(size=n) * np.exp(0.5 * shift)
    y = (score + rng.normal(size=n) > 1.0).astype(int)
    return {
        "g": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]),
        "y": y,
        "p": (score > 0.8).astype(int),
        "s": score,
        "user": user,
    }


@pytest.mark.parametrize(
    ("n", "clusters", "trials"),
    [
        (120, None, 50),
        pytest.param(120, None, 400, marks=pytest.mark.slow),
        pytest.param(2000, None, 400, marks=pytest.mark.slow),
        pytest.param(400, 25, 400, marks=pytest.mark.slow),
    ],
)
def test_any_false_finding_in_any_metric_is_rare(rng, n, clusters, trials):
    wrong = missed = joint = 0
    roles = {"y_true": "y", "y_pred": "p", "y_score": "s"}
    if clusters is not None:
        roles["cluster"] = "user"
    for _ in range(trials):
        audit = eq.Audit(null_table(rng, n, clusters), group="g", **roles)
        result = audit.disparity(METRICS, simultaneous=True, rng=0)
        found = [finding for finding in result.findings if finding.ci is not None]
        wrong += any(finding.decision == "detected" for finding in found)
        ends = [(f.ci.low, f.ci.high) for f in found]
        missed += any((low or 0.0) > 0.0 or (high or 0.0) < 0.0 for low, high in ends)
        joint += result.joint.decision == "detected"
    assert wrong == missed == joint
    assert_at_most(wrong, trials, 0.05)
