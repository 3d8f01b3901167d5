"""The picture of every question, on a page and on a phone: nothing covered, nothing missing."""

import json
import re
from functools import cache

import numpy as np
import pytest
from matplotlib import rc_context

import equipoise as eq
from equipoise.audits.inequality.questions import InequalityDetails
from equipoise.plot.intervals import shown_findings
from equipoise.plot.overview import overview, overview_groups, overview_results
from equipoise.results.disclosure import without
from equipoise.results.question import questions
from equipoise.results.sentences import group_words
from equipoise.results.wording import question_words
from support.pictures import SIZES, collisions, drawn, texts

RACES = ["people of a first rather long description", "b", "c of Upper & Lower <Town>", "rare"]
ROLES = {"y_true": "y", "y_pred": "d", "y_score": "score", "favourable": 1}


@cache
def people():
    """Of 4,000 people, 12 of a rare race; the decision depends on the race."""
    rng = np.random.default_rng(11)
    n = 4000
    race = rng.choice(3, n)
    race[:12] = 3
    score = rng.random(n).round(2)
    arm = rng.integers(2, size=n)
    effect = np.array([0.5, 0.1, -0.2, 0.3])[race]
    return {
        "race": np.array(RACES)[race],
        "sex": rng.choice(["men", "women"], n),
        "score": score,
        "y": (rng.random(n) < score).astype(int),
        "d": (score + 0.15 * (race == 1) > 0.6).astype(int),
        "rival": (score > 0.6).astype(int),
        "other": (rng.random(n) > 0.6).astype(int),
        "third": (score + 0.05 * (race == 2) > 0.6).astype(int),
        "chance": rng.random(n),
        "week": np.sort(rng.integers(20, size=n)),
        "age": rng.integers(18, 80, n),
        "arm": arm,
        "gain": rng.normal(size=n) + arm * effect,
        "expected": np.array([0.3, 0.3, 0.3, 0.3])[race] + rng.normal(0, 0.01, n),
    }


def audit(group="race", **roles):
    return eq.Audit(people(), group=group, **(ROLES | roles))


TRIAL = {"y_true": "gain", "treatment": "arm", "effect_pred": "expected"} | dict.fromkeys(
    ("y_pred", "y_score", "favourable")
)
JUDGED = {
    "accuracy": "accuracy",
    "accuracy_of": "population",
    "fairness": "selection_rate",
    "accuracy_loss": 0.2,
    "inference": "analytic",
}
ASKED = {
    "disparity": lambda: audit(["race", "sex"]).disparity(["selection_rate", "fpr"]),
    "flag": lambda: audit(["race", "sex"]).flag("selection_rate", margin=0.05, alternative="less"),
    "certify": lambda: audit().certify("accuracy", margin=0.1),
    "impact_ratios": lambda: audit().impact_ratios("selection_rate"),
    "decompose": lambda: audit().decompose("selection_rate", given=["sex"]),
    "compare": lambda: audit().compare("fpr", baseline="rival"),
    "monitor": lambda: audit().monitor("selection_rate", time="week", margin=0.02),
    "discover": lambda: audit(None, features=["age", "sex", "race"]).discover("error_rate"),
    "predictive_parity": lambda: audit().predictive_parity(),
    "marginal_outcome": lambda: audit().marginal_outcome(0.6),
    "score_quality": lambda: audit().score_quality(baseline="chance"),
    "multicalibration": lambda: audit(["race", "sex"]).multicalibration(),
    "improvability": lambda: audit("sex").improvability(
        candidates=["rival", "other", "third"], **JUDGED
    ),
    "necessity": lambda: audit("sex").necessity("rival", **JUDGED),
    "drop_table": lambda: audit("sex", features=["age", "rival"], y_score=None).drop_table(
        "sklearn.linear_model.LogisticRegression"
    ),
    "inequality": lambda: audit().inequality("speicher"),
    "treatment_effects": lambda: audit(["race", "sex"], **TRIAL).treatment_effects(
        measure="difference", n_repeats=2
    ),
    "policy": lambda: audit(**TRIAL).policy(budget=0.3),
}
FORESTS = ("disparity", "flag", "certify", "impact_ratios", "marginal_outcome", "multicalibration")


@pytest.fixture(scope="module")
def pictures():
    """Results and their figures, each made once."""

    @cache
    def picture(name, size):
        return asked(name), drawn(asked(name), size)

    asked = cache(lambda name: ASKED[name]())
    return picture


def test_every_question_is_drawn_here():
    assert set(ASKED) == set(questions())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ASKED)
def test_nothing_covers_anything_and_nothing_leaves_the_picture(pictures, name, size):
    _, figure = pictures(name, size)
    assert collisions(figure) == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ASKED)
def test_the_question_and_the_level_stand_above(pictures, name, size):
    result, figure = pictures(name, size)
    title = " ".join(figure.get_suptitle().split())
    assert title.startswith(question_words(result))
    levels = [f.ci.confidence_level for f in result.lines if f.ci is not None]
    assert not levels or f"{100 * max(levels):g}% intervals" in title


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", FORESTS)
def test_every_group_of_a_forest_is_named_and_drawn(pictures, name, size):
    result, figure = pictures(name, size)
    words = " ".join(" ".join(text.get_text().split()) for text, _ in texts(figure))
    artists = {artist.get_gid() for axes in figure.axes for artist in axes.get_children()}
    shown = shown_findings(result.findings, result.details.null_value)
    assert shown
    for k in shown:
        assert group_words(result.findings[k].group, result.words) in words
        assert f"finding-{k}" in artists
    folded = len(result.findings) - len(shown)
    assert not folded or "see the table" in words


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ASKED)
def test_no_word_is_a_value_of_the_program(pictures, name, size):
    _, figure = pictures(name, size)
    words = " ".join(text.get_text() for text, _ in texts(figure))
    assert not re.search(r"\b(None|nan|inf|True|False|Decision)\b", words)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [*FORESTS, "drop_table", "compare"])
def test_no_two_lines_have_one_name(pictures, name, size):
    _, figure = pictures(name, size)
    axes = figure.axes[0]
    beside = [text.get_text() for text in axes.get_yticklabels()]
    above = [text.get_text() for text in axes.texts if text.get_label() == "name"]
    names = beside if size == "page" else above
    assert len(names) > 1
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["predictive_parity", "marginal_outcome"])
def test_scores_of_every_large_group_stand_in_a_strip_of_their_own(pictures, name, size):
    result, figure = pictures(name, size)
    strips = figure.axes[-1]
    names = " ".join(text.get_text() for text in strips.texts)
    assert all(race[-8:] in names for race in RACES[:3])
    assert "rare" not in names
    assert len(strips.patches) == 3
    lines = {line.get_gid() for line in strips.get_lines()}
    assert ({"cut-0", "cut-1", "cut-2"} <= lines) == (name == "marginal_outcome")
    shared = strips.get_shared_x_axes().joined(figure.axes[0], strips)
    assert shared == (name == "predictive_parity")
    assert len(result.details["scores"]["groups"]) == 4


@pytest.mark.parametrize("size", SIZES)
def test_every_group_of_the_other_pictures_is_named(pictures, size):
    said = {
        name: " ".join(" ".join(text.get_text().split()) for text, _ in texts(figure))
        for name in ("decompose", "compare", "monitor", "predictive_parity", "score_quality")
        for _, figure in [pictures(name, size)]
    }
    for name, words in said.items():
        for race in RACES[:3]:
            assert race[-12:] in words, name
    for name in ("decompose", "compare", "monitor"):
        assert "1 group of fewer than 30 rows: see the table" in said[name]


@pytest.mark.parametrize("size", SIZES)
def test_effects_have_arrow_number_and_remainder_for_every_group(pictures, size):
    result, figure = pictures("treatment_effects", size)
    lines, plane, *_ = figure.axes
    shown = shown_findings(
        [f for f in result.findings if f.estimand.kind == "bias"], result.details.null_value
    )
    numbers = {text.get_text() for text in plane.texts if (text.get_gid() or "").endswith("-name")}
    assert numbers == {str(row + 1) for row in range(len(shown))}
    arrows = [text for text in plane.texts if (text.get_gid() or "").endswith("-correction")]
    assert len(arrows) == len(shown)
    gids = {line.get_gid() for line in lines.get_lines()}
    assert {f"finding-{k}-after" for k in shown} <= gids


@pytest.mark.parametrize("size", SIZES)
def test_two_lines_far_apart_cover_nothing_either(size):
    rows = people()
    few = {name: values[rows["race"] != "rare"] for name, values in rows.items()}
    few["race"] = np.where(few["race"] == "b", "town", "country")
    result = eq.Audit(few, group="race", **{k: v for k, v in TRIAL.items() if v}).treatment_effects(
        measure="difference", n_repeats=0
    )
    figure = drawn(result, size)
    gids = {line.get_gid() for line in figure.axes[0].get_lines()}
    assert {"finding-0-after", "finding-1-after"} <= gids
    assert collisions(figure) == []


@pytest.mark.parametrize("size", SIZES)
def test_every_candidate_is_drawn_and_named(pictures, size):
    _, figure = pictures("improvability", size)
    first = figure.axes[0]
    names = {t.get_text() for t in first.texts if t.get_gid() == "candidate-name"}
    assert names == {"rival", "other", "third"}
    states = {line.get_gid(): line.get_markerfacecolor() for line in first.get_lines()}
    assert {"candidate-0", "candidate-1", "candidate-2"} <= set(states)


def test_one_candidate_is_a_gap_and_an_accuracy(pictures):
    result, figure = pictures("necessity", "page")
    axes = figure.axes[0]
    gids = {line.get_gid(): line for line in axes.get_lines()}
    criteria = result.details["splits"][0]["criteria"]
    (gap,) = [row for row in criteria if row["kind"] == "fairness"]
    assert gids["status-quo"].get_ydata() == pytest.approx([100 * gap["a0"]])
    assert gids["candidate"].get_ydata() == pytest.approx([100 * gap["a1"]])
    assert axes.get_ylabel() == "selection rate gap, percentage points"


@pytest.mark.parametrize("size", SIZES)
def test_the_overview_is_legible_too(pictures, size):
    chosen = overview_results([pictures("disparity", size)[0]])
    with rc_context({"figure.figsize": (SIZES[size], 4.0)}):
        figure = drawn(overview(chosen), size)
    assert collisions(figure) == []
    words = " ".join(text.get_text() for text, _ in texts(figure))
    assert len(overview_groups(chosen)) == 5
    assert all(race[-5:] in words for race in RACES[:3])


def test_what_is_measured_here_would_be_noticed(pictures):
    figure = drawn(ASKED["certify"](), "page")
    figure.axes[0].text(0.5, 0.5, "over it", transform=figure.axes[0].transAxes)
    figure.axes[0].text(0.5, 0.5, "and again", transform=figure.axes[0].transAxes)
    wrong = collisions(figure)
    assert any("'over it' covers 'and again'" in one for one in wrong)


def test_a_small_group_adds_to_the_index_without_a_bar(pictures):
    result, figure = pictures("inequality", "page")
    groups = [record["group"] for record in result.details["contributions"]]
    assert isinstance(result.details, InequalityDetails)
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert len(groups) == 4
    assert names[-1] == "1 group of fewer than 30 rows: see the table"
    assert sum((bar.get_gid() or "").startswith("part-") for bar in figure.axes[0].patches) == 6


@pytest.mark.parametrize("name", ASKED)
def test_a_group_that_is_withheld_is_in_no_detail_and_in_no_picture(pictures, name):
    result, _ = pictures(name, "page")
    groups = frozenset(f.group for f in result.findings if "Upper" in f.group)
    shown = without(result, groups, 5)
    told = json.dumps(shown.details.to_dict(), default=str)
    assert not [group for group in groups if json.dumps(group)[1:-1] in told]
    drawn(shown, "page")


def test_a_withheld_group_is_a_point_in_no_panel_of_effects(pictures):
    result, whole = pictures("treatment_effects", "page")
    groups = frozenset(f.group for f in result.findings if "Upper" in f.group)

    def effects(figure):
        gids = {line.get_gid() for axes in figure.axes for line in axes.lines}
        return {gid for gid in gids if re.fullmatch(r"effect-\d+", gid or "")}

    assert len(effects(whole)) == len(effects(drawn(without(result, groups, 5), "page"))) + len(
        groups
    )
