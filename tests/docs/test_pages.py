"""Every Python example of the README and the docs runs and prints what the page says."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```.*$", re.MULTILINE)
NEEDS = re.compile(r"<!-- data: (.+?) -->")


def examples(page):
    text = page.read_text(encoding="utf-8")
    # A blank line in place of a fence ends the expected output before it.
    parsed = doctest.DocTestParser().get_doctest(FENCE.sub("", text), {}, page.name, str(page), 0)
    return text, parsed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_the_page_run(page, data_file, monkeypatch, tmp_path):
    text, parsed = examples(page)
    if not parsed.examples:
        return
    for name in NEEDS.findall(text):
        monkeypatch.setenv("EQUIPOISE_DATA", str(data_file(name).parent))
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report = []
    runner.run(parsed, out=report.append)
    assert runner.failures == 0, "".join(report)
