"""Rows of repeated users: rates of three groups with standard errors over users.

The peer is the shortest SQL that gives the same rates and cluster-robust standard errors, without
the covariances between groups that share users, tests and intervals that the audit adds.
"""

import os

from harness import Row, close, compare, measure, show
from sessions import path

SMALL, LARGE = (1_000_000, 5.0), (20_000_000, 2.0)  # rows, rows per user

SQL = """
WITH part AS (
  SELECT user_id, age, sum(yhat)::DOUBLE AS y, count(*)::DOUBLE AS n
  FROM read_parquet('{file}') GROUP BY user_id, age),
rate AS (SELECT age, sum(y) / sum(n) AS theta, sum(n) AS n FROM part GROUP BY age)
SELECT 'age=' || age, any_value(theta), sqrt(sum((y - theta * part.n) ** 2)) / any_value(rate.n)
FROM part JOIN rate USING (age) GROUP BY age
"""


def small():
    return path(SMALL[0], users=SMALL[1])


def large():
    return path(LARGE[0], users=LARGE[1])


def ours(file):
    import equipoise as eq

    audit = eq.Audit(file, group="age", y_pred="yhat", cluster="user_id")
    result = audit.disparity("selection_rate", reference=0.0, method="eel")
    return {row["group"]: [row["group_value"], row["se"]] for row in result.details["values"]}


def by_hand(file):
    import duckdb

    engine = duckdb.connect()
    engine.execute("SET enable_progress_bar = false")
    found = engine.execute(SQL.format(file=file)).fetchall()
    return {group: [rate, error] for group, rate, error in found}


def _rows(prepare, n, per_user, repeats, note="") -> list[Row]:
    prepare()
    return [
        compare(
            f"rates of 3 groups, {n:,} rows, {n / per_user:,.0f} users",
            measure(ours, prepare, repeats=repeats),
            measure(by_hand, prepare, repeats=repeats),
            peer="rates and errors in SQL by hand",
            same=close(1e-9),
            note=note,
        )
    ]


def rows() -> list[Row]:
    return _rows(small, *SMALL, 3)


def large_rows() -> list[Row]:
    os.environ["EQUIPOISE_MEMORY_LIMIT"] = "2GB"  # the measured processes inherit it
    return _rows(large, *LARGE, 1, note="Ours with EQUIPOISE_MEMORY_LIMIT=2GB.")


if __name__ == "__main__":
    show(rows())
