"""Laws that every question owes on tables large enough to be tested, its details included.

Compared is everything a result holds (`to_dict`), to a billionth: findings, joint test, notes and
details, Monte Carlo ones included, because random draws never depend on the order of rows.
"""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise import Decision
from equipoise.results.question import questions
from equipoise.results.wording import headline
from support.engines import on_engine
from support.questions import asked
from support.soundness import assert_sound, differences
from support.strategies import informative_tables, repeated, three_groups

few = settings(
    settings.get_profile("unshrunk"),
    max_examples=3,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
fewer = settings(few, max_examples=1)

LOGISTIC = "sklearn.linear_model.LogisticRegression"
CASES = {
    "disparity of rates": ("disparity", {"metric": "fpr", "simultaneous": True, "rng": 1}),
    "disparity of means": ("disparity", {"metric": eq.Metric("income", "income")}),
    "disparity of ratios": ("disparity", {"metric": "ppv", "reference": "rest", "scale": "ratio"}),
    "flag": ("flag", {"metric": "accuracy", "margin": 0.02, "alternative": "outside"}),
    "certify": ("certify", {"metric": "squared_error", "margin": 0.15}),
    "compare models": ("compare", {"metric": "tpr", "baseline": "rule", "reference": "rest"}),
    "compare scores": (
        "compare",
        {"metric": "mean_score", "baseline": "income", "margin": 0.1, "depth": 1},
    ),
    "disparity to the highest": (
        "disparity",
        {"metric": "selection_rate", "reference": "highest", "scale": "ratio", "rng": 1},
    ),
    "disparity of means to the lowest": (
        "disparity",
        {"metric": eq.Metric("income", "income"), "reference": "lowest", "rng": 1},
    ),
    "certify against the highest": (
        "certify",
        {"metric": "tpr", "margin": 0.2, "reference": "highest"},
    ),
    "disparity given a factor": ("disparity", {"metric": "selection_rate", "given": "t"}),
    "disparity of means given factors": (
        "disparity",
        {"metric": eq.Metric("income", "income"), "given": ["t", "rule"], "scale": "ratio"},
    ),
    "decompose": ("decompose", {"metric": "selection_rate", "given": ["t", "rule"]}),
    "impact ratios": ("impact_ratios", {"rng": 1}),
    "monitor": ("monitor", {"metric": ["tpr", "selection_rate"], "time": "week"}),
    "monitor of means": ("monitor", {"metric": "mean_score", "time": "week", "depth": 1}),
    "discover": (
        "discover",
        {"metric": "accuracy", "features": ["week", "rule"], "min_size": 0.1, "rng": 1},
    ),
    "predictive parity": ("predictive_parity", {"unit": "row", "rng": 1}),
    "calibration": ("predictive_parity", {"unit": "row", "hypothesis": "calibration", "rng": 1}),
    "score quality": ("score_quality", {"baseline": "rival", "rng": 1}),
    "multicalibration": ("multicalibration", {"rng": 1}),
    "multicalibration, parity": ("multicalibration", {"hypothesis": "parity", "rng": 1}),
    "marginal outcome": (
        "marginal_outcome",
        {"threshold": 0.2, "bandwidth": 0.5, "unit": "row"},
    ),
    "improvability by a column": (
        "improvability",
        {"candidate": "rival", "accuracy": "ppv", "fairness": "tpr", "capacity": 0.3}
        | {"capacity_match": "randomise", "n_resamples": 99, "rng": 1},
    ),
    "improvability by a model": (
        "improvability",
        {"candidate": LOGISTIC, "accuracy": "accuracy", "n_splits": 2}
        | {"frontier": True, "n_resamples": 99, "rng": 1},
    ),
    "necessity": (
        "necessity",
        {"candidate": "rival", "accuracy": "tpr", "fairness": "selection_rate", "capacity": 0.3}
        | {"capacity_match": "randomise", "inference": "analytic", "accuracy_loss": 0.1, "rng": 1},
    ),
    "drop table": ("drop_table", {"estimator": LOGISTIC, "rng": 1}),
    "inequality of decisions": ("inequality", {"benefits": "speicher", "order": 2.0}),
    "inequality of a column": ("inequality", {"benefits": "income"}),
    "treatment effects": ("treatment_effects", {"n_repeats": 2, "rng": 1}),
    "treatment effects, ranked": (
        "treatment_effects",
        {"measure": "difference", "ranking": "autoc", "n_repeats": 0, "rng": 1},
    ),
    "treatment effects, priced": (
        "treatment_effects",
        {"measure": "difference", "budget": 0.4, "n_repeats": 0, "rng": 1},
    ),
    "policy": ("policy", {"budget": 0.4, "rng": 1}),
    "policy by a threshold": ("policy", {"threshold": 0.2, "cost": 0.1, "rng": 1}),
    "treatment effects, split": (
        "treatment_effects",
        {"measure": "difference", "split": True, "adjust": "max_t", "n_repeats": 0, "rng": 1},
    ),
}
BLOCKED = {"treatment effects", "treatment effects, split"}
every_case = pytest.mark.parametrize("case", CASES)


def test_every_question_is_asked():
    assert {question for question, _ in CASES.values()} == set(questions())


def answer(table, roles, case):
    question, options = CASES[case]
    return asked(table, roles, question, options)


def assert_identical(first, second):
    assert not differences(first.to_dict(), second.to_dict())


@every_case
@few
@given(drawn=informative_tables())
def test_results_are_sound_and_something_is_tested(case, drawn):
    table, roles = drawn
    result = answer(table, roles, case)
    assert_sound(result)
    if len(roles["group"]) > 1:
        return  # Nine small groups may all be too small.
    tests = [*result.findings] + ([] if result.joint is None else [result.joint])
    assert any(test.decision is not Decision.NOT_TESTED for test in tests)


@every_case
@few
@given(drawn=informative_tables(), seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(case, drawn, seed):
    table, roles = drawn
    order = np.random.default_rng(seed).permutation(table.num_rows)
    assert_identical(answer(table, roles, case), answer(table.take(order), roles, case))


@every_case
@few
@given(drawn=informative_tables())
def test_new_names_for_groups_change_names_only(case, drawn):
    table, roles = drawn
    renamed = table
    for column in roles["group"]:
        labels = pa.array([f"{label}{label}~" for label in table[column].to_pylist()])
        renamed = renamed.set_column(table.column_names.index(column), column, labels)
    found = answer(renamed, roles, case)
    text = json.dumps(found.to_dict())
    for label in "abc":
        text = text.replace(f"{label}{label}~", label)
    assert not differences(answer(table, roles, case).to_dict(), json.loads(text))


REVERSED = {"a": "z~", "b": "y~", "c": "x~"}
DRAWN = [case for case, (_, options) in CASES.items() if "rng" in options] + [
    "marginal outcome",
    "inequality of decisions",
    "inequality of a column",
]
"""Questions with random draws."""


def numbers_in(record):
    """Sizes of all numbers of a result; which of two groups is named first gives only signs.

    The covariance of two accuracies is that of the first two groups: named, not drawn.
    """
    if isinstance(record, dict):
        values = (value for key, value in record.items() if key != "accuracy_covariance")
        return [x for value in values for x in numbers_in(value)]
    if isinstance(record, list):
        return [x for value in record for x in numbers_in(value)]
    return [abs(record)] if isinstance(record, float) else []


def by_group(record):
    """Findings by what they are about: the groups, whichever is named first, and the quantity."""
    found = {}
    for finding in record["findings"]:
        names = {finding["group"], finding["reference"]}
        # "a vs b" of improvability names a pair, too.
        about = sorted(part for name in names for part in str(name).split(" vs "))
        key = json.dumps([about, finding["estimand"]])
        sizes = [finding[name] for name in ("estimate", "ci_low", "ci_high", "statistic")]
        p = [finding[name] for name in ("p_value", "p_value_raw", "n", "decision")]
        found.setdefault(key, []).append([sorted(abs(x) for x in sizes if x is not None), p])
    return {key: sorted(rows, key=str) for key, rows in found.items()}


@pytest.mark.parametrize("burden", ["rows", "weighted clusters"])
@pytest.mark.parametrize("case", DRAWN)
def test_draws_do_not_see_the_names_of_groups(case, burden):
    table, roles = three_groups(clustered=burden != "rows")
    order = np.random.default_rng(5).permutation(table.num_rows)
    labels = pa.array([REVERSED[label] for label in table["g"].to_pylist()])
    place = table.column_names.index("g")
    text = json.dumps(
        answer(table.set_column(place, "g", labels).take(order), roles, case).to_dict()
    )
    for label, other in REVERSED.items():
        text = text.replace(other, label)
    first, second = answer(table, roles, case).to_dict(), json.loads(text)
    assert not differences(by_group(first), by_group(second))
    assert not differences(
        first["joint"] and numbers_in(first["joint"]),
        second["joint"] and numbers_in(second["joint"]),
    )
    assert not differences(sorted(numbers_in(first)), sorted(numbers_in(second)))


BROKEN = re.compile(r"(^|\s)-[\s.;,]|^,|smaller than 30 rows")
"""A number that is not there, a sentence without its start, and a reason that is none."""

TELLS = re.compile(
    r"interval|\b(most (for|clearly)|observed)\b"
    r"|\d (percentage points|times) (more|fewer|higher|lower|wider|narrower)"
)
"""What is said of a group that has numbers."""


@every_case
def test_what_is_withheld_is_not_told_and_its_sentence_is_whole(case):
    table, roles = three_groups(clustered=False)
    result = answer(table, roles, case)
    for limit in {finding.n + 1 for finding in result.findings} | {result.n + 1}:
        told = result.disclosed(min_cell=limit)
        sentence = headline(told)
        assert not BROKEN.search(sentence)
        known = [finding for finding in told.findings if not finding.withheld]
        assert known or not TELLS.search(sentence)


@every_case
@few
@given(drawn=informative_tables(), seed=st.integers(0, 2**32 - 1))
def test_a_count_is_that_many_rows(case, drawn, seed):
    table, roles = drawn
    times = np.random.default_rng(seed).integers(0, 3, table.num_rows)
    counted = table.append_column("times", pa.array(times))
    first = answer(counted, roles | {"count": "times"}, case).to_dict()
    second = answer(repeated(table, times), roles, case).to_dict()
    if case in BLOCKED and "cluster" not in roles:
        # Copies of a row are dealt to random blocks by other draws than rows of their own.
        assert first["n"] == second["n"]
        for result in (first, second):
            result["details"].pop("evaluation")
            result["notes"] = []
    if case != "treatment effects, split" or "cluster" in roles:
        assert not differences(first, second)


@every_case
@few
@given(drawn=informative_tables(), factor=st.sampled_from([1e-3, 3.0, 1e4]))
def test_only_the_proportions_of_weights_matter(case, drawn, factor):
    table, roles = drawn
    weight = np.linspace(1.0, 2.0, table.num_rows)
    results = [
        answer(table.append_column("w", pa.array(weight * k)), roles | {"weight": "w"}, case)
        for k in (1.0, factor)
    ]
    assert not differences(*(result.to_dict() for result in results), tolerance=1e-7)


@every_case
@fewer
@given(drawn=informative_tables())
def test_every_local_engine_gives_the_same_result(case, drawn):
    table, roles = drawn
    expected = answer(table, roles, case)
    for engine in ("pandas", "polars", "duckdb", "dict"):
        assert_identical(expected, answer(on_engine(engine, table), roles, case))


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    "case", ["disparity of ratios", "flag", "inequality of decisions", "inequality of a column"]
)
@fewer
@given(drawn=informative_tables(), seed=st.integers(0, 2**32 - 1))
def test_on_spark_neither_order_nor_counts_nor_the_unit_of_weights_matter(case, drawn, seed):
    table, roles = drawn
    rng = np.random.default_rng(seed)
    times, weight = rng.integers(0, 3, table.num_rows), rng.uniform(1.0, 2.0, table.num_rows)
    weighted = table.append_column("w", pa.array(weight))
    expected = answer(repeated(weighted, times), roles | {"weight": "w"}, case)
    scaled = table.append_column("w", pa.array(1000.0 * weight))
    counted = scaled.append_column("times", pa.array(times)).take(rng.permutation(len(times)))
    found = answer(on_engine("spark", counted), roles | {"weight": "w", "count": "times"}, case)
    assert not differences(expected.to_dict(), found.to_dict(), tolerance=1e-7)
