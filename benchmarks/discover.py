"""Subgroups of up to three conditions on 20 features, against DivExplorer.

At a least share of 3% no subgroup of four conditions is left, so that both look at the same ones.
The peer takes about 2.7 CPU seconds for every thousand rows (14 for 5,000, 135 for 50,000), which
would be three quarters of an hour for 1,000,000; it is measured on 50,000, and the last line holds
ours on all rows against the peer on a twentieth of them, without multiplying. The peer needs an
environment of its own with `divexplorer`, ``$EQUIPOISE_PEERS``.
"""

import tempfile
from pathlib import Path

import numpy as np
from harness import Row, compare, measure, peers, show

FEATURES = [f"f{k}" for k in range(20)]
LEAST = 0.03
SMALL, LARGE = 50_000, 1_000_000


def table(n):
    """Write the table to a csv file; return its path."""
    file = Path(tempfile.gettempdir()) / f"equipoise-discover-{n}.csv"
    if not file.exists():
        rng = np.random.default_rng(0)
        columns = [rng.choice(np.array(list("abcd")), n, p=[0.4, 0.3, 0.2, 0.1]) for _ in FEATURES]
        error = rng.random(n) < 0.2 + 0.1 * ((columns[0] == "d") & (columns[1] == "b"))
        lines = [",".join([*FEATURES, "error"])]
        lines += [
            ",".join(row) for row in zip(*columns, error.astype(int).astype(str), strict=True)
        ]
        file.write_text("\n".join(lines) + "\n")
    return str(file)


def small():
    return table(SMALL)


def large():
    return table(LARGE)


def ours(file):
    import equipoise as eq

    audit = eq.Audit(file, y_pred="error")
    found = audit.discover("selection_rate", features=FEATURES, depth=3, min_size=LEAST)
    return found.details["n_slices"]


def divexplorer(file):
    import pandas as pd
    from divexplorer import DivergenceExplorer

    rows = pd.read_csv(file)
    found = DivergenceExplorer(rows).get_pattern_divergence(
        min_support=LEAST, boolean_outcomes=["error"], attributes=FEATURES
    )
    return int((found["length"] > 0).sum())


def same(first, second):
    assert first == second, (first, second)


def rows() -> list[Row]:
    theirs = measure(divexplorer, small, repeats=1, interpreter=peers())
    mine, whole = (measure(ours, prepare, repeats=1) for prepare in (small, large))
    return [
        compare(
            f"{mine.value:,} subgroups of 20 features, {SMALL:,} rows",
            mine,
            theirs,
            peer="DivExplorer",
            target="20x faster",
            same=same,
        ),
        compare(
            f"{whole.value:,} subgroups of 20 features, {LARGE:,} rows",
            whole,
            theirs,
            peer=f"DivExplorer on {SMALL:,} rows",
            note=f"Seconds of the peer on {SMALL:,} rows as they are, not multiplied.",
        ),
    ]


if __name__ == "__main__":
    show(rows())
