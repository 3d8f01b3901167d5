import numpy as np
import pytest

import equipoise as eq
from equipoise.report.effect_tables import effect_tables

RNG = np.random.default_rng(6)
N = 4000
ARM = RNG.integers(3, size=N)
ROWS = {
    "g": RNG.choice(["a", "b", "c"], N),
    "t": np.array(["no", "mail", "call"])[ARM],
    "y": RNG.normal(size=N) + 0.3 * ARM,
    "f": RNG.normal(0.3, 0.1, N).round(2),
    "f2": RNG.normal(0.6, 0.1, N).round(2),
    "age": RNG.normal(40.0, 9.0, N),
}
ROLES = {"group": "g", "y_true": "y", "treatment": "t"}


@pytest.fixture(scope="module")
def several():
    audit = eq.Audit(ROWS, **ROLES, effect_pred={"mail": "f", "call": "f2"}, features=["age"])
    return audit.treatment_effects(measure="difference", control="no", n_repeats=5, rng=1)


def test_every_group_of_every_arm_has_a_line_with_its_own_correction(several):
    lines = effect_tables(several)[0]
    details = several.details
    assert [row[0] for row in lines.rows] == [
        f"{g}, {arm}" for g, arm in zip(details["group"], details["arm"], strict=True)
    ]
    rules = {entry["arm"]: entry["correction"] for entry in details["by_arm"]}
    for k, row in enumerate(lines.rows):
        amount = details["corrections"][rules[details["arm"][k]]][k]
        assert float(row[4]) == pytest.approx(amount, rel=0.01, abs=1e-6)


def test_covariates_of_the_arms_are_in_the_table_of_checks(several):
    checked = effect_tables(several)[-1]
    assert checked.caption == "Checked: the arms of the experiment"
    assert checked.columns[3:] == ("p (balance)", "Largest difference (sd)", "Covariate")
    assert {row[5] for row in checked.rows} == {"age"}


def test_without_tested_groups_there_are_no_tables():
    few = {name: values[:8] for name, values in ROWS.items()}
    few["t"] = np.array(["no", "mail"] * 4)
    result = eq.Audit(few, **ROLES, effect_pred="f").treatment_effects(
        measure="difference", control="no", n_repeats=0
    )
    assert {f.decision for f in result.findings} == {eq.Decision.NOT_TESTED}
    assert effect_tables(result) == ()
