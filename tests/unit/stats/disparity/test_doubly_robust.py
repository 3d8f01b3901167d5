import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.stats.disparity.doubly_robust import (
    Nuisances,
    cross_fit,
    doubly_robust_disparity_test,
    doubly_robust_gap,
    folds,
)


@pytest.fixture
def rows(rng):
    x = rng.normal(size=(300, 2))
    member = (rng.random(300) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
    return x @ [1.0, 0.5] + rng.normal(size=300) - 0.4 * member, member, x


def constant(n, outcome=0.0, comparator=0.0, membership=0.5):
    return Nuisances(
        outcome=np.full(n, outcome),
        comparator_outcome=np.full(n, comparator),
        membership=np.full(n, membership),
    )


def test_constant_predictions_give_differences_of_means(rows):
    y, member, _ = rows
    n, share = len(y), member.mean()
    gap = doubly_robust_gap(y, member, constant(n, y.mean(), membership=share))
    assert_allclose(gap.estimate, y[member == 1].mean() - y[member == 0].mean())
    gap = doubly_robust_gap(
        y, member, constant(n, y.mean(), y[member == 0].mean(), share), weights="group"
    )
    assert_allclose(gap.estimate, y[member == 1].mean() - y[member == 0].mean())
    assert_allclose(gap.outcome_r2, 0.0, atol=1e-12)
    assert gap.membership_auc == 0.5


def test_residual_on_residual_is_the_regression_coefficient(rows):
    y, member, x = rows
    design = np.column_stack([np.ones(len(y)), x])
    fit = lambda target: design @ np.linalg.lstsq(design, target, rcond=None)[0]  # noqa: E731
    own = Nuisances(outcome=fit(y), comparator_outcome=fit(y), membership=fit(member))
    whole = np.linalg.lstsq(np.column_stack([design, member]), y, rcond=None)[0]
    assert_allclose(doubly_robust_gap(y, member, own).estimate, whole[-1])


def test_the_interval_agrees_with_the_p_value(rows):
    y, member, x = rows
    gap = doubly_robust_disparity_test(
        y, member, x, outcome_learner=LinearRegression(), group_learner=LogisticRegression()
    )
    low, high = gap.confidence_interval(1.0 - gap.p_value)
    assert_allclose(min(abs(low), abs(high)), 0.0, atol=1e-9)
    t = gap.estimate / gap.se * np.sqrt((gap.degrees - 1) / gap.degrees)
    assert_allclose(gap.p_value, 2 * stats.t.sf(abs(t), gap.degrees))
    assert_allclose(gap.root(gap.estimate), 0.0, atol=1e-12)
    assert "depends on the learners" in str(gap)
    assert gap.extreme < 0.05


def test_every_row_is_predicted_by_learners_that_did_not_see_it(rows):
    y, member, x = rows
    fold = folds(5, x[:, 0])
    learner = LinearRegression()
    nuisances = cross_fit(
        x, y, member, fold, outcome_learner=learner, group_learner=LogisticRegression()
    )
    out = fold == 3
    known = LinearRegression().fit(x[~out], y[~out]).predict(x[out])
    assert_allclose(nuisances.outcome[out], known)
    control = ~out & (member == 0)
    known = LinearRegression().fit(x[control], y[control]).predict(x[out])
    assert_allclose(nuisances.comparator_outcome[out], known)
    assert not hasattr(learner, "coef_")


def test_any_learner_serves_and_weights_reach_it(rows, rng):
    y, member, x = rows
    learners = {
        "outcome_learner": RandomForestRegressor(20, random_state=0),
        "group_learner": LogisticRegression(),
    }
    forest = doubly_robust_disparity_test(y, member, x, **learners)
    assert -1.0 < forest.estimate < 0.2
    learners["outcome_learner"] = LinearRegression()
    one = doubly_robust_disparity_test(y, member, x, weight=np.ones(300), **learners)
    plain = doubly_robust_disparity_test(y, member, x, **learners)
    other = doubly_robust_disparity_test(y, member, x, weight=rng.exponential(size=300), **learners)
    assert_allclose(one.estimate, plain.estimate)
    assert other.estimate != plain.estimate


def test_folds_keep_clusters_together_and_ignore_the_order_of_rows(rng):
    cluster = rng.integers(0, 40, 300)
    fold = folds(4, cluster=cluster)
    assert all(len(set(fold[cluster == c])) == 1 for c in set(cluster))
    order = rng.permutation(300)
    assert (folds(4, cluster=cluster[order]) == fold[order]).all()
    assert set(fold) == {0, 1, 2, 3}
    x = rng.normal(size=300)
    assert (folds(4, x[order]) == folds(4, x)[order]).all()


def test_identical_rows_are_dealt_to_all_folds():
    assert set(folds(4, np.zeros(200), np.ones(200))) == {0, 1, 2, 3}


def test_clusters_are_summed_before_they_are_squared(rows):
    y, member, _ = rows
    twice = [np.repeat(values, 2) for values in (y, member)]
    share = member.mean()
    plain = doubly_robust_gap(y, member, constant(300, y.mean(), membership=share))
    clustered = doubly_robust_gap(
        *twice, constant(600, y.mean(), membership=share), cluster=np.repeat(np.arange(300), 2)
    )
    assert_allclose(clustered.se, plain.se)
    assert_allclose(clustered.degrees, plain.degrees)


def test_what_cannot_be_fitted_is_refused(rows):
    y, member, x = rows
    learners = {"outcome_learner": LinearRegression(), "group_learner": LogisticRegression()}
    with pytest.raises(InvalidParameterError, match="one row each"):
        doubly_robust_disparity_test(y, member, x[:, 0], **learners)
    with pytest.raises(GroupTooSmallError, match="rows of one group only"):
        doubly_robust_disparity_test(y, np.ones(300), x, **learners)
    with pytest.raises(GroupTooSmallError, match="does not vary"):
        doubly_robust_gap(np.zeros(300), member, constant(300))


def test_a_sure_membership_is_cut_before_it_divides():
    # Of the group's weights (1 - t) e / (1 - e) the largest is .99 / .01.
    y, member = np.array([1.0, 0.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0])
    sure = Nuisances(
        outcome=np.zeros(4), comparator_outcome=np.zeros(4), membership=np.array([1, 0, 1, 0.0])
    )
    assert_allclose(doubly_robust_gap(y, member, sure, weights="group").estimate, (1 - 99) / 2)
