"""The action and the hook call commands and options that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["action.yml", ".pre-commit-hooks.yaml"])
def test_every_option_is_one_of_the_command(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert "equipoise audit" in text
    for option in set(re.findall(r"--[a-z-]+", text)) - {"--quiet"}:
        assert f"  {option} " in page, option


def test_inputs_of_the_action_reach_the_shell_as_variables_only():
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    for step in text.split("run:")[1:]:
        command = step.split("- name:")[0]
        assert "${{" not in command
