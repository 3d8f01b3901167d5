"""The winner's gain: no correction without rivals, downwards with them, right in the middle."""

import numpy as np
import pytest

from equipoise.stats.improvement.candidates import CandidateLines
from equipoise.stats.improvement.utilities import gram_root
from equipoise.stats.improvement.winner import _below, winner_gain


def lines_of(estimate, rho=0.0, accuracy=None):
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
    assert winner_gain(lines_of([2.0]), rng=1) == pytest.approx(2.0, abs=0.01)


def test_a_close_race_is_corrected_downwards_but_not_away():
    close = winner_gain(lines_of([2.0, 1.9, 1.9]), rng=1)
    assert -1.5 < close < 1.9
    assert winner_gain(lines_of([2.0, 0.0, 0.0]), rng=1) > close


def test_a_line_without_variation_has_nothing_to_correct():
    lines = lines_of([2.0, 1.0])
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
    lines = lines_of([2.0, 1.95, 0.0, 0.0])
    assert winner_gain(lines, ways=2, rng=1) == pytest.approx(2.0, abs=0.15)
    assert winner_gain(lines, rng=1) < 1.7


def test_what_is_excluded_is_not_told():
    close = lines_of([2.0, 1.99, 1.99, 1.99])
    assert winner_gain(close, rng=1) < -0.1
    assert winner_gain(close, lower=-0.1, rng=1) == -0.1


def test_the_number_of_draws_matters_to_the_reach_alone():
    close = lines_of([2.0, 1.99, 1.99, 1.99])
    few, many = (winner_gain(close, n_draws=n, rng=1) for n in (999, 50_000))
    assert few != many
    assert few == pytest.approx(many, abs=0.2)


def test_a_truth_out_of_reach_of_every_value_lies_on_its_own_side():
    shift, won = np.array([-1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])
    assert _below(shift, won, -9.0, 2.0) == 1.0
    assert _below(shift, won, 9.0, 2.0) == 0.0
    assert _below(shift, won, 0.0, 2.0) == 0.5
