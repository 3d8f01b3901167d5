"""Thousands of subgroups: the text stays short, the frame complete."""

import numpy as np
import pytest

import equipoise as eq
from equipoise.results import tables
from equipoise.results.finding import Decision


@pytest.fixture
def result(rng):
    n = 4000
    group = rng.integers(100, size=n)
    rate = np.where(group == 7, 0.9, 0.3)
    data = {"town": [f"t{k:03d}" for k in group], "said_yes": (rng.random(n) < rate).astype(int)}
    return eq.Audit(data, group="town", y_pred="said_yes").disparity("selection_rate")


def test_text_shows_what_was_detected_and_says_how_many_are_left_out(result):
    text = str(result)
    table = text[text.index("\ngroup ") :]
    lines = [line for line in table.splitlines() if line.startswith("town: ")]
    assert len(result.findings) == 100
    assert len(lines) == tables.MOST
    found = [line for line in lines if line.endswith(" detected") and "not detected" not in line]
    others = lines[len(found) :]
    assert found
    assert lines == [*sorted(found), *sorted(others)]
    assert "80 more of 100 findings: `to_frame()` has all" in text
    for finding in result.findings:
        if finding.decision is Decision.DETECTED:
            name = finding.group.replace("=", ": ")
            assert any(line.startswith(f"{name} ") for line in lines)


def test_the_notebook_table_is_cut_alike(result):
    page = result._repr_html_()
    assert page.count("<tr>") == tables.MOST + 1
    assert "80 more of 100 findings" in page


def test_every_line_is_printed_when_all_are_asked_for(result):
    text = tables.table(result, most=tables.ALL)
    assert text.count("\ntown: ") == 100
    assert "more of" not in text


def test_the_frame_has_every_finding(result):
    assert len(result.to_frame("pyarrow")) == 100
    assert len(result.to_dict()["findings"]) == 100


def test_a_short_result_is_shown_whole(rng):
    data = {"town": ["a", "b"] * 50, "said_yes": rng.integers(2, size=100)}
    text = str(eq.Audit(data, group="town", y_pred="said_yes").disparity("selection_rate"))
    assert "more of" not in text
