"""How a person reads a number and a p-value."""

from decimal import Decimal

__all__ = ["number", "p_value"]

SMALLEST, LARGEST = 1e-9, 1e15
"""Numbers beyond these are written with an exponent: nobody counts so many zeros."""


def number(value: float | None) -> str:
    """Write a number with three significant digits, or all before the point."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if not SMALLEST <= abs(value) < LARGEST:
        return f"{value:.2e}"
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    return f"{Decimal(f'{value:.3g}'):f}"


def p_value(value: float | None) -> str:
    """Write a p-value; never ``0.000``."""
    if value is None:
        return "-"
    if value < 0.001:
        return "<0.001"
    return f"{value:.3f}"
