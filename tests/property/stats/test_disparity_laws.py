"""Laws of the disparity engine."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.moments import CellMoments
from equipoise.stats.disparity.gaps import Target, Units, disparities
from equipoise.stats.disparity.joint import joint_test
from equipoise.stats.multiplicity import adjusted_p_values
from oracles.disparity import GROUPS, TARGETS, moments_of

seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from(sorted(TARGETS))
QUICK = settings(max_examples=12, deadline=None)


def table(seed, n=300, binary=True):
    rng = np.random.default_rng(seed)
    cell = rng.integers(6, size=n)
    rate = rng.uniform(0.2, 0.7, size=6)[cell]
    u = rng.binomial(1, rate).astype(float) if binary else rng.exponential(rate)
    return rng, u, np.ones(n), cell


@QUICK
@given(
    seed=seeds,
    kind=kinds,
    binary=st.booleans(),
    scale=st.sampled_from(["difference", "ratio"]),
    method=st.sampled_from(["auto", "el", "eel"]),
    n=st.sampled_from([60, 300]),
)
def test_null_is_in_the_interval_exactly_when_it_is_not_rejected(
    seed, kind, binary, scale, method, n
):
    _, u, w, cell = table(seed, n, binary=binary)
    units = None if binary else Units(u=u, w=w, cell=cell)
    null = 0.02 if scale == "difference" else 1.05
    found = disparities(
        moments_of(u, w, cell, 6),
        GROUPS,
        TARGETS[kind],
        binary=binary,
        method=method,
        units=units,
        null=null,
        scale=scale,
        confidence_level=0.9,
    )
    clear = found.tested & (np.abs(found.p_value - 0.1) > 1e-6)
    inside = (found.ci_low <= null) & (null <= found.ci_high)
    np.testing.assert_array_equal(inside[clear], (found.p_value > 0.1)[clear])


@QUICK
@given(seed=seeds, kind=kinds)
def test_intervals_nest_in_the_level_and_contain_the_estimate(seed, kind):
    _, u, w, cell = table(seed)
    found = disparities(moments_of(u, w, cell, 6), GROUPS, TARGETS[kind], binary=True)
    inner, outer = found.interval(1.0), found.interval(2.5)
    assert (outer[0] <= inner[0] + 1e-9).all()
    assert (inner[1] <= outer[1] + 1e-9).all()
    assert (inner[0] <= found.estimate + 1e-9).all()
    assert (found.estimate <= inner[1] + 1e-9).all()


@QUICK
@given(seed=seeds, kind=kinds)
def test_row_order_and_names_of_groups_do_not_matter(seed, kind):
    rng, u, w, cell = table(seed, binary=False)
    order, groups = rng.permutation(len(u)), rng.permutation(4)
    target = TARGETS[kind]
    one = disparities(
        moments_of(u, w, cell, 6),
        GROUPS,
        target,
        binary=False,
        units=Units(u=u, w=w, cell=cell),
    )
    moved = Units(u=u[order], w=w[order], cell=cell[order])
    two = disparities(
        moments_of(moved.u, moved.w, moved.cell, 6),
        GROUPS[:, groups],
        target,
        binary=False,
        units=moved,
    )
    np.testing.assert_allclose(one.p_value[groups], two.p_value, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(one.ci_low[groups], two.ci_low, rtol=1e-6, atol=1e-9)


@QUICK
@given(seed=seeds, kind=kinds, scale=st.floats(0.1, 50.0))
def test_real_valued_differences_move_with_the_unit_of_measurement(seed, kind, scale):
    _, u, w, cell = table(seed, binary=False)
    target = TARGETS[kind]
    scaled = Target(kind="known", value=target.value * scale) if kind == "known" else target
    results = [
        disparities(
            moments_of(v, w, cell, 6), GROUPS, t, binary=False, units=Units(u=v, w=w, cell=cell)
        )
        for v, t in ((u, target), (scale * u, scaled))
    ]
    np.testing.assert_allclose(results[1].estimate, scale * results[0].estimate, rtol=1e-9)
    np.testing.assert_allclose(results[1].p_value, results[0].p_value, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(results[1].ci_high, scale * results[0].ci_high, rtol=1e-5)


@QUICK
@given(seed=seeds)
def test_splitting_a_cell_changes_nothing(seed):
    rng, u, w, cell = table(seed)
    fine = cell + 6 * rng.integers(2, size=len(cell))
    coarse = disparities(moments_of(u, w, cell, 6), GROUPS, TARGETS["population"], binary=True)
    split = disparities(
        moments_of(u, w, fine, 12), np.vstack([GROUPS, GROUPS]), TARGETS["population"], binary=True
    )
    np.testing.assert_allclose(coarse.p_value, split.p_value, rtol=1e-9)
    a = joint_test(moments_of(u, w, cell, 6), GROUPS, TARGETS["population"], binary=True)
    b = joint_test(
        moments_of(u, w, fine, 12), np.vstack([GROUPS, GROUPS]), TARGETS["population"], binary=True
    )
    assert a.df == b.df
    np.testing.assert_allclose(a.statistic, b.statistic, rtol=1e-7, atol=1e-9)


@QUICK
@given(seed=seeds, kind=kinds)
def test_one_row_for_each_cluster_is_independent_rows(seed, kind):
    _, u, w, cell = table(seed, binary=False)
    plain = disparities(
        moments_of(u, w, cell, 6), GROUPS, TARGETS[kind], binary=False, method="eel"
    )
    clustered = moments_of(u, w, cell, 6, cluster=np.arange(len(u)))
    same = disparities(clustered, GROUPS, TARGETS[kind], binary=False, method="eel")
    np.testing.assert_allclose(plain.statistic, same.statistic, rtol=1e-9)
    moments = moments_of(u, w, cell, 6)
    auto = [disparities(m, GROUPS, TARGETS[kind], binary=False) for m in (moments, clustered)]
    np.testing.assert_allclose(auto[0].p_value, auto[1].p_value, rtol=1e-9)


@QUICK
@given(seed=seeds, factor=st.floats(0.01, 100.0))
def test_a_common_factor_of_all_weights_changes_nothing(seed, factor):
    rng, u, w, cell = table(seed, binary=False)
    weight = rng.uniform(0.5, 2.0, size=len(u))
    results = [
        disparities(
            moments_of(u, w, cell, 6, weight=scale * weight),
            GROUPS,
            TARGETS["reference"],
            binary=False,
        )
        for scale in (1.0, factor)
    ]
    np.testing.assert_allclose(results[0].p_value, results[1].p_value, rtol=1e-7)


@QUICK
@given(seed=seeds)
def test_inputs_are_left_alone(seed):
    _, u, w, cell = table(seed)
    moments, groups = moments_of(u, w, cell, 6), GROUPS.copy()
    before = [moments.total.copy(), moments.product.copy()]
    disparities(moments, groups, TARGETS["reference"], binary=True)
    joint_test(moments, groups, TARGETS["reference"], binary=True)
    np.testing.assert_array_equal(groups, GROUPS)
    np.testing.assert_array_equal(moments.total, before[0])
    np.testing.assert_array_equal(moments.product, before[1])


@QUICK
@given(seed=seeds, kind=kinds)
def test_swapping_ones_and_zeros_mirrors_the_gap(seed, kind):
    _, u, w, cell = table(seed)
    target = TARGETS[kind]
    mirror = Target(kind="known", value=1.0 - target.value) if kind == "known" else target
    a = disparities(moments_of(u, w, cell, 6), GROUPS, target, binary=True)
    b = disparities(moments_of(1.0 - u, w, cell, 6), GROUPS, mirror, binary=True)
    np.testing.assert_allclose(a.estimate, -b.estimate, atol=1e-12)
    np.testing.assert_allclose(a.p_value, b.p_value, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(a.ci_low, -b.ci_high, atol=1e-7)


@QUICK
@given(p=st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30))
def test_adjusted_p_values_keep_the_order_and_never_fall(p):
    raw = np.array(p)
    for method in ("bh", "by", "holm", "bonferroni"):
        adjusted = adjusted_p_values(raw, method)
        assert (adjusted >= raw - 1e-15).all()
        assert (adjusted <= 1.0).all()
        assert (np.diff(adjusted[np.argsort(raw, kind="stable")]) >= -1e-15).all()


def test_count_of_a_row_is_the_row_repeated():
    moments = CellMoments.from_rows([[1.0, 1.0], [0.0, 1.0]], [0, 0], count=[30, 70])
    assert moments.total.tolist() == [[30.0, 100.0]]
