import numpy as np
import pytest

from equipoise.stats.summary import Interval, normal_quantile, p_line, summary_table


def test_what_is_not_known_is_a_dash_and_what_is_not_bounded_is_infinite():
    lines = summary_table(
        "Gaps",
        {
            "group": ["a", "b", "c"],
            "gap": [np.nan, None, 0.5],
            "interval": [Interval(np.nan, np.nan), Interval(-np.inf, 1.0), Interval(0.25, np.inf)],
            "p": [np.nan, 1, 0.0004],
        },
    ).splitlines()
    assert [line.split() for line in lines[2:]] == [
        ["a", "-", "-", "-"],
        ["b", "-", "(-inf,", "1]", "1.000"],
        ["c", "0.5", "[0.25,", "inf)", "<0.001"],
    ]


def test_a_line_has_an_equals_sign_only_before_a_number():
    assert p_line(3.84, 0.05, df=1) == "statistic = 3.84 on 1 df, p = 0.050"
    assert p_line(30.0, 1e-7, name="t") == "t = 30, p <0.001"


def test_the_critical_value_is_that_of_both_sides():
    assert normal_quantile(0.95) == pytest.approx(1.959964, abs=1e-6)
