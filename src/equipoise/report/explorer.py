"""The benefit-matrix explorer: its starting values, computed as the library computes them."""

from collections.abc import Sequence
from typing import Any

from equipoise.audits.inequality.questions import InequalityDetails
from equipoise.results.result import AuditResult
from equipoise.stats.inequality.cap import index_cap, kappa_scheme

__all__ = ["explorer_state"]

FIELDS = (
    ("base_rate", "Share with outcome 1", 0.001, 0.999, 0.001),
    ("kappa", "κ, benign errors that one harmful error is worth", 0.1, 10000, 0.1),
    ("minimum_benefit", "Benefit of the harmful error", 0.001, 0.999, 0.001),
    ("order", "Order of the index", -100, 100, 0.1),
    ("fpr", "False positive rate", 0, 1, 0.01),
    ("fnr", "False negative rate", 0, 1, 0.01),
)
"""Name, words, smallest and largest value and step of every number a reader can change."""

RESULTS = (
    ("index", "Index of the model"),
    ("cap", "Cap on the index"),
    ("contrast", "Benign rate minus κ times harmful rate"),
    ("mean", "Mean benefit of the model"),
    ("limit", "Mean benefit at which the ratio is just kept"),
    ("largest_harm", "Largest harmful error rate under the cap"),
)

DEFAULTS = {
    "base_rate": 0.45,
    "kappa": 3.0,
    "minimum_benefit": 0.1,
    "order": 1.0,
    "fpr": 0.3,
    "fnr": 0.35,
}


def explorer_state(results: Sequence[AuditResult]) -> dict[str, Any]:
    """Return the values that the explorer starts with.

    Parameters
    ----------
    results : sequence of AuditResult
        The audits of the report; the first about inequality that has error rates gives them, and
        its design where it has one.

    Returns
    -------
    dict
        Inputs, outputs and words for the template. Without scripts they are what the page shows.
    """
    kind, inputs, from_data = "punitive", dict(DEFAULTS), False
    for details in (result.details for result in results):
        if not isinstance(details, InequalityDetails):
            continue
        rates, cap = details.error_rates or {}, details.cap
        # Where all have one outcome there are no two error rates.
        from_data = rates.get("fpr") is not None
        if from_data:
            inputs |= {name: rates[name] for name in ("base_rate", "fpr", "fnr")}
            inputs["order"] = details.order
        if cap:
            kind = cap["kind"]
            inputs |= {"kappa": cap["kappa"], "minimum_benefit": cap["low"]}
        if from_data:
            break
    inputs |= {
        name: min(max(round(inputs[name], 4), low), high) for name, _, low, high, _ in FIELDS
    }
    odds = inputs["base_rate"] / (1.0 - inputs["base_rate"])
    # A ratio that cannot be encoded at this base rate is raised to one that can.
    inputs["kappa"] = max(
        inputs["kappa"], round(1.1 * (odds if kind == "assistive" else 1 / odds), 1)
    )
    outputs = explored(kind=kind, **inputs)
    keeps = "keeps" if outputs["contrast"] > 0.0 else "does not keep"
    below = "below" if outputs["index"] < outputs["cap"] else "not below"
    return {
        "kind": kind,
        "fields": FIELDS,
        "results": RESULTS,
        "inputs": inputs,
        "outputs": outputs,
        "from_data": from_data,
        "verdict": f"The model {keeps} the ratio; its index is {below} the cap.",
    }


def explored(
    *,
    kind: Any,
    base_rate: float,
    kappa: float,
    minimum_benefit: float,
    order: float,
    fpr: float,
    fnr: float,
) -> dict[str, float]:
    """Return every number that the explorer shows for the given inputs."""
    scheme = kappa_scheme(
        base_rate=base_rate, kappa=kappa, kind=kind, minimum_benefit=minimum_benefit
    )
    harmful, benign = (fpr, fnr) if kind == "punitive" else (fnr, fpr)
    capped = index_cap(scheme, order=order)
    protected = scheme.protected
    mean = (
        1.0
        - protected * harmful * (1.0 - scheme.low)
        - (1.0 - protected) * (1.0 - benign) * (1.0 - scheme.high)
    )
    return {
        **{f"b{i}{j}": scheme.matrix[i][j] for i in (0, 1) for j in (0, 1)},
        "index": float(scheme.index(harmful, benign, order=order)),
        "cap": capped.cap,
        "contrast": benign - kappa * harmful,
        "mean": mean,
        "limit": scheme.mean_at_limit,
        "largest_harm": capped.largest_harm,
    }
