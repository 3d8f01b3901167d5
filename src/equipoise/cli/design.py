"""``equipoise design``: choices to make before there are results."""

import json
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from equipoise.cli.streams import echo

if TYPE_CHECKING:
    from equipoise.design.power import Power

__all__ = ["app"]

app = typer.Typer(
    help="Plan an audit: power, sample size, benefits and cap for a ratio of errors.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Question(StrEnum):
    """What the audit will ask."""

    DISPARITY = "disparity"
    FLAG = "flag"
    CERTIFY = "certify"
    INEQUALITY = "inequality"


class PlannedTarget(StrEnum):
    """What the groups are compared with."""

    POPULATION = "population"
    REST = "rest"
    REFERENCE = "reference"
    KNOWN = "known"


class Side(StrEnum):
    """Which disparities count."""

    GREATER = "greater"
    LESS = "less"
    TWO_SIDED = "two-sided"
    OUTSIDE = "outside"


class Rule(StrEnum):
    """How tests are adjusted for their number."""

    AUTO = "auto"
    BH = "bh"
    BY = "by"
    HOLM = "holm"
    BONFERRONI = "bonferroni"
    NONE = "none"


AskedQuestion = Annotated[Question, typer.Argument(help="disparity, flag, certify or inequality.")]
Share = Annotated[
    list[float],
    typer.Option("--share", help="Share of a group in the rows; repeat for several groups."),
]
Disparity = Annotated[
    list[float],
    typer.Option(
        "--disparity",
        help="True difference from the target, or mean benefit; one, or one per share.",
    ),
]
Rate = Annotated[float | None, typer.Option("--rate", help="Rate of the target, for 0/1 metrics.")]
Sd = Annotated[
    list[float] | None,
    typer.Option(
        "--sd", help="Standard deviation within groups, otherwise; one, or one per share."
    ),
]
AgainstWhom = Annotated[
    PlannedTarget, typer.Option("--target", help="What the groups are compared with.")
]
TargetSe = Annotated[float, typer.Option("--target-se", help="Standard error of a known target.")]
ReferenceShare = Annotated[
    float | None, typer.Option("--reference-share", help="Share of the reference group.")
]
Margin = Annotated[
    float, typer.Option("--margin", help="Tolerated difference; for certify the one to exclude.")
]
Alternative = Annotated[Side, typer.Option("--alternative", help="Side of the flags.")]
Alpha = Annotated[float, typer.Option("--alpha", help="Level of the tests.")]
Tests = Annotated[
    int | None, typer.Option("--n-tests", help="Tests in the family; default: one per share.")
]
Adjust = Annotated[Rule, typer.Option("--adjust", help="Adjustment for the number of tests.")]
DesignEffect = Annotated[
    float, typer.Option("--design-effect", help="Variance factor for dependent rows.")
]
ClusterSize = Annotated[
    float | None, typer.Option("--cluster-size", help="Rows of a unit, where rows are dependent.")
]
Skewness = Annotated[
    float | None,
    typer.Option("--skewness", help="Of the mean of a unit; by default none, or what --rate says."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


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
    echo(json.dumps(design.to_dict(), indent=2) if as_json else str(design))


@app.command(name="power")
def show_power(
    question: AskedQuestion,
    n: Annotated[int, typer.Option("--n", help="Rows on which the metric is defined.")],
    share: Share,
    disparity: Disparity = [0.0],  # noqa: B006
    rate: Rate = None,
    sd: Sd = None,
    target: AgainstWhom = PlannedTarget.POPULATION,
    target_se: TargetSe = 0.0,
    reference_share: ReferenceShare = None,
    margin: Margin = 0.0,
    alternative: Alternative = Side.GREATER,
    alpha: Alpha = 0.05,
    n_tests: Tests = None,
    adjust: Adjust = Rule.AUTO,
    design_effect: DesignEffect = 1.0,
    cluster_size: ClusterSize = None,
    skewness: Skewness = None,
    as_json: AsJson = False,
) -> None:
    """Chance that an audit of n rows shows what is there."""
    from equipoise.design.power import power

    _show(
        power(
            question.value,
            n=n,
            share=share,
            disparity=disparity,
            rate=rate,
            sd=sd,
            target=target.value,
            target_se=target_se,
            reference_share=reference_share,
            margin=margin,
            alternative=alternative.value,
            alpha=alpha,
            n_tests=n_tests,
            adjust=adjust.value,
            design_effect=design_effect,
            cluster_size=cluster_size,
            skewness=skewness,
        ),
        as_json=as_json,
    )


@app.command(name="sample-size")
def show_sample_size(
    question: AskedQuestion,
    share: Share,
    disparity: Disparity = [0.0],  # noqa: B006
    rate: Rate = None,
    sd: Sd = None,
    target: AgainstWhom = PlannedTarget.POPULATION,
    target_se: TargetSe = 0.0,
    reference_share: ReferenceShare = None,
    margin: Margin = 0.0,
    alternative: Alternative = Side.GREATER,
    alpha: Alpha = 0.05,
    n_tests: Tests = None,
    adjust: Adjust = Rule.AUTO,
    design_effect: DesignEffect = 1.0,
    cluster_size: ClusterSize = None,
    skewness: Skewness = None,
    wanted: Annotated[
        float, typer.Option("--power", help="Power wanted for the test of each group.")
    ] = 0.8,
    as_json: AsJson = False,
) -> None:
    """Rows that an audit needs to show what is there."""
    from equipoise.design.power import sample_size

    _show(
        sample_size(
            question.value,
            share=share,
            disparity=disparity,
            rate=rate,
            sd=sd,
            target=target.value,
            target_se=target_se,
            reference_share=reference_share,
            margin=margin,
            alternative=alternative.value,
            alpha=alpha,
            n_tests=n_tests,
            adjust=adjust.value,
            design_effect=design_effect,
            cluster_size=cluster_size,
            skewness=skewness,
            power=wanted,
        ),
        as_json=as_json,
    )


def _show(plan: "Power", *, as_json: bool) -> None:
    echo(json.dumps(asdict(plan), indent=2) if as_json else str(plan))
