"""Ibis tables stay in their database: the same numbers, and a count of the rows that leave."""

import ibis
import narwhals as nw
import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

import equipoise as eq
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError
from support.postgres import private_postgres, why_not

N = 1200


def rows():
    rng = np.random.default_rng(5)
    score = rng.random(N).round(3)
    return pa.table(
        {
            "race": rng.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2]),
            "sex": rng.choice(["F", "M"], N),
            "repaid": (rng.random(N) < score).astype(np.int64),
            "approved": (score > 0.5).astype(np.int64),
            "word": np.where(rng.random(N) < 0.4, "yes", "no"),
            "score": score,
            "person": rng.integers(0, 400, N),
            "weight": rng.integers(1, 9, N) / 4,
            "times": rng.integers(1, 4, N),
            "arm": rng.integers(0, 2, N),
            "effect": rng.random(N),
            "x": score + rng.normal(size=N),
            "other": rng.integers(0, 2, N),
            "age": rng.integers(18, 80, N).astype(np.float64),
            "gap": pa.array([None if k % 50 == 0 else k % 2 for k in range(N)]),
        }
    )


@pytest.fixture(scope="module")
def local():
    return rows()


def open_database(kind, folder):
    if kind == "duckdb":
        return ibis.duckdb.connect()
    if kind == "sqlite":
        return ibis.sqlite.connect()
    return ibis.postgres.connect(host=str(folder), user="postgres", database="postgres")


@pytest.fixture(scope="module", params=["duckdb", "sqlite", "postgres"])
def database(request, local):
    if request.param == "postgres":
        if why_not():
            pytest.skip(why_not())
        with private_postgres() as folder:
            connection = open_database("postgres", folder)
            yield connection.create_table("loans", local)
            connection.disconnect()
    else:
        connection = open_database(request.param, None)
        yield connection.create_table("loans", local)
        connection.disconnect()


ROLES = {"group": ["race", "sex"], "y_true": "repaid", "y_pred": "approved", "y_score": "score"}
PROFIT = eq.Metric("profit", nw.col("score") * nw.col("approved"), "approved")


def numbers(result):
    found = []
    for finding in result.findings:
        ci = finding.ci
        ends = () if ci is None else (ci.low, ci.high)
        found += [x for x in (finding.estimate, *ends, finding.p_value) if x is not None]
    return np.array(found)


CELL_QUESTIONS = {
    "rate": ({}, lambda audit: audit.disparity("selection_rate")),
    "tpr": ({}, lambda audit: audit.flag("tpr", margin=0.05)),
    "certify": ({}, lambda audit: audit.certify("accuracy", margin=0.2)),
    "real": ({}, lambda audit: audit.disparity("mean_score", method="eel")),
    "own metric": ({}, lambda audit: audit.disparity(PROFIT, method="eel")),
    "weights": ({"weight": "weight"}, lambda audit: audit.disparity("tpr", method="eel")),
    "counts": ({"count": "times"}, lambda audit: audit.disparity("fpr")),
    "clusters": ({"cluster": "person"}, lambda audit: audit.disparity("tpr", method="eel")),
    "few cells of clusters": (
        {"cluster": "person", "group": "sex"},
        lambda audit: audit.disparity("selection_rate", method="eel"),
    ),
    "bins": (
        {"group": ["age"], "bins": {"age": [30, 50]}},
        lambda audit: audit.disparity("selection_rate"),
    ),
    "words": (
        {"y_pred": "word", "positive": "yes"},
        lambda audit: audit.disparity("selection_rate"),
    ),
    "dropped": ({"y_pred": "gap", "missing": "drop"}, lambda audit: audit.disparity("fpr")),
    "inequality": ({}, lambda audit: audit.inequality("speicher")),
    "highest": ({}, lambda audit: audit.impact_ratios()),
    "given": ({"group": "sex"}, lambda audit: audit.disparity("tpr", given=["word"])),
    "explained": ({"group": "sex"}, lambda audit: audit.decompose("tpr", given=["word"])),
    "two models": (
        {"group": "sex"},
        lambda audit: audit.compare("accuracy", baseline="other", candidate="approved"),
    ),
    "two periods": (
        {"group": "sex"},
        lambda audit: audit.compare("fpr", baseline=[1], period="times"),
    ),
    "monitor": ({"group": "sex", "time": "times"}, lambda audit: audit.monitor("tpr")),
    "effects": (
        {"treatment": "arm", "effect_pred": "effect", "group": "race"},
        lambda audit: audit.treatment_effects(),
    ),
    "ready candidate": (
        {"group": "sex"},
        lambda audit: audit.improvability(
            "other", accuracy="accuracy", fairness="fpr", n_resamples=200, rng=1
        ),
    ),
}


@pytest.mark.parametrize("name", CELL_QUESTIONS)
def test_a_database_answers_like_local_rows_and_keeps_them(database, local, name):
    roles, question = CELL_QUESTIONS[name]
    there = question(eq.Audit(database, **(ROLES | roles)))
    here = question(eq.Audit(local, **(ROLES | roles)))
    assert_allclose(numbers(there), numbers(here), rtol=1e-9, atol=1e-9)
    assert [finding.decision for finding in there.findings] == [
        finding.decision for finding in here.findings
    ]
    assert "rows-brought" not in {note.code for note in there.notes}
    assert there.sql()
    assert all("SELECT" in query for query in there.sql())


@pytest.mark.parametrize("name", CELL_QUESTIONS)
def test_few_rows_leave_the_database(database, monkeypatch, name):
    left = []
    collect = nw.LazyFrame.collect

    def counting(frame, *args, **options):
        found = collect(frame, *args, **options)
        left.append(len(found))
        return found

    monkeypatch.setattr(nw.LazyFrame, "collect", counting)
    roles, question = CELL_QUESTIONS[name]
    question(eq.Audit(database, **(ROLES | roles)))
    assert left
    # Groups times labels, and with a table of clusters pairs of groups: never people.
    assert sum(left) < N / 3


ROW_QUESTIONS = {
    "curves": (
        {},
        lambda audit: audit.predictive_parity(rng=1),
        4,
    ),
    "benefits": ({}, lambda audit: audit.inequality("age", rng=1), 5),
    "discovery of an amount": (
        {},
        lambda audit: audit.discover("error_rate", method="split", rng=1),
        4,
    ),
    "margins": (
        {"group": "sex"},
        lambda audit: audit.marginal_outcome(0.5),
        3,
    ),
    "fitted candidate": (
        {"features": ["x"], "group": "sex"},
        lambda audit: audit.improvability(
            LogisticRegression(),
            accuracy="accuracy",
            fairness="fpr",
            n_splits=1,
            n_resamples=200,
            rng=1,
        ),
        4,
    ),
}


def test_discovery_among_all_subgroups_brings_how_many_rows_are_alike(database, local):
    there, here = (eq.Audit(rows, **ROLES).discover("error_rate") for rows in (database, local))
    assert_allclose(numbers(there), numbers(here), rtol=1e-9, atol=1e-9)
    (note,) = [note for note in there.notes if note.code == "rows-brought"]
    # Groups times right and wrong.
    brought = int(note.message.split()[0])
    assert brought < N / 3
    assert note.message.startswith(f"{brought} rows of 5 columns left the database")


@pytest.mark.parametrize("name", ROW_QUESTIONS)
def test_what_needs_rows_says_how_many_it_brings_and_of_which_columns(database, local, name):
    roles, question, columns = ROW_QUESTIONS[name]
    there = question(eq.Audit(database, **(ROLES | roles)))
    here = question(eq.Audit(local, **(ROLES | roles)))
    assert_allclose(numbers(there), numbers(here), rtol=1e-9, atol=1e-9)
    (note,) = [note for note in there.notes if note.code == "rows-brought"]
    assert note.message.startswith(f"{N} rows of {columns} columns left the database")
    assert "rows-brought" not in {note.code for note in here.notes}


@pytest.mark.parametrize("name", ROW_QUESTIONS)
def test_rows_beyond_the_limit_stay(database, monkeypatch, name):
    roles, question, _ = ROW_QUESTIONS[name]
    monkeypatch.setenv("EQUIPOISE_ROW_LIMIT", str(N - 1))
    sentence = f"{N} would leave the database; the limit is {N - 1}. Audit an extract"
    with pytest.raises(DataError, match=sentence):
        question(eq.Audit(database, **(ROLES | roles)))


def test_the_limit_must_be_a_number(database, monkeypatch):
    monkeypatch.setenv("EQUIPOISE_ROW_LIMIT", "many")
    with pytest.raises(InvalidParameterError, match="EQUIPOISE_ROW_LIMIT must be a whole number"):
        eq.Audit(database, **ROLES).predictive_parity()


def test_missing_values_are_found_where_they_are(database):
    with pytest.raises(MissingValuesError, match=f"'gap' has 24 missing values in {N} rows"):
        eq.Audit(database, group="sex", y_pred="gap").disparity("selection_rate")


def test_the_driver_of_a_database_is_told_in_one_sentence(database):
    name = "gone"
    connection = ibis.get_backend(database)
    connection.create_table(name, database.limit(5).to_pyarrow())
    table = connection.table(name)
    audit = eq.Audit(table, group="sex", y_pred="approved")
    connection.drop_table(name)
    with pytest.raises(DataError, match=r"The engine could not run the query: .*gone"):
        audit.disparity("selection_rate")


def test_a_table_in_memory_of_ibis_is_a_table():
    table = ibis.memtable(rows())
    result = eq.Audit(table, **ROLES).disparity("selection_rate")
    assert result.n == N


def test_sql_is_kept_on_every_engine_and_shared_by_questions(local):
    audit = eq.Audit(local, **ROLES)
    first, again = audit.disparity("tpr"), audit.disparity("tpr")
    assert len(first.sql()) == 1
    assert first.sql() == again.sql()
    assert "GROUP BY" in first.sql()[0]
    assert eq.AuditResult.from_dict(first.to_dict()).sql() == []
    assert len(audit.predictive_parity(rng=1).sql()) == 2


def test_a_lazy_frame_of_polars_is_read_without_a_warning_and_its_failure_told():
    import polars as pl

    frame = pl.LazyFrame({"sex": ["F", "M"] * 50, "approved": [0, 1, 1, 1] * 25})
    assert eq.Audit(frame, group="sex", y_pred="approved").disparity("selection_rate").n == 100
    broken = frame.with_columns(pl.col("sex").cast(pl.Int64, strict=True))
    with pytest.raises(DataError, match="The lazy frame cannot be read: "):
        eq.Audit(broken, group="sex", y_pred="approved")
