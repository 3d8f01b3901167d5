"""Laws of the root of few units, on random tables."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.moments import CellMoments
from equipoise.stats.disparity.means import MeanComparison
from equipoise.stats.disparity.references import Target
from equipoise.stats.disparity.row_roots import Units, share_units
from equipoise.stats.small_samples import joint_test, pooled_shape, shrunk_correlation
from equipoise.stats.unit_sums import UnitSums

CRITICAL = float(stats.norm.ppf(0.975))


@st.composite
def tables(draw, *, spanning=False):
    """Rows (u, w) of clusters in two or three groups."""
    seed = draw(st.integers(0, 2**32 - 1))
    n_groups = draw(st.integers(2, 3))
    n_units = draw(st.integers(5, 12)) * n_groups
    rng = np.random.default_rng(seed)
    n = n_units * draw(st.integers(2, 4))
    unit = np.concatenate([np.arange(n_units), rng.integers(0, n_units, n - n_units)])
    group = rng.integers(0, n_groups, n) if spanning else unit % n_groups
    w = rng.integers(1, 4, n).astype(float)
    skew = draw(st.sampled_from([0.0, 0.5, 1.5]))
    x = np.exp(skew * rng.standard_normal(n)) if skew else rng.standard_normal(n)
    return x * w, w, group, unit


def nested(table, *, value=None, **options):
    """Comparison with the population, or with a value."""
    u, w, group, unit = table
    sums = UnitSums.from_rows(u, w, group, cluster=unit, **options)
    if value is not None:
        return MeanComparison.with_known(sums, pooled_shape(sums), value)
    rest = sums.sum().expand(-1) - sums
    return MeanComparison.with_rest(sums, rest, pooled_shape(sums), population=True)


def spanning(table):
    u, w, group, unit = table
    size = int(group.max()) + 1
    cells = CellMoments.from_rows(np.column_stack([u, w]), group, cluster=unit, order=3)
    rows = Units(u=u, w=w, cell=group, unit=np.unique(unit, return_inverse=True)[1])
    everyone = Target(kind="population")
    shared = share_units(cells, rows, np.eye(size), everyone)
    return MeanComparison.of_cells(shared, np.eye(size), everyone)


@given(tables(), st.integers(0, 1000))
def test_cutting_a_cluster_into_more_rows_changes_nothing(table, seed):
    u, w, group, unit = table
    part = np.random.default_rng(seed).random(len(u))
    cut = [np.concatenate([x * part, x * (1 - part)]) for x in (u, w)]
    twice = (*cut, np.tile(group, 2), np.tile(unit, 2))
    assert_allclose(nested(twice).root(0.1), nested(table).root(0.1), rtol=1e-6, atol=1e-8)


@given(tables(spanning=True), st.floats(0.1, 50), st.floats(-20, 20))
def test_units_of_measurement_and_weight_change_nothing(table, factor, shift):
    u, w, group, unit = table
    plain = spanning(table).root(0.2)
    assert_allclose(spanning((u * factor, w, group, unit)).root(0.2 * factor), plain, 1e-6, 1e-7)
    assert_allclose(spanning((u * factor, w * factor, group, unit)).root(0.2), plain, 1e-6, 1e-7)
    moved = (u + shift * w, w, group, unit)
    assert_allclose(spanning(moved).root(0.2), plain, 1e-6, 1e-7)


@given(tables(), st.floats(-3, 3))
def test_the_centre_changes_nothing(table, centre):
    assert_allclose(
        nested(table, centre=centre).root(0.1), nested(table).root(0.1), rtol=1e-5, atol=1e-7
    )


@given(tables(spanning=True), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(table, random):
    order = list(range(len(table[0])))
    random.shuffle(order)
    shuffled = tuple(x[order] for x in table)
    assert_allclose(spanning(shuffled).root(0.0), spanning(table).root(0.0), rtol=1e-6, atol=1e-8)


@given(tables(), st.floats(-2, 2), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_interval_excludes_a_null_exactly_when_the_test_rejects_it(table, null, level):
    critical = float(stats.norm.ppf((1 + level) / 2))
    found = nested(table)
    z = found.root(null)
    tested = np.isfinite(z) & (np.abs(np.abs(z) - critical) > 1e-9)
    low, high = found.interval(critical)
    inside = (low <= null) & (null <= high)
    assert np.array_equal(inside[tested], (np.abs(z) <= critical)[tested])


@given(tables(), st.floats(0.3, 3))
def test_the_interval_of_a_ratio_agrees_with_its_test(table, null):
    u, w, group, unit = table
    sums = UnitSums.from_rows(np.abs(u) + 0.1, w, group, cluster=unit)
    rest = sums.sum().expand(-1) - sums
    found = MeanComparison.with_rest(sums, rest, pooled_shape(sums), scale="ratio")
    z = found.root(null)
    tested = np.isfinite(z) & (np.abs(np.abs(z) - CRITICAL) > 1e-6)
    low, high = found.interval(CRITICAL)
    inside = (low <= null) & (null <= high)
    assert np.array_equal(inside[tested], (np.abs(z) <= CRITICAL)[tested])


@given(tables())
def test_roots_decrease_in_the_null_and_intervals_nest(table):
    found = nested(table)
    roots = np.array([found.root(null) for null in np.linspace(-3, 3, 25)])
    tested = np.isfinite(roots[0])
    assert np.all(np.diff(roots[:, tested], axis=0) <= 1e-9)
    (low, high), (lower, higher) = found.interval(1.6), found.interval(2.6)
    assert np.all(lower[tested] <= low[tested])
    assert np.all(high[tested] <= higher[tested])


@given(tables(spanning=True))
def test_two_groups_have_one_test(table):
    u, w, group, unit = table
    found = spanning((u, w, np.minimum(group, 1), unit))
    z = found.root(0.0)
    if np.isfinite(z).all():
        assert_allclose(z[0], -z[1], rtol=1e-6, atol=1e-8)
        share = np.bincount(np.minimum(group, 1), weights=w)
        p = joint_test(z, share=share).p_value
        assert_allclose(p, 2 * stats.norm.sf(abs(z[0])), rtol=1e-6)


@given(tables(), st.floats(1, 1e6))
def test_a_side_of_one_unit_is_never_tested(table, size):
    u, w, group, unit = table
    alone = (
        np.append(u, size), np.append(w, 1.0),
        np.append(group, group.max() + 1), np.append(unit, unit.max() + 1),
    )  # fmt: skip
    assert nested(alone).status[-1] == "too-few-units"
    assert np.isnan(nested(alone, value=0.0).root(0.0)[-1])


@given(tables())
def test_sums_of_parts_add_to_the_sums_of_the_whole(table):
    u, w, group, unit = table
    first = unit % 2 == 0
    whole = UnitSums.from_rows(u, w, group, cluster=unit, centre=0.5, n_sides=3)
    parts = [
        UnitSums.from_rows(u[p], w[p], group[p], cluster=unit[p], centre=0.5, n_sides=3)
        for p in (first, ~first)
    ]
    assert_allclose((parts[0] + parts[1]).uuw, whole.uuw, rtol=1e-9, atol=1e-9)
    assert_allclose((parts[0] + parts[1]).n, whole.n)


@given(st.integers(0, 10_000), st.floats(1, 50))
def test_shrunk_correlations_are_correlations(seed, df):
    x = np.random.default_rng(seed).standard_normal((4, 6))
    r = np.corrcoef(x.T)
    found = shrunk_correlation(r, df)
    assert_allclose(np.diag(found), 1.0)
    assert np.all(np.abs(found) <= np.abs(r) + 1e-12)
    assert np.linalg.eigvalsh(found).min() > -1e-9
