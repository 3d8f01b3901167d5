"""Laws of a top share: names, order, outcomes and units of a score decide nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq

WHOLE = {
    "accuracy": "accuracy",
    "fairness": "selection_rate",
    "accuracy_of": "population",
    "inference": "analytic",
    "min_group_size": 10,
}


def coarse(seed, levels):
    """A table with scores of a few values."""
    rng = np.random.default_rng(seed)
    n = 240
    group = rng.choice(["a", "b"], size=n)
    x = rng.normal(size=n) + 0.4 * (group == "a")
    return {
        "g": group,
        "y": (x + rng.normal(size=n) > 0).astype(int),
        "s": np.round(x * levels / 4),
        "c": np.round((x + 0.5 * rng.normal(size=n)) * levels / 4),
    }


def numbers(table, capacity, *, g="g", y="y", s="s", c="c", higher="a", **options):
    audit = eq.Audit(table, group=g, y_true=y, y_score=s)
    result = audit.improvability(
        c, capacity=capacity, higher_group=f"{g}={higher}", **(WHOLE | options)
    )
    shares = result.details["shares"]
    assert shares["status_quo"] == pytest.approx(capacity, abs=1e-9)
    assert shares["candidate"] == pytest.approx(capacity, abs=1e-9)
    return [result.joint.p_value] + [
        value for f in result.findings for value in (f.estimate, f.ci.low, f.ci.high)
    ]


designs = st.tuples(
    st.integers(0, 2**20), st.sampled_from([3, 4, 10]), st.sampled_from([0.2, 0.25, 0.5, 0.613])
)


@settings(max_examples=12, deadline=None)
@given(designs)
def test_names_order_and_transforms_do_not_matter(design):
    seed, levels, capacity = design
    table = coarse(seed, levels)
    expected = numbers(table, capacity)
    rng = np.random.default_rng(seed)
    order = rng.permutation(240)
    shuffled = {name: values[order] for name, values in table.items()}
    np.testing.assert_allclose(numbers(shuffled, capacity), expected, rtol=1e-8, atol=1e-12)
    renamed = table | {"g": np.where(table["g"] == "a", "z", "b")}
    np.testing.assert_allclose(
        numbers(renamed, capacity, higher="z"), expected, rtol=1e-8, atol=1e-12
    )
    columns = {{"g": "zz", "y": "a", "s": "q", "c": "k"}[k]: v for k, v in table.items()}
    np.testing.assert_allclose(
        numbers(columns, capacity, g="zz", y="a", s="q", c="k"), expected, rtol=1e-8, atol=1e-12
    )
    moved = table | {"s": 3.0 + 7.0 * table["s"], "c": np.exp(table["c"] / 3.0)}
    np.testing.assert_allclose(numbers(moved, capacity), expected, rtol=1e-8, atol=1e-12)


@settings(max_examples=6, deadline=None)
@given(designs)
def test_duplicated_rows_halve_the_variance(design):
    seed, levels, capacity = design
    table = coarse(seed, levels)
    twice = {name: np.repeat(values, 2) for name, values in table.items()}
    one, two = (numbers(t, capacity, cutoff="fixed") for t in (table, twice))
    np.testing.assert_allclose([one[1], one[4]], [two[1], two[4]], rtol=1e-9, atol=1e-12)
    assert two[1] - two[2] == pytest.approx((one[1] - one[2]) / np.sqrt(2), rel=1e-6)


@settings(max_examples=6, deadline=None)
@given(designs)
def test_who_is_selected_does_not_depend_on_the_outcome(design):
    seed, levels, capacity = design
    table = coarse(seed, levels)
    audit = [
        eq.Audit(table | {"y": y}, group="g", y_true="y", y_score="s").improvability(
            "c", capacity=capacity, **WHOLE
        )
        for y in (table["y"], 1 - table["y"])
    ]
    assert audit[0].details["shares"] == audit[1].details["shares"]
    one, two = (result.findings[1].estimate for result in audit)
    assert one == pytest.approx(two, abs=1e-12)
