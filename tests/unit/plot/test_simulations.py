import numpy as np

from equipoise.plot.simulations import power_curves


def test_every_test_has_a_curve_and_the_level_a_line():
    truth, rates = np.array([0.0, 0.1, 0.2]), {"el": [0.05, 0.4, 0.9], "wald": [0.1, 0.5, 1.0]}
    axes = power_curves(truth, rates, alpha=0.05, words="gap")
    lines = {line.get_gid(): line for line in axes.lines if line.get_gid()}
    assert [line.get_label() for line in lines.values()] == ["el", "wald"]
    np.testing.assert_allclose(lines["power-1"].get_ydata(), [0.1, 0.5, 1.0])
    np.testing.assert_allclose(axes.lines[-1].get_ydata(), 0.05)
    assert axes.get_xlabel() == "gap"
    assert power_curves(truth, rates, ax=axes) is axes
