"""Every audit gives the same result, number by number, on DuckDB and on Spark.

One local session, two threads, a few hundred rows: what is tested is that both engines are asked
the same thing and answer alike, with clusters, weights, counts, missing values, nulls in group
columns, and text, integer, Boolean, date and categorical group columns.
"""

from operator import attrgetter

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

import equipoise as eq
from equipoise.audits.asking import ask
from equipoise.audits.improvement import rows as decision_rows
from equipoise.audits.scores import sample as score_sample
from equipoise.data.query import recorded
from equipoise.data.roles import Roles
from equipoise.data.spark import ArrangedParts
from equipoise.data.table import Quantity, Rows, Table
from equipoise.exceptions import DataError, MissingDependencyError
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
DESCRIPTION = ["race", "sex", "veteran", "day", "band", "age", "score"]

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
    "predictive parity of counted rows": (
        {"group": ["sex", "veteran"], "count": "copies", **SCORE},
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
            "other", accuracy="ppv", fairness="tpr", capacity=0.5, n_resamples=200, rng=4
        ),
    ),
    "improvability by decisions, with counts": (
        {"group": ["veteran"], "count": "copies", **LABELS},
        lambda audit: audit.improvability("arm", accuracy="accuracy", n_resamples=200, rng=4),
    ),
    "improvability of attributes apart, with counts": (
        {"group": ["sex", "veteran"], "count": "copies", **LABELS},
        lambda audit: audit.improvability(
            "arm", accuracy="accuracy", attributes="separately", n_resamples=200, rng=4
        ),
    ),
    "improvability of attributes apart, of a score with weights": (
        {"group": ["sex", "veteran"], "weight": "weight", **SCORE},
        lambda audit: audit.improvability(
            "other",
            accuracy="ppv",
            capacity=0.4,
            accuracy_of="population",
            attributes="separately",
            n_resamples=200,
            rng=4,
        ),
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
    "comparison of two models": (
        {"group": ["race", "veteran"], "count": "copies", **LABELS},
        lambda audit: audit.compare("fpr", baseline="arm", margin=0.1),
    ),
    "comparison of two periods of users": (
        {"group": "race", "cluster": "user", "time": "day", **LABELS},
        lambda audit: audit.compare("ppv", baseline="2019-04-14", reference="rest"),
    ),
    "monitor of rates": (
        {"group": ["race", "sex"], "time": "age", **LABELS},
        lambda audit: audit.monitor(["selection_rate", "error_rate"], reference="population"),
    ),
    "monitor of scores of named users with weights": (
        {"group": "veteran", "cluster": "name", "weight": "weight", "time": "day", **SCORE},
        lambda audit: audit.monitor("mean_score"),
    ),
    "discovery among all subgroups": (
        {"count": "copies", **LABELS},
        lambda audit: audit.discover("error_rate", features=DESCRIPTION, min_size=0.05),
    ),
    "discovery by clusters": (
        {"cluster": "name", **SCORE},
        lambda audit: audit.discover("squared_error", features=DESCRIPTION[:-1], rng=1),
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
    assert not differences(found, expected)


def test_a_large_table_is_sampled_by_clusters(spark_rows, monkeypatch):
    monkeypatch.setattr(decision_rows, "SAMPLE_ROWS", 300)
    roles, ask = CASES["improvability by clusters"]
    result = ask(eq.Audit(spark_rows, missing="drop", **roles))
    assert 200 < result.n < 400
    (note,) = (note for note in result.notes if note.code == "sampled-rows")
    assert note.message.startswith("About 300 of 600 rows")
    again = ask(eq.Audit(spark_rows.repartition(2), missing="drop", **roles))
    assert not differences(result.to_dict(), again.to_dict())


def test_a_large_table_of_rows_is_sampled_in_its_partitions(spark_rows, monkeypatch):
    monkeypatch.setattr(decision_rows, "SAMPLE_ROWS", 300)
    roles = {"group": "sex", "y_true": "y", "y_pred": "p", "features": ["score"]}

    def sample(rows):
        table = eq.Audit(rows, missing="drop", **roles).table
        with recorded() as sent:
            asked = decision_rows.read_decisions(table, ["accuracy"], features=True)
            found = ask(asked)
        return found, "".join(query.sql for query in sent)

    found, plan = sample(spark_rows)
    assert 200 < len(found.y) < 400
    # No exchange brings all rows into one partition.
    assert "SinglePartition" not in plan
    again, _ = sample(spark_rows.repartition(2))
    np.testing.assert_array_equal(found.X, again.X)
    np.testing.assert_array_equal(found.y, again.y)


@pytest.mark.parametrize("apart", [False, True])
def test_a_fitted_candidate_predicts_in_the_partitions(monkeypatch, apart):
    """The same as fitting by hand on the sample and naming the column of predictions."""
    monkeypatch.setattr(decision_rows, "SAMPLE_ROWS", 1000)
    rng = np.random.default_rng(3)
    n = 3000
    sex, x = rng.choice(["F", "M"], n), rng.normal(size=n)
    race = rng.choice(["a", "b"], n)
    lower = 0.8 * (sex == "F") + 0.5 * (race == "a")
    table = pa.table(
        {
            "sex": sex,
            "race": race,
            "x": x,
            "y": (x + 0.5 * rng.normal(size=n) > 0).astype(int),
            "p": (x - lower + 0.9 * rng.normal(size=n) > 0).astype(int),
        }
    )
    roles = {"group": "sex", "y_true": "y", "y_pred": "p", "features": "x"}
    options = {"accuracy": "accuracy", "fairness": "fpr", "n_resamples": 200, "rng": 1}
    higher = "sex=M"
    if apart:
        roles["group"], options["attributes"] = ["sex", "race"], "separately"
        higher = {"sex": "M", "race": "b"}
    frame = spark_session().createDataFrame(table)
    result = eq.Audit(frame, **roles).improvability(LogisticRegression(), **options)
    (note,) = (note for note in result.notes if note.code == "fitted-on-sample")
    assert note.message.endswith(f"judged on {result.n} other rows: one split.")
    assert "if these rows played no part" not in str(result)
    model = result.details["fitted"][0].model
    drawn = ask(
        decision_rows.read_decisions(eq.Audit(frame, **roles).table, ["accuracy"], features=True)
    )
    assert result.n == n - len(drawn.y)
    left = ~np.isin(table.column("x").to_numpy(), drawn.X[:, 0])
    others = table.filter(pa.array(left))
    decided = model.predict(others.select(["x"]).to_pandas().to_numpy())
    by_hand = eq.Audit(others.append_column("new", pa.array(decided)), **roles)
    expected = by_hand.improvability("new", higher_group=higher, **options)
    for found, other in zip(result.findings, expected.findings, strict=True):
        assert found.estimate == pytest.approx(other.estimate, abs=1e-12)
        assert found.ci.low == pytest.approx(other.ci.low, abs=0.01)


@pytest.mark.parametrize(
    "case",
    [
        "predictive parity of users with counts",
        "predictive parity of counted rows",
        "marginal outcome",
    ],
)
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
    audit = eq.Audit(spark_rows, group="veteran", weight="weight", missing="drop", **SCORE)
    with pytest.raises(
        MissingDependencyError, match=r"^The workers of Spark cannot import [^\n]*$"
    ):
        audit.predictive_parity()


def test_an_error_in_a_worker_is_one_line(spark_rows):
    roles = Roles(group=("veteran",), missing="drop", **SCORE)
    table = Table(spark_rows, roles)
    narrow = answer_of(Rows(table.sums([Quantity.of(table.y_score)], {"y_score": "number"})))
    with (
        ArrangedParts(narrow, attrgetter("t")) as parts,
        pytest.raises(DataError, match=r"^The workers of Spark could not [^\n]*no attribute 't'$"),
    ):
        parts.map(attrgetter("t"))


def test_a_difference_in_the_tenth_digit_is_seen():
    result = eq.Audit(ROWS, group="veteran", **LABELS).disparity("fpr").to_dict()
    shifted = eq.Audit(ROWS, group="veteran", **LABELS).disparity("fpr").to_dict()
    shifted["findings"][0]["estimate"] *= 1 + 3e-9
    shifted["findings"][0]["estimate"] += 3e-9
    assert len(differences(result, shifted)) == 1
