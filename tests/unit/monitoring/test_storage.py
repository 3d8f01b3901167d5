import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import equipoise
from equipoise.exceptions import DataError
from equipoise.monitoring.state import MonitorState
from equipoise.monitoring.storage import locked, read_state, update_state, write_state
from support import monitor_kills
from support.monitor_kills import CONFIG, add, batch


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.json"


def test_there_is_no_state_before_the_first_batch(path):
    assert read_state(path) is None


def test_what_was_written_is_read(path):
    add(path, 0)
    add(path, 1)
    assert [one.id for one in read_state(path).batches] == ["b000000", "b000001"]


def test_a_batch_seen_before_does_not_touch_the_file(path):
    add(path, 0)
    before = path.stat().st_mtime_ns
    add(path, 0)
    assert path.stat().st_mtime_ns == before


def test_a_change_that_fails_leaves_the_old_state(path):
    add(path, 0)

    def broken(state):
        raise DataError("no")

    with pytest.raises(DataError, match="no"):
        update_state(path, broken)
    assert len(read_state(path).batches) == 1
    add(path, 1)


def test_a_write_that_fails_leaves_the_old_state(path, monkeypatch):
    add(path, 0)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("equipoise.monitoring.storage.os.fsync", full)
    with pytest.raises(DataError, match="cannot be written: No space left"):
        add(path, 1)
    monkeypatch.undo()
    assert len(read_state(path).batches) == 1
    assert sorted(one.name for one in path.parent.iterdir()) == [".state.json.lock", "state.json"]


def test_half_a_file_beside_the_state_does_no_harm(path):
    add(path, 0)
    path.with_name(".state.json.tmp").write_text('{"kind":', encoding="utf-8")
    add(path, 1)
    assert len(read_state(path).batches) == 2


def test_one_process_waits_for_another(path):
    started = threading.Event()

    def slowly(state):
        started.set()
        time.sleep(0.15)
        return (state or MonitorState(config=CONFIG, salt="s")).append(batch(0))

    thread = threading.Thread(target=update_state, args=(path, slowly))
    thread.start()
    started.wait()
    add(path, 1)
    thread.join()
    assert [one.id for one in read_state(path).batches] == ["b000000", "b000001"]


def test_waiting_ends(path):
    with (
        locked(path),
        pytest.raises(DataError, match=r"written by another process; gave up after 0\.05 sec"),
        locked(path, timeout=0.05),
    ):
        pass


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "cannot be read"),
        (b"{}", "not the state of a monitor"),
    ],
)
def test_files_that_are_no_state_are_refused(path, content, message):
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_state(path)


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(DataError, match=r"Folder '.*missing' does not exist"):
        add(tmp_path / "missing" / "state.json", 0)


def test_the_file_is_plain_json(path):
    write_state(path, MonitorState(config=CONFIG, salt="s"))
    assert json.loads(path.read_text(encoding="utf-8"))["kind"] == "equipoise.monitor"


@pytest.mark.skipif(os.name == "nt", reason="forks")
@pytest.mark.parametrize(
    ("way", "kills"),
    [
        ("state", 20),
        pytest.param("state", 500, marks=pytest.mark.slow),
        pytest.param("command", 500, marks=pytest.mark.slow),
    ],
)
def test_kills_during_the_write_lose_no_batch_and_count_none_twice(way, kills):
    done = subprocess.run(
        [sys.executable, monitor_kills.__file__, way, str(kills)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(equipoise.__file__).parents[1])},
    )
    found = json.loads(done.stdout)
    assert (found["missing"], found["twice"], found["wrong"]) == ([], 0, [])
    # A kill may come between the write and the word about it, never the other way round.
    assert found["batches"] >= found["confirmed"]
    assert sum(found["places"].values()) == kills
    # Kills that come when all is done would show nothing.
    assert found["places"].get("after the call", 0) < kills / 2
