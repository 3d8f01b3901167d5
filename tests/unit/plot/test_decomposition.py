import numpy as np
import pytest

import equipoise as eq
from equipoise.design import benefit_design
from equipoise.exceptions import InvalidParameterError
from equipoise.plot.decomposition import error_plane, index_surface, threshold_curve
from equipoise.stats.inequality.geometry import domain_triangle


@pytest.fixture(scope="module")
def compas():
    return eq.Audit(
        eq.datasets.load_compas_counts(),
        group="race",
        count="count",
        y_true="two_year_recid",
        y_pred="high_risk",
        y_score="decile_score",
    )


@pytest.fixture(scope="module")
def capped(compas):
    return compas.inequality(benefit_design(0.45, 3, "punitive", order=0.5))


def drawn(axes):
    axes.figure.canvas.draw()
    return [line.get_xydata() for line in axes.lines]


def test_bars_are_the_contributions_on_a_linear_axis(compas):
    result = compas.inequality("speicher", order=2)
    axes = result.plot()
    drawn(axes)
    records = result.details["contributions"]
    small = [record for record in records if record["n"] < 30]
    records = sorted(
        (record for record in records if record["n"] >= 30),
        key=lambda record: -record["within"]["estimate"],
    )
    widths = [bar.get_width() for bar in axes.patches]
    assert axes.get_xscale() == "linear"
    expected = [record[part]["estimate"] for record in records for part in ("within", "between")]
    assert widths[: 2 * len(records)] == pytest.approx(expected, rel=1e-6)
    names = [text.get_text() for text in axes.get_yticklabels()]
    *names, folded = names
    assert names == [r["group"].replace("=", ": ") for r in records]
    assert len(small) == 1
    assert folded == "1 group of fewer than 30 rows: see the table"
    intervals = [line.get_xdata() for line in axes.lines]
    assert intervals[0] == pytest.approx(
        [records[0]["within"]["ci_low"], records[0]["within"]["ci_high"]]
    )


def test_one_group_has_one_bar(rng):
    rows = {"y": rng.integers(2, size=50), "decision": rng.integers(2, size=50)}
    result = eq.Audit(rows, y_true="y", y_pred="decision").inequality("speicher")
    assert len(result.plot().patches) == 1


@pytest.mark.parametrize("kind", ["punitive", "assistive"])
def test_plane_has_the_line_of_kappa_the_roc_and_the_model(compas, kind):
    result = compas.inequality(benefit_design(0.45, 3, kind, order=0.5))
    lines = drawn(error_plane(result))
    np.testing.assert_allclose(lines[0], [[0, 0], [1 / 3, 1]])
    rates = result.details["error_rates"]
    model = (rates["fpr"], rates["fnr"]) if kind == "punitive" else (rates["fnr"], rates["fpr"])
    np.testing.assert_allclose(lines[-1], [model])
    np.testing.assert_allclose(lines[2].mean(axis=0), model, atol=0.005)
    assert len(lines[1]) == len(result.details["roc"])


def test_cap_contour_separates_the_forbidden_models(capped):
    axes = error_plane(capped)
    drawn(axes)
    contour = axes.collections[1].get_paths()[0].vertices
    assert np.all(contour[:, 1] >= 3 * contour[:, 0] - 0.02)


def test_surface_stays_inside_its_triangle_and_shows_the_turning_points():
    axes = index_surface(low=0.5, high=1.5, order=0.5, kind="punitive")
    lines = drawn(axes)
    np.testing.assert_allclose(lines[0][:3], domain_triangle(low=0.5, high=1.5))
    assert len(lines) == 2
    assert "share not selected" in axes.get_ylabel()
    falling = drawn(index_surface(low=0.0, high=0.9, order=0.5))
    assert len(falling) == 1


def test_the_corner_where_nobody_has_anything_does_not_set_the_scale():
    axes = index_surface(low=0.0, high=0.8, order=1.0)
    colorbar = next(other for other in axes.figure.axes if other is not axes)
    # The smallest mean on the grid is .8 / 80: the index there is that of one in eighty.
    assert colorbar.get_ylim()[1] < 6.0


def test_threshold_curve_shades_where_the_ratio_holds(capped):
    axes = threshold_curve(capped)
    lines = drawn(axes)
    roc = [p for p in capped.details["roc"] if p["threshold"] is not None]
    np.testing.assert_allclose(lines[0][:, 0], [p["threshold"] for p in roc])
    assert lines[1][0, 1] == pytest.approx(capped.details["cap"]["index"]["cap"])


def test_pictures_say_what_they_need(compas, rng):
    plain = compas.inequality("speicher")
    with pytest.raises(InvalidParameterError, match="needs a ratio of errors"):
        error_plane(plain)
    rows = {"y": rng.integers(2, size=90), "decision": rng.integers(2, size=90)}
    unscored = eq.Audit(rows, y_true="y", y_pred="decision").inequality(
        benefit_design(0.5, 3, "punitive")
    )
    with pytest.raises(InvalidParameterError, match="needs a score"):
        threshold_curve(unscored)
    with pytest.raises(InvalidParameterError, match="InequalityDetails is needed"):
        error_plane(compas.disparity("ppv"))
