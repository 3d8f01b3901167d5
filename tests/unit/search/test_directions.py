import numpy as np
import pytest

from equipoise.search import TrainingSample, directions
from equipoise.search.directions import best_direction
from equipoise.search.goal import Goal
from equipoise.search.rule_space import RuleSpace


def sample_of(rng, m=40, d=3, *, metric="accuracy"):
    X = rng.normal(size=(m, d))
    group = np.arange(m) % 2
    y = (X.sum(axis=1) + rng.normal(size=m) > 0).astype(float)
    if metric == "selected_outcome":
        y = rng.poisson(np.exp(X[:, 0] / 2)).astype(float)
    quo = (X[:, 0] + rng.normal(size=m) > 0).astype(float)
    return TrainingSample.from_arrays(X=X, y=y, group=group, status_quo=quo, accuracy=metric)


def scaled(sample):
    return np.column_stack([np.ones(len(sample.y)), sample.X / np.abs(sample.X).max(axis=0)])


def start_of(sample, goal, rng, *, n_selected=None, signs=(0.0, 0.0, 0.0, 0.0)):
    space = RuleSpace(
        sample=sample,
        X=scaled(sample),
        signs=np.array(signs),
        n_selected=n_selected,
        epsilon=1e-3,
    )
    return best_direction(space, goal, deadline=np.inf, rng=rng)


def utilities(sample, d):
    u, w = sample.accuracy(d)
    return np.array([u[sample.group == g].sum() / w[sample.group == g].sum() for g in (0, 1)])


def goal_of(sample, objective="fairness"):
    return Goal.of(sample, objective=objective, target=1, strictness=1e-3, tolerance=1e-3)


def test_goal_by_hand():
    sample = TrainingSample.from_arrays(
        X=[[0.0], [1.0], [0.0], [1.0]],
        y=[0, 1, 1, 1],
        group=[0, 0, 1, 1],
        status_quo=[0, 1, 0, 1],
        accuracy="accuracy",
    )
    fair = goal_of(sample)
    np.testing.assert_allclose(fair.floors, [1.001, 0.501])
    cost, violation = fair.judge(np.array([[1.1, 0.6], [0.5, 0.5]]), np.array([[0.5], [0.0]]))
    np.testing.assert_allclose(cost, [0.5, 0.001])
    np.testing.assert_allclose(violation, [-0.099, 0.501])
    accurate = goal_of(sample, "accuracy")
    cost, violation = accurate.judge(np.array([1.1, 0.6]), np.array([0.5]))
    assert cost == pytest.approx(-0.6)
    assert violation == pytest.approx(0.001)


@pytest.mark.parametrize("objective", ["fairness", "accuracy"])
@pytest.mark.parametrize("metric", ["accuracy", "selected_outcome"])
@pytest.mark.parametrize("n_selected", [None, 12])
def test_a_start_is_feasible_and_costs_what_it_says(monkeypatch, objective, metric, n_selected):
    monkeypatch.setattr(directions, "ROUNDS", 4)
    found = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        sample = sample_of(rng, metric=metric)
        X, goal = scaled(sample), goal_of(sample, objective)
        start = start_of(sample, goal, rng, n_selected=n_selected)
        if start is None:
            continue
        found += 1
        beta, cost = start
        index = X @ beta
        d = (index >= 0).astype(float)
        assert np.abs(beta).max() <= 1
        assert index[d == 0].max() <= -1e-3
        assert n_selected in (None, d.sum())
        values = utilities(sample, d)
        assert (values >= goal.floors).all()
        assert np.ptp(values) <= goal.widest[0]
        expected = max(np.ptp(values), 1e-3) if objective == "fairness" else -values[1]
        assert cost == pytest.approx(expected, abs=1e-12)
    assert found


def test_signs_of_coefficients_are_kept(rng):
    sample = sample_of(rng)
    goal = Goal.of(sample, objective="fairness", target=0, strictness=-1.0, tolerance=0.0)
    beta, _ = start_of(sample, goal, rng, signs=(0.0, 1.0, -1.0, 0.0))
    assert beta[1] >= 0
    assert beta[2] <= 0


def test_rows_that_are_alike_get_the_same_decision(rng):
    sample = sample_of(rng)
    twins = TrainingSample.from_arrays(
        X=np.repeat(sample.X[:20], 2, axis=0),
        y=sample.y,
        group=sample.group,
        status_quo=sample.status_quo,
        accuracy="accuracy",
    )
    goal = Goal.of(twins, objective="fairness", target=0, strictness=-1.0, tolerance=0.0)
    beta, _ = start_of(twins, goal, rng)
    d = scaled(twins) @ beta >= 0
    np.testing.assert_array_equal(d[0::2], d[1::2])
    assert start_of(twins, goal, rng, n_selected=7) is None
