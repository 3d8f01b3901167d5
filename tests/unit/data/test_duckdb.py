"""The embedded engine reads the files it was given, says why it cannot, and does nothing else."""

import datetime as dt
import gzip
import subprocess
import sys

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import equipoise as eq
from equipoise.data.duckdb import connection, read
from equipoise.data.query import reason
from equipoise.exceptions import DataError, MissingValuesError
from support.engines import on_engine

ROWS = "g,p\n" + "a,1\nb,0\n" * 20


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "it's.csv"
    file.write_text(ROWS)
    return str(file)


@pytest.mark.parametrize(
    "query",
    [
        "INSTALL httpfs",
        "LOAD httpfs",
        "FROM read_csv('/etc/passwd')",
        "FROM '/etc/passwd'",
        "FROM glob('/etc/*')",
        "FROM read_text('/etc/hostname')",
        "FROM 'https://example.org/rows.parquet'",
        "COPY (SELECT 1) TO 'out.csv'",
        "ATTACH 'out.db'",
        "EXPORT DATABASE 'out'",
        "SET enable_external_access = true",
        "SET autoload_known_extensions = true",
        "SET allowed_paths = ['/etc/passwd']",
        "SET temp_directory = '.'",
        "RESET lock_configuration",
        "FROM table_of_python",
    ],
)
def test_a_connection_reaches_nothing_but_its_files(file, query, tmp_path, monkeypatch):
    import duckdb

    table_of_python = pa.table({"a": [1]})
    monkeypatch.chdir(tmp_path)
    engine = connection(file)
    with pytest.raises(duckdb.Error):
        engine.execute(query)
    assert table_of_python.num_rows == 1
    assert [found.name for found in tmp_path.iterdir()] == ["it's.csv"]
    assert engine.read_csv([file]).fetchall()[0] == ("a", 1)


def test_the_settings_that_shut_the_engine_in_are_on():
    engine = connection()
    for setting, value in [
        ("autoload_known_extensions", False),
        ("autoinstall_known_extensions", False),
        ("allow_community_extensions", False),
        ("python_enable_replacements", False),
        ("enable_external_access", False),
        ("lock_configuration", True),
    ]:
        found = engine.execute("SELECT current_setting(?)", [setting]).fetchone()
        assert found == (value,), setting


@pytest.mark.parametrize("path", ["https://example.org/*.csv", "s3://bucket/rows.parquet"])
def test_a_path_elsewhere_is_not_fetched(path):
    with pytest.raises(DataError, match="not found"):
        eq.Audit(path, group="g", y_pred="p")


@pytest.mark.parametrize("path", ["x" * 5000 + ".csv", "a\0b.csv", "y/" * 2500 + "z.parquet"])
@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_path_that_no_file_can_have_is_one_short_sentence(path, engine):
    with pytest.raises(DataError, match="not found") as caught:
        eq.Audit(path, group="g", y_pred="p", engine=engine)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+05:30"])
def test_a_column_of_times_with_a_zone_does_not_stop_the_audit_of_others(tmp_path, zone):
    when = [dt.datetime(2024, 3, 1, tzinfo=dt.UTC)] * 40
    table = pa.table(
        {
            "g": ["a", "b"] * 20,
            "p": [1, 0, 0, 1] * 10,
            "when": pa.array(when, pa.timestamp("us", tz=zone)),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    path = str(tmp_path / "rows.parquet")
    assert eq.Audit(path, group="g", y_pred="p").disparity("selection_rate").n == 40


def test_the_reason_of_an_engine_is_not_cut_before_it_is_told(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("g,p\n" + "a,1\nb,0\n" * 20_000 + "b,many\n")
    with pytest.raises(DataError) as caught:
        eq.Audit(file, group="g", y_pred="p").disparity("selection_rate")
    assert str(caught.value) == (
        "The engine could not run the query: Conversion Error: Could not convert string 'many' to"
        " INT64."
    )


def test_a_reason_is_one_line_without_advice():
    told = "First\n  second\n\nLINE 1: SELECT\n"
    assert reason(ValueError(told)) == "First second."
    assert reason(ValueError("Done.")) == "Done."
    assert reason(ValueError()) == "ValueError."
    assert len(reason(ValueError("x" * 9000))) < 600


def test_a_line_with_more_fields_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("g,p\na,1\nb,0\nb,0,7\na,1\n")
    with pytest.raises(DataError, match="line 4 has 3 fields, the first has 2; correct that line"):
        eq.Audit(tmp_path / "t.csv", group="g", y_pred="p")


@pytest.mark.parametrize("missing", [None, float("nan")])
@pytest.mark.parametrize("container", ["pyarrow", "polars", "pandas", "dict", "parquet", "csv"])
def test_a_feature_that_is_not_a_number_is_missing_in_every_container(tmp_path, container, missing):
    k = np.arange(200)
    x = pa.array([missing, *(k[1:] % 7 / 7).tolist()], from_pandas=False)
    table = pa.table({"g": k % 2, "y": k // 2 % 2, "p": k // 3 % 2, "x": x})
    data = table
    if container == "parquet":
        pq.write_table(table, tmp_path / "t.parquet")
        data = tmp_path / "t.parquet"
    elif container == "csv":
        csv.write_csv(table, tmp_path / "t.csv")
        data = tmp_path / "t.csv"
    elif container != "pyarrow":
        data = on_engine(container, table)
    roles = {"group": "g", "y_true": "y", "y_pred": "p", "features": ["x"]}
    audit = eq.Audit(data, **roles)
    with pytest.raises(MissingValuesError, match="'x' has 1 missing values in 200 rows"):
        audit.improvability("sklearn.linear_model.LogisticRegression", accuracy="accuracy")


def test_an_empty_file_among_others_is_named(tmp_path):
    (tmp_path / "1.csv").write_text(ROWS)
    (tmp_path / "2.csv").write_text("")
    with pytest.raises(DataError, match="the file is empty"):
        eq.Audit(str(tmp_path / "*.csv"), group="g", y_pred="p")


def test_a_doubled_quote_far_below_the_first_rows_is_read(tmp_path):
    file = tmp_path / "late.csv"
    rows = [f'{k},"charge, {k}",F' for k in range(30_000)]
    rows.append('30000,"Poss Mot Veh Mfg ""ID"" Removed",M')
    file.write_text("id,charge,sex\n" + "\n".join(rows) + "\n")
    ((count,),) = read(str(file)).aggregate("count(*)").fetchall()
    assert count == 30_001


@pytest.mark.parametrize("label", ["F", "T", "yes", "t", "no"])
def test_a_group_with_one_label_is_no_truth_value(tmp_path, label):
    file = tmp_path / "rows.csv"
    file.write_text("g,p,s\n" + f"{label},1,{label}\n{label},0,{label}\n" * 20)
    audit = eq.Audit(file, group="g", y_pred="p", strata="s")
    assert audit.disparity("selection_rate").findings[0].group == f"g={label}"
    assert audit.table.schema["s"] == nw.String


def test_true_and_false_stay_truth_values_and_labels_are_as_before(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("g,p\n" + "true,yes\nfalse,no\n" * 20)
    audit = eq.Audit(file, group="g", y_pred="p")
    findings = audit.disparity("selection_rate", reference={"g": False}).findings
    assert [f.group for f in findings] == ["g=False", "g=True"]
    assert findings[1].estimate == 1.0


@pytest.mark.parametrize(
    ("labels", "positive"),
    [(("F", "T"), "F"), (("no", "yes"), "no"), (("false", "true"), "false"), ((0, 1), "0")],
)
def test_the_label_that_was_named_counts_as_one(tmp_path, labels, positive):
    file = tmp_path / "rows.csv"
    file.write_text("g,p\n" + f"a,{labels[0]}\nb,{labels[1]}\n" * 20)
    audit = eq.Audit(file, group="g", y_pred="p", positive=positive)
    first = audit.disparity("selection_rate", reference=0.0).findings[0]
    assert (first.group, first.estimate) == ("g=a", 1.0)


def test_dates_with_two_digit_years_stay_words(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("g,p\n" + "13-02-26,1\n14-02-26,0\n" * 20)
    audit = eq.Audit(file, group="g", y_pred="p")
    assert audit.table.schema["g"] == nw.String


def test_a_plain_script_ends_without_a_word_on_stderr():
    script = """
import equipoise as eq
counts = eq.datasets.load_compas_counts()
audit = eq.Audit(counts, group="sex", y_pred="high_risk", count="count")
print(audit.disparity("selection_rate"))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert "sex: Female" in done.stdout
    assert done.stderr == ""


def test_single_quotes_are_part_of_a_word(tmp_path):
    """DuckDB would take them for marks, and both labels for one."""
    file = tmp_path / "rows.csv"
    file.write_text("g,p\n" + "'a',1\na,0\n" * 20)
    findings = eq.Audit(file, group="g", y_pred="p").disparity("selection_rate").findings
    assert [(f.group, f.n) for f in findings] == [("g='a'", 20), ("g=a", 20)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'g','p'\n" + "'a','1'\n'b','0'\n" * 20, "names of its columns in single quotes"),
        ("g,p\n" + "'a, x',1\nb,0\n" * 20, "line 2 has 3 fields, the first has 2"),
    ],
)
def test_a_file_that_quotes_with_single_quotes_is_refused(tmp_path, text, message):
    file = tmp_path / "rows.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        eq.Audit(file, group="g", y_pred="p")


@pytest.mark.parametrize(
    ("field", "label"),
    [('"a ""x"" b"', 'a "x" b'), (r'"a \"x\" b"', 'a "x" b'), ('"a', '"a'), ('5" nail', '5" nail')],
)
def test_a_double_quote_is_a_mark_where_it_is_closed(tmp_path, field, label):
    file = tmp_path / "rows.csv"
    file.write_text("g,p\n" + f"{field},1\nb,0\n" * 20)
    findings = eq.Audit(file, group="g", y_pred="p").disparity("selection_rate").findings
    assert {f.group.parts for f in findings} == {(("g", label),), (("g", "b"),)}


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("mark", [",", "\t", " "])
def test_names_of_rows_without_a_name_are_told(tmp_path, name, mark):
    lines = [f"{k}{mark}{'FM'[k % 2]}{mark}{k % 3}" for k in range(1, 30)]
    packed = gzip.open if name.endswith(".gz") else open
    with packed(tmp_path / name, "wt", encoding="utf-8") as stream:
        stream.write("\n".join([f"sex{mark}hired", *lines, ""]))
    with pytest.raises(DataError, match="the first line has 2 names, and lines below it 3 fields"):
        read(str(tmp_path / name))


def test_a_column_of_first_and_last_names_has_no_names_of_rows(tmp_path):
    (tmp_path / "t.csv").write_text("person\n" + "Ann Lee\n" * 30, encoding="utf-8")
    with pytest.raises(DataError, match="has a single column 'person'"):
        read(str(tmp_path / "t.csv"))


def test_where_lines_differ_in_their_fields_is_told_of_packed_files_too(tmp_path):
    text = b"a,b\n1,2,3\n4\n" * 3
    (tmp_path / "t.csv").write_bytes(text)
    (tmp_path / "t.csv.zst").write_bytes(pa.compress(text, "zstd", asbytes=True))
    for name in ("t.csv", "t.csv.zst"):
        with pytest.raises(DataError, match="line 2 has 3 fields, the first has 2"):
            read(str(tmp_path / name))


NOTES = [f'{k % 3},"a, b"\n' for k in range(9)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["g,note\n", *NOTES, "1\n"], "line 11 has 1 fields, the first has 2"),
        (["g,note\n", '1,"two\nlines"\n', *NOTES, "1\n"], "line 13 has 1 fields"),
        (["g,note\n", "\n", *NOTES, "1,2,3\n"], "line 12 has 3 fields"),
        (['"g,h";p\n', *["a;1\n"] * 9, "a\n"], "line 11 has 1 fields, the first has 2"),
        (
            ["a study, by us, 2020\n", "g,p\n", *NOTES],
            "first line has 3 fields, .* below it 2; del",
        ),
        (
            ["g,p\n", *["1,0,5\n"] * 9],
            "first line has 2 fields, .* below it 3; .* have ',' in them",
        ),
        (["g,p\n", *NOTES, '1,"x" y\n'], "line 11 has a quote that is not closed at the end"),
        (["g,p\n", *NOTES, '"1,x\n'], "line 11 has a quote that is not closed at the end"),
        (["g,p\r\n", *NOTES], "some lines end as on Windows, and others do not"),
    ],
)
def test_only_what_is_wrong_with_a_file_is_told_of(tmp_path, lines, message):
    (tmp_path / "t.csv").write_text("".join(lines), newline="")
    with pytest.raises(DataError, match=message):
        read(str(tmp_path / "t.csv"))


def test_of_several_files_the_one_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "1.csv").write_text("g,note\n" + "".join(NOTES))
    (tmp_path / "2.csv").write_text("g,note\n" + "1,2,3\n4\n" * 3)
    with pytest.raises(DataError, match=r"2.csv': the first line has 2 fields"):
        read(str(tmp_path / "*.csv"))


@pytest.mark.parametrize(
    ("start", "remedy"),
    [
        (gzip.compress(b"g,p\n", mtime=0), "the ending `.csv.gz`"),
        (b"PK\x03\x04", r"Save its table as csv \(UTF-8\)"),
        (b"PAR1", "the ending `.parquet`"),
    ],
)
def test_a_file_that_is_called_csv_and_is_none_is_refused_by_what_it_is(tmp_path, start, remedy):
    (tmp_path / "t.csv").write_bytes(start + b"\0\xff" * 40)
    with pytest.raises(DataError, match=remedy):
        read(str(tmp_path / "t.csv"))


@pytest.mark.parametrize("name", ["g=z", "p=1", "seed=2"])
def test_the_name_of_a_folder_is_no_value_of_a_csv_file_in_it(tmp_path, name):
    file = tmp_path / name / "t.csv"
    file.parent.mkdir()
    file.write_text(ROWS)
    findings = eq.Audit(file, group="g", y_pred="p").disparity("selection_rate").findings
    assert [(f.group, f.n) for f in findings] == [("g=a", 20), ("g=b", 20)]
