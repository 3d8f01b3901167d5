"""The number on the first screen of the README is what the script of the repository prints."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("rate", "place"), [(0.3, 0), (0.5, 1), (0.1, 2)])
def test_equal_groups_fall_below_four_fifths_as_often_as_the_readme_says(rate, place):
    source = importlib.util.spec_from_file_location(
        "four_fifths", ROOT / "benchmarks" / "four_fifths.py"
    )
    script = importlib.util.module_from_spec(source)
    source.loader.exec_module(script)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    claim = re.search(
        r"below 0.8 in (\d+)% of audits.*?(\d+)% of audits at 50% selected, (\d+)% at 10%",
        readme,
        re.DOTALL,
    )
    share = script.below_four_fifths(applicants=2_000, rate=rate)
    assert round(100 * share) == int(claim[place + 1])
