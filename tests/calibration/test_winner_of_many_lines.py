"""The winner's gain and joint bounds, where a candidate has many comparisons.

Several groups, several criteria, directions that are not known, unequal groups, tied scores. The
estimate may be too small (a largest gap is estimated too large), never too large more often than
not; bounds are wrong in at most 5% of searches, whatever candidate they are read off.
"""

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
import pytest
from scipy import special

from equipoise.stats.improvement.candidates import (
    candidate_lines,
    loss_frontier,
    step_down,
    winner_gain,
)
from equipoise.stats.improvement.capacity import cut_top_share
from equipoise.stats.improvement.rules import RowUtilities, estimate_rules
from equipoise.stats.improvement.test import ImprovementQuestion, Margins
from equipoise.stats.improvement.utilities import UtilityEstimates
from support.rates import assert_at_most, assert_rate

pytestmark = pytest.mark.calibration

DRAWS = 2000
ACCURATE = 0.7


def largest_gap(rates):
    return rates.max(axis=-1) - rates.min(axis=-1)


@dataclass(frozen=True)
class Truth:
    """Rates of all rules (criterion, rule, group), everyone last; the direction may be unknown."""

    rates: np.ndarray
    known: bool = True

    @property
    def question(self):
        gaps = tuple(range(1, len(self.rates)))
        return ImprovementQuestion(
            fairness=gaps, population=True, margin_scale="absolute", inference="analytic"
        )

    @property
    def directions(self):
        groups = self.rates[1:, 0, :-1]
        if self.known:
            return [[(int(r.argmax()), int(r.argmin())) for r in groups]]
        pairs = list(permutations(range(groups.shape[1]), 2))
        return [list(way) for way in product(pairs, repeat=len(groups))]

    @property
    def reduction(self):
        """Of the gap that shrinks least, by candidate."""
        gaps = largest_gap(self.rates[1:, :, :-1])
        return (gaps[:, :1] - gaps[:, 1:]).min(axis=0)

    @property
    def loss(self):
        return self.rates[0, 0, -1] - self.rates[0, 1:, -1]


def errors_of_a_search(estimates, truth, rng):
    """Whether estimate and naive estimate are too large, and whether bounds are wrong."""
    ways = len(truth.directions)
    lines = candidate_lines(
        estimates, directions=truth.directions, question=truth.question, margins=Margins()
    )
    best = int(np.argmax(lines.smallest_z))
    seed = int(rng.integers(2**31))
    critical = step_down(lines, n_draws=DRAWS, rng=seed).critical
    lower = float(lines.least(lines.bounds(critical), accuracy=False)[best])
    gain = winner_gain(lines, lower=lower, ways=ways, n_draws=DRAWS, rng=seed)
    assert gain >= lower
    naive = float(lines.least(lines.estimate, accuracy=False)[best])
    true = truth.reduction[best // ways]
    steps = loss_frontier(lines, n_draws=DRAWS, rng=seed)
    wrong = [
        step.reduction > truth.reduction[step.candidate // ways]
        or step.loss < truth.loss[step.candidate // ways]
        for step in steps
    ]
    return gain > true, naive > true, lower > true, any(wrong)


def rates_of(sizes, gaps, *, known=True):
    """Of the status quo (first) and candidates, for each criterion a row of rates by group."""
    gaps = np.asarray(gaps, dtype=float)
    rates = np.concatenate([np.full((1, *gaps.shape[1:]), ACCURATE), gaps])
    share = np.asarray(sizes) / np.sum(sizes)
    return Truth(np.concatenate([rates, (rates @ share)[..., None]], axis=2), known)


def alike(now, then, k, n_criteria=1):
    """The same rates of all candidates, for every criterion."""
    return [[now, *[then] * k]] * n_criteria


def spread(now, then, k):
    """The first group's rate rises from one candidate to the next."""
    return [[now, *([then[0] + step, *then[1:]] for step in np.linspace(0, 0.05, k))]]


LIMITS = {
    "two groups, closed": ([2000, 2000], alike([0.5, 0.4], [0.45, 0.45], 20), True),
    "two groups, halved": ([2000, 2000], alike([0.5, 0.4], [0.475, 0.425], 20), True),
    "two groups, as before": ([2000, 2000], alike([0.5, 0.4], [0.5, 0.4], 20), True),
    "two groups, no gap": ([2000, 2000], alike([0.45, 0.45], [0.45, 0.45], 20), True),
    "four unequal groups": (
        [8000, 2000, 1000, 500],
        spread([0.5, 0.45, 0.42, 0.4], [0.45] * 4, 10),
        True,
    ),
    "three groups, direction not known": (
        [3000, 2000, 1000],
        alike([0.5, 0.45, 0.4], [0.46, 0.45, 0.44], 5),
        False,
    ),
    "as before, direction not known": (
        [3000, 2000, 1000],
        alike([0.6, 0.45, 0.3], [0.6, 0.45, 0.3], 5),
        False,
    ),
    "two criteria": ([2000, 1000], alike([0.5, 0.4], [0.47, 0.43], 10, 2), True),
}


def normal_estimates(truth, sizes, rng, *, rho=0.8):
    """Rates of independent groups; rules share `rho` of their noise, criteria .3."""
    criteria, rules, _ = truth.rates.shape

    def common(size, level):
        return np.full((size, size), level) + (1 - level) * np.eye(size)

    n = np.asarray(sizes, dtype=float)
    apart = np.kron(np.kron(common(criteria, 0.3), common(rules, rho)), np.diag(0.21 / n))
    everyone = np.kron(np.eye(criteria * rules), np.vstack([np.eye(len(n)), n / n.sum()]))
    noise = np.linalg.cholesky(apart) @ rng.normal(size=len(apart))
    return UtilityEstimates(
        value=truth.rates + (everyone @ noise).reshape(truth.rates.shape),
        covariance=everyone @ apart @ everyone.T,
        support=np.full(truth.rates.shape, 10**6),
        n_groups=len(n),
        n_units=10**6,
    )


def rates_of_searches(kind, reps, rng):
    sizes, gaps, known = LIMITS[kind]
    truth = rates_of(sizes, gaps, known=known)
    found = [
        errors_of_a_search(normal_estimates(truth, sizes, rng), truth, rng) for _ in range(reps)
    ]
    return [int(hits) for hits in np.sum(found, axis=0)]


def check(kind, reps, rng):
    high, naive, lower, wrong = rates_of_searches(kind, reps, rng)
    assert_at_most(high, reps, 0.5)
    assert_at_most(lower, reps, 0.05)
    assert_at_most(wrong, reps, 0.05)
    return high, naive


@pytest.mark.parametrize("kind", ["four unequal groups", "three groups, direction not known"])
def test_the_winner_of_many_lines_is_not_told_too_large(rng, kind):
    check(kind, 60, rng)


def test_where_one_line_decides_the_winner_is_right_in_the_middle(rng):
    reps = 120
    high, naive = check("two groups, as before", reps, rng)
    assert_rate(high, reps, 0.5, below=0.05)
    assert naive > 0.75 * reps


@pytest.mark.slow
@pytest.mark.parametrize("kind", LIMITS)
def test_every_design_of_the_winner(rng, kind):
    """The rates are on docs/calibration-alternatives.md."""
    reps = 400
    high, naive = check(kind, reps, rng)
    if "as before" in kind:
        assert_rate(high, reps, 0.5, below=0.05, above=0.02)
        assert naive > 0.7 * reps


PENALTY = np.array([0.0, 0.3, 0.6])


def banded_people(rng, n, k, bands):
    """Three unequal groups; scores in bands: the status quo penalises two groups, others less."""
    group = rng.choice(3, size=n, p=[0.7, 0.2, 0.1])
    x = rng.normal(size=n)
    y = (rng.random(n) < special.expit(1.5 * x - 1.0)).astype(float)
    penalty = PENALTY[group]
    scores = [x - penalty + 0.5 * rng.normal(size=n)]
    scores += [x - share * penalty + 0.5 * rng.normal(size=n) for share in np.linspace(0.8, 0.4, k)]
    edges = special.ndtri(np.arange(1, bands) / bands) * 1.15
    one, zero = np.ones(n), np.zeros(n)
    parts = RowUtilities(
        numerator=np.stack([1 - y, zero], axis=1),
        denominator=np.stack([one, one], axis=1),
        numerator_change=np.stack([2 * y - 1, one], axis=1),
        denominator_change=np.zeros((n, 2)),
    )
    rules = [cut_top_share(np.searchsorted(edges, score).astype(float), 0.25) for score in scores]
    return estimate_rules(parts, rules, group, n_groups=3, population=True)


@pytest.mark.slow
@pytest.mark.parametrize("bands", [5, 10])
@pytest.mark.parametrize("known", [True, False])
def test_the_winner_among_tied_scores_of_unequal_groups(rng, bands, known):
    k, reps = 4, 300
    truth = Truth(banded_people(rng, 1_000_000, k, bands).value, known)
    found = [
        errors_of_a_search(banded_people(rng, 3000, k, bands), truth, rng) for _ in range(reps)
    ]
    high, _, lower, wrong = (int(hits) for hits in np.sum(found, axis=0))
    assert_at_most(high, reps, 0.5)
    assert_at_most(lower, reps, 0.05)
    assert_at_most(wrong, reps, 0.05)
