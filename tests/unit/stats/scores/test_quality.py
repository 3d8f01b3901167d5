import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.scores.quality import compare_quality, score_quality


@pytest.fixture
def rows(rng):
    score, group = rng.beta(2, 2, size=1500).round(2), rng.integers(2, size=1500)
    return (rng.uniform(size=1500) < score).astype(float), score, group


def test_metrics_equal_their_definitions(rows):
    y, score, group = rows
    points = np.array([0.3, 0.6])
    got = score_quality(y, score, group, points=points)
    h = 1.06 * np.sqrt(points * (1 - points)) * 1500**-0.2
    f = np.empty((2, 2))
    for g in (0, 1):
        for k, s in enumerate(points):
            kernel = np.exp(-(((score - s) / h[k]) ** 2) / 2) * (group == g)
            f[g, k] = np.sum(kernel * y) / np.sum(kernel)
    assert got.calibration_error == pytest.approx(np.abs(f - points).sum(axis=0).mean())
    assert got.parity_error == pytest.approx(2 * np.abs(f[0] - f[1]).mean())
    assert got.auc == pytest.approx(roc_auc_score(y, score))
    bins = np.minimum((score * 10).astype(int), 9)
    gaps = [abs((y - score)[bins == b].sum()) for b in range(10)]
    assert got.expected_calibration_error == pytest.approx(sum(gaps) / 1500)


def test_a_weight_is_a_repeated_row(rows, rng):
    y, score, group = rows
    weight = rng.integers(1, 4, size=1500)
    points = np.array([0.2, 0.5])
    a = score_quality(y, score, group, weight=weight, points=points)
    many = [np.repeat(v, weight) for v in (y, score, group)]
    b = score_quality(*many, points=points)
    assert a.auc == pytest.approx(b.auc)
    assert a.expected_calibration_error == pytest.approx(b.expected_calibration_error)


def test_paired_difference_is_after_minus_before_with_an_interval(rows, rng):
    y, score, group = rows
    found = compare_quality(y, score**2, score, group, n_resamples=60, rng=1)
    assert found.difference.expected_calibration_error == pytest.approx(
        found.after.expected_calibration_error - found.before.expected_calibration_error
    )
    assert found.high.expected_calibration_error < 0
    assert found.low.auc == found.high.auc == pytest.approx(0.0, abs=1e-12)
    same = compare_quality(y, score, score, group, n_resamples=5)
    assert same.low == same.high == same.difference


def test_clusters_are_resampled_whole(rng):
    user = np.repeat(np.arange(150), 10)
    score, group = rng.uniform(0.2, 0.8, size=1500), (user % 2)
    y = (rng.uniform(size=150)[user] < score).astype(float)
    rows, users = (
        compare_quality(y, score, score / 2, group, cluster=c, n_resamples=80, rng=1)
        for c in (None, user)
    )
    width = [f.high.calibration_error - f.low.calibration_error for f in (rows, users)]
    assert width[1] > 1.5 * width[0]


def test_wrong_input_is_refused(rows):
    y, score, group = rows
    with pytest.raises(DataError, match="must have both 0 and 1"):
        score_quality(np.ones(1500), score, group)
    with pytest.raises(InvalidParameterError, match="one length"):
        score_quality(y[:5], score, group)
    with pytest.raises(DataError, match="no score near some grid point"):
        score_quality(y, score, group, points=[50.0])
