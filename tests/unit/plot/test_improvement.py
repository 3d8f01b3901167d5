import pytest

import equipoise as eq
from equipoise.exceptions import InvalidParameterError
from equipoise.plot.improvement import delta_curves, improvement_plane
from equipoise.report.improvement_tables import improvement_tables


def test_where_nothing_was_tested_a_picture_says_so_and_there_are_no_tables():
    rows = {"g": ["a"] * 6 + ["b"] * 6, "y": [0, 1] * 6, "d": [0, 1] * 6, "r": [1, 0] * 6}
    audit = eq.Audit(rows, group="g", y_true="y", y_pred="d")
    result = audit.improvability("r", accuracy="accuracy", n_resamples=99)
    assert [text.get_text() for text in improvement_plane(result).texts] == ["not tested"]
    with pytest.raises(InvalidParameterError, match="nothing was tested"):
        delta_curves(result)
    assert improvement_tables(result) == ()
