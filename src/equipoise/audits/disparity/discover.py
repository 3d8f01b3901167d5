"""Which subgroups nobody named differ from the rest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from equipoise._checks import (
    check_columns,
    check_fraction,
    check_integer,
    check_number,
    check_option,
)
from equipoise._typing import Alternative, AnyArray, DiscoveryMethod, FloatArray, Rng
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.disparity.questions import DiscoverDetails
from equipoise.audits.disparity.subgroups import finite
from equipoise.audits.progress import progress_bar
from equipoise.audits.words import dropped_notes
from equipoise.data.groups import label_of
from equipoise.data.metrics import AnyMetric, Metric, find_metric
from equipoise.data.query import CLUSTER, COUNT, WEIGHT, fetch, listed
from equipoise.data.table import Quantity, Rows, Table
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.disparity.conditions import BinnedFeature, bin_feature, coded_feature
from equipoise.stats.disparity.discovery import (
    Discovery,
    Subgroup,
    exact_discovery,
    least_rows,
)
from equipoise.stats.disparity.split_search import split_discovery

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["discover"]

LISTED = 200
"""Rejected subgroups that `details` list; all of them are counted."""

FINER = 8
"""Bins of a number in a split search."""

_WIDER = Note(
    code="interval-unadjusted",
    message="The decision rests on Holm's p-value; the interval holds for all candidates together"
    " (Bonferroni), which is wider: it can contain zero where the decision is 'detected'.",
)
_AT_ZERO = Note(
    code="interval-ends-at-zero",
    message="The exact test excludes zero; the interval is approximate, would reach beyond zero,"
    " and ends there.",
)

_VALUE, _DEFINED, _SPLIT = "__eq_value", "__eq_defined", "__eq_split"


@question_method
def discover(
    self: "Audit",
    metric: str | Metric,
    *,
    features: str | Sequence[str] | None = None,
    depth: int = 3,
    min_size: float = 0.02,
    method: DiscoveryMethod = "auto",
    bins: int = 4,
    alternative: Alternative = "two-sided",
    n_candidates: int = 10,
    split: float | str = 0.5,
    alpha: float = 0.05,
    rng: Rng = None,
) -> Asking[AuditResult]:
    """Find subgroups that nobody named and that differ from the rest.

    The null hypothesis of a subgroup is that its metric equals that of everybody else. The chance
    that any subgroup is reported falsely is at most `alpha`, whatever was looked at.

    Parameters
    ----------
    metric : str or Metric
        A name such as ``"error_rate"``, or a metric of your own.
    features : str or list of str, optional
        Columns to make subgroups of; by default the features and groups of the audit.
    depth : int, default 3
        Most conditions in a subgroup.
    min_size : float, default 0.02
        Smallest share of the rows in a subgroup, and at least 50 rows.
    method : {"auto", "lattice", "split"}
        Test all subgroups exactly, for rates of independent unweighted rows; or search in one part
        of the rows and test in the other.
    bins : int, default 4
        Bins of a number with more than ten values.
    alternative : {"two-sided", "greater", "less"}
        Which gaps count.
    n_candidates : int, default 10
        Subgroups that a split search may take to the test.
    split : float or str, default 0.5
        Share of the rows (clusters) that is searched, or a column with "discover" and "test".
    alpha : float, default 0.05
        Chance that any reported subgroup is false.
    rng : int or numpy Generator, optional
        For the permutations of a split search of skewed values.

    Returns
    -------
    AuditResult
        A finding for each subgroup shown, ranked by the bound nearer to zero; subgroups that larger
        ones explain are folded into `details`.

    Examples
    --------
    Errors are frequent among young people who rent; nobody asked about them.

    >>> import numpy as np
    >>> import equipoise as eq
    >>> rng = np.random.default_rng(5)
    >>> age, home = rng.integers(18, 80, 8000), rng.choice(["rent", "own"], 8000)
    >>> wrong = rng.random(8000) < 0.2 + 0.15 * ((age <= 33) & (home == "rent"))
    >>> audit = eq.Audit({"age": age, "home": home, "y": np.zeros(8000), "p": wrong.astype(int)},
    ...                  y_true="y", y_pred="p")
    >>> result = audit.discover("error_rate", features=["age", "home"])
    >>> [finding.group for finding in result.findings]
    ['age <= 33 & home=rent']
    """
    check_option("method", method, DiscoveryMethod)
    check_option("alternative", alternative, Alternative)
    check_fraction("alpha", alpha)
    check_integer("depth", depth, low=1)
    check_integer("bins", bins, low=2)
    check_integer("n_candidates", n_candidates, low=1)
    check_number("min_size", min_size, low=0.0, high=0.5)
    found = find_metric(metric)
    names = _features(self.table, features, found)
    # A missing value of a feature is a level; groups are features here.
    table = self.table.grouped_by(())
    u, w = found.build(table)
    owner = id(u) if isinstance(found, Metric) else None
    odd = (w != 0.0) & (w != 1.0)
    quantities = [
        Quantity(found.name, ("discover", owner, term), value)
        for term, value in {"u": u, "w": w}.items()
    ]
    declared = table.sums(
        quantities,
        found.needs,
        counted=[Quantity(found.name, ("discover", owner, "odd"), odd)],
        order=1,
    )
    cells: CellMoments = yield declared
    if cells.sums[:, 0].any():
        raise InvalidParameterError(
            f"`discover` needs a metric whose denominator is 0 or 1; that of {found.name!r} takes"
            " other values."
        )
    # Features have more values than cells could hold: where there are no rows this is refused.
    yield Rows(declared)
    rows = _rows(table, names, found, method, split, bins)
    result = _searched(rows, depth, min_size, method, alternative, n_candidates, split, alpha, rng)
    return _told(result, found, names, rows, depth, min_size, cells.dropped)


def _features(
    table: Table, given: str | Sequence[str] | None, metric: AnyMetric
) -> tuple[str, ...]:
    roles = table.roles
    names = (
        tuple(dict.fromkeys((*roles.features, *roles.group)))
        if given is None
        else check_columns("features", given)
    )
    if not names:
        raise InvalidParameterError(
            "`discover` needs columns to make subgroups of; pass `features`, or name features or"
            " groups in `Audit`."
        )
    used = {roles.column(role): role for role in metric.needs}
    for name in names:
        table.check_column(name)
        if name in used:
            raise DataError(
                f"Feature {name!r} is the {used[name]} that the metric is made of. Leave it out of"
                " `features`."
            )
        if name == roles.cluster:
            raise DataError(
                f"Feature {name!r} is the cluster, an identifier. Leave it out of `features`."
            )
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows on which the metric is defined: outcome, binned features, and what multiplies them."""

    y: FloatArray
    cut: tuple[BinnedFeature, ...]
    weight: FloatArray | None
    count: FloatArray | None
    cluster: AnyArray | None
    part: AnyArray | None
    finer: tuple[BinnedFeature, ...] = ()

    @property
    def n(self) -> int:
        """Rows, as often as each counts."""
        return len(self.y) if self.count is None else round(float(self.count.sum()))

    @property
    def plain(self) -> bool:
        """Whether every subgroup has an exact test."""
        independent = self.weight is None and self.cluster is None
        return independent and bool(np.isin(self.y, (0.0, 1.0)).all())

    def expanded(self) -> "_Rows":
        """Return every row as often as it counts."""
        if self.count is None:
            return self
        each = np.repeat(np.arange(len(self.y)), self.count.round().astype(np.int64))

        def taken(part: AnyArray | None) -> Any:
            return None if part is None else part[each]

        return _Rows(
            y=self.y[each],
            cut=tuple(one.take(each) for one in self.cut),
            finer=tuple(one.take(each) for one in self.finer),
            weight=taken(self.weight),
            count=None,
            cluster=taken(self.cluster),
            part=taken(self.part),
        )


def _query(
    table: Table,
    names: tuple[str, ...],
    metric: AnyMetric,
    method: DiscoveryMethod,
    split: float | str,
) -> "nw.LazyFrame[Any]":
    """Return the rows on which the metric is defined, with what a search needs of them."""
    u, w = metric.build(table)
    roles = table.roles
    columns = {f"__eq_x{k}": nw.col(name) for k, name in enumerate(names)}
    columns |= {_VALUE: table.number(u), _DEFINED: table.number(w)}
    if roles.weight is not None:
        columns[WEIGHT] = table.value("weight")
    if roles.count is not None:
        columns[COUNT] = table.value("count")
    if roles.cluster is not None:
        columns[CLUSTER] = nw.col(roles.cluster)
    if isinstance(split, str):
        table.check_column(split)
        columns[_SPLIT] = nw.col(split)
    needs = metric.needs
    complete = table.complete(needs) if table.missing(needs) else table.frame
    frame = complete.select(*(value.alias(name) for name, value in columns.items()))
    frame = frame.filter((nw.col(_DEFINED) != 0.0) & ~nw.col(_VALUE).is_null())
    if roles.count is not None:
        frame = frame.filter(nw.col(COUNT) != 0)
    plain = not {WEIGHT, CLUSTER, _SPLIT} & set(columns)
    if not plain or method == "split" or frame.implementation.is_duckdb():
        return frame
    # Every subgroup of a rate follows from how many rows are alike; they are counted where they
    # are, and no row leaves.
    times = nw.col(COUNT).sum() if roles.count is not None else nw.len()
    return frame.group_by(*(name for name in columns if name != COUNT)).agg(times.alias(COUNT))


def _rows(
    table: Table,
    names: tuple[str, ...],
    metric: AnyMetric,
    method: DiscoveryMethod,
    split: float | str,
    bins: int,
) -> _Rows:
    """Read the rows and cut their features."""
    roles = table.roles
    frame = _query(table, names, metric, method, split)
    native = fetch(frame, rows=True).to_native().combine_chunks()
    if not native.num_rows:
        raise DataError(f"{metric.name!r} is not defined on any row.")

    def numbers(name: str) -> FloatArray:
        return np.asarray(native.column(name).to_numpy(), dtype=np.float64)

    count = numbers(COUNT) if COUNT in native.column_names else None

    def features(parts: int, *, nested: bool) -> tuple[BinnedFeature, ...]:
        cut = [
            _cut(name, native.column(f"__eq_x{k}"), parts, count, nested=nested)
            for k, name in enumerate(names)
        ]
        return tuple(one for one in cut if len(one.labels) > 1)

    rows = _Rows(
        y=numbers(_VALUE),
        cut=features(bins, nested=False),
        weight=numbers(WEIGHT) if roles.weight is not None else None,
        count=count,
        cluster=_coded(native.column(CLUSTER))[1] if roles.cluster is not None else None,
        part=_part(native.column(_SPLIT), split) if isinstance(split, str) else None,
    )
    if rows.plain and method != "split":
        return rows
    return replace(rows, finer=features(FINER, nested=True))


def _cut(
    name: str, column: Any, bins: int, count: FloatArray | None, *, nested: bool
) -> BinnedFeature:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_decimal(kind):
        column, kind = column.cast(pa.float64()), pa.float64()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        # Integers become floats where some are missing; those beyond 2^53 are rounded.
        values = np.asarray(column.to_numpy())
        return bin_feature(name, values, bins=bins, nested=nested, count=count)
    levels, index = _coded(column)
    return coded_feature(name, levels, index, count=count)


def _coded(column: Any) -> tuple[list[str | None], AnyArray]:
    """Return the levels of a column as text, and the place of each row's; -1 is missing."""
    coded = column.combine_chunks().dictionary_encode()
    levels = [None if value is None else label_of(value) for value in listed(coded.dictionary)]
    return levels, np.asarray(coded.indices.fill_null(-1).to_numpy(zero_copy_only=False))


def _part(column: Any, name: str) -> AnyArray:
    levels, index = _coded(column)
    if set(levels) != {"discover", "test"} or (index < 0).any():
        raise DataError(
            f'Column {name!r} of `split` must hold "discover" and "test" in every row; it holds'
            f" {sorted(str(level) for level in levels)[:5]}."
        )
    return np.asarray(np.array(levels)[index] == "discover")


def _searched(
    rows: _Rows,
    depth: int,
    min_size: float,
    method: DiscoveryMethod,
    alternative: Alternative,
    n_candidates: int,
    split: float | str,
    alpha: float,
    rng: Rng,
) -> Discovery:
    if rows.y.min() >= rows.y.max():
        raise DataError("The outcome is the same in all rows; no subgroup can differ.")
    if method == "lattice" and not rows.plain:
        raise InvalidParameterError(
            "The lattice needs a 0/1 metric of independent unweighted rows; pass method='split'."
        )
    if method != "split" and rows.plain:
        with progress_bar("counting subgroups") as step:
            return exact_discovery(
                rows.y,
                rows.cut,
                depth=depth,
                min_size=min_size,
                alternative=alternative,
                alpha=alpha,
                count=rows.count,
                progress=step,
            )
    if not rows.cut:
        raise DataError("No feature splits the rows: each has a single value.")
    every = rows.expanded()
    with progress_bar("searching subgroups"):
        return split_discovery(
            every.y,
            every.cut + every.finer,
            depth=depth,
            min_rows=least_rows(every.n, min_size),
            alternative=alternative,
            weight=every.weight,
            cluster=every.cluster,
            n_candidates=n_candidates,
            split=split if every.part is None else every.part,
            alpha=alpha,
            rng=rng,
        )


def _told(
    found: Discovery,
    metric: AnyMetric,
    names: tuple[str, ...],
    rows: _Rows,
    depth: int,
    min_size: float,
    dropped: int,
) -> AuditResult:
    exact = found.method == "lattice"
    words = "exact conditional tests, Tarone" if exact else "tests on rows not searched, Holm"
    rule = (
        f"{found.n_slices:,} subgroups were tested; {found.n_tests:,} of them could be significant"
        " at all, and p-values are multiplied by that number (Tarone)"
        if exact
        else f"{found.n_slices:,} subgroups were looked at in one part of the rows, {found.n_tests}"
        " of them tested in the other (Holm)"
    )
    notes = [
        *dropped_notes(dropped),
        Note(
            code="multiplicity",
            message=f"{rule}: the chance that any reported subgroup is false is at most"
            f" {found.alpha:g}. Intervals hold for all subgroups together.",
        ),
    ]
    if len(found.rejected) > len(found.subgroups):
        notes.append(
            Note(
                code="folded",
                message=f"{len(found.rejected)} subgroups differ from the rest; those that are"
                f" shown explain the others, which `details` list (at most {LISTED}).",
            )
        )
    null = "no subgroup differs from the rest"
    return AuditResult(
        audit="discover",
        null=null,
        alternative="some subgroup differs from the rest",
        alpha=found.alpha,
        method=words,
        n=rows.n,
        findings=tuple(_finding(one, metric, found) for one in found.subgroups),
        joint=JointTest(
            null=null,
            decision=Decision.DETECTED if found.rejected else Decision.NOT_DETECTED,
            method="tarone" if exact else "holm",
            statistic=finite(found.statistic),
            p_value=found.p_value,
        ),
        notes=tuple(notes),
        details=DiscoverDetails(
            metric=metric.name,
            noun=metric.words,
            features=list(names),
            depth=depth,
            min_size=min_size,
            method=found.method,
            n_slices=found.n_slices,
            n_tests=found.n_tests,
            n_tested_rows=found.n,
            n_rejected=len(found.rejected),
            value=found.value,
            detectable=found.detectable(),
            shown=[_record(one) for one in found.subgroups],
            rejected=[_record(one) for one in found.rejected[:LISTED]],
            nearest=[_record(one) for one in found.nearest],
            at_least=found.at_least,
            n_clusters=None if rows.cluster is None else len(np.unique(rows.cluster)),
        ),
    )


def _finding(one: Subgroup, metric: AnyMetric, found: Discovery) -> Finding:
    return Finding(
        group=one.label,
        estimand=Estimand(metric.name, "gap", scale="difference", noun=metric.words),
        decision=Decision.DETECTED,
        n=one.n,
        method="hypergeometric" if found.method == "lattice" else "split",
        estimate=one.gap,
        ci=ConfidenceInterval(
            low=finite(one.ci_low), high=finite(one.ci_high), confidence_level=1.0 - found.alpha
        ),
        statistic=finite(one.statistic),
        p_value=one.p_value,
        p_value_raw=one.p_value_raw,
        reference="the rest",
        notes=_interval_notes(one, found),
    )


def _interval_notes(one: Subgroup, found: Discovery) -> tuple[Note, ...]:
    """Say where the interval may contain zero although the subgroup is detected."""
    if found.method == "split" and one.p_value < min(found.n_tests * one.p_value_raw, 1.0):
        return (_WIDER,)
    return (_AT_ZERO,) if found.method == "lattice" and one.bound == 0.0 else ()


def _record(one: Subgroup) -> dict[str, Any]:
    return {
        "group": one.label,
        "words": list(one.words),
        "n": one.n,
        "value": finite(one.value),
        "rest": finite(one.rest),
        "gap": finite(one.gap),
        "low": finite(one.ci_low),
        "high": finite(one.ci_high),
        "bound": finite(one.bound),
        "p_value": one.p_value,
        "p_value_raw": one.p_value_raw,
        "explained_by": one.explained_by,
    }
