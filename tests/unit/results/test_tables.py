"""Tables in the terminal and in notebooks: order, units, names and headings."""

import html
import re

import pytest

import equipoise as eq
from equipoise._names import GroupName
from equipoise.report.html import html_report
from equipoise.results.estimand import Estimand
from equipoise.results.finding import Decision
from equipoise.results.tables import html_table, in_order
from support.specimens import check, dossier, finding, result


@pytest.fixture(scope="module")
def audit():
    counts = eq.datasets.load_compas_counts()
    roles = {"y_true": "two_year_recid", "y_pred": "high_risk", "count": "count"}
    return eq.Audit(counts, group=["race", "sex"], favourable=0, **roles)


def rows(text):
    """The lines of the table of a text, without its head."""
    lines = text[text.index("\ngroup ") + 1 :].split("\n\n")[0].splitlines()
    return lines[1:]


def test_differences_of_shares_are_told_in_points_beside_the_share(audit, monkeypatch):
    monkeypatch.setattr("equipoise.results.tables.text_width", lambda: 100)
    text = str(audit.disparity("fpr", reference={"sex": "Male"}, depth=1))
    head, line = re.search(r"(group .*)\n(race: African-American .*)", text).groups()
    assert head.split() == ["group", "share", "points", "95%", "interval", "p", "n", "decision"]
    # 805 of 1,795 and 993 of 3,066 who were not charged again were labelled high risk.
    assert line.split()[:4] == ["race:", "African-American", "44.8%", "+12.4"]


def test_a_mean_and_a_ratio_keep_their_own_unit(audit, monkeypatch):
    monkeypatch.setattr("equipoise.results.tables.text_width", lambda: 100)
    ratios = str(audit.disparity("fpr", reference={"sex": "Male"}, scale="ratio", depth=1))
    assert re.search(r"^group +estimate +95% interval", ratios, re.MULTILINE)
    assert re.search(r"race: African-American +1\.38 ", ratios)


def test_the_share_goes_first_where_there_is_no_room(audit):
    text = str(audit.disparity("fpr", reference={"sex": "Male"}))
    assert "share" not in text[text.index("\ngroup ") :]
    assert max(map(len, text.splitlines())) <= 80


def test_several_metrics_are_headings_and_several_scores_stand_below_their_group(audit):
    lines = rows(str(audit.disparity(["fpr", "fnr"], reference={"sex": "Male"}, depth=1)))
    assert [line for line in lines if not line.startswith(" ")] == [
        "false positive rate difference",
        "false negative rate difference",
    ]
    names = [Estimand(f"outcome at score {k}", "outcome") for k in (1, 2, 10)]
    lines = [finding("sex=F", 0.1, 0.0, 0.2, estimand=name) for name in names]
    text = rows(str(result(findings=lines)))
    assert text[0] == "sex=F"
    assert [line.split()[3] for line in text[1:]] == ["1", "2", "10"]


def test_what_was_detected_comes_first_and_bins_keep_their_order():
    ages = ("[18, 30)", "[30, 45)", "[45, 60)", "[60, 99]")
    found = (Decision.NOT_DETECTED, Decision.DETECTED, Decision.NOT_DETECTED, Decision.DETECTED)
    lines = [
        finding(f"age={age}", 0.1, 0.05, 0.2, decision=decision)
        for age, decision in zip(ages, found, strict=True)
    ]
    order = [line.split()[0] for line in rows(str(result(findings=lines)))]
    assert order == ["age=[30,", "age=[60,", "age=[18,", "age=[45,"]


def test_groups_whose_numbers_are_withheld_are_counted_in_one_line():
    tiny = [finding(f"race={k}", withheld=True, decision=Decision.NOT_DETECTED, n=0) for k in "abc"]
    shown = finding("race=d", 0.1, 0.0, 0.2)
    lines = rows(str(result(findings=[*tiny, shown])))
    assert len(lines) == 2
    assert re.match(r"3 groups .* withheld", lines[-1])


def test_a_name_is_broken_between_words_then_after_a_sign_never_inside_a_word():
    lines = [
        finding("marital_status=Married-civ-spouse & sex=Female", 0.123, -0.0123, 0.456, n=123456),
        finding("race=" + "x" * 40, 0.123, -0.0123, 0.456, n=123456),
    ]
    text = str(result(findings=lines))
    words = {"Married-civ-spouse", "sex=Female", "x" * 40}
    pieces = set(re.split(r"[\s=]+", text)) | set(text.split())
    assert words <= pieces
    assert max(map(len, text.splitlines())) <= 80


def test_the_notebook_table_has_a_caption_and_headings_of_rows_and_columns(audit):
    page = html_table(audit.disparity("fpr", reference={"sex": "Male"}, depth=1))
    assert "<caption" in page
    assert page.count("scope='col'") == 7
    assert page.count("scope='row'") == 8
    assert ">44.8%</td>" in page
    assert ">+12.4</td>" in page


def test_bins_and_numbers_stand_in_their_order_inside_their_column():
    # Races are ranked, not in the order of letters: they stay.
    labels = [("race", "b"), ("race", "a"), ("age", "25 to <45"), ("age", "<25"), ("age", ">=45")]
    labels += [("grade", "10"), ("grade", "9")]
    lines = [finding(GroupName([pair]), 0.1, 0.05, 0.2) for pair in labels]
    audit = result(findings=lines)
    names = [f"{column}={label}" for column, label in labels]
    order = [names[k] for k in (0, 1, 3, 2, 4, 6, 5)]
    assert [f.group for f in in_order(lines)] == order
    text = str(audit).replace(": ", "=")
    assert sorted(names, key=text.index) == order
    page = html_report(dossier(check("disparity", audit)))
    assert re.findall('data-group="([^"]*)"', page) == [html.escape(name) for name in order]


def test_groups_are_written_as_sentences_write_them():
    sex, race = GroupName([("sex", "F")]), GroupName([("race", "a"), ("sex", "F")])
    order = Estimand("outcome at score 1 less that of sex=F at score 2", "outcome")
    lines = [
        finding(race, 0.1, 0.05, 0.2, reference=sex),
        finding(race, 0.1, 0.05, 0.2, reference=sex, estimand=order),
    ]
    audit = result(findings=lines, null="no group differs from sex=F")
    for text in (str(audit), audit._repr_html_()):
        assert "sex=F" not in text
        assert "race: a, sex: F" in text
        assert "Null: no group differs from sex: F" in text
        assert "of sex: F at score 2" in text
    assert next(iter(audit.to_dict()["findings"][0].values())) == "race=a & sex=F"
