from dataclasses import replace

import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.moments import (
    CellMoments,
    linear_covariance,
    merge_cells,
    transform_quantities,
)


def brute_force(q, cell, unit, size):
    totals = np.zeros((unit.max() + 1, size, q.shape[1]))
    for i in range(len(q)):
        totals[unit[i], cell[i]] += q[i]
    return totals


@pytest.mark.parametrize("spanning", [True, False])
def test_moments_equal_a_loop_over_rows(rng, spanning):
    n, size = 60, 4
    q = rng.normal(size=(n, 2))
    unit = rng.integers(15, size=n)
    cell = rng.integers(size, size=n) if spanning else unit % size
    totals = brute_force(q, cell, unit, size)
    moments = CellMoments.from_rows(q, cell, n_cells=size, cluster=unit)
    np.testing.assert_allclose(moments.total, totals.sum(0), atol=1e-12)
    np.testing.assert_allclose(
        moments.product, np.einsum("ska,skb->kab", totals, totals), atol=1e-12
    )
    assert (moments.cross is None) == (not spanning)
    assert moments.n_units == len(np.unique(unit))

    coefficients = [rng.normal(size=(size, 3)) for _ in range(2)]
    statistic = sum(totals[:, :, a] @ coefficients[a] for a in range(2))
    np.testing.assert_allclose(
        linear_covariance(moments, coefficients), statistic.T @ statistic, atol=1e-10
    )


def test_counts_are_repeated_rows(rng):
    q, cell, count = rng.normal(size=(20, 2)), rng.integers(3, size=20), rng.integers(1, 5, size=20)
    counted = CellMoments.from_rows(q, cell, n_cells=3, count=count)
    repeated = CellMoments.from_rows(np.repeat(q, count, axis=0), np.repeat(cell, count), n_cells=3)
    np.testing.assert_array_equal(counted.n, repeated.n)
    np.testing.assert_allclose(counted.total, repeated.total, atol=1e-12)
    np.testing.assert_allclose(counted.product, repeated.product, atol=1e-12)
    assert counted.n_units == repeated.n_units == count.sum()


def test_weights_enter_the_products_squared():
    moments = CellMoments.from_rows([[2.0], [3.0]], [0, 0], weight=[1.0, 2.0])
    assert moments.total.item() == 8.0
    assert moments.product.item() == 4.0 + 36.0
    np.testing.assert_array_equal(moments.n, [2])


@pytest.mark.parametrize("clustered", [True, False])
def test_merged_cells_are_the_moments_of_the_coarser_groups(rng, clustered):
    n, size = 80, 6
    q, cell = rng.normal(size=(n, 2)), rng.integers(size, size=n)
    unit = rng.integers(12, size=n) if clustered else None
    coarse = np.array([2, 0, 1, 0, 2, 1])
    merged = merge_cells(CellMoments.from_rows(q, cell, n_cells=size, cluster=unit), coarse)
    direct = CellMoments.from_rows(q, coarse[cell], n_cells=3, cluster=unit)
    np.testing.assert_array_equal(merged.n, direct.n)
    np.testing.assert_allclose(merged.total, direct.total, atol=1e-12)
    np.testing.assert_allclose(merged.product, direct.product, atol=1e-11)
    assert (merged.cross is None) == (not clustered)
    if clustered:
        np.testing.assert_array_equal(merged.cross.first, direct.cross.first)
        np.testing.assert_allclose(merged.cross.product, direct.cross.product, atol=1e-11)
        assert merge_cells(merged, np.zeros(3)).cross is None


@pytest.mark.parametrize("clustered", [True, False])
def test_transformed_quantities_are_those_of_transformed_rows(rng, clustered):
    q, cell = rng.normal(size=(40, 3)), rng.integers(4, size=40)
    unit = rng.integers(8, size=40) if clustered else None
    change = rng.normal(size=(2, 3))
    changed = transform_quantities(CellMoments.from_rows(q, cell, cluster=unit), change)
    direct = CellMoments.from_rows(q @ change.T, cell, cluster=unit)
    np.testing.assert_allclose(changed.total, direct.total, atol=1e-12)
    np.testing.assert_allclose(changed.product, direct.product, atol=1e-11)
    if clustered:
        np.testing.assert_allclose(changed.cross.product, direct.cross.product, atol=1e-11)


def test_moments_of_higher_order_are_sums_over_units_and_merge_where_no_unit_is_shared(rng):
    q = rng.normal(size=(40, 2))
    cell = np.arange(40) % 6
    coarse = np.array([2, 0, 1, 0, 2, 1])
    merged = merge_cells(CellMoments.from_rows(q, cell, order=3), coarse)
    third = np.einsum("na,nb,nc->nabc", q, q, q)
    for k in range(3):
        own = coarse[cell] == k
        np.testing.assert_allclose(merged.units.third[k], third[own].sum(axis=0), atol=1e-12)
        np.testing.assert_allclose(merged.units.fifth[k], (q[own] ** 5).sum(axis=0), atol=1e-12)
        np.testing.assert_array_equal(merged.units.n[k], [own.sum()] * 2)
    np.testing.assert_array_equal(
        merged.units[[1]].third[:, 0, 0, 0], merged.units.third[:, 1, 1, 1]
    )


def test_higher_moments_of_a_group_whose_cells_share_units_are_not_known(rng):
    q, cell, unit = rng.normal(size=(40, 2)), np.arange(40) % 4, np.arange(40) // 4
    cells = CellMoments.from_rows(q, cell, cluster=unit, order=3)
    merged = merge_cells(cells, np.array([0, 0, 1, 2]))
    assert merged.units is None
    assert merged.cross.squares is None
    kept = merge_cells(cells, np.arange(4))
    np.testing.assert_allclose(kept.units.third, cells.units.third)
    np.testing.assert_allclose(kept.cross.squares, cells.cross.squares)
    assert transform_quantities(cells, np.eye(2)).units is None


def test_cells_with_and_without_higher_moments_add_to_cells_without(rng):
    q, cell, unit = rng.normal(size=(12, 1)), np.arange(12) % 3, np.arange(12) // 3
    whole = CellMoments.from_rows(q, cell, cluster=unit, order=3)
    plain = CellMoments.from_rows(q, cell, cluster=unit)
    assert (whole + plain).units is None
    assert (whole + plain).cross.squares is None
    np.testing.assert_allclose((whole + whole).units.fourth, 2 * whole.units.fourth)


def test_cells_of_other_sums_or_groups_do_not_add():
    cell, labels = np.array([0, 0, 1, 1]), (np.array(["a", "b"]),)

    def cells(width, column):
        found = CellMoments.from_rows(np.ones((4, width)), cell)
        return replace(found, columns=(column,), labels=labels)

    assert (cells(2, "g") + cells(2, "g")).n.tolist() == [4, 4]
    for wrong in (cells(2, "h"), cells(3, "g")):
        with pytest.raises(InvalidParameterError, match="cells add when they hold the same sums"):
            cells(2, "g") + wrong
