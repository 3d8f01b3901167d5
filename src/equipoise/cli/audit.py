"""``equipoise audit`` and ``equipoise demo``: run a plan, print findings, write the report."""

from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from equipoise._typing import Engine, FailOn
from equipoise.cli.files import check_outputs
from equipoise.cli.streams import echo
from equipoise.exceptions import DataError, InvalidParameterError

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
MinCell = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Withhold the numbers of groups with fewer rows; 5 unless the plan says otherwise, 1"
        " writes everything.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", help="The answer alone; no progress, no tables."),
]

Every = Annotated[
    bool,
    typer.Option("--all", help="Print every line of every table; by default the first 20."),
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
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="JSON",
            help="Results of an earlier run on another sample; with --fail-on worse a gap that is"
            " shown to have grown since trips the gate.",
        ),
    ] = None,
    min_cell: MinCell = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            metavar="PEM",
            help="Sign the results of --json with this private key of Ed25519; needs"
            " `equipoise[sign]`.",
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help='With the layout "nyc-ll144": exit with 2 if the summary of results lacks what'
            " the rules ask for, or the audit is over a year old.",
        ),
    ] = False,
    every: Every = False,
    quiet: Quiet = False,
) -> None:
    """Ask the questions of a plan; print findings, write the report."""
    from equipoise.cli.delivery import STDOUT, answered, deliver
    from equipoise.data.fingerprint import sources
    from equipoise.plans.baseline import growth_since
    from equipoise.plans.dossier import load
    from equipoise.plans.gate import check_comparable, tripped
    from equipoise.plans.plan import read_plan
    from equipoise.plans.seal import signing_key
    from equipoise.report.ll144 import bias_audit
    from equipoise.results.question import find_question

    asked = read_plan(plan)
    if strict and asked.bias_audit is None:
        raise InvalidParameterError('`--strict` belongs to a plan with layout = "nyc-ll144".')
    outputs = (output, None if json_file == STDOUT else json_file, junit)
    inputs = {"the plan": [plan], "the data": sources(asked.path)}
    earlier = None
    if baseline is not None:
        inputs["the baseline"] = [baseline]
        earlier = load(baseline)
    if sign is not None:
        inputs["the key"] = [sign]
    check_outputs(*outputs, inputs=inputs)
    key = None if sign is None else signing_key(sign)
    if fail_on == "worse":
        known = [find_question(check.question) for check in asked.checks]
        check_comparable(known, baseline=earlier is not None)
    dossier = answered(asked, engine, quiet=quiet or json_file == STDOUT)
    if min_cell is not None:
        dossier = replace(dossier, min_cell=min_cell)
    grown = None if earlier is None else growth_since(dossier.disclosed(), earlier)
    stopped = tripped(dossier.checks, fail_on, grown=grown)
    deliver(
        dossier,
        output,
        json_file,
        junit,
        fail_on,
        quiet=quiet,
        every=every,
        grown=grown,
        key=key,
    )
    if dossier.failed:
        # An audit with an open question is wrong usage or data: the gate was not decided.
        told = "; ".join(f"check {name!r}: {reason}" for name, reason in dossier.failed.items())
        raise DataError(f"{told} The other checks were answered.")
    if strict and (rules := bias_audit(dossier)) is not None and rules.problems:
        raise DataError(f"The summary of results is not complete. {' '.join(rules.problems)}")
    if stopped:
        names = ", ".join(check.id for check in stopped)
        echo(
            f"equipoise: gate --fail-on {fail_on} tripped by {len(stopped)} of"
            f" {len(dossier.checks)} checks: {names}",
            err=True,
        )
        raise typer.Exit(1)


def demo(
    output: Output = None,
    json_file: Json = None,
    junit: Junit = None,
    every: Every = False,
    quiet: Quiet = False,
) -> None:
    """Audit the bundled COMPAS counts, as a tour."""
    from equipoise.cli.delivery import STDOUT, answered, deliver
    from equipoise.plans.plan import read_plan

    check_outputs(output, None if json_file == STDOUT else json_file, junit, inputs={})
    with as_file(files("equipoise.plans") / "templates") as folder:
        dossier = answered(
            read_plan(folder / "demo.toml"), "duckdb", quiet=quiet or json_file == STDOUT
        )
    deliver(dossier, output, json_file, junit, "never", quiet=quiet, every=every)
