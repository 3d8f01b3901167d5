"""The joint test of all intersections needs no matrix; here it is compared with one that does."""

import numpy as np
import pytest

from equipoise.moments import CellMoments
from equipoise.stats.disparity.joint import joint_test
from equipoise.stats.disparity.references import Target

K = 6


@pytest.fixture
def table(rng):
    cell = rng.integers(K, size=900)
    y = (rng.random(900) < 0.2 + 0.1 * (cell == 2)).astype(float)
    return cell, y


TARGETS = {
    "population": Target(kind="population"),
    "reference of one cell": Target(kind="reference", cells=np.arange(K) == 1),
    "reference of two cells": Target(kind="reference", cells=np.arange(K) < 2),
    "known": Target(kind="known", value=0.22),
    "external": Target(kind="external", value=0.22, se=0.02),
}


def collections(target):
    """Two collections of groups that say the same: single cells, and growing unions of cells."""
    single = np.eye(K, dtype=bool)
    growing = np.tril(np.ones((K, K), dtype=bool)).T
    if target.cells is not None and target.cells.sum() == 1:
        return single, growing[:, np.r_[0, 2:K]]
    return single, growing


def by_matrices(cell, y, target, theta, *, binary):
    """Quadratic form with the full covariance matrix of all cells against the target."""
    n = np.bincount(cell, minlength=K).astype(float)
    total = np.bincount(cell, y, K) - theta * n
    g = (cell[:, None] == np.arange(K)) * (y - theta)[:, None]
    kernel = theta * (1 - theta) * np.diag(n) if binary else g.T @ g
    rows = np.zeros(K)
    if target.estimated:
        rows = np.ones(K) if target.cells is None else target.cells.astype(float)
    share = n / (n @ rows) if target.estimated else np.zeros(K)
    directions = np.eye(K) - np.outer(rows, share)
    moment = directions.T @ total
    variance = directions.T @ kernel @ directions + target.se**2 * np.outer(n, n)
    if not binary:
        # The Euclidean likelihood centres the variance.
        variance -= np.outer(moment, moment) / len(cell)
    return moment @ np.linalg.pinv(variance, rcond=1e-10) @ moment


@pytest.mark.parametrize("binary", [True, False], ids=["score", "euclidean"])
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_single_cells_agree_with_full_matrices_and_with_other_spanning_groups(
    table, target, binary, monkeypatch
):
    cell, y = table
    monkeypatch.setattr("equipoise.stats.disparity.joint._LARGEST_DUAL", 0)
    moments = CellMoments.from_rows(np.stack([y, np.ones_like(y)], axis=1), cell)
    theta = target.value
    if target.estimated:
        theta = y.mean() if target.cells is None else y[target.cells[cell]].mean()
    expected = by_matrices(cell, y, target, theta, binary=binary)
    for groups in collections(target):
        method = "auto" if binary else "eel"
        found = joint_test(moments, groups, target, binary=binary, method=method)
        assert found.df == K - int(target.estimated)
        np.testing.assert_allclose(found.statistic, expected, rtol=1e-8)


def test_a_cell_in_which_nothing_varies_pins_the_common_value_down():
    y = np.repeat([0.5, 0.2, 0.9, 0.4, 0.6], [4, 10, 10, 10, 10])
    y = y + np.where(np.arange(44) < 4, 0.0, np.tile([-0.1, 0.1], 22))
    y += 0.5 - y[4:].mean()
    y[:4] = 0.5
    cell = np.repeat(np.arange(5), [4, 10, 10, 10, 10])
    moments = CellMoments.from_rows(np.stack([y, np.ones_like(y)], axis=1), cell, order=3)
    everyone = Target(kind="population")
    found = joint_test(moments, np.eye(5, dtype=bool), everyone, binary=False, method="eel")
    theta = y.mean()
    total = np.bincount(cell, y - theta)[1:]
    quadratic = (total**2 / np.bincount(cell, (y - theta) ** 2)[1:]).sum()
    np.testing.assert_allclose(found.statistic, quadratic / (1 - quadratic / 44), rtol=1e-9)
