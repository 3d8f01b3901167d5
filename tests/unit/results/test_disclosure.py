"""Nothing that leaves the process tells the numbers of a few people."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import equipoise as eq
from equipoise._names import GroupName
from equipoise.exceptions import InvalidParameterError
from equipoise.plans.gate import junit_xml
from equipoise.report.html import html_report
from equipoise.report.impact_tables import impact_tables
from equipoise.results.disclosure import MIN_CELL, disclosed, withheld_groups, without
from equipoise.results.finding import Decision, Finding
from equipoise.results.result import AuditResult
from equipoise.results.tables import table
from equipoise.results.wording import finding_words, names
from support.specimens import check, dossier, finding, result


def named(n, reference="the population", **parts):
    return finding(GroupName(parts.items()), 0.123456, 0.1, 0.2, n=n, reference=reference)


def hidden(*findings, min_cell=MIN_CELL):
    return sorted(withheld_groups([result(findings=findings)], min_cell))


def test_a_small_group_and_the_next_smallest_are_withheld():
    groups = [named(3, race="a"), named(40, race="b"), named(900, race="c")]
    assert hidden(*groups) == ["race=a", "race=b"]
    assert hidden(*groups, min_cell=1) == []
    assert hidden(*groups, min_cell=3) == []


def test_two_small_groups_hide_each_other_only_if_they_are_enough_together():
    assert hidden(named(3, r="a"), named(4, r="b"), named(90, r="c")) == ["r=a", "r=b"]
    assert hidden(named(1, r="a"), named(2, r="b"), named(90, r="c")) == ["r=a", "r=b", "r=c"]


def test_a_group_is_withheld_where_its_parts_would_give_it_away():
    findings = [
        named(500, sex="f"),
        named(500, sex="m"),
        named(503, race="a"),
        named(497, race="b"),
        named(497, sex="f", race="a"),
        named(3, sex="f", race="b"),
        named(6, sex="m", race="a"),
        named(494, sex="m", race="b"),
    ]
    assert len(hidden(*findings)) >= 4


def test_a_group_that_is_small_for_one_metric_is_withheld_for_all():
    tiny, whole = named(3, g="a"), named(12, g="a")
    rest = [named(100, g="b"), named(200, g="c")]
    groups = withheld_groups([result(findings=[tiny, *rest]), result(findings=[whole, *rest])])
    assert "g=a" in groups


def test_whatever_is_compared_with_a_withheld_group_is_withheld():
    lines = [named(900, reference="race=a", race="b"), named(3, race="a"), named(800, race="c")]
    shown = disclosed(result(findings=lines))
    assert [f.withheld for f in shown.findings] == [True, True, True]


def test_what_is_withheld_for_its_reference_is_told_in_other_results():
    small, big = named(3, race="a"), named(40, race="b")
    others = [named(800, race="c"), named(900, race="d")]
    beside = [named(f.n, reference="race=a", race=f.group[-1]) for f in (big, *others)]
    apart = dossier(
        check("first", result(findings=[small, *beside])),
        check("second", result(findings=[small, big, *others])),
    )
    once = apart.disclosed()
    assert [f.withheld for f in once.checks[0].result.findings] == [True] * 4
    assert [f.withheld for f in once.checks[1].result.findings] == [True, True, False, False]
    assert [[note.code for note in f.notes] for f in once.checks[0].result.findings] == [
        ["withheld"],
        ["withheld"],
        ["withheld-reference"],
        ["withheld-reference"],
    ]
    # What is read from a file, or written twice, is not withheld further.
    assert once.disclosed() == once


def test_ratios_to_a_small_highest_category_are_withheld_with_one_sentence():
    rows = {"g": ["a"] * 60 + ["b"] * 70 + ["c"] * 4, "p": [1, 0] * 30 + [1, 0, 0] * 23 + [1] * 5}
    whole = eq.Audit(rows, group="g", y_pred="p").impact_ratios()
    assert whole.details["tables"][0]["highest"] == "g=c"
    shown = whole.disclosed()
    told = {f.group: f.notes[0].message for f in shown.findings}
    assert told["g=b"].startswith("Numbers of the whole table are withheld: the category that the")
    assert told["g=c"].startswith("Numbers are withheld: fewer than 5 rows")
    assert all(f.withheld for f in shown.findings)
    assert shown.details["tables"][0]["highest"] is None
    again = AuditResult.from_dict(json.loads(json.dumps(shown.to_dict())))
    assert str(again.disclosed()) == str(shown)


def test_details_say_nothing_of_withheld_groups():
    lines = [named(3, g="a"), named(40, g="b"), named(900, g="c")]
    values = [{"group": f.group, "group_value": 0.5, "target_value": 0.4, "se": 0.1} for f in lines]
    shown = result(findings=lines, details={"values": values}).disclosed()
    assert [entry["group"] for entry in shown.details.values] == ["g=c"]
    assert disclosed(shown) is shown


def test_the_file_keeps_what_was_withheld():
    lines = [named(3, g="a"), named(40, g="b"), named(900, g="c")]
    shown = result(findings=lines).disclosed()
    written = json.loads(json.dumps(shown.to_dict()))
    first = written["findings"][0]
    assert (first["withheld"], first["n"], first["estimate"]) == (True, None, None)
    assert AuditResult.from_dict(written) == shown
    assert shown.to_frame("pyarrow").column("n").to_pylist() == [None, None, 900]


@pytest.mark.parametrize("write", [table, AuditResult._repr_html_])
def test_text_has_no_number_of_a_withheld_group(write):
    lines = [named(3, g="a"), named(40, g="b"), named(900, g="c")]
    text = write(result(findings=lines).disclosed())
    assert text.count("withheld") >= 2
    assert text.count("0.123") == 1


def test_the_page_and_the_gate_file_have_no_number_of_a_withheld_group():
    lines = [named(3, g="a"), named(40, g="b"), named(900, g="c")]
    whole = dossier(check("flag", result("flag", lines, details={"alternative": "greater"})))
    page = html_report(whole)
    assert "withheld" in page
    assert "n = 3," not in page
    assert html_report(whole.disclosed()) == page
    untested = finding("g=d", n=3, decision=Decision.NOT_TESTED)
    xml = junit_xml(dossier(check("flag", result("flag", [untested]))).disclosed().checks)
    assert "Numbers are withheld" in xml
    shown = whole.disclosed().checks[0].result
    assert finding_words(shown)[0] == "g: a: withheld"


def test_a_withheld_finding_has_no_numbers():
    with pytest.raises(InvalidParameterError, match="is withheld but has numbers"):
        Finding(
            group="g=a",
            estimand="x",
            decision=Decision.DETECTED,
            n=0,
            method="",
            estimate=0.1,
            withheld=True,
        )


def test_the_limit_is_a_count():
    with pytest.raises(InvalidParameterError, match="`min_cell` must be"):
        result().disclosed(min_cell=0)


def test_results_in_memory_are_whole():
    table = {"g": ["a"] * 3 + ["b"] * 40 + ["c"] * 60, "p": [0, 1] * 51 + [1]}
    audit = eq.Audit(table, group="g", y_pred="p").disparity("selection_rate")
    assert audit.findings[0].n == 3
    assert audit.disclosed().findings[0].withheld


@given(
    counts=st.lists(st.integers(1, 30), min_size=12, max_size=12),
)
@settings(max_examples=60)
def test_no_withheld_count_follows_from_the_printed_ones(counts):
    levels = {"a": "xyz", "b": "uv", "c": "pq"}
    cells = dict(zip(itertools.product(*levels.values()), counts, strict=True))
    findings, columns = [], tuple(levels)
    for size in (1, 2, 3):
        for chosen in itertools.combinations(range(3), size):
            for labels in itertools.product(*(levels[columns[k]] for k in chosen)):
                n = sum(
                    count
                    for cell, count in cells.items()
                    if all(cell[k] == label for k, label in zip(chosen, labels, strict=True))
                )
                parts = [(columns[k], label) for k, label in zip(chosen, labels, strict=True)]
                findings.append(finding(GroupName(parts), 0.1, 0.0, 0.2, n=n))
    shown = disclosed(result(findings=findings))
    known = [f for f in shown.findings if not f.withheld]
    inside = lambda f, cell: all(  # noqa: E731
        cell[columns.index(column)] == label for column, label in f.group.parts
    )
    rows = [[float(inside(f, cell)) for cell in cells] for f in known] + [[1.0] * 12]
    total = [float(f.n) for f in known] + [float(sum(counts))]
    # An attacker who knows every printed count and the total cannot pin a withheld one down.
    for f in shown.findings:
        if f.withheld:
            of_group = np.array([float(inside(f, cell)) for cell in cells])
            ends = [
                sign * linprog(sign * of_group, A_eq=rows, b_eq=total, method="highs").fun
                for sign in (1.0, -1.0)
            ]
            assert ends[1] - ends[0] > 0.5


def few(n=600):
    """Three groups, one of three people."""
    group = np.where(np.arange(n) < 3, "few", np.where(np.arange(n) < 250, "b", "a"))
    chosen = (np.arange(n) % 10 < np.where(group == "a", 6, 3)).astype(int)
    return {"g": group, "h": np.array(["u", "v"])[np.arange(n) // 10 % 2], "d": chosen}


def test_tables_of_categories_do_not_tell_of_a_few_people():
    found = eq.Audit(few(), group="g", y_pred="d").impact_ratios()
    assert found.details["tables"][0]["n"] == [350, 247, 3]
    (one,) = disclosed(found).details["tables"]
    assert one["categories"] == ["g=a"]
    assert one["columns"] == ["g"]
    for column in ("n", "selected", "rate", "share", "estimate", "verdict", "labels"):
        assert len(one[column]) == 1
    page = html_report(dossier(check("impact_ratios", found)))
    assert ">247<" not in page


def test_a_withheld_highest_rate_takes_its_table_along():
    rows = few(40)
    rows["g"] = np.where(np.arange(40) < 4, "few", np.where(np.arange(40) < 20, "b", "a"))
    rows["d"] = np.where(rows["g"] == "few", 1, rows["d"])
    found = eq.Audit(rows, group="g", y_pred="d").impact_ratios()
    assert found.details["tables"][0]["highest"] == "g=few"
    assert disclosed(found).details["tables"][0]["n"] == []
    assert all(f.withheld for f in disclosed(found).findings)
    # A table without a line would not say why; the note of every finding does.
    assert impact_tables(disclosed(found)) == ()


def test_subgroups_that_were_found_do_not_give_away_a_few_people():
    audit = eq.Audit(few(), group="g", y_pred="d")
    found = audit.discover("selection_rate", features=["g", "h"])
    groups = frozenset(str(f.group) for f in found.findings)
    left = without(found, groups, MIN_CELL)
    assert found.details["rejected"]
    assert left.details["rejected"] == []
    assert "their numbers are withheld" in str(left)


def test_a_whole_is_withheld_with_parts_that_are_too_few_together():
    groups = [named(50, race="a"), named(1, race="a", sex="m"), named(2, race="a", sex="f")]
    assert hidden(*groups, named(500, race="b"), named(600, race="c")) == [
        "race=a",
        "race=a & sex=f",
        "race=a & sex=m",
        "race=b",
    ]


def test_a_reference_that_is_withheld_is_in_no_detail(rng):
    score, group = rng.random(900), rng.choice(["a", "b", "c"], 900)
    rows = {"y": (rng.random(900) < score) * 1, "s": score, "g": group}
    found = eq.Audit(rows, group="g", y_true="y", y_score="s").predictive_parity()
    assert "g=a" not in {finding.group for finding in found.findings}
    told = without(found, frozenset({"g=a"}), 5).details.to_dict()
    assert '"g=a"' not in json.dumps(told)


def test_a_few_people_who_are_left_out_of_a_comparison_are_in_no_number_of_it(rng):
    rows = few() | {"y": rng.integers(0, 2, 600), "other": rng.integers(0, 2, 600)}
    rows["g"][250:330] = "c"
    audit = eq.Audit(rows, group="g", y_true="y", y_pred="d")
    found = audit.improvability("other", accuracy="accuracy", fairness="selection_rate", rng=1)
    assert found.details["groups_left_out"] == {"g=few": 3}
    shown = disclosed(found)
    assert [(f.group, f.n) for f in shown.findings if not f.withheld] == [
        ("g=a", 270),
        ("g=b", 247),
        ("all groups", 600),
    ]
    for whole in (found, shown):
        assert "g=few" not in whole.details["shares"]["by_group"]
        assert "among 3 of 4 groups" in " ".join(str(whole).split())
    assert "g=few (3)" not in str(shown)
    assert "g=few" not in shown.details["groups_left_out"]
    assert [split["rows_counted"] for split in shown.details["splits"]] == [[]]
    assert disclosed(shown) == shown


def beside_a_few(sizes, chances):
    """Groups of which the first has a few rows, and by chances as large as these, so many ones."""
    group = np.repeat(list("abcd")[: len(sizes)], sizes)
    ones = [np.arange(n) < n * chance for n, chance in zip(sizes, chances, strict=True)]
    return {"g": group, "p": np.concatenate(ones) * 1, "t": np.arange(len(group)) % 2}


@pytest.mark.parametrize(
    ("question", "options", "said"),
    [
        ("disparity", {}, "1 of 4 groups differs at the 5% level (joint test p <0.001), all of"),
        (
            "disparity",
            {"given": "t"},
            "1 of 4 groups, withheld, is shown to have a gap in selection",
        ),
        (
            "disparity",
            {"reference": "highest"},
            "2 of 3 categories, withheld, are shown to be lower",
        ),
        (
            "flag",
            {"reference": "highest", "alternative": "less"},
            "2 of 3 categories, withheld, are shown to be below",
        ),
    ],
)
def test_a_headline_about_withheld_groups_counts_them(question, options, said):
    rows = beside_a_few((3, 60, 900, 900), (0.3, 0.8, 0.3, 0.3))
    audit = eq.Audit(rows, group="g", y_pred="p")
    words = " ".join(str(getattr(audit, question)("selection_rate", **options).disclosed()).split())
    assert said in words
    assert "-0 " not in words
    assert "smaller than 30 rows" not in words
    assert "difference -" not in words


def test_parts_of_gaps_that_are_all_withheld_are_counted():
    rows = beside_a_few((4, 30), (0.5, 0.8))
    found = eq.Audit(rows, group="g", y_pred="p").decompose("selection_rate", given="t")
    assert "What the gaps in selection rate are made of is withheld." in str(found.disclosed())


def test_groups_that_are_not_named_are_few_or_withheld():
    small, hidden_one = named(12, g="a"), named(40, g="b")
    shown = without(result(findings=[hidden_one]), frozenset({"g=b"}), MIN_CELL).findings[0]
    assert names([small], result()) == "1 of fewer than 30 rows"
    assert names([shown], result()) == "1 withheld"
    assert names([small, shown], result()) == "2 of fewer than 30 rows or withheld"
