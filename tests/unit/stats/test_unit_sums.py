"""Sums over units, by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.stats.unit_sums import (
    CrossSums,
    QuantityCross,
    QuantitySums,
    UnitSums,
    shared_units,
)

NAMES = ("n", "w", "w2", "w3", "w4", "w5", "u", "uu", "uw", "uuu", "uuw", "uww")


def assert_same(first, second, *, rtol=1e-12, atol=1e-10):
    for name in NAMES:
        assert_allclose(getattr(first, name), getattr(second, name), rtol, atol, err_msg=name)


def test_rows_of_a_cluster_are_summed_before_products():
    sums = UnitSums.from_rows(
        [1.0, 2.0, 4.0], [1.0, 1.0, 1.0], [0, 0, 0], cluster=["a", "a", "b"], centre=0.0
    )
    # Units (3, 2) and (4, 1).
    assert (sums.n[0], sums.w[0], sums.w2[0], sums.w5[0]) == (2, 3, 5, 33)
    assert (sums.u[0], sums.uu[0], sums.uw[0]) == (7, 25, 10)
    assert (sums.uuu[0], sums.uuw[0], sums.uww[0]) == (91, 34, 16)


def test_a_unit_without_denominator_does_not_count():
    assert UnitSums.from_rows([0.0, 1.0], [0.0, 1.0], [0, 0]).n.tolist() == [1]


def test_counts_repeat_rows_and_weights_multiply_them():
    u, w, side = np.array([1.0, 3.0]), np.array([1.0, 2.0]), np.array([0, 0])
    repeated = UnitSums.from_rows(
        np.repeat(u, [2, 3]), np.repeat(w, [2, 3]), np.zeros(5, int), centre=0.5
    )
    assert_same(UnitSums.from_rows(u, w, side, count=[2, 3], centre=0.5), repeated)
    heavy = UnitSums.from_rows(u, w, side, weight=[2.0, 3.0], centre=0.5)
    assert_same(heavy, UnitSums.from_rows([2.0, 9.0], [2.0, 6.0], side, centre=0.5))


def test_equal_weights_have_n_minus_one_degrees_and_n_effective_units():
    sums = UnitSums.of_units(np.arange(7.0), np.full(7, 3.0))
    assert_allclose([sums.df, sums.n_eff], [6, 7], rtol=1e-12)
    assert_allclose(sums.variance_factor, 6 / 49)
    assert_allclose(sums.third_factor, 6 * 5 / 7**4)


def test_one_unit_has_no_degrees_of_freedom():
    sums = UnitSums.of_units([[5.0], [0.0]], [[2.5], [0.0]])
    assert sums.df.tolist() == [0, 0]
    assert sums.n_eff.tolist() == [1, 0]


def test_degrees_are_those_of_the_quadratic_form():
    h = np.array([0.4, 0.3, 0.2, 0.1])
    left = np.diag(h) @ (np.eye(4) - np.outer(np.ones(4), h))
    form = left.T @ left
    sums = UnitSums.of_units(np.zeros(4), 10 * h)
    assert_allclose(sums.df, np.trace(form) ** 2 / np.trace(form @ form), rtol=1e-12)
    assert_allclose(sums.variance_factor, np.trace(form), rtol=1e-12)
    assert_allclose(sums.third_factor, np.sum(left**3), rtol=1e-12)


def test_scatter_is_exact_far_from_zero_when_centred():
    x = 1e6 + np.array([0.0, 1.0, 2.0, 5.0])
    sums = UnitSums.of_units(x, np.ones(4), centre=1e6)
    assert_allclose(sums.scatter, np.sum((x - x.mean()) ** 2) / 16, rtol=1e-12)
    assert_allclose(sums.third_scatter, np.sum((x - x.mean()) ** 3) / 64, rtol=1e-12)


def test_units_that_do_not_vary_have_no_scatter_at_all():
    assert UnitSums.of_units(np.full(9, 0.1) * np.arange(1, 10), np.arange(1.0, 10)).scatter == 0


def test_sums_with_two_centres_do_not_add():
    one, two = (UnitSums.of_units([1.0, 2.0], 1.0, centre=c) for c in (0.0, 1.0))
    with pytest.raises(InvalidParameterError, match="one centre; got 0 and 1"):
        one + two
    with pytest.raises(InvalidParameterError, match="one centre"):
        UnitSums.stack([one, two])


def spanning():
    rng = np.random.default_rng(4)
    unit, group = rng.integers(0, 6, 60), rng.integers(0, 3, 60)
    return rng.exponential(size=60), rng.random(60) + 0.5, unit, group


def test_rests_of_spanning_units_are_summed_from_everything_outside():
    u, w, unit, group = spanning()
    shared = shared_units(u, w, unit, group, np.eye(3), np.ones(3, dtype=bool))
    own = UnitSums.of_monomials(shared.side[:, 1])
    rest = UnitSums.of_monomials(shared.side[:, 2] + shared.everyone - shared.touching)
    links = CrossSums.of_links(shared.link)
    for g in range(3):
        side = np.where(group == g, 0, 1)
        both = UnitSums.from_rows(u, w, side, cluster=unit, centre=0.0)
        assert_same(own[g], both[0])
        assert_same(rest[g], both[1])
        table = np.zeros((2, 6, 2))
        np.add.at(table[0], (unit, side), u)
        np.add.at(table[1], (unit, side), w)
        cross = CrossSums.of_units(*table)
        off = ~np.eye(2, dtype=bool)
        for name in ("uu", "uw", "ww", "w2w2"):
            expected = getattr(cross, name)[off]
            found = getattr(links, name)[g][1:, 1:]
            assert_allclose(found[off], expected, rtol=1e-10)


def test_what_is_left_of_a_unit_within_its_group_is_nothing():
    shared = shared_units(
        [0.1, 0.2, 2.0], [0.1, 0.2, 1.0], [0, 0, 1], [0, 0, 1], np.eye(2), [True, True]
    )
    assert not shared.side[:, 2].any()
    assert not shared.link.any()


def test_a_reference_splits_a_unit_into_three_sides():
    # Unit 0 has 1 in the group alone, 2 in both and 4 in the reference alone.
    shared = shared_units(
        [1.0, 2.0, 4.0], np.ones(3), [0, 0, 0], [0, 1, 2], [[1], [1], [0]], [False, True, True]
    )
    assert UnitSums.of_monomials(shared.side[0]).u.tolist() == [1.0, 2.0, 4.0]
    assert CrossSums.of_links(shared.link).uu[0].tolist() == [[0, 2, 4], [2, 0, 8], [4, 8, 0]]


def test_cells_of_counts_need_no_moments_of_higher_order_and_others_do():
    rows = np.column_stack([[1.0, 0.0, 1.0], np.ones(3)])
    counts = CellMoments.from_rows(rows, [0, 0, 1])
    whole = CellMoments.from_rows(rows, [0, 0, 1], order=3)
    assert_same(UnitSums.of_cells(counts), UnitSums.of_cells(whole))
    assert_same(
        UnitSums.of_cells(whole),
        UnitSums.from_rows(rows[:, 0], rows[:, 1], np.array([0, 0, 1]), centre=0.0),
    )
    with pytest.raises(InvalidParameterError, match="order=3"):
        UnitSums.of_cells(CellMoments.from_rows(2 * rows, [0, 0, 1]))


def test_sums_along_a_direction_are_those_of_the_combined_quantity():
    rng = np.random.default_rng(5)
    q = np.column_stack([np.ones(40), rng.random((40, 2))])
    side, unit = rng.integers(0, 2, 40), rng.integers(0, 9, 40)
    options = {"cluster": unit, "weight": rng.random(40), "count": rng.integers(1, 3, 40)}
    direction = np.array([[0.0, 1.0, -2.0], [0.3, -1.0, 0.5]])
    u = np.sum(q * direction[side], axis=1)
    sums = QuantitySums.from_rows(q, side, **options)
    assert_same(sums.along(direction), UnitSums.from_rows(u, q[:, 0], side, centre=0.0, **options))
    assert_same(
        (sums + sums).along(direction)[0], sums.along(direction)[0] + sums.along(direction)[0]
    )


def test_cross_products_along_a_direction_are_those_of_the_combined_quantity():
    rng = np.random.default_rng(6)
    q, side, unit = rng.random((30, 2)), rng.integers(0, 2, 30), rng.integers(0, 7, 30)
    direction = np.array([[0.2, 1.0], [0.0, -1.0]])
    u = np.sum(q * direction[side], axis=1)
    table = np.zeros((2, 7, 2))
    np.add.at(table[0], (unit, side), u)
    np.add.at(table[1], (unit, side), q[:, 0])
    found = QuantityCross.from_rows(q, side, unit).along(direction)
    expected = CrossSums.of_units(*table)
    for name in ("uu", "uw", "ww", "w2w2"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)
    assert_allclose((expected + expected).uw, 2 * found.uw, rtol=1e-12)


def test_units_within_sides_have_no_cross_products():
    assert QuantityCross.from_rows(np.ones((4, 2)), [0, 0, 1, 1], [1, 1, 2, 3]) is None
