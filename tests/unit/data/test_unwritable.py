"""What no engine can hold is told in one sentence, never as an error of a library."""

import polars as pl
import pytest

import equipoise as eq
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.plans.plan import parse_plan

SEX, APPROVED = ["F", "M"] * 50, [0, 1, 1, 1] * 25


@pytest.mark.parametrize("values", [[2**70, 3] * 50, ["a\ud800", "b"] * 50, [object(), 1] * 50])
def test_values_that_arrow_cannot_hold(values):
    with pytest.raises(DataError, match="Column 'g' cannot be read"):
        eq.Audit({"g": values, "approved": APPROVED}, group="g", y_pred="approved")


@pytest.mark.parametrize("name", ["sex\0", "sex\ud800"])
@pytest.mark.parametrize("container", ["dict", "polars", "pandas"])
def test_names_that_engines_cannot_write(name, container):
    data = {name: SEX, "approved": APPROVED}
    if "\ud800" in name:
        pass  # frames of polars and pandas refuse it themselves
    elif container == "polars":
        data = pl.DataFrame(data)
    elif container == "pandas":
        import pandas as pd

        data = pd.DataFrame(data)
    with pytest.raises(DataError, match="no engine can write in a name; rename it"):
        eq.Audit(data, group=name, y_pred="approved")


def test_objects_of_polars_are_not_told_apart_by_their_addresses():
    odd = pl.Series([object(), object()] * 50, dtype=pl.Object)
    data = pl.DataFrame({"sex": SEX, "approved": APPROVED}).with_columns(odd=odd)
    with pytest.raises(DataError, match="'odd' has no values, or a type that no audit can use"):
        eq.Audit(data, group="odd", y_pred="approved")
    assert eq.Audit(data, group="sex", y_pred="approved").disparity("selection_rate").n == 100


@pytest.mark.parametrize("tiny", [2e-310, 9e-46, -1e-310])
def test_weights_whose_inverse_overflows(tiny):
    data = {"sex": SEX, "approved": APPROVED, "weight": [tiny, 2e-45] * 50}
    audit = eq.Audit(data, group="sex", y_pred="approved", weight="weight")
    with pytest.raises(DataError, match=r"from 1e-45 to .*, or 0; 50 of 100 rows are not"):
        audit.disparity("selection_rate")


def test_rows_that_stand_for_more_than_memory_holds():
    data = {"sex": SEX, "approved": APPROVED, "rule": APPROVED[::-1], "late": [0, 0, 1, 1] * 25}
    audit = eq.Audit(
        data | {"k": [2**45] * 100}, group="sex", y_true="late", y_pred="approved", count="k"
    )
    with pytest.raises(DataError, match="complete rows are needed; got 3518437208883200"):
        audit.improvability("rule", accuracy="accuracy")


def test_benefits_whose_squares_vanish():
    audit = eq.Audit({"sex": SEX, "benefit": [1e-310, 2e-310] * 50}, group="sex")
    with pytest.raises(DataError, match="Benefits must not all be below 1e-45 in size"):
        audit.inequality("benefit")


@pytest.mark.parametrize(
    ("question", "options"), [("predictive_parity", {}), ("marginal_outcome", {"threshold": 2e-60})]
)
def test_scores_whose_squares_vanish(question, options):
    data = {"sex": SEX, "late": [0, 1, 1, 0] * 25, "score": [1e-60, 3e-60] * 50}
    audit = eq.Audit(data, group="sex", y_true="late", y_score="score")
    with pytest.raises(DataError, match="Scores must not all be below 1e-45 in size"):
        getattr(audit, question)(**options)


def test_counts_near_the_limit_are_exact_and_beyond_it_refused():
    def audit(count):
        data = {"g": ["a", "a", "b", "b"], "p": [0, 1, 0, 1], "k": [count, count, 1, 1]}
        return eq.Audit(data, group="g", y_pred="p", count="k")

    assert audit(2**51).disparity("selection_rate").n == 2**52 + 2
    with pytest.raises(DataError, match=r"adds up to 1\.8e\+16 rows; the limit is 2\^53"):
        audit(2**53).disparity("selection_rate")


def test_a_count_that_is_missing_with_clusters_is_dropped():
    data = {"sex": SEX, "approved": APPROVED, "person": list(range(50)) * 2}
    data["times"] = [None if k % 7 == 0 else 2 for k in range(100)]
    roles = {"group": "sex", "y_pred": "approved", "count": "times", "cluster": "person"}
    result = eq.Audit(data, missing="drop", **roles).disparity("selection_rate", method="eel")
    assert result.n == 170


def test_a_plan_nested_without_end():
    with pytest.raises(InvalidParameterError, match="is nested too deeply for a plan"):
        parse_plan("a=" + "[" * 100_000)


def test_a_number_that_was_replaced_by_text_is_an_edit():
    audit = eq.Audit({"sex": SEX, "approved": APPROVED}, group="sex", y_pred="approved")
    record = audit.disparity("selection_rate").to_dict()
    record["findings"][0]["ci_low"] = "low"
    with pytest.raises(TypeError, match="ci_low must be a number"):
        eq.AuditResult.from_dict(record)


def test_bins_of_words_and_a_grid_without_scores_are_refused():
    with pytest.raises(DataError, match="`bins` needs a numeric column; 'sex' is String"):
        eq.Audit({"sex": SEX, "approved": APPROVED}, group="sex", bins={"sex": [1.0]})
    data = {"sex": SEX, "late": APPROVED, "score": [0.1, 0.4, 0.2, 0.9] * 25}
    audit = eq.Audit(data, group="sex", y_true="late", y_score="score")
    with pytest.raises(InvalidParameterError, match="`grid` has no score; leave it out"):
        audit.predictive_parity(grid=[])
