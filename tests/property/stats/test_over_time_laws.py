"""Laws of evidence over time, of changes and of discovered subgroups."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose

from equipoise.monitoring.state import Batch, Cell, MonitorState
from equipoise.stats.disparity.change import paired_change_test, period_change_test
from equipoise.stats.disparity.contrasts import PairedChange
from equipoise.stats.disparity.discovery import discover_subgroups
from equipoise.stats.disparity.gap_sequence import BatchSums, gap_sequence
from equipoise.stats.disparity.monitor import monitor_gaps
from equipoise.stats.sequential import confidence_sequence, e_holm, e_process
from oracles import over_time as naive

FIRST, SECOND = np.eye(2, 1, dtype=bool), np.eye(2, 1, -1, dtype=bool)


@st.composite
def count_streams(draw):
    batches = draw(st.integers(1, 6))
    n = draw(hnp.arrays(np.int64, (batches, 2), elements=st.integers(0, 12)))
    share = draw(hnp.arrays(np.float64, (batches, 2), elements=st.floats(0, 1)))
    return n.astype(float), np.round(share * n)


@given(hnp.arrays(np.float64, st.integers(1, 6), elements=st.floats(1e-3, 1e4)))
def test_e_holm_is_the_smallest_average_over_all_sets(e):
    assert_allclose(np.exp(e_holm(np.log(e))), naive.e_holm(e.tolist()), rtol=1e-9)


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 3)),
        elements=st.floats(0.05, 20),
    )
)
def test_the_recursion_is_the_sum_over_all_starts(factors):
    direct = naive.e_process(factors.tolist())
    assert_allclose(np.exp(e_process(np.log(factors))), direct, rtol=1e-9)


@given(count_streams())
def test_the_evidence_is_that_of_a_naive_second_implementation(stream):
    n, ones = stream
    found = gap_sequence(BatchSums.of_counts(n, ones), FIRST, SECOND)
    both = (n > 0).all(axis=1)
    bets = [sign * beta for sign in (1, -1) for beta in (0.1, 0.2, 0.4, 0.8, 1.6)]
    factors = [
        [naive.conditional_factor(*(int(v) for v in (a, x, b, y)), beta) for beta in bets]
        for (a, b), (x, y) in zip(n[both], ones[both], strict=True)
    ]
    path = naive.e_process(factors) if factors else []
    assert_allclose(np.exp(found.log_e[both, 0]), path, rtol=1e-8)


@given(count_streams(), st.sampled_from([0.0, 0.1]))
def test_a_group_and_its_reference_change_places(stream, margin):
    n, ones = stream
    sums = BatchSums.of_counts(n, ones)
    one = gap_sequence(sums, FIRST, SECOND, margin=0.0)
    two = gap_sequence(sums, SECOND, FIRST, margin=0.0)
    assert_allclose(one.log_e, two.log_e, atol=1e-9)
    assert_allclose(one.gap, -two.gap, atol=1e-12)
    # Zeros in place of ones: the same gap with the other sign.
    turned = gap_sequence(BatchSums.of_counts(n, n - ones), FIRST, SECOND, margin=margin)
    straight = gap_sequence(sums, FIRST, SECOND, margin=margin)
    assert_allclose(turned.gap, -straight.gap, atol=1e-12)
    assert_allclose(turned.log_e, straight.log_e, atol=1e-7)


@given(count_streams(), st.randoms(use_true_random=False))
def test_the_average_gap_does_not_depend_on_the_order_of_batches(stream, random):
    n, ones = stream
    order = random.sample(range(len(n)), len(n))
    one = gap_sequence(BatchSums.of_counts(n, ones), FIRST, SECOND)
    two = gap_sequence(BatchSums.of_counts(n[order], ones[order]), FIRST, SECOND)
    assert_allclose(one.gap[-1], two.gap[-1], atol=1e-12)


@given(count_streams())
def test_what_is_known_after_a_batch_does_not_change_later(stream):
    n, ones = stream
    whole = gap_sequence(BatchSums.of_counts(n, ones), FIRST, SECOND)
    for t in range(1, len(n) + 1):
        part = gap_sequence(BatchSums.of_counts(n[:t], ones[:t]), FIRST, SECOND)
        assert_allclose(part.log_e, whole.log_e[:t], atol=1e-12)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_rows_and_names_do_not_matter_to_a_monitor(seed):
    rng = np.random.default_rng(seed)
    y, group = (rng.random(240) < 0.4).astype(float), rng.choice(["a", "b", "c"], size=240)
    batch = rng.integers(0, 5, size=240)
    order = rng.permutation(240)
    names = dict(zip("abc", "zyx", strict=True))
    one = monitor_gaps(y, group, batch)
    two = monitor_gaps(y[order], np.array([names[g] for g in group[order]]), batch[order])
    assert_allclose(two.alarms.adjusted[:, ::-1], one.alarms.adjusted, rtol=1e-9)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.floats(0.5, 0.99))
def test_intervals_nest_in_the_level(seed, level):
    rng = np.random.default_rng(seed)
    found = confidence_sequence(rng.exponential(size=80))
    low, high = found.confidence_interval(level)
    wide_low, wide_high = found.confidence_interval((1 + level) / 2)
    assert wide_low < low < high < wide_high


@given(
    hnp.arrays(np.int64, 3, elements=st.integers(0, 40)), st.integers(0, 60), st.floats(0.3, 3.0)
)
def test_a_change_the_other_way_has_the_other_sign(counts, more, z):
    gained, lost, same = (counts[k : k + 1].astype(float) for k in range(3))
    n = gained + lost + same + more + 1
    one, two = PairedChange(gained, lost, n), PairedChange(lost, gained, n)
    at = np.array([z])
    assert_allclose(one.interval(at)[0], -two.interval(at)[1], atol=1e-9)
    assert_allclose(one.root(np.zeros(1)), -two.root(np.zeros(1)), atol=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_models_change_places_and_rows_their_order(seed, real):
    rng = np.random.default_rng(seed)
    n = 150
    before, after = ((rng.random(n) < 0.4).astype(float) for _ in range(2))
    if real:
        before, after = before + rng.normal(size=n), after + rng.normal(size=n)
    group = rng.choice(["a", "b"], size=n)
    order = rng.permutation(n)
    one = paired_change_test(before, after, group)
    two = paired_change_test(after[order], before[order], group[order])
    assert_allclose(one.gap_change.estimate, -two.gap_change.estimate, atol=1e-12)
    assert_allclose(one.gap_change.p_value_raw, two.gap_change.p_value_raw, rtol=1e-6)
    assert_allclose(one.p_value, two.p_value, rtol=1e-4)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.9, 0.95, 0.99]))
def test_zero_is_in_the_interval_exactly_when_the_p_value_is_large(seed, level):
    rng = np.random.default_rng(seed)
    n = 200
    group, new = rng.choice(["a", "b", "c"], size=n), rng.random(n) < 0.5
    for y in ((rng.random(n) < 0.3 + 0.3 * new).astype(float), rng.exponential(size=n) + new):
        found = period_change_test(y, group, new)
        for test in (found.change, found.gap_change):
            low, high = test.confidence_interval(level)
            inside = (low <= 0) & (high >= 0)
            assert (inside == (test.p_value_raw > 1 - level)).all()


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_rows_and_labels_do_not_matter_to_discovery(seed):
    rng = np.random.default_rng(seed)
    n = 500
    columns = {"a": rng.integers(0, 3, n), "b": rng.choice(["u", "v"], n), "x": rng.normal(size=n)}
    y = rng.random(n) < 0.2 + 0.3 * ((columns["a"] == 1) & (columns["b"] == "u"))
    order = rng.permutation(n)
    one = discover_subgroups(y, columns)
    two = discover_subgroups(y[order], {name: column[order] for name, column in columns.items()})
    assert one == two
    turned = discover_subgroups(y, columns | {"b": np.where(columns["b"] == "u", "z", "w")})
    assert [s.p_value for s in turned.rejected] == pytest.approx([s.p_value for s in one.rejected])


@st.composite
def states(draw):
    """Two states of sites that share some batches, and their plan."""
    config = {"metrics": ["m"], "group": ["g"]}
    parts = []
    for _ in range(3):
        state = MonitorState(config=config, salt="s")
        for k in draw(st.lists(st.integers(0, 8), unique=True, max_size=5)):
            cell = Cell.of_counts([f"level {k % 3}"], "m", 10.0, float(k))
            batch = Batch(id=f"b{k}", rows=10, file_digest=f"f{k}", cells=(cell,), time=f"t{k % 4}")
            state = state.append(batch)
        parts.append(state)
    return parts


@given(states())
def test_states_merge_in_any_order_and_any_number_of_times(parts):
    a, b, c = parts
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert a.merge(b).merge(b) == a.merge(b)
    assert MonitorState.from_dict(a.merge(b).to_dict()) == a.merge(b)
