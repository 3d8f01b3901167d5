"""Formulas of the site are MathML: no raw TeX is left, and nothing is fetched."""

import importlib.util
from pathlib import Path

import pytest

HOOKS = Path(__file__).parents[2] / "docs" / "hooks.py"


@pytest.fixture(scope="module")
def hooks():
    pytest.importorskip("mkdocs")
    pytest.importorskip("latex2mathml")
    source = importlib.util.spec_from_file_location("hooks", HOOKS)
    module = importlib.util.module_from_spec(source)
    source.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("tag", "start", "end", "display"),
    [("span", r"\(", r"\)", "inline"), ("div", r"\[", r"\]", "block")],
)
def test_a_formula_becomes_mathml(hooks, tag, start, end, display):
    page = (
        f'<p>so <{tag} class="arithmatex">{start}a &lt; \\hat\\theta_{{G}}{end}</{tag}> holds</p>'
    )
    shown = hooks.on_page_content(page, None, None, None)
    assert f'display="{display}"' in shown
    assert "arithmatex" not in shown
    assert "\\hat" not in shown
    assert "&lt;" in shown or "&#x0003C;" in shown


DOCSTRING = """Say something.

.. math:: L = \\hat\\theta
   - \\sqrt{x}

Then, with :math:`a_{i}` and more,

.. math::

    \\frac{1}{2}

    + 1

and the end [1]_.
"""


def test_both_ways_to_write_a_formula_in_a_docstring_are_translated():
    pytest.importorskip("griffe")
    source = importlib.util.spec_from_file_location("maths", HOOKS.parent / "griffe_math.py")
    module = importlib.util.module_from_spec(source)
    source.loader.exec_module(module)
    shown = module.markdown(DOCSTRING)
    assert "math:" not in shown
    assert "$$ L = \\hat\\theta - \\sqrt{x} $$\n\nThen, with $a_{i}$ and more,\n" in shown
    assert "$$ \\frac{1}{2} + 1 $$\n\nand the end [1].\n" in shown


def test_text_without_formulas_stays(hooks):
    assert hooks.on_page_content("<p>a (b) [c]</p>", None, None, None) == "<p>a (b) [c]</p>"
