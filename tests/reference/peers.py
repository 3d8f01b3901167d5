"""What AIF360 and Aequitas say about a table made by a rule: ``python peers.py`` writes peers.json.

Run with the python of the group `peers` of pyproject.toml, which `make scoreboard` installs.
"""

import json
import logging
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

RATES = ("tpr", "tnr", "for", "fdr", "fpr", "fnr", "npv", "precision", "pprev", "prev")
RATIOS = ("pprev", "precision", "fdr", "for", "fpr", "fnr", "tpr", "tnr", "npv")


def table():
    """Return 240 rows: group, outcome, decision and weight."""
    i = np.arange(1, 241)
    return {
        "g": np.array(list("abc"))[(i * 17 + i // 7) % 3].tolist(),
        "y": ((i * i * 7 + i) % 11 < 4).astype(int).tolist(),
        "p": ((i * 29 + i // 5) % 13 < 6).astype(int).tolist(),
        "w": (1.0 + (i * 13) % 5).tolist(),
    }


def aequitas(rows):
    from aequitas.bias import Bias
    from aequitas.group import Group

    frame = pd.DataFrame({"score": rows["p"], "label_value": rows["y"], "g": rows["g"]})
    crosstab, _ = Group().get_crosstabs(frame, attr_cols=["g"])
    ratios = Bias().get_disparity_predefined_groups(
        crosstab, original_df=frame, ref_groups_dict={"g": "a"}, check_significance=False
    )
    crosstab = crosstab.sort_values("attribute_value")
    ratios = ratios.sort_values("attribute_value")
    return {
        "rates": {name: crosstab[name].tolist() for name in RATES},
        "ratios": {name: ratios[f"{name}_disparity"].tolist() for name in RATIOS},
    }


def aif360(rows, *, weighted):
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import ClassificationMetric

    frame = pd.DataFrame({"y": rows["y"], "a": [float(g == "a") for g in rows["g"]]})
    frame["w"] = rows["w"] if weighted else 1.0
    truth = BinaryLabelDataset(
        df=frame, label_names=["y"], protected_attribute_names=["a"], instance_weights_name="w"
    )
    decided = truth.copy()
    decided.labels = np.array(rows["p"], dtype=float)[:, None]
    found = ClassificationMetric(
        truth, decided, unprivileged_groups=[{"a": 0.0}], privileged_groups=[{"a": 1.0}]
    )
    numbers = {
        "selection_rate": found.statistical_parity_difference(),
        "selection_rate ratio": found.disparate_impact(),
        "tpr": found.equal_opportunity_difference(),
        "fpr": found.false_positive_rate_difference(),
        "fnr": found.false_negative_rate_difference(),
        "for": found.false_omission_rate_difference(),
        "fdr": found.false_discovery_rate_difference(),
        "error_rate": found.error_rate_difference(),
        "error_rate ratio": found.error_rate_ratio(),
        "fdr ratio": found.false_discovery_rate_ratio(),
        "fpr ratio": found.false_positive_rate_ratio(),
    }
    if not weighted:
        numbers |= {
            "entropy": found.generalized_entropy_index(alpha=2),
            "theil": found.theil_index(),
            "between": found.between_all_groups_generalized_entropy_index(alpha=2),
        }
    return {name: float(value) for name, value in numbers.items()}


def main():
    warnings.simplefilter("ignore")
    logging.disable()
    rows = table()
    values = {
        "versions": {name: version(name) for name in ("aequitas", "aif360")},
        "aequitas": aequitas(rows),
        "aif360": aif360(rows, weighted=False),
        "aif360 weighted": aif360(rows, weighted=True),
    }
    text = json.dumps(values, indent=1) + "\n"
    Path(__file__).with_suffix(".json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
