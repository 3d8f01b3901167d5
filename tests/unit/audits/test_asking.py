"""Questions that are asked together are answered from one scan, each as if asked alone."""

import copy
import inspect
from dataclasses import replace

import narwhals as nw
import numpy as np
import pyarrow as pa
import pytest

import equipoise as eq
from equipoise.audits.asking import ask, ask_all, declare
from equipoise.data.table import Quantity
from equipoise.exceptions import DataError, MissingValuesError, NotBinaryError
from equipoise.results.question import find_question, questions
from support.engines import on_engine
from support.soundness import differences

N = 900
ENGINES = [
    "duckdb",
    pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")]),
]
ROLES = {
    "group": ["race", "sex"],
    "y_true": "y",
    "y_pred": "p",
    "y_score": "score",
    "treatment": "arm",
    "effect_pred": "effect",
    "missing": "drop",
}
QUESTIONS = [
    ("disparity", {"metric": "fpr"}),
    ("disparity", {"metric": "selection_rate", "reference": "rest"}),
    ("disparity", {"metric": "mean_score", "method": "eel"}),
    ("disparity", {"metric": "squared_error"}),
    ("flag", {"metric": "mean_outcome", "margin": 0.01}),
    ("certify", {"metric": "accuracy", "margin": 0.1}),
    ("inequality", {"benefits": "speicher", "order": 2.0}),
    ("inequality", {"benefits": "gain"}),
    ("predictive_parity", {"reference": {"race": "a", "sex": 1}, "rng": 0}),
    ("treatment_effects", {"measure": "difference", "n_repeats": 0}),
]


def people(seed=1):
    """Each column has missing values of its own."""
    rng = np.random.default_rng(seed)
    columns = {
        "race": rng.choice(["a", "b", "None"], N),
        "sex": rng.choice([1, 2], N),
        "y": rng.integers(0, 2, N),
        "p": rng.integers(0, 2, N),
        "score": rng.choice(np.linspace(0.1, 0.9, 9), N),
        "arm": rng.integers(0, 2, N),
        "effect": rng.random(N),
        "gain": rng.random(N),
        "weight": rng.random(N) + 0.5,
        "copies": rng.integers(1, 4, N),
        "user": rng.integers(0, 120, N),
    }
    return pa.table(
        {
            name: pa.array(values.tolist(), mask=rng.random(N) < 0.03)
            for name, values in columns.items()
        }
    )


def question(audit, name, options):
    return declare(find_question(name).function, audit, **options)


@pytest.fixture
def queries(monkeypatch):
    """Count the queries that are run."""
    found = []
    collect = nw.LazyFrame.collect

    def counting(frame, *args, **options):
        found.append(frame)
        return collect(frame, *args, **options)

    monkeypatch.setattr(nw.LazyFrame, "collect", counting)
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "extra",
    [{}, {"weight": "weight", "count": "copies"}, {"cluster": "user"}],
    ids=["plain", "weights and counts", "clusters"],
)
def test_questions_asked_together_answer_as_if_asked_alone(engine, extra):
    rows = on_engine(engine, people())
    asked = [
        (name, options | ({"unit": "row"} if name == "predictive_parity" else {}))
        for name, options in QUESTIONS
    ]
    audit = eq.Audit(rows, **ROLES, **extra)
    if engine == "spark":
        # Alone on another engine: the same numbers, and half the jobs.
        rows = people()
    narrower = eq.Audit(rows, **(ROLES | {"group": ["sex"]}), **extra)
    view = copy.copy(audit)
    view.table = audit.table.grouped_by(["sex"])
    together = ask_all(
        [question(audit, *one) for one in asked] + [question(view, *one) for one in asked[:6]]
    )
    alone = [
        *(ask(question(eq.Audit(rows, **ROLES, **extra), *one)) for one in asked),
        *(ask(question(narrower, *one)) for one in asked[:6]),
    ]
    for found, expected in zip(together, alone, strict=True):
        assert not differences(found.to_dict(), expected.to_dict())


@pytest.mark.parametrize("first", [0, 1])
def test_a_comparison_of_other_decisions_leaves_those_of_the_audit_alone(queries, first):
    """Views of one table give the role of the decision to different columns."""
    rows = on_engine("duckdb", people())
    asked = [
        ("compare", {"metric": "fpr", "baseline": "p", "candidate": "arm"}),
        ("disparity", {"metric": "fpr"}),
        ("monitor", {"metric": "tpr", "time": "copies"}),
    ]
    asked = asked[first:] + asked[:first]
    audit = eq.Audit(rows, **ROLES)
    together = ask_all([question(audit, *one) for one in asked])
    assert len(queries) == 1
    alone = [ask(question(eq.Audit(rows, **ROLES), *one)) for one in asked]
    for found, expected in zip(together, alone, strict=True):
        assert not differences(found.to_dict(), expected.to_dict())


@pytest.mark.parametrize("engine", ENGINES)
def test_questions_about_the_same_roles_are_one_query(engine, queries):
    audit = eq.Audit(on_engine(engine, people()), **ROLES)
    # Real-valued benefits of a small table bring its rows, to be resampled.
    found = ask_all([question(audit, *one) for one in QUESTIONS[:7]])
    assert not any(isinstance(result, Exception) for result in found)
    assert len(queries) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_plan_of_several_groups_reads_its_file_once(engine, queries, tmp_path):
    from pyarrow import parquet

    from equipoise.plans.plan import parse_plan
    from equipoise.plans.run import execute

    parquet.write_table(people(), tmp_path / "people.parquet")
    plan = parse_plan(
        """
        [data]
        path = "people.parquet"
        group = ["race", "sex"]
        y_true = "y"
        y_pred = "p"
        missing = "drop"
        [[check]]
        question = "disparity"
        metric = "fpr"
        [[check]]
        question = "flag"
        metric = "ppv"
        group = "race"
        [[check]]
        question = "certify"
        metric = "selection_rate"
        margin = 0.2
        [[check]]
        question = "inequality"
        benefits = "speicher"
        group = "sex"
        """,
        folder=tmp_path,
    )
    dossier = execute(plan, engine=engine)
    assert len(queries) == 1
    assert dossier.data["rows"] == N
    audit = eq.Audit(people(), group="race", y_true="y", y_pred="p", missing="drop")
    assert dossier.checks[1].result.findings == audit.flag("ppv").findings


def test_what_was_asked_before_is_not_read_again(queries):
    audit = eq.Audit(people(), **ROLES)
    audit.disparity("fpr")
    audit.flag("ppv")
    audit.inequality("speicher")
    assert len(queries) == 1


def test_fewer_columns_are_added_up_and_not_read_again(queries):
    rows = people().drop_null()
    audit = eq.Audit(rows, **ROLES)
    audit.disparity("fpr")
    view = eq.Audit(rows, **(ROLES | {"group": "sex"}))
    view.table = audit.table.grouped_by(["sex"])
    found = view.disparity("fpr")
    assert len(queries) == 1
    alone = eq.Audit(rows, **(ROLES | {"group": "sex"})).disparity("fpr")
    assert not differences(found.to_dict(), alone.to_dict())
    assert found.sql()
    # Rows without a race have a sex: they are read.
    audit = eq.Audit(people(), **ROLES)
    audit.disparity("fpr")
    view.table = audit.table.grouped_by(["sex"])
    before = len(queries)
    assert view.disparity("fpr").n > audit.disparity("fpr").n
    assert len(queries) == before + 1


def test_an_error_ends_its_own_question_only():
    audit = eq.Audit(people(), **(ROLES | {"missing": "raise", "group": "race"}))
    audit.table.frame = audit.table.frame.filter(~nw.col("race").is_null() & ~nw.col("p").is_null())
    good, gone, wrong, misspelt = ask_all(
        [
            question(audit, "disparity", {"metric": "selection_rate"}),
            question(audit, "disparity", {"metric": "mean_score"}),
            question(audit, "disparity", {"metric": "selection_rate", "alpha": 5}),
            question(audit, "disparity", {"metric": "selection"}),
        ]
    )
    assert good.n > 0
    assert isinstance(gone, MissingValuesError)
    assert "`alpha` must be in (0, 1)" in str(wrong)
    assert "unknown" in str(misspelt)


def test_a_query_that_fails_fails_for_the_question_that_wrote_it():
    audit = eq.Audit(people(), **ROLES)
    broken = eq.Metric("broken", nw.col("race").str.to_date("%Y"))
    good, bad = ask_all(
        [
            question(audit, "disparity", {"metric": "fpr"}),
            question(audit, "disparity", {"metric": broken}),
        ]
    )
    assert good.n > 0
    assert isinstance(bad, DataError)


def test_labels_are_checked_by_those_that_read_them():
    audit = eq.Audit(
        {"g": ["a", "b"] * 20, "y": [0, 1, 2, 3] * 10, "s": [0.1, 0.4] * 20},
        group="g",
        y_true="y",
        y_score="s",
    )
    rate, mean = ask_all(
        [
            question(audit, "inequality", {"benefits": "speicher", "soft": True}),
            question(audit, "disparity", {"metric": "mean_outcome"}),
        ]
    )
    assert isinstance(rate, NotBinaryError)
    assert mean.n == 40


def test_a_question_may_look_twice_and_catch_what_it_meets():
    audit = eq.Audit(people(), **(ROLES | {"missing": "raise"}))

    def cautious():
        try:
            yield audit.table.label_sums(("y_true",))
        except MissingValuesError:
            table = audit.table.grouped_by(())
            table.roles = replace(table.roles, missing="drop")
            cells = yield table.sums([Quantity.of(nw.lit(1.0))], {"y_true": "number"})
            return int(cells.n.sum())

    assert ask(cautious()) == N - people().column("y").null_count


def test_more_groups_than_one_scan_can_hold_are_read_apart(queries, monkeypatch):
    monkeypatch.setattr("equipoise.data.groups.MAX_CELLS", 8)
    audit = eq.Audit(people(), **(ROLES | {"group": "race"}))
    other = eq.Audit(people(), **(ROLES | {"group": "race"}))
    other.table = audit.table.grouped_by(["sex"])
    found = ask_all([question(a, "disparity", {"metric": "fpr"}) for a in (audit, other)])
    assert [len(result.findings) for result in found] == [3, 2]
    assert len(queries) == 3


def test_threads_may_ask_one_audit():
    """A connection that is busy refuses another thread."""
    from concurrent.futures import ThreadPoolExecutor

    rng = np.random.default_rng(0)
    data = {"g": rng.choice(list("ab"), 300), "p": rng.integers(0, 2, 300), "s": rng.random(300)}
    audit = eq.Audit(data, group="g", y_pred="p", y_score="s")
    metrics = ["selection_rate", "mean_score"] * 6
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(audit.disparity, metrics))
    assert [str(result) for result in found] == [str(audit.disparity(name)) for name in metrics]


def test_the_signature_of_a_method_says_what_a_caller_gets():
    for name in questions():
        shown = inspect.signature(getattr(eq.Audit, name))
        assert shown.return_annotation is eq.AuditResult
        assert next(iter(shown.parameters)) == "self"
