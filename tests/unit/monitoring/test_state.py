import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.exceptions import DataError
from equipoise.monitoring.state import Alarm, Batch, Cell, ClusterSum, MonitorState, fingerprint
from equipoise.stats.disparity.gap_sequence import BatchSums, gap_sequence

CONFIG = {"metrics": ["fpr"], "group": ["race"], "reference": "rest", "margin": 0.0}


def batch(name, ones=3, *, time="", levels=("a", "b"), file=None):
    cells = tuple(Cell.of_counts([level], "fpr", 20.0, float(ones)) for level in levels)
    return Batch(
        id=name,
        rows=20 * len(levels),
        file_digest=file or f"sha256:{name}{ones}",
        cells=cells,
        time=time,
    )


@pytest.fixture
def state():
    return MonitorState(config=CONFIG, salt="s").append(batch("W1")).append(batch("W2", 5))


def test_a_batch_seen_before_changes_nothing(state):
    assert state.append(batch("W1")) is state


def test_a_batch_seen_before_with_other_content_is_refused(state):
    with pytest.raises(DataError, match="'W1' was counted with other content"):
        state.append(batch("W1", 4))


def test_the_same_file_under_another_name_is_refused_unless_it_is_allowed(state):
    again = batch("W3", 3, file="sha256:W13")
    with pytest.raises(DataError, match="content of batch 'W1'"):
        state.append(again)
    assert state.append(again, allow_identical=True).contains("W3")


def test_sums_of_another_metric_are_refused(state):
    odd = Batch(id="W3", rows=2, file_digest="x", cells=(Cell.of_counts(["a"], "tpr", 2, 1),))
    with pytest.raises(DataError, match="'tpr', which this state does not watch"):
        state.append(odd)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ((Cell.of_counts(["a"], "fpr", np.nan, 1),), "not finite"),
        ((Cell.of_counts(["a"], "fpr", 2, 1),) * 2, "a cell twice"),
    ],
)
def test_impossible_cells_are_refused(state, cells, message):
    with pytest.raises(DataError, match=message):
        state.append(Batch(id="W3", rows=2, file_digest="x", cells=cells))


def test_a_changed_plan_is_refused_by_its_first_difference(state):
    state.check_config(dict(reversed(CONFIG.items())))
    with pytest.raises(DataError, match=r"margin = 0\.0; the plan says 0\.05"):
        state.check_config({**CONFIG, "margin": 0.05})


def test_the_sums_are_those_of_the_batches(state):
    found = state.append(batch("W3", 7, levels=("a", "b", "new"))).sums("fpr", binary=True)
    assert found.batches == ("W1", "W2", "W3")
    assert found.groups == (("a",), ("b",), ("new",))
    assert_allclose(found.sums.n, [[20, 20, 0], [20, 20, 0], [20, 20, 20]])
    assert_allclose(found.sums.u, [[3, 3, 0], [5, 5, 0], [7, 7, 7]])


def test_a_state_that_was_written_and_read_is_the_same(state):
    clustered = replace(
        batch("W3", 6),
        clusters=(ClusterSum(cluster=state.hashed(7), group=("a",), metric="fpr", w=2.0, u=1.0),),
    )
    full = state.append(clustered).with_alarms(
        [Alarm(finding="fpr of race=a", batch="W2", e_value=31.5, epoch=1)]
    )
    full = full.acknowledge("fpr of race=a@W2", "retrained").restart("new model")
    text = json.dumps(full.to_dict())
    assert MonitorState.from_dict(json.loads(text)) == full
    assert "7" not in text.split('"clusters"')[1][:4]


def test_clusters_are_kept_by_hash_and_summed_over_batches():
    state = MonitorState(config=CONFIG, salt="s")
    rng = np.random.default_rng(0)
    y, cell = rng.random(120), rng.integers(0, 2, 120)
    user, week = rng.integers(0, 30, 120), np.repeat([0, 1], 60)
    for w in (0, 1):
        rows = week == w
        cells, clusters = [], []
        for c, level in enumerate("ab"):
            x = y[rows & (cell == c)]
            n = float(len(x))
            cells.append(
                Cell(
                    group=(level,),
                    metric="fpr",
                    n=n,
                    w=n,
                    u=x.sum(),
                    ww=n,
                    uw=x.sum(),
                    uu=(x**2).sum(),
                )
            )
            for one in np.unique(user[rows & (cell == c)]):
                own = y[rows & (cell == c) & (user == one)]
                clusters.append(
                    ClusterSum(
                        cluster=state.hashed(one),
                        group=(level,),
                        metric="fpr",
                        w=len(own),
                        u=own.sum(),
                    )
                )
        state = state.append(
            Batch(
                id=str(w), rows=60, file_digest=str(w), cells=tuple(cells), clusters=tuple(clusters)
            )
        )
    eye = np.eye(2, dtype=bool)
    kept = gap_sequence(state.sums("fpr", binary=False).sums, eye[:, :1], eye[:, 1:])
    direct = gap_sequence(BatchSums.from_rows(y, week, cell, cluster=user), eye[:, :1], eye[:, 1:])
    assert_allclose(kept.variance, direct.variance)
    assert_allclose(kept.log_e, direct.log_e)


def test_merged_states_hold_each_batch_once_in_the_order_of_time():
    empty = MonitorState(config=CONFIG, salt="s")
    one = empty.append(batch("x:2", time="2026-02")).append(batch("x:4", time="2026-04"))
    two = empty.append(batch("y:3", time="2026-03")).append(batch("x:2", time="2026-02"))
    merged = one.merge(two)
    assert [b.id for b in merged.batches] == ["x:2", "y:3", "x:4"]
    assert merged == two.merge(one)
    assert merged.merge(one) == merged


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (MonitorState(config={**CONFIG, "margin": 0.1}, salt="s"), "margin"),
        (
            MonitorState(config=CONFIG, salt="s").restart("why not"),
            "restarted 0 times, the other 1",
        ),
        (
            MonitorState(config=CONFIG, salt="s").append(batch("W1", 9)),
            "'W1' has different content",
        ),
    ],
)
def test_states_that_do_not_fit_are_not_merged(state, other, message):
    with pytest.raises(DataError, match=message):
        state.merge(other)


def test_clusters_hashed_in_two_ways_are_not_merged():
    states = []
    for salt, name in (("s", "W1"), ("t", "W2")):
        part = ClusterSum(cluster="h", group=("a",), metric="fpr", w=1.0, u=0.0)
        states.append(
            MonitorState(config=CONFIG, salt=salt).append(replace(batch(name), clusters=(part,)))
        )
    with pytest.raises(DataError, match="different salts"):
        states[0].merge(states[1])


def test_an_alarm_is_acknowledged_but_never_deleted(state):
    first = Alarm(finding="fpr of race=a", batch="W1", e_value=25.0, epoch=1)
    raised = state.with_alarms([first])
    assert raised.with_alarms([replace(first, batch="W2", e_value=90.0)]) == raised
    assert raised.standing == (first,)
    seen = raised.acknowledge(first.id, "retrained")
    assert seen.standing == ()
    assert seen.alarms[0].acknowledged == "retrained"
    with pytest.raises(DataError, match=r"no alarm 'x'. Alarms that stand: 'fpr of race=a@W1'"):
        raised.acknowledge("x")
    # Merging keeps the acknowledgement, whichever side has it.
    assert seen.merge(raised) == raised.merge(seen)
    assert seen.merge(raised).standing == ()


def test_a_restart_begins_a_new_epoch_and_keeps_the_record(state):
    again = state.restart("the model was retrained").append(batch("W3", 8))
    assert again.epoch == 2
    assert again.sums("fpr", binary=True).batches == ("W3",)
    assert len(again.batches) == 3
    late = Alarm(finding="f", batch="W3", e_value=30.0, epoch=2)
    assert late.id == "f@W3#2"
    with pytest.raises(DataError, match="needs a reason"):
        state.restart(" ")


def test_a_state_changed_by_hand_is_refused(state):
    value = json.loads(json.dumps(state.to_dict()))
    value["batches"][0]["cells"][0][4] += 1
    with pytest.raises(DataError, match="changed by hand: batch 'W1'"):
        MonitorState.from_dict(value)
    value = state.to_dict()
    value["config"]["margin"] = 0.5
    with pytest.raises(DataError, match="changed by hand: the plan"):
        MonitorState.from_dict(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "not the state of a monitor"),
        ({"kind": "equipoise.monitor", "schema_version": 9}, "schema version 9"),
        ({"kind": "equipoise.monitor", "schema_version": 1}, "damaged: KeyError"),
    ],
)
def test_other_files_are_refused(value, message):
    with pytest.raises(DataError, match=message):
        MonitorState.from_dict(value)


def test_a_batch_cannot_be_in_a_state_twice():
    with pytest.raises(DataError, match="'W1' is in the state twice"):
        MonitorState(config=CONFIG, batches=(batch("W1"), batch("W1")))


def test_the_fingerprint_of_sums_does_not_depend_on_their_order():
    one = batch("W1")
    assert replace(one, cells=one.cells[::-1]).cells_digest == one.cells_digest
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})


def test_each_state_has_its_own_salt():
    assert MonitorState(config=CONFIG).salt != MonitorState(config=CONFIG).salt


@pytest.mark.parametrize("name", ["{}", "week-{}", "2026-W{}"])
def test_week_nine_comes_before_week_ten_when_states_are_merged(name):
    state = MonitorState(config=CONFIG, salt="s")
    for week in range(1, 13):
        state = state.append(batch(f"W{week}", week, time=name.format(week)))
    merged = MonitorState(config=CONFIG, salt="t").merge(state)
    assert [one.id for one in merged.batches] == [f"W{week}" for week in range(1, 13)]


@pytest.mark.parametrize("salts", ["ab", "ba"])
def test_the_salt_of_the_clusters_is_kept_when_states_are_merged(salts):
    clusters = (ClusterSum(cluster="h", group=("a",), metric="fpr", w=1.0, u=1.0),)
    own = replace(batch("W1"), clusters=clusters)
    site = MonitorState(config=CONFIG, salt=salts[0]).append(own)
    empty = MonitorState(config=CONFIG, salt=salts[1])
    assert empty.merge(site).salt == site.merge(empty).salt == salts[0]


def test_a_file_in_two_states_counts_once():
    config = {"metrics": ["fpr"]}

    def site(name, digest):
        cells = (Cell.of_counts(["a"], "fpr", 10, 3),)
        batch = Batch(id=name, rows=10, file_digest=digest, cells=cells)
        return MonitorState(config=config).append(batch)

    with pytest.raises(DataError, match="'south' of the other state has the content of batch 'no"):
        site("north", "sha256:1").merge(site("south", "sha256:1"))
    both = site("north", "sha256:1").merge(site("south", "sha256:1"), allow_identical=True)
    assert len(both.batches) == 2
    # What both states have accepted as two batches is no news.
    assert both.merge(both) == both
    assert len(site("north", "sha256:1").merge(site("south", "sha256:2")).batches) == 2
