"""A second implementation of the small-sample law: loops over units, dense matrices, no sums."""

import math

import numpy as np
from scipy import stats


def unit_totals(u, w, side, unit, s):
    """Totals (u, w) of the units of side `s`, as two lists."""
    totals = {}
    for x, y, a, k in zip(u, w, side, unit, strict=True):
        if a == s:
            before = totals.get(k, (0.0, 0.0))
            totals[k] = (before[0] + x, before[1] + y)
    return totals


def cumulants(totals):
    """Own variance and third cumulant of unit means, degrees, and sums of powers of h."""
    us, ws = [t[0] for t in totals.values()], [t[1] for t in totals.values()]
    size = sum(ws)
    h = np.array(ws) / size
    mean = sum(us) / size
    e = [(x - mean * y) / size for x, y in zip(us, ws, strict=True)]
    n = len(h)
    # e = L x with L = diag(h) (I - 1 h'); expectations of quadratic and cubic forms by matrices.
    left = np.diag(h) @ (np.eye(n) - np.outer(np.ones(n), h))
    quadratic = left.T @ left
    v = sum(x**2 for x in e) / np.trace(quadratic) if n > 1 else 0.0
    cubic = sum(left[i, j] ** 3 for i in range(n) for j in range(n))
    k = sum(x**3 for x in e) / cubic if n > 2 else 0.0
    df = np.trace(quadratic) ** 2 / np.trace(quadratic @ quadratic) if n > 1 else 0.0
    return {
        "n": n, "mean": mean, "h": h, "v": v, "k": k, "df": df,
        "scatter": sum(x**2 for x in e), "third": sum(x**3 for x in e),
        "d2": np.trace(quadratic), "d3": cubic, "e": dict(zip(totals, e, strict=True)),
        "share": dict(zip(totals, h, strict=True)),
    }  # fmt: skip


def pool(sides):
    """Variance and skewness over sides."""
    v = sum(s["n"] ** 2 * s["scatter"] for s in sides) / sum(s["n"] ** 2 * s["d2"] for s in sides)
    k = sum(s["n"] ** 3 * s["third"] for s in sides) / sum(s["n"] ** 3 * s["d3"] for s in sides)
    return v, k / v**1.5


def law(sides, coefficients, pooled):
    """Estimate, standard error, degrees of freedom and the range of skewness of a contrast."""
    v_pool, g_pool = pooled
    estimate = variance = spread = third = satterthwaite = scatter = 0.0
    own2 = own3 = noise = shape = 0.0
    parts = []
    for s, c in zip(sides, coefficients, strict=True):
        s2, s3 = float(np.sum(s["h"] ** 2)), float(np.sum(s["h"] ** 3))
        a = s["n"] / (s["n"] + 100 + 10 * g_pool**2)
        model = a * s["v"] + (1 - a) * v_pool
        skewness = (a * s["k"] / s["v"] ** 1.5 if s["v"] > 0 else 0.0) + (1 - a) * g_pool
        estimate += c * s["mean"]
        rare = 1 + g_pool**2
        part = max(0.25 * min(1.0, 20 * s2), rare / (rare + 1 / s2))
        variance += c**2 * max(s["v"], part * v_pool) * s2
        spread += c**2 * model * s2
        third += c**3 * skewness * v_pool**1.5 * s3
        shape += c**2 * v_pool * s2
        satterthwaite += (c**2 * model * s2) ** 2 / s["df"]
        scatter += c**2 * s["scatter"]
        m = max(1 / s2, 3.01)
        own2 += c**2 * s["v"] * s2
        own3 += c**3 * s["k"] * s3
        noise += c**6 * 6 * m / ((m - 1) * (m - 2)) * s["v"] ** 3 * s3**2
        parts.append((c, c**2 * model * s2, s))
    phi, shared = {}, 0.0
    for c, _, s in parts:
        for unit, e in s["e"].items():
            phi[unit] = phi.get(unit, 0.0) + c * e
    for i, (_, first, s) in enumerate(parts):
        for _, second, t in parts[i + 1 :]:
            common = set(s["share"]) & set(t["share"])
            q = sum(s["share"][k] ** 2 * t["share"][k] ** 2 for k in common)
            q /= math.sqrt(np.sum(s["h"] ** 4) * np.sum(t["h"] ** 4))
            shared += 2 * first * second * q / math.sqrt(s["df"] * t["df"])
    variance *= sum(x**2 for x in phi.values()) / scatter
    borrowed = min(max(third / shape**1.5, -0.6), 0.6)
    own, se = own3 / own2**1.5, math.sqrt(noise / own2**3)
    near = min(max(min(max(borrowed, own - se / 2), own + se / 2), -0.6), 0.6)
    return {
        "estimate": estimate,
        "se": math.sqrt(variance),
        "df": spread**2 / (satterthwaite + shared),
        "low": min(borrowed, near),
        "high": max(borrowed, near),
    }


def root(found, null):
    """The root on the normal scale."""
    t = (found["estimate"] - null) / found["se"]
    bend = found["low"] if t > 0 else found["high"]
    if abs(bend) < 1e-6:
        g = t + bend * t * t / 3 + bend / 6
    else:
        g = 1.5 / bend * (math.exp(2 * bend * t / 3) - 1) + bend / 6
    g = max(g, 0.0) if t > 0 else min(g, 0.0)
    p = stats.t.sf(abs(g), found["df"])
    return math.copysign(stats.norm.isf(p), t)
