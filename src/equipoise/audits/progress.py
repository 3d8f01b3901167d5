"""A progress bar on stderr for work that takes longer than a blink, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


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
        None when stderr is not a terminal: nothing is drawn and nothing is imported.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
