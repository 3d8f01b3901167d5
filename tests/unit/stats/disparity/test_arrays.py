import numpy as np
import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.stats.disparity.arrays import disparity_test

Y, GROUP = np.tile([1.0, 0.0, 0.0, 1.0, 1.0], 20), np.repeat(["a", "b"], 50)


@pytest.mark.parametrize("reference", ["population", "rest", "a"])
def test_two_groups_are_enough_to_compare(reference):
    found = disparity_test(Y, GROUP, reference=reference)
    np.testing.assert_allclose(found.estimate, 0.0, atol=1e-12)
    assert len(found.estimate) == (1 if reference == "a" else 2)


@pytest.mark.parametrize("reference", ["population", "rest", "a"])
def test_one_group_is_compared_with_a_number_only(reference):
    alone = Y[:50], GROUP[:50]
    with pytest.raises(InvalidParameterError, match="`group` has one group, which cannot be"):
        disparity_test(*alone, reference=reference)
    assert disparity_test(*alone, reference=0.5).estimate == pytest.approx([0.1])
