"""`init` guesses roles, says why, and writes a plan that can be read."""

import pytest

from equipoise.data.profile import profile
from equipoise.exceptions import DataError
from equipoise.plans.draft import draft, draft_text
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


def test_the_questions_are_those_that_the_roles_allow():
    table = {"race": ["a", "b"] * 30, "sex": ["F", "F", "M"] * 20, "risk": list(range(60))}
    scored = parse_plan(draft_text(draft(profile(table | {"died": [0, 1, 1] * 20})), path="x.csv"))
    assert [check.id for check in scored.checks] == ["disparity-mean_score", "predictive_parity"]
    assert scored.checks[1].group == ("race",)
    decided = parse_plan(draft_text(draft(profile(table | {"hired": [0, 1, 1] * 20})), path="x"))
    assert [check.question for check in decided.checks] == ["disparity", "certify"]


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


def test_without_a_group_there_is_no_plan():
    with pytest.raises(DataError, match="No column looks like a group"):
        drafted(x=[0.1 * k for k in range(40)], approved=[0, 1] * 20)


def test_without_anything_to_compare_there_is_no_plan():
    with pytest.raises(DataError, match="No column looks like an outcome"):
        drafted(sex=["F", "M"] * 20, note=[f"note {k % 35}" for k in range(40)])


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
    assert guess.left["language"] == "could be a group too"
    assert guess.left["town"] == "40 values"
    assert guess.numbers == ["income"]
    assert "#   income: 60 values from 0 to 88.5" in draft_text(guess, path="x.csv")


def test_numbers_stand_in_for_a_score_when_nothing_else_does():
    guess = drafted(sex=["F", "M"] * 30, wage=[1.5 * k for k in range(N)])
    assert guess.roles["y_score"] == "wage"
    assert 'metric = "mean_score"' in draft_text(guess, path="x.csv")


def test_clusters_make_the_parity_question_say_its_unit():
    guess = drafted(
        user=[k // 2 for k in range(N)],
        sex=["F", "M"] * 30,
        score=[0.01 * k for k in range(N)],
        outcome=[0, 1, 1] * 20,
    )
    assert 'unit = "cluster"' in draft_text(guess, path="x.csv")
