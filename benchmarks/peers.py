"""Other toolkits: rates of 83 subgroups of three columns, each as its users would ask for them.

AIF360 and Aequitas give the rates alone; equipoise adds an interval and a test of each in the time
shown. fairaudit gives gaps from the population with simultaneous intervals by a bootstrap of rows;
equipoise the same gaps with simultaneous intervals. The toolkits are measured in an environment of
their own (`peers` in pyproject.toml), because their pins exclude current versions of pandas.
"""

import warnings
from itertools import combinations, product

import numpy as np
from disparity import COLUMNS, LEVELS, compas_sized, million, ours, table
from harness import Row, compare, measure, peers, show

SUBGROUPS = [
    dict(zip(chosen, levels, strict=True))
    for size in (1, 2, 3)
    for chosen in combinations(range(len(COLUMNS)), size)
    for levels in product(*(range(LEVELS[k]) for k in chosen))
]


def _name(subgroup):
    return " & ".join(f"{COLUMNS[k]}={COLUMNS[k]}{level}" for k, level in subgroup.items())


def _coded(n):
    """The same rows with levels as numbers, which AIF360 wants."""
    data = table(n)
    return {
        name: np.char.lstrip(values, name).astype(float) if name in COLUMNS else values
        for name, values in data.items()
    }


def million_coded():
    import pandas as pd

    return pd.DataFrame(_coded(1_000_000))


def compas_sized_arrays():
    data = _coded(7_214)
    codes = np.stack([data[name] for name in COLUMNS], axis=1)
    dummies = np.stack(
        [
            np.logical_and.reduce([codes[:, k] == level for k, level in subgroup.items()])
            for subgroup in SUBGROUPS
        ],
        axis=1,
    )
    return codes, data["selected"].astype(float), dummies


def aif360(frame):
    warnings.simplefilter("ignore")
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import BinaryLabelDatasetMetric

    rows = BinaryLabelDataset(
        df=frame, label_names=["selected"], protected_attribute_names=list(COLUMNS)
    )
    rates = {}
    for subgroup in SUBGROUPS:
        chosen = {COLUMNS[k]: level for k, level in subgroup.items()}
        metric = BinaryLabelDatasetMetric(rows, unprivileged_groups=[chosen])
        rates[_name(subgroup)] = metric.base_rate(privileged=False)
    return rates


def aequitas(frame):
    warnings.simplefilter("ignore")
    from aequitas.group import Group

    rows = frame.rename(columns={"selected": "score"}).assign(label_value=frame["selected"])
    attributes = []
    for size in (1, 2, 3):
        for chosen in combinations(COLUMNS, size):
            words = [f"{name}=" + rows[name] for name in chosen]
            joined = words[0]
            for word in words[1:]:
                joined = joined + " & " + word
            rows[" & ".join(chosen) + " "] = joined
            attributes.append(" & ".join(chosen) + " ")
    found, _ = Group().get_crosstabs(rows, attr_cols=attributes)
    return dict(zip(found["attribute_value"], found["pprev"], strict=True))


def fairaudit(arrays):
    warnings.simplefilter("ignore")
    from fairaudit import Auditor, Metric

    codes, selected, dummies = arrays
    auditor = Auditor(codes, selected, selected, Metric("statistical_parity"))
    auditor.calibrate_groups(alpha=0.05, type="interval", groups=dummies)
    gaps = {}
    for k, subgroup in enumerate(SUBGROUPS):
        (_bounds,), (rate,), (overall,) = auditor.query_group(k)
        gaps[_name(subgroup)] = float(rate - overall)
    return gaps


def our_gaps(frame):
    import equipoise as eq

    audit = eq.Audit(frame, group=list(COLUMNS), y_pred="selected")
    result = audit.disparity("selection_rate", simultaneous=True)
    return {finding.group: finding.estimate for finding in result.findings}


def same(ours, theirs):
    assert len(theirs) == len(SUBGROUPS) == 83
    for group, value in theirs.items():
        assert abs(value - ours[group]) < 1e-12, group


def rows() -> list[Row]:
    rates = measure(ours, million)
    alone = "Rates alone, without intervals or tests."
    return [
        compare(
            "83 subgroups, 1,000,000 rows",
            rates,
            measure(aif360, million_coded, repeats=1, interpreter=peers()),
            peer="AIF360",
            same=same,
            note=alone,
        ),
        compare(
            "83 subgroups, 1,000,000 rows",
            rates,
            measure(aequitas, million, repeats=1, interpreter=peers()),
            peer="Aequitas",
            same=same,
            note=alone,
        ),
        compare(
            "83 gaps with simultaneous intervals, 7,214 rows",
            measure(our_gaps, compas_sized),
            measure(fairaudit, compas_sized_arrays, repeats=1, interpreter=peers()),
            peer="fairaudit",
            same=same,
            note="Its own 500 bootstrap samples; intervals come by other methods and differ.",
        ),
    ]


if __name__ == "__main__":
    show(rows())
