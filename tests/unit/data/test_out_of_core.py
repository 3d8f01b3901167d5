"""Tables larger than the memory that DuckDB may use; many cells; files that cannot be read."""

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import equipoise as eq
from equipoise.exceptions import DataError


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


def test_without_a_place_to_spill_the_limit_is_an_error_of_one_line(
    many_clusters, monkeypatch, tmp_path
):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("EQUIPOISE_THREADS", "1")
    monkeypatch.setenv("EQUIPOISE_MEMORY_LIMIT", "40MB")
    monkeypatch.setenv("EQUIPOISE_TEMP", str(blocked / "spill"))
    # The folder is made when the first block is spilled: the error shows that spilling was tried.
    with pytest.raises(DataError, match="Failed to create directory") as caught:
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
