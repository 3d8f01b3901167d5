"""A plan is checked before anything runs; a message says where, what is meant and what is near."""

import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.plans.plan import parse_plan, read_plan

DATA = '[data]\npath = "loans.csv"\ngroup = ["sex"]\n'
FLAG = '[[check]]\nquestion = "flag"\nmetric = "fpr"\n'


def test_a_plan_gives_roles_checks_and_a_path_beside_it(tmp_path):
    file = tmp_path / "audit.toml"
    file.write_text(DATA + FLAG, encoding="utf-8")
    plan = read_plan(file)
    assert plan.path == str(tmp_path / "loans.csv")
    assert plan.roles == {"group": ["sex"]}
    assert [(c.id, c.question, c.options) for c in plan.checks] == [
        ("flag-fpr", "flag", {"metric": "fpr"})
    ]
    assert plan.title == "Audit of loans.csv"
    assert plan.text == DATA + FLAG


def test_an_absolute_path_stays():
    text = DATA.replace("loans.csv", "/data/loans.csv") + FLAG
    assert parse_plan(text, folder="/elsewhere").path == "/data/loans.csv"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            DATA + FLAG + "marign = 0.1\n",
            (
                r"plan, line 7: check 1 \(flag\) has no key 'marign'. Did you mean 'margin'\?"
                r" \(Tolerated gap\) Known keys: 'question', 'id', 'group', 'metric', 'margin'"
            ),
        ),
        (
            DATA.replace("group", "grup") + FLAG,
            (
                r"plan, line 3: \[data\] has no key 'grup'. Did you mean 'group'\?"
                r" \(Columns whose combinations are compared\)"
            ),
        ),
        (
            DATA + FLAG + '[reprot]\ntitle = "x"\n',
            (
                r"plan, line 7: the plan has no key 'reprot'. Did you mean 'report'\?"
                r" \(title, order and multiplicity"
            ),
        ),
        (
            DATA + FLAG + '[report]\ntitel = "x"\n',
            r"plan, line 8: \[report\] has no key 'titel'. Did you mean 'title'\?",
        ),
        (
            DATA + FLAG + FLAG.replace("flag", "flagg"),
            (
                r"plan, line 8: `question` of check 2 must be one of .*; got 'flagg'."
                r" Did you mean 'flag'\?"
            ),
        ),
        (DATA + "[[check]]\nmetric = 1\n", r"`question` of check 1 must be one of .*; got None"),
        (
            DATA + '[[check]]\nquestion = "certify"\nmetric = "fpr"\n',
            r"plan, line 5: check 1 \(certify\) needs `margin`: Above 0",
        ),
        (FLAG, r"plan needs a \[data\] table: where the table is"),
        (DATA, r"plan asks nothing yet: .* at least one question, a table written \[\[check\]\]"),
        ('[data]\ngroup = "sex"\n' + FLAG, r"\[data\] needs `path`"),
        ("[data\n", r"plan is not valid TOML: .* \(at line 1, column 6\)"),
        ("data = 1\n" + FLAG, r"`data` must be a table, written \[data\]"),
        (
            DATA + "[check]\nx = 1\n",
            r"asks nothing yet: .* at least one question, a table written \[\[check\]\]",
        ),
        (
            DATA + FLAG + 'id = "a"\n' + FLAG + 'id = "a"\n',
            r"plan, line 11: two checks have the id 'a'; ids must differ",
        ),
        (DATA + FLAG + 'id = "a b"\n', r"plan, line 7: `id` must start with a letter"),
        (
            DATA + FLAG + '[report]\norder = ["x"]\n',
            r"plan, line 8: `order` must list every check once, by id: 'flag-fpr'",
        ),
        (
            DATA + FLAG + '[report]\nmultiplicity = "holm"\n',
            r"plan, \[report\]: `multiplicity` must be one of 'none', 'bonferroni'",
        ),
        (
            DATA + FLAG + "[report]\nalpha = 5\n",
            r"plan, \[report\]: `alpha` must be in \(0, 1\); got 5. Pass 0.05 for 5%",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(text, message):
    with pytest.raises(InvalidParameterError, match=message):
        parse_plan(text)


def test_the_line_is_that_of_the_right_check():
    text = DATA + FLAG + FLAG + "alhpa = 0.1\n"
    with pytest.raises(InvalidParameterError, match="line 10: check 2"):
        parse_plan(text)


def test_checks_without_an_id_get_distinct_ones():
    plan = parse_plan(DATA + FLAG * 3)
    assert [check.id for check in plan.checks] == ["flag-fpr", "flag-fpr-2", "flag-fpr-3"]


def test_a_check_can_compare_other_groups():
    plan = parse_plan(DATA + FLAG + 'group = "race"\n' + FLAG)
    assert [check.group for check in plan.checks] == [("race",), None]
    with pytest.raises(InvalidParameterError, match="line 7: `group` must name columns; got 3"):
        parse_plan(DATA + FLAG + "group = 3\n")


def test_the_report_decides_the_order():
    text = DATA + FLAG + 'id = "a"\n' + FLAG + 'id = "b"\n[report]\norder = ["b", "a"]\n'
    assert [check.id for check in parse_plan(text).checks] == ["b", "a"]


def test_a_missing_plan_says_how_to_get_one(tmp_path):
    with pytest.raises(
        InvalidParameterError, match=r"not found\. `equipoise init DATA` writes one"
    ):
        read_plan(tmp_path / "none.toml")


def test_a_plan_that_is_not_text_is_refused(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidParameterError, match="cannot be read"):
        read_plan(file)


def test_words_and_labels_are_read_however_their_keys_are_quoted():
    text = (
        DATA
        + FLAG
        + """
[words]
people = "applicants"
selected = "approved"
outcome = "repaid"
[labels]
"sex.F" = "women"
sex.M = "men"
"""
    )
    plan = parse_plan(text)
    assert plan.words == {
        "people": "applicants",
        "selected": "were approved",
        "outcome": "repaid",
    }
    assert plan.labels == {"sex.F": "women", "sex.M": "men"}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[words]\npeople = 3\n", r"line 8: `people` must be text, who the rows are"),
        ("[words]\npeopel = 'x'\n", r"\[words\] has no key 'peopel'. Did you mean 'people'"),
        ("[labels]\nsex = 3\n", r"line 8: a label must be text"),
    ],
)
def test_words_that_are_not_text_are_refused(table, words):
    with pytest.raises(InvalidParameterError, match=words):
        parse_plan(DATA + FLAG + table)


def test_a_check_that_is_no_table_is_refused(tmp_path):
    (tmp_path / "plan.toml").write_text('check = ["disparity"]\n[data]\npath = "x.csv"\n')
    with pytest.raises(InvalidParameterError, match=r"check 1 must be a \[\[check\]\] table"):
        read_plan(tmp_path / "plan.toml")
