"""Laws that every audit owes on any table: soundness, and the invariances of its numbers."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.exceptions import EquipoiseError
from support.engines import on_engine
from support.questions import QUESTIONS, RATES, REALS, asked
from support.soundness import assert_same, assert_sound, numbers
from support.strategies import audit_tables, repeated

few = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
fewer = settings(few, max_examples=6)


@pytest.mark.parametrize("question", QUESTIONS)
@few
@given(data=st.data(), drawn=audit_tables())
def test_any_table_gives_a_sound_result_or_one_sentence(question, data, drawn):
    table, roles = drawn
    options = data.draw(QUESTIONS[question])
    try:
        result = asked(table, roles, question, options)
    except EquipoiseError as error:
        sentence = str(error)
    else:
        assert_sound(result)
        sentence = "."
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))


@fewer
@given(data=st.data(), drawn=audit_tables(wild=False), metric=st.sampled_from(RATES + REALS))
def test_the_order_of_rows_does_not_matter(data, drawn, metric):
    table, roles = drawn
    order = data.draw(st.permutations(range(table.num_rows)))
    first = asked(table, roles, "disparity", {"metric": metric})
    second = asked(table.take(list(order)), roles, "disparity", {"metric": metric})
    assert_same(first, second)


@fewer
@given(drawn=audit_tables(wild=False), metric=st.sampled_from(RATES + REALS))
def test_the_names_of_groups_do_not_matter(drawn, metric):
    table, roles = drawn
    names = {"a": "z", "b": "<b>", "c": "m n"}
    renamed = table
    for column in roles["group"]:
        place = table.column_names.index(column)
        labels = pa.array([names[label] for label in table[column].to_pylist()])
        renamed = renamed.set_column(place, column, labels)

    def rename(group):
        parts = [part.split("=") for part in group.split(" & ")]
        return " & ".join(f"{column}={names[label]}" for column, label in parts)

    first = asked(table, roles, "disparity", {"metric": metric})
    second = asked(renamed, roles, "disparity", {"metric": metric})
    assert_same(first, second, rename=rename)


@pytest.mark.parametrize("question", QUESTIONS)
@fewer
@given(data=st.data(), drawn=audit_tables(wild=False, max_rows=25))
def test_a_count_of_k_is_the_row_k_times(question, data, drawn):
    table, roles = drawn
    times = data.draw(st.lists(st.integers(0, 3), min_size=table.num_rows, max_size=table.num_rows))
    assume(sum(times) > 0)
    options = data.draw(QUESTIONS[question])
    counted = table.append_column("times", pa.array(times))
    try:
        first = asked(counted, roles | {"count": "times"}, question, options)
    except EquipoiseError as error:
        with pytest.raises(type(error)):
            asked(repeated(table, times), roles, question, options)
        return
    second = asked(repeated(table, times), roles, question, options)
    assert_same(first, second)


@fewer
@given(drawn=audit_tables(wild=False), scale=st.sampled_from([1e-3, 1.0, 1e4]))
def test_only_the_proportions_of_weights_matter(drawn, scale):
    table, roles = drawn
    weight = np.linspace(1.0, 2.0, table.num_rows)
    results = [
        asked(
            table.append_column("weight", pa.array(weight * factor)),
            roles | {"weight": "weight"},
            "disparity",
            {"metric": "ppv"},
        )
        for factor in (1.0, scale)
    ]
    assert_same(*results)


@few
@given(
    drawn=audit_tables(min_rows=10, wild=False),
    metric=st.sampled_from(RATES + REALS),
    reference=st.sampled_from(["population", "rest", 0.4]),
    level=st.sampled_from([0.8, 0.95]),
)
def test_zero_is_inside_the_interval_exactly_when_the_p_value_is_large(
    drawn, metric, reference, level
):
    table, roles = drawn
    options = {"metric": metric, "reference": reference, "confidence_level": level}
    for finding in asked(table, roles, "disparity", options).findings:
        if finding.p_value is not None and abs(finding.p_value - (1 - level)) > 1e-6:
            assert (0.0 in finding.ci) == (finding.p_value > 1 - level), finding


@fewer
@given(drawn=audit_tables(min_rows=10, wild=False), metric=st.sampled_from(RATES + REALS))
def test_intervals_nest_in_the_level(drawn, metric):
    table, roles = drawn
    audit = eq.Audit(table, **roles)
    narrow, wide = (audit.disparity(metric, confidence_level=level) for level in (0.5, 0.99))
    for inner, outer in zip(narrow.findings, wide.findings, strict=True):
        if inner.ci is None:
            continue
        slack = 1e-9 * max(1.0, abs(inner.estimate))
        if outer.ci.low is not None:
            assert inner.ci.low is not None
            assert outer.ci.low <= inner.ci.low + slack
        if outer.ci.high is not None:
            assert inner.ci.high is not None
            assert outer.ci.high >= inner.ci.high - slack
        assert inner.estimate in inner.ci


@pytest.mark.parametrize("engine", ["pandas", "polars", "duckdb", "dict"])
@fewer
@given(drawn=audit_tables(wild=True), metric=st.sampled_from(RATES + REALS))
def test_every_local_engine_gives_the_same_numbers(engine, drawn, metric):
    table, roles = drawn
    try:
        expected = asked(table, roles, "disparity", {"metric": metric})
    except EquipoiseError as error:
        with pytest.raises(type(error)):
            asked(on_engine(engine, table), roles, "disparity", {"metric": metric})
        return
    found = asked(on_engine(engine, table), roles, "disparity", {"metric": metric})
    assert_same(expected, found, tolerance=1e-9)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@settings(few, max_examples=2)
@given(drawn=audit_tables(min_rows=5, wild=True), metric=st.sampled_from(["ppv", "mean_score"]))
def test_spark_gives_the_same_numbers(drawn, metric):
    table, roles = drawn
    spark = on_engine("spark", table)
    try:
        expected = asked(table, roles, "disparity", {"metric": metric})
    except EquipoiseError as error:
        with pytest.raises(type(error)):
            asked(spark, roles, "disparity", {"metric": metric})
        return
    assert_same(expected, asked(spark, roles, "disparity", {"metric": metric}), tolerance=1e-9)


@fewer
@given(drawn=audit_tables(wild=False))
def test_the_frame_of_the_caller_is_left_as_it_was(drawn):
    table, roles = drawn
    frame = table.to_pandas()
    before = frame.copy(deep=True)
    first = asked(frame, roles, "disparity", {"metric": "accuracy", "simultaneous": True})
    assert frame.equals(before)
    second = asked(frame, roles, "disparity", {"metric": "accuracy", "simultaneous": True})
    assert numbers(first) == numbers(second)
