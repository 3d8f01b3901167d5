"""What leaves a database or a cluster, by question.

Every question is asked of PostgreSQL and of Spark, of a small table and of one with four times the
rows and people. *Rows* are those of the answers to its queries, and on Spark also the numbers that
functions return from the partitions. What is a function of sums does not grow; the others bring
rows, say so in a note, and stop above the limit.
"""

import sys
from pathlib import Path

import narwhals as nw
import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

SIZES = (5_000, 20_000)
ROLES = {
    "group": ["race", "sex"],
    "y_true": "repaid",
    "y_pred": "approved",
    "y_score": "score",
}
QUESTIONS = {
    "disparity": ({}, lambda audit: audit.disparity("tpr")),
    "disparity of means": ({}, lambda audit: audit.disparity("mean_score")),
    "disparity with clusters": ({"cluster": "person"}, lambda audit: audit.disparity("tpr")),
    "disparity given a factor": ({}, lambda audit: audit.disparity("tpr", given=["job"])),
    "flag": ({}, lambda audit: audit.flag("fpr", margin=0.05)),
    "certify": ({}, lambda audit: audit.certify("accuracy", margin=0.1)),
    "impact_ratios": ({}, lambda audit: audit.impact_ratios()),
    "decompose": ({"group": "sex"}, lambda audit: audit.decompose("tpr", given=["job"])),
    "compare, two models": (
        {},
        lambda audit: audit.compare("accuracy", baseline="other", candidate="approved"),
    ),
    "compare, two periods": ({}, lambda audit: audit.compare("fpr", baseline=[1], period="week")),
    "monitor": ({"time": "week"}, lambda audit: audit.monitor("tpr")),
    "inequality of decisions": ({}, lambda audit: audit.inequality("speicher")),
    "treatment_effects": (
        {"treatment": "arm", "effect_pred": "effect"},
        lambda audit: audit.treatment_effects(n_repeats=0),
    ),
    "improvability, a ready candidate": (
        {"group": "sex"},
        lambda audit: audit.improvability(
            "other", accuracy="accuracy", fairness="fpr", n_resamples=200, rng=1
        ),
    ),
    "predictive_parity": ({"group": "sex"}, lambda audit: audit.predictive_parity(rng=1)),
    "marginal_outcome": ({"group": "sex"}, lambda audit: audit.marginal_outcome(0.5)),
    "score_quality": ({"group": "sex"}, lambda audit: audit.score_quality(rng=1)),
    "multicalibration": ({}, lambda audit: audit.multicalibration()),
    "policy": (
        {"treatment": "arm", "effect_pred": "effect"},
        lambda audit: audit.policy(budget=0.3),
    ),
    "disparity by empirical likelihood": (
        {},
        lambda audit: audit.disparity("mean_score", method="el"),
    ),
    "discover": ({}, lambda audit: audit.discover("error_rate")),
}


def table(n):
    rng = np.random.default_rng(5)
    score = rng.random(n)
    return pa.table(
        {
            "race": rng.choice(["a", "b", "c"], n),
            "sex": rng.choice(["F", "M"], n),
            "job": rng.choice(["clerk", "cook", "driver"], n),
            "repaid": (rng.random(n) < score).astype(np.int64),
            "approved": (score > 0.5).astype(np.int64),
            "other": rng.integers(0, 2, n),
            "score": score.round(2),
            "person": rng.integers(0, n // 3, n),
            "week": rng.integers(1, 5, n),
            "arm": rng.integers(0, 2, n),
            "effect": rng.random(n),
        }
    )


def measured(opened, roles, ask):
    """Return how many rows, or numbers from partitions, came back; None where it was refused."""
    import equipoise as eq
    from equipoise.data import spark
    from equipoise.exceptions import InvalidParameterError

    left = []
    collect, send = nw.LazyFrame.collect, spark.collected

    def counting(frame, *args, **options):
        found = collect(frame, *args, **options)
        left.append(len(found))
        return found

    def counting_parts(frame, function):
        found = send(frame, function)
        left.extend(array.size for part in found for array in part)
        return found

    nw.LazyFrame.collect, spark.collected = counting, counting_parts
    try:
        result = ask(eq.Audit(opened, **(ROLES | roles)))
    except InvalidParameterError:
        return None, False
    finally:
        nw.LazyFrame.collect, spark.collected = collect, send
    return sum(left), "rows-brought" in {note.code for note in result.notes}


def markdown() -> str:
    import ibis

    from support.engines import spark_session
    from support.postgres import private_postgres

    small, large = (f"{n:,} rows" for n in SIZES)
    lines = [
        f"| question | PostgreSQL, {small} | {large} | Spark, {small} | {large} | says so |",
        "|---|---|---|---|---|---|",
    ]
    with private_postgres() as folder:
        database = ibis.postgres.connect(host=str(folder), user="postgres", database="postgres")
        there = [database.create_table(f"loans{n}", table(n)) for n in SIZES]
        spark = [spark_session().createDataFrame(table(n)).cache() for n in SIZES]
        for name, (roles, ask) in QUESTIONS.items():
            found = [measured(rows, roles, ask) for rows in (*there, *spark)]
            counts = " | ".join("refused" if rows is None else f"{rows:,}" for rows, _ in found)
            lines.append(f"| {name} | {counts} | {'a note' if found[0][1] else ''} |")
            print(lines[-1], flush=True)
        database.disconnect()
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown())
