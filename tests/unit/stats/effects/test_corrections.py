import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, stats

from equipoise.exceptions import ConvergenceError, InvalidParameterError
from equipoise.stats.effects.corrections import (
    CORRECTIONS,
    EffectCorrection,
    _line_search,
    default_correction,
    effect_correction,
    mixing_prior,
    normal_prior,
)
from equipoise.stats.effects.evaluation import (
    evaluate_corrections,
    recommend_correction,
    thinned_errors,
)

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
    assert default_correction(4) == "bayes_zero"
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


ERROR, VARIANCE = np.array([0.4, 0.0, 0.02, -0.03, 0.01, 0.0]), np.eye(6) * 0.04**2


def test_a_proper_prior_on_the_spread_by_quadrature():
    from scipy import integrate

    b, s = np.array([0.3, -0.1]), np.array([0.1, 0.2])
    common = 2 / np.sum(1 / s**2)

    def posterior(t2):
        return common / (common + t2) ** 2 * np.prod(stats.norm.pdf(b, 0, np.sqrt(t2 + s**2)))

    whole = integrate.quad(posterior, 0, np.inf)[0]
    for k in range(2):
        part = integrate.quad(lambda t2, k=k: t2 / (t2 + s[k] ** 2) * posterior(t2), 0, np.inf)[0]
        assert_allclose(amounts("bayes_zero", b, s)[k], b[k] * part / whole, rtol=2e-3)


def test_detection_can_be_that_of_an_audit():
    p = np.array([0.04, 0.2, 0.06])
    b, s = np.array([0.1, 0.5, 0.3]), np.full(3, 0.1)
    found = effect_correction(b, s, method="mean_if_detected", p_value=p)
    assert found.amount.tolist() == [0.1, 0.0, 0.0]
    assert effect_correction(b, s, method="mean_if_detected").amount.tolist() == [0.0, 0.5, 0.3]


def test_halves_are_independent_and_average_to_the_whole(rng):
    root = rng.normal(size=(4, 4))
    v = root @ root.T
    b = rng.normal(size=4)
    halves = thinned_errors(b, v, n_repeats=40_000, rng=1)
    assert_allclose(halves.mean(axis=1), np.broadcast_to(b, (40_000, 4)), atol=1e-9)
    draws = halves - b
    both = np.einsum("rkg,rlh->klgh", draws, draws) / 40_000
    # Given the data the two halves mirror each other; over data B adds its own covariance.
    assert_allclose(both[0, 0] + v, 2 * v, atol=0.15)
    assert_allclose(both[0, 1] + v, 0, atol=0.15)
    folds = thinned_errors(b, v, n_folds=5, n_repeats=20_000, rng=2) - b
    spread = np.einsum("rg,rh->gh", folds[:, 0], folds[:, 0]) / 20_000
    assert_allclose(spread + v, 5 * v, rtol=0.2, atol=0.4)


def test_names_of_groups_do_not_change_the_draws():
    order = np.array([3, 1, 5, 0, 2, 4])
    b = np.array([0.4, 0.1, 0.02, -0.03, 0.01, 0.3])
    first = thinned_errors(b, VARIANCE, rng=0)
    assert_allclose(thinned_errors(b[order], VARIANCE, rng=0), first[..., order], rtol=1e-12)


def test_evaluation_finds_the_rules_that_help_where_one_group_is_wrong():
    found = evaluate_corrections(ERROR, VARIANCE, n_repeats=20, rng=0)
    assert found.corrections == tuple(c for c in CORRECTIONS if c != "npmle")
    by = dict(zip(found.corrections, found.error_mean_square, strict=True))
    assert by["none"] == pytest.approx(0.16 / 6, rel=0.3)
    assert by["mean_if_detected"] < 0.3 * by["none"]
    assert found.n_groups == 6
    assert np.all(found.rejected <= 1)
    weighted = evaluate_corrections(ERROR, VARIANCE, weight=np.arange(1.0, 7.0), rng=0)
    assert not np.allclose(weighted.bias_mean_square, found.bias_mean_square)
    several = evaluate_corrections(np.zeros(50), np.eye(50), n_repeats=1, corrections=None)
    assert "npmle" in several.corrections


def test_evaluation_repeats_with_the_seed_and_not_without():
    def run(seed):
        return evaluate_corrections(ERROR, VARIANCE, n_repeats=2, rng=seed).error_mean_square

    assert_allclose(run(1), run(1))
    assert not np.allclose(run(1), run(2))


def test_evaluation_checks_its_input():
    with pytest.raises(InvalidParameterError, match="`corrections` must be one of"):
        evaluate_corrections(ERROR, VARIANCE, corrections=("all",))
    with pytest.raises(InvalidParameterError, match="at least two groups; got 1"):
        evaluate_corrections(ERROR[:1], VARIANCE[:1, :1])
    with pytest.raises(InvalidParameterError, match="`covariance` must be 6 by 6"):
        thinned_errors(ERROR, VARIANCE[:2, :2])


def test_a_recommendation_needs_a_test_and_its_change_is_unbiased(rng):
    assert recommend_correction(ERROR, VARIANCE, p_zero=0.2).rule == "none"
    found = recommend_correction(ERROR, VARIANCE, p_zero=0.01)
    assert found.rule == found.candidate == "eb"
    truth, change, claimed, se = np.array([0.1, -0.05, 0.0]), [], [], []
    v = np.eye(3) * 0.05**2
    for seed in range(400):
        b = truth + 0.05 * rng.standard_normal(3)
        one = recommend_correction(b, v, p_zero=0.01, rng=seed)
        claimed.append(one.delta)
        se.append(one.delta_se)
        # Nine tenths of the data decide the amounts that are judged.
        seen = truth + 0.05 / np.sqrt(0.9) * rng.standard_normal(3)
        c = effect_correction(seen, np.full(3, 0.05 / np.sqrt(0.9)), method=one.candidate).amount
        change.append(np.mean((truth - c) ** 2 - truth**2))
    error = np.std(claimed) / 20
    assert abs(np.mean(claimed) - np.mean(change)) < 4 * error
    assert 0.5 < np.mean(se) / np.std(claimed) < 1.5


def test_corrections_print_the_amount_of_a_group_that_was_not_seen():
    shown = str(EffectCorrection(method="eb", amount=np.array([0.25, -0.5]), common=0.125))
    assert [line.split() for line in shown.splitlines()] == [
        ["Amounts", "to", "subtract,", "by", '"eb"'],
        ["group", "amount"],
        ["0", "0.25"],
        ["1", "-0.5"],
        ["a", "new", "one", "0.125"],
    ]
