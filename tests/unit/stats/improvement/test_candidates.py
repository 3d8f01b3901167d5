"""Many candidates: in order, together, and what a search rules out."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.improvement.candidates import (
    CandidateLines,
    _below,
    candidate_lines,
    fixed_sequence,
    joint_law,
    loss_frontier,
    order_candidates,
    random_search_bounds,
    step_down,
    winner_gain,
)
from equipoise.stats.improvement.test import ImprovementQuestion, Margins, compare_utilities
from equipoise.stats.improvement.utilities import UtilityEstimates, gram_root

ANALYTIC = ImprovementQuestion(inference="analytic")


def lines_of(z, *, rho=0.0, se=1.0):
    """K candidates with an accuracy line and a gap line each, at given z."""
    z = np.asarray(z, dtype=float)
    k = len(z)
    correlation = np.full((2 * k, 2 * k), rho)
    correlation[np.diag_indices(2 * k)] = 1.0
    return CandidateLines(
        estimate=(z * se).ravel(),
        se=np.full(2 * k, se),
        df=np.full(2 * k, 1e6),
        loadings=gram_root(correlation),
        owner=np.repeat(np.arange(k), 2),
        accuracy=np.tile([True, False], k),
    )


def three_rules():
    """Status quo and two candidates on one criterion in two groups."""
    value = np.array([[[0.6, 0.8], [0.9, 0.9], [0.5, 0.9]]])
    return UtilityEstimates(
        value=value,
        covariance=np.diag(np.full(6, 1e-4)),
        support=np.full((1, 3, 2), 50),
        n_groups=2,
        n_units=100,
    )


def test_lines_are_the_contrasts_of_the_single_test():
    estimates = three_rules()
    lines = candidate_lines(
        estimates, directions=[[(1, 0)]], question=ANALYTIC, margins=Margins(accuracy=-0.1)
    )
    pair = UtilityEstimates(
        value=estimates.value[:, :2],
        covariance=estimates.covariance[:4, :4],
        support=estimates.support[:, :2],
        n_groups=2,
        n_units=100,
    )
    single = compare_utilities(pair, directions=[(1, 0)], question=ANALYTIC, delta_accuracy=-0.1)
    ours = list(zip(lines.estimate[:4], lines.se[:4], strict=True))
    theirs = [c for test in (*single.accuracy, *single.fairness) for c in test.contrasts]
    np.testing.assert_allclose(ours, theirs)
    assert lines.n_candidates == 2
    assert lines.df.tolist() == [49.0] * 8
    t = lines.estimate[0] / lines.se[0]
    assert lines.z[0] == pytest.approx(-stats.norm.ppf(stats.t.sf(t, 49)))


def test_unknown_directions_are_hypotheses_of_their_own():
    lines = candidate_lines(
        three_rules(), directions=[[(1, 0)], [(0, 1)]], question=ANALYTIC, margins=Margins()
    )
    assert lines.n_candidates == 4
    assert lines.smallest_z[0] > 0 > lines.smallest_z[1]


def test_what_does_not_vary_is_not_shown():
    lines = lines_of([[3.0, 3.0]], se=0.0)
    assert lines.smallest_z.tolist() == [-np.inf]
    found = step_down(lines, rng=1)
    assert found.p_value.tolist() == [1.0]
    assert found.p_fails[0] > 0.5


def test_safe_candidates_lead_by_their_reduction():
    lines = lines_of([[2.6, 2.7], [4.0, 3.0], [9.0, 1.0], [2.0, 8.0]])
    assert order_candidates(lines).tolist() == [1, 0, 3, 2]
    assert order_candidates(lines, prefer="certain").tolist() == [1, 0, 3, 2]
    # With twice the rows to test on, the last is safe, and reduces the gap most.
    assert order_candidates(lines, ratio=2.0).tolist() == [3, 1, 0, 2]


def test_a_fixed_sequence_stops_at_the_first_failure():
    assert fixed_sequence([0.001, 0.2, 0.001]).tolist() == [0.001, 0.2, 0.2]


def test_one_candidate_needs_no_correction():
    found = step_down(lines_of([[2.0, 3.0]]), rng=1)
    assert found.p_value[0] == pytest.approx(stats.norm.sf(2.0), rel=1e-4)


def test_holm_bounds_independent_candidates():
    z = [[3.0, 4.0], [2.5, 4.0], [0.0, 0.0]]
    p = step_down(lines_of(z), rng=1).p_value
    tails = stats.norm.sf([3.0, 2.5, 0.0])
    np.testing.assert_allclose(p, [3 * tails[0], 2 * tails[1], tails[2]], rtol=0.35)
    assert (p <= np.array([3, 2, 1]) * tails * 1.001).all()


def test_a_duplicate_costs_nothing():
    single = lines_of([[2.2, 2.4]] * 1)
    twice = CandidateLines(
        estimate=np.tile(single.estimate, 8),
        se=np.ones(16),
        df=np.full(16, 1e6),
        loadings=gram_root(np.kron(np.ones((8, 8)), np.array([[1.0, 0.999], [0.999, 1.0]]))),
        owner=np.repeat(np.arange(8), 2),
        accuracy=np.tile([True, False], 8),
    )
    p = step_down(twice, n_draws=40_000, rng=1).p_value
    assert p[0] == pytest.approx(stats.norm.sf(2.2), rel=0.2)


def test_hopeless_candidates_cost_little_once_screened():
    hopeless = np.full((39, 2), -9.0)
    p = step_down(lines_of(np.vstack([[[2.6, 3.0]], hopeless])), rng=1).p_value
    assert p[0] < 0.02
    found = step_down(lines_of(hopeless[:12]), rng=1)
    assert (found.p_fails < 0.001).all()
    assert (found.p_value == 1.0).all()


def test_names_and_order_do_not_matter():
    z = [[3.0, 2.5], [1.0, 2.0], [2.2, 4.0]]
    one = step_down(lines_of(z), rng=5).p_value
    two = step_down(lines_of(z[::-1]), rng=5).p_value
    np.testing.assert_allclose(one, two[::-1])


def test_the_frontier_is_a_staircase_of_joint_bounds():
    lines = lines_of([[0.0, 5.0], [-4.0, 9.0], [-6.0, 8.0]], se=0.01)
    steps = loss_frontier(lines, rng=1)
    assert [step.candidate for step in steps] == [0, 1]
    assert steps[0].loss < steps[1].loss
    assert steps[0].reduction < 0.05
    critical = (0.05 - steps[0].reduction) / 0.01
    # Six independent lines, one-sided.
    assert critical == pytest.approx(stats.norm.ppf(0.95 ** (1 / 6)), abs=0.05)
    assert steps[0].loss == pytest.approx(critical * 0.01, abs=1e-6)
    assert loss_frontier(lines_of([[0.0, 0.0]]), rng=1) == ()


def test_what_further_draws_could_find():
    none = random_search_bounds(lines_of(np.full((59, 2), -9.0)), gap=0.2, rng=1)
    assert none.not_ruled_out == 0
    assert none.success_at_most == pytest.approx(1 - 0.025 ** (1 / 59), abs=1e-9)
    assert none.record == pytest.approx(0.5)
    z = np.full((100, 2), -9.0)
    z[:2] = 0.0
    two = random_search_bounds(lines_of(z, se=0.01), gap=0.2, further=10, rng=1)
    assert two.not_ruled_out == 2
    assert two.success_at_most == pytest.approx(0.070, abs=0.001)
    assert two.record == pytest.approx(10 / 110)
    assert 0 < two.further_gain_at_most < 0.2
    every = random_search_bounds(lines_of(np.zeros((3, 2))), gap=0.2, rng=1)
    assert every.success_at_most == 1.0
    with pytest.raises(InvalidParameterError, match="further"):
        random_search_bounds(lines_of([[0.0, 0.0]]), gap=0.1, further=0)


def lines_of_groups(n_groups, seed=1):
    """One candidate among groups of unequal size; the gap may point in any way."""
    rng = np.random.default_rng(seed)
    value = rng.uniform(0.3, 0.7, size=(1, 2, n_groups))
    noise = rng.normal(size=(2 * n_groups, 4 * n_groups)) / 100
    estimates = UtilityEstimates(
        value=value,
        covariance=noise @ noise.T,
        support=np.full((1, 2, n_groups), 500),
        n_groups=n_groups,
        n_units=5000,
    )
    return candidate_lines(
        estimates,
        directions=[[pair] for pair in permutations(range(n_groups), 2)],
        question=ANALYTIC,
        margins=Margins(),
    )


def test_thousands_of_lines_need_as_many_draws_as_there_are_rates():
    lines = lines_of_groups(9)
    assert len(lines.estimate) == 5832
    law = joint_law(lines, n_draws=4000, rng=1)
    # Eighteen rates, of which only differences are compared.
    assert law.normals.shape == (4000, 17)
    some = np.arange(0, 5832, 29)
    np.testing.assert_allclose(
        law.loadings[some] @ law.loadings[some].T, lines.of(some).correlation, atol=1e-9
    )


def test_draws_are_those_of_the_whole_correlation():
    lines = lines_of_groups(3)
    law = joint_law(lines, n_draws=40_000, rng=1)
    root = np.linalg.cholesky(lines.correlation + 1e-9 * np.eye(len(lines.estimate)))
    drawn = np.random.default_rng(2).normal(size=(40_000, len(root))) @ root.T
    for tail in (0.01, 0.05, 0.5):
        expected = np.quantile(drawn.max(axis=1), 1 - tail)
        assert law.reach(tail) == pytest.approx(expected, abs=0.03)
        both = np.quantile(np.abs(drawn).max(axis=1), 1 - tail)
        assert law.reach_of_both_signs(tail) == pytest.approx(both, abs=0.03)
    mine = lines.owner == 2
    least = np.quantile((drawn + 1.0)[:, mine].min(axis=1), 0.1)
    ours = np.quantile(-law.opposite().largest(-1.0)[:, 2], 0.1)
    assert ours == pytest.approx(least, abs=0.03)


def test_neither_places_nor_last_digits_nor_axes_change_a_draw():
    lines = lines_of_groups(4)
    rng = np.random.default_rng(3)
    turned, _ = np.linalg.qr(rng.normal(size=(lines.loadings.shape[1],) * 2))
    place = rng.permutation(len(lines.estimate))
    other = replace(
        lines.of(place),
        estimate=lines.estimate[place] * (1 + 1e-14 * rng.normal(size=len(place))),
        loadings=(lines.loadings @ turned)[place],
    )
    for alpha in (0.05, 0.5):
        one, two = (joint_law(each, n_draws=999, rng=5).reach(alpha) for each in (lines, other))
        assert one == pytest.approx(two, abs=1e-9)
    np.testing.assert_allclose(step_down(lines, rng=5).p_value, step_down(other, rng=5).p_value)


def test_lines_that_do_not_vary_draw_nothing():
    lines = replace(lines_of([[3.0, 3.0]]), loadings=np.zeros((2, 2)), se=np.zeros(2))
    assert joint_law(lines, n_draws=999, rng=1).normals.shape == (999, 0)
    assert joint_law(lines, n_draws=999, rng=1).reach(0.05) == 0.0


def gains_of(estimate, rho=0.0, accuracy=None):
    k = len(estimate)
    correlation = np.full((k, k), rho)
    np.fill_diagonal(correlation, 1.0)
    return CandidateLines(
        estimate=np.asarray(estimate, dtype=float),
        se=np.ones(k),
        df=np.full(k, 1e9),
        loadings=gram_root(correlation),
        owner=np.arange(k),
        accuracy=np.zeros(k, dtype=bool) if accuracy is None else accuracy,
    )


def test_a_winner_without_rivals_keeps_its_estimate():
    assert winner_gain(gains_of([2.0]), rng=1) == pytest.approx(2.0, abs=0.01)


def test_a_close_race_is_corrected_downwards_but_not_away():
    close = winner_gain(gains_of([2.0, 1.9, 1.9]), rng=1)
    assert -1.5 < close < 1.9
    assert winner_gain(gains_of([2.0, 0.0, 0.0]), rng=1) > close


def test_a_line_without_variation_has_nothing_to_correct():
    lines = gains_of([2.0, 1.0])
    still = CandidateLines(
        estimate=lines.estimate,
        se=np.array([0.0, 0.0]),
        df=lines.df,
        loadings=lines.loadings,
        owner=lines.owner,
        accuracy=lines.accuracy,
    )
    assert winner_gain(still, rng=1) == 2.0


def test_two_comparisons_of_a_closed_gap_do_not_make_the_gain_larger_than_the_gap():
    """A gap of 2 that is closed: its two lines are 2 - a and 2 + a, with a nearly zero."""
    found = winner_gain(
        CandidateLines(
            estimate=np.array([1.99, 2.01, 0.0, 0.1]),
            se=np.ones(4),
            df=np.full(4, 1e9),
            loadings=np.eye(4),
            owner=np.array([0, 0, 1, 1]),
            accuracy=np.zeros(4, dtype=bool),
        ),
        rng=1,
    )
    assert found == pytest.approx(1.99, abs=0.3)


def test_ways_of_one_candidate_are_no_rivals():
    """A candidate under two directions that are nearly tied, far ahead of another one."""
    lines = gains_of([2.0, 1.95, 0.0, 0.0])
    assert winner_gain(lines, ways=2, rng=1) == pytest.approx(2.0, abs=0.15)
    assert winner_gain(lines, rng=1) < 1.7


def test_what_is_excluded_is_not_told():
    close = gains_of([2.0, 1.99, 1.99, 1.99])
    assert winner_gain(close, rng=1) < -0.1
    assert winner_gain(close, lower=-0.1, rng=1) == -0.1


def test_the_number_of_draws_matters_to_the_reach_alone():
    close = gains_of([2.0, 1.99, 1.99, 1.99])
    few, many = (winner_gain(close, n_draws=n, rng=1) for n in (999, 50_000))
    assert few != many
    assert few == pytest.approx(many, abs=0.2)


def test_a_truth_out_of_reach_of_every_value_lies_on_its_own_side():
    shift, won = np.array([-1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])
    assert _below(shift, won, -9.0, 2.0) == 1.0
    assert _below(shift, won, 9.0, 2.0) == 0.0
    assert _below(shift, won, 0.0, 2.0) == 0.5


def test_a_rival_with_a_line_without_variation_never_wins():
    """Nothing is known of how such a line would move: its candidate is no rival."""
    lines = gains_of([2.0, 1.9])
    alone = winner_gain(gains_of([2.0, -90.0]), rng=1)
    still = replace(lines, se=np.array([1.0, 0.0]), estimate=np.array([2.0, 1.9]))
    assert winner_gain(still, rng=1) == pytest.approx(alone, abs=0.01)
    assert winner_gain(lines, rng=1) < alone - 0.1
