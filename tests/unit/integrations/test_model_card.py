"""A model card tells what a result tells, and no number of a few people."""

from equipoise._names import GroupName
from equipoise.integrations.model_card import markdown, metadata
from equipoise.results.finding import Decision
from support.specimens import finding, result


def people(label, n, **changes):
    return finding(GroupName([("race", label)]), 0.12, 0.1, 0.2, n=n, **changes)


AUDIT = result(
    findings=[people("a|<b>", 900, decision=Decision.DETECTED), people("x", 3), people("y", 40)]
)


def test_the_section_has_a_sentence_and_a_row_for_each_group():
    text = markdown([AUDIT])
    assert text.startswith("## Differences between groups")
    assert (
        "| race=a\\|&lt;b&gt; | fpr difference | 0.12 | [0.1, 0.2] | 0.200 | 900 | detected |"
        in text
    )
    assert "| race=x | fpr difference | - | - | - | withheld |" in text
    assert "not that there is none" in text
    assert text.count("withheld") == 2


def test_comparisons_of_one_group_with_several_are_told_apart():
    pairs = [people("a", 900, reference="race=b"), people("a", 900, reference="race=c")]
    text = markdown([result(findings=pairs)])
    (told,) = metadata([result(findings=pairs)], model="m", dataset="d")["model-index"][0][
        "results"
    ]
    for k, other in enumerate("bc"):
        assert f"| race=a compared with race={other} |" in text
        assert told["metrics"][k]["name"].startswith(f"race=a compared with race={other}: ")


def test_a_name_is_no_link_no_code_and_no_row():
    name = "[x](http://a.b)`rm` *b* \\| c &lt;\r\n| d"
    text = markdown([result(findings=[people(name, 900)])])
    row = next(line for line in text.splitlines() if line.startswith("| race="))
    assert "\\[x\\](http" in row
    assert "\\`rm\\` \\*b\\* \\\\\\| c &amp;lt;  \\| d | fpr difference |" in row


def test_a_name_is_neither_emphasis_nor_a_formula():
    text = markdown([result(findings=[people("_a_ ~~b~~ $c$", 900)])])
    assert "| race=\\_a\\_ \\~\\~b\\~\\~ \\$c\\$ |" in text


def test_the_name_of_a_metric_is_no_row():
    text = markdown([result(findings=[people("a", 900, estimand="a|b <i> difference")])])
    assert "| a\\|b &lt;i&gt; difference |" in text


def test_the_metadata_is_that_of_a_model_index():
    (entry,) = metadata([AUDIT], model="m", dataset="d")["model-index"]
    assert entry["name"] == "m"
    (told,) = entry["results"]
    assert told["dataset"] == {"name": "d", "type": "d"}
    assert [metric["value"] for metric in told["metrics"]] == [0.12]
    assert told["source"]["name"] == "equipoise: detected"
