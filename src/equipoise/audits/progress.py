"""A progress bar on stderr for work that takes longer than a blink, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["drawn_on", "progress_bar"]

_canvas: "ContextVar[Progress | Literal['new'] | None]" = ContextVar("_canvas", default="new")


@contextmanager
def drawn_on(canvas: "Progress | None") -> Iterator[None]:
    """Draw every bar of the body on a display that is open already, or none at all.

    Parameters
    ----------
    canvas : rich.progress.Progress or None
        The display; None draws nothing.
    """
    token = _canvas.set(canvas)
    try:
        yield
    finally:
        _canvas.reset(token)


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar while the body runs; yields what to call with (done, all), or None.

    Parameters
    ----------
    description : str
        What is being done.

    Yields
    ------
    callable or None
        None when nothing is drawn: stderr is not a terminal, or a caller asked for quiet.
    """
    canvas = _canvas.get()
    if canvas is None or not sys.stderr.isatty():
        yield None
        return
    with _display() if canvas == "new" else nullcontext(canvas) as display:
        task = display.add_task(description, total=None)
        yield lambda done, total: display.update(task, completed=done, total=total)
        display.remove_task(task)


def _display() -> "Progress":
    from rich.console import Console
    from rich.progress import Progress

    return Progress(console=Console(stderr=True), transient=True)
