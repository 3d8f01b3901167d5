"""``equipoise cells`` and ``equipoise merge``: sums that leave a site without its rows."""

from pathlib import Path
from typing import Annotated

import typer

from equipoise._typing import Engine, Missing
from equipoise.cli.files import check_outputs
from equipoise.cli.streams import echo

__all__ = ["cells", "merge"]

Output = Annotated[
    Path, typer.Option("--output", metavar="PARQUET", help="Write the cells to this file.")
]


def cells(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A csv or parquet file.")],
    group: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="A column whose values are compared; may be repeated."),
    ],
    metric: Annotated[
        list[str], typer.Option(metavar="NAME", help="A metric to be asked about; may be repeated.")
    ],
    output: Output = Path("cells.parquet"),
    y_true: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the outcome.")
    ] = None,
    y_pred: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the decision.")
    ] = None,
    y_score: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the score.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the unit that rows repeat.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of sampling weights.")
    ] = None,
    count: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of how many rows a row stands for."),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="The label that counts as 1, when labels are text."),
    ] = None,
    missing: Annotated[
        Missing, typer.Option(help="What to do with rows that lack a value.")
    ] = "raise",
    suppress_below: Annotated[
        int, typer.Option(metavar="ROWS", help="Withhold cells of fewer rows.")
    ] = 10,
    engine: Annotated[Engine, typer.Option(help="What reads the data.")] = "duckdb",
) -> None:
    """Write the sums of a table by group: no row, and no small cell."""
    from equipoise.audits.audit import Audit
    from equipoise.data.fingerprint import sources

    check_outputs(output, inputs={"the data": sources(data)})
    audit = Audit(
        data,
        group=group,
        y_true=y_true,
        y_pred=y_pred,
        y_score=y_score,
        cluster=cluster,
        weight=weight,
        count=count,
        positive=1 if positive is None else positive,
        missing=missing,
        engine=engine,
    )
    written = audit.cells(metrics=metric, path=output, suppress_below=suppress_below)
    echo(
        f"wrote {output}: {written.n_cells} cells; {written.withheld_cells} with"
        f" {written.withheld_rows} rows were withheld",
        err=True,
    )


def merge(
    files: Annotated[
        list[Path], typer.Argument(metavar="CELLS...", help="Written by `equipoise cells`.")
    ],
    output: Output = Path("merged.parquet"),
) -> None:
    """Add the cells of several sites whose tables share no rows and no clusters."""
    from equipoise.audits.cells import merge as merge_files

    check_outputs(output, inputs={"the cells": files})
    merged = merge_files(*files, path=output)
    echo(f"wrote {output}: {merged.n_cells} cells of {len(merged.sources)} tables", err=True)
