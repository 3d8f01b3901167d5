"""The page says what the results say, and text from the data does nothing in it."""

import re
from html.parser import HTMLParser

import pytest

from equipoise._names import GroupName
from equipoise.report.html import html_report
from equipoise.results.finding import Decision, Note
from equipoise.results.question import questions
from equipoise.results.wording import headline
from equipoise.results.words import Words
from support.specimens import check, dossier, finding, joint, result

ATTACK = "<img src=x onerror=\"document.title='attacked'\">"
STRANGE = (
    ATTACK,
    "</script><script>alert(1)</script>",
    "'\"&<>",
    "😀 שלום عربي",
    "$x_1$ \\frac{",
    "\x07bell",
    "x" * 500,
)


class Outline(HTMLParser):
    """Tags, identifiers and addresses of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.ids, self.links = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in {"href", "src", "xlink:href"}:
                self.links.append(value)


def strange_result():
    lines = [finding(f"g={name}", 0.1, 0.05, 0.15) for name in STRANGE]
    return result(findings=lines, joint=joint(), notes=(Note(code="note", message=ATTACK),))


@pytest.fixture(scope="module")
def page():
    disparity = result(
        findings=[
            finding("race=A", 0.118, 0.09, 0.145, decision=Decision.DETECTED),
            finding("race=B", -0.05, None, 0.02),
            finding("race=C"),
        ],
        joint=joint(),
    )
    certify = result(
        "certify",
        [finding("race=A", 0.0, -0.01, 0.01, decision=Decision.WITHIN_MARGIN)],
        details={"margin": 0.05},
    )
    return html_report(
        dossier(check("disparity", disparity, metric="fpr"), check("certify", certify))
    )


def test_every_check_shows_headline_figure_and_table(page):
    assert page.count('<table class="findings"') == 2
    assert page.count('class="figure wide"') == page.count('class="figure narrow"') == 2
    assert "0.118 higher, at least 0.09 (95% interval 0.09 to 0.145; 100 people)" in page
    assert "The only subgroup is shown to have a false positive rate within 0.05" in page


def test_sections_follow_the_questions_a_court_asks(page):
    headings = dict.fromkeys(question.section.heading for question in questions().values())
    places = [page.index(f"<dt>{heading}</dt>") for heading in headings]
    assert places == sorted(places)
    assert page.count("Not asked in this plan.") == len(headings) - 1


def test_the_page_needs_nothing_else(page):
    assert all(link.startswith("#") for link in Outline(page).links)
    assert "url(http" not in page
    assert "@import" not in page


def test_identifiers_are_unique_and_every_link_has_its_target(page):
    outline = Outline(page)
    assert len(outline.ids) == len(set(outline.ids))
    assert {link[1:] for link in outline.links} <= set(outline.ids)


def test_figures_have_a_title_and_a_description(page):
    for name in ("disparity", "certify", "disparity-narrow", "certify-narrow"):
        assert re.search(rf'aria-labelledby="fig-{name}-title fig-{name}-desc"', page)
        assert re.search(rf'<title id="fig-{name}-title">[^<]+</title>', page)
        assert re.search(rf'<desc id="fig-{name}-desc">[^<]+</desc>', page)


def test_hovering_a_point_gives_its_values(page):
    assert "<title>race=A: false positive rate difference 0.118 (95% interval" in page


def test_plan_versions_and_fingerprint_are_in_the_page(page):
    assert "path = &#34;compas.csv&#34;" in page
    assert "3.11.9" in page
    assert "ab" * 32 in page
    assert "audit.disparity(metric=&#39;fpr&#39;)" in page


def test_text_from_the_data_and_the_plan_is_inert():
    audit = strange_result()
    page = html_report(dossier(check("disparity", audit), title=ATTACK, plan=ATTACK))
    outline = Outline(page)
    assert "img" not in outline.tags
    assert outline.tags.count("script") == 1
    assert "&lt;img src=x" in page
    assert "x" * 500 in page


def test_the_policy_allows_the_pages_own_script_only(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert "default-src &#39;none&#39;" in policy or "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]


def test_the_conclusion_of_every_check_uses_the_words_of_the_library(page):
    text = re.sub(r"<[^>]+>", " ", page)
    assert not re.search(r"\b(passed|unbiased|certified)\b", text, re.IGNORECASE)


def test_a_plan_of_several_questions_states_their_joint_error():
    audit = result(findings=[finding("race=A", 0.1, 0.05, 0.15)])
    checks = [check("disparity", audit, name=f"c{k}") for k in range(3)]
    assert "add up to 15%" in html_report(dossier(*checks))
    shared = html_report(dossier(*checks, multiplicity="bonferroni"))
    assert "shares one level of 15%" in shared


def test_a_large_audit_draws_the_furthest_groups_and_lists_all():
    lines = [finding(f"g={k}", 0.001 * k, 0.0, 0.5) for k in range(100)]
    audit = result(findings=lines)
    page = html_report(dossier(check("disparity", audit)))
    assert "60 more groups: see the table" in page
    assert page.count("<tr data-decision=") == 100


def test_a_page_has_the_foremost_rows_of_a_huge_table_and_says_how_many_it_has_not(monkeypatch):
    monkeypatch.setattr("equipoise.report.html.MOST_ROWS", 20)
    lines = [finding(f"g={k}", 0.1, 0.0, 0.5, p_value=1.0 - k / 100) for k in range(35)]
    lines[0] = finding("g=0", 0.3, 0.2, 0.5, p_value=0.001, decision=Decision.DETECTED)
    page = html_report(dossier(check("disparity", result(findings=lines))))
    shown = re.findall(r'data-group="g=(\d+)"', page)
    assert shown == ["0", *map(str, range(16, 35))]
    assert "15 more of 35 findings: the results that --json writes have them." in page


def test_a_headline_in_the_page_is_the_headline_of_the_result():
    audit = result(findings=[finding("race=A", 0.1, 0.05, 0.15, decision=Decision.DETECTED)])
    assert headline(audit) in html_report(dossier(check("disparity", audit)))


def test_tables_beside_the_findings_keep_numbers_whole_on_screens():
    page = html_report(dossier(check("flag", result("flag", [finding("g=a", 0.1, 0.0, 0.2)]))))
    assert re.search(r"@media screen \{[^@]*table\.plain td \{ min-width: 5rem; \}", page)


def test_groups_have_one_name_on_the_page():
    """Table, caption, joint test and figure call a group as the sentences do."""
    men, women = GroupName([("sex", "Male")]), GroupName([("sex", "Female")])
    lines = [
        finding(women, 0.118, 0.09, 0.145, decision=Decision.DETECTED, reference=men),
        finding(GroupName([("sex", "x" * 80)]), 0.1, 0.0, 0.2, reference=men),
    ]
    words = Words(labels={"sex.Female": "women"})
    audit = result(findings=lines, joint=joint(null=f"no group differs from {men}"), words=words)
    page = html_report(dossier(check("disparity", audit)))
    assert '<th scope="row" data-group="sex=Female"><bdi>women</bdi></th>' in page
    assert f"<bdi>sex: {'x' * 80}</bdi></th>" in page
    assert "compared with sex: Male" in page
    assert "Joint: no group differs from sex: Male" in page
    assert "sex=Male" not in page


def test_a_label_that_reads_like_another_group_is_written_once():
    names = [GroupName([("g", "see h=b")]), GroupName([("h", "b")])]
    lines = [finding(name, 0.1, 0.05, 0.15, reference=names[1]) for name in names]
    page = html_report(dossier(check("disparity", result(findings=lines))))
    assert "g: see h=b" in page
    assert "g: see h: b" not in page
