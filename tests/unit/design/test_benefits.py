import json
import re

import numpy as np
import pytest

from equipoise.design import benefit_design
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.inequality.benefits import hard_benefits
from equipoise.stats.inequality.index import entropy_index


def test_matrix_puts_the_minimum_benefit_on_the_harmful_error():
    assert benefit_design(0.4, 10, "punitive").matrix[1][0] == 0.1
    assert benefit_design(0.4, 10, "assistive").matrix[0][1] == 0.1


@pytest.mark.parametrize("kind", ["punitive", "assistive"])
def test_no_sample_below_the_cap_violates_the_ratio(rng, kind):
    y = np.repeat([0, 1], [300, 200])
    design = benefit_design(0.4, 3, kind, minimum_benefit=0.3, order=2.0)
    below = 0
    for _ in range(400):
        fpr, fnr = (rng.beta(0.4, 2.0), rng.uniform()) if kind == "punitive" else (
            rng.uniform(), rng.beta(0.4, 2.0))  # fmt: skip
        decision = np.where(y == 1, rng.random(500) >= fnr, rng.random(500) < fpr).astype(int)
        index = entropy_index(hard_benefits(y, decision, matrix=design.matrix), order=2.0)
        u, v = decision[y == 0].mean(), 1 - decision[y == 1].mean()
        harmful, benign = (u, v) if kind == "punitive" else (v, u)
        if index < design.cap:
            below += 1
            assert 3 * harmful < benign
            assert harmful <= design.largest_harm
    assert below > 0


def test_text_says_what_was_chosen_and_how_strict_the_cap_is():
    text = str(benefit_design(0.4, 10, "punitive", order=0.5))
    assert "one false positive is worth 10 false negatives" in text
    assert "largest false positive rate below the cap: 0.0044 (directly: 0.1000)" in text
    assert re.search(r"22\.\d times as strict", text)
    assert "more lenient than the truth" in text
    assert "harms everybody" in str(benefit_design(0.1, 10, "punitive", order=0.5))
    assert all(len(line) < 400 for line in text.splitlines())


def test_dictionary_is_json_safe_and_complete():
    found = json.loads(json.dumps(benefit_design(0.25, 1, "assistive").to_dict()))
    assert found["matrix"] == [[pytest.approx(0.7), 0.1], [1.0, 1.0]]
    assert found["direct_limit"] == 1.0
    assert len(found["warnings"]) == 3


def test_changing_any_argument_changes_the_design():
    base = benefit_design(0.4, 10, "punitive", 0.1, 1.0)
    for other in (
        benefit_design(0.5, 10, "punitive", 0.1, 1.0),
        benefit_design(0.4, 11, "punitive", 0.1, 1.0),
        benefit_design(0.4, 10, "assistive", 0.1, 1.0),
        benefit_design(0.4, 10, "punitive", 0.2, 1.0),
        benefit_design(0.4, 10, "punitive", 0.1, 2.0),
    ):
        assert other.cap != base.cap


def test_ratio_that_cannot_be_encoded_is_refused():
    with pytest.raises(InvalidParameterError, match="cannot be encoded at a base rate of"):
        benefit_design(0.1, 5, "punitive")
