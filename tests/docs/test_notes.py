"""Every note code of the source has a heading in docs/notes.md, and no other has."""

import ast
import re
from pathlib import Path

from calibration.noted_rates import quoted_table

ROOT = Path(__file__).parents[2]


def codes_in_source():
    codes = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Note":
                code = {keyword.arg: keyword.value for keyword in node.keywords}.get("code")
                if isinstance(code, ast.Constant):
                    codes.add(code.value)
    return codes


def test_note_codes_and_headings_agree():
    headings = re.findall(r"^## (.+)$", (ROOT / "docs/notes.md").read_text(), re.MULTILINE)
    assert headings == sorted(headings)
    assert set(headings) == codes_in_source()


def test_rates_of_unknown_shapes_are_those_that_notes_quote():
    assert quoted_table() in (ROOT / "docs/notes.md").read_text(encoding="utf-8")
