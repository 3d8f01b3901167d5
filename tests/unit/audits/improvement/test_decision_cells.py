"""Rows of a ready candidate, counted by group, outcome and decisions."""

import numpy as np
import pytest

import equipoise as eq
from equipoise.audits.asking import ask
from equipoise.audits.improvement import decision_cells
from equipoise.audits.improvement.decision_cells import read_cells
from equipoise.data.roles import Roles
from equipoise.data.table import Table
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError

ROWS = {
    "g": ["a", "a", "a", "b", "b", "b"],
    "y": [1, 1, 0, 1, 0, 0],
    "p": [1, 1, 0, 0, 0, 1],
    "c": [1, 1, 0, 1, 0, 0],
    "s": [0.9, 0.9, 0.2, 0.7, 0.1, 0.7],
    "u": [1, 1, 2, 3, 3, 4],
    "text": list("abcdef"),
}


def counted(rows=ROWS, *, metrics=("accuracy",), candidate="c", capacity=None, **roles):
    table = Table(rows, Roles(**({"group": ("g",), "y_true": "y", "y_pred": "p"} | roles)))
    return ask(read_cells(table, metrics, candidate=candidate, capacity=capacity))


def test_identical_rows_are_one_with_a_count():
    rows = counted()
    table = np.column_stack([rows.group, rows.y, rows.status_quo, rows.candidate, rows.count])
    expected = [[0, 0, 0, 0, 1], [0, 1, 1, 1, 2], [1, 0, 0, 0, 1], [1, 0, 1, 0, 1], [1, 1, 0, 1, 1]]
    np.testing.assert_array_equal(table, expected)
    assert rows.names == ("g=a", "g=b")
    np.testing.assert_array_equal(rows.group_sizes, [3, 3])


def test_rows_of_which_some_are_selected_are_parted():
    # One of six: one of the two rows with score 0.9.
    rows = counted(candidate="s", capacity=1 / 6)
    chosen = rows.candidate == 1.0
    assert rows.count[chosen].tolist() == [1]
    assert rows.count.sum() == 6


def test_ties_go_by_group_and_outcome():
    # Of the two rows of group b with score 0.7, the one with outcome 0 comes first.
    rows = counted(candidate="s", capacity=0.5)
    chosen = (rows.candidate == 1.0) & (rows.group == 1)
    assert rows.y[chosen].tolist() == [0.0]


def test_a_missing_candidate_is_counted_or_refused():
    rows = ROWS | {"c": [1, None, 0, 1, 0, 0]}
    with pytest.raises(MissingValuesError, match="'c' has 1 missing values in 6 rows"):
        counted(rows)
    found = counted(rows, missing="drop")
    assert found.count.sum() == 5
    assert [note.code for note in found.notes] == ["missing-dropped"]


def test_a_score_as_status_quo_needs_a_capacity():
    with pytest.raises(InvalidParameterError, match="needs a `capacity`"):
        counted(y_pred=None, y_score="s")


def test_a_candidate_must_be_numeric():
    with pytest.raises(DataError, match="must be numeric; column 'text'"):
        counted(candidate="text")


def test_what_cannot_be_counted_is_left_to_rows(monkeypatch):
    assert counted(cluster="u") is None
    assert counted(metrics=(eq.Metric("share", "p"),)) is None
    monkeypatch.setattr(decision_cells, "MAX_COMBINATIONS", 4)
    assert counted() is None


@pytest.mark.parametrize("capacity", [0.02, 0.3, 0.77])
def test_values_far_from_the_cut_off_are_merged(rng, capacity, monkeypatch):
    monkeypatch.setattr(decision_cells, "NEAR_ROWS", 20)
    monkeypatch.setattr(decision_cells, "BUCKETS", 16)
    n = 4000
    score = rng.normal(size=n)
    rows = {
        "g": rng.integers(2, size=n),
        "y": rng.integers(2, size=n),
        "p": rng.integers(2, size=n),
    }
    found = counted(rows | {"s": score}, candidate="s", capacity=capacity)
    assert len(found.count) < 60
    assert found.count @ found.candidate == int(capacity * n)
    cutoff = np.sort(score)[-int(capacity * n)]
    for k in (0, 1):
        chosen = (
            found.count[(found.group == k) & (found.y == 1)]
            @ found.candidate[(found.group == k) & (found.y == 1)]
        )
        assert chosen == np.sum((score >= cutoff) & (rows["g"] == k) & (rows["y"] == 1))
