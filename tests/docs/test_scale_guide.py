"""The six lines of the scale guide give the same answer on a cluster."""

import doctest
from pathlib import Path

import pytest

from support.engines import spark_session

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "scale.md"


def opening():
    """Names after the examples up to the laptop: `ask`, the patients and their answer."""
    text = GUIDE.read_text(encoding="utf-8").split("In a warehouse;")[0]
    names = {}
    for example in doctest.DocTestParser().get_examples(text):
        exec(example.source, names)
    return names


def test_six_lines_are_asked():
    (example,) = (
        one
        for one in doctest.DocTestParser().get_examples(GUIDE.read_text(encoding="utf-8"))
        if one.source.startswith("def ask(audit)")
    )
    assert len(example.source.strip().splitlines()) == 7


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_six_lines_answer_alike_on_a_cluster():
    names = opening()
    patients = spark_session().createDataFrame(names["patients"])
    audit = names["eq"].Audit(patients, **names["roles"])
    assert names["ask"](audit) == names["laptop"]
