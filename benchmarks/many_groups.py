"""Small groups by the hundred thousand: exact tests and intervals of each.

The peer is scipy's exact binomial test with its interval, called group by group against the rate of
all: the simplest exact test that one would write.
"""

import numpy as np
from harness import Row, compare, measure, show

GROUPS, ROWS = 100_000, 10
PEER_SHARE = 100


def prepare():
    import pyarrow as pa

    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(GROUPS), ROWS)
    order = rng.permutation(len(group))
    names = np.char.add("g", np.char.zfill(group[order].astype(str), 6))
    selected = (rng.random(len(group)) < 0.3).astype(np.int8)
    return pa.table({"group": names, "selected": selected})


def ours(table):
    import equipoise as eq

    result = eq.Audit(table, group="group", y_pred="selected").disparity("selection_rate")
    assert len(result.findings) == GROUPS
    return float(np.mean([finding.estimate for finding in result.findings]))


def scipy_loop(table):
    from scipy.stats import binomtest

    names = table.column("group").to_numpy()
    selected = table.column("selected").to_numpy()
    levels, place = np.unique(names, return_inverse=True)
    ones = np.bincount(place, weights=selected, minlength=len(levels)).astype(int)
    n = np.bincount(place, minlength=len(levels))
    rate = selected.mean()
    for k in range(len(levels) // PEER_SHARE):
        found = binomtest(int(ones[k]), int(n[k]), rate)
        found.proportion_ci(method="exact")
    return float(np.mean(ones / n - rate))


def same(mine, theirs):
    np.testing.assert_allclose(mine, theirs, atol=1e-9)


def rows() -> list[Row]:
    return [
        compare(
            "100,000 groups of ten rows",
            measure(ours, prepare, repeats=1),
            measure(scipy_loop, prepare, repeats=1),
            peer="scipy binomtest by group",
            target="10x faster than 38 CPU s",
            times=PEER_SHARE,
            same=same,
            note=f"The peer tested one in {PEER_SHARE} of the groups, its time is that times"
            f" {PEER_SHARE}. 38 CPU seconds is what an earlier version of equipoise took.",
        )
    ]


if __name__ == "__main__":
    show(rows())
