"""A parquet file of n sessions in 200 x 3 x 2 x 8 cells: labels, score, user, arm, effect."""

import os
import tempfile
from pathlib import Path

GROUPS = ("grp", "age", "sex", "race")
ROLES = {"y_true": "y", "y_pred": "yhat", "y_score": "score"}


def path(n: int, *, users: float = 5.0, levels: int = 200) -> str:
    """Return the file of n rows under $EQUIPOISE_BENCH (or the temporary folder); write it once."""
    import duckdb

    folder = Path(os.environ.get("EQUIPOISE_BENCH", Path(tempfile.gettempdir()) / "equipoise"))
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"sessions-{n}-{users:g}-{levels}.parquet"
    if not target.exists():
        part = target.with_suffix(".part")
        # Hashes of the row number: the same file on every machine and thread count.
        engine = duckdb.connect()
        engine.execute("SET enable_progress_bar = false")
        engine.execute(
            f"""
            COPY (
              WITH ids AS (SELECT range AS i FROM range({n})),
              draws AS (
                SELECT hash(6 * i) >> 8 AS h, hash(6 * i + 1) >> 8 AS h1,
                  hash(6 * i + 2) >> 8 AS h2, hash(6 * i + 3) >> 8 AS h3,
                  hash(6 * i + 4) >> 8 AS h4, hash(6 * i + 5) >> 8 AS h5 FROM ids),
              rows AS (
                SELECT 'g' || lpad((h % {levels})::VARCHAR, 6, '0') AS grp,
                  ['18-34', '35-54', '55+'][1 + (h1 % 3)::INT] AS age,
                  ['F', 'M'][1 + (h2 % 2)::INT] AS sex,
                  ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'][1 + (h3 % 8)::INT] AS race,
                  (h4 % 1000003) / 1000003.0 AS score,
                  (h5 % 1000003) / 1000003.0 AS draw,
                  (h1 // 3) % {max(1, round(n / users))} AS user_id,
                  ((h2 // 2) % 2)::TINYINT AS treatment,
                  ((h3 // 8) % 1000) / 5000.0 AS tau_hat
                FROM draws)
              SELECT grp, age, sex, race, (draw < 0.8 * score)::TINYINT AS y,
                (score > 0.6)::TINYINT AS yhat, round(score, 4)::DOUBLE AS score, user_id,
                treatment, tau_hat::DOUBLE AS tau_hat
              FROM rows
            ) TO '{part}' (FORMAT parquet)
            """
        )
        part.rename(target)
    return str(target)
