"""The tables of a bias audit as the rules of New York City print them, as text, csv and HTML.

Rules of the City of New York, title 6, sections 5-300 to 5-304: one table for sex, one for
race/ethnicity and one for their intersections, and the number of people of unknown category.
"""

import csv
import html
import io
from dataclasses import dataclass
from datetime import date
from typing import Any

from equipoise.audits.disparity.questions import DisparityDetails
from equipoise.exceptions import InvalidParameterError
from equipoise.plans.dossier import Dossier
from equipoise.results.details import details_of
from equipoise.results.result import AuditResult

__all__ = ["BiasAudit", "BiasAuditTables", "RuleTable", "bias_audit", "bias_audit_tables"]

DAYS = 365
"""Days after which a bias audit is too old (5-301(a))."""

HEADINGS = ("Sex Categories", "Race/Ethnicity Categories", "Intersectional Categories")
SELECTED = ("# of Applicants", "# Selected", "Selection Rate", "Impact Ratio")
SCORED = ("# of Applicants", "Scoring Rate", "Impact Ratio")
NOT_GIVEN = "NOT GIVEN"
ORDER = (
    "male",
    "female",
    "hispanic or latino",
    "white",
    "black or african american",
    "native hawaiian or pacific islander",
    "asian",
    "native american or alaska native",
    "two or more races",
)
"""Categories in the order of the rules."""


FACTS = {
    "audit_date": "Date of the bias audit",
    "distribution_date": "Distribution date of the tool",
    "auditor": "Independent auditor",
    "data_kind": "Kind of data",
    "data_source": "Source of the data",
    "data_explanation": "Explanation of the data",
    "test_data_reason": "Why historical data were not used",
    "test_data_method": "How the test data were made",
    "exclusion_reason": "Why categories under 2% are left out",
}
"""What the summary of results states besides the tables (5-301 to 5-303)."""
HISPANIC = "hispanic or latino"
NOT_HISPANIC = " (not hispanic or latino)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTable:
    """One table: a heading, and for each category what the rules ask and what is shown.

    Parameters
    ----------
    heading : str
        As the rules have it.
    rows : tuple of tuple of str
        Category, number, selected (not for scores), rate, impact ratio, joint interval, reading.
    spans : tuple of str
        What stands over each row: for intersections ethnicity and sex, otherwise nothing.
    """

    heading: str
    rows: tuple[tuple[str, ...], ...]
    spans: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasAuditTables:
    """The tables of a bias audit and the note below them.

    Parameters
    ----------
    tables : tuple of RuleTable
        Sex, race/ethnicity, intersections.
    columns : tuple of str
        Names of the columns after the category; the last two are ours.
    note : str
        How many people have an unknown category.
    excluded : bool
        Whether categories are left out because they are small.
    """

    tables: tuple[RuleTable, ...]
    columns: tuple[str, ...]
    note: str
    excluded: bool

    def text(self) -> str:
        """Return the tables as plain text."""
        lines = []
        for table in self.tables:
            rows = [("", *self.columns), *table.rows]
            widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
            lines.append(table.heading)
            above = ""
            for (name, *cells), span in zip(rows, ("", *table.spans), strict=True):
                if span != above:
                    lines.append(f"{span}:")
                    above = span
                right = [cell.rjust(w) for cell, w in zip(cells, widths[1:], strict=True)]
                lines.append("  ".join([name.ljust(widths[0]), *right]).rstrip())
            lines.append("")
        return "\n".join([*lines, self.note, ""])

    def csv(self) -> str:
        """Return all rows in one table, with the heading of each in the first column."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(("Table", "Over it", "Category", *self.columns))
        for table in self.tables:
            for span, row in zip(table.spans, table.rows, strict=True):
                name, *cells = row
                writer.writerow((table.heading, *map(_not_a_formula, (span, name)), *cells))
        return buffer.getvalue()

    def html(self) -> str:
        """Return the tables as an HTML fragment; names are escaped."""
        parts = []
        for table in self.tables:
            *numbers, reading = map(html.escape, self.columns)
            head = "<th scope='col'></th>"
            head += "".join(f"<th scope='col' class='number'>{column}</th>" for column in numbers)
            head += f"<th scope='col'>{reading}</th>"
            body, above = [], ""
            for (name, *cells), span in zip(table.rows, table.spans, strict=True):
                if span != above:
                    wide = 1 + len(self.columns)
                    body.append(
                        f"<tr><th colspan='{wide}' scope='rowgroup'><strong>{html.escape(span)}"
                        "</strong></th></tr>"
                    )
                    above = span
                *numbers, reading = map(html.escape, cells)
                values = "".join(f"<td class='number'>{cell}</td>" for cell in numbers)
                values += f"<td>{reading}</td>"
                body.append(f"<tr><th scope='row'>{html.escape(name)}</th>{values}</tr>")
            parts.append(
                f"<div class='scroll' tabindex='0' role='region' aria-label='{table.heading}'>"
                f"<table><caption>{table.heading}</caption><thead><tr>{head}</tr></thead>"
                f"<tbody>{''.join(body)}</tbody></table></div>"
            )
        return "".join(parts) + f"<p>{html.escape(self.note)}</p>"


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasAudit:
    """The summary of results of a bias audit: what is stated, what is missing, and the tables.

    Parameters
    ----------
    facts : tuple of (str, str)
        Dates, source and explanation of the data; ``"NOT GIVEN"`` for what the plan leaves out.
    old : str
        What the rules say of an audit that is over a year old; otherwise empty.
    tables : tuple of BiasAuditTables
        One set for each check that the rules are about.
    """

    facts: tuple[tuple[str, str], ...]
    old: str
    tables: tuple[BiasAuditTables, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """What the rules ask for and is not there."""
        missing = [f"{label}: not given." for label, value in self.facts if value == NOT_GIVEN]
        return (*missing, *([self.old] if self.old else []))

    def text(self) -> str:
        """Return everything as plain text."""
        lines = [f"{label}: {value}" for label, value in self.facts]
        old = [self.old] if self.old else []
        return "\n".join([*lines, *old, "", *(table.text() for table in self.tables)])

    def html(self) -> str:
        """Return everything as an HTML fragment; text is escaped."""
        pairs = "".join(
            f"<dt>{html.escape(label)}</dt><dd><bdi>{html.escape(value)}</bdi></dd>"
            for label, value in self.facts
        )
        told = f"<p class='remark'>{html.escape(self.old)}</p>" if self.old else ""
        tables = "".join(table.html() for table in self.tables)
        return f"<dl class='pairs'>{pairs}</dl>{told}{tables}"


def bias_audit(dossier: Dossier) -> BiasAudit | None:
    """Write the summary of results that the rules ask for, where a plan has their layout.

    Parameters
    ----------
    dossier : Dossier
        What a plan produced.

    Returns
    -------
    BiasAudit or None
        None for a plan without ``[report] layout = "nyc-ll144"``.
    """
    given = dossier.data.get("bias_audit")
    if given is None:
        return None
    tables = tuple(
        _by_columns(check.result)
        for check in dossier.checks
        if check.question == "impact_ratios" and check.result.details["tables"]
    )
    needed = ["audit_date", "distribution_date", "auditor", "data_kind"]
    needed += ["data_source", "data_explanation"]
    if given.get("data_kind") == "test":
        needed += ["test_data_reason", "test_data_method"]
    if any(one.excluded for one in tables):
        needed.append("exclusion_reason")
    facts = {"auditor": dossier.data.get("auditor")} | given
    old = ""
    if given.get("audit_date"):
        made, now = (
            date.fromisoformat(text[:10]) for text in (given["audit_date"], dossier.created)
        )
        if (now - made).days > DAYS:
            old = f"5-301(a): the audit is {(now - made).days} days old."
    return BiasAudit(
        facts=tuple((FACTS[key], str(facts.get(key) or NOT_GIVEN)) for key in needed),
        old=old,
        tables=tables,
    )


def _by_columns(result: AuditResult) -> BiasAuditTables:
    """Find the column of sex: the one with a label that says male or female, or the first."""
    tables = [one for one in result.details["tables"] if len(one["columns"]) == 1]
    names = [one["columns"][0] for one in tables]
    sexes = [{label.lower() for (label,) in one["labels"]} for one in tables]
    second = not sexes[0] & {"male", "female"} and bool(sexes[1] & {"male", "female"})
    sex, race = names[::-1] if second else names
    return bias_audit_tables(result, sex=sex, race=race)


def bias_audit_tables(result: AuditResult, *, sex: str, race: str) -> BiasAuditTables:
    """Write impact ratios as the rules of New York City print them.

    Parameters
    ----------
    result : AuditResult
        Of `impact_ratios` with the two group columns; of the metric ``"scoring_rate"`` for a tool
        that scores.
    sex, race : str
        The group columns of sex and of race/ethnicity.

    Returns
    -------
    BiasAuditTables
        Rates in per cent with one decimal; ratios, from unrounded rates, with two decimals for sex
        and race/ethnicity and three for intersections; a dash where a category is not compared.
    """
    details = details_of(result.details, DisparityDetails)
    by_columns = {frozenset(table["columns"]): table for table in details.tables or []}
    wanted = [frozenset({sex}), frozenset({race}), frozenset({sex, race})]
    if any(columns not in by_columns for columns in wanted):
        raise InvalidParameterError(
            "the tables of the rules need `impact_ratios` by sex, by race/ethnicity and by both;"
            f" got tables by {[table['columns'] for table in details.tables or []]}."
        )
    level = next((f.ci.confidence_level for f in result.findings if f.ci is not None), 0.95)
    scored = details.metric == "scoring_rate"
    found = [by_columns[columns] for columns in wanted]
    return BiasAuditTables(
        tables=tuple(
            _rule_table(heading, one, sex, decimals, scored=scored)
            for heading, one, decimals in zip(HEADINGS, found, (2, 2, 3), strict=True)
        ),
        columns=(*(SCORED if scored else SELECTED), f"Joint {100 * level:g}% interval", "Reading"),
        note=f"Note: The AEDT was also used to assess {details.unknown or 0} individuals with an"
        " unknown sex or race/ethnicity category. Data on those individuals was not included in"
        " the calculations above.",
        excluded=any("below-min-share" in one["excluded"] for one in found),
    )


def _rule_table(
    heading: str, table: dict[str, Any], sex: str, decimals: int, *, scored: bool
) -> RuleTable:
    both = len(table["columns"]) == 2
    rows = []
    for k, labels in enumerate(table["labels"]):
        named = dict(zip(table["columns"], labels, strict=True))
        gender = named.pop(sex, "")
        race = next(iter(named.values()), gender)
        ratio, low, high = (table[key][k] for key in ("estimate", "low", "high"))
        counts = (f"{table['n'][k]}", f"{table['selected'][k]:.0f}")
        cells = (
            *(counts[:1] if scored else counts),
            "-" if table["rate"][k] is None else f"{100.0 * table['rate'][k]:.1f}%",
            "-" if ratio is None else f"{ratio:.{decimals}f}",
            "-" if ratio is None else _interval(low, high, decimals),
            _reading(ratio, high),
        )
        hispanic = race.lower() == HISPANIC
        span, name = "", race
        if both:
            span = "Hispanic or Latino" if hispanic else f"Non-Hispanic or Latino, {gender}"
            name = gender if hispanic else race
        place = (both and not hispanic, *(_place(label) for label in (gender, race)))
        rows.append((place, (name, *cells), span))
    ordered = sorted(rows)
    return RuleTable(
        heading=heading,
        rows=tuple(row for _, row, _ in ordered),
        spans=tuple(span for _, _, span in ordered),
    )


def _reading(ratio: float | None, high: float | None) -> str:
    """Say what an interval shows; the rules have no threshold, so only equality is read."""
    if ratio is None:
        return "not compared"
    lower = high is not None and high < 1.0
    return "shown lower than the highest" if lower else "not shown lower than the highest"


def _not_a_formula(name: str) -> str:
    """Write a name so that a spreadsheet does not run it."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


def _interval(low: float | None, high: float | None, decimals: int) -> str:
    ends = ["none" if end is None else f"{end:.{decimals}f}" for end in (low, high)]
    return " to ".join(ends)


def _place(label: str) -> int:
    known = label.lower().removesuffix(NOT_HISPANIC)
    return ORDER.index(known) if known in ORDER else len(ORDER)
