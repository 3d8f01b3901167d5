import copy
import pickle

import pytest

from equipoise.results.estimand import Estimand


@pytest.mark.parametrize("again", [copy.copy, lambda one: pickle.loads(pickle.dumps(one))])
def test_an_estimand_is_pickled_with_its_parts(again):
    gap = Estimand("fpr", "gap", scale="ratio", noun="false positive rate")
    other = again(gap)
    assert other == gap
    assert (other.metric, other.kind, other.scale, other.noun) == (
        "fpr",
        "gap",
        "ratio",
        "false positive rate",
    )
