"""Every question, asked of groups with hostile names, makes a harmless page and picture."""

import io
import json
import re
import warnings

import numpy as np
import pytest

import equipoise as eq
from equipoise.report.html import html_report
from support.specimens import check, dossier

NAMES = np.array(
    [
        "<img src=x onerror=\"document.title='attacked'\">",
        "</script><script>document.title='attacked'</script>",
        "$\\frac{1} _a^b & 'quoted' 😀 שלום",
        "x" * 500,
    ]
)
QUESTIONS = {
    "disparity": {"metric": "selection_rate"},
    "flag": {"metric": "fpr"},
    "certify": {"metric": "accuracy", "margin": 0.2},
    "predictive_parity": {"grid": [0.3, 0.5, 0.7]},
    "marginal_outcome": {"threshold": 0.5},
    "improvability": {"candidate": "rival", "accuracy": "accuracy", "n_resamples": 199},
    "inequality": {"benefits": "speicher"},
    "treatment_effects": {"measure": "difference"},
}


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(11)
    n = 2400
    score = rng.random(n)
    outcome = (rng.random(n) < score).astype(int)
    table = {
        "group": NAMES[np.arange(n) % len(NAMES)],
        "score": score,
        "outcome": outcome,
        "decision": (score > 0.5).astype(int),
        "rival": np.where(rng.random(n) < 0.9, outcome, 1 - outcome),
        "arm": rng.integers(0, 2, n),
        "effect": 0.1 * rng.random(n),
    }
    audit = eq.Audit(
        table,
        group="group",
        y_true="outcome",
        y_pred="decision",
        y_score="score",
        treatment="arm",
        effect_pred="effect",
    )
    return {name: getattr(audit, name)(**options) for name, options in QUESTIONS.items()}


def page_of(results):
    return html_report(dossier(*(check(name, result) for name, result in results.items())))


def test_names_are_text_and_nothing_else(results):
    page = page_of(results)
    assert page.count("<script") == 1
    assert "<img" not in page
    # Every figure and the overview for the page and for a phone, and the explorer's.
    assert len(re.findall(r"<svg", page)) == 2 * (len(QUESTIONS) + 1) + 1


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_notebook_table_and_the_picture_take_names_literally(results, question):
    result = results[question]
    shown = result._repr_html_()
    assert "<img" not in shown
    assert "<script" not in shown
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        result.plot().get_figure(root=True).savefig(io.BytesIO())


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_a_browser_runs_none_of_it(browser, results, tmp_path):
    file = tmp_path / "hostile.html"
    file.write_text(page_of(results), encoding="utf-8")
    browser.open(file)
    assert browser.driver.title != "attacked"
    assert browser.console() == []
    assert browser.requests() == [file.as_uri()]
    assert browser.violations() == []
    browser.resize(390, 800)
    assert browser.driver.execute_script("return document.documentElement.scrollWidth") <= 390


COMMANDS = ["\x1b[2J", "\x1b]0;title\x07", "\x9b2J", "\u202egnirts", "\x7f", "\x08" * 9]
"""Names that clear a screen, give it a title, or turn around or delete what stands beside them."""


@pytest.fixture
def commanding(tmp_path):
    """A table and a plan with such names, and a row far below that no number is."""
    rows = "".join(f"{COMMANDS[k % 6]},{k % 7 % 2}\n" for k in range(300))
    (tmp_path / "rows.csv").write_text(f"g{COMMANDS[0]},hired\n{rows}")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[data]\npath = "rows.csv"\ngroup = "g\\u001b[2J"\ny_pred = "hired"\n'
        '[report]\ntitle = "\\u001b[2J"\n[labels]\n"g\\u001b[2J.\\u007f" = "\\u009b2J"\n'
        '[[check]]\nid = "a"\nquestion = "disparity"\nmetric = "selection_rate"\n'
    )
    return plan


def unprintable(text):
    return re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


def test_no_name_commands_a_terminal(run, commanding):
    folder = commanding.parent
    files = ["report.html", "results.json", "junit.xml"]
    outputs = zip(["--output", "--json", "--junit"], files, strict=True)
    done = run("audit", commanding, *(word for pair in outputs for word in pair), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "\N{REPLACEMENT CHARACTER}[2J" in done.stdout
    whole = run("audit", commanding, "--json", "-", cwd=folder)
    again = run("report", "results.json", "--output", "again.html", cwd=folder)
    assert "the seal holds" in again.stderr
    drafted = run("init", "rows.csv", cwd=folder)
    assert drafted.returncode == 0
    told = [text for one in (done, whole, again, drafted) for text in (one.stdout, one.stderr)]
    told += [(folder / file).read_text(encoding="utf-8") for file in (*files, "again.html")]
    assert [unprintable(text) for text in told] == [[]] * len(told)
    groups = {f["group"] for f in json.loads(whole.stdout)["checks"][0]["result"]["findings"]}
    assert {f"g\x1b[2J={name}" for name in COMMANDS} == groups


def test_no_value_in_a_message_commands_a_terminal(run, commanding):
    with (commanding.parent / "rows.csv").open("a") as rows:
        rows.write("x,1\n" * 21_000 + "x,\x1b[2J\x9b\n")
    done = run("audit", commanding, cwd=commanding.parent)
    assert done.returncode == 2
    assert "Could not convert string" in done.stderr
    assert unprintable(done.stdout + done.stderr) == []


HOSTILE = "g\x1b[2J"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["init", "rows.csv", "--output", f"{HOSTILE}.toml"], 0),
        (["init", "rows.csv", "--favourable", HOSTILE], 2),
        (["audit", f"{HOSTILE}.toml"], 2),
        (["audit", "plan.toml", "--output", f"{HOSTILE}.html"], 0),
        (["audit", "plan.toml", "--baseline", HOSTILE], 2),
        (["audit", "plan.toml", f"--{HOSTILE}"], 2),
        (["report", HOSTILE], 2),
        (["monitor", HOSTILE], 2),
        (["monitor", "state", "rows.csv", "--plan", "watch.toml", "--id", HOSTILE], 0),
        (["cells", "rows.csv", "--group", HOSTILE, "--metric", "selection_rate",
          "--y-pred", "hired", "--output", f"{HOSTILE}.parquet"], 0),
        (["merge", HOSTILE], 2),
        (["design", "power", HOSTILE], 2),
        ([HOSTILE], 2),
    ],
)  # fmt: skip
def test_no_command_is_commanded_by_what_it_is_given(run, commanding, arguments, code):
    folder = commanding.parent
    watch = commanding.read_text().replace('"disparity"', '"monitor"')
    (folder / "watch.toml").write_text(watch)
    done = run(*arguments, cwd=folder)
    assert done.returncode == code, done.stderr
    assert unprintable(done.stdout + done.stderr) == []
    assert "[2J" in done.stdout + done.stderr
