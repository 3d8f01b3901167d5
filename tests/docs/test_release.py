"""A release is one command: fragments become a section of the changelog, and nothing is lost."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

import equipoise

ROOT = Path(__file__).parents[2]


@pytest.fixture
def assemble(tmp_path):
    """The command, in a copy of its folder beside a copy of the changelog."""
    folder = tmp_path / "changelog.d"
    folder.mkdir()
    shutil.copy(ROOT / "changelog.d" / "assemble.py", folder)
    shutil.copy(ROOT / "CHANGELOG.md", tmp_path)
    source = importlib.util.spec_from_file_location("assemble", folder / "assemble.py")
    module = importlib.util.module_from_spec(source)
    source.loader.exec_module(module)
    return module


def test_fragments_move_into_a_section_above_earlier_ones(assemble):
    for kind in assemble.HEADINGS:
        (assemble.HERE / f"thing.{kind}.md").write_text(f"A thing\nwas {kind}.\n")
    assemble.main("9.9.0")
    assert not list(assemble.HERE.glob("*.md"))
    text = (assemble.HERE.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *_ = re.findall(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", text, re.MULTILINE)
    assert first == "9.9.0"
    for kind, heading in assemble.HEADINGS.items():
        assert f"### {heading}\n\n- A thing was {kind}.\n" in text
    earlier = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition(assemble.MARK)[2]
    assert text.endswith(earlier.lstrip())


def test_a_release_that_is_not_yet_tagged_is_prepared_again(assemble):
    page = assemble.HERE.parent / "CHANGELOG.md"
    page.write_text(f"# Changes\n\n{assemble.MARK}\n## 0.9.0 (2026-01-01)\n\n### Fixed\n\n- Old.\n")
    for said in ("One.", "Two."):
        (assemble.HERE / "thing.fixed.md").write_text(said)
        (assemble.HERE / "thing.added.md").write_text(f"Added {said}")
        assemble.main("1.0.0")
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+) ", text, re.MULTILINE) == ["1.0.0", "0.9.0"]
    added, fixed, old = text.split("\n### ")[1:]
    assert added == "Added\n\n- Added Two.\n- Added One.\n"
    assert fixed.startswith("Fixed\n\n- Two.\n- One.\n\n## 0.9.0")
    assert old == "Fixed\n\n- Old.\n"


def test_every_fragment_has_a_kind_and_says_something(assemble):
    for file in (ROOT / "changelog.d").glob("*.md"):
        assert file.name.split(".")[1:] in [[kind, "md"] for kind in assemble.HEADINGS], file.name
        assert file.read_text(encoding="utf-8").strip(), file.name


def test_the_version_is_told_alike_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == equipoise.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\S+) \(", changelog, re.MULTILINE)
    assert released[:1] == [equipoise.__version__]
