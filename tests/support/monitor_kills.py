"""Kill a process while it writes the state of a monitor, again and again; count what it leaves.

Run by hand: ``python tests/support/monitor_kills.py state 500``, or ``command`` in place of
``state`` to kill ``equipoise monitor`` itself. Each kill hits a fork of this process, so that no
time is lost with imports. The fork says when a write begins; the kill follows after a delay that
is spread over the length of such a write, and a little beyond it.
"""

import io
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path

from equipoise.monitoring import storage
from equipoise.monitoring.state import Batch, Cell, MonitorState
from equipoise.monitoring.storage import read_state, update_state

CONFIG = {"metrics": ["selection_rate"], "group": ["race"]}
PLAN = """
[data]
path = "b0.csv"
group = "sex"
y_pred = "hired"
[[check]]
question = "monitor"
metric = "selection_rate"
"""


def name(k):
    return f"b{k:06}"


def batch(k):
    cells = tuple(
        Cell.of_counts([f"level {level}"], "selection_rate", 100.0 + k, float(level + k % 50))
        for level in range(20)
    )
    return Batch(id=name(k), rows=2000, file_digest=f"sha256:{k}", cells=cells)


def add(path, k):
    empty = MonitorState(config=CONFIG, salt="s")
    update_state(path, lambda state: (state or empty).append(batch(k)))


def hired(k):
    """Return how many women and men of batch k were hired, of 100 each."""
    return 30.0 + k % 20, 40.0 + k // 20 % 20


def add_by_command(path, k):
    """Run ``equipoise monitor`` on a file."""
    import typer

    from equipoise.cli.app import app

    file = path.with_name(f"b{k}.csv")
    people = [
        f"{sex},{int(i < ones)},{k}"
        for sex, ones in zip("FM", hired(k), strict=True)
        for i in range(100)
    ]
    file.write_text("sex,hired,batch\n" + "\n".join(people) + "\n")
    path.with_name("plan.toml").write_text(PLAN)
    arguments = ["monitor", path.name, file.name, "--id", name(k), "--quiet", "--plan", "plan.toml"]
    with redirect_stdout(io.StringIO()):
        typer.main.get_command(app).main(arguments, standalone_mode=False)


WAYS = {
    "state": (add, lambda k: tuple(cell.u for cell in batch(k).cells)),
    "command": (add_by_command, hired),
}


def load_command():
    """Import what the command needs; DuckDB itself is started by each fork."""
    import duckdb  # noqa: F401
    import pyarrow as pa  # noqa: F401

    import equipoise.cli.app
    import equipoise.cli.delivery
    import equipoise.data.duckdb
    import equipoise.plans.watching  # noqa: F401


def worker(path, adds, first, pipe):
    """Add batches one after the other; say when a write begins and when a batch was added."""
    write = storage.write_state

    def told(*arguments):
        os.write(pipe, b"write\n")
        write(*arguments)

    storage.write_state = told
    for k in range(first, first + 1000):
        adds(path, k)
        os.write(pipe, f"{k}\n".encode())


def kill_in_write(path, adds, first, nth, delay):
    """Kill a fork after the nth write began; return the batches it said it had added."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            worker(path, adds, first, write)
        finally:
            os._exit(1)
    os.close(write)
    told, writes = [], 0
    with os.fdopen(read) as stream:
        while writes < nth:
            word = stream.readline()
            if not word:
                raise RuntimeError("the process ended by itself")
            writes += word == "write\n"
            told.append(word)
        until = time.perf_counter() + delay
        while time.perf_counter() < until:
            pass
        os.kill(child, signal.SIGKILL)
        # Words in the pipe were said before the kill.
        told += stream.readlines()
    os.waitpid(child, 0)
    return [int(word) for word in told if word != "write\n"]


def place_of(path, before, state, k, *, confirmed):
    """Say where in the write of batch k the kill hit."""
    if confirmed:
        return "after the call"
    if state.contains(name(k)):
        return "after the rename"
    beside = leftover(path)
    if beside is None or beside == before:
        return "before the new file"
    try:
        json.loads(beside[0])
    except ValueError:
        return "half written"
    return "before the rename"


def leftover(path):
    """Return the content and the time of a file that a kill has left beside the state."""
    try:
        beside = path.with_name(f".{path.name}.tmp")
        return beside.read_text(), beside.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def write_seconds(folder, state):
    """Return how long it takes to write a state."""
    begin = time.perf_counter()
    storage.write_state(folder / "timed.json", state)
    return time.perf_counter() - begin


def kill_repeatedly(folder, way, kills, seed=0):
    """Return where kills hit, how many batches are confirmed and on file, and what is wrong."""
    adds, expected = WAYS[way]
    if way == "command":
        load_command()
    os.chdir(folder)
    path = Path(folder) / "state.json"
    chance = random.Random(seed)
    confirmed, places = set(), Counter()
    state = MonitorState(config=CONFIG, salt="s")
    for _ in range(kills):
        # The last batch on file is added again, which writes nothing: it must not count twice.
        start, nth = len(state.batches), chance.choice([1, 1, 1, 2])
        before = leftover(path)
        delay = chance.uniform(0.0, 1.3 * write_seconds(Path(folder), state))
        told = kill_in_write(path, adds, max(start - 1, 0), nth, delay)
        confirmed.update(told)
        state = read_state(path) or state
        hit = start + nth - 1
        places[place_of(path, before, state, hit, confirmed=hit in told)] += 1
        missing = [k for k in confirmed if not state.contains(name(k))]
        if missing:
            return {"missing": missing}
    ids = [one.id for one in state.batches]
    return {
        "kills": kills,
        "places": dict(sorted(places.items())),
        "batches": len(ids),
        "confirmed": len(confirmed),
        "missing": [],
        "twice": len(ids) - len(set(ids)),
        "wrong": [
            one.id
            for k, one in enumerate(state.batches)
            if (one.id, tuple(cell.u for cell in one.cells)) != (name(k), expected(k))
        ],
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(kill_repeatedly(folder, sys.argv[1], int(sys.argv[2]))))
