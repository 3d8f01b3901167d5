"""Misprints of "Utility as fair pricing": each test is named after what it corrects.

Printed formulas are written out here, beside brute force over people or numeric derivatives; the
package is compared with the latter. G-n is the number of the correction in the methods page.
"""

import numpy as np
import pytest
from scipy import optimize

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.inequality.benefits import BenefitMoments
from equipoise.stats.inequality.cap import index_cap, kappa_scheme
from equipoise.stats.inequality.decomposition import decompose
from equipoise.stats.inequality.geometry import (
    cost_free_mean,
    deviation_slope,
    domain_parallelogram,
    error_cost,
    index_from_error_rates,
    index_from_mean,
    is_monotone,
    level_shares,
    mean_domain,
    turning_point,
    turning_point_curvature,
    two_level_index,
    two_level_peak,
)
from equipoise.stats.inequality.index import entropy_index, kernel

ORDERS = [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0]


def f(x, order):
    """Eq. (1) as printed."""
    if order == 0.0:
        return -np.log(x)
    if order == 1.0:
        return x * np.log(x)
    return (x**order - 1.0) / (order * (order - 1.0))


def secant(low, high, order):
    """Eq. (5) as printed: A and beta."""
    beta = (f(high, order) - f(low, order)) / (high - low)
    return f(high, order) - high * beta, beta


def levels_index(low, high, shares, order):
    return entropy_index([low, high, 1.0], order=order, weight=[float(s) for s in shares])


def designs(rng, size):
    """Random punitive and assistive designs whose ratio can be encoded."""
    found = []
    while len(found) < size:
        kind = str(rng.choice(["punitive", "assistive"]))
        p, kappa = rng.uniform(0.05, 0.95), np.exp(rng.uniform(-0.5, 3.0))
        try:
            scheme = kappa_scheme(
                base_rate=p, kappa=kappa, kind=kind, minimum_benefit=rng.uniform(0.02, 0.98)
            )
        except InvalidParameterError:
            continue
        found.append((scheme, float(rng.choice([0.0, 0.3, 0.5, 0.8, 1.0, 2.0]))))
    return found


def test_g1_share_of_negatives_is_one_minus_the_base_rate_not_its_negative(rng):
    for order in ORDERS:
        p, u, v = rng.uniform(0.2, 0.8, 3)
        low, high = 0.4, 1.7
        shares = [p * v, (1 - p) * u, 1 - p * v - (1 - p) * u]
        right = levels_index(low, high, shares, order)
        found = index_from_error_rates(
            u, v, base_rate=p, low=low, high=high, kind="accuracy", order=order
        )
        assert found == pytest.approx(right, rel=1e-9)
        q = p - 1.0
        mu = 1 + (low - 1) * p * v + (high - 1) * q * u
        printed = (f(low, order) * p * v + f(high, order) * q * u - f(mu, order)) / mu**order
        assert abs(printed - right) > 1e-3


def test_g2_within_weights_are_not_always_smallest_at_order_one_half():
    b = np.array([0.02] * 10 + [1.0] * 90)
    group = np.array([0] * 10 + [1] * 90)
    grid = np.linspace(0.01, 0.99, 99)
    relative, share = np.array([0.02, 1.0]) / b.mean(), np.array([0.1, 0.9])
    sums = [np.sum(share * relative**a) for a in grid]
    assert abs(grid[np.argmin(sums)] - 0.5) > 0.05
    half = decompose(BenefitMoments.from_rows(b, group, order=0.5))
    weights = np.sum(half.share * half.relative_mean**0.5)
    assert weights == pytest.approx(1 - half.between / 4)


def test_g3_order_two_is_consistent_in_the_cost_not_in_the_benefit():
    eta = 0.1

    def best(loss):
        found = optimize.minimize_scalar(
            lambda p: eta * loss(p) + (1 - eta) * loss(1 - p), bounds=(1e-9, 1 - 1e-9)
        )
        return found.x

    assert best(lambda b: f(b, 0.0)) == pytest.approx(eta, abs=1e-4)
    assert best(lambda b: f(b, 2.0)) == pytest.approx(1 - eta, abs=1e-4)
    assert best(lambda b: f(1 - b, 2.0)) == pytest.approx(eta, abs=1e-4)


def test_g4_expected_loss_is_the_mean_kernel_not_the_mean_benefit(rng):
    p, y = rng.uniform(0.05, 0.95, 200), rng.integers(2, size=200)
    benefit = np.where(y == 1, p, 1 - p)
    log_loss = np.mean(-np.where(y == 1, np.log(p), np.log(1 - p)))
    assert np.mean(f(benefit, 0.0)) == pytest.approx(log_loss)
    assert entropy_index(benefit, order=0.0) == pytest.approx(log_loss + np.log(benefit.mean()))
    assert abs(benefit.mean() - log_loss) > 0.01


@pytest.mark.parametrize("kind", ["accuracy", "punitive", "assistive"])
def test_g5_domain_at_a_known_base_rate_has_two_pairs_of_parallel_sides(kind):
    corners = domain_parallelogram(0.3, low=0.2, high=0.8, kind=kind)
    sides = np.diff(np.vstack([corners, corners[:1]]), axis=0)
    np.testing.assert_allclose(sides[0], -sides[2], atol=1e-12)
    np.testing.assert_allclose(sides[1], -sides[3], atol=1e-12)


def test_g6_a_turning_point_in_the_mean_is_always_a_maximum(rng):
    for _ in range(200):
        low, high = np.sort(rng.uniform(0.0, 3.0, 2))
        order, rate = rng.uniform(0.1, 3.0), rng.uniform(0.0, 1.0)
        peak = turning_point(rate, low=low, high=high, order=order)
        if peak is None:
            continue
        h = 1e-4 * peak
        left, mid, right = index_from_mean(
            [peak - h, peak, peak + h], rate, low=low, high=high, order=order
        )
        curvature = turning_point_curvature(rate, low=low, high=high, order=order)
        assert curvature < 0.0
        assert abs(right - left) < 0.01 * abs(curvature) * h**2 + 1e-13
        assert (right - 2 * mid + left) / h**2 == pytest.approx(curvature, rel=1e-2)
    for order in (0.5, 1.0, 2.0):
        assert turning_point(0.5, low=0.0, high=0.9, order=order) is None
        assert turning_point_curvature(0.5, low=0.0, high=0.9, order=order) is None
        assert turning_point(0.5, low=0.0, high=1.0, order=order) is None
        falling = index_from_mean(np.linspace(0.5, 0.94, 20), 0.5, low=0.0, high=0.9, order=order)
        assert np.all(np.diff(falling) < 0.0)


@pytest.mark.parametrize(
    ("low", "high", "sign"), [(0.3, 0.8, 1), (0.3, 1.5, -1), (1.2, 1.9, 1), (0.3, 1.0, 0)]
)
def test_g7_index_rises_in_the_unit_rate_when_both_levels_exceed_one(low, high, sign):
    mu = 1.3 if low > 1 else 0.7
    first, second = index_from_mean(mu, [0.2, 0.3], low=low, high=high, order=0.5)
    assert np.sign(np.round(second - first, 14)) == sign


def test_g8_the_index_at_the_limiting_mean_is_not_one_number():
    scheme = kappa_scheme(base_rate=0.4, kappa=3, kind="punitive")
    at_limit = [float(scheme.index(u, 3 * u, order=0.5)) for u in (0.0, 0.1, 0.3)]
    assert max(at_limit) > 2 * min(at_limit)
    # A cap at a larger one of these values lets a forbidden model through.
    assert float(scheme.index(0.01, 0.02, order=0.5)) < max(at_limit)
    assert index_cap(scheme, order=0.5).cap <= min(at_limit) + 1e-15


def test_g9_limiting_mean_has_one_factor_of_the_other_class(rng):
    scheme = kappa_scheme(base_rate=0.3, kappa=2, kind="assistive")
    p, q = 0.3, 0.7
    u, v = rng.uniform(size=(2, 2000))
    shares = level_shares(v, u, base_rate=p, kind="assistive")
    mu = scheme.low * shares[0] + scheme.high * shares[1] + shares[2]
    assert scheme.mean_at_limit == pytest.approx(p + q * scheme.high)
    np.testing.assert_array_equal(mu > scheme.mean_at_limit, v > 2 * u)
    assert np.any((mu > p + q * scheme.high * q) != (v > 2 * u))


def test_g10_any_minimum_benefit_encodes_the_ratio_but_the_ratio_must_exceed_one(rng):
    violated = 0
    for scheme, _ in designs(rng, 200):
        effective = scheme.kappa * (1 - scheme.protected) / scheme.protected
        assert effective > 1.0
        assert scheme.low < scheme.high
        assert scheme.high > 1 - 1 / effective
        violated += scheme.low >= 1 - 1 / effective
    assert violated > 0
    with pytest.raises(InvalidParameterError, match="cannot be encoded"):
        kappa_scheme(base_rate=0.1, kappa=5, kind="punitive")


def test_g11_printed_condition_for_a_falling_index_never_holds(rng):
    for scheme, order in designs(rng, 100):
        at_zero = turning_point(0.0, low=scheme.low, high=scheme.high, order=order)
        assert at_zero > mean_domain(0.0, low=scheme.low, high=scheme.high)[0]


def test_g11_corrected_condition_agrees_with_a_grid(rng):
    u, v = np.meshgrid(np.linspace(0, 1, 161), np.linspace(0, 1, 161), indexing="ij")
    kinds = set()
    for scheme, order in designs(rng, 60):
        if scheme.kind == "punitive":
            shares = level_shares(u, v, base_rate=scheme.base_rate, kind="punitive")
        else:
            shares = level_shares(v, u, base_rate=scheme.base_rate, kind="assistive")
        mu = scheme.low * shares[0] + scheme.high * shares[1] + shares[2]
        slope = (
            index_from_mean(
                mu * (1 + 1e-7), shares[2], low=scheme.low, high=scheme.high, order=order
            )
            - index_from_mean(
                mu * (1 - 1e-7), shares[2], low=scheme.low, high=scheme.high, order=order
            )
        ) / (2e-7 * mu)
        stated = is_monotone(
            base_rate=scheme.base_rate,
            low=scheme.low,
            high=scheme.high,
            kind=scheme.kind,
            order=order,
        )
        kinds.add(stated)
        if abs(slope.max()) > 1e-5:
            assert stated == (slope.max() < 0.0)
    assert kinds == {True, False}


@pytest.mark.parametrize("order", [0.5, 0.999999, 1.0, 1.000001, 2.0])
def test_g12_binary_formula_for_positive_orders_excludes_order_one(order):
    mu = 0.6
    found = two_level_index(1 - mu, 0.0, order=order)
    if order == 1.0:
        assert found == pytest.approx(-np.log(mu))
    else:
        printed = (mu ** (1 - order) - 1) / (order * (order - 1))
        assert found == pytest.approx(printed, rel=1e-5)


@pytest.mark.parametrize("b", [0.1, 0.6, 1.5, 8.0])
def test_g13_two_level_peak_falls_in_the_order_below_one_and_rises_above(b):
    orders = np.linspace(-2, 4, 25)
    peaks = np.array([two_level_peak(b, order=a) for a in orders])
    steps = np.diff(peaks)
    assert np.all(steps < 0.0) if b < 1 else np.all(steps > 0.0)
    for order in (-1.0, 0.0, 0.5, 1.0, 2.0):
        found = optimize.minimize_scalar(
            lambda mass, a=order: -float(two_level_index(mass, b, order=a)),
            bounds=(0.0, 1.0),
            options={"xatol": 1e-10},
        )
        assert two_level_peak(b, order=order) == pytest.approx(1 - found.x, abs=1e-5)
        assert two_level_peak(b, order=order) == pytest.approx(
            1 - two_level_peak(1 / b, order=order)
        )
    assert two_level_peak(1.0) == 0.5


def test_g14_slope_of_the_two_level_index_at_order_one_has_the_opposite_sign():
    b, mu, h = 0.4, 0.8, 1e-6

    def index(m):
        return float(two_level_index((1 - m) / (1 - b), b, order=1.0))

    numeric = (index(mu + h) - index(mu - h)) / (2 * h)
    printed = b * np.log(b) / ((1 - b) * mu**2) + 1 / mu
    assert numeric == pytest.approx(-printed, rel=1e-6)


def test_g15_logarithm_of_the_mean_is_divided_by_the_mean():
    lam, p_high, b = 0.6, 0.3, 2.0
    mu = lam + b * p_high
    printed = -(lam + b * p_high) * np.log(mu)
    right = -np.log(mu)
    index = two_levels = entropy_index([0.0, 1.0, b], weight=[1 - lam - p_high, lam, p_high])
    assert two_levels == pytest.approx((1 - lam / mu) * np.log(b) + right)
    assert index != pytest.approx((1 - lam / mu) * np.log(b) + printed)


@pytest.mark.parametrize("order", [0.5, 1.0, 2.0])
def test_g16_the_minimum_for_high_benefits_below_one_lies_at_a_negative_mean(order):
    b, lam = 0.7, 0.5
    location = lam * np.log(b) if order == 1.0 else None
    if location is None:
        location = order * (b ** (order - 1) - 1) * lam / ((order - 1) * b ** (order - 1))
    assert location < 0.0
    assert turning_point(lam, low=0.0, high=b, order=order) is None
    np.testing.assert_allclose(
        turning_point(lam, low=0.0, high=1 / b, order=order),
        order * ((1 / b) ** (order - 1) - 1) * lam / ((order - 1) * (1 / b) ** (order - 1))
        if order != 1.0
        else lam * np.log(1 / b),
    )


def printed_slope(b, order):
    """h- of Eq. (28) as printed."""
    if order == 1.0:
        return (b - 1) * np.log(b) / (b - 1 + np.log(b))
    power = b ** (order - 1)
    return order * (b - 1) * (power - 1) / (((order - 1) * (b - 1) + 1) * power - 1)


def test_g17_an_extra_false_negative_never_lowers_the_index(rng):
    assert printed_slope(5.0, 1.0) == pytest.approx(1.148, abs=5e-4)
    assert deviation_slope(5.0, error="low", order=1.0) == pytest.approx(0.617, abs=5e-4)
    for order in (0.5, 1.0, 2.0):
        assert deviation_slope(2.0, error="low", order=order) == pytest.approx(
            printed_slope(2.0, order)
        )
    for _ in range(200):
        b, order, lam = rng.uniform(1.01, 6), rng.uniform(0.1, 4), rng.uniform(0.05, 1)
        low, high = mean_domain(lam, low=0.0, high=b)
        mu = rng.uniform(low, high)
        assert deviation_slope(b, error="low", order=order) < 1.0
        assert error_cost(mu, lam, low=0.0, high=b, error="low", order=order) > 0.0
        extra = error_cost(mu, lam, low=0.0, high=b, error="high", order=order)
        assert (extra < 0.0) == (mu > deviation_slope(b, error="high", order=order) * lam)
    with pytest.raises(InvalidParameterError, match="needs `high` > 1 and `order` > 0"):
        deviation_slope(0.9, error="low")


@pytest.mark.parametrize("order", [0.5, 2.0, 3.0])
def test_g18_cost_of_an_extra_error_is_divided_by_the_mean_to_the_order(order):
    b, mu, lam = 2.5, 1.1, 0.7
    delta, power = b - 1, b ** (order - 1)
    top = ((1 + (1 - order) * delta) * power - 1) * mu + order * delta * (power - 1) * lam
    right = top / (order * (order - 1) * mu**order)
    printed = top / (order * (order - 1) * mu ** (order - 1))
    n = 1e7
    change = n * (
        index_from_mean(mu + delta / n, lam - 1 / n, low=0.0, high=b, order=order)
        - index_from_mean(mu, lam, low=0.0, high=b, order=order)
    )
    assert right / mu == pytest.approx(float(change), rel=1e-4)
    assert printed / mu != pytest.approx(float(change), rel=1e-2)
    assert error_cost(mu, lam, low=0.0, high=b, error="high", order=order) == pytest.approx(
        right / mu
    )


def test_g19_punitive_matrix_gives_the_lowest_benefit_to_false_positives():
    p, u, v, low, high = 0.4, 0.3, 0.2, 0.1, 0.8
    worst, other, unit = level_shares(u, v, base_rate=p, kind="punitive")
    assert worst == pytest.approx((1 - p) * u)
    assert other == pytest.approx(p * (1 - v))
    people = entropy_index(
        [1.0, 1.0, low, high], weight=[(1 - p) * (1 - u), p * v, (1 - p) * u, p * (1 - v)]
    )
    found = index_from_error_rates(u, v, base_rate=p, low=low, high=high, kind="punitive")
    assert found == pytest.approx(people)
    assert unit == pytest.approx(1 - worst - other)


@pytest.mark.parametrize("order", [-1.0, 0.3, 0.5, 2.0])
def test_g20_last_line_of_equation_38(order):
    b, phi, lam = 0.8, 0.4, 0.6
    hat = (1 - phi) / (1 - phi**order)
    right = order * ((1 - hat * b ** (1 - order) - b + hat * b) * lam + (1 - hat) * b) / (order - 1)
    printed = (
        order
        * ((b ** (1 - order) - hat * b ** (1 - order) - b + hat) * lam + (1 - hat) * b)
        / (order - 1)
    )
    combined = (order * (b + (1 - b) * lam) - order * hat * b * (1 + (b**-order - 1) * lam)) / (
        order - 1
    )
    found = turning_point(lam, low=phi * b, high=b, order=order)
    assert found == pytest.approx(right)
    assert found == pytest.approx(combined)
    assert found != pytest.approx(printed, rel=1e-3)


def test_g21_only_the_ratio_of_the_levels_is_near_one():
    scheme = kappa_scheme(base_rate=0.4, kappa=3, kind="punitive", minimum_benefit=0.9)
    effective = 3 * 0.4 / 0.6
    epsilon = (effective - 1) * (1 - scheme.high) / scheme.high
    assert scheme.low / scheme.high == pytest.approx(1 - epsilon)
    assert scheme.high != pytest.approx(1 - epsilon, abs=1e-3)


def test_g22_index_never_rises_on_the_whole_domain(rng):
    for scheme, order in designs(rng, 100):
        at_zero = turning_point(0.0, low=scheme.low, high=scheme.high, order=order)
        assert at_zero < mean_domain(0.0, low=scheme.low, high=scheme.high)[1]


@pytest.mark.parametrize("order", [0.5, 2.0])
def test_g23_lower_end_of_the_domain_starts_at_the_lowest_benefit(order):
    b, phi, lam = 0.8, 0.4, 0.6
    hat = (1 - phi) / (1 - phi**order)
    displayed = ((b + (1 - b) * lam) - order * hat * b * (1 + (b**-order - 1) * lam)) / (order - 1)
    peak = turning_point(lam, low=phi * b, high=b, order=order)
    lowest, highest = mean_domain(lam, low=phi * b, high=b)
    assert lowest == pytest.approx(phi * b + (1 - phi * b) * lam)
    assert displayed == pytest.approx(peak - float(highest))
    assert displayed != pytest.approx(peak - float(lowest))


def test_g24_indicator_of_order_one_is_subtracted():
    low, high, mu, lam, n = 0.5, 1.6, 1.05, 0.7, 1e7
    intercept, beta = secant(low, high, 1.0)
    for added, name in ((low, "low"), (high, "high")):
        change = n * (
            index_from_mean(mu + (added - 1) / n, lam - 1 / n, low=low, high=high)
            - index_from_mean(mu, lam, low=low, high=high)
        )
        ratio = f(added, 1.0) / (added - 1)
        rest = (intercept + beta) * lam - intercept
        right = (added - 1) * ((ratio - beta - 1) * mu + rest) / mu**2
        printed = (added - 1) * ((ratio - beta + 1) * mu + rest) / mu**2
        assert right == pytest.approx(float(change), rel=1e-4)
        assert printed != pytest.approx(float(change), rel=1e-2)
        assert error_cost(mu, lam, low=low, high=high, error=name) == pytest.approx(right)


@pytest.mark.parametrize("order", ORDERS)
def test_g25_cost_in_terms_of_the_cost_free_mean_is_divided_by_a_power_of_the_mean(order):
    low, high, lam, mu = 0.5, 1.6, 0.7, 1.05
    edge = cost_free_mean(lam, low=low, high=high, error="high", order=order)
    _, beta = secant(low, high, order)
    by_mean = f(high, order) / (high - 1) - order * beta - float(order == 1.0)
    right = (high - 1) * by_mean * (mu - edge) / mu ** (order + 1)
    assert error_cost(mu, lam, low=low, high=high, error="high", order=order) == pytest.approx(
        right, rel=1e-9
    )
    # Independent of the unit rate at order 0, or when a level is one: either is enough.
    assert cost_free_mean(0.1, low=low, high=1.0, error="low", order=2.0) == pytest.approx(
        cost_free_mean(0.9, low=low, high=1.0, error="low", order=2.0)
    )
    assert cost_free_mean(0.1, low=low, high=high, error="low", order=0.0) == pytest.approx(
        cost_free_mean(0.9, low=low, high=high, error="low", order=0.0)
    )
    assert error_cost(mu, lam, low=low, high=1.0, error="high", order=order) == pytest.approx(0.0)


def test_kernel_differs_from_the_printed_one_by_a_line_only():
    x = np.array([0.2, 0.9, 2.0])
    for order in ORDERS:
        slope = 1.0 if order == 1.0 else 1.0 / (order - 1.0)
        np.testing.assert_allclose(kernel(x, order), f(x, order) - slope * (x - 1), atol=1e-12)
