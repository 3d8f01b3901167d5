"""``equipoise audit`` and ``equipoise demo``: run a plan, print findings, write the report."""

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from equipoise._typing import Engine, FailOn
from equipoise.cli.files import check_outputs

__all__ = ["audit", "demo"]

Output = Annotated[
    Path | None, typer.Option("--output", metavar="HTML", help="Write the report to this file.")
]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="JSON", help="Write the results to this file; - for stdout."),
]
Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="XML", help="Write JUnit XML, a case for each subgroup."),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="One line for each check; no progress, no tables.")
]


def audit(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.toml", help="The questions to ask.")],
    output: Output = None,
    json_file: Json = None,
    junit: Junit = None,
    engine: Annotated[Engine, typer.Option(help="What reads the data.")] = "duckdb",
    fail_on: Annotated[
        FailOn,
        typer.Option(
            help="Exit with 1 if a check says so: a gate for pipelines. It acts on tests and"
            " intervals, never on point estimates."
        ),
    ] = "never",
    quiet: Quiet = False,
) -> None:
    """Ask the questions of a plan; print findings, write the report."""
    from equipoise.cli.delivery import STDOUT, answered, deliver
    from equipoise.data.fingerprint import sources
    from equipoise.plans.gate import tripped
    from equipoise.plans.plan import read_plan

    asked = read_plan(plan)
    outputs = (output, None if json_file == STDOUT else json_file, junit)
    check_outputs(*outputs, inputs={"the plan": [plan], "the data": sources(asked.path)})
    dossier = answered(asked, engine, quiet=quiet or json_file == STDOUT)
    stopped = tripped(dossier.checks, fail_on)
    deliver(dossier, output, json_file, junit, fail_on, quiet=quiet)
    if stopped:
        names = ", ".join(check.id for check in stopped)
        typer.echo(
            f"equipoise: gate --fail-on {fail_on} tripped by {len(stopped)} of"
            f" {len(dossier.checks)} checks: {names}",
            err=True,
        )
        raise typer.Exit(1)


def demo(
    output: Output = None, json_file: Json = None, junit: Junit = None, quiet: Quiet = False
) -> None:
    """Audit the bundled COMPAS counts, as a tour."""
    from equipoise.cli.delivery import STDOUT, answered, deliver
    from equipoise.plans.plan import read_plan

    check_outputs(output, None if json_file == STDOUT else json_file, junit, inputs={})
    with as_file(files("equipoise.plans") / "templates") as folder:
        dossier = answered(
            read_plan(folder / "demo.toml"), "duckdb", quiet=quiet or json_file == STDOUT
        )
    deliver(dossier, output, json_file, junit, "never", quiet=quiet)
