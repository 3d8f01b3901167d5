"""The command line: ``equipoise``.

Results go to stdout, messages and progress to stderr; `equipoise.cli.ending` has the exit codes.
"""

import sys

import typer

from equipoise._version import __version__
from equipoise.cli import design
from equipoise.cli.audit import audit, demo
from equipoise.cli.cells import cells, merge
from equipoise.cli.ending import exit_code
from equipoise.cli.init import init
from equipoise.cli.monitor import monitor
from equipoise.cli.report import report
from equipoise.cli.streams import echo, keep_streams

__all__ = ["app", "main"]

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
app.command()(monitor)
app.command()(cells)
app.command()(merge)
app.add_typer(design.app, name="design")


def _version(value: bool) -> None:
    if value:
        echo(f"equipoise {__version__}")
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
    keep_streams()
    command = typer.main.get_command(app)
    sys.exit(
        exit_code(lambda: command.main(arguments, prog_name="equipoise", standalone_mode=False))
    )


if __name__ == "__main__":
    main()
