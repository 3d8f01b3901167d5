"""The public face: a table with roles, and a method for each question.

The methods are the functions of the families themselves, imported when they are first used: one
question does not load the engines of another, and a signature is written once.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any

from equipoise._typing import Missing
from equipoise.data.groups import label_of
from equipoise.data.roles import Roles
from equipoise.data.table import Table
from equipoise.results.question import find_question, load, questions

if TYPE_CHECKING:
    from equipoise.audits import cells as summing
    from equipoise.audits.disparity import compare as comparison
    from equipoise.audits.disparity import decompose, gaps, impact_ratios
    from equipoise.audits.disparity import discover as discovery
    from equipoise.audits.disparity import monitor as monitoring
    from equipoise.audits.effects import policy, treatment_effects
    from equipoise.audits.improvement import drop_table, improvability
    from equipoise.audits.inequality import inequality
    from equipoise.audits.scores import margins, multicalibration, parity, quality
    from equipoise.data.cells import Cells
    from equipoise.results.result import AuditResult

__all__ = ["Audit"]


class _Ask:
    """Stands for a method until it is first used, then gives way to the function itself."""

    def __init__(self, function: Callable[[str], Callable[..., Any]], name: str) -> None:
        self.function = function
        self.name = name

    def __get__(self, audit: "Audit | None", owner: "type[Audit]") -> Callable[..., Any]:
        function = self.function(self.name)
        setattr(owner, self.name, function)
        return function if audit is None else MethodType(function, audit)


class Audit:
    """A table with roles, ready to be asked.

    Parameters
    ----------
    data : frame, relation, Spark DataFrame, Ibis table, dict of arrays, or path
        pandas, polars and pyarrow tables, a DuckDB relation, a Spark DataFrame, a dict of arrays,
        or the path of a csv or parquet file, a folder of parquet files or a glob.
    group : str or list of str
        Columns whose combinations are compared.
    y_true, y_pred, y_score : str, optional
        Columns of the outcome, the decision and the score, as far as known. A high score is taken
        to go with the label that counts as 1.
    treatment : str, optional
        Column of the arm of an experiment, 0 for controls; the outcome is `y_true`.
    effect_pred : str, mapping of arm to str, or estimator, optional
        Column of the predicted effect, or one for each arm; or a fitted estimator with a method
        `effect` (EconML) or `predict`, which predicts from the `features` of rows in memory.
    propensity : str, optional
        Column of the known chance of treatment, for effects.
    cluster : str, optional
        Column of the unit that rows repeat; rows of one unit may depend on each other.
    strata : str, optional
        Column of the stratum of the sampling design. `disparity`, `flag`, `certify` and
        `impact_ratios` then have the variances of the design; clusters lie within strata.
    fpc : str, optional
        Column of the number of units (clusters, or rows) of the row's stratum in the population,
        for the finite population correction.
    time : str, optional
        Column of the moment or period of a row, for `compare` and `monitor`.
    features : list of str, optional
        Covariates for candidate algorithms.
    weight : str, optional
        Column of sampling weights.
    count : str, optional
        Column that says how many identical rows a row stands for.
    positive : object, default 1
        The label that counts as 1, when labels are text.
    favourable : object, optional
        The decision that is good for a person: 1, 0 or a label; without decisions, the outcome
        that is. Sentences then say who is worse off; without it they do not.
    missing : {"raise", "drop"}
        What to do with rows in which a column that a question uses is missing.
    bins : mapping of str to list of float, optional
        Cut points for numeric group columns.
    names : list of str, optional
        Names of the columns of a csv file that has none in its first line, or in the place of
        those. Without them such columns are ``column_1``, ``column_2`` and so on.
    header : bool, optional
        Whether the first line of a csv file has the names of its columns; by default it has,
        unless it looks like the rows below it.
    engine : {"duckdb", "spark"}
        What reads a path.

    Examples
    --------
    Does a model approve groups at different rates?

    >>> import equipoise as eq
    >>> audit = eq.Audit({"sex": ["F", "M"] * 50, "approved": [1, 0] * 25 + [0, 1] * 25},
    ...                  group="sex", y_pred="approved")
    """

    def __init__(
        self,
        data: Any,
        *,
        group: str | Sequence[str] = (),
        y_true: str | None = None,
        y_pred: str | None = None,
        y_score: str | None = None,
        treatment: str | None = None,
        effect_pred: Any = None,
        propensity: str | None = None,
        cluster: str | None = None,
        strata: str | None = None,
        fpc: str | None = None,
        time: str | None = None,
        features: str | Sequence[str] | None = None,
        weight: str | None = None,
        count: str | None = None,
        positive: object = 1,
        favourable: object = None,
        missing: Missing = "raise",
        bins: Mapping[str, Sequence[float]] | None = None,
        names: Sequence[str] | None = None,
        header: bool | None = None,
        engine: str = "duckdb",
    ) -> None:
        if not isinstance(effect_pred, (str, Mapping, type(None))):
            from equipoise.data.arms import PREDICTED, with_effects

            used = (features,) if isinstance(features, str) else tuple(features or ())
            data, effect_pred = with_effects(data, effect_pred, used), PREDICTED
        roles = Roles(
            group=group,  # type: ignore[arg-type]
            y_true=y_true,
            y_pred=y_pred,
            y_score=y_score,
            treatment=treatment,
            effect_pred=None if isinstance(effect_pred, Mapping) else effect_pred,
            propensity=propensity,
            cluster=cluster,
            strata=strata,
            fpc=fpc,
            time=time,
            features=features or (),  # type: ignore[arg-type]
            weight=weight,
            count=count,
            positive=positive,
            favourable=favourable,
            missing=missing,
            bins=bins or {},
            names=names or (),  # type: ignore[arg-type]
            header=header,
        )
        self.table = Table(data, roles, engine=engine)
        self.effect_preds: dict[str, str] = {}
        """Columns of predicted effects by arm, where there are several."""
        if isinstance(effect_pred, Mapping):
            self.effect_preds = {label_of(arm): column for arm, column in effect_pred.items()}

    @classmethod
    def from_cells(cls, cells: "Cells | str | os.PathLike[str]") -> "Audit":
        """Return an audit of a table of which only the cells are known.

        Its answers are those of the rows, exactly where nothing was withheld. What needs rows is
        refused.

        Parameters
        ----------
        cells : Cells or path
            From `Audit.cells` or `equipoise.merge`.

        Returns
        -------
        Audit
        """
        from equipoise.data.cells import Cells, CellTable, read_cells

        audit = cls.__new__(cls)
        audit.table = CellTable(cells if isinstance(cells, Cells) else read_cells(cells))
        audit.effect_preds = {}
        return audit

    if TYPE_CHECKING:
        cells = summing.cells
        disparity = gaps.disparity
        flag = gaps.flag
        certify = gaps.certify
        compare = comparison.compare
        impact_ratios = impact_ratios.impact_ratios
        monitor = monitoring.monitor
        discover = discovery.discover
        decompose = decompose.decompose
        predictive_parity = parity.predictive_parity
        marginal_outcome = margins.marginal_outcome
        score_quality = quality.score_quality
        multicalibration = multicalibration.multicalibration
        necessity = improvability.improvability
        improvability = improvability.improvability
        drop_table = drop_table.drop_table
        inequality = inequality.inequality
        treatment_effects = treatment_effects.treatment_effects
        policy = policy.policy
    else:
        cells = _Ask(lambda name: load(f"equipoise.audits.cells:{name}"), "cells")

    def __getattr__(self, name: str) -> "Callable[..., AuditResult]":
        """Return a question that was registered after this class was made."""
        if name in questions():
            return MethodType(find_question(name).function, self)
        raise AttributeError(f"'Audit' has no question or attribute {name!r}")


for _name in questions():
    setattr(Audit, _name, _Ask(lambda name: find_question(name).function, _name))
