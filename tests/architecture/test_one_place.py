"""Logic is written once, and what is written is used."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from vulture import Vulture

import equipoise

SRC = Path(equipoise.__file__).parent
LONGEST = 6  # lines that two functions may have in common

# Called by people, by Python, by a library or by the tests of a law; never by our own code.
CALLED_FROM_OUTSIDE = {
    "__getattr__": "Python",
    "__dir__": "Python",
    "_repr_html_": "a notebook",
    "from_cells": "people",
    "to_frame": "people",
    "fit_transform": "people, as in scikit-learn",
    "not_detected": "people's tests",
    "within_margin": "people's tests",
    "call": "the template of the report",
    "_commands": "typer",
    "show_power": "typer",
    "show_sample_size": "typer",
    "of_counts": "people who have counts and no rows",
    "with_rest": "people who have sums of two sides and no table",
    "exact_p_value": "people who compare with `mantelhaen.test(exact = TRUE)`",
}


def bodies(path):
    """Yield the functions that stand in no other one: name and lines without docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for owner in (tree, *classes):
        for node in owner.body:
            if isinstance(node, ast.FunctionDef):
                start = 0 if ast.get_docstring(node) is None else 1
                text = "\n".join(ast.unparse(part) for part in node.body[start:])
                yield node.name, [line.strip() for line in text.splitlines()]


def test_no_run_of_lines_stands_in_two_functions():
    places = defaultdict(set)
    for path in sorted(SRC.rglob("*.py")):
        for name, lines in bodies(path):
            for start in range(len(lines) - LONGEST):
                run = tuple(lines[start : start + LONGEST + 1])
                places[run].add(f"{path.relative_to(SRC)}:{name}")
    assert {run: found for run, found in places.items() if len(found) > 1} == {}


def test_every_function_class_and_method_has_a_caller():
    found = Vulture()
    found.scavenge([str(SRC)])
    unused = {
        item.name
        for item in found.get_unused_code()
        if item.typ in {"function", "method", "class", "property", "import"}
    }
    assert unused == CALLED_FROM_OUTSIDE.keys()


def test_commands_print_in_one_place():
    """There signs that command a terminal are taken out."""
    prints = re.compile(r"typer\.(echo|secho)|click\.echo|(?<![\w.])print\(|\.std(out|err)\.write")
    printing = {
        path.name for path in (SRC / "cli").glob("*.py") if prints.search(path.read_text("utf-8"))
    }
    assert printing == {"streams.py"}
