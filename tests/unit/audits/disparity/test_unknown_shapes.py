"""What is said of values whose shape nothing tells, and how much more is asked of them."""

import numpy as np
import pytest

import equipoise as eq
from calibration.noted_rates import read
from equipoise.audits.disparity.unknown_shapes import (
    MEASURED,
    shape_guard,
    shape_notes,
    shape_unknown,
    tail_unseen,
    units_of_unknown_shape,
    units_of_unseen_tail,
)
from equipoise.moments import CellMoments
from equipoise.stats.disparity.gaps import Target, disparities
from equipoise.stats.disparity.means import UnitCounts

VALUE = eq.Metric("value", numerator="value")


def units(n_eff, skewness, borrowed=1000.0, shape="borrowed"):
    """Counts of groups against a known number."""
    n = np.asarray(n_eff, np.float64)
    infinite = np.full(n.shape, np.inf)
    return UnitCounts(
        n=n, n_eff=n, n_target=infinite, n_eff_target=infinite, df=n - 1.0,
        shape=np.full(n.shape, shape), borrowed=np.full(n.shape, borrowed),
        skewness=np.broadcast_to(np.asarray(skewness, np.float64), n.shape), n_alike=infinite,
    )  # fmt: skip


def ask(values, group, question="disparity", **options):
    rows = {"value": np.asarray(values, np.float64), "group": np.asarray(group)}
    return getattr(eq.Audit(rows, group="group"), question)(VALUE, **options)


def told(result):
    return [[note.code for note in f.notes if note.code in CODES] for f in result.findings]


CODES = "shape-unknown", "tail-unseen"


def rates(n, column):
    """What is quoted for n units in a class of skewness, in words."""
    found = dict(MEASURED)[n][column]
    return {name: f"{rate:.0%}" for name, rate in found._asdict().items()}


def test_notes_quote_what_the_kept_page_says_was_measured():
    assert read() == MEASURED


def test_more_units_quote_less_of_what_looks_harmless():
    two_sided = [rates[0].two_sided for _, rates in MEASURED]
    worst = int(np.argmax(two_sided))
    assert two_sided[worst:] == sorted(two_sided[worst:], reverse=True)
    assert all(rate >= 0.05 for _, rates in MEASURED for own in rates for rate in own)


def test_a_tail_is_unseen_below_two_hundred_units_whose_shape_is_borrowed():
    counts = units([30.0, 199.0, 200.0, 5000.0], 0.0)
    assert units_of_unseen_tail(counts).tolist() == [True, True, False, False]
    assert not units_of_unknown_shape(counts).any()
    own = units([30.0, 199.0], [0.0, 3.0], shape="checked", borrowed=40.0)
    # What has the one note does not need the other.
    assert (units_of_unknown_shape(own) ^ units_of_unseen_tail(own)).all()
    assert not units_of_unseen_tail(None).any()
    assert not units_of_unknown_shape(None).any()


def test_normal_values_are_noted_below_two_hundred_units_only(rng):
    few, many = (ask(rng.normal(size=3 * n), np.repeat(["a", "b", "c"], n)) for n in (60, 200))
    assert told(few) == [["tail-unseen"]] * 3
    assert [note.code for note in few.joint.notes] == ["tail-unseen"]
    quoted = rates(60, 0)
    assert (
        f"{quoted['two_sided']} at a nominal 5%, one-sided ones {quoted['one_sided']}"
        in few.findings[0].notes[-1].message
    )
    assert few.joint.notes == few.findings[0].notes[-1:]
    assert told(many) == [[]] * 3
    assert many.joint.notes == ()


def test_values_that_are_all_alike_show_no_tail_however_many_they_are(rng):
    values, group = np.r_[[0.1] * 300, rng.normal(size=900)], np.repeat(list("abcd"), 300)
    result = ask(values, group)
    assert told(result) == [["tail-unseen"], [], [], []]
    message = result.findings[0].notes[-1].message
    assert "(300 effective units). Where 0.99% of people" in message
    assert result.joint.notes == result.findings[0].notes[-1:]
    varied = ask(np.r_[5.0, values[1:]], group)
    assert told(varied)[1:] == [[], [], []]


def test_one_group_has_one_of_both_notes_and_the_joint_test_the_worse_rate(rng):
    values = np.concatenate([rng.gamma(0.6, size=50), rng.normal(size=400)])
    result = ask(values, np.repeat(["a", "b"], [50, 400]))
    assert told(result) == [["shape-unknown"]] * 2
    assert [note.code for note in result.joint.notes] == ["shape-unknown"]
    assert f"rejected up to {rates(40, 1)['two_sided']} at" in result.joint.notes[0].message


def test_very_skewed_values_quote_other_rates_and_count_more(rng):
    harmless = ask(rng.normal(size=60), ["a"] * 60, "certify", reference=0.0, margin=1.0)
    zeros = np.where(np.arange(60) < 3, [9.0] * 60, 0.0)
    skewed = ask(zeros, ["a"] * 60, "certify", reference=0.5, margin=1.0)
    for result, fold, column in ((harmless, 2, 0), (skewed, 5, 2)):
        words = f"multiplied by {fold}; up to {rates(60, column)['guarded']} were left"
        assert words in result.findings[0].notes[-1].message


def test_one_sided_claims_of_groups_that_borrow_quote_what_their_p_values_leave():
    values, group = np.tile(np.linspace(-1.0, 1.0, 30), 3), np.repeat(["a", "b", "c"], 30)
    plain, certified = ask(values, group), ask(values, group, "certify", margin=1.0)
    quoted = rates(20, 0)
    assert quoted["one_sided"] != quoted["guarded"]
    assert f"one-sided ones {quoted['one_sided']}." in plain.findings[0].notes[-1].message
    assert f"one-sided ones {quoted['guarded']}." in certified.findings[0].notes[-1].message


@pytest.mark.parametrize("role", ["weight", "cluster"])
def test_rates_have_no_tail(rng, role):
    rows = {
        "group": np.repeat(["a", "b", "c"], 100),
        "weight": rng.uniform(0.9, 1.1, 300),
        "cluster": np.arange(300) // 2,
        "y": rng.integers(0, 2, 300),
        "value": rng.normal(size=300),
    }
    asked = eq.Audit(rows, group="group", y_pred="y", **{role: role})
    assert told(asked.disparity("selection_rate")) == [[]] * 3
    assert asked.disparity("selection_rate").joint.notes == ()
    assert told(asked.disparity(VALUE)) == [["tail-unseen"]] * 3


def test_what_is_not_tested_or_exact_is_not_noted():
    one, cell = np.array([1.0, 0, 0, 1, 1, 0]), np.repeat([0, 1], 3)
    cells = CellMoments.from_rows(np.column_stack([one, np.ones(6)]), cell)
    exact = disparities(cells, np.eye(2, dtype=bool), Target(kind="rest"), binary=True)
    assert exact.units is None
    assert shape_notes(exact) == [(), ()]
    assert not shape_unknown(exact).any()
    assert not tail_unseen(exact).any()
    assert shape_guard(exact).tolist() == [1.0, 1.0]
    few = ask([1.0, 2.0, 3.0, *range(30)], ["a"] * 3 + ["b"] * 30, reference=2.0)
    assert told(few)[0] == []


def test_groups_of_unseen_tails_share_the_note_of_the_smallest(rng):
    sizes = [40, 70, 120, 300]
    result = ask(rng.uniform(size=sum(sizes)), np.repeat(["a", "b", "c", "d"], sizes))
    *small, large = (f.notes for f in result.findings)
    (note,) = {own[-1] for own in small}
    assert f"rejected up to {rates(40, 0)['two_sided']} at" in note.message
    assert large == ()
