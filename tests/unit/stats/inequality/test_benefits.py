import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.inequality.benefits import (
    SPEICHER,
    check_matrix,
    exact_bounds,
    hard_benefits,
    soft_benefits,
)
from equipoise.stats.inequality.index import entropy_index


def test_default_benefit_is_decision_less_outcome_plus_one():
    y, decision = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    np.testing.assert_array_equal(hard_benefits(y, decision), decision - y + 1)


def test_matrix_is_indexed_by_decision_then_outcome():
    matrix = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert hard_benefits([2, 0], [0, 1], matrix=matrix).tolist() == [3.0, 4.0]


def test_soft_benefits_at_zero_and_one_are_the_hard_ones():
    y, decision = [0, 1, 1], [1.0, 0.0, 1.0]
    np.testing.assert_array_equal(soft_benefits(y, decision), hard_benefits(y, decision))


def test_soft_inequality_is_at_most_that_of_drawn_decisions(rng):
    y, s = rng.integers(2, size=20_000), rng.uniform(size=20_000)
    drawn = hard_benefits(y, (rng.random(20_000) < s).astype(int))
    assert entropy_index(soft_benefits(y, s), order=2.0) < entropy_index(drawn, order=2.0)


@pytest.mark.parametrize("matrix", [[1, 2], [[1, 2, 3], [1, 2, 3]], [[1.0]]])
def test_matrix_of_the_wrong_shape_is_refused(matrix):
    with pytest.raises(InvalidParameterError, match="must be square, one row for each decision"):
        check_matrix(matrix)


def test_soft_benefits_need_a_two_by_two_matrix():
    with pytest.raises(InvalidParameterError, match="must be 2 x 2"):
        soft_benefits([0], [0.5], matrix=np.ones((3, 3)))


@pytest.mark.parametrize("matrix", [[[1, -1], [1, 1]], [[0, 0], [0, 0]]])
def test_negative_and_all_zero_matrices_are_refused(matrix):
    with pytest.raises(InvalidParameterError, match="at least zero and one that is positive"):
        check_matrix(matrix)


def test_labels_outside_the_matrix_are_refused():
    with pytest.raises(InvalidParameterError, match=r"`y_true` must hold labels 0 to 1.*found 2"):
        hard_benefits([0, 2], [0, 1])
    with pytest.raises(InvalidParameterError, match=r"`y_pred` must hold labels.*found 0\.5"):
        hard_benefits([0, 1], [0.5, 1])


def test_scores_outside_the_unit_interval_are_refused():
    with pytest.raises(InvalidParameterError, match=r"from 0\.1 to 1\.5"):
        soft_benefits([0, 1], [0.1, 1.5])


def test_default_matrix_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        SPEICHER[0, 0] = 5.0


def test_exact_bounds_hold_the_smallest_and_largest_index_of_their_box(rng):
    matrix = np.array([[1.0, 1.0], [0.1, 0.9]])
    bounds = exact_bounds([[50, 25], [2, 23]], matrix=matrix, order=0.5)
    points = rng.uniform(size=(4000, 3))
    ends = np.array([bounds.base_rate, bounds.fpr, bounds.fnr])
    p, u, v = (ends[:, :1] + points.T * np.diff(ends)).tolist()
    for p_, u_, v_ in zip(p[:300], u[:300], v[:300], strict=True):
        mass = [(1 - p_) * (1 - u_), p_ * v_, (1 - p_) * u_, p_ * (1 - v_)]
        index = entropy_index(matrix.ravel(), order=0.5, weight=mass)
        assert bounds.low - 1e-12 <= index <= bounds.high + 1e-9


def test_exact_bounds_need_both_outcomes():
    with pytest.raises(InvalidParameterError, match="people of both outcomes"):
        exact_bounds([[5, 0], [5, 0]])
