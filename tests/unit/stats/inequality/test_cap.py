import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.stats.inequality.cap import check_cap, effective_kappa, index_cap, kappa_scheme
from equipoise.stats.inequality.geometry import index_from_error_rates, index_from_mean
from equipoise.stats.inequality.index import entropy_index

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
