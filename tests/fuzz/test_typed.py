"""Tables of `typed.py` that failed once, and what they stand for; and that its oracle can fail."""

import warnings
from collections import Counter

import pytest

import equipoise as eq
from fuzz.typed import Table, ask, checked

FAILED = {
    16: "clusters of real numbers in decompose",
    25: "an interval that left its estimate out",
    30: "clusters of integers beyond 63 bits",
    185: "weighted categories that do not vary",
    192: "scores that some groups lack",
    100_009: "counts of zero in a joint test",
    100_021: "clusters that are spans of time",
    100_102: "moments that differ by a nanosecond",
    3_100_358: "a group with all but 1e-21 of the weight",
    3_200_198: "groups of which none varies, tested jointly by a likelihood",
    3_100_572: "the smallest integer of 64 bits in discover",
    7_000_210: "a weight that is true or false",
}


@pytest.mark.parametrize("seed", FAILED, ids=FAILED.values())
def test_a_table_that_failed_once_is_answered_or_refused_in_a_sentence(seed):
    found = {"answered": 0, "refused": 0, "failures": [], "sentences": Counter()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(seed, found, 0.15)
    assert not found["failures"]
    assert found["answered"] + found["refused"] > 0


def test_the_oracle_notices_a_row_in_another_group():
    table = Table(192)
    audit = eq.Audit(table.table, **table.roles)
    options = {"metric": "selection_rate", "method": "plug_in"}
    result = audit.disparity(**options)
    checked(table, "disparity", options, result)
    table.codes["g"] = 0 * table.codes["g"]
    with pytest.raises(AssertionError, match="by counting"):
        checked(table, "disparity", options, result)
