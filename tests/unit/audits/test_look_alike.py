"""Labels that look alike are counted apart, and a note says which."""

import numpy as np
import pytest

import equipoise as eq
from equipoise.data.groups import look_alike


def notes(labels, **more):
    rng = np.random.default_rng(1)
    group = [labels[k] for k in rng.integers(0, len(labels), 400)]
    rows = {"g": group, "p": rng.integers(0, 2, 400), **more}
    audit = eq.Audit(rows, group=["g", *more], y_pred="p")
    result = audit.disparity("selection_rate", depth=1)
    assert {f.group.parts[0][1] for f in result.findings} >= set(labels)
    return [note.message for note in result.notes if note.code == "labels-look-alike"]


@pytest.mark.parametrize(
    ("pair", "shown"),
    [
        (("a ", "a"), "'a' and 'a '"),
        (("a\u00a0b", "a b"), r"'a b' and 'a\xa0b'"),
        (("a  b", "a b"), "'a  b' and 'a b'"),
        (("\u00e9", "e\u0301"), r"'e\u0301' and '\xe9'"),
        (("a\u200b", "a"), r"'a' and 'a\u200b'"),
        (("a \u200b", "a"), r"'a' and 'a \u200b'"),
        (("Male", "male"), "'Male' and 'male'"),
        (("Élan", "élan"), "'Élan' and 'élan'"),
    ],
)
def test_two_labels_that_look_alike_are_told_so_that_they_differ(pair, shown):
    (message,) = notes([*pair, "other"])
    assert message == (
        f"Labels of 'g' look alike and are counted apart: {shown}. Write them alike if they mean"
        " one group."
    )


@pytest.mark.parametrize("labels", [["a", "b"], ["é", "e"], ["a b", "ab"], ["1", "10"], [1, 2]])
def test_labels_that_look_different_have_no_note(labels):
    rng = np.random.default_rng(1)
    rows = {"g": rng.choice(labels, 400), "p": rng.integers(0, 2, 400)}
    result = eq.Audit(rows, group="g", y_pred="p").disparity("selection_rate")
    assert "labels-look-alike" not in {note.code for note in result.notes}


def test_further_pairs_are_counted_and_each_column_has_a_note():
    h = np.random.default_rng(2).choice(["x", "X", "y"], 400)
    first, second = notes(["a", "A", "a ", "b", "B"], h=h)
    assert "'A' and 'a', and 2 more." in first
    assert "Labels of 'h' look alike" in second


def test_rows_sites_and_every_check_of_a_plan_say_so(tmp_path):
    rng = np.random.default_rng(3)
    rows = {"g": rng.choice(["a", "A"], 600), "y": rng.integers(0, 2, 600), "s": rng.random(600)}
    audit = eq.Audit(rows, group="g", y_true="y", y_score="s", y_pred="y")
    file = tmp_path / "cells.json"
    audit.cells(metrics="selection_rate", path=file)
    results = [
        audit.predictive_parity(),
        audit.flag("selection_rate"),
        eq.Audit.from_cells(file).disparity("selection_rate"),
    ]
    for result in results:
        assert [note.code for note in result.notes].count("labels-look-alike") == 1


def test_pairs_follow_the_first_label_that_looks_so():
    assert look_alike(["b", "a", "A", "A "]) == [("A", "A "), ("A", "a")]
    assert look_alike([]) == []
