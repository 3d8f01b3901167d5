"""Every reference in a docstring names its year, and its DOI where it has one."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENTRY = re.compile(r"(?m)^( *)\.\. \[\w+\] ((?:.*)(?:\n\1 {2,}\S.*)*)")
WITHOUT_DOI = (
    "29 CFR",
    "6 RCNY",
    "Rules of the City of New York",
    "Hazelwood",
    "Waisome",
    "Survey Methodology 28",
    "Gauthier-Villars",
    "Utility as fair pricing",
    "Biometrics 45, 1323",
)
"""Law, books and journals without one."""


def entries():
    for path in sorted((ROOT / "src").rglob("*.py")):
        for match in ENTRY.finditer(path.read_text(encoding="utf-8")):
            yield f"{path.name}: {' '.join(match[2].split())}"


def test_references_have_a_year_and_a_doi():
    found = list(entries())
    assert len(found) > 100
    undated = [text for text in found if not re.search(r"\b(1[89]|20)\d\d\b", text)]
    assert not [text for text in undated if not any(name in text for name in WITHOUT_DOI)]
    lost = [text for text in found if "doi" not in text and not any(n in text for n in WITHOUT_DOI)]
    assert not lost, "\n".join(lost)
