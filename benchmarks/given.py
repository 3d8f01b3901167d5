"""Gaps among people alike in given factors, 12,000 cells, against the same audit without factors.

Both read ten million rows of columns that are drawn at random, so that they do not compress, in a
fresh process. The audit without factors groups by the groups; the one with factors by 12,000 cells,
and adds tests within strata, the joint test, homogeneity and what is beside them. A GROUP BY of the
same keys by hand is the least that any answer with factors must do.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from harness import Row, compare, measure, show

SMALL, LARGE = 1_000_000, 10_000_000
GROUPS, SEXES, AGES, BRANCHES, GRADES, OFFICES = 6, 2, 5, 50, 40, 200
FEW = (("origin",), ("branch", "grade"))
MANY = (("origin", "sex", "age"), ("office",))
WORDS = {FEW: "6 groups in 2,000 strata", MANY: "125 subgroups in 200 strata"}


def make_file(n):
    """Write decisions to parquet once; return the path."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(tempfile.gettempdir()) / f"equipoise-given-factors-{n}.parquet"
    if not path.exists():
        rng = np.random.default_rng(0)
        origin, sex, age, office = (
            rng.integers(size, size=n) for size in (GROUPS, SEXES, AGES, OFFICES)
        )
        branch = rng.integers(BRANCHES, size=n, dtype=np.int16)
        grade = rng.integers(GRADES, size=n, dtype=np.int16)
        rate = 0.2 + 0.5 * grade / GRADES + 0.002 * branch - 0.005 * (origin == 1)
        columns = {
            "origin": np.array([f"origin {k}" for k in range(GROUPS)])[origin],
            "sex": np.array(["female", "male"])[sex],
            "age": np.array(["18-29", "30-39", "40-49", "50-64", "65+"])[age],
            "office": np.array([f"office {k}" for k in range(OFFICES)])[office],
            "branch": branch,
            "grade": grade,
            "approved": (rng.random(n) < rate).astype(np.int8),
        }
        part = path.with_suffix(".part")
        pq.write_table(pa.table(columns), part)
        part.rename(path)
    return str(path)


def audit(path, group, given):
    """Ask for the gaps; return the rows of each origin."""
    import equipoise as eq

    found = eq.Audit(path, group=list(group), y_pred="approved").disparity(
        "selection_rate", reference="rest", given=given and list(given)
    )
    if given:
        assert all(one["n_compared"] == one["n_strata"] for one in found.details["strata"])
    return {one.group: one.n for one in found.findings if one.group.count("=") == 1}


def grouped(path, group, given):
    """Count by hand; return the rows of each group column's labels."""
    import duckdb

    engine = duckdb.connect()
    engine.execute("SET enable_progress_bar = false")
    keys = ", ".join((*group, *given))
    found = engine.execute(
        f"SELECT {keys}, count(*) AS n, sum(approved) FROM '{path}' GROUP BY ALL"
    ).fetchnumpy()
    assert len(found["n"]) == 12_000
    return {
        f"{name}={label}": int(found["n"][found[name] == label].sum())
        for name in group
        for label in np.unique(found[name])
    }


def same(ours, theirs):
    assert ours == theirs, (ours, theirs)


def _rows(n) -> list[Row]:
    prepare = partial(make_file, n)
    prepare()
    found = []
    for group, given in (FEW, MANY):
        work = f"gaps given factors, {n:,} rows, {WORDS[group, given]}"
        alike = measure(partial(audit, group=group, given=given), prepare)
        plain = measure(partial(audit, group=group, given=None), prepare)
        hand = measure(partial(grouped, group=group, given=given), prepare)
        target = "within 3x" if n == LARGE else ""
        words = "the same audit without factors"
        found.append(compare(work, alike, plain, peer=words, target=target, same=same))
        found.append(compare(work, alike, hand, peer="one GROUP BY by hand", same=same))
    return found


def rows() -> list[Row]:
    return _rows(SMALL)


def large_rows() -> list[Row]:
    return _rows(LARGE)


if __name__ == "__main__":
    show(rows())
