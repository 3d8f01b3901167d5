"""A state through the command line: batches counted once, alarms kept, refusals in one sentence."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import equipoise as eq
from equipoise.audits.disparity.monitor_state import Update
from equipoise.cli.app import app
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.monitoring.state import MonitorState
from equipoise.monitoring.storage import read_state
from equipoise.plans.plan import parse_plan
from equipoise.plans.watching import known, monitor_config

PLAN = """
[data]
path = "all.csv"
group = "sex"
y_pred = "hired"
time = "week"

[[check]]
question = "monitor"
metric = "selection_rate"
"""


def write(path, rows):
    path.write_text("sex,hired,week,person\n" + "".join(",".join(map(str, r)) + "\n" for r in rows))


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(1)
    every = []
    for week in range(1, 9):
        sex = rng.choice(["F", "M"], 200)
        hired = rng.random(200) < 0.5 - 0.35 * ((sex == "F") & (week >= 5))
        who = rng.integers(0, 500, 200)
        rows = [(s, int(h), f"2026-W{week:02}", p) for s, h, p in zip(sex, hired, who, strict=True)]
        write(tmp_path / f"w{week}.csv", rows)
        every += rows
    write(tmp_path / "all.csv", every)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


@pytest.fixture
def monitor(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def call(*arguments, state="state.json"):
        done = CliRunner().invoke(app, ["monitor", state, *arguments])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    return call


def test_weeks_one_by_one_say_what_the_whole_table_says(monitor, folder):
    for week in range(1, 9):
        done = monitor(f"w{week}.csv", "--id", f"2026-W{week:02}", "--plan", "plan.toml")
        assert done.exit_code == 0
    monitor("--json", "r.json", "--output", "page.html")
    kept = eq.AuditResult.from_dict(
        json.loads((folder / "r.json").read_text())["checks"][0]["result"]
    )
    direct = eq.Audit(str(folder / "all.csv"), group="sex", y_pred="hired", time="week").monitor(
        "selection_rate"
    )
    assert kept.findings == direct.findings
    assert kept.details["paths"] == direct.details["paths"]
    page = (folder / "page.html").read_text()
    assert "it began in 2026-W05" in page
    # One file with all weeks gives the same sums.
    monitor("all.csv", "--plan", "plan.toml", state="other.json")
    sums = [
        read_state(folder / name).sums("selection_rate", binary=True).sums.u
        for name in ("state.json", "other.json")
    ]
    np.testing.assert_array_equal(*sums)


def test_clusters_are_hashed_and_give_what_the_table_gives(monitor, folder):
    (folder / "plan.toml").write_text(
        PLAN.replace('time = "week"', 'time = "week"\ncluster = "person"')
    )
    monitor("all.csv", "--plan", "plan.toml", "--json", "r.json")
    kept = eq.AuditResult.from_dict(
        json.loads((folder / "r.json").read_text())["checks"][0]["result"]
    )
    direct = eq.Audit(
        str(folder / "all.csv"), group="sex", y_pred="hired", time="week", cluster="person"
    ).monitor("selection_rate")
    assert [f.p_value for f in kept.findings] == pytest.approx([f.p_value for f in direct.findings])
    state = read_state(folder / "state.json")
    assert state.batches[0].clusters[0].cluster not in {str(k) for k in range(500)}


def test_alarms_are_raised_once_and_stand_until_acknowledged(monitor):
    first = monitor("all.csv", "--plan", "plan.toml", "--fail-on", "detected", "--quiet")
    assert first.exit_code == 1
    assert "New alarm: selection_rate of sex=F@2026-W0" in first.stdout
    again = monitor("--fail-on", "detected", "--quiet")
    assert again.exit_code == 1
    assert "Alarm that stands: selection_rate of sex=F" in again.stdout
    assert monitor("--quiet").exit_code == 0
    for alarm in read_state_here().standing:
        monitor("--acknowledge", alarm.id, "--remark", "retrained", "--quiet")
    assert monitor("--fail-on", "detected", "--quiet").exit_code == 0
    assert {alarm.acknowledged for alarm in read_state_here().alarms} == {"retrained"}
    with pytest.raises(DataError, match="There is no alarm 'x'"):
        monitor("--acknowledge", "x")


def result_of(file):
    return eq.AuditResult.from_dict(json.loads(file.read_text())["checks"][0]["result"])


def read_state_here():
    return read_state(Path("state.json"))


def test_a_batch_seen_before_is_noted_and_another_content_refused(monitor, folder):
    monitor("w1.csv", "--plan", "plan.toml", "--id", "W1")
    before = (folder / "state.json").read_bytes()
    assert "Batch 'W1' was already counted" in monitor("w1.csv", "--id", "W1").stdout
    assert (folder / "state.json").read_bytes() == before
    with pytest.raises(DataError, match="counted with other content"):
        monitor("w2.csv", "--id", "W1")
    with pytest.raises(DataError, match="has the content of batch 'W1'"):
        monitor("w1.csv", "--id", "W2")
    assert (folder / "state.json").read_bytes() == before
    assert monitor("w1.csv", "--id", "W2", "--allow-identical").exit_code == 0


def test_late_batches_and_new_groups_are_noted(monitor, folder):
    monitor("w2.csv", "--plan", "plan.toml")
    assert "came after '2026-W02'" in " ".join(monitor("w1.csv").stdout.split())
    write(folder / "x.csv", [("X", 1, "2026-W09", 1), ("M", 0, "2026-W09", 2)] * 30)
    told = " ".join(monitor("x.csv").stdout.split())
    assert "groups that were not there before: 'X'" in told
    numbers = MonitorState(config=read_state_here().config)
    assert numbers.current == ()


def test_numbered_batches_are_late_by_number(monitor):
    monitor("w1.csv", "--plan", "plan.toml", "--id", "9")
    assert "counts in the order" not in " ".join(monitor("w2.csv", "--id", "10").stdout.split())


def test_a_changed_plan_is_refused(monitor, folder):
    monitor("w1.csv", "--plan", "plan.toml", "--id", "W1")
    (folder / "plan.toml").write_text(PLAN + "margin = 0.05\n")
    with pytest.raises(DataError, match=r"margin = 0\.0; the plan says 0\.05"):
        monitor("w2.csv", "--plan", "plan.toml", "--id", "W2")


def test_a_restart_begins_again_and_says_so(monitor):
    monitor("all.csv", "--plan", "plan.toml", "--quiet")
    done = monitor("--restart", "a new model")
    assert "no batch in its current epoch" in done.stdout
    done = monitor("w1.csv", "--id", "again", "--allow-identical")
    told = " ".join(done.stdout.split())
    assert "in 2 epochs the chance of any false alarm is at most 2 times 0.05" in told


def test_states_of_two_sites_are_merged(monitor, folder):
    monitor("w1.csv", "--plan", "plan.toml", "--id", "a:1")
    (folder / "other.json").write_bytes((folder / "state.json").read_bytes())
    monitor("w2.csv", "--id", "b:2", state="other.json")
    assert monitor("--merge", "other.json", "--quiet").exit_code == 0
    assert [b.id for b in read_state_here().batches] == ["a:1", "b:2"]
    with pytest.raises(InvalidParameterError, match=r"'none\.json' does not exist"):
        monitor("--merge", "none.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["w1.csv", "--id", "W1"], "Pass --plan to begin it"),
        (["--plan", "plan.toml", "--id", "W1"], "pass its file as the second argument"),
        (["w1.csv", "--plan", "plan.toml", "--id", " "], "empty name"),
        (["w1.csv", "--plan", "plan.toml", "--output", "state.json"], "is the state"),
    ],
)
def test_wrong_usage_gets_a_sentence(monitor, folder, arguments, message):
    if "state.json" in arguments:
        monitor("w2.csv", "--plan", "plan.toml", "--id", "W2")
    with pytest.raises(InvalidParameterError, match=message):
        monitor(*arguments)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (PLAN.replace('"monitor"', '"disparity"'), "the plan has 0"),
        (PLAN + '[[check]]\nquestion = "monitor"\nmetric = "fpr"\n', "the plan has 2"),
        (PLAN + 'reference = "highest"\n', "the data choose"),
        (PLAN.replace('time = "week"\n', ""), "name the batch with --id"),
        (PLAN.replace('group = "sex"\n', ""), "compares groups"),
        (PLAN.replace('"hired"', '"hird"'), "Did you mean 'hired'"),
    ],
)
def test_plans_that_cannot_be_watched_get_a_sentence(monitor, folder, plan, message):
    (folder / "plan.toml").write_text(plan)
    with pytest.raises((InvalidParameterError, DataError), match=message):
        monitor("w1.csv", "--plan", "plan.toml")
    assert not (folder / "state.json").exists()


def test_a_metric_that_cannot_be_read_stops_the_call(monitor, folder):
    write(folder / "bad.csv", [("F", 7, "2026-W09", 1)] * 3)
    with pytest.raises(DataError, match="must be 0 or 1"):
        monitor("bad.csv", "--plan", "plan.toml")


def test_a_state_is_the_same_from_python_and_from_the_command_line(monitor, folder):
    def added(*weeks):
        rows = "\n".join(
            line
            for week in weeks
            for line in (folder / f"w{week}.csv").read_text().splitlines()[1:]
        )
        (folder / "part.csv").write_text(f"sex,hired,week,person\n{rows}\n")
        audit = eq.Audit("part.csv", group="sex", y_pred="hired", time="week")
        return audit.monitor("selection_rate", state=folder / "state.json")

    first = added(1, 2, 3)
    assert first.details["batches"] == [f"2026-W{week:02}" for week in (1, 2, 3)]
    # Weeks that were counted before change nothing.
    again = added(2, 3)
    assert again.findings == first.findings
    assert {note.code for note in again.notes} >= {"batch-again"}
    monitor("w4.csv", "--plan", "plan.toml")
    whole = added(5, 6, 7, 8)
    direct = eq.Audit("all.csv", group="sex", y_pred="hired", time="week").monitor("selection_rate")
    assert whole.findings == direct.findings
    assert whole.details["paths"] == direct.details["paths"]
    assert [alarm.finding for alarm in read_state_here().alarms] == [
        path["finding"] for path in whole.details["paths"] if path["alarms"]
    ]
    (folder / "w3.csv").write_text((folder / "w3.csv").read_text().replace("F,0", "F,1", 1))
    with pytest.raises(DataError, match="was counted with other content"):
        added(3)


def test_a_state_of_another_plan_or_of_a_metric_of_ones_own_is_refused(monitor, folder):
    audit = eq.Audit("all.csv", group="sex", y_pred="hired", time="week")
    audit.monitor("selection_rate", state="state.json")
    with pytest.raises(DataError, match=r"watches with margin = 0\.0; the plan says 0\.1"):
        audit.monitor("selection_rate", state="state.json", margin=0.1)
    own = eq.Metric("own", "hired")
    with pytest.raises(InvalidParameterError, match="'own' is one of your own"):
        audit.monitor(own, state="other.json")
    assert not (folder / "other.json").exists()


def test_the_group_of_the_check_comes_first():
    text = PLAN + 'group = ["sex", "person"]\n'
    assert monitor_config(parse_plan(text))["group"] == ["sex", "person"]


def test_an_alarm_on_record_stays_when_the_family_grows(monitor, folder):
    monitor("all.csv", "--plan", "plan.toml", "--quiet")
    rows = [(f"g{k}", k % 2, "2026-W10", k) for k in range(40)] * 10
    write(folder / "many.csv", rows)
    told = monitor("many.csv", "--json", "-").stdout
    findings = json.loads(told)["checks"][0]["result"]["findings"]
    f = next(one for one in findings if one["group"] == "sex=F")
    assert f["decision"] == "detected"
    assert f["p_value"] <= 0.05


def test_a_state_that_vanished_is_not_begun_again():
    with pytest.raises(InvalidParameterError, match="The state is gone"):
        Update(config={}).of(None)
    with pytest.raises(DataError, match="no batch in its current epoch"):
        known(MonitorState(config={"metrics": ["fpr"], "roles": {}}), source="s")


def test_run_lengths_record_every_alarm(monitor, folder):
    (folder / "plan.toml").write_text(PLAN + 'alarm = "arl"\nrun_length = 2\n')
    monitor("all.csv", "--plan", "plan.toml", "--quiet")
    alarms = [a.finding for a in read_state_here().alarms]
    assert len(alarms) > len(set(alarms))
    assert len({a.id for a in read_state_here().alarms}) == len(alarms)


def labels_of(state):
    return {cell.group for batch in state.batches for cell in batch.cells}


def test_a_batch_with_one_label_is_read_as_all_others(monitor, folder):
    monitor("w1.csv", "--plan", "plan.toml", "--id", "1")
    write(folder / "f.csv", [("F", 1, "w", 1), ("F", 0, "w", 2)] * 10)
    assert "not there before" not in monitor("f.csv", "--id", "2").stdout
    assert labels_of(read_state_here()) == {("F",), ("M",)}


def test_a_csv_batch_takes_over_which_columns_are_text(monitor, folder):
    write(folder / "a.csv", [("1e5", 1, "w", 1), ("b7", 0, "w", 2)] * 10)
    write(folder / "b.csv", [("1e5", 1, "w", 3)] * 10)
    monitor("a.csv", "--plan", "plan.toml", "--id", "1")
    monitor("b.csv", "--id", "2")
    assert read_state_here().text == ("sex",)
    assert labels_of(read_state_here()) == {("1e5",), ("b7",)}


def test_whole_numbers_are_one_group_in_every_batch(monitor, folder):
    write(folder / "a.csv", [(1, 1, "w", 1), (2, 0, "w", 2)] * 10)
    write(folder / "b.csv", [("1.0", 1, "w", 3), (2.5, 0, "w", 2)] * 10)
    write(folder / "c.csv", [("1", 1, "w", 3), ("unknown", 0, "w", 2)] * 10)
    monitor("a.csv", "--plan", "plan.toml", "--id", "1")
    monitor("b.csv", "--id", "2")
    monitor("c.csv", "--id", "3")
    assert labels_of(read_state_here()) == {("1",), ("2",), ("2.5",), ("unknown",)}


def test_a_batch_in_which_nobody_was_chosen_is_a_batch(monitor, folder):
    (folder / "plan.toml").write_text(
        PLAN.replace('y_pred = "hired"', 'y_pred = "hired"\npositive = "granted"')
    )
    write(folder / "a.csv", [("F", "granted", "w", 1), ("M", "denied", "w", 2)] * 10)
    write(folder / "b.csv", [("F", "denied", "w", 1), ("M", "denied", "w", 2)] * 10)
    with pytest.raises(DataError, match="no row has 'granted'"):
        monitor("b.csv", "--plan", "plan.toml", "--id", "0")
    monitor("a.csv", "--plan", "plan.toml", "--id", "1")
    assert monitor("b.csv", "--id", "2").exit_code == 0
    assert [cell.u for cell in read_state_here().batches[1].cells] == [0.0, 0.0]
    rows = {"sex": ["F", "M"], "hired": ["denied", "denied"], "week": ["3", "3"]}
    audit = eq.Audit(rows, group="sex", y_pred="hired", positive="granted", time="week")
    with pytest.raises(DataError, match="no row has 'granted'"):
        audit.monitor("selection_rate")
    audit.monitor("selection_rate", state="state.json")
    assert read_state_here().batches[2].rows == 2


def test_dates_that_can_be_read_in_two_ways_are_no_time(monitor, folder):
    write(folder / "a.csv", [("F", 1, "02/05/2026", 1), ("M", 0, "03/05/2026", 2)] * 10)
    with pytest.raises(DataError, match="'02/05/2026' has no place in an order"):
        monitor("a.csv", "--plan", "plan.toml")
    write(folder / "b.csv", [("F", 1, "02/13/2026", 1), ("M", 0, "03/05/2026", 2)] * 10)
    monitor("b.csv", "--plan", "plan.toml")
    assert [batch.id for batch in read_state_here().batches] == ["2026-02-13", "2026-03-05"]


def test_text_columns_of_merged_states_are_joined():
    one = MonitorState(config={}, text=("sex",))
    two = MonitorState(config={}, text=("race",))
    assert one.merge(two).text == ("race", "sex")
    assert MonitorState.from_dict(one.to_dict()).text == ("sex",)


def test_the_same_rows_in_another_order_are_noted(monitor, folder):
    monitor("w1.csv", "--plan", "plan.toml", "--id", "W1")
    head, *rows = (folder / "w1.csv").read_text().splitlines()
    (folder / "again.csv").write_text("\n".join([head, *rows[::-1]]) + "\n")
    told = " ".join(monitor("again.csv", "--id", "W2").stdout.split())
    assert "Batch 'W2' has exactly the sums of batch 'W1'" in told


def test_a_file_that_two_sites_have_counted_is_not_merged_twice(monitor):
    monitor("w1.csv", "--plan", "plan.toml", "--id", "north-1")
    monitor("w1.csv", "--plan", "plan.toml", "--id", "south-1", state="other.json")
    with pytest.raises(DataError, match="would count twice"):
        monitor("--merge", "other.json")
    monitor("--merge", "other.json", "--allow-identical")
    assert len(read_state_here().batches) == 2
