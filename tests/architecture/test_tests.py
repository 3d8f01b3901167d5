"""Tests lie where a reader looks for them."""

import re
from pathlib import Path

import equipoise

SRC = Path(equipoise.__file__).parent
TESTS = Path(__file__).parents[1]
UNIT = TESTS / "unit"

# What no single module answers for; each lies in the folder of what it concerns.
OF_SEVERAL_MODULES = {
    "audits/disparity/test_given_by_learners.py",
    "audits/improvement/test_score_utilities.py",
    "audits/improvement/test_search.py",
    "audits/test_look_alike.py",
    "audits/test_many_findings.py",
    "data/test_databases.py",
    "data/test_odd_columns.py",
    "data/test_out_of_core.py",
    "data/test_unwritable.py",
    "stats/disparity/test_joint_saturated.py",
    "stats/test_public_functions.py",
    "test_adversarial_tables.py",
}


def has_no_module(file):
    """Whether neither a module nor a package of that name lies where the test lies."""
    folder = SRC / file.parent.relative_to(UNIT)
    name = file.stem.removeprefix("test_")
    modules = (folder / f"{name}.py", folder / f"_{name}.py", folder / name / "__init__.py")
    return not any(module.exists() for module in modules)


def test_unit_tests_lie_as_their_modules_do():
    apart = {
        file.relative_to(UNIT).as_posix() for file in UNIT.rglob("test_*.py") if has_no_module(file)
    }
    assert apart == OF_SEVERAL_MODULES


def test_folders_of_unit_tests_are_packages():
    folders = {file.parent.relative_to(UNIT) for file in UNIT.rglob("test_*.py")}
    assert not {folder for folder in folders if not (SRC / folder / "__init__.py").exists()}


def test_the_page_of_tests_has_every_folder():
    text = (TESTS / "README.md").read_text(encoding="utf-8")
    folders = {file.relative_to(TESTS).parts[0] for file in TESTS.glob("*/**/test_*.py")}
    assert not {folder for folder in folders if f"| `{folder}/` |" not in text}


def test_the_page_of_tests_names_files_that_exist():
    text = (TESTS / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+(?:\.py|/))`", text)
    assert len(named) > 10
    assert not [name for name in named if not list(TESTS.rglob(name))]
