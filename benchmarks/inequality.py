"""Inequality of benefits in 9,600 groups against a plain scan of the same columns.

The audit groups the rows into cells, splits the index within and between them, and tests and
bounds every part. Everything after the scan works on the cells, so that its cost does not grow
with the rows.
"""

import scan
from harness import Row, compare, measure, show
from sessions import GROUPS


def audit(file):
    import equipoise as eq

    result = eq.Audit(file, group=list(GROUPS), y_true="y", y_pred="yhat").inequality("speicher")
    assert len(result.details["contributions"]) == 9_600
    return result.n


def coarse(file):
    import equipoise as eq

    result = eq.Audit(file, group=list(GROUPS[1:]), y_true="y", y_pred="yhat").inequality(
        [[1.0, 1.0], [0.1, 0.8]], order=0.5, kappa=4
    )
    assert len(result.details["contributions"]) == 48
    return result.n


def _rows(prepare, n) -> list[Row]:
    prepare()
    plain = measure(scan.scan, prepare)
    return [
        compare(
            f"inequality with cap, {n:,} rows, 48 groups",
            measure(coarse, prepare),
            plain,
            peer="plain DuckDB scan",
            target="one scan",
            same=scan.same,
        ),
        compare(
            f"inequality, {n:,} rows, 9,600 groups",
            measure(audit, prepare),
            plain,
            peer="plain DuckDB scan",
            same=scan.same,
            note="19,203 findings; what exceeds the scan does not grow with the rows.",
        ),
    ]


def rows() -> list[Row]:
    return _rows(scan.small, scan.SMALL)


def large_rows() -> list[Row]:
    return _rows(scan.large, scan.LARGE)


if __name__ == "__main__":
    show(rows())
