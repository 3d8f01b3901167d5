import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.stats.disparity.contrasts import (
    Mover,
    PairedChange,
    RateChange,
    StudentContrast,
    UnitSide,
    WilsonRate,
    student_error,
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
    low, high = PairedChange(column(0), column(0), column(100)).limits(column(Z))
    assert_allclose((low[0], high[0]), (-(Z**2) / (100 + Z**2), Z**2 / (100 + Z**2)), rtol=1e-9)


@pytest.mark.parametrize("n", [12, 45, 300])
def test_interval_and_p_value_agree_for_every_table(n):
    _, found = all_tables(n)
    zero = np.zeros(len(found.n))
    for level in (0.8, 0.95, 0.99):
        low, high = found.limits(np.full(len(found.n), stats.norm.ppf((1 + level) / 2)))
        assert (((low <= 0) & (high >= 0)) == (two_sided(found.root(zero)) > 1 - level)).all()


@pytest.mark.parametrize("n", [12, 45, 300])
def test_p_values_and_limits_are_monotone_across_the_switch_to_the_exact_test(n):
    pairs, found = all_tables(n)
    where = {pair: k for k, pair in enumerate(pairs)}
    root = found.root(np.zeros(len(pairs)))
    low, high = found.limits(np.full(len(pairs), Z))
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
    student = StudentContrast(column(1, -2), column(0.5, 0.3), column(4, 60))
    for found in (paired, periods, wilson, student):
        for limit, sign in zip(found.limits(column(Z, Z)), (1, -1), strict=True):
            assert_allclose(sign * found.root(limit), Z, rtol=1e-6)


def test_the_limits_of_mover_reach_the_null_at_its_root():
    parts = (
        PairedChange(column(20, 3), column(4, 9), column(100, 80)),
        WilsonRate(column(30, 2), column(90, 40)),
    )
    found = Mover(parts, (column(1, 0.7), column(-1, -0.7)))
    for null in (-0.4, 0.0, 0.3):
        root = found.root(column(null, null))
        low, high = found.limits(np.abs(root))
        assert_allclose(np.where(root > 0, low, high), null, atol=1e-9)


def test_student_error_of_equal_units_is_that_of_a_mean(rng):
    x = rng.normal(size=12)
    _, side = UnitSide.of_rows(x, np.ones(12), np.arange(12), 12)
    se, df = student_error([side], [1.0])
    assert_allclose((se, df), (stats.sem(x), 11))


def test_student_error_of_two_samples_is_that_of_welch(rng):
    x, y = rng.normal(size=9), 3 * rng.normal(size=15)
    sides = []
    for values, start in ((x, 0), (y, 9)):
        unit = np.arange(start, start + len(values))
        sides.append(UnitSide.of_rows(values, np.ones(len(values)), unit, 24)[1])
    se, df = student_error(sides, (1.0, -1.0))
    welch = stats.ttest_ind(x, y, equal_var=False)
    assert_allclose((x.mean() - y.mean()) / se, welch.statistic)
    assert_allclose(df, welch.df)


def test_two_measurements_of_the_same_units_are_paired(rng):
    x = rng.normal(size=10)
    y = x + 0.1 * rng.normal(size=10)
    sides = [UnitSide.of_rows(values, np.ones(10), np.arange(10), 10)[1] for values in (x, y)]
    se, df = student_error(sides, (1.0, -1.0))
    assert_allclose((se, df), (stats.sem(x - y), 9))


@pytest.mark.parametrize("units", [1, 3])
def test_fewer_than_four_units_are_not_tested(units, rng):
    _, side = UnitSide.of_rows(rng.normal(size=30), np.ones(30), np.arange(30) % units, units)
    assert np.isnan(student_error([side], [1.0])).all()


def test_one_huge_cluster_leaves_too_few_units(rng):
    unit = np.concatenate([np.zeros(500, dtype=int), np.arange(1, 20)])
    _, side = UnitSide.of_rows(rng.normal(size=519), np.ones(519), unit, 20)
    assert np.isnan(student_error([side], [1.0])).all()


def test_units_that_do_not_vary_have_no_error():
    _, side = UnitSide.of_rows(np.ones(8), np.ones(8), np.arange(8), 8)
    assert student_error([side], [1.0]) == (0.0, 7.0)
