"""What other toolkits' intervals and flags do when there is nothing to find.

Tables of 1,000 applicants in six groups of 400 to 40 people; everybody is selected with the same
probability, so that each interval of a difference should hold zero in 95% of tables, and a flag at
the 5% level should be raised in at most 5% of them::

    python benchmarks/scoreboard.py              # all toolkits, then docs/scoreboard.md
    python benchmarks/scoreboard.py --page       # the page alone, from what was kept

fairlearn runs in this environment (`bench` in pyproject.toml), Aequitas, AIF360 and fairaudit in
that of $EQUIPOISE_PEERS (`peers`).
"""

import json
import os
import subprocess
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
KEPT = HERE / "scoreboard.json"
PAGE = HERE.parent / "docs" / "scoreboard.md"

GROUPS, SIZES, RATE = tuple("abcdef"), (400, 250, 150, 100, 60, 40), 0.2
TABLES = {"fairlearn": 40, "AIF360": 200, "Aequitas": 60, "fairaudit": 60, "equipoise": 200}
SEED = 20_261_118


def table(number):
    """Return group and decision of each applicant of one table; the same in every environment."""
    rng = np.random.default_rng([SEED, number])
    return np.repeat(GROUPS, SIZES), (rng.random(sum(SIZES)) < RATE).astype(int)


def fairlearn(number):
    """Percentile intervals of 100 bootstrap samples, as the user guide shows."""
    from fairlearn.metrics import MetricFrame, selection_rate

    group, selected = table(number)
    frame = MetricFrame(
        metrics=selection_rate,
        y_true=selected,
        y_pred=selected,
        sensitive_features=group,
        n_boot=100,
        ci_quantiles=[0.025, 0.975],
        random_state=number,
    )
    low, high = frame.difference_ci()
    ratio_low, ratio_high = frame.ratio_ci()
    return {
        "95% interval of the largest difference without the true value 0": not low <= 0 <= high,
        "95% interval of the smallest ratio without the true value 1": not ratio_low
        <= 1
        <= ratio_high,
    }


def aif360(number):
    """The ratio of each group to the largest one, held against four fifths."""
    import pandas as pd
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import BinaryLabelDatasetMetric

    group, selected = table(number)
    codes = np.unique(group, return_inverse=True)[1].astype(float)
    rows = BinaryLabelDataset(
        df=pd.DataFrame({"group": codes, "selected": selected}),
        label_names=["selected"],
        protected_attribute_names=["group"],
    )
    ratios = [
        BinaryLabelDatasetMetric(
            rows, unprivileged_groups=[{"group": float(k)}], privileged_groups=[{"group": 0.0}]
        ).disparate_impact()
        for k in range(1, len(GROUPS))
    ]
    return {"some `disparate_impact()` below 0.8, reported without an interval": min(ratios) < 0.8}


def aequitas(number):
    """Disparities to the largest group, their significance, and the verdict at the usual tau."""
    import pandas as pd
    from aequitas.bias import Bias
    from aequitas.fairness import Fairness
    from aequitas.group import Group

    group, selected = table(number)
    frame = pd.DataFrame({"group": group, "score": selected, "label_value": selected})
    frame["label_value"] = np.random.default_rng(number).integers(2, size=len(frame))
    counts, _ = Group().get_crosstabs(frame, attr_cols=["group"])
    disparities = Bias().get_disparity_predefined_groups(
        counts,
        original_df=frame,
        ref_groups_dict={"group": "a"},
        alpha=0.05,
        check_significance=True,
        mask_significance=True,
    )
    verdict = Fairness().get_group_value_fairness(disparities)
    return {
        "some group fails `Impact Parity`": not verdict["Impact Parity"].all(),
        "some group fails `Statistical Parity`": not verdict["Statistical Parity"].all(),
        "some `pprev_significance` is true": bool((verdict["pprev_significance"] == True).any()),  # noqa: E712  (a column of objects)
    }


def fairaudit(number):
    """Simultaneous intervals of gaps to everybody, and two-sided flags."""
    from fairaudit import Auditor, Metric

    group, selected = table(number)
    np.random.seed(number)  # noqa: NPY002  (the toolkit draws from the global generator)
    members = np.stack([group == name for name in GROUPS], axis=1)
    codes = np.unique(group, return_inverse=True)[1].reshape(-1, 1).astype(float)
    auditor = Auditor(codes, selected * 1.0, selected * 1.0, Metric("statistical_parity"))
    auditor.calibrate_groups(alpha=0.05, type="interval", groups=members)
    bounds = np.array([auditor.query_group(k)[0][0] for k in range(len(GROUPS))])
    flags, _ = auditor.flag_groups(members, type="interval", alpha=0.05)
    return {
        "some joint 95% interval of a gap without the true value 0": bool(
            ((bounds[:, 0] > 0) | (bounds[:, 1] < 0)).any()
        ),
        'some group flagged by `flag_groups(type="interval")`': bool(np.any(flags)),
        "width of the interval of the smallest group": float(bounds[-1, 1] - bounds[-1, 0]),
    }


def equipoise(number):
    """Joint intervals of gaps to everybody, flags, and the regulator's ratios."""
    import equipoise as eq

    group, selected = table(number)
    audit = eq.Audit({"group": group, "selected": selected}, group="group", y_pred="selected")
    gaps = audit.disparity("selection_rate", simultaneous=True).findings
    flagged = audit.flag("selection_rate", margin=0.0, alternative="two-sided").findings
    ratios = audit.impact_ratios().findings
    return {
        "some joint 95% interval of a gap without the true value 0": any(
            0.0 not in finding.ci for finding in gaps
        ),
        "some group flagged by `flag`": any(f.decision == "detected" for f in flagged),
        "some ratio shown to differ by `impact_ratios`": any(
            finding.decision == "detected" for finding in ratios
        ),
        "width of the interval of the smallest group": gaps[-1].ci.high - gaps[-1].ci.low,
    }


TOOLKITS = {
    "fairlearn": fairlearn,
    "AIF360": aif360,
    "Aequitas": aequitas,
    "fairaudit": fairaudit,
    "equipoise": equipoise,
}


def measured(name):
    """Return how often each claim was made, or the median of a width, over the tables."""
    warnings.simplefilter("ignore")
    found = [TOOLKITS[name](number) for number in range(TABLES[name])]
    claims = {
        claim: float(np.median([one[claim] for one in found]))
        if "width" in claim
        else int(sum(one[claim] for one in found))
        for claim in found[0]
    }
    return {"version": version(name.lower()), "tables": len(found), "claims": claims}


def page(kept):
    """Write the page from what was kept."""
    lines = []
    for name, found in kept.items():
        for claim, value in found["claims"].items():
            told = f"{value:.2f}" if "width" in claim else f"{value} of {found['tables']}"
            lines.append(f"| {name} {found['version']} | {claim} | {told} |")
    return HEAD + "\n".join(lines) + "\n" + TAIL


HEAD = """# Scoreboard

What toolkits claim about tables in which there is nothing to find: 1,000 applicants in six groups
of 400 to 40 people, everybody selected with probability 0.2. An interval at 95% should miss the
truth in 5% of tables, and a flag at the 5% level should be raised in at most 5%. Everything is
asked as the toolkit's own guide shows it. The page is written by `python benchmarks/scoreboard.py`
from the installed toolkits; the same tables are given to each, the slower ones get fewer.

| toolkit | what happened | in how many tables |
| --- | --- | --- |
"""

TAIL = """
Read it so:

- A **percentile interval of a maximum minus a minimum** cannot hold zero: the largest difference of
  every bootstrap sample is positive. fairlearn's `difference_ci` is such an interval, and its
  `ratio_ci` cannot hold one.
- **Ratios without an interval** fall below four fifths by chance alone when groups are small
  ([why a reference chosen from the data makes it worse](guide/impact_ratios.md)). AIF360 reports
  them as they are.
- Aequitas' **`Impact Parity`** holds the ratio of rates against 0.8 and 1.25, whatever its error.
  Its **`Statistical Parity`** compares counts of selected people, which differ because groups
  differ in size: it says nothing about rates. Its significance tests are not adjusted for the
  number of groups.
- fairaudit's joint intervals are near their level; they grow with the inverse of the group's share,
  so that a small group gets an interval several times as long as the range of a rate. Its two-sided
  flag computes a p-value `1 - 2 * cdf(|t|)`, which is never positive, so that groups are flagged
  whatever the data.
- What equipoise promises is measured in the same way, and far more widely, on the
  [calibration page](calibration.md).
"""


def main():
    """Measure every toolkit in its environment, keep the counts and write the page."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured(sys.argv[2])))
        return
    if sys.argv[1:] != ["--page"]:
        peers = os.environ["EQUIPOISE_PEERS"]
        kept = {}
        for name in TOOLKITS:
            python = peers if name in {"AIF360", "Aequitas", "fairaudit"} else sys.executable
            command = [python, __file__, "--measure", name]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            kept[name] = json.loads(done.stdout.splitlines()[-1])
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(KEPT.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
