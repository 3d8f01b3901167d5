"""The notebooks of the docs run, and print what the site shows."""

import importlib.util
import re
from pathlib import Path

import pytest
from matplotlib import rc_context
from matplotlib.text import Text

DOCS = Path(__file__).parents[2] / "docs"
BOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))


@pytest.fixture(scope="module")
def notebooks():
    source = importlib.util.spec_from_file_location("notebooks", DOCS / "notebooks.py")
    module = importlib.util.module_from_spec(source)
    source.loader.exec_module(module)
    return module


def test_there_is_a_notebook_for_each_audience_and_figure():
    assert [path.stem for path in BOOKS] == [
        "experiment",
        "gallery",
        "health",
        "hiring",
        "lending",
        "monitoring",
    ]


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_and_draws_what_it_shows(path, notebooks, data_file, monkeypatch):
    kept = notebooks.read(path)
    source = "".join(line for cell in kept["cells"] for line in cell["source"])
    if "EQUIPOISE_DATA" in source:
        monkeypatch.setenv("EQUIPOISE_DATA", str(data_file("hillstrom.csv.gz").parent))
    again = notebooks.executed(kept)
    assert notebooks.texts(again) == notebooks.texts(kept)
    assert pictures(again) == pictures(kept) > 0


def pictures(notebook):
    outputs = [o for cell in notebook["cells"] for o in cell.get("outputs", ())]
    return sum("image/png" in output.get("data", {}) for output in outputs)


def test_the_gallery_has_a_figure_of_every_question(notebooks):
    from equipoise.results.question import questions

    (gallery,) = (path for path in BOOKS if path.stem == "gallery")
    source = "".join(line for cell in notebooks.read(gallery)["cells"] for line in cell["source"])
    drawn = {question.drawing for name, question in questions().items() if f"{name}(" in source}
    assert drawn == {question.drawing for question in questions().values()}


@pytest.mark.parametrize("width", [6.4, 3.9], ids=["page", "phone"])
def test_no_word_of_a_figure_is_cut_off(notebooks, monkeypatch, width):
    (gallery,) = (path for path in BOOKS if path.stem == "gallery")
    cut = []

    def watch(axes):
        figure = axes.get_figure()
        figure.draw_without_rendering()
        page = figure.bbox.padded(3.0)
        for text in figure.findobj(Text):
            box = text.get_window_extent()
            # A tick beyond the axis has a label that is not drawn.
            if not re.fullmatch(r"[−\d.]*", text.get_text()) and text.get_visible():
                inside = page.x0 <= box.x0 and box.x1 <= page.x1
                if not (inside and page.y0 <= box.y0 and box.y1 <= page.y1):
                    cut.append((figure.axes[0].get_xlabel(), text.get_text()))
        return {"text/plain": ["<Axes>"]}

    monkeypatch.setattr(notebooks, "_data", watch)
    with rc_context({"figure.figsize": (width, 4.0)}):
        notebooks.executed(notebooks.read(gallery))
    assert sorted(set(cut)) == []


def test_a_cell_that_fails_raises(notebooks):
    cell = {"cell_type": "code", "source": ["1 / 0"], "metadata": {}}
    with pytest.raises(ZeroDivisionError):
        notebooks.executed({"cells": [cell]})
