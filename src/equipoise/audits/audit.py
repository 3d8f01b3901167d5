"""The public face: a table with roles, and a method for each question.

The methods are the functions of the families themselves, imported when they are first used: one
question does not load the engines of another, and a signature is written once.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any

from equipoise._typing import Missing
from equipoise.data.roles import Roles
from equipoise.data.table import Table
from equipoise.results.question import find_question, questions
from equipoise.results.result import AuditResult

if TYPE_CHECKING:
    from equipoise.audits.disparity import gaps
    from equipoise.audits.effects import treatment_effects
    from equipoise.audits.improvement import improvability
    from equipoise.audits.inequality import inequality
    from equipoise.audits.scores import margins, parity

__all__ = ["Audit"]


class Audit:
    """A table with roles, ready to be asked.

    Parameters
    ----------
    data : frame, relation, Spark DataFrame, dict of arrays, or path
        pandas, polars and pyarrow tables, a DuckDB relation, a Spark DataFrame, a dict of arrays,
        or the path of a csv or parquet file, a folder of parquet files or a glob.
    group : str or list of str
        Columns whose combinations are compared.
    y_true, y_pred, y_score : str, optional
        Columns of the outcome, the decision and the score, as far as known.
    treatment, effect_pred : str, optional
        Columns of the arm (0 or 1) and the predicted effect; the outcome is `y_true`.
    propensity : str, optional
        Column of the known chance of treatment; checked, and not yet used by a question.
    cluster : str, optional
        Column of the unit that rows repeat; rows of one unit may depend on each other.
    strata, time : str, optional
        Columns of the stratum of the sampling design and of the moment of a row; checked, and not
        yet used by a question.
    features : list of str, optional
        Covariates for candidate algorithms.
    weight : str, optional
        Column of sampling weights.
    count : str, optional
        Column that says how many identical rows a row stands for.
    positive : object, default 1
        The label that counts as 1, when labels are text.
    favourable : object, optional
        The decision that is good for a person: 1, 0 or a label; not yet used by a question.
    missing : {"raise", "drop"}
        What to do with rows in which a column that a question uses is missing.
    bins : mapping of str to list of float, optional
        Cut points for numeric group columns.
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
        effect_pred: str | None = None,
        propensity: str | None = None,
        cluster: str | None = None,
        strata: str | None = None,
        time: str | None = None,
        features: str | Sequence[str] | None = None,
        weight: str | None = None,
        count: str | None = None,
        positive: object = 1,
        favourable: object = None,
        missing: Missing = "raise",
        bins: Mapping[str, Sequence[float]] | None = None,
        engine: str = "duckdb",
    ) -> None:
        roles = Roles(
            group=group,  # type: ignore[arg-type]
            y_true=y_true,
            y_pred=y_pred,
            y_score=y_score,
            treatment=treatment,
            effect_pred=effect_pred,
            propensity=propensity,
            cluster=cluster,
            strata=strata,
            time=time,
            features=features or (),  # type: ignore[arg-type]
            weight=weight,
            count=count,
            positive=positive,
            favourable=favourable,
            missing=missing,
            bins=bins or {},
        )
        self.table = Table(data, roles, engine=engine)

    if TYPE_CHECKING:
        disparity = gaps.disparity
        flag = gaps.flag
        certify = gaps.certify
        predictive_parity = parity.predictive_parity
        marginal_outcome = margins.marginal_outcome
        improvability = improvability.improvability
        inequality = inequality.inequality
        treatment_effects = treatment_effects.treatment_effects

    def __getattr__(self, name: str) -> Callable[..., AuditResult]:
        """Return a question that was registered after this class was made."""
        if name in questions():
            return MethodType(find_question(name).function, self)
        raise AttributeError(f"'Audit' has no question or attribute {name!r}")


class _Ask:
    """Stands for a method until it is first used, then gives way to the function itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, audit: Audit | None, owner: type[Audit]) -> Callable[..., AuditResult]:
        function = find_question(self.name).function
        setattr(owner, self.name, function)
        return function if audit is None else MethodType(function, audit)


for _name in questions():
    setattr(Audit, _name, _Ask(_name))
