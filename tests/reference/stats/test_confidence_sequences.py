"""Confidence sequences agree with `confseq`, a package of the authors of the boundary."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.stats.disparity.gap_sequence import BatchSums, gap_sequence
from equipoise.stats.sequential import confidence_sequence, mixture_log_e, mixture_radius

# Ten digits: they are computed by another program in another order.
THEIRS = json.loads(Path(__file__).with_name("confidence_sequences.json").read_text("utf-8"))
FIRST, SECOND = (np.eye(2, dtype=bool)[:, [k]] for k in range(2))


@pytest.mark.parametrize("case", THEIRS["boundaries"])
def test_boundary_and_mixture(case):
    v, rho, s = (np.array(case[name]) for name in ("v", "rho", "s"))
    assert_allclose(mixture_radius(v, rho, case["alpha"]), case["bound"], rtol=1e-10)
    assert_allclose(mixture_log_e(s, v, rho), case["log_e"], rtol=1e-10, atol=1e-12)


def agree(interval, looks):
    ours = np.stack(interval, axis=-1)
    theirs = np.array([[np.nan, np.nan] if look is None else look for look in looks])
    assert np.isfinite(theirs).sum() > 40
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_mean_of_a_stream():
    found = confidence_sequence(THEIRS["mean"]["x"], burn_in=50)
    agree((found.low[49:], found.high[49:]), THEIRS["mean"]["looks"])


@pytest.mark.parametrize("case", THEIRS["rates"])
def test_gap_of_rates(case):
    n, ones = np.array(case["counts"], dtype=float).transpose(1, 0, 2)
    found = gap_sequence(BatchSums.of_counts(n, ones), FIRST, SECOND)
    agree([side[:, 0] for side in found.interval(case["alpha"])], case["looks"])


def test_gap_of_values():
    case = THEIRS["values"]
    rows = [
        (value, batch, side)
        for batch, sides in enumerate(case["rows"])
        for side, values in enumerate(sides)
        for value in values
    ]
    x, batch, side = (np.array(column) for column in zip(*rows, strict=True))
    found = gap_sequence(BatchSums.from_rows(x, batch, side), FIRST, SECOND)
    agree([bound[:, 0] for bound in found.interval(case["alpha"])], case["looks"])
