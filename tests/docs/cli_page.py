"""The help texts of docs/cli.md; ``python tests/docs/cli_page.py`` rewrites them.

A new command gets a section at the end; the section of one that is gone is the author's to delete.
"""

import re
from pathlib import Path

import typer.main
from typer.testing import CliRunner

from equipoise.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def names(command, path):
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from names(inner, f"{path} {name}")


COMMANDS = list(names(typer.main.get_command(app), "equipoise"))


def help_of(command):
    done = CliRunner().invoke(
        app, [*command.split()[1:], "--help"], prog_name="equipoise", env={"COLUMNS": "80"}
    )
    assert done.exit_code == 0, done.output
    return "\n".join(line.rstrip() for line in done.output.splitlines()) + "\n"


def rewritten(text):
    for command in COMMANDS:
        heading = f"## `{command}`\n"
        if heading not in text:
            text = f"{text.rstrip()}\n\n{heading}\n```text\n```\n"
        block = re.compile(
            rf"({re.escape(heading)}(?:(?!## )[^\n]*\n)*?```text\n)[^`]*(?:`(?!``)[^`]*)*```"
        )
        shown = help_of(command)
        text = block.sub(lambda match, shown=shown: f"{match[1]}{shown}```", text, count=1)
    return text


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
