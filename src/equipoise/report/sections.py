"""The questions a court asks, in the order it asks them, and the checks that answer each."""

from equipoise.plans.dossier import Check, Dossier
from equipoise.results.question import Section, questions

__all__ = ["sections"]


def sections(dossier: Dossier) -> list[tuple[Section, tuple[Check, ...]]]:
    """Return every section with the checks of the dossier; one not asked for has none."""
    known = questions()
    return [
        (section, tuple(c for c in dossier.checks if known[c.question].section == section))
        for section in dict.fromkeys(question.section for question in known.values())
    ]
