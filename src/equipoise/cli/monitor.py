"""``equipoise monitor``: add a batch to a state, say what is known now."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from equipoise._typing import Engine
from equipoise.cli.files import check_outputs
from equipoise.cli.streams import echo
from equipoise.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from equipoise.audits.disparity.monitor_state import RawBatch
    from equipoise.monitoring.state import MonitorState
    from equipoise.plans.watching import Known

__all__ = ["monitor"]

MonitorGate: TypeAlias = Literal["detected", "never"]


def monitor(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="The file that remembers sums.")],
    batch: Annotated[
        Path | None, typer.Argument(metavar="BATCH", help="A csv or parquet file to add.")
    ] = None,
    batch_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Name of the batch, counted once; without it each value of the plan's time column"
            " is a batch.",
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="PLAN.toml", help="What is watched; needed to begin a state."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="HTML", help="Write the page to this file.")
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="JSON", help="Write the results to this file; - for stdout."
        ),
    ] = None,
    fail_on: Annotated[
        MonitorGate,
        typer.Option(help="Exit with 1 while an alarm stands that nobody has acknowledged."),
    ] = "never",
    acknowledge: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Say that an alarm was seen; it stays on record."),
    ] = None,
    remark: Annotated[
        str, typer.Option(help="What was done about the alarm that is acknowledged.")
    ] = "acknowledged",
    restart: Annotated[
        str | None,
        typer.Option(metavar="REASON", help="Begin a new epoch: evidence starts again."),
    ] = None,
    merge: Annotated[
        Path | None,
        typer.Option(metavar="OTHER", help="Take over the batches of another state of this plan."),
    ] = None,
    allow_identical: Annotated[
        bool,
        typer.Option(
            "--allow-identical", help="Count a file again that was counted under another name."
        ),
    ] = False,
    engine: Annotated[Engine, typer.Option(help="What reads the batch.")] = "duckdb",
    quiet: Annotated[bool, typer.Option("--quiet", help="The answer alone; no tables.")] = False,
) -> None:
    """Add a batch to a state; say what is known now, looked at as often as you like."""
    from equipoise.audits.disparity.monitor_state import Update
    from equipoise.cli.delivery import STDOUT, deliver
    from equipoise.data.fingerprint import sources
    from equipoise.monitoring.storage import read_state, update_state
    from equipoise.plans.watching import known

    inputs = {
        "the state": [state],
        "the batch": [] if batch is None else sources(str(batch)),
        "the plan": [] if plan is None else [plan],
        "the other state": [] if merge is None else [merge],
    }
    check_outputs(output, None if json_file == STDOUT else json_file, inputs=inputs)
    before = read_state(state)
    config = _config(state, before, plan)
    update = Update(
        config=config,
        begins=plan is not None,
        batches=_batches(config, before, batch, batch_id, engine),
        other=None if merge is None else _existing(merge),
        acknowledged=acknowledge,
        remark=remark,
        restart=restart,
        allow_identical=allow_identical,
    )
    said: list[Known] = []

    def change(found: "MonitorState | None") -> "MonitorState":
        now, notes = update.of(found)
        if not now.current:
            return now
        said.append(known(now, source=state.name, notes=notes))
        return said[-1].state

    after = update_state(state, change)
    if not said:
        echo("The state has no batch in its current epoch yet.")
        return
    deliver(said[-1].dossier, output, json_file, None, "never", quiet=quiet)
    if json_file != STDOUT:
        echo(_alarm_words(after, said[-1]), nl=False)
    if fail_on == "detected" and after.standing:
        echo(
            "equipoise: gate --fail-on detected tripped by"
            f" {len(after.standing)} alarms that stand",
            err=True,
        )
        raise typer.Exit(1)


def _config(state: Path, before: "MonitorState | None", plan: Path | None) -> "Mapping[str, Any]":
    """Return what is watched, by the plan or by the state; they must agree."""
    from equipoise.plans.plan import read_plan
    from equipoise.plans.watching import monitor_config

    config = None if plan is None else monitor_config(read_plan(plan))
    if before is None and config is None:
        raise InvalidParameterError(
            f"State {str(state)!r} does not exist. Pass --plan to begin it."
        )
    if before is not None and config is not None:
        before.check_config(config)
    return before.config if before is not None else config or {}


def _batches(
    config: "Mapping[str, Any]",
    before: "MonitorState | None",
    batch: Path | None,
    batch_id: str | None,
    engine: Engine,
) -> "tuple[RawBatch, ...]":
    from equipoise.plans.watching import read_batches

    if batch is not None:
        return tuple(read_batches(config, batch, batch_id, engine=engine, state=before))
    if batch_id is not None:
        raise InvalidParameterError("`--id` names a batch; pass its file as the second argument.")
    return ()


def _existing(path: Path) -> "MonitorState":
    from equipoise.monitoring.storage import read_state

    state = read_state(path)
    if state is None:
        raise InvalidParameterError(f"State {str(path)!r} does not exist.")
    return state


def _alarm_words(state: "MonitorState", said: "Known") -> str:
    """Say which alarms were raised now, and which stand."""
    lines = [f"New alarm: {alarm.id}\n" for alarm in said.new]
    lines += [
        f"Alarm that stands: {alarm.id} (acknowledge it with --acknowledge '{alarm.id}')\n"
        for alarm in state.standing
        if alarm not in said.new
    ]
    return "".join(lines)
