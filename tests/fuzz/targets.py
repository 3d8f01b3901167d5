"""Functions that must survive any bytes: they return, or raise an `EquipoiseError` of one line."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import equipoise as eq
from equipoise.exceptions import EquipoiseError
from equipoise.plans.plan import read_plan
from support.asking import answer_of

__all__ = ["SEEDS", "TARGETS"]

PLAN = b"""[data]
path = "loans.csv"
group = ["race", "sex"]
y_true = "repaid"
y_pred = "approved"
bins = { age = [25, 45] }

[[check]]
question = "flag"
metric = "fpr"
margin = 0.05
reference = { race = "White" }

[report]
title = "Loans"
"""

CSV = b"""g,h,y,p,s
a,x,1,0,0.25
b,x,0,1,1e-3
"a, b",y,1,1,-4
b,,0,0,NA
\xc3\xa9,"q""q",1,0,3
"""

TABLES = [CSV, CSV.replace(b",", b";"), CSV.replace(b"\n", b"\r\n")]
SEEDS = {"audit": TABLES, "csv": TABLES, "plan": [PLAN]}
"""Inputs that are right, from which wrong ones are bred."""


def _plan(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "plan.toml"
        file.write_bytes(content)
        read_plan(file)


def _csv(content: bytes) -> None:
    """Read a file and count its labels by group."""
    with _audit_of(content) as audit:
        answer_of(audit.table.label_sums(("y_true", "y_pred")))


def _audit(content: bytes) -> None:
    """Read a file and print an audit of it; five times slower than reading alone."""
    with _audit_of(content) as audit:
        str(audit.disparity("accuracy"))


@contextmanager
def _audit_of(content: bytes) -> Iterator[eq.Audit]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        file.write_bytes(content)
        yield eq.Audit(file, group="g", y_true="y", y_pred="p", missing="drop")


def _survived(target):
    def attempt(content: bytes) -> None:
        try:
            target(content)
        except EquipoiseError as error:
            if "\n" in str(error):
                raise AssertionError(str(error)) from error

    return attempt


TARGETS = {"audit": _survived(_audit), "csv": _survived(_csv), "plan": _survived(_plan)}
