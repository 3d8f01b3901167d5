import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from equipoise.exceptions import InvalidParameterError
from equipoise.stats import multiplicity
from equipoise.stats.multiplicity import (
    MaxT,
    adjusted_p_values,
    betting_e_value,
    e_bh,
    max_t,
)

NAMES = {"bh": "fdr_bh", "by": "fdr_by", "holm": "holm", "bonferroni": "bonferroni"}


@pytest.mark.parametrize("method", NAMES)
def test_adjusted_p_values_equal_statsmodels(rng, method):
    p = np.append(rng.random(20) ** 3, [0.01, 0.01])
    expected = multipletests(p, method=NAMES[method])[1]
    np.testing.assert_allclose(adjusted_p_values(p, method), expected)


def test_untested_hypotheses_do_not_count():
    p = np.array([0.01, np.nan, 0.04])
    np.testing.assert_allclose(adjusted_p_values(p, "bonferroni"), [0.02, np.nan, 0.08])
    np.testing.assert_array_equal(adjusted_p_values(p, "none"), p)
    assert np.isnan(adjusted_p_values(np.array([np.nan]), "holm")).all()


def test_ranks_are_those_of_the_p_values_and_not_of_their_positions(rng):
    """One toolkit uses argsort as ranks and flags something in 65% of null families."""
    p = rng.permutation(np.linspace(0.001, 0.9, 20))
    order = np.argsort(p)
    assert (np.diff(adjusted_p_values(p)[order]) >= 0).all()


def test_unknown_adjustment_is_refused():
    with pytest.raises(InvalidParameterError, match="`method` must be one of"):
        adjusted_p_values(np.array([0.1]), "sidak")


def test_e_bh_rejects_the_largest_k_that_pass():
    # 3 tests at .05: thresholds 60, 30, 20.
    assert e_bh(np.array([35.0, 31.0, 2.0])).tolist() == [True, True, False]
    assert e_bh(np.array([59.0, 29.0, 2.0])).tolist() == [False, False, False]
    assert e_bh(np.array([np.nan, 41.0, 0.0])).tolist() == [False, True, False]


def test_betting_e_value_is_a_mean_of_products():
    x = np.array([1.0, 0.0])
    bets = np.arange(1, 21) / 21 / 0.5
    expected = np.mean((1 + bets * 0.5) * (1 - bets * 0.5))
    np.testing.assert_allclose(betting_e_value(x, 0.5), expected)


@pytest.mark.parametrize(("x", "null"), [([2.0], 0.5), ([0.5], 1.0), ([-0.1], 0.5)])
def test_betting_outside_the_bounds_is_refused(x, null):
    with pytest.raises(InvalidParameterError, match="must lie within"):
        betting_e_value(np.array(x), null)


def test_critical_value_of_independent_roots_has_a_closed_form():
    exact = stats.norm.isf((1 - 0.95 ** (1 / 5)) / 2)
    np.testing.assert_allclose(max_t(4.0 * np.eye(5)).critical(), exact, atol=0.02)


def test_equal_roots_need_no_correction_and_zero_variance_is_left_out():
    covariance = np.zeros((4, 4))
    covariance[:3, :3] = 2.0
    np.testing.assert_allclose(max_t(covariance).critical(), 1.96, atol=0.02)


def test_same_rng_same_law():
    a, b = max_t(np.eye(3), rng=7), max_t(np.eye(3), rng=7)
    np.testing.assert_array_equal(a.maxima, b.maxima)
    assert (a.maxima != max_t(np.eye(3), rng=8).maxima).any()


def test_p_values_count_maxima_at_least_as_large():
    law = MaxT(maxima=np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(law.p_values(np.array([-2.0, 9.0, np.nan])), [0.75, 0.25, np.nan])


def test_no_variance_at_all_is_refused():
    with pytest.raises(InvalidParameterError, match="positive diagonal"):
        max_t(np.zeros((2, 2)))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_a_root_exceeds_the_critical_value_exactly_when_its_p_value_is_small_enough(level):
    law = max_t(np.eye(4), n_draws=4_000)
    critical = law.critical(level)
    above, at = law.p_values(np.array([critical * (1 + 1e-9), critical]))
    assert above <= 1 - level + 1e-9 < at


@pytest.mark.parametrize("rank", [1, 3, 7])
def test_draws_have_the_correlation_that_was_asked_for(rank):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(rank, 7))
    correlation = root.T @ root
    sd = np.sqrt(np.diag(correlation))
    correlation /= np.outer(sd, sd)
    factor = multiplicity._factor(correlation)
    assert factor.shape == (rank, 7)
    np.testing.assert_allclose(factor.T @ factor, correlation, atol=1e-6)


def test_last_digits_do_not_change_the_draws():
    # Four alike groups: eigenvectors of the repeated eigenvalue are arbitrary, this root is not.
    correlation = np.full((4, 4), 0.3) + 0.7 * np.eye(4)
    noise = 1e-13 * np.random.default_rng(1).normal(size=(4, 4))
    one = max_t(correlation, rng=0).maxima
    two = max_t(correlation + noise + noise.T, rng=0).maxima
    np.testing.assert_allclose(one, two, rtol=1e-5)


def test_the_ridge_of_the_draws_costs_less_than_a_thousandth_of_the_level(rng):
    """At worst all points are one, and the critical value is that of one normal."""
    critical = multiplicity.max_t_test(
        np.zeros(21), np.ones((21, 21)), np.full(21, 1e-9), rng=rng
    ).high[0]
    draws = np.abs(multiplicity.gaussian_draws(np.ones((21, 21)), n_draws=200_000, rng=rng))
    cutoff = np.quantile(draws.max(axis=1), 0.95)
    assert 0.0475 < 2 * stats.norm.sf(cutoff) < 0.0515
    assert 2 * stats.norm.sf(critical) < 0.0501


def test_steps_end_with_the_single_test(rng):
    observed, draws = np.array([3.0, 1.0, 2.0]), np.abs(rng.standard_normal((999, 3)))
    p = multiplicity.step_down_shares(observed, draws)
    assert p[0] == (1 + (draws.max(axis=1) >= 3.0).sum()) / 1000
    assert p[2] == max(p[0], (1 + (draws[:, 1:].max(axis=1) >= 2.0).sum()) / 1000)
    assert p[1] == max(p[2], (1 + (draws[:, 1] >= 1.0).sum()) / 1000)
