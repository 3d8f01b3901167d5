"""Paths of candidates between accuracy and a smaller gap."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import equipoise as eq
from equipoise.exceptions import InvalidParameterError
from equipoise.search import FeaturePath, FrontierRule, ReweightedEstimator, TrainingSample


def lending(rng, n=4000):
    """Two features, one of which stands for the group; the status quo uses both."""
    group = rng.integers(2, size=n)
    X = np.column_stack([rng.normal(size=n), rng.normal(size=n) + group])
    y = (X.sum(axis=1) + rng.normal(size=n) > 0.5).astype(float)
    return X, y, group, (X.sum(axis=1) > 0.5).astype(float)


def sample_of(rng, *, fairness="selection_rate", weight=None, **options):
    X, y, group, status_quo = lending(rng, **options)
    return TrainingSample.from_arrays(
        X=X,
        y=y,
        group=group,
        status_quo=status_quo,
        accuracy="accuracy",
        fairness=fairness,
        feature_names=["skill", "postcode"],
        weight=weight,
    )


def gap(sample, decisions, *, of=None):
    rows = np.ones(len(decisions), dtype=bool) if of is None else of
    one, two = (decisions[rows & (sample.group == g)].mean() for g in (1, 0))
    return one - two


@pytest.mark.parametrize("capacity", [None, 0.3])
def test_the_path_shrinks_the_gap_in_even_steps(rng, capacity):
    sample = sample_of(rng)
    path = FrontierRule(LogisticRegression(), lambdas=5, capacity=capacity).path(sample, "front")
    assert list(path) == [f"front {k} of 5" for k in range(1, 6)]
    decisions = [algorithm.decide(sample.X) for algorithm in path.values()]
    gaps = np.array([gap(sample, d) for d in decisions])
    assert (np.diff(gaps) < 0).all()
    assert abs(gaps[-1]) < 0.02
    np.testing.assert_allclose(np.diff(gaps), np.diff(gaps).mean(), atol=0.02)
    if capacity:
        assert decisions[0].mean() == pytest.approx(0.3, abs=1e-3)
    assert all(algorithm.report["group_proxy"] for algorithm in path.values())


def test_the_first_of_the_path_is_the_plain_model(rng):
    sample = sample_of(rng)
    (plain,) = FrontierRule(LogisticRegression(), lambdas=[0.0]).path(sample).values()
    model = LogisticRegression().fit(sample.X, sample.y)
    np.testing.assert_array_equal(plain.decide(sample.X), model.predict(sample.X))


def test_gaps_of_error_rates_are_narrowed_too(rng):
    sample = sample_of(rng, fairness="tpr")
    path = FrontierRule(LogisticRegression(), lambdas=3).path(sample)
    gaps = [gap(sample, a.decide(sample.X), of=sample.y == 1) for a in path.values()]
    assert abs(gaps[-1]) < abs(gaps[0])


def test_real_outcomes_need_a_regressor(rng):
    X, _, group, _ = lending(rng)
    y = X.sum(axis=1) + rng.normal(size=len(X))
    sample = TrainingSample.from_arrays(
        X=X,
        y=y,
        group=group,
        status_quo=(X[:, 1] > 1).astype(float),
        accuracy="selected_outcome",
        fairness="selection_rate",
    )
    path = FrontierRule(LinearRegression(), lambdas=3, capacity=0.2).path(sample)
    gaps = [gap(sample, a.decide(X)) for a in path.values()]
    assert abs(gaps[-1]) < abs(gaps[0])
    with pytest.raises(InvalidParameterError, match="pass a regressor"):
        FrontierRule(LogisticRegression(), capacity=0.2).path(sample)


def test_reweighted_fits_trade_accuracy_for_the_gap(rng):
    sample = sample_of(rng, weight=np.ones(4000))
    path = ReweightedEstimator(DecisionTreeClassifier(max_depth=4), lambdas=4).path(sample)
    gaps = [gap(sample, a.decide(sample.X)) for a in path.values()]
    assert gaps[-1] < gaps[0]
    last = ReweightedEstimator(LogisticRegression(), lambdas=[0.0, 0.3]).select(sample)
    assert last.report["lambda"] == 0.3
    assert "group_proxy" not in last.report


def test_features_in_which_groups_differ_leave_first(rng):
    sample = sample_of(rng)
    path = FeaturePath(LogisticRegression()).path(sample)
    assert list(path) == ["FeaturePath without postcode"]
    algorithm = FeaturePath(LogisticRegression()).select(sample)
    assert algorithm.columns.tolist() == [0]
    one = TrainingSample.from_arrays(
        X=sample.X[:, :1], y=sample.y, group=sample.group, status_quo=sample.y, accuracy="accuracy"
    )
    with pytest.raises(InvalidParameterError, match="there is one"):
        FeaturePath(LogisticRegression()).path(one)


def test_select_returns_the_end_of_the_path(rng):
    sample = sample_of(rng)
    last = FrontierRule(LogisticRegression(), lambdas=2).select(sample)
    assert abs(gap(sample, last.decide(sample.X))) < 0.02


def test_an_audit_tries_the_whole_path(rng):
    X, y, group, status_quo = lending(rng, 6000)
    table = {"g": group, "y": y, "d": status_quo, "skill": X[:, 0], "postcode": X[:, 1]}
    audit = eq.Audit(table, group="g", y_true="y", y_pred="d", features=["skill", "postcode"])
    result = audit.improvability(
        FrontierRule(LogisticRegression(), lambdas=8),
        accuracy="accuracy",
        fairness="selection_rate",
        accuracy_of="population",
        accuracy_loss=0.05,
        capacity=float(status_quo.mean()),
        inference="analytic",
        n_splits=3,
    )
    assert result.details["n_candidates"] == 8
    assert result.detected
    assert "group-proxy" in {note.code for note in result.notes}


@pytest.mark.parametrize("lambdas", [1, 2, 6, 10])
def test_weights_of_a_reweighted_path_end_where_the_gap_does(rng, lambdas):
    sample = sample_of(rng)
    path = ReweightedEstimator(LogisticRegression(), lambdas=lambdas, capacity=0.3).path(sample)
    assert len(path) == lambdas
    weights = [a.report["lambda"] for a in path.values()]
    assert weights == sorted(set(weights))
    if lambdas == 10:
        gaps = [gap(sample, a.decide(sample.X)) for a in path.values()]
        # One third of the fits may lie beyond; the others lead down to no gap.
        assert sum(found < -0.02 for found in gaps) <= 3
        assert min(map(abs, gaps)) < 0.03
        inside = [found for found in gaps if found > 0]
        assert max(abs(one - two) for one, two in pairwise(inside)) < 0.35 * max(inside)
