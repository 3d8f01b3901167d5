"""Compute what a user sees, mask what may differ from run to run, compare with what is stored.

Simultaneous intervals take a root of a matrix, and its last digits depend on the BLAS: here it has
one thread, and what is stored was computed with the Haswell kernels of OpenBLAS. A processor for
which OpenBLAS chooses others needs ``OPENBLAS_CORETYPE=Haswell``.
"""

import json
import math
import os
import re
from contextlib import chdir, redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pyarrow.csv
import scipy.linalg  # noqa: F401  (a limit holds for libraries that are loaded)
from threadpoolctl import threadpool_limits

from equipoise.cli.app import main
from equipoise.exceptions import EquipoiseError
from golden.cases import CASES, RUNS, table

__all__ = [
    "EXPECTED",
    "TEN_DIGITS",
    "differences",
    "seen_in_case",
    "seen_in_run",
    "stored",
    "write",
]

EXPECTED = Path(__file__).parent / "expected"

TEN_DIGITS = 5e-10
"""Largest relative difference of two numbers that agree to ten significant digits."""

ROUNDING = 1e-11
"""What is left of zero after sums of numbers around 1; p-values are never taken for zero."""

MASKED = ("schema_version", "created", "versions")
_DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
_VERSION = re.compile(r"(?<=equipoise )\d+(\.\w+)+")
_FOLDER = re.compile(r'(?<=path = ")[^"]*/')


@threadpool_limits.wrap(limits=1, user_api="blas")
def seen_in_case(name, data=None):
    """Return what a question shows, asked of its table or of the same rows in another frame."""
    case = CASES[name]
    try:
        result = case.ask(table(case.table) if data is None else data)
    except EquipoiseError as error:
        return {"refused": f"{type(error).__name__}: {error}"}
    return {
        "to_dict": _masked(result.to_dict()),
        "str": str(result).splitlines(),
        "html": re.sub(r">(?=<(?:tr|p|table|/table))", ">\n", result._repr_html_()).splitlines(),
    }


@threadpool_limits.wrap(limits=1, user_api="blas")
def seen_in_run(name, folder):
    """Return what a run of the command line prints and writes."""
    run = RUNS[name]
    if run.table is not None:
        pyarrow.csv.write_csv(table(run.table), folder / f"{run.table}.csv")
    if run.plan is not None:
        (folder / "audit.toml").write_text(run.plan, encoding="utf-8")
    out, err = (TextIOWrapper(BytesIO(), encoding="utf-8") for _ in range(2))
    code = 0
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        try:
            main(run.arguments.split())
        except SystemExit as left:
            code = left.code
    seen = {"code": code, "stdout": _printed(out), "stderr": _printed(err)}
    if (folder / "results.json").exists():
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        page = _Text.of((folder / "report.html").read_text(encoding="utf-8"))
        junit = (folder / "junit.xml").read_text(encoding="utf-8")
        seen["results"] = _masked(results)
        seen["report"] = _unversioned(page, results["versions"])
        seen["junit"] = [_unplaced(line) for line in junit.replace("><", ">\n<").splitlines()]
    elif run.plan is None and (folder / "audit.toml").exists():
        seen["plan"] = (folder / "audit.toml").read_text(encoding="utf-8").splitlines()
    return seen


def stored(name):
    """Return what is stored of a case or run."""
    return json.loads((EXPECTED / f"{name}.json").read_text(encoding="utf-8"))


def write(name, seen):
    """Store what was seen, numbers to twelve digits, a line for each short value."""
    EXPECTED.mkdir(exist_ok=True)
    (EXPECTED / f"{name}.json").write_text(_lines(_rounded(seen)) + "\n", encoding="utf-8")


def differences(expected, actual, *, tolerance=TEN_DIGITS, path=""):
    """List where two values differ: other words, other keys, numbers outside the tolerance."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        keys = [*expected, *(key for key in actual if key not in expected)]
        found = []
        for key in keys:
            place = f"{path}.{key}".lstrip(".")
            if key not in actual:
                found.append(f"{place}: gone, was {_short(expected[key])}")
            elif key not in expected:
                found.append(f"{place}: new, is {_short(actual[key])}")
            else:
                found += differences(expected[key], actual[key], tolerance=tolerance, path=place)
        return found
    if _is_list(expected) and _is_list(actual) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        return [
            found
            for i, (one, two) in pairs
            for found in differences(one, two, tolerance=tolerance, path=f"{path}[{i}]")
        ]
    if _is_number(expected) and _is_number(actual):
        zero = 0.0 if "p_value" in path else ROUNDING
        same = math.isclose(expected, actual, rel_tol=tolerance, abs_tol=zero)
    else:
        same = type(expected) is type(actual) and expected == actual
    return (
        [] if same else [f"{path}: was {_short(expected, actual)}, is {_short(actual, expected)}"]
    )


def _is_list(value):
    return isinstance(value, list | tuple)


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value, other=None):
    """Return the beginning of a value, or the place where it first differs from the other."""
    text = repr(value)
    if len(text) <= 200:
        return text
    alike = os.path.commonprefix([text, repr(other)])  # noqa: RUF071  (characters are meant)
    start = max(len(alike) - 40, 0)
    return f"{'...' if start else ''}{text[start : start + 200]}..."


def _masked(value):
    if isinstance(value, dict):
        return {key: "*" if key in MASKED else _masked(part) for key, part in value.items()}
    if isinstance(value, str):
        return _unplaced(value)
    return [_masked(part) for part in value] if _is_list(value) else value


def _unplaced(text):
    """Mask when, by which version and in which folder a text was written."""
    return _FOLDER.sub("*/", _VERSION.sub("*", _DATE.sub("*", text)))


def _printed(stream):
    stream.flush()
    return [_unplaced(line) for line in stream.buffer.getvalue().decode().splitlines()]


def _unversioned(lines, versions):
    """Mask dates everywhere, and versions where a report lists them."""
    start = lines.index("Versions")
    known = set(versions.values())
    return ["*" if i > start and line in known else _unplaced(line) for i, line in enumerate(lines)]


def _rounded(value):
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if _is_list(value):
        return [_rounded(part) for part in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


def _lines(value, indent=""):
    """Write JSON with short values on one line, so that a difference is easy to read."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    lines_of_text = _is_list(value) and value and isinstance(value[0], str)
    if not isinstance(value, dict | list | tuple) or (len(text) <= 150 and not lines_of_text):
        return text
    deeper = f"{indent} "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_lines(part, deeper)}" for key, part in value.items()]
    else:
        parts = [_lines(part, deeper) for part in value]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    inner = f",\n{deeper}".join(parts)
    return f"{opened}\n{deeper}{inner}\n{indent}{closed}"


class _Text(HTMLParser):
    """The words of a page: a line for each block, cells apart, no script, style or figure."""

    SKIPPED = ("script", "style", "svg")
    INLINE = ("a", "bdi", "code", "em", "span", "strong", "sub", "sup")
    CELLS = ("td", "th")

    def __init__(self):
        super().__init__()
        self.parts, self.skipping = [], 0

    @classmethod
    def of(cls, page):
        parser = cls()
        parser.feed(page)
        parser.close()
        blocks = "".join(parser.parts).split("\0")
        lines = [re.sub(r"\s+", " ", block).strip(" |") for block in blocks]
        return [line for line in lines if line]

    def handle_starttag(self, tag, attrs):  # noqa: ARG002  (the parser's own signature)
        self.skipping += tag in self.SKIPPED
        self._break(tag)

    def handle_endtag(self, tag):
        self.skipping -= tag in self.SKIPPED
        self._break(tag)

    def handle_data(self, data):
        if not self.skipping:
            self.parts.append(data)

    def _break(self, tag):
        if self.skipping or tag in self.INLINE:
            return
        self.parts.append(" | " if tag in self.CELLS else "\0")
