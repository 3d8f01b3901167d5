import pytest

from equipoise.search.solver import Solution


def test_the_gap_is_relative_and_unknown_without_a_cost_or_a_bound():
    assert Solution(status="optimal", cost=4.0, bound=3.0).gap == pytest.approx(0.25)
    assert Solution(status="optimal", cost=4.0, bound=5.0).gap == 0.0
    assert Solution(status="time limit", bound=3.0).gap is None
    assert Solution(status="time limit", cost=4.0).gap is None
