"""Standard streams that cannot stop a run: results on stdout, messages on stderr."""

import io
import os
import sys
from typing import Any, TextIO

import typer

from equipoise._names import printable
from equipoise.exceptions import ResourceError

__all__ = ["echo", "keep_streams"]


def echo(text: object, *, nl: bool = True, err: bool = False) -> None:
    """Print a text on stdout, or on stderr, in which no name or value commands the terminal.

    All that a command says goes through here; only the bar of progress, which has no text from the
    data, moves a cursor.

    Parameters
    ----------
    text : object
        What to print.
    nl : bool
        Whether a new line follows.
    err : bool
        Whether it is a message, for stderr.
    """
    typer.echo(printable(str(text)), nl=nl, err=err)


def keep_streams() -> None:
    """Keep stdout for results, and let no stream spoil the files.

    What a solver prints on its own account goes to stderr. A terminal that cannot show a group's
    name shows "?" instead. A stream that the caller closed is `None` and stays so; one that the
    caller replaced is left alone.
    """
    stdout, stderr = sys.stdout, sys.stderr
    if stderr is not sys.__stderr__ or stderr is None:
        return
    if stdout is sys.__stdout__ and stdout is not None:
        own = os.dup(stdout.fileno())
        os.dup2(stderr.fileno(), stdout.fileno())
        sys.stdout = _text(_Results(own, "w"), like=stdout)
    sys.stderr = _text(_Messages(stderr.fileno(), "w", closefd=False), like=stderr)


def _text(raw: io.FileIO, *, like: TextIO) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=like.encoding, errors="replace", line_buffering=True
    )


class _Results(io.FileIO):
    """Says once that it cannot be written; a reader who has gone is no error."""

    failed = False

    def write(self, content: Any, /) -> int:
        try:
            return super().write(content)
        except BrokenPipeError:
            pass
        except OSError as error:
            if not self.failed:
                self.failed = True
                raise ResourceError(f"stdout cannot be written: {error.strerror}.") from error
        return memoryview(content).nbytes


class _Messages(io.FileIO):
    """Loses what it cannot write: a message is not worth the run."""

    def write(self, content: Any, /) -> int:
        try:
            return super().write(content)
        except OSError:
            return memoryview(content).nbytes
