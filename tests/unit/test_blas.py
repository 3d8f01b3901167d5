import numpy as np
from threadpoolctl import threadpool_info

from equipoise._blas import one_thread
from equipoise.stats.scores.rows import UnitRows


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_has_one_thread_inside_and_those_it_had_after():
    before = blas_threads()
    with one_thread():
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_blocks_give_the_threads_back_when_a_loop_stops_early(monkeypatch):
    monkeypatch.setattr("equipoise.stats.scores.rows.CHUNK_UNITS", 2)
    before = blas_threads()
    rows = UnitRows.independent(np.arange(9), np.arange(9.0))
    for _block in rows.blocks():
        assert blas_threads() == {1}
        break
    assert blas_threads() == before
