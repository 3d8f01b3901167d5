import numpy as np
import pytest
from scipy import optimize

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.inequality.index import entropy_gradient, entropy_index, kernel, kernel_slope

ORDERS = [-2.0, -1.0, 0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 7.0]


def printed_kernel(x, order):
    """Eq. (1) as printed."""
    if order == 0.0:
        return -np.log(x)
    if order == 1.0:
        return x * np.log(x)
    return (x**order - 1.0) / (order * (order - 1.0))


def test_worked_values_of_the_classical_orders():
    b = [1.0, 2.0, 3.0]
    assert entropy_index(b, order=2.0) == pytest.approx((2 / 3) / 4 / 2)
    theil = (0.5 * np.log(0.5) + 0 + 1.5 * np.log(1.5)) / 3
    assert entropy_index(b, order=1.0) == pytest.approx(theil)
    assert entropy_index(b, order=0.0) == pytest.approx(-np.log(0.5 * 1.5) / 3)


@pytest.mark.parametrize("order", ORDERS)
def test_index_equals_the_printed_equation(rng, order):
    b, w = rng.gamma(2.0, size=50) + 0.01, rng.uniform(0.5, 2.0, 50)
    mean = np.average(b, weights=w)
    expected = np.average(printed_kernel(b / mean, order), weights=w)
    assert entropy_index(b, order=order, weight=w) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("order", ORDERS)
def test_kernel_is_never_negative_and_zero_at_one(order):
    x = np.concatenate([np.linspace(0.01, 5, 200), 1 + np.logspace(-12, -1, 40)])
    assert np.all(kernel(x, order) >= 0.0)
    assert kernel(1.0, order) == 0.0


@pytest.mark.parametrize("limit", [0.0, 1.0])
@pytest.mark.parametrize("step", [1e-12, 1e-8, 1e-5])
def test_kernel_is_continuous_in_the_order_from_both_sides(limit, step):
    x = np.array([0.05, 0.5, 0.995, 1.001, 3.0])
    for order in (limit - step, limit + step):
        np.testing.assert_allclose(kernel(x, order), kernel(x, limit), rtol=1e-12 + 20 * step)


def test_kernel_keeps_its_digits_near_one():
    h = np.array([1e-9, -1e-7, 1e-5, -1e-3])
    for order in ORDERS:
        expected = h**2 / 2 * (1 + (order - 2) * h / 3 + (order - 2) * (order - 3) * h**2 / 12)
        np.testing.assert_allclose(kernel(1 + h, order), expected, rtol=2e-7)


def test_series_and_closed_form_meet():
    for order in ORDERS:
        edge = 1.0 + 0.02 / (1.0 + abs(order)) * np.array([0.999, 1.001])
        low, high = kernel(edge, order)
        assert high / low == pytest.approx((1.001 / 0.999) ** 2, rel=1e-3)


@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, 10.0])
def test_nothing_counts_one_over_the_order(order):
    assert kernel(0.0, order) == pytest.approx(1.0 / order)


def test_slope_is_the_derivative():
    for order in ORDERS:
        for x in (0.3, 1.0, 2.5):
            numeric = (kernel(x + 1e-6, order) - kernel(x - 1e-6, order)) / 2e-6
            assert kernel_slope(x, order) == pytest.approx(float(numeric), abs=1e-4, rel=1e-6)


@pytest.mark.parametrize("order", [0.0, 0.5, 1.0, 2.0])
def test_gradient_equals_a_numeric_one(rng, order):
    b = rng.gamma(2.0, size=6) + 0.1
    numeric = optimize.approx_fprime(b, lambda v: entropy_index(v, order=order), 1e-7)
    np.testing.assert_allclose(entropy_gradient(b, order=order), numeric, atol=1e-6)


def test_gradient_at_zero_is_finite_above_order_one():
    assert np.isfinite(entropy_gradient([0.0, 1.0], order=2.0)).all()
    with pytest.raises(
        InvalidParameterError, match="derivative of an index of order 1 is infinite"
    ):
        entropy_gradient([0.0, 1.0], order=1.0)


def test_negative_benefits_are_refused():
    with pytest.raises(
        InvalidParameterError, match=r"at least zero; the smallest is -0\.5, and 1 of 2"
    ):
        entropy_index([-0.5, 1.0])


@pytest.mark.parametrize("order", [0.0, -1.0])
def test_zero_benefits_need_a_positive_order(order):
    with pytest.raises(InvalidParameterError, match="infinite when a benefit is zero; 1 of 2"):
        entropy_index([0.0, 1.0], order=order)


def test_mean_of_zero_is_refused():
    with pytest.raises(InvalidParameterError, match="mean benefit must be positive"):
        entropy_index([0.0, 0.0])


def test_no_benefits_are_refused():
    with pytest.raises(InvalidParameterError, match="at least one value"):
        entropy_index([])


def test_weights_without_a_sum_are_refused():
    with pytest.raises(InvalidParameterError, match="positive sum"):
        entropy_index([1.0, 2.0], weight=[0.0, 0.0])


def test_order_must_be_a_number():
    with pytest.raises(InvalidParameterError, match="`order`"):
        entropy_index([1.0], order="2")
