"""Every engine gives the sums that a loop over rows gives."""

import re
from datetime import date

import narwhals as nw
import numpy as np
import pyarrow as pa
import pytest

import equipoise as eq
from equipoise.data.roles import Roles
from equipoise.data.splitting import hashed, hashed_numpy
from equipoise.data.table import KEY, Quantity, Rows, Table
from equipoise.exceptions import (
    ColumnNotFoundError,
    DataError,
    InvalidParameterError,
    MissingValuesError,
    NotBinaryError,
)
from equipoise.moments import CellMoments
from support.asking import answer_of
from support.engines import ENGINES, on_engine

N = 400
BOTH = ("y_true", "y_pred")
REAL = {"y_true": "number", "y_score": "number"}


def people(seed=5):
    rng = np.random.default_rng(seed)
    race = rng.choice(["a", "b", '"; DROP TABLE x; --'], N).tolist()
    race[7] = None
    score = rng.random(N).tolist()
    score[3] = None
    return pa.table(
        {
            "race": pa.array(race),
            "sex": rng.choice([1, 2], N),
            "veteran": rng.random(N) < 0.3,
            "day": pa.array(rng.choice([18000, 18001], N).astype("int32")).cast(pa.date32()),
            "y": rng.integers(0, 2, N),
            "p": rng.integers(0, 2, N).astype(float),
            "score": pa.array(score),
            "id": rng.integers(0, 90, N),
            "weight": rng.random(N) + 0.2,
            "copies": rng.integers(0, 4, N),
        }
    )


def roles(**extra):
    return Roles(
        group=("race", "sex"), y_true="y", y_pred="p", y_score="score", missing="drop", **extra
    )


def codes(frame, keep):
    keys = [f"{r}|{s}" for r, s, k in zip(frame["race"], frame["sex"], keep, strict=True) if k]
    return np.unique(keys, return_inverse=True)[1]


def oracle(table, quantities, keep, extra):
    frame = {
        name: np.array(table.column(name).to_pylist(), dtype=object) for name in table.column_names
    }
    chosen = {role: frame[column][keep].astype(float) for role, column in extra.items()}
    return CellMoments.from_rows(quantities, codes(frame, keep), **chosen)


OPTIONS = [
    {},
    {"cluster": "id"},
    {"weight": "weight"},
    {"count": "copies"},
    {"cluster": "id", "weight": "weight", "count": "copies"},
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("extra", OPTIONS, ids=lambda extra: "+".join(extra) or "plain")
def test_cells_equal_a_loop_over_rows_on_every_engine(engine, extra):
    table = people()
    y = np.array(table.column("y").to_pylist(), dtype=float)
    p = np.array(table.column("p").to_pylist(), dtype=float)
    keep = np.array([r is not None for r in table.column("race").to_pylist()])
    if "count" in extra:
        keep &= np.array(table.column("copies").to_pylist()) > 0
    opened = Table(on_engine(engine, table), roles(**extra))

    labels = answer_of(opened.label_sums(BOTH))
    indicators = np.stack([(y == a) & (p == b) for a in (1, 0) for b in (1, 0)], axis=1)
    expected = oracle(table, indicators[keep].astype(float), keep, extra)
    assert_same(labels, expected)
    assert labels.dropped == (table.column("copies")[7].as_py() if "count" in extra else 1)

    score = np.array([np.nan if s is None else s for s in table.column("score").to_pylist()])
    both = keep & np.isfinite(score)
    quantities = [Quantity.of(opened.y_true * opened.y_score), Quantity.of(opened.y_score)]
    cells = answer_of(opened.sums(quantities, REAL))
    expected = oracle(table, np.stack([y * score, score], axis=1)[both], both, extra)
    assert_same(cells, expected)


def assert_same(cells, expected):
    np.testing.assert_array_equal(cells.n, expected.n)
    np.testing.assert_allclose(cells.total, expected.total, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(cells.product, expected.product, rtol=1e-9, atol=1e-9)
    assert cells.n_units == expected.n_units
    assert (cells.cross is None) == (expected.cross is None)
    if expected.cross is not None:
        np.testing.assert_array_equal(cells.cross.first, expected.cross.first)
        np.testing.assert_array_equal(cells.cross.second, expected.cross.second)
        np.testing.assert_allclose(
            cells.cross.product, expected.cross.product, rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_group_columns_of_every_type_get_the_same_labels(engine):
    table = people().drop_columns(["race"])
    opened = Table(on_engine(engine, table), Roles(group=("sex", "veteran", "day"), y_pred="p"))
    cells = answer_of(opened.label_sums(("y_pred",)))
    assert set(cells.labels[0]) == {"1", "2"}
    assert set(cells.labels[1]) == {"True", "False"}
    assert set(cells.labels[2]) == {date(2019, 4, 14).isoformat(), date(2019, 4, 15).isoformat()}
    assert cells.n.sum() == N


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cluster", [None, "id"])
def test_hashed_splits_agree_on_every_engine(engine, cluster):
    table = people()

    def split(data):
        opened = Table(data, roles(cluster=cluster))
        frame = opened.keyed(REAL).with_columns(hashed(nw.col(KEY), 3).alias("h"))
        rows = frame.select("score", "id", KEY, "h").collect(backend="pyarrow").to_native()
        return rows.sort_by([("score", "ascending"), ("id", "ascending")]).to_pydict()

    found, expected = split(on_engine(engine, table)), split(table)
    assert found == expected
    np.testing.assert_array_equal(found["h"], hashed_numpy(found[KEY], 3))
    assert len(set(found[KEY])) == (len(set(found["id"])) if cluster else len(found["id"]))


def test_rows_number_cells_as_cells_does():
    opened = Table(people(), roles())
    declared = opened.sums([Quantity.of(opened.y_score)], REAL)
    rows, cells = answer_of(Rows(declared)).read(), answer_of(declared)
    np.testing.assert_array_equal(np.bincount(rows.cell), cells.n)
    np.testing.assert_allclose(
        np.bincount(rows.cell, weights=rows.values[0]), cells.total[:, 0], rtol=1e-12
    )
    assert [a.tolist() for a in rows.labels] == [a.tolist() for a in cells.labels]
    assert rows.dropped == cells.dropped == 2


def test_numeric_groups_are_binned_on_request():
    data = {"age": [10, 25, 44.9, 45, 90], "p": [1, 0, 1, 0, 1]}
    table = Table(data, Roles(group="age", y_pred="p", bins={"age": [25, 45]}))
    cells = answer_of(table.label_sums(("y_pred",)))
    assert dict(zip(cells.labels[0], cells.n, strict=True)) == {"<25": 1, "25 to <45": 2, ">=45": 2}


def test_text_labels_are_compared_with_positive():
    data = {"g": ["a", "a", "b"], "y": ["yes", "no", "yes"], "p": ["no", "no", "yes"]}
    table = Table(data, Roles(group="g", y_true="y", y_pred="p", positive="yes"))
    cells = answer_of(table.label_sums(BOTH))
    np.testing.assert_array_equal(cells.total, [[0, 1, 0, 1], [1, 0, 0, 0]])


@pytest.mark.parametrize(
    ("labels", "positive", "message"),
    [
        (["Yes", "No"], "yes", "'y'; no row has 'yes'. Did you mean 'Yes'? Labels: 'No', 'Yes'."),
        ([1, 2], 3, "'y'; no row has 3. Labels: '1', '2'."),
        ([True, False], 7, "'y'; no row has 7."),
    ],
)
def test_a_positive_label_that_no_row_has_is_refused(labels, positive, message):
    table = Table({"g": ["a", "b"], "y": labels}, Roles(group="g", y_true="y", positive=positive))
    with pytest.raises(NotBinaryError, match=re.escape(message)):
        answer_of(table.label_sums(("y_true",)))


@pytest.mark.parametrize(
    ("labels", "positive", "favourable", "message"),
    [
        (["yes", "no"], "yes", "Yes", "'y'; no row has 'Yes'. Did you mean 'yes'?"),
        (["yes", "no"], "no", "Yes", "'y'; no row has 'Yes'. Did you mean 'yes'?"),
        (["yes", "no"], "yes", 7, "'y'; no row has 7. Labels: 'no', 'yes'."),
        (["yes", "no"], "yes", "1", "'y'; no row has '1'. Labels: 'no', 'yes'."),
        ([0, 1], 1, "yes", "'y'; no row has 'yes'. Labels: '0', '1'."),
        (["yes", "no", "late"], "yes", "no", "has more labels beside 'yes': 'late', 'no'."),
        (["yes", "no"], "yess", "no", "`positive` must be a label of 'y'; no row has 'yess'."),
        ([True, False], 1, "yess", "no row has 'yess'. Did you mean 'yes'?"),
    ],
)
def test_a_favourable_label_that_no_row_has_is_refused(labels, positive, favourable, message):
    roles = Roles(group="g", y_true="y", positive=positive, favourable=favourable)
    table = Table({"g": ["a"] * len(labels), "y": labels}, roles)
    with pytest.raises(NotBinaryError, match=re.escape(message)):
        table.check_favourable()


@pytest.mark.parametrize(
    ("labels", "positive", "favourable"),
    [
        (["yes", "no"], "yes", None),
        (["yes", "no"], "yes", "no"),
        (["yes", "no"], "yes", 0),
        (["yes", "no", "late"], "yes", 1),
        (["yes", "no", "late"], "yes", "yes"),
        (["no", "no"], "no", "yes"),
        ([0, 1], 1, "0"),
        ([True, False], 1, False),
        ([True, False], "yes", "No"),
        ([1.0, 2.0], 1, 2),
    ],
)
def test_a_favourable_label_that_is_known_is_taken(labels, positive, favourable):
    roles = Roles(group="g", y_true="y", positive=positive, favourable=favourable)
    Table({"g": ["a"] * len(labels), "y": labels}, roles).check_favourable()


@pytest.mark.parametrize(("word", "good"), [("yes", 1), ("F", 0), ("TRUE", 1), (False, 0), (1, 1)])
def test_words_of_truth_values_name_the_good_decision(word, good):
    roles = Roles(group="g", y_true="y", favourable=word)
    table = Table({"g": ["a", "b"], "y": [True, False]}, roles)
    table.check_favourable()
    assert table.roles.favourable == good
    assert table.roles.favours_positive == (good == 1)


@pytest.mark.parametrize("positive", ["false", "True", "no", True, 0])
@pytest.mark.parametrize("favourable", ["true", "NO", True])
def test_words_of_truth_values_are_labels_whichever_counts_as_one(positive, favourable):
    roles = Roles(group="g", y_true="y", positive=positive, favourable=favourable)
    table = Table({"g": ["a", "b"], "y": [True, False]}, roles)
    table.check_favourable()
    same = str(positive).lower() in {"true", "1"}, str(favourable).lower() == "true"
    assert table.roles.favours_positive == (same[0] == same[1])


def test_labels_are_looked_up_once(monkeypatch):
    roles = Roles(group="g", y_true="y", positive="yes", favourable="no")
    table = Table({"g": ["a", "b"], "y": ["yes", "no"]}, roles)
    seen = []
    monkeypatch.setattr(Table, "_labels", lambda *asked: seen.append(asked) or ["no", "yes"])
    table.check_favourable()
    table.grouped_by([]).check_favourable()
    assert len(seen) == 1
    table.with_frame(table.frame).check_favourable()
    assert len(seen) == 2


def test_decisions_may_lack_the_positive_label_that_outcomes_have():
    data = {"g": ["a", "b"], "y": ["yes", "no"], "p": ["no", "no"]}
    table = Table(data, Roles(group="g", y_true="y", y_pred="p", positive="yes"))
    cells = answer_of(table.label_sums(BOTH))
    np.testing.assert_array_equal(cells.total, [[0, 1, 0, 0], [0, 0, 0, 1]])


@pytest.mark.parametrize(
    ("outcomes", "decisions", "positive", "message"),
    [
        (["yes", "no"], ["denied", "approved"], "approved", "of 'y' has it. Labels: 'no', 'yes'."),
        (["yes", "no"], ["denied", "approved"], "yes", "'p' has it. Labels: 'approved', 'denied'."),
        ([1, 2], [0, 1], 2, "`positive` is 2 for 'y', 'p' alike; no row of 'p' has it."),
    ],
)
def test_a_column_whose_labels_would_all_count_as_0_is_refused(
    outcomes, decisions, positive, message
):
    data = {"g": ["a", "b"], "y": outcomes, "p": decisions}
    table = Table(data, Roles(group="g", y_true="y", y_pred="p", positive=positive))
    with pytest.raises(NotBinaryError, match=re.escape(message)):
        answer_of(table.label_sums(BOTH))


def test_a_column_that_is_not_asked_about_may_have_other_labels():
    data = {"g": ["a", "b"], "y": ["yes", "no"], "p": ["denied", "approved"]}
    table = Table(data, Roles(group="g", y_true="y", y_pred="p", positive="approved"))
    cells = answer_of(table.label_sums(("y_pred",)))
    assert cells.total.sum() == 2


def test_labels_that_are_all_missing_are_missing_not_misspelt():
    data = pa.table({"g": ["a", "b"], "y": pa.nulls(2, pa.string())})
    table = Table(data, Roles(group="g", y_true="y", positive="yes"))
    with pytest.raises(MissingValuesError, match="'y' has 2 missing values"):
        answer_of(table.label_sums(("y_true",)))


def one_row_groups(**columns):
    return {"g": ["a", "b"], "y": [1, 0], "p": [0, 1], **columns}


@pytest.mark.parametrize(
    ("data", "extra", "error", "message"),
    [
        ({"p": [0, 5]}, {}, NotBinaryError, r"`y_pred` must be 0 or 1 here; column 'p' has other"),
        ({"p": [0, None]}, {}, MissingValuesError, "'p' has 1 missing values in 2 rows"),
        ({"p": [0, float("nan")]}, {}, MissingValuesError, "'p' has 1 missing values in 2 rows"),
        ({"g": ["a", None]}, {}, MissingValuesError, "'g' has 1 missing values in 2 rows"),
        (
            {"w": [1.0, -1.0]},
            {"weight": "w"},
            DataError,
            r"`weight` must be a number from 1e-45 to 1e\+45, or 0",
        ),
        ({"w": [0.0, 0.0]}, {"weight": "w"}, DataError, "'w' is zero in every row"),
        ({"c": [1.5, 1.0]}, {"count": "c"}, DataError, "`count` must be a whole number"),
        ({"p": [0.0, float("inf")]}, {}, NotBinaryError, "has other values in 1 of 2"),
        ({"p": ["x", "y"]}, {}, NotBinaryError, "say which one counts as 1"),
        ({"w": ["x", "y"]}, {"weight": "w"}, DataError, "`weight` must be numeric"),
        ({"w": [[1], [2]]}, {"weight": "w"}, DataError, "a type that no audit can use"),
        (
            {"p": [1, None], "y": [None, 0]},
            {"missing": "drop"},
            DataError,
            "No complete row is left of 2",
        ),
        ({"p": [None, None]}, {"missing": "drop"}, DataError, "'p' has no values, or a type that"),
    ],
)
def test_bad_values_get_one_clear_sentence(data, extra, error, message):
    asked = Roles(group="g", y_true="y", y_pred="p", **extra)
    with pytest.raises(error, match=message):
        answer_of(Table(one_row_groups(**data), asked).label_sums(BOTH))


def test_an_absent_column_gets_the_nearest_name():
    with pytest.raises(ColumnNotFoundError, match=r"'rase' not found\. Did you mean 'race'"):
        Table({"race": ["a"], "p": [1]}, Roles(group="rase", y_pred="p"))


def test_a_role_that_was_not_given_is_named():
    opened = Table(one_row_groups(), Roles(group="g", y_pred="p"))
    with pytest.raises(InvalidParameterError, match="this question needs `y_true`"):
        answer_of(opened.label_sums(BOTH))


def test_too_many_cells_are_refused(monkeypatch):
    monkeypatch.setattr("equipoise.data.groups.MAX_CELLS", 1)
    with pytest.raises(DataError, match=r"make 2 cells; the limit is 1"):
        answer_of(Table(one_row_groups(), Roles(group="g", y_pred="p")).label_sums(("y_pred",)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (3, "`data` must be a frame, a relation, a dict of arrays or a path; got int"),
        ("absent.csv", "File 'absent.csv' not found"),
        ({"a": [1, 2], "b": [1]}, "Columns must have one length"),
        ({"a": [1, "x"]}, "Column 'a' cannot be read"),
    ],
)
def test_data_that_cannot_be_opened_says_why(data, message):
    with pytest.raises((DataError, InvalidParameterError), match=message):
        Table(data, Roles())


def test_repeated_column_names_are_refused():
    import pandas as pd

    with pytest.raises(DataError, match="distinct, in lower case too; 'a' are not"):
        Table(pd.DataFrame([[1, 2]], columns=["a", "a"]), Roles())


@pytest.mark.parametrize(
    ("roles_", "message"),
    [
        ({"missing": "keep"}, "`missing` must be one of 'raise', 'drop'; got 'keep'"),
        ({"group": ("a", "a")}, "`group` names a column twice"),
        ({"group": (1,)}, "`group` must name columns"),
        ({"y_true": 3}, "`y_true` must name a column"),
        ({"group": "a", "bins": {"b": [1]}}, "'b', which is not a group column"),
        ({"group": "a", "bins": {"a": [2, 1]}}, "must be increasing cut points"),
    ],
)
def test_roles_are_checked(roles_, message):
    with pytest.raises(InvalidParameterError, match=message):
        Roles(**roles_)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_files_of_every_kind_are_read(tmp_path, name):
    import pandas as pd

    frame = pd.DataFrame(one_row_groups())
    path = tmp_path / name
    if name.endswith("parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    cells = answer_of(Table(path, Roles(group="g", y_true="y", y_pred="p")).label_sums(BOTH))
    np.testing.assert_array_equal(cells.total, [[0, 1, 0, 0], [0, 0, 1, 0]])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.parquet", b"not parquet at all", "Cannot read"),
        ("t.csv", b"a#b#c\n1#2#3\n", "delimiter must be a comma"),
        ("t.xlsx", b"", "unknown ending"),
    ],
)
def test_files_that_cannot_be_read_say_why(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        Table(path, Roles())


def test_a_folder_without_parquet_is_refused(tmp_path):
    with pytest.raises(DataError, match="holds no parquet file"):
        Table(tmp_path, Roles())


def test_too_many_subgroups_are_refused_with_the_depth_that_fits():
    rng = np.random.default_rng(0)
    names = [f"c{k:02d}" for k in range(12)]
    data = {name: rng.integers(0, 2, 30_000) for name in names}
    audit = eq.Audit(data | {"p": rng.integers(0, 2, 30_000)}, group=names, y_pred="p")
    sentence = r"more than 100000 subgroups at depth 7. Pass `depth=6` \(at most 94448 subgroups"
    with pytest.raises(InvalidParameterError, match=sentence):
        audit.disparity("selection_rate")
    assert len(audit.disparity("selection_rate", depth=1).findings) == 24
