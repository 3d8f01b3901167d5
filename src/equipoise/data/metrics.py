"""Metrics: pairs of row quantities (u, w) whose value in a group is E[u] / E[w]."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import narwhals as nw

from equipoise._checks import nearest, quoted
from equipoise.data.columns import Needs, RoleColumns
from equipoise.exceptions import InvalidParameterError

__all__ = ["METRICS", "AnyMetric", "Metric", "RateMetric", "RealMetric", "find_metric"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of your own: the ratio of two means.

    Parameters
    ----------
    name : str
        Shown in results.
    numerator, denominator : str or narwhals expression
        Row quantities u and w, as columns or expressions of the columns of your table; without a
        denominator the metric is a mean.

    Examples
    --------
    Profit for each approved loan:

    >>> import narwhals as nw
    >>> from equipoise import Metric
    >>> metric = Metric("profit per loan", nw.col("profit") * nw.col("approved"), "approved")
    >>> metric.name
    'profit per loan'
    """

    name: str
    numerator: "nw.Expr | str"
    denominator: "nw.Expr | str | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateMetric:
    """A rate of 0/1 labels: counts of label combinations are all it needs.

    `u` and `w` say, for the combinations (1, 1), (1, 0), (0, 1), (0, 0) of `roles` (or 1, 0 for a
    single role), whether a row counts in the numerator and the denominator.
    """

    name: str
    roles: tuple[str, ...]
    u: tuple[int, ...]
    w: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RealMetric:
    """A ratio of means of any numbers, built from the columns of a table."""

    name: str
    needs: Needs
    build: Callable[[RoleColumns], tuple[nw.Expr, nw.Expr]]


AnyMetric: TypeAlias = Metric | RateMetric | RealMetric

BOTH = ("y_true", "y_pred")


def _rate(name: str, u: tuple[int, ...], w: tuple[int, ...]) -> RateMetric:
    return RateMetric(name=name, roles=BOTH, u=u, w=w)


def _mean(name: str, role: str) -> RealMetric:
    return RealMetric(
        name=name, needs={role: "number"}, build=lambda table: (table.value(role), nw.lit(1.0))
    )


def _selected_outcome(table: RoleColumns) -> tuple[nw.Expr, nw.Expr]:
    return table.y_true * table.y_pred, table.y_pred


def _residual(table: RoleColumns) -> tuple[nw.Expr, nw.Expr]:
    return table.y_true - table.y_score, nw.lit(1.0)


def _squared_error(table: RoleColumns) -> tuple[nw.Expr, nw.Expr]:
    error = table.y_true - table.y_score
    return error * error, nw.lit(1.0)


# Label combinations in the order (y_true, y_pred) = (1, 1), (1, 0), (0, 1), (0, 0).
METRICS: dict[str, RateMetric | RealMetric] = {
    metric.name: metric
    for metric in (
        RateMetric(name="selection_rate", roles=("y_pred",), u=(1, 0), w=(1, 1)),
        _rate("tpr", (1, 0, 0, 0), (1, 1, 0, 0)),
        _rate("fnr", (0, 1, 0, 0), (1, 1, 0, 0)),
        _rate("fpr", (0, 0, 1, 0), (0, 0, 1, 1)),
        _rate("tnr", (0, 0, 0, 1), (0, 0, 1, 1)),
        _rate("ppv", (1, 0, 0, 0), (1, 0, 1, 0)),
        _rate("fdr", (0, 0, 1, 0), (1, 0, 1, 0)),
        _rate("npv", (0, 0, 0, 1), (0, 1, 0, 1)),
        _rate("for", (0, 1, 0, 0), (0, 1, 0, 1)),
        _rate("accuracy", (1, 0, 0, 1), (1, 1, 1, 1)),
        _rate("error_rate", (0, 1, 1, 0), (1, 1, 1, 1)),
        _mean("mean_outcome", "y_true"),
        _mean("mean_score", "y_score"),
        RealMetric(
            name="selected_outcome",
            needs={"y_true": "number", "y_pred": "label"},
            build=_selected_outcome,
        ),
        RealMetric(
            name="squared_error",
            needs={"y_true": "number", "y_score": "number"},
            build=_squared_error,
        ),
        RealMetric(
            name="residual", needs={"y_true": "number", "y_score": "number"}, build=_residual
        ),
    )
}

SYNONYMS = {
    "acceptance_rate": "selection_rate",
    "positive_rate": "selection_rate",
    "precision": "ppv",
    "recall": "tpr",
    "sensitivity": "tpr",
    "specificity": "tnr",
    "equal_opportunity": "tpr",
    "predictive_parity": "ppv",
    "demographic_parity": "selection_rate",
}


def find_metric(metric: str | Metric) -> AnyMetric:
    """Return the metric of that name, or the metric itself."""
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        raise InvalidParameterError(
            f"`metric` must be a name or an `equipoise.Metric`; got {type(metric).__name__}."
        )
    name = SYNONYMS.get(metric, metric)
    if name not in METRICS:
        raise InvalidParameterError(
            f"`metric` {metric!r} is unknown.{nearest(metric, (*METRICS, *SYNONYMS))}"
            f" Metrics: {quoted(METRICS)}."
        )
    return METRICS[name]
