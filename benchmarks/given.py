"""Gaps among people alike in two factors, 12,000 cells, against the same audit without factors.

Both read ten million rows of columns that are drawn at random, so that they do not compress. The
audit without factors groups by the six groups; the one with factors by 12,000 cells, and adds tests
within 2,000 strata, the joint test, homogeneity and what is beside them. A GROUP BY of the same
keys by hand is the least that any answer with factors must do.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from harness import Row, compare, measure, show

SMALL, LARGE = 1_000_000, 10_000_000
GROUPS, BRANCHES, GRADES = 6, 50, 40
FACTORS = ("branch", "grade")


def make_file(n):
    """Write decisions to parquet once; return the path."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(tempfile.gettempdir()) / f"equipoise-given-{n}.parquet"
    if not path.exists():
        rng = np.random.default_rng(0)
        origin = rng.integers(GROUPS, size=n, dtype=np.int8)
        branch = rng.integers(BRANCHES, size=n, dtype=np.int16)
        grade = rng.integers(GRADES, size=n, dtype=np.int16)
        rate = 0.2 + 0.5 * grade / GRADES + 0.002 * branch - 0.005 * (origin == 1)
        approved = (rng.random(n) < rate).astype(np.int8)
        names = np.array([f"origin {k}" for k in range(GROUPS)])
        columns = {"origin": names[origin], "branch": branch, "grade": grade, "approved": approved}
        part = path.with_suffix(".part")
        pq.write_table(pa.table(columns), part)
        part.rename(path)
    return str(path)


def audit(path, given):
    """Ask for the gaps; return the rows of each group."""
    import equipoise as eq

    found = eq.Audit(path, group="origin", y_pred="approved").disparity(
        "selection_rate", reference={"origin": "origin 0"}, given=given
    )
    assert (found.details["given"] or []) == list(given or [])
    if given:
        assert all(one["n_compared"] == BRANCHES * GRADES for one in found.details["strata"])
    return {one.group.removeprefix("origin="): one.n for one in found.findings}


def grouped(path):
    """Count by hand; return the rows of each group."""
    import duckdb

    engine = duckdb.connect()
    engine.execute("SET enable_progress_bar = false")
    found = engine.execute(
        f"SELECT origin, branch, grade, count(*), sum(approved) FROM '{path}' GROUP BY ALL"
    ).fetchnumpy()
    assert len(found["origin"]) == GROUPS * BRANCHES * GRADES
    n = found["count_star()"]
    return {name: int(n[found["origin"] == name].sum()) for name in np.unique(found["origin"])}


def same(ours, theirs):
    assert ours == theirs, (ours, theirs)


def _rows(n) -> list[Row]:
    prepare = partial(make_file, n)
    prepare()
    alike = measure(partial(audit, given=list(FACTORS)), prepare)
    peers = [
        ("the same audit without factors", measure(partial(audit, given=None), prepare)),
        ("one GROUP BY by hand", measure(grouped, prepare)),
    ]
    targets = ("within 3x", "") if n == LARGE else ("", "")
    return [
        compare(
            f"gaps given {' and '.join(FACTORS)}, {n:,} rows, 12,000 cells",
            alike,
            found,
            peer=words,
            target=target,
            same=same,
        )
        for (words, found), target in zip(peers, targets, strict=True)
    ]


def rows() -> list[Row]:
    return _rows(SMALL)


def large_rows() -> list[Row]:
    return _rows(LARGE)


if __name__ == "__main__":
    show(rows())
