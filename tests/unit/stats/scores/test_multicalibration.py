from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.scores.multicalibration import (
    ResidualCells,
    _unit_sums,
    multicalibration_test,
)

BINS = 40


def rows(rng, n=600, shape=(2, 3)):
    s = rng.beta(*shape, size=n)
    return {
        "pattern": rng.integers(4, size=n),
        "s": s,
        "y": (rng.random(n) < s).astype(float),
        "w": rng.choice([1.0, 2.0], size=n),
    }


def sums(table, values):
    place = table["pattern"] * BINS + np.minimum((table["s"] * BINS).astype(int), BINS - 1)
    return np.bincount(place, values, minlength=4 * BINS).reshape(4, BINS)


def around_score(table):
    s, y, w = (table[name] for name in "syw")
    v = s * (1 - s)
    parts = (w * (y - s), w, w**2 * v, w * v, w**3 * v * (1 - 2 * s))
    return ResidualCells.around_score(*(sums(table, part) for part in parts))


def around_mean(table):
    y, w = table["y"], table["w"]
    return ResidualCells.around_mean(*(sums(table, part) for part in (w * y, w, w**2, w**3)))


MEMBER = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]], dtype=bool)


def test_statistics_are_largest_running_sums_over_rows(rng):
    table = rows(rng)
    found = multicalibration_test(around_score(table), MEMBER, n_cuts=BINS, rng=0)
    for j, patterns in enumerate(MEMBER):
        own = patterns[table["pattern"]]
        s, y, w = (table[name][own] for name in "syw")
        ends = np.arange(1, BINS + 1) / BINS
        running = [np.sum((w * (y - s))[s < end]) for end in ends]
        sd = np.sqrt(np.sum(w**2 * s * (1 - s)))
        assert_allclose(found.statistic[j], np.max(np.abs(running)) / sd)
        assert_allclose(found.gap[j], np.average(y - s, weights=w))
        kish = np.sum(w * s * (1 - s)) ** 2 / np.sum(w**2 * s * (1 - s))
        assert_allclose(found.information[j], kish)


def test_parity_compares_with_everyone_at_the_same_score(rng):
    table = rows(rng)
    found = multicalibration_test(around_mean(table), MEMBER, rng=0)
    bin_of = np.minimum((table["s"] * BINS).astype(int), BINS - 1)
    m = np.array(
        [
            np.average(table["y"][bin_of == b], weights=table["w"][bin_of == b])
            if (bin_of == b).any()
            else 0.0
            for b in range(BINS)
        ]
    )[bin_of]
    own = MEMBER[0][table["pattern"]]
    assert_allclose(found.gap[0], np.average((table["y"] - m)[own], weights=table["w"][own]))
    everyone = multicalibration_test(around_mean(table), np.ones((1, 4), dtype=bool), rng=0)
    assert not everyone.tested[0]
    assert_allclose(everyone.gap, 0.0, atol=1e-12)


def test_adjusted_p_values_are_at_least_single_ones_and_names_do_not_matter(rng):
    cells = around_score(rows(rng))
    found = multicalibration_test(cells, MEMBER, rng=0)
    assert (found.p_value_adjusted >= found.p_value).all()
    turned = ResidualCells.around_score(
        *(
            getattr(cells, name)[::-1]
            for name in ("total", "weight", "variance", "variance_weighted_once", "third")
        )
    )
    again = multicalibration_test(turned, MEMBER[::-1, ::-1], rng=0)
    assert_allclose(again.p_value_adjusted[::-1], found.p_value_adjusted)


def test_segments_without_information_are_not_tested(rng):
    table = rows(rng, n=30)
    found = multicalibration_test(around_score(table), MEMBER, rng=0)
    assert not found.tested.any()
    assert np.isnan(found.p_value_adjusted).all()


def test_members_must_match_the_patterns(rng):
    with pytest.raises(InvalidParameterError, match="one column for each of 4 patterns"):
        multicalibration_test(around_score(rows(rng)), np.ones((2, 3)))


def test_fewer_cuts_look_at_some_of_the_sums(rng):
    cells = around_score(rows(rng))
    merged = cells.in_cuts(5)
    assert merged.total.shape == (4, 5)
    running = np.cumsum(cells.total, axis=1)
    for k in range(5):
        assert np.isclose(running, np.cumsum(merged.total, axis=1)[:, [k]]).all(axis=0).any()
    mass = merged.weight.sum(axis=0)
    assert mass.max() < 2 * mass.mean()


def test_multipliers_of_units_have_mean_zero_and_variance_and_third_moment_one():
    part = SimpleNamespace(
        total=np.zeros((1, 2)), units=sparse.csr_array([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]])
    )
    draws = _unit_sums(part, np.array([0]))(200_000, np.random.default_rng(0))[:, 0, :]
    assert_allclose(draws.mean(axis=0), 0.0, atol=0.03)
    assert_allclose((draws**2).mean(axis=0), [5.0, 10.0], rtol=0.02)
    assert_allclose((draws**3).mean(axis=0), [9.0, 28.0], rtol=0.05)


def test_the_variance_of_few_units_is_at_least_that_of_units_as_alike_as_all(rng):
    """Ten units of twenty rows in two patterns; by hand over the rows."""
    unit, s = np.repeat(np.arange(10), 20), rng.uniform(0.1, 0.4, 200)
    pattern = (unit >= 8).astype(int)
    residual = (rng.random(200) < s) - s
    residual += np.where(unit < 8, rng.normal(0, 0.3, 10)[unit], 0.0)
    v = s * (1 - s)
    place = 4 * pattern + np.minimum((s * 10).astype(int) - 1, 3)

    def cells(values):
        return np.bincount(place, values, minlength=8).reshape(2, 4)

    def units(values):
        return sparse.coo_array((values, (unit, place)), shape=(10, 8)).tocsr()

    one = np.ones(200)
    plain = ResidualCells.around_score(
        cells(residual), cells(one), cells(v), cells(v), cells(v * (1 - 2 * s))
    )
    found = replace(plain, units=units(residual), roots=units(np.sqrt(v)))
    total, most = (np.bincount(unit, x) for x in (residual, np.sqrt(v)))
    alike = (np.sum(total**2) - v.sum()) / (np.sum(most**2) - v.sum())
    assert_allclose(found.likeness, min(max(alike, 0.0), 1.0))
    member = np.array([[0.0, 1.0]])
    own = unit >= 8
    model = v[own].sum() + found.likeness * (np.sum(most[8:] ** 2) - v[own].sum())
    expected = max(np.sum(total[8:] ** 2), v[own].sum(), model)
    assert_allclose(found.segment_variance(member), [expected])
    assert expected > np.sum(total[8:] ** 2)
    assert_allclose(found.effective_units(member), [most[8:].sum() ** 2 / np.sum(most[8:] ** 2)])
    assert_allclose(found.in_cuts(2).segment_variance(member), [expected])
    tested = multicalibration_test(found, member, min_information=0.0, rng=0)
    assert not tested.tested[0]
    assert np.isinf(plain.effective_units(member)).all()
    assert plain.likeness == 0.0


def test_outcomes_of_a_unit_are_no_more_alike_than_one():
    """Two units of rows that are all wrong in one way, more than their variances allow."""
    one, v = np.ones((1, 1)), np.full((1, 1), 4 * 0.09)
    cells = ResidualCells.around_score(0.0 * one, 4 * one, v, v, 0.0 * one)
    units = sparse.csr_array([[1.8], [-1.8]])
    found = replace(cells, units=units, roots=sparse.csr_array([[0.6], [0.6]]))
    # Squares of sums 6.48 and 0.72, less the variances of rows alone.
    assert (6.48 - 0.36) / (0.72 - 0.36) > 1.0
    assert found.likeness == 1.0
