"""The memory of a monitor: sums by batch, and the alarms that were raised.

A state is a plain value. Batches are added to it, states of several sites are merged, alarms are
recorded and acknowledged; each of these returns a new state or refuses with a sentence, so that a
state never holds a batch twice, a batch of another plan, or half of anything. Everything that a
monitor says is computed from the sums, which hold no row and no name: clusters are known by a
salted hash.
"""

import hashlib
import json
import math
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from equipoise._typing import FloatArray
from equipoise.exceptions import DataError
from equipoise.stats.disparity.gap_sequence import BatchSums, BatchUnits

__all__ = [
    "Alarm",
    "Batch",
    "Cell",
    "ClusterSum",
    "MonitorState",
    "StateSums",
    "fingerprint",
]

SCHEMA_VERSION = 1
KIND = "equipoise.monitor"


def fingerprint(value: object) -> str:
    """Name a JSON value by its content: sorted keys, no spaces, SHA-256.

    Parameters
    ----------
    value : object
        Anything that JSON can hold.

    Returns
    -------
    str
        "sha256:" and 64 hexadecimal digits.

    Examples
    --------
    >>> fingerprint({"b": 1, "a": 2}) == fingerprint({"a": 2, "b": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Sums of one metric over the rows of a batch in one combination of the groups.

    Parameters
    ----------
    group : tuple of str
        Level of each group column.
    metric : str
        Name of the metric.
    n : float
        Rows on which it is defined.
    w, u, ww, uw, uu : float
        Sums of denominator, numerator and their products.
    """

    group: tuple[str, ...]
    metric: str
    n: float
    w: float
    u: float
    ww: float
    uw: float
    uu: float

    @classmethod
    def of_counts(cls, group: Iterable[str], metric: str, n: float, ones: float) -> "Cell":
        """Sums of a rate.

        Parameters
        ----------
        group : iterable of str
            Level of each group column.
        metric : str
            Name of the metric.
        n, ones : float
            Rows and ones.

        Returns
        -------
        Cell
        """
        return cls(group=tuple(group), metric=metric, n=n, w=n, u=ones, ww=n, uw=ones, uu=ones)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSum:
    """Sums of one cluster in one cell of a batch.

    Parameters
    ----------
    cluster : str
        Salted hash of its label.
    group : tuple of str
        Level of each group column.
    metric : str
        Name of the metric.
    w, u : float
        Sums of denominator and numerator.
    """

    cluster: str
    group: tuple[str, ...]
    metric: str
    w: float
    u: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch: who it is, and its sums.

    Parameters
    ----------
    id : str
        What the user calls it; a batch is counted once.
    rows : int
        Rows of the table it came from.
    file_digest : str
        Fingerprint of that table.
    cells : tuple of Cell
        Its sums.
    time : str
        When it was; merged states are put in this order. Empty when not known.
    clusters : tuple of ClusterSum
        Empty without clusters.
    epoch : int
        1, and one more after each restart.
    """

    id: str
    rows: int
    file_digest: str
    cells: tuple[Cell, ...]
    time: str = ""
    clusters: tuple[ClusterSum, ...] = ()
    epoch: int = 1

    @property
    def cells_digest(self) -> str:
        """Fingerprint of the sums."""
        return fingerprint([_cell_row(cell) for cell in sorted(self.cells, key=_cell_key)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """An alarm that was raised; it can be acknowledged, never deleted.

    Parameters
    ----------
    finding : str
        Metric and group, in words.
    batch : str
        Batch at which it was raised.
    e_value : float
        Evidence at that batch.
    epoch : int
        Epoch of the monitor.
    acknowledged : str
        What was said when it was acknowledged; empty while it stands.
    """

    finding: str
    batch: str
    e_value: float
    epoch: int
    acknowledged: str = ""

    @property
    def id(self) -> str:
        """Name by which it is acknowledged."""
        return f"{self.finding}@{self.batch}" + (f"#{self.epoch}" if self.epoch > 1 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSums:
    """Sums of one metric in the current epoch, in the order of the batches.

    Parameters
    ----------
    batches : tuple of str
        Identifiers, T of them.
    groups : tuple of tuple of str
        Combinations of group levels, C of them, of all metrics.
    sums : BatchSums
        Of shape (T, C).
    """

    batches: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    sums: BatchSums


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorState:
    """Everything that a monitor remembers.

    Parameters
    ----------
    config : mapping
        What is watched and how: metrics, groups, reference, margin, level and so on. JSON values.
    salt : str
        Goes into the hash of cluster labels; sites that share clusters share it.
    batches : tuple of Batch
        In the order in which they count.
    alarms : tuple of Alarm
        All that were ever raised.
    restarts : tuple of str
        Reasons; each began a new epoch.
    text : tuple of str
        Group columns that held text in some batch: in every csv file they are read so, whatever
        that file alone looks like.
    """

    config: Mapping[str, Any]
    salt: str = field(default_factory=lambda: secrets.token_hex(16))
    batches: tuple[Batch, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    restarts: tuple[str, ...] = ()
    text: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ids = [batch.id for batch in self.batches]
        if len(set(ids)) < len(ids):
            twice = next(one for one in ids if ids.count(one) > 1)
            raise DataError(f"Batch {twice!r} is in the state twice.")

    @property
    def config_digest(self) -> str:
        """Fingerprint of the plan."""
        return fingerprint(dict(self.config))

    @property
    def epoch(self) -> int:
        """1, and one more after each restart."""
        return 1 + len(self.restarts)

    @property
    def standing(self) -> tuple[Alarm, ...]:
        """Alarms that nobody has acknowledged."""
        return tuple(alarm for alarm in self.alarms if not alarm.acknowledged)

    @property
    def current(self) -> tuple[Batch, ...]:
        """Batches of the current epoch."""
        return tuple(batch for batch in self.batches if batch.epoch == self.epoch)

    def hashed(self, cluster: object) -> str:
        """Name a cluster without telling who it is.

        Parameters
        ----------
        cluster : object
            Its label.

        Returns
        -------
        str
        """
        return hashlib.sha256(f"{self.salt}:{cluster}".encode()).hexdigest()[:24]

    def check_config(self, config: Mapping[str, Any]) -> None:
        """Refuse another plan than the one the state was begun with.

        Parameters
        ----------
        config : mapping
            Plan of the call.

        Raises
        ------
        DataError
            That names the first difference.
        """
        if fingerprint(dict(config)) == self.config_digest:
            return
        keys = sorted(set(config) | set(self.config))
        key = next(key for key in keys if config.get(key) != self.config.get(key))
        raise DataError(
            f"This state watches with {key} = {self.config.get(key)!r}; the plan says "
            f"{config.get(key)!r}. Evidence cannot be carried over: begin a new state, or restart."
        )

    def append(self, batch: Batch, *, allow_identical: bool = False) -> "MonitorState":
        """Add a batch.

        Parameters
        ----------
        batch : Batch
            Its epoch is set to the current one.
        allow_identical : bool, default False
            Accept a file that was already counted under another identifier.

        Returns
        -------
        MonitorState
            The same state when the batch was already counted.

        Raises
        ------
        DataError
            When the identifier was used for other content, or the content under another identifier.
        """
        for known in self.batches:
            same_file = known.file_digest == batch.file_digest
            if known.id == batch.id:
                if same_file and known.cells_digest == batch.cells_digest:
                    return self
                raise DataError(
                    f"Batch {batch.id!r} was counted with other content ({known.rows:,} rows then, "
                    f"{batch.rows:,} now). Nothing was changed."
                )
            if same_file and not allow_identical:
                raise DataError(
                    f"Batch {batch.id!r} has the content of batch {known.id!r}, which was already "
                    "counted. Pass --allow-identical if both really happened."
                )
        _check_cells(batch, self.config)
        return replace(self, batches=(*self.batches, replace(batch, epoch=self.epoch)))

    def with_text(self, columns: Iterable[str]) -> "MonitorState":
        """Remember which group columns hold text.

        Parameters
        ----------
        columns : iterable of str
            Those that do in a batch.

        Returns
        -------
        MonitorState
        """
        text = tuple(sorted({*self.text, *columns}))
        return self if text == self.text else replace(self, text=text)

    def contains(self, batch_id: str) -> bool:
        """Whether a batch was counted.

        Parameters
        ----------
        batch_id : str
            Its identifier.

        Returns
        -------
        bool
        """
        return any(batch.id == batch_id for batch in self.batches)

    def merge(self, other: "MonitorState", *, allow_identical: bool = False) -> "MonitorState":
        """Put two states of the same plan together.

        Parameters
        ----------
        other : MonitorState
            State of another site or machine.
        allow_identical : bool, default False
            Accept a file that both states have counted, each under an identifier of its own.

        Returns
        -------
        MonitorState
            The union of the batches, in the order of time and identifier.

        Raises
        ------
        DataError
            When plans, salts or restarts differ, a batch has different content, or the same file
            is in both under two identifiers.
        """
        other.check_config(self.config)
        if self.restarts != other.restarts:
            raise DataError(
                f"One state was restarted {len(self.restarts)} times, the other "
                f"{len(other.restarts)} times; they cannot be merged."
            )
        if self.salt != other.salt and _clustered(self) and _clustered(other):
            raise DataError(
                "The states hash clusters with different salts, so that people in both would count "
                "twice. Begin the second site from a copy of the empty first state."
            )
        mine = {batch.id: batch for batch in self.batches}
        files = {batch.file_digest: batch.id for batch in self.batches}
        for batch in other.batches:
            if batch.id not in mine and batch.file_digest in files and not allow_identical:
                raise DataError(
                    f"Batch {batch.id!r} of the other state has the content of batch"
                    f" {files[batch.file_digest]!r}, and would count twice. Pass --allow-identical"
                    " if both really happened."
                )
            known = mine.setdefault(batch.id, batch)
            if (known.file_digest, known.cells_digest) != (batch.file_digest, batch.cells_digest):
                raise DataError(
                    f"Batch {batch.id!r} has different content in the two states. Let sites begin "
                    "identifiers with their own name."
                )
        alarms = {alarm.id: alarm for alarm in other.alarms}
        for alarm in self.alarms:
            theirs = alarms.get(alarm.id, alarm)
            said = sorted({alarm.acknowledged, theirs.acknowledged} - {""})
            alarms[alarm.id] = replace(alarm, acknowledged="; ".join(said))
        return replace(
            self,
            salt=_kept_salt(self, other),
            text=self.with_text(other.text).text,
            batches=_in_time(mine.values()),
            alarms=tuple(
                sorted(alarms.values(), key=lambda one: (one.epoch, one.batch, one.finding))
            ),
        )

    def restart(self, reason: str) -> "MonitorState":
        """Begin a new epoch: evidence starts again, what happened stays on record.

        Parameters
        ----------
        reason : str
            Why; it is printed.

        Returns
        -------
        MonitorState
        """
        if not reason.strip():
            raise DataError("A restart needs a reason; it is kept in the state.")
        return replace(self, restarts=(*self.restarts, reason))

    def with_alarms(self, alarms: Iterable[Alarm], *, repeated: bool = False) -> "MonitorState":
        """Record alarms; a finding that has one in the current epoch keeps the first.

        Parameters
        ----------
        alarms : iterable of Alarm
            Raised now.
        repeated : bool, default False
            Whether a finding may have alarms in several batches.

        Returns
        -------
        MonitorState
        """
        recorded = {alarm.id for alarm in self.alarms}
        known = {(alarm.finding, alarm.epoch) for alarm in self.alarms}
        new = [
            alarm
            for alarm in alarms
            if alarm.id not in recorded and (repeated or (alarm.finding, alarm.epoch) not in known)
        ]
        return replace(self, alarms=(*self.alarms, *new)) if new else self

    def acknowledge(self, alarm_id: str, remark: str = "acknowledged") -> "MonitorState":
        """Say that an alarm was seen.

        Parameters
        ----------
        alarm_id : str
            As printed: "metric of group@batch".
        remark : str, default "acknowledged"
            What was done about it.

        Returns
        -------
        MonitorState
        """
        ids = [alarm.id for alarm in self.alarms]
        if alarm_id not in ids:
            standing = ", ".join(repr(one.id) for one in self.standing) or "none"
            raise DataError(f"There is no alarm {alarm_id!r}. Alarms that stand: {standing}.")
        return replace(
            self,
            alarms=tuple(
                replace(alarm, acknowledged=remark or "acknowledged")
                if alarm.id == alarm_id
                else alarm
                for alarm in self.alarms
            ),
        )

    def sums(self, metric: str, *, binary: bool) -> StateSums:
        """Sums of one metric in the current epoch.

        Parameters
        ----------
        metric : str
            Its name.
        binary : bool
            Whether it is a rate of independent unweighted rows.

        Returns
        -------
        StateSums
            A group that was not there yet in a batch has zeros.
        """
        batches = self.current
        groups = sorted({cell.group for batch in batches for cell in batch.cells})
        column = {group: c for c, group in enumerate(groups)}
        table = np.zeros((6, len(batches), len(groups)))
        units: list[tuple[int, str, int, float, float]] = []
        for t, batch in enumerate(batches):
            for cell in batch.cells:
                if cell.metric == metric:
                    table[:, t, column[cell.group]] += _sums_of(cell)
            units += [
                (t, one.cluster, column[one.group], one.w, one.u)
                for one in batch.clusters
                if one.metric == metric
            ]
        n, w, u, ww, uw, uu = table
        return StateSums(
            batches=tuple(batch.id for batch in batches),
            groups=tuple(groups),
            sums=BatchSums(
                n=n, w=w, u=u, ww=ww, uw=uw, uu=uu, binary=binary, units=_unit_sums(units)
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON values.

        Returns
        -------
        dict
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": KIND,
            "config": dict(self.config),
            "config_digest": self.config_digest,
            "epoch": self.epoch,
            "salt": self.salt,
            "restarts": list(self.restarts),
            "text": list(self.text),
            "batches": [_batch_row(batch, seq) for seq, batch in enumerate(self.batches, start=1)],
            "alarms": [
                {
                    "id": alarm.id,
                    "finding": alarm.finding,
                    "batch": alarm.batch,
                    "e": alarm.e_value,
                    "epoch": alarm.epoch,
                    "acknowledged": alarm.acknowledged,
                }
                for alarm in self.alarms
            ],
        }

    @classmethod
    def from_dict(cls, value: object) -> "MonitorState":
        """Read what `to_dict` wrote.

        Parameters
        ----------
        value : object
            JSON values.

        Returns
        -------
        MonitorState

        Raises
        ------
        DataError
            When it is no state, of another version, or was changed by hand.
        """
        if not isinstance(value, Mapping) or value.get("kind") != KIND:
            raise DataError("This is not the state of a monitor.")
        if value.get("schema_version") != SCHEMA_VERSION:
            raise DataError(
                f"The state has schema version {value.get('schema_version')!r}; this release reads "
                f"{SCHEMA_VERSION}."
            )
        try:
            state = cls(
                config=dict(value["config"]),
                salt=str(value["salt"]),
                restarts=tuple(str(reason) for reason in value["restarts"]),
                text=tuple(str(column) for column in value.get("text", ())),
                batches=tuple(_batch_from(row) for row in value["batches"]),
                alarms=tuple(
                    Alarm(
                        finding=str(row["finding"]),
                        batch=str(row["batch"]),
                        e_value=float(row["e"]),
                        epoch=int(row["epoch"]),
                        acknowledged=str(row["acknowledged"]),
                    )
                    for row in value["alarms"]
                ),
            )
            written = [str(row["cells_digest"]) for row in value["batches"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"The state is damaged: {error!r}.") from error
        changed = [
            batch.id
            for batch, digest in zip(state.batches, written, strict=True)
            if batch.cells_digest != digest
        ]
        if changed or state.config_digest != value.get("config_digest"):
            what = f"batch {changed[0]!r}" if changed else "the plan"
            raise DataError(
                f"The state was changed by hand: {what} does not match its fingerprint."
            )
        return state


def _check_cells(batch: Batch, config: Mapping[str, Any]) -> None:
    metrics = config.get("metrics")
    if metrics is not None:
        unknown = sorted({cell.metric for cell in batch.cells} - set(metrics))
        if unknown:
            raise DataError(
                f"Batch {batch.id!r} has sums of {unknown[0]!r}, which this state does not watch."
            )
    for cell in batch.cells:
        if not np.isfinite(_sums_of(cell)).all() or cell.n < 0:
            raise DataError(f"Batch {batch.id!r} has sums that are not finite numbers.")
    keys = [_cell_key(cell) for cell in batch.cells]
    if len(set(keys)) < len(keys):
        raise DataError(f"Batch {batch.id!r} has a cell twice.")


def _kept_salt(one: MonitorState, other: MonitorState) -> str:
    """Return the salt of the state that has hashed clusters; of two without any, the first."""
    clustered = [state.salt for state in (one, other) if _clustered(state)]
    return min(clustered or [one.salt, other.salt])


def _in_time(batches: Iterable[Batch]) -> tuple[Batch, ...]:
    """Put batches in order by time, numbers in it by their size, and by identifier."""

    def key(batch: Batch) -> tuple[Any, ...]:
        return batch.epoch, _parts(batch.time), _parts(batch.id)

    return tuple(sorted(batches, key=key))


def _parts(text: str) -> tuple[tuple[int, float, str], ...]:
    """Split a time or name into numbers and words: week 9 comes before week 10."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return ((0, number, ""),)
    found = re.findall(r"\d+|\D+", text)
    return tuple((0, float(x), "") if x.isdecimal() else (1, 0.0, x) for x in found)


def _clustered(state: MonitorState) -> bool:
    return any(batch.clusters for batch in state.batches)


def _cell_key(cell: Cell) -> tuple[str, tuple[str, ...]]:
    return cell.metric, cell.group


def _sums_of(cell: Cell) -> FloatArray:
    return np.array([cell.n, cell.w, cell.u, cell.ww, cell.uw, cell.uu])


def _unit_sums(units: list[tuple[int, str, int, float, float]]) -> BatchUnits | None:
    if not units:
        return None
    batch, cluster, cell, w, u = zip(*units, strict=True)
    return BatchUnits(
        batch=np.array(batch),
        cluster=np.unique(np.array(cluster), return_inverse=True)[1],
        cell=np.array(cell),
        w=np.array(w),
        u=np.array(u),
    )


def _cell_row(cell: Cell) -> list[object]:
    return [cell.metric, list(cell.group), *(float(value) for value in _sums_of(cell))]


def _batch_row(batch: Batch, seq: int) -> dict[str, Any]:
    return {
        "id": batch.id,
        "seq": seq,
        "time": batch.time,
        "rows": batch.rows,
        "epoch": batch.epoch,
        "file_digest": batch.file_digest,
        "cells_digest": batch.cells_digest,
        "cells": [_cell_row(cell) for cell in batch.cells],
        "clusters": [
            [one.cluster, one.metric, list(one.group), one.w, one.u] for one in batch.clusters
        ],
    }


def _batch_from(row: Mapping[str, Any]) -> Batch:
    return Batch(
        id=str(row["id"]),
        time=str(row["time"]),
        rows=int(row["rows"]),
        epoch=int(row["epoch"]),
        file_digest=str(row["file_digest"]),
        cells=tuple(
            Cell(
                metric=str(metric),
                group=tuple(str(level) for level in group),
                **dict(zip(("n", "w", "u", "ww", "uw", "uu"), map(float, sums), strict=True)),
            )
            for metric, group, *sums in row["cells"]
        ),
        clusters=tuple(
            ClusterSum(
                cluster=str(cluster),
                metric=str(metric),
                group=tuple(str(level) for level in group),
                w=float(w),
                u=float(u),
            )
            for cluster, metric, group, w, u in row["clusters"]
        ),
    )
