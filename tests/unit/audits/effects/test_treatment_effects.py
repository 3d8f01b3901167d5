import json
import sys

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.text import Text
from numpy.testing import assert_allclose
from rich.progress import Progress

import equipoise as eq
from equipoise.audits.progress import drawn_on, progress_bar
from equipoise.exceptions import (
    ColumnNotFoundError,
    DataError,
    InvalidParameterError,
    MissingValuesError,
)
from equipoise.plans.plan import read_plan
from equipoise.plans.run import execute
from equipoise.plot.effects import effect_spread, evaluation_bars, statistics_against_null
from equipoise.report.html import html_report
from equipoise.stats.effects.bias import error_tests, treatment_bias
from equipoise.stats.effects.errors import effect_moments, group_errors
from support.engines import ENGINES, on_engine

ROLES = {"group": "g", "y_true": "y", "treatment": "t", "effect_pred": "f"}


def experiment(seed=1, n=6_000, groups=6):
    rng = np.random.default_rng(seed)
    g, t = rng.integers(groups, size=n), rng.integers(2, size=n)
    y = (rng.random(n) < 0.3 * (1 + 0.2 * t)).astype(float)
    return {
        "g": np.array(list("abcdefgh"))[g],
        "t": t,
        "y": y,
        "f": (1.2 + 0.6 * (g == 2) + 0.1 * rng.normal(size=n)).round(2),
        "mu0": 0.3 + 0.02 * rng.normal(size=n),
        "mu1": np.full(n, 0.36),
        "x": rng.normal(size=n),
        "u": rng.integers(n // 4, size=n),
        "w": rng.uniform(0.5, 2.0, n).round(3),
        "k": rng.integers(1, 4, size=n),
    }


def audit(data, **roles):
    return eq.Audit(data, **(ROLES | roles))


@pytest.fixture(scope="module")
def data():
    return experiment()


@pytest.fixture(scope="module")
def result(data):
    return audit(data).treatment_effects()


def biases(result):
    return [f for f in result.findings if f.estimand.kind == "bias"]


def parts(result, group):
    return {f.estimand.kind: f for f in result.findings if f.group == group}


def code(data):
    return np.unique(data["g"], return_inverse=True)[1]


def test_findings_are_those_of_the_engine(data, result):
    errors = group_errors(effect_moments(data["y"], data["t"], data["f"], code(data)))
    expected = treatment_bias(errors)
    found = biases(result)
    assert [f.group for f in found] == [f"g={x}" for x in "abcdef"]
    assert list(result.findings[:6]) == found
    assert_allclose([f.estimate for f in found], expected.bias.estimate, rtol=1e-9)
    assert_allclose([f.p_value for f in found], expected.bias.p_value, rtol=1e-6)
    assert_allclose([f.ci.low for f in found], expected.bias.low, rtol=1e-6)
    assert result.joint.p_value == pytest.approx(expected.equal.p_value)
    assert result.findings[2].decision == "detected"
    assert result.n == len(data["y"])


def test_details_hold_what_the_question_promises(data, result):
    details = result.details
    errors = group_errors(effect_moments(data["y"], data["t"], data["f"], code(data)))
    assert_allclose(details["tau"], errors.effect)
    assert_allclose(details["tau_f"], errors.predicted)
    assert_allclose(details["B"], errors.error)
    assert_allclose(details["A"], [f.estimate for f in biases(result)])
    assert set(details["omnibus"]) == {"equal", "zero"}
    assert details["prior_sd"] > 0
    assert details["correction"] == "eb"
    assert len(details["corrections"]["eb"]) == 6
    assert details["recommended"]["rule"] == "eb"
    assert details["recommended"]["delta"] < 0
    assert len(details["detectable"]) == len(details["units"]) == len(details["slopes"]) == 6
    left = np.array(details["remaining"]["B"])
    assert_allclose(left, errors.error - details["corrections"]["eb"])
    text = json.dumps(result.to_dict(), allow_nan=False)
    assert details["rest"] != details["compared_with"]
    assert eq.AuditResult.from_dict(json.loads(text)).details == json.loads(text)["details"]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_numbers(data, result, engine):
    small = pa.table({name: data[name] for name in ("g", "t", "y", "f")})
    found = audit(on_engine(engine, small)).treatment_effects()
    assert_allclose(found.details["A"], result.details["A"], rtol=1e-9)
    assert_allclose(
        found.details["evaluation"]["error_mean_square"],
        result.details["evaluation"]["error_mean_square"],
        rtol=1e-7,
        atol=1e-12,
    )


def test_row_order_does_not_change_the_random_halves(data, result, rng):
    order = rng.permutation(len(data["y"]))
    found = audit({name: values[order] for name, values in data.items()}).treatment_effects()
    assert_allclose(
        found.details["evaluation"]["error_mean_square"],
        result.details["evaluation"]["error_mean_square"],
        rtol=1e-7,
    )


def test_the_seed_changes_the_halves_and_nothing_else(data, result):
    other = audit(data).treatment_effects(rng=5)
    assert_allclose(other.details["A"], result.details["A"], rtol=1e-9)
    ours, theirs = (r.details["evaluation"]["error_mean_square"] for r in (other, result))
    assert not np.allclose(ours, theirs)


@pytest.mark.parametrize("cluster", ["u", "name"])
def test_clusters_of_any_type_reach_the_engine(data, cluster):
    named = data | {"name": np.array([f"u{k}" for k in data["u"]])}
    found = audit(named, cluster=cluster).treatment_effects(n_repeats=2)
    errors = group_errors(
        effect_moments(data["y"], data["t"], data["f"], code(data), cluster=data["u"]), binary=True
    )
    assert_allclose(found.details["B_se"], error_tests(errors).se, rtol=1e-8)
    assert_allclose(
        [f.p_value_raw for f in biases(found)], treatment_bias(errors).bias.p_value_raw, rtol=1e-6
    )
    assert found.details["n_clusters"] == len(np.unique(data["u"]))
    assert found.details["evaluation"]["n_groups"] == 6


def test_weights_reach_the_engine(data):
    found = audit(data, weight="w").treatment_effects(n_repeats=1)
    errors = group_errors(
        effect_moments(data["y"], data["t"], data["f"], code(data), weight=data["w"]), binary=True
    )
    assert_allclose(found.details["B"], errors.error, rtol=1e-9)
    assert_allclose(found.details["B_se"], error_tests(errors).se, rtol=1e-8)


@pytest.mark.parametrize("n_repeats", [0, 2])
def test_a_count_stands_for_rows(data, n_repeats):
    found = audit(data, count="k").treatment_effects(n_repeats=n_repeats)
    repeated = {name: np.repeat(values, data["k"]) for name, values in data.items()}
    expected = audit(repeated).treatment_effects(n_repeats=0)
    assert found.n == expected.n
    assert_allclose(found.details["B"], expected.details["B"], rtol=1e-9)
    assert_allclose(found.details["B_se"], expected.details["B_se"], rtol=1e-8)


@pytest.mark.parametrize(
    ("options", "collapse", "noted"),
    [
        ({}, "control", False),
        ({"control_pred": "mu0"}, "aipw", False),
        ({"control_pred": "mu0", "treated_pred": "mu1"}, "aipw", False),
        ({"collapse": "hajek", "control_pred": "mu0"}, "hajek", True),
        ({"collapse": "weighted", "control_pred": "mu0"}, "weighted", True),
        ({"collapse": "positives"}, "positives", True),
        ({"collapse": "mean"}, "mean", True),
        ({"measure": "difference"}, "mean", False),
        ({"measure": "difference", "control_pred": "mu0", "treated_pred": "mu1"}, "aipw", False),
    ],
)
def test_every_collapse_runs_and_the_doubtful_ones_say_so(data, options, collapse, noted):
    found = audit(data).treatment_effects(n_repeats=1, **options)
    assert found.details["collapse"] == collapse
    assert any(note.code == "collapse" for note in found.notes) == noted
    named = {k: data[options[k]] for k in ("control_pred", "treated_pred") if k in options}
    chosen = {k: options[k] for k in ("measure", "collapse") if k in options}
    sums = effect_moments(data["y"], data["t"], data["f"], code(data), **chosen, **named)
    errors = group_errors(sums, measure=options.get("measure", "relative"), collapse=collapse)
    assert_allclose(found.details["B"], errors.error, rtol=1e-8)
    assert_allclose(found.details["B_se"], error_tests(errors).se, rtol=1e-6)


def test_features_give_the_regression_adjusted_effect(data):
    found = audit(data, features=["x"]).treatment_effects(collapse="aipw", n_repeats=1)
    assert found.details["collapse"] == "aipw"
    plain = audit(data).treatment_effects(n_repeats=0)
    assert_allclose(found.details["B"], plain.details["B"], atol=0.05)
    assert found.details["B"] != plain.details["B"]


def test_features_and_clusters_go_together(data):
    found = audit(data, features=["x"], cluster="u").treatment_effects(collapse="aipw", n_repeats=1)
    plain = audit(data, features=["x"]).treatment_effects(collapse="aipw", n_repeats=1)
    assert_allclose(found.details["B"], plain.details["B"], rtol=1e-9)
    assert found.details["B_se"] != plain.details["B_se"]


def test_split_uses_halves_and_says_what_it_costs(data, result):
    found = audit(data).treatment_effects(split=True, n_repeats=0)
    ratio = np.array(found.details["B_se"]) / np.array(result.details["B_se"])
    assert_allclose(np.median(ratio), np.sqrt(2), rtol=0.15)
    assert any(note.code == "split-halves" for note in found.notes)


def test_margin_shows_equivalence_where_the_data_can(data):
    found = audit(data).treatment_effects(margin=1.5, n_repeats=0)
    assert [f.decision for f in found.lines].count("within margin") == 6
    assert found.findings[2].notes[0].code == "difference-within-margin"
    tight = audit(data).treatment_effects(margin=0.01, n_repeats=0)
    assert tight.findings[2].decision == "detected"
    assert tight.findings[0].decision == "not detected"


def test_no_repeats_means_no_evaluation_and_no_blocks(data):
    found = audit(data).treatment_effects(n_repeats=0)
    assert found.details["evaluation"] is None


def test_positives_only_with_the_arm_ratio(data):
    positive = data["y"] > 0
    kept = {name: values[positive] for name, values in data.items()}
    ratio = data["t"].sum() / (1 - data["t"]).sum()
    found = audit(kept).treatment_effects(arm_ratio=float(ratio), n_repeats=2)
    assert_allclose(found.details["tau_f"], audit(data).treatment_effects().details["tau_f"])
    with pytest.raises(DataError, match=r"positive outcomes only; \d+ rows have outcome 0"):
        audit(data).treatment_effects(arm_ratio=1.0)
    with pytest.raises(InvalidParameterError, match='collapse="control" alone can use'):
        audit(kept).treatment_effects(arm_ratio=1.0, collapse="positives")


def test_groups_that_cannot_be_tested_are_findings_with_a_reason():
    data = experiment(n=3_000)
    t, y = data["t"].copy(), data["y"].copy()
    t[data["g"] == "a"] = 1
    y[(data["g"] == "b") & (t == 0)] = 0
    y[data["g"] == "d"] = 1
    f = np.where(data["g"] == "d", 1.2, data["f"])
    found = audit(data | {"t": t, "y": y, "f": f}).treatment_effects(n_repeats=1)
    reasons = {f.group: f.notes[0].code for f in found.findings if f.decision == "not tested"}
    assert reasons == {
        "g=a": "one-arm-only",
        "g=b": "no-control-positives",
        "g=d": "no-variation",
    }
    assert found.details["group"] == ["g=c", "g=e", "g=f"]
    assert "finding-0-after" not in {line.get_gid() for line in found.plot().lines}


def test_one_group_has_nothing_to_be_compared_with(data):
    one = {name: values[data["g"] == "a"] for name, values in data.items()}
    found = audit(one).treatment_effects()
    assert found.findings[0].notes[0].code == "no-rest"
    assert found.joint is None
    assert "could be tested" in str(found)


def test_few_positives_are_noted_and_unbounded_intervals_too():
    # Group 1 has 2 positives of 200 controls and 3 of 200 treated.
    parts = [(0, 0, 200, 800), (0, 1, 240, 760), (1, 0, 2, 198), (1, 1, 3, 197)]
    rows = [(g, t, y) for g, t, yes, no in parts for y in [1.0] * yes + [0.0] * no]
    g, t, y = (np.array(column) for column in zip(*rows, strict=True))
    table = {"g": g, "t": t, "y": y, "f": np.full(len(y), 1.0)}
    found = audit(table).treatment_effects(n_repeats=0)
    assert "few-control-positives" in [note.code for note in found.findings[1].notes]
    for finding in biases(found):
        assert (0 in finding.ci) == (finding.p_value_raw > 0.05)


@pytest.mark.parametrize(
    ("change", "roles", "options", "error", "match"),
    [
        ({"t": "t+1"}, {}, {}, InvalidParameterError, r"has arms '1', '2'. Say which one"),
        ({"y": "y-1"}, {}, {}, DataError, r"must not be negative; \d+ rows are"),
        ({"y": "y-1"}, {"count": "k"}, {}, DataError, r"must not be negative; \d+ rows are"),
        ({"f": "nan"}, {}, {}, MissingValuesError, r"'f' has 1 missing values in 6000 rows"),
        ({"t": "nan"}, {}, {}, MissingValuesError, r"'t' has 1 missing values"),
        ({}, {"effect_pred": None}, {}, InvalidParameterError, "needs `effect_pred`"),
        ({}, {"treatment": None}, {}, InvalidParameterError, "needs `treatment`"),
        ({}, {"group": []}, {}, InvalidParameterError, "pass `group` to `Audit`"),
        ({}, {}, {"collapse": "hajek"}, InvalidParameterError, "needs predictions of the outcome"),
        ({}, {}, {"control_pred": "mu"}, ColumnNotFoundError, "Column 'mu' not found"),
        ({}, {}, {"adjust": "holms"}, InvalidParameterError, "Did you mean 'holm'"),
        ({}, {}, {"margin": 0.0}, InvalidParameterError, "`margin` must be"),
        ({}, {}, {"n_repeats": -1}, InvalidParameterError, "`n_repeats` must be"),
        ({"t": "shares"}, {}, {"rest": "pooled"}, DataError, "same treated share in every group"),
    ],
)
def test_bad_input_gets_one_clear_sentence(data, change, roles, options, error, match):
    table = {name: values.copy() for name, values in data.items()}
    for name, kind in change.items():
        if kind == "nan":
            table[name] = np.where(np.arange(6_000) == 3, np.nan, table[name])
        elif kind == "shares":
            table[name] = np.where(table["g"] == "a", np.arange(6_000) % 5 == 0, table[name])
        else:
            table[name] = table[name] + (1 if kind.endswith("+1") else -1)
    with pytest.raises(error, match=match):
        audit(table, **roles).treatment_effects(**options)


def test_missing_rows_can_be_dropped_and_are_counted(data):
    table = data | {"f": np.where(np.arange(6_000) < 7, np.nan, data["f"])}
    found = audit(table, missing="drop").treatment_effects(n_repeats=1)
    assert found.n == 5_993
    assert found.notes[0].message.startswith("7 rows")


def test_evaluation_without_correction_is_the_mean_square_of_the_errors(data, result):
    found = result.details["evaluation"]
    assert found["n_repeats"] == 10
    none = found["error_mean_square"][found["corrections"].index("none")]
    b, se = np.array(result.details["B"]), np.array(result.details["B_se"])
    # Without a correction the estimate over halves is close to that from all rows.
    assert none == pytest.approx(np.mean(b**2 - se**2), rel=0.3)


def test_a_plan_can_ask_the_question(data, tmp_path):
    from pyarrow import csv

    csv.write_csv(pa.table(data), tmp_path / "trial.csv")
    (tmp_path / "plan.toml").write_text(
        '[data]\npath = "trial.csv"\ngroup = "g"\ny_true = "y"\ntreatment = "t"\n'
        'effect_pred = "f"\n[[check]]\nquestion = "treatment_effects"\nmargin = 0.5\n'
        "n_repeats = 2\n"
    )
    dossier = execute(read_plan(tmp_path / "plan.toml"))
    found = dossier.checks[0].result
    assert found.audit == "treatment_effects"
    assert found.details["margin"] == 0.5
    page = html_report(dossier)
    assert "Are effects predicted equally well?" in page
    assert "remains after the correction" in page


def test_picture_shows_before_and_after_and_effects_beside_predictions(result):
    axes = result.plot()
    gids = {artist.get_gid() for artist in axes.lines}
    assert {"finding-2", "finding-2-interval", "finding-2-after"} <= gids
    below = axes.figure.axes[1]
    assert {"effect-0", "effect-0-interval"} <= {line.get_gid() for line in below.lines}
    alone = result.plot(ax=below)
    assert alone is below


def test_figures_of_the_paper_are_drawn(result, data):
    spread = effect_spread(result)
    assert {"spread-prior", "spread-estimates"} <= {line.get_gid() for line in spread.lines}
    bars = evaluation_bars(result)
    assert "rule-eb" in {patch.get_gid() for patch in bars.patches}
    assert len(statistics_against_null(result).lines) == 2
    with pytest.raises(InvalidParameterError, match="`n_repeats` above 0"):
        evaluation_bars(audit(data).treatment_effects(n_repeats=0))


def test_picture_of_groups_without_a_test_is_the_forest(data):
    one = {name: values[data["g"] == "a"] for name, values in data.items()}
    assert audit(one).treatment_effects().plot().get_yticklabels()[0].get_text() == "g: a"


def test_spread_of_equal_errors_is_a_line():
    rng = np.random.default_rng(4)
    n = 3_000
    table = {
        "g": rng.integers(5, size=n),
        "t": rng.integers(2, size=n),
        "y": (np.arange(n) % 3 == 0).astype(float),
        "f": np.full(n, 1.0),
    }
    found = audit(table).treatment_effects(n_repeats=0)
    labels = [t.get_text() for t in effect_spread(found).get_legend().get_texts()]
    assert any("no spread" in text for text in labels) == (found.details["prior_sd"] == 0)


def test_progress_is_drawn_on_a_terminal_only(monkeypatch, capsys):
    with progress_bar("work") as step:
        assert step is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar("work") as step:
        step(1, 2)
    assert capsys.readouterr().out == ""
    with drawn_on(None), progress_bar("work") as step:
        assert step is None


def test_progress_is_drawn_on_a_display_that_is_open_already(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    display = Progress(disable=True)
    with drawn_on(display), progress_bar("work") as step:
        step(1, 2)
        (task,) = display.tasks
        assert (task.description, task.completed, task.total) == ("work", 1, 2)
    assert not display.tasks


def test_a_reader_sees_effect_prediction_error_correction_and_what_remains(data, result):
    found = parts(result, "g=c")
    assert {*found} >= {"bias", "effect", "predicted", "error", "correction", "remaining", "slope"}
    effect, predicted, error = (found[kind] for kind in ("effect", "predicted", "error"))
    assert error.estimate == pytest.approx(predicted.estimate - effect.estimate)
    remaining = found["remaining"]
    assert remaining.estimate == pytest.approx(error.estimate - found["correction"].estimate)
    # The same half-width, shifted.
    assert remaining.ci.high - remaining.ci.low == pytest.approx(error.ci.high - error.ci.low)
    assert {f.decision for f in (effect, predicted, error, remaining)} == {"estimated"}
    text = str(result)
    lines = [line for line in text.splitlines() if line.startswith("    effect ")]
    assert len(lines) == 6
    assert "predicted" in lines[0]
    assert "subtract" in text
    assert result._repr_html_().count(">effect ") == 6
    assert len(result.lines) == 6
    k = result.details["group"].index("g=c")
    y, t, member = data["y"], data["t"], data["g"] == "c"
    by_hand = y[member & (t == 1)].mean() / y[member & (t == 0)].mean()
    assert effect.estimate == pytest.approx(by_hand)
    assert result.details["tau_ci"][k][0] == pytest.approx(effect.ci.low)


def test_nothing_is_recommended_where_no_error_is_shown():
    table = experiment(seed=5)
    table["f"] = np.full(len(table["y"]), 1.2)
    found = audit(table).treatment_effects()
    assert found.details["recommended"]["rule"] == found.details["correction"] == "none"
    assert found.details["recommended"]["candidate"] == "eb"
    assert parts(found, "g=a")["correction"].estimate == 0.0
    words = [text.get_text() for text in found.plot().figure.findobj(Text)]
    assert "no correction is recommended" in words
    asked = audit(table).treatment_effects(correction="eb")
    assert asked.details["correction"] == "eb"


def test_groups_below_four_units_in_an_arm_are_not_tested_and_not_in_the_rest():
    rng = np.random.default_rng(0)
    g = np.repeat(["a", "b", "small"], [200, 200, 6])
    t = np.arange(406) % 2
    y, f = rng.normal(size=406), np.zeros(406)
    found = audit({"g": g, "t": t, "y": y, "f": f}).treatment_effects(measure="difference")
    by = {x.group: x for x in biases(found)}
    assert by["g=small"].notes[0].code == "too-few-units"
    assert "3 independent units" in by["g=small"].notes[0].message
    without = {"g": g[:400], "t": t[:400], "y": y[:400], "f": f[:400]}
    alone = audit(without).treatment_effects(measure="difference")
    assert by["g=a"].p_value == pytest.approx(biases(alone)[0].p_value)


def test_few_units_are_said_and_the_interval_agrees_with_the_p_value():
    rng = np.random.default_rng(3)
    g, t = np.repeat(np.arange(8), 20), np.tile(np.arange(20) % 2, 8)
    y = rng.standard_normal(160) + 1.5 * (g == 2) * t
    table = {"g": g, "t": t, "y": y, "f": np.zeros(160)}
    found = audit(table).treatment_effects(measure="difference")
    for finding in biases(found):
        assert "few-units" in [note.code for note in finding.notes]
        assert (0 in finding.ci) == (finding.p_value_raw > 0.05)


def test_a_detected_bias_never_stands_beside_an_interval_without_bounds():
    # One control positive of 40 against 75 of 400: detected beside (-inf, inf) by the score test.
    parts = [(g, 0, 5, 35) for g in range(1, 10)] + [(g, 1, 50, 350) for g in range(1, 10)]
    parts += [(0, 0, 1, 39), (0, 1, 75, 325)]
    rows = [(g, t, y) for g, t, yes, no in parts for y in [1.0] * yes + [0.0] * no]
    g, t, y = (np.array(column) for column in zip(*rows, strict=True))
    found = audit({"g": g, "t": t, "y": y, "f": np.full(len(y), 1.0)}).treatment_effects()
    for finding in biases(found):
        bounded = finding.ci.low is not None or finding.ci.high is not None
        assert bounded or finding.decision != "detected"
        assert (0 in finding.ci) == (finding.p_value_raw > 0.05)


def test_predictions_that_are_upside_down_in_one_group_are_detected():
    rng = np.random.default_rng(1)
    n = 6_000
    g, t, x = rng.integers(3, size=n), rng.integers(2, size=n), rng.normal(size=n)
    effect = np.where(g == 1, 1.0 - x, 1.0 + x)
    table = {"g": g, "t": t, "y": t * effect + rng.normal(size=n), "f": 1.0 + x}
    found = audit(table).treatment_effects(measure="difference", margin=0.5)
    by = {f.group: f for f in found.findings if f.estimand.kind == "slope difference"}
    assert by["g=1"].decision == "detected"
    assert by["g=1"].estimate == pytest.approx(-2.0, abs=0.3)
    assert {f.decision for f in biases(found)} == {"within margin"}
    assert found.detected
    slope = parts(found, "g=1")["slope"]
    assert slope.estimate == pytest.approx(-1.0, abs=0.2)
    assert "are not those of the effects" in slope.notes[0].message
    assert "inside 3 groups predicted differences follow the effects otherwise" in str(found)
    assert by["g=1"] in found.lines


def test_slopes_that_are_not_one_are_said_in_words():
    rng = np.random.default_rng(2)
    n = 4_000
    g, t, x = rng.integers(2, size=n), rng.integers(2, size=n), rng.normal(size=n)
    y = t * (1.0 + x) + 0.5 * rng.normal(size=n)
    table = {"g": g, "t": t, "y": y, "f": 1.0 + np.where(g == 0, 2.0 * x, 0.5 * x)}
    found = audit(table).treatment_effects(measure="difference")
    assert "times too large" in parts(found, "g=0")["slope"].notes[0].message
    assert "times as much as predicted" in parts(found, "g=1")["slope"].notes[0].message
    p = {f.p_value for f in found.findings if f.estimand.kind == "slope difference"}
    assert len(p) == 1
    assert audit(table).treatment_effects(measure="difference", slope=False).details["slopes"] == []


def arms_table(seed=3, n=9_000):
    rng = np.random.default_rng(seed)
    g, a, s = rng.integers(3, size=n), rng.integers(3, size=n), rng.integers(4, size=n)
    y = s + np.array([0.0, 0.3, 0.6])[a] + 0.5 * (g == 1) * (a == 2) + rng.normal(size=n)
    return {
        "g": np.array(list("xyz"))[g],
        "t": np.array(["none", "mail", "call"])[a],
        "s": s,
        "y": y,
        "f1": np.full(n, 0.3),
        "f2": np.full(n, 0.6),
    }


def test_each_arm_is_compared_with_the_control():
    table = arms_table()
    preds = {"mail": "f1", "call": "f2"}
    found = audit(table, effect_pred=preds).treatment_effects(
        measure="difference", control="none", slope=False
    )
    by = {f.group: f for f in biases(found)}
    assert len(by) == 6
    detected = [name for name, f in by.items() if f.decision == "detected"]
    assert "g=y & t=call" in detected
    assert not any("mail" in name for name in detected)
    message = next(note.message for note in found.notes if note.code == "several-arms")
    assert "has arms none, call, mail: each is compared with none" in message
    two = {k: v[table["t"] != "mail"] for k, v in table.items()}
    alone = audit(two, effect_pred="f2").treatment_effects(
        measure="difference", control="none", slope=False, adjust="none"
    )
    raw = {f.group: f.p_value_raw for f in biases(alone)}
    for group in "xyz":
        assert by[f"g={group} & t=call"].p_value_raw == pytest.approx(raw[f"g={group}"])
    assert found.joint.method == "Bonferroni over arms"
    assert len(found.details["by_arm"]) == 2
    step = audit(table, effect_pred=preds).treatment_effects(
        measure="difference", control="none", adjust="max_t", n_repeats=0
    )
    assert biases(step)[1].p_value <= 0.05
    assert found.plot() is not None


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "has arms 'call', 'mail', 'none'. Say which one"),
        ({"control": "nnoe"}, "'nnoe' is not one of them. Did you mean 'none'"),
        ({"control": "none", "split": True}, "are for one treatment; this table has 2"),
    ],
)
def test_arms_that_cannot_be_compared_are_refused(options, match):
    with pytest.raises(InvalidParameterError, match=match):
        audit(arms_table(n=900), effect_pred="f1").treatment_effects(
            measure="difference", **options
        )


def test_other_mistakes_with_arms_are_refused():
    table = arms_table(n=900)
    with pytest.raises(InvalidParameterError, match="names the arm 'post', which no row has"):
        audit(table, effect_pred={"post": "f1"}).treatment_effects(
            measure="difference", control="none"
        )
    with pytest.raises(DataError, match="every row has 'none'"):
        audit(table | {"t": ["none"] * 900}, effect_pred="f1").treatment_effects(
            measure="difference", control="none"
        )
    with pytest.raises(DataError, match="it has 900 different values"):
        audit(table | {"t": np.arange(900)}, effect_pred="f1").treatment_effects(
            measure="difference"
        )


def strata_table(seed=4, n=6_000):
    """Shares of treated differ between strata and groups; the effect is 1 everywhere."""
    rng = np.random.default_rng(seed)
    g = rng.integers(2, size=n)
    s = np.where(rng.random(n) < 0.3 + 0.4 * g, 1, 0) + 2 * rng.integers(2, size=n)
    e = np.array([0.2, 0.8, 0.5, 0.3])[s]
    t = (rng.random(n) < e).astype(int)
    y = 2.0 * s + t + rng.normal(size=n)
    return {"g": g, "s": s, "t": t, "y": y, "f": np.ones(n), "e": e}


def test_strata_and_known_chances_undo_confounding():
    table = strata_table()
    pooled = audit(table).treatment_effects(measure="difference", slope=False)
    assert abs(pooled.details["B"][0]) > 0.2
    by_strata = audit(table, strata="s").treatment_effects(measure="difference")
    assert_allclose(by_strata.details["B"], 0.0, atol=0.1)
    assert by_strata.details["n_strata"] == 4
    named = audit(table).treatment_effects(measure="difference", strata="s")
    assert named.details["B"] == by_strata.details["B"]
    by_hand = []
    for k in range(2):
        parts = []
        for s in range(4):
            rows = (table["g"] == k) & (table["s"] == s)
            y, t = table["y"][rows], table["t"][rows]
            parts.append((rows.sum(), y[t == 1].mean() - y[t == 0].mean()))
        n, effect = np.array(parts).T
        by_hand.append((n * effect).sum() / n.sum())
    assert_allclose(by_strata.details["tau"], by_hand)
    weighted = audit(table, propensity="e").treatment_effects(measure="difference")
    assert_allclose(weighted.details["B"], 0.0, atol=0.2)
    # Means within strata are far more precise than weights by known chances.
    assert by_strata.details["B_se"][0] < 0.7 * weighted.details["B_se"][0]
    assert any(note.code == "sample-ratio" for note in pooled.notes)
    assert not any(note.code == "sample-ratio" for note in by_strata.notes)


def test_the_name_does_not_decide_which_of_two_groups_lost_treated_rows():
    g, t = np.repeat([0, 1], 400), np.tile([0, 1], 400)
    t[:150] = 0
    table = {"g": g, "t": t, "y": 1.0 * t + np.arange(800) % 7, "e": np.ones(800)}
    for labels in (["lost", "whole"], ["x lost", "whole"]):
        result = eq.Audit(
            table | {"g": np.array(labels)[g]},
            group="g",
            y_true="y",
            treatment="t",
            effect_pred="e",
        ).treatment_effects(measure="difference", n_repeats=0, slope=False)
        (note,) = (note for note in result.notes if note.code == "sample-ratio")
        assert f"most in g={labels[0]}" in note.message


def test_relative_effects_within_strata(rng):
    n = 20_000
    g, s = rng.integers(2, size=n), rng.integers(3, size=n)
    t = (rng.random(n) < np.array([0.3, 0.5, 0.7])[s]).astype(int)
    y = (rng.random(n) < 0.1 * (1 + s) * (1 + 0.3 * t)).astype(float)
    table = {
        "g": g,
        "s": s,
        "t": t,
        "y": y,
        "f": np.full(n, 1.3),
        "e": np.array([0.3, 0.5, 0.7])[s],
    }
    for roles in ({"strata": "s"}, {"propensity": "e"}):
        found = audit(table, **roles).treatment_effects()
        assert_allclose(found.details["B"], 0.0, atol=0.15)
        assert {f.method for f in biases(found)} == {"t"}


def test_strata_without_both_arms_are_left_out_and_counted():
    table = strata_table(n=2_000)
    table["t"] = np.where((table["s"] == 3) & (table["g"] == 1), 1, table["t"])
    rows = int(((table["s"] == 3) & (table["g"] == 1)).sum())
    found = audit(table, strata="s").treatment_effects(measure="difference")
    message = next(note.message for note in found.notes if note.code == "one-arm-strata")
    assert message.startswith(f"{rows} rows of 1 group are left out")


@pytest.mark.parametrize(
    ("roles", "options", "error", "match"),
    [
        ({"strata": "s"}, {"split": True}, InvalidParameterError, "cannot be combined"),
        (
            {"propensity": "e"},
            {"collapse": "aipw", "control_pred": "f", "treated_pred": "f"},
            InvalidParameterError,
            'must be "control" or "mean"',
        ),
        ({"propensity": "f"}, {}, DataError, "must lie between 0 and 1, both excluded"),
        ({"strata": "s", "cluster": "c"}, {}, DataError, "strata must be made of whole clusters"),
    ],
)
def test_designs_that_do_not_fit_are_refused(roles, options, error, match):
    table = strata_table(n=1_000) | {"c": np.arange(1_000) % 50}
    with pytest.raises(error, match=match):
        audit(table, **roles).treatment_effects(measure="difference", **options)


def test_chances_near_zero_are_counted():
    table = strata_table(n=2_000)
    table["e"] = np.where(np.arange(2_000) < 3, 0.001, table["e"])
    found = audit(table, propensity="e").treatment_effects(measure="difference")
    message = next(note.message for note in found.notes if note.code == "extreme-propensity")
    assert message.startswith("3 rows have a chance")


def test_imbalance_names_the_group_and_the_covariate(rng):
    n = 2_000
    g, t, x = rng.integers(2, size=n), rng.integers(2, size=n), rng.normal(size=(n, 2))
    x[:, 1] += 0.8 * t * (g == 1)
    table = {"g": g, "t": t, "y": rng.normal(size=n), "f": np.zeros(n), "a": x[:, 0], "b": x[:, 1]}
    found = audit(table, features=["a", "b"]).treatment_effects(measure="difference")
    checks = found.details["checks"]["balance"]
    assert checks["p_value"][0] > 0.001 > checks["p_value"][1]
    assert checks["covariate"][1] == "b"
    note = next(note for note in found.notes if note.code == "balance")
    assert "in g=1" in note.message
    assert (
        audit(table).treatment_effects(measure="difference", checks=False).details["checks"] == {}
    )


def test_clusters_that_are_randomised_widen_the_interval(rng):
    c = np.repeat(np.arange(40), 30)
    g, t = c % 2, c // 2 % 2
    y = rng.normal(size=40)[c] + rng.normal(size=1_200)
    table = {"g": g, "t": t, "y": y, "f": np.zeros(1_200), "c": c}
    plain = audit(table).treatment_effects(measure="difference")
    found = audit(table, cluster="c").treatment_effects(measure="difference")
    assert found.details["B_se"][0] > 2 * plain.details["B_se"][0]
    assert found.details["units"][0]["n_units"] == [10.0, 10.0]
    assert found.details["units"][0]["df"] < 40


class Doubled:
    """Predicts twice the first feature."""

    def effect(self, X):
        return 2.0 * X[:, 0]


@pytest.mark.parametrize("engine", ["pandas", "polars", "pyarrow", "dict"])
def test_an_estimator_predicts_for_rows_in_memory(data, engine):
    small = pa.table({name: data[name] for name in ("g", "t", "y", "x", "mu0")})
    found = audit(
        on_engine(engine, small), effect_pred=Doubled(), features=["x", "mu0"]
    ).treatment_effects(measure="difference", n_repeats=0, checks=False)
    named = data | {"f": 2.0 * data["x"]}
    expected = audit(named).treatment_effects(measure="difference", n_repeats=0)
    assert_allclose(found.details["B"], expected.details["B"])


def test_an_estimator_that_cannot_predict_here_is_refused(data, tmp_path):
    class Wide(Doubled):
        def effect(self, X):
            return np.zeros((len(X), 2))

    class Learner:
        def predict(self, X):
            return X[:, :1]

    assert audit(data, effect_pred=Learner(), features="x").table.roles.effect_pred
    with pytest.raises(InvalidParameterError, match="one effect for each of 6000 rows"):
        audit(data, effect_pred=Wide(), features=["x"])
    with pytest.raises(InvalidParameterError, match="needs `features`"):
        audit(data, effect_pred=Doubled())
    with pytest.raises(InvalidParameterError, match="have a method `effect`"):
        audit(data, effect_pred=3.0, features=["x"])
    with pytest.raises(InvalidParameterError, match="predicts for rows in memory"):
        audit(str(tmp_path / "rows.parquet"), effect_pred=Doubled(), features=["x"])
    with pytest.raises(ColumnNotFoundError, match="Column 'z' of `features`"):
        audit(data, effect_pred=Doubled(), features=["z"])


def test_differences_from_a_pooled_rest_name_their_test():
    rng = np.random.default_rng(3)
    data = {
        "g": np.repeat(["a", "b"], 40),
        "y": rng.integers(2, size=80),
        "t": np.tile([0, 1], 40),
        "effect": rng.normal(0.1, 0.2, 80),
    }
    audit = eq.Audit(data, group="g", y_true="y", treatment="t", effect_pred="effect")
    result = audit.treatment_effects(measure="difference", rest="pooled", n_repeats=0)
    assert result.method.startswith("Wald test")


def test_the_names_of_groups_do_not_deal_the_halves():
    rng = np.random.default_rng(3)
    group = np.repeat(["a", "b", "c"], 40)
    data = {
        "y": rng.integers(2, size=120),
        "t": np.tile([0, 1], 60),
        "effect": rng.normal(0.1, 0.2, 120).round(1),
    }
    roles = {"group": "g", "y_true": "y", "treatment": "t", "effect_pred": "effect"}
    found = {}
    for turned in (group, np.array(["c", "b", "a"])[np.searchsorted(["a", "b", "c"], group)]):
        audit = eq.Audit(data | {"g": turned}, **roles)
        result = audit.treatment_effects(measure="difference", split=True, n_repeats=0, rng=1)
        bias = [f for f in result.findings if str(f.estimand).startswith("bias")]
        found[turned[0]] = [f.estimate for f in bias]
    assert_allclose(found["a"], found["c"][::-1])


@pytest.mark.parametrize(("treated", "rate"), [(5, "25%"), (30, "25%"), (100, None)])
def test_intervals_of_arms_too_few_to_know_their_shape_quote_a_measured_rate(treated, rate):
    rng = np.random.default_rng(0)
    n = 2 * (120 + treated)
    arm = np.tile(np.repeat([0, 1], [120, treated]), 2)
    rows = {
        "g": np.repeat(["a", "b"], n // 2),
        "t": arm,
        "y": rng.gamma(0.6, size=n),
        "e": np.zeros(n),
    }
    audit = eq.Audit(rows, group="g", y_true="y", treatment="t", effect_pred="e")
    result = audit.treatment_effects(measure="difference", n_repeats=0, rng=1)
    for finding in result.findings:
        told = [x.message for x in finding.notes if x.code == "shape-unknown"]
        with_interval = finding.estimand.kind in {"effect", "error", "remaining"}
        assert len(told) == (rate is not None and with_interval)
        assert all(rate in message for message in told)
    assert ("too few to know the shape" in str(result)) == (rate is not None)


def test_controls_without_an_event_do_not_prove_that_there_are_none():
    """None of 20 where 5% are expected happens in 36% of samples."""
    arm = np.tile(np.repeat([0, 1], [20, 400]), 2)
    rows = {
        "g": np.repeat(["a", "b"], len(arm) // 2),
        "t": arm,
        "y": ((arm == 1) & (np.arange(len(arm)) % 20 == 0)).astype(int),
        "e": np.zeros(len(arm)),
    }
    audit = eq.Audit(rows, group="g", y_true="y", treatment="t", effect_pred="e")
    result = audit.treatment_effects(measure="difference", n_repeats=0, rng=1)
    errors = [f for f in result.findings if f.estimand.kind == "error"]
    assert len(errors) == 2
    assert all(0.0 in f.ci for f in errors)
    assert not any(x.code == "shape-unknown" for f in errors for x in f.notes)


def test_rank_weighted_effects_are_about_one_treatment():
    data = experiment(n=900)
    data |= {"t": np.array(["no", "x", "z"])[np.arange(900) % 3], "f2": data["f"]}
    several = audit(data, effect_pred={"x": "f", "z": "f2"})
    with pytest.raises(InvalidParameterError, match="`ranking` is about one treatment"):
        several.treatment_effects(control="no", ranking="qini", n_repeats=0)
