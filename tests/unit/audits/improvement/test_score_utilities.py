"""Scores, benefits and profits as what a rule is for."""

import narwhals as nw
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import equipoise as eq
from equipoise.exceptions import InvalidParameterError


def loans(n=3000):
    rng = np.random.default_rng(11)
    race = rng.choice(["a", "b"], size=n)
    income = rng.normal(size=n) + 0.3 * (race == "a")
    savings = rng.normal(size=n)
    repaid = (income + savings + rng.normal(size=n) > 0).astype(int)
    old = 1 / (1 + np.exp(-(0.7 * income + 0.8 * (race == "a") + 0.7 * rng.normal(size=n))))
    new = 1 / (1 + np.exp(-(1.2 * income + 1.2 * savings)))
    return {
        "race": race,
        "repaid": repaid,
        "income": income,
        "savings": savings,
        "old": old,
        "new": new,
        "granted": (old > 0.55).astype(int),
        "better": (new > 0.55).astype(int),
        "amount": rng.gamma(2.0, 5.0, size=n),
    }


LOANS = loans()
SCORES = {"group": "race", "y_true": "repaid", "y_score": "old", "features": ["income", "savings"]}


@pytest.mark.parametrize("accuracy", ["auc", "brier"])
@pytest.mark.parametrize("inference", ["analytic", "bootstrap"])
def test_scores_are_judged_without_a_capacity(accuracy, inference):
    result = eq.Audit(LOANS, **SCORES).improvability(
        "new",
        accuracy=accuracy,
        fairness="smd",
        higher_group="race=a",
        inference=inference,
        n_resamples=499,
    )
    assert str(result.joint.decision) == "detected"
    assert result.details["shares"] == {}
    gap = result.details["splits"][0]["criteria"][-1]
    a, b = (LOANS["old"][LOANS["race"] == g].mean() for g in "ab")
    assert gap["a0"] == pytest.approx((a - b) / LOANS["old"].std())
    assert result.findings[-1].estimand.noun == "standardised mean score"


def test_auc_of_groups_is_a_criterion_of_its_own():
    result = eq.Audit(LOANS, **SCORES).improvability(
        LogisticRegression(), accuracy="auc", fairness=["auc", "smd"], n_splits=1, rng=1
    )
    metrics = [f.estimand.metric for f in result.findings]
    assert metrics == ["auc", "auc", "auc", "smd"]
    assert result.findings[0].estimate > 0.05


def test_ks_is_cut_where_training_rows_say():
    result = eq.Audit(LOANS, **SCORES).improvability(
        LogisticRegression(),
        accuracy="ks",
        accuracy_of="population",
        fairness="smd",
        n_splits=1,
        rng=1,
    )
    values = result.details["splits"][0]["criteria"][0]
    assert values["a1"] > values["a0"] > 0.1
    with pytest.raises(InvalidParameterError, match="fixed on training rows"):
        eq.Audit(LOANS, **SCORES).improvability("new", accuracy="ks", fairness="smd")


def test_ks_of_given_decisions_is_the_difference_of_two_rates():
    audit = eq.Audit(LOANS, group="race", y_true="repaid", y_pred="granted")
    result = audit.improvability(
        "better", accuracy="ks", fairness="selection_rate", higher_group="race=a"
    )
    mine = LOANS["race"] == "a"
    y, d = LOANS["repaid"][mine], LOANS["granted"][mine]
    expected = d[y == 1].mean() - d[y == 0].mean()
    assert result.details["splits"][0]["criteria"][0]["a0"] == pytest.approx(expected)


@pytest.mark.parametrize("capacity", [None, 0.5])
def test_the_entropy_index_is_itself_to_shrink(capacity):
    options = {"capacity": capacity} if capacity else {}
    roles = {"y_score": "old"} if capacity else {"y_pred": "granted"}
    result = eq.Audit(LOANS, group="race", y_true="repaid", **roles).improvability(
        "new" if capacity else "better",
        accuracy="accuracy",
        accuracy_of="population",
        fairness="entropy_index",
        **options,
    )
    gap = result.details["splits"][0]["criteria"][-1]
    if capacity is None:
        b = LOANS["granted"] - LOANS["repaid"] + 1.0
        assert gap["a0"] == pytest.approx((np.mean(b**2) / b.mean() ** 2 - 1) / 2)
    assert gap["a1"] < gap["a0"]
    assert str(result.joint.decision) == "detected"
    assert len(result.findings) == 2


def test_profit_is_a_metric_of_your_own():
    profit = eq.Metric(
        "profit",
        nw.col("granted") * nw.col("amount") * (0.2 * nw.col("repaid") - (1 - nw.col("repaid"))),
    )
    audit = eq.Audit(LOANS, group="race", y_true="repaid", y_pred="granted")
    result = audit.improvability(
        "better",
        accuracy=profit,
        fairness="selection_rate",
        accuracy_of="population",
        margin_scale="absolute",
        higher_group="race=a",
    )
    d, y = LOANS["better"], LOANS["repaid"]
    expected = np.mean(d * LOANS["amount"] * (0.2 * y - (1 - y)))
    assert result.details["splits"][0]["criteria"][0]["a1"] == pytest.approx(expected)
    assert str(result.joint.decision) == "detected"


def test_measures_of_disparity_are_not_what_a_rule_is_for():
    audit = eq.Audit(LOANS, **SCORES)
    for metric in ("smd", "entropy_index"):
        with pytest.raises(InvalidParameterError, match="measures disparity"):
            audit.improvability("new", accuracy=metric)


def test_brier_scores_need_chances_and_absolute_margins():
    audit = eq.Audit(LOANS | {"new": 3 * LOANS["new"]}, **SCORES)
    with pytest.raises(InvalidParameterError, match="between 0 and 1"):
        audit.improvability("new", accuracy="brier", fairness="smd")
    with pytest.raises(InvalidParameterError, match="absolute"):
        eq.Audit(LOANS, **SCORES).improvability(
            "new", accuracy="brier", fairness="smd", accuracy_loss=0.01
        )


def test_the_dossier_speaks_of_scores():
    result = eq.Audit(LOANS, **SCORES).necessity(
        "new", accuracy="auc", accuracy_of="population", fairness="smd", higher_group="race=a"
    )
    assert "standardised mean score" in result.details["steps"][0]["answer"]
    assert "area under the ROC curve" in result.details["steps"][1]["answer"]


def test_a_larger_reduction_than_is_shown_is_said_to_be_so():
    result = eq.Audit(LOANS, **SCORES).improvability(
        "new", accuracy="auc", fairness="smd", higher_group="race=a", delta_fairness=0.99
    )
    assert str(result.joint.decision) == "not detected"
    assert "A reduction of the gap by 99% is not shown" in str(result).replace("\n", " ")


def test_several_columns_that_are_shown_are_counted():
    rng = np.random.default_rng(1)
    table = LOANS | {"other": np.clip(LOANS["new"] + 0.01 * rng.normal(size=3000), 0, 1)}
    result = eq.Audit(table, **SCORES).improvability(
        ["new", "other"], accuracy="auc", fairness="smd", higher_group="race=a"
    )
    text = str(result).replace("\n", " ")
    assert "2 of 2 candidates are shown to meet the requirement" in text
    assert "narrows the standardised mean score gap from" in text
