"""Areas under ROC curves and their variances beside pROC (`delong.R` made the values)."""

import json
from pathlib import Path

import numpy as np
import pytest

from equipoise.stats.scores.group_quality import group_quality

R = json.loads((Path(__file__).parent / "delong.json").read_text())
I = np.arange(400)
Y = ((I * 7919) % 10 < 4).astype(float)
A = ((I * 31) % 50) / 50 + 0.3 * Y
B = ((I * 17) % 20) / 20 + 0.4 * Y


def standard_error(value, level=0.95):
    from scipy import stats

    # With hundreds of rows the t law is nearly normal; degrees are checked elsewhere.
    return (value.high - value.low) / 2 / stats.norm.ppf(0.5 + level / 2)


def test_the_area_and_its_variance_are_those_of_proc():
    found = group_quality(Y, A, np.zeros(400, dtype=int), baseline=B, metrics=("auc",))
    one, two = found.values
    assert one.estimate == pytest.approx(R["auc"], abs=1e-12)
    assert two.estimate == pytest.approx(R["auc_b"], abs=1e-12)
    assert standard_error(one) == pytest.approx(np.sqrt(R["variance"]), rel=0.01)
    assert standard_error(two) == pytest.approx(np.sqrt(R["variance_b"]), rel=0.01)


def test_the_paired_test_is_that_of_proc():
    (difference,) = group_quality(
        Y, A, np.zeros(400, dtype=int), baseline=B, metrics=("auc",)
    ).differences
    assert difference.estimate == pytest.approx(R["auc"] - R["auc_b"], abs=1e-12)
    # t with its degrees instead of the normal law, and n - 1 once more.
    assert difference.statistic == pytest.approx(R["paired_z"], rel=0.01)


def test_areas_of_two_groups_are_independent():
    found = group_quality(Y, A, I % 2, metrics=("auc",), pairs=((1, 0),))
    assert [value.estimate for value in found.values] == pytest.approx(R["groups"], abs=1e-12)
    z = (R["groups"][1] - R["groups"][0]) / np.sqrt(sum(R["group_variances"]))
    assert found.differences[0].statistic == pytest.approx(z, rel=0.015)
