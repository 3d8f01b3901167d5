"""Names of groups and columns, and the order of rows, change no digit of the bootstrap."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import equipoise as eq

CASES = {
    "given decisions": ({"y_pred": "called"}, "other", {}),
    "clusters": ({"y_pred": "called", "cluster": "person"}, "other", {}),
    "weights": ({"y_pred": "called", "weight": "wt"}, "other", {}),
    "scores": ({"y_score": "cost"}, "visits", {"capacity": 0.3}),
    "scores in clusters": (
        {"y_score": "cost", "cluster": "person"},
        "visits",
        {"capacity": 0.3},
    ),
    "fitted": ({"y_pred": "called"}, LogisticRegression(), {"n_splits": 2}),
}
NAMES = ({"a": "z", "b": "y", "c": "x"}, {"a": "b", "b": "c", "c": "a"})


def clinic(n=900):
    rng = np.random.default_rng(3)
    race = rng.choice(["a", "b", "c"], size=n, p=[0.4, 0.33, 0.27])
    sickness = rng.gamma(2.0, 2.0, size=n)
    cost = sickness * np.where(race == "b", 0.5, 0.7)
    visits = rng.poisson(3 * sickness).astype(float)
    return {
        "race": race,
        "sick": (sickness > 4).astype(int),
        "cost": cost,
        "called": (cost > 3).astype(int),
        "visits": visits,
        "other": (visits > 10).astype(int),
        "person": np.arange(n) // 2,
        "wt": rng.integers(1, 4, size=n),
    }


def p_values(table, roles, candidate, options, *, groups, columns):
    table = {columns.get(name, name): values for name, values in table.items()}
    named = {role: columns.get(name, name) for role, name in roles.items()}
    audit = eq.Audit(
        table,
        group=columns.get("race", "race"),
        y_true=columns.get("sick", "sick"),
        features=[columns.get("visits", "visits")],
        **named,
    )
    if isinstance(candidate, str):
        candidate = columns.get(candidate, candidate)
    result = audit.improvability(
        candidate, accuracy="accuracy", fairness="selection_rate", n_resamples=199, rng=1, **options
    )
    old = {new: name for name, new in groups.items()}
    whose = [f.group.partition("=")[2] for f in result.findings]
    return result.joint.p_value, sorted(
        (old.get(name, name), f.p_value) for name, f in zip(whose, result.findings, strict=True)
    )


@pytest.mark.parametrize("case", CASES)
def test_names_and_order_do_not_change_the_draws(case):
    table = clinic()
    expected = p_values(table, *CASES[case], groups={}, columns={})
    order = np.random.default_rng(1).permutation(len(table["race"]))
    for groups in NAMES:
        renamed = table | {"race": np.array([groups[name] for name in table["race"]])}
        found = p_values(
            {name: values[order] for name, values in renamed.items()},
            *CASES[case],
            groups=groups,
            columns={"race": "zz", "sick": "b", "visits": "a", "cost": "y", "called": "q"},
        )
        assert found == expected


@pytest.mark.parametrize("each", [False, True], ids=["worst", "each"])
@pytest.mark.parametrize("fitted", [False, True], ids=["ready", "fitted"])
def test_attributes_apart_do_not_depend_on_names_or_order(fitted, each):
    table = clinic()
    table["sex"] = np.random.default_rng(5).choice(["f", "m"], size=900, p=[0.45, 0.55])
    order = np.random.default_rng(1).permutation(900)
    found = []
    for races, sexes in (({}, {}), ({"a": "z", "b": "y", "c": "x"}, {"f": "w", "m": "k"})):
        renamed = table | {
            "race": np.array([races.get(v, v) for v in table["race"]]),
            "sex": np.array([sexes.get(v, v) for v in table["sex"]]),
        }
        columns = ["race", "sex"]
        if races:
            renamed = {name: values[order] for name, values in renamed.items()}
            renamed = {{"race": "zz", "sex": "aa"}.get(k, k): v for k, v in renamed.items()}
            columns = ["aa", "zz"]
        race, sex = ("zz", "aa") if races else ("race", "sex")
        options = (
            {"gap": "each", "reference": {race: races.get("a", "a"), sex: sexes.get("m", "m")}}
            if each
            else {}
        )
        audit = eq.Audit(renamed, group=columns, y_true="sick", y_score="cost", features=["visits"])
        result = audit.improvability(
            LogisticRegression() if fitted else "visits",
            accuracy="accuracy",
            accuracy_of="population",
            fairness="selection_rate",
            attributes="separately",
            capacity=0.3,
            n_splits=2,
            n_resamples=199,
            rng=1,
            **options,
        )
        found.append((result.joint.p_value, sorted(f.p_value for f in result.findings)))
    assert found[0] == found[1]
