"""A plan of eight checks on 37 million rows against one hand-written GROUP BY.

The checks are about rates of the same labels, so that they share one scan; the peer is the query
that brings the counts, and asks nothing of them.
"""

from functools import partial

from harness import Row, compare, measure, show
from sessions import GROUPS, path

SMALL, LARGE = 1_000_000, 37_000_000
COLUMNS = GROUPS[1:]
CHECKS = (
    *(("disparity", {"metric": name}) for name in ("fpr", "tpr", "selection_rate", "accuracy")),
    ("flag", {"metric": "ppv", "margin": 0.02}),
    ("certify", {"metric": "fnr", "margin": 0.05}),
    ("impact_ratios", {"metric": "selection_rate"}),
    ("inequality", {"benefits": "speicher"}),
)


def small():
    return path(SMALL)


def large():
    return path(LARGE)


def plan(file, columns):
    import equipoise as eq
    from equipoise.audits.asking import ask_all, declare
    from equipoise.results.question import find_question

    audit = eq.Audit(file, group=list(columns), y_true="y", y_pred="yhat")
    found = ask_all(
        [declare(find_question(name).function, audit, **options) for name, options in CHECKS]
    )
    assert len({query for result in found for query in result.sql()}) == 1
    return found[2].n


def grouped(file, columns):
    import duckdb

    engine = duckdb.connect()
    engine.execute("SET enable_progress_bar = false")
    keys = ", ".join((*columns, "y", "yhat"))
    found = engine.execute(
        f"SELECT {keys}, count(*) FROM read_parquet('{file}') GROUP BY {keys}"
    ).fetchall()
    return sum(row[-1] for row in found)


def same(ours, theirs):
    assert ours == theirs, (ours, theirs)


def _row(prepare, n, columns, words, target="", repeats=3) -> Row:
    prepare()
    return compare(
        f"8 checks of {words}, {n:,} rows",
        measure(partial(plan, columns=columns), prepare, repeats=repeats),
        measure(partial(grouped, columns=columns), prepare, repeats=repeats),
        peer="one GROUP BY in DuckDB by hand",
        target=target,
        same=same,
    )


def rows() -> list[Row]:
    return [_row(small, SMALL, COLUMNS, "107 subgroups of 3 columns")]


def large_rows() -> list[Row]:
    target = "within 2.5x, under 500 MB"
    return [
        _row(large, LARGE, COLUMNS, "107 subgroups of 3 columns", target),
        _row(large, LARGE, GROUPS, "21,707 subgroups of 4 columns", target, repeats=1),
    ]


if __name__ == "__main__":
    show(rows())
