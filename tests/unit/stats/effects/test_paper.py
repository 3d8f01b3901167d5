"""The published procedure: its equations by hand, its invariances and its known faults."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.effects.paper import STRATEGIES, paper_evaluation


def table(rng, n=4_000, lift=(1.0, 1.3, 1.3), spread=0.0):
    group, offer = rng.integers(3, size=n), rng.integers(2, size=n)
    effect = np.array(lift)[group] * np.exp(spread * rng.standard_normal(n))
    y = (rng.random(n) < np.clip(0.25 * effect**offer, 0, 1)).astype(float)
    return y, offer, effect, group


def naive_half(y, t, f, members):
    """Eqs. (15) and (20) written as they are printed."""
    one = members & (t == 1) & (y > 0)
    zero = members & (t == 0) & (y > 0)
    psi, lam = f[one].mean(), f[zero].mean()
    collapsed = (zero.sum() * lam**2 + one.sum() * psi) / (zero.sum() * lam + one.sum())
    effect = y[members & (t == 1)].mean() / y[members & (t == 0)].mean()
    return collapsed, effect


def test_estimates_of_many_splits_are_those_of_the_equations_on_all_rows(rng):
    y, t, f, g = table(rng, spread=0.3)
    found = paper_evaluation(y, t, f, g, n_repeats=40, n_draws=2, rng=0)
    for k in range(3):
        collapsed, effect = naive_half(y, t, f, g == k)
        # Each of 80 runs has half of the rows, and half of those for each part.
        assert_allclose(found.predicted.estimate[k], collapsed, atol=0.01)
        assert_allclose(found.effect.estimate[k], effect, atol=0.05)
    assert_allclose(
        found.error.estimate, found.predicted.estimate - found.effect.estimate, rtol=1e-12
    )
    assert_allclose(found.bias.estimate, found.error.estimate - found.rest.estimate, atol=1e-12)


def test_variances_are_those_of_a_quarter_of_the_rows(rng):
    """Two halvings: predictions are constant, so that all variance is that of the effect."""
    y, t, _, g = table(rng, n=24_000)
    found = paper_evaluation(y, t, np.full(len(y), 1.2), g, n_repeats=4, n_draws=200, rng=0)
    for k in range(3):
        p0, p1 = (y[(g == k) & (t == a)].mean() for a in (0, 1))
        n0, n1 = (((g == k) & (t == a)).sum() / 4 for a in (0, 1))
        se = p1 / p0 * np.sqrt((1 - p1) / (n1 * p1) + (1 - p0) / (n0 * p0))
        assert_allclose(found.error.se[k], se, rtol=0.1)
    assert_allclose(found.predicted.se, 0.0, atol=1e-12)


def test_p_values_and_intervals_agree(rng):
    found = paper_evaluation(*table(rng), n_repeats=2, rng=0)
    low, high = found.bias.bounds(0.95)
    assert_allclose(
        found.bias.p_value,
        2 * stats.t.sf(np.abs(found.bias.estimate / found.bias.se), found.bias.df),
    )
    assert (((low > 0) | (high < 0)) == (found.bias.p_value < 0.05)).all()


def test_neither_rows_nor_names_choose_draws(rng):
    y, t, f, g = table(rng, n=900)
    turned = rng.permutation(900)
    renamed = np.array([2, 0, 1])
    once = paper_evaluation(y, t, f, g, n_repeats=2, n_draws=5, rng=4)
    rows = (y[turned], t[turned], f[turned], renamed[g[turned]])
    again = paper_evaluation(*rows, n_repeats=2, n_draws=5, rng=4)
    assert_allclose(once.bias.estimate, again.bias.estimate[renamed], rtol=1e-12)
    assert_allclose(once.bias.se, again.bias.se[renamed], rtol=1e-12)


def test_a_count_is_so_many_rows(rng):
    y, t, f, g = table(rng, n=600)
    times = rng.integers(1, 4, 600)
    counted = paper_evaluation(y, t, f, g, count=times, n_repeats=2, n_draws=5, rng=1)
    rows = [np.repeat(x, times) for x in (y, t, f, g)]
    written = paper_evaluation(*rows, n_repeats=2, n_draws=5, rng=1)
    assert_allclose(counted.error.estimate, written.error.estimate, rtol=1e-12)
    assert counted.bias.df.tolist() == written.bias.df.tolist()


def test_factors_are_those_of_the_equations(rng):
    found = paper_evaluation(*table(rng), n_repeats=3, rng=0)
    assert tuple(found.amounts) == STRATEGIES
    assert not found.amounts["none"].any()
    assert_allclose(found.amounts["mean"], found.error.estimate, rtol=1e-12)
    for rule in ("mse_plus", "mse_minus"):
        assert (np.abs(found.amounts[rule]) <= np.abs(found.error.estimate) + 0.1).all()
    assert found.remaining_error["none"].shape == (6, 3)


def test_the_squared_error_rules_correct_part_of_a_clear_error(rng):
    y, t, _, g = table(rng, n=3_000, lift=(1.0, 1.0, 1.0))
    found = paper_evaluation(y, t, np.full(3_000, 1.8), g, n_repeats=2, rng=0)
    whole = found.amounts["mean"]
    for rule in ("mse_plus", "mse_minus"):
        assert (found.amounts[rule] < whole).all()
        assert (found.amounts[rule] > 0.7 * whole).all()


def test_eq_42_corrects_predictions_that_are_too_high_and_never_those_too_low(rng):
    y, t, _, g = table(rng, n=30_000, lift=(1.0, 1.0, 1.0))
    high = paper_evaluation(y, t, np.full(30_000, 1.8), g, n_repeats=2, rng=0)
    low = paper_evaluation(y, t, np.full(30_000, 0.5), g, n_repeats=2, rng=0)
    assert_allclose(high.amounts["mean_if_detected"], high.amounts["mean"], rtol=1e-12)
    assert (low.error.p_value < 1e-6).all()
    assert not low.amounts["mean_if_detected"].any()


def test_eq_20_finds_an_error_in_perfect_predictions_that_differ_inside_a_group(rng):
    y, t, f, g = table(rng, n=200_000, lift=(1.2, 1.2, 1.2), spread=0.4)
    found = paper_evaluation(y, t, f, g, n_repeats=2, n_draws=2, rng=0)
    # tau + Var(tau(X)) / (2 tau) with equal arms, the variance under the outcomes of controls.
    excess = np.var(f) / (2 * np.average(f))
    assert_allclose(found.predicted.estimate - f.mean(), excess, rtol=0.25)


def test_differences_compare_means(rng):
    n = 3_000
    group, t = rng.integers(2, size=n), rng.integers(2, size=n)
    f = rng.normal(1.0, 0.5, n)
    y = t * f + rng.normal(size=n)
    found = paper_evaluation(y, t, f + group, group, measure="difference", rng=0)
    assert_allclose(found.error.estimate, [0.0, 1.0], atol=0.15)
    assert_allclose(found.bias.estimate, [-1.0, 1.0], atol=0.15)


def test_groups_without_control_positives_have_no_answer(rng):
    y, t, f, g = table(rng, n=1_000)
    y[(g == 2) & (t == 0)] = 0.0
    found = paper_evaluation(y, t, f, g, n_repeats=1, n_draws=4, rng=0)
    assert found.tested.tolist() == [0, 1]


def test_densities_have_mass_one_and_are_in_units_of_the_spread_between_groups(rng):
    found = paper_evaluation(*table(rng, n=200_000, lift=(0.8, 1.2, 1.6)), n_repeats=2, rng=0)
    width = found.grid[1] - found.grid[0]
    for density in (found.error_density, *found.remaining_bias_density.values()):
        assert 0.5 < density.sum() * width <= 1.0 + 1e-6
    one = paper_evaluation(*(x[:500] for x in table(rng)), n_repeats=1, n_draws=3, rng=0)
    assert one.error_density.shape == found.grid.shape


@pytest.mark.parametrize("option", [{"n_repeats": 0}, {"n_draws": 1}, {"measure": "odds"}])
def test_options_are_checked(rng, option):
    with pytest.raises(InvalidParameterError, match=next(iter(option))):
        paper_evaluation(*table(rng, n=100), **option)
