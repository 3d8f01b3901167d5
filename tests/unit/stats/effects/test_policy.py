import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.effects.effect_scores import effect_scores
from equipoise.stats.effects.policy import PolicyRule, group_policies, group_rankings, ranked_effect
from equipoise.stats.influence import InfluenceSums


@pytest.fixture
def trial(rng):
    n = 400
    group, stratum = rng.integers(2, size=n), rng.integers(3, size=n)
    f, treated = rng.normal(size=n), rng.random(n) < 0.3 + 0.1 * stratum
    y = f + treated * (0.5 + f) + rng.normal(size=n)
    return {"group": group, "stratum": stratum, "f": f, "treated": treated, "y": y}


def plain(n):
    return InfluenceSums(weight=np.ones(n), count=np.ones(n))


def test_mean_scores_are_differences_of_arm_means_averaged_over_strata(trial):
    cell = trial["group"] * 3 + trial["stratum"]
    found = effect_scores(trial["y"], trial["treated"], cell)
    for g in (0, 1):
        parts = []
        for s in range(3):
            own = cell == 3 * g + s
            arms = [trial["y"][own & (trial["treated"] == a)].mean() for a in (False, True)]
            parts.append((own.sum(), arms[1] - arms[0]))
        n, effect = np.array(parts).T
        own = trial["group"] == g
        assert_allclose(found.score[own].mean(), np.average(effect, weights=n))
    assert found.usable.all()


def test_a_cell_with_one_arm_has_no_score():
    found = effect_scores(np.arange(4.0), np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]))
    assert found.usable.tolist() == [True, True, False, False]
    assert (found.score[2:] == 0.0).all()


def test_known_chances_need_no_correction(trial):
    cell, chance = trial["group"], np.full(400, 0.4)
    found = effect_scores(trial["y"], trial["treated"], cell, propensity=chance)
    assert (found.share_influence(np.ones(400)) == 0.0).all()
    m1 = [trial["y"][(cell == g) & trial["treated"]].mean() for g in (0, 1)]
    i = int(np.flatnonzero(trial["treated"])[0])
    m0 = [trial["y"][(cell == g) & ~trial["treated"]].mean() for g in (0, 1)]
    g = cell[i]
    assert_allclose(found.score[i], m1[g] - m0[g] + (trial["y"][i] - m1[g]) / 0.4)


@pytest.mark.parametrize("kind", ["autoc", "qini"])
def test_ranks_by_definition(rng, kind):
    """AUTOC averages, over shares, the effect of the top share less that of all; Qini weighs it."""
    n = 3_000
    f, gamma = rng.normal(size=n), rng.normal(size=n)
    gamma += f
    order = np.argsort(-f)
    top = np.cumsum(gamma[order]) / np.arange(1, n + 1) - gamma.mean()
    share = np.arange(1, n + 1) / n
    expected = np.mean(top) if kind == "autoc" else np.mean(share * top)
    assert_allclose(ranked_effect(gamma, f, kind=kind).estimate, expected, atol=5e-3)


@pytest.mark.parametrize("kind", ["autoc", "qini"])
def test_ties_share_their_rank_and_copies_are_mass(rng, kind):
    f, gamma = rng.integers(5, size=60).astype(float), rng.normal(size=60)
    times = rng.integers(1, 4, size=60)
    long = ranked_effect(np.repeat(gamma, times), np.repeat(f, times), kind=kind)
    short = ranked_effect(gamma, f, kind=kind, mass=times)
    assert_allclose(short.estimate, long.estimate)
    assert_allclose(np.repeat(short.influence, times), long.influence, atol=1e-15)
    assert_allclose(ranked_effect(gamma, np.zeros(60), kind=kind).estimate, 0.0, atol=1e-12)


@pytest.mark.parametrize("kind", ["autoc", "qini"])
def test_rows_without_mass_do_not_count(rng, kind):
    f, gamma, mass = rng.normal(size=50), rng.normal(size=50), np.ones(50)
    mass[np.argsort(-f)[:5]] = 0.0
    found = ranked_effect(gamma, f, kind=kind, mass=mass)
    kept = mass > 0
    assert_allclose(found.estimate, ranked_effect(gamma[kept], f[kept], kind=kind).estimate)


def influence_by_reweighting(estimate, n, which, step=1e-6):
    """Return the derivative of an estimate in the mass of one row."""
    mass = np.ones(n)
    mass[which] += step
    return (estimate(mass) - estimate(np.ones(n))) / step


@pytest.mark.parametrize("kind", ["autoc", "qini"])
def test_the_influence_of_a_ranking_is_its_derivative(rng, kind):
    f, gamma = rng.integers(200, size=4_000) / 200, rng.normal(size=4_000)

    def estimate(mass):
        return ranked_effect(gamma, f, kind=kind, mass=mass).estimate

    found = ranked_effect(gamma, f, kind=kind)
    for i in (0, 17, 333):
        assert_allclose(
            found.influence[i], influence_by_reweighting(estimate, 4_000, i), rtol=0.03, atol=2e-6
        )


def test_the_influence_of_a_threshold_rule_is_its_derivative(trial):
    rule = PolicyRule.of(trial["f"], plain(400), threshold=0.2)

    def gain(mass):
        scores = effect_scores(trial["y"], trial["treated"], trial["group"], mass=mass)
        own = trial["group"] == 1
        return np.sum(mass[own] * rule.chance[own] * scores.score[own]) / mass[own].sum()

    rows = plain(400)
    scores = effect_scores(trial["y"], trial["treated"], trial["group"])
    found = group_policies(scores, trial["group"], trial["treated"], rows, rule, rng=0)
    value = next(v for v in found.values if v.name == "gain per member" and v.group == 1)
    assert_allclose(value.estimate, gain(np.ones(400)))
    steps = np.array([influence_by_reweighting(gain, 400, i) for i in range(400)])
    half = rows.interval(value.estimate, steps, 0.95).high - value.estimate
    # Means of arms move the gain too, by an amount that is zero on average.
    assert_allclose(value.high - value.estimate, half, rtol=0.05)


def test_two_groups_have_opposite_differences(trial):
    rule = PolicyRule.of(trial["f"], plain(400), budget=0.3)
    scores = effect_scores(trial["y"], trial["treated"], trial["group"])
    found = group_policies(scores, trial["group"], trial["treated"], plain(400), rule, rng=0)
    first, second = ([d for d in found.differences if d.group == g] for g in (0, 1))
    for a, b in zip(first, second, strict=True):
        assert_allclose([a.estimate, a.low, a.high], [-b.estimate, -b.high, -b.low])
        assert_allclose(a.p_value_adjusted, b.p_value_adjusted, atol=1e-3)
        assert (a.low <= 0 <= a.high) == (a.p_value_adjusted > 0.05)


def test_a_budget_is_kept_with_ties(rng):
    f = rng.integers(4, size=500).astype(float)
    rule = PolicyRule.of(f, plain(500), budget=0.3)
    assert_allclose(rule.chance.mean(), 0.3)
    assert set(np.unique(rule.chance)) <= {0.0, 1.0, *rule.chance[f == rule.cutoff]}


def test_what_a_group_does_not_have_is_said(trial):
    f = np.where(trial["group"] == 1, -9.0, trial["f"])
    rule = PolicyRule.of(f, plain(400), threshold=0.0)
    scores = effect_scores(trial["y"], trial["treated"], trial["group"])
    found = group_policies(scores, trial["group"], trial["treated"], plain(400), rule, rng=0)
    assert found.missing["gain per treated", 1] == "the rule treats nobody"
    ranked = group_rankings(scores, f, trial["group"], trial["treated"], plain(400), rng=0)
    assert ranked.missing == {("autoc", 1): "every prediction is the same"}
    assert not ranked.differences


def test_one_rule_is_asked_for():
    for options in ({}, {"threshold": 0.0, "budget": 0.5}):
        with pytest.raises(InvalidParameterError, match="either `threshold` or `budget`"):
            PolicyRule.of(np.zeros(3), plain(3), **options)
