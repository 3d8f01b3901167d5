"""Kill ``equipoise audit`` while it writes its files, again and again; count what it leaves.

Run by hand: ``python tests/support/audit_kills.py files 500`` kills a fork that does nothing but
write the three files of one run after the other; ``command`` in place of ``files`` kills a fork
that runs the whole command. The kill follows after a delay that is spread over the length of what
is killed. Run k writes the number k into each of its files.
"""

import io
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from equipoise.cli.files import write_all

NAMES = ("report.html", "results.json", "gate.xml")
PLAN = """
[data]
path = "rows.csv"
group = "sex"
y_pred = "hired"
[[check]]
question = "disparity"
metric = "selection_rate"
id = "run-{k}-of-many"
"""


def write_files(folder, k):
    write_all({folder / name: f"run-{k}-of-many\n" + "x" * 300_000 + "\nend\n" for name in NAMES})


def run_command(_folder, _k):
    import typer

    from equipoise.cli.app import app

    options = [("--output", "--json", "--junit")[i] for i in range(3)]
    files = [part for pair in zip(options, NAMES, strict=True) for part in pair]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        typer.main.get_command(app).main(
            ["audit", "plan.toml", "--quiet", *files], standalone_mode=False
        )


def runs_of(file):
    """Return the runs that a file names, and whether it is whole."""
    text = file.read_text(encoding="utf-8")
    ends = {".html": "</html>", ".json": "}", ".xml": "</testsuites>"}
    whole = text.rstrip().endswith(("end", ends[file.suffix]))
    return set(re.findall(r"run-(\d+)-of-many", text)), whole


def kill_repeatedly(folder, kind, kills, seed=0):
    """Return how many kills left files of one run, none at all, parts, or files of two runs."""
    folder = Path(folder)
    os.chdir(folder)
    rows = "".join(f"{'FM'[k % 2]},{k % 3 % 2}\n" for k in range(200))
    (folder / "rows.csv").write_text("sex,hired\n" + rows)
    (folder / "plan.toml").write_text(PLAN.format(k=0))
    act = {"files": write_files, "command": run_command}[kind]
    begun = time.perf_counter()
    act(folder, 0)
    length = time.perf_counter() - begun
    chance, left, before = random.Random(seed), Counter(), len(NAMES)
    for k in range(1, kills + 1):
        (folder / "plan.toml").write_text(PLAN.format(k=k))
        inputs = {name: (folder / name).read_bytes() for name in ("plan.toml", "rows.csv")}
        child = os.fork()
        if child == 0:
            while True:
                act(folder, k)
        time.sleep(chance.uniform(0.0, 1.5 * length))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = [runs_of(folder / name) for name in NAMES if (folder / name).exists()]
        left["inputs changed"] += any((folder / n).read_bytes() != b for n, b in inputs.items())
        left["half written"] += any(not whole for _, whole in found)
        left["of two runs"] += len(set().union(*(runs for runs, _ in found))) > 1
        left["fewer files than before"] += len(found) < before
        before = len(found)
        left["of this run"] += any(str(k) in runs for runs, _ in found)
        left["kills"] += 1
    (folder / "plan.toml").write_text(PLAN.format(k=kills + 1))
    act(folder, kills + 1)
    left["parts left after the next run"] = len(list(folder.glob(".equipoise-*")))
    return dict(left)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(kill_repeatedly(place, sys.argv[1], int(sys.argv[2]))))
