"""docs/guide/arrays.md shows every function of `equipoise.stats`, and no other."""

import re
from pathlib import Path

from equipoise import stats

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "arrays.md"


def test_the_page_runs_every_function_of_the_package():
    calls = set(re.findall(r"^>>> .*?\bstats\.(\w+)\(", PAGE.read_text("utf-8"), re.MULTILINE))
    assert calls == set(stats.__all__)


def test_the_table_of_the_page_names_every_function():
    rows = re.findall(r"^\| \[.*\) \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(stats.__all__)
