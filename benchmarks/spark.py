"""Spark on two cores: ten million rows, against the same GROUP BY written by hand in Spark SQL.

One session does all the work, after a run of each on a million rows that is not timed. CPU seconds
are those of this process, of the Java machine and of the workers; peak MB is the largest resident
memory of the Java machine plus that of this process. The query by hand for parity brings the sums
of every score in 4,096 bins, and asks nothing of them; with users it brings the sums of every user
in every bin as far as one row.
"""

import os
import time
from pathlib import Path
from statistics import median

from harness import Measurement, Row, compare, show
from sessions import path

SMALL, LARGE = 1_000_000, 10_000_000
COLUMNS = ("age", "sex", "race")
BIN = "cast(floor(score * 4096) as int)"


def session():
    """Return a local session with two threads."""
    import sys

    from pyspark.sql import SparkSession

    source = str(Path(__file__).parents[1] / "src")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("benchmark")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.executorEnv.PYTHONPATH", source)
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _tree() -> dict[int, list[str]]:
    """Return the statistics of this process and all that it started."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, _, rest = entry.read_text().partition(" (")
        except OSError:
            continue
        found[int(pid)] = rest.rpartition(") ")[2].split()
    kept, new = {os.getpid(): found[os.getpid()]}, {os.getpid()}
    while new:
        new = {pid for pid, fields in found.items() if int(fields[1]) in new and pid not in kept}
        kept |= {pid: found[pid] for pid in new}
    return kept


SEEN: dict[int, int] = {}
"""Ticks of every process that was ever looked at: idle workers end, and take theirs along."""


def _cpu() -> float:
    """CPU seconds of the tree, those of workers that have ended included."""
    SEEN.update({pid: int(fields[11]) + int(fields[12]) for pid, fields in _tree().items()})
    return sum(SEEN.values()) / os.sysconf("SC_CLK_TCK")


def _peak_mb() -> float:
    total = 0.0
    for pid in _tree():
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        if pid == os.getpid() or "\tjava" in status:
            total += int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return total


def timed(work, repeats: int) -> Measurement:
    """Run some times on the clock."""
    runs = []
    for _ in range(repeats):
        cpu, start = _cpu(), time.perf_counter()
        value = work()
        runs.append((time.perf_counter() - start, _cpu() - cpu))
    return Measurement(
        seconds=median(run[0] for run in runs),
        cpu=median(run[1] for run in runs),
        peak_mb=_peak_mb(),
        repeats=repeats,
        value=value,
    )


def _same(ours, theirs):
    assert ours == theirs, (ours, theirs)


def _cases(n: int):
    """Return what is asked of a file of n rows, and the query by hand."""
    import equipoise as eq

    spark = session()
    frame = spark.read.parquet(path(n))
    frame.createOrReplaceTempView("sessions")
    keys = ", ".join((*COLUMNS, "y", "yhat"))
    labels = {"group": list(COLUMNS), "y_true": "y", "y_pred": "yhat"}
    scores = {"group": "sex", "y_true": "y", "y_score": "score"}

    def disparity():
        return eq.Audit(frame, **labels).disparity("fpr").n

    def counted():
        found = spark.sql(f"SELECT {keys}, count(*) AS n FROM sessions GROUP BY {keys}").collect()
        return sum(row["n"] for row in found)

    def parity():
        return eq.Audit(frame, **scores).predictive_parity(rng=1).n

    def binned():
        sums = "count(*) AS n, sum(y), sum(score)"
        found = spark.sql(f"SELECT sex, {BIN} AS b, {sums} FROM sessions GROUP BY 1, 2").collect()
        return sum(row["n"] for row in found)

    def user_parity():
        audit = eq.Audit(frame, **scores, cluster="user_id")
        return audit.predictive_parity(unit="cluster", rng=1).n

    def by_user():
        inner = f"SELECT user_id, sex, {BIN} AS b, count(*) AS n, sum(y) AS y FROM sessions"
        whole = f"SELECT sum(n) AS n, sum(y * y) AS s FROM ({inner} GROUP BY 1, 2, 3)"
        return spark.sql(whole).collect()[0]["n"]

    return {
        f"disparity of 107 subgroups, {n:,} rows": (disparity, counted),
        f"predictive parity, {n:,} rows": (parity, binned),
        f"predictive parity, {n:,} rows of {n // 5:,} users": (user_parity, by_user),
    }


def _rows(n: int, target: str = "", of_users: int = 3) -> list[Row]:
    for pair in _cases(SMALL).values():
        for work in pair:
            work()
    found = []
    for words, (ours, theirs) in _cases(n).items():
        repeats = of_users if "users" in words else 3
        row = compare(
            words,
            timed(ours, repeats),
            timed(theirs, repeats),
            peer="the GROUP BY by hand in Spark SQL",
            target=target,
            same=_same,
        )
        print(row, flush=True)
        found.append(row)
    return found


def rows() -> list[Row]:
    return _rows(SMALL)


def large_rows() -> list[Row]:
    return _rows(LARGE, "within 1.5x", of_users=1)


if __name__ == "__main__":
    show(rows())
