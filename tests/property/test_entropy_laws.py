import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from equipoise.stats.inequality.benefits import BenefitMoments
from equipoise.stats.inequality.decomposition import (
    between_interval,
    between_test,
    contribution_intervals,
    decompose,
    log_interval,
)
from equipoise.stats.inequality.index import entropy_index

sizes = st.integers(6, 30)
orders = st.sampled_from([-1.0, 0.0, 0.3, 1.0, 2.0, 4.0])
positive = st.floats(0.05, 5.0)


@st.composite
def grouped(draw):
    n = draw(sizes)
    benefits = draw(hnp.arrays(float, n, elements=positive))
    group = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 2)))
    group[:3] = [0, 1, 2]
    return benefits, group


@settings(max_examples=60, deadline=None)
@given(grouped(), orders)
def test_within_plus_between_is_the_total(rows, order):
    b, group = rows
    parts = decompose(BenefitMoments.from_rows(b, group, order=order))
    np.testing.assert_allclose(parts.total, entropy_index(b, order=order), atol=1e-12)
    np.testing.assert_allclose(parts.within + parts.between, parts.total, atol=1e-13)
    assert np.all(parts.within_group >= 0.0)
    assert np.all(parts.between_group >= 0.0)


@settings(max_examples=60, deadline=None)
@given(grouped(), orders, st.floats(0.01, 100.0))
def test_unit_and_row_order_and_group_names_do_not_matter(rows, order, unit):
    b, group = rows
    base = decompose(BenefitMoments.from_rows(b, group, order=order))
    other = decompose(BenefitMoments.from_rows((unit * b)[::-1], 2 - group[::-1], order=order))
    for name in ("total", "between", "total_se", "within_se", "between_se", "between_bias"):
        # A variance that is zero is left with the rounding error of its terms, 1e-16.
        np.testing.assert_allclose(getattr(other, name), getattr(base, name), rtol=1e-7, atol=2e-7)
    np.testing.assert_allclose(other.between_group[::-1], base.between_group, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(grouped(), orders, st.integers(2, 4))
def test_a_count_is_a_row_so_many_times(rows, order, times):
    b, group = rows
    counted = BenefitMoments.from_rows(b, group, order=order, count=np.full(len(b), times))
    repeated = BenefitMoments.from_rows(np.tile(b, times), np.tile(group, times), order=order)
    np.testing.assert_allclose(
        decompose(counted).total_se, decompose(repeated).total_se, rtol=1e-7, atol=2e-7
    )
    np.testing.assert_allclose(
        between_test(counted).p_value, between_test(repeated).p_value, rtol=1e-6, atol=1e-12
    )


@settings(max_examples=40, deadline=None)
@given(grouped(), orders)
def test_one_row_for_each_cluster_is_independence(rows, order):
    b, group = rows
    plain = decompose(BenefitMoments.from_rows(b, group, order=order))
    single = decompose(
        BenefitMoments.from_rows(b, group, order=order, cluster=np.arange(len(b))[::-1])
    )
    np.testing.assert_allclose(single.total_se, plain.total_se, rtol=1e-7, atol=2e-7)
    np.testing.assert_allclose(single.share_se, plain.share_se, rtol=1e-7, atol=2e-7)


@settings(max_examples=40, deadline=None)
@given(grouped(), orders)
def test_intervals_nest_in_the_level_and_zero_is_inside_when_the_test_does_not_reject(rows, order):
    b, group = rows
    moments = BenefitMoments.from_rows(b, group, order=order)
    parts, test = decompose(moments), between_test(moments)
    ends = [log_interval(parts.total, parts.total_se, confidence_level=c) for c in (0.8, 0.95)]
    assert ends[1][0] <= ends[0][0]
    assert ends[1][1] is None or ends[0][1] <= ends[1][1]
    for level in (0.8, 0.95, 0.99):
        low, high = between_interval(parts, test, confidence_level=level)
        assert (low > 0.0) == (test.p_value <= 1.0 - level)
        assert high is None or high >= low
        starts, _ = contribution_intervals(parts, test, confidence_level=level)
        tested = test.groups.tested
        assert ((starts > 0.0) == (test.groups.p_value <= 1.0 - level))[tested].all()


@settings(max_examples=30, deadline=None)
@given(grouped())
def test_index_is_continuous_in_the_order(rows):
    b, group = rows
    for limit in (0.0, 1.0):
        exact = decompose(BenefitMoments.from_rows(b, group, order=limit))
        near = decompose(BenefitMoments.from_rows(b, group, order=limit + 1e-9))
        np.testing.assert_allclose(near.total, exact.total, rtol=1e-7, atol=1e-14)
        np.testing.assert_allclose(near.total_se, exact.total_se, rtol=1e-5, atol=1e-7)


@settings(max_examples=40, deadline=None)
@given(hnp.arrays(float, 8, elements=positive), orders, st.data())
def test_a_transfer_from_rich_to_poor_lowers_the_index(b, order, data):
    poor, rich = int(np.argmin(b)), int(np.argmax(b))
    gap = b[rich] - b[poor]
    if gap < 1e-3:
        return
    moved = b.copy()
    step = gap * data.draw(st.floats(0.05, 0.5))
    moved[poor] += step
    moved[rich] -= step
    assert entropy_index(moved, order=order) < entropy_index(b, order=order)


@settings(max_examples=60, deadline=None)
@given(st.data(), orders)
def test_index_is_quasi_concave_in_the_distribution(data, order):
    b = data.draw(hnp.arrays(float, 4, elements=positive))
    p, q = (data.draw(hnp.arrays(float, 4, elements=st.floats(0.01, 1.0))) for _ in range(2))
    t = data.draw(st.floats(0.0, 1.0))
    mixed = t * p / p.sum() + (1 - t) * q / q.sum()
    ends = [entropy_index(b, order=order, weight=w) for w in (p, q)]
    assert entropy_index(b, order=order, weight=mixed) >= min(ends) - 1e-12


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(float, (2, 6), elements=positive), orders, st.floats(0.0, 1.0))
def test_index_is_quasi_convex_in_the_benefits(b, order, t):
    ends = [entropy_index(row, order=order) for row in b]
    assert entropy_index(t * b[0] + (1 - t) * b[1], order=order) <= max(ends) + 1e-12
