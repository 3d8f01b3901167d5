"""Run the benchmarks and write docs/benchmarks.md.

``python benchmarks/run.py [--large] [name ...]`` calls `rows()` of every module of this folder that
has one (or `large_rows()` with ``--large``; or `markdown()`, where no seconds are measured), keeps
the outcome in ``results/`` and rebuilds the page from everything that is kept there. The title of a
section is the first line of the module's docstring.
"""

import argparse
import importlib
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))

import harness  # noqa: E402

RESULTS = FOLDER / "results"
PAGE = FOLDER.parent / "docs" / "benchmarks.md"
INFRASTRUCTURE = {"harness", "run"}

HEAD = """# Benchmarks

Written by `make bench` (minutes) and `make bench-large` (37 million rows, opt-in). Every number is
the median of fresh processes, three unless the row says otherwise; inputs are prepared before the
clock starts. *CPU s* adds the user and system time of all threads; *peak MB* is the largest
resident memory of the whole process, interpreter and inputs included; *ratio* is CPU seconds of the
peer over CPU seconds of equipoise, both from the same run on the same machine. Where two programs
compute the same thing, the benchmark first asserts that their numbers agree. The *load* below each
table is the number of other processes that wanted a core when its measurements began; with more
than a few, seconds and CPU seconds grow and ratios vary. From 18 November 2026 on, BLAS has one
thread on both sides: threads that wait for others are counted as CPU seconds.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="benchmarks to run; by default all")
    parser.add_argument("--large", action="store_true", help="the opt-in set")
    parser.add_argument("--page", action="store_true", help="only rebuild the page")
    chosen = parser.parse_args()
    names = chosen.names or sorted(
        path.stem for path in FOLDER.glob("*.py") if path.stem not in INFRASTRUCTURE
    )
    for name in [] if chosen.page else names:
        module = importlib.import_module(name)
        build = getattr(module, "large_rows" if chosen.large else "rows", None)
        if not chosen.large:
            build = build or getattr(module, "markdown", None)
        if build is None:
            continue
        print(f"{name} ...", flush=True)
        load, start = os.getloadavg()[0], time.perf_counter()
        found = build()
        print(found if isinstance(found, str) else harness.table(found))
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
        keep(name, module.__doc__ or name, found, large=chosen.large, load=load)
    write_page()


def keep(name: str, doc: str, found: list[harness.Row] | str, *, large: bool, load: float) -> None:
    RESULTS.mkdir(exist_ok=True)
    kept = {
        "title": doc.strip().splitlines()[0].rstrip("."),
        "large": large,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "load": round(load, 1),
        "machine": harness.machine(),
        **(
            {"rows": [], "markdown": f"{doc.strip().partition(chr(10))[2].strip()}\n\n{found}"}
            if isinstance(found, str)
            else {"rows": harness.records(found)}
        ),
    }
    target = RESULTS / f"{name}{'-large' if large else ''}.json"
    target.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def write_page() -> None:
    everything = {
        path: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(RESULTS.glob("*.json"))
    }
    aimed = [
        harness.Row(**row) for kept in everything.values() for row in kept["rows"] if row["target"]
    ]
    parts = [HEAD, "## Targets\n\n" + harness.targets(aimed)]
    for kept in everything.values():
        rows = [harness.Row(**row) for row in kept["rows"]]
        machine = kept["machine"]
        versions = ", ".join(f"{k} {v}" for k, v in machine.items() if k != "system")
        size = " (opt-in)" if kept["large"] else ""
        load = f", load {kept['load']:g}" if "load" in kept else ""
        parts.append(
            f"## {kept['title']}{size}\n\n{kept.get('markdown') or harness.table(rows)}\n"
            f"{kept['date']}, {machine['system']}{load}; {versions}.\n"
        )
    PAGE.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
