"""Links between pages, and from pages to tests and modules, lead somewhere."""

import re
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from equipoise import Decision
from equipoise.plans.plan import read_plan
from equipoise.plans.run import execute

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "tests/README.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_the_page_lead_somewhere(page):
    links = LINK.findall(page.read_text(encoding="utf-8"))
    # A notebook is a page of the site.
    books = {link: page.parent / link.replace(".md", ".ipynb") for link in links}
    assert not [
        k for k, book in books.items() if not (page.parent / k).exists() and not book.exists()
    ]


def evidence():
    """Rows of the page on evidence: the words of the first column, and the other columns."""
    lines = (ROOT / "docs/evidence.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if "](../src/" in line]
    return [(re.findall(r"`([^`]+)`", first), *rest) for first, *rest in rows if len(rest) == 4]


def test_every_number_has_formula_test_and_simulation():
    rows = evidence()
    assert len(rows) >= 30
    for _, formula, equation, test, simulation in rows:
        assert "](../src/" in formula
        assert equation.strip()
        assert "](../tests/" in test
        assert "](" in simulation or simulation == "–"


def printed(result):
    """Methods and decisions of a result, as the report prints them."""
    tests = [*result.findings] + ([] if result.joint is None else [result.joint])
    for test in tests:
        yield test.decision.value
        if test.decision is not Decision.NOT_TESTED:
            # "..., Holm over 5 comparisons" is about this table, not about the method.
            yield re.sub(r", Holm( over .*)?$", "", test.method.replace("_", " "))


def test_every_method_and_decision_of_the_demo_has_its_row():
    with as_file(files("equipoise.plans") / "templates") as folder:
        dossier = execute(read_plan(folder / "demo.toml"))
    shown = {word for check in dossier.checks for word in printed(check.result)}
    known = {word for words, *_ in evidence() for word in words}
    assert len(shown) >= 15
    assert shown <= known


def test_every_method_of_a_gap_has_its_row():
    from equipoise.audits.disparity.subgroups import METHOD_WORDS

    known = {word for words, *_ in evidence() for word in words}
    methods = {word.replace("_", " ") for word in METHOD_WORDS if not word.startswith("plug_in")}
    assert methods <= known
