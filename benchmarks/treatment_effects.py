"""Treatment effects: audit with split-and-swap evaluation, against resampling rows.

The paper resamples rows: ten random splits, each used both ways, with 50 bootstrap draws, 1,000
runs in all. Here one query sums the rows by block, group and arm, and everything else, exact
variances and ten repeats of the evaluation for all corrections, comes from the sums. The peer is
measured on a few of its runs.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from harness import close, compare, measure, show

RUNS = 1_000
GROUPS = 200
CHUNK = 1_000_000


def make_file(n):
    """Write sessions of an experiment to parquet once; return the path."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(tempfile.gettempdir()) / f"equipoise-effects-{n}.parquet"
    if path.exists():
        return str(path)
    rng = np.random.default_rng(0)
    share = np.geomspace(1, 60, GROUPS)
    writer = None
    part = path.with_suffix(".part")
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        country = rng.choice(GROUPS, size=size, p=share / share.sum()).astype(np.int16)
        offer = rng.integers(2, size=size, dtype=np.int8)
        effect = np.round(1.15 + 0.1 * rng.standard_normal(size), 4)
        rate = 0.03 * np.exp(0.5 * rng.standard_normal(size)) * effect**offer
        booked = (rng.random(size) < rate).astype(np.int8)
        batch = pa.table({"country": country, "offer": offer, "booked": booked, "effect": effect})
        writer = writer or pq.ParquetWriter(part, batch.schema)
        writer.write_table(batch)
    writer.close()
    part.rename(path)
    return str(path)


def audit(path):
    """Audit and evaluate; return the error of every country."""
    import equipoise as eq

    result = eq.Audit(
        path, group="country", y_true="booked", treatment="offer", effect_pred="effect"
    ).treatment_effects()
    assert result.details["evaluation"]["n_repeats"] == 10
    names = [name.removeprefix("country=") for name in result.details["group"]]
    return dict(zip(names, result.details["B"], strict=True))


def errors_of(country, offer, booked, effect, weight=None):
    """Errors of every country from rows, each counted `weight` times."""
    cell = 2 * country.astype(np.int64) + offer
    y = booked.astype(float) if weight is None else booked * weight
    n = np.bincount(cell, weights=weight, minlength=2 * GROUPS).reshape(-1, 2)
    total = np.bincount(cell, weights=y, minlength=2 * GROUPS).reshape(-1, 2)
    weighted = np.bincount(cell, weights=y * effect, minlength=2 * GROUPS).reshape(-1, 2)
    m0, m1 = total[:, 0] / n[:, 0], total[:, 1] / n[:, 1]
    return weighted[:, 0] / total[:, 0] - m1 / m0


def resample(path, runs):
    """Errors of every country, and `runs` bootstrap draws of the rows."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = [table.column(c).to_numpy() for c in ("country", "offer", "booked", "effect")]
    rng = np.random.default_rng(0)
    for _ in range(runs):
        rows = rng.integers(len(columns[0]), size=len(columns[0]))
        errors_of(*(column[rows] for column in columns))
    return {str(k): error for k, error in enumerate(errors_of(*columns))}


def resample_four(path):
    """Four of the thousand runs."""
    return resample(path, 4)


def resample_once(path):
    """One of the thousand runs."""
    return resample(path, 1)


def _row(n, peer, runs, repeats):
    prepare = partial(make_file, n)
    return compare(
        f"{n:,} rows, {GROUPS} groups: errors, biases, intervals, 10 x swap evaluation",
        measure(audit, prepare, repeats=repeats),
        measure(peer, prepare, repeats=repeats),
        peer="numpy, resampling rows",
        target="100x faster at 37 million rows",
        same=close(1e-9),
        times=RUNS / runs,
        note=f"The peer was measured on {runs} of its {RUNS:,} bootstrap runs; its time is that"
        f" times {RUNS // runs}.",
    )


def rows():
    return [_row(1_000_000, resample_four, 4, 3)]


def large_rows():
    return [_row(37_000_000, resample_once, 1, 1)]


if __name__ == "__main__":
    show(rows())
