"""The questions a court asks, in the order it asks them, and the checks that answer each."""

from dataclasses import dataclass

from equipoise.plans.dossier import Check, Dossier

__all__ = ["SECTIONS", "Section", "sections"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One question a court asks.

    Parameters
    ----------
    id : str
        Anchor in the page.
    heading, lead : str
        The question, and what an answer to it means.
    answers : tuple of str
        Questions of a plan that belong here.
    checks : tuple of Check
        Those of this report; may be empty.
    """

    id: str
    heading: str
    lead: str
    answers: tuple[str, ...]
    checks: tuple[Check, ...] = ()


SECTIONS = (
    Section(
        id="disparity",
        heading="Is there a disparity?",
        lead="Rates by group and by intersection of groups, with intervals that allow for the"
        " uncertainty of the comparison as well as of the group.",
        answers=("disparity", "flag", "certify"),
    ),
    Section(
        id="meaning",
        heading="Does the score mean the same for everyone?",
        lead="Whether people with the same score have the same outcomes, whichever group they"
        " belong to.",
        answers=("predictive_parity", "marginal_outcome"),
    ),
    Section(
        id="necessity",
        heading="Is it necessary?",
        lead="Whether a less discriminatory alternative that serves the purpose as well has been"
        " shown to exist.",
        answers=("improvability",),
    ),
    Section(
        id="benefits",
        heading="How are benefits spread?",
        lead="How unequally the decisions treat people, and how much of it lies between groups.",
        answers=("inequality",),
    ),
    Section(
        id="effects",
        heading="Are effects predicted equally well?",
        lead="Whether predicted effects of a treatment are off by the same amount in every group.",
        answers=("treatment_effects",),
    ),
)


def sections(dossier: Dossier) -> tuple[Section, ...]:
    """Return the five sections with the checks of the dossier; one not asked for has none."""
    return tuple(
        Section(
            id=section.id,
            heading=section.heading,
            lead=section.lead,
            answers=section.answers,
            checks=tuple(c for c in dossier.checks if c.question in section.answers),
        )
        for section in SECTIONS
    )
