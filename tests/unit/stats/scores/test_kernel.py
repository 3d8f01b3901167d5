import numpy as np
import pytest

from equipoise.exceptions import DataError, EstimationError, InvalidParameterError
from equipoise.stats.scores.cells import ScoreCells
from equipoise.stats.scores.kernel import (
    kernel_regression,
    paper_bandwidth,
    rule_of_thumb,
    smoother,
)


def test_a_straight_line_is_recovered_without_bias_by_local_lines():
    score = np.linspace(0, 1, 50)
    curve = kernel_regression(2.0 + 3.0 * score, score, [0.0, 0.4, 1.0], bandwidth=0.3)
    np.testing.assert_allclose(curve.estimate, [2.0, 3.2, 5.0])
    np.testing.assert_allclose(curve.standard_error, 0.0, atol=1e-7)


def test_bandwidth_zero_is_the_mean_at_the_score():
    curve = kernel_regression([1, 0, 1, 1], [0.1, 0.1, 0.2, 0.2], [0.1, 0.2], bandwidth=0)
    np.testing.assert_allclose(curve.estimate, [0.5, 1.0])
    np.testing.assert_allclose(curve.standard_error, [np.sqrt(0.5) / 2, 0.0])


def test_a_lone_score_gives_its_mean_when_no_line_can_be_fitted():
    curve = kernel_regression([1, 0, 5], [0.0, 0.0, 100.0], [0.1], bandwidth=1.0)
    np.testing.assert_allclose(curve.estimate, [0.5])


def test_slope_is_that_of_the_line():
    support = np.linspace(0, 1, 30)
    fit = smoother(np.array([0.3]), support, np.ones(30), 0.2)
    np.testing.assert_allclose(fit.slope @ (1.0 + 4.0 * support), [4.0])


def test_a_point_without_neighbours_is_an_error_that_names_it():
    with pytest.raises(EstimationError, match="1 of 2 points have no score near enough"):
        kernel_regression([1, 0, 1], [0.1, 0.2, 0.3], [0.2, 99.0], bandwidth=0.1)


def test_a_constant_score_has_no_bandwidth():
    with pytest.raises(DataError, match="`y_score` must vary; every score is"):
        kernel_regression([1, 0, 1], [0.5, 0.5, 0.5], [0.5])


def test_wrong_options_are_refused():
    with pytest.raises(InvalidParameterError, match="`bandwidth` must not be negative"):
        kernel_regression([1, 0], [0.1, 0.2], [0.1], bandwidth=-1.0)
    with pytest.raises(InvalidParameterError, match="`degree` must be one of"):
        kernel_regression([1, 0], [0.1, 0.2], [0.1], bandwidth=1.0, degree=2)


def test_rule_of_thumb_uses_the_smaller_spread_and_the_number_of_users():
    score = np.arange(100.0)
    cells = ScoreCells.from_rows(score, score, np.zeros(100, dtype=int))
    sd, iqr = score.std(), 74.0 - 24.0
    np.testing.assert_allclose(rule_of_thumb(cells), 1.06 * min(sd, iqr / 1.349) * 100**-0.2)
    users = ScoreCells.from_rows(
        score, score, np.zeros(100, dtype=int), cluster=np.arange(100) // 4
    )
    np.testing.assert_allclose(rule_of_thumb(users) / rule_of_thumb(cells), 4**0.2)


def test_half_of_the_scores_tied_leaves_the_standard_deviation():
    score = np.concatenate([np.zeros(80), np.ones(20)])
    cells = ScoreCells.from_rows(score, score, np.zeros(100, dtype=int))
    np.testing.assert_allclose(rule_of_thumb(cells), 1.06 * 0.4 * 100**-0.2)


def test_bandwidth_of_the_paper_has_a_floor_and_clips_scores():
    h = paper_bandwidth(np.array([-1.0, 0.0, 0.5, 2.0]), 32)
    np.testing.assert_allclose(h, [0.05, 0.05, 0.265, 0.05])


def test_scores_without_weight_have_no_bandwidth():
    cells = ScoreCells.from_rows(
        [0.0, 1.0, 1.0], [0.1, 0.5, 0.9], [0, 0, 0], n_groups=1, weight=[0.0, 0.0, 0.0]
    )
    with pytest.raises(DataError, match="Every row at these scores has weight zero"):
        rule_of_thumb(cells)
