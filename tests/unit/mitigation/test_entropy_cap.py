import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.mitigation import EntropyCappedClassifier
from equipoise.mitigation.penalised_logistic import PenalisedLogistic
from equipoise.stats.inequality.benefits import SPEICHER, hard_benefits
from equipoise.stats.inequality.cap import index_cap, kappa_scheme
from equipoise.stats.inequality.index import entropy_index


@parametrize_with_checks(
    [EntropyCappedClassifier(), EntropyCappedClassifier(constraint="cap", kappa=40.0)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*SCIPY_ARRAY_API")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def people(rng):
    n = 6000
    group = rng.choice(["a", "b"], n, p=[0.6, 0.4])
    y = (rng.random(n) < np.where(group == "a", 0.35, 0.55)).astype(int)
    X = np.column_stack([y + rng.normal(size=n), (group == "b") + 0.5 * rng.normal(size=n)])
    return X, y, group


def rates(y, decision):
    return decision[y == 0].mean(), 1 - decision[y == 1].mean()


@pytest.mark.parametrize("kind", ["punitive", "assistive"])
@pytest.mark.parametrize("constraint", ["direct", "cap"])
def test_ratio_holds_on_new_people(people, rng, kind, constraint):
    X, y, _ = people
    rule = EntropyCappedClassifier(constraint=constraint, kappa=3, kind=kind).fit(X, y)
    new_y = rng.integers(2, size=20_000)
    new_X = np.column_stack([new_y + rng.normal(size=20_000), 0.4 + rng.normal(size=20_000)])
    fpr, fnr = rates(new_y, rule.predict(new_X))
    harmful, benign = (fpr, fnr) if kind == "punitive" else (fnr, fpr)
    assert 3 * harmful < benign
    assert rule.held_out_["fpr"] == pytest.approx(fpr, abs=0.1)


def test_cap_is_stricter_than_the_ratio_itself(people):
    X, y, _ = people
    direct = EntropyCappedClassifier(kappa=3).fit(X, y)
    cap = EntropyCappedClassifier(constraint="cap", kappa=3, order=0.5).fit(X, y)
    assert cap.threshold_ > direct.threshold_
    assert cap.held_out_["accuracy"] < direct.held_out_["accuracy"]
    scheme = kappa_scheme(base_rate=float(y.mean()), kappa=3, kind="punitive")
    decision = cap.predict(X)
    index = entropy_index(hard_benefits(y, decision, matrix=scheme.matrix), order=0.5)
    assert index < index_cap(scheme, order=0.5).cap


def test_margin_makes_the_choice_more_cautious(people):
    X, y, _ = people
    plain = EntropyCappedClassifier(kappa=3, confidence_level=None).fit(X, y)
    careful = EntropyCappedClassifier(kappa=3, confidence_level=0.99).fit(X, y)
    assert careful.threshold_ > plain.threshold_
    score = plain.estimator_.predict_proba(X)[:, 1]
    assert np.array_equal(plain.predict(X), (score > plain.threshold_).astype(int))


def test_each_group_gets_a_threshold_when_it_may_be_used(people):
    X, y, group = people
    rule = EntropyCappedClassifier(kappa=2).fit(X, y, group=group)
    assert set(rule.thresholds_) == {"a", "b"}
    decision = rule.predict(X, group=group)
    for name in "ab":
        fpr, fnr = rates(y[group == name], decision[group == name])
        assert 2 * fpr < fnr
    with pytest.raises(InvalidParameterError, match="pass `group` to `predict`"):
        rule.predict(X)
    with pytest.raises(DataError, match="'c' were not in `fit`; known are 'a', 'b'"):
        rule.predict(X[:1], group=["c"])


def test_group_is_not_used_at_decision_time_when_it_may_not(people):
    X, y, group = people
    rule = EntropyCappedClassifier(kappa=2, group_use="training").fit(X, y, group=group)
    assert rule.thresholds_ == {}
    assert rule.predict(X).shape == y.shape


@pytest.mark.parametrize("use", ["decision", "training"])
def test_between_group_part_is_cut_to_its_share(rng, use):
    group = rng.choice(["a", "b"], 6000, p=[0.6, 0.4])
    y = (rng.random(6000) < np.where(group == "a", 0.35, 0.45)).astype(int)
    X = np.column_stack(
        [y + rng.normal(size=6000), 0.8 * y + (group == "b"), rng.normal(size=6000)]
    )
    X[:, 1] += rng.normal(size=6000)
    plain = LogisticRegression().fit(X, y).predict(X)
    rule = EntropyCappedClassifier(constraint="between", order=2.0, group_use=use)
    rule.fit(X, y, group=group)
    decision = rule.predict(X, group=group if use == "decision" else None)

    def between(choice):
        benefit = hard_benefits(y, choice)
        means = [benefit[group == g].mean() for g in "ab"]
        return entropy_index(means, order=2.0, weight=[np.mean(group == g) for g in "ab"])

    assert between(decision) < 0.35 * between(plain)
    assert np.mean(decision == y) > np.mean(plain == y) - 0.08
    assert rule.held_out_["between"] <= 0.15 * between(plain)


def test_penalty_narrows_the_gap_and_none_is_plain_logistic_regression(rng):
    X, y = rng.normal(size=(200, 2)), rng.integers(2, size=200).astype(float)
    group = rng.integers(2, size=200)
    X[:, 0] += group
    free = PenalisedLogistic(penalty=0.0, matrix=SPEICHER, order=2.0).fit(X, y, group)
    reference = LogisticRegression(C=1 / (200 * 1e-4), tol=1e-8).fit(X, y)
    np.testing.assert_allclose(free.score(X), reference.predict_proba(X)[:, 1], atol=2e-3)
    heavy = PenalisedLogistic(penalty=300.0, matrix=SPEICHER, order=2.0).fit(X, y, group)
    gap = [
        abs(np.subtract(*[m.score(X)[group == g].mean() for g in (0, 1)])) for m in (free, heavy)
    ]
    assert gap[1] < gap[0]


def test_any_probability_estimator_will_do(people):
    X, y, _ = people
    forest = RandomForestClassifier(n_estimators=20, max_depth=4, random_state=0)
    rule = clone(EntropyCappedClassifier(forest, kappa=2)).fit(X, y)
    assert isinstance(rule.estimator_, RandomForestClassifier)
    assert rule.n_features_in_ == 2


def test_labels_may_be_words(people):
    X, y, _ = people
    rule = EntropyCappedClassifier(kappa=2).fit(X, np.where(y == 1, "yes", "no"))
    assert set(rule.predict(X)) == {"no", "yes"}


@pytest.mark.parametrize(
    ("options", "group", "message"),
    [
        ({"constraint": "limit"}, None, "`constraint` must be one of"),
        ({"constraint": "between"}, None, "pass `group` to `fit`"),
        ({"kappa": 0.0}, None, "`kappa`"),
        ({"holdout": 1.5}, None, "`holdout`"),
        ({"group_use": "never"}, None, "`group_use`"),
        ({}, ["a", "b"], "one entry for each row; got 2 for 6000"),
        ({"constraint": "cap", "kappa": 0.1}, None, "cannot be encoded"),
    ],
)
def test_wrong_options_are_refused(people, options, group, message):
    X, y, _ = people
    with pytest.raises(InvalidParameterError, match=message):
        EntropyCappedClassifier(**options).fit(X, y, group=group)


def test_group_with_one_outcome_is_refused(people):
    X, y, group = people
    with pytest.raises(DataError, match="one outcome only"):
        EntropyCappedClassifier().fit(X, y, group=np.where(y == 1, "all", group))
