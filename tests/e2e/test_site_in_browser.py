"""A real browser opens pages of the docs site: nothing serious for axe, and no raw TeX."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

ROOT = Path(__file__).parents[2]
PAGES = ("index", "metrics", "guide/plans", "methods/empirical_likelihood", "tutorials/hiring")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site without the pages made of docstrings, which take most of the time."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("latex2mathml")
    folder = tmp_path_factory.mktemp("site")
    settings = f"""
INHERIT: {ROOT / "mkdocs.yml"}
docs_dir: {ROOT / "docs"}
hooks: [{ROOT / "docs" / "hooks.py"}]
strict: false
plugins: [search]
nav: [index.md, metrics.md, guide/plans.md, methods/empirical_likelihood.md, tutorials/hiring.md]
"""
    (folder / "mkdocs.yml").write_text(settings, encoding="utf-8")
    command = [
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "-f",
        folder / "mkdocs.yml",
        "-d",
        folder / "out",
    ]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, *command], check=True, env=environment)
    return folder / "out"


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)], ids=["phone", "desktop"])
def test_axe_finds_nothing_serious_on_the_site(browser, site, page, width, dark):
    browser.resize(width, 900, dark=dark)
    browser.driver.get((site / f"{page}.html").as_uri())
    assert browser.violations() == []


def test_a_phone_scrolls_no_page_of_the_site_sideways(browser, site):
    browser.resize(390, 900)
    pages = [page for page in sorted(site.rglob("*.html")) if "samples" not in page.parts]
    wide = {}
    for page in pages:
        browser.driver.get(page.as_uri())
        width = browser.driver.execute_script("return document.documentElement.scrollWidth")
        if width > 390:
            wide[page.relative_to(site).as_posix()] = width
    assert len(pages) > 50
    assert wide == {}


def test_the_site_follows_the_system_until_a_reader_chooses(browser, site):
    paper = "return getComputedStyle(document.body).backgroundColor"
    browser.driver.get((site / "index.html").as_uri())
    light = browser.driver.execute_script(paper)
    browser.resize(1280, 900, dark=True)
    browser.driver.get((site / "metrics.html").as_uri())
    assert browser.driver.execute_script(paper) != light
    browser.find("label[for=__palette_1]").click()
    browser.driver.get((site / "index.html").as_uri())
    assert browser.driver.execute_script(paper) == light


def test_a_page_with_formulas_shows_no_tex(browser, site):
    browser.driver.get((site / "methods/empirical_likelihood.html").as_uri())
    shown = browser.find("article").text
    assert browser.driver.execute_script("return document.querySelectorAll('math').length") > 10
    assert not [word for word in ("\\hat", "\\theta", "\\frac", "$$", "\\(") if word in shown]
