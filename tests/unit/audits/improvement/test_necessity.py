"""The three steps of a necessity argument."""

import inspect
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import equipoise as eq
from equipoise.audits.improvement.improvability import search_for
from equipoise.audits.improvement.necessity import _doc, _rate_words, _steps
from equipoise.plans.plan import parse_plan
from equipoise.plans.run import execute
from equipoise.report.improvement_tables import improvement_tables
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding
from equipoise.results.result import AuditResult
from support.clinic import ROLES, clinic


@pytest.fixture
def table(rng):
    return clinic(rng)


def test_disparity_purpose_and_alternative_stand_in_one_result(table):
    table["other"] = (table["visits"] > 12).astype(int)
    audit = eq.Audit(table, **ROLES)
    options = {"accuracy": "accuracy", "fairness": "selection_rate", "inference": "analytic"}
    result = audit.necessity("other", higher_group="race=a", **options)
    alone = audit.improvability("other", higher_group="race=a", **options)
    gap, purpose_a, _purpose_b, *third = result.findings
    a, b = (table["race"] == name for name in "ab")
    assert gap.estimate == pytest.approx(table["called"][b].mean() - table["called"][a].mean())
    assert (gap.group, gap.reference) == ("race=b", "race=a")
    assert gap.decision is eq.Decision.DETECTED
    rates = [table["called"][rows].mean() for rows in (a, b)]
    se = np.sqrt(sum(r * (1 - r) / rows.sum() for r, rows in zip(rates, (a, b), strict=True)))
    assert gap.ci.high - gap.estimate == pytest.approx(1.959964 * se, rel=1e-6)
    assert purpose_a.decision is eq.Decision.ESTIMATED
    assert purpose_a.estimate == pytest.approx((table["called"] == table["sick"])[a].mean())
    assert tuple(third) == alone.findings
    assert result.joint == alone.joint
    assert [step["question"][:8] for step in result.details["steps"]] == [
        "Is there",
        "What pur",
        "Does an ",
    ]
    text = " ".join(str(result).split())
    assert "A difference in selection rate is shown: race: b is" in text
    assert text.lower().count("accuracy of the status quo: ") == 1
    assert "A less discriminatory alternative is shown" in text
    again = AuditResult.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
    assert str(again) == str(result)


def test_a_search_says_what_was_tried_and_what_was_not(table):
    audit = eq.Audit(table, **(ROLES | {"features": ["visits", "conditions"]}))
    result = audit.necessity(
        candidates={"logit": LogisticRegression(), "weak": LogisticRegression(C=0.001)},
        accuracy="accuracy",
        accuracy_of="population",
        inference="analytic",
        n_splits=2,
        frontier=True,
        rng=3,
    )
    search = result.details["search"]
    assert search["candidates"] == ["logit", "weak"]
    assert search["seed"] == 3
    assert search["features"] == ["visits", "conditions"]
    assert "not searched" in search["not_searched"]
    captions = [found.caption for found in improvement_tables(result)]
    assert captions[:2] == ["The argument in three steps", "What was searched"]
    assert any(caption.startswith("Candidates tried") for caption in captions)
    assert any("tolerated loss" in caption for caption in captions)
    axes = result.plot()
    assert len(axes.figure.axes) == 4
    axes.figure.canvas.draw()


def test_a_frontier_is_drawn_only_where_there_is_one(table):
    from equipoise.exceptions import InvalidParameterError
    from equipoise.plot.improvement import loss_frontier

    table["other"] = (table["visits"] > 12).astype(int)
    audit = eq.Audit(table, **ROLES)
    result = audit.improvability("other", accuracy="accuracy", inference="analytic")
    with pytest.raises(InvalidParameterError, match="frontier=True"):
        loss_frontier(result)
    asked = audit.improvability(
        "other",
        accuracy="accuracy",
        accuracy_loss=0.01,
        margin_scale="absolute",
        inference="analytic",
        frontier=[0.0, 0.02],
    )
    labels = [t.get_text() for t in loss_frontier(asked).get_legend().get_texts()]
    assert labels == ["shown, all at once", "loss stated beforehand"]


def test_more_than_two_groups_are_compared_pair_by_pair(table, rng):
    table["race"] = np.where(rng.random(3000) < 0.3, "c", table["race"])
    table["other"] = (table["visits"] > 12).astype(int)
    result = eq.Audit(table, **ROLES).necessity(
        "other", accuracy="accuracy", fairness="selection_rate", inference="analytic"
    )
    gap = result.findings[0]
    assert gap.p_value == pytest.approx(min(3 * gap.p_value_raw, 1.0))


def test_what_cannot_be_tested_says_so_in_every_step(table):
    table["race"] = np.where(np.arange(3000) < 5, "z", "a")
    result = eq.Audit(table, **ROLES).necessity(
        LogisticRegression(), accuracy="accuracy", inference="analytic", n_splits=2
    )
    assert result.joint.decision is eq.Decision.NOT_TESTED
    assert result.details["steps"][2]["answer"]


def test_a_plan_asks_for_the_dossier(table, tmp_path):
    pd.DataFrame(table).to_csv(tmp_path / "patients.csv", index=False)
    text = """
[data]
path = "patients.csv"
group = "race"
y_true = "sick"
y_pred = "called"
features = ["visits", "conditions"]

[[check]]
question = "necessity"
candidates = ["sklearn.linear_model.LogisticRegression", "equipoise.search.ReweightedRule"]
accuracy = "accuracy"
accuracy_of = "population"
fairness = "selection_rate"
accuracy_loss = 0.02
frontier = true
inference = "analytic"
n_splits = 2
"""
    from equipoise.report.html import html_report

    dossier = execute(parse_plan(text, folder=tmp_path))
    result = dossier.checks[0].result
    assert result.audit == "necessity"
    page = html_report(dossier)
    assert "The argument in three steps" in page
    assert "What was searched" in page


@pytest.mark.parametrize(
    ("metric", "size"), [("fpr", "12.3 percentage points"), ("own", "0.123"), ("brier", "0.123")]
)
def test_a_gap_in_a_rate_is_told_in_percentage_points(metric, size):
    gap = Finding(
        group="g=a",
        estimand=Estimand(metric, "gap", scale="difference"),
        decision=Decision.DETECTED,
        n=100,
        method="z",
        estimate=-0.123,
        ci=ConfidenceInterval(low=-0.2, high=-0.1, confidence_level=0.95),
        p_value=0.01,
        p_value_raw=0.01,
        reference="g=b",
    )
    answer = _steps([gap], "None.", _rate_words([metric]))[0]["answer"]
    assert answer == (
        f"A difference in {gap.estimand.noun} is shown: g=a is {size} below g=b (p 0.010)"
    )
    both = _steps([gap, gap], "None.", _rate_words([metric]))[0]["answer"]
    assert both == f"{answer}; {answer[0].lower()}{answer[1:]}"


def test_the_options_are_documented_whether_python_keeps_indentation_or_not(monkeypatch):
    kept = inspect.cleandoc(_doc())
    assert "\nParameters\n----------\ncandidate : estimator" in kept
    monkeypatch.setattr(search_for, "__doc__", inspect.cleandoc(search_for.__doc__))
    assert inspect.cleandoc(_doc()) == kept


def test_without_docstrings_there_are_no_options_to_document(monkeypatch):
    monkeypatch.setattr(search_for, "__doc__", None)
    assert _doc().startswith("Argue necessity")
