import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.stats.binomial import clopper_pearson
from equipoise.stats.inequality.benefits import SPEICHER, hard_benefits
from equipoise.stats.inequality.cap import (
    allowed_in_sequence,
    between_thresholds,
    cap_shown,
    check_cap,
    contrast_shown,
    effective_kappa,
    index_cap,
    kappa_scheme,
    threshold_path,
)
from equipoise.stats.inequality.geometry import index_from_error_rates, index_from_mean
from equipoise.stats.inequality.index import entropy_index, kernel

# kind, base rate, kappa, high, then (cap, largest harmful rate) at orders 0, .5, 1, 2, 10; the
# letter is the binding corner. Minimum benefit 0.1.
TABLE = [
    (
        "punitive", 0.5, 10, 0.910,
        [(0.00111, 0.0016), (0.00111, 0.0024), (0.00111, 0.0033), (0.00111, 0.0055),
         (0.00112, 0.0239)], "ppppp",
    ),
    (
        "punitive", 0.4, 10, 0.865,
        [(0.00250, 0.0030), (0.00248, 0.0044), (0.00247, 0.0061), (0.00244, 0.0100),
         (0.00232, 0.0391)], "ppppp",
    ),
    (
        "punitive", 0.4, 3, 0.550,
        [(0.0407, 0.0488), (0.0393, 0.0700), (0.0381, 0.0931), (0.0361, 0.1388),
         (0.0375, 0.2835)], "ppppp",
    ),
    (
        "punitive", 0.1, 10, 0.190,
        [(0.0220, 0.0175), (0.0237, 0.0282), (0.0257, 0.0422), (0.0307, 0.0794),
         (0.0122, 0.0986)], "hhhhp",
    ),
    (
        "assistive", 0.25, 1, 0.700,
        [(0.0126, 0.0361), (0.0129, 0.0553), (0.0133, 0.0788), (0.0140, 0.1350),
         (0.0274, 0.5810)], "ppppp",
    ),
    (
        "assistive", 0.25, 5, 0.940,
        [(0.00036, 0.0010), (0.00036, 0.0016), (0.00037, 0.0022), (0.00037, 0.0037),
         (0.00040, 0.0178)], "ppppp",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "p", "kappa", "high", "rows", "corners"), TABLE)
def test_caps_and_largest_harm_equal_the_table(kind, p, kappa, high, rows, corners):
    scheme = kappa_scheme(base_rate=p, kappa=kappa, kind=kind)
    assert scheme.high == pytest.approx(high, abs=5e-4)
    for order, (cap, harm), corner in zip((0, 0.5, 1, 2, 10), rows, corners, strict=True):
        found = index_cap(scheme, order=order)
        assert found.cap == pytest.approx(cap, rel=5e-3, abs=5e-6)
        assert found.largest_harm == pytest.approx(harm, abs=6e-5)
        assert found.binding[0] == corner


@pytest.mark.parametrize("kind", ["punitive", "assistive"])
@pytest.mark.parametrize("youden", [0.0, 0.3])
def test_cap_is_the_smallest_index_of_a_forbidden_model(rng, kind, youden):
    u, v = np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201), indexing="ij")
    tried = 0
    while tried < 25:
        p, kappa = rng.uniform(0.1, 0.9), np.exp(rng.uniform(-0.7, 2.5))
        protected = 1 - p if kind == "punitive" else p
        if kappa * (1 - protected) / protected <= 1.01:
            continue
        tried += 1
        order = float(rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0, 8.0]))
        scheme = kappa_scheme(
            base_rate=p, kappa=kappa, kind=kind, minimum_benefit=rng.uniform(0.05, 0.95)
        )
        found = index_cap(scheme, order=order, youden=youden)
        index = scheme.index(u, v, order=order)
        forbidden = (v <= kappa * u) & (u + v <= 1 - youden + 1e-12 if youden else True)
        assert found.cap <= index[forbidden].min() + 1e-12
        assert found.cap == pytest.approx(index[forbidden].min(), rel=0.2, abs=1e-4)
        passing = (index < found.cap * (1 - 1e-9)) & (u + v <= 1 - youden if youden else True)
        assert u[passing].max(initial=0.0) <= found.largest_harm + 1e-9


def test_mean_benefit_beyond_the_limit_is_the_direct_constraint(rng):
    scheme = kappa_scheme(base_rate=0.35, kappa=4, kind="punitive", minimum_benefit=0.3)
    u, v = rng.uniform(size=(2, 500))
    mean = 1 - (1 - scheme.high) * 0.35 * (1 - v) - (1 - scheme.low) * 0.65 * u
    gap = (mean - scheme.mean_at_limit) / ((1 - scheme.high) * 0.35)
    np.testing.assert_allclose(gap, v - 4 * u, atol=1e-12)


@pytest.mark.parametrize("kind", ["punitive", "assistive"])
def test_moved_base_rate_changes_the_ratio_of_the_matrix(kind):
    scheme = kappa_scheme(base_rate=0.45, kappa=6, kind=kind)
    moved = effective_kappa(scheme, 0.6)
    again = kappa_scheme(base_rate=0.6, kappa=moved, kind=kind)
    assert again.high == pytest.approx(scheme.high)


def test_ratio_that_cannot_be_encoded_is_refused_with_the_ratio_that_can():
    with pytest.raises(
        InvalidParameterError,
        match=r"kappa = 5 cannot be encoded at a base rate of 0\.1.*has 0\.556.*above 9",
    ):
        kappa_scheme(base_rate=0.1, kappa=5, kind="punitive")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kappa": 0.0}, "`kappa` must be positive"),
        ({"kind": "neutral"}, "`kind` must be one of"),
        ({"minimum_benefit": 1.0}, "`minimum_benefit`"),
        ({"base_rate": 1.0}, "`base_rate`"),
    ],
)
def test_design_arguments_are_checked(changes, message):
    arguments = {"base_rate": 0.4, "kappa": 10.0, "kind": "punitive"} | changes
    with pytest.raises(InvalidParameterError, match=message):
        kappa_scheme(**arguments)


def people(counts):
    """True positives, false negatives, false positives, true negatives."""
    return CellMoments.from_rows(np.eye(4), np.zeros(4), count=np.array(counts))


@pytest.mark.parametrize(("kind", "u", "v"), [("punitive", 0.05, 0.5), ("assistive", 0.5, 0.05)])
def test_check_uses_the_error_rates_of_its_kind(kind, u, v):
    scheme = kappa_scheme(base_rate=0.5, kappa=3, kind=kind)
    found = check_cap(people([500, 500, 50, 950]), scheme, cap=0.1)
    assert (found.harmful_rate, found.benign_rate) == pytest.approx((u, v))
    assert found.contrast == pytest.approx(v - 3 * u)
    se = np.sqrt(v * (1 - v) / 1000 + 9 * u * (1 - u) / 1000)
    assert found.contrast_low == pytest.approx(found.contrast - 1.6448536 * se, abs=1e-6)
    index = entropy_index(np.ravel(scheme.matrix), weight=[950, 500, 50, 500])
    assert found.index == pytest.approx(index)
    assert not found.exact


def test_few_errors_get_exact_bounds():
    scheme = kappa_scheme(base_rate=0.5, kappa=3, kind="punitive")
    found = check_cap(people([50, 50, 1, 99]), scheme, cap=1.0)
    assert found.exact
    assert found.contrast_low < found.contrast
    assert found.index_shown


def test_clusters_keep_the_normal_bound():
    scheme = kappa_scheme(base_rate=0.5, kappa=3, kind="punitive")
    rows = np.repeat(np.eye(4), [20, 20, 2, 40], axis=0)
    clustered = CellMoments.from_rows(rows, np.zeros(82), cluster=np.arange(82) // 2)
    assert not check_cap(clustered, scheme, cap=1.0).exact


def test_check_needs_both_outcomes():
    scheme = kappa_scheme(base_rate=0.5, kappa=3, kind="punitive")
    with pytest.raises(InvalidParameterError, match="people of both outcomes"):
        check_cap(people([0, 0, 5, 5]), scheme, cap=1.0)


def test_equal_benefits_leave_the_index_unbounded():
    scheme = kappa_scheme(base_rate=0.5, kappa=3, kind="punitive")
    found = check_cap(people([0, 5, 0, 5]), scheme, cap=1.0)
    assert (found.index, found.index_high, found.index_shown) == (0.0, None, False)


def test_representations_refuse_what_has_no_index():
    with pytest.raises(InvalidParameterError, match="infinite when a benefit is zero"):
        index_from_error_rates(
            0.1, 0.1, base_rate=0.5, low=0.0, high=2.0, kind="accuracy", order=0.0
        )
    with pytest.raises(InvalidParameterError, match="mean benefit must be positive"):
        index_from_error_rates(1.0, 1.0, base_rate=0.5, low=0.0, high=0.0, kind="accuracy")
    with pytest.raises(InvalidParameterError, match="0 <= low < high"):
        index_from_mean(1.0, 0.5, low=0.5, high=0.5)
    with pytest.raises(InvalidParameterError, match="got `low` = 0"):
        index_from_mean(1.0, 0.5, low=0.0, high=2.0, order=0.0)


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
