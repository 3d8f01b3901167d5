"""Every subgroup beside its reference: what the audits of disparities share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise._checks import check_number, check_option
from equipoise._typing import AnyArray, DisparityMethod, FloatArray, Scale
from equipoise.audits.asking import Asking, side_by_side
from equipoise.audits.disparity.measure import Measured, measure, metric_quantities
from equipoise.audits.disparity.questions import DisparityDetails, GroupUnits
from equipoise.audits.disparity.sides import External, Reference
from equipoise.audits.disparity.unknown_shapes import (
    IN_SURVEYS,
    shape_not_taken_out,
    shape_notes,
)
from equipoise.data.columns import Needs
from equipoise.data.groups import Subgroups, matching_cells, subgroup_name, subgroups
from equipoise.data.metrics import Metric, Metrics, find_metrics
from equipoise.data.table import Sums, Table
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, Note
from equipoise.stats.disparity.gaps import Disparities, Target, disparities
from equipoise.stats.small_samples import likelihood_is_long_enough

__all__ = [
    "Compared",
    "ComparedMetrics",
    "compare_metrics",
    "finite",
    "method_words",
    "plug_in_note",
    "status_notes",
    "subgroup_findings",
    "survey_shape_notes",
    "unit_notes",
]

SMALL_GROUP = 30
_DECISIONS = {one.value: one for one in Decision}


_VACUOUS = Note(code="vacuous", message="This group is what the others are compared with.")
_DEGENERATE = Note(
    code="degenerate",
    message="The metric does not vary in the group or in what it is compared with (or by less than"
    " a millionth of its size: subtract a constant), or the ratio is to zero; no test is possible.",
)
_SMALL = Note(code="small-group", message=f"Fewer than {SMALL_GROUP} rows: the interval is wide.")
_FEW_UNITS = Note(
    code="few-units",
    message="Few independent units in the group or in what it is compared with: fewer than 30"
    " degrees of freedom, which test and interval allow for.",
)
_TOO_FEW = Note(
    code="too-few-units",
    message="Too few independent units for a test; 4 effective ones are needed on each side.",
)
_UNADJUSTED = Note(
    code="interval-unadjusted",
    message="The interval is two-sided and stands alone; the decision is that of the test, which"
    " allows for all groups of the family.",
)
MANY_VALUES = 5000
"""Rows of a group from which skewness is not spoken of, where it is not taken out."""
_TOO_SHORT = Note(
    code="likelihood-too-short",
    message="Empirical likelihood needs 20 effective units on both sides, and more for skewed"
    " values; in simulations with fewer its 95% intervals covered 71% to 94%. The default method"
    " holds its level there.",
)
LIKELIHOODS = ("el", "influence_el", "influence_eel", "likelihood_ratio", "profile_el")
FEW_DEGREES = 30.0
"""Degrees of freedom below which the reader is told."""
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
    "rare": Note(
        code="too-small",
        message="Effectively fewer than 5 ones or zeros in the group or in what it is compared"
        " with: the test of a survey's rates does not hold there.",
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
    also: Needs | None = None,
) -> Asking[Compared]:
    """Measure a metric and compare every subgroup with the reference."""
    named = reference if isinstance(reference, Mapping) else None
    if table.roles.strata is not None:
        return (
            yield from _compare_in_survey(
                table, metric, reference, depth, method, scale, confidence_level
            )
        )
    measured = yield from measure(
        table,
        metric,
        reference=named,
        rows=method in {"el", "plug_in"},
        # Gaps do not depend on where values are measured from; ratios do.
        centred=scale == "difference" and also is None,
        also=also,
    )
    groups = subgroups(measured.moments, depth=depth)
    target, words = _target(measured, reference)
    centre = measured.centre
    if centre and not target.estimated:
        target = replace(target, value=target.value - centre)
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
    if centre:
        found = replace(
            found,
            group_value=found.group_value + centre,
            target_value=found.target_value + centre,
        )
    return Compared(
        measured=measured, groups=groups, target=target, found=found, reference=words, scale=scale
    )


def _compare_in_survey(
    table: Table,
    metric: str | Metric,
    reference: Reference,
    depth: int | None,
    method: DisparityMethod,
    scale: Scale,
    confidence_level: float,
) -> Asking[Compared]:
    """Compare subgroups with the variances of a stratified sample."""
    from equipoise.audits.disparity.survey import measure_survey
    from equipoise.stats.disparity.survey import survey_disparities

    if method != "auto":
        raise InvalidParameterError('`strata` has a law of its own; leave `method` at "auto".')
    measured, design = yield from measure_survey(table, metric)
    groups = subgroups(measured.moments, depth=depth)
    target, words = _target(measured, reference)
    found = survey_disparities(
        design,
        groups.membership,
        target,
        scale=scale,
        confidence_level=confidence_level,
        n=measured.defined,
        zero_one=measured.zero_one,
    )
    return Compared(
        measured=measured, groups=groups, target=target, found=found, reference=words, scale=scale
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMetrics:
    """Disparities of the same subgroups in one metric or in several: one family.

    Parameters
    ----------
    parts : list of Compared
        One for each metric.
    moments : CellMoments, optional
        With several metrics, sums of the (u, w) of all and of their products.
    """

    parts: list[Compared]
    moments: CellMoments | None = None

    @property
    def found(self) -> list[Disparities]:
        """The disparities of each metric."""
        return [part.found for part in self.parts]

    @property
    def noun(self) -> str:
        """What is counted: the groups, or their comparisons in several metrics."""
        return "groups" if len(self.parts) == 1 else "comparisons"

    @property
    def reference(self) -> str:
        """What the groups are compared with."""
        return self.parts[0].reference

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the reader should know of the metrics."""
        return tuple(dict.fromkeys(note for part in self.parts for note in part.measured.notes))

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.parts[0].measured.moments.n.sum())

    def joined(self, name: str) -> AnyArray:
        """Return an array of the disparities, one metric after the other."""
        return np.concatenate([getattr(one, name) for one in self.found])

    def findings(
        self,
        *,
        p: FloatArray,
        p_raw: FloatArray,
        decisions: AnyArray,
        interval: tuple[FloatArray, FloatArray, float],
        statistic: FloatArray,
        null: tuple[float, float] | None = None,
        guarded: bool = False,
    ) -> tuple[Finding, ...]:
        """Write a finding for every subgroup and metric, as `subgroup_findings` does."""
        low, high, level = interval
        findings: tuple[Finding, ...] = ()
        for part in self.parts:
            own = slice(len(findings), len(findings) + len(part.groups.names))
            findings += subgroup_findings(
                part,
                p=p[own],
                p_raw=p_raw[own],
                decisions=decisions[own],
                interval=(low[own], high[own], level),
                statistic=statistic[own],
                null=null,
                guarded=guarded,
            )
        return findings

    def details(self, **asked: Any) -> DisparityDetails:
        """Return the numbers beyond the table; those of several metrics name theirs."""
        first, *others = (comparison_details(part, **asked) for part in self.parts)
        if not others:
            return first
        each = (first, *others)
        return replace(
            first,
            metric=", ".join(one.metric for one in each),
            values=[{**value, "metric": one.metric} for one in each for value in one.values],
            units=[{**units, "metric": one.metric} for one in each for units in one.units],
        )


def compare_metrics(
    table: Table,
    metric: Metrics,
    reference: Reference,
    depth: int | None,
    method: DisparityMethod,
    scale: Scale,
    confidence_level: float,
) -> Asking[ComparedMetrics]:
    """Measure one metric or several, and compare every subgroup with the reference in each.

    Several metrics are one question: the rows are those in which nothing that one of them uses is
    missing.
    """
    check_option("method", method, DisparityMethod)
    check_option("scale", scale, Scale)
    asked = reference, depth, method, scale, confidence_level
    if not isinstance(metric, (list, tuple)):
        return ComparedMetrics(parts=[(yield from compare_subgroups(table, metric, *asked))])
    found = find_metrics(metric)
    if table.roles.strata is not None:
        raise InvalidParameterError("With `strata`, ask about one metric at a time.")
    if isinstance(reference, (External, int, float)):
        raise InvalidParameterError(
            "`reference` is a number, the value of one metric; ask about each metric alone."
        )
    also = {role: kind for one in found for role, kind in one.needs.items()}
    quantities = [q for one in found for q in metric_quantities(table, one)]
    *parts, moments = yield from side_by_side(
        [
            *(compare_subgroups(table, one, *asked, also=also) for one in metric),
            _summed(table.sums(quantities, also)),
        ]
    )
    return ComparedMetrics(parts=parts, moments=moments)


def _summed(sums: Sums) -> Asking[CellMoments]:
    moments: CellMoments = yield sums
    return moments


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
    if reference is None or isinstance(reference, str):
        if reference in (None, "population"):
            return Target(kind="population"), "the population"
        if reference == "rest":
            return Target(kind="rest"), "the rest"
        raise InvalidParameterError(
            '`reference` must be "population", "rest", "highest", "lowest", a dict such as'
            f' {{"race": "White"}}, a number or an `External`; got {reference!r}.'
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
    null: tuple[float, float] | None = None,
    guarded: bool = False,
) -> tuple[Finding, ...]:
    """Write a finding for every subgroup; one without a test says why.

    With `null` given, ends of the hypothesis, a finding whose decision and interval differ says so.
    `guarded` says that p-values hold those of `shape_guard` already.
    """
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
    every = unit_notes(
        found,
        clustered=compared.measured.clustered,
        bounded=compared.measured.zero_one,
        guarded=guarded,
    )
    for k in np.flatnonzero(found.tested & (found.n < MANY_VALUES)):
        every[k] = (*every[k], *survey_shape_notes(compared.measured, found.n[k]))
    if null is not None:
        outside = (low > null[1]) | (high < null[0])
        differ = found.tested & (outside != (decisions == Decision.DETECTED))
        for k in np.flatnonzero(differ):
            every[k] = (*every[k], _UNADJUSTED)
    for (name, n, method, status, tested), own, (a, b), decision, more in zip(
        words, numbers, ends, decisions.tolist(), every, strict=True
    ):
        shared: dict[str, Any] = {
            "group": name,
            "estimand": estimand,
            "n": n,
            "method": method,
            "reference": compared.reference,
            "notes": more
            if tested and status == "ok" and n >= SMALL_GROUP
            else (*status_notes(status, n, tested=tested), *more),
        }
        if not tested:
            findings.append(Finding(decision=Decision.NOT_TESTED, **shared))
            continue
        ci = ConfidenceInterval(low=a, high=b, confidence_level=level)
        findings.append(Finding(decision=_DECISIONS[decision], ci=ci, **own, **shared))
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


def status_notes(status: str, n: int, *, tested: bool) -> tuple[Note, ...]:
    """Say why a group has no test, or that it is small."""
    notes = []
    if status in STATUS_NOTES:
        notes.append(STATUS_NOTES[status])
    elif not tested and status == "ok":
        notes.append(_DEGENERATE)
    if tested and n < SMALL_GROUP:
        notes.append(_SMALL)
    return tuple(notes)


def unit_notes(
    found: Disparities, *, clustered: bool, bounded: bool = False, guarded: bool = False
) -> list[tuple[Note, ...]]:
    """Say how few independent units a test rests on, or that they were too few for any."""
    units = found.units
    if units is None:
        few = found.status == "too_few_units"
        return [(_TOO_FEW,) if none else () for none in few.tolist()]
    noun = "clusters" if clustered else "rows"
    n_eff = np.minimum(units.n_eff, units.n_eff_target)
    n = np.where(units.n_eff <= units.n_eff_target, units.n, units.n_target)
    long_enough = likelihood_is_long_enough(n_eff, units.skewness)
    likelihood = np.isin(found.method.astype(str), LIKELIHOODS) & ~long_enough
    shapes = shape_notes(found, bounded=bounded, guarded=guarded)
    few = found.tested & (units.df < FEW_DEGREES)
    notes: list[tuple[Note, ...]] = [()] * len(found.n)
    shaped = np.array([bool(own) for own in shapes], dtype=np.bool_)
    for k in np.flatnonzero(few | shaped | likelihood | (found.status == "too_few_units")):
        if found.status[k] == "too_few_units":
            message = (
                f"Too few independent units for a test: {n[k]:.0f} {noun}, effectively"
                f" {n_eff[k]:.1f}; 4 are needed on each side."
            )
            notes[k] = (Note(code="too-few-units", message=message),)
            continue
        notes[k] = (
            *((_FEW_UNITS,) if few[k] else ()),
            *shapes[k],
            *((_TOO_SHORT,) if likelihood[k] else ()),
        )
    return notes


def survey_shape_notes(measured: Measured, n: float) -> tuple[Note, ...]:
    """Say how often a survey's tests of so many skewed values err; of nothing else.

    Parameters
    ----------
    measured : Measured
        The metric, and its design if it comes from a survey.
    n : float
        Rows of the group.

    Returns
    -------
    tuple of Note
    """
    if measured.design is None or measured.zero_one:
        return ()
    units = min(float(n), float(measured.moments.n_units))
    return (shape_not_taken_out(units, IN_SURVEYS, "in a stratified sample with uneven weights"),)


def plug_in_note(found: Sequence[Disparities], confidence_level: float) -> Note:
    """Say what coverage the plug-in method has where it claims `confidence_level`."""
    coverage = np.concatenate([one.plug_in_coverage(confidence_level)[one.tested] for one in found])
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
    "el": "empirical likelihood",
    "exact_binomial": "exact binomial test",
    "exact_unconditional": "exact unconditional test",
    "few_units": "t test of means, skewness taken out",
    "influence_eel": "Euclidean likelihood with estimated reference",
    "influence_el": "empirical likelihood with estimated reference",
    "likelihood_ratio": "binomial likelihood ratio",
    "plug_in_eel": "plug-in Euclidean likelihood",
    "plug_in_el": "plug-in empirical likelihood",
    "profile_el": "profile empirical likelihood",
    "saddlepoint": "saddlepoint test of two rates",
    "survey": "t test of means under the survey design",
}


def method_words(found: Sequence[Disparities], method: str) -> str:
    """Name the tests that were used."""
    used = sorted({str(code) for one in found for code in one.method if code != "none"})
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
        units=_units(compared),
    )


def _units(compared: Compared) -> list[GroupUnits]:
    found = compared.found
    units = found.units
    if units is None:
        estimated = compared.target.estimated
        rows = zip(compared.groups.names, found.n.tolist(), found.n_target.tolist(), strict=True)
        return [
            {
                "group": name,
                "n_units": n,
                "n_eff": float(n),
                "reference_units": other if estimated else None,
                "reference_n_eff": float(other) if estimated else None,
                "df": None,
                "shape": "none",
            }
            for name, n, other in rows
        ]
    columns = [
        _optional(values)
        for values in (units.n, units.n_eff, units.n_target, units.n_eff_target, units.df)
    ]
    return [
        {
            "group": name,
            "n_units": n or 0.0,
            "n_eff": n_eff or 0.0,
            "reference_units": other,
            "reference_n_eff": other_eff,
            "df": df,
            "shape": shape,
        }
        for name, n, n_eff, other, other_eff, df, shape in zip(
            compared.groups.names, *columns, units.shape.tolist(), strict=True
        )
    ]
