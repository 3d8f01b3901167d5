"""Translate docstrings, reStructuredText with maths, for the site, which is Markdown."""

import re

import griffe

ROLE = re.compile(r":math:`([^`]+)`")
BLOCK = re.compile(r"^( *)\.\. math::(.*\n(?:\1 +.*\n|\n)*)", re.MULTILINE)
CITATION = re.compile(r"^\.\. (\[\d+\]) ", re.MULTILINE)
MARK = re.compile(r"(\[\d+\])_")


def _block(match):
    formula = " ".join(line.strip() for line in match[2].splitlines() if line.strip())
    return f"{match[1]}$$ {formula} $$\n\n"


def markdown(text):
    """Return a docstring with maths and citations as Markdown."""
    text = BLOCK.sub(_block, text + "\n")
    text = ROLE.sub(lambda match: f"${' '.join(match[1].split())}$", text)
    text = CITATION.sub(r"\1 ", text)
    return MARK.sub(r"\1", text)


class Mathematics(griffe.Extension):
    """Translate the docstring of every object before it is parsed."""

    def on_object(self, *, obj, **kwargs):
        """Translate one docstring."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)
