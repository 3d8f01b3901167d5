"""Figures of the papers on effects and on empirical likelihood: kept, small, true to the text."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

FOLDER = Path(__file__).parents[2] / "docs" / "reproductions"


@pytest.fixture(scope="module")
def effects(reproduction):
    return reproduction("treatment_effects_figures", "hillstrom.csv.gz")


@pytest.fixture(scope="module")
def audits(effects):
    return effects.audits()


@pytest.fixture(scope="module")
def likelihoods(reproduction):
    return reproduction("empirical_likelihood", "hillstrom.csv.gz")


@pytest.mark.parametrize("page", ["treatment_effects", "empirical_likelihood"])
def test_the_page_shows_every_figure_that_is_kept(page):
    text = (FOLDER / f"{page}.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[([^\]]*)\]\(figures/([^)]+)\)", text)
    kept = sorted(file.name for file in (FOLDER / "figures").glob(f"{page}_*"))
    assert sorted(name for _, name in shown) == kept
    for alternative, name in shown:
        assert len(alternative) > 60
        drawn = (FOLDER / "figures" / name).read_text(encoding="utf-8")
        assert len(drawn) < 200_000
        assert "dc:date" not in drawn


def test_the_published_strategies_leave_what_the_page_says(audits):
    _, published = audits
    found = published.details["paper"]
    left = dict(zip(found["strategies"], found["error_mean_square"], strict=True))
    text = (FOLDER / "treatment_effects.md").read_text(encoding="utf-8")
    said = "none .020, mean .036, mean if detected\n.021, MSE plus .032, MSE minus .022"
    assert said in text
    numbers = [float(x) for x in re.findall(r"\.\d+", said)]
    assert_allclose(list(left.values()), numbers, atol=6e-4)


def test_figures_are_drawn_from_the_audits(effects, audits):
    ours, published = audits
    statistics = effects.figure_2(ours, published).axes[1].lines[1].get_ydata()
    biases = [f.statistic for f in ours.findings if f.estimand.kind == "bias"]
    assert_allclose(statistics, sorted(biases))
    densities = effects.figure_3(ours, published).axes[0].lines
    assert len(densities) == 6
    points = [line for line in effects.prices(ours).axes[0].lines if line.get_label()[0] != "_"]
    assert len(points) == len(ours.details["frontier"]) == 12


def test_quantiles_are_those_of_the_statistics(likelihoods):
    found, _ = likelihoods.region_statistics(1, 400, 5, 60, seed=1)
    figure = likelihoods.figure_1(reps=40)
    assert [axes.get_title() for axes in figure.axes] == ["Model 5.1", "Model 5.2"] * 2
    x, y = figure.axes[0].lines[1].get_data()
    assert_allclose(y, np.sort(likelihoods.region_statistics(1, 2000, 5, 40, seed=1)[0]))
    assert_allclose(x, stats.chi2.ppf((np.arange(1, 41) - 0.375) / 40.25, 5))
    assert stats.kstest(found, stats.chi2(5).cdf).pvalue > 0.001


def test_power_is_the_level_at_the_margin_and_agrees_with_a_plain_t_test(likelihoods):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((30, 40))
    (el, _, _), (t, above, below) = likelihoods.p_values(values, 0.05)
    plain = stats.ttest_1samp(values, 0.05, axis=1)
    assert_allclose(t, plain.pvalue)
    assert_allclose(above, stats.ttest_1samp(values, 0.05, axis=1, alternative="greater").pvalue)
    assert_allclose(below, 1 - above)
    assert_allclose(el, t, atol=0.05)
