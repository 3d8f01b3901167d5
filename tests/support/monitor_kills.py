"""Kill a process that adds batches to a state, again and again; count what it leaves.

Run by hand with a number of kills: ``python tests/support/monitor_kills.py 500``. Each kill hits a
fork of this process, so that no time is lost with imports.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from equipoise.monitoring.state import Batch, Cell, MonitorState
from equipoise.monitoring.storage import read_state, update_state

CONFIG = {"metrics": ["selection_rate"], "group": ["race"]}


def batch(k):
    cells = tuple(
        Cell.of_counts([f"level {level}"], "selection_rate", 100.0 + k, float(level + k % 50))
        for level in range(20)
    )
    return Batch(id=f"b{k:06}", rows=2000, file_digest=f"sha256:{k}", cells=cells)


def add(path, k):
    empty = MonitorState(config=CONFIG, salt="s")
    update_state(path, lambda state: (state or empty).append(batch(k)))


def worker(path, first, pipe):
    """Add batches one after the other, saying so after each."""
    for k in range(first, 1_000_000):
        add(path, k)
        os.write(pipe, f"{k}\n".encode())


def kill_repeatedly(folder, kills, seed=0):
    """Return how many batches were confirmed and are on file, and which are missing or wrong."""
    path = Path(folder) / "state.json"
    chance = random.Random(seed)
    confirmed, start = set(), 0
    for _ in range(kills):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            # The last batch on file is added again: it must not count twice.
            worker(path, max(start - 1, 0), write)
        os.close(write)
        with os.fdopen(read) as stream:
            first = stream.readline()
            # Short ones hit the first write, long ones a later one.
            time.sleep(chance.uniform(0.0, chance.choice([0.02, 0.3])))
            os.kill(child, signal.SIGKILL)
            rest = stream.read()
        os.waitpid(child, 0)
        confirmed.update(int(line) for line in (first + rest).split("\n")[:-1])
        on_file = {one.id for one in read_state(path).batches}
        missing = [k for k in confirmed if batch(k).id not in on_file]
        if missing:
            return {"missing": missing}
        start = len(on_file)
    state = read_state(path)
    ids = [one.id for one in state.batches]
    return {
        "kills": kills,
        "batches": len(ids),
        "confirmed": len(confirmed),
        "missing": [],
        "twice": len(ids) - len(set(ids)),
        "wrong": [one.id for k, one in enumerate(state.batches) if one != batch(k)],
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(kill_repeatedly(folder, int(sys.argv[1]))))
