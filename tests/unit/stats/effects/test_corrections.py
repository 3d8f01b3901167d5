import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, stats

from equipoise.exceptions import ConvergenceError, DataError, InvalidParameterError
from equipoise.stats.effects.corrections import (
    CORRECTIONS,
    _line_search,
    default_correction,
    effect_correction,
    mixing_prior,
    normal_prior,
)
from equipoise.stats.effects.errors import effect_moments
from equipoise.stats.effects.evaluation import evaluate_corrections

B = np.array([0.3, -0.1, 0.05, 0.0, -0.4, 0.12])
S = np.array([0.1, 0.05, 0.1, 0.2, 0.1, 0.06])


def amounts(method, b=B, s=S, **options):
    return effect_correction(b, s, method=method, **options).amount


def test_simple_rules_by_hand():
    assert_allclose(amounts("none"), 0.0)
    assert_allclose(amounts("mean"), B)
    assert_allclose(amounts("mean_if_detected"), [0.3, -0.1, 0.0, 0.0, -0.4, 0.12])
    assert_allclose(amounts("mse_plus"), B**3 / (B**2 + S**2))
    assert_allclose(amounts("positive_part")[[0, 2, 3]], [0.3 * (1 - 1 / 9), 0.0, 0.0])
    kept = 1 - 4 / np.sum((B / S) ** 2)
    assert_allclose(amounts("james_stein"), kept * B)


def test_james_stein_never_amplifies_or_turns():
    assert_allclose(amounts("james_stein", np.array([0.01, 0.02, 0.01]), np.ones(3)), 0.0)
    assert_allclose(amounts("james_stein", np.array([0.5]), np.array([0.1])), [0.5])
    assert_allclose(amounts("james_stein", np.zeros(4), np.ones(4)), 0.0)


def test_empirical_bayes_maximises_the_likelihood():
    prior = normal_prior(B, S)

    def minus(theta):
        return -stats.norm.logpdf(B, theta[0], np.sqrt(theta[1] ** 2 + S**2)).sum()

    best = optimize.minimize(
        minus, [0.0, 0.1], method="Nelder-Mead", options={"fatol": 1e-12, "xatol": 1e-9}
    )
    assert_allclose([prior.mean, prior.sd], [best.x[0], abs(best.x[1])], atol=1e-4)
    shrink = prior.sd**2 / (prior.sd**2 + S**2)
    found = effect_correction(B, S, method="eb")
    assert_allclose(found.amount, prior.mean + (B - prior.mean) * shrink)
    assert found.common == prior.mean


def test_equal_standard_errors_give_the_closed_form():
    b, s = np.array([1.0, -1.0, 2.0, -2.0]), np.full(4, 0.5)
    assert_allclose(normal_prior(b, s, mean=0.0).sd ** 2, np.mean(b**2) - 0.25, rtol=1e-12)


@pytest.mark.parametrize("method", ["eb", "eb_zero", "sure"])
def test_last_digits_of_the_errors_move_last_digits_only(method):
    found = amounts(method)
    for change in (1e-15, -3e-15):
        assert_allclose(amounts(method, B * (1 + change)), found, rtol=1e-12)


def test_no_more_spread_than_noise_means_no_correction_between_groups():
    found = effect_correction(np.array([0.1, -0.1, 0.05]), np.ones(3), method="eb")
    assert found.prior.sd == 0.0
    assert_allclose(found.amount, found.common)
    assert_allclose(amounts("eb_zero", np.array([0.1, -0.1, 0.05]), np.ones(3)), 0.0)


def test_sure_minimises_the_risk_estimate():
    found = effect_correction(B, S, method="sure").prior.sd ** 2
    grid = np.linspace(0, 1, 20_001)
    risk = (
        (S**2 * B / (grid[:, None] + S**2)) ** 2
        + S**2 * (grid[:, None] - S**2) / (grid[:, None] + S**2)
    ).sum(axis=1)
    assert_allclose(found, grid[np.argmin(risk)], atol=1e-4)


def test_nonparametric_prior_satisfies_the_optimality_conditions(rng):
    s = rng.uniform(0.02, 0.2, 120)
    b = np.where(rng.random(120) < 0.2, 0.3, 0.0) + s * rng.standard_normal(120)
    prior = mixing_prior(b, s)
    grid = np.union1d(np.linspace(b.min(), b.max(), 300), [0.0])
    density = stats.norm.pdf(b[:, None], prior.point, s[:, None]) @ prior.mass
    gradient = (stats.norm.pdf(b[:, None], grid, s[:, None]) / density[:, None]).mean(axis=0)
    assert gradient.max() < 1 + 1e-3
    assert_allclose(prior.mass.sum(), 1.0)
    assert len(prior.point) < 20


def test_a_prior_that_does_not_converge_says_so():
    with pytest.raises(ConvergenceError, match=r"6 groups did not converge in 1 steps"):
        mixing_prior(B, S, n_steps=1)


def test_a_step_without_gain_is_not_taken():
    likelihood = np.array([[1.0, 0.1], [1.0, 0.2]])
    mass = np.array([1.0, 0.0])
    assert_allclose(_line_search(likelihood, mass, np.array([0.0, 1.0])), mass)


def test_common_correction_of_an_unseen_group():
    assert effect_correction(B, S, method="mean").common == 0.0
    mixing = mixing_prior(B, S)
    assert effect_correction(B, S, method="npmle").common == pytest.approx(
        mixing.point @ mixing.mass
    )


def test_default_is_empirical_bayes_from_five_groups():
    assert default_correction(4) == "mean_if_detected"
    assert default_correction(5) == "eb"


@pytest.mark.parametrize("method", CORRECTIONS)
def test_amounts_scale_with_the_outcome(method):
    assert_allclose(amounts(method, 10 * B, 10 * S), 10 * amounts(method), atol=2e-3)


def test_bad_input_is_named():
    with pytest.raises(InvalidParameterError, match="Did you mean 'mean'"):
        effect_correction(B, S, method="meann")
    with pytest.raises(InvalidParameterError, match="positive `se`"):
        effect_correction(B, 0 * S)
    with pytest.raises(InvalidParameterError, match="same positive length"):
        effect_correction(B, S[:2])
    with pytest.raises(InvalidParameterError, match="`alpha` must be in"):
        effect_correction(B, S, method="mean_if_detected", alpha=5)


@pytest.fixture
def blocks(rng):
    n, n_groups = 40_000, 6
    g, t, block = (rng.integers(k, size=n) for k in (n_groups, 2, 8))
    y = (rng.random(n) < 0.2 * (1 + 0.2 * t)).astype(float)
    f = 1.2 + 0.4 * (g == 0)
    return effect_moments(y, t, f, block * n_groups + g, n_groups=8 * n_groups)


def test_evaluation_recommends_a_correction_where_one_group_is_wrong(blocks):
    seen = []
    found = evaluate_corrections(
        blocks, n_blocks=8, n_repeats=3, progress=lambda done, n: seen.append((done, n))
    )
    assert found.corrections == tuple(c for c in CORRECTIONS if c != "npmle")
    by = dict(zip(found.corrections, found.error_mean_square, strict=True))
    assert by["none"] == pytest.approx(0.16 / 6, rel=0.3)
    assert by[found.recommended] == min(by.values()) < 0.3 * by["none"]
    assert seen[-1] == (6, 6)
    assert found.n_groups == 6
    assert np.all(found.rejected <= 1)


def test_evaluation_repeats_with_the_seed_and_not_without(blocks):
    def run(seed):
        return evaluate_corrections(blocks, n_blocks=8, n_repeats=2, rng=seed).error_mean_square

    assert_allclose(run(1), run(1))
    assert not np.allclose(run(1), run(2))


def test_evaluation_checks_its_input(blocks):
    with pytest.raises(InvalidParameterError, match="must be even"):
        evaluate_corrections(blocks, n_blocks=3)
    with pytest.raises(InvalidParameterError, match="`corrections` must be one of"):
        evaluate_corrections(blocks, n_blocks=8, corrections=("all",))
    few = effect_moments([1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1], [0, 0, 1, 1])
    with pytest.raises(DataError, match="at least two groups"):
        evaluate_corrections(few, n_blocks=2)
