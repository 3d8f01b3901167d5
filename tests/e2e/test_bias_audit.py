"""The summary of results of a bias audit: dates, data, tables; what is missing is said."""

import csv

import numpy as np
import pytest

import equipoise as eq
from equipoise.exceptions import InvalidParameterError
from equipoise.plans.dossier import Dossier
from equipoise.plans.plan import parse_plan, read_plan
from equipoise.plans.run import execute
from equipoise.report.html import html_report
from equipoise.report.ll144 import bias_audit

PLAN = """
[data]
path = "people.csv"
group = ["race", "sex"]
y_pred = "selected"

[[check]]
question = "impact_ratios"
{options}

[report]
layout = "nyc-ll144"
{facts}
"""
FACTS = {
    "audit_date": "2026-11-01",
    "distribution_date": "2026-12-01",
    "auditor": '"A & B"',
    "data_kind": '"historical"',
    "data_source": '"the applicant system"',
    "data_explanation": '"all applicants of 2026"',
}


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sex", "race", "selected", "score"])
        for k in range(400):
            race = "Asian" if k < 4 else ("White", "Hispanic or Latino")[k % 2]
            writer.writerow([("Male", "Female")[k % 3 == 0], race, rng.integers(2), k])
    return tmp_path


def plan(folder, facts=FACTS, options=""):
    lines = "\n".join(f"{key} = {value}" for key, value in facts.items())
    path = folder / "audit.toml"
    path.write_text(PLAN.format(facts=lines, options=options))
    return path


def test_the_report_states_what_the_rules_ask(folder, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795000000")  # 2026-11-18
    reason = {"exclusion_reason": '"four people"'}
    dossier = execute(read_plan(plan(folder, FACTS | reason)))
    found = bias_audit(dossier)
    assert not found.problems
    facts = dict(found.facts)
    assert facts["Independent auditor"] == "A & B"
    assert facts["Why categories under 2% are left out"] == "four people"
    page = html_report(dossier)
    assert "A &amp; B" in page
    assert "<caption>Intersectional Categories</caption>" in page
    assert "Sex Categories" in found.text()
    assert "the applicant system" in found.text()
    # Rebuilt from the written results it is the same.
    assert html_report(Dossier.from_dict(dossier.to_dict())) == page
    sex = found.tables[0].tables[0]
    assert [row[0] for row in sex.rows] == ["Male", "Female"]


def test_what_is_left_out_is_not_given(folder):
    found = bias_audit(execute(read_plan(plan(folder, {"data_kind": '"test"'}))))
    missing = [label for label, value in found.facts if value == "NOT GIVEN"]
    assert "Why historical data were not used" in missing
    assert "How the test data were made" in missing
    assert "Why categories under 2% are left out" in missing
    assert len(found.problems) == len(missing) == 8


def test_an_audit_over_a_year_old_is_said(folder, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795000000")
    old = FACTS | {"audit_date": "2025-11-17", "exclusion_reason": '"few"'}
    found = bias_audit(execute(read_plan(plan(folder, old))))
    assert found.problems == ("5-301(a): the audit is 366 days old.",)


def test_strict_ends_with_two_and_the_files_are_written(run, folder):
    path, page = plan(folder, {}), folder / "report.html"
    done = run("audit", str(path), "--output", str(page))
    assert done.returncode == 0
    assert "NOT GIVEN" in done.stdout
    done = run("audit", str(path), "--output", str(page), "--strict")
    assert done.returncode == 2
    assert "Date of the bias audit: not given." in done.stderr
    assert "Summary of the bias audit" in page.read_text(encoding="utf-8")
    full = plan(folder, FACTS | {"exclusion_reason": '"few"', "audit_date": "2099-01-01"})
    assert run("audit", str(full), "--strict", "--quiet").returncode == 0


def test_a_tool_that_scores_has_scoring_rates(folder):
    text = plan(folder, options='metric = "scoring_rate"').read_text()
    path = folder / "scored.toml"
    path.write_text(text.replace('y_pred = "selected"', 'y_score = "score"'))
    (tables,) = bias_audit(execute(read_plan(path))).tables
    assert tables.columns[1] == "Scoring Rate"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('["race", "sex"]', '["sex"]'), "two group columns"),
        (('"impact_ratios"', '"disparity"\nmetric = "selection_rate"'), "needs a check of"),
        (("2026-11-01", '"soon"'), "must be a day"),
        (('"historical"', '"old"'), "data_kind"),
        (('layout = "nyc-ll144"', ""), 'belongs to layout = "nyc-ll144"'),
        (('"nyc-ll144"', '"nice"'), "layout"),
    ],
)
def test_a_layout_that_cannot_be_printed_is_refused_before_anything_runs(folder, change, message):
    text = plan(folder).read_text().replace(*change)
    with pytest.raises(InvalidParameterError, match=message):
        parse_plan(text, folder=folder)


def test_strict_belongs_to_the_layout(run, folder):
    path = plan(folder, {})
    path.write_text(path.read_text().replace('layout = "nyc-ll144"', ""))
    done = run("audit", str(path), "--strict")
    assert done.returncode == 2
    assert "--strict" in done.stderr


def test_scores_above_the_median_of_everybody_count():
    rng = np.random.default_rng(3)
    group, score = rng.choice(["a", "b", "unknown"], 301), rng.normal(size=301).round(1)
    audit = eq.Audit({"g": group, "s": score}, group="g", y_score="s")
    result = audit.impact_ratios("scoring_rate", unknown="unknown")
    above = score > np.median(score)
    table = result.details["tables"][0]
    assert table["n"] == [int((group == g).sum()) for g in "ab"]
    assert table["selected"] == [int(above[group == g].sum()) for g in "ab"]
    assert result.findings[0].method == "one pair"
    values, counts = np.unique(np.stack([group, score.astype(str)]), axis=1, return_counts=True)
    counted = eq.Audit(
        {"g": values[0], "s": values[1].astype(float), "k": counts},
        group="g",
        y_score="s",
        count="k",
    ).impact_ratios("scoring_rate", unknown="unknown")
    assert counted.details["tables"][0]["selected"] == table["selected"]
    gaps = audit.disparity("scoring_rate", reference="rest")
    assert gaps.details.values[0]["group_value"] == pytest.approx(above[group == "a"].mean())
