"""Rows of a ready candidate, counted by group, outcome and decisions."""

import numpy as np
import pytest

import equipoise as eq
from equipoise.audits.asking import ask
from equipoise.audits.improvement import rows as decision_rows
from equipoise.audits.improvement.rows import _counted_rows, read_decisions
from equipoise.data.roles import Roles
from equipoise.data.table import Table
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError
from equipoise.stats.improvement.capacity import cut_top_share

ROWS = {
    "g": ["a", "a", "a", "b", "b", "b"],
    "y": [1, 1, 0, 1, 0, 0],
    "p": [1, 1, 0, 0, 0, 1],
    "c": [1, 1, 0, 1, 0, 0],
    "s": [0.9, 0.9, 0.2, 0.7, 0.1, 0.7],
    "u": [1, 1, 2, 3, 3, 4],
    "text": list("abcdef"),
}
LABELS = {"y_true": "label", "y_pred": "label"}


def table_of(rows=ROWS, **roles):
    return Table(rows, Roles(**({"group": ("g",), "y_true": "y", "y_pred": "p"} | roles)))


def counted(rows=ROWS, *, candidate="c", capacity=None, needs=LABELS, **roles):
    return _counted_rows(table_of(rows, **roles), needs, candidate, capacity)


def test_identical_rows_are_one_with_a_count():
    rows = counted()
    found = np.column_stack([rows.group, rows.y, rows.status_quo, rows.ready[:, 0], rows.count])
    expected = [[0, 0, 0, 0, 1], [0, 1, 1, 1, 2], [1, 0, 0, 0, 1], [1, 0, 1, 0, 1], [1, 1, 0, 1, 1]]
    np.testing.assert_array_equal(found[np.lexsort(found.T[3::-1])], expected)
    assert rows.names == ("g=a", "g=b")
    np.testing.assert_array_equal(rows.group_sizes, [3, 3])


def test_a_missing_candidate_is_counted_or_refused():
    rows = ROWS | {"c": [1, None, 0, 1, 0, 0]}
    with pytest.raises(MissingValuesError, match="'c' has 1 missing values in 6 rows"):
        counted(rows)
    found = counted(rows, missing="drop")
    assert found.count.sum() == 5
    assert [note.code for note in found.notes] == ["missing-dropped"]


def test_a_score_as_status_quo_needs_a_capacity():
    with pytest.raises(InvalidParameterError, match="needs a `capacity`"):
        ask(read_decisions(table_of(y_pred=None, y_score="s"), ["accuracy"], ready=["c"]))


def test_a_candidate_must_be_numeric():
    with pytest.raises(DataError, match="must be numeric; column 'text'"):
        ask(read_decisions(table_of(), ["accuracy"], ready=["text"]))


def test_too_many_combinations_are_left_to_rows(monkeypatch):
    monkeypatch.setattr(decision_rows, "MAX_COMBINATIONS", 4)
    assert counted() is None


@pytest.mark.parametrize("levels", [None, 10, 300])
@pytest.mark.parametrize("capacity", [0.02, 0.3, 0.77])
def test_values_far_from_the_cut_off_are_merged(rng, capacity, levels, monkeypatch):
    monkeypatch.setattr(decision_rows, "FEW_ROWS", 20)
    monkeypatch.setattr(decision_rows, "BUCKETS", 16)
    n = 4000
    score, other = rng.normal(size=(2, n))
    if levels:
        score, other = np.round(score * levels / 5), np.round(other * levels / 5)
    weight = rng.integers(1, 3, size=n)
    rows = {
        "g": rng.integers(2, size=n),
        "y": rng.integers(2, size=n),
        "s": score,
        "o": other,
        "w": weight,
    }
    needs = {"y_true": "label", "y_score": "number"}
    found = counted(
        rows, candidate="o", capacity=capacity, needs=needs, y_pred=None, y_score="s", weight="w"
    )
    assert len(found.count) <= 2 * 2 * 2 * 25
    for values, merged in ((score, found.score), (other, found.ready[:, 0])):
        whole = cut_top_share(values, capacity, weight=weight)
        short = cut_top_share(merged, capacity, weight=found.weight, count=found.count)
        assert short.cutoff == whole.cutoff
        assert short.at_cutoff == pytest.approx(whole.at_cutoff)
        for k in (0, 1):
            mine = (found.group == k) & (found.y == 1)
            theirs = (rows["g"] == k) & (rows["y"] == 1)
            for quantity in ("chance", "near"):
                ours = found.count[mine] * found.weight[mine] * getattr(short, quantity)[mine]
                expected = weight[theirs] * getattr(whole, quantity)[theirs]
                assert ours.sum() == pytest.approx(expected.sum())


def test_outcomes_that_are_not_known_keep_their_place():
    rows = ROWS | {"y": [1, 1, 0, 1, 0, None], "weight": [1.0] * 6}
    table = table_of(rows, y_pred=None, y_score="s", missing="drop")
    found = ask(read_decisions(table, ["accuracy"], ready=["c"], capacity=0.5))
    assert len(found.y) == 6
    assert np.isnan(found.y).sum() == 1
    assert found.group_sizes.tolist() == [3, 2]
    _, w = found.utility("accuracy", np.arange(6))(np.ones(6))
    assert w.sum() == 5
    _, w = found.utility("selection_rate", np.arange(6))(np.ones(6))
    assert w.sum() == 6


def test_metrics_of_your_own_read_rows():
    table = table_of(ROWS)
    found = ask(read_decisions(table, [eq.Metric("share", "p")], ready=["c"]))
    u, w = found.utility(eq.Metric("share", "p"), np.arange(6))(np.zeros(6))
    assert (u.sum(), w.sum()) == (0.0, 6.0)


def test_labels_of_everybody_or_nobody_missing_depend_on_nothing():
    rows = ROWS | {"y": [1, 1, 0, 1, 0, None], "p": [1] * 6}
    found = ask(read_decisions(table_of(rows, missing="drop"), ["accuracy"], ready=["c"]))
    assert found.selective is None
