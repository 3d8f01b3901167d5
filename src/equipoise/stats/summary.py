"""Results that a person can read: an interval, and a small table."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from equipoise._checks import check_fraction
from equipoise._numbers import number, p_value
from equipoise._typing import FloatArray

__all__ = ["Interval", "normal_quantile", "p_line", "summary_table"]


class Interval(NamedTuple):
    """Ends of a confidence interval, or of one for each group.

    Parameters
    ----------
    low, high : float or array
        Infinite on a side that the data do not bound.
    """

    low: float | FloatArray
    high: float | FloatArray


def normal_quantile(confidence_level: float) -> float:
    """Return the critical value of a two-sided interval: 1.96 for 95%."""
    level = check_fraction("confidence_level", confidence_level)
    return float(special.ndtri(0.5 + 0.5 * level))


def p_line(statistic: float, p: float, *, df: float | None = None, name: str = "statistic") -> str:
    """Write a test on one line."""
    degrees = "" if df is None else f" on {df:g} df"
    shown = p_value(p)
    sign = "" if shown.startswith("<") else "= "
    return f"{name} = {number(statistic)}{degrees}, p {sign}{shown}"


def summary_table(title: str, columns: Mapping[str, Sequence[object]]) -> str:
    """Write a title and a table; numbers have three significant digits.

    Parameters
    ----------
    title : str
        First line.
    columns : mapping of str to sequence
        Headings and cells. A column called ``p`` holds p-values; an `Interval` is written
        ``[low, high]``; what is missing, a dash.

    Returns
    -------
    str

    Examples
    --------
    >>> print(summary_table("Gaps", {"group": ["a", "b"], "gap": [0.1234, 2.0], "p": [0.0002, 1]}))
    Gaps
    group    gap       p
    a      0.123  <0.001
    b          2   1.000
    """
    cells = [
        [name, *(_cell(value, p=name == "p") for value in values)]
        for name, values in columns.items()
    ]
    widths = [max(map(len, column)) for column in cells]
    lines = [
        "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in zip(*cells, strict=True)
    ]
    return "\n".join([title, *lines])


def _cell(value: object, *, p: bool) -> str:
    if isinstance(value, Interval):
        low, high = float(value.low), float(value.high)
        if np.isnan(low):
            return "-"
        left = "(-inf" if np.isinf(low) else f"[{number(low)}"
        return f"{left}, " + ("inf)" if np.isinf(high) else f"{number(high)}]")
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            return "-"
        return p_value(float(value)) if p else number(float(value))
    if isinstance(value, (int, np.integer)) and p:
        return p_value(float(value))
    return "-" if value is None else str(value)
