"""Nothing in the picture of predicted effects covers anything else, on a page and on a phone."""

from itertools import combinations
from typing import get_args

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import equipoise as eq
from equipoise._typing import Correction
from equipoise.audits.effects.questions import CORRECTION_WORDS

CITIES = np.array(["Aarhus and others", "Berlin", "Cork", "Dar es Salaam", "Essen", "Frankfurt"])


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(4)
    group, arm = rng.integers(6, size=3000), rng.integers(2, size=3000)
    rows = {
        "city": CITIES[group],
        "t": arm,
        "y": rng.normal(size=3000) + arm * np.array([0.3, 0.3, -0.2, 0.5, 0.33, 0.6])[group],
        # Five of six predictions nearly agree, so that their names are near each other.
        "e": np.array([0.30, 0.31, 0.32, 0.50, 0.33, 0.1])[group],
    }
    audit = eq.Audit(rows, group="city", y_true="y", treatment="t", effect_pred="e")
    return audit.treatment_effects(measure="difference", n_repeats=0, rng=1)


@pytest.fixture(params=[8.5, 3.9], ids=["page", "phone"])
def panels(request, result):
    with mpl.rc_context({"figure.figsize": (request.param, 4.0)}):
        figure = result.plot().figure
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    return figure.axes


def boxes(axes, chosen):
    renderer = axes.figure.canvas.get_renderer()
    artists = axes.findobj(lambda artist: chosen(artist.get_gid() or "", artist))
    return [artist.get_window_extent(renderer) for artist in artists]


def words(axes):
    texts = [text for text in axes.texts if text.get_text()]
    return [text.get_window_extent(axes.figure.canvas.get_renderer()) for text in texts]


def test_names_of_points_do_not_cover_each_other(panels):
    names = boxes(panels[1], lambda gid, _: gid.endswith("-name"))
    assert len(names) == 6
    assert not any(a.overlaps(b) for a, b in combinations(names, 2))


def test_names_of_points_stay_inside_their_panel(panels):
    inside = panels[1].get_window_extent()
    for name in boxes(panels[1], lambda gid, _: gid.endswith("-name")):
        assert inside.x0 <= name.x0
        assert name.x1 <= inside.x1


def test_what_remains_crosses_no_word(panels):
    grey = boxes(panels[0], lambda gid, _: gid.endswith("after-interval"))
    assert len(grey) == 6
    assert not any(line.overlaps(text) for line in grey for text in words(panels[0]))


def test_words_beside_lines_do_not_cover_each_other(panels):
    assert not any(a.overlaps(b) for a, b in combinations(words(panels[0]), 2))


def test_every_rule_of_correction_has_words_and_no_picture_has_codes(panels):
    assert list(CORRECTION_WORDS) == list(get_args(Correction))
    assert len(set(CORRECTION_WORDS.values())) == len(CORRECTION_WORDS)
    legends = [axes.get_legend() for axes in panels if axes.get_legend()]
    assert legends
    said = [text.get_text() for legend in legends for text in legend.get_texts()]
    assert "no correction" in said
    assert not [words for words in said if "_" in words]
