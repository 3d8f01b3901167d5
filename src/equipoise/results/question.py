"""A question is one object: what is asked, answered, said and drawn.

Questions are defined in the families of `equipoise.audits` and registered once; whatever prints,
draws, plans or gates a result asks its question, and knows no question by name.
"""

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise._checks import nearest, quoted
from equipoise.exceptions import InvalidParameterError
from equipoise.results.assumptions import Assumption
from equipoise.results.details import Details
from equipoise.results.estimand import EstimandKind
from equipoise.results.finding import Decision

if TYPE_CHECKING:
    from equipoise.results.result import AuditResult

__all__ = [
    "Question",
    "Section",
    "find_question",
    "load",
    "questions",
    "register",
    "register_places",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One question that a court asks; a section of the report.

    Parameters
    ----------
    id : str
        Anchor in the page.
    heading, lead : str
        The question, and what an answer to it means.
    """

    id: str
    heading: str
    lead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What can be asked of a table, and how its answer is told.

    Parameters
    ----------
    name : str
        The method of `Audit`, and ``question = "..."`` in a plan.
    answer, drawing : str
        Where the answering and the drawing function are, as ``"package.module:name"``; they are
        imported when they are needed.
    sentence : str
        The question in words; ``{metric}`` stands for the metric.
    section : Section
        Where the report shows it.
    subject : str
        What it is about, in a list of questions; ``{metric}`` stands for the metric.
    headline : callable
        One sentence on a result, without the full stop.
    legend : str
        How to read the picture.
    described : callable, optional
        What the picture shows beside the findings, for those who cannot see it.
    details : type of Details
        The numbers beyond the table.
    assumptions : tuple of Assumption
        What an answer rests on beyond what every answer does.
    tables : str, optional
        Where the function of further tables of the report is.
    needs_labels : bool
        Whether an answer rests on outcomes being known for everybody.
    own_strata : bool
        Whether the role `strata` has a meaning of its own here, such as blocks of an experiment.
    one_claim : bool
        Whether findings are requirements of one claim, so that only the joint test counts.
    equivalence : bool
        Whether the question is "is everybody within the margin?".
    keeps_margin : bool
        Whether a margin above zero, where one was given, may be shown to be kept.
    gate_kind : str, optional
        Kind of the estimands that gates on margins and on growth look at; by default all findings
        count for a margin, and none for growth.
    words : mapping of Decision to str
        Words for decisions where they differ from the usual ones.
    parts : tuple of str
        Kinds of estimands that are told beside the finding of their group, on one line, unless
        they are detected.
    """

    name: str
    answer: str
    sentence: str
    section: Section
    headline: "Callable[[AuditResult], str]"
    subject: str = "{metric}"
    drawing: str = "equipoise.plot.intervals:forest"
    legend: str = (
        "Points are estimates, bars are intervals; the shape of a point repeats what its colour"
        " says."
    )
    described: "Callable[[AuditResult], str] | None" = None
    details: type[Details] = Details
    assumptions: tuple[Assumption, ...] = ()
    tables: str | None = None
    needs_labels: bool = True
    own_strata: bool = False
    one_claim: bool = False
    equivalence: bool = False
    keeps_margin: bool = False
    gate_kind: EstimandKind | None = None
    words: Mapping[Decision, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()

    @property
    def function(self) -> Callable[..., Any]:
        """The function that answers."""
        function: Callable[..., Any] = load(self.answer)
        return function


class _Registry(Mapping[str, Question]):
    """Questions by name, in the order in which they were registered."""

    def __init__(self) -> None:
        self.known: dict[str, Question | str] = {}

    def __getitem__(self, name: str) -> Question:
        found = self.known[name]
        if isinstance(found, str):
            found = self.known[name] = load(found)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


_REGISTERED = _Registry()


def register(*given: Question) -> None:
    """Make questions known to `Audit`, plans, text, report and gates.

    Parameters
    ----------
    *given : Question
        A later question of the same name replaces an earlier one.
    """
    _REGISTERED.known.update({question.name: question for question in given})


def register_places(*places: str) -> None:
    """Make questions known that are read when they are first asked.

    Parameters
    ----------
    *places : str
        ``"package.module:NAME"``; the question's name is the constant's, in lower case.
    """
    _REGISTERED.known.update({place.partition(":")[2].lower(): place for place in places})


def questions() -> Mapping[str, Question]:
    """Return all questions by name, in the order in which they were registered."""
    importlib.import_module("equipoise.audits")
    return _REGISTERED


def find_question(name: str) -> Question:
    """Return the question of that name, or raise with the nearest one."""
    known = questions()
    if name not in known:
        raise InvalidParameterError(
            f"there is no question {name!r}.{nearest(name, known)} Questions: {quoted(known)}."
        )
    return known[name]


def load(place: str) -> Any:
    """Return what ``"package.module:name"`` names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
