import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.inequality.comparison import compare_paired
from equipoise.stats.inequality.index import entropy_index


def test_difference_and_error_equal_the_jackknife(rng):
    n = 250
    first, group = rng.choice([0.3, 1.0, 2.0], n), rng.integers(2, size=n)
    second = np.where(rng.random(n) < 0.7, first, rng.choice([0.3, 1.0, 2.0], n))
    found = compare_paired(first, second, group, order=0.5).total
    gap = entropy_index(first, order=0.5) - entropy_index(second, order=0.5)
    left_out = np.array(
        [
            entropy_index(np.delete(first, i), order=0.5)
            - entropy_index(np.delete(second, i), order=0.5)
            for i in range(n)
        ]
    )
    jackknife = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
    assert found.estimate == pytest.approx(gap)
    assert found.se == pytest.approx(jackknife, rel=0.02)


def test_parts_of_the_difference_add_up(rng):
    first, second = rng.gamma(2.0, size=(2, 60))
    found = compare_paired(first, second, rng.integers(3, size=60), order=2.0)
    assert found.total.estimate == pytest.approx(found.within.estimate + found.between.estimate)


def test_counts_stand_for_repeated_rows(rng):
    first, second = rng.gamma(2.0, size=(2, 20))
    count = rng.integers(1, 4, size=20)
    counted = compare_paired(first, second, count=count)
    repeated = compare_paired(np.repeat(first, count), np.repeat(second, count))
    assert counted.total.se == pytest.approx(repeated.total.se)
    assert counted.total.estimate == pytest.approx(repeated.total.estimate)


def test_a_model_does_not_differ_from_itself(rng):
    b = rng.gamma(2.0, size=30)
    found = compare_paired(b, b).total
    assert (found.estimate, found.p_value) == (0.0, 1.0)
    assert found.se == pytest.approx(0.0, abs=1e-9)


def test_models_on_different_rows_are_refused():
    with pytest.raises(InvalidParameterError, match="same rows; got 2 and 3"):
        compare_paired([1.0, 2.0], [1.0, 2.0, 3.0])
