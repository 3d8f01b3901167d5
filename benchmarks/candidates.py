"""Fifty candidates on a million rows in one test against fifty single tests.

Every candidate is a column of decisions; the test of one is timed on three of them.
"""

import numpy as np
from harness import Row, compare, measure, show

N, CANDIDATES, SINGLE = 1_000_000, 50, 3
OPTIONS = {"accuracy": "accuracy", "fairness": "fpr", "n_resamples": 1000, "rng": 1}


def prepare():
    import pyarrow as pa

    rng = np.random.default_rng(5)
    need = rng.random(N)
    sex = rng.integers(0, 2, N)
    y = (rng.random(N) < need).astype(np.int8)
    columns = {
        f"c{k}": (need + 0.3 * rng.normal(size=N) - 0.05 * sex > 0.5).astype(np.int8)
        for k in range(CANDIDATES)
    }
    decided = (need + 0.3 * rng.normal(size=N) - 0.1 * sex > 0.5).astype(np.int8)
    return pa.table({"sex": sex, "y": y, "p": decided, **columns})


def _audit(table):
    import equipoise as eq

    return eq.Audit(table, group="sex", y_true="y", y_pred="p")


def together(table):
    result = _audit(table).improvability([f"c{k}" for k in range(CANDIDATES)], **OPTIONS)
    return len(result.findings)


def alone(table):
    for k in range(SINGLE):
        _audit(table).improvability(f"c{k}", **OPTIONS)
    return SINGLE


def rows() -> list[Row]:
    return [
        compare(
            "50 candidates, 1,000,000 rows",
            measure(together, prepare, repeats=1),
            measure(alone, prepare, repeats=1),
            peer="50 single tests",
            target="10x faster",
            times=CANDIDATES / SINGLE,
            note=f"{SINGLE} single tests, their time multiplied by {CANDIDATES}/{SINGLE}.",
        )
    ]


if __name__ == "__main__":
    show(rows())
