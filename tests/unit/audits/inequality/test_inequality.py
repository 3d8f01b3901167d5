import json

import numpy as np
import pyarrow as pa
import pytest

import equipoise as eq
from equipoise.design import benefit_design
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError
from equipoise.results.finding import Decision
from equipoise.results.wording import headline
from equipoise.stats.inequality.benefits import (
    BenefitMoments,
    exact_bounds,
    hard_benefits,
    soft_benefits,
)
from equipoise.stats.inequality.decomposition import between_test, decompose
from equipoise.stats.inequality.index import entropy_index
from equipoise.stats.inequality.resampled import resampled_intervals
from support.engines import ENGINES, on_engine


def people(rng, n=400, *, classes=2):
    group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    y = rng.integers(classes, size=n)
    guess = np.where(rng.random(n) < 0.7, y, rng.integers(classes, size=n))
    return {
        "group": group,
        "y": y,
        "decision": guess,
        "score": np.clip(0.5 * y + rng.uniform(0, 0.5, n), 0, 1),
        "benefit": rng.gamma(2.0, size=n) + 0.01,
        "weight": rng.uniform(0.5, 2.0, n),
        "unit": rng.integers(80, size=n),
    }


def audit(rows, **roles):
    known = {"group": "group", "y_true": "y", "y_pred": "decision", "y_score": "score"}
    return eq.Audit(rows, **(known | roles))


def codes(rows):
    return np.unique(rows["group"], return_inverse=True)[1]


MATRIX3 = [[1.0, 0.5, 0.2], [0.6, 1.0, 0.5], [0.3, 0.8, 1.2]]


def expected_benefits(rows, kind):
    if kind == "hard":
        return hard_benefits(rows["y"], rows["decision"])
    if kind == "soft":
        return soft_benefits(rows["y"], rows["score"])
    if kind == "classes":
        return hard_benefits(rows["y"], rows["decision"], matrix=MATRIX3)
    return rows["benefit"]


ASKED = {
    "hard": ("speicher", {}),
    "soft": ("speicher", {"soft": True}),
    "classes": (MATRIX3, {}),
    "column": ("benefit", {}),
}


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("order", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("clustered", [False, True])
def test_every_kind_of_benefit_equals_a_computation_from_rows(rng, kind, order, clustered):
    rows = people(rng, classes=3 if kind == "classes" else 2)
    roles = {"weight": "weight"} | ({"cluster": "unit"} if clustered else {})
    benefits, options = ASKED[kind]
    found = audit(rows, **roles).inequality(benefits, order=order, **options)
    moments = BenefitMoments.from_rows(
        expected_benefits(rows, kind),
        codes(rows),
        order=order,
        weight=rows["weight"],
        cluster=rows["unit"] if clustered else None,
    )
    parts = decompose(moments)
    details = found.details
    assert details["total"]["estimate"] == pytest.approx(parts.total, rel=1e-9)
    assert details["total"]["se"] == pytest.approx(parts.total_se, rel=1e-8)
    assert details["within"]["estimate"] == pytest.approx(parts.within, rel=1e-9)
    assert details["between"]["estimate"] == pytest.approx(parts.between, rel=1e-8)
    assert details["between"]["corrected"] == pytest.approx(parts.between_corrected, rel=1e-6)
    assert found.joint.p_value == pytest.approx(between_test(moments).p_value, rel=1e-6)
    for g, record in enumerate(details["contributions"]):
        assert record["between"]["estimate"] == pytest.approx(parts.between_group[g], rel=1e-6)
        assert record["within"]["se"] == pytest.approx(parts.within_group_se[g], rel=1e-7)
        assert record["mean_benefit"] == pytest.approx(parts.relative_mean[g] * parts.mean)


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_agree(rng, engine):
    rows = people(rng)
    table = pa.table({name: pa.array(values) for name, values in rows.items()})
    local = audit(rows)
    other = audit(on_engine(engine, table))
    for benefits, options in (
        ("speicher", {"order": 2.0}),
        ("speicher", {"soft": True, "order": 0.5}),
        ("benefit", {"order": 0.0}),
        ("benefit", {"order": 1.0}),
    ):
        first = local.inequality(benefits, **options).to_dict()
        second = other.inequality(benefits, **options).to_dict()
        for one, two in zip(first["findings"], second["findings"], strict=True):
            assert one["group"] == two["group"]
            for name in ("estimate", "ci_low", "ci_high", "p_value"):
                if one[name] is None:
                    assert two[name] is None
                else:
                    assert two[name] == pytest.approx(one[name], rel=1e-8, abs=1e-12)


def test_findings_are_the_parts_then_the_contributions(rng):
    found = audit(people(rng)).inequality("speicher")
    listed = [(f.group, f.estimand) for f in found.findings]
    assert listed[:3] == [
        ("everybody", "inequality index"),
        ("everybody", "within-group part"),
        ("everybody", "between-group part"),
    ]
    assert listed[3:5] == [("group=a", "between contribution"), ("group=a", "within contribution")]
    assert len(listed) == 3 + 2 * 3
    assert all(f.ci is not None for f in found.findings)


def test_parts_and_contributions_add_up(rng):
    details = audit(people(rng)).inequality("benefit", order=0.7).details
    total, within, between = (details[k]["estimate"] for k in ("total", "within", "between"))
    assert within + between == pytest.approx(total)
    for part in ("within", "between"):
        assert sum(c[part]["estimate"] for c in details["contributions"]) == pytest.approx(
            details[part]["estimate"]
        )
    assert details["within_share"] + details["between_share"] == pytest.approx(1.0)
    assert details["between_share"] == pytest.approx(between / total)


def test_result_is_json_safe_and_prints_in_eighty_columns(rng):
    rows = people(rng)
    rows["group"] = np.where(rows["group"] == "a", "<b>", rows["group"])
    found = audit(rows).inequality(benefit_design(0.5, 3, "punitive"))
    again = eq.AuditResult.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert str(again) == str(found)
    assert max(len(line) for line in str(found).splitlines()) <= 80
    assert "<b>" not in found._repr_html_().replace("<b>", "", 0).split("<table>")[1].replace(
        "&lt;b&gt;", ""
    )


@pytest.mark.parametrize("kind", ["punitive", "assistive"])
def test_direct_contrast_comes_before_the_cap(rng, kind):
    rows = people(rng, 2000)
    found = audit(rows).inequality(benefit_design(0.5, 2, kind))
    contrast, cap = found.findings[3:5]
    y, decision = rows["y"], rows["decision"]
    fpr, fnr = decision[y == 0].mean(), 1 - decision[y == 1].mean()
    names = ("fnr - 2 x fpr", fnr - 2 * fpr) if kind == "punitive" else (
        "fpr - 2 x fnr", fpr - 2 * fnr)  # fmt: skip
    assert contrast.estimand == names[0]
    assert contrast.estimate == pytest.approx(names[1])
    assert contrast.decision is Decision.DETECTED
    assert cap.estimand == "index less its cap"
    assert cap.decision is Decision.NOT_DETECTED
    assert list(found.details["cap"])[-2:] == ["contrast", "index"]
    assert found.details["error_rates"]["fpr"] == pytest.approx(fpr)


def test_a_lenient_rule_is_shown_to_respect_the_ratio():
    rows = {
        "group": ["a", "b"] * 4,
        "y": [0, 0, 0, 0, 1, 1, 1, 1],
        "decision": [0, 0, 1, 1, 0, 0, 1, 1],
        "count": [2000, 2000, 2, 1, 900, 950, 60, 50],
    }
    result = audit(rows, count="count", y_score=None).inequality(
        benefit_design(0.33, 10, "punitive")
    )
    contrast, cap = result.findings[3:5]
    assert contrast.decision is Decision.WITHIN_MARGIN
    assert contrast.method == "Clopper-Pearson rectangle"
    assert cap.decision is Decision.WITHIN_MARGIN
    assert result.details["roc"] is None


def test_kappa_with_a_matrix_uses_the_observed_base_rate(rng):
    rows = people(rng)
    by_matrix = audit(rows).inequality([[2.0, 2.0], [0.2, 1.6]], kappa=4)
    assert by_matrix.details["cap"]["base_rate"] == pytest.approx(rows["y"].mean())
    assert by_matrix.details["cap"]["low"] == pytest.approx(0.1)
    assert by_matrix.details["cap"]["kappa"] == 4


def test_design_may_be_a_dictionary_as_in_a_plan(rng):
    rows = people(rng)
    options = {"base_rate": 0.5, "kappa": 3, "kind": "punitive", "order": 0.5}
    by_dict = audit(rows).inequality(options)
    by_design = audit(rows).inequality(benefit_design(**options))
    assert by_dict.to_dict() == by_design.to_dict()


def test_moved_base_rate_is_noted(rng):
    rows = people(rng)
    found = audit(rows).inequality(benefit_design(0.3, 10, "punitive"))
    assert "base-rate-moved" in {note.code for note in found.notes}
    near = audit(rows).inequality(benefit_design(float(rows["y"].mean()), 10, "punitive"))
    assert "base-rate-moved" not in {note.code for note in near.notes}


def test_rare_benefit_levels_get_exact_bounds():
    rows = {
        "group": ["a", "b"] * 4,
        "y": [0, 0, 0, 0, 1, 1, 1, 1],
        "decision": [0, 0, 1, 1, 0, 0, 1, 1],
        "count": [200, 180, 2, 1, 40, 50, 60, 50],
    }
    matrix = [[1.0, 1.0], [0.1, 0.9]]
    found = audit(rows, count="count", y_score=None).inequality(matrix, order=0.5)
    bounds = exact_bounds([[380, 90], [3, 110]], matrix=matrix, order=0.5)
    total = found.findings[0]
    assert (total.ci.low, total.ci.high) == pytest.approx((bounds.low, bounds.high), rel=1e-6)
    assert total.method == "exact binomial bounds"
    assert "rare-benefit" in {note.code for note in total.notes}


def test_small_groups_are_not_tested_but_listed(rng):
    rows = people(rng)
    rows["group"] = np.where(np.arange(400) < 3, "tiny", rows["group"])
    found = audit(rows).inequality("speicher")
    tiny = next(f for f in found.findings if f.group == "group=tiny")
    assert tiny.decision is Decision.NOT_TESTED
    assert tiny.notes[0].code == "too-few-units"
    assert found.details["contributions"][3]["between"]["ci_low"] is None


def test_one_group_has_an_index_and_no_test(rng):
    found = audit(people(rng), group=()).inequality("speicher")
    assert [f.estimand for f in found.findings] == ["inequality index", "within-group part"]
    assert found.joint.decision is Decision.NOT_TESTED
    assert found.details["contributions"] == []


def test_roc_of_the_score_is_in_the_details(rng):
    rows = people(rng)
    roc = audit(rows).inequality(benefit_design(0.5, 3, "punitive")).details["roc"]
    assert (roc[0]["fpr"], roc[0]["fnr"]) == (1.0, 0.0)
    assert (roc[-1]["threshold"], roc[-1]["fpr"], roc[-1]["fnr"]) == (None, 0.0, 1.0)
    middle = roc[len(roc) // 2]
    chosen = np.round(rows["score"], 3) >= middle["threshold"] - 1e-9
    assert middle["fpr"] == pytest.approx(chosen[rows["y"] == 0].mean())
    assert middle["fnr"] == pytest.approx(1 - chosen[rows["y"] == 1].mean())


def test_clusters_are_counted(rng):
    found = audit(people(rng), cluster="unit").inequality("speicher")
    assert found.details["n_clusters"] == 80


def test_missing_benefits_are_counted_or_dropped(rng):
    rows = people(rng)
    rows["benefit"] = np.where(np.arange(400) < 7, np.nan, rows["benefit"])
    with pytest.raises(MissingValuesError, match="'benefit' has 7 missing values in 400 rows"):
        audit(rows).inequality("benefit")
    found = audit(rows, missing="drop").inequality("benefit")
    assert found.n == 393
    assert found.details["total"]["estimate"] == pytest.approx(entropy_index(rows["benefit"][7:]))
    assert "missing-dropped" in {note.code for note in found.notes}


@pytest.mark.parametrize(
    ("change", "benefits", "options", "error", "message"),
    [
        ({"benefit": -1.0}, "benefit", {}, DataError, "at least zero; 1 of 400 rows are negative"),
        ({"benefit": 0.0}, "benefit", {"order": 0.0}, DataError, "infinite.*1 of 400 rows"),
        ({"decision": 3}, MATRIX3, {}, DataError, "labels 0 to 2.*1 of 400 rows are outside"),
        ({"score": 1.5}, "speicher", {"soft": True}, DataError, "in .0, 1.; 1 of 400 rows"),
        ({}, "speicher", {"order": 0.0}, InvalidParameterError, "infinite when a benefit is zero"),
        ({}, [[1, 2, 3], [4, 5, 6]], {}, InvalidParameterError, "must be square"),
        ({}, [[1, -1], [1, 1]], {}, InvalidParameterError, "at least zero"),
        ({}, "benefits", {}, InvalidParameterError, "Did you mean 'benefit'"),
        ({}, "group", {}, DataError, "benefits must be numeric; column 'group'"),
        ({}, "benefit", {"soft": True}, InvalidParameterError, "need a benefit matrix"),
        ({}, "speicher", {"kappa": 3}, InvalidParameterError, "which error is harmful"),
        ({}, [[1, 0], [2, 1]], {"kappa": 3}, InvalidParameterError, "`benefit_design` makes one"),
        ({}, {"base_rate": 0.1, "kappa": 5}, {}, InvalidParameterError, "cannot be encoded"),
        ({}, {"base_rate": 0.1}, {}, InvalidParameterError, "needs `kappa`"),
        ({}, {"base_rat": 0.1}, {}, InvalidParameterError, "Did you mean 'base_rate'"),
        ({}, {"base_rate": 0.5, "kappa": 5}, {"soft": True}, InvalidParameterError, "decisions"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_clear_sentence(rng, change, benefits, options, error, message):
    rows = people(rng)
    for name, value in change.items():
        rows[name] = rows[name].copy()
        rows[name][0] = value
    with pytest.raises(error, match=message):
        audit(rows).inequality(benefits, **options)


def test_design_keeps_its_own_order_and_ratio(rng):
    design = benefit_design(0.5, 3, "punitive", order=0.5)
    assert audit(people(rng)).inequality(design).details["order"] == 0.5
    with pytest.raises(InvalidParameterError, match=r"the design has order 0\.5 and kappa 3"):
        audit(people(rng)).inequality(design, order=2.0)


def test_all_benefits_zero_are_refused(rng):
    rows = people(rng)
    rows["benefit"] = np.zeros(400)
    with pytest.raises(InvalidParameterError, match="mean benefit must be positive"):
        audit(rows).inequality("benefit")


def test_a_plan_can_ask_for_inequality(rng, tmp_path):
    import pyarrow.parquet as pq

    from equipoise.plans.plan import read_plan
    from equipoise.plans.run import execute

    rows = people(rng)
    pq.write_table(pa.table({k: pa.array(v) for k, v in rows.items()}), tmp_path / "rows.parquet")
    (tmp_path / "plan.toml").write_text(
        '[data]\npath = "rows.parquet"\ngroup = "group"\ny_true = "y"\ny_pred = "decision"\n'
        '[[check]]\nquestion = "inequality"\nbenefits = "speicher"\norder = 2\n'
        '[[check]]\nquestion = "inequality"\nbenefits = [[1.0, 1.0], [0.1, 0.8]]\nkappa = 4\n'
        '[[check]]\nquestion = "inequality"\n'
        'benefits = { base_rate = 0.5, kappa = 3, kind = "assistive" }\n'
    )
    dossier = execute(read_plan(tmp_path / "plan.toml"))
    results = [check.result for check in dossier.checks]
    direct = audit(rows).inequality("speicher", order=2)
    assert results[0].findings[0].estimate == pytest.approx(direct.findings[0].estimate)
    assert results[1].details["cap"]["kappa"] == 4
    assert results[2].details["cap"]["kind"] == "assistive"


def test_one_outcome_has_no_error_rates(rng):
    rows = people(rng)
    rows["y"] = np.zeros(400, dtype=int)
    found = audit(rows, y_score=None).inequality("speicher", order=2)
    assert found.details["error_rates"]["fpr"] is None
    with pytest.raises(InvalidParameterError, match="people of both outcomes"):
        audit(rows, y_score=None).inequality(benefit_design(0.5, 3, "punitive"))


ABOVE = "3 times the false positive rate is shown to be above the false negative rate."
OPEN = "whether 3 times the false positive rate is below the false negative rate is not settled."


@pytest.mark.parametrize(
    ("false_alarms", "misses", "said"),
    [(100, 20, ABOVE), (2, 100, ABOVE.replace("above", "below")), (30, 95, OPEN)],
)
def test_the_headline_says_whether_harmful_errors_are_as_rare_as_asked(false_alarms, misses, said):
    y = np.repeat([0, 1], 200)
    d = y.copy()
    d[:false_alarms], d[200 : 200 + misses] = 1, 0
    rows = {"group": np.tile(["a", "b"], 200), "y": y, "decision": d}
    found = audit(rows, y_score=None).inequality(benefit_design(0.5, 3, "punitive"))
    assert headline(found).endswith(f"; {said}")


def test_a_finding_without_a_test_is_estimated(rng):
    findings = audit(people(rng)).inequality("speicher").findings
    untested = [f for f in findings if f.p_value is None and f.estimate is not None]
    assert untested
    assert {f.decision for f in untested} == {Decision.ESTIMATED}
    assert not any(f.decision is Decision.ESTIMATED for f in findings if f.p_value is not None)


def test_real_valued_benefits_have_resampled_intervals(rng):
    benefit = rng.lognormal(0.0, 0.8, 80)
    table = {"group": np.repeat(["a", "b"], 40), "gain": benefit}
    result = eq.Audit(table, group="group").inequality("gain", rng=5)
    expected = resampled_intervals(benefit, np.arange(80) // 40, rng=5)
    total, within, between = result.findings[:3]
    assert total.method == within.method == "studentised bootstrap"
    assert (total.ci.low, total.ci.high) == pytest.approx(expected.total)
    assert (within.ci.low, within.ci.high) == pytest.approx(expected.within)
    assert within.estimate + between.estimate == pytest.approx(total.estimate)
    other = eq.Audit(table, group="group").inequality("gain", rng=6)
    assert other.findings[0].ci != total.ci


def test_names_of_groups_do_not_change_resampled_intervals(rng):
    table = {"group": np.repeat(["a", "b"], 40), "gain": rng.lognormal(0.0, 0.8, 80)}
    renamed = table | {"group": np.repeat(["z", "b"], 40)}
    one, two = (eq.Audit(t, group="group").inequality("gain").findings for t in (table, renamed))
    assert [f.ci for f in one[:3]] == [f.ci for f in two[:3]]


def test_counts_are_rows_repeated(rng):
    gain, count = rng.gamma(2.0, size=40).round(2), rng.integers(1, 4, 40)
    sexes = np.repeat(["a", "b"], 20)
    counted = eq.Audit({"g": sexes, "gain": gain, "k": count}, group="g", count="k")
    rows = {"g": np.repeat(sexes, count), "gain": np.repeat(gain, count)}
    one = counted.inequality("gain").findings
    two = eq.Audit(rows, group="g").inequality("gain").findings
    for a, b in zip(one[:3], two[:3], strict=True):
        assert (a.estimate, a.ci.low, a.ci.high) == pytest.approx((b.estimate, b.ci.low, b.ci.high))


@pytest.mark.parametrize("weighted", [False, True])
def test_clusters_are_summed_where_the_rows_are_and_drawn_whole(rng, weighted):
    cluster = np.repeat(np.arange(12), 5)
    gain = np.exp(0.4 * rng.normal(size=12)[cluster] + 0.3 * rng.normal(size=60))
    weight = rng.uniform(1.0, 2.0, 60) if weighted else np.ones(60)
    table = {"g": np.arange(60) % 2, "gain": gain, "who": cluster, "w": weight}
    roles = {"group": "g", "cluster": "who"} | ({"weight": "w"} if weighted else {})
    result = eq.Audit(table, **roles).inequality("gain", order=2)
    expected = resampled_intervals(
        gain, np.arange(60) % 2, order=2.0, cluster=cluster, weight=weight
    )
    total = result.findings[0]
    assert (total.ci.low, total.ci.high) == pytest.approx(expected.total)
    assert "few-units" in {note.code for note in result.notes}


def test_one_group_of_clusters_needs_no_group_column(rng):
    cluster = np.repeat(np.arange(30), 3)
    table = {"gain": rng.gamma(2.0, size=90), "who": cluster}
    result = eq.Audit(table, cluster="who").inequality("gain")
    expected = resampled_intervals(table["gain"], cluster=cluster)
    assert (result.findings[0].ci.low, result.findings[0].ci.high) == pytest.approx(expected.total)
    assert "few-units" not in {note.code for note in result.notes}


@pytest.mark.parametrize(("tail", "noted"), [(1.0, False), (40.0, True)])
@pytest.mark.parametrize("weighted", [False, True])
def test_large_tables_say_when_a_few_rows_make_the_error(rng, tail, noted, weighted):
    gain = rng.gamma(4.0, size=20_001)
    gain[:3] *= tail
    table = {"gain": gain, "w": np.full(20_001, 2.0)}
    roles = {"weight": "w"} if weighted else {}
    result = eq.Audit(table, **roles).inequality("gain", order=2)
    assert result.findings[0].method == "log-Wald interval"
    assert ("heavy-tail" in {note.code for note in result.notes}) == noted


def test_large_weighted_tables_of_decisions_are_answered_from_sums(rng):
    n = 20_001
    table = {"y": rng.integers(0, 2, n), "p": rng.integers(0, 2, n), "w": rng.random(n) + 0.5}
    result = eq.Audit(table, y_true="y", y_pred="p", weight="w").inequality("speicher")
    assert result.findings[0].method == "log-Wald interval"
    assert "heavy-tail" not in {note.code for note in result.notes}


def test_a_benefit_that_nobody_has_may_be_zero_at_order_zero():
    data = {"g": ["a", "a", "b", "b"], "y": [0] * 4, "p": [0, 1, 0, 1], "u": [1, 1, 2, 3]}
    result = eq.Audit(data, group="g", y_true="y", y_pred="p", cluster="u").inequality(
        "speicher", order=0.0
    )
    assert result.findings[0].estimate == pytest.approx(np.log(1.5) - np.log(2) / 2)


def test_an_interval_of_few_rows_holds_its_estimate():
    """The resamples of these rows left the estimate out by a millionth."""
    data = {"g": ["a", "b", "b", "b", "b"], "y": [0, 1, 1, 0, 1], "p": [1, 0, 1, 0, 1]}
    for k in range(20):
        weight = np.random.default_rng(k).choice([0.1, 0.2, 0.7, 0.9, 1.0], 5)
        audit = eq.Audit(data | {"w": weight}, group="g", y_true="y", y_pred="p", weight="w")
        for finding in audit.inequality("speicher").findings[:2]:
            assert finding.estimate in finding.ci


def test_resamples_in_which_nobody_benefits_do_not_warn():
    y, p = [0, 1, 1, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 1, 0, 0, 0, 0]
    data = {"g": ["a"] * 4 + ["b"] * 5, "y": y, "p": p, "c": [0, 1, 2, 3, 0, 1, 2, 3, 3]}
    audit = eq.Audit(data, group="g", y_true="y", y_pred="p", cluster="c")
    result = audit.inequality([[1.0, 0.0], [2.0, 1.0]], order=0.5, rng=1)
    assert result.findings[0].estimate > 0.0


@pytest.mark.parametrize("order", [0.0, 1.0, 2.0])
def test_equal_benefits_with_weights_have_no_inequality_in_any_order_of_rows(rng, order):
    weight, groups = rng.lognormal(size=300), np.repeat(["a", "b", "c"], 100)
    answers = set()
    for _ in range(5):
        place = rng.permutation(300)
        rows = {"benefit": np.full(300, 0.1), "group": groups[place], "weight": weight[place]}
        found = eq.Audit(rows, group="group", weight="weight").inequality(
            "benefit", order=order, rng=0
        )
        answers.add(tuple((str(f.estimand), f.estimate, f.decision) for f in found.findings))
    assert len(answers) == 1
    assert found.findings[0].estimate == 0.0
    assert found.joint.decision is Decision.NOT_TESTED
    assert found.joint.notes[0].code == "degenerate"
