"""Outcomes that are not known: what is shown whatever they are, and how far they may lie."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import equipoise as eq
from equipoise.exceptions import DataError, InvalidParameterError

ASKED = {
    "accuracy": "tpr",
    "accuracy_of": "population",
    "fairness": "selection_rate",
    "capacity": 0.2,
    "higher_group": "race=a",
}


def patients(n=4000, *, labels="score"):
    rng = np.random.default_rng(7)
    race = rng.choice(["a", "b"], size=n)
    sickness = rng.gamma(2.0, 2.0, size=n)
    cost = sickness * np.where(race == "b", 0.4, 0.7)
    sick = (sickness > 4).astype(float)
    rare = cost > np.median(cost) if labels == "score" else rng.random(n) < 0.5
    unknown = rng.random(n) < np.where(rare, 0.02, 0.25)
    sick[unknown] = np.nan
    return {
        "race": race,
        "sick": sick,
        "visits": rng.poisson(3 * sickness).astype(float),
        "cost": cost,
        "low": np.zeros(n),
        "high": np.where(unknown, 0.4, np.nan),
        "truth": (sickness > 4).astype(float),
    }


def asked(table, candidate="visits", *, missing="raise", **options):
    audit = eq.Audit(
        table, group="race", y_true="sick", y_score="cost", features=["visits"], missing=missing
    )
    return audit.improvability(candidate, **(ASKED | options))


def test_selective_labels_are_refused_until_their_limits_are_stated():
    table = patients()
    refused = asked(table, missing="drop", accuracy_loss=0.2)
    assert refused.joint.notes[0].code == "selective-labels"
    result = asked(table, unlabelled="worst", accuracy_loss=0.2)
    assert str(result.joint.decision) == "detected"
    found = result.details["breakdown"]
    assert found["largest"] == 1.0
    assert found["n_unlabelled"] == int(np.isnan(table["sick"]).sum())
    assert "whatever the outcomes of the" in str(result)
    assert "fair" not in str(result)


def test_narrower_limits_show_more_and_the_breakdown_lies_between():
    table = patients()
    p = [
        asked(table, unlabelled=limits, accuracy_loss=0.05).joint.p_value
        for limits in ((0.0, 1.0), (0.0, 0.4), (0.1, 0.2))
    ]
    assert p[0] > p[1] > p[2]
    columns = asked(table, unlabelled=("low", "high"), accuracy_loss=0.05)
    assert columns.joint.p_value == pytest.approx(p[1])
    worst = asked(table, unlabelled="worst", accuracy_loss=0.05)
    assert worst.joint.p_value == p[0]


def test_the_claim_is_true_of_any_outcomes_within_the_limits():
    """The worst case is no larger than with any outcomes filled in, decisions held fixed."""
    table = patients()
    worst = asked(table, unlabelled="worst", cutoff="fixed").findings[0].estimate
    rng = np.random.default_rng(1)
    unknown = np.isnan(table["sick"])
    fillings = [table["truth"], *rng.integers(2, size=(5, len(unknown))).astype(float)]
    for filling in fillings:
        whole = table | {"sick": np.where(unknown, filling, table["sick"])}
        assert worst <= asked(whole, cutoff="fixed").findings[0].estimate


def test_breakdown_is_where_the_result_is_no_longer_shown():
    table = patients()
    options = {"accuracy_loss": 0.09, "n_splits": 1, "rng": 3}
    result = asked(table, LogisticRegression(), unlabelled={"odds": 1.5}, **options)
    largest = result.details["breakdown"]["largest"]
    assert largest is not None
    for factor, shown in ((largest * 0.99, True), (largest * 1.02, False)):
        again = asked(table, LogisticRegression(), unlabelled={"odds": factor}, **options)
        assert (again.joint.p_value <= 0.05) == shown
    assert "similar people" in str(result)


def test_several_columns_are_bounded_together():
    table = patients()
    rng = np.random.default_rng(2)
    table |= {"noisy": table["visits"] + rng.normal(size=len(table["visits"]))}
    audit = eq.Audit(table, group="race", y_true="sick", y_score="cost")
    result = audit.improvability(
        candidates=["visits", "noisy"], unlabelled="worst", accuracy_loss=0.2, **ASKED
    )
    assert str(result.joint.decision) == "detected"


def test_outcomes_that_are_all_known_need_no_limits():
    table = patients()
    whole = table | {"sick": table["truth"]}
    plain = asked(whole, inference="analytic")
    bounded = asked(whole, unlabelled="worst")
    assert bounded.joint.p_value == plain.joint.p_value
    assert bounded.details["breakdown"] is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("best", "must be"),
        ((0.0, 1.0, 2.0), "must be"),
        ({"factor": 2}, "must be"),
        ({"odds": 2}, "needs a candidate that is fitted"),
        ((0.0, 2.0), "goes beyond"),
        ((0.8, 0.2), "the lower first"),
    ],
)
def test_odd_limits_are_refused(given, message):
    with pytest.raises((InvalidParameterError, DataError), match=message):
        asked(patients(400), unlabelled=given)


def test_metrics_of_your_own_have_no_known_dependence():
    table = patients(400) | {"called": np.tile([0, 1], 200)}
    audit = eq.Audit(table, group="race", y_true="sick", y_pred="called")
    with pytest.raises(InvalidParameterError, match="metric of your own"):
        audit.improvability("visits", accuracy=eq.Metric("own", "called"), unlabelled="worst")


def test_the_worst_of_outcomes_that_are_amounts_is_not_known():
    table = patients()
    table["sick"] = np.where(np.isnan(table["sick"]), np.nan, 7.5 * table["truth"])
    with pytest.raises(InvalidParameterError, match="for outcomes of 0 and 1; state the limits"):
        asked(table, unlabelled="worst", accuracy="selected_outcome")
