"""How a person reads a number, an interval, a name and a decision."""

from equipoise.results.finding import ConfidenceInterval, Decision, JointTest

__all__ = [
    "METRIC_WORDS",
    "decision_word",
    "estimand_words",
    "interval",
    "joint_line",
    "number",
    "p_value",
    "printable",
    "shortened",
]

DECISION_WORDS = {
    Decision.DETECTED: "detected",
    Decision.NOT_DETECTED: "not detected",
    Decision.WITHIN_MARGIN: "within margin",
    Decision.NOT_TESTED: "not tested",
}

METRIC_WORDS = {
    "selection_rate": "selection rate",
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "tnr": "true negative rate",
    "fnr": "false negative rate",
    "ppv": "positive predictive value",
    "npv": "negative predictive value",
    "selected_outcome": "mean outcome among the selected",
    "accuracy": "accuracy",
    "error_rate": "error rate",
    "mean_outcome": "mean outcome",
    "mean_score": "mean score",
    "squared_error": "squared error",
    "residual": "mean residual",
}
"""What a metric is called in a sentence."""


def number(value: float | None) -> str:
    """Write a number with three significant digits."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if 0.001 <= abs(value) < 100_000:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{value:.2e}"


def p_value(value: float | None) -> str:
    """Write a p-value; never ``0.000``."""
    if value is None:
        return "-"
    if value < 0.001:
        return "<0.001"
    return f"{value:.3f}"


def interval(ci: ConfidenceInterval | None) -> str:
    """Write an interval as ``[low, high]``; a side without bound is open."""
    if ci is None:
        return "-"
    low = "(-inf" if ci.low is None else f"[{number(ci.low)}"
    high = "inf)" if ci.high is None else f"{number(ci.high)}]"
    return f"{low}, {high}"


def decision_word(decision: Decision, audit: str = "") -> str:
    """Return the word for a decision; equivalence that is not shown is inconclusive."""
    if audit == "certify" and decision is Decision.NOT_DETECTED:
        return "inconclusive"
    return DECISION_WORDS[decision]


def shortened(name: str, width: int = 60) -> str:
    """Cut a name from the data to `width` characters; the table has it in full."""
    return name if len(name) <= width else name[: width - 1] + "…"


def printable(text: str) -> str:
    """Replace what XML cannot hold: control characters and lone surrogates."""
    return "".join(
        letter
        if letter in "\t\n" or (letter >= " " and not "\ud800" <= letter <= "\udfff")
        else "�"
        for letter in text
    )


def estimand_words(estimand: str) -> str:
    """Spell out an estimand: ``"fpr difference"`` is a false positive rate difference."""
    metric, _, rest = estimand.partition(" ")
    return f"{METRIC_WORDS.get(metric, metric)} {rest}".strip()


def joint_line(joint: JointTest) -> str:
    """Write the joint test on one line."""
    if joint.p_value is None:
        return f"Joint: {joint.null}: not tested"
    df = "" if joint.df is None else f", df {joint.df:g}"
    return (
        f"Joint: {joint.null}: statistic {number(joint.statistic)}{df},"
        f" p {p_value(joint.p_value)}, {decision_word(joint.decision)}"
    )
