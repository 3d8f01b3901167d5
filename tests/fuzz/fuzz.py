"""Breed inputs guided by coverage: ``python tests/fuzz/fuzz.py plan 900``.

Needs atheris. Stops after the given seconds; an input that breaks a target is written to a file
``crash-...`` in the working folder and its traceback printed.
"""

import sys
import warnings
from pathlib import Path

import atheris

sys.path[:0] = [str(Path(__file__).parents[2] / "src"), str(Path(__file__).parents[1])]
warnings.simplefilter("error")

with atheris.instrument_imports(include=["equipoise", "tomllib"]):
    from fuzz.targets import SEEDS, TARGETS


def main(name, seconds):
    corpus = Path(f"fuzz-corpus-{name}")
    corpus.mkdir(exist_ok=True)
    for k, seed in enumerate(SEEDS[name]):
        (corpus / f"seed-{k}").write_bytes(seed)
    options = [f"-max_total_time={seconds}", "-max_len=4096", "-timeout=60", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], str(corpus), *options], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
