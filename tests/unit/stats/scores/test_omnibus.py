from itertools import combinations

import numpy as np
import pytest

from equipoise.stats.multiplicity import adjusted_p_values
from equipoise.stats.scores.cells import ScoreCells
from equipoise.stats.scores.omnibus import (
    Residuals,
    closed_pairs,
    parity_family,
    shaffer_pairs,
    subsets_to_test,
)
from equipoise.stats.scores.parity import compare_groups


@pytest.fixture
def rows(rng):
    group, score = rng.integers(4, size=2000), rng.uniform(size=2000)
    y = (rng.uniform(size=2000) < 0.2 + 0.4 * score + 0.15 * (group == 3)).astype(float)
    return y, score, group


def test_two_groups_give_the_square_of_the_plain_cumulative_sum(rows):
    y, score, group = rows
    # Few levels: the two record their sums at the same scores.
    level = np.ceil(10 * score)
    cells = ScoreCells.from_rows(y[group < 2], level[group < 2], group[group < 2])
    omnibus, plain = Residuals(cells).test([0, 1]), compare_groups(cells).cusum
    # The scale differs: one variance for all groups here, that of the sum there.
    assert omnibus.p_value == pytest.approx(plain.ks_p_value, abs=0.03)


def test_the_statistic_at_the_last_score_is_a_score_test_of_dummies(rng):
    group, score = rng.integers(3, size=900), rng.integers(1, 4, size=900).astype(float)
    y = rng.normal(size=900) + score
    cells = ScoreCells.from_rows(y, score, group)
    found = Residuals(cells).test([0, 1, 2])
    dummies = np.column_stack([score == s for s in (1, 2, 3)]).astype(float)
    e = y - dummies @ np.linalg.lstsq(dummies, y, rcond=None)[0]
    g = np.column_stack([group == 1, group == 2]).astype(float)
    a = g - dummies @ np.linalg.lstsq(dummies, g, rcond=None)[0]
    scale = np.mean(e**2) * a.T @ a
    form = [r @ np.linalg.solve(scale, r) for r in (((score <= s) * e) @ a for s in (1, 2, 3))]
    assert found.statistic == pytest.approx(max(form))
    assert found.location == np.argmax(form) + 1


def test_names_of_groups_do_not_matter(rows):
    y, score, group = rows
    first = Residuals(ScoreCells.from_rows(y, score, group), 1).test(range(4))
    other = Residuals(ScoreCells.from_rows(y, score, 3 - group), 1).test(range(4))
    assert other.p_value == first.p_value
    assert other.statistic == pytest.approx(first.statistic)


def test_a_tiny_group_does_not_hide_a_difference(rows):
    y, score, group = rows
    group = np.where(np.arange(2000) < 12, 4, group)
    found = Residuals(ScoreCells.from_rows(y, score, group)).test(range(5))
    assert found.p_value < 0.01


def test_rows_as_clusters_give_the_same_test(rows):
    y, score, group = rows
    cells = ScoreCells.from_rows(y, score, group)
    users = ScoreCells.from_rows(y, score, group, cluster=np.arange(2000), unit="row")
    one, two = (Residuals(c).test(range(4)) for c in (cells, users))
    assert two.statistic == pytest.approx(one.statistic)
    assert two.p_value == pytest.approx(one.p_value, abs=0.02)


def test_repeated_rows_of_a_cluster_count_once(rng):
    m = 300
    unit = np.repeat(np.arange(m), 6)
    group, score = rng.integers(3, size=m)[unit], rng.uniform(size=m)[unit]
    y = (rng.uniform(size=m) < 0.5).astype(float)[unit]
    p = [
        Residuals(ScoreCells.from_rows(y, score, group, **options)).test(range(3)).p_value
        for options in ({}, {"cluster": unit, "unit": "row"})
    ]
    assert p[1] > 10 * p[0]


def test_nothing_to_judge_by_is_none():
    score = np.tile([0.0, 1.0], 60)
    cells = ScoreCells.from_rows(score, score, np.repeat([0, 1, 2], 40))
    assert Residuals(cells).test(range(3)) is None
    family = parity_family(cells, [0, 1, 2], [(0, 1)], np.array([np.nan]))
    assert family.omnibus is None
    assert np.isnan(family.p_value[0])


def test_a_balanced_table_has_the_smallest_statistic_at_its_first_score():
    k = np.arange(60)
    cells = ScoreCells.from_rows((k % 2).astype(float), k % 5 / 10, k % 3)
    found = Residuals(cells).test(range(3))
    assert found.statistic == pytest.approx(0.0, abs=1e-20)
    assert found.p_value == 1.0
    assert found.location == 0.0


def test_closed_testing_is_the_largest_over_partitions():
    p = {frozenset(s): 0.01 * sum(s) + 0.001 for k in (2, 3, 4) for s in combinations(range(4), k)}
    pairs = list(combinations(range(4), 2))
    found = closed_pairs(range(4), p, pairs)
    # By hand for (0, 1): alone .011; with 2 .031; with 3 .041; all .061; and {0,1},{2,3}: 2 x .011.
    assert found[0] == pytest.approx(0.061)
    # A pair is rejected at a level exactly when every subset that holds it is, or its partition.
    assert np.all(found >= [p[frozenset(pair)] for pair in pairs])


def test_with_a_reference_the_subsets_are_those_that_hold_it():
    assert subsets_to_test([0, 1, 2], 0) == [(0, 1, 2)]
    assert len(subsets_to_test(range(5), 2)) == 11
    p = {frozenset(s): v for s, v in (((0, 1), 0.01), ((0, 2), 0.3), ((0, 1, 2), 0.02))}
    assert closed_pairs([0, 1, 2], p, [(1, 0), (2, 0)], reference=0).tolist() == [0.02, 0.3]


def test_the_family_is_closed_for_few_groups_and_shaffer_for_many(rows, rng):
    y, score, group = rows
    cells = ScoreCells.from_rows(y, score, group)
    pairs = list(combinations(range(4), 2))
    raw = np.array([0.5, 0.5, 0.001, 0.5, 0.001, 0.001])
    closed = parity_family(cells, range(4), pairs, raw)
    assert (closed.method, closed.n_subsets) == ("closed", 11)
    assert closed.p_value[2] < 0.05
    around = parity_family(cells, range(4), [(1, 0), (2, 0), (3, 0)], raw[:3], reference=0)
    assert around.n_subsets == 7
    holm = parity_family(cells, range(4), pairs, raw, adjust="holm")
    np.testing.assert_allclose(holm.p_value, adjusted_p_values(raw, "holm"))
    many = rng.integers(8, size=2000)
    cells = ScoreCells.from_rows(y, score, many)
    found = parity_family(cells, range(8), [(0, 1), (0, 2)], np.array([1e-5, 0.2]))
    assert found.method == "shaffer"
    assert found.p_value[0] == pytest.approx(found.omnibus.p_value)


def test_shaffer_uses_at_most_the_pairs_that_can_be_true():
    p = np.full(28, 0.5)
    p[0], p[1] = 0.001, np.nan
    found = shaffer_pairs(p, 1e-9, 8)
    assert found[0] == pytest.approx(0.021)
    assert np.isnan(found[1])


def test_very_many_groups_are_tested_together(rng):
    group, score = rng.integers(40, size=4000), rng.uniform(size=4000)
    y = (rng.uniform(size=4000) < score).astype(float)
    assert 0.001 < Residuals(ScoreCells.from_rows(y, score, group)).test(range(40)).p_value <= 1


def test_scores_that_some_groups_lack_do_not_matter():
    """The lowest scores belong to one group, which a subset of the others leaves out."""
    score = np.array([0.1, 0.2, 0.3, 0.4] * 6)
    group = np.repeat([0, 1, 2], 8)
    score[group == 0] = [0.01, 0.02, 0.3, 0.4] * 2
    y = np.arange(24) // 3 % 2 * 1.0
    cells = ScoreCells.from_rows(y, score, group)
    kept = group > 0
    alone = ScoreCells.from_rows(y[kept], score[kept], group[kept] - 1)
    found, expected = Residuals(cells, 0).test([1, 2]), Residuals(alone, 0).test([0, 1])
    assert found.statistic == pytest.approx(expected.statistic)
