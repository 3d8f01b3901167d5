"""Odd types and names of group columns: every question counts the rows that GROUP BY counts."""

import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import equipoise as eq
from equipoise.audits.asking import ask_all, declare
from equipoise.data.groups import place
from equipoise.data.table import Quantity, Rows
from equipoise.exceptions import ColumnNotFoundError, DataError, MissingValuesError
from support.asking import answer_of
from support.engines import on_engine

N = 1200
ENGINES = [
    "pyarrow",
    "duckdb",
    pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")]),
]


def rows_of(values, **extra):
    """Rows whose group is one of the values, more often the later it comes."""
    rng = np.random.default_rng(4)
    share = np.arange(1, len(values) + 1) / sum(range(1, len(values) + 1))
    group = pa.array([values[k] for k in rng.choice(len(values), N, p=share)], **extra)
    score = rng.choice(np.linspace(0.1, 0.9, 9), N)
    y = (rng.random(N) < score).astype(int)
    return pa.table(
        {"g": group, "y": y, "p": rng.integers(0, 2, N), "s": score, "id": np.arange(N) // 3}
    )


def counted(table):
    """Rows of each group by a plain GROUP BY, in the order of their numbers."""
    grouped = duckdb.from_arrow(table).aggregate("g, count(*) AS n", "g")
    return sorted(grouped.project("n").to_arrow_table().column("n").to_pylist())


def numbers(data, **roles):
    """Rows of each group by every way that groups are read."""
    audit = eq.Audit(data, group="g", y_true="y", y_pred="p", y_score="s", **roles)
    table = audit.table
    declared = table.sums([Quantity.of(table.y_score)], {"y_score": "number"})
    rows = answer_of(Rows(declared)).read()
    return {
        "disparity": sorted(finding.n for finding in audit.disparity("fpr").findings),
        "cells": sorted(answer_of(declared).n.tolist()),
        "rows": sorted(np.bincount(rows.cell).tolist()),
    }


def fpr_counts(table):
    return counted(table.filter(pa.compute.equal(table.column("y"), 0)))


MOMENTS = [datetime(2024, 10, 27, 0, 30, tzinfo=UTC) + timedelta(hours=k) for k in range(3)]
ODD = {
    "decimals": ([Decimal("1.10"), Decimal("2.00"), Decimal("-0.50")], pa.decimal128(10, 2)),
    "long decimals": (
        [Decimal("0.1000000000000000001"), Decimal("0.1000000000000000002")],
        pa.decimal128(38, 19),
    ),
    "signed zeros": ([-0.0, 0.0, 1.0], pa.float64()),
    "halves": ([0.1, 0.2, 0.30000001], pa.float32()),
    "times with a zone": (MOMENTS, pa.timestamp("us", tz="Europe/Berlin")),
    "times": ([moment.replace(tzinfo=None) for moment in MOMENTS], pa.timestamp("us")),
    "days": ([moment.date() + timedelta(days=k) for k, moment in enumerate(MOMENTS)], pa.date32()),
    "text that ends in NUL": (["a", "a\0", "a\0\0"], pa.string()),
    "words for missing": (["None", "NA", "NULL", "nan", "null"], pa.string()),
    "truth": ([True, False], pa.bool_()),
    "large integers": ([2**62, 2**62 + 1, -(2**62)], pa.int64()),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ODD)
def test_groups_of_any_type_hold_the_rows_that_group_by_counts(kind, engine):
    values, dtype = ODD[kind]
    table = rows_of(values, type=dtype)
    found = numbers(on_engine(engine, table))
    assert found["cells"] == found["rows"] == counted(table)
    assert found["disparity"] == fpr_counts(table)


@pytest.mark.parametrize("kind", ODD)
def test_clusters_find_the_cells_of_groups_of_any_type(kind, monkeypatch):
    monkeypatch.setattr("equipoise.data.clusters.MOST_COLUMNS", 0)
    values, dtype = ODD[kind]
    table = rows_of(values, type=dtype)
    audit = eq.Audit(table, group="g", y_pred="p", cluster="id")
    cells = answer_of(audit.table.label_sums(("y_pred",)))
    assert sorted(cells.n.tolist()) == counted(table)
    units = np.array(table.column("id"))
    spread = Counter(zip(units.tolist(), map(str, table.column("g").to_pylist()), strict=True))
    if kind != "signed zeros":
        assert cells.product.sum() + 2 * cells.cross.product.sum() == pytest.approx(
            sum(n**2 for n in Counter(units.tolist()).values())
        )
        assert cells.product.sum() == pytest.approx(sum(n**2 for n in spread.values()))


def marginal_gaps(table):
    """Return how far each pair of groups is apart at a threshold, by its rows; None if untested."""
    audit = eq.Audit(table, group="g", y_true="y", y_score="s")
    findings = audit.marginal_outcome(0.5, unit="row").findings
    return {f.n: None if f.estimate is None else abs(f.estimate) for f in findings}


@pytest.mark.parametrize("kind", ["decimals", "signed zeros", "text that ends in NUL"])
def test_scores_are_compared_in_the_groups_that_rows_are_in(kind):
    values, dtype = ODD[kind]
    table = rows_of(values, type=dtype)
    audit = eq.Audit(table, group="g", y_true="y", y_score="s")
    sizes = counted(table)
    pairs = {sizes[i] + sizes[j] for i in range(len(sizes)) for j in range(i)}
    assert {finding.n for finding in audit.predictive_parity(rng=0).findings} == pairs
    # The same groups by the number of their value: -0.0 and 0.0 are one.
    first = [values.index(value) for value in table.column("g").to_pylist()]
    column = table.column_names.index("g")
    numbered = table.set_column(column, "g", pa.array([f"group {k}" for k in first]))
    ours, theirs = (marginal_gaps(rows) for rows in (table, numbered))
    assert ours == theirs
    assert any(ours.values())


@pytest.mark.parametrize("missing", ["raise", "drop"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_feature_that_is_not_a_number_is_missing_on_every_engine(engine, missing):
    k = np.arange(400)
    x = np.where(k % 40 == 0, np.nan, np.sin(k))
    table = pa.table({"g": (k // 3) % 2, "y": (k // 5) % 2, "p": (k // 7) % 2, "x": x})
    audit = eq.Audit(
        on_engine(engine, table), group="g", y_true="y", y_pred="p", features=["x"], missing=missing
    )
    options = {"accuracy": "accuracy", "n_splits": 2, "n_resamples": 99, "rng": 0}
    if missing == "drop":
        found = audit.improvability("sklearn.linear_model.LogisticRegression", **options)
        assert found.n == 390
    else:
        with pytest.raises(MissingValuesError, match="'x' has 10 missing values in 400 rows"):
            audit.improvability("sklearn.linear_model.LogisticRegression", **options)


CLUSTERS = {
    "negative": (np.arange(40) - 20, pa.int64()),
    "far apart": (np.arange(40) * 10**15, pa.int64()),
    "beyond 63 bits": ([2**64 - 1 - k for k in range(40)], pa.uint64()),
    "reals": (np.arange(40) / 64 - 0.25, pa.float64()),
    "text": ([f"u{k}" for k in range(40)], pa.string()),
    "decimals": ([Decimal(k) / 4 for k in range(40)], pa.decimal128(10, 2)),
    "spans": ([timedelta(days=100 + k) for k in range(40)], pa.duration("us")),
}
CLUSTERED = {
    "decompose": {"metric": "selection_rate", "given": "factor"},
    "disparity": {"metric": "mean_score", "method": "el"},
    "predictive_parity": {"unit": "row"},
    "improvability": {"candidate": "rule", "accuracy": "accuracy", "n_resamples": 99},
    "treatment_effects": {"measure": "difference", "split": True, "n_repeats": 0},
}


@pytest.mark.parametrize("question", CLUSTERED)
@pytest.mark.parametrize("kind", CLUSTERS)
def test_clusters_of_any_type_and_order_are_the_same_clusters(kind, question):
    rng = np.random.default_rng(2)
    place = np.arange(400) % 40
    table = rows_of(["a", "b"]).slice(0, 400)
    table = table.append_column("factor", pa.array(rng.integers(0, 2, 400)))
    table = table.append_column("rule", pa.array(rng.integers(0, 2, 400)))
    table = table.append_column("t", pa.array(place % 2))
    table = table.append_column("e", pa.array(rng.random(400)))
    roles = {"group": "g", "y_true": "y", "y_pred": "p", "y_score": "s"}
    roles |= {"treatment": "t", "effect_pred": "e", "cluster": "u"}

    def asked(clusters, order):
        data = table.append_column("u", clusters).take(order)
        result = getattr(eq.Audit(data, **roles), question)(**CLUSTERED[question])
        return [(f.n, f.estimate, f.p_value, f.ci and f.ci.low) for f in result.findings]

    values, dtype = CLUSTERS[kind]
    clusters = pa.array([values[k] for k in place], type=dtype)
    found = asked(clusters, np.arange(400))
    again = asked(clusters, rng.permutation(400))
    flat = [np.nan if x is None else x for row in found for x in row]
    np.testing.assert_allclose(
        flat, [np.nan if x is None else x for row in again for x in row], rtol=1e-9
    )
    # Values that ascend as the numbers do are ranked alike; hashes of integers are their own.
    if question in {"decompose", "disparity", "predictive_parity"}:
        plain = asked(pa.array(place), np.arange(400))
        np.testing.assert_allclose(
            flat, [np.nan if x is None else x for row in plain for x in row], rtol=1e-9
        )


def test_equal_numbers_are_one_cluster():
    table = rows_of(["a", "b"])
    zeros = np.where(np.arange(N) % 2, 0.0, -0.0) + np.arange(N) // 4
    for units, n in [(zeros, N // 4), (np.where(np.arange(N) % 2, 0.0, -0.0), 1)]:
        audit = eq.Audit(
            table.append_column("u", pa.array(units)), group="g", y_pred="p", cluster="u"
        )
        assert answer_of(audit.table.label_sums(("y_pred",))).n_units == n


def test_moments_that_differ_by_a_nanosecond_are_two_groups():
    moments = [pd.Timestamp(k % 2 + 1) for k in range(40)]
    audit = eq.Audit({"g": moments, "p": [0, 1, 1, 0] * 10}, group="g", y_pred="p")
    assert answer_of(audit.table.label_sums(("y_pred",))).n.tolist() == [20, 20]


def test_equal_numbers_have_one_label():
    cells = answer_of(
        eq.Audit(rows_of([-0.0, 0.0, 1.0]), group="g", y_pred="p").table.label_sums(("y_pred",))
    )
    assert cells.labels[0].tolist() == ["0", "1"]
    table = rows_of([Decimal("1.10"), Decimal("20.00")], type=pa.decimal128(10, 2))
    cells = answer_of(eq.Audit(table, group="g", y_pred="p").table.label_sums(("y_pred",)))
    assert cells.labels[0].tolist() == ["1.1", "20"]


IN_UTC = """
import pyarrow as pa
import equipoise as eq
from equipoise.data.scan import answer

table = pa.table({"g": pa.array([0, 3600, 7200], pa.timestamp("s", tz="UTC")), "p": [0, 1, 1]})
(cells,) = answer([eq.Audit(table, group="g", y_pred="p").table.label_sums(("y_pred",))])
print(*cells.labels[0])
"""


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
def test_times_with_a_zone_are_written_in_utc_whatever_the_machine(zone):
    environment = {"TZ": zone, "PYTHONPATH": str(Path(eq.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", IN_UTC], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [
        "1970-01-01T00:00:00",
        "1970-01-01T01:00:00",
        "1970-01-01T02:00:00",
    ]


@pytest.mark.parametrize("engine", ["pyarrow", "duckdb", "dict"])
def test_the_hour_that_autumn_repeats_is_two_hours(engine, monkeypatch):
    """On a machine in Berlin the clock shows 02:30 twice; to Python the two are equal."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        table = rows_of(MOMENTS, type=pa.timestamp("us", tz="America/New_York"))
        found = numbers(on_engine(engine, table))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert found["disparity"] == fpr_counts(table)
    assert found["cells"] == found["rows"] == counted(table)


def test_spans_of_time_are_written_as_people_write_them():
    spans = [timedelta(0), timedelta(days=400, hours=2), timedelta(microseconds=1)]
    table = rows_of(spans, type=pa.duration("us"))
    found = eq.Audit(table, group="g", y_pred="p").disparity("selection_rate").findings
    labels = {"g=0:00:00", "g=0:00:00.000001", "g=400 days, 2:00:00"}
    assert {finding.group for finding in found} == labels
    months = duckdb.from_arrow(table).project("INTERVAL 14 MONTH + INTERVAL 3 DAY AS g, p")
    (one,) = eq.Audit(months, group="g", y_pred="p").disparity("selection_rate").findings
    assert one.group == "g=423 days, 0:00:00"
    long = duckdb.from_arrow(table).project("to_days(2000000000) AS g, p")
    (one,) = eq.Audit(long, group="g", y_pred="p").disparity("selection_rate").findings
    assert one.group == "g=2000000000 days, 0 ns"


SPANS = "[INTERVAL 1 MONTH, INTERVAL 30 DAY, INTERVAL 720 HOUR, INTERVAL 1 DAY][k % 4 + 1]"
IN_DUCKDB = {
    "spans that are equal": (SPANS, [30, 90]),
    "words of a list": ("['a', 'b', 'c'][k % 3 + 1]::ENUM('c', 'x', 'b', 'a')", [40, 40, 40]),
    "integers of 31 digits": (f"{2**100}::HUGEINT + k % 3", [40, 40, 40]),
    "integers of 39 digits": (
        "(-1 - k % 3)::HUGEINT * 170141183460469231731687303715884105 * 99",
        [40] * 3,
    ),
    "integers beyond 127 bits": (f"{2**128 - 1}::UHUGEINT - (k % 3)::UHUGEINT", [40, 40, 40]),
    "decimals of 38 digits": ("0.1::DECIMAL(38, 37) + (k % 3) * 1e-37::DECIMAL(38, 37)", [40] * 3),
}


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("kind", IN_DUCKDB)
def test_types_that_only_duckdb_has_are_counted_as_it_counts(kind, clustered):
    value, expected = IN_DUCKDB[kind]
    data = duckdb.sql(
        f"SELECT {value} AS g, k % 2 AS p, k // 2 % 2 AS y, k % 10 / 10 AS s, k // 12 AS id"
        " FROM range(120) t(k)"
    )
    plain = data.aggregate("g, count(*) AS n", "g").project("n").to_arrow_table()
    assert sorted(plain.column("n").to_pylist()) == expected
    found = numbers(data, **({"cluster": "id"} if clustered else {}))
    assert found["cells"] == found["rows"] == expected
    assert len(found["disparity"]) == len(expected)


def test_clusters_of_equal_spans_are_one():
    data = duckdb.sql(f"SELECT k // 4 % 2 AS g, k % 3 % 2 AS p, {SPANS} AS u FROM range(120) t(k)")
    audit = eq.Audit(data, group="g", y_pred="p", cluster="u")
    assert answer_of(audit.table.label_sums(("y_pred",))).n_units == 2


def labels_in(data):
    cells = answer_of(eq.Audit(data, group="g", y_pred="p").table.label_sums(("y_pred",)))
    return dict(zip(cells.labels[0].tolist(), cells.n.tolist(), strict=True))


def test_spans_of_nanoseconds_are_told_apart():
    spans = pa.array([1, 2, 3_000] * 20, pa.duration("ns"))
    assert labels_in({"g": spans, "p": [0, 1] * 30}) == {"1": 20, "2": 20, "3000": 20}
    whole = pa.array([1_000, 2_000] * 30, pa.duration("ns"))
    labels = {"0:00:00.000001": 30, "0:00:00.000002": 30}
    assert labels_in({"g": whole, "p": [0, 1] * 30}) == labels


@pytest.mark.parametrize("container", [dict, pd.DataFrame])
def test_periods_and_intervals_of_pandas_are_written_as_pandas_writes_them(container):
    p, ages = [0, 1, 1] * 20, [15, 30, 70] * 20
    months = pd.PeriodIndex(["2024-01", "2024-02", "2024-02"] * 20, freq="M")
    assert labels_in(container({"g": months, "p": p})) == {"2024-01": 20, "2024-02": 40}
    cut = pd.cut(ages, [0, 18, 65, 99])
    expected = {"(0, 18]": 20, "(18, 65]": 20, "(65, 99]": 20}
    assert labels_in(container({"g": cut, "p": p})) == expected
    apart = pd.arrays.IntervalArray(cut)
    assert labels_in(container({"g": apart, "p": p})) == expected


@pytest.mark.parametrize(
    "value",
    [
        "'infinity'::DATE",
        "'-infinity'::TIMESTAMP",
        "'infinity'::TIMESTAMPTZ",
        "'44000-01-01'::DATE",
    ],
)
@pytest.mark.parametrize("role", ["group", "cluster", "y_pred", "feature"])
def test_moments_that_python_does_not_know_are_refused(value, role):
    data = duckdb.sql(
        f"SELECT CASE k % 3 WHEN 0 THEN {value} ELSE '2024-01-01' END AS odd, k % 2 AS p,"
        " k // 4 % 2 AS g FROM range(120) t(k)"
    )
    roles = {"group": "g", "y_pred": "p", "positive": "no such day"} | {role: "odd"}
    roles.pop("feature", None)
    audit = eq.Audit(data, **roles)
    ask = audit.disparity if role == "group" else audit.discover
    options = {"features": ["odd"]} if role == "feature" else {}
    with pytest.raises(DataError, match="before the year 1 or after 9999"):
        ask("selection_rate", **options)


def test_a_label_that_cannot_be_read_ends_its_own_questions_only():
    table = rows_of(["a", "b"])
    dates = pa.array([date(2024, 1, 1 + k % 2) for k in range(N)])
    audit = eq.Audit(
        table.append_column("d", dates), group="g", y_true="d", y_pred="p", cluster="id"
    )
    asked = [(eq.Audit.disparity, "accuracy"), (eq.Audit.disparity, "selection_rate")]
    refused, answered = ask_all([declare(method, audit, metric) for method, metric in asked])
    assert str(refused).startswith("Column 'd' holds Date labels; say which one counts as 1")
    assert sorted(finding.n for finding in answered.findings) == counted(table)
    plain = eq.Audit(table.append_column("d", dates), group="g", y_true="d", y_pred="p")
    refused, answered = ask_all([declare(method, plain, metric) for method, metric in asked])
    assert "holds Date labels" in str(refused)
    assert sorted(finding.n for finding in answered.findings) == counted(table)


def test_a_parquet_file_with_times_with_a_zone_is_read(tmp_path):
    table = rows_of(MOMENTS, type=pa.timestamp("us", tz="Europe/Berlin"))
    parquet.write_table(table, tmp_path / "t.parquet")
    assert numbers(tmp_path / "t.parquet")["rows"] == counted(table)


FILE = "g,y,p,s\n" + "".join(
    f"{'None' if k % 3 else 'NA'},{k % 2},{'NA' if k == 5 else k // 2 % 2},0.{k % 7}\n"
    for k in range(60)
)


@pytest.mark.parametrize(
    "engine",
    [
        "duckdb",
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")]),
    ],
)
def test_groups_of_a_csv_file_may_be_called_none_and_na(tmp_path, engine):
    (tmp_path / "t.csv").write_text(FILE)
    audit = eq.Audit(tmp_path / "t.csv", group="g", y_pred="p", missing="drop", engine=engine)
    found = {f.group: f.n for f in audit.disparity("selection_rate").findings}
    # The word in a column of numbers is missing: row 5, of the group called None.
    assert found == {"g=NA": 20, "g=None": 39}


@pytest.mark.parametrize("word", ["NA", "#N/A"])
def test_words_for_missing_are_missing_labels_and_clusters(tmp_path, word):
    lines = [f"a,{'yes' if k % 2 else 'no'},u{k}" for k in range(50)] + [
        f"b,{word},u1",
        "b,yes,NULL",
        "b,no,u7",
    ]
    (tmp_path / "t.csv").write_text("g,p,u\n" + "\n".join(lines) + "\n")
    audit = eq.Audit(
        tmp_path / "t.csv", group="g", y_pred="p", cluster="u", positive="yes", missing="drop"
    )
    cells = answer_of(audit.table.label_sums(("y_pred",)))
    assert cells.n.tolist() == [50, 1]
    assert cells.dropped == 2


def test_dates_of_a_csv_file_keep_their_format_beside_words(tmp_path):
    lines = [f"{'NA' if k % 2 else 'b'},{13 + k % 3}/02/2024,{k % 2}" for k in range(60)]
    (tmp_path / "t.csv").write_text("g,day,p\n" + "\n".join(lines) + "\n")
    audit = eq.Audit(tmp_path / "t.csv", group=["g", "day"], y_pred="p")
    cells = answer_of(audit.table.label_sums(("y_pred",)))
    assert set(cells.labels[0]) == {"NA", "b"}
    assert set(cells.labels[1]) == {"2024-02-13", "2024-02-14", "2024-02-15"}


@pytest.mark.parametrize(
    "engine",
    [
        "duckdb",
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")]),
    ],
)
def test_files_of_a_glob_are_read_by_name(tmp_path, engine):
    first = [f"{'ab'[k % 2]},{k // 2 % 2},{k % 3}" for k in range(60)]
    second = [f"{k // 2 % 2},{k % 3},{'ab'[k % 2]}" for k in range(60)]
    (tmp_path / "t1.csv").write_text("g,p,x\n" + "\n".join(first) + "\n")
    (tmp_path / "t2.csv").write_text("p,x,g\n" + "\n".join(second) + "\n")
    audit = eq.Audit(str(tmp_path / "t*.csv"), group="g", y_pred="p", engine=engine)
    cells = answer_of(audit.table.label_sums(("y_pred",)))
    assert cells.labels[0].tolist() == ["a", "b"]
    np.testing.assert_array_equal(cells.total, [[30, 30], [30, 30]])
    (tmp_path / "t3.csv").write_text("g,q,x\na,1,1\n")
    with pytest.raises(DataError, match=r"differ in their columns: 't1.csv' has p, 't3.csv' has q"):
        eq.Audit(str(tmp_path / "t*.csv"), group="g", y_pred="p", engine=engine)


NAMES = [
    "*",
    '"',
    'a"b',
    "a.b",
    "`",
    "a b",
    "select",
    "x'y",
    "a\nb",
    "a;b",
    "%s",
    "__eq_key0",
    "__eq_key",
    "n",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_column_of_any_name_is_the_one_that_is_audited_or_refused(name):
    table = rows_of(["u", "v", "w"])
    named = pa.table({"first": ["z"] * N, name: table.column("g"), "y": table.column("p")})
    if name in {"*", "__eq_key"}:
        with pytest.raises(DataError, match="keep for themselves; rename it"):
            eq.Audit(named, group=name, y_pred="y")
        return
    for cluster in (None, "first"):
        audit = eq.Audit(named, group=name, y_pred="y", cluster=cluster)
        cells = answer_of(audit.table.label_sums(("y_pred",)))
        assert sorted(cells.n.tolist()) == counted(table)


@pytest.mark.parametrize("second", ["g", "G"])
def test_a_name_that_a_csv_file_has_twice_is_refused_if_it_is_used(tmp_path, second):
    file = tmp_path / "rows.csv"
    file.write_text(f"g,p,{second},h,g_2\n" + "a,1,b,x,u\nb,0,c,y,v\n" * 30)
    with pytest.raises(DataError, match="distinct, in lower case too; 'g' are not"):
        eq.Audit(file, group="g", y_pred="p")
    for group in ("h", "g_2"):
        assert eq.Audit(file, group=group, y_pred="p").disparity("selection_rate").n == 60
    for names, third in (("g,p,g_1", "b"), (f"g,p,{second}", "a")):
        file.write_text(f"{names}\n" + f"a,1,{third}\nb,0,b\n" * 30)
        assert eq.Audit(file, group="g", y_pred="p").disparity("selection_rate").n == 60


@pytest.mark.parametrize("engine", ["duckdb", ENGINES[-1]])
@pytest.mark.parametrize(
    ("header", "group"),
    [(",column0,p", "column0"), (" g,g,p", "g"), ("g , g,p", "g"), ("g,g,p,g_1", "g_1")],
)
def test_a_name_that_the_reader_of_a_csv_file_gives_to_another_column_is_refused(
    tmp_path, header, group, engine
):
    rows = "\n".join(f"{k % 2},{k % 3},{k // 2 % 2},{k % 5}" for k in range(60))
    rows = rows if header.count(",") == 3 else "\n".join(r[:-2] for r in rows.splitlines())
    (tmp_path / "t.csv").write_text(f"{header}\n{rows}\n", encoding="utf-8")
    audit = eq.Audit(tmp_path / "t.csv", group="p", y_pred="p", engine=engine)
    assert [finding.n for finding in audit.disparity("selection_rate").findings] == [30, 30]
    with pytest.raises(DataError, match=f"'{group}' are not. Rename them"):
        eq.Audit(tmp_path / "t.csv", group=group, y_pred="p", engine=engine)


@pytest.mark.parametrize("names", [["", "v0", "p"], ["v1", "", "p"]])
def test_a_column_without_a_name_takes_that_of_no_other(names):
    named = max(names[:2])
    columns = dict(zip(names, [[1, 2] * 30, [1, 2] * 30, [0, 1, 1] * 20], strict=True))
    columns[named] = [1] * 40 + [2] * 20
    for rows in (pa.table(columns), pd.DataFrame(columns), columns):
        result = eq.Audit(rows, group=named, y_pred="p").disparity("selection_rate")
        assert [finding.n for finding in result.findings] == [40, 20]
        with pytest.raises(ColumnNotFoundError, match="'' not found"):
            eq.Audit(rows, group="", y_pred="p")


@pytest.mark.parametrize("role", ["weight", "count", "y_score", "cluster"])
def test_what_is_true_or_false_may_be_a_number(role):
    rows = {"g": ["a", "b", "c"] * 40, "p": [0, 1] * 60, "yes": [True] * 80 + [False] * 40}
    told = eq.Audit(rows, group="g", y_pred="p", **{role: "yes"}).disparity("selection_rate")
    rows["yes"] = [int(value) for value in rows["yes"]]
    same = eq.Audit(rows, group="g", y_pred="p", **{role: "yes"}).disparity("selection_rate")
    assert told.findings == same.findings


def test_columns_that_differ_in_case_only_are_refused_if_one_is_used():
    data = {"SEX": [1, 2] * 20, "sex": ["a", "b"] * 20, "race": list("uvuv") * 10, "p": [0, 1] * 20}
    assert eq.Audit(data, group="race", y_pred="p").disparity("selection_rate").n == 40
    with pytest.raises(DataError, match="distinct, in lower case too; 'SEX', 'sex' are not"):
        eq.Audit(data, group="sex", y_pred="p")


def test_a_role_is_an_expression_and_runs_no_query(monkeypatch):
    audit = eq.Audit({"g": ["a", "b"], "p": ["yes", "no"]}, group="g", y_pred="p", positive="yes")
    monkeypatch.setattr(nw.LazyFrame, "collect", None)
    assert isinstance(audit.table.y_pred, nw.Expr)


def test_a_group_that_appears_between_two_queries_is_refused():
    cells = answer_of(
        eq.Audit(rows_of(["a", "b"]), group="g", y_pred="p").table.label_sums(("y_pred",))
    )
    assert place([np.array(["b", "a"], dtype=object)], cells).tolist() == [1, 0]
    with pytest.raises(DataError, match="The table changed while it was read: 'g=c' was not there"):
        place([np.array(["c"], dtype=object)], cells)


def test_rows_of_a_group_that_was_not_there_are_refused():
    engine = duckdb.connect()
    engine.execute("CREATE TABLE t AS SELECT 'a' || (i % 2) AS g, i % 2 AS p FROM range(20) r(i)")
    table = eq.Audit(engine.table("t"), group="g", y_score="p").table
    declared = table.sums([Quantity.of(table.y_score)], {"y_score": "number"})
    answer_of(declared)
    engine.execute("INSERT INTO t VALUES ('a9', 1)")
    with pytest.raises(DataError, match="'g=a9' was not there before"):
        answer_of(Rows(declared)).read()


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_spans_of_thousands_of_years_are_told_apart(unit):
    values = [2**62, 2**61, 0] if unit == "us" else [2**40, 2**40 + 1, 0]
    assert numbers(rows_of(values, type=pa.duration(unit))) == numbers(rows_of(values))


@pytest.mark.parametrize(
    "open_as",
    [
        pd.DataFrame,
        dict,
        lambda rows: {name: np.array(values, dtype=object) for name, values in rows.items()},
        lambda rows: pd.DataFrame(rows).astype({"g": "category"}),
    ],
)
def test_bytes_and_text_that_read_alike_are_no_one_group(open_as):
    rows = {"g": [b"b", "b"] * 50, "p": [0, 1] * 50}
    with pytest.raises(DataError, match="'g' has bytes and text, such as 'b'; equal ones"):
        eq.Audit(open_as(rows), group="g", y_pred="p")
    rows["g"] = [b"b", b"c"] * 50
    findings = eq.Audit(open_as(rows), group="g", y_pred="p").disparity("selection_rate").findings
    assert [(f.group, f.n) for f in findings] == [("g=b'b'", 50), ("g=b'c'", 50)]


FIRST = 20_480
"""Rows of a csv file that show the types of its columns."""


def later(values, found, *, column="g"):
    """A csv file of two columns in which a value comes after those that show the types."""
    rows = [*(values * FIRST)[:FIRST], found, found, values[0]]
    other = [0, 1, 1] * (len(rows) // 3 + 1)
    names = ("g", "p") if column == "g" else ("p", "g")
    lines = [f"{value},{k}" for value, k in zip(rows, other, strict=False)]
    return ",".join(names) + "\n" + "\n".join(lines) + "\n"


READERS = ["duckdb", ENGINES[-1]]


@pytest.mark.parametrize("engine", READERS)
@pytest.mark.parametrize(
    ("values", "found", "column"),
    [
        (["0", "1"], "0.6", "p"),
        (["0", "1"], "6E-1", "g"),
        (["0", "1"], "01", "g"),
        (["1", "2"], "1e-05", "p"),
        (["2024-01-01", "2024-01-02"], "2024-01-01 05:00:00", "g"),
        (["2024-01-01 01:00:00", "2024-01-02 00:00:00"], "2024-01-01 01:00:00.0000001", "g"),
        (["2024-01-01 01:00:00", "2024-01-02 00:00:00"], "2024-01-01 01:00:00+02", "g"),
    ],
)
def test_a_value_that_the_first_rows_did_not_show_is_not_cut(
    tmp_path, values, found, column, engine
):
    """Engines would round 0.6 to 1, and drop hours, zones and zeros, without a word."""
    (tmp_path / "t.csv").write_text(later(values, found, column=column))
    audit = eq.Audit(tmp_path / "t.csv", group="g", y_pred="p", engine=engine)
    with pytest.raises(DataError, match=f"in the first rows, and further down has {found[:3]}"):
        audit.disparity("selection_rate")


@pytest.mark.parametrize("engine", READERS)
@pytest.mark.parametrize("found", ["yes", "T", "1"])
def test_a_later_word_is_no_truth_value_of_a_group(tmp_path, found, engine):
    (tmp_path / "t.csv").write_text(later(["true", "false"], found))
    audit = eq.Audit(tmp_path / "t.csv", group="g", y_pred="p", engine=engine)
    with pytest.raises(DataError, match=f"'g' is BOOLEAN .* further down has {found}"):
        audit.disparity("selection_rate")


@pytest.mark.parametrize(
    ("values", "found", "label"),
    [
        (["1", "2"], "3.0", "3"),
        (["1", "2"], "1e3", "1000"),
        (["10", "20"], "30", "30"),
        (["true", "false"], "TRUE", "True"),
        (["2024-01-01 01:00:00", "2024-01-02"], "2024-01-03 01:00:00.500000000", None),
    ],
)
def test_a_later_value_of_the_same_type_is_read(tmp_path, values, found, label):
    (tmp_path / "t.csv").write_text(later(values, found))
    result = eq.Audit(tmp_path / "t.csv", group="g", y_pred="p").disparity("selection_rate")
    counts = {finding.group: finding.n for finding in result.findings}
    name = f"g={label or '2024-01-03T01:00:00.500000'}"
    assert counts[name] == (FIRST // 2 + 3 if label == "True" else 2)
    assert sum(counts.values()) == FIRST + 3


def test_numbers_that_begin_whole_keep_their_fractions(tmp_path):
    (tmp_path / "t.csv").write_text(later(["0", "1"], "0.6", column="p").replace("p,g", "s,g"))
    result = eq.Audit(tmp_path / "t.csv", group="g", y_score="s").disparity("mean_score")
    table = pd.read_csv(tmp_path / "t.csv")
    gaps = table.groupby("g").s.mean() - table.s.mean()
    assert [finding.estimate for finding in result.findings] == pytest.approx(gaps.tolist())


def test_a_later_file_has_its_say_in_what_a_column_is(tmp_path):
    for k in range(15):
        (tmp_path / f"{k:02}.csv").write_text("g,p\n" + "1,0\n2,1\n" * 5)
    (tmp_path / "15.csv").write_text("g,p\n" + "1.5,0\n2,1\n" * 5)
    audit = eq.Audit(tmp_path / "*.csv", group="g", y_pred="p")
    result = audit.disparity("selection_rate")
    found = {finding.group: finding.n for finding in result.findings}
    assert found == {"g=1": 75, "g=1.5": 5, "g=2": 80}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("other", ["before", "later"])
def test_files_with_other_ends_of_lines_are_read_whole(tmp_path, end, other):
    """DuckDB read none of the rows of such a file, without a word."""
    rows = "g,p\n" + "a,1\nb,0\nb,1\n" * 10
    (tmp_path / "m.csv").write_text(rows)
    text = rows.replace("\n", end)
    (tmp_path / f"{other}.csv").write_bytes(text.encode("utf-8-sig"))
    result = eq.Audit(tmp_path / "*.csv", group="g", y_pred="p").disparity("selection_rate")
    assert [finding.n for finding in result.findings] == [20, 40]


def test_folders_that_say_otherwise_than_their_files_are_refused(tmp_path):
    rows = pa.table({"g": ["a", "b"] * 10, "p": [0, 1, 1, 0] * 5})
    (tmp_path / "t/p/g=a").mkdir(parents=True)
    parquet.write_table(rows, tmp_path / "t/p/g=a/x.parquet")
    with pytest.raises(DataError, match="has a column 'g' with other values than the name of"):
        eq.Audit(tmp_path / "t", group="g", y_pred="p")
    parquet.write_table(rows.filter(pa.array([True, False] * 10)), tmp_path / "t/p/g=a/x.parquet")
    assert eq.Audit(tmp_path / "t", group="g", y_pred="p").disparity("selection_rate").n == 10


def test_nanoseconds_of_a_csv_file_are_told_apart(tmp_path):
    moments = [f"2024-01-01 00:00:00.00000000{k}" for k in range(3)]
    (tmp_path / "t.csv").write_text(
        "g,p\n" + "".join(f"{m},{k}\n" for k in (0, 1) for m in moments)
    )
    result = eq.Audit(tmp_path / "t.csv", group="g", y_pred="p").disparity("selection_rate")
    assert [finding.n for finding in result.findings] == [2, 2, 2]


def test_names_of_several_levels_are_refused_with_a_remedy():
    frame = pd.DataFrame([[1, 0]] * 4, columns=pd.MultiIndex.from_tuples([("a", "g"), ("a", "y")]))
    with pytest.raises(DataError, match=r"several levels. Give each one name: `frame.columns ="):
        eq.Audit(frame, group="g", y_true="y")
    frame.columns = ["_".join(map(str, name)) for name in frame.columns]
    assert eq.Audit(frame, group="a_g", y_true="a_y").disparity("outcome_rate").n == 4


def test_values_of_several_types_are_refused_in_a_sentence():
    frame = pd.DataFrame({"g": ["a", 1] * 4, "y": [0, 1] * 4})
    with pytest.raises(DataError) as caught:
        eq.Audit(frame, group="g", y_true="y")
    assert str(caught.value).endswith(
        "; Conversion failed for column g with type object. Give each column values of one type,"
        " for instance by `.astype(str)`."
    )
