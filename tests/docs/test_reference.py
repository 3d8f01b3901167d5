"""Every public name, command and option is documented; docstrings are complete."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
from numpydoc.validate import validate

import equipoise
import equipoise.stats
from equipoise.results.question import questions

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PUBLIC = (
    "equipoise",
    *(f"equipoise.{name}" for name in ("datasets", "design", "mitigation", "search", "testing")),
    *(f"equipoise.integrations.{name}" for name in ("mlflow", "model_card")),
)

WITHOUT_ARGUMENTS = {
    "equipoise.Decision",
    "equipoise.search.Algorithm",
    "equipoise.search.SelectionRule",
}
SUMMARY = {"GL08", "SS01", "SS02", "SS03", "SS06"}
SECTIONS = {"PR01", "PR02", "PR03", "PR10", "RT01"}
"""numpydoc checks: a short summary; parameters all listed, in order, and what is returned."""

NAMES = [
    f"{package}.{name}"
    for package in PUBLIC
    for name in importlib.import_module(package).__all__
    if not name.startswith("__")
    and not inspect.ismodule(getattr(importlib.import_module(package), name))
]
ENGINES = [
    f"{module}.{name}"
    for module in (
        found.name
        for found in pkgutil.walk_packages(equipoise.stats.__path__, "equipoise.stats.")
        if not found.ispkg
    )
    for name in importlib.import_module(module).__all__
    if inspect.isfunction(getattr(importlib.import_module(module), name))
]
METHODS = [question.answer.replace(":", ".") for question in questions().values()]


def documented(page):
    return set(re.findall(r"^::: (\S+)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE))


def test_the_reference_lists_every_public_name_and_no_other():
    assert documented("reference.md") == {
        *NAMES,
        "equipoise.exceptions",
        "equipoise.integrations.pytest_plugin.Gate",
    }


@pytest.mark.parametrize("name", [*NAMES, *METHODS])
def test_the_docstring_is_complete(name):
    document = validate(name)["docstring"]
    # Enumerations and protocols have no arguments of their own.
    bare = "Parameters\n" not in document and name in WITHOUT_ARGUMENTS
    assert not errors_of(name, SUMMARY if bare else SUMMARY | SECTIONS)


@pytest.mark.parametrize("name", ENGINES)
def test_the_docstring_of_an_engine_is_complete(name):
    # A step of a test may say in one line what it returns; where parameters are listed, all are.
    listed = "Parameters\n" in validate(name)["docstring"]
    assert not errors_of(name, SUMMARY | ({"PR01", "PR02"} if listed else set()))


def errors_of(name, codes):
    return [(code, text) for code, text in validate(name)["errors"] if code in codes]
