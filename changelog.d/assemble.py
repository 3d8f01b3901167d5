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


def section(version, day):
    """Return the text of a release, and the fragments it is made of."""
    lines, used = [f"## {version} ({day})\n"], []
    for kind, heading in HEADINGS.items():
        fragments = sorted(HERE.glob(f"*.{kind}.md"))
        if fragments:
            items = (" ".join(file.read_text(encoding="utf-8").split()) for file in fragments)
            lines.append(f"### {heading}\n\n" + "\n".join(f"- {item}" for item in items) + "\n")
            used += fragments
    return "\n".join(lines) + "\n", used


def main(version):
    """Write the release and remove its fragments."""
    page = HERE.parent / "CHANGELOG.md"
    text, used = section(version, datetime.now(UTC).date().isoformat())
    before, _, after = page.read_text(encoding="utf-8").partition(MARK)
    page.write_text(f"{before}{MARK}\n{text}{after.lstrip()}", encoding="utf-8")
    for file in used:
        file.unlink()


if __name__ == "__main__":
    main(sys.argv[1])
