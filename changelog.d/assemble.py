"""Move the fragments of this folder into CHANGELOG.md: ``python changelog.d/assemble.py 0.2.0``."""

import sys
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
HEADINGS = {
    "added": "Added",
    "changed": "Changed",
    "fixed": "Fixed",
    "numbers": "Numbers that change",
}
MARK = "<!-- releases -->\n"


def fragments():
    """Return what the fragments say by heading, and their files."""
    files = [(file, HEADINGS[file.name.split(".")[1]]) for file in sorted(HERE.glob("*.md"))]
    said = {heading: [] for heading in HEADINGS.values()}
    for file, heading in files:
        said[heading].append(" ".join(file.read_text(encoding="utf-8").split()))
    return said, [file for file, _ in files]


def section(version, day, said):
    """Return the text of a release."""
    parts = [
        f"### {heading}\n\n" + "".join(f"- {item}\n" for item in items)
        for heading, items in said.items()
        if items
    ]
    return "\n".join([f"## {version} ({day})\n", *parts])


def main(version):
    """Write the release and remove its fragments.

    A release that has been prepared and not yet tagged is prepared again: what its section says
    stays, below what is new.
    """
    page = HERE.parent / "CHANGELOG.md"
    said, files = fragments()
    before, _, after = page.read_text(encoding="utf-8").partition(MARK)
    first, _, earlier = after.lstrip().partition("\n## ")
    if first.startswith(f"## {version} ("):
        for part in first.split("\n### ")[1:]:
            heading, _, items = part.partition("\n")
            said[heading] += [item.strip() for item in ("\n" + items).split("\n- ")[1:]]
    else:
        earlier = after.lstrip().removeprefix("## ")
    text = section(version, datetime.now(UTC).date().isoformat(), said)
    text += f"\n## {earlier}" if earlier else ""
    page.write_text(f"{before}{MARK}\n{text}", encoding="utf-8")
    for file in files:
        file.unlink()


if __name__ == "__main__":
    main(sys.argv[1])
