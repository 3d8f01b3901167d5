"""Withhold what is said of a few people before it leaves the process.

Results in memory are whole. What is printed, written or sent has passed `disclosed` (one result) or
`withheld_groups` (several at once): the numbers of groups with fewer rows than the limit are left
out, and those of further groups, until no count that is left out follows from what is printed.

References
----------
.. [1] A. Hundepool et al., Statistical Disclosure Control, Wiley, 2012, chapter 4
   (doi:10.1002/9781118348239).
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from equipoise._checks import check_integer
from equipoise._names import GroupName
from equipoise.results.finding import Finding, Note

if TYPE_CHECKING:
    from equipoise.results.result import AuditResult

__all__ = ["MIN_CELL", "disclosed", "is_few", "withheld_groups", "withheld_places", "without"]

MIN_CELL = 5
"""Rows that a group needs for its numbers to leave the process."""

SOLVABLE = 400
"""Withheld groups up to which every combination of the printed counts is looked at."""

Parts = frozenset[tuple[str, str]]


def disclosed(result: "AuditResult", min_cell: int = MIN_CELL) -> "AuditResult":
    """Return a result without the numbers of groups of fewer than `min_cell` rows.

    Parameters
    ----------
    result : AuditResult
        Any audit.
    min_cell : int, default 5
        Rows that a group needs; 1 withholds nothing.

    Returns
    -------
    AuditResult
        Its withheld findings keep the group and the decision and have no numbers.
    """
    return without(result, withheld_groups([result], min_cell), min_cell)


def withheld_groups(results: Sequence["AuditResult"], min_cell: int = MIN_CELL) -> frozenset[str]:
    """Return the groups whose numbers must be left out of all the results.

    A group that is small in one result is left out of each, because counts of two metrics may add
    up to that of a third.

    Parameters
    ----------
    results : sequence of AuditResult
        What is told together.
    min_cell : int, default 5
        Rows that a group needs.

    Returns
    -------
    frozenset of str
    """
    check_integer("min_cell", min_cell, low=1)
    findings = [finding for result in results for finding in result.findings]
    small = {f.group for f in findings if f.n < min_cell and not f.withheld and min_cell > 1}
    small |= {
        group
        for result in results
        for group, n in result.details.group_rows().items()
        if is_few(n, min_cell)
    }
    hidden = {f.group for f in findings if f.withheld and not _is_by_reference(f)}
    if not small:
        return frozenset(hidden)
    hidden |= small
    for result in results:
        pairs = [{f.group, f.reference} for f in result.findings]
        shared = set.intersection(*pairs) if pairs else set()
        hidden |= _complemented(_counts(result), frozenset(hidden), min_cell, last=shared)
    return frozenset(hidden)


def without(result: "AuditResult", groups: frozenset[str], min_cell: int) -> "AuditResult":
    """Return a result without the numbers of the given groups, nor of what is compared with them.

    Parameters
    ----------
    result : AuditResult
        Any audit.
    groups : frozenset of str
        From `withheld_groups`.
    min_cell : int
        The limit, for the note.

    Returns
    -------
    AuditResult
    """
    told = result.details.told(min_cell)
    result = result if told is result.details else replace(result, details=told)
    whole = result.details.to_dict()
    # Ratios to a withheld rate, beside the other rates, would give it away; the rates alone would
    # say what it is at least, and of few rows few rates are left.
    beneath = {
        category
        for one in whole.get("tables") or ()
        if isinstance(one, Mapping) and one.get("highest") in groups
        for category in one["categories"]
    }

    def is_hidden(finding: Finding) -> bool:
        return finding.group in beneath or not groups.isdisjoint((finding.group, finding.reference))

    if all(f.withheld for f in result.findings if is_hidden(f)):
        return result
    note = Note(
        code="withheld",
        message=f"Numbers are withheld: fewer than {min_cell} rows, or they would give away the"
        " number of such a group.",
    )
    by_reference = Note(
        code="withheld-reference",
        message="Numbers are withheld: they would give away those of the group compared with,"
        " which are.",
    )
    by_highest = Note(
        code="withheld-reference",
        message="Numbers of the whole table are withheld: the category that the others are compared"
        f" with has fewer than {min_cell} rows, or would give away one that has, and rates, counts"
        " or ratios of the others would tell of it. Merge it with another category, or leave out"
        " small ones.",
    )

    def reason(group: str) -> Note:
        if group in groups:
            return note
        return by_highest if group in beneath else by_reference

    findings = tuple(
        _withheld(finding, reason(finding.group)) if is_hidden(finding) else finding
        for finding in result.findings
    )
    named = {name for f in findings if not f.withheld for name in (f.group, f.reference)}
    # A group whose pairs are in part withheld is told of in the others.
    hidden = {f.group for f in result.findings if is_hidden(f)} - named
    details = _dropped(whole, hidden | groups, named)
    return replace(result, findings=findings, details=result.question.details(**details))


def is_few(count: int, min_cell: int) -> bool:
    """Say whether a count is of some rows, but of fewer than may be told."""
    return 0 < count < min_cell


def withheld_places(counts: Sequence[Sequence[int]], min_cell: int) -> list[bool]:
    """Return the places whose counts are left out: those with few rows of some group, and others.

    The rows of all places together are told, so that a single count that is left out, or a few
    rows in several of them, would follow from those that are told.

    Parameters
    ----------
    counts : list of lists of int
        Rows of each group by place, such as a batch of time or a bin.
    min_cell : int
        Rows that a count needs.

    Returns
    -------
    list of bool
    """
    by_place = list(zip(*counts, strict=True))
    hidden = [any(is_few(count, min_cell) for count in place) for place in by_place]
    # Of whom there are few in all places together, nothing is told anyway.
    told = [one for one in counts if sum(one) >= min_cell]
    sums = [sum(count for count, gone in zip(one, hidden, strict=True) if gone) for one in told]
    others = [t for t, gone in enumerate(hidden) if not gone]
    for t in sorted(others, key=lambda t: (sum(by_place[t]), t)) if any(hidden) else ():
        if sum(hidden) > 1 and not any(is_few(total, min_cell) for total in sums):
            break
        hidden[t] = True
        sums = [total + one[t] for total, one in zip(sums, told, strict=True)]
    return hidden


def _is_by_reference(finding: Finding) -> bool:
    return any(note.code == "withheld-reference" for note in finding.notes)


def _withheld(finding: Finding, note: Note) -> Finding:
    if finding.withheld:
        return finding
    return replace(
        finding,
        estimate=None,
        ci=None,
        statistic=None,
        p_value=None,
        p_value_raw=None,
        n=0,
        notes=(note,),
        withheld=True,
    )


def _dropped(value: Any, groups: set[str], told: set[str]) -> Any:
    """Leave out what is said of the groups, wherever it stands, and counts of groups not told."""
    if isinstance(value, Mapping):
        kept = {key: item for key, item in value.items() if key not in groups}
        if kept.get("worst") in groups:
            # The bound of the worst group is a number of that group.
            kept["bound"] = None
        if kept.get("highest") in groups:
            # Of few rows, whose rate is above all others is nearly known.
            kept["highest"] = None
        return {
            key: None if _names_any(item, groups) else _dropped(item, groups, told)
            for key, item in _shortened(kept, groups).items()
        }
    if isinstance(value, (list, tuple)):
        return [
            _dropped(item, groups, told)
            for item in value
            if not (isinstance(item, Mapping) and _gives_away(item, groups, told))
        ]
    return value


NAMING = ("group", "reference", "group_low", "group_high")
"""Fields that say which groups a record is about."""


def _names_any(record: Any, groups: set[str]) -> bool:
    """Whether a value is a record about one of the groups."""
    return isinstance(record, Mapping) and any(
        isinstance(name := record.get(part), str) and name in groups for part in NAMING
    )


def _gives_away(entry: Mapping[str, Any], groups: set[str], told: set[str]) -> bool:
    group = entry.get("group")
    return _names_any(entry, groups) or (
        isinstance(group, str) and "n" in entry and group not in told
    )


def _shortened(table: Mapping[str, Any], groups: set[str]) -> Mapping[str, Any]:
    """Leave the groups out of every column of a table whose rows are `categories` or `group`."""
    names = table.get("categories", table.get("group"))
    if not isinstance(names, (list, tuple)) or not groups & set(names):
        return table
    kept = [k for k, name in enumerate(names) if name not in groups]

    def cut(item: Any) -> Any:
        if isinstance(item, (list, tuple)) and len(item) == len(names):
            return [item[k] for k in kept]
        if isinstance(item, Mapping) and not any(map(_is_names, item.values())):
            return {key: cut(column) for key, column in item.items()}
        return item

    return {key: item if key == "columns" else cut(item) for key, item in table.items()}


def _is_names(column: Any) -> bool:
    """Whether a column names the rows of a table of its own."""
    return isinstance(column, (list, tuple)) and any(isinstance(item, str) for item in column)


@dataclass(frozen=True, slots=True)
class _Sum:
    """A printed total and the groups that add up to it."""

    whole: str | None
    terms: tuple[str, ...]


def _counts(result: "AuditResult") -> dict[str, int]:
    """Return the rows of each group; those of a pair say nothing of each of the two."""
    counts: dict[str, int] = {}
    for finding in result.findings:
        known = counts.get(finding.group, finding.n)
        counts[finding.group] = min(known, finding.n)
    names = {name: name for f in result.findings for name in (f.reference, f.group)}
    own = result.details.group_rows()
    return counts | {names.get(group, group): n for group, n in own.items()}


def _complemented(
    counts: Mapping[str, int], hidden: frozenset[str], min_cell: int, *, last: Collection[str]
) -> frozenset[str]:
    """Return the groups to withhold so that no count of a withheld one can be solved for.

    Those with which all others are compared come `last`: without them nothing is told.
    """
    sums = _sums(counts)
    found = set(hidden & set(counts))
    while True:
        further = _next(
            sums, found, min_cell, lambda name: (name in last, counts[name], name), counts
        )
        if further is None:
            return frozenset(found)
        found.add(further)


def _sums(groups: Iterable[str]) -> list[_Sum]:
    """Return how counts add up: a group and its parts by every further column."""
    by_parts: dict[Parts, str] = {}
    for group in groups:
        if isinstance(group, GroupName):
            by_parts[frozenset(group.parts)] = group
    terms: dict[tuple[Parts, str], list[str]] = defaultdict(list)
    for parts, group in by_parts.items():
        for part in parts:
            terms[parts - {part}, part[0]].append(group)
    return [
        _Sum(by_parts.get(parts), tuple(names))
        for (parts, _), names in terms.items()
        if not parts or parts in by_parts
    ]


def _next(
    sums: Sequence[_Sum],
    hidden: set[str],
    min_cell: int,
    rank: Callable[[str], tuple[bool, int, str]],
    counts: Mapping[str, int],
) -> str | None:
    """Return the first further group that hides a count which follows from the others."""
    for total in sums:
        unknown = [name for name in total.terms if name in hidden]
        if not unknown or total.whole in hidden:
            continue
        if len(unknown) == 1 or sum(counts[name] for name in unknown) < min_cell:
            others = [name for name in total.terms if name not in hidden]
            if others:
                return min(others, key=rank)
            if total.whole is not None:
                return total.whole
    solved = _solved(sums, hidden) if len(hidden) <= SOLVABLE else set()
    for total in sums:
        if solved & {*total.terms}:
            others = [name for name in total.terms if name not in hidden]
            if others:
                return min(others, key=rank)
    return None


def _solved(sums: Sequence[_Sum], hidden: set[str]) -> set[str]:
    """Return the hidden groups whose count is determined by all sums together."""
    import numpy as np

    order = sorted(hidden)
    place = {name: k for k, name in enumerate(order)}
    rows = []
    for total in sums:
        row = np.zeros(len(order))
        for name in total.terms:
            if name in place:
                row[place[name]] += 1.0
        if total.whole in place:
            row[place[str(total.whole)]] -= 1.0
        if row.any():
            rows.append(row)
    if not rows:
        return set()
    _, sizes, right = np.linalg.svd(np.array(rows))
    free = right[int((sizes > 1e-9).sum()) :]
    fixed = (np.abs(free) < 1e-9).all(axis=0)
    touched = np.array(rows).any(axis=0)
    return {name for name, known in zip(order, fixed & touched, strict=True) if known}
