"""Kill a process that adds batches to a state, again and again; count what it leaves.

Run by hand with a number of kills: ``python tests/support/monitor_kills.py 500``.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import equipoise
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


def worker(path, first, last):
    """Add batches one after the other, saying so after each."""
    for k in range(first, last):
        add(path, k)
        sys.stdout.write(f"{k}\n")
        sys.stdout.flush()


def kill_repeatedly(folder, kills, seed=0):
    """Return how many batches were confirmed, are on file, are missing or wrong."""
    path = Path(folder) / "state.json"
    chance = random.Random(seed)
    confirmed, start = set(), 0
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, __file__, "--worker", str(path), str(max(start - 2, 0)), "1000000"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(equipoise.__file__).parents[1])},
        )
        first = process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.03))
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read()
        process.wait()
        process.stdout.close()
        said = [int(line) for line in (first + rest).split("\n")[:-1]]
        confirmed.update(said)
        on_file = {one.id: one for one in read_state(path).batches}
        missing = [k for k in confirmed if batch(k).id not in on_file]
        if missing:
            return {"missing": missing, "batches": len(on_file)}
        start = len(on_file)
    state = read_state(path)
    ids = [one.id for one in state.batches]
    return {
        "missing": [],
        "batches": len(ids),
        "confirmed": len(confirmed),
        "twice": len(ids) - len(set(ids)),
        "gaps": ids != [batch(k).id for k in range(len(ids))],
        "wrong": [one.id for k, one in enumerate(state.batches) if one != batch(k)],
    }


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        worker(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            print(kill_repeatedly(folder, int(sys.argv[1])))
