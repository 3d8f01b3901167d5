"""No code from data: nothing in the package evaluates, unpickles or shells out."""

import ast
import re
import sys
from pathlib import Path

import pytest

import equipoise
from equipoise import datasets

SRC = Path(equipoise.__file__).parent
MODULES = sorted(SRC.rglob("*.py"))

BANNED_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml", "subprocess", "pty"}
BANNED_CALLS = {"eval", "exec", "compile", "__import__"}
BANNED_METHODS = {"system", "popen", "execv", "spawnl"}


@pytest.mark.parametrize("path", MODULES, ids=[str(path.relative_to(SRC)) for path in MODULES])
def test_a_module_runs_no_code_from_outside(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & BANNED_MODULES
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in BANNED_MODULES
        elif isinstance(node, ast.Call):
            assert getattr(node.func, "id", "") not in BANNED_CALLS
            if isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "os":
                assert node.func.attr not in BANNED_METHODS


def test_modules_are_imported_by_name_only_from_lists_of_our_own():
    users = [
        str(path.relative_to(SRC))
        for path in MODULES
        if "importlib.import_module" in path.read_text(encoding="utf-8")
    ]
    # What packages list, the functions of questions, and the candidates that a plan may name.
    assert set(users) <= {
        "__init__.py",
        "audits/improvement/candidates.py",
        "results/question.py",
        "stats/__init__.py",
    }


def test_downloads_are_https_with_a_checksum():
    sources = [value for value in vars(datasets).values() if type(value).__name__ == "_Source"]
    assert sources
    for source in sources:
        assert source.url.startswith("https://")
        assert all(len(digest) == 64 for digest in source.sha256)
        assert source.sha256


def test_duckdb_is_opened_in_one_place():
    """What a relation of the user does is the user's; every other is of `data/duckdb.py`."""
    calls = [
        (str(path.relative_to(SRC)), node.func.attr)
        for path in MODULES
        if "import duckdb\n" in path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and getattr(node.func.value, "id", "") == "duckdb"
    ]
    opened = [(file, name) for file, name in calls if name != "read"]
    assert sorted(set(opened)) == [("data/duckdb.py", "connect"), ("data/frame.py", "from_arrow")]
    assert opened.count(("data/duckdb.py", "connect")) == 1


def test_templates_escape_what_they_print():
    for path in SRC.rglob("*.j2"):
        text = path.read_text(encoding="utf-8")
        assert "autoescape false" not in text, path
    environments = [
        node
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) == "Environment"
    ]
    assert environments
    for node in environments:
        options = {keyword.arg: keyword.value for keyword in node.keywords}
        assert ast.literal_eval(options["autoescape"]) is True


def test_a_plan_imports_nothing_but_listed_candidates():
    import equipoise as eq
    from equipoise.exceptions import EquipoiseError

    k = list(range(60))
    data = {"g": [i % 2 for i in k], "y": [i // 2 % 2 for i in k], "p": [i // 3 % 2 for i in k]}
    audit = eq.Audit(data | {"x": k}, group="g", y_true="y", y_pred="p", features=["x"])
    for candidate in ("os.system", "antigravity", "sklearn.externals.joblib", "tests.evil.Model"):
        before = set(sys.modules)
        with pytest.raises(EquipoiseError, match="candidate"):
            audit.improvability(candidate, accuracy="accuracy")
        assert not {name for name in set(sys.modules) - before if name in candidate}


@pytest.mark.parametrize(
    ("page", "heading"),
    [("SECURITY.md", ""), ("docs/evidence.md", "## What was wrong or lost once")],
)
def test_every_promise_names_tests_that_exist(page, heading):
    root = Path(__file__).parents[2]
    _, _, text = f"\n{(root / page).read_text(encoding='utf-8')}".partition(f"\n{heading}")
    promises = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert promises
    for promise in promises:
        tests = re.findall(r"\[`(test_\w+)`\]\((?:\.\./)?(tests/[\w/.]+)\)", promise)
        assert tests, promise
        for name, file in tests:
            assert f"def {name}(" in (root / file).read_text(encoding="utf-8"), promise
