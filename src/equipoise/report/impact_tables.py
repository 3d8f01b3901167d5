"""The regulator's tables beside the findings: rates, ratios, what they show, and companions."""

from typing import Any

from equipoise.audits.disparity.questions import DisparityDetails
from equipoise.audits.disparity.wording import share_words
from equipoise.report.improvement_tables import PlainTable
from equipoise.results.details import details_of
from equipoise.results.formats import number, p_value
from equipoise.results.result import AuditResult

__all__ = ["impact_tables", "reading_words"]


def reading_words(reading: str | None, limit: float, *, which: str = "highest") -> str:
    """Write what a joint interval shows.

    Parameters
    ----------
    reading : str or None
        As in `details["tables"]`; None where the category is not compared.
    limit : float
        Threshold, 0.8 for four fifths.
    which : str
        The category compared with.

    Returns
    -------
    str

    Examples
    --------
    >>> reading_words("apart", 0.8)
    'lower than the highest shown; four fifths not settled'
    """
    if reading is None:
        return "not compared"
    share = share_words(limit)
    up = which == "lowest"
    lower, inside, beyond = ("higher", "at most", "above") if up else ("lower", "at least", "below")
    apart, equal = f"{lower} than the {which} shown", "compatible with equality"
    return {
        "beyond": f"{beyond} {share} of the {which} shown",
        "apart, within": f"{apart}; {inside} {share} shown",
        "apart": f"{apart}; {share} not settled",
        "within": f"{equal}; {inside} {share} shown",
        "not settled": f"{equal}; {share} not settled",
    }[reading]


def impact_tables(result: AuditResult) -> tuple[PlainTable, ...]:
    """Return each table of categories, and its companions where there are any.

    Parameters
    ----------
    result : AuditResult
        Of a comparison with the highest or lowest category; another one has no such tables.

    Returns
    -------
    tuple of PlainTable
    """
    details = details_of(result.details, DisparityDetails)
    limit = 1.0 - (0.2 if details.margin is None else details.margin)
    found = []
    for table in details.tables or []:
        if not table["categories"]:
            continue  # all are withheld, and the notes of the findings say why
        found.append(_rates(table, limit, details))
        if table["companions"] is not None:
            found.append(_companions(table))
    return tuple(found)


def _rates(table: dict[str, Any], limit: float, details: DisparityDetails) -> PlainTable:
    columns = " and ".join(table["columns"])
    return PlainTable(
        caption=f"By {columns}: compared with the {details.reference}"
        f" ({table['highest'] or 'none'}) of {table['k']} categories",
        columns=(
            "Category",
            "Rows",
            "Selected",
            "Rate",
            "Ratio" if details.scale == "ratio" else "Difference",
            "Joint interval",
            "What is shown",
        ),
        rows=tuple(
            (
                name,
                f"{table['n'][k]:,}",
                number(table["selected"][k]),
                number(table["rate"][k]),
                number(table["estimate"][k]),
                _interval(table["low"][k], table["high"][k], table["estimate"][k]),
                reading_words(table["verdict"][k], limit, which=details.reference),
            )
            for k, name in enumerate(table["categories"])
        ),
    )


def _interval(low: float | None, high: float | None, estimate: float | None) -> str:
    if estimate is None:
        return "-"
    return f"{'none' if low is None else number(low)} to {'none' if high is None else number(high)}"


def _companions(table: dict[str, Any]) -> PlainTable:
    rows = [
        (name, row)
        for name, row in zip(table["categories"], table["companions"], strict=True)
        if row and name != table["highest"]
    ]
    if any("smd" in row for _, row in rows):
        return _standardised(table, rows)
    return PlainTable(
        caption=f"Each beside {table['highest']}, unadjusted for choosing it",
        columns=(
            "Category",
            "Standard deviations",
            "Fisher p",
            "Boschloo p",
            "Shortfall",
            "Moved to turn",
            "Added to turn",
            "Odds ratio",
        ),
        rows=tuple(
            (
                name,
                number(row["z"]),
                p_value(row["fisher"]),
                p_value(row["boschloo"]),
                number(row["shortfall"]),
                str(row["flip_moved"]),
                "never" if row["flip_added"] == -1 else str(row["flip_added"]),
                _odds(row),
            )
            for name, row in rows
        ),
    )


def _standardised(table: dict[str, Any], rows: list[tuple[str, dict[str, Any]]]) -> PlainTable:
    return PlainTable(
        caption=f"Each beside {table['highest']}, in standard deviations of all rows, unadjusted"
        " for choosing it",
        columns=("Category", "Standardised mean difference (x 100)", "Interval", "p"),
        rows=tuple(
            (
                name,
                number(100.0 * row["smd"]),
                f"{number(100.0 * row['smd_low'])} to {number(100.0 * row['smd_high'])}",
                p_value(row["smd_p"]),
            )
            for name, row in rows
        ),
    )


def _odds(row: dict[str, Any]) -> str:
    ends = f"{number(row['odds_low'])} to {number(row['odds_high'])}"
    return f"{number(row['odds_ratio'])} ({ends})"
