"""What leaves the engine, by question: the table of the guide is measured."""

import re
from pathlib import Path

import narwhals as nw
import pyarrow as pa
import pytest

import equipoise as eq
from equipoise.audits.disparity import measure
from equipoise.audits.improvement import rows as decision_rows
from equipoise.audits.inequality import inequality
from equipoise.data import spark
from reference.test_engines import CASES, ROWS
from support.engines import spark_session

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "scale.md"
LINE = re.compile(r"^\| (\w+) \| (sums|sums or a sample) \|$", re.MULTILINE)

ASKED = {
    "disparity": ["rates of text and Boolean groups", "rates of categories with clusters"],
    "flag": ["rates of integer groups with counts"],
    "certify": ["rates of dates with weights"],
    "inequality": ["inequality of decisions", "inequality of a column"],
    "treatment_effects": ["treatment effects"],
}
# Rows in the memory of this process are streamed; on a cluster, functions go to the rows.
ASKED_OF_SPARK = {
    "predictive_parity": ["predictive parity of users with counts"],
    "marginal_outcome": ["marginal outcome"],
    "improvability": ["improvability by another score", "improvability by clusters"],
}


def repeated(times):
    """The rows several times over, each time with other users."""
    place = ROWS.column_names.index("user")
    users = ROWS.column("user").to_numpy()
    return pa.concat_tables(
        ROWS.set_column(place, "user", pa.array(users + 150 * k)) for k in range(times)
    )


@pytest.fixture
def collected(monkeypatch):
    """Sizes of all that was collected, for a table that is too large to be tested from rows."""
    sizes = []
    collect = nw.LazyFrame.collect

    def counting(frame, *args, **options):
        found = collect(frame, *args, **options)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(nw.LazyFrame, "collect", counting)
    monkeypatch.setattr(measure, "WORK_LIMIT", 0)
    monkeypatch.setattr(inequality, "MOST_UNITS", 0)
    return sizes


@pytest.fixture
def sent(collected, monkeypatch):
    """Sizes of all that left Spark: rows of queries, and numbers that functions returned."""
    brought = spark.collected

    def counting(frame, function):
        found = brought(frame, function)
        collected.extend(array.size for part in found for array in part)
        return found

    monkeypatch.setattr(spark, "collected", counting)
    return collected


def test_the_guide_names_every_question():
    assert sorted(dict(LINE.findall(GUIDE.read_text()))) == sorted(ASKED | ASKED_OF_SPARK)


def growth(case, open_rows, sizes):
    """Return how much more is collected of four times the rows and users."""
    roles, ask = CASES[case]
    totals = []
    for times in (4, 16):
        sizes.clear()
        ask(eq.Audit(open_rows(repeated(times)), missing="drop", **roles))
        totals.append(sum(sizes))
    return totals[1] / totals[0]


@pytest.mark.parametrize("question", ASKED)
def test_what_is_collected_is_what_the_guide_says(question, collected):
    leaves = dict(LINE.findall(GUIDE.read_text()))[question]
    for case in ASKED[question]:
        found = growth(case, lambda rows: rows, collected)
        assert leaves == "sums"
        # Empty blocks fill up.
        assert found < 1.2, (case, found)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("question", ASKED_OF_SPARK)
def test_what_leaves_spark_is_what_the_guide_says(question, sent, monkeypatch):
    monkeypatch.setattr(decision_rows, "SAMPLE_ROWS", 600)
    sampled = question == "improvability"
    leaves = dict(LINE.findall(GUIDE.read_text()))[question]
    assert leaves == ("sums or a sample" if sampled else "sums")

    def on_spark(rows):
        place = rows.column_names.index("band")
        plain = rows.set_column(place, "band", rows.column("band").cast(pa.string()))
        return spark_session().createDataFrame(plain)

    for case in ASKED_OF_SPARK[question]:
        # A sample has about as many rows.
        assert growth(case, on_spark, sent) < (1.3 if sampled else 1.2)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_cluster_is_left_as_it_was():
    before = spark_session().sparkContext._jsc.getPersistentRDDs().size()
    roles, ask = CASES["marginal outcome"]
    ask(
        eq.Audit(
            spark_session().createDataFrame(ROWS.drop_columns("band")), missing="drop", **roles
        )
    )
    assert spark_session().sparkContext._jsc.getPersistentRDDs().size() == before
