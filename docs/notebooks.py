"""Run the notebooks of the docs and keep what they print: ``python docs/notebooks.py [name ...]``.

A notebook is run cell by cell, in one process and without Jupyter. The last expression of a cell is
shown as Jupyter would: by its HTML, as a picture, or as text.
"""

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "tutorials"


def read(path):
    """Return a notebook as a dictionary."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def write(path, notebook):
    """Write a notebook, in one form."""
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    Path(path).write_text(text, encoding="utf-8")


def executed(notebook):
    """Return a notebook with the outputs of a fresh run."""
    names = {"__name__": "__main__"}
    number = 0
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            cells.append(cell)
            continue
        number += 1
        outputs = _outputs("".join(cell["source"]), names, number)
        cells.append(cell | {"execution_count": number, "outputs": outputs})
    return notebook | {"cells": cells}


def texts(notebook):
    """Return what each code cell printed or showed as text."""
    return [
        "".join(line for output in cell["outputs"] for line in _text(output))
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def markdown(notebook):
    """Return a notebook as a page."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [_shown(output) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def _outputs(source, names, number):
    *body, last = ast.parse(source).body
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(body, []), f"cell {number}", "exec"), names)  # noqa: S102
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)  # noqa: S307
        else:
            exec(compile(source, f"cell {number}", "exec"), names)  # noqa: S102
    outputs = []
    if printed.getvalue():
        lines = printed.getvalue().splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines})
    if value is not None:
        shown = {"output_type": "execute_result", "execution_count": number, "metadata": {}}
        outputs.append(shown | {"data": _data(value)})
    return outputs


def _data(value):
    if hasattr(value, "get_figure"):
        picture = io.BytesIO()
        value.get_figure().savefig(picture, format="png", dpi=72, metadata={"Software": None})
        return {
            "image/png": base64.b64encode(picture.getvalue()).decode(),
            "text/plain": ["<Axes>"],
        }
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(keepends=True)
    return data


def _text(output):
    return output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"]


def _shown(output):
    data = output.get("data", {})
    if "image/png" in data:
        return (
            f'<img alt="What the cell above draws" src="data:image/png;base64,{data["image/png"]}">'
        )
    if "text/html" in data:
        return "".join(data["text/html"]).replace("\n", " ")
    return "```text\n" + "".join(_text(output)).rstrip("\n") + "\n```"


if __name__ == "__main__":
    for file in sorted(FOLDER.glob("*.ipynb")):
        if not sys.argv[1:] or file.stem in sys.argv[1:]:
            write(file, executed(read(file)))
