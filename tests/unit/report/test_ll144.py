"""The worked example of 6 RCNY 5-301, to the digit; Hispanic 395/172 as in its intersections."""

import pytest

import equipoise as eq
from equipoise.exceptions import InvalidParameterError
from equipoise.report.ll144 import bias_audit_tables
from equipoise.results.wording import headline

RACES = (
    "Hispanic or Latino",
    "White",
    "Black or African American",
    "Native Hawaiian or Pacific Islander",
    "Asian",
    "Native American or Alaska Native",
    "Two or More Races",
)
MALE = ((205, 90), (412, 215), (226, 95), (87, 37), (321, 167), (24, 11), (115, 52))
FEMALE = ((190, 82), (385, 197), (164, 75), (32, 15), (295, 135), (17, 7), (98, 44))


@pytest.fixture(scope="module")
def result():
    rows = {"sex": [], "race": [], "selected": [], "n": []}
    for sex, counts in (("Male", MALE), ("Female", FEMALE)):
        for race, (n, selected) in zip(RACES, counts, strict=True):
            for label, count in ((1, selected), (0, n - selected)):
                for name, value in zip(rows, (sex, race, label, count), strict=True):
                    rows[name].append(value)
    rows["sex"].append("Unknown")
    rows["race"].append("White")
    rows["selected"].append(1)
    rows["n"].append(250)
    audit = eq.Audit(rows, group=["sex", "race"], y_pred="selected", count="n")
    return audit.impact_ratios(min_share=0.0, unknown="Unknown", companions=False)


def test_sexes_and_races_are_the_rules_to_the_digit(result):
    sex, race, _ = bias_audit_tables(result, sex="sex", race="race").tables
    assert sex.heading == "Sex Categories"
    assert [row[:5] for row in sex.rows] == [
        ("Male", "1390", "667", "48.0%", "1.00"),
        ("Female", "1181", "555", "47.0%", "0.98"),
    ]
    assert [row[:5] for row in race.rows[1:]] == [
        ("White", "797", "412", "51.7%", "1.00"),
        ("Black or African American", "390", "170", "43.6%", "0.84"),
        ("Native Hawaiian or Pacific Islander", "119", "52", "43.7%", "0.85"),
        ("Asian", "616", "302", "49.0%", "0.95"),
        ("Native American or Alaska Native", "41", "18", "43.9%", "0.85"),
        ("Two or More Races", "213", "96", "45.1%", "0.87"),
    ]


def test_intersections_are_the_rules_to_the_digit(result):
    both = bias_audit_tables(result, sex="sex", race="race").tables[2]
    rates = {(span, row[0]): row[3:5] for span, row in zip(both.spans, both.rows, strict=True)}
    assert [span for span, _ in rates][:4] == [
        "Hispanic or Latino",
        "Hispanic or Latino",
        "Non-Hispanic or Latino, Male",
        "Non-Hispanic or Latino, Male",
    ]
    known = {
        "Male": "43.9% .841|52.2% 1.000|42.0% .806|42.5% .815|52.0% .997|45.8% .878|45.2% .866",
        "Female": "43.2% .827|51.2% .981|45.7% .876|46.9% .898|45.8% .877|41.2% .789|44.9% .860",
    }
    for sex, cells in known.items():
        for race, cell in zip(RACES, cells.split("|"), strict=True):
            rate, ratio = cell.split()
            hispanic = race == "Hispanic or Latino"
            place = (race, sex) if hispanic else (f"Non-Hispanic or Latino, {sex}", race)
            assert rates[place] == (rate, f"{float(ratio):.3f}")


def test_nothing_is_shown_of_some_of_its_ratios_below_nine_tenths(result):
    assert result.details["unknown"] == 250
    table = result.details["tables"][1]
    assert "race=Hispanic or Latino" in table["categories"]
    assert headline(result)


def test_text_csv_and_html_have_every_row(result):
    tables = bias_audit_tables(result, sex="sex", race="race")
    assert "Joint 95% interval" in tables.text()
    assert "assess 250 individuals" in tables.text()
    assert len(tables.csv().splitlines()) == 1 + 2 + 7 + 14
    page = tables.html()
    assert page.count("<tr>") == 3 + 23 + 3
    assert "Non-Hispanic or Latino, Female:" in tables.text()
    assert "<caption>Intersectional Categories</caption>" in page


def test_markup_in_a_label_is_escaped_and_small_categories_have_no_ratio():
    data = {"sex": ["<b>", "m"], "race": ["x", "x"], "y": [1, 0], "n": [1, 99]}
    result = eq.Audit(data, group=["sex", "race"], y_pred="y", count="n").impact_ratios()
    tables = bias_audit_tables(result, sex="sex", race="race")
    assert "<b>" not in tables.html()
    assert tables.tables[0].rows[0][4:] == ("-", "-", "not compared")
    assert tables.excluded


def test_the_rules_need_both_columns():
    result = eq.Audit({"g": list("ab") * 9, "y": [1, 0] * 9}, group="g", y_pred="y").impact_ratios()
    with pytest.raises(InvalidParameterError, match="by sex, by race/ethnicity and by both"):
        bias_audit_tables(result, sex="g", race="race")


def scored(people):
    """Scores of which as many of each category as said are above the median of all."""
    rows = {"sex": [], "race": [], "score": [], "n": []}
    for (sex, race), (n, above) in people.items():
        for score, count in ((1.0, above), (0.0, n - above)):
            for name, value in zip(rows, (sex, race, score, count), strict=True):
                rows[name].append(value)
    return eq.Audit(rows, group=["sex", "race"], y_score="score", count="n")


def test_the_scored_example_of_the_rules_to_the_digit():
    # The example as far as it was read: both sexes, and five of the seven races. Of 168 people
    # 84 are above the median; half of the other categories' 36 and some of the pairs are ours.
    pairs = {
        ("Male", "Hispanic or Latino"): (14, 9),
        ("Female", "Hispanic or Latino"): (14, 9),
        ("Male", "White"): (22, 9),
        ("Female", "White"): (18, 6),
        ("Male", "Black or African American"): (18, 9),
        ("Female", "Black or African American"): (14, 7),
        ("Male", "Native Hawaiian or Pacific Islander"): (4, 3),
        ("Female", "Native Hawaiian or Pacific Islander"): (4, 2),
        ("Male", "Asian"): (14, 6),
        ("Female", "Asian"): (10, 4),
        ("Male", "Two or More Races"): (20, 14),
        ("Female", "Two or More Races"): (16, 6),
    }
    result = scored(pairs).impact_ratios("scoring_rate", min_share=0.0, companions=False)
    tables = bias_audit_tables(result, sex="sex", race="race")
    assert tables.columns[:3] == ("# of Applicants", "Scoring Rate", "Impact Ratio")
    sex, race, _ = tables.tables
    assert [row[:4] for row in sex.rows] == [
        ("Male", "92", "54.3%", "1.00"),
        ("Female", "76", "44.7%", "0.82"),
    ]
    assert [row[:4] for row in race.rows[:5]] == [
        # The rule prints 64.2% for 18 of 28.
        ("Hispanic or Latino", "28", "64.3%", "1.00"),
        ("White", "40", "37.5%", "0.58"),
        ("Black or African American", "32", "50.0%", "0.78"),
        ("Native Hawaiian or Pacific Islander", "8", "62.5%", "0.97"),
        ("Asian", "24", "41.7%", "0.65"),
    ]
    assert {row[-1] for row in race.rows} == {"not shown lower than the highest"}
