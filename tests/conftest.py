import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, settings

# Read by mypy, run by nothing; run by hand, with a library of its own.
collect_ignore = ["typing", "fuzz/fuzz.py", "reference/econml"]

# The same examples in every run: a red test is then a change of ours. The fuzzers draw new ones.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
settings.register_profile("unshrunk", phases=[Phase.explicit, Phase.reuse, Phase.generate])

DATA = Path(os.environ.get("EQUIPOISE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the opt-in tests marked slow too")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="opt-in: run with --slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


@pytest.fixture
def seed():
    """Seed of a simulation; EQUIPOISE_SEED gives another."""
    return int(os.environ.get("EQUIPOISE_SEED", "20240601"))


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture(scope="session")
def data_file():
    """Path of a file of the shared data folder; the test skips when it is absent."""

    def path(name):
        file = DATA / name
        if not file.exists():
            pytest.skip(f"{name} is not in {DATA}; set EQUIPOISE_DATA to the folder that has it")
        return file

    return path
