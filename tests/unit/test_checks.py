import numpy as np
import pytest

from equipoise._checks import check_finite, check_flag, nearest
from equipoise.exceptions import InvalidParameterError


@pytest.mark.parametrize("value", [1, 0, "yes", None])
def test_a_flag_is_true_or_false_and_nothing_like_it(value):
    with pytest.raises(InvalidParameterError, match=r"`exact` must be true or false; got"):
        check_flag("exact", value)


def test_flags_of_numpy_are_flags():
    assert check_flag("exact", np.True_) is True
    assert check_flag("exact", False) is False


def test_arrays_of_another_number_of_axes_are_refused():
    with pytest.raises(InvalidParameterError, match=r"`y` must have 1 axes; got shape \(2, 2\)"):
        check_finite("y", np.eye(2), ndim=1)


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [("NO", ["no", "yes"], "'no'"), ("yess", ["Yes", "No"], "'Yes'"), ("x", ["abc"], "")],
)
def test_the_nearest_name_may_differ_in_case(name, known, hint):
    assert nearest(name, known) == (f" Did you mean {hint}?" if hint else "")
