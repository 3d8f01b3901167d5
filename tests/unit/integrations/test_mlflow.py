"""A result is logged as metrics, tags and an artifact; against MLflow itself where it is."""

import importlib.util
import json
import sys
from types import SimpleNamespace

import pytest

import equipoise as eq
from equipoise.exceptions import MissingDependencyError
from equipoise.integrations.mlflow import log

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
