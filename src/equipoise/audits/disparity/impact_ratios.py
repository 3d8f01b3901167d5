"""The regulator's table: rates, ratios to the most selected category, and what they show."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise._typing import Family, Rng, SmallCategories
from equipoise.audits.asking import Asking, question_method
from equipoise.audits.disparity.extremes import ExtremeAsked, disparity_to_extreme
from equipoise.audits.disparity.measure import measure
from equipoise.audits.disparity.questions import DisparityDetails
from equipoise.data.metrics import Metric
from equipoise.exceptions import InvalidParameterError
from equipoise.results.details import details_of
from equipoise.results.finding import Note
from equipoise.results.result import AuditResult

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

__all__ = ["impact_ratios"]


@question_method
def impact_ratios(
    self: "Audit",
    metric: str | Metric = "selection_rate",
    *,
    margin: float = 0.2,
    min_share: float = 0.02,
    small: SmallCategories = "exclude",
    by: Family = "table",
    depth: int | None = None,
    unknown: str | Sequence[str] = (),
    companions: bool = True,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    rng: Rng = None,
) -> Asking[AuditResult]:
    """Compare the rate of every category with that of the most selected one.

    The null hypothesis of a finding is that the category's rate is as high as the highest. The
    highest category is chosen from the data, and intervals and p-values allow for that: with equal
    groups and 30% selected, the smallest observed ratio is below four fifths in most audits of
    2,000 people.

    Parameters
    ----------
    metric : str or Metric, default "selection_rate"
        What is compared; ``"scoring_rate"`` for a tool that scores.
    margin : float, default 0.2
        What the readings are about; 0.2 for four fifths.
    min_share : float, default 0.02
        Categories with a smaller share of the rows are not compared.
    small : {"exclude", "compare"}
        Whether smaller categories are left out, or compared with the others but never the highest.
    by : {"table", "audit"}
        Whether intervals hold for each table by itself, or for all tables together.
    depth : int, optional
        How many group columns may be combined; by default all.
    unknown : str or list of str
        Labels that mean "not known"; their rows are counted and are in no table.
    companions : bool
        Whether the tables have what courts and agencies read beside the ratio.
    alpha : float, default 0.05
        Level of the tests.
    confidence_level : float, default 0.95
        Level of the joint intervals.
    rng : int or numpy Generator, optional
        For permutations, and for the joint law of categories that share units.

    Returns
    -------
    AuditResult
        Findings are the rows of all tables, those of ``disparity(reference="highest",
        scale="ratio")``; `details["tables"]` has numbers, rates, ratios, intervals and companions
        of each table, one for each group column and one for each combination.

    Notes
    -----
    Companions compare each row with the category observed as highest as if it had been named
    before, and are not adjusted for choosing it: the difference in standard deviations (`z`),
    Fisher's and Boschloo's exact tests, the shortfall, how many selections would turn the result,
    and the odds ratio. Of scores and other numbers it is the standardised mean difference (`smd`)
    in standard deviations of all rows; there is none with weights.

    Examples
    --------
    Is any race shown to be labelled high risk less often than the one labelled most often?

    >>> import equipoise as eq
    >>> audit = eq.Audit(eq.datasets.load_compas_counts(), group="race", count="count",
    ...                  y_pred="high_risk")
    >>> result = audit.impact_ratios()
    >>> for finding in result.findings[:3]:
    ...     print(finding.group, finding.n, finding.decision)
    race=African-American 3696 not detected
    race=Asian 32 not tested
    race=Caucasian 2454 detected

    People of Asian descent are fewer than 2% of the rows, and are not compared.
    """
    labels = (unknown,) if isinstance(unknown, str) else unknown
    if not isinstance(labels, Sequence) or not all(isinstance(label, str) for label in labels):
        raise InvalidParameterError(f"`unknown` must list labels; got {unknown!r}.")
    asked = ExtremeAsked(
        reference="highest",
        scale="ratio",
        depth=depth,
        min_share=min_share,
        small=small,
        by=by,
        rng=rng,
    )
    result = yield from disparity_to_extreme(
        self.table,
        metric,
        asked,
        alpha=alpha,
        confidence_level=confidence_level,
        margin=margin,
        audit="impact_ratios",
        unknown=labels,
        with_companions=companions,
    )
    # The same rows without groups: those whose group is missing count as unknown.
    everyone = yield from measure(self.table.grouped_by(()), metric, rows=False)
    known = sum(result.details["tables"][0]["n"])
    unknown_rows = int(everyone.defined.sum()) - known
    note = Note(
        code="unknown-category",
        message=f"{unknown_rows} rows of unknown category are in no table.",
    )
    return replace(
        result,
        notes=(*result.notes, note) if unknown_rows else result.notes,
        details=replace(details_of(result.details, DisparityDetails), unknown=unknown_rows),
    )
