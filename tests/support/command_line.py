"""The command line as tests call it: plans, processes and complaints."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import equipoise

MODULE = ("-m", "equipoise.cli.app")
SRC = str(Path(equipoise.__file__).parents[1])

PLAN = """
[data]
path = "loans.csv"
group = "sex"
y_pred = "approved"

[[check]]
id = "gaps"
question = "disparity"
metric = "selection_rate"

[[check]]
id = "within"
question = "certify"
metric = "selection_rate"
margin = {margin}
"""


class Done:
    """How a run ended."""

    def __init__(self, returncode, stdout, stderr):
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr


def write_plan(folder, margin=0.3, text=PLAN):
    file = folder / "audit.toml"
    file.write_text(text.format(margin=margin), encoding="utf-8")
    return file


def start(code, *arguments, cwd, first=lambda: None, **options):
    """Run the command line in a process of its own, which calls `first` before it starts."""

    def prepare():
        # A shell lets its background ignore interrupts and hang-ups.
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        first()

    return subprocess.Popen(
        [sys.executable, *code, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": SRC, "OMP_NUM_THREADS": "1"} | options.pop("env", {}),
        preexec_fn=prepare,  # noqa: PLW1509 (no thread of the tests holds a lock of its imports)
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options},
    )


def complaint(done, code=2):
    """The single line of a run that went wrong."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("check ")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]
