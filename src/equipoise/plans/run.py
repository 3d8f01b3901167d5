"""Ask the questions of a plan and keep everything needed to ask them again."""

import copy
import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from equipoise._typing import Engine
from equipoise._version import __version__
from equipoise.audits.asking import Asking, ask_all, declare
from equipoise.audits.audit import Audit
from equipoise.audits.disparity.sides import External
from equipoise.data.fingerprint import fingerprint
from equipoise.exceptions import DataError, EquipoiseError, EstimationError
from equipoise.plans.dossier import Check, Dossier
from equipoise.plans.plan import Plan, PlannedCheck, check_roles, parameters
from equipoise.results.finding import Note
from equipoise.results.question import find_question
from equipoise.results.result import AuditResult
from equipoise.results.words import Words

__all__ = ["created_now", "execute", "library_versions"]

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "narwhals", "duckdb", "pyarrow")


def execute(
    plan: Plan,
    *,
    engine: Engine = "duckdb",
    started: Callable[[PlannedCheck], None] | None = None,
) -> Dossier:
    """Ask every question of a plan.

    Parameters
    ----------
    plan : Plan
        From `read_plan`.
    engine : {"duckdb", "spark"}
        What reads the data.
    started : callable, optional
        Called with each check before it runs; for progress.

    Returns
    -------
    Dossier

    Raises
    ------
    EquipoiseError
        With the id of the check in front, for a wrong option, when no check can be answered or the
        machine fails. A check that its data do not allow is listed in `failed`, beside the others.

    Notes
    -----
    With ``multiplicity = "bonferroni"`` each of m checks runs at level alpha / m. By the union
    bound, the chance that any check errs is then at most alpha if each keeps its own level.
    """
    check_roles(plan)
    audit = Audit(plan.path, engine=engine, **plan.roles)
    for planned in plan.checks:
        for column in planned.group or ():
            audit.table.check_column(column)
    audit.table.check_favourable()
    every = [_options(plan, planned) for planned in plan.checks]
    questions = [*map(partial(_question, audit), plan.checks, every)]

    def announce(place: int) -> None:
        if started is not None and place < len(plan.checks):
            started(plan.checks[place])

    *results, size = ask_all(
        [*questions, _size(audit)], declared=partial(_check_options, plan), started=announce
    )
    checks = []
    failed: dict[str, str] = {}
    for planned, options, result in zip(plan.checks, every, results, strict=True):
        if isinstance(result, EquipoiseError):
            if not _of_data(result) or _all_failed(results):
                raise _of_check(planned, result) from result
            failed[planned.id] = str(result)
            continue
        checks.append(
            Check(
                id=planned.id,
                question=planned.question,
                options=options,
                result=_in_words(_small_marked(result, plan.small_category), plan),
                group=planned.group,
            )
        )
    return Dossier(
        title=plan.title,
        created=created_now(),
        plan=plan.text,
        multiplicity=plan.multiplicity,
        data={
            "source": os.path.basename(plan.path),  # noqa: PTH119  (a glob is no path)
            "rows": size,
            "roles": plan.roles,
            "files": fingerprint(plan.path),
            **plan.people,
            **({} if plan.bias_audit is None else {"bias_audit": plan.bias_audit}),
        },
        versions=library_versions(engine),
        checks=tuple(checks),
        min_cell=plan.min_cell,
        failed=failed,
    )


def _check_options(plan: Plan, errors: Mapping[int, EquipoiseError]) -> None:
    """Raise for an option that cannot be right, before any row is read."""
    for place, error in errors.items():
        if not _of_data(error):
            raise _of_check(plan.checks[place], error) from error


def _of_data(error: EquipoiseError) -> bool:
    return isinstance(error, (DataError, EstimationError))


def _of_check(planned: PlannedCheck, error: EquipoiseError) -> EquipoiseError:
    return type(error)(f"Check {planned.id!r}: {error}")


def _all_failed(results: Sequence[object]) -> bool:
    return all(isinstance(result, EquipoiseError) for result in results)


def _options(plan: Plan, planned: PlannedCheck) -> dict[str, Any]:
    takes_alpha = any(
        p.name == "alpha" for p in parameters(find_question(planned.question).function)
    )
    if plan.multiplicity == "none" or not takes_alpha:
        return planned.options
    return planned.options | {"alpha": plan.alpha / len(plan.checks)}


def _question(audit: Audit, planned: PlannedCheck, options: dict[str, Any]) -> Asking[Any]:
    """Return the question of a check, about the groups it names; errors show when it is asked."""
    if planned.group is not None:
        audit, table = copy.copy(audit), audit.table
        audit.table = table.grouped_by(planned.group)
    method = find_question(planned.question).function
    return (yield from declare(method, audit, **_decoded(options)))


def _size(audit: Audit) -> Asking[Any]:
    """Count the rows; a row that stands for several counts as many."""
    everyone = yield audit.table.grouped_by(()).sums((), {}, order=1)
    return int(everyone.n.sum()) + int(everyone.dropped)


def _decoded(options: dict[str, Any]) -> dict[str, Any]:
    """Turn the tables of a plan into the objects that Python takes."""
    reference = options.get("reference")
    if isinstance(reference, dict) and set(reference) == {"value", "se"}:
        return options | {"reference": External(**reference)}
    return options


def _in_words(result: AuditResult, plan: Plan) -> AuditResult:
    """Let the words of a plan take the place of those of the columns."""
    given = result.words.to_dict() | plan.words | {"labels": plan.labels}
    return replace(result, words=Words.from_dict(given))


def _small_marked(result: AuditResult, share: float) -> AuditResult:
    """Add a note to every group that is a smaller share of the rows."""
    if not share:
        return result
    note = Note(
        code="small-category",
        message=f"Fewer than {100 * share:g}% of the rows: the rules of the audit allow leaving the"
        " category out; it is kept here.",
    )
    return replace(
        result,
        findings=tuple(
            replace(finding, notes=(*finding.notes, note))
            if finding.n < share * result.n
            else finding
            for finding in result.findings
        ),
    )


def created_now() -> str:
    """The time in UTC; ``SOURCE_DATE_EPOCH`` makes a report reproducible byte by byte."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.now(UTC) if epoch is None else datetime.fromtimestamp(int(epoch), UTC)
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def library_versions(engine: Engine) -> dict[str, str]:
    """Return name and version of everything that computes."""
    names = (*_LIBRARIES, "pyspark") if engine == "spark" else _LIBRARIES
    return {
        "equipoise": __version__,
        "Python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in names},
        "system": f"{sys.platform} {platform.machine()}",
    }
