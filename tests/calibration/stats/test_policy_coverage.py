"""Coverage of what a rule on predicted effects does in each group, and of rankings."""

import numpy as np
import pytest

from equipoise.stats.effects.effect_scores import effect_scores
from equipoise.stats.effects.policy import PolicyRule, group_policies, group_rankings
from equipoise.stats.influence import InfluenceSums
from support.rates import assert_at_most, assert_rate

pytestmark = pytest.mark.calibration

N, COST = 1_500, 0.05


def trial(rng, n=N, slope=0.4):
    group = (rng.random(n) < 0.4).astype(int)
    f, treated = rng.normal(0.2 + 0.3 * group, 1.0, n), rng.random(n) < 0.5
    effect = 0.1 + slope * f - 0.2 * group
    return group, f, treated, 0.5 * f + treated * effect + rng.normal(size=n), effect


@pytest.mark.parametrize("rule", [{"threshold": 0.3}, {"budget": 0.3}])
def test_intervals_of_shares_and_gains_cover(rng, rule):
    group, f, _, _, effect = trial(rng, 2_000_000)
    d = f >= (0.3 if "threshold" in rule else np.quantile(f, 0.7))
    truth = {}
    for g in (0, 1):
        own = group == g
        share, gain = d[own].mean(), (d * (effect - COST))[own].mean()
        truth |= {("share", g): share, ("gain per member", g): gain}
        truth["gain per treated", g] = gain / share
    trials, hits = 300, dict.fromkeys(truth, 0)
    rows = InfluenceSums(weight=np.ones(N), count=np.ones(N))
    for _ in range(trials):
        group, f, treated, y, _ = trial(rng)
        found = group_policies(
            effect_scores(y, treated, group),
            group,
            treated,
            rows,
            PolicyRule.of(f, rows, **rule),
            cost=COST,
            rng=rng,
        )
        for v in found.values:
            hits[v.name, v.group] += v.low <= truth[v.name, v.group] <= v.high
    for covered in hits.values():
        assert_rate(covered, trials, 0.95)


@pytest.mark.parametrize("kind", ["autoc", "qini"])
def test_rankings_cover_and_equal_groups_are_told_apart_as_often_as_said(rng, kind):
    group, f, _, _, effect = trial(rng, 2_000_000)
    own = group == 0
    rank = np.argsort(np.argsort(-f[own])) + 0.5
    v = rank / own.sum()
    truth = np.mean((-np.log(v) - 1.0 if kind == "autoc" else 0.5 - v) * effect[own])
    trials, covered, wrong = 300, 0, 0
    rows = InfluenceSums(weight=np.ones(N), count=np.ones(N))
    for _ in range(trials):
        group, f, treated, y, _ = trial(rng)
        scores = effect_scores(y, treated, group)
        found = group_rankings(scores, f, group, treated, rows, kind=kind, rng=rng)
        first = found.values[0]
        covered += first.low <= truth <= first.high
        wrong += found.differences[0].p_value_adjusted <= 0.05
    assert_rate(covered, trials, 0.95)
    assert_at_most(wrong, trials, 0.05)
