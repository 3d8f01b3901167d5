"""Store what users see now as what they shall see: ``python tests/golden/bless.py [NAME ...]``."""

import sys
import tempfile
from pathlib import Path

OWED = """
Every change above must be meant. Say it in a fragment: changelog.d/<name>.numbers.md when a number
moved, changelog.d/<name>.fixed.md when words or fields did."""


def main(names):
    from golden.cases import CASES, RUNS
    from golden.golden import EXPECTED, differences, seen_in_case, seen_in_run, stored, write

    changed = False
    for name in names or [*CASES, *RUNS]:
        if name in CASES:
            seen = seen_in_case(name)
        else:
            with tempfile.TemporaryDirectory() as folder:
                seen = seen_in_run(name, Path(folder))
        if not (EXPECTED / f"{name}.json").exists():
            print(f"{name}: new")
        elif found := differences(stored(name), seen):
            print(f"{name}: {len(found)} changed", *found[:5], sep="\n    ")
        else:
            continue
        changed = True
        write(name, seen)
    for file in sorted(EXPECTED.glob("*.json")):
        if file.stem not in CASES and file.stem not in RUNS:
            print(f"{file.stem}: gone")
            changed = True
            file.unlink()
    print(OWED if changed else "Nothing changed.")


if __name__ == "__main__":
    # `golden` must mean this folder, not the module of that name beside this file.
    sys.path[0] = str(Path(__file__).parents[1])
    main(sys.argv[1:])
