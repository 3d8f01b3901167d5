"""Laws of comparisons with the extreme category and of stratified gaps."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from equipoise.stats.disparity.decomposition import disparity_decomposition
from equipoise.stats.disparity.extremes import compare_counts_with_extreme
from equipoise.stats.disparity.impact import impact_ratio_test
from equipoise.stats.disparity.strata import stratified_disparity_test

TABLES = st.lists(
    st.integers(1, 80).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=2,
    max_size=5,
)
SCALES = st.sampled_from(["ratio", "difference"])
REFERENCES = st.sampled_from(["highest", "lowest"])


def compared(table, **options):
    x, n = np.array(table, dtype=float).T
    return compare_counts_with_extreme(x, n, **options)


@given(TABLES, SCALES, REFERENCES, st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_the_order_of_categories_does_not_matter(table, scale, reference, random):
    order = random.sample(range(len(table)), len(table))
    options = {"scale": scale, "reference": reference}
    one, other = compared(table, **options), compared([table[i] for i in order], **options)
    assert_allclose(other.p_values(), one.p_values()[order], rtol=1e-9)
    for level in (0.9, 0.95):
        ends = np.array(one.confidence_interval(level))[:, order]
        assert_allclose(other.confidence_interval(level), ends, rtol=1e-6, atol=1e-8)


@given(TABLES, SCALES, REFERENCES)
@settings(max_examples=30)
def test_an_interval_excludes_equality_exactly_when_the_p_value_is_small(table, scale, reference):
    one = compared(table, scale=scale, reference=reference)
    low, high = one.confidence_interval(0.95)
    excluded = high < one.natural if reference == "highest" else low > one.natural
    p = one.p_values()
    clear = np.abs(p - 0.05) > 1e-6
    np.testing.assert_array_equal(excluded[clear], (p <= 0.05)[clear])
    inside = (low <= one.estimate + 1e-9) & (one.estimate <= high + 1e-9)
    assert (inside | np.isnan(one.estimate)).all()


@given(TABLES, SCALES)
@settings(max_examples=20)
def test_intervals_nest_in_the_level(table, scale):
    one = compared(table, scale=scale)
    narrow, wide = one.confidence_interval(0.9), one.confidence_interval(0.99)
    assert (wide[0] <= narrow[0] + 1e-9).all()
    assert (wide[1] >= narrow[1] - 1e-9).all()
    assert (one.bounds(0.95) <= one.natural + 1e-12).all()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=6)
def test_names_of_groups_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    group, stratum = rng.choice(list("abc"), 150), rng.integers(0, 12, 150)
    y, cluster = (rng.random(150) < 0.4).astype(float), rng.integers(0, 30, 150)
    names = {"a": "z", "b": "m", "c": "a"}
    renamed = np.array([names[g] for g in group])
    for options in ({}, {"cluster": cluster}):
        one, other = (impact_ratio_test(y, g, **options) for g in (group, renamed))
        position = [other.categories.index(names[g]) for g in one.categories]
        assert_allclose(other.p_values()[position], one.p_values(), rtol=1e-9)
        one, other = (stratified_disparity_test(y, g, stratum, **options) for g in (group, renamed))
        position = [
            [c.group for c in other.comparisons].index(names[c.group]) for c in one.comparisons
        ]
        assert_allclose(other.p_values()[position], one.p_values(), rtol=1e-7)
        assert_allclose(other.p_value, one.p_value, rtol=1e-7)


@given(st.integers(0, 2**32 - 1), st.booleans(), SCALES)
@settings(max_examples=15)
def test_order_of_rows_and_recoding_of_strata_do_not_matter(seed, binary, scale):
    rng = np.random.default_rng(seed)
    group, stratum = rng.integers(0, 2, 120), rng.integers(0, 30, 120)
    y = (rng.random(120) < 0.5).astype(float) if binary else rng.exponential(size=120)
    order = rng.permutation(120)
    one = stratified_disparity_test(y, group, stratum, reference=0, scale=scale)
    other = stratified_disparity_test(
        y[order], group[order], [f"s{-k}" for k in stratum[order]], reference=0, scale=scale
    )
    assert_allclose(other.p_values(), one.p_values(), rtol=1e-7)
    assert_allclose(other.confidence_interval(), one.confidence_interval(), rtol=1e-6)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_swapping_group_and_comparator_changes_the_sign(seed):
    rng = np.random.default_rng(seed)
    group, stratum = rng.integers(0, 2, 120), rng.integers(0, 25, 120)
    for y in ((rng.random(120) < 0.5).astype(float), rng.exponential(size=120)):
        one = stratified_disparity_test(y, group, stratum, reference=0).comparisons[0]
        other = stratified_disparity_test(y, group, stratum, reference=1).comparisons[0]
        assert_allclose(other.estimate, -one.estimate)
        assert_allclose(other.p_value, one.p_value, rtol=1e-7)
        low, high = one.confidence_interval()
        assert_allclose(other.confidence_interval(), [-high, -low], rtol=1e-6, atol=1e-9)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_a_stratified_interval_contains_zero_exactly_when_the_p_value_is_large(seed):
    rng = np.random.default_rng(seed)
    group, stratum = rng.integers(0, 2, 80), rng.integers(0, 10, 80)
    cluster = rng.integers(0, 20, 80)
    for y, options in (
        ((rng.random(80) < 0.4 + 0.3 * group).astype(float), {}),
        (rng.exponential(size=80) + group, {}),
        (rng.exponential(size=80) + group, {"cluster": cluster}),
    ):
        for scale, natural in (("difference", 0.0), ("ratio", 1.0)):
            one = stratified_disparity_test(
                y, group, stratum, reference=0, scale=scale, **options
            ).comparisons[0]
            low, high = one.confidence_interval()
            if abs(one.p_value - 0.05) > 1e-6:
                assert (low <= natural <= high) == (one.p_value > 0.05)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
@settings(max_examples=15)
def test_a_split_adds_up_and_ignores_the_order_of_factors(seed, m):
    rng = np.random.default_rng(seed)
    factors = {f"f{i}": rng.integers(0, 2, 120) for i in range(m)}
    member, y = rng.random(120) < 0.5, rng.normal(size=120)
    split = disparity_decomposition(y, member, factors)
    parts = split.unexplained, split.explained, split.outside_group, split.outside_comparator
    assert_allclose(sum(part.value for part in parts), split.raw.value, atol=1e-12)
    back = disparity_decomposition(y, member, dict(reversed(factors.items())))
    for name, part in split.by_factor.items():
        assert_allclose(back.by_factor[name].value, part.value, atol=1e-12)
        assert_allclose(back.by_factor[name].se, part.se, atol=1e-12)
