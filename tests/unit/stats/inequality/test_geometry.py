import pytest

from equipoise.stats.inequality.geometry import is_monotone, turning_point, two_level_peak


@pytest.mark.parametrize(
    ("base_rate", "low", "high", "order", "monotone"),
    [
        (0.4, 0.05, 1.5, 1.5, True),
        (0.05, 0.05, 1.05, 2.0, False),  # turns at .0998, above .0975, at unit rate Q
        (0.05, 0.05, 0.19, 0.3, False),  # two levels are most unequal above Q
    ],
)
def test_each_condition_decides(base_rate, low, high, order, monotone):
    found = is_monotone(base_rate=base_rate, low=low, high=high, kind="punitive", order=order)
    assert found is monotone


def test_the_conditions_are_those_at_unit_rates_zero_q_and_one():
    at_q, at_one = (turning_point(q, low=0.05, high=1.5, order=1.5) for q in (0.4, 1.0))
    assert at_q < 0.05 + 0.95 * 0.4
    assert at_one == pytest.approx(0.617661, abs=1e-6)
    assert two_level_peak(0.05 / 0.19, order=0.3) > 0.05
