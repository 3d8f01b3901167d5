import json
import sys

import narwhals as nw
import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from rich.progress import Progress

import equipoise as eq
from equipoise.audits.asking import ask
from equipoise.audits.progress import drawn_on, progress_bar
from equipoise.data.arms import arm_cells
from equipoise.data.table import Quantity
from equipoise.exceptions import (
    ColumnNotFoundError,
    DataError,
    InvalidParameterError,
    MissingValuesError,
    NotBinaryError,
)
from equipoise.plans.plan import read_plan
from equipoise.plans.run import execute
from equipoise.report.html import html_report
from equipoise.stats.effects.bias import treatment_bias
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


def code(data):
    return np.unique(data["g"], return_inverse=True)[1]


def test_findings_are_those_of_the_engine(data, result):
    errors = group_errors(effect_moments(data["y"], data["t"], data["f"], code(data)))
    expected = treatment_bias(errors)
    assert [f.group for f in result.findings] == [f"g={x}" for x in "abcdef"]
    assert_allclose([f.estimate for f in result.findings], expected.bias.estimate, rtol=1e-9)
    assert_allclose([f.p_value for f in result.findings], expected.bias.p_value, rtol=1e-7)
    assert_allclose([f.ci.low for f in result.findings], expected.bias.low, rtol=1e-7)
    assert result.joint.p_value == pytest.approx(expected.equal.p_value)
    assert result.findings[2].decision == "detected"
    assert result.n == len(data["y"])


def test_details_hold_what_the_question_promises(data, result):
    details = result.details
    errors = group_errors(effect_moments(data["y"], data["t"], data["f"], code(data)))
    assert_allclose(details["tau"], errors.effect)
    assert_allclose(details["tau_f"], errors.predicted)
    assert_allclose(details["B"], errors.error)
    assert_allclose(details["A"], [f.estimate for f in result.findings])
    assert set(details["omnibus"]) == {"equal", "zero"}
    assert details["prior_sd"] > 0
    assert details["correction"] == "eb"
    assert len(details["corrections"]["eb"]) == 6
    assert details["evaluation"]["recommended"] in details["evaluation"]["corrections"]
    left = np.array(details["remaining"]["B"])
    assert_allclose(left, errors.error - details["corrections"]["eb"])
    text = json.dumps(result.to_dict(), allow_nan=False)
    assert eq.AuditResult.from_dict(json.loads(text)).details == json.loads(text)["details"]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_numbers_splits_included(data, result, engine):
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
def test_clusters_stay_in_one_block_and_widen_the_intervals(data, cluster):
    named = data | {"name": np.array([f"u{k}" for k in data["u"]])}
    found = audit(named, cluster=cluster).treatment_effects(n_repeats=2)
    errors = group_errors(
        effect_moments(data["y"], data["t"], data["f"], code(data), cluster=data["u"])
    )
    assert_allclose(found.details["B_se"], errors.error_se, rtol=1e-8)
    assert found.details["n_clusters"] == len(np.unique(data["u"]))
    assert found.details["evaluation"]["n_groups"] == 6


def test_negative_cluster_numbers_are_hashed_too(data):
    found = audit(data | {"u": data["u"] - 500}, cluster="u").treatment_effects(n_repeats=1)
    assert found.details["evaluation"]["n_repeats"] == 1


def test_weights_reach_the_engine(data):
    found = audit(data, weight="w").treatment_effects(n_repeats=1)
    errors = group_errors(
        effect_moments(data["y"], data["t"], data["f"], code(data), weight=data["w"])
    )
    assert_allclose(found.details["B"], errors.error, rtol=1e-9)
    assert_allclose(found.details["B_se"], errors.error_se, rtol=1e-8)


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
    assert_allclose(found.details["B_se"], errors.error_se, rtol=1e-6)


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


def test_groups_too_small_for_halves_leave_the_evaluation_out():
    rng = np.random.default_rng(2)
    n = 120
    table = {
        "g": np.arange(n) % 2,
        "t": np.arange(n) // 2 % 2,
        "y": (rng.random(n) < 0.08).astype(float),
        "f": rng.uniform(1.0, 1.4, n),
    }
    table["y"][:4] = 1.0
    found = audit(table).treatment_effects()
    assert found.details["evaluation"] is None
    assert any(note.code == "no-evaluation" for note in found.notes)


def test_split_uses_halves_and_says_what_it_costs(data, result):
    found = audit(data).treatment_effects(split=True, n_repeats=0)
    ratio = np.array(found.details["B_se"]) / np.array(result.details["B_se"])
    assert_allclose(np.median(ratio), np.sqrt(2), rtol=0.15)
    assert any(note.code == "split-halves" for note in found.notes)


def test_margin_shows_equivalence_where_the_data_can(data):
    found = audit(data).treatment_effects(margin=1.5, n_repeats=0)
    assert [f.decision for f in found.findings].count("within margin") == 6
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
    assert {n.code for n in found.notes} >= {"few-groups", "evaluation-groups"}


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
    assert [note.code for note in found.findings[1].notes] == [
        "few-control-positives",
        "unbounded",
    ]


@pytest.mark.parametrize(
    ("change", "roles", "options", "error", "match"),
    [
        ({"t": "t+1"}, {}, {}, NotBinaryError, r"`treatment` must be 0 or 1 here"),
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


def test_blocks_of_zero_outcomes_are_dealt_out_like_the_others():
    data = experiment(n=40_000, groups=2)
    table = audit(data).table
    quantities = [
        Quantity.of(value)
        for value in (nw.lit(1.0), table.y_true, table.y_true * table.effect_pred)
    ]
    needs = {"y_true": "number", "treatment": "label", "effect_pred": "number"}
    dealt = ask(arm_cells(table, quantities, needs, n_blocks=16, only_nonzero=True))
    keyed = ask(arm_cells(table, quantities, needs, n_blocks=16))
    for arms in (dealt, keyed):
        n = arms.cells.n.reshape(16, 4)
        expected = n.sum(axis=0) / 16
        spread = ((n - expected) ** 2 / expected).sum()
        assert 25 < spread < 110  # chi-square with 60 degrees of freedom, 0.9999 region
    assert_allclose(dealt.cells.total.sum(axis=0), keyed.cells.total.sum(axis=0))


def test_evaluation_in_the_audit_is_that_of_the_engine_on_its_blocks(data, result):
    found = result.details["evaluation"]
    assert found["n_repeats"] == 10
    none = found["error_mean_square"][found["corrections"].index("none")]
    b, se = np.array(result.details["B"]), np.array(result.details["B_se"])
    # Without a correction the estimate over halves is close to that from all rows.
    assert none == pytest.approx(np.mean(b**2 - se**2), rel=0.2)


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
    assert "remaining after the correction" in page


def test_picture_shows_before_and_after_and_the_spread(result):
    axes = result.plot()
    gids = {artist.get_gid() for artist in axes.lines}
    assert {"finding-2", "finding-2-interval", "finding-2-after"} <= gids
    spread = axes.figure.axes[1]
    assert {"spread-prior", "spread-estimates"} <= {line.get_gid() for line in spread.lines}
    alone = result.plot(ax=spread)
    assert alone is spread


def test_picture_of_groups_without_a_test_is_the_forest(data):
    one = {name: values[data["g"] == "a"] for name, values in data.items()}
    assert audit(one).treatment_effects().plot().get_yticklabels()[0].get_text() == "g=a"


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
    labels = [t.get_text() for t in found.plot().figure.axes[1].get_legend().get_texts()]
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
