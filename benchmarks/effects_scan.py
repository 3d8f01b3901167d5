"""Treatment effects against one hand-written GROUP BY, for columns that cannot be compressed.

The peer sums by hand what estimates and their standard errors need, in one query, and stops there:
no check of the values, no third moments, no slopes, no intervals, no evaluation of corrections.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from harness import close, compare, measure, show

GROUPS = 200
CHUNK = 1_000_000
TARGET = "at most three times the GROUP BY"


def make_file(n, *, words):
    """Write an experiment to parquet once, with outcomes that all differ; return its path."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(tempfile.gettempdir()) / f"equipoise-experiment-{n}-{words:d}.parquet"
    if path.exists():
        return str(path)
    rng = np.random.default_rng(0)
    names = np.array([f"region {k}" for k in range(GROUPS)])
    part = path.with_suffix(".part")
    writer = None
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        region = rng.integers(GROUPS, size=size)
        columns = {
            "region": names[region] if words else region.astype(np.int16),
            "offer": rng.integers(2, size=size, dtype=np.int8),
            "spent": np.exp(rng.standard_normal(size)),
            "effect": 1.15 + 0.1 * rng.standard_normal(size),
        }
        batch = pa.table(columns)
        writer = writer or pq.ParquetWriter(part, batch.schema)
        writer.write_table(batch)
    writer.close()
    part.rename(path)
    return str(path)


def audit(path):
    """Audit and evaluate; return the error of every region."""
    import equipoise as eq

    result = eq.Audit(
        path, group="region", y_true="spent", treatment="offer", effect_pred="effect"
    ).treatment_effects()
    assert result.details["evaluation"]["n_repeats"] == 10
    names = [name.removeprefix("region=") for name in result.details["group"]]
    return dict(zip(names, result.details["B"], strict=True))


def group_by(path):
    """Error of every region from one query."""
    import duckdb

    rows = duckdb.sql(
        "SELECT region, offer, count(*), sum(spent), sum(effect), sum(spent * spent),"
        " sum(spent * effect), sum(effect * effect), sum(spent * spent * effect),"
        f" sum(spent * spent * effect * effect) FROM '{path}' GROUP BY region, offer"
    ).fetchall()
    arms = {(str(row[0]), row[1]): row[2:] for row in rows}
    errors = {}
    for name in {name for name, _ in arms}:
        (n0, y0, _, _, yf0, *_), (n1, y1, *_) = arms[name, 0], arms[name, 1]
        errors[name] = yf0 / y0 - (y1 / n1) / (y0 / n0)
    return errors


def _row(n, *, words, repeats):
    prepare = partial(make_file, n, words=words)
    return compare(
        f"{n:,} rows, {GROUPS} groups named by {'text' if words else 'numbers'}: the whole audit",
        measure(audit, prepare, repeats=repeats),
        measure(group_by, prepare, repeats=repeats),
        peer="one GROUP BY by hand",
        target=TARGET,
        same=close(1e-9),
    )


def rows():
    return [_row(1_000_000, words=False, repeats=3)]


def large_rows():
    return [_row(37_000_000, words=words, repeats=3) for words in (False, True)]


if __name__ == "__main__":
    show(rows())
