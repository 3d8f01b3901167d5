"""From a plan and a batch to what a state says: read sums, add them, raise alarms, tell."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from equipoise.audits.asking import ask_all
from equipoise.audits.disparity.monitor import Watch, batch_order, declare_batches
from equipoise.audits.disparity.monitor_state import (
    OPTIONS,
    RawBatch,
    raw_batches,
    state_answer,
    watch_config,
)
from equipoise.data.fingerprint import fingerprint as file_fingerprint
from equipoise.data.metrics import find_metric, find_metrics
from equipoise.data.roles import Roles
from equipoise.data.table import Quantity, Sums, Table
from equipoise.exceptions import EquipoiseError, InvalidParameterError
from equipoise.monitoring.state import Alarm, MonitorState, fingerprint
from equipoise.plans.dossier import Check, Dossier
from equipoise.plans.plan import Plan
from equipoise.plans.run import created_now, library_versions
from equipoise.results.finding import Note
from equipoise.results.result import AuditResult

__all__ = ["Known", "known", "monitor_config", "read_batches"]


def monitor_config(plan: Plan) -> dict[str, Any]:
    """Return what a plan watches and how, as JSON values.

    Parameters
    ----------
    plan : Plan
        With exactly one check that monitors.

    Returns
    -------
    dict
        Metrics, roles and options; the state refuses any other.

    Raises
    ------
    InvalidParameterError
        When the plan has no such check, or several.
    """
    checks = [check for check in plan.checks if check.question == "monitor"]
    if len(checks) != 1:
        raise InvalidParameterError(
            f'a state is watched by one check with question = "monitor"; the plan has'
            f" {len(checks)}."
        )
    options = dict(checks[0].options)
    options.pop("state", None)
    roles = dict(plan.roles)
    if checks[0].group is not None:
        roles["group"] = list(checks[0].group)
        bins = roles.get("bins", {})
        roles["bins"] = {name: cuts for name, cuts in bins.items() if name in roles["group"]}
    metrics = find_metrics(options.pop("metric"))
    if "time" in options:
        roles["time"] = options.pop("time")
    return watch_config(metrics, Roles(**roles), Watch(**options))


def read_batches(
    config: Mapping[str, Any],
    path: str | Path,
    batch_id: str | None,
    *,
    engine: str = "duckdb",
    state: MonitorState | None = None,
) -> list[RawBatch]:
    """Sum the rows of a file by group, as one batch or by its time column.

    Parameters
    ----------
    config : mapping
        From `monitor_config`.
    path : str or Path
        The file.
    batch_id : str, optional
        Name of the whole file as one batch; without it each value of the time column is one.
    engine : {"duckdb", "spark"}
        What reads the file.
    state : MonitorState, optional
        The state so far: a csv file takes over which of its group columns are text, and a batch in
        which nobody has the positive label is one like any other.

    Returns
    -------
    list of RawBatch
        In the order of time.
    """
    column = config["time"]
    if batch_id is None and column is None:
        raise InvalidParameterError(
            "name the batch with --id, or the column of its time in the plan (`time`)."
        )
    if batch_id is not None and not batch_id.strip():
        raise InvalidParameterError("`--id` must name the batch; got an empty name.")
    split = batch_id is None
    roles = Roles(**config["roles"], group=config["group"], time=column if split else None)
    bins = config["roles"].get("bins", {})
    text = () if state is None else tuple(name for name in state.text if name not in bins)
    table = Table(path, roles, engine=engine, text=text)
    table.positive_known = state is not None and bool(state.batches)
    if not table.roles.group:
        raise InvalidParameterError("a monitor compares groups; name `group` in the plan.")
    keys = [Quantity(str(column), "batch", nw.col(str(column)))] if split else []
    declared = [
        declare_batches(
            table, find_metric(name), by=keys, needs={"time": "number"} if split else {}
        )
        for name in config["metrics"]
    ]
    answers = []
    for found in ask_all([_declared(sums) for sums in declared]):
        if isinstance(found, EquipoiseError):
            raise found
        answers.append(found)
    if not split:
        order = [str(batch_id)]
    else:
        place = len(table.roles.group)
        labels = np.concatenate([cells.labels[place] for cells in answers])
        order = batch_order(labels, str(column), table.schema[str(column)])
    digest = None if split else fingerprint(file_fingerprint(str(path)))
    return raw_batches(table, config["metrics"], answers, order, digest=digest)


def _declared(sums: Sums) -> Any:
    return (yield sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a state says now.

    Parameters
    ----------
    state : MonitorState
        With the alarms on record.
    dossier : Dossier
        The result, as a page and a file show it.
    new : tuple of Alarm
        Raised now.
    """

    state: MonitorState
    dossier: Dossier
    new: tuple[Alarm, ...]

    @property
    def result(self) -> AuditResult:
        """The answer."""
        return self.dossier.checks[0].result


def known(state: MonitorState, *, source: str, notes: tuple[Note, ...] = ()) -> Known:
    """Say what is known after the batches of a state, and record the alarms that are new.

    Parameters
    ----------
    state : MonitorState
        With at least one batch in the current epoch.
    source : str
        Name of its file.
    notes : tuple of Note
        Remarks on the batches that were just added.

    Returns
    -------
    Known
    """
    result, after = state_answer(state, notes)
    config, new = state.config, after.alarms[len(state.alarms) :]
    roles = config["roles"]
    dossier = Dossier(
        title=f"Monitor {source}",
        created=created_now(),
        plan=json.dumps(config, indent=1, sort_keys=True),
        multiplicity="none",
        data={
            "source": source,
            "rows": result.n,
            "roles": {**roles, "group": config["group"]},
            "files": [],
        },
        versions=library_versions("duckdb"),
        checks=(
            Check(
                id="monitor",
                question="monitor",
                options={"metric": config["metrics"], **{name: config[name] for name in OPTIONS}},
                result=result,
            ),
        ),
    )
    return Known(state=after, dossier=dossier, new=new)
