"""The lock file is a known good set: complete, and not older than what pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def requirements():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [*project["dependencies"], *project["optional-dependencies"]["spark"]]
    return [Requirement(text) for text in texts]


def locked():
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_a_requirement_is_locked_at_a_version_it_allows(requirement):
    version = locked()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version, prereleases=True)


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_a_requirement_has_a_lower_bound(requirement):
    assert any(part.operator == ">=" for part in requirement.specifier)
