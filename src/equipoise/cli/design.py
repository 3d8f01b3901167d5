"""``equipoise design``: choices to make before there are results."""

import json
from enum import StrEnum
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(
    help="Plan an audit: benefits and cap for a ratio of errors.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Kind(StrEnum):
    """What selection does to a person."""

    PUNITIVE = "punitive"
    ASSISTIVE = "assistive"


@app.callback()
def _commands() -> None:
    """Plan an audit before the data are there."""


@app.command()
def benefits(
    base_rate: Annotated[
        float, typer.Option("--base-rate", help="Share of people whose outcome is 1.")
    ],
    kappa: Annotated[
        float, typer.Option("--kappa", help="How many benign errors one harmful error is worth.")
    ],
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind", help="Punitive: avoid false positives. Assistive: avoid false negatives."
        ),
    ] = Kind.PUNITIVE,
    minimum_benefit: Annotated[
        float,
        typer.Option(
            "--minimum-benefit",
            help="Benefit of a person who suffers the harmful error, in (0, 1).",
        ),
    ] = 0.1,
    order: Annotated[float, typer.Option("--order", help="Order of the entropy index.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Choose a benefit matrix and a cap so that harmful errors stay rare."""
    from equipoise.design.benefits import benefit_design

    design = benefit_design(base_rate, kappa, kind.value, minimum_benefit, order)
    typer.echo(json.dumps(design.to_dict(), indent=2) if as_json else str(design))
