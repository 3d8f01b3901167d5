"""Random tables for property tests: small, and as unkind as real ones."""

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

LABELS = ("a", "b", "c", "", " ", "NA", "<b>", "x & y=z", "é", '"; DROP TABLE x; --', "$\\frac{1}")
"""Group labels that break careless code: empty, null-like, markup, separators, SQL, maths."""

COLUMNS = ("g", "group by", '"; DROP TABLE x; --', "<b>", "n", "count(*)", "__eq_status", "Ünï")
"""Column names that break careless queries."""

ROLES = {
    "y_true": "y",
    "y_pred": "p",
    "y_score": "s",
    "treatment": "t",
    "effect_pred": "e",
    "features": ["s", "rival"],
}
"""Roles of the columns that every table has."""

NUMBERS = st.one_of(
    st.floats(-1e6, 1e6, allow_subnormal=False),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 1e-9, 1e9, 1e30, -1e30, 1e-30]),
)


@st.composite
def audit_tables(draw, *, min_rows=1, max_rows=40, wild=True):
    """Return a pyarrow table and the roles of an audit over it.

    `wild` tables may have odd labels and column names, missing and extreme numbers, clusters,
    weights and counts; tame ones are complete, with scores in [0, 1].
    """
    n = draw(st.integers(min_rows, max_rows))
    labels = draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=4, unique=True))
    names = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=2, unique=True))
    if not wild:
        labels, names = ["a", "b", "c"][: len(labels)], ["g", "h"][: len(names)]
    columns = {name: draw(_column(st.sampled_from(labels), n)) for name in names}
    columns["y"] = draw(_labels(n))
    columns["p"] = draw(_labels(n))
    columns["s"] = draw(_column(NUMBERS if wild else st.floats(0, 1, width=16), n))
    columns["t"] = draw(_labels(n))
    columns["e"] = draw(_column(st.floats(-1, 1, width=16), n))
    columns["rival"] = draw(_column(st.floats(0, 1, width=16), n))
    columns["rule"] = draw(_labels(n))
    columns["week"] = draw(_column(st.integers(1, 3), n))
    roles = {"group": names, **ROLES}
    if wild:
        columns |= draw(_burdens(n, roles))
    return pa.table(columns), roles


@st.composite
def informative_tables(draw, *, burdens=True):
    """Return a pyarrow table with enough rows for tests, and the roles of an audit over it.

    Scores take few values, so that rows repeat; `burdens` adds clusters or weights at times.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(300, 600))
    names = ["g", "h"][: draw(st.integers(1, 2))]
    groups = {name: rng.choice(["a", "b", "c"][: draw(st.integers(2, 3))], n) for name in names}
    gap = draw(st.sampled_from([0.0, 0.3])) * (groups["g"] == "a")
    columns = _people(rng, groups, gap, digits=draw(st.integers(1, 2)))
    roles = {"group": names, **ROLES}
    if burdens and draw(st.booleans()):
        roles |= _clustered(rng, columns)
    if burdens and draw(st.booleans()):
        roles |= _weighted(rng, columns)
    return pa.table(columns), roles


def three_groups(*, clustered):
    """Return one informative table of three groups that differ a little, and its roles."""
    rng = np.random.default_rng(8)
    group = rng.choice(["a", "b", "c"], 500)
    gap = 0.15 * (group == "a") + 0.05 * (group == "c")
    columns = _people(rng, {"g": group}, gap, digits=2)
    roles = {"group": ["g"], **ROLES}
    if clustered:
        roles |= _clustered(rng, columns) | _weighted(rng, columns)
    return pa.table(columns), roles


def _people(rng, groups, gap, *, digits):
    n = len(gap)
    score = rng.random(n).round(digits)
    t = rng.integers(0, 2, n)
    y = rng.random(n) < 0.2 + 0.4 * score + 0.2 * t - gap / 2
    return {
        **groups,
        "y": y.astype(int),
        "p": (score + gap + 0.2 * rng.normal(size=n) > 0.5).astype(int),
        "s": score,
        "t": t,
        "e": (0.2 + gap + 0.1 * rng.normal(size=n)).round(2),
        "rival": (0.5 * y + 0.5 * rng.random(n)).round(2),
        "rule": np.where(rng.random(n) < 0.3, y, rng.integers(0, 2, n)).astype(int),
        "income": rng.lognormal(size=n).round(2),
        "week": rng.integers(1, 5, n),
    }


def _clustered(rng, columns):
    n = len(columns["y"])
    columns["unit"] = rng.integers(0, n // 2, n)
    columns["t"] = columns["unit"] % 2
    return {"cluster": "unit"}


def _weighted(rng, columns):
    columns["weight"] = rng.choice([0.5, 1.0, 2.0], len(columns["y"]))
    return {"weight": "weight"}


@st.composite
def _burdens(draw, n, roles):
    """Return columns of missing values, clusters, weights and counts, noted in the roles."""
    columns = {}
    if draw(st.booleans()):
        columns["unit"] = draw(_column(st.sampled_from(["u1", "u2", "u3", "u4", "u5"]), n))
        roles["cluster"] = "unit"
    if draw(st.booleans()):
        weights = st.sampled_from([0.0, 1.0, 0.25, 3.5, 1e-6, 1e6])
        columns["weight"] = draw(_column(weights, n))
        roles["weight"] = "weight"
    if draw(st.booleans()):
        columns["times"] = draw(_column(st.integers(0, 4), n))
        roles["count"] = "times"
    if draw(st.booleans()):
        columns["s"] = draw(_column(st.none() | st.floats(0, 1), n))
        roles["missing"] = draw(st.sampled_from(["raise", "drop"]))
    return columns


def _column(values, n):
    return st.lists(values, min_size=n, max_size=n)


def _labels(n):
    """Return columns of zeros and ones, constant ones among them."""
    return st.one_of(
        _column(st.integers(0, 1), n),
        st.sampled_from([0, 1]).map(lambda label: [label] * n),
    )


def repeated(table, times):
    """Return each row of a pyarrow table as often as `times` says."""
    return table.take(np.repeat(np.arange(table.num_rows), times))
