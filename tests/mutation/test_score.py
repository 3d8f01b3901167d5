"""What is kept of the mutants is told on the page on evidence, explained, and never given up."""

import json
import re
from pathlib import Path

import pytest

from mutation.sample import SCORE, is_as_good

PAGE = Path(__file__).parents[2] / "docs" / "evidence.md"
KEPT = json.loads(SCORE.read_text(encoding="utf-8"))


def test_every_mutant_that_survives_has_its_reason():
    assert KEPT["mutants"] >= 40
    assert KEPT["killed"] + len(KEPT["survived"]) == KEPT["mutants"]
    assert all(KEPT["survived"].values())


def test_the_page_tells_the_kept_score():
    (row,) = re.findall(r"^\| mutants of .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    told = f"of {KEPT['mutants']} drawn by a hash, {KEPT['killed']} are killed"
    assert told in row
    assert f"the other {len(KEPT['survived'])} change no number" in row


@pytest.mark.parametrize(
    ("mutants", "killed", "accepted"), [(80, 70, True), (40, 35, True), (80, 69, False)]
)
def test_a_smaller_share_is_refused(mutants, killed, accepted):
    kept = {"mutants": 80, "killed": 70}
    assert is_as_good({"mutants": mutants, "killed": killed}, kept) is accepted
