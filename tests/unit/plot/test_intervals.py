"""What the forest draws first, folds, names and shades."""

from itertools import pairwise

import pytest
from matplotlib import rc_context

from equipoise._names import GroupName
from equipoise.plot.intervals import LONGEST, MOST, forest, shown_findings
from equipoise.plot.overview import overview, overview_groups, overview_results
from equipoise.results.estimand import Estimand
from equipoise.results.finding import Decision, Note
from equipoise.results.words import MetricWords, Words
from support.specimens import finding, result

FOUND = Decision.DETECTED
RATE = MetricWords(noun="false positive rate", event="selected", better="lower")
WORDS = Words(metrics={"fpr": RATE}, labels={"race.a": "Asian people"})


def drawn(*findings, **changes):
    details = changes.pop("details", {})
    audit = result(changes.pop("audit", "disparity"), findings, details=details, **changes)
    axes = forest(audit)
    gids = {child.get_gid() for child in axes.get_children()}
    return axes, gids


def labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_what_is_detected_comes_first_by_what_is_shown():
    lines = [
        finding("g=far", 0.5, -0.1, 0.9),
        finding("g=wide", 0.4, 0.01, 0.8, decision=FOUND),
        finding("g=sure", 0.2, 0.15, 0.25, decision=FOUND),
        finding("g=none"),
    ]
    axes, gids = drawn(*lines)
    assert labels(axes) == ["g=sure", "g=wide", "g=far", "g=none"]
    assert {f"finding-{k}" for k in range(4)} <= gids


def test_small_groups_are_counted_in_one_line():
    lines = [finding("g=big", 0.1, 0.0, 0.2)] + [
        finding(f"g={k}", 0.9, 0.8, 1.0, n=3, decision=FOUND) for k in range(12)
    ]
    axes, gids = drawn(*lines)
    assert labels(axes) == ["g=big", "12 groups of fewer than 30 rows: see the table"]
    assert "finding-3" not in gids


def test_every_large_group_is_drawn_whatever_its_gap():
    lines = [finding(f"g={k}", 0.1, 0.05, 0.2, n=40, decision=FOUND) for k in range(60)]
    lines += [finding("sex=F", 0.0, -0.01, 0.01, n=18112), finding("sex=M", 0, -0.1, 0.1, n=11888)]
    shown = shown_findings(lines, 0.0)
    assert len(shown) == MOST + 2
    assert {60, 61} <= set(shown)
    axes, _ = drawn(*lines)
    assert labels(axes)[-1] == "20 more groups: see the table"


def test_a_table_of_small_groups_is_drawn():
    assert shown_findings([finding("g=1", 0.1, 0.0, 0.2, n=5)], 0.0) == [0]


def test_title_axis_and_names_are_those_of_the_question():
    line = finding(GroupName([("race", "a")]), 0.1, 0.05, 0.2, decision=FOUND)
    axes = result(findings=[line], words=WORDS, details={"simultaneous": True}).plot()
    question, comparison = axes.figure.get_suptitle().splitlines()
    assert question == "How large is each subgroup's gap in false positive rate, and is there any?"
    assert comparison == "compared with the population, 95% intervals, joint"
    assert "percentage points" in axes.get_xlabel()
    assert axes.get_xlabel().endswith("percentage points  |  worse off →")
    assert labels(axes) == ["Asian people"]
    assert any("+10.0 [+5.0, +20.0]" in text.get_text() for text in axes.texts)


def test_the_worse_side_follows_the_direction():
    better = Words(metrics={"fpr": MetricWords(noun="x", event="selected", better="higher")})
    axes, _ = drawn(finding("g=1", 0.1, 0.05, None), words=better)
    assert axes.get_xlabel().startswith("← worse off")
    assert any("[+5.0, none]" in text.get_text() for text in axes.texts)


@pytest.mark.parametrize(
    ("alternative", "ends"),
    [("greater", (0.0, 0.05)), ("less", (-0.05, 0.0)), (None, (-0.05, 0.05))],
)
def test_the_margin_is_shaded_on_the_side_that_is_tested(alternative, ends):
    details = {"bounds": [-0.05, 0.05], "alternative": alternative, "margin": 0.05}
    axes, gids = drawn(finding("g=1", 0.1, 0.05, 0.2), audit="flag", details=details)
    assert "margin" in gids
    (band,) = [patch for patch in axes.patches if patch.get_gid() == "margin"]
    assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx(ends)


@pytest.mark.parametrize(("low", "high"), [(0.4, 0.9), (0.0, 0.9), (0.97, 0.99), (None, None)])
def test_ratios_have_an_axis_symmetric_about_one(low, high):
    ratio = Estimand("selection_rate", "gap", scale="ratio")
    axes, gids = drawn(finding("g=1", 0.98, low, high, estimand=ratio), details={"null_value": 1.0})
    left, right = axes.get_xlim()
    assert axes.get_xscale() == "log"
    assert left * right == pytest.approx(1.0)
    assert ("finding-0-open<" in gids) == (not low)


def test_what_has_no_number_says_why():
    reference = Note(code="vacuous", message="This group is what the others are compared with.")
    axes, _ = drawn(
        finding("g=1", 0.1, 0.05, 0.2),
        finding("g=2"),
        finding("g=3", notes=(reference,), decision=Decision.NOT_TESTED),
        finding("g=4", n=0, decision=FOUND, withheld=True, p_value=None, p_value_raw=None),
    )
    texts = {text.get_text() for text in axes.texts}
    assert {"not tested", "what the others are compared with"} <= texts
    assert labels(axes)[-1] == "1 group withheld: see the table"


def test_nothing_asked_is_an_empty_picture():
    axes, _ = drawn()
    assert axes.get_xlabel() == ""


def gaps(metric, *findings, **details):
    told = MetricWords(noun=metric, event="selected")
    values = [
        {"group": f.group, "group_value": 0.4, "target_value": 0.3, "se": 0.01} for f in findings
    ]
    return result(
        findings=findings, details=details | {"values": values}, words=Words(metrics={metric: told})
    )


def group(metric, label, column="race", n=100, **changes):
    estimand = Estimand(metric, "gap", scale="difference", noun=metric)
    name = GroupName([(column, label)])
    return finding(name, 0.1, 0.05, 0.2, n=n, estimand=estimand, **changes)


def test_the_overview_has_a_panel_for_each_metric_and_a_row_for_each_large_group():
    people = [("a", 100), ("b", 900), ("tiny", 5)]
    first = gaps("fpr", *[group("fpr", label, n=n, decision=FOUND) for label, n in people])
    second = gaps("tpr", group("tpr", "a"), group("tpr", "F", column="sex", n=500))
    again = gaps("fpr", *[group("fpr", label, n=n) for label, n in people], simultaneous=True)
    other = result("inequality", [finding("everybody", 0.1, 0.05, 0.2)])
    chosen = overview_results([first, second, again, other, result()])
    assert chosen == [second, again]
    assert overview_groups(chosen) == ["race=b", "race=a", "sex=F"]
    figure = overview(chosen)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["tpr", "fpr"]
    gids = {child.get_gid() for axes in figure.axes for child in axes.get_children()}
    assert {"overview-0-1", "overview-0-2", "overview-1-0", "overview-1-1"} <= gids
    assert "overview-0-0" not in gids


def test_the_overview_fills_only_what_is_shown():
    audit = gaps("fpr", group("fpr", "a", decision=FOUND), group("fpr", "b"))
    (axes,) = overview([audit]).axes
    faces = {line.get_gid(): line.get_markerfacecolor() for line in axes.lines if line.get_gid()}
    assert faces["overview-0-0"] == "#D55E00"
    assert faces["overview-0-1"] == "#FFFFFF"


def test_the_reference_is_a_line_of_the_overview():
    reference = Note(code="vacuous", message="This group is what the others are compared with.")
    estimand = Estimand("fpr", "gap", scale="difference", noun="fpr")
    white = finding(GroupName([("race", "w")]), notes=(reference,), estimand=estimand)
    (axes,) = overview([gaps("fpr", group("fpr", "a"), white)]).axes
    assert {line.get_marker() for line in axes.lines} >= {"o", "|"}


def test_numbers_under_the_overview_have_room_on_a_phone():
    found = [group("fpr", "a"), group("fpr", "b", n=400)]
    with rc_context({"figure.figsize": (3.9, 4.0)}):
        figure = overview([gaps("fpr", *found), gaps("tpr", *found)])
        figure.draw_without_rendering()
        for axes in figure.axes:
            boxes = [text.get_window_extent() for text in axes.get_xticklabels()]
            assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_every_panel_of_the_overview_has_the_names_as_they_are():
    found = [group("fpr", "$x^2$"), group("fpr", "b", n=400)]
    for width in (3.9, 10.0):
        with rc_context({"figure.figsize": (width, 4.0)}):
            figure = overview([gaps("fpr", *found), gaps("tpr", *found)])
        labels = [label for axes in figure.axes for label in axes.get_yticklabels()]
        assert {label.get_text() for label in labels} == {"race: $x^2$", "race: b"}
        assert not any(label.get_parse_math() for label in labels)
        assert len({label.get_fontsize() for label in labels}) == 1


def test_words_in_the_place_of_an_estimate_stand_on_paper_of_their_own():
    axes, _ = drawn(finding("race=A"))
    (words,) = (text for text in axes.texts if text.get_gid() == "finding-0")
    assert words.get_text() == "not tested"
    assert words.get_bbox_patch().get_facecolor()[:3] == (1.0, 1.0, 1.0)


def test_long_names_that_begin_alike_stay_apart():
    names = [GroupName([("group", f"{'a rather long beginning ' * 4}{k}")]) for k in range(3)]
    axes, _ = drawn(*(finding(name, 0.1, 0.05, 0.2) for name in names))
    assert len(set(labels(axes))) == 3
    assert all(len(line) <= LONGEST for label in labels(axes) for line in label.splitlines())
