import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.moments import CellMoments
from equipoise.stats.effects.checks import balance_test


def moments(arm, *covariates):
    return CellMoments.from_rows(np.column_stack([np.ones(len(arm)), *covariates]), arm)


def test_balance_of_one_covariate_is_a_comparison_of_two_means(rng):
    arm, x = np.repeat([0, 1], [40, 60]), rng.normal(size=100)
    x[arm == 1] += 0.5
    found = balance_test(moments(arm, x))
    apart = x[arm == 1].mean() - x[arm == 0].mean()
    variance = x[arm == 1].var() / 60 + x[arm == 0].var() / 40
    assert_allclose(found.largest, abs(apart) / x.std())
    assert_allclose(found.p_value, stats.f.sf(apart**2 / variance, 1, 99), rtol=1e-6)


def test_a_covariate_that_does_not_vary_is_not_out_of_balance(rng):
    arm, x = np.repeat([0, 1], 50), rng.normal(size=100)
    found, alone = balance_test(moments(arm, np.full(100, 3.0), x)), balance_test(moments(arm, x))
    assert found.covariate.tolist() == [1]
    assert_allclose(found.largest, alone.largest)
    assert_allclose(found.p_value, alone.p_value)


@pytest.mark.parametrize(("rows", "tested"), [(10, False), (12, True)])
def test_more_than_ten_rows_are_asked_for_one_covariate(rng, rows, tested):
    found = balance_test(moments(np.arange(rows) % 2, rng.normal(size=rows)))
    assert np.isfinite(found.p_value[0]) == tested
