"""Ask questions: they declare what they need, one scan reads it, and they answer.

A question is a generator. It yields the sums or rows that it needs, is sent them, and returns its
result; a question that needs a second look at the table yields again. The declarations of all
questions that are asked together are answered together, so that a plan is one scan. An error ends
its own question only.
"""

import unicodedata
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from inspect import signature
from threading import RLock
from typing import Any, ParamSpec, TypeAlias, TypeVar

from equipoise.audits.words import words_of
from equipoise.data.frame import check_open
from equipoise.data.groups import look_alike
from equipoise.data.query import Sent, recorded
from equipoise.data.scan import answer
from equipoise.data.table import NotInCellsError, Rows, Sums
from equipoise.exceptions import EquipoiseError, InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.results.finding import Note
from equipoise.results.result import AuditResult

__all__ = ["Asking", "ask", "ask_all", "declare", "question_method", "side_by_side"]

_Options = ParamSpec("_Options")
_Result = TypeVar("_Result")

Asking: TypeAlias = Generator[Sums | Rows | tuple[Sums | Rows, ...], Any, _Result]
"""A question under way: it yields what it needs and is sent `CellMoments` or `NarrowRows`.

Several declarations that it yields at once are answered by a list, from one scan."""


_TURN = RLock()
"""One question at a time: a connection that is busy refuses another thread, and engines use all
processors for one query anyway."""

_STRATA_UNUSED = Note(
    code="strata-not-used",
    message="The sampling strata are not used by this question: units count as drawn from one"
    " population, and no finite population correction is made.",
)


def question_method(
    question: Callable[_Options, Asking[_Result]],
) -> Callable[_Options, _Result]:
    """Make a generator function a method of `Audit`, which asks it alone and returns its answer."""

    @wraps(question)
    def worded(*args: _Options.args, **options: _Options.kwargs) -> Asking[_Result]:
        audit: Any = args[0]
        check_open(audit.table.frame)
        audit.table.check_favourable()
        try:
            result = yield from question(*args, **options)
        except NotInCellsError as error:
            raise InvalidParameterError(f"`{question.__name__}` {error}") from None
        return _in_words(result, audit)

    @wraps(worded)
    def method(*args: _Options.args, **options: _Options.kwargs) -> _Result:
        return ask(worded(*args, **options))

    # Help and editors show what a caller gets, not the generator behind it.
    asked = signature(question).replace(return_annotation=AuditResult)
    method.__signature__ = asked  # type: ignore[attr-defined]
    return method


def _in_words(result: _Result, audit: Any) -> _Result:
    """Give a result the words of the columns of its table."""
    if not isinstance(result, AuditResult):
        return result
    metrics = dict.fromkeys(finding.estimand.metric for finding in result.findings)
    metrics = metrics or {result.details.get("metric"): None}
    notes = result.notes
    if audit.table.roles.strata is not None and not (
        result.question.own_strata or any(note.code == "survey-design" for note in notes)
    ):
        notes = (*notes, _STRATA_UNUSED)
    words = words_of(audit.table.roles, metrics)
    # What a question itself says of its metric stays.
    told = {**words.metrics, **result.words.metrics}
    return replace(result, words=replace(words, metrics=told), notes=notes)


def declare(method: Callable[..., Any], /, *args: Any, **options: Any) -> Asking[Any]:
    """Return the question of a method, not yet asked.

    Parameters
    ----------
    method : callable
        Made by `question_method`; another one reads the table by itself when its turn comes.
    *args, **options
        Of the method.

    Returns
    -------
    generator
        Errors of the arguments show when it is asked.
    """
    question = getattr(method, "__wrapped__", method)(*args, **options)
    return (yield from question) if isinstance(question, Generator) else question


def side_by_side(parts: Sequence[Asking[Any]]) -> Asking[list[Any]]:
    """Make several questions one, which asks in each round what all of them need.

    Parameters
    ----------
    parts : sequence of generators
        Not yet started; each yields one declaration at a time.

    Yields
    ------
    tuple of Sums and Rows

    Returns
    -------
    list
        What each of them returned.
    """
    results: dict[int, Any] = {}
    replies: dict[int, Any] = dict.fromkeys(range(len(parts)))
    while replies:
        needs: dict[int, Any] = {}
        for k, reply in replies.items():
            try:
                needs[k] = parts[k].send(reply)
            except StopIteration as stop:
                results[k] = stop.value
        replies = dict(zip(needs, (yield tuple(needs.values())), strict=True)) if needs else {}
    return [results[k] for k in range(len(parts))]


def ask(question: Asking[_Result]) -> _Result:
    """Ask one question.

    Parameters
    ----------
    question : generator
        Not yet started.

    Returns
    -------
    object
        What the question returns.
    """
    (result,) = ask_all([question])
    if isinstance(result, EquipoiseError):
        raise result
    return result


def ask_all(
    questions: Sequence[Asking[_Result]],
    *,
    declared: Callable[[Mapping[int, EquipoiseError]], None] | None = None,
    started: Callable[[int], None] | None = None,
) -> list[_Result | EquipoiseError]:
    """Ask questions together: what they need in each round is read in one scan.

    Parameters
    ----------
    questions : sequence of generators
        Not yet started.
    declared : callable, optional
        Called before anything is read, with the errors of questions that cannot be asked by their
        places; what it raises ends all.
    started : callable, optional
        Called with the place of a question before it works on its first answer.

    Returns
    -------
    list
        What each question returned, or the error that ended it.
    """
    with _TURN:
        return _rounds(questions, declared, started)


def _rounds(
    questions: Sequence[Asking[_Result]],
    declared: Callable[[Mapping[int, EquipoiseError]], None] | None,
    started: Callable[[int], None] | None,
) -> list[_Result | EquipoiseError]:
    results: dict[int, _Result | EquipoiseError] = {}
    replies: dict[int, Any] = dict.fromkeys(range(len(questions)))
    sent: dict[int, list[Sent]] = {k: [] for k in replies}
    held = dict.fromkeys(replies, (0, 0, 0, 0))
    told: dict[int, dict[str, Note]] = {k: {} for k in replies}
    round_number = 0
    while replies:
        needs = {}
        for k, reply in replies.items():
            if round_number == 1 and started is not None:
                started(k)
            with recorded() as queries:
                try:
                    if isinstance(reply, EquipoiseError):
                        needs[k] = questions[k].throw(reply)
                    else:
                        needs[k] = questions[k].send(reply)
                except StopIteration as stop:
                    results[k] = _with_queries(stop.value, [*sent[k], *queries], held[k], told[k])
                except EquipoiseError as error:
                    results[k] = error
            sent[k] += queries
        if round_number == 0 and declared is not None:
            declared({k: e for k, e in results.items() if isinstance(e, EquipoiseError)})
        replies = _answers(needs)
        for k, need in needs.items():
            for part in need if isinstance(need, tuple) else (need,):
                sums = part.sums if isinstance(part, Rows) else part
                sent[k] += sums.table.sent.get(sums, ())
                held[k] = (*sums.table.withheld, sums.table.sites)
                told[k] |= _label_notes(sums)
        round_number += 1
    return [results[k] for k in range(len(questions))]


def _label_notes(sums: Sums) -> dict[str, Note]:
    """Return what is odd about the labels of the group columns, by note and column."""
    cells = sums.table.answers.get(sums) or sums.table.kept(sums)
    if not isinstance(cells, CellMoments):
        return {}
    notes = {}
    for column, array in zip(cells.columns, cells.labels, strict=True):
        if column not in sums.table.roles.group:
            continue
        labels = array.tolist()
        if pairs := look_alike(labels):
            notes[f"alike {column}"] = _alike_note(column, pairs)
        if any(label.strip().lower() == column.strip().lower() for label in labels):
            notes[f"own {column}"] = _own_name_note(column)
    return notes


def _own_name_note(column: str) -> Note:
    """Say that a row has the name of its column where a label is expected."""
    return Note(
        code="name-among-labels",
        message=f"{column!r} is the name of a column and one of its labels. If the first row of a"
        " csv file was read as names, say `header = false`; if lines of names stand among the"
        " rows, delete them.",
    )


def _alike_note(column: str, pairs: Sequence[tuple[str, str]]) -> Note:
    """Say which labels look alike, in a way that shows how they differ."""
    one, other = map(repr, pairs[0])
    if unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other):
        one, other = map(ascii, pairs[0])
    more = f", and {len(pairs) - 1} more" if len(pairs) > 1 else ""
    return Note(
        code="labels-look-alike",
        message=f"Labels of {column!r} look alike and are counted apart: {one} and {other}{more}."
        " Write them alike if they mean one group.",
    )


def _with_queries(
    result: Any,
    sent: Iterable[Sent],
    held: tuple[int, int, int, int],
    told: Mapping[str, Note],
) -> Any:
    """Keep with a result the queries behind it; say what of its rows and labels is to be known."""
    if not isinstance(result, AuditResult):
        return result
    notes = tuple(
        Note(
            code="rows-brought",
            message=f"{query.returned} rows of {query.columns} columns left the database: sums are"
            " not enough for this question.",
        )
        for query in sent
        if query.rows
    )
    notes += tuple(told.values())
    cells, rows, limit, sites = held
    if cells:
        notes += (
            Note(
                code="withheld-cells",
                message=f"{cells} cells with {rows} rows were withheld where the rows are, so that"
                f" none of fewer than {limit} rows is known; their rows are in no group.",
            ),
        )
    if sites:
        notes += (
            Note(
                code="clusters-of-sites",
                message=f"Sums of {sites} tables were added: who has rows in two of them counts as"
                " two.",
            ),
        )
    queries = tuple(dict.fromkeys(query.sql for query in sent))
    return replace(result, queries=queries, notes=(*result.notes, *notes))


def _answers(needs: dict[int, Sums | Rows | tuple[Sums | Rows, ...]]) -> dict[int, Any]:
    """Answer the declarations of one round; the first error of a question is its reply."""
    parts = [
        (k, part)
        for k, need in needs.items()
        for part in (need if isinstance(need, tuple) else (need,))
    ]
    found: dict[int, list[Any]] = {k: [] for k in needs}
    for (k, _), reply in zip(parts, answer([part for _, part in parts]), strict=True):
        found[k].append(reply)
    replies: dict[int, Any] = {}
    for k, need in needs.items():
        errors = [reply for reply in found[k] if isinstance(reply, EquipoiseError)]
        whole = found[k] if isinstance(need, tuple) else found[k][0]
        replies[k] = errors[0] if errors else whole
    return replies
