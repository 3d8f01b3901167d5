"""Metrics: pairs of row quantities (u, w) whose value in a group is E[u] / E[w]."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Literal, TypeAlias

import narwhals as nw

from equipoise._checks import nearest, quoted
from equipoise.data.columns import ONE, Needs, RoleColumns
from equipoise.data.table import label_combinations
from equipoise.exceptions import InvalidParameterError

__all__ = ["METRICS", "OPPOSITE", "AnyMetric", "Metric", "RateMetric", "RealMetric", "find_metric"]

Better: TypeAlias = Literal["higher", "lower"] | None
Event: TypeAlias = Literal["selected", "not_selected", "outcome", "no_outcome", "right", "wrong"]

OPPOSITE: dict[Event, Event] = {
    "selected": "not_selected",
    "not_selected": "selected",
    "outcome": "no_outcome",
    "no_outcome": "outcome",
}
"""What happened to those whom a decision or an outcome did not happen to."""


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

    @property
    def words(self) -> str:
        """What the metric is called in a sentence."""
        return self.name

    @property
    def needs(self) -> Needs:
        """The roles that are used: none, for the columns are named."""
        return {}

    def build(self, table: RoleColumns) -> tuple[nw.Expr, nw.Expr]:
        """Return u and w as numbers of each row, null where a column that is used is."""
        return _own(table, self.numerator), _own(table, self.denominator)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateMetric:
    """A rate of 0/1 labels: counts of label combinations are all it needs.

    `words` is what it is called in a sentence, `better` which values are better for what the
    algorithm is for (`None` where that depends on the decision), `synonyms` other names of it.
    `u` and `w` say, for the combinations (1, 1), (1, 0), (0, 1), (0, 0) of `roles` (or 1, 0 for a
    single role), whether a row counts in the numerator and the denominator; `event` and `among` say
    the same in words: what is counted, among whom.
    """

    name: str
    words: str
    roles: tuple[str, ...]
    u: tuple[int, ...]
    w: tuple[int, ...]
    event: Event
    among: Event | None = None
    better: Better = None
    synonyms: tuple[str, ...] = ()

    @property
    def needs(self) -> Needs:
        """The roles that are used."""
        return dict.fromkeys(self.roles, "label")

    def build(self, table: RoleColumns) -> tuple[nw.Expr, nw.Expr]:
        """Return u and w as numbers of each row, null where a label is."""
        labels = label_combinations(self.roles)
        u, w = (
            reduce(
                add,
                [
                    table.number(table.has_labels(self.roles, own))
                    for own, counts in zip(labels, chosen, strict=True)
                    if counts
                ],
            )
            for chosen in (self.u, self.w)
        )
        return u, w

    def in_favour_of(self, good: Event | None) -> "RateMetric":
        """Return the rate of the good event, where this is the rate of its opposite among all."""
        if good is None or self.among is not None or OPPOSITE.get(self.event) != good:
            return self
        u = tuple(w - u for u, w in zip(self.u, self.w, strict=True))
        return replace(self, u=u, event=good, better="higher")


@dataclass(frozen=True, slots=True, kw_only=True)
class RealMetric:
    """A ratio of means of any numbers, built from the columns of a table.

    `meaning` says in words what is averaged over which rows; the rest as in `RateMetric`.
    """

    name: str
    words: str
    meaning: str
    needs: Needs
    build: Callable[[RoleColumns], tuple[nw.Expr, nw.Expr]]
    better: Better = None
    synonyms: tuple[str, ...] = ()


def _own(table: RoleColumns, quantity: "nw.Expr | str | None") -> nw.Expr:
    if quantity is None:
        return ONE
    if isinstance(quantity, str):
        table.check_column(quantity)
        return nw.col(quantity).cast(nw.Float64)
    return quantity.cast(nw.Float64)


AnyMetric: TypeAlias = Metric | RateMetric | RealMetric
Metrics: TypeAlias = str | Metric | list[str | Metric] | tuple[str | Metric, ...]
"""One metric, by name or of the user's own, or several."""

BOTH = ("y_true", "y_pred")


def _mean(role: str) -> Callable[[RoleColumns], tuple[nw.Expr, nw.Expr]]:
    return lambda table: (table.value(role), ONE)


def _selected_outcome(table: RoleColumns) -> tuple[nw.Expr, nw.Expr]:
    return table.y_true * table.y_pred, table.y_pred


def _residual(table: RoleColumns) -> tuple[nw.Expr, nw.Expr]:
    return table.y_true - table.y_score, ONE


def _squared_error(table: RoleColumns) -> tuple[nw.Expr, nw.Expr]:
    error = table.y_true - table.y_score
    return error * error, ONE


def _absolute_error(table: RoleColumns) -> tuple[nw.Expr, nw.Expr]:
    return (table.y_true - table.y_score).abs(), ONE


def _scoring_rate(table: RoleColumns) -> tuple[nw.Expr, nw.Expr]:
    above = (table.y_score > table.median("y_score")).cast(nw.Int32).cast(nw.Float64)
    return above, ONE


SCORED: Needs = {"y_true": "number", "y_score": "number"}

# Label combinations in the order (y_true, y_pred) = (1, 1), (1, 0), (0, 1), (0, 0).
_ALL: tuple[RateMetric | RealMetric, ...] = (
    RateMetric(
        name="selection_rate",
        words="selection rate",
        roles=("y_pred",),
        u=(1, 0),
        w=(1, 1),
        event="selected",
        synonyms=("acceptance_rate", "positive_rate", "demographic_parity"),
    ),
    RateMetric(
        name="tpr",
        words="true positive rate",
        roles=BOTH,
        u=(1, 0, 0, 0),
        w=(1, 1, 0, 0),
        event="selected",
        among="outcome",
        better="higher",
        synonyms=("recall", "sensitivity", "true_positive_rate", "equal_opportunity"),
    ),
    RateMetric(
        name="fnr",
        words="false negative rate",
        roles=BOTH,
        u=(0, 1, 0, 0),
        w=(1, 1, 0, 0),
        event="not_selected",
        among="outcome",
        better="lower",
        synonyms=("false_negative_rate",),
    ),
    RateMetric(
        name="fpr",
        words="false positive rate",
        roles=BOTH,
        u=(0, 0, 1, 0),
        w=(0, 0, 1, 1),
        event="selected",
        among="no_outcome",
        better="lower",
        synonyms=("false_positive_rate",),
    ),
    RateMetric(
        name="tnr",
        words="true negative rate",
        roles=BOTH,
        u=(0, 0, 0, 1),
        w=(0, 0, 1, 1),
        event="not_selected",
        among="no_outcome",
        better="higher",
        synonyms=("specificity", "true_negative_rate"),
    ),
    RateMetric(
        name="ppv",
        words="positive predictive value",
        roles=BOTH,
        u=(1, 0, 0, 0),
        w=(1, 0, 1, 0),
        event="outcome",
        among="selected",
        better="higher",
        synonyms=("precision", "positive_predictive_value", "predictive_parity"),
    ),
    RateMetric(
        name="fdr",
        words="false discovery rate",
        roles=BOTH,
        u=(0, 0, 1, 0),
        w=(1, 0, 1, 0),
        event="no_outcome",
        among="selected",
        better="lower",
        synonyms=("false_discovery_rate",),
    ),
    RateMetric(
        name="npv",
        words="negative predictive value",
        roles=BOTH,
        u=(0, 0, 0, 1),
        w=(0, 1, 0, 1),
        event="no_outcome",
        among="not_selected",
        better="higher",
        synonyms=("negative_predictive_value",),
    ),
    RateMetric(
        name="for",
        words="false omission rate",
        roles=BOTH,
        u=(0, 1, 0, 0),
        w=(0, 1, 0, 1),
        event="outcome",
        among="not_selected",
        better="lower",
        synonyms=("false_omission_rate",),
    ),
    RateMetric(
        name="accuracy",
        words="accuracy",
        roles=BOTH,
        u=(1, 0, 0, 1),
        w=(1, 1, 1, 1),
        event="right",
        better="higher",
    ),
    RateMetric(
        name="error_rate",
        words="error rate",
        roles=BOTH,
        u=(0, 1, 1, 0),
        w=(1, 1, 1, 1),
        event="wrong",
        better="lower",
    ),
    RateMetric(
        name="outcome_rate",
        words="outcome rate",
        roles=("y_true",),
        u=(1, 0),
        w=(1, 1),
        event="outcome",
        synonyms=("base_rate", "prevalence"),
    ),
    RealMetric(
        name="mean_outcome",
        words="mean outcome",
        meaning="mean of the outcome",
        needs={"y_true": "number"},
        build=_mean("y_true"),
    ),
    RealMetric(
        name="mean_score",
        words="mean score",
        meaning="mean of the score",
        needs={"y_score": "number"},
        build=_mean("y_score"),
    ),
    RealMetric(
        name="scoring_rate",
        words="scoring rate",
        meaning="share of scores above the median of all scores",
        needs={"y_score": "number"},
        build=_scoring_rate,
    ),
    RealMetric(
        name="selected_outcome",
        words="mean outcome among the selected",
        meaning="mean of the outcome over the selected rows",
        needs={"y_true": "number", "y_pred": "label"},
        build=_selected_outcome,
    ),
    RealMetric(
        name="squared_error",
        words="squared error",
        meaning="mean of (outcome - score)²",
        needs=SCORED,
        build=_squared_error,
        better="lower",
    ),
    RealMetric(
        name="absolute_error",
        words="absolute error",
        meaning="mean of |outcome - score|",
        needs=SCORED,
        build=_absolute_error,
        better="lower",
    ),
    RealMetric(
        name="residual",
        words="mean residual",
        meaning="mean of outcome - score",
        needs=SCORED,
        build=_residual,
    ),
)
METRICS: dict[str, RateMetric | RealMetric] = {metric.name: metric for metric in _ALL}
"""Every metric with a name; an entry here is all that a new one takes."""


def find_metric(metric: str | AnyMetric) -> AnyMetric:
    """Return the metric of that name, or the metric itself."""
    if isinstance(metric, (Metric, RateMetric, RealMetric)):
        return metric
    if not isinstance(metric, str):
        raise InvalidParameterError(
            f"`metric` must be a name or an `equipoise.Metric`; got {type(metric).__name__}."
        )
    synonyms = {word: entry.name for entry in METRICS.values() for word in entry.synonyms}
    name = synonyms.get(metric, metric)
    if name not in METRICS:
        raise InvalidParameterError(
            f"`metric` {metric!r} is unknown.{nearest(metric, (*METRICS, *synonyms))}"
            f" Metrics: {quoted(METRICS)}."
        )
    return METRICS[name]


def find_metrics(metric: Metrics) -> tuple[AnyMetric, ...]:
    """Return one metric or several; raise when one is named twice.

    Parameters
    ----------
    metric : str, Metric or list of them
        Names, or metrics of the user's own.

    Returns
    -------
    tuple
        Of what `find_metric` returns.

    Examples
    --------
    >>> [metric.name for metric in find_metrics(["fpr", "tpr"])]
    ['fpr', 'tpr']
    """
    given = metric if isinstance(metric, (list, tuple)) else [metric]
    found = tuple(find_metric(one) for one in given)
    names = [one.name for one in found]
    if not names:
        raise InvalidParameterError("`metric` must name at least one metric; got an empty list.")
    if len(set(names)) < len(names):
        raise InvalidParameterError(f"`metric` names one metric twice: {quoted(names)}.")
    return found
