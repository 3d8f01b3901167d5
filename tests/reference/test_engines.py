"""Every audit gives the same result, number by number, on DuckDB and on Spark.

One local session, two threads, a few hundred rows: what is tested is that both engines are asked
the same thing and answer alike, with clusters, weights, counts, missing values, nulls in group
columns, and text, integer, Boolean, date and categorical group columns.
"""

from operator import attrgetter

import numpy as np
import pyarrow as pa
import pytest

import equipoise as eq
from equipoise.audits.asking import ask
from equipoise.audits.improvement import decision_cells, decision_rows
from equipoise.audits.improvement.decision_rows import read_rows
from equipoise.audits.scores import sample as score_sample
from equipoise.data.roles import Roles
from equipoise.data.spark import SparkParts
from equipoise.data.table import Quantity, Rows, Table
from equipoise.exceptions import DataError, MissingDependencyError
from equipoise.stats.improvement.capacity import select_top
from support.asking import answer_of
from support.engines import spark_session
from support.soundness import differences

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

N = 600


def people():
    rng = np.random.default_rng(20)
    race = rng.choice(["Black", "White", "Ülkü"], N).tolist()
    sex = rng.choice([1, 2], N).tolist()
    score = rng.random(N).round(3).tolist()
    race[5] = race[77] = sex[9] = score[13] = None
    filled = np.array([0.5 if value is None else value for value in score])
    user = rng.integers(150, size=N)
    arm = (user % 2).astype(np.int8)
    effect = 0.1 + 0.2 * rng.random(N)
    y = (rng.random(N) < 0.2 + 0.5 * filled + 0.1 * arm).astype(np.int32)
    return pa.table(
        {
            "race": pa.array(race),
            "sex": pa.array(sex, pa.int16()),
            "veteran": rng.random(N) < 0.4,
            "day": pa.array(rng.choice([18000, 18001], N).astype("int32")).cast(pa.date32()),
            "band": pa.array(rng.choice(["18-34", "35+"], N)).dictionary_encode(),
            "age": rng.integers(18, 80, N),
            "y": y,
            "p": (filled > 0.5).astype(np.int64),
            "score": pa.array(score),
            "other": (filled + 0.3 * rng.random(N)).round(3),
            "arm": arm,
            "effect": effect.round(4),
            "user": user,
            "name": pa.array([f"user {k}" for k in user]),
            "weight": (rng.random(N) + 0.5).round(3),
            "copies": rng.integers(0, 3, N),
        }
    )


ROWS = people()
LABELS = {"y_true": "y", "y_pred": "p"}
SCORE = {"y_true": "y", "y_score": "score"}
EXPERIMENT = {"y_true": "y", "treatment": "arm", "effect_pred": "effect"}
WHITE = {"race": "White"}

CASES = {
    "rates of text and Boolean groups": (
        {"group": ["race", "veteran"], **LABELS},
        lambda audit: audit.disparity("fpr", simultaneous=True, rng=1),
    ),
    "rates of integer groups with counts": (
        {"group": "sex", "count": "copies", **LABELS},
        lambda audit: audit.flag("accuracy", margin=0.02, alternative="outside"),
    ),
    "rates of dates with weights": (
        {"group": ["day", "race"], "weight": "weight", **LABELS},
        lambda audit: audit.certify("ppv", margin=0.2, reference=WHITE),
    ),
    "rates of categories with clusters": (
        {"group": ["band", "sex"], "cluster": "user", **LABELS},
        lambda audit: audit.disparity("tpr", reference="rest"),
    ),
    "means of bands of age with clusters and weights": (
        {"group": "age", "bins": {"age": [30, 50]}, "cluster": "user", "weight": "weight", **SCORE},
        lambda audit: audit.disparity("mean_score"),
    ),
    "real-valued metric": (
        {"group": "race", **SCORE},
        lambda audit: audit.disparity("squared_error", reference=WHITE, scale="ratio"),
    ),
    "predictive parity of rows": (
        {"group": "race", **SCORE},
        lambda audit: audit.predictive_parity(rng=1),
    ),
    "predictive parity of users": (
        {"group": "race", "cluster": "user", **SCORE},
        lambda audit: audit.predictive_parity(unit="cluster", rng=1),
    ),
    "marginal outcome": (
        {"group": "veteran", "cluster": "user", **SCORE},
        lambda audit: audit.marginal_outcome(0.5, unit="row"),
    ),
    "predictive parity of named users with weights": (
        {"group": "veteran", "cluster": "name", "weight": "weight", **SCORE},
        lambda audit: audit.predictive_parity(unit="row", rng=1),
    ),
    "predictive parity of users with counts": (
        {"group": "sex", "cluster": "user", "count": "copies", **SCORE},
        lambda audit: audit.predictive_parity(unit="cluster", method="paper", rng=1),
    ),
    "predictive parity of an amount with weights and counts": (
        {
            "group": "veteran",
            "y_true": "effect",
            "y_score": "score",
            "weight": "weight",
            "count": "copies",
        },
        lambda audit: audit.predictive_parity(rng=1),
    ),
    "calibration": (
        {"group": "day", "cluster": "user", **SCORE},
        lambda audit: audit.predictive_parity(unit="row", hypothesis="calibration", rng=1),
    ),
    "inequality of decisions": (
        {"group": ["race"], "weight": "weight", **LABELS},
        lambda audit: audit.inequality("speicher", order=2.0),
    ),
    "inequality of a column": (
        {"group": "day", "cluster": "user"},
        lambda audit: audit.inequality("effect"),
    ),
    "treatment effects": (
        {"group": "race", "cluster": "user", **EXPERIMENT},
        lambda audit: audit.treatment_effects(measure="difference"),
    ),
    "treatment effects, split": (
        {"group": "veteran", **EXPERIMENT},
        lambda audit: audit.treatment_effects(measure="difference", split=True, rng=3),
    ),
    "improvability by another score": (
        {"group": "veteran", **LABELS},
        lambda audit: audit.improvability(
            "other", accuracy="ppv", fairness="tpr", capacity=0.4, n_resamples=200, rng=4
        ),
    ),
    "improvability by decisions, with counts": (
        {"group": ["veteran"], "count": "copies", **LABELS},
        lambda audit: audit.improvability("arm", accuracy="accuracy", n_resamples=200, rng=4),
    ),
    "improvability of a score by another, with weights": (
        {"group": "veteran", "weight": "weight", **SCORE},
        lambda audit: audit.improvability(
            "other", accuracy="ppv", capacity=0.4, n_resamples=200, rng=4
        ),
    ),
    "improvability by clusters": (
        {"group": "veteran", "cluster": "user", **LABELS},
        lambda audit: audit.improvability("arm", accuracy="accuracy", n_resamples=200, rng=4),
    ),
}


@pytest.fixture(scope="module")
def spark_rows():
    plain = ROWS.set_column(
        ROWS.column_names.index("band"), "band", ROWS.column("band").cast(pa.string())
    )
    frame = spark_session().createDataFrame(plain).repartition(3)
    return frame.cache()


@pytest.mark.parametrize(("roles", "ask"), CASES.values(), ids=CASES)
def test_spark_and_duckdb_agree(roles, ask, spark_rows):
    local = ask(eq.Audit(ROWS, missing="drop", **roles))
    distributed = ask(eq.Audit(spark_rows, missing="drop", **roles))
    found, expected = local.to_dict(), distributed.to_dict()
    # How much an estimated cut-off matters is seen in rows, which do not leave Spark.
    for record in (found, expected):
        record["details"].pop("cutoff_sensitivity", None)
    assert not differences(found, expected)


@pytest.mark.parametrize("capacity", [0.1, 0.4, 0.9])
@pytest.mark.parametrize("score", ["other", "decile"])
def test_counted_decisions_are_those_about_rows(score, capacity, monkeypatch):
    monkeypatch.setattr(decision_cells, "NEAR_ROWS", 5)
    decile = (ROWS.column("other").to_numpy() * 10).round()
    rows = ROWS.append_column("decile", pa.array(decile))
    table = Table(rows, Roles(group=("veteran",), missing="drop", weight="weight", **SCORE))
    counted = ask(decision_cells.read_cells(table, ["ppv"], candidate=score, capacity=capacity))
    each = ask(read_rows(table, ["ppv"], candidate=score, features=False))
    chosen = [select_top(s, capacity, weight=each.weight) for s in (each.score, each.candidate)]
    assert len(counted.count) < len(each.y)
    assert counted.count.sum() == len(each.y)
    for decided, selected in zip((counted.status_quo, counted.candidate), chosen, strict=True):
        for k in (0, 1):
            of_group, rows_of_group = counted.group == k, each.group == k
            for power in (0, 1):
                ours = counted.count * counted.weight**power * decided * counted.y
                theirs = each.weight**power * selected * each.y
                assert ours[of_group].sum() == pytest.approx(theirs[rows_of_group].sum())


def test_a_large_table_is_sampled_by_clusters(spark_rows, monkeypatch):
    monkeypatch.setattr(decision_rows, "SAMPLE_ROWS", 300)
    roles, ask = CASES["improvability by clusters"]
    result = ask(eq.Audit(spark_rows, missing="drop", **roles))
    assert 200 < result.n < 400
    (note,) = (note for note in result.notes if note.code == "sampled-rows")
    assert note.message.startswith("About 300 of 600 rows")
    again = ask(eq.Audit(spark_rows.repartition(2), missing="drop", **roles))
    assert not differences(result.to_dict(), again.to_dict())


@pytest.mark.parametrize("case", ["predictive parity of users with counts", "marginal outcome"])
def test_binned_scores_agree(case, spark_rows, monkeypatch):
    monkeypatch.setattr(score_sample, "EXACT_ROWS", 100)
    monkeypatch.setattr(score_sample, "N_BINS", 64)
    test_spark_and_duckdb_agree(*CASES[case], spark_rows)


WITHOUT_EQUIPOISE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "equipoise":
            raise ModuleNotFoundError("No module named 'equipoise'", name=name)

sys.meta_path.insert(0, Absent())
"""
"""Run by Python as it starts."""


def test_workers_that_cannot_import_equipoise_are_named(spark_rows, monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_EQUIPOISE)
    monkeypatch.setitem(spark_session().sparkContext.environment, "PYTHONPATH", str(tmp_path))
    audit = eq.Audit(spark_rows, group="veteran", missing="drop", **SCORE)
    with pytest.raises(
        MissingDependencyError, match=r"^The workers of Spark cannot import [^\n]*$"
    ):
        audit.predictive_parity()


def test_an_error_in_a_worker_is_one_line(spark_rows):
    roles = Roles(group=("veteran",), missing="drop", **SCORE)
    table = Table(spark_rows, roles)
    narrow = answer_of(Rows(table.sums([Quantity.of(table.y_score)], {"y_score": "number"})))
    with (
        SparkParts(narrow) as parts,
        pytest.raises(DataError, match=r"^The workers of Spark could not [^\n]*no attribute 't'$"),
    ):
        parts.map(attrgetter("t"))


def test_a_difference_in_the_tenth_digit_is_seen():
    result = eq.Audit(ROWS, group="veteran", **LABELS).disparity("fpr").to_dict()
    shifted = eq.Audit(ROWS, group="veteran", **LABELS).disparity("fpr").to_dict()
    shifted["findings"][0]["estimate"] *= 1 + 3e-9
    shifted["findings"][0]["estimate"] += 3e-9
    assert len(differences(result, shifted)) == 1
