import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from equipoise.stats.effects.bias import treatment_bias
from equipoise.stats.effects.corrections import CORRECTIONS, effect_correction
from equipoise.stats.effects.errors import corrected_errors, effect_moments, group_errors

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=15, deadline=None)


def draw(seed, n=600, groups=3):
    rng = np.random.default_rng(seed)
    g, t = rng.integers(groups, size=n), rng.integers(2, size=n)
    y = (rng.random(n) < 0.4 + 0.1 * t).astype(float)
    return y, t, rng.uniform(0.8, 1.6, n), g


@few
@given(seeds)
def test_row_order_does_not_matter(seed):
    rows = draw(seed)
    order = np.random.default_rng(seed + 1).permutation(len(rows[0]))
    a = treatment_bias(group_errors(effect_moments(*rows)))
    b = treatment_bias(group_errors(effect_moments(*(r[order] for r in rows))))
    assert_allclose(a.bias.estimate, b.bias.estimate, atol=1e-10)
    assert_allclose(a.bias.p_value, b.bias.p_value, rtol=1e-7, atol=1e-12)


@few
@given(seeds)
def test_group_labels_do_not_matter(seed):
    y, t, f, g = draw(seed)
    a = treatment_bias(group_errors(effect_moments(y, t, f, g)))
    b = treatment_bias(group_errors(effect_moments(y, t, f, 2 - g)))
    assert_allclose(a.bias.estimate, b.bias.estimate[::-1], atol=1e-10)
    assert_allclose(a.equal.p_value, b.equal.p_value, rtol=1e-7)


@few
@given(seeds, st.floats(0.1, 20.0))
def test_relative_errors_do_not_depend_on_the_unit_of_the_outcome(seed, unit):
    y, t, f, g = draw(seed)
    a, b = (group_errors(effect_moments(k * y, t, f, g)) for k in (1.0, unit))
    assert_allclose(a.error, b.error, atol=1e-10)
    assert_allclose(a.error_se, b.error_se, rtol=1e-8)


@few
@given(seeds, st.floats(-0.5, 0.5))
def test_shifting_predictions_shifts_errors_and_leaves_biases(seed, shift):
    y, t, f, g = draw(seed)
    a = group_errors(effect_moments(y, t, f, g))
    b = group_errors(effect_moments(y, t, f - shift, g))
    assert_allclose(b.error, a.error - shift, atol=1e-9)
    c = corrected_errors(a, np.full(3, shift))
    assert_allclose(treatment_bias(b).bias.estimate, treatment_bias(a).bias.estimate, atol=1e-9)
    assert_allclose(treatment_bias(c).bias.p_value, treatment_bias(b).bias.p_value, atol=1e-7)


@few
@given(seeds)
def test_one_row_per_cluster_is_independence(seed):
    rows = draw(seed)
    a = group_errors(effect_moments(*rows))
    b = group_errors(effect_moments(*rows, cluster=np.arange(len(rows[0]))))
    assert_allclose(a.error_se, b.error_se, rtol=1e-10)


@few
@given(seeds)
def test_intervals_nest_in_the_level(seed):
    errors = group_errors(effect_moments(*draw(seed)))
    narrow, wide = (treatment_bias(errors, confidence_level=c).bias for c in (0.8, 0.95))
    for k in range(3):
        if wide.low[k] is not None and narrow.low[k] is not None:
            assert wide.low[k] <= narrow.low[k] <= narrow.high[k] <= wide.high[k]


@few
@given(seeds, st.sampled_from(CORRECTIONS))
def test_corrections_lie_between_the_common_amount_and_the_estimate(seed, method):
    rng = np.random.default_rng(seed)
    b, s = rng.normal(0, 0.2, 8), rng.uniform(0.05, 0.3, 8)
    found = effect_correction(b, s, method=method)
    if method == "npmle":
        assert np.all(
            (found.amount >= min(b.min(), 0) - 1e-9) & (found.amount <= max(b.max(), 0) + 1e-9)
        )
        return
    low, high = np.minimum(found.common, b), np.maximum(found.common, b)
    assert np.all((found.amount >= low - 1e-12) & (found.amount <= high + 1e-12))
