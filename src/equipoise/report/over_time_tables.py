"""What a reader asks beside the findings over time: the values behind every change."""

from equipoise.audits.disparity.questions import (
    CompareDetails,
    DiscoverDetails,
    MonitorDetails,
    people,
)
from equipoise.report.improvement_tables import PlainTable
from equipoise.results.details import details_of
from equipoise.results.formats import number
from equipoise.results.result import AuditResult

__all__ = ["compare_tables", "discover_tables", "monitor_tables"]


def compare_tables(result: AuditResult) -> tuple[PlainTable, ...]:
    """Return value and gap of each group before and after.

    Parameters
    ----------
    result : AuditResult
        Of a comparison.

    Returns
    -------
    tuple of PlainTable
    """
    details = details_of(result.details, CompareDetails)
    paired = all("gained" in row for row in details.changes)
    columns = ("Group", "n", "Value before", "after", "Gap before", "after")
    names = ("old", "new", "gap_old", "gap_new", *(("gained", "lost") if paired else ()))
    return (
        PlainTable(
            caption=f"Before ({details.baseline}) and after ({details.candidate})",
            columns=(*columns, *(("Gained", "Lost") if paired else ())),
            rows=tuple(
                (row["group"], f"{row['n']:,}", *(number(row[name]) for name in names))
                for row in details.changes
            ),
        ),
    )


def monitor_tables(result: AuditResult) -> tuple[PlainTable, ...]:
    """Return the alarms with the dates that they can be given.

    Parameters
    ----------
    result : AuditResult
        Of a monitor.

    Returns
    -------
    tuple of PlainTable
        Empty without an alarm.
    """
    details = details_of(result.details, MonitorDetails)
    raised = [path for path in details.paths if path["since"] is not None]
    if not raised:
        return ()
    return (
        PlainTable(
            caption="Alarms, and since when if a gap began at once and stayed",
            columns=("Finding", "Alarm in", "Not before", "Most likely", "Not after"),
            rows=tuple(
                (
                    path["finding"],
                    path["alarm_at"],
                    path["since"]["low"],
                    path["since"]["best"],
                    path["since"]["high"],
                )
                for path in raised
            ),
        ),
    )


FOLDED = 20
"""Subgroups that the page lists beside those shown."""


def discover_tables(result: AuditResult) -> tuple[PlainTable, ...]:
    """Return the subgroups in words, and those that larger ones explain.

    Parameters
    ----------
    result : AuditResult
        Of a search for subgroups.

    Returns
    -------
    tuple of PlainTable
        Empty ones are left out.
    """
    details = details_of(result.details, DiscoverDetails)
    columns = ("Subgroup", "Rows", "Value", "Rest", "At least")
    shown = {one["group"] for one in details.shown}
    folded = [one for one in details.rejected if one["group"] not in shown]
    tables = [
        PlainTable(
            caption="The subgroups in words",
            columns=columns,
            rows=tuple(
                (
                    people(one["words"]),
                    f"{one['n']:,}",
                    number(one["value"]),
                    number(one["rest"]),
                    number(one["bound"]),
                )
                for one in details.shown
            ),
        ),
        PlainTable(
            caption=f"Folded: {details.n_rejected - len(shown):,} more differ from the rest and are"
            " explained by those shown",
            columns=(*columns, "Resembles"),
            rows=tuple(
                (
                    people(one["words"]),
                    f"{one['n']:,}",
                    number(one["value"]),
                    number(one["rest"]),
                    number(one["bound"]),
                    one["explained_by"] or "several of them",
                )
                for one in folded[:FOLDED]
            ),
        ),
        PlainTable(
            caption="Nearest to being found, and not found",
            columns=("Subgroup", "Rows", "Value", "Rest"),
            rows=tuple(
                (people(one["words"]), f"{one['n']:,}", number(one["value"]), number(one["rest"]))
                for one in details.nearest
            ),
        ),
    ]
    return tuple(table for table in tables if table.rows)
