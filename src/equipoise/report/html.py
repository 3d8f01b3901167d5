"""The report: one self-contained HTML page made from a dossier."""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from equipoise._names import GroupName, printable
from equipoise.plans.answer import answer
from equipoise.plans.dossier import Check, Dossier
from equipoise.plans.gate import Outcome, outcome
from equipoise.report.explorer import explorer_state
from equipoise.report.figures import figure, overview_figure
from equipoise.report.ll144 import bias_audit
from equipoise.report.sections import sections
from equipoise.results import formats, wording
from equipoise.results.assumptions import assumptions
from equipoise.results.estimand import Estimand
from equipoise.results.finding import Decision, Finding
from equipoise.results.question import load
from equipoise.results.result import AuditResult
from equipoise.results.sentences import group_writer, share, whole_group_words
from equipoise.results.tables import footnotes, foremost, in_order

__all__ = ["html_report"]

OUTCOME_WORDS = {
    Outcome.DETECTED: "Detected",
    Outcome.NOT_DETECTED: "Not detected",
    Outcome.WITHIN_MARGIN: "Within margin",
    Outcome.INCONCLUSIVE: "Inconclusive",
    Outcome.NOT_TESTED: "Not tested",
    Outcome.ESTIMATED: "Estimated",
}
MOST_ROWS = 2_000
"""Rows of a table; a page of many more opens slowly, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Text of a table cell and, for a number, the value it sorts by."""

    text: str
    value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; without cells it is left out, and details are on paper in the annex."""

    name: str
    cells: list[Cell]
    kind: Literal["number", "text"] = "number"
    detail: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table: the group, its numbers, the decision, the marks of its notes."""

    group: str
    identifier: str
    cells: tuple[Cell, ...]
    decision: str
    detected: bool
    marks: tuple[int, ...]


def html_report(dossier: Dossier) -> str:
    """Write a dossier as one HTML page that needs nothing else: no network, no scripts.

    Parameters
    ----------
    dossier : Dossier
        What a plan produced.

    Returns
    -------
    str
        The page. Text that comes from the data or the plan is escaped, and a content security
        policy allows the page's own script only.
    """
    dossier = dossier.disclosed()
    environment = Environment(
        loader=PackageLoader("equipoise.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": formats.number, "p_value": formats.p_value}
    script, style = _asset("report.js"), _asset("report.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment.get_template("report.html.j2").render(
        dossier=dossier,
        sections=[(section, [_view(c) for c in checks]) for section, checks in sections(dossier)],
        multiplicity=wording.multiplicity_words(
            [check.result.alpha for check in dossier.checks], dossier.multiplicity
        ),
        answer=answer(dossier),
        bias_audit=None if (rules := bias_audit(dossier)) is None else Markup(rules.html()),  # noqa: S704  (escaped there)
        overview=overview_figure([check.result for check in dossier.checks]),
        explorer=explorer_state([check.result for check in dossier.checks]),
        script=Markup(script),  # noqa: S704  (ours)
        style=Markup(style),  # noqa: S704  (ours)
        script_hash=digest,
    )
    return printable(page)


def _asset(name: str) -> str:
    return (files("equipoise.report") / "templates" / name).read_text(encoding="utf-8")


def _view(check: Check) -> dict[str, Any]:
    """Everything the template shows of one check."""
    result = check.result
    _, notes = footnotes(result)
    shown = outcome(result)
    # What is told beside a finding has a table of its own.
    told, rest = replace(result, findings=tuple(in_order(result.lines))), ""
    if len(told.findings) > MOST_ROWS:
        told, rest = foremost(result, MOST_ROWS, "the results that --json writes have them")
    written = group_writer(result)
    columns = _columns(told, written)
    return {
        "check": check,
        "result": result,
        "question": wording.question_words(result),
        "headline": wording.headline(result),
        "outcome": shown.value.replace(" ", "-"),
        "outcome_word": OUTCOME_WORDS[shown],
        "joint": None if result.joint is None else written(formats.joint_line(result.joint)),
        "null": written(result.null),
        "alternative": written(result.alternative),
        "figure": figure(result, prefix=f"fig-{check.id}") if result.findings else None,
        "legend": wording.legend_words(result),
        "columns": [(column.name, column.kind, column.detail) for column in columns],
        "rows": [
            Row(
                group=written(finding.group),
                identifier=finding.group,
                cells=tuple(column.cells[k] for column in columns),
                decision=formats.decision_word(finding.decision, result.question.words),
                detected=finding.decision is Decision.DETECTED,
                marks=tuple(notes.index(note) + 1 for note in finding.notes),
            )
            for k, finding in enumerate(told.findings)
        ],
        "rest": rest,
        "caption": _caption(told),
        "figcaption": _caption(told, method=False),
        "decisions": sorted(
            {formats.decision_word(f.decision, result.question.words) for f in told.findings}
        ),
        "tables": [
            replace(
                table,
                caption=written(table.caption),
                rows=tuple(tuple(map(written, row)) for row in table.rows),
            )
            for table in (load(result.question.tables)(result) if result.question.tables else ())
        ],
        "notes": notes,
        "assumptions": assumptions(result),
    }


def _columns(result: AuditResult, written: Callable[[str], str]) -> list[Column]:
    """The columns after group and decision; one that says nothing is left out.

    Words that are the same in every row stand in the caption; an unadjusted p-value that equals
    the adjusted one, and a reference value that never changes, are not repeated.
    """
    findings = result.findings
    known = [result.details.value_of(f) for f in findings]
    shares = wording.in_points(result)
    own = [_value(entry and entry["group_value"], shares=shares) for entry in known]
    target = [_value(entry and entry["target_value"], shares=shares) for entry in known]
    raw = [Cell(text=formats.p_value(f.p_value_raw), value=f.p_value_raw) for f in findings]
    adjusted = [Cell(text=formats.p_value(f.p_value), value=f.p_value) for f in findings]
    low = [None if f.ci is None else f.ci.low for f in findings]
    high = [None if f.ci is None else f.ci.high for f in findings]
    columns = [
        _words("Estimand", [f.estimand.words for f in findings]),
        _words("Compared with", [written(f.reference) for f in findings]),
        Column(name="n", cells=[_count(f) for f in findings]),
        Column(name="Share" if shares else "Value", cells=own if any(known) else []),
        Column(name="Reference", cells=target if len(set(target)) > 1 else []),
        Column(
            name="Points" if shares else "Estimate",
            cells=[
                Cell(text=formats.estimate_words(f.estimate, shares=shares), value=f.estimate)
                for f in findings
            ],
        ),
        Column(name="Low", cells=_bounds(low, findings, shares=shares)),
        Column(name="High", cells=_bounds(high, findings, shares=shares)),
        Column(name="p", cells=adjusted),
        Column(name="Unadjusted p", cells=raw if raw != adjusted else [], detail=True),
        Column(name="Statistic", cells=[_number(f.statistic) for f in findings], detail=True),
        replace(_words("Method", [f.method.replace("_", " ") for f in findings]), detail=True),
    ]
    return [column for column in columns if column.cells]


def _words(name: str, texts: list[str]) -> Column:
    varies = len(set(texts)) > 1
    return Column(name=name, kind="text", cells=[Cell(text=text) for text in texts if varies])


def _count(finding: Finding) -> Cell:
    if finding.withheld:
        return Cell(text=formats.count(finding))
    return Cell(text=f"{finding.n:,}", value=finding.n)


def _number(value: float | None) -> Cell:
    return Cell(text=formats.number(value), value=value)


def _value(value: float | None, *, shares: bool) -> Cell:
    """Write the metric of a group: a share in per cent."""
    if value is None or not shares:
        return _number(value)
    return Cell(text=share(value), value=value)


def _bounds(
    values: list[float | None], findings: tuple[Finding, ...], *, shares: bool
) -> list[Cell]:
    return [
        Cell(
            text="none"
            if value is None and finding.ci
            else formats.estimate_words(value, shares=shares),
            value=value,
        )
        for value, finding in zip(values, findings, strict=True)
    ]


def _caption(result: AuditResult, *, method: bool = True) -> str:
    """Say once what is the same in every row."""
    parts = []
    same = [("estimand", "{}"), ("reference", "compared with {}"), ("method", "by {}")]
    for name, words in same if method else same[:2]:
        texts = {getattr(finding, name) for finding in result.findings}
        text = texts.pop() if len(texts) == 1 else ""
        if text:
            parts.append(words.format(_said(text, result)))
    text = ", ".join(parts)
    return text[:1].upper() + text[1:]


def _said(text: Estimand | str, result: AuditResult) -> str:
    if isinstance(text, Estimand):
        return text.words
    if isinstance(text, GroupName):
        return whole_group_words(text, result.words)
    return text.replace("_", " ")
