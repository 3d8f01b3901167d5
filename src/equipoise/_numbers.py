"""How a person reads a number and a p-value."""

__all__ = ["number", "p_value"]


def number(value: float | None) -> str:
    """Write a number with three significant digits."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if 0.001 <= abs(value) < 100_000:
        return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"
    return f"{value:.2e}"


def p_value(value: float | None) -> str:
    """Write a p-value; never ``0.000``."""
    if value is None:
        return "-"
    if value < 0.001:
        return "<0.001"
    return f"{value:.3f}"
