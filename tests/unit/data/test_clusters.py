"""Few cells are columns, many are joined; both give the same sums and leave nothing behind."""

import duckdb
import numpy as np
import pytest

from equipoise.data.roles import Roles
from equipoise.data.table import Table
from support.asking import answer_of


def relation(engine, clusters):
    engine.execute(
        "CREATE TABLE people AS SELECT * FROM (VALUES ('a', 1, 0), ('a', 0, 0), ('b', 1, 1),"
        f" ('b', 1, {clusters[0]}), ('c', 0, {clusters[1]})) AS rows (race, y, id)"
    )
    return engine.table("people")


def cells_of(engine, clusters):
    roles = Roles(group=("race",), y_pred="y", cluster="id")
    return answer_of(Table(relation(engine, clusters), roles).label_sums(("y_pred",)))


@pytest.mark.parametrize("most", [0, 16], ids=["joined", "side by side"])
def test_sums_of_clusters_are_multiplied_within_and_between_cells(monkeypatch, most):
    monkeypatch.setattr("equipoise.data.clusters.MOST_COLUMNS", most)
    cells = cells_of(duckdb.connect(), clusters=(0, 2))
    # Cluster 0 has (1, 1) of ones and zeros in a and (1, 0) in b; 1 has (1, 0) in b; 2 (0, 1) in c.
    np.testing.assert_array_equal(
        cells.product, [[[1, 1], [1, 1]], [[2, 0], [0, 0]], [[0, 0], [0, 1]]]
    )
    assert (list(cells.cross.first), list(cells.cross.second)) == ([0], [1])
    np.testing.assert_array_equal(cells.cross.product, [[[1, 0], [1, 0]]])
    assert cells.n_units == 3


@pytest.mark.parametrize("most", [0, 16], ids=["joined", "side by side"])
def test_clusters_within_cells_have_nothing_between_them(monkeypatch, most):
    monkeypatch.setattr("equipoise.data.clusters.MOST_COLUMNS", most)
    cells = cells_of(duckdb.connect(), clusters=(1, 2))
    assert cells.cross is None
    assert cells.n_units == 3


def test_the_users_connection_keeps_its_tables_and_gets_no_other(monkeypatch):
    monkeypatch.setattr("equipoise.data.clusters.MOST_COLUMNS", 0)
    engine = duckdb.connect()
    cells_of(engine, clusters=(0, 2))
    assert engine.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("people",)]
    assert (
        engine.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall() == []
    )


def test_the_record_says_what_is_kept_and_what_it_is_made_of(monkeypatch):
    monkeypatch.setattr("equipoise.data.clusters.MOST_COLUMNS", 0)
    roles = Roles(group=("race",), y_pred="y", cluster="id")
    table = Table(relation(duckdb.connect(), (0, 2)), roles)
    sums = table.label_sums(("y_pred",))
    answer_of(sums)
    queries = [sent.sql for sent in table.sent[sums]]
    (kept,) = (k for k, query in enumerate(queries) if query.startswith("CREATE"))
    assert queries[kept].startswith("CREATE OR REPLACE TEMP TABLE __eq_parts AS ")
    assert "people" in queries[kept]
    reading = [k for k, query in enumerate(queries) if "__eq_parts" in query and k != kept]
    assert reading
    assert min(reading) > kept
    # What reads the table does not repeat how it was made.
    assert not any("people" in queries[k] for k in reading)
