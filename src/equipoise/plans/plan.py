"""Plans: the questions of an audit as a TOML file, checked before anything runs.

A plan has ``[data]`` (a path and the roles of `Audit`), a ``[[check]]`` for each question with the
options of the method of that name, and optionally ``[report]``. What is known of a key is read from
the signature and the docstring of the method, so a plan can say what Python can say.
"""

import inspect
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from equipoise._checks import (
    check_columns,
    check_fraction,
    check_integer,
    check_number,
    check_option,
    nearest,
    quoted,
)
from equipoise._typing import DataKind, Layout, Multiplicity
from equipoise.audits.audit import Audit
from equipoise.data.metrics import AnyMetric, find_metrics
from equipoise.exceptions import InvalidParameterError
from equipoise.results.disclosure import MIN_CELL
from equipoise.results.question import questions

__all__ = ["Plan", "PlannedCheck", "check_roles", "parse_plan", "read_plan"]

_TABLES = {
    "data": "where the table is and which column plays which part",
    "check": "one question, written [[check]]",
    "report": "title, order and multiplicity of the report",
    "words": "what people, decisions and outcomes are called in sentences",
    "labels": 'what people call the values of a group column: "sex.2" = "women"',
}
_WORDS = {
    "people": 'who the rows are, such as "applicants"',
    "selected": 'what "were ..." says of people with the label 1, such as "approved"',
    "not_selected": 'the same of the others, such as "denied"',
    "outcome": 'what people with outcome 1 did, such as "repaid the loan"',
    "no_outcome": 'what the others did, such as "did not repay"',
}
_REPORT = {
    "title": "heading of the report",
    "auditor": "who made the audit, for the first page",
    "client": "who asked for it, for the first page",
    "order": "ids of the checks in the order of the report",
    "multiplicity": '"none", or "bonferroni" to share one level among the checks',
    "small_category": "share of all rows below which a group carries a note",
    "min_cell": "rows that a group needs for its numbers to be printed or written; 5 by default",
    "alpha": 'the level to share when multiplicity = "bonferroni"; 0.05 by default',
    "layout": '"nyc-ll144" for the tables of 6 RCNY 5-300 to 5-304, with the keys below',
    "audit_date": "day of the bias audit, such as 2026-11-17",
    "distribution_date": "day on which the tool was first used",
    "data_kind": '"historical" or "test"',
    "data_source": "where the data come from",
    "data_explanation": "what the data are",
    "test_data_reason": "why historical data were not used",
    "test_data_method": "how the test data were made",
    "exclusion_reason": "why categories under the minimum share are left out",
}
_BIAS_AUDIT = (
    "audit_date",
    "distribution_date",
    "data_kind",
    "data_source",
    "data_explanation",
    "test_data_reason",
    "test_data_method",
    "exclusion_reason",
)
_OWN = {
    "question": "which question is asked",
    "id": "name of the check",
    "group": "columns that this check compares, instead of those under [data]",
}
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_HEADER = re.compile(r"^\s*\[{1,2}\s*([\w.\"'-]+)\s*\]{1,2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCheck:
    """One question with its options, not yet asked.

    Parameters
    ----------
    id, question, options : str, str, dict
        As the plan has them.
    group : tuple of str, optional
        Group columns of this check; by default those of the plan.
    """

    id: str
    question: str
    options: dict[str, Any]
    group: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan whose keys are all known.

    Parameters
    ----------
    text : str
        The file, character by character.
    path : str
        Where the data are; relative to the folder of the plan.
    roles : dict
        Arguments of `Audit`.
    checks : tuple of PlannedCheck
        In the order of the report, with distinct ids.
    title : str
        Heading of the report.
    multiplicity : {"none", "bonferroni"}
        Whether `alpha` is shared among the checks.
    alpha : float
        The level to share.
    small_category : float
        Groups with a smaller share of all rows carry a note.
    min_cell : int
        Groups with fewer rows are withheld from what is printed and written.
    people : dict
        Auditor and client, where they are named.
    words, labels : dict
        What people, events and groups are called in sentences.
    bias_audit : dict, optional
        With the layout "nyc-ll144": dates, and what is said of the data.
    """

    text: str
    path: str
    roles: dict[str, Any]
    checks: tuple[PlannedCheck, ...]
    title: str
    multiplicity: Multiplicity = "none"
    alpha: float = 0.05
    small_category: float = 0.0
    min_cell: int = MIN_CELL
    people: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    bias_audit: dict[str, str] | None = None


def read_plan(path: str | Path) -> Plan:
    """Read a plan from a file; a relative data path starts at the folder of the plan.

    Parameters
    ----------
    path : str or Path
        A TOML file.

    Returns
    -------
    Plan

    Raises
    ------
    InvalidParameterError
        With the line, the key, what the table is for and the nearest known key.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InvalidParameterError(
            f"Plan {str(path)!r} not found. `equipoise init DATA` writes one."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidParameterError(f"Plan {str(path)!r} cannot be read: {error}.") from error
    return parse_plan(text, name=file.name, folder=file.parent)


def parse_plan(text: str, *, name: str = "plan", folder: str | Path = ".") -> Plan:
    """Check the text of a plan.

    Parameters
    ----------
    text : str
        TOML.
    name : str
        What messages call the plan.
    folder : str or Path
        Where a relative data path starts.

    Returns
    -------
    Plan

    Examples
    --------
    What does a mistyped option say?

    >>> parse_plan('''
    ... [data]
    ... path = "loans.csv"
    ... group = "sex"
    ... [[check]]
    ... question = "flagg"
    ... ''')
    Traceback (most recent call last):
        ...
    equipoise.exceptions.InvalidParameterError: plan, line 6: `question` of check 1 must be ...
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidParameterError(f"{name} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise InvalidParameterError(f"{name} is nested too deeply for a plan.") from error
    source = _Source(text=text, name=name)
    source.check_keys(content, _TABLES, table="", place="the plan")
    path, roles = _data(content, source, Path(folder))
    checks = _checks(content, source)
    for number, check in enumerate(checks, start=1):
        try:
            _metrics(check)
        except InvalidParameterError as error:
            where = source.line("check", "metric", number)
            raise InvalidParameterError(f"{where}: check {check.id!r}: {error}") from error
    report = _table(content.get("report", {}), "report", source)
    source.check_keys(report, _REPORT, table="report", place="[report]")
    try:
        multiplicity: Multiplicity = report.get("multiplicity", "none")
        check_option("multiplicity", multiplicity, Multiplicity)
        alpha = check_fraction("alpha", report.get("alpha", 0.05))
        min_cell = check_integer("min_cell", report.get("min_cell", MIN_CELL), low=1)
        small = check_number("small_category", report.get("small_category", 0.0), low=0, high=1)
        rules = _bias_audit(report, roles, checks)
    except InvalidParameterError as error:
        raise InvalidParameterError(f"{name}, [report]: {error}") from error
    return Plan(
        text=text,
        path=path,
        roles=roles,
        checks=_ordered(checks, report.get("order"), source),
        title=str(report.get("title", f"Audit of {Path(path).name}")),
        multiplicity=multiplicity,
        alpha=alpha,
        small_category=small,
        min_cell=min_cell,
        people={role: str(report[role]) for role in ("auditor", "client") if role in report},
        words=_words(content, source),
        labels=_labels(content, source),
        bias_audit=rules,
    )


def _bias_audit(
    report: dict[str, Any], roles: dict[str, Any], checks: Sequence[PlannedCheck]
) -> dict[str, str] | None:
    """Return the dates and words of the layout "nyc-ll144", or None."""
    given = {key: str(report[key]) for key in _BIAS_AUDIT if key in report}
    if "layout" not in report:
        if given:
            raise InvalidParameterError(f'`{next(iter(given))}` belongs to layout = "nyc-ll144".')
        return None
    check_option("layout", report["layout"], Layout)
    asked = [check for check in checks if check.question == "impact_ratios"]
    groups = [check_columns("group", check.group or roles.get("group", ())) for check in asked]
    if not asked or any(len(group) != 2 for group in groups):
        raise InvalidParameterError(
            'layout = "nyc-ll144" needs a check of `impact_ratios` with two group columns, sex and'
            " race/ethnicity."
        )
    if "data_kind" in given:
        check_option("data_kind", given["data_kind"], DataKind)
    for key in ("audit_date", "distribution_date"):
        try:
            date.fromisoformat(given.get(key, "2026-01-01")[:10])
        except ValueError:
            raise InvalidParameterError(
                f"`{key}` must be a day such as 2026-11-17; got {given[key]!r}."
            ) from None
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The text of a plan, and messages that point into it."""

    text: str
    name: str

    def line(self, table: str, key: str, number: int = 1) -> str:
        """Where a key stands, as ``plan, line 7``; without a number if it is written oddly."""
        found, inside = 0, table == ""
        start = re.compile(rf"^\s*[\"']?{re.escape(key)}[\"']?\s*[=.]")
        for place, text in enumerate(self.text.splitlines(), start=1):
            header = _HEADER.match(text)
            if header:
                opened = header[1].strip("\"'")
                if table == "" and opened == key:
                    return f"{self.name}, line {place}"
                found += opened == table
                inside = opened == table and found == number
            elif inside and start.match(text):
                return f"{self.name}, line {place}"
        return self.name

    def check_keys(
        self,
        given: Mapping[str, Any],
        known: Mapping[str, str],
        *,
        table: str,
        place: str,
        number: int = 1,
    ) -> None:
        """Raise for a key that is not known, with the nearest one and what it means."""
        for key in given:
            if key in known:
                continue
            where = self.line(table, key, number)
            hint = nearest(key, known)
            meant = known.get(hint.split("'")[1], "") if hint else ""
            meaning = f" ({meant})" if meant else ""
            raise InvalidParameterError(
                f"{where}: {place} has no key {key!r}.{hint}{meaning} Known keys: {quoted(known)}."
            )


def _table(value: object, key: str, source: _Source) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidParameterError(
            f"{source.line('', key)}: `{key}` must be a table, written [{key}]:"
            f" {_TABLES.get(key, '')}."
        )
    return value


def _data(content: Mapping[str, Any], source: _Source, folder: Path) -> tuple[str, dict[str, Any]]:
    if "data" not in content:
        raise InvalidParameterError(f"{source.name} needs a [data] table: {_TABLES['data']}.")
    data = _table(content["data"], "data", source)
    known = {"path": "csv or parquet file, folder or glob"} | {
        name: words for name, words in meanings(Audit).items() if name not in {"data", "engine"}
    }
    source.check_keys(data, known, table="data", place="[data]")
    path = data.get("path")
    if not isinstance(path, str) or not path:
        raise InvalidParameterError(
            f"{source.line('data', 'path')}: [data] needs `path`, the csv or parquet file to audit."
        )
    roles = {key: value for key, value in data.items() if key != "path"}
    return path if Path(path).is_absolute() else str(folder / path), roles


def _words(content: Mapping[str, Any], source: _Source) -> dict[str, str]:
    """Return the words of events as they follow "45% of them"."""
    given = _table(content.get("words", {}), "words", source)
    source.check_keys(given, _WORDS, table="words", place="[words]")
    for key, value in given.items():
        if not isinstance(value, str) or not value:
            raise InvalidParameterError(
                f"{source.line('words', key)}: `{key}` must be text, {_WORDS[key]}; got {value!r}."
            )
    return {
        key: f"were {value}" if key in {"selected", "not_selected"} else value
        for key, value in given.items()
    }


def _labels(content: Mapping[str, Any], source: _Source) -> dict[str, str]:
    """Return the words of groups by ``column.value``, however the keys are quoted."""
    labels: dict[str, str] = {}

    def collect(table: Mapping[str, Any], before: str) -> None:
        for key, value in table.items():
            if isinstance(value, dict):
                collect(value, f"{before}{key}.")
            elif isinstance(value, str):
                labels[f"{before}{key}"] = value
            else:
                raise InvalidParameterError(
                    f"{source.line('labels', key)}: a label must be text, written"
                    f' "sex.2" = "women"; got {value!r}.'
                )

    collect(_table(content.get("labels", {}), "labels", source), "")
    return labels


def _checks(content: Mapping[str, Any], source: _Source) -> list[PlannedCheck]:
    tables = content.get("check", [])
    if not isinstance(tables, list) or not tables:
        if "# [[check]]" in source.text:
            raise InvalidParameterError(
                f"{source.name} asks nothing yet: complete its roles as its comments say, then take"
                " the first sign of the lines from [[check]] on away."
            )
        raise InvalidParameterError(
            f"{source.name} asks nothing yet: complete its roles as its comments say, and give it"
            f" at least one question, a table written [[check]] with"
            f" `question`, one of {quoted(questions())}."
        )
    planned: list[PlannedCheck] = []
    for number, table in enumerate(tables, start=1):
        check = _check(table, number, source)
        if any(check.id == other.id for other in planned):
            if "id" in table:
                raise InvalidParameterError(
                    f"{source.line('check', 'id', number)}: two checks have the id {check.id!r};"
                    " ids must differ, they name the sections of the report."
                )
            check = replace(check, id=_next(check.id, planned))
        planned.append(check)
    return planned


def _check(table: object, number: int, source: _Source) -> PlannedCheck:
    if not isinstance(table, dict):
        raise InvalidParameterError(f"{source.name}: check {number} must be a [[check]] table.")
    question = table.get("question")
    known_questions = questions()
    if not isinstance(question, str) or question not in known_questions:
        hint = nearest(question, known_questions) if isinstance(question, str) else ""
        raise InvalidParameterError(
            f"{source.line('check', 'question', number)}: `question` of check {number} must be one"
            f" of {quoted(known_questions)}; got {question!r}.{hint}"
        )
    method = known_questions[question].function
    known = _OWN | meanings(method)
    place = f"check {number} ({question})"
    source.check_keys(table, known, table="check", place=place, number=number)
    options = {key: value for key, value in table.items() if key not in _OWN}
    for name in required(method):
        if name not in options:
            raise InvalidParameterError(
                f"{source.line('check', 'question', number)}: {place} needs `{name}`:"
                f" {known[name] or 'it has no default'}."
            )
    metric = options.get("metric")
    own = f"{question}-{metric}" if isinstance(metric, str) else question
    name = table.get("id", re.sub(r"[^A-Za-z0-9_-]+", "-", own))
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
        raise InvalidParameterError(
            f"{source.line('check', 'id', number)}: `id` must start with a letter and hold letters,"
            f" digits, '-' and '_' only; got {name!r}."
        )
    return PlannedCheck(
        id=name, question=question, options=options, group=_columns(table, source, number)
    )


def _metrics(check: PlannedCheck) -> list[AnyMetric]:
    """Return the metrics of a check; raise for one that is not known."""
    parameter = inspect.signature(questions()[check.question].function).parameters.get("metric")
    if parameter is None or "Metric" not in str(parameter.annotation):
        return []
    return list(find_metrics(check.options.get("metric", parameter.default)))


def check_roles(plan: Plan) -> None:
    """Raise for a metric whose columns the plan does not name.

    Parameters
    ----------
    plan : Plan
        From `read_plan`.
    """
    for check in plan.checks:
        for metric in _metrics(check):
            for role in metric.needs:
                if not plan.roles.get(role):
                    raise InvalidParameterError(
                        f"Check {check.id!r}: the metric {metric.name!r} needs `{role}`; name its"
                        " column under [data]."
                    )


def _columns(table: Mapping[str, Any], source: _Source, number: int) -> tuple[str, ...] | None:
    """Return the group columns of one check, or `None` for those of the plan."""
    if "group" not in table:
        return None
    given = table["group"]
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
        raise InvalidParameterError(
            f"{source.line('check', 'group', number)}: `group` must name columns; got {given!r}."
        )
    return tuple(names)


def _next(name: str, planned: Sequence[PlannedCheck]) -> str:
    taken = {check.id for check in planned}
    return next(f"{name}-{k}" for k in range(2, len(taken) + 3) if f"{name}-{k}" not in taken)


def _ordered(
    checks: list[PlannedCheck], order: object, source: _Source
) -> tuple[PlannedCheck, ...]:
    if order is None:
        return tuple(checks)
    by_id = {check.id: check for check in checks}
    if not isinstance(order, list) or sorted(map(str, order)) != sorted(by_id):
        raise InvalidParameterError(
            f"{source.line('report', 'order')}: `order` must list every check once, by id:"
            f" {quoted(by_id)}; got {order!r}."
        )
    return tuple(by_id[name] for name in order)


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the arguments that a plan can give."""
    return [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self"
        and parameter.kind in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}
    ]


def required(function: Callable[..., Any]) -> list[str]:
    """Return the arguments without a default."""
    return [p.name for p in parameters(function) if p.default is inspect.Parameter.empty]


def meanings(function: Callable[..., Any]) -> dict[str, str]:
    """Return the arguments with the first sentence that the docstring has on each."""
    known = {parameter.name: "" for parameter in parameters(function)}
    lines = inspect.cleandoc(function.__doc__ or "").splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        names, colon, _ = line.partition(" : ")
        if colon and following.startswith("    ") and not line.startswith(" "):
            for name in names.split(", "):
                if name in known:
                    known[name] = re.split(r"[.;]", following.strip())[0]
    return known
