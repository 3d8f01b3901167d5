import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.exceptions import DataError, InvalidParameterError, NotBinaryError
from equipoise.search import TopShare, TrainingSample
from equipoise.search.sample import named_utility
from equipoise.search.top_share import fit_estimator, score_of


@pytest.fixture
def sample(rng):
    X = rng.normal(size=(200, 3))
    y = (X @ [1.0, 2.0, 0.0] + rng.normal(size=200) > 0).astype(float)
    return TrainingSample.from_arrays(
        X=X,
        y=y,
        group=np.where(X[:, 2] > 0, "b", "a"),
        status_quo=(X[:, 0] > 0).astype(float),
        accuracy="accuracy",
        fairness="tpr",
        feature_names=["age", "cost", "race"],
    )


@pytest.mark.parametrize("estimator", [LinearRegression(), LogisticRegression()])
def test_the_capacity_is_met_on_any_rows(sample, rng, estimator):
    algorithm = TopShare(estimator, 0.1).select(sample)
    assert algorithm.decide(sample.X).sum() == 20
    assert algorithm.decide(rng.normal(size=(50, 3))).sum() == 5


def test_the_highest_scores_are_selected(sample):
    algorithm = TopShare(LinearRegression(), 0.1).select(sample)
    chosen = algorithm.decide(sample.X) == 1
    score = LinearRegression().fit(sample.X, sample.y).predict(sample.X)
    assert score[chosen].min() > score[~chosen].max()


def test_training_cutoff_is_a_fixed_score(sample):
    algorithm = TopShare(LinearRegression(), 0.1, cutoff="training").select(sample)
    assert algorithm.decide(sample.X).sum() == 20
    assert algorithm.decide(sample.X[:1] + 100).tolist() == [1.0]
    assert algorithm.report["cutoff"] == algorithm.cutoff


def test_forbidden_features_do_not_matter(sample):
    algorithm = TopShare(LinearRegression(), 0.2, forbidden=["cost"]).select(sample)
    changed = sample.X.copy()
    changed[:, 1] = 0
    np.testing.assert_array_equal(algorithm.decide(sample.X), algorithm.decide(changed))


def test_weights_reach_the_model_and_the_share(sample):
    weight = np.where(np.arange(200) < 100, 5.0, 1.0)
    weighted = TrainingSample.from_arrays(
        X=sample.X,
        y=sample.y,
        group=sample.group,
        status_quo=sample.status_quo,
        accuracy="accuracy",
        weight=weight,
    )
    algorithm = TopShare(LinearRegression(), 0.1).select(weighted)
    plain = TopShare(LinearRegression(), 0.1).select(sample)
    assert not np.allclose(algorithm.model.coef_, plain.model.coef_)
    share = weight @ algorithm.decide(sample.X, weight=weight) / weight.sum()
    assert share <= 0.1
    with pytest.raises(InvalidParameterError, match="KNeighborsRegressor cannot use weights"):
        TopShare(KNeighborsRegressor(), 0.1).select(weighted)


@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_a_pipeline_passes_weights_on_and_only_their_proportions_matter(sample, factor):
    weight = np.where(np.arange(200) < 100, 5.0, 1.0)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    fitted = [fit_estimator(model, sample.X, sample.y, w) for w in (weight, factor * weight)]
    plain = fit_estimator(model, sample.X, sample.y, None)
    first, second, without = (pipeline[-1].coef_ for pipeline in (*fitted, plain))
    np.testing.assert_allclose(first, second, rtol=1e-6)
    assert not np.allclose(first, without)
    np.testing.assert_allclose(fitted[0][0].mean_, np.average(sample.X, axis=0, weights=weight))
    with pytest.raises(InvalidParameterError, match="KNeighborsRegressor cannot use weights"):
        fit_estimator(make_pipeline(KNeighborsRegressor()), sample.X, sample.y, weight)


@pytest.mark.parametrize("rows", [0, 5])
def test_nothing_to_fit_to_is_one_sentence(sample, rows):
    with pytest.raises(DataError, match="no row of positive weight is left"):
        fit_estimator(LinearRegression(), sample.X[:rows], sample.y[:rows], np.zeros(rows))


def test_rules_are_cloned_like_estimators(sample):
    rule = TopShare(LinearRegression(), 0.1, forbidden=("age",))
    copy = clone(rule)
    assert copy.get_params()["capacity"] == 0.1
    assert copy.get_params()["estimator__fit_intercept"] is True
    assert copy is not rule
    copy.set_params(capacity=0.2)
    assert rule.capacity == 0.1
    assert copy.select(sample).decide(sample.X).sum() == 40


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (TopShare(LinearRegression(), 1.5), r"`capacity` must be in \(0, 1\)"),
        (TopShare(LinearRegression(), 0.1, cutoff="test"), "'sample', 'training'"),
        (TopShare(LinearRegression(), 0.1, forbidden=["rase"]), "Did you mean 'race'"),
        (TopShare(LinearRegression(), 0.1, forbidden=["age", "cost", "race"]), "every feature"),
        (TopShare("lasso", 0.1), "must have `fit` and `predict`"),
    ],
)
def test_bad_rules_are_explained(sample, rule, message):
    with pytest.raises(InvalidParameterError, match=message):
        rule.select(sample)


def test_named_utilities_by_hand():
    y, d = np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 1, 0])
    expected = {
        "accuracy": ([1, 0, 0, 1], [1, 1, 1, 1]),
        "tpr": ([1, 0, 0, 0], [1, 1, 0, 0]),
        "fpr": ([0, 0, 1, 0], [0, 0, 1, 1]),
        "ppv": ([1, 0, 0, 0], [1, 0, 1, 0]),
        "selection_rate": ([1, 0, 1, 0], [1, 1, 1, 1]),
    }
    for name, (u, w) in expected.items():
        found = named_utility(name, y)(d)
        assert [array.tolist() for array in found] == [u, w], name


def test_metrics_without_decision_and_real_labels_are_refused():
    with pytest.raises(InvalidParameterError, match="does not depend on the decision"):
        named_utility("mean_outcome", np.ones(2))
    with pytest.raises(NotBinaryError, match="outcomes of 0 and 1"):
        named_utility("tpr", np.array([0.5, 1.0]))
    with pytest.raises(NotBinaryError, match="decisions of 0 and 1"):
        named_utility("tpr", np.array([0.0, 1.0]))(np.array([1.5, 1.0]))


def test_accuracy_and_fairness_share_a_utility_unless_told_otherwise(sample):
    utilities, numbers = sample.criteria
    assert len(utilities) == 2
    assert numbers == (1,)
    same = TrainingSample.from_arrays(
        X=[[1.0], [2.0]], y=[0, 1], group=[0, 1], status_quo=[0, 1], accuracy="accuracy"
    )
    assert len(same.criteria[0]) == 1
    assert same.criteria[1] == (0,)


def test_a_model_with_margins_only_is_ranked_by_them():
    class Margins:
        def decision_function(self, X):
            return 3.0 * X[:, 0]

    assert score_of(Margins(), np.array([[1.0], [-2.0]])).tolist() == [3.0, -6.0]
