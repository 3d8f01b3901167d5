"""No run takes a file away, leaves a part of one, or hides that a stream failed."""

import os
import signal
import stat
import time
from pathlib import Path

import pytest

from equipoise.cli.files import write_all
from equipoise.exceptions import ResourceError
from support.command_line import MODULE, PLAN, complaint, start, write_plan

OPTIONS = ["--output", "--json", "--junit"]


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize(
    ("file", "what"), [("loans.csv", "the data"), ("audit.toml", "the plan"), ("link", "the data")]
)
def test_an_output_that_is_an_input_is_refused(run, loans, option, file, what):
    plan = write_plan(loans.parent)
    (loans.parent / "link").hardlink_to(loans)
    before = loans.read_bytes(), plan.read_bytes()
    done = run("audit", plan, option, file, cwd=loans.parent)
    assert f"'{file}' is {what}, which would be lost" in complaint(done)
    assert (loans.read_bytes(), plan.read_bytes()) == before


def test_a_file_of_a_glob_is_data_too(run, loans):
    plan = write_plan(loans.parent, text=PLAN.replace("loans.csv", "loans*.csv"))
    done = run("audit", plan, "--output", "sub/../loans.csv", cwd=_with_folder(loans.parent))
    assert "is the data" in complaint(done)


def _with_folder(folder):
    (folder / "sub").mkdir()
    return folder


@pytest.mark.parametrize("pair", [("--output", "--json"), ("--json", "--junit")])
def test_two_outputs_in_one_file_are_refused(run, loans, pair):
    plan = write_plan(loans.parent)
    done = run("audit", plan, pair[0], "a", pair[1], "./a", cwd=loans.parent)
    assert "'a' is another output too" in complaint(done)
    assert not (loans.parent / "a").exists()


def test_init_and_report_do_not_replace_what_they_read(run, loans):
    folder = loans.parent
    done = run("init", "loans.csv", "--output", "loans.csv", "--force", cwd=folder)
    assert "'loans.csv' is the data" in complaint(done)
    assert run("audit", write_plan(folder), "--json", "r.json", cwd=folder).returncode == 0
    done = run("report", "r.json", "--output", "r.json", cwd=folder)
    assert "'r.json' is the results" in complaint(done)


@pytest.mark.parametrize("option", OPTIONS)
def test_a_pipe_a_device_and_a_folder_are_refused(run, loans, option):
    folder = loans.parent
    plan = write_plan(folder)
    os.mkfifo(folder / "fifo")
    (folder / "loop").symlink_to("loop")
    for file, what in [
        ("fifo", "a pipe"),
        ("/dev/null", "a device"),
        (".", "a folder"),
        ("loop", "a link that leads to itself"),
    ]:
        assert f"'{file}' is {what}" in complaint(run("audit", plan, option, file, cwd=folder))
    assert stat.S_ISFIFO((folder / "fifo").stat().st_mode)


def test_a_file_keeps_its_mode_and_a_new_one_gets_that_of_the_umask(run, loans):
    folder = loans.parent
    old = folder / "old.html"
    old.write_text("old")
    old.chmod(0o600)
    before = os.umask(0o027)
    try:
        done = run(
            *("audit", write_plan(folder), "--output", "old.html", "--json", "new.json"), cwd=folder
        )
    finally:
        os.umask(before)
    assert done.returncode == 0, done.stderr
    assert old.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "new.json").stat().st_mode) == 0o640


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_the_file_it_leads_to_is_replaced(run, loans, there):
    folder = loans.parent
    (folder / "kept").mkdir()
    real = folder / "kept" / "real.html"
    if there:
        real.write_text("old")
    (folder / "link.html").symlink_to("kept/real.html")
    done = run("audit", write_plan(folder), "--output", "link.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "link.html").is_symlink()
    assert real.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_name_as_long_as_a_name_can_be_is_written(run, loans):
    name = "x" * 250 + ".html"
    assert (
        run("audit", write_plan(loans.parent), "--output", name, cwd=loans.parent).returncode == 0
    )
    assert (loans.parent / name).exists()


def test_what_a_killed_run_left_is_removed_and_what_is_in_use_is_not(tmp_path):
    import fcntl

    left, used = tmp_path / ".equipoise-0a.part", tmp_path / ".equipoise-0b.part"
    left.write_text("left")
    with used.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        write_all({tmp_path / "a": "text"})
    assert not left.exists()
    assert used.exists()


def test_when_one_file_cannot_be_written_none_is(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("old")
    synced = iter([None, OSError(5, "Input/output error")])

    def fsync(_):
        outcome = next(synced)
        if outcome is not None:
            raise outcome

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(ResourceError, match=r"'.*b' cannot be written: Input/output error\."):
        write_all({tmp_path / "a": "new", tmp_path / "b": "new"})
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


MANY = PLAN + "".join(
    f'\n[[check]]\nquestion = "disparity"\nmetric = "selection_rate"\nid = "c{k}"\n'
    for k in range(500)
)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_run_that_is_terminated_says_so_and_leaves_nothing(loans, number, code):
    folder = loans.parent
    plan = write_plan(folder, text=MANY)
    before = sorted(folder.iterdir())
    process = start(MODULE, "audit", plan, "--output", "report.html", cwd=folder)
    while not process.stderr.readline().startswith("check 3"):
        pass
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == code
    assert errors.splitlines()[-1] == "equipoise: terminated; no file is half written."
    assert sorted(folder.iterdir()) == before


def test_an_interrupt_that_a_library_swallows_is_repeated(loans):
    code = (
        "import os, signal, sys, time, equipoise.cli.delivery as delivery\n"
        "from equipoise.cli.app import main\n"
        "def swallowing(*args, **options):\n"
        "    try: os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt: time.sleep(600)\n"
        "delivery.execute = swallowing\n"
        "main(sys.argv[1:])\n"
    )
    process = start(["-c", code], "audit", write_plan(loans.parent), cwd=loans.parent)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors == "equipoise: interrupted; no file is half written.\n"


def test_a_run_terminated_while_it_writes_removes_its_parts(loans):
    folder = loans.parent
    code = (
        "import os, signal, sys\n"
        "def fsync(_): os.kill(os.getpid(), signal.SIGTERM)\n"
        "os.fsync = fsync\n"
        "from equipoise.cli.app import main\n"
        "main(sys.argv[1:])\n"
    )
    plan = write_plan(folder)
    before = sorted(folder.iterdir())
    process = start(
        ["-c", code], "audit", plan, "--output", "a.html", "--json", "a.json", cwd=folder
    )
    process.communicate(timeout=300)
    assert process.returncode == 143
    assert sorted(folder.iterdir()) == before


def test_a_signal_between_two_renames_comes_too_late(loans):
    folder = loans.parent
    code = (
        "import os, signal, sys, pathlib\n"
        "replace = pathlib.Path.replace\n"
        "def noisy(*args):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return replace(*args)\n"
        "pathlib.Path.replace = noisy\n"
        "from equipoise.cli.app import main\n"
        "main(sys.argv[1:])\n"
    )
    process = start(
        *(["-c", code], "audit", write_plan(folder), "--output", "a.html", "--json", "a.json"),
        cwd=folder,
    )
    process.communicate(timeout=300)
    assert process.returncode == 0
    assert (folder / "a.html").exists()
    assert (folder / "a.json").exists()


@pytest.mark.parametrize("call", [1, 2, 3, 4, 5])
def test_a_run_killed_between_two_renames_leaves_no_files_of_two_runs(tmp_path, call):
    """Killed at each of the calls that take old files away and bring new ones."""
    old, new = (dict.fromkeys(map(tmp_path.joinpath, "abc"), text) for text in ("old", "new"))
    write_all(old)
    child = os.fork()
    if child == 0:
        calls = iter(range(1, 9))

        def killed(act):
            def acting(*args, **options):
                if next(calls) == call:
                    os._exit(9)
                return act(*args, **options)

            return acting

        Path.unlink, Path.replace = killed(Path.unlink), killed(Path.replace)
        write_all(new)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    left = [file for file in old if file.exists()]
    assert len({file.read_text() for file in left}) <= 1
    write_all(new)
    assert sorted(tmp_path.iterdir()) == sorted(new)


def test_two_runs_that_write_the_same_files_leave_those_of_one(tmp_path):
    names = [tmp_path / name for name in ("report.html", "results.json", "gate.xml")]
    begun, say = os.pipe()
    child = os.fork()
    if child == 0:
        replace = Path.replace

        def slow(self, target):
            replace(self, target)
            os.write(say, b".")
            time.sleep(0.2)

        Path.replace = slow
        write_all(dict.fromkeys(names, "first"))
        os._exit(0)
    os.read(begun, 1)
    write_all(dict.fromkeys(names, "second"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert {file.read_text() for file in names} == {"second"}
    assert sorted(tmp_path.iterdir()) == sorted(names)


def test_a_disk_that_takes_no_more_is_one_sentence_and_leaves_what_was_there(loans):
    import resource

    folder = loans.parent
    (folder / "a.html").write_text("old")
    plan = write_plan(folder)
    before = sorted(folder.iterdir())
    process = start(
        *(MODULE, "audit", plan, "--quiet", "--output", "a.html", "--json", "a.json"),
        cwd=folder,
        first=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
    )
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 3
    assert errors == "equipoise: 'a.html' cannot be written: File too large.\n"
    assert sorted(folder.iterdir()) == before
    assert (folder / "a.html").read_text() == "old"


def test_too_little_memory_is_one_sentence(run, loans, monkeypatch):
    def exhausted(*_, **__):
        raise MemoryError

    monkeypatch.setattr("equipoise.cli.delivery.execute", exhausted)
    done = run("audit", write_plan(loans.parent), "--quiet", cwd=loans.parent)
    assert "(MemoryError" in complaint(done, code=3)


def test_memory_that_the_system_refuses_is_one_sentence(loans):

    folder = loans.parent
    # Address space for the imports and little more: the engine, or numpy, gets no more of it.
    code = (
        "import resource, sys, equipoise.cli.delivery, equipoise.audits.disparity.gaps\n"
        "from equipoise.cli.app import main\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, used + 2**20))\n"
        "main(sys.argv[1:])\n"
    )
    before = sorted(folder.iterdir())
    process = start(
        *(["-c", code], "audit", write_plan(folder), "--quiet", "--json", "a.json"), cwd=folder
    )
    _, errors = process.communicate(timeout=300)
    assert process.returncode in {2, 3}
    assert len([line for line in errors.splitlines() if line.startswith("equipoise: ")]) == 1
    assert "Traceback" not in errors
    assert sorted(folder.iterdir()) == sorted({*before, folder / "audit.toml"})


def test_a_plan_that_a_disk_cannot_read_is_one_sentence(run, loans):
    # The kernel answers EIO to whoever reads this file from its start.
    plan = loans.parent / "broken.toml"
    plan.symlink_to("/proc/self/mem")
    done = run("audit", plan, "--quiet", cwd=loans.parent)
    assert "Input/output error" in complaint(done)


def test_data_of_which_a_disk_lost_a_part_are_one_sentence(run, loans):
    from pyarrow import csv, parquet

    file = loans.parent / "loans.parquet"
    parquet.write_table(csv.read_csv(loans), file)
    whole = file.read_bytes()
    file.write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    plan = write_plan(loans.parent, text=PLAN.replace("loans.csv", "loans.parquet"))
    done = run("audit", plan, "--quiet", "--json", "a.json", cwd=loans.parent)
    assert "loans.parquet" in complaint(done)
    assert not (loans.parent / "a.json").exists()


def to_full_device(folder, command, *, stream):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        options = {stream: full, "env": {"SOURCE_DATE_EPOCH": "0"}}
        process = start(MODULE, *command, cwd=folder, **options)
        written, errors = process.communicate(timeout=300)
    return process.returncode, written, errors


@pytest.mark.parametrize(
    "command", [["audit", "audit.toml", "--json", "-"], ["audit", "audit.toml"], ["--help"]]
)
def test_results_that_stdout_cannot_take_are_a_failure(loans, command):
    write_plan(loans.parent)
    code, _, errors = to_full_device(loans.parent, command, stream="stdout")
    assert code == 3
    last = errors.splitlines()[-1]
    assert last == "equipoise: stdout cannot be written: No space left on device."


def test_files_are_whole_whatever_happens_to_the_streams(loans):
    folder = loans.parent
    write_plan(folder)
    command = ["audit", "audit.toml", "--fail-on", "detected", "--output"]
    assert to_full_device(folder, [*command, "a.html"], stream="stdout")[0] == 3
    code, written, _ = to_full_device(folder, [*command, "b.html"], stream="stderr")
    assert code == 1
    assert "groups differ at the 5% level" in written.replace("\n", " ")
    assert (folder / "a.html").read_bytes() == (folder / "b.html").read_bytes()


def test_a_defect_is_exit_3_one_line_and_details_in_a_private_file(loans):
    folder = loans.parent
    (folder / "details").mkdir()
    code = (
        "import sys, equipoise.cli.delivery as delivery\n"
        "from equipoise.cli.app import main\n"
        "def broken(*args, **options): raise ZeroDivisionError('two\\nlines')\n"
        "delivery.execute = broken\n"
        "main(sys.argv[1:])\n"
    )
    process = start(
        *(["-c", code], "audit", write_plan(folder), "--quiet"),
        cwd=folder,
        env={"TMPDIR": str(folder / "details")},
    )
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 3
    (line,) = errors.splitlines()
    assert line.startswith(
        "equipoise: stopped by a defect of equipoise or of this machine"
        " (ZeroDivisionError: two lines). Details: "
    )
    (file,) = (folder / "details").iterdir()
    assert line.endswith(str(file))
    assert "Traceback" in file.read_text(encoding="utf-8")
    assert "audit.toml" in file.read_text(encoding="utf-8")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_without_a_place_for_details_they_are_on_stderr(run, loans, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("equipoise.cli.delivery.execute", broken)
    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    done = run("audit", write_plan(loans.parent), "--quiet", cwd=loans.parent)
    assert done.returncode == 3
    assert "Details: No space left on device; they follow here." in done.stderr
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(
    ("place", "words"),
    [("audit.toml/r.html", "does not exist"), ("x" * 300 + ".html", "File name too long")],
)
def test_an_output_below_a_file_or_with_too_long_a_name_is_refused(run, loans, place, words):
    plan = write_plan(loans.parent)
    before = plan.read_bytes()
    done = run("audit", plan, "--output", place, cwd=loans.parent)
    assert words in complaint(done)
    assert plan.read_bytes() == before
    assert sorted(file.name for file in loans.parent.iterdir()) == ["audit.toml", "loans.csv"]
