import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.stats import resampling
from equipoise.stats.resampling import bootstrap_sums, distinct_rows, without_last_digits


def test_distinct_rows_reproduce_the_sums(rng):
    values = np.column_stack(
        [
            rng.integers(2, size=300),
            rng.choice([0.0, 1.5, -2.25], size=300),
            rng.integers(2, size=300),
        ]
    )
    count = rng.integers(4, size=300)
    rows = distinct_rows(values, count)
    np.testing.assert_array_equal(rows.count @ rows.values, count @ values)
    assert rows.n == count.sum()
    assert len(np.unique(rows.values, axis=0)) == len(rows.values)
    assert rows.values.any(axis=1).all()


def test_rows_that_differ_in_the_last_digit_stay_apart():
    close = np.nextafter(1.0, 2.0)
    rows = distinct_rows([[1.0, 0.5], [close, 0.5], [1.0, 0.5]])
    assert rows.values[:, 0].tolist() == [1.0, close]
    assert rows.count.tolist() == [2, 1]


def test_totals_lose_the_digits_that_depend_on_the_order_of_a_sum():
    totals = np.array([[0.1 + 0.2 + 0.3, 3.0], [0.3 + 0.2 + 0.1, 4.0], [1.0, 5.0]])
    assert totals[0, 0] != totals[1, 0]
    settled = without_last_digits(totals)
    assert settled[0, 0] == settled[1, 0]
    np.testing.assert_array_equal(settled[:, 1], totals[:, 1])
    np.testing.assert_allclose(settled, totals, rtol=1e-12)


def test_codes_survive_more_columns_than_fit_one_integer(rng):
    values = rng.normal(size=(500, 12))
    doubled = np.concatenate([values, values])
    rows = distinct_rows(doubled)
    assert len(rows.values) == 500
    assert (rows.count == 2).all()


def test_order_of_rows_does_not_matter(rng):
    values = rng.integers(3, size=(200, 3)).astype(float)
    first, second = distinct_rows(values), distinct_rows(rng.permutation(values))
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.count, second.count)


@pytest.mark.parametrize("law", ["cells", "rows", "gaussian"])
def test_every_law_has_the_mean_and_covariance_of_the_bootstrap(rng, monkeypatch, law):
    columns = rng.normal(size=(20, 2)) + 1.0
    count = rng.integers(1, 30, size=20)
    n = int(count.sum()) + 500
    limits = {"cells": (5000, 1), "rows": (0, 10**9), "gaussian": (0, 1)}[law]
    monkeypatch.setattr(resampling, "MAX_CELLS", limits[0])
    monkeypatch.setattr(resampling, "MAX_DRAWS", limits[1])
    draws = bootstrap_sums(columns, count, n=n, n_resamples=40_000, rng=rng)
    assert draws.law == law
    total = count @ columns
    covariance = columns.T @ (columns * count[:, None]) - np.outer(total, total) / n
    se = np.sqrt(np.diag(covariance))
    # 40,000 draws: five standard errors of a mean, and 5% for a covariance.
    np.testing.assert_allclose(draws.sums.mean(axis=0), total, atol=5 * se.max() / 200)
    np.testing.assert_allclose(np.cov(draws.sums.T), covariance, atol=0.05 * se.max() ** 2)


def test_few_distinct_rows_are_drawn_as_cells_and_many_as_rows():
    assert resampling._law(50, 10_000, 1000) == "cells"
    assert resampling._law(900, 1000, 1000) == "rows"
    assert resampling._law(10_000, 10**6, 10_000) == "gaussian"
    assert resampling._law(4_000, 10**6, 10_000) == "cells"


def test_same_seed_same_draws():
    args = {"columns": [[1.0], [2.0]], "count": [3, 4], "n": 10, "n_resamples": 50}
    np.testing.assert_array_equal(
        bootstrap_sums(**args, rng=3).sums, bootstrap_sums(**args, rng=3).sums
    )
    assert not np.array_equal(
        bootstrap_sums(**args, rng=3).sums, bootstrap_sums(**args, rng=4).sums
    )


def test_sums_of_nothing_are_zero():
    rows = distinct_rows(np.zeros((4, 2)))
    draws = bootstrap_sums(rows.values, rows.count, n=rows.n, n_resamples=3)
    np.testing.assert_array_equal(draws.sums, np.zeros((3, 2)))


def test_counts_beyond_n_are_refused():
    with pytest.raises(InvalidParameterError, match="sum to at most n = 5; got 7"):
        bootstrap_sums([[1.0], [2.0]], [3, 4], n=5, n_resamples=10)
