"""The recipes for a metric and a question work as their pages say, without another change."""

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import equipoise as eq
from docs.metrics_page import PAGE, line, rewritten
from equipoise.audits.asking import Asking, question_method
from equipoise.data import metrics
from equipoise.data.groups import cell_names
from equipoise.plans.gate import junit_xml, tripped
from equipoise.plans.plan import read_plan
from equipoise.plans.run import execute
from equipoise.report.html import html_report
from equipoise.results import question as registry
from equipoise.results.details import Details
from equipoise.results.estimand import Estimand
from equipoise.results.finding import Decision, Finding
from equipoise.results.question import Question, Section, register
from equipoise.results.result import AuditResult

SRC = Path(eq.__file__).parent
RECIPES = Path(__file__).parents[2] / "docs" / "contributing"
TABLE = {
    "sex": ["F"] * 6 + ["M"] * 50,
    "won": [1, 0, 0, 0, 0, 0] + [1, 0] * 25,
    "picked": [1, 1, 0, 0, 0, 0] + [1, 1, 0, 0, 1] * 10,
}
ROLES = {"group": "sex", "y_true": "won", "y_pred": "picked"}


def code_of(page):
    text = (RECIPES / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def ask_in_a_plan(tmp_path):
    def ask(check):
        rows = zip(*TABLE.values(), strict=True)
        lines = [",".join(TABLE), *(",".join(map(str, row)) for row in rows)]
        (tmp_path / "table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        roles = "\n".join(f'{role} = "{column}"' for role, column in ROLES.items())
        plan = tmp_path / "plan.toml"
        plan.write_text(f'[data]\npath = "table.csv"\n{roles}\n\n[[check]]\n{check}\n')
        return execute(read_plan(plan))

    return ask


def test_the_page_of_metrics_is_written_from_the_code():
    text = PAGE.read_text(encoding="utf-8")
    assert rewritten(text) == text, "run `python tests/docs/metrics_page.py`"


def test_a_metric_is_one_entry(monkeypatch, ask_in_a_plan):
    space = {"RateMetric": metrics.RateMetric}
    for block in code_of("add-a-metric.md"):
        exec(block, space)
    metric = space["METRIC"]
    monkeypatch.setitem(metrics.METRICS, metric.name, metric)
    audit = eq.Audit(TABLE, **ROLES)
    result = audit.disparity("fall_out", reference=0.5)
    # F: one false alarm of five negatives; M: fifteen of twenty-five.
    assert [f.estimate for f in result.findings] == pytest.approx([0.2 - 0.5, 0.6 - 0.5])
    assert result.findings[0].estimand == "false_alarm_share difference"
    assert "share of false alarms among negatives" in html_report(
        ask_in_a_plan('question = "certify"\nmetric = "false_alarm_share"\nmargin = 0.9')
    )
    assert line(metric).startswith("| `false_alarm_share` | share of false alarms among negatives")


@pytest.fixture
def presence(monkeypatch):
    """Register the question of the page for one test."""
    place = "equipoise.audits.presence"
    module = ModuleType(place)
    vars(module).update(
        {
            thing.__name__: thing
            for thing in (Asking, AuditResult, Decision, Details, Estimand, Finding, Question)
            if hasattr(thing, "__name__")
        },
        Asking=Asking,
        Section=Section,
        cell_names=cell_names,
        dataclass=dataclass,
        question_method=question_method,
    )
    monkeypatch.setitem(sys.modules, place, module)
    for block in code_of("add-a-question.md"):
        exec(block, vars(module))
    monkeypatch.setattr(registry.questions(), "known", dict(registry.questions()))
    register(module.PRESENCE)


@pytest.mark.usefixtures("presence")
def test_a_question_is_a_method_with_text_and_a_picture():
    result = eq.Audit(TABLE, **ROLES).presence(least=0.2)
    assert [f.estimate for f in result.findings] == pytest.approx([6 / 56, 50 / 56])
    assert "1 of 2 groups have less than the asked share" in str(result)
    assert "sex: M" in [text.get_text() for text in result.plot().get_yticklabels()]
    assert eq.AuditResult.from_dict(result.to_dict()) == result


@pytest.mark.usefixtures("presence")
def test_a_question_is_asked_in_plans_and_shown_in_the_report(ask_in_a_plan):
    dossier = ask_in_a_plan('question = "presence"\nleast = 0.2')
    page = html_report(dossier)
    assert "Who is in the table?" in page
    assert "1 of 2 groups have less than the asked share of rows" in page
    assert not tripped(dossier.checks, "detected")
    assert 'name="sex=F"' in junit_xml(dossier.checks)


@pytest.mark.usefixtures("presence")
def test_a_plan_knows_the_options_of_a_new_question(ask_in_a_plan):
    with pytest.raises(eq.exceptions.InvalidParameterError, match="Did you mean 'least'"):
        ask_in_a_plan('question = "presence"\nleats = 0.2')


def named_in(path):
    """Return the parameters, keywords, fields and attributes that a module names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.arg, ast.keyword)):
            yield node.arg
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


@pytest.mark.parametrize(
    ("option", "files"),
    [
        ("grades", {"gaps.py", "questions.py"}),
        ("simultaneous", {"gaps.py", "questions.py", "given.py", "extremes.py"}),
        ("conditional", {"gaps.py", "questions.py", "given.py", "alike.py"}),
    ],
)
def test_an_option_is_known_to_the_family_of_its_question_alone(option, files):
    found = {path for path in SRC.rglob("*.py") if option in set(named_in(path))}
    assert found == {SRC / "audits" / "disparity" / file for file in files}


def test_a_plan_knows_an_option_by_the_signature_alone(ask_in_a_plan):
    dossier = ask_in_a_plan('question = "disparity"\nmetric = "tpr"\nsimultaneous = true')
    assert dossier.checks[0].result.details["simultaneous"]
