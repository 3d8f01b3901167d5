"""Gaps within strata: people alike in given factors, which are cut into combinations."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from equipoise._checks import check_integer, quoted
from equipoise._typing import BoolArray, FloatArray, IntArray, Scale
from equipoise.audits.asking import Asking
from equipoise.audits.disparity.alike import GivenAsked, bonferroni
from equipoise.audits.disparity.measure import Measured, measure, read_units
from equipoise.audits.disparity.sides import Reference
from equipoise.audits.disparity.subgroups import finite
from equipoise.data.groups import group_tables, matching_cells, subgroup_name
from equipoise.data.metrics import Metric
from equipoise.data.query import collect
from equipoise.data.table import Table
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments, linear_covariance, merge_cells, number_cells
from equipoise.results.finding import Decision, JointTest, Note
from equipoise.stats.disparity.row_roots import Units
from equipoise.stats.disparity.strata import (
    COMPARATOR,
    GROUP,
    NEITHER,
    Strata,
    StratifiedComparison,
    StratumMeans,
    stratified_intervals,
)
from equipoise.stats.multiplicity import correlations
from equipoise.stats.small_samples import MIN_UNITS

__all__ = [
    "FactorCells",
    "GroupInStrata",
    "StratifiedGroups",
    "compare_within_strata",
    "factor_cells",
]

MOST_LEVELS = 50
"""Distinct numbers of a factor beyond which it has to be cut into bands."""
COVERED = 0.8
"""Share of a group with comparators below which a note says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorCells:
    """A metric in every combination of groups and factors.

    Parameters
    ----------
    measured : Measured
        Of the group columns and the factors together; rows are those on which it is defined.
    groups : CellMoments
        The same cells, labelled by the group columns only.
    stratum : array of shape (C,)
        Number of each cell's combination of factors.
    levels : array of shape (C, m)
        Level of every factor.
    without : tuple of arrays of shape (C,)
        Number of each cell's combination of the other factors, for each factor.
    units : sparse matrix, optional
        Weight of every independent unit in every cell.
    cuts : dict
        Cut points of factors that were cut into bands.
    """

    measured: Measured
    groups: CellMoments
    stratum: IntArray
    levels: IntArray
    without: tuple[IntArray, ...]
    units: sparse.csr_array | None
    cuts: dict[str, list[float]]

    @property
    def moments(self) -> CellMoments:
        """Sums over the cells."""
        return self.measured.moments

    def band_notes(self) -> tuple[Note, ...]:
        """Say where factors were cut."""
        cut = [
            f"{name} at {', '.join(f'{point:.6g}' for point in points)}"
            for name, points in self.cuts.items()
        ]
        return (Note(code="bands", message=f"Cut points: {'; '.join(cut)}."),) if cut else ()

    def n_units(self, which: BoolArray) -> int:
        """Independent units with rows in some of the cells."""
        if self.units is None:
            return int(self.moments.n[which].sum())
        return int(np.count_nonzero(np.diff(self.units[:, np.flatnonzero(which)].tocsr().indptr)))

    def comparator(self, reference: Reference) -> tuple[BoolArray | None, str]:
        """Cells of the named reference, or None for "the rest", and its words."""
        if not isinstance(reference, Mapping):
            return None, "the rest"
        cells = matching_cells(self.groups, dict(reference))
        labels = tuple(str(label) for label in reference.values())
        return cells, subgroup_name(tuple(reference), labels)


def factor_cells(table: Table, metric: str | Metric, asked: GivenAsked) -> Asking[FactorCells]:
    """Measure a metric in every combination of groups and factors.

    Parameters
    ----------
    table : Table
        With the roles that the metric uses.
    metric : str or Metric
        Name, or a metric of the user's own.
    asked : GivenAsked
        With the factors.

    Yields
    ------
    Sums, then Rows where units are weighted or clustered

    Returns
    -------
    FactorCells
    """
    group = table.roles.group
    for column in asked.given:
        table.check_column(column)
        if column in group:
            raise InvalidParameterError(f"{column!r} is both group and given.")
    view, cuts = _banded(table, asked)
    measured = yield from measure(view, metric, rows=False)
    # Rows on which the metric is not defined are in no stratum.
    measured = replace(measured, moments=replace(measured.moments, n=measured.defined))
    moments = measured.moments
    labels = moments.labels[len(group) :]
    for name, level in zip(asked.given, labels, strict=True):
        _check_levels(view, name, level)
    units = None
    if table.roles.weight is not None or table.roles.cluster is not None:
        units = _unit_weights((yield from read_units(view, metric)), len(moments.n))
    codes = [number_cells([column])[0] for column in labels]
    return FactorCells(
        measured=measured,
        groups=replace(moments, columns=group, labels=moments.labels[: len(group)]),
        stratum=_combined(codes, len(moments.n)),
        levels=np.stack(codes, axis=1),
        without=tuple(
            _combined(codes[:f] + codes[f + 1 :], len(moments.n)) for f in range(len(codes))
        ),
        units=units,
        cuts=cuts,
    )


def _combined(codes: list[IntArray], size: int) -> IntArray:
    """One number for each combination of codes; a single one without codes."""
    combined = np.zeros(size, dtype=np.int64)
    for code in codes:
        combined = np.unique(combined * (int(code.max()) + 1) + code, return_inverse=True)[1]
    return combined


def _banded(table: Table, asked: GivenAsked) -> tuple[Table, dict[str, list[float]]]:
    """View the table by groups and factors, numbers cut into bands where asked."""
    cuts: dict[str, list[float]] = {}
    for name, bands in (asked.bands or {}).items():
        if name not in asked.given:
            raise InvalidParameterError(
                f"`bands` has {name!r}, which is not among `given`: {quoted(asked.given)}."
            )
        cuts[name] = _cut_points(table, name, bands)
    view = table.grouped_by((*table.roles.group, *asked.given))
    if cuts:
        view.roles = replace(view.roles, bins={**view.roles.bins, **cuts})
    return view, cuts


def _cut_points(table: Table, name: str, bands: object) -> list[float]:
    import narwhals as nw

    if isinstance(bands, (list, tuple)):
        return list(bands)
    size = check_integer(f"bands[{name!r}]", bands, low=2)
    if not table.schema[name].is_numeric():
        raise InvalidParameterError(f"`bands` cuts numbers; {name!r} is {table.schema[name]}.")
    shares = [k / size for k in range(1, size)]
    value = nw.col(name).cast(nw.Float64)
    columns = [
        value.quantile(share, interpolation="linear").alias(f"q{k}")
        for k, share in enumerate(shares)
    ]
    found = collect(table.frame.filter(~table.is_missing(name)).select(*columns))
    cuts = sorted({float(found[f"q{k}"][0]) for k in range(len(shares))})
    if not np.isfinite(cuts).all():
        raise InvalidParameterError(
            f"no row has a value to cut; name the cut points of {name!r} in `bands`."
        )
    return cuts


def _check_levels(view: Table, name: str, labels: Any) -> None:
    number = view.schema[name].is_numeric() and name not in view.roles.bins
    levels = len(set(labels.tolist()))
    if number and levels > MOST_LEVELS:
        raise InvalidParameterError(
            f'{name!r} has {levels:,} distinct values; pass `bands={{"{name}": 5}}` (fifths of the'
            ' rows, cut points printed) or `conditional="doubly_robust"`.'
        )


def _unit_weights(units: Units, size: int) -> sparse.csr_array:
    """Weight of every independent unit in every cell."""
    if units.unit is None:
        copies = None if units.count is None else units.count.round().astype(np.int64)
        w = units.w if copies is None else np.repeat(units.w, copies)
        cell = units.cell if copies is None else np.repeat(units.cell, copies)
        unit = np.arange(len(w))
    else:
        w = units.w if units.count is None else units.w * units.count
        cell, unit = units.cell, units.unit
    shape = (int(unit.max(initial=-1)) + 1, size)
    return sparse.csr_array((w, (unit, cell)), shape=shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInStrata:
    """One group beside its comparator, or why it has none."""

    name: str
    n: int
    own: BoolArray
    other: BoolArray
    comparison: StratifiedComparison | None
    reason: Note | None = None

    @property
    def tested(self) -> StratifiedComparison:
        """The comparison, where there is one."""
        if self.comparison is None:
            raise ValueError(f"{self.name} was not compared")
        return self.comparison

    @property
    def side(self) -> IntArray:
        """1 for cells of the group, 0 for those of its comparator, -1 for others."""
        return np.where(self.own, GROUP, np.where(self.other, COMPARATOR, NEITHER))


def compare_within_strata(
    table: Table, metric: str | Metric, asked: GivenAsked
) -> Asking["StratifiedGroups"]:
    """Compare every group with its comparator within strata.

    Parameters
    ----------
    table : Table
        With the roles that the metric uses.
    metric : str or Metric
        Name, or a metric of the user's own.
    asked : GivenAsked
        With the factors.

    Yields
    ------
    Sums, then Rows where units are weighted or clustered

    Returns
    -------
    StratifiedGroups
    """
    cells = yield from factor_cells(table, metric, asked)
    target, words = cells.comparator(asked.reference)
    groups = []
    for one in group_tables(cells.groups, depth=asked.depth):
        for k, name in enumerate(one.names):
            own = one.category == k
            other = ~own if target is None else target & ~own
            groups.append(_compare(cells, asked, name, own, other, words))
    return StratifiedGroups(cells=cells, asked=asked, reference=words, groups=tuple(groups))


def _compare(
    cells: FactorCells,
    asked: GivenAsked,
    name: str,
    own: BoolArray,
    other: BoolArray,
    words: str,
) -> GroupInStrata:
    n = int(cells.moments.n[own].sum())
    found: dict[str, Any] = {"name": name, "n": n, "own": own, "other": other}
    if not other.any() or not cells.moments.n[other].sum():
        message = "This group is what the others are compared with."
        return GroupInStrata(**found, comparison=None, reason=Note(code="vacuous", message=message))
    side = np.where(own, GROUP, np.where(other, COMPARATOR, NEITHER))
    sides = StratumMeans.of_cells(
        cells.moments, cells.stratum, side, units=cells.units, binary=cells.measured.binary
    )
    strata = len(np.unique(cells.stratum[own & (cells.moments.n > 0)]))
    reason = None
    comparison = None
    if not len(sides.strata):
        message = f"No combination of {asked.factors} has both sides of this comparison."
        reason = Note(code="no-overlap", message=message)
    elif asked.weights in ("reference", "population") and sides.comparator_covered < 1.0:
        lacking = len(np.unique(cells.stratum[side != NEITHER])) - len(sides.strata)
        reason = Note(
            code="no-overlap",
            message=f'`weights="{asked.weights}"` needs both sides in every stratum; {lacking}'
            ' strata lack one. Ask `weights="overlap"`.',
        )
    else:
        comparison = StratifiedComparison(
            group=name,
            reference=words,
            sides=sides,
            weights=asked.weights,
            scale=asked.scale,
            n_strata=strata,
        )
        reason = _untestable(comparison)
    return GroupInStrata(**found, comparison=None if reason else comparison, reason=reason)


def _untestable(one: StratifiedComparison) -> Note | None:
    if not np.isfinite(one.estimate):
        return Note(
            code="ratio-to-zero",
            message="The comparator's average is zero: there is no ratio. Ask for a difference.",
        )
    if one.sides.binary:
        return None
    units = one.sides.n_effective(one.sides.weights(one.weights))
    if min(units) < MIN_UNITS - 1e-9:
        return Note(
            code="too-small",
            message="Too few independent units in the strata that have both sides: a comparison"
            " needs four effective ones on each.",
        )
    _, variance, _ = one.sides.contrast(one.estimate, one.sides.weights(one.weights), one.scale)
    if variance <= 0.0:
        return Note(code="degenerate", message="The metric does not vary within strata.")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class StratifiedGroups:
    """Every group beside its comparator within strata.

    Parameters
    ----------
    cells : FactorCells
        The metric by groups and factors.
    asked : GivenAsked
        What was asked.
    reference : str
        Name of the comparator.
    groups : tuple of GroupInStrata
        All groups asked for.
    """

    cells: FactorCells
    asked: GivenAsked
    reference: str
    groups: tuple[GroupInStrata, ...]

    @property
    def measured(self) -> Measured:
        """The metric in the cells of groups and factors."""
        return self.cells.measured

    @property
    def compared(self) -> list[GroupInStrata]:
        """The groups that have a comparison."""
        return [one for one in self.groups if one.comparison is not None]

    @property
    def clustered_degrees(self) -> float | None:
        """Fewest degrees of freedom of a comparison, where units are clusters."""
        if not self.measured.clustered:
            return None
        found = [one.tested for one in self.compared]
        return min(
            one.sides.contrast(one.estimate, one.stratum_weights, one.scale)[2] for one in found
        )

    def joint(self, null: str, alpha: float) -> JointTest:
        """Test that no group differs in any stratum: generalised Cochran-Mantel-Haenszel."""
        cells, found = self.cells, [one.tested for one in self.compared]
        method = "generalised Cochran-Mantel-Haenszel"
        if not found or cells.measured.clustered:
            # A chi-square of few clusters rejects too often; the t tests of the groups do not.
            return bonferroni(null, [one.p_value for one in found], alpha)
        category = number_cells(cells.groups.labels)[0]
        size = int(category.max()) + 1
        code = cells.stratum * size + category
        n_cells = (int(cells.stratum.max()) + 1) * size
        units = None
        if cells.units is not None:
            place = sparse.csr_array(
                (np.ones(len(code)), (np.arange(len(code)), code)), shape=(len(code), n_cells)
            )
            units = (cells.units @ place).tocsr()
        merged = merge_cells(cells.moments, code, n_groups=n_cells)
        test = Strata(
            moments=merged, n_categories=size, binary=cells.measured.binary, units=units
        ).joint_test()
        if not np.isfinite(test.p_value):
            return bonferroni(null, [], alpha)
        return JointTest(
            null=null,
            decision=Decision.DETECTED if test.p_value <= alpha else Decision.NOT_DETECTED,
            method=method,
            statistic=test.statistic,
            df=float(test.df),
            p_value=test.p_value,
        )

    def correlation(self) -> FloatArray:
        """Correlation of the estimates of the groups that were compared.

        Groups share comparators, and with "the rest" each is in the comparator of the others.
        """
        moments, stratum = self.cells.moments, self.cells.stratum
        slopes, levels = [], []
        for one in self.compared:
            slope, centre = one.tested.influence()
            sides = one.tested.sides
            number = np.full(int(stratum.max()) + 1, -1)
            number[sides.strata] = np.arange(len(sides.strata))
            used = (number[stratum] >= 0) & (one.side != NEITHER)
            place = np.where(used, 2 * number[stratum] + one.side, 0)
            slopes.append(np.where(used, slope[place], 0.0))
            levels.append(np.where(used, -slope[place] * centre[place], 0.0))
        columns = [np.column_stack(slopes), np.column_stack(levels)]
        return correlations(linear_covariance(moments, columns))

    def intervals(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Marginal intervals of the groups that were compared."""
        return stratified_intervals([one.tested for one in self.compared], level)

    def summaries(self, level: float) -> list[dict[str, Any]]:
        """Write how each group that was compared was compared."""
        return [_summary(self.cells, self.asked, one, one.tested, level) for one in self.compared]

    def notes_of(self, summary: dict[str, Any]) -> tuple[Note, ...]:
        """Return what the reader of one comparison should know."""
        return _finding_notes(summary, self.asked)

    def notes(self, summaries: list[dict[str, Any]]) -> tuple[Note, ...]:
        """Return what the reader of all should know."""
        return (_strata_note(self.cells, self.asked, summaries), *self.cells.band_notes())


def _finding_notes(summary: dict[str, Any], asked: GivenAsked) -> tuple[Note, ...]:
    notes = []
    if summary["n_compared"] == 1:
        notes.append(
            Note(
                code="one-stratum",
                message=f"Only one combination of {asked.factors} has both sides: this is the"
                " unconditional comparison within it.",
            )
        )
    if summary["group_covered"] < COVERED:
        share = f"{100 * summary['group_covered']:.3g}%"
        notes.append(
            Note(
                code="little-overlap",
                message=f"Only {share} of the group has a comparator alike in {asked.factors}; use"
                ' fewer factors, wider bands, or `conditional="doubly_robust"`.',
            )
        )
    p = summary["gap_varies_p"]
    if p is not None and p < 0.05:
        notes.append(
            Note(
                code="gap-varies",
                message=f"The gap differs between strata (p {p:.2g}); averages hide that.",
            )
        )
    return tuple(notes)


def _strata_note(cells: FactorCells, asked: GivenAsked, summaries: list[dict[str, Any]]) -> Note:
    total = int(cells.stratum.max()) + 1
    message = f"{total} combinations of {asked.factors}"
    if summaries:
        shares = [summary["group_covered"] for summary in summaries]
        left = max(summary["n_strata"] - summary["n_compared"] for summary in summaries)
        ends = dict.fromkeys(f"{100 * share:.3g}%" for share in (min(shares), max(shares)))
        noun, are = ("stratum", "is") if left == 1 else ("strata", "are")
        message += (
            f"; {' to '.join(ends)} of the rows of a group have a comparator in theirs, and up to"
            f" {left} {noun} of a group without one {are} left out"
        )
    return Note(code="strata-compared", message=f"{message}.")


def _summary(
    cells: FactorCells,
    asked: GivenAsked,
    one: GroupInStrata,
    found: StratifiedComparison,
    level: float,
) -> dict[str, Any]:
    sides = found.sides
    total = cells.moments.total

    def mean(which: BoolArray) -> float:
        return float(total[which, 0].sum() / total[which, 1].sum())

    raw = [mean(one.own), mean(one.other)]
    beside = None
    varies = None
    uninformative = None
    if sides.binary:
        counts = sides.counts
        test = counts.homogeneity_test()
        varies = None if test is None else finite(test.p_value)
        uninformative = int((~counts.informative()).sum())
        odds = counts.odds_ratio
        ends = odds.confidence_interval(level)
        beside = {
            "cmh": finite(counts.cochran_test().statistic),
            "cmh_yates": finite(counts.cochran_test(correct=True).statistic),
            "odds_ratio": finite(odds.value),
            "odds_low": finite(ends[0]),
            "odds_high": finite(ends[1]),
            "ratio": finite(counts.ratio.value),
            "ratio_se_log": finite(counts.ratio.se),
            "difference": finite(counts.difference.value),
            "difference_se": finite(counts.difference.se),
            "shortfall": finite(counts.shortfall),
        }
    without = {name: _left_out(cells, asked, one, f) for f, name in enumerate(asked.given)}
    return {
        "group": one.name,
        "n_strata": found.n_strata,
        "n_compared": len(sides.strata),
        "n_uninformative": uninformative,
        "group_covered": sides.group_covered,
        "comparator_covered": sides.comparator_covered,
        "raw": _gap(raw[0], raw[1], asked.scale),
        "overlap": finite(sides.estimate(sides.weights("overlap"), asked.scale)),
        "at_group_mix": finite(sides.estimate(sides.weights("group"), asked.scale)),
        "linearised": [finite(end) for end in found.linearised_interval(level)],
        "gap_varies_p": varies,
        "mantel_haenszel": beside,
        "without": without,
    }


def _left_out(cells: FactorCells, asked: GivenAsked, one: GroupInStrata, f: int) -> float | None:
    """The gap when one factor is left out."""
    sides = StratumMeans.of_cells(
        cells.moments, cells.without[f], one.side, binary=cells.measured.binary
    )
    if not len(sides.strata):
        return None
    return finite(sides.estimate(sides.weights(asked.weights), asked.scale))


def _gap(one: float, zero: float, scale: Scale) -> float | None:
    if scale == "difference":
        return one - zero
    return one / zero if zero else None
