"""What status quo and candidates decide about: rows in memory, or rows counted on Spark.

A ready candidate is judged by what it and the status quo decide about whom, so identical rows need
only be counted. A score that selects a top share matters by its order about the cut-off alone;
elsewhere its values are merged before rows are counted where they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._checks import LARGEST
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.audits.asking import Asking
from equipoise.audits.words import dropped_notes
from equipoise.data.columns import Needs
from equipoise.data.frame import is_remote
from equipoise.data.groups import cell_names, check_cells, encode, subgroup_name
from equipoise.data.metrics import Metric, RateMetric, find_metric
from equipoise.data.query import collect
from equipoise.data.splitting import hashed_numpy
from equipoise.data.table import (
    KEY,
    NO_ROWS,
    NotInCellsError,
    Quantity,
    Table,
    label_combinations,
)
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError
from equipoise.moments import CellMoments
from equipoise.results.finding import Note
from equipoise.search.sample import Utility, named_utility
from equipoise.stats.improvement.capacity import NEAR_LEAST, NEAR_SHARE, SAME_SCORE
from equipoise.stats.improvement.utilities import nameless_order

__all__ = [
    "INDEX",
    "SCORE_UTILITIES",
    "Attribute",
    "DecisionRows",
    "capacity_needed",
    "of_score",
    "read_decisions",
    "utility_name",
    "utility_words",
]

SCORE_UTILITIES: dict[str, str] = {
    "auc": "area under the ROC curve",
    "brier": "negated Brier score",
    "ks": "true minus false positive rate",
    "smd": "standardised mean score",
}
"""Utilities of a whole score, and what they are called in a sentence."""
INDEX = "entropy_index"
"""The entropy index of benefits, one number for everyone."""

MAX_ROWS = 50_000_000
SAMPLE_ROWS = 500_000
"""Rows of a Spark DataFrame that leave the cluster at most."""
MAX_COMBINATIONS = 200_000
# Outcomes missing more often by this share among those the status quo does not favour.
DEPENDENCE = 0.05
BUCKETS = 4096
FEW_ROWS = 1000
"""Rows whose scores are collected to find one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One of several protected attributes that are judged separately.

    Parameters
    ----------
    name : str
        Of the column.
    groups : tuple of int
        Numbers of its groups among all.
    level : array of shape (n,)
        Group of each row.
    """

    name: str
    groups: tuple[int, ...]
    level: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRows:
    """Rows in which everything but the outcome is known, sorted by their key.

    Parameters
    ----------
    key : array of shape (n,)
        Place of the row by its numbers, or number of the cluster; the same on every engine.
    group : array of shape (n,)
        Cell of each row.
    names : tuple of str
        Names of the groups that are compared: the cells, or the groups of all attributes.
    y : array of shape (n,)
        Outcome, not a number where it is not known; zeros when no metric uses it.
    status_quo, score : array of shape (n,), optional
        Decisions in use, or the score in use.
    ready : array of shape (n, K)
        Ready candidates, one a column.
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
    selective : str, optional
        Why outcomes that are missing are not missing at random.
    limits : array of shape (n, 2), optional
        Columns with the limits of outcomes that are not known.
    others : Table, optional
        Rows that were not drawn, where these are a sample of a Spark DataFrame.
    labels : tuple of array
        Labels of every cell, one array for each group column.
    separate : tuple of Attribute
        Attributes that are judged separately; empty where groups are the cells.
    cells : tuple of str
        Names of the cells, where attributes are judged separately.
    """

    key: IntArray
    group: IntArray
    names: tuple[str, ...]
    y: FloatArray
    status_quo: FloatArray | None
    score: FloatArray | None
    ready: FloatArray
    X: FloatArray
    feature_names: tuple[str, ...]
    unit: IntArray | None
    weight: FloatArray | None
    frame: Any
    decision_column: str | None
    notes: tuple[Note, ...]
    count: IntArray | None = None
    selective: str | None = None
    limits: FloatArray | None = None
    others: Table | None = None
    labels: tuple[AnyArray, ...] = ()
    separate: tuple[Attribute, ...] = ()
    cells: tuple[str, ...] = ()

    @property
    def n_labelled(self) -> int:
        """People whose outcome is known."""
        known = self.labelled
        return int(known.sum() if self.count is None else self.count[known].sum())

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        """Groups among which gaps are taken: those of each attribute, or all."""
        whole = tuple(range(len(self.names)))
        return tuple(attribute.groups for attribute in self.separate) or (whole,)

    @property
    def levels(self) -> tuple[IntArray, ...]:
        """Group of each row, for every attribute that is judged separately."""
        return tuple(attribute.level for attribute in self.separate) or (self.group,)

    def by_group(self, values: FloatArray, part: IntArray | None = None) -> FloatArray:
        """Sum over all rows, or some of them, of each group."""
        size = len(self.names)
        sums = [
            np.bincount(level if part is None else level[part], weights=values, minlength=size)
            for level in self.levels
        ]
        return np.asarray(np.sum(sums, axis=0), dtype=np.float64)

    def separately(self, columns: Sequence[str]) -> "DecisionRows":
        """Return the rows with the groups of each column instead of their combinations."""
        names: list[str] = []
        separate = []
        for column, labels in zip(columns, self.labels, strict=True):
            known, code = np.unique([str(label) for label in labels], return_inverse=True)
            groups = tuple(range(len(names), len(names) + len(known)))
            level = code.astype(np.int64)[self.group] + len(names)
            separate.append(Attribute(name=column, groups=groups, level=level))
            names += [subgroup_name((column,), (label,)) for label in known]
        return replace(self, names=tuple(names), separate=tuple(separate), cells=self.names)

    @property
    def labelled(self) -> BoolArray:
        """Whether the outcome of a row is known."""
        return ~np.isnan(self.y)

    @property
    def group_sizes(self) -> IntArray:
        """Rows of each group whose outcome is known."""
        counted = np.asarray(
            self.labelled * (1.0 if self.count is None else self.count), dtype=np.float64
        )
        return self.by_group(counted).round().astype(np.int64)

    def split(
        self, seed: int, train_fraction: float, validation_fraction: float = 0.0
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return rows to fit, to choose and to test on; units stay whole on every engine alike."""
        units, place = np.unique(self.key, return_inverse=True)
        order = np.lexsort((units, hashed_numpy(units, seed)))
        train = int(np.floor(train_fraction * len(units) + 1e-9))
        fit = train - int(np.floor(validation_fraction * train + 1e-9))
        part = np.full(len(units), 2)
        part[order[:train]] = 1
        part[order[:fit]] = 0
        found = part[place]
        first, second, third = (np.flatnonzero(found == k) for k in range(3))
        return first, second, third

    def utility(self, metric: str | Metric, rows: IntArray) -> Utility:
        """Return a metric as a function of the decisions about some of the rows.

        A row whose outcome is not known does not count where the metric uses outcomes.
        """
        if not isinstance(metric, Metric):
            return _of_labelled(metric, self.y[rows])
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

    def pooled(self, small: Sequence[int], name: str) -> tuple["DecisionRows", list[list[int]]]:
        """Return the rows with some groups made one, and the old groups of each new one.

        Groups of different attributes are not made one.
        """
        names: list[str] = []
        made_of: list[list[int]] = []
        code = np.empty(len(self.names), dtype=np.int64)
        blocks = []
        for block, attribute in zip(self.blocks, self.separate or (None,), strict=True):
            first = len(names)
            for g in block:
                if g not in small:
                    code[g] = len(names)
                    names.append(self.names[g])
                    made_of.append([g])
            merged = [g for g in block if g in small]
            if merged:
                code[merged] = len(names)
                names.append(name if attribute is None else f"{attribute.name}={name}")
                made_of.append(merged)
            blocks.append(tuple(range(first, len(names))))
        if not self.separate:
            return replace(self, group=code[self.group], names=tuple(names)), made_of
        separate = tuple(
            replace(attribute, groups=groups, level=code[attribute.level])
            for attribute, groups in zip(self.separate, blocks, strict=True)
        )
        return replace(self, names=tuple(names), separate=separate), made_of


def _of_labelled(metric: str, y: FloatArray) -> Utility:
    known = ~np.isnan(y)
    utility = named_utility(metric, np.where(known, y, 0.0))
    if known.all() or metric == "selection_rate":
        return utility

    def quantities(d: FloatArray) -> tuple[FloatArray, FloatArray]:
        u, w = utility(d)
        return u * known, w * known

    return quantities


def _expression(quantity: "nw.Expr | str | None") -> nw.Expr:
    if quantity is None:
        return nw.lit(1.0)
    return nw.col(quantity) if isinstance(quantity, str) else quantity


def utility_name(metric: str | Metric) -> str:
    """Return the name of a metric."""
    if isinstance(metric, str) and metric in (*SCORE_UTILITIES, INDEX):
        return metric
    return find_metric(metric).name


def utility_words(metric: str | Metric) -> str:
    """Return what a metric is called in a sentence."""
    words = SCORE_UTILITIES | {INDEX: "entropy index of benefits"}
    return words.get(utility_name(metric)) or find_metric(metric).words


def of_score(metrics: Sequence[str | Metric]) -> bool:
    """Whether all metrics judge scores, so that nothing needs to be decided."""
    return all(utility_name(metric) in SCORE_UTILITIES for metric in metrics)


def capacity_needed() -> InvalidParameterError:
    """Say that a score alone decides nothing."""
    return InvalidParameterError(
        "a status quo that is a score needs a `capacity`, the share of people it selects."
    )


def _add_needs(needs: dict[str, Any], table: Table, metric: str | Metric) -> None:
    """Add the roles that one utility uses."""
    name = utility_name(metric)
    if name in (*SCORE_UTILITIES, INDEX):
        needs |= {} if name == "smd" else {"y_true": "label"}
        if name in ("auc", "brier", "smd"):
            table.roles.column("y_score")
            needs["y_score"] = "number"
        return
    found = find_metric(metric)
    if isinstance(found, RateMetric):
        needs |= dict.fromkeys((role for role in found.roles if role == "y_true"), "label")
    elif not isinstance(found, Metric):
        needs.setdefault("y_true", "number")


def _needs(table: Table, metrics: Sequence[str | Metric]) -> dict[str, Any]:
    """Return the roles that the utilities and the status quo use."""
    if not table.roles.group:
        raise InvalidParameterError("this question compares groups; pass `group` to `Audit`.")
    needs: dict[str, Any] = {}
    for metric in metrics:
        _add_needs(needs, table, metric)
    own = any(isinstance(metric, Metric) for metric in metrics)
    if "y_score" in needs and of_score(metrics):
        return needs
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


def read_decisions(
    table: Table,
    metrics: Sequence[str | Metric],
    *,
    ready: Sequence[str] = (),
    features: bool = False,
    capacity: float | None = None,
    unlabelled: bool = False,
    limits: tuple[str, ...] = (),
    separately: bool = False,
) -> Asking[DecisionRows]:
    """Read what the metrics, the status quo and the candidates need.

    Parameters
    ----------
    table : Table
        With roles.
    metrics : sequence of str or Metric
        Accuracy and fairness metrics.
    ready : sequence of str
        Columns of ready candidates: decisions, or scores that are cut at the capacity.
    features : bool
        Whether candidates will be fitted to the features.
    capacity : float, optional
        Share of people that may be selected.
    unlabelled : bool
        Whether rows without an outcome are wanted.
    limits : tuple of str
        Columns with the limits of their outcomes.
    separately : bool
        Whether groups are those of each column, not the combinations of all.

    Yields
    ------
    Sums
        Which check the rows.

    Returns
    -------
    DecisionRows
        Rows of a Spark DataFrame are counted there if they can be.
    """
    roles = table.roles
    own = any(isinstance(metric, Metric) for metric in metrics)
    counted = all(utility_name(metric) not in (*SCORE_UTILITIES, INDEX) for metric in metrics)
    whole = not (roles.cluster or own or features or unlabelled)
    countable = counted and whole and len(ready) == 1
    in_cells = countable and capacity is None and not roles.weight and roles.y_pred is not None
    if not in_cells:
        table.check_rows()
    if features and not roles.features:
        raise InvalidParameterError(
            "a candidate is fitted to features; pass their names as `features` to `Audit`."
        )
    needs = _needs(table, metrics)
    if "y_pred" not in needs and capacity is None and not of_score(metrics):
        raise capacity_needed()
    if features:
        roles.column("y_true")
        needs.setdefault("y_true", "number")
    _check_numeric(table, [*(roles.features if features else ()), *ready, *limits])
    selective = None if unlabelled else _selective(table, needs)
    if selective is not None and roles.missing == "raise":
        raise DataError(selective)
    known = {role: kind for role, kind in needs.items() if role != "y_true"}
    yield table.sums((), known if unlabelled else needs, order=1)
    rows = None
    if table.only_sums:
        rows = yield from _rows_of_cells(table, needs, ready[0])
    elif is_remote(table.frame) and countable:
        rows = _counted_rows(table, needs, ready[0], capacity)
    if rows is None:
        # Whoever is selected for a share of everybody is chosen among all, labelled or not.
        keep = (capacity is not None and not own) or unlabelled
        rows = _rows(
            table, needs, ready, features=features, own=own, unlabelled=keep, limits=limits
        )
    rows = replace(rows, selective=selective)
    return rows.separately(roles.group) if separately else rows


def _selective(table: Table, needs: Needs) -> str | None:
    """Say so if outcomes are known mostly for people whom the status quo favours.

    A candidate would be judged on the status quo's own choice of people.
    """
    if "y_true" not in needs:
        return None
    absent = table.is_missing(table.roles.column("y_true"))
    if not int(collect(table.frame.select(n=absent.cast(nw.Int32).sum()))["n"][0] or 0):
        return None
    if "y_pred" in needs:
        low, whom = table.value("y_pred") != 1.0, "people whom the status quo did not select"
    else:
        score = table.value("y_score")
        middle = float(collect(table.frame.select(m=score.median()))["m"][0])
        low, whom = score < middle, "people in the lower half of the score in use"
    counts = collect(
        table.frame.select(
            rows=nw.len(),
            low=low.cast(nw.Int32).sum(),
            absent=absent.cast(nw.Int32).sum(),
            both=(absent & low).cast(nw.Int32).sum(),
        )
    )
    rows, below, missing, both = (
        float(counts[name][0] or 0) for name in ("rows", "low", "absent", "both")
    )
    if not 0 < below < rows:
        return None
    rate, other, share = both / below, (missing - both) / (rows - below), missing / rows
    se = np.sqrt(max(share * (1.0 - share), 1e-12) * (1.0 / below + 1.0 / (rows - below)))
    if rate - other <= DEPENDENCE or rate - other <= 3.0 * se:
        return None
    return (
        f"the outcome is missing for {rate:.0%} of {whom} and {other:.0%} of the others: labels are"
        " selective, so a candidate that selects others cannot be judged by them. Use a metric that"
        " needs no outcome, or say what the others may be (`unlabelled`)."
    )


def _rows(
    table: Table,
    needs: Needs,
    ready: Sequence[str],
    *,
    features: bool,
    own: bool,
    unlabelled: bool,
    limits: tuple[str, ...],
) -> DecisionRows:
    roles = table.roles
    extra = [*(roles.features if features else ()), *ready]
    known = {role: kind for role, kind in needs.items() if role != "y_true"}
    used = known if unlabelled else needs
    columns = table.group_keys()
    columns |= {
        f"__eq_{role}": table.y_true if role == "y_true" else table.value(role) for role in needs
    }
    columns |= {
        f"__eq_{role}": table.value(role) for role in ("weight", "count") if getattr(roles, role)
    }
    columns |= {f"__eq_x{k}": nw.col(name).cast(nw.Float64) for k, name in enumerate(extra)}
    columns |= {f"__eq_limit{k}": nw.col(name).cast(nw.Float64) for k, name in enumerate(limits)}
    if own:
        columns |= {name: nw.col(name) for name in table.schema}
    notes: tuple[Note, ...] = ()
    keys = table.group_keys()
    table, others, notes = _sampled(table, used)
    if roles.cluster is not None:
        columns[KEY] = nw.col(KEY)
    frame = table.complete(used) if roles.cluster is None else table.keyed(used)
    found = collect(frame.select(**columns), keys=keys, rows=True)
    order: IntArray | None = None
    if roles.cluster is not None:
        order = np.argsort(found[KEY], kind="stable").astype(np.int64)
    else:
        order = _by_content(found, tuple(keys)) if features else None
        found[KEY] = np.arange(len(next(iter(found.values()))))
    if order is not None:
        found = {name: values[order] for name, values in found.items()}
    rows = _assemble(table, found, extra, len(ready), own=own)
    return replace(rows, notes=(*rows.notes, *notes), others=others)


def _by_content(found: dict[str, AnyArray], keys: tuple[str, ...]) -> IntArray:
    """Put rows in order by their numbers, and alike rows by their group, the largest group first.

    Rows are split by their place in this order: names of groups and columns and the order of the
    table do not matter to it.
    """
    n = len(next(iter(found.values())))
    known = {
        name: np.nan_to_num(np.asarray(values, dtype=np.float64), nan=np.inf)
        for name, values in found.items()
        if name not in (*keys, KEY) and np.asarray(values).dtype.kind in "biuf"
    }
    # A counted row is as many rows. Columns without a role, which a metric of the user's own may
    # read, only settle what is left.
    copies = known.pop("__eq_count", np.ones(n))
    numbers = [values for name, values in known.items() if name.startswith("__eq_")]
    others = [values for name, values in known.items() if not name.startswith("__eq_")]
    order = np.lexsort(numbers[::-1])
    differs = np.zeros(n, dtype=np.bool_)
    for values in numbers:
        differs[1:] |= values[order][1:] != values[order][:-1]
    content = np.empty(n, dtype=np.int64)
    content[order] = np.cumsum(differs)
    cell, labels = encode([found[name] for name in keys], n)
    # Rows that are alike are one row of that content, counted or not.
    alike, where = np.unique(cell * n + content, return_inverse=True)
    place = nameless_order(
        (alike % n)[:, None].astype(np.float64),
        alike // n,
        np.bincount(where, weights=copies),
        len(labels[0]),
    )
    return np.lexsort((*others, place[cell], content)).astype(np.int64)


def _check_numeric(table: Table, columns: Sequence[str]) -> None:
    for column in columns:
        if not (table.schema[column].is_numeric() or table.schema[column] == nw.Boolean):
            raise DataError(
                f"features and candidates must be numeric; column {column!r} is"
                f" {table.schema[column]}. Encode it first."
            )


def _missing_values(column: str, n_missing: int, n_rows: int) -> MissingValuesError:
    return MissingValuesError(
        f"{column!r} has {n_missing} missing values in {n_rows} rows. Fill or drop them, or pass"
        ' `missing="drop"`; the count is then noted in the result.'
    )


def _sampled(table: Table, needs: Needs) -> tuple[Table, Table | None, tuple[Note, ...]]:
    """Draw rows, or whole clusters, of a large Spark DataFrame by hashing what they hold.

    Returns them, the others, and a note; all rows and no others of a table that is not large.
    """
    if not table.frame.implementation.is_pyspark():
        return table, None, ()
    complete = table.complete(needs)
    size = int(collect(complete.select(nw.len().alias("n")))["n"][0])
    if size <= SAMPLE_ROWS:
        return table, None, ()
    from equipoise.data.spark import drawn

    roles = table.roles
    names = {*roles.group, *roles.features, *roles.columns().values()}
    frames = drawn(
        complete,
        names if roles.cluster is None else {roles.cluster},
        SAMPLE_ROWS / size,
        together=roles.cluster is not None,
        # The rows that are left of a sample are drawn from by another hash.
        seed=size,
    )
    sample, others = (table.with_frame(frame) for frame in frames)
    note = Note(
        code="sampled-rows",
        message=f"About {SAMPLE_ROWS} of {size} rows were drawn at random and left the cluster; the"
        " candidate was judged on them.",
    )
    return sample, others, (note,)


def _check_features(X: FloatArray, names: Sequence[str]) -> None:
    for name, values in zip(names, X.T, strict=True):
        beyond = int((np.abs(values) > LARGEST).sum())
        if beyond:
            raise DataError(
                f"{name!r} is infinite or beyond {LARGEST:g} in {beyond} of {len(X)} rows. Mend or"
                " drop them."
            )


def _assemble(
    table: Table, found: dict[str, AnyArray], extra: list[str], n_ready: int, *, own: bool
) -> DecisionRows:
    roles = table.roles
    total = len(found[KEY])
    X = np.array([found[f"__eq_x{k}"] for k in range(len(extra))], dtype=np.float64)
    X = X.reshape(len(extra), total).T
    _check_features(X, extra)
    bad = np.isnan(X)
    if bad.any() and roles.missing == "raise":
        k = int(np.argmax(bad.any(axis=0)))
        raise _missing_values(extra[k], int(bad[:, k].sum()), total)
    whole = not roles.count and not bad.any()
    usable = ~bad.any(axis=1)
    copies = found["__eq_count"][usable] if roles.count else np.ones(usable.sum())
    if not 0 < copies.sum() <= MAX_ROWS:
        raise DataError(
            f"between 1 and {MAX_ROWS} complete rows are needed; got {copies.sum():.0f}."
        )
    keep = np.repeat(np.flatnonzero(usable), copies.astype(np.int64))
    if not whole:
        found = {name: values[keep] for name, values in found.items()}
        X = X[keep]
    cell, labels = encode([found[name] for name in table.group_keys()], len(keep))
    check_cells(len(labels[0]), roles.group)
    clustered = roles.cluster is not None
    # Copies of a counted row are rows of their own and are split apart.
    key = found[KEY].astype(np.int64) if clustered else np.arange(len(keep))
    frame = None
    if own:
        import pyarrow as pa

        frame = nw.from_native(
            pa.table({name: pa.array(found[name]) for name in table.schema}), eager_only=True
        )
    y = np.asarray(found.get("__eq_y_true", np.zeros(len(keep))), dtype=np.float64)
    limits = [found[name] for name in ("__eq_limit0", "__eq_limit1") if name in found]
    judged = len(keep) - int(np.isnan(y).sum())
    n_features = len(extra) - n_ready
    return DecisionRows(
        key=key,
        group=cell,
        names=cell_names(roles.group, labels),
        y=y,
        status_quo=found.get("__eq_y_pred"),
        score=found.get("__eq_y_score"),
        ready=X[:, n_features:],
        X=X[:, :n_features],
        feature_names=tuple(extra[:n_features]),
        unit=key if clustered else None,
        weight=found.get("__eq_weight"),
        frame=frame,
        decision_column=roles.y_pred,
        notes=dropped_notes(table.size() - judged if roles.missing == "drop" else 0),
        limits=np.column_stack(limits).astype(np.float64) if limits else None,
        labels=labels,
    )


def _counted_rows(
    table: Table, needs: Needs, candidate: str, capacity: float | None
) -> DecisionRows | None:
    """Count the rows of a ready candidate by group, outcome, weight and decisions.

    `None` when there are too many combinations of values.
    """
    frame, dropped = _complete(table, needs, candidate)
    share = 1.0 if capacity is None else capacity
    for name, ends in _scores(frame, needs, capacity).items():
        frame = frame.with_columns(_merged(frame, name, ends, share))
    values = ("y", "weight", "status_quo", "candidate", "count")
    keys = [*table.group_keys(), *values[:-1]]
    count = nw.col("count").sum().alias("count")
    query = frame.group_by(keys).agg(count).head(MAX_COMBINATIONS + 1)
    found = collect(query, keys=table.group_keys())
    if len(found["count"]) > MAX_COMBINATIONS:
        return None
    groups = [found[name] for name in table.group_keys()]
    return _of_counts(table, needs, groups, {name: found[name] for name in values}, dropped)


def _rows_of_cells(table: Table, needs: Needs, candidate: str) -> Asking[DecisionRows]:
    """Take the counts by group, outcome and decisions from cells: no row is read."""
    absent = table.is_missing(candidate)
    sizes = collect(table.frame.select(rows=nw.len(), absent=absent.cast(nw.Int32).sum()))
    n_rows, n_missing = (int(sizes[name][0] or 0) for name in ("rows", "absent"))
    if n_missing and table.roles.missing == "raise":
        raise _missing_values(candidate, n_missing, n_rows)
    roles = tuple(role for role in ("y_true", "y_pred") if role in needs)
    declared = table.label_sums(roles)
    key = Quantity(candidate, (), nw.col(candidate))
    cells: CellMoments = yield replace(declared, keys=(*declared.keys, key))
    *keys, decision = cells.labels
    if not {*decision} <= {"0", "1"}:
        raise NotInCellsError(NO_ROWS)
    place, combination = np.nonzero(cells.sums)
    labels = np.array(label_combinations(roles), dtype=np.float64)[combination]
    found = {
        "y": labels[:, 0] if "y_true" in needs else np.zeros(len(place)),
        "weight": np.ones(len(place)),
        "status_quo": labels[:, -1],
        "candidate": (decision == "1").astype(np.float64)[place],
        "count": cells.sums[place, combination],
    }
    return _of_counts(table, needs, [key[place] for key in keys], found, cells.dropped)


def _of_counts(
    table: Table,
    needs: Needs,
    keys: Sequence[AnyArray],
    found: dict[str, AnyArray],
    dropped: int,
) -> DecisionRows:
    """Return rows that stand for all that are alike, in an order made of what they hold."""
    cell, labels = encode(keys, len(found["count"]))
    values = ("y", "weight", "status_quo", "candidate")
    order = np.lexsort([found[name] for name in reversed(values)] + [cell])
    found = {name: column[order] for name, column in found.items()}
    decided = "y_pred" in needs
    return DecisionRows(
        key=np.arange(len(order)),
        group=cell[order],
        names=cell_names(table.roles.group, labels),
        y=np.asarray(found["y"], dtype=np.float64),
        status_quo=found["status_quo"] if decided else None,
        score=None if decided else found["status_quo"],
        ready=np.asarray(found["candidate"], dtype=np.float64)[:, None],
        X=np.empty((len(order), 0)),
        feature_names=(),
        unit=None,
        weight=None if table.roles.weight is None else found["weight"],
        frame=None,
        decision_column=table.roles.y_pred,
        notes=dropped_notes(dropped if table.roles.missing == "drop" else 0),
        count=found["count"].round().astype(np.int64),
        labels=labels,
    )


def _complete(table: Table, needs: Needs, candidate: str) -> tuple["nw.LazyFrame[Any]", int]:
    """Return the rows with the columns that matter, and how many cannot be judged."""
    roles, one = table.roles, table.number(nw.lit(1.0))
    known = {role: kind for role, kind in needs.items() if role != "y_true"}
    columns = table.group_keys() | {
        "y": table.y_true if "y_true" in needs else table.number(nw.lit(0.0)),
        "weight": one if roles.weight is None else table.value("weight"),
        "status_quo": table.value("y_pred" if "y_pred" in needs else "y_score"),
        "candidate": nw.col(candidate).cast(nw.Float64),
        "count": one if roles.count is None else table.value("count"),
    }
    frame = table.complete(known).select(**columns)
    bad = nw.col("candidate").is_null() | table.is_beyond(nw.col("candidate"))
    unknown = nw.col("y").is_null() | table.is_nan(nw.col("y"))
    sizes = collect(
        frame.select(
            rows=nw.len(),
            missing=bad.cast(nw.Int32).sum(),
            judged=((~bad & ~unknown).cast(nw.Int32) * nw.col("count")).sum(),
        )
    )
    n_rows, n_missing, judged = (
        round(float(sizes[name][0] or 0)) for name in ("rows", "missing", "judged")
    )
    if n_missing and roles.missing == "raise":
        raise _missing_values(candidate, n_missing, n_rows)
    return frame.filter(~bad), table.size() - judged


def _scores(
    frame: "nw.LazyFrame[Any]", needs: Needs, capacity: float | None
) -> Mapping[str, tuple[float, float]]:
    """Return the columns that are cut at the capacity, with their lowest and highest values."""
    names = ("status_quo", "candidate")
    decided = (nw.col("candidate") == 0.0) | (nw.col("candidate") == 1.0)
    found = collect(
        frame.select(
            (~decided).cast(nw.Int32).sum().alias("undecided"),
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
    """Return a score with five values at most: the cut-off, the ranks near it, the others.

    Near are the ranks that `cut_top_share` looks at, so that it finds the same in both.
    """
    score, count = nw.col(name), nw.col("count")
    sizes = collect(
        frame.select(mass=(nw.col("weight") * count).sum(), rows=count.sum()),
    )
    n = float(sizes["rows"][0])
    cutoff = _score_at(frame, name, ends, share * float(sizes["mass"][0]), nw.col("weight") * count)
    slack = SAME_SCORE * abs(cutoff)
    above, tied = score > cutoff + slack, (score - cutoff).abs() <= slack
    found = collect(
        frame.select(
            above=(above.cast(nw.Int32) * count).sum(),
            tied=(tied.cast(nw.Int32) * count).sum(),
        )
    )
    reach = max(NEAR_SHARE * n, NEAR_LEAST) / 2.0
    rank, block = (float(found[part][0]) for part in ("above", "tied"))
    high, low = (
        _score_at(frame, name, ends, float(np.clip(place, 1.0, n)), count)
        for place in (rank - reach + 1.0, rank + block + reach)
    )
    upper = nw.when(score <= high + slack).then(nw.lit(high)).otherwise(nw.lit(ends[1]))
    lower = nw.when(score >= low - slack).then(nw.lit(low)).otherwise(nw.lit(ends[0]))
    outside = nw.when(above).then(upper).otherwise(lower)
    return nw.when(tied).then(nw.lit(cutoff)).otherwise(outside).alias(name)


def _score_at(
    frame: "nw.LazyFrame[Any]",
    name: str,
    ends: tuple[float, float],
    least: float,
    mass: nw.Expr,
) -> float:
    """Return the highest score such that it and those above have a mass of at least `least`."""
    score = nw.col(name)
    low, high = ends
    before = 0.0
    target = least * (1.0 - 2e-9)
    while True:
        width = (high - low) / BUCKETS
        inside = frame.filter(score.is_between(low, high)).select(
            name,
            mass.alias("mass"),
            (score if width == 0 else ((score - low) / width).floor()).alias("bucket"),
        )
        found = collect(
            inside.group_by("bucket").agg(
                nw.col("mass").sum(), rows=nw.len(), low=score.min(), high=score.max()
            )
        )
        order = np.argsort(found["low"])[::-1]
        reached = before + np.cumsum(found["mass"][order])
        k = min(int(np.searchsorted(reached, target)), len(order) - 1)
        at = order[k]
        before = before if k == 0 else float(reached[k - 1])
        low, high = float(found["low"][at]), float(found["high"][at])
        if low == high:
            return high
        if found["rows"][at] <= FEW_ROWS:
            break
    values = collect(frame.filter(score.is_between(low, high)).select(name, mass.alias("mass")))
    order = np.argsort(values[name])[::-1]
    reached = before + np.cumsum(values["mass"][order])
    return float(values[name][order[min(int(np.searchsorted(reached, target)), len(order) - 1)]])
