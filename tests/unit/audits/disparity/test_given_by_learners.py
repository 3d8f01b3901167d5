"""Gaps by learners: the audit is the test on arrays, and every option is checked."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, LogisticRegression

import equipoise as eq
from equipoise.exceptions import InvalidParameterError
from equipoise.results.finding import Decision
from equipoise.results.wording import headline
from equipoise.stats.disparity.doubly_robust import doubly_robust_disparity_test

RNG = np.random.default_rng(5)
N = 900
INCOME, AGE = RNG.normal(size=N), RNG.normal(size=N)
SEX = np.where(RNG.random(N) < 1 / (1 + np.exp(-INCOME)), "women", "men")
RACE = RNG.choice(["a", "b", "c"], N)
REGION = RNG.choice(["north", "south"], N)
PAY = 2 * INCOME + AGE + (REGION == "north") + RNG.normal(size=N)
HIRED = (PAY + RNG.normal(size=N) > 0).astype(int)
DATA = {
    "sex": SEX,
    "race": RACE,
    "income": INCOME,
    "age": AGE,
    "region": REGION,
    "pay": PAY,
    "hired": HIRED,
    "w": RNG.uniform(1, 2, N),
    "c": RNG.integers(0, 90, N),
}
LINEAR = (LinearRegression(), LogisticRegression())
LEARNT = {"given": ["income", "age"], "conditional": "doubly_robust", "learner": LINEAR}
WOMEN = (SEX == "women").astype(float)
FACTORS = np.column_stack([INCOME, AGE])


def audit(group="sex", data=DATA, **roles):
    return eq.Audit(data, group=group, y_true="pay", y_pred="hired", **roles)


@pytest.mark.parametrize("weights", ["overlap", "group"])
@pytest.mark.parametrize("roles", [{}, {"weight": "w"}, {"cluster": "c"}])
def test_the_audit_is_the_test_on_arrays(weights, roles):
    result = audit(**roles).disparity(
        "mean_outcome", reference={"sex": "men"}, weights=weights, **LEARNT
    )
    men, women = result.findings
    assert men.is_reference
    known = doubly_robust_disparity_test(
        PAY,
        WOMEN,
        FACTORS,
        outcome_learner=LINEAR[0],
        group_learner=LINEAR[1],
        weights=weights,
        **{role: DATA[column] for role, column in roles.items()},
    )
    assert_allclose([women.estimate, women.p_value], [known.estimate, known.p_value], rtol=1e-9)
    assert_allclose([women.ci.low, women.ci.high], known.confidence_interval(), rtol=1e-9)
    assert women.method == "doubly robust"
    assert "depends-on-learners" in {note.code for note in result.notes}
    assert "depends on the learners" in headline(result)
    assert result.details["conditional"] == "doubly_robust"
    summary = result.details["strata"][0]
    assert_allclose(summary["outcome_r2"], known.outcome_r2, rtol=1e-9)


@pytest.mark.parametrize("roles", [{}, {"cluster": "c"}, {"weight": "w"}])
def test_the_order_of_rows_and_counts_do_not_matter(roles):
    order = np.random.default_rng(1).permutation(N)
    shuffled = {name: values[order] for name, values in DATA.items()}
    asked = {"given": ["income", "region"], "conditional": "doubly_robust"}
    one = audit(**roles).disparity("selection_rate", **asked)
    other = audit(data=shuffled, **roles).disparity("selection_rate", **asked)
    for a, b in zip(one.findings, other.findings, strict=True):
        assert_allclose([a.estimate, a.p_value], [b.estimate, b.p_value], rtol=1e-9)
    counted = DATA | {"k": np.ones(N, dtype=int)}
    same = audit(data=counted, count="k", **roles).disparity("selection_rate", **asked)
    assert_allclose(same.findings[0].estimate, one.findings[0].estimate, rtol=1e-9)


def test_identical_rows_fall_into_several_folds():
    # With a factor of two levels and a 0/1 outcome there are eight different rows.
    data = {
        "sex": np.repeat(["m", "w"], 400),
        "level": np.tile([0.0, 1.0], 400),
        "y": np.tile([1, 1, 0, 0], 200),
    }
    result = eq.Audit(data, group="sex", y_pred="y").disparity(
        "selection_rate",
        given="level",
        conditional="doubly_robust",
        learner=(LogisticRegression(), LogisticRegression()),
    )
    assert abs(result.findings[0].estimate) < 0.01
    assert abs(result.details["strata"][0]["outcome_r2"]) < 0.05


def test_flag_and_certify_use_the_same_law():
    found = audit().disparity("mean_outcome", **LEARNT).findings[1]
    flagged = audit().flag("mean_outcome", margin=0.1, alternative="outside", **LEARNT)
    certified = audit().certify("mean_outcome", margin=1.0, **LEARNT)
    assert_allclose(flagged.findings[1].estimate, found.estimate)
    assert certified.findings[1].decision == Decision.WITHIN_MARGIN
    assert certified.joint.decision == Decision.WITHIN_MARGIN


def test_all_groups_together_share_one_family():
    asked = audit("race")
    alone = asked.disparity("mean_outcome", **LEARNT)
    together = asked.disparity("mean_outcome", simultaneous=True, rng=1, **LEARNT)
    assert alone.joint.method == "Bonferroni over 3 groups"
    for a, b in zip(alone.findings, together.findings, strict=True):
        assert a.p_value < b.p_value < min(3 * a.p_value, 1.0) + 1e-9


def test_a_group_too_small_is_not_tested():
    few = DATA | {"sex": np.where(np.arange(N) < 3, "other", SEX)}
    result = audit(data=few).disparity("mean_outcome", reference={"sex": "men"}, **LEARNT)
    assert [f.decision for f in result.findings].count(Decision.NOT_TESTED) == 2
    assert "too-small" in {note.code for f in result.findings for note in f.notes}


def test_groups_told_apart_by_the_factors_are_noted():
    data = DATA | {"income": 20.0 * (SEX == "women") + INCOME}
    result = audit(data=data).disparity("mean_outcome", reference={"sex": "men"}, **LEARNT)
    assert "little-overlap" in {note.code for f in result.findings for note in f.notes}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "ratio"}, "estimates a difference"),
        ({"weights": "population"}, '"overlap" or "group"'),
        ({"bands": {"income": 5}}, "needs none"),
        ({"learner": LinearRegression()}, "two estimators"),
        ({"n_splits": 1}, "n_splits"),
        ({"conditional": "strata"}, "belong to `conditional"),
        ({"given": ["sex"]}, "both group and given"),
        ({"given": None}, "belong to `given`"),
    ],
)
def test_options_without_a_meaning_are_refused(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        audit().disparity("mean_outcome", **(LEARNT | options))


def test_a_factor_of_many_names_is_refused():
    data = DATA | {"name": np.array([f"p{k}" for k in range(N)])}
    with pytest.raises(InvalidParameterError, match="900 categories"):
        audit(data=data).disparity(
            "mean_outcome", given="name", conditional="doubly_robust", learner=LINEAR
        )


def test_missing_factors_are_dropped_and_counted():
    data = DATA | {"income": np.where(np.arange(N) < 10, np.nan, INCOME)}
    result = audit(data=data, missing="drop").disparity("mean_outcome", **LEARNT)
    assert result.n == N - 10
    assert "missing-dropped" in {note.code for note in result.notes}
