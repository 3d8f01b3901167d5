"""The fixture lets a test fail, skip or stand; the marker decides what is not settled."""

import os
import subprocess
import sys
from pathlib import Path

import equipoise

SUITE = """
import equipoise as eq
import pytest

audit = eq.Audit(eq.datasets.load_compas_counts(), group="race", count="count",
                 y_true="two_year_recid", y_pred="high_risk")

def test_detected(equipoise):
    equipoise.not_detected(audit.flag("fpr", margin=0.05))

def test_not_settled(equipoise):
    equipoise.within_margin(audit.certify("accuracy", margin=0.05))

@pytest.mark.equipoise(inconclusive="fail")
def test_must_be_settled(equipoise):
    equipoise.within_margin(audit.certify("accuracy", margin=0.05))

@pytest.mark.equipoise("fail")
def test_must_be_settled_in_short(equipoise):
    equipoise.within_margin(audit.certify("accuracy", margin=0.05))

@pytest.mark.equipoise(inconclusive="fails")
def test_misspelt(equipoise):
    equipoise.within_margin(audit.certify("accuracy", margin=0.05))

def test_stands(equipoise):
    equipoise.not_detected(audit.flag("accuracy", margin=0.5))
"""


def test_outcomes_of_a_suite(tmp_path):
    (tmp_path / "test_gate.py").write_text(SUITE)
    # By module, also where the installed package has not announced it yet; never twice.
    plugin = ["-p", "no:equipoise", "-p", "equipoise.integrations.pytest_plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-rs", *plugin, "test_gate.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(equipoise.__file__).parents[1]), "PATH": ""},
    )
    assert "3 failed, 1 passed, 1 skipped, 1 error" in done.stdout, done.stdout + done.stderr
    assert "percentage points more" in done.stdout
    assert "The data do not settle" in done.stdout
    assert "`inconclusive` must be one of 'skip', 'fail'; got 'fails'." in done.stdout
