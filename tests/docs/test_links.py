"""Links between pages, and from pages to tests and modules, lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "tests/README.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_the_page_lead_somewhere(page):
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert not [link for link in links if not (page.parent / link).exists()]


def test_every_number_of_the_demo_has_formula_test_and_simulation():
    rows = [
        line.split(" | ")
        for line in (ROOT / "docs/evidence.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and line.count(" | ") == 4 and "](../src/" in line
    ]
    assert len(rows) >= 20
    for _, formula, _, test, simulation in rows:
        assert "](../src/" in formula
        assert "](../tests/" in test
        assert "](" in simulation or "–" in simulation
