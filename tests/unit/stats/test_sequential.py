import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.exceptions import GroupTooSmallError, InvalidParameterError
from equipoise.stats.sequential import (
    confidence_sequence,
    date_change,
    e_detector,
    e_holm,
    e_process,
    mixture_log_e,
    mixture_radius,
)


def test_the_radius_is_where_the_mixture_reaches_one_over_alpha():
    variance, rho = np.array([0.0, 1.0, 50.0, 1e6]), np.array(25.0)
    at = mixture_radius(variance, rho, 0.01)
    assert_allclose(mixture_log_e(at, variance, rho), np.log(100.0), rtol=1e-12)


def test_a_batch_that_says_nothing_changes_nothing():
    factor = np.log([[2.0], [1.0], [3.0]])
    known = np.array([True, False, True])
    whole = e_process(factor, informative=known)
    assert_allclose(whole[[0, 2]], e_process(factor[known]))
    assert whole[1] == whole[0]


def test_money_not_yet_placed_is_kept():
    # All factors zero: what was placed is lost, 1 / (2 t) still waits.
    path = np.exp(e_process(np.full((4, 1), -np.inf)))
    assert_allclose(path, [1 / 2, 1 / 4, 1 / 6, 1 / 8])


def test_the_detector_begins_again_after_an_alarm():
    _, alarm = e_detector(np.log(np.full((9, 1), 2.0)), run_length=10.0)
    assert alarm.tolist() == [False, False, True] * 3


def test_the_detector_waits_where_a_batch_says_nothing():
    known = np.array([True, False, True, True])
    log_r, alarm = e_detector(np.log(np.full((4, 1), 2.0)), run_length=10.0, informative=known)
    assert_allclose(np.exp(log_r), [2, 2, 6, 14])
    assert alarm.tolist() == [False, False, False, True]


def test_e_holm_by_hand():
    # 30 alone; with 0.5: 15.25; with 0.5 and 2: 10.83. 2 with 0.5: 1.25.
    adjusted = np.exp(e_holm(np.log([30.0, 2.0, 0.5])))
    assert_allclose(adjusted, [32.5 / 3, 1.25, 0.5])


def test_a_family_of_one_is_not_adjusted():
    assert_allclose(e_holm(np.log([[7.0]])), np.log([[7.0]]))


def test_a_change_is_dated_by_hand():
    # From batch 2 on: 12^2 / (2 * 2) = 36; from 1: 24; from 0: 18.
    found = date_change(np.array([0.0, 0.0, 6.0, 6.0]), np.ones(4))
    assert (found.best, found.low, found.high, found.sign) == (2, 2, 2, 1)
    wide = date_change(np.array([0.0, 0.0, 2.0, 2.0]), np.ones(4))
    assert (wide.best, wide.low, wide.high) == (2, 0, 3)


def test_what_speaks_against_a_change_dates_none():
    # Nothing above zero in that direction; and the last batch says nothing at all.
    assert date_change(np.array([-1.0, -1.0]), np.array([1.0, 0.25]), sign=1).best == 0
    assert date_change(np.array([0.5, 0.0]), np.array([1.0, 0.0])).best == 0


def test_a_fall_is_dated_like_a_rise():
    score = np.array([0.1, -0.2, 4.0, 5.0, 3.0])
    up, down = date_change(score, np.ones(5)), date_change(-score, np.ones(5))
    assert (up.best, up.low, up.high, up.sign) == (down.best, down.low, down.high, -down.sign)


def test_the_sequence_shows_nothing_before_the_burn_in(rng):
    found = confidence_sequence(rng.normal(size=60))
    assert np.isnan(found.low[:49]).all()
    assert np.isfinite(found.low[49:]).all()


def test_looks_at_the_ends_of_batches_are_looks_of_the_whole_sequence(rng):
    x = rng.exponential(size=200)
    ends = np.array([60, 110, 199])
    batch = np.repeat([0, 1, 2], [61, 50, 89])
    every, some = (
        confidence_sequence(x, burn_in=61),
        confidence_sequence(x, batch=batch, burn_in=61),
    )
    assert_allclose(some.low, every.low[ends])
    assert_allclose(some.confidence_interval(0.95), (every.low[-1], every.high[-1]))


@pytest.mark.parametrize("null", [0.9, 1.0, 1.3, 2.0])
def test_the_p_value_is_small_exactly_when_some_interval_excludes_the_null(rng, null):
    found = confidence_sequence(1 + rng.normal(size=300), null=null)
    outside = (found.low > null) | (found.high < null)
    assert (found.p_value <= 0.05) == bool(outside.any())


def test_numbers_far_from_zero_keep_their_digits(rng):
    x = rng.normal(size=100)
    near, far = confidence_sequence(x), confidence_sequence(x + 1e8, null=1e8)
    assert_allclose(far.high - 1e8, near.high, atol=1e-6)


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        (np.zeros(10), {}, "needs 50 values"),
        (np.full(60, 3.0), {}, "first 50 values are all 3"),
        (np.arange(60.0), {"batch": np.arange(60)[::-1]}, "must not decrease"),
        (np.arange(60.0), {"batch": np.arange(3)}, "one entry for each of the 60"),
        (np.arange(60.0), {"confidence_level": 95}, r"Pass 0\.95"),
    ],
)
def test_bad_streams_are_refused(x, options, message):
    with pytest.raises((InvalidParameterError, GroupTooSmallError), match=message):
        confidence_sequence(x, **options)


def test_the_sequence_reads_like_a_sentence(rng):
    assert "for all looks together" in str(confidence_sequence(rng.normal(size=80)))
