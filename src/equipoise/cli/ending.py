"""How a run ends: the exit code and the last line.

0 done; 1 the gate asked for by ``--fail-on`` tripped, and nothing else; 2 wrong usage or data, one
line; 3 a defect of ours or of the machine, one line and where the details are; 130 interrupted, 143
terminated, 129 hung up.
"""

import platform
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from equipoise._version import __version__
from equipoise.cli.streams import echo
from equipoise.exceptions import EquipoiseError, ResourceError

__all__ = ["exit_code"]

WRONG, BROKEN, SIGNALLED = 2, 3, 128
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
AGAIN = 1.0
"""Seconds after which a run that has not ended is stopped again."""
LONGEST_REASON = 200


def exit_code(command: Callable[[], object]) -> int:
    """Call a command; say in one line on stderr what stopped it, and return the exit code."""
    received: list[int] = []
    words = ""
    try:
        with _stopped_by(received):
            code = command()
            if sys.stdout is not None:
                sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  (the last place to catch it)
        code, words = _failed(error)
    if received:
        code, words = _stopped(received[0])
    if words:
        echo(words, err=True)
    return code if isinstance(code, int) else 0


@contextmanager
def _stopped_by(received: list[int]) -> Iterator[None]:
    """Turn signals into exceptions, so that a run ends tidily; list those that came."""

    def stop(number: int, _: FrameType | None) -> None:
        received.append(number)
        # A library that calls back may swallow the exception: ask again until the run has ended.
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in STOPPING}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:  # `nohup`, or the background of a shell
            signal.signal(number, stop)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _stopped(number: int) -> tuple[int, str]:
    words = "interrupted" if number == signal.SIGINT else "terminated"
    return SIGNALLED + number, f"equipoise: {words}; no file is half written."


def _failed(error: BaseException) -> tuple[int, str]:
    if isinstance(error, typer.TyperException):
        words = error.format_message()
        # Without any argument the message is the help of the command.
        return WRONG, words if "\n" in words else f"equipoise: {words} See `equipoise --help`."
    if isinstance(error, EquipoiseError):
        code = BROKEN if isinstance(error, ResourceError) else WRONG
        return code, f"equipoise: {_one_line(error)}"
    reason = f"{type(error).__name__}: {_one_line(error)}"[:LONGEST_REASON].rstrip(": ")
    return BROKEN, (
        f"equipoise: stopped by a defect of equipoise or of this machine ({reason})."
        f" Details: {_details(error)}"
    )


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _details(error: BaseException) -> str:
    """Write a traceback to a file that only its owner can read; return where it is."""
    lines = traceback.format_exception(error)
    text = (
        f"equipoise {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"called with {sys.argv[1:]}\n\n{''.join(lines)}"
    )
    try:
        with tempfile.NamedTemporaryFile(
            "w",
            prefix="equipoise-",
            suffix=".txt",
            delete=False,
            encoding="utf-8",
            errors="replace",
        ) as stream:
            stream.write(text)
            return stream.name
    except OSError as failure:
        return f"{failure.strerror}; they follow here.\n{text}"
