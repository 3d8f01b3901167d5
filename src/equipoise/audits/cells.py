"""Write the sums behind questions to a file, and answer questions from such files."""

import copy
import inspect
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals as nw
import numpy as np

from equipoise._checks import check_integer, nearest
from equipoise.audits.asking import declare
from equipoise.data.cells import Cells, identity, kinds_of, read_cells, withheld
from equipoise.data.fingerprint import fingerprint
from equipoise.data.groups import absent, label_of
from equipoise.data.metrics import find_metric
from equipoise.data.query import collect
from equipoise.data.scan import answer
from equipoise.data.table import Quantity, Rows, Sums, Table
from equipoise.exceptions import EquipoiseError, InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.results.question import find_question

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["SUPPRESS_BELOW", "cells", "merge"]

SUPPRESS_BELOW = 10
"""Rows that a cell needs to be written."""

OF_METRICS = ("disparity", "flag", "certify", "impact_ratios")
"""Questions about a metric that are asked where nothing else is said."""

NEEDED = {"flag": {"margin": 0.1}, "certify": {"margin": 0.1}}
"""Options without which a question cannot be asked; they do not change what it sums."""


def cells(
    self: "Audit",
    *,
    metrics: str | Sequence[str],
    questions: Sequence[str | Mapping[str, Any]] | None = None,
    path: "str | os.PathLike[str] | None" = None,
    suppress_below: int = SUPPRESS_BELOW,
) -> Cells:
    """Return the sums behind questions about the metrics: no row, and no small cell.

    `equipoise.merge` adds the cells of several sites, and `Audit.from_cells` asks the questions.

    Parameters
    ----------
    metrics : str or list of str
        Names of metrics.
    questions : list of str or mapping, optional
        What will be asked: names of questions, or as in a plan, for instance
        ``{"question": "disparity", "given": ["job"]}``. By default `disparity`, `flag`, `certify`
        and `impact_ratios`. Each is about every metric, if it is about a metric at all, unless it
        names its own: ``{"question": "disparity", "metric": ["tpr", "fpr"]}`` is one family.
    path : str, optional
        Write them to this file, in parquet.
    suppress_below : int, default 10
        Cells of fewer rows are withheld, and so are further ones, the smallest first, until none of
        the withheld counts follows from the margins of the table. 1 withholds nothing. The rows of
        withheld cells are in none of the sums. A cell is a combination of all columns by which any
        of the questions sums: groups, factors, periods, arms.

    Returns
    -------
    Cells

    Notes
    -----
    The limit is about rows: a cell of 50 people of whom two were selected is written, with that
    two. Only what is in one file is looked at; two files of one table with other columns or limits
    may tell more together.

    Examples
    --------
    >>> import equipoise as eq
    >>> data = {"sex": ["F", "M", "X"] * 30 + ["X"] * 9, "approved": [1, 0, 1] * 33}
    >>> written = eq.Audit(data, group="sex", y_pred="approved").cells(metrics="selection_rate")
    >>> written.withheld_cells
    0
    """
    table = self.table
    limit = check_integer("suppress_below", suppress_below, low=1)
    names, asked = _names(metrics), _asked(OF_METRICS if questions is None else questions)
    if not table.roles.group:
        raise InvalidParameterError("cells are those of groups; pass `group` to `Audit`.")
    view = copy.copy(self)
    view.table = copy.copy(table)
    view.table.only_sums = True
    answers = _answers(view, names, asked, whole=questions is not None)
    keys = tuple(dict.fromkeys(key for sums in answers for key in sums.keys))
    sizes, places = _finest(table, answers, keys)
    hidden = withheld(list(sizes), np.array([fewest for fewest, _ in sizes.values()]), limit)
    lost = [label for label, gone in zip(sizes, hidden.tolist(), strict=True) if gone]
    if lost:
        gone = [rows for label in lost for rows in places[label]]
        view.table = table.with_frame(
            table.frame.filter(~nw.any_horizontal(*gone, ignore_nulls=True))
        )
        answers = _answers(view, names, asked, whole=questions is not None)
    written = Cells(
        roles=table.roles.without_file(),
        kinds=kinds_of(table, _columns(table, asked)),
        metrics=names,
        questions=tuple(dict.fromkeys(name for name, _ in asked)),
        answers={str(identity(sums)): found for sums, found in answers.items()},
        suppress_below=limit,
        withheld_cells=len(lost),
        withheld_rows=sum(sizes[label][1] for label in lost),
    )
    sources = (
        [written.content()]
        if table.source is None
        else [file["sha256"] for file in fingerprint(table.source)]
    )
    written = replace(written, sources=tuple(sources))
    if path is not None:
        written.write(path)
    return written


def _names(metrics: str | Sequence[str]) -> tuple[str, ...]:
    given = [metrics] if isinstance(metrics, str) else list(metrics)
    if not given or not all(isinstance(name, str) for name in given):
        raise InvalidParameterError(
            "`metrics` must be names of metrics, for instance ['selection_rate', 'tpr']; a metric"
            " of your own has sums that no other site can check."
        )
    return tuple(dict.fromkeys(find_metric(name).name for name in given))


def _asked(questions: Sequence[str | Mapping[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return names and options of questions."""
    asked = []
    for one in [questions] if isinstance(questions, (str, Mapping)) else questions:
        options = {"question": one} if isinstance(one, str) else dict(one)
        name = find_question(str(options.pop("question", ""))).name
        asked.append((name, NEEDED.get(name, {}) | options))
    return asked


def _columns(table: Table, asked: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Return the columns that the options of questions name."""
    values = [value for _, options in asked for value in options.values()]
    names = [name for value in values for name in (value if isinstance(value, list) else [value])]
    return [name for name in names if isinstance(name, str) and name in table.schema]


def _answers(
    audit: "Audit",
    metrics: Sequence[str],
    asked: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    whole: bool,
) -> dict[Sums, CellMoments]:
    """Ask every question about every metric, and keep the sums that it asked for.

    With `whole` a question that needs rows is refused; otherwise it is asked as far as sums go.
    """
    found: dict[Sums, CellMoments] = {}
    for name, options in asked:
        function = find_question(name).function
        known = [option for option in inspect.signature(function).parameters if option != "self"]
        for option in options:
            if option not in known:
                raise InvalidParameterError(
                    f"`{name}` has no option {option!r}.{nearest(option, known)}"
                )
        own = "metric" in options or "metric" not in known
        about = [{}] if own else [{"metric": metric} for metric in metrics]
        for metric in about:
            sums, rows = _asked_for(declare(function, audit, **metric, **options))
            if rows and whole:
                raise InvalidParameterError(
                    f"`{name}` needs rows, and none are written. Ask it where the rows are."
                )
            found |= sums
    return found


def _asked_for(question: Any) -> tuple[dict[Sums, CellMoments], bool]:
    """Drive a question to its end, or to where it needs rows; return the sums that it was sent."""
    found: dict[Sums, CellMoments] = {}
    reply: Any = None
    try:
        while True:
            need = question.send(reply)
            parts = need if isinstance(need, tuple) else (need,)
            if any(isinstance(part, Rows) or identity(part) is None for part in parts):
                question.close()
                return found, True
            replies = answer(parts)
            for part, cells_of in zip(parts, replies, strict=True):
                if isinstance(cells_of, EquipoiseError):
                    raise cells_of
                if isinstance(cells_of, CellMoments):
                    found[part] = cells_of
            reply = replies if isinstance(need, tuple) else replies[0]
    except StopIteration:
        return found, False


_Label: TypeAlias = tuple[str | None, ...]
"""Labels of a cell; None where the value is missing."""


def _finest(
    table: Table, declared: Collection[Sums], keys: Sequence[Quantity]
) -> tuple[dict[_Label, tuple[int, int]], dict[_Label, list[nw.Expr]]]:
    """Return the fewest and the most rows that the sums have of each of the finest cells.

    Also what finds the rows of each cell. A missing value is a level of its own: sums by other
    columns may hold its rows.
    """
    names = [f"__eq_key_{k}" for k in range(len(keys))]
    rows = nw.lit(1) if table.roles.count is None else nw.col(table.roles.count)
    counts = {}
    for k, (view, needs) in enumerate(
        {sums.needs: (sums.table, sums.needs) for sums in declared}.values()
    ):
        gone = list(view.missing(dict(needs)).values())
        used = nw.when(~nw.any_horizontal(*gone, ignore_nulls=True)).then(rows) if gone else rows
        counts[f"__eq_n_{k}"] = used
    projected = table.frame.select(
        **{name: key.value for name, key in zip(names, keys, strict=True)},
        # The engine's own text of a key finds it again, whatever its type.
        **{
            f"{name}_text": key.value.cast(nw.String) for name, key in zip(names, keys, strict=True)
        },
        **counts,
    )
    texts = [f"{name}_text" for name in names]
    found = collect(
        projected.group_by(*names, *texts).agg(*[nw.col(name).sum() for name in counts]),
        keys=[*names, *texts],
    )
    sizes: dict[_Label, tuple[int, int]] = {}
    places: dict[_Label, list[nw.Expr]] = {}
    missing = [absent(found[name]).tolist() for name in names]
    for k in range(len(found[names[0]])):
        label = tuple(
            None if gone[k] else label_of(found[name][k])
            for name, gone in zip(names, missing, strict=True)
        )
        own = [int(n) for n in (np.nan_to_num(found[name][k]) for name in counts) if n]
        if own:
            sizes[label] = (min(own), max(own))
            same = [
                text.is_null()
                if found[name][k] is None
                else ~text.is_null() & (text == found[name][k])
                for name, text in zip(
                    texts, (key.value.cast(nw.String) for key in keys), strict=True
                )
            ]
            places.setdefault(label, []).append(nw.all_horizontal(*same, ignore_nulls=True))
    return sizes, places


def merge(
    *cells: "Cells | str | os.PathLike[str]", path: "str | os.PathLike[str] | None" = None
) -> Cells:
    """Add the cells of several sites.

    Parameters
    ----------
    *cells : Cells or path
        Two or more, written with the same roles and metrics. The tables must share no rows, and no
        clusters: a person with rows at two sites would count as two.
    path : str, optional
        Write the sum to this file.

    Returns
    -------
    Cells
    """
    if not cells:
        raise InvalidParameterError("`merge` needs files of cells; got none.")
    first, *others = [one if isinstance(one, Cells) else read_cells(one) for one in cells]
    for other in others:
        first = first + other
    if path is not None:
        first.write(path)
    return first
