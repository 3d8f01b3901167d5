"""Every subgroup beside its reference: what the audits of disparities share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._checks import check_number, check_option
from equipoise._typing import AnyArray, DisparityMethod, FloatArray, Scale
from equipoise.audits.asking import Asking
from equipoise.audits.disparity.measure import Measured, measure
from equipoise.audits.disparity.questions import DisparityDetails
from equipoise.audits.disparity.reference import External, Reference
from equipoise.data.groups import Subgroups, matching_cells, subgroup_name, subgroups
from equipoise.data.metrics import Metric
from equipoise.data.table import Table
from equipoise.exceptions import InvalidParameterError
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, Note
from equipoise.stats.disparity.gaps import Disparities, Target, disparities

__all__ = [
    "Compared",
    "compare_subgroups",
    "comparison_details",
    "finite",
    "method_words",
    "plug_in_note",
    "subgroup_findings",
]

SMALL_GROUP = 30


_VACUOUS = Note(code="vacuous", message="This group is what the others are compared with.")
_DEGENERATE = Note(
    code="degenerate",
    message="The metric does not vary in the group or in what it is compared with (or by less than"
    " a millionth of its size: subtract a constant), or the ratio is to zero; no test is possible.",
)
_SMALL = Note(
    code="small-group",
    message=f"Fewer than {SMALL_GROUP} rows: the interval is wide and approximate.",
)
STATUS_NOTES = {
    "degenerate": _DEGENERATE,
    "empty": Note(
        code="empty-denominator", message="The metric is not defined on any row of this group."
    ),
    "hull": Note(
        code="hull",
        message="The hypothesis lies outside the range of the data; the p-value is that of the"
        " Euclidean likelihood.",
    ),
    "impossible": _VACUOUS,
    "too_small": Note(
        code="too-small",
        message="Too few rows for a test: a real-valued metric needs at least 10 in the group and"
        " in what it is compared with.",
    ),
    "unbounded": Note(
        code="unbounded", message="The data do not bound the interval on every side."
    ),
    "vacuous": _VACUOUS,
}
"""What the reader is told of each status of the engine but "ok"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Disparities of named subgroups, and how they are told."""

    measured: Measured
    groups: Subgroups
    target: Target
    found: Disparities
    reference: str
    scale: Scale


def compare_subgroups(
    table: Table,
    metric: str | Metric,
    reference: Reference,
    depth: int | None,
    method: DisparityMethod,
    scale: Scale,
    confidence_level: float,
) -> Asking[Compared]:
    """Measure a metric and compare every subgroup with the reference."""
    check_option("method", method, DisparityMethod)
    check_option("scale", scale, Scale)
    measured = yield from measure(table, metric, rows=method != "eel")
    groups = subgroups(measured.moments, depth=depth)
    target, words = _target(measured, reference)
    found = disparities(
        measured.moments,
        groups.membership,
        target,
        binary=measured.binary,
        method=method,
        scale=scale,
        confidence_level=confidence_level,
        units=measured.units,
        n=measured.defined,
    )
    return Compared(
        measured=measured, groups=groups, target=target, found=found, reference=words, scale=scale
    )


def _target(measured: Measured, reference: Reference) -> tuple[Target, str]:
    if isinstance(reference, External):
        value = check_number("reference.value", reference.value)
        se = check_number("reference.se", reference.se, low=0.0)
        return Target(kind="external", value=value, se=se), f"{value:g} (external, se {se:g})"
    if isinstance(reference, Mapping):
        if not reference:
            raise InvalidParameterError('`reference` is empty; name a group, {"race": "White"}.')
        cells = matching_cells(measured.moments, dict(reference))
        if not measured.defined[cells].any():
            raise InvalidParameterError(
                f"`reference` {dict(reference)} has no row on which {measured.name!r} is defined."
            )
        names = tuple(str(label) for label in reference.values())
        return Target(kind="reference", cells=cells), subgroup_name(tuple(reference), names)
    if isinstance(reference, str):
        if reference == "population":
            return Target(kind="population"), "the population"
        if reference == "rest":
            return Target(kind="rest"), "the rest"
        raise InvalidParameterError(
            '`reference` must be "population", "rest", a dict such as {"race": "White"}, a number'
            f" or an `External`; got {reference!r}."
        )
    value = check_number("reference", reference)
    return Target(kind="known", value=value), f"{value:g}"


def subgroup_findings(
    compared: Compared,
    *,
    p: FloatArray,
    p_raw: FloatArray,
    decisions: AnyArray,
    interval: tuple[FloatArray, FloatArray, float],
    statistic: FloatArray,
) -> tuple[Finding, ...]:
    """Write a finding for every subgroup; one without a test says why."""
    found = compared.found
    low, high, level = interval
    estimand = Estimand(
        compared.measured.name, "gap", scale=compared.scale, noun=compared.measured.words
    )
    # Lists of Python numbers: an element of an array costs more than the finding made of it.
    columns = {
        "estimate": _optional(found.estimate),
        "statistic": _optional(statistic),
        "p_value": _optional(p),
        "p_value_raw": _optional(p_raw),
    }
    ends = zip(_optional(low), _optional(high), strict=True)
    numbers = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    words = zip(
        compared.groups.names,
        found.n.tolist(),
        found.method.tolist(),
        found.status.tolist(),
        found.tested.tolist(),
        strict=True,
    )
    findings = []
    for (name, n, method, status, tested), own, (a, b), decision in zip(
        words, numbers, ends, decisions.tolist(), strict=True
    ):
        shared: dict[str, Any] = {
            "group": name,
            "estimand": estimand,
            "n": n,
            "method": method,
            "reference": compared.reference,
            "notes": _notes(status, n, tested=tested),
        }
        if not tested:
            findings.append(Finding(decision=Decision.NOT_TESTED, **shared))
            continue
        ci = ConfidenceInterval(low=a, high=b, confidence_level=level)
        findings.append(Finding(decision=Decision(decision), ci=ci, **own, **shared))
    return tuple(findings)


def finite(value: float) -> float | None:
    """Return a number, or None for what is not finite."""
    return float(value) if np.isfinite(value) else None


def _optional(values: FloatArray) -> list[float | None]:
    """Write what is not finite as None."""
    finite = np.isfinite(values)
    plain: list[float | None] = values.tolist()
    for k in np.flatnonzero(~finite).tolist():
        plain[k] = None
    return plain


def _notes(status: str, n: int, *, tested: bool) -> tuple[Note, ...]:
    notes = []
    if status != "ok":
        notes.append(STATUS_NOTES[status])
    elif not tested:
        notes.append(_DEGENERATE)
    if tested and n < SMALL_GROUP:
        notes.append(_SMALL)
    return tuple(notes)


def plug_in_note(found: Disparities, confidence_level: float) -> Note:
    """Say what coverage the plug-in method has where it claims `confidence_level`."""
    coverage = found.plug_in_coverage(confidence_level)[found.tested]
    shown = (
        f"between {coverage.min():.1%} and {coverage.max():.1%}"
        if coverage.size
        else "an unknown share"
    )
    return Note(
        code="plug-in-coverage",
        message="The plug-in method takes the estimated reference as known. Its intervals claim"
        f" {confidence_level:.0%} and cover {shown} of the time here.",
    )


METHOD_WORDS = {
    "adjusted_el": "adjusted empirical likelihood",
    "el": "empirical likelihood",
    "exact_binomial": "exact binomial test",
    "influence_eel": "Euclidean likelihood with estimated reference",
    "influence_el": "empirical likelihood with estimated reference",
    "likelihood_ratio": "binomial likelihood ratio",
    "plug_in_eel": "plug-in Euclidean likelihood",
    "plug_in_el": "plug-in empirical likelihood",
    "profile_el": "profile empirical likelihood",
    "score": "Miettinen-Nurminen score test",
}


def method_words(found: Disparities, method: str) -> str:
    """Name the tests that were used."""
    used = sorted({str(code) for code in found.method if code != "none"})
    words = ", ".join(METHOD_WORDS.get(code, code) for code in used)
    return words or METHOD_WORDS.get(method, method)


def comparison_details(compared: Compared, **asked: Any) -> DisparityDetails:
    """Return the numbers beyond the table; `asked` are options of the question."""
    found = compared.found
    n_units = compared.measured.moments.n_units
    return DisparityDetails(
        **asked,
        metric=compared.measured.name,
        scale=compared.scale,
        reference=compared.reference,
        null_value=found.null,
        n_units=n_units,
        n_clusters=n_units if compared.measured.clustered else None,
        values=[
            {"group": name, "group_value": value, "target_value": target, "se": se}
            for name, value, target, se in zip(
                compared.groups.names,
                _optional(found.group_value),
                _optional(found.target_value),
                _optional(found.se),
                strict=True,
            )
        ],
    )
