"""Moments of higher order equal sums over units in memory, on every path of the scan."""

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.data.groups import subgroups
from equipoise.data.roles import Roles
from equipoise.data.scan import answer
from equipoise.data.table import Quantity, Table
from equipoise.moments import MONOMIALS, CellMoments
from support.asking import answer_of

ACCURACY = ((1, 0, 0, 1), (1, 1, 1, 1))
PPV = ((1, 0, 0, 0), (1, 0, 1, 0))


def rows(rng, n=60, clusters=9):
    return {
        "race": rng.choice(["a", "b", "c"], n),
        "sex": rng.choice(["f", "m"], n),
        "y": rng.integers(0, 2, n),
        "p": rng.integers(0, 2, n),
        "v": rng.exponential(size=n).round(3),
        "k": rng.integers(0, 4, n),
        "wt": rng.uniform(0.0, 2.0, n).round(2) * rng.integers(0, 2, n),
        "id": rng.integers(0, clusters, n),
    }


def opened(table, **roles):
    import pyarrow as pa

    engine = duckdb.connect()
    arrow = pa.table(table)  # noqa: F841
    engine.execute("CREATE TABLE people AS SELECT * FROM arrow")
    return Table(
        engine.table("people"), Roles(group=("race", "sex"), y_true="y", y_pred="p", **roles)
    )


def monomials(u, w):
    live = (w != 0).astype(float)
    terms = (live, w, w**2, w**3, w**4, w**5, u, u * u, u * w, u**3, u * u * w, u * w * w)
    assert len(terms) == len(MONOMIALS)
    return np.array([term.sum() for term in terms])


def cell_codes(table, cells):
    key = {pair: k for k, pair in enumerate(zip(*cells.labels, strict=True))}
    return np.array([key[pair] for pair in zip(table["race"], table["sex"], strict=True)])


@pytest.mark.parametrize(
    "roles", [{"weight": "wt"}, {"count": "k"}, {"weight": "wt", "count": "k"}]
)
@pytest.mark.parametrize("rate", [ACCURACY, PPV], ids=["accuracy", "ppv"])
def test_rates_of_labels_have_the_moments_of_their_rows(rng, roles, rate):
    table = rows(rng)
    cells = answer_of(opened(table, **roles).rate_sums(("y_true", "y_pred"), rate))
    combination = 3 - 2 * table["y"] - table["p"]
    u, w = (np.array(chosen, dtype=float)[combination] for chosen in rate)
    direct = CellMoments.from_rows(
        np.stack([u, w], axis=1),
        cell_codes(table, cells),
        n_cells=len(cells.n),
        weight=table["wt"] if "weight" in roles else None,
        count=table["k"] if "count" in roles else None,
        order=3,
    )
    same(cells, direct, higher="weight" in roles)
    many = table["k"] if "count" in roles else np.ones(len(u))
    defined = np.bincount(cell_codes(table, cells), weights=w * many, minlength=len(cells.n))
    np.testing.assert_allclose(cells.sums[:, 0], defined)


def same(cells, direct, *, higher=True):
    np.testing.assert_allclose(cells.total, direct.total, atol=1e-9)
    np.testing.assert_allclose(cells.product, direct.product, atol=1e-9)
    if not higher:
        # Counts say all of rows that are 0 or 1.
        assert cells.units is None
        return
    for name in ("n", "third", "fourth", "fifth"):
        np.testing.assert_allclose(
            getattr(cells.units, name), getattr(direct.units, name), atol=1e-9, err_msg=name
        )


@pytest.mark.parametrize(
    "roles",
    [{}, {"weight": "wt"}, {"count": "k"}, {"cluster": "id"}, {"cluster": "id", "weight": "wt"}],
)
def test_real_quantities_have_the_moments_of_their_units(rng, roles):
    import narwhals as nw

    table = rows(rng)
    quantities = [Quantity.of(nw.col("v")), Quantity.of(nw.lit(1.0))]
    cells = answer_of(opened(table, **roles).sums(quantities, {}, order=3))
    direct = CellMoments.from_rows(
        np.stack([table["v"], np.ones(len(table["v"]))], axis=1),
        cell_codes(table, cells),
        n_cells=len(cells.n),
        weight=table["wt"] if "weight" in roles else None,
        count=table["k"] if "count" in roles else None,
        cluster=table["id"] if "cluster" in roles else None,
        order=3,
    )
    same(cells, direct)
    if "cluster" in roles:
        np.testing.assert_array_equal(cells.cross.first, direct.cross.first)
        np.testing.assert_allclose(cells.cross.product, direct.cross.product, atol=1e-9)
        np.testing.assert_allclose(cells.cross.squares, direct.cross.squares, atol=1e-9)


def shared_sums(table, cells, *, inside):
    """Loop over clusters and subgroups: sides, links, touching and everyone."""
    groups = subgroups(cells)
    member = groups.membership.toarray()[cell_codes(table, cells)]
    u, w = table["p"] * table["wt"], np.ones(len(table["p"])) * table["wt"]
    totals = []
    for unit in np.unique(table["id"]):
        own = table["id"] == unit
        totals.append(
            [
                [
                    (values * own * mask).sum()
                    for values in (u, w)
                    for mask in (inside, member[:, j], member[:, j] & inside)
                ]
                + [(own & member[:, j]).any()]
                for j in range(member.shape[1])
            ]
        )
    t = np.array(totals).transpose(1, 0, 2)
    for j in range(len(t)):
        all_u, own_u, both_u, all_w, own_w, both_w, touches = t[j].T
        yield (
            [(own_u - both_u, own_w - both_w), (both_u, both_w), (all_u - both_u, all_w - both_w)],
            (all_u, all_w),
            touches.astype(bool),
        )


@pytest.mark.parametrize("reference", [(), (("race", "b"),)], ids=["everyone", "reference"])
def test_units_of_several_cells_are_summed_for_every_subgroup_and_what_is_outside(rng, reference):
    table = rows(rng)
    declared = opened(table, cluster="id", weight="wt").rate_sums(
        ("y_pred",), ((1, 0), (1, 1)), reference=reference
    )
    cells = answer_of(declared)
    inside = table["race"] == "b" if reference else np.ones(60, dtype=bool)
    assert len(cells.shared.labels) == len(subgroups(cells).names)
    for j, (sides, whole, touches) in enumerate(shared_sums(table, cells, inside=inside)):
        np.testing.assert_allclose(cells.shared.everyone, monomials(*whole), atol=1e-8)
        np.testing.assert_allclose(
            cells.shared.touching[j], monomials(*(x[touches] for x in whole)), atol=1e-8
        )
        for k in (0, 1, 2):
            u, w = (x[touches] for x in sides[k])
            w = np.where(np.abs(w) < 1e-9, 0.0, w)
            np.testing.assert_allclose(cells.shared.side[j, k], monomials(u, w), atol=1e-8)
        for k, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
            (ua, wa), (ub, wb) = sides[a], sides[b]
            linked = [ua * ub, ua * wb, wa * ub, wa * wb, wa**2 * wb**2]
            np.testing.assert_allclose(
                cells.shared.link[j, k], [x.sum() for x in linked], atol=1e-8
            )


def test_clusters_within_cells_need_no_sums_of_subgroups(rng):
    table = rows(rng)
    table["id"] = np.unique(np.char.add(table["race"], table["sex"]), return_inverse=True)[1]
    cells = answer_of(opened(table, cluster="id").rate_sums(("y_pred",), ((1, 0), (1, 1))))
    assert cells.cross is None
    assert cells.shared is None
    assert cells.units is not None


def test_one_cell_has_no_other_to_share_with(rng):
    table = opened(rows(rng), cluster="id").grouped_by(())
    cells = answer_of(table.rate_sums(("y_pred",), ((1, 0), (1, 1))))
    assert (cells.units.third.shape, cells.cross) == ((1, 2, 2, 2), None)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_cells_of_two_sites_add(seed):
    rng = np.random.default_rng(seed)
    table = rows(rng, clusters=8)
    first = table["id"] < 4
    parts = [{name: column[keep] for name, column in table.items()} for keep in (first, ~first)]

    def cells(part):
        return answer_of(opened(part, cluster="id").rate_sums(("y_pred",), ((1, 0), (1, 1))))

    whole, added = cells(table), cells(parts[0]) + cells(parts[1])
    same(added, whole)
    np.testing.assert_allclose(added.cross.squares, whole.cross.squares)
    assert added.shared.labels == whole.shared.labels
    assert added.shared.columns == whole.shared.columns
    for name in ("side", "link", "touching", "everyone"):
        np.testing.assert_allclose(getattr(added.shared, name), getattr(whole.shared, name))


def test_declarations_of_several_metrics_keep_their_own_moments(rng):
    table = rows(rng)
    rates = (ACCURACY, PPV)
    together = opened(table, cluster="id")
    merged = answer([together.rate_sums(("y_true", "y_pred"), rate) for rate in rates])
    for cells, rate in zip(merged, rates, strict=True):
        alone = answer_of(opened(table, cluster="id").rate_sums(("y_true", "y_pred"), rate))
        same(cells, alone)
        np.testing.assert_allclose(cells.shared.side, alone.shared.side)
