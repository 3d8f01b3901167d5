"""Starting up: importing the package and asking the command line for help."""

import subprocess
import sys

from harness import Row, compare, measure, show


def _run(*arguments):
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def ours():
    _run("-c", "import equipoise")


def audit_class():
    _run("-c", "from equipoise import Audit")


def command_line():
    _run("-m", "equipoise", "--help")


def numpy_alone():
    _run("-c", "import numpy")


def fairlearn():
    _run("-c", "import fairlearn.metrics")


def rows() -> list[Row]:
    note = (
        "What is public is loaded when it is first used. Peak MB is that of the process that starts"
        " the interpreter, not of the interpreter."
    )
    return [
        compare(
            "`import equipoise`",
            measure(ours),
            theirs := measure(fairlearn),
            peer="`import fairlearn.metrics`",
            target="under 0.5 s",
            note=note,
        ),
        compare(
            "`from equipoise import Audit`",
            measure(audit_class),
            theirs,
            peer="`import fairlearn.metrics`",
            target="under 0.5 s",
            note="No engine, no scipy.optimize, no scikit-learn, no pandas is loaded.",
        ),
        compare(
            "`equipoise --help`",
            measure(command_line),
            measure(numpy_alone),
            peer="`import numpy`",
            target="under 0.5 s",
        ),
    ]


if __name__ == "__main__":
    show(rows())
