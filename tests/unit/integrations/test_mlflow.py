"""A result is logged as metrics, tags and an artifact; against MLflow itself where it is."""

import importlib.util
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import equipoise as eq
from equipoise.exceptions import MissingDependencyError
from equipoise.integrations.mlflow import log
from support.specimens import finding
from support.specimens import result as specimen

TABLE = {"race": ["a & b"] * 60 + ["c"] * 60 + ["few"] * 3, "hired": [1] * 50 + [0] * 40 + [1] * 33}


@pytest.fixture
def result():
    return eq.Audit(TABLE, group="race", y_pred="hired").disparity("selection_rate")


def test_metrics_have_names_that_mlflow_allows_and_few_people_have_none(result, monkeypatch):
    seen = {}
    fake = SimpleNamespace(
        log_metrics=lambda metrics: seen.update(metrics=metrics),
        set_tags=lambda tags: seen.update(tags=tags),
        log_dict=lambda content, path: seen.update(content=content, path=path),
    )
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    log(result, name="hiring")
    assert "hiring/joint/p_value" in seen["metrics"]
    assert not any("few" in name for name in seen["metrics"])
    assert seen["path"] == "equipoise/hiring.json"
    assert seen["tags"]["equipoise.hiring.detected"] == "true"
    assert eq.AuditResult.from_dict(json.loads(json.dumps(seen["content"]))) == result.disclosed()
    log(result, min_cell=1)
    assert "disparity/race.few/selection_rate difference/estimate" in seen["metrics"]
    assert "disparity/race.a _ b/selection_rate difference/ci_low" in seen["metrics"]


NAMES = [
    ("a/b", "a|b"),
    ("<1", ">1"),
    ("x" * 300, "y" * 300),
    ("x" * 200 + "1" + "x" * 200, "x" * 200 + "2" + "x" * 200),
]


def logged(monkeypatch, result):
    """Return the metrics of a result."""
    kept = {}
    fake = SimpleNamespace(log_metrics=kept.update, set_tags=dict, log_dict=lambda *_: None)
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    log(result)
    return kept


@pytest.mark.parametrize("labels", NAMES)
def test_names_that_mlflow_would_make_one_are_numbered(labels, monkeypatch):
    table = {"race": np.repeat(labels, 60), "hired": np.arange(120) % 7 // 4}
    audit = eq.Audit(table, group="race", y_pred="hired")
    metrics = logged(monkeypatch, audit.disparity("selection_rate"))
    assert len([name for name in metrics if name.endswith("/estimate")]) == 2
    assert all(re.fullmatch(r"[\w\-. :/]{1,250}", name) for name in metrics)


def test_comparisons_of_one_group_with_several_are_told_apart(monkeypatch):
    pairs = [
        finding("race=A", 0.1, 0.0, 0.2, reference="race=B"),
        finding("race=A", 0.3, 0.2, 0.4, reference="race=C"),
    ]
    metrics = logged(monkeypatch, specimen(findings=pairs))
    name = "disparity/race.A compared with race.{}/fpr difference/estimate"
    assert [metrics[name.format(other)] for other in "BC"] == [0.1, 0.3]


def test_without_mlflow_the_remedy_is_said(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingDependencyError, match="Install `mlflow`"):
        log(result)


@pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="MLflow is absent")
@pytest.mark.filterwarnings("ignore")
def test_a_run_of_mlflow_keeps_the_result(result, tmp_path, monkeypatch):
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as run:
        log(result)
    client = mlflow.MlflowClient()
    kept = client.get_run(run.info.run_id)
    assert kept.data.metrics["disparity/joint/p_value"] == result.joint.p_value
    assert kept.data.tags["equipoise.disparity.detected"] == "true"
    (artifact,) = client.list_artifacts(run.info.run_id, "equipoise")
    file = client.download_artifacts(run.info.run_id, artifact.path, str(tmp_path))
    with open(file, encoding="utf-8") as stream:  # noqa: PTH123
        assert eq.AuditResult.from_dict(json.load(stream)) == result.disclosed()
