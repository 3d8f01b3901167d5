"""People alike in given factors: what is asked of them, and what every comparison tells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from equipoise._checks import check_columns, check_integer, check_option
from equipoise._typing import Conditional, FloatArray, Scale, StratumWeights
from equipoise.audits.disparity.sides import Reference
from equipoise.exceptions import InvalidParameterError
from equipoise.results.finding import Decision, JointTest, Note
from equipoise.results.formats import counted, listed

if TYPE_CHECKING:
    from equipoise.audits.disparity.measure import Measured

__all__ = [
    "AlikeComparison",
    "AlikeGroups",
    "GivenAsked",
    "GroupAlike",
    "bonferroni",
    "conditioning_note",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAsked:
    """The options of a comparison of people alike."""

    given: tuple[str, ...]
    reference: Reference
    scale: Scale
    weights: StratumWeights = "overlap"
    depth: int | None = None
    bands: Mapping[str, Any] | None = None
    conditional: Conditional = "strata"
    learner: Any = None
    n_splits: int = 5

    @classmethod
    def of(
        cls,
        given: str | Sequence[str],
        *,
        reference: Reference,
        scale: Scale,
        weights: StratumWeights,
        depth: int | None,
        bands: Mapping[str, Any] | None,
        conditional: Conditional = "strata",
        learner: Any = None,
        n_splits: int = 5,
    ) -> "GivenAsked":
        """Check the options, or raise."""
        check_option("scale", scale, Scale)
        check_option("weights", weights, StratumWeights)
        factors = check_columns("given", given)
        if not factors:
            raise InvalidParameterError("`given` must name at least one factor.")
        if reference is not None and reference != "rest" and not isinstance(reference, Mapping):
            raise InvalidParameterError(
                "conditioning needs a comparison group: with `given`, `reference` must be"
                f' "rest" or a group such as {{"race": "White"}}; got {reference!r}.'
            )
        if isinstance(reference, Mapping) and not reference:
            raise InvalidParameterError('`reference` is empty; name a group, {"race": "White"}.')
        if bands is not None and not isinstance(bands, Mapping):
            raise InvalidParameterError(
                f'`bands` must map factors to a number of bands, {{"income": 5}}; got {bands!r}.'
            )
        check_option("conditional", conditional, Conditional)
        check_integer("n_splits", n_splits, low=2)
        if conditional == "strata":
            if learner is not None or n_splits != 5:
                raise InvalidParameterError(
                    '`learner` and `n_splits` belong to `conditional="doubly_robust"`.'
                )
        else:
            _check_learned(scale, weights, bands, learner)
        return cls(
            given=factors,
            reference=reference,
            scale=scale,
            weights=weights,
            depth=depth,
            bands=bands,
            conditional=conditional,
            learner=learner,
            n_splits=n_splits,
        )

    @property
    def factors(self) -> str:
        """The factors as people list them."""
        return listed(self.given)

    def check_size(self, most: int) -> None:
        """Raise if there are more factors than a question can use."""
        if len(self.given) > most:
            raise InvalidParameterError(
                f"`given` may have at most {most} factors here; got {len(self.given)}."
            )

    @property
    def natural(self) -> float:
        """Value of no disparity."""
        return 1.0 if self.scale == "ratio" else 0.0


def _check_learned(scale: str, weights: str, bands: object, learner: Any) -> None:
    """Raise if an option has no meaning where learners take the place of strata."""
    if scale != "difference":
        raise InvalidParameterError(
            '`conditional="doubly_robust"` estimates a difference; leave `scale` as it is.'
        )
    if weights not in ("overlap", "group"):
        raise InvalidParameterError(
            f'`conditional="doubly_robust"` has `weights` "overlap" or "group"; got {weights!r}.'
        )
    if bands is not None:
        raise InvalidParameterError(
            '`bands` cuts factors into strata; `conditional="doubly_robust"` needs none.'
        )
    pair = learner is None or (isinstance(learner, (tuple, list)) and len(learner) == 2)
    if not pair or not all(hasattr(one, "fit") for one in learner or ()):
        raise InvalidParameterError(
            "`learner` must be two estimators, of the outcome and of membership in the group;"
            f" got {learner!r}."
        )


def conditioning_note(factors: str) -> Note:
    """Say what conditioning cannot excuse."""
    return Note(
        code="conditioning-cannot-excuse",
        message=f"Given only {factors}: other factors are outside every p-value. A factor that is"
        " itself set by the decision maker, or shaped by group membership, hides the part of the"
        f" gap that passes through it (a tainted factor). What goes with {factors} is excused only"
        " if each is legitimate on other grounds.",
    )


def bonferroni(null: str, p_values: list[float], alpha: float) -> JointTest:
    """Test that no group differs by the smallest of their p-values."""
    if not p_values:
        nothing = Note(code="vacuous", message="No hypothesis is left to test jointly.")
        return JointTest(null=null, decision=Decision.NOT_TESTED, method="none", notes=(nothing,))
    p = min(len(p_values) * min(p_values), 1.0)
    return JointTest(
        null=null,
        decision=Decision.DETECTED if p <= alpha else Decision.NOT_DETECTED,
        method=f"Bonferroni over {counted(len(p_values), 'group')}",
        p_value=p,
    )


class AlikeComparison(Protocol):
    """One group beside its comparator, among people alike."""

    @property
    def estimate(self) -> float:
        """Gap, or ratio."""

    @property
    def statistic(self) -> float:
        """Signed root of the test of no gap, on the normal scale."""

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no gap."""

    @property
    def method(self) -> str:
        """Which law the p-value and the interval have."""

    def root(self, null: float) -> float:
        """Signed root at a hypothesised gap."""

    def confidence_interval(
        self, confidence_level: float = 0.95
    ) -> tuple[float | FloatArray, float | FloatArray]:
        """Gaps that the test does not reject."""


class GroupAlike(Protocol):
    """A group and its comparison, or the reason why there is none."""

    @property
    def name(self) -> str:
        """Of the group."""

    @property
    def n(self) -> int:
        """Rows of the group."""

    @property
    def comparison(self) -> AlikeComparison | None:
        """The comparison, where there is one."""

    @property
    def reason(self) -> Note | None:
        """Why there is none."""


class AlikeGroups(Protocol):
    """Every group beside its comparator among people alike, by strata or by learners."""

    @property
    def measured(self) -> "Measured":
        """The metric in the cells of the groups."""

    @property
    def reference(self) -> str:
        """Name of the comparator."""

    @property
    def groups(self) -> Sequence[GroupAlike]:
        """All groups asked for."""

    @property
    def clustered_degrees(self) -> float | None:
        """Fewest degrees of freedom of a comparison, where units are clusters."""

    def joint(self, null: str, alpha: float) -> JointTest:
        """Test that no group differs."""

    def correlation(self) -> FloatArray:
        """Correlation of the estimates of the groups that were compared."""

    def intervals(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Marginal intervals of the groups that were compared."""

    def summaries(self, level: float) -> list[dict[str, Any]]:
        """Write how each group that was compared was compared."""

    def notes_of(self, summary: dict[str, Any]) -> tuple[Note, ...]:
        """Return what the reader of one comparison should know."""

    def notes(self, summaries: list[dict[str, Any]]) -> tuple[Note, ...]:
        """Return what the reader of all should know."""
