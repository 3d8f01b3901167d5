import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.stats.disparity.contrasts import (
    Mover,
    PairedChange,
    RateChange,
    WilsonRate,
    stacked_laws,
    unit_law,
)

Z = stats.norm.ppf(0.975)


def column(*values):
    return np.array(values, dtype=float)


def two_sided(root):
    return 2 * stats.norm.sf(np.abs(root))


def all_tables(n, largest=40):
    pairs = [(b, c) for b in range(largest + 1) for c in range(largest + 1) if b + c <= n]
    b, c = np.array(pairs, dtype=float).T
    return pairs, PairedChange(b, c, np.full(len(b), float(n)))


def test_few_changed_rows_have_the_exact_p_value():
    # 8 gained, 1 lost: 2 (1 + 9) / 512.
    found = PairedChange(column(8), column(1), column(50))
    assert_allclose(two_sided(found.root(column(0))), 20 / 512)


def test_many_changed_rows_have_the_p_value_of_mcnemar():
    # 15 gained, 5 lost: chi-square 100 / 20.
    found = PairedChange(column(15), column(5), column(200))
    assert_allclose(found.root(column(0)) ** 2, 5.0)


def test_no_changed_row_leaves_an_interval():
    # z^2 = n d / (1 + d) ... the limits of Tango without discordant rows are +- z^2 / (n + z^2).
    low, high = PairedChange(column(0), column(0), column(100)).interval(column(Z))
    assert_allclose((low[0], high[0]), (-(Z**2) / (100 + Z**2), Z**2 / (100 + Z**2)), rtol=1e-9)


@pytest.mark.parametrize("n", [12, 45, 300])
def test_interval_and_p_value_agree_for_every_table(n):
    _, found = all_tables(n)
    zero = np.zeros(len(found.n))
    for level in (0.8, 0.95, 0.99):
        low, high = found.interval(np.full(len(found.n), stats.norm.ppf((1 + level) / 2)))
        assert (((low <= 0) & (high >= 0)) == (two_sided(found.root(zero)) > 1 - level)).all()


@pytest.mark.parametrize("n", [12, 45, 300])
def test_p_values_and_limits_are_monotone_across_the_switch_to_the_exact_test(n):
    pairs, found = all_tables(n)
    where = {pair: k for k, pair in enumerate(pairs)}
    root = found.root(np.zeros(len(pairs)))
    low, high = found.interval(np.full(len(pairs), Z))
    for (gained, lost), k in where.items():
        for other, sign in (((gained + 1, lost), 1), ((gained, lost + 1), -1)):
            j = where.get(other)
            if j is not None:
                assert sign * (root[j] - root[k]) >= -1e-9
                assert sign * (low[j] - low[k]) >= -1e-9
                assert sign * (high[j] - high[k]) >= -1e-9


def test_limits_are_where_the_root_is_z():
    paired = PairedChange(column(20, 30), column(4, 60), column(100, 500), exact_below=0)
    periods = RateChange(column(20, 30), column(40, 90), column(9, 60), column(50, 100))
    wilson = WilsonRate(column(3, 50), column(40, 90))
    for found in (paired, periods, wilson):
        for limit, sign in zip(found.interval(column(Z, Z)), (1, -1), strict=True):
            assert_allclose(sign * found.root(limit), Z, rtol=1e-6)


def test_the_limits_of_mover_reach_the_null_at_its_root():
    parts = (
        PairedChange(column(20, 3), column(4, 9), column(100, 80)),
        WilsonRate(column(30, 2), column(90, 40)),
    )
    found = Mover(parts, (column(1, 0.7), column(-1, -0.7)))
    for null in (-0.4, 0.0, 0.3):
        root = found.root(column(null, null))
        low, high = found.interval(np.abs(root))
        assert_allclose(np.where(root > 0, low, high), null, atol=1e-9)


def totals(*sides):
    """Unit totals of samples that share no unit."""
    n = sum(len(side) for side in sides)
    u, w = np.zeros((n, len(sides))), np.zeros((n, len(sides)))
    start = 0
    for s, side in enumerate(sides):
        u[start : start + len(side), s], w[start : start + len(side), s] = side, 1.0
        start += len(side)
    return u, w


def test_the_error_of_two_samples_is_that_of_welch(rng):
    x, y = rng.normal(size=19), rng.normal(size=25)
    found = unit_law(*totals(x, y), column(1, -1))
    welch = stats.ttest_ind(x, y, equal_var=False)
    assert_allclose((found.estimate / found.se), welch.statistic)


def test_two_measurements_of_the_same_units_are_paired(rng):
    x = rng.normal(size=10)
    y = x + 0.1 * rng.normal(size=10)
    found = unit_law(np.stack([x, y], axis=1), np.ones((10, 2)), column(1, -1))
    assert_allclose((found.se, found.df), (stats.sem(x - y), 9))


@pytest.mark.parametrize("units", [1, 3])
def test_fewer_than_four_units_are_not_tested(units, rng):
    found = unit_law(*totals(rng.normal(size=units), rng.normal(size=30)), column(1, -1))
    assert found.status == "too-few-units"
    assert np.isnan(found.root(0.0))


def test_laws_are_put_into_arrays(rng):
    laws = [
        unit_law(*totals(rng.normal(size=k), rng.normal(size=9)), column(1, -1)) for k in (5, 8)
    ]
    both = stacked_laws(laws)
    assert_allclose(both.root(np.zeros(2)), [law.root(0.0) for law in laws])
    assert_allclose(both.interval(column(Z, Z))[0], [law.interval(Z)[0] for law in laws])
