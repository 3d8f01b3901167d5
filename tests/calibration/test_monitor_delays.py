"""The ways of looking that the calibration page compares, with binomial bounds."""

import numpy as np
import pytest

from calibration.monitor_delays import delays, weeks_needed
from support.rates import assert_at_least, assert_at_most

pytestmark = pytest.mark.calibration


def found(weeks):
    return np.isfinite(weeks).sum()


def test_only_the_monitor_and_bonferroni_keep_their_level(rng):
    r = 400
    when = delays(rng, 0.0, 52, 0, r)
    assert_at_most(found(when["monitor"]), r, 0.05)
    assert_at_most(found(when["weekly, Bonferroni"]), r, 0.05)
    assert_at_least(found(when["weekly, naive"]), r, 0.90)
    assert_at_least(found(when["all so far, naive"]), r, 0.25)


def test_the_monitor_finds_a_gap_about_when_one_planned_test_would(rng):
    r = 300
    when = delays(rng, 0.05, 52, 0, r)
    assert_at_least(found(when["monitor"]), r, 0.98)
    assert np.median(when["monitor"]) < 1.5 * weeks_needed(0.05, 0.8)
    assert np.median(when["weekly, Bonferroni"]) == np.inf


def test_a_gap_that_starts_late_is_found_from_its_start(rng):
    when = delays(rng, 0.05, 104, 26, 200)
    assert np.median(when["monitor"]) < 26 + 2.5 * weeks_needed(0.05, 0.8)
