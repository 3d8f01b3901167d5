"""The action and the hook call commands and options that exist."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

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


@pytest.mark.parametrize(
    ("inputs", "asked"),
    [
        ({}, ["python -m pip install --quiet /the action"]),
        (
            {"version": "equipoise==0.1.0", "baseline": "old.json", "fail-on": "worse"},
            ["python -m pip install --quiet equipoise==0.1.0"],
        ),
    ],
)
def test_the_action_installs_its_own_version_and_audits(tmp_path, inputs, asked):
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    given = {name: one.get("default", "my plan.toml") for name, one in action["inputs"].items()}
    given |= inputs
    # Stand for the commands: they keep what they are asked.
    for name in ("python", "equipoise"):
        command = tmp_path / name
        command.write_text(f'#!/bin/sh\necho "{name}" "$@" >> asked\n')
        command.chmod(0o755)
    for step in action["runs"]["steps"]:
        place = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_ACTION_PATH": "/the action"}
        for variable, value in step["env"].items():
            place[variable] = given[re.findall(r"inputs\.([a-z-]+)", value)[0]]
        subprocess.run(["bash", "-ec", step["run"]], cwd=tmp_path, env=place, check=True)
    last = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    baseline = f" --baseline {given['baseline']}" if given["baseline"] else ""
    audit = (
        f"equipoise audit my plan.toml --fail-on {given['fail-on']}"
        " --output equipoise-report.html --json equipoise-results.json"
        f" --junit equipoise-junit.xml{baseline}"
    )
    assert last == [*asked, audit]


def test_the_hook_runs_every_plan_that_is_committed_until_one_fails(tmp_path):
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    entry = shlex.split(re.findall(r"entry: (.*)", text)[0])
    # Stands for the command: it keeps what it is asked, and fails for one of the plans.
    command = tmp_path / "equipoise"
    command.write_text('#!/bin/sh\necho "$@" >> asked\n[ "$2" != "b audit.toml" ]\n')
    command.chmod(0o755)
    place = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    plans = ["a audit.toml", "b audit.toml", "c audit.toml"]
    done = subprocess.run([*entry, *plans], cwd=tmp_path, env=place, check=False)
    asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    assert done.returncode == 1
    assert asked == [f"audit {plan} --quiet --fail-on detected" for plan in plans[:2]]
