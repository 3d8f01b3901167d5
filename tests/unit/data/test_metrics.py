"""Every metric on five rows, by hand."""

import narwhals as nw
import pytest

from equipoise.data.metrics import METRICS, Metric
from equipoise.data.roles import Roles
from equipoise.data.table import Table

ROWS = {
    "y": [1, 1, 0, 0, 1],
    "p": [1, 0, 1, 0, 1],
    "s": [0.9, 0.4, 0.6, 0.1, 0.5],
    "cost": [1.0, 2.0, 3.0, 4.0, 5.0],
}
BY_HAND = {
    "selection_rate": 3 / 5,
    "tpr": 2 / 3,
    "fnr": 1 / 3,
    "fpr": 1 / 2,
    "tnr": 1 / 2,
    "ppv": 2 / 3,
    "fdr": 1 / 3,
    "npv": 1 / 2,
    "for": 1 / 2,
    "accuracy": 3 / 5,
    "error_rate": 2 / 5,
    "outcome_rate": 3 / 5,
    "mean_outcome": 3 / 5,
    "mean_score": 2.5 / 5,
    "scoring_rate": 2 / 5,  # 0.9 and 0.6 lie above the median, 0.5
    "selected_outcome": 2 / 3,
    "squared_error": (0.01 + 0.36 + 0.36 + 0.01 + 0.25) / 5,
    "absolute_error": (0.1 + 0.6 + 0.6 + 0.1 + 0.5) / 5,
    "residual": (0.1 + 0.6 - 0.6 - 0.1 + 0.5) / 5,
}


@pytest.fixture(scope="module")
def table():
    return Table(ROWS, Roles(group=(), y_true="y", y_pred="p", y_score="s"))


def value(table, metric):
    u, w = metric.build(table)
    rows = table.frame.with_columns(u=u, w=w)
    (sums,) = rows.select(nw.col("u").sum(), nw.col("w").sum()).collect().rows()
    return sums[0] / sums[1]


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_the_ratio_that_it_names(table, name):
    assert value(table, METRICS[name]) == pytest.approx(BY_HAND[name], abs=1e-12)


def test_a_metric_needs_the_roles_that_it_reads():
    assert METRICS["selection_rate"].needs == {"y_pred": "label"}
    assert METRICS["fpr"].needs == {"y_true": "label", "y_pred": "label"}
    assert METRICS["residual"].needs == {"y_true": "number", "y_score": "number"}
    assert Metric("cost", "cost").needs == {}


def test_a_metric_of_ones_own_is_a_mean_or_a_ratio_of_columns(table):
    assert value(table, Metric("cost", "cost")) == pytest.approx(3.0)
    ratio = Metric("cost per decision", nw.col("cost") * nw.col("p"), "p")
    assert value(table, ratio) == pytest.approx((1.0 + 3.0 + 5.0) / 3)
