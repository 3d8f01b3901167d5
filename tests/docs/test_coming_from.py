"""What the page for people of other toolkits says of equipoise is true."""

import re
from pathlib import Path

import equipoise
import equipoise.mitigation
import equipoise.search
from equipoise.data.metrics import METRICS
from equipoise.results.question import questions

PAGE = (Path(__file__).parents[2] / "docs/guide/coming_from.md").read_text(encoding="utf-8")


def test_every_method_and_class_exists():
    asked = set(re.findall(r"audit\.(\w+)", PAGE))
    assert asked <= set(questions())
    assert len(asked) >= 7
    for name in re.findall(r"`(?:equipoise\.search\.)?(\w+Rule|\w+Estimator)`", PAGE):
        assert hasattr(equipoise.search, name), name
    for name in re.findall(r"eq\.(\w+)", PAGE):
        assert hasattr(equipoise, name), name


def test_every_metric_exists():
    right = [line.split("|")[2] for line in PAGE.splitlines() if line.startswith("| `")]
    named = set(re.findall(r'(?:disparity|flag|certify)\("(\w+)"', "".join(right)))
    assert named <= {metric if isinstance(metric, str) else metric.name for metric in METRICS}
