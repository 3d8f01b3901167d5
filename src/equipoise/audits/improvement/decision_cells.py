"""Rows with the same group, outcome and decisions, counted where they are.

A ready candidate is judged by what it and the status quo decide about whom: identical rows need
only be counted. A score that selects a top share matters by its order alone, and only about its
cut-off; elsewhere its values are merged before rows are counted.
"""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from equipoise.audits.asking import Asking
from equipoise.audits.disparity.measure import dropped_notes
from equipoise.audits.improvement.decision_rows import (
    DecisionRows,
    capacity_needed,
    check_numeric,
    decision_needs,
    missing_values,
    selective_labels,
)
from equipoise.data.columns import Needs
from equipoise.data.groups import cell_names, encode
from equipoise.data.metrics import Metric
from equipoise.data.query import collect
from equipoise.data.table import Table
from equipoise.stats.improvement.capacity import selected_copies

__all__ = ["read_cells"]

MAX_COMBINATIONS = 200_000
BUCKETS = 4096
NEAR_ROWS = 1000
"""Rows about a cut-off whose scores are kept as they are."""

# In this order rows with equal scores are selected, as in `decision_rows`.
VALUES = ("y", "weight", "status_quo", "candidate")


def read_cells(
    table: Table, metrics: Sequence[str | Metric], *, candidate: str, capacity: float | None
) -> Asking[DecisionRows | None]:
    """Count the rows of a ready candidate by group, outcome, weight and decisions.

    Parameters
    ----------
    table : Table
        With roles.
    metrics : sequence of str or Metric
        Accuracy and fairness metrics.
    candidate : str
        Column of the candidate: decisions, or a score that is cut at the capacity.
    capacity : float, optional
        Share of people that may be selected.

    Yields
    ------
    Sums
        Which check the rows.

    Returns
    -------
    DecisionRows or None
        With the decisions of both rules; `None` when rows cannot be counted: there are clusters, a
        metric of the user's own, or too many combinations of values.
    """
    needs = decision_needs(table, metrics)
    if table.roles.cluster is not None or any(isinstance(metric, Metric) for metric in metrics):
        return None
    if "y_pred" not in needs and capacity is None:
        raise capacity_needed()
    notes = selective_labels(table, needs)
    check_numeric(table, [candidate])
    yield table.sums((), needs, order=1)
    frame, dropped = _complete(table, needs, candidate)
    scores = _scores(frame, needs, capacity)
    share = 1.0 if capacity is None else capacity
    for name, ends in scores.items():
        frame = frame.with_columns(_merged(frame, name, ends, share))
    keys = [*table.group_keys(), *VALUES]
    count = nw.col("count").sum().alias("count")
    query = frame.group_by(keys).agg(count).head(MAX_COMBINATIONS + 1)
    found = collect(query, keys=table.group_keys())
    if len(found["count"]) > MAX_COMBINATIONS:
        return None
    cell, labels = encode([found[name] for name in table.group_keys()], len(found["count"]))
    rows: dict[str, Any] = {"group": cell} | {name: found[name] for name in VALUES}
    rows["count"] = found["count"].round().astype(np.int64)
    order = np.lexsort([rows[name] for name in reversed(("group", *VALUES))])
    rows = {name: values[order] for name, values in rows.items()}
    for name in scores:
        rows = _cut(rows, name, share)
    return DecisionRows(
        key=np.arange(len(rows["count"])),
        group=rows["group"],
        names=cell_names(table.roles.group, labels),
        y=rows["y"],
        status_quo=rows["status_quo"],
        score=None,
        candidate=rows["candidate"],
        X=np.empty((len(rows["count"]), 0)),
        feature_names=(),
        unit=None,
        weight=None if table.roles.weight is None else rows["weight"],
        frame=None,
        decision_column=table.roles.y_pred,
        notes=(*dropped_notes(dropped), *notes),
        count=rows["count"],
    )


def _complete(table: Table, needs: Needs, candidate: str) -> tuple["nw.LazyFrame[Any]", int]:
    """Return the complete rows with the columns that matter, and how many were dropped."""
    roles = table.roles
    columns = table.group_keys() | {
        "y": table.y_true if "y_true" in needs else nw.lit(0.0),
        "weight": nw.lit(1.0) if roles.weight is None else table.value("weight"),
        "status_quo": table.value("y_pred" if "y_pred" in needs else "y_score"),
        "candidate": nw.col(candidate).cast(nw.Float64),
        "count": nw.lit(1.0) if roles.count is None else table.value("count"),
    }
    frame = table.complete(needs).select(**columns)
    bad = nw.col("candidate").is_null() | ~nw.col("candidate").is_finite()
    sizes = collect(frame.select(nw.len().alias("rows"), bad.cast(nw.Int64).sum().alias("missing")))
    n_rows, n_missing = (int(sizes[name][0] or 0) for name in ("rows", "missing"))
    if n_missing and roles.missing == "raise":
        raise missing_values(candidate, n_missing, n_rows)
    everyone = collect(table.frame.select(nw.len().alias("rows")))
    return frame.filter(~bad), int(everyone["rows"][0]) - n_rows + n_missing


def _scores(
    frame: "nw.LazyFrame[Any]", needs: Needs, capacity: float | None
) -> dict[str, tuple[float, float]]:
    """Return the columns that are cut at the capacity, with their lowest and highest values."""
    names = ("status_quo", "candidate")
    decided = (nw.col("candidate") == 0.0) | (nw.col("candidate") == 1.0)
    found = collect(
        frame.select(
            (~decided).cast(nw.Int64).sum().alias("undecided"),
            *[nw.col(name).min().alias(f"{name} low") for name in names],
            *[nw.col(name).max().alias(f"{name} high") for name in names],
        )
    )
    cut = [] if "y_pred" in needs else ["status_quo"]
    if capacity is not None and found["undecided"][0]:
        cut.append("candidate")
    return {name: (float(found[f"{name} low"][0]), float(found[f"{name} high"][0])) for name in cut}


def _merged(
    frame: "nw.LazyFrame[Any]", name: str, ends: tuple[float, float], share: float
) -> nw.Expr:
    """Return a score whose values are merged, above and below those about its cut-off.

    The range is narrowed to the bucket in which the cut-off lies, and its neighbours whatever the
    rounding, until few rows are left in it, or few scores.
    """
    value = nw.col(name)
    sums = [(nw.col("weight") * nw.col("count")).sum().alias("mass"), nw.len().alias("rows")]
    low, high = ends
    while low < low + (high - low) / BUCKETS:
        bucket = ((value - low) / ((high - low) / BUCKETS)).floor().clip(-1.0, BUCKETS + 1.0)
        query = frame.select(name, "weight", "count", bucket.alias("bucket")).group_by("bucket")
        found = collect(query.agg(*sums, value.min().alias("low"), value.max().alias("high")))
        order = np.argsort(found["bucket"])[::-1]
        above = np.cumsum(found["mass"][order])
        last = int(np.argmax(above > share * above[-1]))
        near = order[max(last - 1, 0) : last + 2]
        near = near[np.abs(found["bucket"][near] - BUCKETS / 2) <= BUCKETS / 2]
        before = low, high
        low, high = float(found["low"][near].min()), float(found["high"][near].max())
        if found["rows"][near].sum() <= NEAR_ROWS or (low, high) == before:
            break
    merged = nw.when(value > high).then(nw.lit(ends[1])).otherwise(value)
    return nw.when(value < low).then(nw.lit(ends[0])).otherwise(merged).alias(name)


def _cut(rows: dict[str, Any], name: str, share: float) -> dict[str, Any]:
    """Replace a score by decisions; rows of which some are selected are parted."""
    selected = selected_copies(rows[name], share, rows["count"], weight=rows["weight"])
    rest = rows["count"] - selected
    yes, no = np.flatnonzero(selected), np.flatnonzero(rest)
    place = np.concatenate([yes, no])
    order = np.argsort(place, kind="stable")
    parted = {column: values[place[order]] for column, values in rows.items()}
    parted["count"] = np.concatenate([selected[yes], rest[no]])[order]
    parted[name] = np.concatenate([np.ones(len(yes)), np.zeros(len(no))])[order]
    return parted
