"""What of a picture covers what: boxes of its words and of its intervals, as drawn."""

from itertools import combinations

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D
from matplotlib.text import Text

from equipoise.plot.intervals import NARROW

__all__ = ["SIZES", "collisions", "drawn", "texts"]

SIZES = {"page": mpl.rcParamsDefault["figure.figsize"][0], "phone": NARROW}


def drawn(result, size):
    """Return the figure of a result as a page or a phone has it, drawn."""
    with mpl.rc_context({"figure.figsize": (SIZES[size], 4.0), "font.size": 10.0}):
        figure = result if hasattr(result, "savefig") else result.plot().figure
        FigureCanvasAgg(figure).draw()
    return figure


def texts(figure):
    """Return the words of a figure that are seen, with their boxes."""
    renderer = figure.canvas.get_renderer()
    found = []
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip():
            box = text.get_window_extent(renderer)
            if box.width > 0 and _shown(text, figure, box):
                found.append((text, box))
    return found


def _shown(text, figure, box):
    """Whether a label of an axis is one of those within its ends."""
    for axes in figure.axes:
        for axis, low, high in (
            (axes.xaxis, axes.bbox.x0, axes.bbox.x1),
            (axes.yaxis, axes.bbox.y0, axes.bbox.y1),
        ):
            labels = [*axis.get_ticklabels(minor=False), *axis.get_ticklabels(minor=True)]
            if text in labels:
                middle = 0.5 * (box.x0 + box.x1 if axis is axes.xaxis else box.y0 + box.y1)
                rotated = axis is axes.xaxis and text.get_rotation() != 0
                return axis.get_visible() and (rotated or low - 0.01 <= middle <= high + 0.01)
    return True


def collisions(figure):
    """Return what is hard to read: words on words, words beyond the edge, lines through words."""
    found = texts(figure)
    edge = figure.bbox
    wrong = [
        f"{text.get_text()!r} leaves the picture"
        for text, box in found
        if box.x0 < edge.x0 - 1 or box.x1 > edge.x1 + 1 or box.y0 < -1 or box.y1 > edge.y1 + 1
    ]
    for (one, a), (two, b) in combinations(found, 2):
        if _over(a, b):
            wrong.append(f"{one.get_text()!r} covers {two.get_text()!r}")
    renderer = figure.canvas.get_renderer()
    lines = [
        (line, line.get_window_extent(renderer))
        for line in figure.findobj(Line2D)
        if "interval" in (line.get_gid() or "") and len(line.get_xdata())
    ]
    wrong += [
        f"{line.get_gid()} crosses {text.get_text()!r}"
        for line, a in lines
        for text, b in found
        if not text.get_gid() and _over(a, b, 2.0)
    ]
    return wrong


def _over(a, b, least=1.0):
    wide = min(a.x1, b.x1) - max(a.x0, b.x0)
    high = min(a.y1, b.y1) - max(a.y0, b.y0)
    return wide > least and high > least
