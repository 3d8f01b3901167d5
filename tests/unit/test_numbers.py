import pytest

from equipoise._numbers import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (0.12345, "0.123"),
        (999.4, "999"),
        (999.7, "1,000"),
        (-1234.5, "-1,234"),
        (54321.0, "54,321"),
        (0.00012, "0.00012"),
        (-1.0349e-05, "-0.0000103"),
        (0.00099996, "0.001"),
        (99.96, "100"),
        (123456.7, "123,457"),
        (1e6, "1,000,000"),
        (1.034e-12, "1.03e-12"),
        (1.034e41, "1.03e+41"),
    ],
)
def test_numbers_have_three_digits_or_all_before_the_point(value, text):
    assert number(value) == text
