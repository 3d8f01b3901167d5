"""The scoreboard is what its script kept, and the script's own row holds here."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    source = importlib.util.spec_from_file_location(
        "scoreboard", ROOT / "benchmarks" / "scoreboard.py"
    )
    module = importlib.util.module_from_spec(source)
    source.loader.exec_module(module)
    return module


def test_the_page_is_written_from_what_was_kept(script):
    kept = json.loads(script.KEPT.read_text(encoding="utf-8"))
    assert script.PAGE.read_text(encoding="utf-8") == script.page(kept)
    assert set(kept) == set(script.TOOLKITS)
    assert {name: found["tables"] for name, found in kept.items()} == script.TABLES


def test_our_own_row_is_repeated_on_the_first_tables(script):
    found = [script.equipoise(number) for number in range(3)]
    for one in found:
        assert [type(value) for value in one.values()] == [bool, bool, bool, float]
    kept = json.loads(script.KEPT.read_text(encoding="utf-8"))["equipoise"]["claims"]
    assert set(found[0]) == set(kept)
    for claim in list(kept)[:3]:
        assert sum(one[claim] for one in found) <= kept[claim]
        # 5% of the tables, with the room of a binomial count at the 0.1% level.
        assert kept[claim] <= 21
