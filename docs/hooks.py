"""What the docs site needs beyond its pages: folders in the menu, and the files that pages link to.

A menu entry that ends in a slash becomes the pages of that folder. A link to a file of the
repository outside ``docs`` (a test, a module) leads to a copy of it in the site, so that every
piece of evidence is one click away, with or without a network. Formulas become MathML, and
notebooks become pages.
"""

import ast
import html
import posixpath
import re
import sys
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File

from equipoise.results.question import questions

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))
import samples  # noqa: E402
from notebooks import markdown, read  # noqa: E402

ROOT = DOCS.parent
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\(?:\(|\[)(.*?)\\(?:\)|\])</\1>', re.DOTALL)
LINK = re.compile(r"(?<=\]\()(\.\./[^)#\s]+)(#[^)\s]*)?(?=\))")


def on_config(config):
    """Expand the folders of the menu."""
    config.nav = [_expanded(entry) for entry in config.nav]
    return config


def on_files(files, config):
    """Add the notebooks as pages, and copies of the files outside ``docs`` that pages link to."""
    for path in sorted((DOCS / "tutorials").glob("*.ipynb")):
        page = markdown(read(path))
        files.append(File.generated(config, f"tutorials/{path.stem}.md", content=page))
    for name, report in samples.reports({n: samples.dossier(n) for n in samples.SAMPLES}).items():
        files.append(File.generated(config, f"samples/{name}.html", content=report))
    for page in list(files.documentation_pages()):
        for target in _outside(page.src_uri, page.content_string):
            uri = _copy_uri(target)
            if files.get_file_from_path(uri) is None:
                content = (ROOT / target).read_text(encoding="utf-8")
                files.append(File.generated(config, uri, content=content))
    return files


def on_post_page(output, page, config):
    """Let the keyboard reach what scrolls, and name what the theme leaves without a name."""
    return _named(re.sub(r"<pre\b", '<pre tabindex="0"', output))


def on_post_template(output_content, template_name, config):
    """Name the same on the page that is shown for a wrong address."""
    return _named(output_content)


def _named(page):
    page = re.sub(r'(<div class="md-search"[^>]*role="dialog")', r'\1 aria-label="Search"', page)
    for name in ("drawer", "search"):
        page = page.replace(f'id="__{name}"', f'id="__{name}" aria-label="Open the {name}"')
    return page


def on_page_content(content, page, config, files):
    """Write formulas as MathML, which browsers draw without a script and without a network."""
    return FORMULA.sub(_formula, content)


def _formula(match):
    display = "block" if match[1] == "div" else "inline"
    text = " ".join(html.unescape(match[2]).split())
    drawn = convert(text, display=display)
    # A long formula scrolls in its own frame: a phone does not scroll the page.
    frame = '<div class="formula" tabindex="0" role="group" aria-label="Formula">'
    return f"{frame}{drawn}</div>" if display == "block" else drawn


def on_page_markdown(markdown, page, config, files):
    """List the questions and what `equipoise.stats` has; lead links outside ``docs`` to copies."""
    markdown = markdown.replace("<!-- questions -->", _questions())
    markdown = markdown.replace("<!-- functions -->", _functions())
    markdown = markdown.replace("<!-- engines -->", _engines())
    folder = posixpath.dirname(page.file.src_uri)

    def lead(match):
        target = _target(page.file.src_uri, match[1])
        if target is None or not (ROOT / target).exists():
            return match[0]
        return posixpath.relpath(_copy_uri(target), folder or ".")

    return LINK.sub(lead, markdown)


def _questions():
    """Return the methods of `Audit`: the functions of the families, imported at first use."""
    return "\n\n".join(
        f"### `Audit.{name}`\n\n::: {question.answer.replace(':', '.')}\n"
        "    options:\n      show_root_heading: false\n      show_root_toc_entry: false"
        for name, question in questions().items()
    )


def _functions():
    tree = ast.parse((ROOT / "src/equipoise/stats/__init__.py").read_text(encoding="utf-8"))
    (names,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    )
    return "\n\n".join(f"::: equipoise.stats.{name}" for name in names)


def _engines():
    folder = ROOT / "src/equipoise/stats"
    files = sorted(path.relative_to(folder) for path in folder.rglob("[a-z]*.py"))
    names = [".".join(file.with_suffix("").parts) for file in files]
    options = "    options:\n      show_root_heading: false\n      heading_level: 3"
    return "\n\n".join(
        f"## stats.{name}\n\n::: equipoise.stats.{name}\n{options}" for name in names
    )


def _expanded(entry):
    if not isinstance(entry, dict):
        return entry
    ((title, value),) = entry.items()
    if isinstance(value, str) and value.endswith("/"):
        pages = sorted(f for f in (DOCS / value).iterdir() if f.suffix in {".md", ".ipynb"})
        return {title: [f.relative_to(DOCS).with_suffix(".md").as_posix() for f in pages]}
    return entry


def _outside(uri, text):
    targets = (_target(uri, match[1]) for match in LINK.finditer(text))
    return sorted({target for target in targets if target and (ROOT / target).is_file()})


def _target(uri, link):
    """Return the path of a link from the root of the repository, or None inside ``docs``."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(uri), link))
    return None if path.startswith(("docs/", "..")) else path


def _copy_uri(target):
    return f"repository/{target}.txt"
