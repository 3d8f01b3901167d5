"""Whether there is a gap now, looked at as often as one likes.

A monitor needs sums by batch, and the order of the batches.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from equipoise._checks import check_depth, check_fraction, check_number, check_option, shown
from equipoise._typing import AlarmRule, Alternative, AnyArray, EAdjust, FloatArray, IntArray
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.disparity.questions import MonitorDetails
from equipoise.audits.disparity.sides import (
    FinestGroups,
    Reference,
    Sides,
    finest_groups,
    sides_of,
)
from equipoise.audits.disparity.subgroups import finite
from equipoise.audits.progress import progress_bar
from equipoise.audits.words import dropped_notes
from equipoise.data.columns import Needs
from equipoise.data.groups import Labelled
from equipoise.data.metrics import AnyMetric, Metric, Metrics, RateMetric, find_metrics
from equipoise.data.table import Quantity, Sums, Table
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.moments import CellMoments, sum_by
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult
from equipoise.stats.disparity.gap_sequence import (
    BURN_IN,
    OUTCOMES,
    BatchSums,
    BatchUnits,
    GapSequence,
    gap_sequence,
)
from equipoise.stats.disparity.monitor import Alarms, raise_alarms

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = [
    "MOST_BATCHES",
    "Watch",
    "Watched",
    "batch_order",
    "batch_sums",
    "declare_batches",
    "monitor",
    "watch",
]


MOST_BATCHES = 20_000

_TIME = re.compile(
    r"\d{4}([-/.]?(W\d{2}|Q\d|M\d{2}|\d{2})([-/.]?\d{1,2})?([T ]\d{2}(:?\d{2}){0,2}(\.\d+)?)?)?"
)
"""Text whose order is that of time: 2026, 2026-07, 2026-W07, 2026-Q3, 2026-07-19T10:00."""


def declare_batches(
    table: Table, metric: AnyMetric, *, by: Sequence[Quantity] = (), needs: Needs | None = None
) -> Sums:
    """Declare the sums of a metric that evidence over time is made of.

    Parameters
    ----------
    table : Table
        With the roles that the metric uses.
    metric : AnyMetric
        What is watched.
    by : sequence of Quantity
        Keys beside the groups: the batch. Clusters are added as the last key.
    needs : mapping, optional
        Further roles that must not be missing.

    Returns
    -------
    Sums
        Its quantities are u, w, and the squares and product of both over rows, weights inside;
        its further sum counts the rows on which the metric is defined.
    """
    u, w = metric.build(table)
    weight = nw.lit(1.0) if table.roles.weight is None else table.value("weight")
    owner = id(u) if isinstance(metric, Metric) else None
    # A quantity is multiplied by the weight once; products of two need it twice.
    terms = {"u": u, "w": w, "uu": u * u * weight, "uw": u * w * weight, "ww": w * w * weight}
    keys = list(by)
    if table.roles.cluster is not None:
        keys.append(Quantity(table.roles.cluster, "cluster", nw.col(table.roles.cluster)))
    return table.sums(
        [Quantity(metric.name, ("batches", owner, term), value) for term, value in terms.items()],
        {**metric.needs, **(needs or {})},
        counted=[Quantity(metric.name, ("batches", owner, "defined"), w != 0.0)],
        by=keys,
        order=1,
    )


def batch_sums(
    cells: CellMoments,
    groups: FinestGroups,
    batch: IntArray,
    n_batches: int,
    *,
    metric: AnyMetric,
    table: Table,
) -> BatchSums:
    """Put the sums of cells into batches and groups.

    Parameters
    ----------
    cells : CellMoments
        What `declare_batches` asked for.
    groups : FinestGroups
        Group of each cell.
    batch : array of shape (K,)
        Batch of each cell.
    n_batches : int
        How many there are.
    metric : AnyMetric
        What was measured.
    table : Table
        Where.

    Returns
    -------
    BatchSums
    """
    size = groups.size
    key = batch * size + groups.place

    def summed(column: FloatArray) -> FloatArray:
        return sum_by(key, column[:, None], n_batches * size).reshape(n_batches, size)

    u, w, uu, uw, ww = (summed(cells.total[:, k]) for k in range(5))
    n = summed(cells.sums[:, 0])
    units = None
    if table.roles.cluster is not None:
        cluster = np.unique(cells.labels[-1].astype(str), return_inverse=True)[1]
        units = BatchUnits(
            batch=batch,
            cluster=cluster,
            cell=groups.place,
            w=cells.total[:, 1],
            u=cells.total[:, 0],
        )
    plain = table.roles.weight is None and units is None
    # Of whole numbers u, only 0 and 1 equal their squares.
    ones = bool(np.array_equal(uu, u) and np.array_equal(ww, n) and np.array_equal(w, n))
    binary = plain and (isinstance(metric, RateMetric) or (ones and np.array_equal(uw, u)))
    return BatchSums(n=n, w=w, u=u, ww=ww, uw=uw, uu=uu, binary=binary, units=units)


def batch_order(labels: AnyArray, column: str, dtype: Any = None) -> list[str]:
    """Return the batches in the order of time.

    Parameters
    ----------
    labels : array of str
        The values of the column as text.
    column : str
        Its name, for messages.
    dtype : narwhals dtype, optional
        Of the column.

    Returns
    -------
    list of str

    Raises
    ------
    DataError
        When the column is no time, or has too many values.
    """
    known = sorted(set(labels.tolist()))
    if dtype == nw.Boolean:
        raise DataError(f"Column {column!r} is not a time: it holds true and false.")
    if len(known) > MOST_BATCHES:
        raise DataError(
            f"Column {column!r} has {len(known):,} different moments; at most {MOST_BATCHES:,}"
            " batches are watched. Make a column of days, weeks or months."
        )
    try:
        return sorted(known, key=float)
    except ValueError:
        pass
    odd = [label for label in known if not _TIME.fullmatch(label)]
    if odd or len({len(label) for label in known if "T" not in label}) > 1:
        one = odd[0] if odd else min(known, key=len)
        raise DataError(
            f"Column {column!r} is not a time: {shown(one)} has no place in an order. Use dates,"
            " numbers, or text such as 2026-07, 2026-W07 or 2026-07-19 of one length."
        )
    return known


_QUESTIONS = Note(
    code="alarm-and-interval",
    message="An alarm and an interval answer different questions: the alarm says that there was a"
    " gap in some batch, the interval how large the gap was on average since the start. They may"
    " disagree when a gap came late or did not last.",
)
_FADED = Note(
    code="gap-did-not-last",
    message="There was a gap when the alarm was raised, but on average since the start none is"
    " shown: it came late or did not last. The alarm stays on record.",
)
_ON_AVERAGE = Note(
    code="within-on-average",
    message="The average gap since the start is shown to lie within the margin; single batches may"
    " have lain beyond it.",
)
_BURN_IN = Note(
    code="burn-in",
    message=f"No interval yet: it is shown from {BURN_IN} rows and {OUTCOMES} outcomes of each kind"
    " on each side. The evidence counts from the first row.",
)
_STATUS = {
    "apart": Note(
        code="never-together",
        message="Never in the same batch as what it is compared with; nothing is compared across"
        " batches.",
    ),
    "alone": Note(
        code="single-unit-batches",
        message="In every batch one of the sides has a single row or cluster, which says nothing of"
        " its variance. Make batches longer.",
    ),
    "scale": Note(
        code="sets-scale",
        message=f"A metric of real values, weights or clusters needs {BURN_IN} rows or clusters on"
        " each side to set its scale; there are fewer so far.",
    ),
}
_CONSTANT = Note(code="degenerate", message="All outcomes were alike so far; there is no evidence.")
_APPROXIMATE = Note(
    code="asymptotic-monitor",
    message="Real values, weights and clusters are watched with a normal approximation; rates of"
    " independent rows need none.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How gaps are watched; the options of `monitor` without the data.

    Parameters
    ----------
    reference, margin, alternative, alarm, run_length, adjust, depth, alpha
        As in `monitor`.
    """

    reference: Any = "rest"
    margin: float = 0.0
    alternative: Alternative = "two-sided"
    alarm: AlarmRule = "ever"
    run_length: float | None = None
    adjust: EAdjust = "e-holm"
    depth: int | None = None
    alpha: float = 0.05

    def __post_init__(self) -> None:
        check_number("margin", self.margin, low=0.0)
        check_option("alternative", self.alternative, Alternative)
        check_option("alarm", self.alarm, AlarmRule)
        check_option("adjust", self.adjust, EAdjust)
        check_fraction("alpha", self.alpha)
        check_depth(self.depth)
        if (self.alarm == "arl") != (self.run_length is not None):
            raise InvalidParameterError(
                "`run_length` belongs to `alarm='arl'`, and only there; got alarm"
                f" {self.alarm!r} with run_length {self.run_length!r}."
            )
        if self.run_length is not None:
            check_number("run_length", self.run_length, low=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What was seen so far: sums of every metric by batch.

    Parameters
    ----------
    metrics : tuple of AnyMetric
        In one family.
    sums : tuple of BatchSums
        Of each metric, with the same batches and groups.
    groups : Labelled
        The finest groups.
    batches : tuple of str
        In the order in which they count.
    rows : int
        In all batches.
    notes : tuple of Note
        Remarks on the data.
    alarms : mapping of str to float
        Findings with an alarm on record, and the evidence at that time.
    epoch : int
        1, and one more after each restart.
    state_digest : str, optional
        Fingerprint of the state that the sums came from.
    """

    metrics: tuple[AnyMetric, ...]
    sums: tuple[BatchSums, ...]
    groups: Labelled
    batches: tuple[str, ...]
    rows: int
    notes: tuple[Note, ...] = ()
    alarms: Mapping[str, float] = field(default_factory=dict)
    epoch: int = 1
    state_digest: str | None = None


@question_method
def monitor(
    self: "Audit",
    metric: Metrics,
    *,
    time: str | None = None,
    reference: Reference = "rest",
    margin: float = 0.0,
    alternative: Alternative = "two-sided",
    alarm: AlarmRule = "ever",
    run_length: float | None = None,
    adjust: EAdjust = "e-holm",
    depth: int | None = None,
    state: str | Path | None = None,
    alpha: float = 0.05,
) -> Asking[AuditResult]:
    """Say whether there is a gap now, looked at after every batch.

    The null hypothesis of a finding is that in no batch the subgroup's gap is larger than the
    margin. The chance that any alarm is ever false is at most `alpha`, however often one looks.

    Parameters
    ----------
    metric : str, Metric or list of them
        A name such as ``"fpr"``, or a metric of your own; a list is one family.
    time : str, optional
        Column whose values in order are the batches; by default the role `time`.
    reference : "rest", "population", dict or float
        What subgroups are held against, within each batch.
    margin : float, default 0
        Largest gap under the null.
    alternative : {"two-sided", "greater", "less"}
        Which gaps raise an alarm.
    alarm : {"ever", "arl"}
        Bound the chance of any false alarm, or the average number of batches between false ones.
    run_length : float, optional
        For ``alarm="arl"``, and only there: at least this many batches between false alarms.
    adjust : {"e-holm", "e-bh", "none"}
        "e-holm" bounds the chance of any false alarm at all looks together; "e-bh" the false
        discovery rate at the look where one stops, not over all looks.
    depth : int, optional
        How many group columns may be combined; by default all.
    state : str or Path, optional
        File that remembers sums, as that of ``equipoise monitor``: the batches of this table are
        added to it, those that it has counted before change nothing, and the answer is about all
        of its batches.
    alpha : float, default 0.05
        Chance that any false alarm is ever raised; intervals hold together at level 1 - alpha.

    Returns
    -------
    AuditResult
        Findings are subgroups of each metric, with the average gap since the start; `details` has
        the path of evidence, gap and interval by batch, and since when a gap can be dated.

    Examples
    --------
    Twelve weeks of decisions; women are treated worse from week 5 on. When is it known?

    >>> import equipoise as eq
    >>> weeks = {"week": [], "sex": [], "hired": []}
    >>> for week in range(1, 13):
    ...     for sex, ones in (("F", 40 if week < 5 else 25), ("M", 40)):
    ...         weeks["week"] += [week] * 100
    ...         weeks["sex"] += [sex] * 100
    ...         weeks["hired"] += [1] * ones + [0] * (100 - ones)
    >>> audit = eq.Audit(weeks, group="sex", y_pred="hired", time="week")
    >>> result = audit.monitor("selection_rate", reference={"sex": "M"})
    >>> known = result.details["paths"][0]
    >>> known["alarm_at"], known["since"]["best"]
    ('8', '5')
    """
    options = Watch(
        reference=reference,
        margin=margin,
        alternative=alternative,
        alarm=alarm,
        run_length=run_length,
        adjust=adjust,
        depth=depth,
        alpha=alpha,
    )
    # It needs this module.
    from equipoise.audits.disparity import monitor_state

    table = self.table
    column = table.roles.column("time") if time is None else time
    table = table.with_roles(time=column)
    metrics = find_metrics(metric)
    config = None if state is None else monitor_state.watch_config(metrics, table.roles, options)
    table.positive_known = state is not None and monitor_state.has_batches(state)
    key = Quantity(column, (), nw.col(column))
    answers: list[CellMoments] = []
    for one in metrics:
        cells: CellMoments = yield declare_batches(table, one, by=[key], needs={"time": "number"})
        answers.append(cells)
    place = len(table.roles.group)
    labels = np.concatenate([cells.labels[place] for cells in answers])
    order = batch_order(labels, column, table.schema[column])
    position = {label: t for t, label in enumerate(order)}
    notes = dropped_notes(max(cells.dropped for cells in answers))
    if state is not None and config is not None:
        batches = monitor_state.raw_batches(table, config["metrics"], answers, order)
        return monitor_state.remember(state, config, batches, notes)
    groups = finest_groups(answers, table.roles.group)
    sums, start = [], 0
    for one, cells in zip(metrics, answers, strict=True):
        own = FinestGroups(
            columns=groups.columns,
            labels=groups.labels,
            place=groups.place[start : start + len(cells.n)],
        )
        start += len(cells.n)
        batch = np.array([position[label] for label in cells.labels[place]], dtype=np.int64)
        sums.append(batch_sums(cells, own, batch, len(order), metric=one, table=table))
    return watch(
        Watched(
            metrics=metrics,
            sums=tuple(sums),
            groups=groups,
            batches=tuple(order),
            rows=max(int(cells.n.sum()) for cells in answers),
            notes=notes,
        ),
        options,
    )


def watch(seen: Watched, options: Watch) -> AuditResult:
    """Say what is known after the batches so far.

    Parameters
    ----------
    seen : Watched
        The sums.
    options : Watch
        How they are watched.

    Returns
    -------
    AuditResult
    """
    sides = sides_of(
        seen.groups, options.reference, options.depth, question="monitor", numbers=True
    )
    # What the others are compared with has no gap, and takes no share of the level.
    watched = np.flatnonzero([note is None for note in sides.why])
    watched = watched if len(watched) else np.arange(len(sides.names))
    own, other = sides.own[:, watched], sides.other[:, watched]
    sequences = []
    with progress_bar("watching gaps") as step:
        for k, sums in enumerate(seen.sums):
            sequences.append(
                gap_sequence(
                    sums,
                    own,
                    other if sides.known is None else sides.known,
                    population=sides.population,
                    margin=options.margin,
                    alternative=options.alternative,
                )
            )
            if step is not None:
                step(k + 1, len(seen.sums))
    alarms = raise_alarms(
        sequences,
        alpha=options.alpha,
        adjust=options.adjust,
        alarm=options.alarm,
        run_length=options.run_length,
    )
    teller = _Teller(
        seen=seen,
        options=options,
        sides=sides,
        watched=watched,
        sequences=tuple(sequences),
        alarms=alarms,
    )
    beyond = f"larger than {options.margin:g}" if options.margin else "other than zero"
    return AuditResult(
        audit="monitor",
        null=f"in no batch is the group's gap to {sides.words} {beyond}",
        alternative=f"in some batch it is {beyond}",
        alpha=options.alpha,
        method=teller.method(),
        n=seen.rows,
        findings=teller.findings(),
        joint=teller.joint(),
        notes=teller.notes(),
        details=MonitorDetails(
            metric=", ".join(metric.name for metric in seen.metrics),
            reference=sides.words,
            margin=options.margin,
            alternative=options.alternative,
            alarm=options.alarm,
            run_length=options.run_length,
            adjust=options.adjust,
            batches=list(seen.batches),
            paths=teller.paths(),
            epoch=seen.epoch,
            state_digest=seen.state_digest,
            n_clusters=teller.n_clusters(),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Teller:
    """Writes findings, joint test and paths."""

    seen: Watched
    options: Watch
    sides: Sides
    watched: IntArray
    sequences: tuple[GapSequence, ...]
    alarms: Alarms

    def name(self, k: int, j: int) -> str:
        """What an alarm of a watched group is called."""
        return f"{self.seen.metrics[k].name} of {self.sides.names[self.watched[j]]}"

    def _interval(self, k: int) -> tuple[FloatArray, FloatArray]:
        """Intervals of one metric that hold for the whole family and all looks."""
        return self.sequences[k].interval(self.options.alpha / self.alarms.e_value.shape[1])

    def findings(self) -> tuple[Finding, ...]:
        """One for every group of every metric."""
        column = {int(group): j for j, group in enumerate(self.watched)}
        found = []
        for k, metric in enumerate(self.seen.metrics):
            sequence, intervals = self.sequences[k], self._interval(k)
            for g, group in enumerate(self.sides.names):
                shared: dict[str, Any] = {
                    "group": group,
                    "estimand": Estimand(metric.name, "gap", scale="difference", noun=metric.words),
                    "method": "e_process" if sequence.exact else "normal_e_process",
                    "reference": self.sides.words,
                }
                j = column.get(g)
                why = self.sides.why[g]
                if j is None or why is not None:
                    note = why or _STATUS["apart"]
                    shared |= {
                        "n": round(float((self.seen.sums[k].n @ self.sides.own)[:, g].sum()))
                    }
                    found.append(Finding(decision=Decision.NOT_TESTED, notes=(note,), **shared))
                    continue
                shared["n"] = round(float(sequence.n[:, j].sum()))
                ends = tuple(finite(side[-1, j]) for side in intervals)
                found.append(self._finding((k, j), (ends[0], ends[1]), shared))
        return tuple(found)

    def _finding(
        self,
        at: tuple[int, int],
        ends: tuple[float | None, float | None],
        shared: dict[str, Any],
    ) -> Finding:
        k, j = at
        sequence, place = self.sequences[k], k * len(self.watched) + j
        why = _STATUS.get(str(sequence.status[j]))
        gap = finite(sequence.gap[-1, j])
        if why is not None or gap is None:
            note = why or _STATUS["apart"]
            return Finding(decision=Decision.NOT_TESTED, notes=(note,), **shared)
        recorded = self.seen.alarms.get(self.name(*at), 0.0)
        raised = bool(self.alarms.batch[place] >= 0) or recorded > 0
        p = min(float(self.alarms.p_value[place]), 1.0 / max(recorded, 1.0))
        low, high = ends
        notes = []
        if sequence.status[j] == "constant":
            notes.append(_CONSTANT)
        elif low is None:
            notes.append(_BURN_IN)
        elif raised and high is not None and low <= 0.0 <= high and not self.options.margin:
            notes.append(_FADED)
        decision = Decision.DETECTED if raised else Decision.NOT_DETECTED
        if not raised and self._within(low, high):
            decision = Decision.WITHIN_MARGIN
            notes.append(_ON_AVERAGE)
        # Run lengths are counted in batches, not in chances: there is no p-value.
        tested = self.options.alarm == "ever"
        return Finding(
            decision=decision,
            estimate=gap,
            ci=None
            if low is None
            else ConfidenceInterval(low=low, high=high, confidence_level=1.0 - self.options.alpha),
            statistic=finite(self.alarms.adjusted[:, place].max()),
            p_value=p if tested else None,
            p_value_raw=min(float(self.alarms.p_value_raw[place]), p) if tested else None,
            notes=tuple(notes),
            **shared,
        )

    def _within(self, low: float | None, high: float | None) -> bool:
        """Whether an interval lies within the margin, on the sides that were asked about."""
        margin, side = self.options.margin, self.options.alternative
        if not margin or low is None or high is None:
            return False
        return (side == "less" or high <= margin) and (side == "greater" or low >= -margin)

    def joint(self) -> JointTest:
        """The average of all e-values against "no gap anywhere"."""
        null = f"no group has a gap beyond {self.options.margin:g} in any batch"
        status = np.concatenate([sequence.status for sequence in self.sequences])
        if not np.isin(status, ("ok", "constant")).any():
            note = Note(code="vacuous", message="No hypothesis is left to test jointly.")
            return JointTest(
                null=null, decision=Decision.NOT_TESTED, method="mean_e", notes=(note,)
            )
        best = float(self.alarms.joint.max())
        p = min(1.0 / max(best, 1e-300), 1.0)
        return JointTest(
            null=null,
            decision=Decision.DETECTED if p <= self.options.alpha else Decision.NOT_DETECTED,
            method="mean_e",
            statistic=best,
            p_value=p,
        )

    def method(self) -> str:
        """Name the processes that were used."""
        exact = {sequence.exact for sequence in self.sequences}
        words = [
            "exact e-process of counts within batches" if one else "normal e-process within batches"
            for one in sorted(exact, reverse=True)
        ]
        return ", ".join(words)

    def notes(self) -> tuple[Note, ...]:
        """Remarks on the whole."""
        size = self.alarms.e_value.shape[1]
        rule = {
            "e-holm": "the chance that any false alarm is ever raised is at most"
            f" {self.options.alpha:g}",
            "e-bh": "the false discovery rate at the look where you stop is at most"
            f" {self.options.alpha:g}, not over all looks together",
            "none": "each group alone has that chance of a false alarm",
        }[self.options.adjust]
        if self.options.alarm == "arl":
            rule = (
                f"at least {self.options.run_length:g} batches lie between false alarms on average"
            )
        family = "one group and metric" if size == 1 else f"{size} groups and metrics"
        notes = [
            *self.seen.notes,
            Note(
                code="multiplicity",
                message=f"One family of {family} at all looks together: {rule}.",
            ),
            _QUESTIONS,
        ]
        if not all(sequence.exact for sequence in self.sequences):
            notes.append(_APPROXIMATE)
        if self.seen.epoch > 1:
            notes.append(
                Note(
                    code="restarted",
                    message=f"The monitor was restarted: in {self.seen.epoch} epochs the chance of"
                    f" any false alarm is at most {self.seen.epoch} times {self.options.alpha:g}.",
                )
            )
        known, margin = self.sides.known, self.options.margin
        if known is not None and margin and not margin < known < 1.0 - margin:
            notes.append(
                Note(
                    code="one-side-silent",
                    message="The margin reaches beyond what a rate can be on one side of the"
                    " reference; no alarm can come from there.",
                )
            )
        return tuple(notes)

    def n_clusters(self) -> int | None:
        """Clusters seen, where rows have any."""
        units = self.seen.sums[0].units
        return None if units is None else len(np.unique(units.cluster))

    def paths(self) -> list[dict[str, Any]]:
        """The evidence of every finding, batch by batch."""
        paths = []
        intervals = [self._interval(k) for k in range(len(self.sequences))]
        each = [(k, j) for k in range(len(self.sequences)) for j in range(len(self.watched))]
        for k, j in each:
            sequence, (low, high) = self.sequences[k], intervals[k]
            place = k * len(self.watched) + j
            alarm = int(self.alarms.batch[place])
            since = None
            if alarm >= 0:
                date = sequence.date(j, alarm)
                since = {
                    "best": self.seen.batches[date.best],
                    "low": self.seen.batches[date.low],
                    "high": self.seen.batches[date.high],
                }
            with np.errstate(invalid="ignore", divide="ignore"):
                now = sequence.score[:, j] / sequence.weight[:, j]
            paths.append(
                {
                    "finding": self.name(k, j),
                    "group": self.sides.names[self.watched[j]],
                    "metric": self.seen.metrics[k].name,
                    "n": _counts(sequence.n[:, j]),
                    "n_reference": _counts(sequence.n_reference[:, j]),
                    "batch_gap": _optional(now),
                    "gap": _optional(sequence.gap[:, j]),
                    "low": _optional(low[:, j]),
                    "high": _optional(high[:, j]),
                    "e": _optional(self.alarms.e_value[:, place]),
                    "e_adjusted": _optional(self.alarms.adjusted[:, place]),
                    "alarms": [
                        self.seen.batches[t]
                        for t in np.flatnonzero(self.alarms.raised[:, place]).tolist()
                    ],
                    "alarm_at": None if alarm < 0 else self.seen.batches[alarm],
                    "since": since,
                }
            )
        return paths


def _optional(values: FloatArray) -> list[float | None]:
    return [finite(value) for value in values.tolist()]


def _counts(values: FloatArray) -> list[int]:
    return [round(value) for value in values.tolist()]
