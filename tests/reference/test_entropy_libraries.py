"""Numbers of other libraries on COMPAS and Adult, from their formulas written out.

AIF360 3487791 `generalized_entropy_index`, SageMaker Clarify 024329d `GE`, jurity 3407b6b: benefit
yhat - y + 1, order 2 by default, `theil_index` is order 1. AIF360 at order 0 divides by the mean
once more.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from equipoise.stats.inequality.benefits import SPEICHER, hard_benefits
from equipoise.stats.inequality.index import entropy_index


def aif360(b, alpha):
    """Formula of AIF360, its order-0 line included."""
    mu = np.mean(b)
    if alpha == 1:
        x = b / mu
        return np.mean(np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0))
    if alpha == 0:
        return -np.mean(np.log(b / mu) / mu)
    return np.mean((b / mu) ** alpha - 1) / (alpha * (alpha - 1))


@pytest.fixture(scope="module")
def compas(data_file):
    rows = pd.read_csv(data_file("compas-scores-two-years.csv"))
    return rows["two_year_recid"].to_numpy(), (rows["decile_score"] >= 5).to_numpy().astype(int)


@pytest.fixture(scope="module")
def adult(data_file):
    names = ["age", None, "weight", None, "education", *[None] * 5, "gain", "loss", "hours", None]
    rows = pd.read_csv(
        data_file("adult.data"),
        header=None,
        names=[name or f"unused{k}" for k, name in enumerate([*names, "income"])],
        skipinitialspace=True,
    )
    y = (rows["income"] == ">50K").to_numpy().astype(int)
    x = StandardScaler().fit_transform(rows[["age", "education", "gain", "loss", "hours"]])
    return y, LogisticRegression().fit(x, y).predict(x)


@pytest.mark.parametrize("name", ["compas", "adult"])
@pytest.mark.parametrize("order", [1.0, 2.0])
def test_orders_one_and_two_equal_aif360_and_clarify(request, name, order):
    y, decision = request.getfixturevalue(name)
    expected = aif360(decision - y + 1.0, order)
    assert entropy_index(hard_benefits(y, decision), order=order) == pytest.approx(
        expected, rel=1e-10
    )


@pytest.mark.parametrize(("order", "expected"), [(1.0, 0.2350), (2.0, 0.1700)])
def test_compas_values(compas, order, expected):
    assert entropy_index(hard_benefits(*compas), order=order) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("name", ["compas", "adult"])
def test_order_zero_does_not_depend_on_the_unit_where_aif360_does(request, name):
    y, decision = request.getfixturevalue(name)
    b = hard_benefits(y, decision, matrix=SPEICHER + 0.5)
    index = entropy_index(b, order=0.0)
    assert index == pytest.approx(np.log(b.mean()) - np.mean(np.log(b)), rel=1e-10)
    assert entropy_index(2.0 * b, order=0.0) == pytest.approx(index, rel=1e-12)
    assert aif360(2.0 * b, 0) == pytest.approx(aif360(b, 0) / 2.0)
    assert aif360(b, 0) * b.mean() == pytest.approx(index, rel=1e-10)


def test_coefficient_of_variation_is_the_root_of_twice_the_index(compas):
    b = hard_benefits(*compas)
    assert np.sqrt(2.0 * entropy_index(b, order=2.0)) == pytest.approx(b.std() / b.mean())
