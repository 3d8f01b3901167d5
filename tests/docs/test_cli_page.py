"""docs/cli.md has the help of every command, word for word."""

import re

from docs.cli_page import COMMANDS, PAGE, help_of, rewritten


def test_the_page_has_the_help_of_every_command():
    text = PAGE.read_text(encoding="utf-8")
    assert rewritten(text) == text, "run `python tests/docs/cli_page.py`"


def test_the_page_shows_no_command_that_does_not_exist():
    shown = re.findall(r"^## `(equipoise[^`]*)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(shown) == sorted(COMMANDS)


def test_every_option_has_a_description():
    for command in COMMANDS:
        lines = help_of(command).splitlines()
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            if re.match(r"  --\w", line):
                described = re.search(r"\S {2,}\S", line.strip()) or following.startswith(" " * 20)
                assert described, f"{command}: {line}"
