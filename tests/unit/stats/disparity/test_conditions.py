import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.disparity.conditions import bin_feature, bin_features, coded_feature


def rows(feature, label):
    return feature.holds[feature.labels.index(label)][feature.code]


def test_every_condition_holds_where_its_words_say():
    age = np.arange(100.0)
    cut = bin_feature("age", age)
    assert cut.labels == (
        "age <= 25",
        "age in (25, 50]",
        "age in (50, 75]",
        "age > 75",
        "age <= 50",
        "age > 50",
    )
    assert (rows(cut, "age in (25, 50]") == ((age > 25) & (age <= 50))).all()
    assert (rows(cut, "age > 50") == (age > 50)).all()


def test_nested_cuts_are_all_at_most_and_above():
    x = np.arange(80.0)
    cut = bin_feature("x", x, bins=8, nested=True)
    assert len(cut.labels) == 14
    assert (rows(cut, "x <= 40") == (x <= 40)).all()
    assert (rows(cut, "x > 40") == (x > 40)).all()


def test_few_numbers_are_levels_and_many_are_cut():
    assert bin_feature("k", np.arange(10)).labels[:2] == ("k=0", "k=1")
    assert bin_feature("k", np.arange(11)).labels[0].startswith("k <= ")


def test_missing_values_are_a_level():
    text = bin_feature("job", np.array(["a", None, "b", float("nan")], dtype=object))
    assert rows(text, "job=missing").tolist() == [False, True, False, True]
    number = np.arange(40.0)
    number[::4] = np.nan
    cut = bin_feature("x", number)
    assert (rows(cut, "x=missing") == np.isnan(number)).all()
    for label in cut.labels[:-1]:
        assert not (rows(cut, label) & np.isnan(number)).any()


def test_only_the_twelve_most_frequent_levels_are_conditions():
    text = np.repeat([f"v{k:02}" for k in range(15)], np.arange(40, 10, -2))
    cut = bin_feature("v", text)
    assert cut.labels == tuple(f"v=v{k:02}" for k in range(12))
    assert sum(rows(cut, label).sum() for label in cut.labels) == (text < "v12").sum()


def test_the_order_of_rows_does_not_matter(rng):
    text = rng.choice(list("abcdefghijklmnop"), size=300)
    order = rng.permutation(300)
    one, two = bin_feature("t", text), bin_feature("t", text[order])
    assert one.labels == two.labels
    assert (one.code[order] == two.code).all()


def test_many_ties_leave_fewer_bins():
    x = np.concatenate([np.zeros(90), np.arange(1, 31)])
    cut = bin_feature("x", x)
    assert len(cut.labels) == len(set(cut.labels)) == len(np.unique(cut.holds, axis=0))
    assert (rows(cut, "x <= 0") == (x <= 0)).all()


def test_truth_values_are_levels():
    assert bin_feature("b", np.array([True, False, True])).labels == ("b=True", "b=False")


def test_an_identifier_is_refused_by_name():
    with pytest.raises(DataError, match="'person' has 40 distinct values in 40 rows, like an id"):
        bin_feature("person", [f"p{k}" for k in range(40)])


def test_constant_features_are_left_out():
    assert [one.name for one in bin_features({"a": [1, 1, 1], "b": [0, 1, 1]})] == ["b"]


def test_columns_of_different_length_are_refused():
    with pytest.raises(InvalidParameterError, match=r"same length; got \[2, 3\]"):
        bin_features({"a": [0, 1], "b": [0, 1, 1]})


@pytest.mark.parametrize("bins", [2, 3, 4, 8])
@pytest.mark.parametrize("nested", [False, True])
def test_a_count_cuts_where_that_many_rows_would_be_cut(rng, bins, nested):
    values, count = rng.exponential(size=200).round(2), rng.integers(1, 9, size=200)
    values[:20] = np.nan
    counted = bin_feature("x", values, bins=bins, nested=nested, count=count)
    repeated = bin_feature("x", np.repeat(values, count), bins=bins, nested=nested)
    assert counted.labels == repeated.labels
    np.testing.assert_array_equal(np.repeat(counted.code, count), repeated.code)


def test_a_count_decides_which_levels_are_frequent():
    words, count = np.array([f"w{k:02}" for k in range(14)]), np.arange(14) + 10
    assert bin_feature("x", words, count=count).labels[0] == "x=w13"
    coded = coded_feature("x", words.tolist(), np.arange(14), count=count)
    assert coded.labels == bin_feature("x", np.repeat(words, count)).labels


def test_a_number_whose_largest_value_is_most_of_it_is_cut_below_it():
    values = np.concatenate([np.full(90, 99.0), np.arange(10), [10.5]])
    assert bin_feature("hours", values).labels == ("hours <= 10.5", "hours > 10.5")
    assert bin_feature("hours", values, nested=True).labels == ("hours <= 10.5", "hours > 10.5")


@pytest.mark.parametrize(
    "values",
    [
        [1234567, 1234568, 1234569],
        [0.1234567, 0.1234568, 0.12345],
        [1e-7, 2e-7, 1.5],
        [2.0**53, 2.0**53 + 2, -3.0],
        [True, False],
    ],
)
def test_different_numbers_have_different_labels(values):
    cut = bin_feature("x", np.array(values * 20))
    assert len(set(cut.labels)) == len(values)
    written = {label.removeprefix("x=") for label in cut.labels}
    assert written == {str(v) if isinstance(v, bool) else shortest(v) for v in values}


def shortest(value):
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else str(value)


@given(
    st.lists(
        st.floats(-1e9, 1e9, width=64) | st.integers(-(10**9), 10**9), min_size=30, max_size=60
    ),
    st.booleans(),
)
def test_words_of_a_cut_say_exactly_which_rows_it_keeps(values, nested):
    numbers = np.array(values, dtype=np.float64)
    assume(len(np.unique(numbers)) > 10)
    cut = bin_feature("x", numbers, nested=nested)
    assert len(set(cut.labels)) == len(cut.labels)
    for label, holds in zip(cut.labels, cut.holds, strict=True):
        if " in " in label:
            low, high = map(float, label.removeprefix("x in (").removesuffix("]").split(", "))
            said = (numbers > low) & (numbers <= high)
        elif "<=" in label:
            said = numbers <= float(label.removeprefix("x <= "))
        else:
            said = numbers > float(label.removeprefix("x > "))
        np.testing.assert_array_equal(said, holds[cut.code])


def test_a_cut_is_written_with_as_few_digits_as_part_the_rows():
    values = np.concatenate([np.linspace(0.0, 1.0, 50), [0.4829104851, 0.6]])
    labels = bin_feature("x", values).labels
    assert max(len(label) for label in labels) <= len("x in (0.265307, 0.489796]")


def test_the_word_missing_is_not_a_value_that_is_missing():
    home = np.array(["missing", "rent", None] * 20, dtype=object)
    (feature,) = bin_features({"home": home})
    assert sorted(feature.labels) == ['home="missing"', "home=missing", "home=rent"]
    assert sorted(feature.words) == ['home is "missing"', "home is missing", "home is rent"]
    at = feature.labels.index("home=missing")
    assert feature.holds[at][feature.code].tolist() == [value is None for value in home]
