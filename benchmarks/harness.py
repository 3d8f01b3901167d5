"""Time, CPU seconds and peak memory of a function, each time in a fresh process.

A benchmark is a module of this folder with a function `rows() -> list[Row]`::

    def prepare():                       # inputs; runs before the clock starts
        ...
    def ours(inputs): ...                # return what was computed
    def peer(inputs): ...

    def rows():
        return [compare("what is computed", measure(ours, prepare), measure(peer, prepare),
                        peer="numpy loop", target="20x faster", same=close(1e-9))]

    if __name__ == "__main__":
        show(rows())

The functions must be importable (top level of the module): they are sent to a new interpreter by
name. What they return must be small and picklable; `compare` hands both returned values to `same`,
which raises unless the two computed the same quantity.
"""

import compileall
import gc
import multiprocessing
import os
import pickle
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

REPEATS = 3

# A checkout measures itself; new processes inherit the path.
SOURCE = str(Path(__file__).parents[1] / "src")
sys.path.insert(0, SOURCE)
os.environ["PYTHONPATH"] = SOURCE
if multiprocessing.parent_process() is None:
    # What pip installs, peers included, has its bytecode.
    compileall.compile_dir(SOURCE, quiet=1)
# Threads of BLAS that wait do so at full speed, and more of it the busier the machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Medians over fresh processes, and what the function returned in the last."""

    seconds: float
    cpu: float
    peak_mb: float
    repeats: int
    value: Any = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table of benchmarks; `ratio` is CPU seconds of the peer over ours."""

    work: str
    seconds: float
    cpu: float
    peak_mb: float
    peer: str
    peer_seconds: float
    peer_cpu: float
    peer_peak_mb: float
    ratio: float
    repeats: int
    peer_repeats: int
    target: str = ""
    note: str = ""


def measure(
    function: Callable[..., Any],
    prepare: Callable[[], Any] | None = None,
    *,
    repeats: int = REPEATS,
    interpreter: str | None = None,
) -> Measurement:
    """Run ``function(prepare())`` `repeats` times, each in a new process; only it is timed.

    The peak is that of the resident memory while `function` runs, inputs and interpreter included.
    Another `interpreter` needs numpy and what the function imports; it is told names, not objects.
    """
    runs = []
    for _ in range(repeats):
        if interpreter is not None:
            runs.append(_elsewhere(interpreter, function, prepare))
            continue
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
            runs.append(pool.submit(_timed, function, prepare).result())
    return Measurement(
        seconds=median(run[0] for run in runs),
        cpu=median(run[1] for run in runs),
        peak_mb=max(run[2] for run in runs),
        repeats=repeats,
        value=runs[-1][3],
    )


def peers() -> str:
    """Return the interpreter of the peers' own environment, ``$EQUIPOISE_PEERS``."""
    found = Path(os.environ.get("EQUIPOISE_PEERS", ""))
    if not found.is_file():
        raise SystemExit("EQUIPOISE_PEERS must name the python with the group `peers` installed.")
    # Not resolved: the link is what tells Python its environment.
    return str(found.absolute())


def compare(
    work: str,
    ours: Measurement,
    theirs: Measurement,
    *,
    peer: str,
    target: str = "",
    same: Callable[[Any, Any], None] | None = None,
    times: float = 1.0,
    note: str = "",
) -> Row:
    """Return a line of the table, after `same` has seen that both computed the same quantity.

    `times` is for a peer that was measured on a stated fraction of the work: its seconds are
    multiplied by it, and `note` must say so.
    """
    if same is not None:
        same(ours.value, theirs.value)
    if times != 1.0 and not note:
        raise ValueError("an extrapolated peer needs a note that says how")
    return Row(
        work=work,
        seconds=ours.seconds,
        cpu=ours.cpu,
        peak_mb=ours.peak_mb,
        peer=peer,
        peer_seconds=theirs.seconds * times,
        peer_cpu=theirs.cpu * times,
        peer_peak_mb=theirs.peak_mb,
        ratio=theirs.cpu * times / ours.cpu,
        repeats=ours.repeats,
        peer_repeats=theirs.repeats,
        target=target,
        note=note,
    )


def close(tolerance: float) -> Callable[[Any, Any], None]:
    """Return a check that two arrays (or dicts of arrays) agree to a relative tolerance."""

    def check(ours: Any, theirs: Any) -> None:
        if isinstance(ours, dict):
            if sorted(ours) != sorted(theirs):
                raise AssertionError(f"keys differ: {sorted(ours)[:5]} and {sorted(theirs)[:5]}")
            for name, value in ours.items():
                np.testing.assert_allclose(value, theirs[name], rtol=tolerance, err_msg=str(name))
            return
        np.testing.assert_allclose(ours, theirs, rtol=tolerance)

    return check


HEADER = (
    "| work | seconds | CPU s | peak MB | peer | seconds | CPU s | peak MB | ratio | target |",
    "|---|---|---|---|---|---|---|---|---|---|",
)


def table(rows: list[Row]) -> str:
    """Write the rows as a Markdown table, notes below."""
    lines = list(HEADER)
    notes = []
    for row in rows:
        mark = ""
        runs = (("equipoise", row.repeats), ("the peer", row.peer_repeats))
        once = " and ".join(who for who, repeats in runs if repeats == 1)
        note = f"{row.note} One run of {once}.".strip() if once else row.note
        if note:
            notes.append(note)
            mark = f" [{len(notes)}]"
        lines.append(
            f"| {row.work}{mark} | {row.seconds:.3g} | {row.cpu:.3g} | {row.peak_mb:,.0f} |"
            f" {row.peer} | {_short(row.peer_seconds)} | {_short(row.peer_cpu)} |"
            f" {row.peer_peak_mb:,.0f} | {_ratio(row.ratio)} | {row.target} |"
        )
    lines += ["", *(f"[{k}] {note}" for k, note in enumerate(notes, 1))] if notes else []
    return "\n".join(lines) + "\n"


def targets(rows: list[Row]) -> str:
    """Write what was aimed at beside what was measured; the notes stand in the sections."""
    lines = ["| work | target | peer | ratio | CPU s | peak MB |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {row.work} | {row.target} | {row.peer} | {_ratio(row.ratio)} | {row.cpu:.3g} |"
        f" {row.peak_mb:,.0f} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def show(rows: list[Row]) -> None:
    """Print the table."""
    print(table(rows))


def records(rows: list[Row]) -> list[dict[str, Any]]:
    """Return the rows as plain dicts, to be kept as JSON."""
    return [asdict(row) for row in rows]


def machine() -> dict[str, str]:
    """Say what the numbers were measured on."""
    from importlib.metadata import version

    packages = ("numpy", "scipy", "narwhals", "duckdb")
    return {
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ratio(value: float) -> str:
    return f"{_short(value)}x" if value >= 1 else f"1 / {1 / value:.3g}"


def _timed(
    function: Callable[..., Any], prepare: Callable[[], Any] | None
) -> tuple[float, float, float, Any]:
    inputs = () if prepare is None else (prepare(),)
    gc.collect()
    _reset_peak()
    cpu, start = _cpu(), time.perf_counter()
    value = function(*inputs)
    return time.perf_counter() - start, _cpu() - cpu, _peak_mb(), value


CHILD = """
import importlib, pickle, sys
import harness
module = importlib.import_module(sys.argv[1])
run = harness._timed(getattr(module, sys.argv[2]), getattr(module, sys.argv[3]))
with open(sys.argv[4], "wb") as file:
    pickle.dump(run, file)
"""


def _elsewhere(
    interpreter: str, function: Callable[..., Any], prepare: Callable[[], Any] | None
) -> tuple[float, float, float, Any]:
    assert prepare is not None
    module = Path(function.__code__.co_filename).stem
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "run"
        names = (module, function.__name__, prepare.__name__, str(result))
        subprocess.run(
            [interpreter, "-c", CHILD, *names],
            check=True,
            cwd=Path(__file__).parent,
            stderr=subprocess.DEVNULL,
        )
        run: tuple[float, float, float, Any] = pickle.loads(result.read_bytes())
    return run


def _cpu() -> float:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in usage)


def _reset_peak() -> None:
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_mb() -> float:
    if sys.platform == "linux":
        # ru_maxrss would start from the peak of the parent process.
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
