"""Tables larger than the memory that DuckDB may use; many cells; files that cannot be read."""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import equipoise as eq
from equipoise.exceptions import DataError, ResourceError


@pytest.fixture
def many_clusters(tmp_path):
    """A folder of parquet files with 400,000 clusters of two rows."""
    folder = tmp_path / "rows"
    folder.mkdir()
    duckdb.sql(
        """SELECT 'cluster number ' || (hash(i // 2) >> 20)::VARCHAR AS id,
           (i // 2) % 3 AS grp, (hash(i) >> 9) % 2 AS p FROM range(800000) AS t(i)"""
    ).write_parquet(str(folder / "part.parquet"))
    return str(folder)


def audited(folder):
    audit = eq.Audit(folder, group="grp", y_pred="p", cluster="id")
    return audit.disparity("selection_rate", method="eel")


def test_sums_per_cluster_spill_to_the_named_folder(many_clusters, monkeypatch, tmp_path):
    free = audited(many_clusters)
    monkeypatch.setenv("EQUIPOISE_THREADS", "1")
    monkeypatch.setenv("EQUIPOISE_MEMORY_LIMIT", "40MB")
    monkeypatch.setenv("EQUIPOISE_TEMP", str(tmp_path / "spill"))
    bounded = audited(many_clusters)
    assert free.details["n_units"] == bounded.details["n_units"] == 400_000
    for ours, theirs in zip(free.findings, bounded.findings, strict=True):
        assert ours.group == theirs.group
        np.testing.assert_allclose(ours.estimate, theirs.estimate, rtol=1e-12)
        np.testing.assert_allclose(ours.p_value, theirs.p_value, rtol=1e-9)


def test_a_place_to_spill_that_cannot_be_is_an_error_of_one_line(
    many_clusters, monkeypatch, tmp_path
):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("EQUIPOISE_TEMP", str(blocked / "spill"))
    with pytest.raises(ResourceError, match="Name another in EQUIPOISE_TEMP") as caught:
        audited(many_clusters)
    assert "\n" not in str(caught.value)


WATCHED = """
import os, pathlib, sys, threading, time
import equipoise as eq

place, seen = pathlib.Path(sys.argv[2]), set()

def watch():
    while True:
        for file in place.glob("*/*/*"):
            seen.add(oct(file.parents[1].stat().st_mode & 0o777))
        time.sleep(0.001)

threading.Thread(target=watch, daemon=True).start()
audit = eq.Audit(sys.argv[1], group="grp", y_pred="p", cluster="id")
audit.disparity("selection_rate", method="eel")
print(*seen, os.listdir("."))
"""


def test_what_is_spilled_is_private_and_gone_at_the_end(many_clusters, tmp_path):
    (tmp_path / "work").mkdir()
    settings = {"THREADS": "1", "MEMORY_LIMIT": "40MB", "TEMP": str(tmp_path / "spill")}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, many_clusters, str(tmp_path / "spill")],
        env=os.environ
        | {f"EQUIPOISE_{name}": value for name, value in settings.items()}
        | {"PYTHONPATH": str(Path(eq.__file__).parents[1])},
        cwd=tmp_path / "work",
        capture_output=True,
        text=True,
        check=True,
    )
    # While it ran there were files in a folder for the owner alone; nothing in the current one.
    assert done.stdout == "0o700 []\n"
    assert not list((tmp_path / "spill").iterdir())


def test_too_little_memory_is_said_with_the_remedy(many_clusters, monkeypatch):
    monkeypatch.setenv("EQUIPOISE_THREADS", "1")
    monkeypatch.setenv("EQUIPOISE_MEMORY_LIMIT", "1MB")
    with pytest.raises(ResourceError, match="Raise EQUIPOISE_MEMORY_LIMIT") as caught:
        audited(many_clusters)
    assert "\n" not in str(caught.value)


def test_an_impossible_limit_is_refused(many_clusters, monkeypatch):
    monkeypatch.setenv("EQUIPOISE_MEMORY_LIMIT", "a lot")
    with pytest.raises(DataError, match="DuckDB refused its settings"):
        audited(many_clusters)


def test_a_wide_table_reads_only_the_columns_that_are_used(tmp_path):
    rng = np.random.default_rng(2)
    columns = {f"feature {k}": rng.random(50) for k in range(2000)}
    columns |= {"group": ["a", "b"] * 25, "p": rng.integers(2, size=50)}
    pq.write_table(pa.table(columns), tmp_path / "wide.parquet")
    audit = eq.Audit(str(tmp_path / "wide.parquet"), group="group", y_pred="p")
    assert len(audit.disparity("selection_rate").findings) == 2


def test_files_whose_types_differ_are_refused_and_not_cast(tmp_path):
    pq.write_table(pa.table({"group": ["a"], "p": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"group": ["a"], "p": ["1"]}), tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"'1.parquet' has p BIGINT, '2.parquet' has p VARCHAR"):
        eq.Audit(str(tmp_path), group="group", y_pred="p")


def test_files_whose_columns_differ_are_refused(tmp_path):
    pq.write_table(pa.table({"group": ["a"], "p": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"group": ["a"], "p": [1], "q": [2]}), tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"has nothing else, '2.parquet' has q BIGINT"):
        eq.Audit(str(tmp_path), group="group", y_pred="p")


def test_a_corrupt_file_among_good_ones_is_named_in_one_line(tmp_path):
    pq.write_table(pa.table({"group": ["a"], "p": [1]}), tmp_path / "1.parquet")
    (tmp_path / "2.parquet").write_bytes(b"PAR1 this is not parquet PAR1")
    with pytest.raises(DataError, match=r"2\.parquet") as caught:
        eq.Audit(str(tmp_path), group="group", y_pred="p")
    assert "\n" not in str(caught.value)


def test_a_file_whose_pages_are_corrupt_is_an_error_of_one_line(tmp_path):
    file = tmp_path / "rows.parquet"
    rng = np.random.default_rng(1)
    table = pa.table({"group": ["a", "b"] * 5000, "p": rng.integers(0, 2, 10_000)})
    pq.write_table(table, file, compression="snappy", use_dictionary=False)
    content = bytearray(file.read_bytes())
    content[200:600] = bytes(400)
    file.write_bytes(content)
    with pytest.raises(DataError) as caught:
        eq.Audit(str(file), group="group", y_pred="p").disparity("selection_rate")
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_hundred_thousand_cells(tmp_path):
    duckdb.sql(
        """SELECT (hash(i) >> 8) % 100000 AS town, (hash(3 * i + 1) >> 9) % 2 AS p
           FROM range(3000000) AS t(i)"""
    ).write_parquet(str(tmp_path / "towns.parquet"))
    result = eq.Audit(str(tmp_path / "towns.parquet"), group="town", y_pred="p").flag(
        "selection_rate", alternative="two-sided"
    )
    assert len(result.findings) == 100_000
