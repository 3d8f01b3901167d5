"""R is asked again where it is installed: its scripts give the numbers that are kept."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPTS = ["others", "stats/regulator", "stats/few_units", "stats/delong"]
PACKAGES = [
    "survey",
    "coin",
    "multcomp",
    "epitools",
    "clubSandwich",
    "pROC",
    "metafor",
    "mvtnorm",
    "jsonlite",
]


@pytest.fixture(scope="module")
def rscript():
    command = shutil.which("Rscript")
    if command is None:
        pytest.skip("R is not installed")
    names = ", ".join(f'"{name}"' for name in PACKAGES)
    ask = f"cat(setdiff(c({names}), rownames(installed.packages())))"
    said = subprocess.run([command, "-e", ask], capture_output=True, text=True, check=True)
    if said.stdout:
        pytest.skip(f"R has no {said.stdout.replace(' ', ', ')}")
    return command


def leaves(value, place=""):
    """Return every number and word of a JSON value by its place."""
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    else:
        return {place: value}
    return {
        name: leaf for key, part in parts for name, leaf in leaves(part, f"{place}/{key}").items()
    }


@pytest.mark.parametrize("script", SCRIPTS)
def test_r_still_says_what_is_kept(rscript, script):
    said = subprocess.run(
        [rscript, str(HERE / f"{script}.R")], capture_output=True, text=True, check=True
    )
    kept = leaves(json.loads((HERE / f"{script}.json").read_text(encoding="utf-8")))
    now = leaves(json.loads(said.stdout))
    assert list(now) == list(kept)
    for place in (place for place, value in kept.items() if isinstance(value, (int, float))):
        assert now[place] == pytest.approx(kept[place], rel=_exactness(place), abs=1e-12), place


def _exactness(place):
    """Return how near another version of R must come: searches and quadrature stop elsewhere."""
    return 2e-4 if place.split("/")[1] in {"range", "dunnett", "single_step"} else 1e-9
