"""Rows in memory with everything that status quo and candidate decide about."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._checks import LARGEST
from equipoise._typing import AnyArray, FloatArray, IntArray
from equipoise.audits.asking import Asking
from equipoise.audits.disparity.measure import dropped_notes
from equipoise.data.columns import Needs
from equipoise.data.groups import cell_names, check_cells, encode
from equipoise.data.metrics import Metric, RateMetric, find_metric
from equipoise.data.query import collect
from equipoise.data.splitting import PRIME, hashed, hashed_numpy
from equipoise.data.table import KEY, Table
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError
from equipoise.results.finding import Note
from equipoise.search.sample import Utility, named_utility

__all__ = [
    "DecisionRows",
    "capacity_needed",
    "check_numeric",
    "decision_needs",
    "missing_values",
    "read_rows",
    "selective_labels",
    "utility_name",
    "worse_when_larger",
]

MAX_ROWS = 50_000_000
SAMPLE_ROWS = 500_000
"""Rows of a Spark DataFrame that leave the cluster at most."""
# Share of the missing outcomes among people not selected from which labels are called selective.
SELECTIVE = 0.9

BETTER = {"fpr": "tnr", "fnr": "tpr", "error_rate": "accuracy", "fdr": "ppv", "for": "npv"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRows:
    """Complete rows, sorted by their key.

    Parameters
    ----------
    key : array of shape (n,)
        Row number, or number of the cluster; the same on every engine.
    group : array of shape (n,)
        Cell of each row.
    names : tuple of str
        Names of the cells.
    y : array of shape (n,)
        Outcome; zeros when no metric uses it.
    status_quo, score, candidate : array of shape (n,), optional
        Decisions in use, the score in use, and a ready candidate column.
    X : array of shape (n, d)
        Features.
    feature_names : tuple of str
        Their names.
    unit : array of shape (n,), optional
        Cluster of each row.
    weight : array of shape (n,), optional
        Sampling weights.
    frame : narwhals.DataFrame, optional
        All columns, when a metric of the user's own needs them.
    decision_column : str, optional
        Column that such a metric reads decisions from.
    notes : tuple of Note
        What the reader should know.
    count : array of shape (n,), optional
        How many identical rows a row stands for; one without it.
    """

    key: IntArray
    group: IntArray
    names: tuple[str, ...]
    y: FloatArray
    status_quo: FloatArray | None
    score: FloatArray | None
    candidate: FloatArray | None
    X: FloatArray
    feature_names: tuple[str, ...]
    unit: IntArray | None
    weight: FloatArray | None
    frame: Any
    decision_column: str | None
    notes: tuple[Note, ...]
    count: IntArray | None = None

    @property
    def group_sizes(self) -> IntArray:
        """Rows of each group."""
        sizes = np.bincount(self.group, weights=self.count, minlength=len(self.names))
        return sizes.round().astype(np.int64)

    def split(self, seed: int, train_fraction: float) -> tuple[IntArray, IntArray]:
        """Return training and test rows; units stay whole, and every engine splits alike."""
        units, place = np.unique(self.key, return_inverse=True)
        order = np.lexsort((units, hashed_numpy(units, seed)))
        train = np.zeros(len(units), dtype=np.bool_)
        train[order[: int(np.floor(train_fraction * len(units) + 1e-9))]] = True
        chosen = train[place]
        return np.flatnonzero(chosen), np.flatnonzero(~chosen)

    def utility(self, metric: str | Metric, rows: IntArray) -> Utility:
        """Return a metric as a function of the decisions about some of the rows."""
        if not isinstance(metric, Metric):
            return named_utility(metric, self.y[rows])
        part = self.frame[rows.tolist()]
        top, bottom = _expression(metric.numerator), _expression(metric.denominator)
        column = str(self.decision_column)

        def quantities(d: FloatArray) -> tuple[FloatArray, FloatArray]:
            decisions = nw.new_series("d", d, nw.Float64, backend="pyarrow")
            found = part.with_columns(decisions.alias(column)).select(
                u=top.cast(nw.Float64), w=bottom.cast(nw.Float64)
            )
            return found["u"].to_numpy(), found["w"].to_numpy()

        return quantities


def _expression(quantity: "nw.Expr | str | None") -> nw.Expr:
    if quantity is None:
        return nw.lit(1.0)
    return nw.col(quantity) if isinstance(quantity, str) else quantity


def utility_name(metric: str | Metric) -> str:
    """Return the name of a metric."""
    return find_metric(metric).name


def worse_when_larger(metric: str | Metric) -> str | None:
    """Return the metric to use instead when larger values of this one are worse."""
    return BETTER.get(utility_name(metric))


def decision_needs(table: Table, metrics: Sequence[str | Metric]) -> dict[str, Any]:
    """Return the roles that the utilities and the status quo use."""
    if not table.roles.group:
        raise InvalidParameterError("this question compares groups; pass `group` to `Audit`.")
    needs: dict[str, Any] = {}
    for metric in metrics:
        found = find_metric(metric)
        if isinstance(found, RateMetric):
            needs |= dict.fromkeys((role for role in found.roles if role == "y_true"), "label")
        elif not isinstance(found, Metric):
            needs.setdefault("y_true", "number")
    own = any(isinstance(metric, Metric) for metric in metrics)
    if table.roles.y_pred is not None:
        needs["y_pred"] = "number" if own else "label"
    elif own:
        raise InvalidParameterError(
            "a metric of your own reads decisions from the `y_pred` column; pass `y_pred` to"
            " `Audit`."
        )
    elif table.roles.y_score is not None:
        needs["y_score"] = "number"
    else:
        raise InvalidParameterError(
            "the status quo needs `y_pred`, or `y_score` with a `capacity`; pass one to `Audit`."
        )
    return needs


def read_rows(
    table: Table, metrics: Sequence[str | Metric], *, candidate: str | None, features: bool
) -> Asking[DecisionRows]:
    """Read the rows that the metrics, the status quo and the candidate need.

    Parameters
    ----------
    table : Table
        With roles.
    metrics : sequence of str or Metric
        Accuracy and fairness metrics.
    candidate : str, optional
        Column of a ready candidate.
    features : bool
        Whether a candidate will be fitted to the features.

    Yields
    ------
    Sums
        Which check the rows.

    Returns
    -------
    DecisionRows
    """
    roles = table.roles
    if features and not roles.features:
        raise InvalidParameterError(
            "a candidate is fitted to features; pass their names as `features` to `Audit`."
        )
    needs = decision_needs(table, metrics)
    selective = selective_labels(table, needs)
    if features:
        roles.column("y_true")
        needs.setdefault("y_true", "number")
    extra = [*(roles.features if features else ()), *([candidate] if candidate else [])]
    check_numeric(table, extra)
    columns = {KEY: nw.col(KEY)} | table.group_keys()
    columns |= {f"__eq_{role}": table.value(role) for role in needs}
    columns |= {
        f"__eq_{role}": table.value(role) for role in ("weight", "count") if getattr(roles, role)
    }
    columns |= {f"__eq_x{k}": nw.col(name).cast(nw.Float64) for k, name in enumerate(extra)}
    own = any(isinstance(metric, Metric) for metric in metrics)
    if own:
        columns |= {name: nw.col(name) for name in table.schema}
    yield table.sums((), needs, order=1)
    keyed, sampled = _sampled(table, table.keyed(needs), needs)
    found = collect(keyed.select(**columns), keys=table.group_keys())
    order = _order(table, found, f"__eq_x{len(extra) - 1}" if candidate else None)
    found = {name: values[order] for name, values in found.items()}
    rows = _assemble(table, found, extra, candidate, own=own)
    return replace(rows, notes=(*rows.notes, *selective, *sampled))


def _order(table: Table, found: dict[str, AnyArray], candidate: str | None) -> IntArray:
    """Return the order of rows, by which equal scores are selected.

    Rows that are split are in the order of their keys. With a ready candidate, they are in the
    order of what matters about them: then equal rows are exchangeable, and can be counted.
    """
    if candidate is None or table.roles.cluster is not None:
        return np.argsort(found[KEY], kind="stable")
    cell, _ = encode([found[name] for name in table.group_keys()], len(found[KEY]))
    names = ("__eq_y_true", "__eq_weight", "__eq_y_pred", "__eq_y_score", candidate)
    keys = [cell, *(found[name] for name in names if name in found)]
    return np.lexsort(keys[::-1])


def capacity_needed() -> InvalidParameterError:
    """Say that a score alone decides nothing."""
    return InvalidParameterError(
        "a status quo that is a score needs a `capacity`, the share of people it selects."
    )


def check_numeric(table: Table, columns: Sequence[str]) -> None:
    """Raise unless features and candidates are numbers."""
    for column in columns:
        if not (table.schema[column].is_numeric() or table.schema[column] == nw.Boolean):
            raise DataError(
                f"features and candidates must be numeric; column {column!r} is"
                f" {table.schema[column]}. Encode it first."
            )


def missing_values(column: str, n_missing: int, n_rows: int) -> MissingValuesError:
    """Say that a feature or candidate has missing values."""
    return MissingValuesError(
        f"{column!r} has {n_missing} missing values in {n_rows} rows. Fill or drop them, or pass"
        ' `missing="drop"`; the count is then noted in the result.'
    )


def _sampled(
    table: Table, keyed: "nw.LazyFrame[Any]", needs: Needs
) -> tuple["nw.LazyFrame[Any]", tuple[Note, ...]]:
    """Draw rows, or whole clusters, of a large Spark DataFrame by hashing their keys."""
    if not table.frame.implementation.is_pyspark():
        return keyed, ()
    size = int(collect(table.complete(needs).select(nw.len().alias("n")))["n"][0])
    if size <= SAMPLE_ROWS:
        return keyed, ()
    drawn = hashed(nw.col(KEY), 0) < int(SAMPLE_ROWS / size * PRIME)
    note = Note(
        code="sampled-rows",
        message=f"About {SAMPLE_ROWS} of {size} rows were drawn at random and left the cluster; the"
        " candidate was judged on them.",
    )
    return keyed.filter(drawn), (note,)


def _check_features(X: FloatArray, names: list[str]) -> None:
    for name, values in zip(names, X.T, strict=True):
        beyond = int((np.abs(values) > LARGEST).sum())
        if beyond:
            raise DataError(
                f"{name!r} is infinite or beyond {LARGEST:g} in {beyond} of {len(X)} rows. Mend or"
                " drop them."
            )


def _assemble(
    table: Table,
    found: dict[str, AnyArray],
    extra: list[str],
    candidate: str | None,
    *,
    own: bool,
) -> DecisionRows:
    roles = table.roles
    total = len(found[KEY])
    X = np.array([found[f"__eq_x{k}"] for k in range(len(extra))], dtype=np.float64)
    X = X.reshape(len(extra), total).T
    _check_features(X, extra)
    bad = np.isnan(X)
    if bad.any() and roles.missing == "raise":
        k = int(np.argmax(bad.any(axis=0)))
        raise missing_values(extra[k], int(bad[:, k].sum()), total)
    keep = np.repeat(
        np.flatnonzero(~bad.any(axis=1)),
        found["__eq_count"][~bad.any(axis=1)].astype(np.int64) if roles.count else 1,
    )
    if not 0 < len(keep) <= MAX_ROWS:
        raise DataError(f"between 1 and {MAX_ROWS} complete rows are needed; got {len(keep)}.")
    found = {name: values[keep] for name, values in found.items()}
    X = X[keep]
    cell, labels = encode([found[name] for name in table.group_keys()], len(keep))
    check_cells(len(labels[0]), roles.group)
    names = cell_names(roles.group, labels)
    clustered = roles.cluster is not None
    # Copies of a counted row are rows of their own and are split apart.
    key = found[KEY].astype(np.int64) if clustered else np.arange(len(keep))
    if candidate is not None:
        X, ready = X[:, :-1], X[:, -1]
    frame = None
    if own:
        import pyarrow as pa

        frame = nw.from_native(
            pa.table({name: pa.array(found[name]) for name in table.schema}), eager_only=True
        )
    dropped = table.size() - len(keep) if roles.missing == "drop" else 0
    return DecisionRows(
        key=key,
        group=cell,
        names=names,
        y=found["__eq_y_true"] if "__eq_y_true" in found else np.zeros(len(keep)),
        status_quo=found.get("__eq_y_pred"),
        score=found.get("__eq_y_score"),
        candidate=ready if candidate is not None else None,
        X=X,
        feature_names=tuple(extra[:-1] if candidate else extra),
        unit=key if clustered else None,
        weight=found.get("__eq_weight"),
        frame=frame,
        decision_column=roles.y_pred,
        notes=dropped_notes(dropped),
    )


def selective_labels(table: Table, needs: Needs) -> tuple[Note, ...]:
    """Refuse outcomes known only for people the status quo selected; remark on milder cases.

    A candidate would be judged on the status quo's own choice of people.
    """
    if "y_true" not in needs or "y_pred" not in needs:
        return ()
    absent = table.is_missing(table.roles.column("y_true"))
    selected = table.value("y_pred") == 1.0
    counts = collect(
        table.frame.select(
            absent=absent.cast(nw.Int64).sum(),
            absent_unselected=(absent & ~selected).cast(nw.Int64).sum(),
            unselected=(~selected).cast(nw.Int64).sum(),
            rows=nw.len(),
        )
    )
    found = {name: int(values[0] or 0) for name, values in counts.items()}
    missing, unselected = found["absent"], found["absent_unselected"]
    if not missing:
        return ()
    if unselected >= SELECTIVE * missing:
        raise DataError(
            f"the outcome is missing for {unselected} people whom the status quo did not select"
            f" ({missing} missing in all): labels are selective, so a candidate that selects others"
            " cannot be judged. Use a metric that needs no outcome, or data in which outcomes are"
            " known for everyone."
        )
    rate = unselected / max(found["unselected"], 1)
    other = (missing - unselected) / max(found["rows"] - found["unselected"], 1)
    if rate <= 2.0 * other:
        return ()
    return (
        Note(
            code="selective-labels",
            message=f"The outcome is missing for {rate:.0%} of people the status quo did not select"
            f" and {other:.0%} of those it did; the candidate is judged on the rest.",
        ),
    )
