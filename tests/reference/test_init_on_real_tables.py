"""`init` gives every real table a plan with the right roles."""

import csv
import gzip

import pandas as pd
import pytest

from equipoise.data.profile import profile, read_layout
from equipoise.plans.answer import answer
from equipoise.plans.draft import draft
from equipoise.plans.draft_text import draft_text
from equipoise.plans.plan import parse_plan
from equipoise.plans.run import execute

ADULT = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
    "capital-gain,capital-loss,hours-per-week,native-country,income"
)
HEART = "age,sex,cp,trestbps,chol,fbs,restecg,thalach,exang,oldpeak,slope,ca,thal,num"
GERMAN = (
    "status,duration,history,purpose,amount,savings,employment_since,rate,personal_status_sex,"
    "debtors,residence,property,age,plans,housing,credits,job,liable,telephone,foreign_worker,class"
)
TABLES = {
    "UCI_Credit_Card.csv.gz": {
        "y_true": "default.payment.next.month",
        "group": ["SEX", "AGE", "MARRIAGE"],
        "favourable": 0,
    },
    "acs_employment_MA_analysis.parquet": {
        "y_pred": "prediction",
        "y_score": "predicted_probability",
        "y_true": None,
        "group": ["RAC1P", "SEX", "AGEP"],
    },
    "acs_employment_MA_reference.parquet": {
        "y_pred": "prediction",
        "y_score": "predicted_probability",
        "y_true": "employed",
        "group": ["RAC1P", "SEX", "AGEP"],
        "favourable": 1,
    },
    "acs_employment_MA_analysis_target.parquet": {"y_true": "employed", "group": None},
    "acs_income_2018_us_test20pct.parquet": {
        "y_true": "PINCP",
        "group": ["RAC1P", "SEX", "AGEP"],
        "y_pred": None,
    },
    "acs_income_2018_us_validation20pct.parquet": {"y_true": "PINCP", "cluster": None},
    "acs_income_2018_us_test20pct_lightgbm57_decisions.parquet": {
        "y_pred": "predictions",
        "group": None,
    },
    "bruhn2016_financial_education.csv.gz": {
        "treatment": "treatment",
        "cluster": "school",
        "y_true": "outcome.test.score",
        "group": ["is.female"],
        "missing": "drop",
    },
    "compas-scores-two-years.csv": {
        "y_true": "two_year_recid",
        "y_score": "decile_score",
        "group": ["race", "sex", "age_cat"],
        "favourable": 0,
    },
    "compas-scores-two-years-violent.csv.gz": {
        "y_true": "two_year_recid",
        "group": ["race", "sex", "age_cat"],
        "favourable": 0,
    },
    "hillstrom.csv.gz": {
        "y_true": "conversion",
        "group": ["history_segment", "zip_code", "channel"],
        "y_score": None,
    },
    "insteval_ratings.csv.gz": {"y_true": "y", "group": ["studage"], "cluster": "s"},
    "nlswork_panel.csv.gz": {
        "y_true": "union",
        "cluster": "idcode",
        "group": ["race", "age", "nev_mar"],
    },
    "nsw_mixtape.csv.gz": {
        "treatment": "treat",
        "y_true": "re78",
        "group": ["black", "hisp", "age"],
    },
    "obermeyer_complete_cases_test.csv.gz": {
        "y_score": "risk_score_t",
        "y_pred": "program_enrolled_t",
        "group": ["race_white", "dem_female"],
        "weight": None,
    },
    "obermeyer_complete_cases_train.csv.gz": {
        "y_score": "risk_score_t",
        "group": ["race_white", "dem_female"],
    },
    "obermeyer_holdout_predictions.csv.gz": {
        "y_score": "risk_score_t",
        "y_pred": "program_enrolled_t",
        "y_true": "gagne_sum_t",
        "group": ["dem_race_black"],
        "favourable": 1,
    },
    "resume_bertrand_mullainathan.csv": {
        "y_pred": "call",
        "group": ["race", "sex"],
        "favourable": 1,
        "cluster": None,
    },
    "social_insure_cai2015.csv.gz": {
        "treatment": "intensive",
        "y_true": "takeup_survey",
        "cluster": "address",
        "group": ["male", "age"],
        "y_score": None,
    },
    "social_pressure_voting_ggl2008.csv.gz": {"y_true": "primary2006", "group": ["sex"]},
    "star_project.csv.gz": {"y_true": "readk", "group": ["ethnicity", "gender", "lunchk"]},
    "adult.data": {
        "y_true": "income",
        "positive": ">50K",
        "weight": "fnlwgt",
        "group": ["race", "sex", "age"],
    },
    "processed.cleveland.data": {"y_true": "num", "group": ["sex", "age"]},
    "german.data": {
        "y_true": "class",
        "positive": 2,
        "group": ["personal_status_sex", "age", "foreign_worker"],
    },
}
WITHOUT_NAMES = {
    "adult.data": {
        "y_true": "column_15",
        "positive": ">50K",
        "group": ["column_9", "column_10"],
        "favourable": None,
    },
    "adult.test": {
        "y_true": "column_15",
        "positive": ">50K.",
        "group": ["column_9", "column_10"],
    },
    "communities.data": {"y_true": "column_128", "group": None},
    "german.data": {"y_true": "column_21", "group": None},
    "processed.cleveland.data": {"y_true": "column_14", "group": None},
}
"""Files as they are: the first line is a row."""
ROWS = {"adult.data": 32_561, "adult.test": 16_281, "communities.data": 1_994}
ROWS |= {"german.data": 1_000, "processed.cleveland.data": 303}
HEADERS = {"adult.data": ADULT, "processed.cleveland.data": HEART, "german.data": GERMAN}


@pytest.fixture
def table(data_file, tmp_path):
    """Return the path of a table; one without a header gets the header of its description."""

    def path(name):
        file = data_file(name)
        if name not in HEADERS:
            return file
        blank = " " if name == "german.data" else ","
        with file.open(encoding="utf-8") as stream:
            lines = list(csv.reader(stream, delimiter=blank))
        rows = [[cell.strip() for cell in line] for line in lines if line]
        with gzip.open(tmp_path / "table.csv.gz", "wt", encoding="utf-8") as stream:
            csv.writer(stream).writerows([HEADERS[name].split(","), *rows])
        return tmp_path / "table.csv.gz"

    return path


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_table_has_a_plan_with_the_right_roles(name, table):
    path = str(table(name))
    drafted = draft(profile(path))
    expected = TABLES[name]
    assert {role: drafted.roles.get(role) for role in expected} == expected
    text = draft_text(drafted, path=path)
    if "group" not in drafted.roles:
        assert "Complete the roles above" in text
        return
    plan = parse_plan(text)
    dossier = execute(plan)
    assert [check.id for check in dossier.checks] == [check.id for check in plan.checks]
    assert not dossier.failed
    assert 2 <= len(answer(dossier)) <= 6


@pytest.mark.parametrize("name", sorted(WITHOUT_NAMES))
def test_a_table_without_names_loses_no_row_and_says_what_to_write(name, data_file):
    path = str(data_file(name))
    columns = profile(path)
    drafted = draft(columns, read_layout(path))
    expected = WITHOUT_NAMES[name]
    assert {role: drafted.roles.get(role) for role in expected} == expected
    assert columns[0].n == ROWS[name]
    text = draft_text(drafted, path=path)
    assert "The first line is a row of data" in " ".join(text.split("\n# "))
    if "group" not in drafted.roles:
        assert "Complete the roles above" in text
        return
    dossier = execute(parse_plan(text))
    assert not dossier.failed
    assert dossier.data["rows"] == ROWS[name]


@pytest.mark.parametrize(("name", "good", "bad"), [("Risk", "good", "bad"), ("credit_risk", 1, 2)])
def test_german_credit_is_read_under_the_other_names_of_its_outcome(name, good, bad, table):
    frame = pd.read_csv(table("german.data"))
    frame[name] = frame.pop("class").map({1: good, 2: bad})
    roles = draft(profile(frame)).roles
    assert roles["y_true"] == name
    assert roles.get("favourable") == (good if name == "Risk" else None)
