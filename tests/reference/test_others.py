"""Others are asked again: every line of docs/asked-of-others.md."""

import pytest

from reference.others import ENTRIES, PAGE, largest
from support.tables import DATA


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.who}: {entry.what}"[:60])
def test_a_peer_says_the_same_or_the_reason_is_given(entry):
    if entry.needs == "statsmodels":
        pytest.importorskip("statsmodels")
    elif entry.needs is not None and not (DATA / entry.needs).exists():
        pytest.skip(f"{entry.needs} is not in the data folder")
    n, difference = largest(entry)
    assert n > 0
    assert difference <= entry.tolerance
    assert entry.tolerance <= 1e-9 or entry.reason


def test_the_page_has_a_line_for_every_peer():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[:2] for row in rows[2:]] == [
        [f"| {entry.who}", entry.what] for entry in ENTRIES
    ]
