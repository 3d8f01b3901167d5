"""This tree beside an older checkout of it: start-up, first and later audits, scan and parity.

``python benchmarks/before.py CHECKOUT`` runs each piece of work in new processes, here and there in
turn, and prints the smallest CPU seconds of each and their ratio.
"""

import os
import subprocess
import sys
from pathlib import Path

REPEATS = 7
HERE = Path(__file__).parents[1]

TABLE = """
import numpy as np, pyarrow as pa
rng = np.random.default_rng(0)
n = {n}
columns = {{
    "sex": rng.choice(["f", "m"], n), "race": rng.choice(list("abcdef"), n),
    "age": rng.choice(["20s", "30s", "40s", "50s"], n),
    "y": rng.integers(0, 2, n), "p": rng.integers(0, 2, n), "s": rng.random(n),
}}
table = pa.table(columns)
import equipoise as eq
"""

# A full collection of garbage takes 70 to 100 ms here, and falls into the one process or the other
# by a difference of a few hundred objects: both start after one.
TIMED = """
import gc, time
gc.collect()
start = time.process_time()
{work}
print(time.process_time() - start)
"""

ROLES = 'eq.Audit(table, group={group}, y_true="y", y_pred="p", y_score="s")'
ALL = ROLES.format(group=["sex", "race", "age"])
ONE = ROLES.format(group=["sex"])

WORK = {
    "`import equipoise`": ("", "import equipoise"),
    "`from equipoise import Audit`": ("", "from equipoise import Audit"),
    "first disparity, 2 groups, 10,000 rows": (TABLE.format(n=10_000), f'{ONE}.disparity("fpr")'),
    "first disparity, 83 subgroups, 10,000 rows": (
        TABLE.format(n=10_000),
        f'{ALL}.disparity("fpr")',
    ),
    "ten more disparities, 83 subgroups, 10,000 rows": (
        TABLE.format(n=10_000) + f'{ALL}.disparity("fpr")',
        f'for _ in range(10): {ALL}.disparity("fpr")',
    ),
    "disparity, 83 subgroups, 1,000,000 rows": (
        TABLE.format(n=1_000_000),
        f'{ALL}.disparity("fpr")',
    ),
    "mean score, 83 subgroups, 1,000,000 rows": (
        TABLE.format(n=1_000_000),
        f'{ALL}.disparity("mean_score")',
    ),
    "predictive parity, 2 groups, 1,000,000 rows": (
        TABLE.format(n=1_000_000),
        f"{ONE}.predictive_parity(rng=0)",
    ),
}


def seconds(checkout: Path, prepare: str, work: str) -> float:
    """Return CPU seconds of `work` in a new process that imports equipoise from a checkout."""
    done = subprocess.run(
        [sys.executable, "-c", prepare + TIMED.format(work=work)],
        # An installed package has its compiled files, whatever the machine at hand forbids.
        env={**os.environ, "PYTHONPATH": str(checkout / "src"), "PYTHONDONTWRITEBYTECODE": ""},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.split()[-1])


def main() -> None:
    """Print a table of the work, here and there."""
    there = Path(sys.argv[1])
    print("| work | CPU s before | CPU s now | ratio |\n| --- | --- | --- | --- |")
    for name, (prepare, work) in WORK.items():
        runs = [
            (seconds(there, prepare, work), seconds(HERE, prepare, work)) for _ in range(REPEATS)
        ]
        before, now = (min(column) for column in zip(*runs, strict=True))
        print(f"| {name} | {before:.3f} | {now:.3f} | {now / before:.2f} |", flush=True)


if __name__ == "__main__":
    main()
