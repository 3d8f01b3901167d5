"""Pictures of results as inline SVG that follows the page's colours and has a text alternative."""

import io
import re
import warnings
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, cast

from markupsafe import Markup

from equipoise.results.formats import printable
from equipoise.results.result import AuditResult
from equipoise.results.wording import finding_words, picture_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure"]

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
    """Draw a result as an ``<svg>`` element.

    Parameters
    ----------
    result : AuditResult
        Drawn by its own `plot`.
    prefix : str
        Put before every identifier, so that several figures can share a page.

    Returns
    -------
    markupsafe.Markup
        The element; text from the data is escaped, hover titles give the values.
    """
    title, description = picture_words(result)
    root = ET.fromstring(_drawn(result))  # noqa: S314  (our own drawing, not foreign XML)
    # The style that matplotlib adds speaks of every element of the page.
    _remove(root, ("metadata", "style"))
    _prefix(root, prefix)
    _colour(root)
    _hover(root, result, prefix)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("class", "figure")
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}-title {prefix}-desc")
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ET.Element(f"{{{SVG}}}{tag}", id=f"{prefix}-{tag}")
        element.text = text
        root.insert(position, element)
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704  (serialised, so escaped)


def _drawn(result: AuditResult) -> str:
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context(_RC), warnings.catch_warnings():
        # The browser draws the text with its own fonts; matplotlib's need not have the glyph.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        drawing = cast("Figure", result.plot().get_figure(root=True))
        drawing.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
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
    for element in root.iter(f"{{{SVG}}}g"):
        match = pattern.fullmatch(element.get("id", ""))
        if match:
            title = ET.Element(f"{{{SVG}}}title")
            title.text = finding_words(result.findings[int(match[1])], result)
            element.insert(0, title)
