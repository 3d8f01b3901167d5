import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.stats.scores.kernel import kernel_regression
from equipoise.stats.scores.parity import parity_test

SEEDS = st.integers(0, 10_000)


def rows(seed, n=300, users=90):
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-score))).astype(float)
    return y, score, rng.integers(2, size=n), rng.integers(users, size=n), rng


def numbers(test):
    d = test.differences
    arrays = [d.estimate, d.test.standard_error, d.test.low, d.test.high] if d else []
    return np.concatenate(
        [*arrays, [test.average.estimate, test.average.se, test.p_value, test.order.p_value]]
    )


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_row_order_and_cluster_names_do_not_matter(seed):
    y, score, group, user, rng = rows(seed)
    p = rng.permutation(len(y))
    names = np.array([f"user {(7 * u) % 101}" for u in user])
    a = parity_test(y, score, group, cluster=user, unit="cluster", bandwidth=0.8)
    b = parity_test(y[p], score[p], group[p], cluster=names[p], unit="cluster", bandwidth=0.8)
    np.testing.assert_allclose(numbers(a), numbers(b), rtol=1e-7, atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_exchanging_groups_changes_the_sign(seed):
    y, score, group, user, _ = rows(seed)
    a = parity_test(y, score, group, cluster=user, unit="row", bandwidth=0.8)
    b = parity_test(y, score, 1 - group, cluster=user, unit="row", bandwidth=0.8)
    np.testing.assert_allclose(a.estimate, -b.estimate, atol=1e-10)
    assert (a.p_value, a.order.p_value) == (b.p_value, b.order.p_value)
    np.testing.assert_allclose(a.cusum.path, -b.cusum.path, atol=1e-8)


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.floats(0.01, 100.0), st.floats(-50.0, 50.0))
def test_a_change_of_units_of_the_score_changes_nothing(seed, scale, shift):
    y, score, group, _, _ = rows(seed, n=600)
    a = parity_test(y, score, group)
    b = parity_test(y, scale * score + shift, group)
    np.testing.assert_allclose(numbers(a), numbers(b), rtol=1e-5, atol=1e-6)


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_one_row_for_each_cluster_is_independent_rows(seed):
    y, score, group, _, _ = rows(seed, n=400)
    plain = parity_test(y, score, group)
    for unit in ("row", "cluster"):
        each = parity_test(y, score, group, cluster=np.arange(400), unit=unit)
        np.testing.assert_allclose(numbers(plain), numbers(each), rtol=1e-7, atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_weight_two_is_a_row_twice_for_the_estimate(seed):
    y, score, _, _, rng = rows(seed)
    weight = rng.integers(1, 4, size=len(y))
    points = np.array([-0.5, 0.5])
    a = kernel_regression(y, score, points, weight=weight, bandwidth=0.5)
    b = kernel_regression(*(np.repeat(v, weight) for v in (y, score)), points, bandwidth=0.5)
    np.testing.assert_allclose(a.estimate, b.estimate)


@settings(max_examples=5, deadline=None)
@given(SEEDS)
def test_same_seed_same_answer_and_inputs_unchanged(seed):
    y, score, group, user, _ = rows(seed)
    before = [a.copy() for a in (y, score, group, user)]
    a = parity_test(y, score, group, cluster=user, unit="row", rng=seed)
    b = parity_test(y, score, group, cluster=user, unit="row", rng=seed)
    np.testing.assert_array_equal(numbers(a), numbers(b))
    for now, then in zip((y, score, group, user), before, strict=True):
        np.testing.assert_array_equal(now, then)
