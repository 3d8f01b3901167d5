"""Tables that real files turn out to be; each ends in a sound result or in one clear sentence."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest

import equipoise as eq
from equipoise.data.groups import MAX_CELLS
from equipoise.exceptions import (
    DataError,
    EquipoiseError,
    InvalidParameterError,
    NotBinaryError,
)
from equipoise.results.question import questions
from support.soundness import assert_sound

N = 60
RNG = np.random.default_rng(7)
SQL = '"; DROP TABLE x; --'


def rows(**columns):
    table = {
        "g": RNG.choice(["a", "b"], N),
        "y": RNG.integers(0, 2, N),
        "p": RNG.integers(0, 2, N),
        "s": RNG.random(N),
        "t": RNG.integers(0, 2, N),
        "e": RNG.random(N).round(2),
    }
    return table | columns


def audit(table, **roles):
    return eq.Audit(table, **({"group": "g", "y_true": "y", "y_pred": "p", "y_score": "s"} | roles))


def pick(*values):
    chosen = RNG.integers(0, len(values), N)
    return [values[k] for k in chosen]


HALVES = np.repeat(["a", "b"], N // 2)

ANSWERED = {
    "groups of one row": (rows(g=[f"g{k}" for k in range(N)]), {}),
    "a constant outcome": (rows(y=np.ones(N, dtype=int)), {}),
    "perfect separation": (rows(g=HALVES, y=1 * (HALVES == "a"), p=1 * (HALVES == "a")), {}),
    "a constant score": (rows(s=np.zeros(N)), {}),
    "booleans": (rows(g=pick(True, False), y=pick(True, False), p=pick(True, False)), {}),
    "int64 extremes as groups": (rows(g=pick(2**63 - 1, -(2**63))), {}),
    "int64 extremes as scores": (rows(s=np.array(pick(2**63 - 1, -(2**63)))), {}),
    "half precision": (rows(s=RNG.random(N).astype("float16")), {}),
    "decimals": (
        rows(g=pick(decimal.Decimal(1), decimal.Decimal(2)), s=pick(decimal.Decimal("0.1"))),
        {},
    ),
    "dates": (rows(g=pick(dt.date(2020, 1, 1), dt.date(2020, 1, 2))), {}),
    "infinite labels": (rows(g=pick(1.5, float("inf"))), {}),
    "empty and odd labels": (rows(g=pick("", " ", "a\nb", "x & y=z", "é", "\u202ex")), {}),
    "markup": (rows(g=pick("<b>", "<script>alert(1)</script>")), {}),
    "bytes": (rows(g=pick(b"a", b"\xff")), {}),
    "zero weights": (rows(w=pick(0.0, 1.0)), {"weight": "w"}),
    "a group without weight": (rows(g=HALVES, w=1.0 * (HALVES == "a")), {"weight": "w"}),
    "zero counts": (rows(w=pick(0, 1, 3)), {"count": "w"}),
    "clusters across groups": (rows(c=pick(*"uvwxyz")), {"cluster": "c"}),
    "one cluster": (rows(c=np.zeros(N)), {"cluster": "c"}),
    "the cluster is the group": (rows(), {"cluster": "g"}),
    "missing scores": (rows(s=pick(0.25, 0.5, None)), {"missing": "drop"}),
    "a column of SQL": ({SQL if k == "g" else k: v for k, v in rows().items()}, {"group": SQL}),
    "a column of markup": (
        {"<b>" if k == "g" else k: v for k, v in rows().items()},
        {"group": "<b>"},
    ),
    "columns with our own names": (
        rows(__eq_status=pick("d", "e"), n=pick("d", "e")),
        {"group": ["__eq_status", "n"]},
    ),
}


@pytest.mark.parametrize("case", ANSWERED)
@pytest.mark.parametrize("metric", ["ppv", "mean_score"])
def test_an_odd_table_is_answered(case, metric):
    table, roles = ANSWERED[case]
    asked = audit(table, **roles)
    assert_sound(asked.disparity(metric, simultaneous=True, reference="rest"))
    assert_sound(asked.flag(metric, margin=0.2, scale="ratio"))


ALL_ROLES = {"treatment": "t", "effect_pred": "e", "features": ["s", "e"]}
LOGISTIC = "sklearn.linear_model.LogisticRegression"
QUESTIONS = {
    "disparity": {"metric": "residual", "simultaneous": True},
    "flag": {"metric": "tpr", "alternative": "outside", "margin": 0.1},
    "certify": {"metric": "squared_error", "margin": 0.1, "scale": "ratio"},
    "compare": {"metric": "accuracy", "baseline": "y", "margin": 0.1},
    "compare scores": {"metric": "squared_error", "baseline": "e"},
    "disparity to the highest": {"metric": "ppv", "reference": "highest", "scale": "ratio"},
    "flag of the lowest": {"metric": "residual", "reference": "lowest", "alternative": "greater"},
    "flag given a factor": {"metric": "residual", "given": ["t", "s"], "bands": {"s": 3}},
    "certify given a factor": {"metric": "accuracy", "given": "t", "margin": 0.2},
    "decompose": {"metric": "tpr", "given": ["t"]},
    "impact_ratios": {"min_share": 0.0},
    "impact_ratios of accuracy": {"metric": "accuracy", "unknown": "a"},
    "monitor": {"metric": "accuracy", "time": "t"},
    "monitor scores": {"metric": "squared_error", "time": "t", "reference": "population"},
    "discover": {"metric": "accuracy", "features": ["t"]},
    "discover scores": {"metric": "squared_error", "features": ["t", "e"]},
    "predictive_parity": {"unit": "row", "grid": [0.25, 0.5]},
    "score_quality": {},
    "score_quality of two scores": {"baseline": "e", "n_bins": 5},
    "multicalibration": {"min_information": 0.0},
    "multicalibration of parity": {"hypothesis": "parity", "min_information": 1.0},
    "marginal_outcome": {"threshold": 0.1, "unit": "row", "bandwidth": 0.9},
    "improvability": {"candidate": "s", "accuracy": "accuracy", "capacity": 0.4}
    | {"n_resamples": 99},
    "improvability by a model": {"candidate": LOGISTIC, "accuracy": "accuracy"}
    | {"n_resamples": 99, "n_splits": 1},
    "necessity": {"candidate": "s", "accuracy": "accuracy", "capacity": 0.4}
    | {"inference": "analytic", "frontier": True},
    "drop_table": {"estimator": LOGISTIC},
    "inequality": {"benefits": "speicher"},
    "inequality of scores": {"benefits": "speicher", "soft": True, "order": 2.0},
    "inequality of a column": {"benefits": "s"},
    "treatment_effects": {"n_repeats": 1},
    "treatment_effects by ranks": {"measure": "difference", "ranking": "autoc", "n_repeats": 0},
    "policy": {"budget": 0.5},
    "policy by a threshold": {"threshold": 0.3},
    "treatment_effects by difference": {"measure": "difference", "n_repeats": 0, "split": True},
}


def outcomes(name, tables):
    """Ask one question of every table; return what is neither sound nor one sentence."""
    broken = []
    for case, (table, roles, *_) in tables.items():
        try:
            asked = audit(table, **(ALL_ROLES | roles))
            assert_sound(getattr(asked, name.split(" ")[0])(**QUESTIONS[name]))
        except EquipoiseError as error:
            if "\n" in str(error) or not str(error).endswith((".", "?")):
                broken.append((case, str(error)))
        except Exception as error:  # noqa: BLE001 - the point of the test
            broken.append((case, repr(error)[:200]))
    return broken


def test_every_question_meets_every_odd_table():
    assert {name.split(" ")[0] for name in QUESTIONS} == set(questions())


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_odd_table_ends_in_a_sound_result_or_one_sentence(question):
    assert not outcomes(question, ANSWERED)


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_impossible_table_ends_in_one_sentence_whatever_is_asked(question):
    assert not outcomes(question, {k: v for k, v in REFUSED.items() if k != "a million groups"})


@pytest.mark.parametrize(
    "question",
    ["predictive_parity", "improvability", "inequality of a column", "treatment_effects"],
)
def test_more_groups_than_any_question_can_use_are_refused(question):
    n = MAX_CELLS + 1
    table = {name: np.arange(n) % (n if name in "gse" else 2) for name in "gypste"}
    with pytest.raises(DataError, match=f"make {n} cells; the limit is {MAX_CELLS}"):
        getattr(audit(table, **ALL_ROLES), question.split(" ")[0])(**QUESTIONS[question])


@pytest.mark.parametrize("question", ["predictive_parity", "marginal_outcome"])
def test_pairs_of_many_groups_need_a_reference(question):
    wide = {name: np.tile(values, 5) for name, values in rows().items()}
    wide["g"] = np.arange(5 * N) % 101
    with pytest.raises(InvalidParameterError, match="101 groups make 5050 pairs"):
        getattr(audit(wide), question)(**QUESTIONS[question])


@pytest.mark.parametrize("question", sorted(set(QUESTIONS) - {"inequality of a column"}))
def test_a_misspelt_positive_label_is_named_by_every_question_that_reads_labels(question):
    labels = {"y": pick("yes", "no"), "p": pick("yes", "no")}
    asked = audit(rows(**labels), **ALL_ROLES, positive="Yes")
    with pytest.raises(NotBinaryError, match=r"no row has 'Yes'. Did you mean 'yes'"):
        getattr(asked, question.split(" ")[0])(**QUESTIONS[question])


REFUSED = {
    "an empty table": ({"g": [], "y": [], "p": [], "s": []}, {}, "'g' has no values"),
    "a score missing everywhere": (
        rows(s=[np.nan] * N),
        {"missing": "drop"},
        "No complete row|no values",
    ),
    "a missing score": (rows(s=pick(0.5, None)), {}, "missing values in 60 rows"),
    "infinite scores": (rows(s=pick(np.inf, 1.0)), {}, "'s' is infinite or beyond 1e"),
    "huge scores": (rows(s=RNG.random(N) * 1e300), {}, "'s' is infinite or beyond 1e"),
    "tiny scores": (rows(s=RNG.random(N) * 1e-160), {}, "Rescale them"),
    "negative weights": (rows(w=pick(-1.0, 1.0)), {"weight": "w"}, "`weight` must be a number"),
    "no weight at all": (rows(w=np.zeros(N)), {"weight": "w"}, "is zero in every row"),
    "negative counts": (rows(w=pick(-1, 1)), {"count": "w"}, "`count` must be a whole number"),
    "broken counts": (rows(w=pick(0.5)), {"count": "w"}, "60 of 60 rows are not"),
    "astronomic counts": (rows(w=pick(2**62)), {"count": "w"}, "`count` must be a whole number"),
    "too many rows in all": (rows(w=pick(2**52)), {"count": "w"}, "adds up to"),
    "three labels": (rows(s=RNG.random(N), y=pick(0, 1, 2)), {}, "`y_true` must be 0 or 1"),
    "a million groups": (
        {name: np.arange(1_000_000) % (2 if name in "yp" else 10**7) for name in "gyps"},
        {},
        "make 1000000 cells; the limit is 500000",
    ),
    "complex numbers": (rows(s=RNG.random(N) + 1j), {}, "Column 's' cannot be read"),
    "lists": (rows(g=[[1]] * N), {}, "a type that no audit can use"),
    "names alike but for case": (rows(G=pick("a")), {}, "distinct, in lower case too"),
    "bins that are words": (rows(g=RNG.random(N)), {"bins": {"g": ["x"]}}, "must be numeric"),
    "bins without columns": (rows(), {"bins": [1]}, "`bins` must map columns"),
    "no positive label": (rows(), {"positive": None}, "`positive` must be a number"),
}


def ask_all(table, roles):
    asked = audit(table, **roles)
    asked.disparity("mean_score")
    asked.disparity("ppv")


@pytest.mark.parametrize("case", REFUSED)
def test_an_impossible_table_is_refused_in_one_sentence(case):
    table, roles, message = REFUSED[case]
    with pytest.raises(EquipoiseError, match=message) as raised:
        ask_all(table, roles)
    assert "\n" not in str(raised.value)


def test_repeated_and_mixed_columns_of_pandas_are_refused():
    import pandas as pd

    with pytest.raises(DataError, match="distinct"):
        audit(pd.DataFrame(np.zeros((3, 4)), columns=["g", "y", "y", "s"]))
    with pytest.raises(DataError, match="cannot be read"):
        audit(pd.DataFrame(rows()).assign(g=[1, "a"] * (N // 2)))


def test_categories_and_zoned_times_of_pandas_are_labels():
    import pandas as pd

    frame = pd.DataFrame(rows())
    frame["g"] = pd.Categorical(frame["g"], categories=["a", "b", "unused"])
    names = {finding.group for finding in audit(frame).disparity("ppv").findings}
    assert names == {"g=a", "g=b"}
    days = pd.to_datetime(RNG.integers(0, 2, N), unit="D", utc=True)
    frame["g"] = days.tz_convert("Europe/Berlin")
    assert_sound(audit(frame).disparity("ppv"))


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    file = tmp_path / "latin.csv"
    file.write_bytes(b"g,y,p,s\n" + "é,1,0,0.5\n".encode("latin-1") * 30)
    with pytest.raises(DataError, match=r"UTF-8|unicode|utf-8|Cannot read|could not run"):
        audit(file).disparity("ppv")


@pytest.mark.parametrize("data", [None, 3, [{"g": 1}], np.zeros((3, 3))])
def test_what_is_no_table_is_refused(data):
    with pytest.raises(InvalidParameterError, match="`data` must be a frame"):
        audit(data)


def test_a_column_without_type_is_refused():
    table = pa.table(rows()).append_column("z", pa.nulls(N))
    with pytest.raises(DataError, match="'z' has no values"):
        audit(table, group="z")
