"""Cost against rows, cells, depth of intersections and metrics: straight lines, no cliff.

Each row is one audit by itself; the peer is the step before it in the same series, so that the
ratio is the growth (a step of ten in rows may cost at most ten times as much).
"""

import os
from dataclasses import replace
from functools import partial

from harness import Measurement, Row, measure, show
from sessions import GROUPS, path

STEPS = (10_000, 100_000, 1_000_000)
LARGE_STEPS = (10_000_000, 37_000_000)
CELLS = (2, 100, 1_000, 10_000)
MOST_CELLS = 100_000


def _audit(file, group, metrics, depth):
    import equipoise as eq

    audit = eq.Audit(file, group=list(group), y_true="y", y_pred="yhat", y_score="score")
    return [len(audit.disparity(name, depth=depth).findings) for name in metrics]


def _file(n, levels):
    return path(n, levels=levels)


def _step(n, levels, group, metrics, depth) -> Measurement:
    path(n, levels=levels)
    return measure(
        partial(_audit, group=group, metrics=metrics, depth=depth), partial(_file, n, levels)
    )


def _series(steps: list[tuple[str, Measurement]]) -> list[Row]:
    rows = []
    for k, (work, found) in enumerate(steps):
        name, before = steps[max(k - 1, 0)]
        rows.append(
            Row(
                work=f"{work} ({sum(found.value):,} findings)",
                seconds=found.seconds,
                cpu=found.cpu,
                peak_mb=found.peak_mb,
                peer=name if k else "itself",
                peer_seconds=before.seconds,
                peer_cpu=before.cpu,
                peer_peak_mb=before.peak_mb,
                ratio=before.cpu / found.cpu,
                repeats=found.repeats,
                peer_repeats=before.repeats,
            )
        )
    return rows


def _by_rows(steps) -> list[tuple[str, Measurement]]:
    return [(f"{n:,} rows", _step(n, 200, GROUPS[:2], ["fpr"], None)) for n in steps]


def _by_cells(steps) -> list[tuple[str, Measurement]]:
    return [
        (f"{k:,} cells of 1,000,000 rows", _step(1_000_000, k, ("grp",), ["fpr"], None))
        for k in steps
    ]


def rows() -> list[Row]:
    by_cells = _by_cells(CELLS)
    by_depth = [
        (f"depth {depth}", _step(100_000, 20, GROUPS, ["fpr"], depth)) for depth in (1, 2, 3, 4)
    ]
    names = ["fpr", "tpr", "ppv", "selection_rate", "accuracy", "npv", "fnr", "tnr"]
    by_metric = [
        (f"{k} metrics", _step(1_000_000, 20, GROUPS[:3], names[:k], None)) for k in (1, 2, 4, 8)
    ]
    series = (_by_rows(STEPS), by_cells, by_depth, by_metric)
    return [row for steps in series for row in _series(steps)]


def large_rows() -> list[Row]:
    by_cells = _by_cells((CELLS[-1], MOST_CELLS))
    series = (_by_rows((STEPS[-1], *LARGE_STEPS)), by_cells)
    *others, last = [row for steps in series for row in _series(steps)]
    note = (
        "Ten rows a cell: 98,950 groups take the exact test, against 14 of the 10,000 before; "
        f"{1000.0 * last.cpu / MOST_CELLS:.2f} ms a group in all. The step is the change of test."
    )
    return [*others, replace(last, note=note)]


if __name__ == "__main__":
    os.nice(5)
    show(rows())
