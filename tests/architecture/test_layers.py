"""Arrows between packages point down only, and the core stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise

SRC = Path(equipoise.__file__).parent
LEAVES = {"exceptions", "_blas", "_checks", "_names", "_numbers", "_typing", "_version"}

ALLOWED = {
    "moments": LEAVES,
    "stats": LEAVES | {"moments"},
    "data": LEAVES | {"moments"},
    "results": LEAVES,
    "design": LEAVES | {"stats"},
    "search": LEAVES | {"stats", "data"},
    "mitigation": LEAVES | {"stats"},
    "monitoring": LEAVES | {"stats"},
    "audits": LEAVES | {"moments", "stats", "data", "results", "search", "design", "monitoring"},
    "plans": LEAVES | {"audits", "results", "data", "monitoring"},
    "plot": LEAVES | {"audits", "results", "stats", "design"},
    "report": LEAVES | {"plans", "audits", "results", "plot", "stats", "design"},
    "cli": LEAVES
    | {"plans", "audits", "results", "plot", "report", "data", "design", "datasets", "monitoring"},
    "datasets": LEAVES | {"data"},
    "testing": LEAVES | {"plans", "audits", "results"},
    "integrations": LEAVES | {"plans", "results", "testing"},
}

HEAVY = {
    *("matplotlib", "jinja2", "typer", "rich"),
    *("duckdb", "pyspark", "pandas", "polars", "pyarrow"),
}

OWN = {"cli": {"typer"}, "report": {"jinja2"}}  # packages that `import equipoise` does not load

MODULES = sorted(SRC.rglob("*.py"))
every_module = pytest.mark.parametrize(
    "path", MODULES, ids=[str(path.relative_to(SRC)) for path in MODULES]
)


def package_of(path):
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@every_module
def test_a_module_imports_only_what_lies_below_it(path):
    package = package_of(path)
    if package not in ALLOWED:
        return
    allowed = ALLOWED[package] | {package}
    if path.relative_to(SRC) == Path("results/result.py"):
        allowed |= {"plot"}  # AuditResult.plot imports it inside the method
    names = imported(ast.walk(parsed(path)))
    assert {name.split(".")[1] for name in names if name.startswith("equipoise.")} <= allowed


@every_module
def test_heavy_libraries_are_imported_where_they_are_used(path):
    heavy = HEAVY - OWN.get(package_of(path), set())
    assert not {name.split(".")[0] for name in imported(parsed(path).body)} & heavy


@every_module
def test_the_engines_need_numpy_and_scipy_only(path):
    if package_of(path) != "stats":
        return
    world = {name.split(".")[0] for name in imported(ast.walk(parsed(path)))}
    assert world <= set(sys.stdlib_module_names) | {"numpy", "scipy", "equipoise"}


@every_module
def test_a_module_lists_its_exports(path):
    listed = [
        ast.literal_eval(node.value)
        for node in parsed(path).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    ]
    if not listed:
        assert path.name in {"__init__.py", "__main__.py", "_typing.py"}
        return
    name = ".".join(("equipoise", *path.relative_to(SRC).with_suffix("").parts))
    module = __import__(name.removesuffix(".__init__"), fromlist=["*"])
    assert all(hasattr(module, export) for export in listed[0])
    assert sorted(set(listed[0])) == sorted(listed[0])


SLOW_PARTS = {"sklearn", "scipy.linalg", "scipy.optimize", "scipy.stats", "urllib.request"}


def loaded_by(code):
    """Return which heavy libraries and slow parts a new interpreter has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(SRC.parent)},
    )
    modules = set(done.stderr.split())
    return (SLOW_PARTS & modules) | (HEAVY & {name.split(".")[0] for name in modules})


def test_importing_equipoise_loads_no_heavy_library():
    assert not loaded_by("import equipoise")


def test_the_class_of_audits_loads_no_engine():
    assert loaded_by("from equipoise import Audit") <= {"narwhals"}


def test_help_of_the_command_line_loads_no_engine_and_no_statistics():
    loaded = loaded_by(
        "from equipoise.cli.app import app\nfrom typer.testing import CliRunner\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0"
    )
    assert loaded <= {"typer", "rich"}


def test_an_audit_of_a_file_loads_no_other_frames_and_no_linear_algebra(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("g,p\n" + "a,0\nb,1\na,1\nb,0\n" * 25)
    loaded = loaded_by(
        "import equipoise\n"
        f"audit = equipoise.Audit({str(file)!r}, group='g', y_pred='p')\n"
        "str(audit.disparity('selection_rate'))"
    )
    assert not loaded & {"pandas", "polars", "pyspark", "sklearn", "scipy.linalg", "matplotlib"}


def test_subpackages_are_imported_on_first_use():
    assert equipoise.design.power is not None
    with pytest.raises(AttributeError, match="has no attribute 'desing'"):
        equipoise.desing  # noqa: B018
