"""Scripts beside the pages, for the tests of what they print and draw."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "reproductions"


@pytest.fixture(scope="module")
def reproduction(data_file):
    """Load a script by name, with the folder of the data files that it needs."""
    with pytest.MonkeyPatch.context() as patch:

        def load(name, *files):
            (folder,) = {data_file(file).parent for file in files}
            patch.setenv("EQUIPOISE_DATA", str(folder))
            spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module

        yield load
