import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.stats.disparity.decomposition import disparity_decomposition


@pytest.fixture
def rows(rng):
    n = 500
    a, b, c = (rng.integers(0, 3, n) for _ in range(3))
    member = rng.random(n) < 0.3 + 0.15 * a - 0.1 * b
    y = 0.5 * a + 0.2 * b + rng.normal(size=n) - 0.3 * member
    return y, member, {"a": a, "b": b, "c": c}


def test_the_parts_add_up_exactly(rows):
    y, member, factors = rows
    split = disparity_decomposition(y, member, factors)
    outside = split.outside_group.value + split.outside_comparator.value
    whole = split.unexplained.value + split.explained.value + outside
    assert_allclose(split.raw.value, whole, atol=1e-12)
    assert_allclose(split.raw.value, y[member].mean() - y[~member].mean(), atol=1e-12)
    by_factor = sum(part.value for part in split.by_factor.values())
    assert_allclose(split.explained.value, by_factor, atol=1e-12)


def test_one_factor_is_kitagawas_split(rows):
    y, member, factors = rows
    a = factors["a"]
    mu = sum((a[member] == k).mean() * y[~member & (a == k)].mean() for k in range(3))
    split = disparity_decomposition(y, member, {"a": a})
    assert_allclose(split.unexplained.value, y[member].mean() - mu)
    assert_allclose(split.explained.value, mu - y[~member].mean())
    assert_allclose(split.by_factor["a"].value, split.explained.value)
    assert_allclose(split.by_factor["a"].se, split.explained.se)
    assert_allclose(split.without["a"].value, split.raw.value)
    assert_allclose(
        split.ratio_explained * split.ratio_unexplained, y[member].mean() / y[~member].mean()
    )


def test_two_factors_have_the_average_of_both_orders(rows):
    y, member, factors = rows
    two = {name: factors[name] for name in "ab"}

    def explained(*names):
        return disparity_decomposition(y, member, {name: factors[name] for name in names}).explained

    split = disparity_decomposition(y, member, two)
    first, last = explained("a").value, explained("a", "b").value - explained("b").value
    assert_allclose(split.by_factor["a"].value, (first + last) / 2)


def test_people_without_anybody_alike_are_outside():
    y = np.array([1.0, 2.0, 4.0, 9.0, 3.0, 5.0, 0.0])
    member = np.array([True, True, True, True, False, False, False])
    stratum = np.array([0, 0, 0, 1, 0, 0, 2])
    split = disparity_decomposition(y, member, {"k": stratum})
    assert_allclose(split.outside_group.value, 4.0 - 7 / 3)
    assert_allclose(split.outside_comparator.value, 4.0 - 8 / 3)
    assert_allclose(split.unexplained.value, 7 / 3 - 4.0)
    assert_allclose([split.group_covered, split.comparator_covered], [3 / 4, 2 / 3])
    assert "group without comparator (25%)" in str(split)


def test_standard_errors_are_those_of_the_jackknife(rng):
    n = 240
    a, b = rng.integers(0, 2, n), rng.integers(0, 2, n)
    member = rng.random(n) < 0.35 + 0.3 * a
    y = a + rng.normal(size=n)
    split = disparity_decomposition(y, member, {"a": a, "b": b})

    def values(kept):
        one = disparity_decomposition(y[kept], member[kept], {"a": a[kept], "b": b[kept]})
        return [one.raw.value, one.unexplained.value, one.explained.value] + [
            part.value for part in one.by_factor.values()
        ]

    left = np.array([values(np.arange(n) != i) for i in range(n)])
    jackknife = np.sqrt((n - 1) / n * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    own = [split.raw.se, split.unexplained.se, split.explained.se]
    own += [part.se for part in split.by_factor.values()]
    assert_allclose(own, jackknife, rtol=0.03)


def test_clusters_of_one_row_and_equal_weights_change_nothing(rows):
    y, member, factors = rows
    plain = disparity_decomposition(y, member, factors)
    for unit in ({"cluster": np.arange(len(y))}, {"weight": np.full(len(y), 3.0)}):
        other = disparity_decomposition(y, member, factors, **unit)
        assert_allclose(other.unexplained.value, plain.unexplained.value)
        assert_allclose(other.unexplained.se, plain.unexplained.se)
        assert_allclose(other.by_factor["b"].se, plain.by_factor["b"].se)


def test_the_unexplained_gap_is_the_result(rows):
    y, member, factors = rows
    split = disparity_decomposition(y, member, factors)
    assert split.p_value == split.unexplained.p_value
    assert split.statistic == split.unexplained.statistic
    low, high = split.confidence_interval(0.95)
    assert (low <= 0.0 <= high) == (split.p_value > 0.05)


def test_what_cannot_be_split_is_refused(rows):
    y, member, factors = rows
    with pytest.raises(InvalidParameterError, match="1 to 10 factors; got 0"):
        disparity_decomposition(y, member, {})
    with pytest.raises(InvalidParameterError, match="1 to 10 factors; got 11"):
        disparity_decomposition(y, member, {str(i): factors["a"] for i in range(11)})
    with pytest.raises(GroupTooSmallError, match="No stratum has rows of both groups"):
        disparity_decomposition(y, member, {"itself": member})
    with pytest.raises(InvalidParameterError, match="one entry for each row"):
        disparity_decomposition(y, member[:3], factors)
