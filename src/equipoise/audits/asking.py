"""Ask questions: they declare what they need, one scan reads it, and they answer.

A question is a generator. It yields the sums or rows that it needs, is sent them, and returns its
result; a question that needs a second look at the table yields again. The declarations of all
questions that are asked together are answered together, so that a plan is one scan. An error ends
its own question only.
"""

from collections.abc import Callable, Generator, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

from equipoise.data.scan import answer
from equipoise.data.table import Rows, Sums
from equipoise.exceptions import EquipoiseError

__all__ = ["Asking", "ask", "ask_all", "declare", "question_method"]

_Options = ParamSpec("_Options")
_Result = TypeVar("_Result")

Asking: TypeAlias = Generator[Sums | Rows, Any, _Result]
"""A question under way: it yields what it needs and is sent `CellMoments` or `NarrowRows`."""


def question_method(
    question: Callable[_Options, Asking[_Result]],
) -> Callable[_Options, _Result]:
    """Make a generator function a method of `Audit`, which asks it alone and returns its answer."""

    @wraps(question)
    def method(*args: _Options.args, **options: _Options.kwargs) -> _Result:
        return ask(question(*args, **options))

    return method


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
    questions: Sequence[Asking[_Result]], *, started: Callable[[int], None] | None = None
) -> list[_Result | EquipoiseError]:
    """Ask questions together: what they need in each round is read in one scan.

    Parameters
    ----------
    questions : sequence of generators
        Not yet started.
    started : callable, optional
        Called with the place of a question before it works on its first answer.

    Returns
    -------
    list
        What each question returned, or the error that ended it.
    """
    results: dict[int, _Result | EquipoiseError] = {}
    replies: dict[int, Any] = dict.fromkeys(range(len(questions)))
    round_number = 0
    while replies:
        needs = {}
        for k, reply in replies.items():
            if round_number == 1 and started is not None:
                started(k)
            try:
                if isinstance(reply, EquipoiseError):
                    needs[k] = questions[k].throw(reply)
                else:
                    needs[k] = questions[k].send(reply)
            except StopIteration as stop:
                results[k] = stop.value
            except EquipoiseError as error:
                results[k] = error
        replies = dict(zip(needs, answer(list(needs.values())), strict=True))
        round_number += 1
    return [results[k] for k in range(len(questions))]
