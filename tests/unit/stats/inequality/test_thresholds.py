import numpy as np
import pytest

from equipoise.moments import CellMoments
from equipoise.stats.binomial import clopper_pearson
from equipoise.stats.inequality.benefits import SPEICHER, hard_benefits
from equipoise.stats.inequality.cap import check_cap, index_cap, kappa_scheme
from equipoise.stats.inequality.index import entropy_index, kernel
from equipoise.stats.inequality.thresholds import (
    allowed_in_sequence,
    between_thresholds,
    cap_shown,
    contrast_shown,
    threshold_path,
)


def scored(rng, n=300):
    y = (rng.random(n) < 0.4).astype(float)
    return np.round(rng.normal(size=n) + y, 1), y


def test_path_counts_equal_a_loop(rng):
    score, y = scored(rng)
    path = threshold_path(score, y)
    for k, cut in enumerate(path.cut):
        chosen = score > cut
        assert path.fp[k] == np.sum(chosen & (y == 0))
        assert path.fn[k] == np.sum(~chosen & (y == 1))
    assert (path.fp[0], path.fn[0]) == (path.n0, 0)
    assert (path.fp[-1], path.fn[-1]) == (0, path.n1)


@pytest.mark.parametrize("kind", ["punitive", "assistive"])
@pytest.mark.parametrize("order", [0.5, 1.0])
def test_bounds_of_the_path_are_those_of_a_single_check(rng, kind, order):
    score, y = scored(rng, 800)
    path = threshold_path(score, y)
    scheme = kappa_scheme(base_rate=float(y.mean()), kappa=3, kind=kind)
    cap = index_cap(scheme, order=order).cap
    direct = contrast_shown(path, kappa=3, kind=kind, confidence_level=0.95)
    capped = cap_shown(path, scheme, cap=cap, order=order, confidence_level=0.95)
    harmful = path.fp if kind == "punitive" else path.fn
    for k in range(1, len(path.cut) - 1):
        counts = [path.n1 - path.fn[k], path.fn[k], path.fp[k], path.n0 - path.fp[k]]
        people = CellMoments.from_rows(np.eye(4), np.zeros(4), count=np.array(counts))
        single = check_cap(people, scheme, cap=cap, order=order)
        assert direct[k] == single.contrast_shown
        if harmful[k] >= 10:
            assert capped[k] == single.index_shown


def test_point_estimates_are_taken_at_face_value_without_a_level(rng):
    score, y = scored(rng)
    path = threshold_path(score, y)
    shown = contrast_shown(path, kappa=2, kind="punitive", confidence_level=None)
    expected = path.fn / path.n1 > 2 * path.fp / path.n0
    np.testing.assert_array_equal(shown, expected)
    scheme = kappa_scheme(base_rate=0.4, kappa=3, kind="punitive")
    below = cap_shown(path, scheme, cap=0.05, order=1.0, confidence_level=None)
    index = scheme.index(path.fp / path.n0, path.fn / path.n1, order=1.0)
    np.testing.assert_array_equal(below, index < 0.05)


def test_no_harm_is_always_allowed(rng):
    path = threshold_path(*scored(rng, 12))
    for kind, end in (("punitive", -1), ("assistive", 0)):
        shown = contrast_shown(path, kappa=50, kind=kind, confidence_level=0.999)
        assert shown[end]
        assert allowed_in_sequence(shown, kind)[end]


def test_rare_harm_in_the_cap_is_bounded_by_its_rectangle():
    y = np.repeat([0.0, 1.0], [500, 300])
    score = np.concatenate([np.linspace(0, 0.5, 500), np.linspace(0.2, 1, 300)])
    path = threshold_path(score, y, np.array([0.499]))
    scheme = kappa_scheme(base_rate=0.375, kappa=3, kind="punitive")
    u = clopper_pearson(path.fp[1], 500, tail=0.025)
    v = clopper_pearson(path.fn[1], 300, tail=0.025)
    grid_u, grid_v = np.meshgrid(np.linspace(*u, 9), np.linspace(*v, 9))
    largest = float(scheme.index(grid_u, grid_v, order=1.0).max())
    for cap, expected in ((largest * 1.001, True), (largest * 0.999, False)):
        shown = cap_shown(path, scheme, cap=cap, order=1.0, confidence_level=0.95)
        assert shown[1] == expected


def test_group_thresholds_meet_the_limit_and_beat_a_coarse_search(rng):
    paths, rows = [], []
    for shift in (0.0, 0.7):
        y = (rng.random(200) < 0.3 + 0.3 * shift).astype(float)
        score = rng.normal(size=200) + y + shift
        rows.append((score, y))
        paths.append(threshold_path(score, y))
    cut, between, errors = between_thresholds(paths, SPEICHER, order=2.0, limit=1e-4)
    means, wrong = [], 0
    for (score, y), c in zip(rows, cut, strict=True):
        benefit = hard_benefits(y, (score > c).astype(int))
        means.append(benefit.mean())
        wrong += np.sum((score > c) != y)
    relative = np.array(means) / np.mean(means)
    assert between == pytest.approx(float(np.mean(kernel(relative, 2.0))))
    assert between <= 1e-4
    assert errors == wrong
    best = np.inf
    for a in range(0, len(paths[0].cut), 3):
        for b in range(0, len(paths[1].cut), 3):
            total = paths[0].errors[a] + paths[1].errors[b]
            if total >= best:
                continue
            pair = [
                ((p.n0 - p.fp[k]) + 2 * p.fp[k] + (p.n1 - p.fn[k])) / 200
                for p, k in zip(paths, (a, b), strict=True)
            ]
            if entropy_index(pair, order=2.0) <= 1e-4:
                best = total
    assert errors <= best


def test_cuts_lie_halfway_between_neighbouring_scores():
    path = threshold_path(np.array([0.1, 0.4, 0.4, 0.8]), np.array([0, 1, 0, 1]))
    np.testing.assert_allclose(path.cut, [-np.inf, 0.25, 0.6, np.inf])
