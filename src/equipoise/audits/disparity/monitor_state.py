"""A monitor that remembers: batches are added to a state, and the state says what is known."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._checks import quoted
from equipoise.audits.disparity.monitor import Watch, Watched, watch
from equipoise.audits.disparity.questions import MonitorDetails
from equipoise.audits.disparity.sides import FinestGroups
from equipoise.data.metrics import AnyMetric, Metric, RateMetric, find_metric
from equipoise.data.roles import Roles
from equipoise.data.table import Table
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.monitoring.state import Alarm, Batch, Cell, ClusterSum, MonitorState, fingerprint
from equipoise.monitoring.storage import read_state, update_state
from equipoise.results.details import details_of
from equipoise.results.finding import Note
from equipoise.results.result import AuditResult

__all__ = [
    "OPTIONS",
    "RawBatch",
    "Update",
    "has_batches",
    "raw_batches",
    "remember",
    "state_answer",
    "watch_config",
]

ALIKE = 50
"""Rows from which equal sums of two batches are no matter of course."""

_TEXT = (nw.String, nw.Categorical, nw.Enum)

OPTIONS = tuple(field.name for field in fields(Watch))


def watch_config(metrics: Sequence[AnyMetric], roles: Roles, options: Watch) -> dict[str, Any]:
    """Return what is watched and how, as JSON values.

    Parameters
    ----------
    metrics : sequence of AnyMetric
        Metrics with a name; one of one's own cannot be found again by the next call.
    roles : Roles
        Of the table.
    options : Watch
        How gaps are watched.

    Returns
    -------
    dict
        Metrics, roles and options; a state refuses any other.
    """
    own = [metric.name for metric in metrics if isinstance(metric, Metric)]
    if own:
        raise InvalidParameterError(
            f"a state remembers metrics by name, and {own[0]!r} is one of your own. Leave out"
            " `state`, or use a metric by name."
        )
    played = {
        field.name: getattr(roles, field.name)
        for field in fields(Roles)
        if field.name not in {"group", "time", "features", "baseline"}
    }
    unset = Roles()
    config = {name: getattr(options, name) for name in OPTIONS} | {
        "metrics": [metric.name for metric in metrics],
        "group": list(roles.group),
        "time": roles.time,
        "roles": {name: value for name, value in played.items() if value != getattr(unset, name)},
    }
    plain: dict[str, Any] = json.loads(json.dumps(config, allow_nan=False))
    return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class RawBatch:
    """A batch whose clusters still have their labels.

    Parameters
    ----------
    batch : Batch
        Identity and sums.
    clusters : tuple
        Label of the cluster, metric, group, and the sums w and u.
    text : tuple of str
        Group columns that hold text.
    """

    batch: Batch
    clusters: tuple[tuple[str, str, tuple[str, ...], float, float], ...]
    text: tuple[str, ...] = ()

    def hashed(self, state: MonitorState) -> Batch:
        """Return the batch as a state keeps it: without the labels of clusters.

        Parameters
        ----------
        state : MonitorState
            Whose salt is used.

        Returns
        -------
        Batch
        """
        sums = tuple(
            ClusterSum(cluster=state.hashed(label), metric=metric, group=group, w=w, u=u)
            for label, metric, group, w, u in self.clusters
        )
        return replace(self.batch, clusters=sums)


def raw_batches(
    table: Table,
    metrics: Sequence[str],
    answers: Sequence[CellMoments],
    order: Sequence[str],
    *,
    digest: str | None = None,
) -> list[RawBatch]:
    """Put sums into batches.

    Parameters
    ----------
    table : Table
        Whose rows were summed.
    metrics : sequence of str
        Names of the metrics.
    answers : sequence of CellMoments
        Sums of each by group, by batch where there are several, and by cluster.
    order : sequence of str
        Names of the batches in the order of time; one, when the sums are those of one batch.
    digest : str, optional
        Fingerprint of the table of a single batch; by default that of the sums.

    Returns
    -------
    list of RawBatch
    """
    batches = []
    group = table.roles.group
    text = tuple(name for name in group if table.schema[name] in _TEXT)
    # After the group columns comes the label of the batch, and last that of the cluster.
    place, clustered = len(group), table.roles.cluster is not None
    for label in order:
        cells: list[Cell] = []
        clusters: list[tuple[str, str, tuple[str, ...], float, float]] = []
        rows = 0
        for name, answer in zip(metrics, answers, strict=True):
            own = (
                answer.labels[place] == label
                if digest is None
                else np.ones(len(answer.n), dtype=np.bool_)
            )
            rows = max(rows, int(answer.n[own].sum()))
            cells += _cells(name, answer, own, place)
            if clustered:
                clusters += _clusters(name, answer, own, place)
        content = fingerprint([label, [[*cell.group, cell.metric, cell.u] for cell in cells]])
        batch = Batch(
            id=label, time=label, rows=rows, file_digest=digest or content, cells=tuple(cells)
        )
        batches.append(RawBatch(batch=batch, clusters=tuple(clusters), text=text))
    return batches


def _groups_of(answer: CellMoments, place: int) -> list[tuple[str, ...]]:
    return list(zip(*(labels.tolist() for labels in answer.labels[:place]), strict=True))


def _cells(name: str, answer: CellMoments, own: Any, place: int) -> list[Cell]:
    """Sum over clusters, so that a cell is a group."""
    totals: dict[tuple[str, ...], Any] = {}
    groups = _groups_of(answer, place)
    for k in np.flatnonzero(own).tolist():
        numbers = np.append(answer.total[k], answer.sums[k, 0])
        totals[groups[k]] = totals.get(groups[k], 0.0) + numbers
    return [
        Cell(
            group=group,
            metric=name,
            u=float(u),
            w=float(w),
            uu=float(uu),
            uw=float(uw),
            ww=float(ww),
            n=float(n),
        )
        for group, (u, w, uu, uw, ww, n) in sorted(totals.items())
    ]


def _clusters(
    name: str, answer: CellMoments, own: Any, place: int
) -> list[tuple[str, str, tuple[str, ...], float, float]]:
    groups = _groups_of(answer, place)
    return [
        (
            str(answer.labels[-1][k]),
            name,
            groups[k],
            float(answer.total[k, 1]),
            float(answer.total[k, 0]),
        )
        for k in np.flatnonzero(own).tolist()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What one call does to a state.

    Parameters
    ----------
    config : mapping
        What is watched.
    begins : bool
        Whether a state may be begun where there is none.
    batches : tuple of RawBatch
        To add, in the order of time.
    other : MonitorState, optional
        To merge.
    acknowledged : str, optional
        Identifier of an alarm that was seen.
    remark : str
        What was done about it.
    restart : str, optional
        Reason to begin a new epoch.
    allow_identical : bool
        Accept a file that was already counted under another identifier.
    """

    config: Mapping[str, Any]
    begins: bool = False
    batches: tuple[RawBatch, ...] = ()
    other: MonitorState | None = None
    acknowledged: str | None = None
    remark: str = "acknowledged"
    restart: str | None = None
    allow_identical: bool = False

    def of(self, found: MonitorState | None) -> tuple[MonitorState, tuple[Note, ...]]:
        """Return the state after the call, and remarks on its batches.

        Parameters
        ----------
        found : MonitorState or None
            The state on file.

        Returns
        -------
        state : MonitorState
            The same when there is nothing to do.
        notes : tuple of Note
            Batches counted before or late, groups that are new.
        """
        if found is None and not self.begins:
            raise InvalidParameterError("The state is gone. Pass --plan to begin a new one.")
        state = found or MonitorState(config=self.config)
        state.check_config(self.config)
        if self.other is not None:
            state = state.merge(self.other, allow_identical=self.allow_identical)
        if self.acknowledged is not None:
            state = state.acknowledge(self.acknowledged, self.remark)
        if self.restart is not None:
            state = state.restart(self.restart)
        notes: list[Note] = []
        for raw in self.batches:
            batch = raw.hashed(state)
            if state.contains(batch.id):
                again = f"Batch {batch.id!r} was already counted."
                notes.append(Note(code="batch-again", message=again))
            else:
                notes += _remarks(state, batch)
            state = state.append(batch, allow_identical=self.allow_identical)
            state = state.with_text(raw.text)
        return state, tuple(notes)


def _remarks(state: MonitorState, batch: Batch) -> list[Note]:
    notes = []
    earlier = state.current
    if earlier and _later(earlier[-1].time, batch.time):
        notes.append(
            Note(
                code="late-batch",
                message=f"Batch {batch.id!r} came after {earlier[-1].id!r} and counts in the order"
                " of arrival.",
            )
        )
    large = earlier if batch.rows >= ALIKE else ()
    twin = next((one for one in large if one.cells == batch.cells), None)
    if twin is not None:
        notes.append(
            Note(
                code="same-sums",
                message=f"Batch {batch.id!r} has exactly the sums of batch {twin.id!r}. If it holds"
                " the same rows, written otherwise, they count twice.",
            )
        )
    seen = {cell.group for one in earlier for cell in one.cells}
    new = sorted({cell.group for cell in batch.cells} - seen)
    if earlier and new:
        names = quoted(" & ".join(group) for group in new[:5])
        notes.append(
            Note(
                code="new-group",
                message=f"Batch {batch.id!r} has groups that were not there before: {names}. Their"
                " evidence starts now; alarms on record stay.",
            )
        )
    return notes


def _later(before: str, now: str) -> bool:
    try:
        return float(before) > float(now)
    except ValueError:
        return before > now


def state_answer(
    state: MonitorState, notes: tuple[Note, ...] = ()
) -> tuple[AuditResult, MonitorState]:
    """Say what is known after the batches of a state, and record the alarms that are new.

    Parameters
    ----------
    state : MonitorState
        With at least one batch in the current epoch.
    notes : tuple of Note
        Remarks on the batches that were just added.

    Returns
    -------
    result : AuditResult
        The answer.
    state : MonitorState
        With the alarms on record.
    """
    config = state.config
    metrics = tuple(find_metric(name) for name in config["metrics"])
    roles = config["roles"]
    plain = not roles.get("weight") and not roles.get("cluster")
    found = [
        state.sums(metric.name, binary=plain and isinstance(metric, RateMetric))
        for metric in metrics
    ]
    if not found[0].batches:
        raise DataError("The state has no batch in its current epoch; add one.")
    labels = tuple(np.array(column, dtype=object) for column in zip(*found[0].groups, strict=True))
    seen = Watched(
        metrics=metrics,
        sums=tuple(one.sums for one in found),
        groups=FinestGroups(
            columns=tuple(config["group"]), labels=labels, place=np.arange(len(labels[0]))
        ),
        batches=found[0].batches,
        rows=sum(batch.rows for batch in state.current),
        notes=notes,
        alarms={
            alarm.finding: alarm.e_value for alarm in state.alarms if alarm.epoch == state.epoch
        },
        epoch=state.epoch,
        state_digest=fingerprint([batch.cells_digest for batch in state.batches]),
    )
    options = Watch(**{name: config[name] for name in OPTIONS})
    result = watch(seen, options)
    raised = _raised(result, state.epoch)
    after = state.with_alarms(raised, repeated=options.alarm == "arl")
    return result, after


def _raised(result: AuditResult, epoch: int) -> list[Alarm]:
    details = details_of(result.details, MonitorDetails)
    return [
        Alarm(
            finding=path["finding"],
            batch=batch,
            e_value=float(path["e_adjusted"][details.batches.index(batch)]),
            epoch=epoch,
        )
        for path in details.paths
        for batch in path["alarms"]
    ]


def remember(
    path: str | Path,
    config: Mapping[str, Any],
    batches: Sequence[RawBatch],
    notes: tuple[Note, ...] = (),
) -> AuditResult:
    """Add batches to the state in a file, begun if there is none, and say what is known.

    Parameters
    ----------
    path : str or Path
        File of the state.
    config : mapping
        From `watch_config`.
    batches : sequence of RawBatch
        In the order of time; those that were counted before change nothing.
    notes : tuple of Note
        Remarks on the rows.

    Returns
    -------
    AuditResult
    """
    update = Update(config=config, begins=True, batches=tuple(batches))
    answers: list[AuditResult] = []

    def change(found: MonitorState | None) -> MonitorState:
        state, remarks = update.of(found)
        result, after = state_answer(state, notes + remarks)
        answers.append(result)
        return after

    update_state(_state_file(path), change)
    return answers[-1]


def has_batches(path: str | Path) -> bool:
    """Say whether a state has counted a batch.

    Parameters
    ----------
    path : str or Path
        File of the state; there may be none.

    Returns
    -------
    bool
    """
    state = read_state(_state_file(path))
    return state is not None and bool(state.batches)


def _state_file(path: object) -> Path:
    if not isinstance(path, (str, Path)) or not str(path):
        raise InvalidParameterError(f"`state` must name a file; got {path!r}.")
    return Path(path)
