"""`init` guesses roles, says why, and writes a plan that can be read."""

import re
import tomllib
from importlib.resources import files
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from equipoise._typing import Template
from equipoise.cli.init import template_checks
from equipoise.data.profile import profile
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.plans.draft import draft, give_favourable
from equipoise.plans.draft_text import draft_text, remarks
from equipoise.plans.plan import parse_plan


def drafted(**columns):
    return draft(profile(columns))


N = 60


def test_names_and_values_give_the_roles():
    guess = drafted(
        applicant_id=list(range(N)),
        person=[k // 2 for k in range(N)],
        race=["a", "b", "c"] * (N // 3),
        sex=["F", "M"] * (N // 2),
        credit_score=[0.01 * k for k in range(N)],
        approved=[0, 1] * (N // 2),
        repaid=[1, 0, 0] * (N // 3),
        weight=[1.5 + k for k in range(N)],
    )
    assert guess.roles == {
        "cluster": "person",
        "weight": "weight",
        "y_pred": "approved",
        "y_score": "credit_score",
        "y_true": "repaid",
        "group": ["race", "sex"],
        "favourable": 1,
    }
    assert "identifier" in guess.left["applicant_id"]
    assert "F, M" in guess.reasons["group"]


def test_an_experiment_is_recognised():
    guess = drafted(
        region=["n", "s"] * 30,
        treated=[0, 1, 1] * 20,
        uplift_hat=[0.01 * k for k in range(60)],
        converted=[0, 1] * 30,
    )
    assert guess.roles["treatment"] == "treated"
    assert guess.roles["effect_pred"] == "uplift_hat"
    assert guess.roles["y_true"] == "converted"
    assert 'question = "treatment_effects"' in draft_text(guess, path="x.csv")


@pytest.mark.parametrize(
    ("outcome", "low", "high", "measure"),
    [
        ([0, 1], -0.1, 0.3, "difference"),
        ([0, 1], 0.0, 0.3, "difference"),
        ([0, 1], 0.7, 1.6, "relative"),
        ([3.5, 700.0, 20.0], 20.0, 90.0, "difference"),
        ([3.5, 700.0, 20.0], 0.9, 1.2, "relative"),
    ],
)
def test_predicted_ratios_are_told_from_differences(outcome, low, high, measure):
    guess = drafted(
        sex=["F", "M"] * 30,
        treated=[0, 1, 1, 0] * 15,
        uplift=np.linspace(low, high, N).tolist(),
        outcome=(outcome * N)[:N],
    )
    assert guess.measure == measure
    assert f'measure = "{measure}"' in draft_text(guess, path="x.csv")


def test_the_questions_are_those_that_the_roles_allow():
    table = {"race": ["a", "b"] * 30, "sex": ["F", "F", "M"] * 20, "score": list(range(60))}
    scored = parse_plan(draft_text(draft(profile(table | {"died": [0, 1, 1] * 20})), path="x.csv"))
    assert [check.id for check in scored.checks] == [
        "disparity-outcome_rate",
        "disparity-mean_score",
        "intersections-outcome-rate",
        "predictive_parity",
    ]
    assert scored.checks[-1].group == ("race",)
    decided = parse_plan(draft_text(draft(profile(table | {"hired": [0, 1, 1] * 20})), path="x"))
    assert [check.question for check in decided.checks] == [
        *("disparity", "disparity", "flag", "certify")
    ]
    first, _, crossed, _ = decided.checks
    assert first.options == {"metric": "selection_rate", "simultaneous": True, "depth": 1}
    assert crossed.id == "intersections-selection-rate"
    assert "depth" not in crossed.options


@pytest.mark.parametrize(
    ("columns", "bad"),
    [
        ({"denied": [0, 1]}, True),
        ({"approved": [0, 1]}, False),
        ({"denied": ["N", "Y"]}, True),
        ({"decision": ["approved", "denied"]}, False),
        ({"approved": [0, 1], "fit": ["N", "Y"]}, False),
        ({"pred": [0, 1]}, False),
    ],
)
def test_a_plan_says_where_its_ratios_are_those_of_the_bad_decision(columns, bad):
    table = {name: values * 30 for name, values in columns.items()}
    text = draft_text(drafted(sex=["F", "F", "M"] * 20, **table), path="x.csv")
    assert ("rates of the bad decision" in " ".join(text.split())) == bad


def test_text_labels_get_a_positive_one_and_missing_values_are_counted():
    guess = drafted(sex=["F", "M", None] * 20, hired=["no", "yes"] * 30)
    assert guess.roles["positive"] == "yes"
    assert guess.roles["missing"] == "drop"
    assert "sex 20" in guess.reasons["missing"]


def test_an_age_in_years_is_cut_into_bands():
    guess = drafted(age=list(range(20, 80)), selected=[0, 1] * 30)
    assert guess.roles["group"] == ["age"]
    assert guess.roles["bins"] == {"age": [25, 45]}


def test_a_word_that_contains_age_is_not_an_age():
    guess = drafted(messages=["a", "b"] * 30, sex=["F", "M"] * 30, y=[0, 1, 1] * 20)
    assert guess.roles["group"] == ["sex"]


@pytest.mark.parametrize(
    "columns",
    [
        {"x": [0.1 * k for k in range(40)], "approved": [0, 1] * 20},
        {"sex": ["F", "M"] * 20, "note": [f"note {k % 35}" for k in range(40)]},
        {"note": [f"note {k % 35}" for k in range(40)]},
    ],
)
def test_a_table_without_the_roles_gets_a_plan_to_complete(columns):
    text = draft_text(drafted(**columns), path="x.csv")
    assert "Complete the roles above" in text
    assert "check" not in tomllib.loads(text)
    assert ("No column looks like a group" in text) == ("sex" not in columns)


def test_a_table_without_a_model_says_that_none_is_audited():
    guess = drafted(sex=["F", "M"] * 20, repaid=[0, 1] * 20)
    assert "no model is audited" in draft_text(guess, path="x.csv")


def test_an_empty_table_is_refused():
    with pytest.raises(DataError, match="no rows"):
        drafted(sex=[], approved=[])


def test_names_that_break_toml_are_quoted():
    name = 'sex "\n] x = 1 #\x7f'
    guess = drafted(**{name: ["a\nb", '"'] * 20, "approved": [0, 1] * 20})
    plan = parse_plan(draft_text(guess, path='a"b\\c.csv'))
    assert plan.roles["group"] == [name]
    assert plan.path.endswith('a"b\\c.csv')


def test_counts_constants_and_empty_columns_are_recognised():
    guess = drafted(
        region=["n", "s", "e"] * 20,
        empty=[None] * N,
        same=["x"] * N,
        label=[True, False] * 30,
        count=[3, 1, 2] * 20,
    )
    assert guess.roles == {"count": "count", "y_true": "label", "group": ["region"]}
    assert guess.left == {"empty": "empty", "same": "a single value"}


def test_a_fourth_group_is_mentioned_and_other_columns_are_described():
    guess = drafted(
        race=["a", "b"] * 30,
        sex=["F", "M"] * 30,
        religion=["x", "y", "z"] * 20,
        language=["p", "q"] * 30,
        income=[1.5 * k for k in range(N)],
        town=[f"t{k % 40}" for k in range(N)],
        approved=[0, 1, 1] * 20,
    )
    assert guess.roles["group"] == ["race", "sex", "religion"]
    assert guess.left["language"] == "characterises people: could be a group too"
    assert guess.left["town"] == "40 values"
    assert guess.numbers == ["income"]
    assert "#   income: 60 values from 0 to 88.5" in draft_text(guess, path="x.csv")


def test_numbers_stand_in_for_an_outcome_when_nothing_else_does():
    guess = drafted(sex=["F", "M"] * 30, wage=[1.5 * k for k in range(N)])
    assert guess.roles["y_true"] == "wage"
    assert guess.amount
    assert 'metric = "mean_outcome"' in draft_text(guess, path="x.csv")


def test_clusters_make_the_parity_question_say_its_unit():
    guess = drafted(
        user=[k // 2 for k in range(N)],
        sex=["F", "M"] * 30,
        score=[0.01 * k for k in range(N)],
        outcome=[0, 1, 1] * 20,
    )
    assert 'unit = "cluster"' in draft_text(guess, path="x.csv")


@pytest.mark.parametrize(
    ("name", "labels", "favourable"),
    [
        ("approved", [0, 1], 1),
        ("denied", [0, 1], 0),
        ("pred_default", [False, True], 0),
        ("decision", ["approved", "rejected"], "approved"),
        ("decision", ["deny", "ok"], "ok"),
        ("pred", [0, 1], None),
    ],
)
def test_what_is_good_for_a_person_is_read_from_words(name, labels, favourable):
    guess = drafted(sex=["F", "M"] * (N // 2), **{name: labels * (N // 2)})
    assert guess.roles.get("favourable") == favourable
    text = draft_text(guess, path="x.csv")
    assert ("# favourable = 1" in text) == (favourable is None)


def test_a_decision_without_words_takes_those_of_what_it_predicts():
    guess = drafted(
        sex=["F", "M"] * (N // 2), prediction=[0, 1] * (N // 2), default=[1, 0, 0] * (N // 3)
    )
    assert guess.roles["favourable"] == 0
    assert guess.reasons["favourable"] == (
        "'default' in `default` reads as bad for the person, and `prediction` is taken to predict"
        " it: check this"
    )
    alone = drafted(sex=["F", "M"] * (N // 2), hired=[0, 1] * (N // 2))
    assert alone.reasons["favourable"].endswith("reads as good for the person: check this")


@pytest.mark.parametrize("name", ["decision", "loan_status"])
def test_a_choice_is_not_taken_to_predict_a_bad_outcome(name):
    guess = drafted(sex=["F", "M"] * 30, **{name: [0, 1] * 30}, default=[1, 0, 0] * 20)
    assert (guess.roles["y_pred"], guess.roles["y_true"]) == (name, "default")
    assert "favourable" not in guess.roles


@pytest.mark.parametrize(
    ("decision", "outcome", "at_odds"),
    [
        ({"approved": [0, 1]}, {"default_12m": [0, 1]}, "default_12m"),
        ({"denied": [0, 1]}, {"repaid": [0, 1]}, "repaid"),
        ({"denied": [0, 1]}, {"default_12m": [0, 1]}, ""),
        ({"decision": ["approved", "denied"]}, {"default": [0, 1]}, "default"),
        ({"approved": ["yes", "no"]}, {"defaulted": ["no", "yes"]}, "defaulted"),
        ({"prediction": [0, 1]}, {"default": [0, 1]}, ""),
    ],
)
def test_a_good_decision_beside_a_bad_outcome_is_not_asked_about_errors(decision, outcome, at_odds):
    columns = {name: values * 30 for name, values in (decision | outcome).items()}
    guess = drafted(sex=["F", "F", "M"] * 20, **columns)
    assert guess.at_odds == at_odds
    checks = parse_plan(draft_text(guess, path="x.csv")).checks
    asked = {check.options.get("metric", check.question) for check in checks}
    assert ({"fpr", "fnr", "inequality"} <= asked) == (not at_odds)
    if at_odds:
        assert f"the opposite of `{at_odds}`, and name it as `y_true`" in remarks(guess)[0]
        with pytest.raises(InvalidParameterError, match="'lending' compares decisions with out"):
            template_checks("lending", guess)


def test_a_bad_score_beside_a_good_decision_is_not_asked_about():
    guess = drafted(
        sex=["F", "F", "M"] * 20, approved=[0, 1] * 30, prob_default=[k / 61 for k in ROWS]
    )
    assert guess.roles["y_score"] == guess.at_odds == "prob_default"
    assert "mean_score" not in draft_text(guess, path="x.csv")
    assert "so the mean score is not asked about" in remarks(guess)[0]
    rest = {"sex": ["F", "F", "M"] * 20, "score_risque": [k / 61 for k in ROWS]}
    assert drafted(**rest, accordé=[0, 1] * 30).at_odds == "score_risque"
    assert not drafted(**rest, refusé=[0, 1] * 30).at_odds


@pytest.mark.parametrize(
    ("decision", "outcome"),
    [
        (["approved", "denied"], ["yes", "no"]),
        (["yes", "no"], ["Y", "N"]),
        ([0, 1], [1, 2]),
    ],
)
def test_an_outcome_with_other_labels_than_the_decision_is_left_to_a_person(decision, outcome):
    guess = drafted(sex=["F", "F", "M"] * 20, decision=decision * 30, default=outcome * 30)
    assert "y_true" not in guess.roles
    assert "are not those of `decision`" in remarks(guess)[0]
    if "favourable" in guess.roles:
        with pytest.raises(InvalidParameterError, match="needs `y_true`: `default` is an outcome"):
            template_checks("lending", guess)


def test_what_characterises_people_is_never_the_outcome_nor_a_feature():
    guess = drafted(
        pupil_id=list(range(N)),
        black=[0, 1] * (N // 2),
        hispan=[0, 0, 1] * (N // 3),
        male=[True, False] * (N // 2),
        lectage=[1, 2, 3] * (N // 3),
        tribe_name=["x", "y", "z"] * (N // 3),
        hours=[k % 50 for k in range(N)],
    )
    assert guess.roles["group"] == ["tribe_name", "male", "lectage"]
    assert guess.roles["y_true"] == "hours"
    assert {"black", "hispan"} <= set(guess.left)
    assert guess.numbers == []


def test_arms_of_an_experiment_are_not_groups_of_people():
    guess = drafted(arm=["control", "letter", "call"] * 20, town=["a", "b"] * 30, voted=[0, 1] * 30)
    assert guess.roles["group"] == ["town"]
    assert "arms of an experiment" in guess.left["arm"]


def test_the_last_column_with_few_values_is_the_outcome_unless_it_is_a_size():
    people = {"sex": ["F", "M"] * 30, "flag": [0, 1, 1] * 20}
    assert drafted(**people, num=[0, 1, 2] * 20).roles["y_true"] == "num"
    assert drafted(**people, hhsize=[1, 2, 3] * 20).roles["y_true"] == "flag"


def test_names_of_people_are_neither_groups_nor_clusters():
    guess = drafted(
        firstname=[f"n{k % 30}" for k in range(N)], sex=["F", "M"] * 30, call=[0, 1, 1] * 20
    )
    assert guess.left["firstname"] == "a name: it identifies people"
    assert "cluster" not in guess.roles


def test_a_plan_says_what_to_do_about_a_decision_of_several_values():
    columns = profile({"race": ["a", "b"] * 9, "decision": ["yes", "no", "later"] * 6})
    text = draft_text(draft(columns), path="t.csv")
    assert text.count("a decision of several values") == 1
    assert "There is no model output" not in text
    assert '# metric = "selection_rate"' in text
    with pytest.raises(InvalidParameterError, match="take the first sign of the lines"):
        parse_plan(text)


def test_remarks_are_those_of_the_plan():
    columns = profile({"sex": ["F", "M"] * 9, "income": range(18)})
    assert remarks(draft(columns))[0].startswith("There is no model output here")
    assert remarks(draft(profile({"sex": ["F"] * 9, "hired": [0, 1, 1] * 3}))) == [
        'No column looks like a group. Name one under [data], such as group = ["sex"].'
    ]
    assert remarks(draft(profile({"sex": ["F", "M"] * 9, "hired": [0, 1, 1] * 6}))) == []


def test_many_columns_of_numbers_are_folded():
    wide = {f"f{k}": [k + 0.5, k + 1.5, k] * 6 for k in range(300)}
    text = draft_text(
        draft(profile({"sex": ["F", "M"] * 9, "hired": [0, 1] * 9, **wide})), path="t"
    )
    assert "#   f19: " in text
    assert "#   f20: " not in text
    assert "#   and 280 more of numbers, f20 to f299\n" in text


def test_lists_and_structures_are_left_out(tmp_path):
    rows = pa.table({
        "sex": ["F", "M"] * 9, "hired": [0, 1] * 9, "tags": [["a"], []] * 9, "nothing": [None] * 18,
        "home": [{"city": "x"}, None] * 9,
        "key": pa.array([[("a", 1)]] * 18, pa.map_(pa.string(), pa.int8())),
    })  # fmt: skip
    pq.write_table(rows, tmp_path / "t.parquet")
    for data in (rows, str(tmp_path / "t.parquet")):
        guess = draft(profile(data))
        assert guess.roles == {"y_pred": "hired", "group": ["sex"], "favourable": 1}
        lists = [name for name, why in guess.left.items() if why.startswith("lists or")]
        assert lists == ["tags", "home", "key"]
        assert guess.left["nothing"] == "empty"


@pytest.mark.parametrize(("name", "good"), [("blocked", 0), ("Promotion", 1), ("is_banned", 0)])
def test_further_words_of_decisions(name, good):
    guess = draft(profile({"sex": ["F", "M"] * 9, name: [0, 1, 1] * 6, "fraud": [0, 0, 1] * 6}))
    assert (guess.roles["y_pred"], guess.roles["favourable"]) == (name, good)
    assert guess.roles["y_true"] == "fraud"


def test_salaries_are_outcomes():
    guess = draft(
        profile(
            {
                "sex": ["F", "M"] * 9,
                "base_salary": [k * 999.5 for k in range(18)],
                "tenure": [*range(17), 3],
            }
        )
    )
    assert guess.roles["y_true"] == "base_salary"


LABELS = {"sex": ["F", "M"] * 4, "decision": ["approved", "denied", "denied", "approved"] * 2}


@pytest.mark.parametrize(
    ("label", "favourable"),
    [("1", "approved"), ("0", "denied"), ("approved", "approved"), ("denied", "denied")],
)
def test_a_good_decision_that_is_given_is_written_as_its_label(label, favourable):
    columns = profile(LABELS)
    drafted = draft(columns)
    give_favourable(drafted, columns, label)
    assert drafted.roles["favourable"] == favourable
    assert drafted.reasons["favourable"] == "given with --favourable"


def test_numbers_stay_numbers_in_a_good_decision_that_is_given():
    columns = profile(LABELS | {"decision": [0, 1, 1, 0] * 2})
    drafted = draft(columns)
    give_favourable(drafted, columns, "0")
    assert drafted.roles["favourable"] == 0


@pytest.mark.parametrize(("word", "favourable"), [("yes", 1), ("NO", 0), ("true", 1), ("0", 0)])
def test_the_words_of_a_file_name_the_good_one_of_two_truth_values(tmp_path, word, favourable):
    (tmp_path / "t.csv").write_text("sex,approved\n" + "F,yes\nM,no\n" * 8, encoding="utf-8")
    columns = profile(str(tmp_path / "t.csv"))
    drafted = draft(columns)
    give_favourable(drafted, columns, word)
    assert drafted.roles["favourable"] == favourable


def test_a_good_decision_that_no_row_has_is_refused():
    columns = profile(LABELS)
    with pytest.raises(InvalidParameterError, match="Did you mean 'approved'"):
        give_favourable(draft(columns), columns, "aproved")


def test_a_name_that_engines_keep_is_given_no_role():
    drafted = draft(profile({"*": ["F", "M"] * 4, "approved": [0, 1, 1, 0] * 2}))
    assert "group" not in drafted.roles
    assert drafted.left["*"].startswith("a name that engines keep")


ROWS = range(N)
UNSEEN = {
    "a German lender": (
        {
            "Antragsnummer": [10_000 + k for k in ROWS],
            "Geschlecht": ["männlich", "weiblich"] * 30,
            "Alter": [18 + k % 50 for k in ROWS],
            "Staatsangehörigkeit": ["deutsch", "EU", "andere"] * 20,
            "Bewilligt": ["ja", "nein", "ja"] * 20,
        },
        {
            "y_pred": "Bewilligt",
            "group": ["Geschlecht", "Alter", "Staatsangehörigkeit"],
            "bins": {"Alter": [25, 45]},
            "positive": "ja",
            "favourable": "ja",
        },
    ),
    "a French court": (
        {
            "identifiant": list(ROWS),
            "sexe": ["F", "H"] * 30,
            "nationalité": ["FR", "UE", "hors UE"] * 20,
            "score_récidive": [k % 10 for k in ROWS],
            "récidive": ["oui", "non", "non"] * 20,
            "détention": [0, 1] * 30,
        },
        {
            "y_pred": "détention",
            "y_score": "score_récidive",
            "y_true": "récidive",
            "group": ["sexe", "nationalité"],
            "positive": "oui",
            "favourable": 0,
        },
    ),
    "an employer with several scores": (
        {
            "CandidateUUID": [f"{k:08x}" for k in ROWS],
            "Gender Identity": ["Woman", "Man", "Non-binary"] * 20,
            "Over 40": ["Y", "N"] * 30,
            "cv_score": [k / 100 for k in ROWS],
            "final score": [k / 90 for k in ROWS],
            "Advanced?": ["y", "n", "n"] * 20,
        },
        {
            "y_pred": "Advanced?",
            "y_score": "final score",
            "group": ["Gender Identity", "Over 40"],
            "positive": "y",
            "favourable": "y",
        },
    ),
    "a hospital with Booleans": (
        {
            "mrn": [5000 + k for k in ROWS],
            "is_female": [True, False] * 30,
            "is_black": [False, False, True] * 20,
            "sepsis_prob": [k / 61 for k in ROWS],
            "alerted": [False, True, True] * 20,
            "sepsis_confirmed": [False, True] * 30,
        },
        {
            "y_pred": "alerted",
            "y_score": "sepsis_prob",
            "y_true": "sepsis_confirmed",
            "group": ["is_black", "is_female"],
        },
    ),
    "an experiment with predicted effects": (
        {
            "user_id": list(ROWS),
            "country": ["US", "DE", "FR"] * 20,
            "got_coupon": [True, False] * 30,
            "pred_uplift": [k / 61 for k in ROWS],
            "orders": [k % 25 for k in ROWS],
        },
        {
            "effect_pred": "pred_uplift",
            "treatment": "got_coupon",
            "group": ["country"],
            "y_true": "orders",
        },
    ),
    "many groups under one name": (
        {
            "Country of origin group": [f"c{k % 30}" for k in ROWS],
            "branch": ["north", "south"] * 30,
            "declined": [0, 1, 1] * 20,
        },
        {"y_pred": "declined", "group": ["Country of origin group"], "favourable": 0},
    ),
    "letters of a paper": (
        {
            "Unnamed: 0": list(ROWS),
            "yhat": [0, 1] * 30,
            "yprob": [k / 61 for k in ROWS],
            "y": [0, 1, 1] * 20,
            "A": [0, 1, 2] * 20,
            "split": ["train", "test"] * 30,
        },
        {"y_pred": "yhat", "y_score": "yprob", "y_true": "y", "group": ["A"]},
    ),
    "home mortgages": (
        {
            "derived_race": ["White", "Black", "Asian"] * 20,
            "derived_sex": ["Male", "Female"] * 30,
            "action_taken": [1, 3, 1] * 20,
            "county_code": [6000 + k % 25 for k in ROWS],
            "denial_reason_1": [10, 1, 3] * 20,
        },
        {"y_pred": "action_taken", "group": ["derived_race", "derived_sex"], "positive": 3},
    ),
    "a loan status beside an employment": (
        {
            "Gender": ["Male", "Female"] * 30,
            "Self_Employed": ["No", "Yes", "No"] * 20,
            "ApplicantIncome": [k * 10 % 50 for k in ROWS],
            "Loan_Status": ["Y", "N", "Y"] * 20,
        },
        {"y_pred": "Loan_Status", "group": ["Gender"], "positive": "Y"},
    ),
    "staff": (
        {
            "State": ["MA", "CT"] * 30,
            "RaceDesc": ["White", "Black", "Asian"] * 20,
            "Termd": [0, 1, 1] * 20,
            "months_as_customer": [k % 30 for k in ROWS],
        },
        {"y_true": "Termd", "group": ["RaceDesc"]},
    ),
    "a score of two values": (
        {"score": [0, 1] * 30, "label_value": [0, 1, 1] * 20, "race": ["a", "b"] * 30},
        {"y_pred": "score", "y_true": "label_value", "group": ["race"]},
    ),
    "a measure beside its prediction": (
        {
            "gender": ["F", "M"] * 30,
            "risk_score": [k / 61 for k in ROWS],
            "conditions": [k % 25 for k in ROWS],
            "conditions_hat": [k / 3 for k in ROWS],
        },
        {"y_score": "risk_score", "y_true": "conditions", "group": ["gender"]},
    ),
    "standardised ages, and weights of bodies": (
        {
            "sex": ["F", "M"] * 30,
            "age": [k / 61 - 0.5 for k in ROWS],
            "height": [150 + k for k in ROWS],
            "weight": [50.5 + k for k in ROWS],
            "p(stroke)": [k / 61 for k in ROWS],
            "died": [0, 1, 1] * 20,
        },
        {"y_score": "p(stroke)", "y_true": "died", "group": ["sex"], "favourable": 0},
    ),
    "an applicant tracking system": (
        {
            "Pronouns": ["she/her", "he/him"] * 30,
            "Accepted offer": ["Y", "N", None] * 20,
            "Moved to interview (Y/N)": ["Y", "N", "N"] * 20,
            "tenant_ref": [k // 2 for k in ROWS],
        },
        {
            "cluster": "tenant_ref",
            "y_pred": "Moved to interview (Y/N)",
            "group": ["Pronouns"],
            "positive": "Y",
            "favourable": "Y",
        },
    ),
    "people on a ship, in classes": (
        {
            "class": ["1st", "2nd", "crew"] * 20,
            "sex": ["F", "M"] * 30,
            "survived": [0, 1, 1] * 20,
        },
        {"y_true": "survived", "group": ["sex"], "favourable": 1},
    ),
    "people released from prison": (
        {
            "week": list(ROWS),
            "arrest": [0, 1, 1] * 20,
            "race": [0, 1] * 30,
            "paro": [1, 0, 0] * 20,
        },
        {"y_true": "arrest", "group": ["race"], "favourable": 0},
    ),
    "a clinic with weights that were lost": (
        {
            "sex": [1, 2] * 30,
            "Rx": [0, 1] * 30,
            "wt.loss": [k - 20.5 for k in ROWS],
            "status": [0, 1, 1] * 20,
            "log_count": [k / 7 for k in ROWS],
        },
        {"treatment": "Rx", "y_true": "status", "group": ["sex"]},
    ),
    "earnings by year, beside places and degrees": (
        {
            "black": [0, 1] * 30,
            "re74": [100.5 * k for k in ROWS],
            "re78": [99.5 * k for k in ROWS],
            "nodegree": [0, 1, 1] * 20,
            "urban": [1, 0, 0] * 20,
            "south": [0, 1, 1] * 20,
        },
        {"group": ["black"], "y_true": "re78"},
    ),
    "pupils with a free lunch": (
        {
            "tmathssk": [400 + k % 50 for k in ROWS],
            "treadssk": [410 + k % 50 for k in ROWS],
            "freelunk": ["no", "yes"] * 30,
            "race": ["white", "black", "other"] * 20,
            "class_size": [k % 25 for k in ROWS],
        },
        {"group": ["race", "freelunk"], "y_true": "tmathssk"},
    ),
    "legislators who answer letters": (
        {
            "leg_black": [0, 1] * 30,
            "treat_out": [0, 1, 1] * 20,
            "responded": [1, 0, 0] * 20,
            "south": [0, 1, 1] * 20,
        },
        {"treatment": "treat_out", "y_true": "responded", "group": ["leg_black"]},
    ),
    "words that only look like others": (
        {
            "applicantRace": ["a", "b"] * 30,
            "amount_paid": [k % 25 for k in ROWS],
            "treatment_group": [0, 1] * 30,
            "alternative": ["x", "y", "z"] * 20,
            "response": [0, 1, 1] * 20,
        },
        {"treatment": "treatment_group", "y_true": "response", "group": ["applicantRace"]},
    ),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_a_table_that_nobody_has_seen_gets_its_roles(name):
    columns, roles = UNSEEN[name]
    assert drafted(**columns).roles == roles


@pytest.mark.parametrize(
    ("name", "labels", "favourable"),
    [
        ("result", ["Not approved", "approved"], "approved"),
        ("result", ["no offer", "offer"], "offer"),
        ("result", ["successful", "Unsuccessful"], "successful"),
        ("result", ["Charged Off", "Fully Paid"], "Fully Paid"),
        ("ineligible", [0, 1], 0),
        ("disapproved", [0, 1], 0),
        ("no_default", [0, 1], 1),
        ("unpaid", [0, 1], 0),
        ("never_arrested", [0, 1], 1),
        ("discharged", [0, 1], None),
        ("approved_flag", [0, 1], 1),
        ("repaid_flag", [0, 1], 1),
        ("risk_flag", [0, 1], 0),
        ("is_flagged", [0, 1], 0),
        ("relapse_free", [0, 1], 1),
        ("deselected", [0, 1], 0),
        ("paid_late", [0, 1], 0),
        ("deadline_met", [0, 1], None),
        ("denied", ["no", "yes"], "no"),
        ("exam", ["Not passed", "Passed"], "Passed"),
        ("status", ["Not Placed", "Placed"], "Placed"),
        ("answer", ["declined", "denied"], None),
        ("scale", ["Risk of Recidivism", "Risk of Violence"], None),
    ],
)
def test_a_word_that_is_negated_is_read_the_other_way(name, labels, favourable):
    guess = drafted(sex=["F", "M"] * (N // 2), **{name: labels * (N // 2)})
    assert guess.roles.get("favourable") == favourable


@pytest.mark.parametrize(
    "columns",
    [
        {"F": ["F", "M"] * 30, "30": list(range(N)), "0": [0, 1] * 30},
        {"39": list(range(N)), "1.0": [0, 1] * 30, "1.0_1": [0, 1, 1] * 20},
    ],
)
def test_a_table_without_a_line_of_names_is_told_so(columns):
    guess = drafted(**columns)
    assert guess.warning.startswith("The names of the columns look like a row of data")
    assert "# The names of the columns look like a row" in draft_text(guess, path="x.csv")


def test_years_may_be_names_of_columns():
    columns = {"sex": ["F", "M"] * 30, "hired": [0, 1, 1] * 20, "2024": list(range(N))}
    assert drafted(**columns).warning == ""


def test_a_candidate_of_the_lending_template_uses_no_id_no_attribute_and_no_score():
    guess = drafted(
        applicant_id=list(ROWS),
        sex=["F", "M"] * 30,
        black=[0, 1, 1] * 20,
        credit_score=[k / 61 for k in ROWS],
        income=[100 + 7 * k % 50 for k in ROWS],
        approved=[0, 1] * 30,
        repaid=[1, 0, 0] * 20,
    )
    asked = template_checks("lending", guess)
    assert guess.roles["features"] == ["income"]
    assert 'question = "improvability"' in asked


@pytest.mark.parametrize("name", get_args(Template))
def test_a_template_says_when_its_legal_basis_was_checked(name):
    text = (files("equipoise.plans") / "templates" / f"{name}.toml").read_text(encoding="utf-8")
    assert re.search(r"^# Legal basis checked on \d{4}-\d\d-\d\d\.", text, re.MULTILINE)
    if name == "lending":
        told = " ".join(text.replace("\n#", " ").split())
        assert "(12 CFR 1002) was deleted with effect from 21 July 2026" in told
        assert "SB 24-205 was repealed by SB 26-189 with effect from 1 January 2027" in told


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("readmitted", ["NO", "<30", ">30"], "y_true"),
        ("action_taken", [1, 2, 3], "y_pred"),
        ("decision", ["approved", "denied", "withdrawn"], "y_pred"),
    ],
)
def test_of_several_values_a_person_says_which_one_counts(name, values, role):
    columns = {"sex": ["F", "M"] * 30, name: values * 20, "income": list(ROWS)}
    guess = drafted(**columns)
    assert set(guess.roles) == {"group"}
    assert f'write under [data] {role} = "{name}", and positive' in guess.left[name]
    text = draft_text(guess, path="x.csv")
    assert "Complete the roles above" in text
    metric = "selection_rate" if role == "y_pred" else "outcome_rate"
    assert f'metric = "{metric}"' in text


def test_a_score_beside_decisions_is_asked_about_though_there_is_no_outcome():
    guess = drafted(sex=["F", "M"] * 30, score=list(ROWS), hired=[0, 1, 1] * 20)
    metrics = [c.options["metric"] for c in parse_plan(draft_text(guess, path="x")).checks]
    assert metrics == ["selection_rate", "mean_score", "selection_rate", "selection_rate"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"hired": [0, 1]}, {"selected": "hired", "not_selected": "not hired"}),
        ({"Call": ["no", "yes"]}, {"selected": "called", "not_selected": "not called"}),
        (
            {"default.next.month": [0, 1]},
            {"outcome": "defaulted", "no_outcome": "did not default"},
        ),
        ({"accepted_offer": [0, 1]}, None),
        ({"decision": ["approved", "denied"]}, None),
        ({"no_default": [0, 1]}, None),
    ],
)
def test_words_of_sentences_are_read_from_names(columns, words):
    table = {name: values * 30 for name, values in columns.items()}
    text = draft_text(drafted(sex=["F", "F", "M"] * 20, **table), path="x.csv")
    assert tomllib.loads(text).get("words") == words
    assert ("# [words]" in text) == (words is None)


def test_words_follow_the_label_that_a_template_counts():
    guess = drafted(sex=["F", "F", "M"] * 20, denied=[0, 1] * 30)
    asked = template_checks("four-fifths", guess)
    assert guess.roles["positive"] == 0
    words = tomllib.loads(draft_text(guess, path="x.csv", checks=asked))["words"]
    assert words == {"selected": "not denied", "not_selected": "denied"}


def test_the_rule_for_hiring_tools_takes_a_score_for_want_of_decisions():
    people = {"sex": ["F", "F", "M"] * 20, "race": ["a", "b"] * 30, "stage": ["x", "y", "z"] * 20}
    columns = profile(people | {"tool_score": [k / 61 for k in ROWS]})
    guess = draft(columns)
    with pytest.raises(InvalidParameterError, match="Pass `--favourable LABEL`"):
        template_checks("nyc-ll144", guess)
    give_favourable(guess, columns, "1")
    text = draft_text(guess, path="x.csv", checks=template_checks("nyc-ll144", guess))
    (check,) = parse_plan(text).checks
    assert (check.question, check.options["metric"]) == ("impact_ratios", "scoring_rate")
    with pytest.raises(InvalidParameterError, match="needs `y_pred`, and no column looks like it"):
        template_checks("four-fifths", guess)
    give_favourable(guess, columns, "0")
    with pytest.raises(InvalidParameterError, match="counts high scores, and a high `tool_score`"):
        template_checks("nyc-ll144", guess)


def test_a_score_does_not_follow_the_label_that_a_template_counts():
    guess = drafted(sex=["F", "F", "M"] * 20, denied=[0, 1] * 30, risk_score=[k / 61 for k in ROWS])
    assert guess.roles["y_score"] == "risk_score"
    template_checks("four-fifths", guess)
    assert guess.roles["positive"] == 0
    assert "y_score" not in guess.roles
    assert "another one: use a column with the opposite" in guess.left["risk_score"]


def test_a_plan_says_that_people_may_have_several_rows():
    people = {"sex": ["F", "M"] * 30, "hired": [0, 1, 1] * 20}
    assert '# cluster = "person"' in draft_text(drafted(**people), path="x.csv")
    several = people | {"person": [k // 2 for k in ROWS]}
    assert '# cluster = "person"' not in draft_text(drafted(**several), path="x.csv")


def test_beside_a_score_numbers_are_not_the_outcome():
    rng = np.random.default_rng(5)
    n = 400
    plan = drafted(
        sex=rng.choice(["m", "f"], n),
        risk_score=rng.uniform(size=n),
        flag=rng.choice(["yes", "no"], n),
        income=rng.normal(size=n),
    )
    assert plan.roles["y_score"] == "risk_score"
    assert plan.roles["y_true"] == "flag"


RANDOM = np.random.default_rng(0)
MANY = 600
"""Rows enough for identifiers to repeat."""


def one_of(*values):
    return RANDOM.choice(values, MANY).tolist()


def between(low, high):
    return RANDOM.integers(low, high, MANY).tolist()


TYPICAL = {
    "home loans": (
        {
            "state_code": one_of("CA", "NY"),
            "derived_race": one_of("White", "Black or African American", "Asian"),
            "derived_sex": one_of("Male", "Female", "Joint"),
            "action_taken": one_of(1, 2, 3, 6),
            "loan_amount": between(50, 900),
            "applicant_age": one_of("<25", "25-34", "35-44"),
        },
        {"group": ["derived_race", "derived_sex", "applicant_age"], "y_pred": None, "y_true": None},
    ),
    "law school": (
        {
            "decile1b": between(1, 11),
            "lsat": between(20, 48),
            "male": one_of(0, 1),
            "racetxt": one_of("White", "Black", "Hisp"),
            "pass_bar": one_of(0, 1),
        },
        {"group": ["racetxt", "male"], "y_true": "pass_bar", "y_score": None, "favourable": 1},
    ),
    "bank marketing": (
        {
            "age": between(18, 90),
            "marital": one_of("married", "single", "divorced"),
            "default": one_of("no", "yes"),
            "balance": between(-500, 9000),
            "poutcome": one_of("failure", "success", "unknown"),
            "y": one_of("no", "yes"),
        },
        {"group": ["age", "marital"], "y_true": "y", "positive": "yes", "favourable": None},
    ),
    "loan status": (
        {
            "id": list(range(MANY)),
            "term": one_of("36 months", "60 months"),
            "grade": one_of("A", "B", "C"),
            "fico_range_low": between(660, 850),
            "loan_status": one_of("Fully Paid", "Charged Off"),
        },
        {"y_pred": None, "y_true": "loan_status", "favourable": "Fully Paid"},
    ),
    "traffic stops": (
        {
            "stop_id": list(range(7, MANY + 7)),
            "driver_gender": one_of("M", "F"),
            "driver_age": between(16, 80),
            "driver_race": one_of("White", "Black", "Hispanic"),
            "is_arrested": one_of(True, False),
        },
        {
            "group": ["driver_race", "driver_gender", "driver_age"],
            "y_true": "is_arrested",
            "favourable": 0,
            "cluster": None,
        },
    ),
    "readmission": (
        {
            "encounter_id": [7 * k for k in range(MANY)],
            "patient_nbr": between(1, 400),
            "race": one_of("Caucasian", "AfricanAmerican", "?"),
            "gender": one_of("Male", "Female"),
            "age": one_of("[0-10)", "[40-50)", "[60-70)"),
            "weight": one_of("?", "[75-100)"),
            "readmitted": one_of("NO", "<30", ">30"),
        },
        {"group": ["race", "gender", "age"], "cluster": "patient_nbr", "y_true": None},
    ),
    "students": (
        {
            "sex": one_of("F", "M"),
            "age": between(15, 23),
            "romantic": one_of("yes", "no"),
            "absences": between(0, 60),
            "G1": between(0, 21),
            "G2": between(0, 21),
            "G3": between(0, 21),
        },
        {"group": ["sex", "age"], "y_true": "G3"},
    ),
    "a census in codes": (
        {
            "sex": one_of(1, 2),
            "age": between(4, 16),
            "household_size": between(111, 126),
            "citizenship": one_of(1, 2, 3),
            "edu_level": between(0, 6),
            "occupation": one_of(0, 1),
        },
        {"group": ["sex", "age", "citizenship"], "y_true": "occupation"},
    ),
    "clinic": (
        {
            "Pregnancies": between(0, 17),
            "Glucose": between(0, 200),
            "Age": between(21, 81),
            "Outcome": one_of(0, 1),
        },
        {"group": ["Age"], "y_true": "Outcome"},
    ),
    "a census of incomes": (
        {
            "age": between(0, 90),
            "race": one_of("White", "Black"),
            "sex": one_of("Male", "Female"),
            "instance_weight": RANDOM.uniform(30, 9000, MANY).tolist(),
            "year": one_of(94, 95),
            "income_50k": one_of("- 50000.", "50000+."),
        },
        {"group": ["race", "sex", "age"], "weight": "instance_weight", "y_true": "income_50k"},
    ),
    "open university": (
        {
            "id_student": between(1, 400),
            "gender": one_of("M", "F"),
            "age_band": one_of("0-35", "35-55", "55<="),
            "disability": one_of("N", "Y"),
            "imd_band": one_of("0-10%", "10-20"),
            "final_result": one_of("Pass", "Fail", "Withdrawn"),
        },
        {"group": ["gender", "age_band", "disability"], "cluster": "id_student", "y_true": None},
    ),
    "who leaves": (
        {
            "Age": between(18, 60),
            "Attrition": one_of("Yes", "No"),
            "Gender": one_of("Male", "Female"),
            "OverTime": one_of("Yes", "No"),
            "YearsAtCompany": between(0, 40),
        },
        {"group": ["Gender", "Age"], "y_true": "Attrition", "positive": "Yes"},
    ),
    "admission": (
        {"sex": one_of("M", "F"), "gre": between(260, 341), "rank": between(1, 5),
         "admit": one_of(0, 1)},
        {"group": ["sex"], "y_pred": "admit", "y_score": None, "favourable": 1},
    ),
    "an experiment with letters": (
        {"user_id": between(1, 300), "gender": one_of("f", "m"), "variant": one_of("A", "B"),
         "clicked": one_of(0, 1)},
        {"group": ["gender"], "cluster": "user_id", "y_true": "clicked", "treatment": None},
    ),
    "comments": (
        {"id": list(range(MANY)), "black": RANDOM.uniform(size=MANY).tolist(),
         "toxicity": RANDOM.uniform(size=MANY).tolist(),
         "prediction": RANDOM.uniform(size=MANY).tolist()},
        {"y_score": "prediction", "y_true": None, "group": None},
    ),
    "columns without names": (
        {"V1": between(18, 90), "V2": one_of("Black", "White", "Other"), "V3": one_of("F", "M"),
         "V4": one_of("a", "b"), "V5": one_of(1, 2)},
        {"group": ["V2", "V3"], "y_true": "V5", "positive": 2},
    ),
    "a Dutch register": (
        {"geslacht": one_of("man", "vrouw"), "leeftijd": between(18, 80),
         "herkomst": one_of("NL", "anders"), "risicoscore": RANDOM.uniform(size=MANY).tolist(),
         "fraude": one_of("ja", "nee")},
        {"group": ["geslacht", "leeftijd", "herkomst"], "y_score": "risicoscore",
         "y_true": "fraude", "favourable": "nee"},
    ),
    "an Italian result": (
        {"sesso": one_of("M", "F"), "età": between(18, 80), "cittadinanza": one_of("IT", "UE"),
         "punteggio": between(0, 100), "esito": one_of("approvato", "rifiutato")},
        {"group": ["sesso", "età", "cittadinanza"], "y_pred": "esito", "y_score": "punteggio",
         "y_true": None, "favourable": "approvato"},
    ),
    "a Brazilian bank": (
        {"raça_cor": one_of("Branca", "Preta", "Parda"), "idade": between(18, 80),
         "inadimplente": one_of(0, 1)},
        {"group": ["raça_cor", "idade"], "y_true": "inadimplente", "favourable": 0},
    ),
    "a Spanish employer": (
        {"género": one_of("hombre", "mujer"), "etnia": one_of("a", "b", "c"),
         "discapacidad": one_of("sí", "no"), "resultado": one_of("contratado", "no contratado")},
        {"group": ["etnia", "género", "discapacidad"], "y_pred": "resultado",
         "favourable": "contratado"},
    ),
    "a health survey in codes": (
        {"SEQN": list(range(93703, 93703 + MANY)), "RIAGENDR": one_of(1, 2),
         "RIDAGEYR": between(0, 81), "RIDRETH1": between(1, 6),
         "WTMEC2YR": RANDOM.uniform(0, 4e5, MANY).tolist(), "DIQ010": one_of(1, 2)},
        {"group": ["RIDRETH1", "RIAGENDR", "RIDAGEYR"], "weight": "WTMEC2YR", "y_true": "DIQ010"},
    ),
    "a census with weights of replicates": (
        {"SERIALNO": [f"2018GQ{k % 300}" for k in range(MANY)], "SEX": one_of(1, 2),
         "PINCP": between(-5000, 90000), "PWGTP": between(1, 300), "PWGTP1": between(1, 300)},
        {"group": ["SEX"], "cluster": "SERIALNO", "weight": "PWGTP", "y_true": "PINCP"},
    ),
    "stops with feet and pounds": (
        {"SUSPECT_RACE": one_of("B", "W", "Q"), "SUSPECT_REPORTED_AGE": between(12, 80),
         "frisked": one_of("Y", "N"), "contrabn": one_of("Y", "N"), "ht_feet": between(4, 8),
         "weight": between(80, 300)},
        {"group": ["SUSPECT_RACE", "SUSPECT_REPORTED_AGE"], "weight": None, "y_pred": "frisked",
         "favourable": "N"},
    ),
    "what pupils are tested in": (
        {"gender": one_of("female", "male"), "lunch": one_of("standard", "free/reduced"),
         "test preparation course": one_of("none", "completed"), "math score": between(0, 101),
         "writing score": between(0, 101)},
        {"group": ["gender", "lunch"], "y_score": None, "y_true": "writing score"},
    ),
    "claims": (
        {"sex": one_of("male", "female"), "smoker": one_of("yes", "no"),
         "household_income": between(900, 9000), "charges": RANDOM.uniform(1, 9, MANY).tolist()},
        {"group": ["sex"], "y_true": "charges", "cluster": None},
    ),
    "days in hospital": (
        {"Sex": one_of("M", "F"), "clinical_index": between(0, 40),
         "ClaimsTruncated": one_of(0, 1), "DaysInHospital": between(0, 25)},
        {"group": ["Sex"], "y_true": "DaysInHospital", "cluster": None},
    ),
    "a log of predictions": (
        {"model_version": one_of("v1", "v2"), "gender": one_of("f", "m"),
         "predicted_label": one_of(0, 1), "actual_label": one_of(0, 1)},
        {"group": ["gender"], "y_pred": "predicted_label", "y_true": "actual_label"},
    ),
    "law school with a prediction": (
        {"male": one_of(0, 1), "Dropout": one_of("NO", "YES"), "pass_bar": one_of(0, 1),
         "dnn_bar_pass_prediction": RANDOM.uniform(size=MANY).tolist()},
        {"group": ["male"], "y_true": "pass_bar", "y_score": "dnn_bar_pass_prediction"},
    ),
    "released people": (
        {"Sex": one_of("Male", "Female"), "Return to Prison": one_of("Yes", "No"),
         "Target Population": one_of("Yes", "No")},
        {"group": ["Sex"], "y_true": "Return to Prison", "favourable": "No"},
    ),
    "sexes with a family status": (
        {"personal_status": one_of("male single", "female div/dep/mar", "male div/sep"),
         "class": one_of("good", "bad")},
        {"group": ["personal_status"], "y_true": "class", "favourable": "good"},
    ),
    "loans in many states": (
        {"sex": one_of("M", "F"),
         "loan_status": one_of("Fully Paid", "Charged Off", "Current", "Late (31-120 days)")},
        {"group": ["sex"], "y_true": None, "y_pred": None},
    ),
    "a trial with propensities": (
        {"sex": one_of("F", "M"), "arm": one_of(0, 1), "outcome": one_of(0, 1),
         "cate_hat": RANDOM.normal(size=MANY).tolist(),
         "propensity": RANDOM.uniform(0.4, 0.6, MANY).tolist()},
        {"group": ["sex"], "treatment": "arm", "propensity": "propensity",
         "effect_pred": "cate_hat", "y_true": "outcome"},
    ),
    "a campaign with arms in words": (
        {"gender": one_of("F", "M"), "treatment": one_of("treated", "control"),
         "purchase": one_of(0, 1), "uplift_score": RANDOM.normal(size=MANY).tolist()},
        {"group": ["gender"], "treatment": None, "y_true": "purchase",
         "effect_pred": "uplift_score"},
    ),
    "students by region and disability": (
        {"region": one_of("Wales", "Scotland"), "disability": one_of("N", "Y"),
         "passed": one_of(0, 1)},
        {"group": ["disability"], "y_true": "passed", "favourable": 1},
    ),
    "signs": (
        {"sex": one_of("a", "b"), "A16": one_of("+", "-")},
        {"group": ["sex"], "y_true": "A16", "positive": "+"},
    ),
    "a landlord": (
        {"Herkunft": one_of("deutsch", "andere"), "Zusage": one_of("ja", "nein")},
        {"group": ["Herkunft"], "y_pred": "Zusage", "favourable": "ja"},
    ),
    "two scales without an outcome": (
        {"sex": one_of("F", "M"), "DecileScore": between(1, 11),
         "DisplayText": one_of("Risk of Violence", "Risk of Recidivism")},
        {"group": ["sex"], "y_score": "DecileScore", "y_true": None},
    ),
    "ratings": (
        {"s": [1 + k % 700 for k in range(1500)], "age": [20 + k % 4 for k in range(1500)],
         "y": [1 + k % 5 for k in range(1500)]},
        {"cluster": "s", "y_true": "y", "group": ["age"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPICAL)
def test_tables_nobody_prepared_for_have_the_right_roles(name):
    columns, expected = TYPICAL[name]
    guess = drafted(**columns)
    assert {role: guess.roles.get(role) for role in expected} == expected
    assert "[[check]]" in draft_text(guess, path="x.csv")
