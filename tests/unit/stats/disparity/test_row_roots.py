"""Power sums give the statistic of the rows, within the bound that they claim."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.stats.disparity.gaps import disparities
from equipoise.stats.disparity.likelihoods import Samples, likelihood
from equipoise.stats.disparity.references import Target, compare
from equipoise.stats.disparity.row_roots import POWERS, CellSeries, RowRoots, SeriesSamples, Units
from oracles.disparity import moments_of

LAWS = {
    "gamma": lambda rng, n: rng.gamma(2.0, 0.5, n),
    "far from zero": lambda rng, n: rng.normal(1e6, 1.0, n),
    "lognormal": lambda rng, n: rng.lognormal(0.0, 1.5, n),
    "two values": lambda rng, n: rng.integers(0, 2, n).astype(float),
}


def one_sample(values, count=None):
    cells = CellSeries.of(values, np.array([0, len(values)]), count=count)
    zero = np.zeros(1, dtype=np.int64)
    return SeriesSamples(
        cells=cells, sample=zero, cell=zero, base=cells.centre, factor=np.ones(1), slope=-np.ones(1)
    )


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [30, 3_000, 30_000])
def test_the_bound_holds_and_is_small_where_there_are_many_rows(rng, law, n):
    x = LAWS[law](rng, n)
    sample = one_sample(x)
    for z in (0.0, 0.4, -1.96, 1.96, 3.0, 12.0):
        at = np.array([x.mean() + z * x.std() / np.sqrt(n)])
        (statistic,), (error,) = sample.statistic(at)
        exact = likelihood(Samples.of_means(x), at).statistic[0]
        if np.isfinite(exact):
            # Rounding of a million divided by a standard deviation of one.
            assert abs(statistic - exact) <= error + 1e-8 * (1.0 + exact)
        if n == 30_000 and law != "lognormal" and abs(z) < 4.0:
            assert error < 1e-10


def test_a_null_outside_the_hull_is_infinite_and_certain():
    statistic, error = one_sample(np.array([1.0, 2.0, 3.0])).statistic(np.array([3.5]))
    assert statistic[0] == np.inf
    assert error[0] == 0.0


def test_a_sample_of_one_value_at_the_null_has_no_evidence_against_it():
    assert one_sample(np.full(5, 2.0)).statistic(np.array([2.0]))[0].tolist() == [0.0]


def test_rows_that_occur_twice_are_two_rows_and_those_that_never_occur_are_none():
    x, count = np.array([1.0, 2.0, 4.0, 9.0]), np.array([2.0, 1.0, 3.0, 0.0])
    counted, listed = one_sample(x, count), one_sample(x.repeat([2, 1, 3, 0]))
    assert_allclose(counted.cells.power, listed.cells.power, atol=1e-15)
    assert counted.cells.power.shape == (POWERS + 1, 1)
    at = np.array([2.6])
    assert_allclose(counted.statistic(at)[0], listed.statistic(at)[0], rtol=1e-12)


def test_cells_without_rows_are_nothing():
    cells = CellSeries.of(np.array([1.0, 2.0]), np.array([0, 0, 2]), count=np.array([1.0, 1.0]))
    assert cells.n.tolist() == [0.0, 2.0]
    none = CellSeries.of(np.array([1.0]), np.array([0, 1]), count=np.array([0.0]))
    assert none.power.any() == np.False_


@pytest.mark.parametrize("scale", ["difference", "ratio"])
@pytest.mark.parametrize(
    "target",
    [
        Target(kind="known", value=1.05),
        Target(kind="population"),
        Target(kind="rest"),
        Target(kind="reference", cells=np.array([True, False, True, False])),
    ],
    ids=lambda target: target.kind,
)
def test_roots_from_power_sums_are_those_of_the_rows(rng, target, scale, monkeypatch):
    n = 4_000
    cell = rng.integers(0, 4, n)
    u = rng.gamma(2.0, 0.5 + 0.02 * cell)
    units = Units(u=2.0 * u, w=np.full(n, 2.0), cell=cell)
    moments = moments_of(2.0 * u, np.full(n, 2.0), cell, 4)
    groups = np.array([[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]], dtype=bool).T
    found = disparities(
        moments, groups, target, binary=False, method="el", scale=scale, units=units
    )
    rows = RowRoots.of(units, compare(moments, groups, target, scale=scale), groups, target)
    assert rows.series is not None
    code = "el" if target.kind == "known" else "influence_el"
    null = found.estimate + 1.5 * found.se
    which = np.arange(3)
    exact = replace(rows, series=None).root(code)(null, which, 1)
    assert_allclose(rows.root(code)(null, which, 1), exact, rtol=1e-9)
    # In parts, as many groups of many cells are.
    monkeypatch.setattr("equipoise.stats.disparity.row_roots._ENTRIES", 4)
    assert_allclose(rows.root(code)(null, which, 1), exact, rtol=1e-9)
