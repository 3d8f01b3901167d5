"""Confidence sequences by `confseq` 0.0.11 (S. R. Howard), kept in confidence_sequences.json.

``python tests/reference/stats/confidence_sequences.py`` in an environment of its own with
`confseq`; nothing of equipoise is imported. The sums are formed here one number at a time; the
boundary is `two-sided normal mixture` of Howard, Ramdas, McAuliffe and Sekhon (2021), Annals of
Statistics 49, 1055-1080, doi:10.1214/20-AOS1991, compiled from their C++.
"""

import json
import math
import random
from pathlib import Path

TUNING = 0.1
LOGS = 2 * math.log(20) + math.log(1 + 2 * math.log(20))
"""Theirs takes the time at which it is to be narrowest in place of rho; this is their ratio."""


def bound(v, alpha, rho):
    from confseq.boundaries import normal_mixture_bound

    return float(normal_mixture_bound(v, alpha, rho * LOGS, 0.05, False))


def boundaries():
    from confseq.boundaries import normal_log_mixture

    return [
        {
            "v": v,
            "alpha": alpha,
            "rho": rho,
            "bound": bound(v, alpha, rho),
            "s": s,
            "log_e": float(normal_log_mixture(s, v, rho * LOGS, 0.05, False)),
        }
        for v in (0.0, 0.7, 30.0, 1e4)
        for rho in (0.2, 25.0, 900.0)
        for alpha, s in ((0.05, 3.0), (0.005, -40.0))
    ]


def mean_of_a_stream(chance):
    """Interval of a running mean after every value from the 50th."""
    x = [round(chance.gammavariate(2.0, 1.5), 3) for _ in range(160)]
    looks = []
    rho = None
    for t in range(50, len(x) + 1):
        mean = sum(x[:t]) / t
        v = sum((value - mean) ** 2 for value in x[:t])
        rho = v / (t - 1) / TUNING**2 if rho is None else rho
        radius = bound(v, 0.05, rho) / t
        looks.append([mean - radius, mean + radius])
    return {"x": x, "looks": looks}


def gap_of_rates(chance, rates, batches, alpha):
    """Mantel-Haenszel gap of two rates with Sato's variance, after every batch."""
    counts, looks = [], []
    u = w = p = q = 0.0
    rows, ones = [0, 0], [0, 0]
    rho = None
    for _ in range(batches):
        n = [chance.randint(5, 25), chance.randint(20, 60)]
        s = [
            sum(chance.random() < rate for _ in range(k)) for k, rate in zip(n, rates, strict=True)
        ]
        counts.append([n, s])
        (n1, n2), (s1, s2), total = n, s, sum(n)
        u += s1 - n1 * (s1 + s2) / total
        w += n1 * n2 / total
        p += (n1**2 * s2 - n2**2 * s1 + n1 * n2 * (n2 - n1) / 2) / total**2
        q += (s1 * (n2 - s2) + s2 * (n1 - s1)) / (2 * total)
        rows = [a + b for a, b in zip(rows, n, strict=True)]
        ones = [a + b for a, b in zip(ones, s, strict=True)]
        enough = all(
            k >= 50 and hits >= 5 and k - hits >= 5 for k, hits in zip(rows, ones, strict=True)
        )
        if not enough:
            looks.append(None)
            continue
        if rho is None:
            rate = (sum(ones) + 0.5) / (sum(rows) + 1)
            rho = rate * (1 - rate) / TUNING**2
        gap = u / w
        radius = bound(gap * p + q, alpha, rho) / w
        looks.append([gap - radius, gap + radius])
    return {"counts": counts, "alpha": alpha, "looks": looks}


def gap_of_values(chance, batches, alpha):
    """Average gap of two means within batches, with the variances within batches."""
    rows, looks = [], []
    u = w = v = 0.0
    seen, rho = [0, 0], None
    for _ in range(batches):
        sides = [
            [round(chance.expovariate(1.0) + shift, 3) for _ in range(chance.randint(8, 20))]
            for shift in (0.4, 0.0)
        ]
        rows.append(sides)
        n1, n2 = (len(side) for side in sides)
        means = [sum(side) / len(side) for side in sides]
        variances = [
            sum((x - mean) ** 2 for x in side) / (len(side) - 1)
            for side, mean in zip(sides, means, strict=True)
        ]
        weight = n1 * n2 / (n1 + n2)
        u += weight * (means[0] - means[1])
        w += weight
        v += weight**2 * (variances[0] / n1 + variances[1] / n2)
        seen = [seen[0] + n1, seen[1] + n2]
        if min(seen) < 50:
            looks.append(None)
            continue
        rho = v / w / TUNING**2 if rho is None else rho
        radius = bound(v, alpha, rho) / w
        looks.append([u / w - radius, u / w + radius])
    return {"rows": rows, "alpha": alpha, "looks": looks}


def main():
    chance = random.Random(18)
    found = {
        "made by": "confseq 0.0.11",
        "boundaries": boundaries(),
        "mean": mean_of_a_stream(chance),
        "rates": [
            gap_of_rates(chance, (0.5, 0.3), 40, 0.05),
            gap_of_rates(chance, (0.08, 0.1), 60, 0.01),
        ],
        "values": gap_of_values(chance, 30, 0.05),
    }
    file = Path(__file__).with_suffix(".json")
    file.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
