"""A real browser opens the report: by keyboard, without scripts, on paper and on phones."""

import base64
import re
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver.common.print_page_options import PrintOptions

import equipoise
from equipoise.plans.plan import read_plan
from equipoise.plans.run import execute
from equipoise.report.explorer import DEFAULTS, explored
from equipoise.report.html import html_report
from equipoise.results.finding import Decision
from support.specimens import check, dossier, finding, joint, result

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

ATTACK = "<img src=x onerror=\"document.title='attacked'\">"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The report of the bundled demonstration."""
    file = tmp_path_factory.mktemp("demo") / "demo.html"
    plan = Path(equipoise.__file__).parent / "plans" / "templates" / "demo.toml"
    file.write_text(html_report(execute(read_plan(plan))), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    lines = [
        finding("race=A", 0.118, 0.09, 0.145, decision=Decision.DETECTED, n=900),
        finding("race=B", -0.05, -0.12, 0.02, n=80),
        finding(f"race={ATTACK}", 0.01, None, 0.02, decision=Decision.WITHIN_MARGIN, n=1200),
        finding("race=C & sex=Female", n=4),
    ]
    page = html_report(
        dossier(
            check("disparity", result(findings=lines, joint=joint())),
            check("flag", result("flag", lines, details={"margin": 0.05})),
        )
    )
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(page, encoding="utf-8")
    return file


def groups(browser):
    return browser.driver.execute_script(
        "return [...document.querySelectorAll('#check-disparity tbody tr')]"
        ".filter(row => row.offsetParent).map(row => row.cells[0].textContent)"
    )


def test_the_page_is_silent_and_asks_for_nothing(browser, report):
    browser.open(report)
    assert browser.console() == []
    assert browser.requests() == [report.as_uri()]
    assert browser.driver.title != "attacked"
    assert browser.driver.execute_script("return document.querySelectorAll('img').length") == 0


def test_where_nothing_is_found_there_is_no_table(browser, tmp_path):
    file = tmp_path / "none.html"
    file.write_text(
        html_report(
            dossier(check("discover", result("discover", joint=joint(Decision.NOT_DETECTED, 1.0))))
        ),
        encoding="utf-8",
    )
    browser.open(file)
    assert "Nothing found" in browser.find(".headline").text
    assert not browser.find("#check-discover .filters").is_displayed()
    assert not browser.find("#check-discover table.findings").is_displayed()
    assert "0 of 0" not in browser.find("body").text
    browser.driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    tables = browser.driver.find_elements("css selector", "table.findings")
    assert len(tables) == 2
    assert not any(table.is_displayed() for table in tables)


def test_sorting_works_by_keyboard(browser, report):
    browser.open(report)
    button = browser.find("#check-disparity th:nth-child(3) button")
    assert button.text == "n"
    button.send_keys("\ue007")
    assert groups(browser)[0] == "race=B"
    assert (
        browser.find("#check-disparity th:nth-child(3)").get_attribute("aria-sort") == "ascending"
    )
    button.send_keys(" ")
    assert groups(browser)[0] == f"race={ATTACK}"
    button.send_keys("\ue007")
    assert groups(browser)[0] == "race=A"


def test_a_missing_number_sorts_last_both_ways(browser, report):
    browser.open(report)
    button = browser.find("#check-disparity th:nth-child(4) button")
    assert button.text == "Estimate"
    for _ in range(2):
        button.send_keys("\ue007")
        assert groups(browser)[-1] == "race=C & sex=Female"


def test_filtering_works_by_keyboard_and_says_how_many_remain(browser, report):
    browser.open(report)
    field = browser.find("#check-disparity input[type=search]")
    field.send_keys("sex=f")
    assert groups(browser) == ["race=C & sex=Female"]
    assert browser.find("#check-disparity .count").text == "1 of 4 shown"
    field.clear()
    browser.find("#check-disparity select").send_keys("det")
    assert groups(browser) == ["race=A"]


def test_every_control_is_reached_by_tab(browser, report):
    browser.open(report)
    body = browser.find("body")
    reached = set()
    for _ in range(80):
        browser.driver.switch_to.active_element.send_keys("\ue004")
        active = browser.driver.switch_to.active_element
        if active == body:
            break
        reached.add(active)
    controls = browser.driver.execute_script(
        "return [...document.querySelectorAll('a, button, input, select')]"
    )
    assert set(controls) <= reached


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_no_serious_accessibility_violation(browser, report, width, dark):
    browser.resize(width, 900, dark=dark)
    browser.open(report)
    assert browser.violations() == []


def test_a_phone_needs_no_sideways_scrolling(browser, report):
    browser.resize(390, 800)
    browser.open(report)
    assert browser.driver.execute_script("return document.documentElement.scrollWidth") <= 390


def test_dark_colours_reach_the_figure(browser, report):
    colour = "return getComputedStyle(document.querySelector('svg.figure text')).fill"
    browser.open(report)
    light = browser.driver.execute_script(colour)
    browser.resize(1280, 900, dark=True)
    assert browser.driver.execute_script(colour) != light
    browser.find("#theme").send_keys("light")
    assert browser.driver.execute_script(colour) == light


def test_the_page_is_complete_without_scripts(browser, report):
    browser.scripts(on=False)
    browser.open(report)
    assert len(browser.driver.find_elements("css selector", "table.findings tbody tr")) == 8
    assert len(browser.driver.find_elements("css selector", "svg.figure.wide")) == 2
    assert not browser.find("#theme").is_displayed()
    assert "0.118 higher, at least 0.09" in browser.find("#check-disparity .headline").text


def test_printing_shows_the_rows_that_a_filter_hides(browser, report):
    browser.open(report)
    browser.find("#check-disparity input[type=search]").send_keys("no such group")
    assert groups(browser) == []
    browser.media("print")
    assert len(groups(browser)) == 4
    browser.media("")
    pdf = base64.b64decode(browser.driver.print_page())
    assert pdf.startswith(b"%PDF")


def test_a_printed_link_says_where_it_leads(browser, report):
    width = "return document.querySelector('.summary a').getBoundingClientRect().width"
    browser.open(report)
    narrow = browser.driver.execute_script(width)
    browser.media("print")
    assert browser.driver.execute_script(width) > 3 * narrow
    target = browser.find("#check-disparity h3").text
    assert " ".join(browser.find(".summary a").text.split()) == f"Evidence: {target}"
    browser.media("")


def test_a_figure_is_drawn_anew_for_a_phone(browser, report):
    drawings = (
        "return ['wide', 'narrow'].map(kind => [...document.querySelectorAll('svg.figure.' + kind)]"
        ".map(drawing => Math.round(drawing.getBoundingClientRect().width)))"
    )
    browser.open(report)
    wide, narrow = browser.driver.execute_script(drawings)
    assert min(wide) > 500
    assert narrow == [0, 0]
    browser.resize(390, 800)
    wide, narrow = browser.driver.execute_script(drawings)
    assert wide == [0, 0]
    assert 300 < min(narrow) <= max(narrow) <= 390
    sizes = browser.driver.execute_script(
        "return [...document.querySelectorAll('svg.figure.narrow text')]"
        ".map(text => text.getBoundingClientRect().height)"
    )
    assert min(sizes) > 8
    frames = browser.driver.execute_script(
        "return [...document.querySelectorAll('figure .scroll')]"
        ".every(frame => frame.scrollWidth <= frame.clientWidth)"
    )
    assert frames


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """The report of a plan of nine questions of several kinds."""
    file = tmp_path_factory.mktemp("long") / "long.html"
    plan = read_plan(Path(equipoise.__file__).parent / "plans" / "templates" / "demo.toml")
    benefits, disparity, *_ = sorted(plan.checks, key=lambda one: one.question == "disparity")
    checks = [replace(disparity, id=f"more-{k}") for k in range(4)]
    checks.append(replace(benefits, id="last"))
    file.write_text(html_report(execute(replace(plan, checks=(*plan.checks, *checks)))), "utf-8")
    return file


def printed_pages(browser, width=21.0, height=29.7):
    paper = PrintOptions()
    paper.page_width, paper.page_height = width, height
    pdf = base64.b64decode(browser.driver.print_page(paper))
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def hide_all_but_the_front(browser):
    browser.driver.execute_script(
        "document.head.insertAdjacentHTML('beforeend', '<style>"
        "#annex, #annex ~ section, footer { display: none !important }</style>')"
    )


def test_further_questions_stand_in_the_annex_on_paper(browser, long):
    browser.open(long)
    whole = printed_pages(browser)
    order = "return [...document.querySelectorAll('.check')].map(check => check.id)"
    hidden = "return document.querySelectorAll('main > section[hidden]').length"
    before = browser.driver.execute_script(order), browser.driver.execute_script(hidden)
    browser.driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    moved = "return document.querySelectorAll('#annex .check').length"
    # The answers of so many questions take two pages, which leaves two of four.
    assert browser.driver.execute_script(moved) == len(before[0]) - 2
    assert browser.find("#on-paper").text.startswith("On paper 8 of the 10 questions have no page")
    browser.driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert not browser.find("#on-paper").is_displayed()
    after = browser.driver.execute_script(order), browser.driver.execute_script(hidden)
    assert after == before
    hide_all_but_the_front(browser)
    assert printed_pages(browser) <= 4 < whole


@pytest.mark.parametrize(("asked", "pages"), [(1, 2), (3, 4), (6, 4)])
def test_every_question_has_a_page_with_ten_rows_until_there_are_four_pages(
    browser, tmp_path, asked, pages
):
    shares = {f"region {k:02d}": 0.1 + 0.8 * (k % 3 == 0) for k in range(14)}
    lines = [
        finding(f"race={name}", gap, gap - 0.05, gap + 0.05, decision=decision, n=200)
        for name, gap in shares.items()
        for decision in [Decision.DETECTED if gap > 0.5 else Decision.NOT_DETECTED]
    ]
    checks = [
        replace(check("disparity", result(findings=lines, joint=joint())), id=f"asked-{k}")
        for k in range(asked)
    ]
    file = tmp_path / "asked.html"
    file.write_text(html_report(dossier(*checks)), encoding="utf-8")
    browser.open(file)
    names = browser.driver.execute_script(
        "return [...document.querySelectorAll('.findings thead th')].map(th => th.textContent)"
    )
    browser.driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    leaves = browser.driver.find_elements("css selector", ".leaf")
    assert len(leaves) == min(asked, 3)
    for leaf in leaves:
        rows = leaf.find_elements("css selector", "table.findings tbody tr")
        words = [row.find_element("css selector", ".verdict").text for row in rows]
        assert words == ["detected"] * 5 + ["not detected"] * 5
        assert "10 of 14 rows" in leaf.find_element("css selector", "caption").text
        assert leaf.find_element("css selector", "svg.figure.wide").is_displayed()
        heads = [cell.text for cell in leaf.find_elements("css selector", "thead th")]
        assert "Statistic" in names
        assert "Statistic" not in heads
    assert browser.find("#on-paper").is_displayed() == (asked > 3)
    tables = "#annex table.findings tbody tr"
    assert len(browser.driver.find_elements("css selector", tables)) == 14 * asked
    hide_all_but_the_front(browser)
    assert printed_pages(browser) == pages
    browser.driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert browser.driver.execute_script("return document.querySelectorAll('.leaf').length") == 0
    assert len(browser.driver.find_elements("css selector", "table.findings")) == asked


@pytest.mark.parametrize(("width", "height"), [(21.0, 29.7), (21.59, 27.94)], ids=["A4", "letter"])
def test_the_paper_edition_has_four_pages_and_an_annex(browser, demo, width, height):
    browser.open(demo)
    whole = printed_pages(browser, width, height)
    tables = "return document.querySelectorAll('#annex table.findings').length"
    assert browser.driver.execute_script(tables) == 0
    browser.driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.driver.execute_script(tables) == 5
    browser.driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert browser.driver.execute_script(tables) == 0
    assert not browser.find("#annex").is_displayed()
    hide_all_but_the_front(browser)
    assert printed_pages(browser, width, height) == 4 < whole


def test_the_line_below_the_page_takes_no_paper(browser, demo):
    """What it says stands at the top and among the versions."""
    browser.open(demo)
    browser.media("print")
    footer, versions = browser.find("body > footer"), browser.find("#reproduce")
    shown = footer.is_displayed(), equipoise.__version__ in versions.text
    browser.media("")
    assert shown == (False, True)
    before = printed_pages(browser)
    browser.driver.execute_script(
        "document.querySelector('body > footer').remove();"
        "document.querySelector('main').style.paddingBottom = '0'"
    )
    assert printed_pages(browser) == before


def test_the_demo_shows_headline_figure_and_table_for_every_question(browser, demo):
    browser.open(demo)
    checks = browser.driver.find_elements("css selector", ".check")
    assert len(checks) == 5
    for shown in checks:
        for part in (".headline", "svg.figure", "table.findings", ".assumptions"):
            assert shown.find_element("css selector", part).is_displayed()
    assert browser.console() == []
    assert browser.requests() == [demo.as_uri()]
    assert browser.violations() == []


EXPLORED = (
    {"kind": "punitive"} | DEFAULTS,
    {"kind": "punitive"} | DEFAULTS | {"kappa": 10, "order": 0, "fpr": 0, "fnr": 1},
    {"kind": "punitive"} | DEFAULTS | {"base_rate": 0.1, "kappa": 10, "order": 2},
    {"kind": "assistive"} | DEFAULTS | {"base_rate": 0.25, "kappa": 1, "order": 0.5},
    {"kind": "assistive"} | DEFAULTS | {"base_rate": 0.25, "kappa": 5, "order": 10},
    {"kind": "assistive"} | DEFAULTS | {"base_rate": 0.1, "kappa": 0.5, "order": -1},
)


def explore(browser, values):
    """Fill the form of the explorer by keyboard and read what it shows."""
    browser.find("#explorer select").send_keys(values["kind"])
    for name, value in values.items():
        if name != "kind":
            field = browser.find(f"#explorer input[name={name}]")
            field.send_keys("\ue009a\ue000", f"{value}")
    return {
        place.get_attribute("data-output"): place.get_attribute("data-value")
        for place in browser.driver.find_elements("css selector", "#explorer [data-output]")
    }


@pytest.mark.parametrize("values", EXPLORED, ids=lambda v: f"{v['kind']}-{v['order']}")
def test_the_explorer_computes_what_the_library_computes(browser, demo, values):
    browser.open(demo)
    shown = explore(browser, values)
    expected = explored(**values)
    assert set(shown) == set(expected)
    for name, value in expected.items():
        assert float(shown[name]) == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_the_explorer_starts_with_the_numbers_of_the_page_without_scripts(browser, demo):
    read = (
        "return [...document.querySelectorAll('#explorer [data-output]')].map(e => e.textContent)"
    )
    browser.scripts(on=False)
    browser.open(demo)
    places = browser.driver.find_elements("css selector", "#explorer [data-output]")
    static = [place.text for place in places]
    browser.scripts(on=True)
    browser.open(demo)
    assert browser.driver.execute_script(read) == static


def test_the_explorer_refuses_what_cannot_be_encoded(browser, demo):
    browser.open(demo)
    shown = explore(browser, {"kind": "punitive", "base_rate": 0.1, "kappa": 5})
    assert set(shown.values()) == {""}
    verdict = browser.find("#explorer .verdict").text
    assert verdict == "This ratio cannot be encoded at this base rate: κ must be above 9."
    explore(browser, {"kind": "punitive", "base_rate": 7})
    assert "a number from 0.001 to 0.999 is needed" in browser.find("#explorer .verdict").text


def test_an_arrow_key_changes_the_explorer(browser, demo):
    browser.open(demo)
    before = browser.find("#explorer [data-output=index]").text
    browser.find("#explorer input[name=fpr]").send_keys("\ue013" * 5)
    assert browser.find("#explorer [data-output=index]").text != before
