"""From a file to a decision through the command line: output, files and exit codes."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET

import pytest

import equipoise
from support.command_line import MODULE, PLAN, SRC, complaint, start, write_plan


def test_init_then_audit_then_report(run, loans):
    folder = loans.parent
    started = run("init", "loans.csv", cwd=folder)
    assert started.returncode == 0, started.stderr
    assert "now run: equipoise audit audit.toml" in started.stderr
    plan = tomllib.loads((folder / "audit.toml").read_text())
    assert plan["data"]["group"] == ["sex"]

    audited = run(
        "audit", "audit.toml", "--output", "report.html", "--json", "results.json", cwd=folder
    )
    assert audited.returncode == 0, audited.stderr
    assert "so sex: F are worse off" in re.sub(r"\s+", " ", audited.stdout)
    assert "check 1: disparity-selection_rate" in audited.stderr
    assert re.search(r"The plan asks \d questions, each at its own level", audited.stdout)
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert results["schema_version"] == 2
    assert results["data"]["files"][0]["bytes"] == loans.stat().st_size
    assert results["data"]["rows"] == 600

    rebuilt = run("report", "results.json", "--output", "again.html", cwd=folder)
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert (folder / "again.html").read_bytes() == (folder / "report.html").read_bytes()


def test_init_says_what_a_plan_lacks(run, tmp_path):
    (tmp_path / "decisions.csv").write_text("decision,hours\n" + "1,2.5\n0,3.5\n" * 20)
    done = run("init", "decisions.csv", cwd=tmp_path)
    assert done.returncode == 0
    assert "wrote audit.toml; now complete it as its comments say, then run:" in done.stderr
    people = "".join(f"{'FM'[k % 2]},{20 + k},{k // 2 % 2}\n" for k in range(60))
    (tmp_path / "people.csv").write_text(people)
    done = run("init", "people.csv", "--force", cwd=tmp_path)
    assert done.returncode == 0
    assert "The first line is a row of data, so the columns are called column_1 to" in done.stderr
    names = 'names = [\n  "column_1", "column_2", "column_3"\n]'
    assert names in (tmp_path / "audit.toml").read_text(encoding="utf-8")
    assert run("audit", "audit.toml", cwd=tmp_path).returncode == 0


def test_a_line_that_is_cut_off_is_named_in_a_packed_file_too(run, tmp_path):
    names = [f"a_column_with_a_long_name_{k}" for k in range(100)]
    lines = [",".join(names), *[",".join("1" * 100)] * 20, "1,1"]
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    told = complaint(run("init", "cut.csv.gz", cwd=tmp_path))
    assert "line 22 has 2 fields, the first has 100" in told
    assert len(told) < 500


def test_init_keeps_an_existing_plan_unless_forced(run, loans):
    folder = loans.parent
    assert run("init", "loans.csv", cwd=folder).returncode == 0
    assert "exists. Pass `--force`" in complaint(run("init", "loans.csv", cwd=folder))
    assert run("init", "loans.csv", "--force", cwd=folder).returncode == 0


@pytest.mark.parametrize("template", ["four-fifths", "nyc-ll144", "lending"])
def test_a_template_runs_on_the_users_data(run, loans, template):
    folder = loans.parent
    assert run("init", "loans.csv", "--template", template, cwd=folder).returncode == 0
    done = run("audit", "audit.toml", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "(joint 95% interval" in done.stdout
    assert "the highest selection rate" in " ".join(done.stdout.split())


@pytest.mark.parametrize("template", ["four-fifths", "nyc-ll144"])
def test_a_template_for_a_table_without_groups_is_to_be_completed(run, tmp_path, template):
    rows = "\n".join(f"{k % 2},{k}" for k in range(100))
    (tmp_path / "decisions.csv").write_text(f"hired,hours\n{rows}\n")
    done = run("init", "decisions.csv", "--template", template, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "now complete it as its comments say" in done.stderr
    assert "# No column looks like a group." in (tmp_path / "audit.toml").read_text()


def test_a_template_refuses_to_guess_what_is_good_for_a_person(run, loans):
    folder = loans.parent
    (folder / "plain.csv").write_text(loans.read_text().replace("approved", "pred"))
    (folder / "plain.csv").write_text((folder / "plain.csv").read_text().replace("repaid", "y"))
    told = complaint(run("init", "plain.csv", "--template", "four-fifths", cwd=folder))
    assert "Pass `--favourable LABEL`" in told
    done = run("init", "plain.csv", "--template", "four-fifths", "--favourable", "1", cwd=folder)
    assert done.returncode == 0, done.stderr


def test_wrongful_denials_are_those_of_people_predicted_to_default(run, loans):
    folder = loans.parent
    rows = loans.read_text().splitlines()
    names = rows[0].split(",")
    flipped = [",".join(rows[0].replace("approved", "pred_default").split(","))]
    place = names.index("approved")
    for row in rows[1:]:
        cells = row.split(",")
        cells[place] = str(1 - int(cells[place]))
        flipped.append(",".join(cells))
    (folder / "flipped.csv").write_text("\n".join(flipped) + "\n")
    assert run("init", "flipped.csv", "--template", "four-fifths", cwd=folder).returncode == 0
    plan = tomllib.loads((folder / "audit.toml").read_text())
    assert (plan["data"]["favourable"], plan["data"]["positive"]) == (0, 0)
    done = run("audit", "audit.toml", "--quiet", cwd=folder)
    assert "so sex: F are worse off" in " ".join(done.stdout.split()), done.stderr


def test_a_plan_written_elsewhere_finds_the_data(run, loans, tmp_path_factory):
    other = tmp_path_factory.mktemp("plans")
    assert run("init", loans, "--output", other / "p.toml", cwd=loans.parent).returncode == 0
    assert run("audit", other / "p.toml", "--quiet", cwd="/").returncode == 0


def test_the_gate_trips_on_decisions(run, loans):
    folder = loans.parent
    plan = write_plan(folder)
    assert run("audit", plan, cwd=folder).returncode == 0
    tripped = run("audit", plan, "--fail-on", "detected", "--output", "r.html", cwd=folder)
    assert tripped.returncode == 1
    assert "gate --fail-on detected tripped by 1 of 2 checks: gaps" in tripped.stderr
    assert (folder / "r.html").exists()
    assert run("audit", plan, "--fail-on", "not-within-margin", cwd=folder).returncode == 0
    write_plan(folder, margin=0.13)
    strict = run("audit", plan, "--fail-on", "not-within-margin", cwd=folder)
    assert strict.returncode == 1
    assert "within" in strict.stderr


def test_a_gate_on_margins_needs_a_check_with_one(run, loans):
    plan = write_plan(loans.parent, text=PLAN.split('[[check]]\nid = "within"', maxsplit=1)[0])
    done = run("audit", plan, "--fail-on", "not-within-margin", cwd=loans.parent)
    assert 'needs a check with question = "certify"' in complaint(done)


def test_a_gate_on_growth_without_anything_to_compare_is_refused_before_the_work(run, loans):
    done = run("audit", write_plan(loans.parent), "--fail-on", "worse", cwd=loans.parent)
    told = complaint(done)
    assert 'needs a check with question = "compare", or --baseline' in told
    assert "check 1" not in done.stderr


def test_junit_shows_which_subgroup_failed(run, loans):
    folder = loans.parent
    run(*("audit", write_plan(folder), "--junit", "junit.xml", "--fail-on", "detected"), cwd=folder)
    root = ET.parse(folder / "junit.xml").getroot()
    failed = [
        case.get("name") for case in root.iter("testcase") if case.find("failure") is not None
    ]
    assert failed == ["sex=F", "sex=M", "all groups jointly"]


def test_quiet_prints_the_answer_alone(run, loans):
    plan = write_plan(loans.parent)
    done = run("audit", plan, "--quiet", cwd=loans.parent)
    whole = run("audit", plan, cwd=loans.parent)
    assert done.stdout == whole.stdout.partition("\n\n")[0] + "\n"
    assert "Not asked in this plan" in " ".join(done.stdout.split())
    assert done.stderr == ""


IMPROVE = """
[data]
path = "loans.csv"
group = "sex"
y_true = "repaid"
y_pred = "approved"
features = ["credit_score"]

[[check]]
question = "improvability"
candidate = "sklearn.linear_model.LogisticRegression"
accuracy = "accuracy"
n_splits = 2
n_resamples = 99
"""


@pytest.mark.parametrize("quiet", [True, False])
def test_bars_inside_a_check_are_drawn_unless_quiet(run, loans, monkeypatch, quiet):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    plan = write_plan(loans.parent, text=IMPROVE)
    done = run("audit", plan, *(["--quiet"] if quiet else []), cwd=loans.parent)
    assert done.returncode == 0, done.stderr
    assert (done.stderr == "") == quiet
    assert ("Splits" in done.stderr) != quiet


def test_json_to_stdout_is_json_alone(run, loans):
    done = run("audit", write_plan(loans.parent), "--json", "-", cwd=loans.parent)
    assert len(json.loads(done.stdout)["checks"]) == 2


def test_what_a_solver_prints_does_not_spoil_the_json(loans):
    code = (
        "import os, sys, equipoise.cli.delivery as delivery\n"
        "from equipoise.cli.app import main\n"
        "execute = delivery.execute\n"
        "def noisy(*args, **options):\n"
        "    os.write(1, b'solver: done\\n')\n"
        "    return execute(*args, **options)\n"
        "delivery.execute = noisy\n"
        "main(sys.argv[1:])\n"
    )
    process = start(
        ["-c", code], "audit", write_plan(loans.parent), "--json", "-", cwd=loans.parent
    )
    stdout, stderr = process.communicate(timeout=300)
    assert len(json.loads(stdout)["checks"]) == 2
    assert "solver: done" in stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_closed_stream_does_not_stop_the_audit(loans, closed):
    plan = write_plan(loans.parent)
    command = f'"$0" -m equipoise.cli.app audit "$1" --output report.html {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, str(plan)],
        cwd=loans.parent,
        env=os.environ | {"PYTHONPATH": SRC},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (loans.parent / "report.html").exists()


def test_bonferroni_shares_the_level_among_the_checks(run, loans):
    text = PLAN + '\n[report]\nmultiplicity = "bonferroni"\nalpha = 0.1\n'
    done = run("audit", write_plan(loans.parent, text=text), "--json", "-", cwd=loans.parent)
    checks = json.loads(done.stdout)["checks"]
    assert [check["result"]["alpha"] for check in checks] == [0.05, 0.05]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("loans.csv", "lons.csv"), "File '.*lons.csv' not found"),
        (('group = "sex"', 'group = "sez"'), "Column 'sez' not found. Did you mean 'sex'"),
        (
            ('metric = "selection_rate"', 'metric = "tprr"'),
            "line .*check 'gaps': .*Did you mean 'tpr'",
        ),
        (("[[check]]", "[[chek]]"), "no key 'chek'. Did you mean 'check'"),
        (('id = "within"', 'id = "gaps"'), "two checks have the id 'gaps'"),
        (("margin = {margin}", "margin = -1"), "Check 'within': `margin` must be"),
        (("margin = {margin}", 'margin = "x"'), "Check 'within': `margin` must be"),
        (('y_pred = "approved"', 'y_pred = "repaid_"'), "Did you mean 'repaid'"),
    ],
)
def test_a_wrong_plan_is_one_line_and_exit_2(run, loans, change, message):
    plan = write_plan(loans.parent, text=PLAN.replace(*change))
    done = run("audit", plan, "--output", "report.html", cwd=loans.parent)
    assert re.search(message, complaint(done))
    assert not (loans.parent / "report.html").exists()


def test_a_check_that_fails_on_its_data_leaves_the_report_of_the_others(run, loans):
    text = PLAN.replace('metric = "selection_rate"', 'metric = "fpr"', 1).replace(
        'y_pred = "approved"', 'y_pred = "approved"\ny_true = "credit_score"'
    )
    plan = write_plan(loans.parent, text=text)
    done = run("audit", plan, "--output", "report.html", "--fail-on", "detected", cwd=loans.parent)
    assert done.returncode == 2
    assert "check 'gaps': " in done.stderr
    assert "The other checks were answered." in done.stderr
    assert "Not answered" in (loans.parent / "report.html").read_text(encoding="utf-8")


def test_a_wrong_delimiter_is_named(run, tmp_path):
    (tmp_path / "loans.csv").write_text("sex#approved\nF#1\nM#0\n")
    assert "single column" in complaint(run("init", "loans.csv", cwd=tmp_path))
    assert "single column" in complaint(run("audit", write_plan(tmp_path), cwd=tmp_path))


def test_an_unreadable_file_is_named(run, tmp_path):
    (tmp_path / "loans.parquet").write_bytes(b"not parquet at all")
    assert "Cannot read 'loans.parquet'" in complaint(run("init", "loans.parquet", cwd=tmp_path))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"sex,approved\nF\xe9,1\nM,0\n", "it is not UTF-8 text. Convert it first: `iconv"),
        (b"", "the file is empty."),
        (bytes(range(256)) * 3, "Cannot read 'loans.csv'"),
        (b"sex,approved\n", "The table has no rows."),
    ],
)
def test_a_file_that_is_no_table_is_named_with_the_reason(run, tmp_path, content, reason):
    (tmp_path / "loans.csv").write_bytes(content)
    told = complaint(run("init", "loans.csv", cwd=tmp_path))
    assert reason in told
    assert "audit.toml holds a plan to complete." in told
    plan = (tmp_path / "audit.toml").read_text(encoding="utf-8")
    assert reason in " ".join(plan.replace("\n# ", " ").split())
    assert "question = " in plan
    complaint(run("audit", "audit.toml", cwd=tmp_path))


@pytest.mark.parametrize("option", ["--output", "--json", "--junit"])
def test_a_missing_folder_is_found_before_the_work(run, loans, option):
    plan = write_plan(loans.parent)
    done = run("audit", plan, option, "no/such/file", cwd=loans.parent)
    assert "Folder 'no/such' for 'file' does not exist" in complaint(done)
    assert "check 1" not in done.stderr


def test_a_full_disk_leaves_neither_a_file_nor_a_part_of_it(run, loans):
    folder = loans.parent
    (folder / "report.html").write_text("the old report")
    before = sorted(folder.iterdir())
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000));"
        "from equipoise.cli.app import main; main(sys.argv[1:])"
    )
    plan = write_plan(folder)
    before = sorted(folder.iterdir())
    process = start(["-c", code], "audit", plan, "--output", "report.html", "--quiet", cwd=folder)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 3
    assert errors == "equipoise: 'report.html' cannot be written: File too large.\n"
    assert (folder / "report.html").read_text() == "the old report"
    assert sorted(folder.iterdir()) == before


def test_an_interrupt_is_one_line_and_leaves_nothing_half_written(run, loans):
    folder = loans.parent
    checks = "".join(
        f'\n[[check]]\nquestion = "disparity"\nmetric = "selection_rate"\nid = "c{k}"\n'
        for k in range(500)
    )
    plan = write_plan(folder, text=PLAN + checks)
    before = sorted(folder.iterdir())
    process = start(MODULE, "audit", plan, "--output", "report.html", cwd=folder)
    while not process.stderr.readline().startswith("check 3"):
        pass
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "equipoise: interrupted; no file is half written."
    assert "Traceback" not in errors
    assert sorted(folder.iterdir()) == before


def test_a_reader_that_leaves_early_is_no_error(run, loans):
    plan = write_plan(loans.parent)
    process = start(MODULE, "audit", plan, cwd=loans.parent)
    process.stdout.close()
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_strange_names_reach_the_terminal_harmlessly(run, tmp_path):
    names = ["\x1b[31mred", "<script>", "😀", "שלום", "x" * 500, '"quoted"']
    rows = "".join(
        '"' + name.replace('"', '""') + f'",{k % 2}\n' for name in names for k in range(40)
    )
    (tmp_path / "loans.csv").write_text("sex,approved\n" + rows, encoding="utf-8")
    done = run("audit", write_plan(tmp_path), "--output", "r.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.count("<script") == 1


def test_results_that_are_not_ours_are_refused(run, tmp_path):
    (tmp_path / "a.json").write_text("[1, 2")
    assert "is not JSON" in complaint(run("report", "a.json", cwd=tmp_path))
    (tmp_path / "a.json").write_text('{"a": 1}')
    assert "found no 'checks'" in complaint(run("report", "a.json", cwd=tmp_path))
    (tmp_path / "a.json").write_text('{"schema_version": 99, "checks": []}')
    assert "schema_version 99" in complaint(run("report", "a.json", cwd=tmp_path))
    (tmp_path / "a.json").write_text('{"schema_version": 1, "checks": [{"id": "x"}]}')
    assert "incomplete or were edited" in complaint(run("report", "a.json", cwd=tmp_path))
    assert "not found" in complaint(run("report", "none.json", cwd=tmp_path))


@pytest.mark.spark
def test_spark_gives_the_numbers_of_duckdb(run, loans):
    pytest.importorskip("pyspark")
    plan = write_plan(loans.parent)
    local, spark = (
        json.loads(run("audit", plan, "--json", "-", "--engine", engine, cwd=loans.parent).stdout)
        for engine in ("duckdb", "spark")
    )
    assert "pyspark" in spark["versions"]
    for ours, theirs in zip(local["checks"], spark["checks"], strict=True):
        for a, b in zip(ours["result"]["findings"], theirs["result"]["findings"], strict=True):
            assert a["group"] == b["group"]
            assert a["estimate"] == pytest.approx(b["estimate"], abs=1e-9)
            assert a["p_value"] == pytest.approx(b["p_value"], abs=1e-9)


def test_the_demo_is_quick_and_needs_nothing(run, tmp_path):
    done = run("demo", "--output", "report.html", "--json", "results.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "African-American men are worse off" in re.sub(r"\s+", " ", done.stdout)
    questions = {
        check["question"] for check in json.loads((tmp_path / "results.json").read_text())["checks"]
    }
    assert questions == {"disparity", "flag", "certify", "predictive_parity", "inequality"}


def test_usage_errors_are_one_line(run):
    for arguments in (["audit"], ["audit", "x.toml", "--fail-on", "maybe"], ["nothing"]):
        assert complaint(run(*arguments, cwd=".")).startswith("equipoise: ")


def test_version_and_help(run):
    assert run("--version", cwd=".").stdout == f"equipoise {equipoise.__version__}\n"
    assert "demo" in run("--help", cwd=".").stdout


def test_python_m_equipoise_is_the_command_line():
    done = subprocess.run(
        [sys.executable, "-m", "equipoise", "--version"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": SRC},
    )
    assert equipoise.__version__ in done.stdout


def test_a_template_without_its_columns_says_which(run, loans):
    (loans.parent / "words.csv").write_text("sex,race\n" + "m,a\nf,b\nf,a\n" * 30)
    told = complaint(run("init", "words.csv", "--template", "four-fifths", cwd=loans.parent))
    assert "Template 'four-fifths' needs `y_pred`, and no column looks like it" in told


def test_the_smallest_cell_that_is_told_is_the_users(run, loans):
    plan = write_plan(loans.parent)
    done = run("audit", plan, "--json", "r.json", "--min-cell", "100000", cwd=loans.parent)
    assert done.returncode == 0, done.stderr
    told = json.loads((loans.parent / "r.json").read_text(encoding="utf-8"))
    assert all(f["withheld"] for check in told["checks"] for f in check["result"]["findings"])


def test_the_answer_comes_first_then_twenty_lines_and_no_name_is_broken(run, tmp_path):
    names = [f"team number {k}" for k in range(30)]
    rows = [f'"{name}",{(k + j) % 3 % 2}' for k, name in enumerate(names) for j in range(40)]
    (tmp_path / "staff.csv").write_text("\n".join(["team,promoted", *rows]) + "\n")
    asked = '[data]\npath = "staff.csv"\ngroup = "team"\ny_pred = "promoted"\n'
    asked += '[[check]]\nquestion = "disparity"\nmetric = "selection_rate"\n'
    (tmp_path / "audit.toml").write_text(asked)
    some, every, alone = (
        run("audit", "audit.toml", *options, cwd=tmp_path).stdout
        for options in ((), ("--all",), ("--quiet",))
    )
    assert some.startswith(alone.rstrip("\n"))
    assert "====" not in alone
    assert "10 more" in some
    assert "--all prints them" in some
    table = [row for row in some.splitlines() if row.startswith("team: ")]
    whole = [row for row in every.splitlines() if row.startswith("team: ")]
    assert (len(table), len(whole)) == (20, 30)
    assert {row.split("  ")[0] for row in whole} == {f"team: {name}" for name in names}


def test_init_says_that_its_own_plan_cannot_be_run(run, tmp_path):
    rows = "".join(f"{'FM'[k % 2]},{'FM'[k % 3 % 2]},{k % 7 % 2}\n" for k in range(60))
    (tmp_path / "twice.csv").write_text(f"sex,sex,hired\n{rows}", encoding="utf-8")
    done = run("init", "twice.csv", cwd=tmp_path)
    assert done.returncode == 0
    said = "Column names must be distinct, in lower case too; 'sex' are not. Rename them."
    assert said in done.stderr
    assert said in (tmp_path / "audit.toml").read_text().replace("\n# ", " ")
    assert run("audit", "audit.toml", cwd=tmp_path).stderr == f"equipoise: {said}\n"
