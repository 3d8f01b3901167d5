"""The table of docs/metrics.md; ``python tests/docs/metrics_page.py`` rewrites it."""

from pathlib import Path

from equipoise.data.metrics import BOTH, METRICS, RateMetric

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
START, END = "<!-- metrics -->\n", "<!-- end of metrics -->\n"
ROWS = {
    BOTH: ("true positives", "false negatives", "false positives", "true negatives"),
    ("y_pred",): ("selected", "not selected"),
    ("y_true",): ("positives", "negatives"),
}


def ratio(metric):
    if not isinstance(metric, RateMetric):
        return metric.meaning.replace("|", "&#124;")
    rows = ROWS[metric.roles]

    def named(use):
        chosen = [name for name, used in zip(rows, use, strict=True) if used]
        together = " + ".join(chosen)
        return (
            "all" if len(chosen) == len(rows) else together if len(chosen) == 1 else f"({together})"
        )

    return f"{named(metric.u)} / {named(metric.w)}"


def line(metric):
    needs = ", ".join(f"`{role}`" for role in metric.needs)
    better = metric.better or "depends on the decision"
    synonyms = ", ".join(f"`{word}`" for word in metric.synonyms)
    cells = (f"`{metric.name}`", metric.words, ratio(metric), needs, better, synonyms)
    return "| " + " | ".join(cells) + " |\n"


def rewritten(text):
    head, _, rest = text.partition(START)
    _, _, tail = rest.partition(END)
    columns = ("name", "in words", "what is divided by what", "roles", "better", "also called")
    table = f"| {' | '.join(columns)} |\n{'| --- ' * len(columns)}|\n"
    return head + START + table + "".join(map(line, METRICS.values())) + END + tail


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
