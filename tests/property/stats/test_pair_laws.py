"""Laws of the tests of two proportions."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.stats.disparity.joint import equal_rates_test
from equipoise.stats.inversion import GREATER, LESS
from equipoise.stats.pairs import Pairs, against_population, against_rest

QUICK = settings(max_examples=25, deadline=None)
scales = st.sampled_from(["difference", "ratio"])
levels = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])


@st.composite
def samples(draw, largest=120):
    n = draw(st.integers(1, largest))
    return draw(st.integers(0, n)), n


@st.composite
def tables(draw, largest=120):
    return (*draw(samples(largest)), *draw(samples(largest)))


def pair(table, scale="difference"):
    return Pairs.of(*(np.array([float(v)]) for v in table), scale=scale)


def nulls_of(scale):
    return st.floats(0.05, 8.0) if scale == "ratio" else st.floats(-0.9, 0.9)


@QUICK
@given(table=tables(), data=st.data())
def test_swapping_the_samples_swaps_the_sides(table, data):
    null = data.draw(nulls_of("difference"))
    x1, n1, x2, n2 = table
    here, there = pair(table), pair((x2, n2, x1, n1))
    np.testing.assert_allclose(
        here.p_value(null, "greater"), there.p_value(-null, "less"), rtol=1e-9
    )
    ratio = data.draw(nulls_of("ratio"))
    here, there = pair(table, "ratio"), pair((x2, n2, x1, n1), "ratio")
    np.testing.assert_allclose(
        here.p_value(ratio, "greater"), there.p_value(1.0 / ratio, "less"), rtol=1e-6
    )


@QUICK
@given(table=tables(), null=nulls_of("difference"))
def test_exchanging_ones_and_zeros_changes_the_sign(table, null):
    x1, n1, x2, n2 = table
    here, there = pair(table), pair((n1 - x1, n1, n2 - x2, n2))
    np.testing.assert_allclose(
        here.p_value(null, "greater"), there.p_value(-null, "less"), rtol=1e-6, atol=1e-12
    )


@QUICK
@given(table=tables(), level=levels, scale=scales, data=st.data())
def test_a_value_is_in_the_interval_exactly_when_it_is_not_rejected(table, level, scale, data):
    if scale == "ratio" and table[2] == 0:
        return
    p = pair(table, scale)
    low, high = p.interval(level)
    equal = float(scale == "ratio")
    for null in (equal, data.draw(nulls_of(scale))):
        if min(abs(null - low[0]), abs(null - high[0])) > 1e-9 or null == equal:
            inside = low[0] <= null <= high[0]
            assert inside == (p.p_value(null)[0] > 1.0 - level)


@QUICK
@given(table=tables(), scale=scales)
def test_intervals_nest_in_the_level(table, scale):
    p = pair(table, scale)
    ends = [p.interval(level) for level in (0.8, 0.9, 0.95, 0.999)]
    assert all(wide[0] <= narrow[0] for narrow, wide in pairwise(ends))
    assert all(wide[1] >= narrow[1] for narrow, wide in pairwise(ends))


@QUICK
@given(table=tables(), scale=scales, data=st.data())
def test_p_values_are_monotone_in_the_hypothesis(table, scale, data):
    p = pair(table, scale)
    nulls = np.sort(data.draw(st.lists(nulls_of(scale), min_size=2, max_size=6)))
    up, down = (
        np.array([p.p_value(null, side)[0] for null in nulls]) for side in ("greater", "less")
    )
    assert (np.diff(up) >= -1e-9).all()
    assert (np.diff(down) <= 1e-9).all()


@QUICK
@given(table=tables(40), null=st.floats(-0.2, 0.2))
def test_one_more_event_in_the_group_never_makes_it_look_lower(table, null):
    x1, n1, x2, n2 = table
    if x1 == n1:
        return
    fewer, more = pair(table), pair((x1 + 1, n1, x2, n2))
    for side, sign in (("greater", 1), ("less", -1)):
        change = more.p_value(null, side) - fewer.p_value(null, side)
        assert sign * change[0] <= 1e-9


@QUICK
@given(share=st.floats(0.01, 0.9), scale=scales, data=st.data())
def test_population_and_rest_say_the_same(share, scale, data):
    null = data.draw(nulls_of(scale))
    if scale == "ratio" and null * share > 0.95:
        return
    rest = against_rest(np.array([null]), np.array([share]), scale)
    np.testing.assert_allclose(against_population(rest, np.array([share]), scale), null)


@QUICK
@given(many=st.lists(tables(30), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_pairs_do_not_depend_on_their_company_or_order(many, seed):
    columns = [np.array(c, dtype=float) for c in zip(*many, strict=True)]
    order = np.random.default_rng(seed).permutation(len(many))
    together = Pairs.of(*columns)
    shuffled = Pairs.of(*(c[order] for c in columns))
    for tail in (GREATER, LESS):
        which, null = np.arange(len(many)), np.zeros(len(many))
        root = together.root(null, which, tail)
        np.testing.assert_array_equal(shuffled.root(null, which, tail), root[order])
        alone = [pair(t).root(np.zeros(1), np.zeros(1, dtype=int), tail)[0] for t in many]
        np.testing.assert_allclose(root, alone, rtol=1e-9)


@QUICK
@given(
    sizes=st.lists(samples(30), min_size=1, max_size=25),
    known=st.one_of(st.none(), st.floats(0.05, 0.95)),
    seed=st.integers(0, 99),
)
def test_the_joint_test_does_not_depend_on_order_or_coding(sizes, known, seed):
    ones, n = (np.array(c, dtype=float) for c in zip(*sizes, strict=True))
    order = np.random.default_rng(seed).permutation(len(n))
    test = equal_rates_test(ones, n, rate=known)
    assert 0.0 <= test.p_value <= 1.0
    assert equal_rates_test(ones[order], n[order], rate=known) == test
