"""What leaving out a feature does: against two models fitted by hand."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import equipoise as eq
from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.stats.improvement.capacity import cut_top_share

FEATURES = ["income", "postcode", "age"]


def loans(n=2400):
    rng = np.random.default_rng(1)
    race = rng.choice(["a", "b"], size=n)
    income = rng.normal(size=n)
    return {
        "race": race,
        "repaid": (income + 0.5 * (race == "a") + rng.normal(size=n) > 0).astype(int),
        "granted": rng.integers(2, size=n),
        "income": income,
        "postcode": (race == "a") + 0.3 * rng.normal(size=n),
        "age": rng.normal(size=n),
    }


def asked(table, features=None, **options):
    audit = eq.Audit(table, group="race", y_true="repaid", y_pred="granted", features=FEATURES)
    return audit.drop_table(LogisticRegression(), features, capacity=0.5, rng=1, **options)


def test_changes_are_those_of_models_fitted_by_hand():
    table = loans()
    result = asked(table)
    # The same split, found again by its sizes: rows in the order of their content.
    from equipoise.audits.improvement.rows import read_decisions

    asking = read_decisions(
        eq.Audit(table, group="race", y_true="repaid", y_pred="granted", features=FEATURES).table,
        ("accuracy", "selection_rate"),
        features=True,
        capacity=0.5,
    )
    next(asking)
    with pytest.raises(StopIteration) as stop:
        asking.send(None)
    rows = stop.value.value
    seed = int(np.random.default_rng(1).integers(2**31 - 1))
    fit, _, test = rows.split(seed, 2 / 3)
    found = {}
    for name, columns in (("all", [0, 1, 2]), ("postcode", [0, 2]), ("age", [0, 1])):
        model = LogisticRegression().fit(rows.X[fit][:, columns], rows.y[fit])
        d = cut_top_share(model.predict_proba(rows.X[test][:, columns])[:, 1], 0.5).chance
        y, group = rows.y[test], rows.group[test]
        found[name] = (
            d[group == 0].mean() - d[group == 1].mean(),
            np.mean(d * y + (1 - d) * (1 - y)),
        )
    by_name = {(f.group, f.estimand.kind): f.estimate for f in result.findings}
    for name in ("postcode", "age"):
        expected = np.subtract(found[name], found["all"])
        assert by_name[f"without {name}", "gap"] == pytest.approx(expected[0])
        assert by_name[f"without {name}", "gain"] == pytest.approx(expected[1])
    assert result.details["gap"] == pytest.approx(found["all"][0])


def test_the_postcode_carries_the_gap():
    result = asked(loans())
    assert [f.group for f in result.findings[::2]] == [f"without {name}" for name in FEATURES]
    gap = result.findings[2]
    assert gap.ci.high < -0.04
    assert {str(f.decision) for f in result.findings} == {"estimated"}
    assert "without postcode" in str(result)
    assert asked(loans(), ["age"]).details["critical"] < result.details["critical"]


def test_intervals_hold_for_all_features_together():
    """Of a feature that is noise the true change of the next sample is near nothing."""
    assert all(0.0 in f.ci for f in asked(loans(), ["age"]).findings)


def test_odd_requests_are_refused():
    with pytest.raises(InvalidParameterError, match="not a feature"):
        asked(loans(200), ["incme"])
    with pytest.raises(InvalidParameterError, match="one is named"):
        asked(loans(200), [])
    with pytest.raises(InvalidParameterError, match="judges scores"):
        asked(loans(200), accuracy="auc")
    with pytest.raises(GroupTooSmallError, match="at least 10"):
        asked(loans(24))
    one = loans(200) | {"race": np.full(200, "a")}
    with pytest.raises(InvalidParameterError, match="at least two groups"):
        asked(one)


def test_a_list_of_candidates_may_come_first():
    table = loans() | {"other": loans()["income"]}
    audit = eq.Audit(table, group="race", y_true="repaid", y_score="postcode")
    result = audit.improvability(["income", "other"], accuracy="accuracy", capacity=0.5)
    assert result.details["n_candidates"] == 2
