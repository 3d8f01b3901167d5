import numpy as np
import pytest
from sklearn.base import clone

from equipoise.exceptions import EstimationError, InvalidParameterError
from equipoise.search import ReweightedRule, TrainingSample
from equipoise.search.sweep import ThresholdSweep
from equipoise.stats.improvement.test import ImprovementQuestion, compare_utilities
from equipoise.stats.improvement.utilities import estimate_utilities


def population(rng, n, *, weight=None, accuracy="accuracy", fairness=None):
    X = rng.normal(size=(n, 4))
    group = (rng.random(n) < 0.4).astype(int)
    X[:, 0] += 0.5 * group
    index = X @ [1.0, 0.8, 0.4, 0.0] + 0.6 * group * X[:, 1]
    y = (index + rng.normal(size=n) > 0).astype(float)
    status_quo = (X[:, 0] + 0.5 * rng.normal(size=n) > 0.3).astype(float)
    return TrainingSample.from_arrays(
        X=X,
        y=y,
        group=group,
        status_quo=status_quo,
        accuracy=accuracy,
        fairness=fairness,
        weight=weight,
    )


@pytest.mark.parametrize(("accuracy", "fairness"), [("accuracy", None), ("accuracy", "ppv")])
def test_swept_z_is_that_of_the_test(rng, accuracy, fairness):
    weight = rng.gamma(2.0, size=400)
    sample = population(rng, 400, weight=weight, accuracy=accuracy, fairness=fairness)
    score = sample.X @ [1.0, 0.5, 0.2, 0.0]
    counts = np.array([40, 150, 151, 399])
    swept = ThresholdSweep.of(sample).worst_z(score, counts)
    utilities, numbers = sample.criteria
    for k, z in zip(counts, swept, strict=True):
        d = np.zeros(400)
        d[np.argsort(-score)[:k]] = 1
        rows = [(utility(sample.status_quo), utility(d)) for utility in utilities]
        u = np.stack([[pair[t][0] for t in (0, 1)] for pair in rows]).transpose(2, 0, 1)
        w = np.stack([[pair[t][1] for t in (0, 1)] for pair in rows]).transpose(2, 0, 1)
        estimates = estimate_utilities(u, w, sample.group, n_groups=2, weight=weight)
        value = estimates.value[numbers[0], 0]
        direction = (int(np.argmax(value)), int(np.argmin(value)))
        test = compare_utilities(
            estimates,
            directions=[direction],
            question=ImprovementQuestion(fairness=numbers, inference="analytic"),
        )
        expected = min(
            estimate / se
            for part in (*test.accuracy, *test.fairness)
            for estimate, se in part.contrasts
        )
        assert z == pytest.approx(expected, rel=1e-9)


def test_an_improvement_is_found_and_its_z_reported(rng):
    sample = population(rng, 3000)
    algorithm = ReweightedRule().select(sample)
    d = algorithm.decide(sample.X)
    assert algorithm.report["training_z"] > 0
    for g in (0, 1):
        rows = sample.group == g
        assert np.mean(d[rows] == sample.y[rows]) > np.mean(
            sample.status_quo[rows] == sample.y[rows]
        )


def test_cutoff_selects_the_swept_number(rng):
    sample = population(rng, 500)
    algorithm = ReweightedRule().select(sample)
    sweep = ThresholdSweep.of(sample)
    selected = int(algorithm.decide(sample.X).sum())
    z = sweep.worst_z(algorithm.score(sample.X), np.array([selected]))
    assert z[0] == pytest.approx(algorithm.report["training_z"])


def test_capacity_is_met_everywhere(rng):
    sample = population(rng, 1000, accuracy="selected_outcome")
    algorithm = ReweightedRule(capacity=0.1).select(sample)
    assert algorithm.decide(sample.X).sum() == 100
    assert algorithm.decide(rng.normal(size=(200, 4))).sum() == 20


def test_constraints_hold(rng):
    sample = population(rng, 800)
    rule = ReweightedRule(increasing=["x3"], decreasing=["x1"], forbidden=["x0"])
    coefficients = rule.select(sample).coefficients
    assert coefficients[0] == 0
    assert coefficients[1] <= 0 <= coefficients[3]
    free = ReweightedRule().select(sample).coefficients
    assert free[0] > 0
    assert free[1] > 0


def test_penalty_shrinks(rng):
    sample = population(rng, 800)
    small = ReweightedRule(penalty=1e-6).select(sample).coefficients
    large = ReweightedRule(penalty=10.0).select(sample).coefficients
    assert np.linalg.norm(large) < 0.2 * np.linalg.norm(small)


def test_a_group_that_nobody_selects_has_no_rule():
    X = np.concatenate([np.zeros((50, 1)), np.ones((5, 1))])
    sample = TrainingSample.from_arrays(
        X=X,
        y=np.arange(55.0),
        group=[0] * 50 + [1] * 5,
        status_quo=[1.0] * 2 + [0.0] * 48 + [1.0] * 5,
        accuracy="selected_outcome",
    )
    with pytest.raises(EstimationError, match="selects people in every group"):
        ReweightedRule(capacity=0.02).select(sample)
    with pytest.raises(InvalidParameterError, match="selects nobody among 55"):
        ReweightedRule(capacity=0.01).select(sample)


def test_rule_is_cloned_like_an_estimator():
    assert clone(ReweightedRule(capacity=0.1)).get_params()["capacity"] == 0.1
