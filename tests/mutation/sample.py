"""Break `equipoise.stats` in one place after the other and count what the tests notice.

``python tests/mutation/sample.py 60`` draws 60 mutants with seed 0, runs for each the test files
that import its module, prints those that survive, and fails when fewer are killed than `score.json`
keeps; ``--keep`` writes the score anew.
"""

import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
STATS = Path("equipoise") / "stats"
SCORE = Path(__file__).with_name("score.json")
FOLDERS = ("unit/stats", "reference/stats", "property/stats", "unit/audits")
SECONDS = 240
"""A mutant that makes its tests longer than this is killed."""

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
    """Return the nodes that can be changed; annotations and docstrings are not among them."""
    skipped = set()
    for node in ast.walk(tree):
        for part in ("annotation", "returns"):
            if getattr(node, part, None) is not None:
                skipped.update(ast.walk(getattr(node, part)))
        if isinstance(node, ast.Raise):
            skipped.update(ast.walk(node))
    return [node for node in ast.walk(tree) if node not in skipped and _changed(node)]


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
    """Return every mutant as module and number of its place, in a fixed order."""
    found = []
    for path in sorted((ROOT / "src" / STATS).rglob("*.py")):
        size = len(places(ast.parse(path.read_text(encoding="utf-8"))))
        found += [(path.relative_to(ROOT / "src"), k) for k in range(size)]
    return found


def tests_of(module):
    """Return the test files that import a module, its own first; else those of its family."""
    dotted = ".".join(module.with_suffix("").parts).removesuffix(".__init__")
    files = [file for folder in FOLDERS for file in (ROOT / "tests" / folder).rglob("test_*.py")]
    known = re.compile(rf"{re.escape(dotted)}\b")
    naming = [file for file in files if known.search(file.read_text(encoding="utf-8"))]
    family = module.parent.name
    own = [file for file in naming if module.stem in file.stem]
    near = [file for file in files if file.parent.name == family]
    others = sorted({*(naming or near)} - {*own}, key=lambda file: file.stat().st_size)
    return [*own, *others]


def killed(module, number, source):
    """Write a mutant into a copy of the source and say whether a test fails; and what it was."""
    path = source / module
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    node = places(tree)[number]
    words = f"{module}:{node.lineno} {_changed(node)}"
    change(node)
    path.write_text(ast.unparse(tree), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["-m", "not slow and not spark and not calibration", str(path)]
    command += map(str, tests_of(module))
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    options = {"cwd": ROOT, "env": environment, "timeout": SECONDS, "capture_output": True}
    try:
        done = subprocess.run(
            [*command, "-o", f"pythonpath={source} tests"], check=False, **options
        )
        if done.returncode > 2:
            raise RuntimeError(done.stdout.decode() + done.stderr.decode())
        failed = done.returncode != 0
    except subprocess.TimeoutExpired:
        failed = True
    finally:
        path.write_text(text, encoding="utf-8")
    return failed, words


def main(size, *, keep):
    chosen = mutants()
    random.Random(0).shuffle(chosen)
    chosen = chosen[:size]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        survivors = []
        for module, number in chosen:
            failed, words = killed(module, number, source)
            print("killed  " if failed else "survived", words, flush=True)
            if not failed:
                survivors.append(words)
    score = {"mutants": size, "killed": size - len(survivors), "survived": survivors}
    print(json.dumps(score, indent=1))
    if keep:
        SCORE.write_text(json.dumps(score, indent=1) + "\n", encoding="utf-8")
    kept = json.loads(SCORE.read_text(encoding="utf-8"))
    return score["killed"] / size >= kept["killed"] / kept["mutants"]


if __name__ == "__main__":
    sys.exit(0 if main(int(sys.argv[1]), keep="--keep" in sys.argv) else 1)
