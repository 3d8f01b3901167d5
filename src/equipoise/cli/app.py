"""The command line: ``equipoise``.

Results go to stdout, messages and progress to stderr. Exit codes: 0 done; 1 the gate asked for by
``--fail-on`` tripped; 2 wrong usage or data, one line, no traceback; 130 interrupted.
"""

import os
import sys

import typer

from equipoise._version import __version__
from equipoise.cli import design
from equipoise.cli.audit import audit, demo
from equipoise.cli.init import init
from equipoise.cli.report import report
from equipoise.exceptions import EquipoiseError

__all__ = ["app", "main"]

INTERRUPTED = 130

app = typer.Typer(
    name="equipoise",
    help="Fairness audits with statistical guarantees.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(demo)
app.command()(init)
app.command()(audit)
app.command()(report)
app.add_typer(design.app, name="design")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"equipoise {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """Fairness audits with statistical guarantees."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    if sys.stdout is sys.__stdout__ and sys.stdout is not None and sys.stderr is not None:
        _keep_stdout()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a group's name shows "?" instead of stopping the audit; a
        # stream that the caller closed is `None`.
        if stream is not None:
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    sys.exit(_run(arguments))


def _keep_stdout() -> None:
    """Keep stdout for results: what a solver prints on its own account goes to stderr."""
    shared = sys.stdout
    own = os.dup(shared.fileno())
    os.dup2(sys.stderr.fileno(), shared.fileno())
    sys.stdout = os.fdopen(own, "w", encoding=shared.encoding, buffering=1)


def _run(arguments: list[str] | None) -> int:
    command = typer.main.get_command(app)
    try:
        code = command.main(arguments, prog_name="equipoise", standalone_mode=False)
    except typer.TyperException as error:
        words = error.format_message()
        # Without any argument the message is the help of the command.
        _complain(words if "\n" in words else f"equipoise: {words} See `equipoise --help`.")
        return 2
    except EquipoiseError as error:
        _complain(f"equipoise: {' '.join(str(error).split())}")
        return 2
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:
        _complain("equipoise: interrupted; no file was changed.")
    return code if isinstance(code, int) else 0


def _complain(words: str) -> None:
    typer.echo(words, err=True)


if __name__ == "__main__":
    main()
