"""Spark reads files as DuckDB does, and says in one line what it cannot read."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import equipoise as eq
from equipoise.cli.app import app
from equipoise.data import duckdb, spark
from equipoise.exceptions import DataError, MissingDependencyError
from support.engines import spark_session

SRC = str(Path(eq.__file__).parents[1])
on_spark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

CSV = """person;race;score;day;selected
1;"Black; or African-American";0,5;2020-01-02;1
2;NA;0.25;2020-01-03;0
3;White;null;2020-01-02;1
4;White;0.75;;0
"""


@pytest.fixture
def csv_file(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text(CSV.replace("0,5", "0.5"))
    return str(file)


@pytest.mark.usefixtures("spark")
class TestFiles:
    pytestmark = on_spark

    @pytest.fixture
    def spark(self):
        return spark_session()

    def test_a_column_that_a_csv_file_has_twice_is_one_unless_the_two_differ(self, tmp_path):
        file = tmp_path / "copies.csv"
        file.write_text("g,p,G\n" + "a,1,a\nb,0,b\n" * 30)
        audits = [eq.Audit(file, group="g", y_pred="p", engine=one) for one in ("duckdb", "spark")]
        first, second = (audit.disparity("selection_rate").to_dict() for audit in audits)
        assert first["findings"] == second["findings"]
        file.write_text("g,p,G\n" + "a,1,a\nb,0,c\n" * 30)
        with pytest.raises(DataError, match="distinct, in lower case too; 'g' are not"):
            eq.Audit(file, group="g", y_pred="p", engine="spark")

    def test_csv_has_the_nulls_types_and_values_that_duckdb_reads(self, csv_file):
        local = duckdb.read(csv_file).to_arrow_table()
        distributed = spark.read(csv_file).toArrow()
        assert distributed.column_names == local.column_names
        assert distributed.to_pylist() == local.to_pylist()
        assert local.column("race").null_count == 1
        assert local.column("score").null_count == 1

    @pytest.mark.parametrize("field", ["'a'", '"a ""x"" b"', r'"a \"x\" b"', '"a', '5" nail'])
    def test_quotes_are_read_as_duckdb_reads_them(self, tmp_path, field):
        file = tmp_path / "rows.csv"
        file.write_text("g,p\n" + f"{field},1\na,0\n" * 20)
        local = duckdb.read(str(file)).to_arrow_table()
        assert spark.read(str(file)).toArrow().to_pylist() == local.to_pylist()
        assert len(local.column("g").unique()) == 2

    def test_partitioned_folder_has_the_partition_as_a_column_on_both_engines(self, tmp_path):
        for race in ("Black", "White"):
            folder = tmp_path / f"race={race}"
            folder.mkdir()
            pq.write_table(pa.table({"selected": [0, 1] * 20}), folder / "part.parquet")
        results = [
            eq.Audit(str(tmp_path), group="race", y_pred="selected", engine=engine)
            .disparity("selection_rate")
            .to_dict()
            for engine in ("duckdb", "spark")
        ]
        assert results[0] == results[1]
        groups = [finding["group"] for finding in results[0]["findings"]]
        assert groups == ["race=Black", "race=White"]

    def test_files_with_different_columns_are_refused(self, tmp_path):
        pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "1.parquet")
        pq.write_table(pa.table({"a": [1.5], "b": ["x"]}), tmp_path / "2.parquet")
        with pytest.raises(DataError, match=r"'1.parquet' has a BIGINT, '2.parquet' has a DOUBLE"):
            spark.read(str(tmp_path))

    def test_a_column_of_arrays_is_refused(self):
        frame = spark_session().createDataFrame([([1, 2], 1), ([3], 0)], ["group", "p"])
        with pytest.raises(DataError, match="a type that no audit can use"):
            eq.Audit(frame, group="group", y_pred="p")

    @pytest.mark.parametrize("name", ["a.b", "a`b"])
    def test_a_name_that_spark_takes_for_a_path_is_refused_where_it_is_used(self, name, tmp_path):
        rows = pa.table({name: ["x", "y"] * 30, "g": ["x", "y"] * 30, "p": [1, 0, 0] * 20})
        frame = spark_session().createDataFrame(rows)
        with pytest.raises(DataError, match="has a dot or a backtick in its name"):
            eq.Audit(frame, group=name, y_pred="p")
        assert eq.Audit(frame, group="g", y_pred="p").disparity("selection_rate").n == 60
        pq.write_table(rows, tmp_path / "rows.parquet")
        with pytest.raises(DataError, match="has a dot or a backtick in its name"):
            eq.Audit(str(tmp_path / "rows.parquet"), group=name, y_pred="p", engine="spark")

    def test_a_stopped_session_is_told_in_a_sentence(self, monkeypatch):
        frame = spark_session().createDataFrame(pa.table({"g": ["x"] * 9, "p": [1, 0, 1] * 3}))
        audit = eq.Audit(frame, group="g", y_true="p", y_pred="p", y_score="p")
        context = frame.sparkSession.sparkContext
        monkeypatch.setattr(context, "_jsc", None)
        asked = [
            lambda: eq.Audit(frame, group="g", y_pred="p"),
            lambda: audit.disparity("selection_rate"),
            audit.predictive_parity,
            lambda: audit.improvability("p", accuracy="accuracy", fairness="fpr"),
        ]
        for ask in asked:
            with pytest.raises(DataError, match="The Spark session that holds the rows was stop"):
                ask()

    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_command_line_runs_a_plan_on_spark(self, ending, tmp_path):
        from typer.testing import CliRunner

        file = tmp_path / f"rows.{ending}"
        if ending == "csv":
            file.write_text("race,selected\n" + "a,1\nb,0\na,0\nb,1\nb,1\n" * 30)
        else:
            rows = {"race": list("ababb") * 30, "selected": [1, 0, 0, 1, 1] * 30}
            pq.write_table(pa.table(rows), file)
        plan = tmp_path / "audit.toml"
        plan.write_text(
            f'[data]\npath = "{file}"\ngroup = ["race"]\ny_pred = "selected"\n'
            '[[check]]\nquestion = "disparity"\nmetric = "selection_rate"\n'
        )
        shown = {}
        for engine in ("duckdb", "spark"):
            done = CliRunner().invoke(app, ["audit", str(plan), "--engine", engine, "--quiet"])
            assert done.exit_code == 0, done.output
            shown[engine] = done.stdout
        assert shown["spark"] == shown["duckdb"]


def test_without_pyspark_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.errors", None)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingDependencyError, match=r"Install `equipoise\[spark\]`"):
        eq.Audit("people.csv", group="race", engine="spark")


def test_without_java_the_error_says_what_is_needed(tmp_path):
    code = (
        "import equipoise as eq\n"
        "try:\n    eq.Audit('people.csv', group='race', engine='spark')\n"
        "except eq.exceptions.MissingDependencyError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import equipoise.exceptions\n" + code],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": SRC, "PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)},
    )
    assert done.stdout.strip() == (
        "Spark did not start; it needs Java 17 or newer on the PATH or in JAVA_HOME."
    )


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("ModuleNotFoundError: No module named 'equipoise'", "PYSPARK_PYTHON=./environment"),
        (
            "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version",
            "run another Python than this one, .* Set PYSPARK_PYTHON to the same",
        ),
        (
            "SparkException: EOFException occurred while reading from pyspark.daemon's stdout.",
            "could not start Python, or one too old for Spark. Set PYSPARK_PYTHON to a Python 3",
        ),
        (
            'java.io.IOException: Cannot run program "/no/python": error=2, No such file',
            "could not start Python",
        ),
    ],
)
def test_workers_that_cannot_help_are_told_with_the_cure(text, cure):
    error = spark._worker_error(RuntimeError(f"Traceback\n{text}: 3.9 than that in driver"))
    assert isinstance(error, MissingDependencyError)
    with pytest.raises(MissingDependencyError, match=cure):
        raise error


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_addresses_are_left_to_spark_which_says_what_it_cannot_read(tmp_path):
    spark_session()
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "t.parquet")
    (tmp_path / "t.tsv").write_text("a\tb\n1\tNA\n2\ty\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing more")
    place = tmp_path.as_uri()
    assert spark.read(f"{place}/t.parquet").toArrow().to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    assert spark.read(f"{place}/t.tsv").toArrow().to_pydict() == {"a": [1, 2], "b": [None, "y"]}
    with pytest.raises(DataError, match=r"Spark cannot read .*absent.parquet"):
        spark.read(f"{place}/absent.parquet")
    with pytest.raises(DataError, match=r"Cannot read .*broken.parquet"):
        spark.read(str(tmp_path / "broken.parquet"))
