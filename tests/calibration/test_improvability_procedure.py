"""Size and power of the whole procedure: split, search, cut at a capacity, test, combine."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from equipoise.search import TopShare, TrainingSample
from equipoise.stats.improvement.capacity import select_top
from equipoise.stats.improvement.frontier import combine_splits
from equipoise.stats.improvement.test import ImprovementQuestion, compare_utilities, gap_direction
from equipoise.stats.improvement.utilities import estimate_utilities
from support.rates import assert_at_least, assert_at_most

pytestmark = pytest.mark.calibration

CAPACITY = 0.2
QUESTION = ImprovementQuestion(inference="analytic")


def population(rng, n_people, *, rows_each, alternative):
    """People with two features; a third of them in group 1.

    Under the null the outcome depends on nothing, so every rule is as good and as even as any
    other. Under the alternative it depends on the first feature, which the status quo reads well
    in group 1 and badly in group 0; the best linear rule reads it well in both. Rows of one person
    share the features and a random level.
    """
    person = np.repeat(np.arange(n_people), rows_each)
    group = (rng.random(n_people) < 0.35).astype(np.int64)[person]
    X = rng.normal(size=(n_people, 2))[person]
    level = rng.gamma(10.0, 0.1, size=n_people)[person]
    signal = np.exp(0.8 * X[:, 0]) if alternative else 1.0
    y = rng.poisson(3.0 * level * signal).astype(float)
    reading = np.where(group == 1, 0.6, 0.0)
    noise = rng.normal(size=n_people)[person]
    return X, y, group, reading * X[:, 0] + np.sqrt(1 - reading**2) * noise, person


def procedure(rng, data, *, n_splits, cluster):
    X, y, group, score, person = data
    people = person.max() + 1
    p = []
    for _ in range(n_splits):
        chosen = rng.permutation(people)[: 2 * people // 3]
        train = np.isin(person, chosen)
        d0 = select_top(score[train], CAPACITY).astype(float)
        sample = TrainingSample.from_arrays(
            X=X[train], y=y[train], group=group[train], status_quo=d0, accuracy="selected_outcome"
        )
        algorithm = TopShare(LinearRegression(), CAPACITY).select(sample)
        decisions = np.column_stack(
            [select_top(score[~train], CAPACITY), algorithm.decide(X[~train])]
        ).astype(float)
        estimates = estimate_utilities(
            (y[~train, None] * decisions)[:, None],
            decisions[:, None],
            group[~train],
            n_groups=2,
            cluster=person[~train] if cluster else None,
        )
        direction = gap_direction(y[train] * d0, d0, group[train], n_groups=2)
        test = compare_utilities(estimates, directions=[direction], question=QUESTION)
        p.append(test.p_value)
    return p


@pytest.mark.parametrize("rows_each", [1, 3], ids=["rows", "clusters"])
def test_size_of_the_procedure_with_capacity(rng, rows_each):
    """Kept simulation at level .10: median .007, exchangeable .083, single split .073."""
    reps = 100
    hits = np.zeros(3, dtype=int)
    for _ in range(reps):
        data = population(rng, 1500, rows_each=rows_each, alternative=False)
        p = procedure(rng, data, n_splits=3, cluster=rows_each > 1)
        combined = [combine_splits(p, "median"), combine_splits(p, "exch_median"), p[0]]
        hits += np.array(combined) <= 0.10
    for count in hits:
        assert_at_most(int(count), reps, 0.10)


@pytest.mark.parametrize("rows_each", [1, 3], ids=["rows", "clusters"])
def test_power_of_the_procedure_with_capacity(rng, rows_each):
    reps, hits = 40, 0
    for _ in range(reps):
        data = population(
            rng, 6000 if rows_each == 1 else 4500, rows_each=rows_each, alternative=True
        )
        p = procedure(rng, data, n_splits=3, cluster=rows_each > 1)
        hits += combine_splits(p, "median") <= 0.05
    assert_at_least(hits, reps, 0.8)
