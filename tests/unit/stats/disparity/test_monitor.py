import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.disparity.gap_sequence import BatchSums, gap_sequence
from equipoise.stats.disparity.monitor import monitor_gaps, raise_alarms


@pytest.fixture
def late(rng):
    """Group b does worse from batch 12 on."""
    batch = np.repeat(np.arange(40), 120)
    group = rng.choice(["a", "b", "c"], size=len(batch))
    rate = 0.5 - 0.3 * ((batch >= 12) & (group == "b"))
    return (rng.random(len(batch)) < rate).astype(float), group, batch


def test_an_alarm_is_raised_after_the_change_and_dated_to_it(late):
    found = monitor_gaps(*late)
    b = found.groups.index("b")
    assert found.alarms.batch[b] >= 12
    assert found.since[b].low <= 12 <= found.since[b].high
    assert found.since[b].sign == -1
    assert found.p_value[b] <= 0.05
    assert "alarm in" in str(found)


def test_only_the_first_crossing_is_an_alarm(late):
    found = monitor_gaps(*late)
    assert found.alarms.raised.sum(axis=0).max() == 1


def test_a_named_group_is_the_reference(late):
    found = monitor_gaps(*late, reference="c")
    assert found.groups == ("a", "b")
    known = monitor_gaps(*late, reference=0.5)
    assert known.groups == ("a", "b", "c")


def test_the_family_needs_more_evidence_than_each_alone(late):
    y, group, batch = late
    alone = monitor_gaps(y, group, batch, adjust="none")
    family = monitor_gaps(y, group, batch)
    assert_allclose(alone.alarms.e_value, family.alarms.e_value)
    assert (family.alarms.adjusted <= alone.alarms.adjusted * (1 + 1e-12)).all()
    assert (family.alarms.p_value >= family.alarms.p_value_raw).all()


def test_e_bh_by_hand():
    # e = 50, 30, 1 of three: 30 is reached by two, 2 * 30 / 3 = 20; 50 / 3 < 20.
    sums = BatchSums.of_counts(np.tile([50.0, 150.0], (5, 3)), np.tile([25.0, 40.0], (5, 3)))
    cells = np.eye(6, dtype=bool)
    found = gap_sequence(sums, cells[:, ::2], cells[:, 1::2])
    from dataclasses import replace

    forced = replace(found, log_e=np.log([[50.0, 30.0, 1.0]] * 5))
    alarms = raise_alarms([forced], adjust="e-bh")
    assert_allclose(alarms.adjusted[0], [20.0, 20.0, 1.0])
    assert_allclose(alarms.joint, 27.0)
    assert alarms.batch.tolist() == [0, 0, -1]


def test_metrics_are_one_family():
    sums = BatchSums.of_counts(np.tile([50.0, 150.0], (5, 1)), np.tile([30.0, 40.0], (5, 1)))
    first, second = np.eye(2, 1, dtype=bool), np.eye(2, 1, -1, dtype=bool)
    one = gap_sequence(sums, first, second)
    still = gap_sequence(
        BatchSums.of_counts(np.tile([50.0, 150.0], (5, 1)), np.tile([20.0, 60.0], (5, 1))),
        first,
        second,
    )
    both = raise_alarms([one, still])
    assert both.adjusted.shape == (5, 2)
    e = both.e_value
    assert_allclose(both.adjusted[:, 0], np.minimum(e[:, 0], e.mean(axis=1)))


def test_the_run_length_of_a_family_is_shared():
    sums = BatchSums.of_counts(np.tile([50.0, 150.0], (30, 2)), np.tile([28.0, 60.0], (30, 2)))
    cells = np.eye(4, dtype=bool)
    pair = gap_sequence(sums, cells[:, ::2], cells[:, 1::2])
    single = gap_sequence(sums, cells[:, :1], cells[:, 1:2])
    two = raise_alarms([pair], alarm="arl", run_length=100.0)
    one = raise_alarms([single], alarm="arl", run_length=200.0)
    assert_allclose(two.raised[:, :1], one.raised)
    assert two.raised.sum() > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alarm": "arl"}, "run_length"),
        ({"run_length": 100.0}, "run_length"),
        ({"adjust": "bh"}, "e-bh"),
        ({"alpha": 5}, r"Pass 0\.05"),
    ],
)
def test_bad_options_are_refused(options, message):
    sums = BatchSums.of_counts([[5.0, 5.0]], [[1.0, 2.0]])
    found = gap_sequence(sums, np.eye(2, 1, dtype=bool), np.eye(2, 1, -1, dtype=bool))
    with pytest.raises(InvalidParameterError, match=message):
        raise_alarms([found], **options)


def test_an_unknown_reference_is_refused(late):
    with pytest.raises(InvalidParameterError, match="one of the groups 'a', 'b', 'c'"):
        monitor_gaps(*late, reference="d")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "options", [{"margin": 0.05}, {"one_sided": True}, {"one_sided": True, "margin": 0.05}]
)
def test_a_change_beyond_the_margin_is_dated(sign, options):
    n = np.tile([200.0, 600.0], (20, 1))
    ones = np.tile([100.0, 300.0], (20, 1))
    ones[10:, 0] += sign * 50
    side = {1: "greater", -1: "less"}[sign] if options.pop("one_sided", False) else "two-sided"
    eye = np.eye(2, dtype=bool)
    found = gap_sequence(
        BatchSums.of_counts(n, ones), eye[:, :1], eye[:, 1:], alternative=side, **options
    )
    date = found.date(0, 19)
    assert (date.best, date.sign) == (10, sign)
