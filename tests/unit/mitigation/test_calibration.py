import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from equipoise.exceptions import (
    ApproximationWarning,
    DataError,
    InvalidParameterError,
    SmallGroupWarning,
)
from equipoise.mitigation import GroupCalibrator, MarginalThresholds, MultiObjectiveCalibrator
from equipoise.stats.scores.calibrators import fit_score_map, monotone
from equipoise.stats.scores.cells import weighted_quantile
from equipoise.stats.scores.kernel import GRID_LEVELS, kernel_regression

METHODS = ["monotone", "interpolate", "isotonic", "platt", "binning"]


@parametrize_with_checks(
    [
        GroupCalibrator(),
        GroupCalibrator("interpolate"),
        GroupCalibrator("isotonic"),
        GroupCalibrator("platt"),
        GroupCalibrator("binning"),
        MarginalThresholds(),
        MultiObjectiveCalibrator(),
        MultiObjectiveCalibrator("spline"),
    ]
)
# The checks feed lists and frames on purpose; what scikit-learn says of them is its own affair.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def rows(rng):
    n = 4000
    group, risk = rng.choice(["A", "B"], size=n), rng.uniform(0.1, 0.9, size=n)
    y = (rng.uniform(size=n) < risk).astype(float)
    return np.where(group == "B", risk**2, risk), y, group, risk


@pytest.mark.parametrize("method", METHODS)
def test_every_method_brings_the_groups_near_the_diagonal(rows, method):
    score, y, group, risk = rows
    half = np.arange(len(y)) < 2000
    calibrator = GroupCalibrator(method).fit(score[half], y[half], group=group[half])
    new = calibrator.predict(score[~half], group=group[~half])
    assert np.mean(np.abs(new - risk[~half])) < 0.06
    assert np.mean(np.abs(new - risk[~half])) < np.mean(np.abs(score[~half] - risk[~half]))
    real = GroupCalibrator(method).fit(score, 5 * y, group=group).predict(score, group=group)
    assert np.mean(np.abs(real - 5 * risk)) < 0.3
    assert new.min() >= 0
    assert new.max() <= 1


def test_isotonic_equals_that_of_scikit_learn(rows):
    score, y, _, _ = rows
    theirs = IsotonicRegression(out_of_bounds="clip").fit(score, y)
    grid = np.linspace(-0.1, 1.1, 57)
    ours = GroupCalibrator("isotonic").fit(score[:, None], y).predict(grid[:, None])
    np.testing.assert_allclose(ours, theirs.predict(grid), atol=1e-12)


def test_platt_equals_logistic_regression(rows):
    score, y, _, _ = rows
    theirs = LogisticRegression(C=np.inf, tol=1e-10).fit(score[:, None], y)
    ours = GroupCalibrator("platt").fit(score[:, None], y).predict([[0.2], [0.7]])
    expected = theirs.predict_proba([[0.2], [0.7]])[:, 1]
    np.testing.assert_allclose(ours, expected, atol=2e-4)


def test_interpolation_is_linear_between_kernel_estimates_of_the_paper(rows):
    score, y, _, _ = rows
    nodes = weighted_quantile(np.sort(score), np.ones(len(score)), GRID_LEVELS)
    n = len(score)
    h = np.maximum(1.06 * np.sqrt(nodes * (1 - nodes)), 0.1) * n**-0.2
    values = kernel_regression(y, score, nodes, bandwidth=h, degree=0).estimate
    ours = GroupCalibrator("interpolate").fit(score[:, None], y)
    middle = (nodes[3] + nodes[4]) / 2
    np.testing.assert_allclose(
        ours.predict([[nodes[3]], [middle]]), [values[3], (values[3] + values[4]) / 2]
    )


def test_binning_is_the_mean_of_the_bin():
    score, y = np.arange(40.0), np.repeat([0.0, 1.0, 0.0, 1.0], 10)
    calibrator = GroupCalibrator("binning", n_bins=4).fit(score[:, None], y)
    np.testing.assert_array_equal(calibrator.predict([[-1.0], [9.0], [10.0], [35.0]]), [0, 0, 1, 1])


def test_monotone_keeps_the_order_and_pools_by_weight(rows):
    score, y, _, _ = rows
    calibrator = GroupCalibrator().fit(score[:, None], y)
    assert np.all(np.diff(calibrator.predict(np.sort(score)[:, None])) >= 0)
    np.testing.assert_allclose(monotone(np.array([2.0, 0.0]), np.array([3.0, 1.0])), [1.5, 1.5])


def test_few_scores_get_their_own_means():
    score = np.repeat([1.0, 2.0, 3.0], 20)
    y = np.concatenate([np.repeat([0, 1], [15, 5]), np.repeat([0, 1], 10), np.ones(20)])
    np.testing.assert_allclose(
        GroupCalibrator().fit(score[:, None], y).predict([[1.0], [2.0], [3.0], [1.5]]),
        [0.25, 0.5, 1.0, 0.375],
    )


def test_small_groups_use_the_pooled_calibrator_and_say_so(rows):
    score, y, group, _ = rows
    group = group.astype("U4")
    group[:20], group[20:90] = "tiny", "calm"
    y = y.copy()
    y[20:90] = np.arange(70) < 4
    with pytest.warns(SmallGroupWarning, match="'calm' has 4 rows of the rarer outcome"):
        calibrator = GroupCalibrator().fit(score, y, group=group)
    assert set(calibrator.fallback_) == {"tiny", "calm"}
    pooled = GroupCalibrator().fit(score[:, None], y)
    np.testing.assert_allclose(calibrator.predict([0.4], group=["tiny"]), pooled.predict([[0.4]]))
    relaxed = GroupCalibrator(min_group_size=10, min_class_count=1).fit(score, y, group=group)
    assert relaxed.fallback_ == {}


def test_an_unseen_group_is_an_error_that_names_it(rows):
    score, y, group, _ = rows
    calibrator = GroupCalibrator().fit(score, y, group=group)
    with pytest.raises(DataError, match="group 'C' was not in the fit"):
        calibrator.predict([0.3], group=["C"])
    with pytest.raises(InvalidParameterError, match="`group` must be given"):
        calibrator.predict([[0.3]])


def test_weights_and_clusters_change_the_fit(rows, rng):
    score, y, _, _ = rows
    weight = rng.integers(1, 4, size=len(y))
    weighted = GroupCalibrator("isotonic").fit(score[:, None], y, weight).predict([[0.5]])
    repeated = GroupCalibrator("isotonic").fit(
        np.repeat(score, weight)[:, None], np.repeat(y, weight)
    )
    np.testing.assert_allclose(weighted, repeated.predict([[0.5]]))
    user = rng.integers(800, size=len(y))
    user[y == 1] = user[y == 1] // 4
    by_user = GroupCalibrator(unit="cluster").fit(score[:, None], y, cluster=user).predict([[0.5]])
    by_row = GroupCalibrator(unit="row").fit(score[:, None], y, cluster=user).predict([[0.5]])
    assert abs(by_user[0] - by_row[0]) > 0.05
    with pytest.raises(InvalidParameterError, match="`unit` must be named"):
        GroupCalibrator().fit(score[:, None], y, cluster=user)


def test_wrong_input_is_refused(rows):
    score, y, _, _ = rows
    with pytest.raises(InvalidParameterError, match="`method` must be one of"):
        GroupCalibrator("spline").fit(score[:, None], y)
    with pytest.raises(InvalidParameterError, match="`column` must be one of the 2 columns"):
        GroupCalibrator(column=2).fit(np.stack([score, score], axis=1), y)
    with pytest.raises(InvalidParameterError, match="requires y to be passed"):
        GroupCalibrator().fit(score[:, None], None)
    with pytest.raises(DataError, match="weights must not all be zero"):
        fit_score_map(y, score, weight=np.zeros(len(y)))


def test_a_large_sample_is_binned_and_agrees(rng):
    score = rng.uniform(size=90_000)
    y = (rng.uniform(size=90_000) < score).astype(float)
    large = fit_score_map(y, score)
    grid = np.linspace(0.05, 0.95, 10)
    np.testing.assert_allclose(large(grid), grid, atol=0.02)


def test_several_objectives_need_all_scores(rng):
    """Each score is right on average in both groups; the mean given both is not the score."""
    n = 3000
    score, group = rng.uniform(size=(n, 2)), rng.integers(2, size=n)
    sign = np.where(group == 1, 0.3, -0.3)[:, None]
    mean = score + sign * (score[:, ::-1] - 0.5)
    fit = MultiObjectiveCalibrator().fit(score, mean, group=group)
    at = [[0.3, 0.8]]
    np.testing.assert_allclose(fit.predict(at, group=[1]), [[0.39, 0.74]], atol=0.03)
    np.testing.assert_allclose(fit.predict(at, group=[0]), [[0.21, 0.86]], atol=0.03)


def test_splines_share_what_groups_have_in_common(rng):
    """Outcomes that twist with the group are found; a group of few rows stays with the others."""
    n = 6_000
    score, group = rng.uniform(size=(n, 2)), rng.choice(["a", "b"], n)
    twist = 0.8 * np.where(group == "b", 1.0, -1.0) * (score[:, 0] - 0.5) * (score[:, 1] - 0.5)
    mean = 0.25 + 0.5 * score + twist[:, None]
    y = (rng.uniform(size=(n, 2)) < mean).astype(float)
    fit = MultiObjectiveCalibrator("spline").fit(score, y, group=group)
    spline = fit.predict(score, group=group)
    kernel = MultiObjectiveCalibrator("kernel").fit(score, y, group=group)
    other = kernel.predict(score, group=group)
    assert np.mean((spline - mean) ** 2) < np.mean((other - mean) ** 2)
    rare = np.where(np.arange(n) < 30, "c", "a")
    with pytest.warns(SmallGroupWarning, match="'c' has 30 rows"):
        few = MultiObjectiveCalibrator("spline").fit(score, y, group=rare)
    at = np.array([[0.3, 0.7]])
    np.testing.assert_allclose(few.predict(at, group=["c"]), few.predict(at, group=["a"]), atol=0.1)


def test_splines_serve_outcomes_that_are_not_binary_or_do_not_vary(rng):
    score = rng.uniform(size=(800, 2))
    y = np.column_stack([3.0 * score[:, 0] - score[:, 1], np.ones(800)])
    fit = MultiObjectiveCalibrator("spline").fit(score, y)
    np.testing.assert_allclose(fit.predict(score), y, atol=0.02)


def test_boosting_serves_many_scores(rng):
    score = rng.uniform(size=(1500, 4))
    fit = MultiObjectiveCalibrator(random_state=0).fit(score, score)
    assert np.mean(np.abs(fit.predict(score) - score)) < 0.05
    with pytest.raises(InvalidParameterError, match="`method` must be one of"):
        MultiObjectiveCalibrator("magic").fit(score, score)


def test_a_small_group_uses_the_pooled_objectives(rng):
    score, group = rng.uniform(size=(300, 2)), np.repeat(["a", "b"], [280, 20])
    with pytest.warns(SmallGroupWarning, match="'b' has 20 rows"):
        fit = MultiObjectiveCalibrator().fit(score, score, group=group)
    pooled = MultiObjectiveCalibrator().fit(score, score)
    np.testing.assert_allclose(fit.predict(score[:3], group=["b"] * 3), pooled.predict(score[:3]))


def test_far_from_all_rows_the_nearest_one_counts():
    fit = MultiObjectiveCalibrator().fit([[0.0, 0.0], [1.0, 1.0]] * 5, [0.0, 1.0] * 5)
    np.testing.assert_allclose(fit.predict([[1e3, 1e3]]), [1.0])


def test_a_constant_score_becomes_the_mean():
    fit = fit_score_map([0.0, 1.0, 1.0, 1.0], np.full(4, 0.3))
    np.testing.assert_allclose(fit(np.array([0.0, 0.3, 1.0])), 0.75)


def forest_rows(rng, n=1200):
    X = rng.normal(size=(n, 4))
    group = rng.choice(["a", "b"], size=n)
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-X[:, 0] - 0.5 * (group == "b")))).astype(int)
    return X, y, group


def test_a_model_is_cross_fitted_so_that_its_own_rows_do_not_flatter_it(rng):
    X, y, group = forest_rows(rng)
    new = forest_rows(np.random.default_rng(1))
    forest = RandomForestClassifier(20, random_state=0)
    cross = GroupCalibrator(estimator=forest, cv=3).fit(X, y, group=group)
    fitted = clone(forest).fit(X, y)
    with pytest.warns(ApproximationWarning, match="was fitted on them"):
        naive = GroupCalibrator(estimator=fitted).fit(X, y, group=group)
    brier = [np.mean((each.predict(new[0], group=new[2]) - new[1]) ** 2) for each in (cross, naive)]
    assert brier[0] < brier[1] - 0.02
    assert isinstance(cross.estimator_, RandomForestClassifier)


def test_a_model_fitted_on_other_rows_is_used_without_a_word(rng):
    X, y, group = forest_rows(rng)
    model = LogisticRegression().fit(*forest_rows(np.random.default_rng(2))[:2])
    calibrator = GroupCalibrator(estimator=model).fit(X, y, group=group, cluster=None)
    assert calibrator.estimator_ is model
    users = GroupCalibrator(estimator=model, cv=3, unit="row").fit(
        X, y, group=group, cluster=np.arange(1200) // 2
    )
    assert users.estimator_ is not model
