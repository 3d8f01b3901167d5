"""Real tables from the data folder, as other libraries prepare them."""

import os
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("EQUIPOISE_DATA", Path(__file__).parents[3] / "shared" / "data"))


def compas():
    """Return the 7,214 people of ProPublica's table; high risk starts at decile 5."""
    import pandas as pd

    rows = pd.read_csv(DATA / "compas-scores-two-years.csv")
    return rows.assign(high=(rows["decile_score"] >= 5).astype(int))


def german_credit():
    """Return sex and good credit of the 1,000 people of German credit."""
    rows = [line.split() for line in (DATA / "german.data").read_text().splitlines()]
    # Status and sex: A92 and A95 are women.
    sex = ["female" if row[8] in {"A92", "A95"} else "male" for row in rows]
    return {"sex": sex, "good": np.array([int(row[20] == "1") for row in rows])}
