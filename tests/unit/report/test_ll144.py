"""The worked examples of 6 RCNY 5-301, to the digit; Hispanic 395/172 as in its intersections."""

import csv
import io
import re

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


def test_races_with_the_number_of_the_table_itself_are_the_rules_to_the_digit():
    # 408 Hispanic people and 204 selected there, 395 and 172 in the intersections.
    pairs = zip(RACES, MALE, FEMALE, strict=True)
    counts = {race: (a + c, b + d) for race, (a, b), (c, d) in pairs}
    counts["Hispanic or Latino"] = (408, 204)
    data = {
        "race": [race for race in counts for _ in range(2)],
        "selected": [1, 0] * len(counts),
        "n": [k for n, selected in counts.values() for k in (selected, n - selected)],
    }
    audit = eq.Audit(data, group="race", y_pred="selected", count="n")
    (table,) = audit.impact_ratios(min_share=0.0, companions=False).details["tables"]
    ratios = dict(zip((label for (label,) in table["labels"]), table["estimate"], strict=True))
    known = ["0.97", "1.00", "0.84", "0.85", "0.95", "0.85", "0.87"]
    assert [f"{ratios[race]:.2f}" for race in RACES] == known


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


# 5-301(c): people with a score, and those above the median of all.
SCORED_MALE = ((16, 12), (20, 7), (20, 10), (4, 3), (12, 7), (8, 5), (12, 6))
SCORED_FEMALE = ((12, 6), (20, 8), (12, 6), (4, 2), (12, 3), (8, 5), (8, 4))
# Category, number, scoring rate and impact ratio as printed; 64.2% there is 18 of 28, 64.3%.
SCORED_TABLES = {
    "Sex Categories": """
        Male | 92 | 54.3% | 1.00
        Female | 76 | 44.7% | 0.82""",
    "Race/Ethnicity Categories": """
        Hispanic or Latino | 28 | 64.3% | 1.00
        White | 40 | 37.5% | 0.58
        Black or African American | 32 | 50.0% | 0.78
        Native Hawaiian or Pacific Islander | 8 | 62.5% | 0.97
        Asian | 24 | 41.7% | 0.65
        Native American or Alaska Native | 16 | 62.5% | 0.97
        Two or More Races | 20 | 50.0% | 0.78""",
    "Intersectional Categories": """
        Male | 16 | 75.0% | 1.00
        Female | 12 | 50.0% | 0.67
        White | 20 | 35.0% | 0.47
        Black or African American | 20 | 50.0% | 0.67
        Native Hawaiian or Pacific Islander | 4 | 75.0% | 1.00
        Asian | 12 | 58.3% | 0.78
        Native American or Alaska Native | 8 | 62.5% | 0.83
        Two or More Races | 12 | 50.0% | 0.67
        White | 20 | 40.0% | 0.53
        Black or African American | 12 | 50.0% | 0.67
        Native Hawaiian or Pacific Islander | 4 | 50.0% | 0.67
        Asian | 12 | 25.0% | 0.33
        Native American or Alaska Native | 8 | 62.5% | 0.83
        Two or More Races | 8 | 50.0% | 0.67""",
}
SPANS = [
    *["Hispanic or Latino"] * 2,
    *["Non-Hispanic or Latino, Male"] * 6,
    *["Non-Hispanic or Latino, Female"] * 6,
]


def printed(heading):
    """Rows of a table of the rules: category, number, rate, ratio."""
    return [
        tuple(cell.strip() for cell in line.split("|"))
        for line in SCORED_TABLES[heading].strip().splitlines()
    ]


def as_printed(heading, cells):
    """Category, number, rate and ratio with the two decimals that the rules print of scores."""
    name, number, rate, ratio = cells[:4]
    assert len(ratio.split(".")[1]) == (3 if heading.startswith("Inter") else 2)
    return name, number, rate, f"{float(ratio):.2f}"


@pytest.fixture(scope="module")
def scored():
    rows = {"sex": [], "race": [], "score": [], "n": []}
    for sex, people in (("Male", SCORED_MALE), ("Female", SCORED_FEMALE)):
        for race, (n, above) in zip(RACES, people, strict=True):
            for score, count in ((70.0, above), (30.0, n - above)):
                for name, value in zip(rows, (sex, race, score, count), strict=True):
                    rows[name].append(value)
    # People of unknown category are scored too and leave the median where it is.
    for score, count in ((70.0, 7), (50.0, 1), (30.0, 7)):
        for name, value in zip(rows, ("Unknown", "White", score, count), strict=True):
            rows[name].append(value)
    audit = eq.Audit(rows, group=["sex", "race"], y_score="score", count="n")
    return audit.impact_ratios("scoring_rate", unknown="Unknown", companions=False)


def test_the_scored_example_of_the_rules_to_the_digit(scored):
    tables = bias_audit_tables(scored, sex="sex", race="race")
    assert tables.columns[:3] == ("# of Applicants", "Scoring Rate", "Impact Ratio")
    assert [table.heading for table in tables.tables] == list(SCORED_TABLES)
    for table in tables.tables:
        found = [as_printed(table.heading, row) for row in table.rows]
        assert found == printed(table.heading)
        # Seven race ratios from .58 to 1.00, and nothing is shown.
        assert {row[-1] for row in table.rows} == {"not shown lower than the highest"}
    assert list(tables.tables[2].spans) == SPANS
    assert not tables.excluded
    assert "assess 15 individuals" in tables.note


def test_text_has_the_scored_example_whole(scored):
    lines = bias_audit_tables(scored, sex="sex", race="race").text().splitlines()
    found = {}
    for line in lines:
        cells = re.split(r"\s{2,}", line)
        if line in SCORED_TABLES:
            rows = found[line] = []
        elif len(cells) == 6 and cells[0]:
            rows.append(as_printed(list(found)[-1], cells))
    assert found == {name: printed(name) for name in SCORED_TABLES}
    spans = [line.removesuffix(":") for line in lines if line.endswith(":")]
    assert spans == [*dict.fromkeys(SPANS)]


def test_csv_has_the_scored_example_whole(scored):
    table = bias_audit_tables(scored, sex="sex", race="race").csv()
    rows = list(csv.DictReader(io.StringIO(table)))
    for heading in SCORED_TABLES:
        chosen = [row for row in rows if row["Table"] == heading]
        names = ("Category", "# of Applicants", "Scoring Rate", "Impact Ratio")
        found = [as_printed(heading, [row[name] for name in names]) for row in chosen]
        assert found == printed(heading)
    assert [row["Over it"] for row in rows[9:]] == SPANS


def test_a_name_in_the_csv_is_no_formula():
    names = ["=1+1", "+x", "-x", "@SUM(1)", "White"]
    rows = {"sex": ["Male", "Female"] * 50, "race": names * 20, "selected": [0, 1, 1, 0] * 25}
    audit = eq.Audit(rows, group=["sex", "race"], y_pred="selected")
    result = audit.impact_ratios(min_share=0.0, companions=False)
    table = bias_audit_tables(result, sex="sex", race="race").csv()
    found = {row["Category"] for row in csv.DictReader(io.StringIO(table))}
    assert found == {"'=1+1", "'+x", "'-x", "'@SUM(1)", "White", "Male", "Female"}


def test_html_has_the_scored_example_whole(scored):
    page = bias_audit_tables(scored, sex="sex", race="race").html()
    tables = re.findall(r"<caption>(.*?)</caption>.*?<tbody>(.*?)</tbody>", page)
    assert [heading for heading, _ in tables] == list(SCORED_TABLES)
    for heading, body in tables:
        rows = re.findall(r"<tr><th scope='row'>(.*?)</th>(.*?)</tr>", body)
        found = [
            as_printed(heading, [name, *re.findall(r"<td class='number'>(.*?)</td>", cells)])
            for name, cells in rows
        ]
        assert found == printed(heading)
    assert re.findall(r"<strong>(.*?)</strong>", page) == [*dict.fromkeys(SPANS)]


def test_counts_of_the_scored_example_show_nothing_either():
    rows = {"race": [], "above": [], "n": []}
    for race, man, woman in zip(RACES, SCORED_MALE, SCORED_FEMALE, strict=True):
        n, above = (first + second for first, second in zip(man, woman, strict=True))
        for label, count in ((1, above), (0, n - above)):
            for name, value in zip(rows, (race, label, count), strict=True):
                rows[name].append(value)
    result = eq.Audit(rows, group="race", y_pred="above", count="n").impact_ratios(rng=0)
    # Chi-square .33, Fisher .33 and permutation .30 of the same table.
    assert result.details["tables"][0]["permutation_p"] == pytest.approx(0.30, abs=0.02)
    assert headline(result).startswith("Among 7 categories no selection rate is shown to be lower")
