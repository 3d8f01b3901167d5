"""Columns leave Arrow as numpy arrays, with their nulls."""

from datetime import date

import narwhals as nw
import numpy as np
import pyarrow as pa

import equipoise as eq
from equipoise.data.frame import open_frame
from equipoise.data.query import BATCH_ROWS, _places, collect


def collected(**columns):
    return collect(open_frame(pa.table(columns)).select(nw.all()))


def test_numbers_without_nulls_keep_their_type():
    found = collected(whole=pa.array([1, 2], pa.int16()), real=[0.5, 1.5])
    assert found["whole"].dtype == np.int16
    np.testing.assert_array_equal(found["real"], [0.5, 1.5])


def test_a_null_among_reals_is_nan_and_among_integers_none():
    found = collected(whole=pa.array([1, None]), real=pa.array([0.5, None]))
    assert found["whole"].tolist() == [1, None]
    assert np.isnan(found["real"][1])


def test_text_dates_and_booleans_are_objects_with_none_for_null():
    found = collected(
        text=["b", None], day=[date(2020, 1, 2), None], yes=pa.array([True, None], pa.bool_())
    )
    assert found["text"].tolist() == ["b", None]
    assert found["day"].tolist() == [date(2020, 1, 2), None]
    assert found["yes"].tolist() == [True, None]


def test_an_empty_table_has_empty_columns():
    found = collected(text=pa.array([], pa.string()), whole=pa.array([], pa.int64()))
    assert [len(column) for column in found.values()] == [0, 0]


def test_integer_groups_with_a_null_are_named_as_integers():
    data = pa.table({"g": pa.array([1, 2] * 20 + [None]), "p": [0, 1, 1, 0] * 10 + [1]})
    result = eq.Audit(data, group="g", y_pred="p", missing="drop").disparity("selection_rate")
    assert [finding.group for finding in result.findings] == ["g=1", "g=2"]


def test_codes_far_apart_are_found_as_those_that_are_near():
    near = _places(np.array([1, 4, 6]), np.array([4, 0, 6, 5]))
    far = _places(np.array([1, 4, 6]) * BATCH_ROWS, np.array([4, 0, 6, 5]) * BATCH_ROWS)
    assert near.tolist() == far.tolist() == [1, -1, 2, -1]
