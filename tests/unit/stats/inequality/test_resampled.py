"""Resampled intervals of an index: their formulas, laws and edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from equipoise.stats.inequality import resampled
from equipoise.stats.inequality.benefits import BenefitMoments
from equipoise.stats.inequality.decomposition import decompose
from equipoise.stats.inequality.index import kernel
from equipoise.stats.inequality.resampled import (
    kernel_coefficients,
    power,
    resampled_intervals,
    resampled_unit_intervals,
)

ORDERS = (-1.0, 0.0, 0.5, 1.0, 2.0)


def people(seed=0, n=200):
    rng = np.random.default_rng(seed)
    return {
        "benefits": rng.lognormal(0.0, 0.7, n),
        "group": rng.integers(0, 3, n),
        "weight": rng.uniform(0.5, 1.5, n),
        "cluster": rng.integers(0, 40, n),
    }


def sample_of(p, order, *, clustered):
    sums = np.stack([np.ones(len(p["group"])), p["benefits"], power(p["benefits"], order)], axis=1)
    sums *= p["weight"][:, None]
    if not clustered:
        return resampled._Sample.of(sums, p["group"])
    pairs, where = np.unique(p["cluster"] * 3 + p["group"], return_inverse=True)
    units = np.unique(pairs // 3, return_inverse=True)[1]
    return resampled._Sample.of(resampled.sum_by(where, sums, len(pairs)), pairs % 3, unit=units)


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_values_and_errors_are_those_of_the_decomposition(order, clustered):
    p = people()
    found = resampled._parts(sample_of(p, order, clustered=clustered), order)
    parts = decompose(
        BenefitMoments.from_rows(
            p["benefits"],
            p["group"],
            order=order,
            weight=p["weight"],
            cluster=p["cluster"] if clustered else None,
        )
    )
    values = np.exp(found.log[0])
    assert_allclose(values[0], parts.total, rtol=1e-10)
    assert_allclose(values[1], parts.total - parts.between_corrected, rtol=1e-10)
    assert_allclose(values[2:], parts.within_group, rtol=1e-10)
    n = len(np.unique(p["cluster"])) if clustered else len(p["group"])
    errors = found.error[0] * values * np.sqrt((n - 1) / n)
    assert_allclose(errors[:2], [parts.total_se, parts.within_se], rtol=1e-9)
    assert_allclose(errors[2:], parts.within_group_se, rtol=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_a_resample_of_clusters_is_the_table_with_their_rows_repeated(order):
    p = people()
    sample = sample_of(p, order, clustered=True)
    rng = np.random.default_rng(1)
    n = sample.n_units
    times = rng.multinomial(n, np.full(n, 1 / n), size=1)
    drawn = resampled._parts(resampled.replace(sample, times=times * 1.0), order)
    _, unit = np.unique(p["cluster"], return_inverse=True)
    rows = np.repeat(np.arange(len(unit)), times[0][unit])
    # Every copy of a cluster is a unit of its own.
    copy = np.concatenate([np.arange(times[0][u]) for u in unit])
    parts = decompose(
        BenefitMoments.from_rows(
            p["benefits"][rows],
            p["group"][rows],
            order=order,
            weight=p["weight"][rows],
            cluster=unit[rows] * 1000 + copy,
        )
    )
    assert_allclose(np.exp(drawn.log[0, 0]), parts.total, rtol=1e-10)
    assert_allclose(np.exp(drawn.log[0, 1]), parts.within_corrected, rtol=1e-10)
    scale = np.sqrt(n / (n - 1))
    assert_allclose(drawn.error[0, 0] * np.exp(drawn.log[0, 0]), parts.total_se * scale, rtol=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_the_kernel_is_linear_in_a_benefit_and_its_power(order):
    b = np.array([0.5, 1.0, 4.0])
    c0, c1, c2 = kernel_coefficients(2.0, order)
    assert_allclose(c0 + c1 * b / 2.0 + c2 * power(b, order), kernel(b / 2.0, order), atol=1e-12)


def test_the_mean_of_the_pareto_law_is_that_of_many_draws():
    tail = resampled._Tail(start=2.0, exponent=6.0)
    n = 400_000
    sums = np.stack([np.ones(n), np.full(n, 3.0), np.zeros(n)], axis=1)
    sample = resampled._Sample.of(sums, np.zeros(n, dtype=int))
    for order in ORDERS:
        drawn = tail.draw(sample, order, np.random.default_rng(0))
        expected = tail.expected(sample, order)
        assert_allclose(drawn.b.mean(), expected.b[0, 0], rtol=2e-3)
        assert_allclose(drawn.p.mean(), expected.p[0, 0], rtol=2e-2, atol=2e-3)


def test_rows_below_the_tail_are_left_alone():
    tail = resampled._Tail(start=2.0, exponent=6.0)
    sums = np.array([[1.0, 1.5, 0.0], [2.0, 6.0, 0.0]])
    drawn = tail.expected(resampled._Sample.of(sums, np.zeros(2, dtype=int)), 2.0)
    # The second row has weight 2 and benefit 3, so it lies in the tail; E = 2 * 6/5.
    assert_allclose(drawn.b[0], [1.5, 2 * 2.4])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), clustered=st.booleans(), order=st.sampled_from(ORDERS))
def test_order_of_rows_names_and_units_of_measurement_do_not_matter(seed, clustered, order):
    p = people(seed, n=60)
    options = {"order": order, "n_resamples": 99, "rng": 3}
    arrays = {k: p[k] for k in ("weight", *(("cluster",) if clustered else ()))}
    found = resampled_intervals(p["benefits"], p["group"], **arrays, **options)
    shuffle = np.random.default_rng(seed).permutation(60)
    renamed = {k: (100 - v if k == "cluster" else v)[shuffle] for k, v in arrays.items()}
    again = resampled_intervals(
        7.0 * p["benefits"][shuffle], 2 - p["group"][shuffle], **renamed, **options
    )
    assert_allclose(again.total, found.total, rtol=1e-6)
    assert_allclose(again.within, found.within, rtol=1e-6)
    ends = [[0.0 if high is None else high for _, high in x.within_group] for x in (found, again)]
    assert_allclose(ends[1][::-1], ends[0], rtol=1e-6)


def test_intervals_nest_in_the_level():
    p = people()
    narrow, wide = (
        resampled_intervals(p["benefits"], confidence_level=level, n_resamples=199).total
        for level in (0.8, 0.95)
    )
    assert wide[0] <= narrow[0] < narrow[1] <= wide[1]


def test_equal_benefits_have_no_upper_end():
    assert resampled_intervals(np.ones(20), n_resamples=99).total == (0.0, None)


def test_a_group_of_one_person_has_no_upper_end():
    benefits = np.linspace(1.0, 3.0, 31)
    found = resampled_intervals(benefits, np.arange(31) // 30, n_resamples=99)
    assert found.within_group[1] == (0.0, None)
    assert found.within_group[0][1] is not None


def test_no_tail_is_fitted_to_clusters_few_rows_or_equal_largest_values():
    p = people()
    assert resampled_intervals(p["benefits"], n_resamples=99).tail_index is not None
    clustered = resampled_intervals(p["benefits"], cluster=p["cluster"], n_resamples=99)
    assert clustered.tail_index is None
    assert resampled_intervals(np.arange(1.0, 9.0), n_resamples=99).tail_index is None
    levels = np.repeat([0.0, 1.0, 2.0], 20)
    assert resampled_intervals(levels, n_resamples=99).tail_index is None


def test_few_clusters_widen_the_interval_by_the_jackknife():
    rng = np.random.default_rng(2)
    cluster = np.repeat(np.arange(6), 10)
    benefits = np.exp(0.6 * rng.normal(size=6)[cluster] + 0.1 * rng.normal(size=60))
    sums = np.stack([np.ones(60), benefits, power(benefits, 1.0)], axis=1)
    sample = resampled._Sample.of(
        resampled.sum_by(cluster, sums, 6), np.zeros(6, dtype=int), unit=np.arange(6)
    )
    observed = resampled._parts(sample, 1.0)
    left_out = [
        np.log(decompose(BenefitMoments.from_rows(benefits[cluster != k], order=1.0)).total)
        for k in range(6)
    ]
    jackknife = np.sqrt(5 / 6 * np.sum((left_out - np.mean(left_out)) ** 2))
    assert_allclose(
        resampled._error(sample, observed, 1.0)[0], max(jackknife, observed.error[0, 0])
    )


def test_sums_by_unit_give_what_rows_give():
    p = people()
    sums = np.stack([np.ones(200), p["benefits"], power(p["benefits"], 1.0)], axis=1)
    by_unit = resampled_unit_intervals(sums, p["group"], p["cluster"], n_resamples=99)
    by_row = resampled_intervals(p["benefits"], p["group"], cluster=p["cluster"], n_resamples=99)
    assert_allclose(by_unit.total, by_row.total, rtol=1e-9)


def test_many_rows_are_resampled_less_often():
    benefits = np.random.default_rng(0).gamma(2.0, size=15_000)
    low, high = resampled_intervals(benefits).total
    assert low < decompose(BenefitMoments.from_rows(benefits, order=1.0)).total < high


def test_a_tail_may_begin_below_the_mean():
    """A few people have nearly everything: nine in ten have less than the mean."""
    benefits = np.exp(3.0 * np.random.default_rng(1).normal(size=200))
    assert np.sort(benefits)[-15] < benefits.mean()
    assert resampled_intervals(benefits, n_resamples=99, rng=1).tail_index is not None
