"""A plan asks what it says, of the groups it says, and keeps what is needed to repeat it."""

import json

import numpy as np
import pytest

import equipoise as eq
from equipoise.exceptions import EquipoiseError, InvalidParameterError
from equipoise.plans.dossier import Dossier
from equipoise.plans.plan import parse_plan
from equipoise.plans.run import execute

PLAN = """
[data]
path = "people.csv"
group = ["sex", "age"]
bins = { age = [40] }
y_pred = "hired"

[[check]]
question = "disparity"
metric = "selection_rate"
"""


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(3)
    rows = [f"{'F' if k < 10 else 'M'},{20 + k % 40},{int(rng.random() < 0.5)}" for k in range(600)]
    (tmp_path / "people.csv").write_text("sex,age,hired\n" + "\n".join(rows) + "\n")
    return tmp_path


def run(text, folder):
    return execute(parse_plan(text, folder=folder))


def test_a_plan_gives_what_python_gives(folder):
    result = run(PLAN, folder).checks[0].result
    audit = eq.Audit(
        folder / "people.csv", group=["sex", "age"], bins={"age": [40]}, y_pred="hired"
    )
    assert result.findings == audit.disparity("selection_rate").findings


def test_a_check_may_compare_other_groups_and_keeps_the_bins_that_apply(folder):
    text = PLAN + 'group = "age"\n\n[[check]]\nquestion = "flag"\nmetric = "selection_rate"\n'
    first, second = run(text + 'group = ["sex"]\n', folder).checks
    assert all(finding.group.startswith("age=") for finding in first.result.findings)
    assert len(first.result.findings) == 2
    assert [finding.group for finding in second.result.findings] == ["sex=F", "sex=M"]
    assert first.call == "Audit(..., group=['age']).disparity(metric='selection_rate')"


def test_a_small_category_is_kept_and_marked(folder):
    text = PLAN + 'group = "sex"\n\n[report]\nsmall_category = 0.02\n'
    few, many = run(text, folder).checks[0].result.findings
    assert few.n == 10
    assert "Fewer than 2% of the rows" in few.notes[-1].message
    assert "small-category" not in [note.code for note in many.notes]


def test_an_estimate_from_elsewhere_is_a_reference(folder):
    text = PLAN + "reference = { value = 0.5, se = 0.1 }\n"
    audit = eq.Audit(
        folder / "people.csv", group=["sex", "age"], bins={"age": [40]}, y_pred="hired"
    )
    expected = audit.disparity("selection_rate", reference=eq.External(0.5, 0.1))
    assert run(text, folder).checks[0].result.findings == expected.findings


def test_an_error_names_its_check(folder):
    with pytest.raises(EquipoiseError, match=r"Check 'disparity-fpr': .*needs `y_true`"):
        run(PLAN.replace("selection_rate", "fpr"), folder)
    with pytest.raises(EquipoiseError, match=r"Check 'disparity-selection_rate': .*`depth`"):
        run(PLAN + "depth = 0\n", folder)


def test_one_check_that_its_data_do_not_allow_does_not_lose_the_others(folder):
    rows = (folder / "people.csv").read_text().splitlines()
    odd = ["grade", *[str(k % 5) for k in range(len(rows) - 1)]]
    text = "\n".join(f"{row},{grade}" for row, grade in zip(rows, odd, strict=True))
    (folder / "people.csv").write_text(text + "\n")
    plan = PLAN.replace("[[check]]", 'y_true = "grade"\n[[check]]', 1)
    dossier = run(plan + '[[check]]\nquestion = "flag"\nmetric = "fpr"\n', folder)
    assert [check.id for check in dossier.checks] == ["disparity-selection_rate"]
    assert "'grade'" in dossier.failed["flag-fpr"]
    assert Dossier.from_dict(json.loads(json.dumps(dossier.to_dict()))) == dossier
    with pytest.raises(EquipoiseError, match="Check 'disparity-fpr'"):
        run(plan.replace("selection_rate", "fpr"), folder)


def test_the_columns_of_every_check_are_looked_for_before_anything_runs(folder):
    with pytest.raises(EquipoiseError, match="Column 'sez' not found"):
        run(PLAN + 'group = "sez"\n', folder)


def test_a_good_decision_that_is_no_label_ends_the_plan_before_anything_is_scanned(
    folder, monkeypatch
):
    monkeypatch.setattr("equipoise.plans.run.ask_all", lambda *_, **__: pytest.fail("asked"))
    text = PLAN.replace('y_pred = "hired"', 'y_pred = "sex"\npositive = "F"\nfavourable = "m"')
    with pytest.raises(EquipoiseError, match=r"^`favourable` must .* Did you mean 'M'\?"):
        run(text, folder)


def test_a_dossier_survives_json(folder):
    dossier = run(PLAN + 'group = "sex"\n', folder)
    again = Dossier.from_dict(json.loads(json.dumps(dossier.to_dict(), allow_nan=False)))
    assert again == dossier


def test_source_date_epoch_fixes_the_time(folder, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert run(PLAN, folder).created == "1970-01-01 00:00 UTC"


def test_an_option_that_cannot_be_right_ends_the_plan_before_anything_is_read(folder):
    text = PLAN + '\n[[check]]\nid = "wrong"\nquestion = "flag"\nmetric = "selection_rate"\n'
    started = []
    with pytest.raises(InvalidParameterError, match=r"Check .wrong.: `alpha` must be in"):
        execute(parse_plan(f"{text}alpha = 5\n", folder=folder), started=started.append)
    assert started == []
    execute(parse_plan(text, folder=folder), started=started.append)
    assert len(started) == 2


@pytest.mark.parametrize(
    "question",
    [
        'question = "disparity"\nmetric = "selection_rate"\n',
        'question = "disparity"\nmetric = "selection_rate"\nreference = "highest"\n',
        'question = "flag"\nmetric = "selection_rate"\n',
        'question = "impact_ratios"\n',
        'question = "compare"\nmetric = "selection_rate"\nbaseline = "approved"\n',
        'question = "discover"\nmetric = "selection_rate"\n',
        'question = "multicalibration"\nsegments = ["sex"]\n',
    ],
)
@pytest.mark.parametrize("depth", ['"two"', "0"])
def test_a_depth_that_cannot_be_right_ends_the_plan_before_anything_is_read(
    folder, question, depth
):
    started = []
    plan = parse_plan(
        f'{PLAN}\n[[check]]\nid = "wrong"\n{question}depth = {depth}\n', folder=folder
    )
    with pytest.raises(InvalidParameterError, match=r"Check .wrong.: `depth` must be a whole"):
        execute(plan, started=started.append)
    assert started == []


def test_a_check_that_its_data_do_not_allow_does_not_lose_the_others(folder):
    text = PLAN + '\n[[check]]\nid = "nobody"\nquestion = "flag"\nmetric = "selection_rate"\n'
    dossier = run(f'{text}reference = {{ sex = "X" }}\n', folder)
    assert [check.id for check in dossier.checks] == ["disparity-selection_rate"]
    assert "no value 'X'" in dossier.failed["nobody"]
