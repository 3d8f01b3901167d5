"""Rows in parts give the answers of the same rows together."""

import pickle

import numpy as np
import pytest

from equipoise.stats.scores.calibration import calibration_test
from equipoise.stats.scores.cells import ScoreCells
from equipoise.stats.scores.kernel import rule_of_thumb
from equipoise.stats.scores.margins import compare_margins
from equipoise.stats.scores.parity import compare_groups
from equipoise.stats.scores.partitioned import PartitionedCells, Recipe
from equipoise.stats.scores.support import score_support


def rows(rng, n=1500, users=400):
    group, score = rng.integers(3, size=n), rng.uniform(size=n).round(3)
    return {
        "y_true": (rng.uniform(size=n) < score).astype(float),
        "y_score": score,
        "group": group,
        "cluster": rng.integers(users, size=n),
        "weight": rng.uniform(0.5, 1.5, size=n),
    }


def together_and_apart(columns, n_bins=None, edge=None, **options):
    """The same rows as one object, and in two parts that hold whole clusters."""
    whole = ScoreCells.from_rows(**columns, n_groups=3, n_bins=n_bins, edge=edge, **options)
    unit = columns.get("cluster", np.arange(len(columns["y_true"])))
    pieces = [{k: v[unit % 2 == part] for k, v in columns.items()} for part in (0, 1)]
    support = score_support(
        lambda function: [function(piece["y_score"]) for piece in pieces], n_bins=n_bins, edge=edge
    )

    def arranged(piece):
        return ScoreCells.from_rows(**piece, n_groups=3, support=support, **options)

    def parts(function):
        # Numbers travel flat, and the function as bytes.
        sent = pickle.loads(pickle.dumps(function))
        return [tuple(np.ravel(a).astype(float) for a in sent(arranged(p))) for p in pieces]

    none = arranged({k: v[:0] for k, v in columns.items() if k != "weight"})
    return whole, PartitionedCells.of(parts, none)


def same(ours, theirs):
    """Compare results field by field."""
    if hasattr(ours, "__slots__"):
        for name in ours.__slots__:
            same(getattr(ours, name), getattr(theirs, name))
    elif isinstance(ours, tuple):
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
    elif ours is not None:
        # Quantiles of t laws are found by iteration, to about eight digits.
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-8)
    else:
        assert theirs is None


@pytest.fixture(params=["users", "rows of users", "rows", "bins of users"])
def pair(request, rng):
    columns = rows(rng)
    if request.param == "rows":
        del columns["cluster"], columns["weight"]
        return together_and_apart(columns)
    return together_and_apart(
        columns,
        unit="row" if request.param == "rows of users" else "cluster",
        n_bins=64 if request.param == "bins of users" else None,
        edge=0.4,
    )


def test_parity_of_two_groups_is_the_same(pair):
    whole, apart = (cells.select([2, 0]) for cells in pair)
    for paper in (False, True):
        same(compare_groups(whole, rng=1, paper=paper), compare_groups(apart, rng=1, paper=paper))


def test_calibration_of_a_group_is_the_same(pair):
    whole, apart = (cells.select([1]) for cells in pair)
    same(calibration_test(whole, rng=1), calibration_test(apart, rng=1))


def test_outcomes_at_a_threshold_are_the_same(pair):
    whole, apart = (cells.select([0, 1]) for cells in pair)
    same(*(compare_margins(cells, 0.4, bandwidth=0.3) for cells in (whole, apart)))


def test_counts_and_ranges_are_the_same(pair):
    whole, apart = pair
    assert whole.n_units == apart.n_units
    assert whole.outcome_range == apart.outcome_range
    assert whole.binary == apart.binary
    assert rule_of_thumb(whole) == pytest.approx(rule_of_thumb(apart), rel=1e-12)
    np.testing.assert_array_equal(whole.n_rows, apart.n_rows)
    np.testing.assert_array_equal(whole.units_in_group(), apart.units_in_group())


def test_outcomes_that_are_not_labels_are_noticed_in_any_part(rng):
    columns = rows(rng)
    columns["y_true"][7] = 0.5
    whole, apart = together_and_apart(columns)
    assert not whole.binary
    assert not apart.binary


def test_all_groups_in_order_are_the_cells_themselves(rng):
    _, apart = together_and_apart(rows(rng))
    assert apart.select([0, 1, 2]) is apart


def test_a_recipe_travels_without_what_it_makes():
    recipe = Recipe(np.arange, 1_000_000)
    assert len(recipe.made) == 1_000_000
    sent = pickle.dumps(recipe)
    assert len(sent) < 1000
    assert len(pickle.loads(sent).made) == 1_000_000
