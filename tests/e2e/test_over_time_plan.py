"""A plan that compares, watches and discovers: one run, one page, one gate."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from equipoise.cli.app import app

PLAN = """
[data]
path = "rows.csv"
group = "sex"
y_true = "repaid"
y_pred = "new"
features = ["age", "home"]
time = "week"

[[check]]
question = "compare"
metric = "fpr"
baseline = "old"
margin = 0.05

[[check]]
question = "compare"
id = "periods"
metric = "selection_rate"
baseline = 1
candidate = [2, 3]

[[check]]
question = "monitor"
metric = ["selection_rate", "fpr"]

[[check]]
question = "discover"
metric = "error_rate"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    n = 4000
    sex, home = rng.choice(["F", "M"], n), rng.choice(["rent", "own"], n)
    age, week = rng.integers(18, 70, n), rng.integers(1, 9, n)
    repaid, old = rng.integers(0, 2, n), rng.integers(0, 2, n)
    new = np.where((sex == "F") & (rng.random(n) < 0.4), 1, old)
    columns = {"sex": sex, "home": home, "age": age, "week": week, "repaid": repaid}
    columns |= {"old": old, "new": new}
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_plan_answers_all_three(folder):
    arguments = ["audit", "plan.toml", "--output", "page.html", "--json", "r.json"]
    done = CliRunner().invoke(app, [*arguments, "--junit", "j.xml", "--fail-on", "worse"])
    assert done.exit_code == 1, done.output
    page = (folder / "page.html").read_text()
    for words in ("Did it change?", "Which groups did nobody name?", "Gap before", "Alarm in"):
        assert words in page
    results = json.loads((folder / "r.json").read_text())
    assert [check["id"] for check in results["checks"]] == [
        "compare-fpr",
        "periods",
        "monitor",
        "discover-error_rate",
    ]
    assert "sex=F, fpr gap growth" in (folder / "j.xml").read_text()
    again = CliRunner().invoke(app, ["report", "r.json", "--output", "again.html"])
    assert again.exit_code == 0
    assert (folder / "again.html").read_bytes() == (folder / "page.html").read_bytes()
