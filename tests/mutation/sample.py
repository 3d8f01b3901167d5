"""Break `equipoise.stats` in one place after the other and count what the tests notice.

``python tests/mutation/sample.py 60`` draws 60 mutants, runs for each the tests nearest to its
module (those that name it, then those that name what imports it), prints the mutants that survive,
and fails when a smaller share is killed than `score.json` keeps; ``--keep`` writes the score anew,
with the reasons that are known for those that survive; ``--from 20`` leaves out the first 20.
Mutants are drawn by a hash of what they change, so that a
change elsewhere draws the same ones. Tests are collected once: every mutant is a fork in which the
code of one function is another.
"""

import ast
import gc
import hashlib
import importlib
import json
import os
import resource
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
STATS = SOURCE / "equipoise" / "stats"
SCORE = Path(__file__).with_name("score.json")
FOLDERS = ("unit", "reference/stats", "property/stats")
ENOUGH = 30.0
"""CPU seconds after which no further test of a mutant is begun: it has survived those nearest.

A busy machine takes twice as many for the same tests.
"""

EVERYTHING = {"equipoise", "equipoise.stats"}
"""Packages that most tests name, whatever they ask."""

NEAR = 6
"""Test files after which the users of a module are no longer followed."""

TOO_LONG = 120
"""CPU seconds after which a mutant that makes a test run on and on is killed."""

COMPARE = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
OPERATE = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}


def places(tree):
    """Return the nodes inside functions that can be changed; annotations are not among them."""
    skipped, inside = set(), set()
    for node in ast.walk(tree):
        for part in ("annotation", "returns"):
            if getattr(node, part, None) is not None:
                skipped.update(ast.walk(getattr(node, part)))
        if isinstance(node, ast.Raise):
            skipped.update(ast.walk(node))
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            skipped.update(part for default in node.args.defaults for part in ast.walk(default))
            body = node.body if isinstance(node.body, list) else [node.body]
            inside.update(part for statement in body for part in ast.walk(statement))
    return [node for node in ast.walk(tree) if node in inside - skipped and _changed(node)]


def _changed(node):
    """Return what a node becomes, in words, or None."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
        return f"{type(node.ops[0]).__name__} to {COMPARE[type(node.ops[0])].__name__}"
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATE:
        return f"{type(node.op).__name__} to {OPERATE[type(node.op)].__name__}"
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        return f"{node.value} to {node.value + 1.0}"
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        return f"{node.attr} to {NAMES[node.attr]}"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return "minus to plus"
    return None


def change(node):
    if isinstance(node, ast.Compare):
        node.ops[0] = COMPARE[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp):
        node.op = OPERATE[type(node.op)]()
    elif isinstance(node, ast.Constant):
        node.value += 1.0
    elif isinstance(node, ast.Attribute):
        node.attr = NAMES[node.attr]
    else:
        node.op = ast.UAdd()


def mutants():
    """Return every mutant as file and number of its place, in an order that a hash gives."""
    found = {
        (path, k): hashlib.sha256(words.encode()).hexdigest()
        for path in sorted(STATS.rglob("*.py"))
        for k, words in enumerate(_names(path))
    }
    return sorted(found, key=found.__getitem__)


@cache
def _names(path):
    """Return the mutants of a module in words that do not change with what stands elsewhere."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    holders = {
        node: holder.name
        for holder in ast.walk(tree)
        if isinstance(holder, ast.FunctionDef)
        for node in ast.walk(holder)
    }
    seen, names = Counter(), []
    for node in places(tree):
        words = f"{_module(path)} {holders.get(node)} {ast.unparse(node)} {_changed(node)}"
        seen[words] += 1
        names.append(f"{words} {seen[words]}")
    return names


def _module(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


@cache
def _named(path):
    """Return the modules that a file imports from."""
    named = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
    return named


@cache
def tests_of(path):
    """Return the test files nearest to a module: its own, those that name it, then its users'."""
    tests = [file for folder in FOLDERS for file in (ROOT / "tests" / folder).rglob("test_*.py")]
    sources = {_module(file): file for file in SOURCE.rglob("*.py")}
    found, known, front = [], set(), {_module(path)}
    while front and len(found) < NEAR:
        near = [file for file in tests if file not in found and _named(file) & front]
        near.sort(
            key=lambda file: (
                path.stem not in file.stem,
                path.parent.name not in file.parts,
                file.stat().st_size,
            )
        )
        found += near
        known |= front
        users = {name for name, file in sources.items() if _named(file) & front} - known
        front = users - EVERYTHING or users
    return found


def functions_in(code):
    """Return the code of every function of a module by its name and first line."""
    found = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found[constant.co_qualname, constant.co_firstlineno] = constant
            found |= functions_in(constant)
    return found


def mutate(path, number):
    """Give the functions of a loaded module the code of a mutant, wherever they are bound."""
    importlib.import_module(_module(path))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    change(places(tree)[number])
    codes = functions_in(compile(tree, str(path), "exec"))
    mine = [
        function
        for function in gc.get_objects()
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(path)
    ]
    for function in mine:
        name = function.__code__.co_qualname, function.__code__.co_firstlineno
        function.__code__ = codes[name]  # a KeyError says that the file has changed since


def words_of(path, number):
    node = places(ast.parse(path.read_text(encoding="utf-8")))[number]
    return f"{path.relative_to(SOURCE)}:{node.lineno} {_changed(node)}"


class Mutants:
    """A plugin that runs the collected tests once for each mutant, in a fork of its own."""

    def __init__(self, chosen):
        self.chosen, self.survivors = chosen, []

    def pytest_runtestloop(self, session):
        if session.testsfailed:
            raise session.Failed("tests that cannot be collected notice no mutant")
        by_file = {}
        for item in session.items:
            if not {"slow", "spark", "calibration"} & {mark.name for mark in item.iter_markers()}:
                by_file.setdefault(item.path, []).append(item)
        for path, number in self.chosen:
            items = [item for file in tests_of(path) for item in by_file.get(file, [])]
            child = os.fork()
            if child == 0:
                code = 2
                try:
                    code = self._survives(path, number, items)
                finally:
                    os._exit(code)
            status = os.waitpid(child, 0)[1]
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) > 1:
                raise RuntimeError(f"{words_of(path, number)} could not be tried")
            survived = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 1
            if survived:
                self.survivors.append(_names(path)[number])
            print("survived" if survived else "killed  ", words_of(path, number), flush=True)
        return True

    def _survives(self, path, number, items):
        """Return 1 if no test notices a mutant, 0 if one does."""
        from _pytest.runner import runtestprotocol

        mutate(path, number)
        resource.setrlimit(resource.RLIMIT_CPU, (TOO_LONG, TOO_LONG))
        begun = time.process_time()
        for k, item in enumerate(items):
            following = items[k + 1] if k + 1 < len(items) else None
            reports = runtestprotocol(item, log=False, nextitem=following)
            if any(report.failed for report in reports):
                print(f"{item.nodeid} notices", flush=True)
                return 0
            if time.process_time() - begun > ENOUGH:
                break
        return 1


def main(first, last, *, keep):
    chosen = mutants()[first:last]
    plugin = Mutants(chosen)
    files = sorted({file for path, _ in chosen for file in tests_of(path)})
    options = ["-q", "-p", "no:cacheprovider", "-n", "0", "--no-header", "-s"]
    pytest.main([*options, *map(str, files)], plugins=[plugin])
    kept = json.loads(SCORE.read_text(encoding="utf-8"))
    size = len(chosen)
    survived = {name: kept["survived"].get(name, "") for name in plugin.survivors}
    score = {"mutants": size, "killed": size - len(survived), "survived": survived}
    print(json.dumps(score, indent=1))
    if keep:
        SCORE.write_text(json.dumps(score, indent=1) + "\n", encoding="utf-8")
    return is_as_good(score, kept)


def is_as_good(score, kept):
    """Return whether at least as large a share is killed."""
    return score["killed"] * kept["mutants"] >= kept["killed"] * score["mutants"]


if __name__ == "__main__":
    first = int(sys.argv[sys.argv.index("--from") + 1]) if "--from" in sys.argv else 0
    sys.exit(0 if main(first, int(sys.argv[1]), keep="--keep" in sys.argv) else 1)
