import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.disparity import discovery
from equipoise.stats.disparity.conditions import bin_features
from equipoise.stats.disparity.discovery import (
    _fulfils,
    discover_subgroups,
    lattice,
    lattice_discovery,
    select_slices,
    tarone_factor,
)
from oracles.over_time import slices as naive_slices


def features_of(rng, n, kinds=(3, 2, 4, 2)):
    return {f"f{k}": rng.integers(0, size, n) for k, size in enumerate(kinds)}


@pytest.fixture
def planted(rng):
    n = 6000
    columns = features_of(rng, n)
    inside = (columns["f0"] == 1) & (columns["f1"] == 1)
    y = (rng.random(n) < 0.2 + 0.2 * inside).astype(float)
    return y, columns


@pytest.mark.parametrize("table", [2**16, 4, 64])
def test_counts_are_those_of_a_naive_search_whatever_the_blocks(rng, monkeypatch, table):
    monkeypatch.setattr(discovery, "_TABLE", table)
    columns = features_of(rng, 120)
    y = rng.integers(0, 2, 120)
    found = lattice(y, bin_features(columns), depth=3, min_rows=6)
    ours = {
        frozenset(
            (words.split("=")[0], int(words.split("=")[1]))
            for words in found.label(condition).split(" & ")
        ): (n, ones)
        for condition, n, ones in zip(found.condition.tolist(), found.n, found.ones, strict=True)
    }
    assert ours == naive_slices(y, {k: v.tolist() for k, v in columns.items()}, 3, 6)


def test_a_slice_with_the_rows_of_its_parent_is_left_out():
    a = np.repeat([0, 1], 50)
    # Everybody with a = 1 has b = 1.
    b = np.where(a == 1, 1, np.arange(100) % 2)
    found = lattice(np.arange(100) % 3 == 0, bin_features({"a": a, "b": b}), depth=2, min_rows=1)
    names = [found.label(c) for c in found.condition.tolist()]
    assert "a=1" in names
    assert "a=1 & b=1" not in names


def test_taking_part_of_the_tests_that_can_never_be_significant_costs_nothing():
    assert tarone_factor(np.array([0.04, 0.5, 0.5]), 0.05) == 1
    # Two can reach 0.05, so that k = 1 is not enough; at most two can reach 0.025.
    assert tarone_factor(np.array([0.04, 0.001, 0.5]), 0.05) == 2
    assert tarone_factor(np.array([0.02, 0.001, 0.5]), 0.05) == 2
    assert tarone_factor(np.full(7, 1e-9), 0.05) == 7
    assert tarone_factor(np.array([0.9]), 0.05) == 1


def test_the_exact_p_value_is_that_of_fisher(rng):
    y = (rng.random(300) < 0.1).astype(float)
    found = discover_subgroups(y, {"a": rng.integers(0, 2, 300), "b": rng.integers(0, 3, 300)})
    for one in found.nearest:
        ones = round(one.value * one.n)
        law = stats.hypergeom(300, int(y.sum()), one.n)
        p = min(1.0, 2 * min(law.cdf(ones), law.sf(ones - 1)))
        assert one.p_value_raw == pytest.approx(p, rel=1e-8)
        assert one.p_value == pytest.approx(min(1.0, p * found.n_tests), rel=1e-8)


def test_a_planted_slice_is_found_and_its_bound_is_below_the_truth(planted):
    found = discover_subgroups(*planted)
    best = found.subgroups[0]
    assert best.label == "f0=1 & f1=1"
    assert 0 < best.bound < 0.2 < best.ci_high
    assert found.p_value <= 0.05
    assert found.statistic > 5
    assert "chance that any is false" in str(found)


def test_what_the_planted_slice_explains_is_folded(planted):
    found = discover_subgroups(*planted)
    smaller = [one for one in found.rejected if one.label.startswith("f0=1 & f1=1 & ")]
    explained = [one.explained_by == "f0=1 & f1=1" for one in smaller]
    assert len(explained) >= 4
    # Each differs from its parent by chance in one of twenty.
    assert np.mean(explained) > 0.7
    assert len(found.subgroups) <= len(found.rejected) / 2


def test_the_list_is_ranked_by_bound(planted):
    found = discover_subgroups(*planted)
    for ranked in (found.rejected, found.subgroups):
        bounds = [abs(one.bound) for one in ranked]
        assert bounds == sorted(bounds, reverse=True)


def test_one_side_only(planted):
    y, columns = planted
    less = discover_subgroups(y, columns, alternative="less")
    assert all(one.gap < 0 for one in less.rejected)
    greater = discover_subgroups(y, columns, alternative="greater")
    assert all(one.gap > 0 for one in greater.rejected)
    both = discover_subgroups(y, columns)
    best = {one.label: one.p_value_raw for one in both.rejected}
    assert_allclose(greater.rejected[0].p_value_raw, best[greater.rejected[0].label] / 2)


def test_rejected_slices_have_intervals_without_zero(planted):
    for one in discover_subgroups(*planted).rejected:
        assert one.ci_low >= 0 or one.ci_high <= 0


def test_nothing_found_says_what_would_have_been(rng):
    y = (rng.random(2000) < 0.3).astype(float)
    found = discover_subgroups(y, features_of(rng, 2000))
    assert not found.rejected
    assert len(found.nearest) == 5
    z = stats.norm.isf(0.05 / 2 / found.n_tests) + stats.norm.ppf(0.8)
    se = np.sqrt(y.var() / (2000 * 0.05 * 0.95))
    assert found.detectable() == pytest.approx(z * se)
    assert "Nothing found among" in str(found)


def test_forward_selection_is_least_squares(rng):
    """The second choice maximises the score of the residuals of a regression on the first."""
    n = 4000
    columns = features_of(rng, n)
    y = (rng.random(n) < 0.2 + 0.25 * (columns["f0"] == 1) - 0.1 * (columns["f2"] == 0)).astype(
        float
    )
    cut = bin_features(columns)
    found = lattice(y, cut, depth=1, min_rows=50)
    chosen = select_slices(found, list(range(len(found.n))))
    labels = found.labels
    masks = np.array(
        [one.holds[k][one.code] for one in cut for k in range(len(one.labels))], dtype=float
    )
    assert labels[found.condition[chosen[0], 0]] == "f0=1"
    first = masks[found.condition[chosen[0], 0]]
    design = np.stack([np.ones(n), first], axis=1)
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    rest = masks - (design @ np.linalg.lstsq(design, masks.T, rcond=None)[0]).T
    length = np.sqrt((rest**2).sum(axis=1))
    z = (
        np.where(length > 1e-6, np.abs(rest @ residual) / np.maximum(length, 1e-6), 0)
        / residual.std()
    )
    best = found.condition[chosen[1], 0]
    assert z[best] == pytest.approx(z.max())


def test_features_given_in_another_order_find_the_same(planted):
    y, columns = planted
    one = discover_subgroups(y, columns)
    two = discover_subgroups(y, dict(reversed(columns.items())))
    assert one.n_slices == two.n_slices
    assert {frozenset(s.label.split(" & ")) for s in one.rejected} == {
        frozenset(s.label.split(" & ")) for s in two.rejected
    }


@pytest.mark.parametrize(
    ("y", "features", "options", "error", "message"),
    [
        (np.zeros(200), {"a": np.arange(200) % 2}, {}, DataError, "same in all rows"),
        (np.arange(200) % 2, {"a": np.arange(200) % 2}, {}, DataError, "'a' is the outcome"),
        (np.arange(200) % 2, {"a": np.ones(200)}, {}, DataError, "No feature splits"),
        (np.arange(60) % 2, {"a": np.arange(60) // 30}, {}, DataError, "50 rows inside and"),
        (
            np.arange(200.0),
            {"a": np.arange(200) % 2},
            {"method": "lattice"},
            InvalidParameterError,
            "pass method='split'",
        ),
        (
            np.arange(200) % 2,
            {"a": np.arange(200) % 3},
            {"depth": 0},
            InvalidParameterError,
            "depth",
        ),
        (
            np.arange(200) % 2,
            {"a": np.arange(200) % 3},
            {"method": "tree"},
            InvalidParameterError,
            "method",
        ),
    ],
)
def test_bad_input_gets_a_sentence(y, features, options, error, message):
    with pytest.raises(error, match=message):
        discover_subgroups(y, features, **options)


def test_a_lattice_that_is_too_large_names_what_to_change(rng, monkeypatch):
    monkeypatch.setattr(discovery, "LARGEST_LATTICE", 10)
    with pytest.raises(
        InvalidParameterError, match=r"Raise `min_size` \(0.02\), lower `depth` \(3\)"
    ):
        discover_subgroups(rng.random(3000) < 0.3, features_of(rng, 3000))


def test_a_lattice_without_slices_finds_nothing():
    empty = lattice(np.arange(20) % 2, bin_features({"a": np.arange(20) // 10}), min_rows=15)
    assert len(empty.n) == 0
    assert lattice_discovery(empty).rejected == ()


@pytest.mark.parametrize(
    ("n", "min_size", "message"),
    [
        (80, 0.02, "No subgroup has 50 rows inside and outside. That is the least for a test; the"),
        (400, 0.5, "No subgroup has 200 rows inside and outside. Lower `min_size`"),
    ],
)
def test_a_table_without_subgroups_says_what_would_help(n, min_size, message):
    y, x = np.arange(n) % 2, np.where(np.arange(n) % 3 == 0, "a", "b")
    with pytest.raises(DataError, match=message):
        discover_subgroups(y, {"x": x}, min_size=min_size)


def test_a_condition_that_no_feature_has_is_refused():
    with pytest.raises(InvalidParameterError, match="There is no such condition"):
        _fulfils((), 0)


def test_forward_selection_of_overlapping_slices_is_that_of_residuals(rng):
    """Each further choice maximises the score of the residuals of a regression on all before."""
    n = 3000
    first = rng.integers(0, 3, n)
    copies = [np.where(rng.random(n) < share, first, rng.integers(0, 3, n)) for share in (0.7, 0.4)]
    columns = {f"f{k}": value.astype(str) for k, value in enumerate([first, *copies])}
    rate = 0.1 + 0.3 * (first == 1) + 0.2 * (copies[1] == 2) + 0.2 * (copies[0] == 0)
    y = (rng.random(n) < rate).astype(float)
    cut = bin_features(columns)
    found = lattice(y, cut, depth=1, min_rows=50)
    masks = np.array(
        [one.holds[k][one.code] for one in cut for k in range(len(one.labels))], dtype=float
    )
    chosen = select_slices(found, list(range(len(found.n))))
    assert len(chosen) > 2
    design = np.ones((n, 1))
    for k in found.condition[chosen, 0]:
        residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        rest = masks - (design @ np.linalg.lstsq(design, masks.T, rcond=None)[0]).T
        length = np.sqrt((rest**2).sum(axis=1))
        z = np.abs(rest @ residual) / np.maximum(length, 1.0) * (length > 1.0)
        assert z[k] == pytest.approx(z.max())
        design = np.column_stack([design, masks[k]])
