r"""Many candidates at once: which are shown, in what order, and what a search rules out.

A candidate has several requirements, each a contrast :math:`\mu_{kj}` (in standard errors) that
must be positive; its statistic is the smallest z. A candidate is wrongly shown when some
:math:`\mu_{kj} \le 0` and all its z are large. Two ways keep the chance of any wrong one at the
level:

* **in order**: candidates are put in order on other rows and tested in that order, each at the full
  level, until the first that fails (fixed sequence, [1]_). For whatever is fitted;
* **together**: a step-down test with the joint law of all contrasts, or Holm's bound if it is
  smaller ([2]_). For ready columns, where no other rows exist.

Whoever is chosen among many by their estimates was lucky on average: the estimate of the winner is
too large. Given everything that is independent of it, the winner's estimate is normal, cut off
where another candidate would have won; the value at which what was observed is the median of that
law is median-unbiased. The hybrid of [4]_ also uses that the truth lies within a wide joint
interval, which keeps the correction from running away when a rival is close.

References
----------
.. [1] P. Westfall and A. Krishen (2001), Optimally weighted, fixed sequence and gatekeeper multiple
   testing procedures. Journal of Statistical Planning and Inference 99, 25-40.
   https://doi.org/10.1016/S0378-3758(01)00077-5
.. [2] J. Romano and M. Wolf (2005), Exact and approximate stepdown methods for multiple hypothesis
   testing. Journal of the American Statistical Association 100, 94-108.
   https://doi.org/10.1198/016214504000000539
.. [3] J. Romano, A. Shaikh and M. Wolf (2014), A practical two-step method for testing moment
   inequalities. Econometrica 82, 1979-2002. https://doi.org/10.3982/ECTA9011
.. [4] I. Andrews, T. Kitagawa and A. McCloskey (2024), Inference on winners. Quarterly Journal of
   Economics 139, 305-358. https://doi.org/10.1093/qje/qjad043
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy import special

from equipoise._checks import check_finite, check_fraction, check_integer, check_rng
from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, Preference, Rng
from equipoise.stats.improvement.test import (
    Direction,
    ImprovementQuestion,
    Margins,
    requirements,
)
from equipoise.stats.improvement.utilities import UtilityEstimates

__all__ = [
    "N_DRAWS",
    "CandidateLines",
    "FrontierStep",
    "JointLaw",
    "RandomSearch",
    "StepDown",
    "candidate_lines",
    "fixed_sequence",
    "joint_law",
    "loss_frontier",
    "order_candidates",
    "random_search_bounds",
    "step_down",
    "winner_gain",
]


SAFE = 2.5
SCREEN_FROM = 10
SCREEN = 0.005
N_DRAWS = 20_000
DRAWN_AT_ONCE = 4_000_000
DIGITS = 9
NOTHING_NEW = 1e-6
LOOKED_AHEAD = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateLines:
    """All requirements of K candidates as contrasts of one vector.

    Parameters
    ----------
    estimate, se : array of shape (L,)
        Each contrast and its standard error; improvement is positive.
    df : array of shape (L,)
        Degrees of freedom: units on which the contrast rests, less one.
    loadings : array of shape (L, r)
        Of each line on r independent variables: the correlation of two lines is the product of
        their rows (see `gram_root`). A row of zeros does not vary.
    owner : array of shape (L,)
        Candidate that each line belongs to, 0 to K - 1.
    accuracy : array of bool of shape (L,)
        Whether a line is about accuracy; the others are about gaps.
    held : array of bool of shape (L,), optional
        Whether a line is about a gap that need not shrink, only stay within a tolerance.
    """

    estimate: FloatArray
    se: FloatArray
    df: FloatArray
    loadings: FloatArray
    owner: IntArray
    accuracy: BoolArray
    held: BoolArray | None = None

    @property
    def shrinks(self) -> BoolArray:
        """Whether a line is about a gap that must shrink."""
        return ~self.accuracy if self.held is None else ~(self.accuracy | self.held)

    @property
    def correlation(self) -> FloatArray:
        """Correlation of the estimates, of shape (L, L)."""
        found: FloatArray = self.loadings @ self.loadings.T
        return found

    @property
    def n_candidates(self) -> int:
        """Number K."""
        return int(self.owner.max()) + 1

    @property
    def z(self) -> FloatArray:
        """Contrasts on the normal scale; minus infinity where nothing varies."""
        varies = self.se > 0
        t = self.estimate / np.where(varies, self.se, 1.0)
        # In the tail that is small: the other one rounds to 1.
        z = np.sign(t) * -special.ndtri(special.stdtr(self.df, -np.abs(t)))
        found: FloatArray = np.where(varies, z, -np.inf)
        return found

    @property
    def smallest_z(self) -> FloatArray:
        """Smallest z of each candidate."""
        return self.least(self.z)

    @property
    def p_values(self) -> FloatArray:
        """Unadjusted p-value of each candidate."""
        p: FloatArray = special.ndtr(-self.smallest_z)
        return p

    def least(self, values: FloatArray, *, accuracy: bool | None = None) -> FloatArray:
        """Return the smallest value of each candidate's lines, of one kind or of all."""
        used = np.ones(len(values), dtype=np.bool_) if accuracy is None else self.accuracy
        used = self.shrinks if accuracy is False else used
        found = np.full(self.n_candidates, np.inf)
        np.minimum.at(found, self.owner[used], values[used])
        return found

    def bounds(self, critical: float) -> FloatArray:
        """Return lower bounds of all lines at a critical value of the normal scale."""
        low: FloatArray = self.estimate - self.se * special.stdtrit(self.df, special.ndtr(critical))
        return low

    def of(self, lines: IntArray | BoolArray) -> "CandidateLines":
        """Return some of the lines; candidates keep their numbers."""
        place = np.flatnonzero(lines) if np.asarray(lines).dtype == np.bool_ else lines
        return CandidateLines(
            estimate=self.estimate[place],
            se=self.se[place],
            df=self.df[place],
            loadings=self.loadings[place],
            owner=self.owner[place],
            accuracy=self.accuracy[place],
            held=None if self.held is None else self.held[place],
        )


def candidate_lines(
    estimates: UtilityEstimates,
    *,
    directions: Sequence[Sequence[Direction]],
    question: ImprovementQuestion,
    margins: Margins,
) -> CandidateLines:
    """Return the requirements of every candidate in the estimates.

    Parameters
    ----------
    estimates : UtilityEstimates
        Of the status quo and K candidates, from `estimate_rules`.
    directions : sequence of sequences of (int, int)
        What the directions of the gaps may be: for each possibility, and each gap, the groups of
        highest and lowest utility of the status quo. With D possibilities a candidate is D
        hypotheses, numbered one after the other.
    question : ImprovementQuestion
        What counts as an improvement.
    margins : Margins
        How much.

    Returns
    -------
    CandidateLines
    """
    contrasts, constant, df, owner, accuracy, held = [], [], [], [], [], []
    rules = range(1, estimates.value.shape[1])
    for number, (k, ways) in enumerate(product(rules, directions)):
        for asked in requirements(
            estimates, directions=ways, question=question, margins=margins, candidate=k
        ):
            for line in asked.lines:
                contrast = line.base + asked.delta * line.slope
                contrasts.append(contrast)
                constant.append(line.offset - asked.delta * line.margin)
                df.append(max(int(estimates.support.ravel()[contrast != 0].min()) - 1, 1))
                owner.append(number)
                accuracy.append(asked.gap is None)
                held.append(asked.gap is not None and asked.gap.held)
    matrix = np.stack(contrasts)
    value, loadings = estimates.loadings(matrix)
    se = np.array([estimates.contrast(row)[1] for row in matrix])
    length = np.linalg.norm(loadings, axis=1, keepdims=True)
    varies = (se > 0)[:, None] & (length > 0)
    return CandidateLines(
        estimate=value + np.array(constant),
        se=se,
        df=np.array(df, dtype=np.float64),
        loadings=np.where(varies, loadings / np.where(varies, length, 1.0), 0.0),
        owner=np.array(owner, dtype=np.int64),
        accuracy=np.array(accuracy),
        held=np.array(held),
    )


def order_candidates(
    lines: CandidateLines, *, ratio: float = 1.0, prefer: Preference = "safe"
) -> IntArray:
    """Put candidates in the order in which they are to be tested on other rows.

    Parameters
    ----------
    lines : CandidateLines
        On rows that will not be tested on.
    ratio : float
        Rows to be tested on, over rows at hand: z is expected to grow with its root.
    prefer : {"safe", "certain"}
        "safe": first those whose every z is expected to reach 2.5, the largest reduction of the
        gap leading; then the others by their smallest z. "certain": all by their smallest z.

    Returns
    -------
    array of int
        Numbers of the candidates, the first to be tested first.
    """
    smallest = lines.smallest_z * np.sqrt(ratio)
    reduction = lines.least(lines.estimate, accuracy=False)
    safe = (smallest >= SAFE) if prefer == "safe" else np.zeros(len(smallest), dtype=np.bool_)
    rank = np.where(safe, reduction, smallest)
    return np.lexsort((-rank, ~safe)).astype(np.int64)


def fixed_sequence(p_values: AnyArray | Sequence[float]) -> FloatArray:
    """Return adjusted p-values of hypotheses tested in a fixed order: running maxima.

    Parameters
    ----------
    p_values : array of shape (K,)
        In the order of the test, which must not depend on them.

    Returns
    -------
    array of shape (K,)
        The first is not adjusted; what follows a failure fails.

    Examples
    --------
    >>> fixed_sequence([0.01, 0.2, 0.03]).tolist()
    [0.01, 0.2, 0.2]
    """
    return np.maximum.accumulate(check_finite("p_values", p_values, ndim=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDown:
    """Candidates tested together.

    Parameters
    ----------
    p_value : array of shape (K,)
        Adjusted: at or below the level, the candidate is shown to meet all requirements.
    p_fails : array of shape (K,)
        Adjusted: at or below the level, it is shown to fail one of them.
    critical : float
        Value that all z exceed by chance with the probability that remains.
    """

    p_value: FloatArray
    p_fails: FloatArray
    critical: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JointLaw:
    """Draws of the joint normal law of all contrasts.

    They are kept as draws of few independent variables: thousands of lines of nine groups are
    contrasts of some dozens of rates.

    Parameters
    ----------
    normals : array of shape (n_draws, r)
        Independent standard normal.
    loadings : array of shape (L, r)
        Of each line.
    owner : array of shape (L,)
        Candidate of each line, 0 to K - 1.
    """

    normals: FloatArray
    loadings: FloatArray
    owner: IntArray

    def largest(self, shift: FloatArray | float = 0.0) -> FloatArray:
        """Return the largest of each candidate's lines plus `shift`, of shape (n_draws, K)."""
        # Sorted by owner, lines of a candidate are a run that reduceat takes together.
        order = np.argsort(self.owner, kind="stable")
        starts = np.searchsorted(self.owner[order], np.arange(int(self.owner.max()) + 1))
        loadings, added = self.loadings[order].T, np.broadcast_to(shift, len(order))[order]
        found = np.empty((len(self.normals), len(starts)))
        rows = max(DRAWN_AT_ONCE // len(order), 1)
        for start in range(0, len(found), rows):
            drawn = self.normals[start : start + rows] @ loadings
            drawn += added
            np.maximum.reduceat(drawn, starts, axis=1, out=found[start : start + rows])
        return found

    def opposite(self) -> "JointLaw":
        """Return the law with every sign turned."""
        return replace(self, normals=-self.normals)

    def reach(self, tail: float) -> float:
        """Return what the largest of all lines exceeds with probability `tail`."""
        return float(np.quantile(self.largest().max(axis=1), 1.0 - tail))

    def reach_of_both_signs(self, tail: float) -> float:
        """Return what the largest of all lines, or of their opposites, exceeds with `tail`."""
        either = np.maximum(self.largest().max(axis=1), self.opposite().largest().max(axis=1))
        return float(np.quantile(either, 1.0 - tail))


def joint_law(lines: CandidateLines, *, n_draws: int = N_DRAWS, rng: Rng = None) -> JointLaw:
    """Draw the joint normal law of all contrasts.

    Parameters
    ----------
    lines : CandidateLines
        Whose loadings are used.
    n_draws : int
        Draws.
    rng : numpy.random.Generator, int or None
        Source of randomness.

    Returns
    -------
    JointLaw
        Which line comes first follows from numbers, not from names, places or last digits. Each
        line is what those before it tell of it, plus a draw of its own if that is not all.

    Examples
    --------
    Two lines that are each other's opposite need one draw:

    >>> lines = CandidateLines(
    ...     estimate=np.array([1.0, 2.0]), se=np.ones(2), df=np.full(2, 1e6),
    ...     loadings=np.array([[1.0], [-1.0]]), owner=np.array([0, 1]),
    ...     accuracy=np.array([True, True]))
    >>> joint_law(lines, n_draws=1000, rng=1).normals.shape
    (1000, 1)
    """
    draws = check_integer("n_draws", n_draws, low=999)
    order = _order_of_numbers(lines)
    loadings = np.zeros_like(lines.loadings)
    loadings[order], rank = _triangular(lines.loadings[order])
    return JointLaw(
        normals=check_rng(rng).standard_normal((draws, rank)),
        loadings=loadings[:, :rank],
        owner=lines.owner,
    )


def _order_of_numbers(lines: CandidateLines) -> IntArray:
    """Order lines by estimate and spread, then by how they depend on the others."""
    about_all = lines.loadings @ (lines.loadings.T @ np.stack([lines.estimate, lines.se], axis=1))
    keys = np.column_stack([about_all, lines.df, lines.se, lines.estimate])
    largest = np.abs(keys).max(axis=0)
    rounded = np.round(keys / np.where(largest > 0, largest, 1.0), DIGITS)
    return np.lexsort(rounded.T).astype(np.int64)


def _triangular(rows: FloatArray) -> tuple[FloatArray, int]:
    """Return rows with the same products, each in the span of one more axis at most; the rank.

    Gram and Schmidt in the order of the rows; those that add nothing need no axis.
    """
    found, axes = np.zeros_like(rows), np.zeros((rows.shape[1], rows.shape[1]))
    start, rank, ahead = 0, 0, 1
    while start < len(rows):
        part = rows[start : start + ahead]
        along = part @ axes[:rank].T
        rest = part - along @ axes[:rank]
        new = np.flatnonzero(np.linalg.norm(rest, axis=1) > NOTHING_NEW)
        if rank < len(axes) and len(new):
            # Twice is enough: rounding leaves a trace of the earlier axes after once.
            axis = rest[new[0]] - axes[:rank].T @ (axes[:rank] @ rest[new[0]])
            axes[rank] = axis / np.linalg.norm(axis)
            rank, ahead, along = rank + 1, 1, along[: new[0]]
        else:
            ahead = min(2 * ahead, LOOKED_AHEAD)
        found[start : start + len(along), : along.shape[1]] = along
        start += len(along)
    return found, rank


def step_down(
    lines: CandidateLines, *, alpha: float = 0.05, n_draws: int = N_DRAWS, rng: Rng = None
) -> StepDown:
    r"""Test all candidates together, and rule out those that fail.

    The null hypothesis of candidate k is that some requirement of it is not met. Which one is not
    known, so its law is bounded by that of the largest of its z; at each step the p-value is the
    smaller of that bound for all candidates left and the sum of their tails (Holm).

    Parameters
    ----------
    lines : CandidateLines
        Requirements of all candidates.
    alpha : float
        Level of `critical`.
    n_draws : int
        Draws of the joint law.
    rng : numpy.random.Generator, int or None
        Source of randomness.

    Returns
    -------
    StepDown

    Notes
    -----
    From ten candidates on they are screened ([3]_ of the module): joint upper bounds of all
    :math:`\mu_{kj}` at level .005 say by how much a candidate fails at least, which lowers its
    bound; .005 is added to every p-value. The charge depends on K alone.

    Examples
    --------
    Two independent candidates with one requirement each, at z = 3 and z = 0:

    >>> lines = CandidateLines(
    ...     estimate=np.array([3.0, 0.0]), se=np.ones(2), df=np.full(2, 1e6),
    ...     loadings=np.eye(2), owner=np.array([0, 1]), accuracy=np.array([True, True]))
    >>> step_down(lines, rng=1).p_value.round(3).tolist()
    [0.003, 0.494]
    """
    level = check_fraction("alpha", alpha)
    law = joint_law(lines, n_draws=n_draws, rng=rng)
    z, smallest, k = lines.z, lines.smallest_z, lines.n_candidates
    extra = np.zeros(k)
    charge = 0.0
    largest = law.largest()
    critical = float(np.quantile(largest.max(axis=1), 1.0 - level))
    if k >= SCREEN_FROM:
        charge = SCREEN
        upper = np.where(np.isfinite(z), z + law.opposite().reach(SCREEN), 0.0)
        extra = np.minimum(lines.least(upper), 0.0)
        screened = -law.opposite().largest(-upper)
        largest = np.where(extra < 0.0, screened, largest)
    order = np.argsort(-smallest, kind="stable")
    joint = _shares(largest, order, smallest)
    holm = [float(special.ndtr(extra[order[j:]] - smallest[order[j]]).sum()) for j in range(k)]
    p = np.ones(k)
    p[order] = np.maximum.accumulate(np.minimum(np.minimum(joint, holm) + charge, 1.0))
    return StepDown(p_value=p, p_fails=_ruled_out(lines, law), critical=critical)


def _ruled_out(lines: CandidateLines, law: JointLaw) -> FloatArray:
    """Step-down p-values of "this candidate meets every requirement"."""
    smallest = lines.smallest_z
    # A line without variation shows nothing, and rules nothing out.
    known = np.where(np.isfinite(smallest), smallest, 0.0)
    order = np.argsort(known, kind="stable")
    p = np.ones(len(known))
    p[order] = np.maximum.accumulate(_shares(law.opposite().largest(), order, -known))
    return p


def _shares(drawn: FloatArray, order: IntArray, seen: FloatArray) -> FloatArray:
    """Return how often the largest draw of those left reaches what was seen, step by step."""
    left = np.maximum.accumulate(drawn[:, order[::-1]], axis=1)[:, ::-1]
    found: FloatArray = (1.0 + (left >= seen[order]).sum(axis=0)) / (len(drawn) + 1.0)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierStep:
    """What a tolerated loss buys.

    Parameters
    ----------
    loss : float
        Loss of accuracy that is not exceeded.
    reduction : float
        Reduction of the gap that is reached at least.
    candidate : int
        Number of the candidate.
    """

    loss: float
    reduction: float
    candidate: int


def loss_frontier(
    lines: CandidateLines, *, alpha: float = 0.05, n_draws: int = N_DRAWS, rng: Rng = None
) -> tuple[FrontierStep, ...]:
    r"""Return the largest reduction of the gap that is shown at every tolerated loss.

    Parameters
    ----------
    lines : CandidateLines
        At margins of zero: gains of accuracy, and reductions of the gap.
    alpha : float
        The whole staircase is wrong anywhere with at most this probability.
    n_draws : int
        Draws of the joint law.
    rng : numpy.random.Generator, int or None
        Source of randomness.

    Returns
    -------
    tuple of FrontierStep
        By growing loss; each buys more than those before it. Simultaneous over losses, candidates
        and any later choice among them: all bounds hold together.

    Notes
    -----
    With joint lower bounds :math:`a_k` of the gain and :math:`b_k` of the reduction, a loss of at
    most l shows :math:`R(l) = \max\{0, \max_{k: a_k \ge -l} b_k\}`.
    """
    level = check_fraction("alpha", alpha)
    lower = lines.bounds(joint_law(lines, n_draws=n_draws, rng=rng).reach(level))
    loss = np.maximum(-lines.least(lower, accuracy=True), 0.0)
    reduction = lines.least(lower, accuracy=False)
    if lines.held is not None:
        within = lines.least(np.where(lines.held, lower, np.inf)) > 0.0
        reduction = np.where(within, reduction, -np.inf)
    steps = [FrontierStep(loss=0.0, reduction=0.0, candidate=-1)]
    for k in np.lexsort((-reduction, loss)):
        if reduction[k] > steps[-1].reduction:
            steps.append(
                FrontierStep(loss=float(loss[k]), reduction=float(reduction[k]), candidate=int(k))
            )
    return tuple(steps[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSearch:
    """What K independent draws of a generator say of further draws.

    Parameters
    ----------
    n_drawn : int
        K.
    not_ruled_out : int
        Candidates that are not shown to fail a requirement.
    success_at_most : float
        Share of further draws that would meet the requirement, at most.
    better_at_most : float
        Chance that a further draw reduces the gap by more than `gain`, at most.
    gain : float
        Largest joint upper bound of a reduction.
    further_gain_at_most : float
        What as many further draws as there were would gain at most, in expectation.
    record : float
        Chance that as many further draws set a new record.
    """

    n_drawn: int
    not_ruled_out: int
    success_at_most: float
    better_at_most: float
    gain: float
    further_gain_at_most: float
    record: float


def random_search_bounds(
    lines: CandidateLines,
    *,
    gap: float,
    further: int | None = None,
    alpha: float = 0.05,
    n_draws: int = N_DRAWS,
    rng: Rng = None,
) -> RandomSearch:
    r"""Say what further draws of the same generator could still find.

    Candidates must be independent draws of one generator (seeds, subsamples, settings) that was
    fixed before looking. A directed search is not.

    Parameters
    ----------
    lines : CandidateLines
        Requirements of all candidates.
    gap : float
        Gap of the status quo: no rule can reduce it by more.
    further : int, optional
        Further draws; by default as many as there were.
    alpha : float
        Chance that one of the statements is wrong.
    n_draws : int
        Draws of the joint law.
    rng : numpy.random.Generator, int or None
        Source of randomness.

    Returns
    -------
    RandomSearch

    References
    ----------
    .. [1] S. Wilks (1941), Determination of sample sizes for setting tolerance limits. Annals of
       Mathematical Statistics 12, 91-96. https://doi.org/10.1214/aoms/1177731788

    Examples
    --------
    Two hundred draws that are all ruled out: how common can an alternative be among them?

    >>> n = 200
    >>> lines = CandidateLines(
    ...     estimate=np.full(n, -9.0), se=np.ones(n), df=np.full(n, 1e6),
    ...     loadings=np.eye(n), owner=np.arange(n), accuracy=np.zeros(n, dtype=bool))
    >>> round(random_search_bounds(lines, gap=0.1, rng=1).success_at_most, 3)
    0.018
    """
    tail = check_fraction("alpha", alpha) / 2.0
    law = joint_law(lines, n_draws=n_draws, rng=rng)
    k = lines.n_candidates
    more = k if further is None else check_integer("further", further, low=1)
    open_ones = int((_ruled_out(lines, law) > tail).sum())
    share = (
        1.0 if open_ones == k else float(special.betaincinv(open_ones + 1, k - open_ones, 1 - tail))
    )
    reach = law.opposite().reach(tail)
    upper = lines.least(
        lines.estimate + lines.se * special.stdtrit(lines.df, special.ndtr(reach)), accuracy=False
    )
    gain = float(upper.max())
    rare = 1.0 - tail ** (1.0 / k)
    return RandomSearch(
        n_drawn=k,
        not_ruled_out=open_ones,
        success_at_most=share,
        better_at_most=rare,
        gain=gain,
        further_gain_at_most=max(gap - gain, 0.0) * (1.0 - (1.0 - rare) ** more),
        record=more / (k + more),
    )


BETA = 0.005
REACH = 8.0
GRID = 1601
HALVINGS = 50


def winner_gain(
    lines: CandidateLines,
    *,
    lower: float = -np.inf,
    ways: int = 1,
    n_draws: int = N_DRAWS,
    rng: Rng = None,
) -> float:
    """Return the reduction of the gap of the candidate with the largest z, without its luck.

    Where one comparison decides, it is too large as often as too small. Of several that are nearly
    tied (many groups, several criteria) the least is taken, which is too small more often.

    Parameters
    ----------
    lines : CandidateLines
        Requirements of all candidates, tested together.
    lower : float
        Joint lower bound of the same reduction: what is excluded is not told as the estimate.
    ways : int
        How many hypotheses in a row are one candidate, the gaps of the status quo pointing in
        different ways: they are no rivals of each other.
    n_draws : int
        Draws of the joint law.
    rng : numpy.random.Generator, int or None
        For the joint law.

    Returns
    -------
    float
        By how much the winner exceeds the requirement on the gap that it meets least.

    Examples
    --------
    One candidate of two is far ahead; it was not luck that made it win.

    >>> lines = CandidateLines(
    ...     estimate=np.array([9.0, 0.0]), se=np.ones(2), df=np.full(2, 1e9),
    ...     loadings=np.eye(2), owner=np.array([0, 1]), accuracy=np.zeros(2, dtype=bool))
    >>> round(winner_gain(lines, rng=1), 3)
    9.0
    """
    owner = int(np.argmax(lines.smallest_z))
    mine = np.flatnonzero((lines.owner == owner) & lines.shrinks)
    target = int(mine[np.argmin(lines.estimate[mine])])
    se, seen = float(lines.se[target]), float(lines.estimate[target])
    if se == 0.0:
        return seen
    shift = np.linspace(-REACH, REACH, GRID)
    won = _wins(lines, owner, target, shift, ways)
    gaps = lines.of(lines.shrinks)
    reach = joint_law(gaps, n_draws=n_draws, rng=rng).reach_of_both_signs(BETA)
    # In standard errors from what was seen; the chance of less falls as the truth rises.
    low, high = -reach, reach
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _below(shift, won, middle, reach) > 0.5 else (low, middle)
    return max(seen + se * (low + high) / 2.0, lower)


def _wins(
    lines: CandidateLines, owner: int, target: int, shift: FloatArray, ways: int
) -> FloatArray:
    """Whether the same candidate would be reported, the rest of the data being equal.

    That another of its lines would be the smallest is not held against it: the two lines of a gap
    that is nearly closed are nearly tied, and given which is smaller the estimate would exceed the
    gap itself.
    """
    # What is independent of the target stays; the others move with it by their correlation.
    slope = lines.loadings @ lines.loadings[target]
    varies = lines.se > 0
    z = np.where(varies, lines.estimate / np.where(varies, lines.se, 1.0), -np.inf)
    smallest = np.full((len(shift), lines.n_candidates), np.inf)
    for line, k in enumerate(lines.owner):
        smallest[:, k] = np.minimum(smallest[:, k], z[line] + slope[line] * shift)
    found: FloatArray = (smallest.argmax(axis=1) // ways == owner // ways).astype(np.float64)
    found[np.abs(shift).argmin()] = 1.0
    return found


def _below(shift: FloatArray, won: FloatArray, truth: float, reach: float) -> float:
    """Chance of an estimate up to the one seen, given that it won and lies within reach."""
    near = np.abs(shift - truth) <= reach
    mass = won * near * np.exp(-0.5 * (shift - truth) ** 2)
    total = float(mass.sum())
    if total == 0.0:
        return float(truth < 0.0)
    seen = int(np.abs(shift).argmin())
    return float(mass[:seen].sum() + 0.5 * mass[seen]) / total
