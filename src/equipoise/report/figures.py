"""Pictures of results as inline SVG that follows the page's colours and has a text alternative."""

import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from markupsafe import Markup

from equipoise._names import printable
from equipoise.plot.intervals import NARROW
from equipoise.plot.overview import overview, overview_groups, overview_results
from equipoise.results.result import AuditResult
from equipoise.results.wording import finding_words, headline, metric_words, picture_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure", "overview_figure"]

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"

# Colours of the plots become variables of the page, so that a dark page has a dark figure. The
# plot's own colour stays as the fallback.
_VARIABLES = {
    "#000000": "--fig-ink",
    "#222222": "--fig-ink",
    "#333333": "--fig-ink",
    "#444444": "--fig-axis",
    "#555555": "--fig-axis",
    "#666666": "--fig-axis",
    "#767676": "--fig-muted",
    "#777777": "--fig-muted",
    "#808080": "--fig-muted",
    "#888888": "--fig-muted",
    "#999999": "--fig-muted",
    "#bbbbbb": "--fig-grid",
    "#b0b0b0": "--fig-grid",
    "#cccccc": "--fig-grid",
    "#dddddd": "--fig-grid",
    "#ffffff": "--fig-paper",
    "#0072b2": "--fig-blue",
    "#009e73": "--fig-green",
    "#d55e00": "--fig-vermilion",
    "#e69f00": "--fig-orange",
    "#56b4e9": "--fig-sky",
    "#cc79a7": "--fig-purple",
    "#f0e442": "--fig-yellow",
}
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")

_RC = {
    "svg.fonttype": "none",
    "svg.hashsalt": "equipoise",
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def figure(result: AuditResult, *, prefix: str) -> Markup:
    """Draw a result as two ``<svg>`` elements: one for a page, one for a phone.

    Parameters
    ----------
    result : AuditResult
        Drawn by its own `plot`.
    prefix : str
        Put before every identifier, so that several figures can share a page.

    Returns
    -------
    markupsafe.Markup
        The elements, of which the page shows one; text from the data is escaped, hover titles give
        the values.
    """

    def draw() -> "Figure":
        return cast("Figure", result.plot().get_figure(root=True))

    title, description = picture_words(result)
    drawn = []
    for wide in (True, False):
        name = prefix if wide else f"{prefix}-narrow"
        root = _scalable(draw, name, wide=wide)
        _hover(root, result, name)
        drawn.append(_told(root, name, title, description, wide=wide))
    return Markup("").join(drawn)


def overview_figure(results: Sequence[AuditResult]) -> Markup | None:
    """Draw groups by metrics, for a page and for a phone; None where no result compares shares."""
    chosen = overview_results(results)
    if not chosen or not overview_groups(chosen):
        return None
    nouns = ", ".join(metric_words(result) for result in chosen)
    described = " ".join(headline(result) for result in chosen)
    title = f"Every group and metric: {nouns}"
    return Markup("").join(
        _told(
            _scalable(lambda: overview(chosen), name, wide=wide), name, title, described, wide=wide
        )
        for name, wide in (("overview", True), ("overview-narrow", False))
    )


def _scalable(draw: "Callable[[], Figure]", prefix: str, *, wide: bool) -> ET.Element:
    """Return a drawing as an element whose names are its own and whose colours are the page's."""
    root = ET.fromstring(_drawn(draw, wide=wide))  # noqa: S314  (our own drawing, not foreign XML)
    # The style that matplotlib adds speaks of every element of the page.
    _remove(root, ("metadata", "style"))
    _prefix(root, prefix)
    _colour(root)
    return root


def _told(root: ET.Element, prefix: str, title: str, description: str, *, wide: bool) -> Markup:
    """Give a drawing a title and a description for those who cannot see it."""
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("class", "figure wide" if wide else "figure narrow")
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}-title {prefix}-desc")
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ET.Element(f"{{{SVG}}}{tag}", id=f"{prefix}-{tag}")
        element.text = text
        root.insert(position, element)
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704  (serialised, so escaped)


def _drawn(draw: "Callable[[], Figure]", *, wide: bool) -> str:
    from matplotlib import rc_context, rcParamsDefault

    size = rcParamsDefault["figure.figsize"] if wide else (NARROW, 4.0)
    buffer = io.StringIO()
    with rc_context(_RC | {"figure.figsize": size}), warnings.catch_warnings():
        # The browser draws the text with its own fonts; matplotlib's need not have the glyph.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        draw().savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return printable(buffer.getvalue())


def _remove(root: ET.Element, names: tuple[str, ...]) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in names:
                parent.remove(child)


def _prefix(root: ET.Element, prefix: str) -> None:
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                element.set(name, f"{prefix}-{value}")
            elif name.endswith("href") and value.startswith("#"):
                element.set(name, f"#{prefix}-{value[1:]}")
            elif "url(#" in value:
                element.set(name, _REFERENCE.sub(rf"url(#{prefix}-\1)", value))


def _colour(root: ET.Element) -> None:
    def variable(match: re.Match[str]) -> str:
        name = _VARIABLES.get(match[0])
        return match[0] if name is None else f"var({name}, {match[0]})"

    for element in root.iter():
        # A presentation attribute cannot hold var(); a style can.
        for name in ("fill", "stroke"):
            if name in element.attrib and element.attrib[name] in _VARIABLES:
                value = element.attrib.pop(name)
                element.set("style", f"{name}: {value}; {element.get('style', '')}")
        if "style" in element.attrib:
            element.set("style", _COLOUR.sub(variable, element.attrib["style"]))


def _hover(root: ET.Element, result: AuditResult, prefix: str) -> None:
    """Give every artist whose gid is ``finding-k`` or ``finding-k-part`` the values to show."""
    pattern = re.compile(rf"{re.escape(prefix)}-finding-(\d+)(-.*)?")
    found = [(one, pattern.fullmatch(one.get("id", ""))) for one in root.iter(f"{{{SVG}}}g")]
    drawn = [(one, int(match[1])) for one, match in found if match]
    places = sorted({place for _, place in drawn})
    told = finding_words(result, [result.findings[place] for place in places])
    words = dict(zip(places, told, strict=True))
    for element, place in drawn:
        title = ET.Element(f"{{{SVG}}}title")
        title.text = words[place]
        element.insert(0, title)
