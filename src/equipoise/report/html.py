"""The report: one self-contained HTML page made from a dossier."""

import base64
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from equipoise.audits import wording
from equipoise.audits.assumptions import assumptions
from equipoise.audits.dossier import Check, Dossier
from equipoise.audits.finding import Finding, Note
from equipoise.audits.gate import Outcome, outcome
from equipoise.audits.result import AuditResult
from equipoise.audits.tables import footnotes
from equipoise.report.figures import figure
from equipoise.report.sections import sections

__all__ = ["html_report"]

OUTCOME_WORDS = {
    Outcome.DETECTED: "Detected",
    Outcome.NOT_DETECTED: "Not detected",
    Outcome.WITHIN_MARGIN: "Within margin",
    Outcome.INCONCLUSIVE: "Inconclusive",
    Outcome.NOT_TESTED: "Not tested",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Text of a table cell and, for a number, the value it sorts by."""

    text: str
    value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table: the group, its numbers, the decision, the marks of its notes."""

    group: str
    cells: tuple[Cell, ...]
    decision: str
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
    environment = Environment(
        loader=PackageLoader("equipoise.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": wording.number, "p_value": wording.p_value}
    script, style = _asset("report.js"), _asset("report.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html.j2").render(
        dossier=dossier,
        sections=[(section, [_view(c) for c in section.checks]) for section in sections(dossier)],
        multiplicity=multiplicity_words(dossier),
        script=Markup(script),  # noqa: S704  (ours)
        style=Markup(style),  # noqa: S704  (ours)
        script_hash=digest,
    )


def multiplicity_words(dossier: Dossier) -> str:
    """Say how often a plan like this one reports something when there is nothing to report."""
    levels = [check.result.alpha for check in dossier.checks]
    if len(levels) == 1:
        return f"The plan asks one question, at the {100 * levels[0]:g}% level."
    bound = min(sum(levels), 1.0)
    if dossier.multiplicity == "bonferroni":
        return (
            f"The plan asks {len(levels)} questions and shares one level of {100 * bound:.3g}%"
            " among them (Bonferroni): the chance that any of them is answered wrongly is at most"
            " that, as far as each keeps its own level."
        )
    return (
        f"The plan asks {len(levels)} questions, each at its own level, which add up to"
        f" {100 * bound:.3g}%: if there were nothing to find anywhere, the chance that at least"
        " one of them reports something could be as large as that. Set"
        ' multiplicity = "bonferroni" under [report] to share one level among them.'
    )


def _asset(name: str) -> str:
    return (files("equipoise.report") / "templates" / name).read_text(encoding="utf-8")


def _view(check: Check) -> dict[str, Any]:
    """Everything the template shows of one check."""
    result = check.result
    _, notes = footnotes(result)
    shown = outcome(result)
    constant = {
        name: getattr(result.findings[0], name)
        for name in ("estimand", "reference", "method")
        if len({getattr(f, name) for f in result.findings}) == 1
    }
    varying = [name for name in ("estimand", "reference", "method") if name not in constant]
    rows = _rows(result, varying, notes)
    return {
        "check": check,
        "result": result,
        "question": wording.question_words(result),
        "headline": wording.headline(result),
        "outcome": shown.value.replace(" ", "-"),
        "outcome_word": OUTCOME_WORDS[shown],
        "joint": None if result.joint is None else wording.joint_line(result.joint),
        "figure": figure(result, prefix=f"fig-{check.id}") if result.findings else None,
        "columns": _columns(varying, with_values="values" in result.details),
        "rows": rows,
        "caption": _caption(constant),
        "decisions": sorted({row.decision for row in rows}),
        "notes": notes,
        "assumptions": assumptions(result),
    }


def _columns(varying: list[str], *, with_values: bool) -> list[tuple[str, str]]:
    """Name and kind of every column after the group and the decision."""
    words = [(name.capitalize(), "text") for name in varying]
    values = ("Value", "Reference value") if with_values else ()
    numbers = (*values, "Estimate", "Low", "High", "p", "Unadjusted p", "Statistic", "n")
    return words + [(name, "number") for name in numbers]


def _rows(result: AuditResult, varying: list[str], notes: list[Note]) -> list[Row]:
    values = {entry["group"]: entry for entry in result.details.get("values", ())}
    rows = []
    for finding in result.findings:
        words = tuple(
            Cell(text=wording.estimand_words(text) if name == "estimand" else text)
            for name in varying
            for text in (getattr(finding, name),)
        )
        numbers: tuple[Cell, ...] = ()
        if values:
            entry = values.get(finding.group, {})
            numbers = (_number(entry.get("group_value")), _number(entry.get("target_value")))
        rows.append(
            Row(
                group=finding.group,
                cells=(*words, *numbers, *_numbers(finding)),
                decision=wording.decision_word(finding.decision, result.audit),
                marks=tuple(notes.index(note) + 1 for note in finding.notes),
            )
        )
    return rows


def _number(value: float | None) -> Cell:
    return Cell(text=wording.number(value), value=value)


def _numbers(finding: Finding) -> tuple[Cell, ...]:
    ci = finding.ci
    low, high = (None, None) if ci is None else (ci.low, ci.high)
    return (
        _number(finding.estimate),
        Cell(text=_bound(low, open_side=ci is not None), value=low),
        Cell(text=_bound(high, open_side=ci is not None), value=high),
        Cell(text=wording.p_value(finding.p_value), value=finding.p_value),
        Cell(text=wording.p_value(finding.p_value_raw), value=finding.p_value_raw),
        _number(finding.statistic),
        Cell(text=f"{finding.n:,}", value=finding.n),
    )


def _bound(value: float | None, *, open_side: bool) -> str:
    return "none" if value is None and open_side else wording.number(value)


def _caption(constant: dict[str, str]) -> str:
    parts = []
    if constant.get("estimand"):
        parts.append(wording.estimand_words(constant["estimand"]))
    if constant.get("reference"):
        parts.append(f"compared with {constant['reference']}")
    if constant.get("method"):
        parts.append(f"by {constant['method']}")
    text = ", ".join(parts)
    return text[:1].upper() + text[1:]
