"""What the docs site needs beyond its pages: folders in the menu, and the files that pages link to.

A menu entry that ends in a slash becomes the pages of that folder. A link to a file of the
repository outside ``docs`` (a test, a module) leads to a copy of it in the site, so that every
piece of evidence is one click away, with or without a network.
"""

import ast
import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

DOCS = Path(__file__).parent
ROOT = DOCS.parent
LINK = re.compile(r"(?<=\]\()(\.\./[^)#\s]+)(#[^)\s]*)?(?=\))")


def on_config(config):
    """Expand the folders of the menu."""
    config.nav = [_expanded(entry) for entry in config.nav]
    return config


def on_files(files, config):
    """Add a copy of every file outside ``docs`` that a page links to."""
    for page in list(files.documentation_pages()):
        for target in _outside(page.src_uri, page.content_string):
            uri = _copy_uri(target)
            if files.get_file_from_path(uri) is None:
                content = (ROOT / target).read_text(encoding="utf-8")
                files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown, page, config, files):
    """List what `equipoise.stats` has, and lead links to files outside ``docs`` to copies."""
    markdown = markdown.replace("<!-- functions -->", _functions())
    markdown = markdown.replace("<!-- engines -->", _engines())
    folder = posixpath.dirname(page.file.src_uri)

    def lead(match):
        target = _target(page.file.src_uri, match[1])
        if target is None or not (ROOT / target).exists():
            return match[0]
        return posixpath.relpath(_copy_uri(target), folder or ".")

    return LINK.sub(lead, markdown)


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
        pages = sorted((DOCS / value).glob("*.md"))
        return {title: [page.relative_to(DOCS).as_posix() for page in pages]}
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
