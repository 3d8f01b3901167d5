"""The finished samples are what the repository's own commands print today."""

import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))
import samples  # noqa: E402


@pytest.fixture(scope="module")
def answered():
    return {name: samples.dossier(name) for name in samples.SAMPLES}


def test_the_page_is_what_is_printed_today(answered, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert samples.page(answered) == samples.PAGE.read_text(encoding="utf-8")


def test_every_sample_shows_something_and_is_a_whole_report(answered):
    for name, report in samples.reports(answered).items():
        assert any(check.result.findings for check in answered[name].checks)
        assert "detected" in report
        assert report.rstrip().endswith("</html>")


def test_every_row_of_the_readme_links_to_its_sample():
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", samples.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    linked = re.findall(r"docs/samples\.md#([\w-]+)", text)
    assert linked == [heading.lower().replace(" ", "-") for heading in headings]
    home = (DOCS / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"samples/(\w+)\.html", home) == [*samples.SAMPLES]


def test_make_samples_writes_the_reports_and_the_table_of_the_experiment(
    answered, monkeypatch, tmp_path
):
    monkeypatch.setattr(samples, "dossier", answered.get)
    monkeypatch.setattr(samples, "PAGE", tmp_path / "samples.md")
    samples.main(tmp_path / "made")
    made = {file.name for file in (tmp_path / "made").iterdir()}
    assert made == {f"{name}.html" for name in answered} | {"experiment.csv", "experiment.toml"}
    lines = (tmp_path / "made/experiment.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 20_001
