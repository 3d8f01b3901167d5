r"""A group beside its target, each a mean over few independent units.

The target may be known, come from another sample, be everyone, the rest, or a reference that
shares some rows with the group. In every case group and target are averages of at most three sides
with rows in common with none, and the disparity is a contrast of their means; see `small_samples`.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from equipoise._typing import AnyArray, BoolArray, FloatArray, IntArray, Scale
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments
from equipoise.stats.disparity.references import Target, target_mask
from equipoise.stats.inversion import invert
from equipoise.stats.small_samples import (
    Contrast,
    ContrastLaw,
    Links,
    Shape,
    ShapeRule,
    combine,
    contrast_law,
    pooled_shape,
    quotient,
    side_contrast,
)
from equipoise.stats.unit_sums import CrossSums, UnitSums

__all__ = ["MeanComparison", "UnitCounts"]

# A shape pooled over fewer units than so many times those of the group is the group's own.
_LONE = 1.5
# Part of the pooled variance below which a side has none, but for rounding.
_ALIKE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCounts:
    """Independent units of m groups and their targets.

    Parameters
    ----------
    n, n_eff : array of shape (m,)
        Units of the group, and effective ones.
    n_target, n_eff_target : array of shape (m,)
        The same of what it is compared with; infinite for a number.
    df : array of shape (m,)
        Degrees of freedom of the comparison.
    shape : array of str
        How skewness was taken out: "checked", "borrowed" or "none".
    borrowed : array of shape (m,)
        Units that the shape is pooled over.
    skewness : array of shape (m,)
        Largest absolute skewness of unit means on a side, its own.
    n_alike : array of shape (m,)
        Effective units of the smallest side whose values are all alike; infinite if they vary.
    """

    n: FloatArray
    n_eff: FloatArray
    n_target: FloatArray
    n_eff_target: FloatArray
    df: FloatArray
    shape: AnyArray
    borrowed: FloatArray
    skewness: FloatArray
    n_alike: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanComparison:
    r"""A group and its target, each an average of sides.

    The mean of the group is :math:`\sum a_s \mu_s` and that of the target :math:`\sum b_s \mu_s`,
    plus `constant` for a target that is known or estimated elsewhere.

    Parameters
    ----------
    sides : Contrast
        Means of the sides, arrays of shape (..., S).
    group, target : array of shape (..., S)
        a and b.
    constant : Contrast
        Known or external part of the target.
    links : Links, optional
        When units have rows in several sides.
    scale : {"difference", "ratio"}
        How group and target are compared.
    shape : {"checked", "borrowed", "none"}
        As in `contrast_law`.
    borrowed : array
        Units that the shape is pooled over.
    lone : array of bool
        Where these are hardly more than the group itself.
    """

    sides: Contrast
    group: FloatArray
    target: FloatArray
    constant: Contrast
    links: Links | None = None
    scale: Scale = "difference"
    shape: ShapeRule = "checked"
    borrowed: FloatArray = field(default_factory=lambda: np.asarray(np.inf))
    lone: BoolArray = field(default_factory=lambda: np.zeros((), dtype=np.bool_))

    @classmethod
    def with_known(
        cls,
        group: UnitSums,
        shape: Shape,
        value: AnyArray | float,
        *,
        se: AnyArray | float = 0.0,
        scale: Scale = "difference",
        rule: ShapeRule = "checked",
    ) -> "MeanComparison":
        """Groups against a number, known or with the standard error of another sample.

        Parameters
        ----------
        group : UnitSums
            Sums of each group.
        shape : Shape
            Pooled over the groups.
        value, se : float
            The number and its standard error.
        scale, rule : str
            As in the class.

        Returns
        -------
        MeanComparison
        """
        sides = side_contrast(group.expand(-1), shape.expand())
        one = np.ones_like(sides.variance)
        return cls(
            sides=sides,
            group=one,
            target=0.0 * one,
            constant=Contrast.constant(value, se=se),
            scale=scale,
            shape=rule,
            borrowed=shape.n,
            lone=np.asarray(shape.n < _LONE * group.n),
        )

    @classmethod
    def with_sides(
        cls,
        group_only: UnitSums,
        both: UnitSums,
        target_only: UnitSums,
        shape: Shape,
        *,
        cross: CrossSums | None = None,
        scale: Scale = "difference",
        rule: ShapeRule = "checked",
    ) -> "MeanComparison":
        """Groups against a target from the same rows, whatever the overlap.

        Parameters
        ----------
        group_only, both, target_only : UnitSums
            Rows of the group alone, of both, and of the target alone. The population is a target
            with an empty first side; the rest or a disjoint reference have an empty second one.
        shape : Shape
            Pooled over the groups.
        cross : CrossSums, optional
            Of the three sides, arrays of shape (..., 3, 3), when units span them.
        scale, rule : str
            As in the class.

        Returns
        -------
        MeanComparison
        """
        sums = UnitSums.stack([group_only, both, target_only])
        size = np.nan_to_num(sums.w)
        first, second = size.copy(), size.copy()
        first[..., 2] = 0.0
        second[..., 0] = 0.0
        return cls(
            sides=side_contrast(sums, shape.expand()),
            group=quotient(first, first.sum(axis=-1, keepdims=True)),
            target=quotient(second, second.sum(axis=-1, keepdims=True)),
            constant=Contrast.constant(0.0),
            links=None if cross is None else Links.between(sums, cross),
            scale=scale,
            shape=rule,
            borrowed=shape.n,
        )

    @classmethod
    def with_rest(
        cls,
        group: UnitSums,
        rest: UnitSums,
        shape: Shape,
        *,
        population: bool = False,
        cross: CrossSums | None = None,
        scale: Scale = "difference",
        rule: ShapeRule = "checked",
    ) -> "MeanComparison":
        """Groups against everyone else, a disjoint reference, or everyone.

        Parameters
        ----------
        group, rest : UnitSums
            Sums of each group and of the rows outside it.
        shape : Shape
            Pooled over the groups.
        population : bool, default False
            The target is group and rest together.
        cross : CrossSums, optional
            Of the two sides, arrays of shape (..., 2, 2), when units span them.
        scale, rule : str
            As in the class.

        Returns
        -------
        MeanComparison
        """
        sums = UnitSums.stack([group, rest])
        size = np.nan_to_num(sums.w)
        alone = np.stack([np.ones_like(size[..., 0]), np.zeros_like(size[..., 0])], axis=-1)
        share = quotient(size, size.sum(axis=-1, keepdims=True))
        return cls(
            sides=side_contrast(sums, shape.expand()),
            group=alone,
            target=share if population else 1.0 - alone,
            constant=Contrast.constant(0.0),
            links=None if cross is None else Links.between(sums, cross),
            scale=scale,
            shape=rule,
            borrowed=shape.n,
        )

    @classmethod
    def of_cells(
        cls,
        moments: CellMoments,
        membership: Any,
        target: Target,
        *,
        scale: Scale = "difference",
        rule: ShapeRule = "checked",
    ) -> "MeanComparison":
        """Groups of cells against any target.

        Parameters
        ----------
        moments : CellMoments
            Sums of (u, w) in K cells, of higher order too unless they are counts. Where units have
            rows in several cells, `CellMoments.shared` must hold the groups, in their order.
        membership : boolean matrix of shape (K, m)
            Cells that make up each group.
        target : Target
            What groups are compared with.
        scale, rule : str
            As in the class.

        Returns
        -------
        MeanComparison
            The shape is pooled over the groups.
        """
        if moments.cross is None:
            only, both, other = _regions(moments, membership, target)
            cross = None
        else:
            only, both, other, cross = _shared_regions(moments, membership, target)
        group = only + both
        shape = pooled_shape(group)
        if not target.estimated:
            se = target.se if target.kind == "external" else 0.0
            return cls.with_known(group, shape, target.value, se=se, scale=scale, rule=rule)
        return cls.with_sides(only, both, other, shape, cross=cross, scale=scale, rule=rule)

    @property
    def group_mean(self) -> FloatArray:
        """Mean of each group."""
        return (self.sides * self.group).sum().estimate

    @property
    def target_mean(self) -> FloatArray:
        """Mean of each target."""
        return (self.sides * self.target).sum().estimate + self.constant.estimate

    @property
    def estimate(self) -> FloatArray:
        """Group minus target, or group over target."""
        if self.scale == "ratio":
            with np.errstate(divide="ignore", invalid="ignore"):
                return self.group_mean / self.target_mean
        return self.group_mean - self.target_mean

    @property
    def status(self) -> AnyArray:
        """As in `ContrastLaw`; "no-ratio" where group or target are not positive."""
        found = self.law(1.0 if self.scale == "ratio" else 0.0).status
        if self.scale == "difference":
            return found
        positive = (self.group_mean >= 0) & (self.target_mean > 0)
        return np.where((found == "ok") & ~positive, "no-ratio", found)

    def law(self, null: AnyArray | float) -> ContrastLaw:
        """Law of the contrast that is zero when the disparity is `null`.

        Parameters
        ----------
        null : float or array
            Difference or ratio.

        Returns
        -------
        ContrastLaw
        """
        value = np.asarray(null, np.float64)
        if self.scale == "ratio":
            total = combine(self.sides, self.group - value[..., None] * self.target, self.links)
            total = total - self.constant * value
            return contrast_law(total, shape=self.shape, plausible=self._plausible)
        total = combine(self.sides, self.group - self.target, self.links)
        total = total - self.constant
        found = contrast_law(total, shape=self.shape, plausible=self._plausible)
        return replace(found, estimate=found.estimate - value)

    @property
    def _plausible(self) -> FloatArray:
        """No skewness at all where the shape is that of the group itself."""
        return np.where(self.lone, 0.0, np.nan)

    def root(self, null: AnyArray | float) -> FloatArray:
        """Test statistic of a hypothesised disparity, on the normal scale.

        Parameters
        ----------
        null : float or array
            Difference or ratio.

        Returns
        -------
        array
            NaN where nothing is tested.
        """
        return np.where(self.status == "ok", self.law(null).root(), np.nan)

    def interval(self, critical: float) -> tuple[FloatArray, FloatArray]:
        """Disparities that are not rejected.

        Parameters
        ----------
        critical : float
            Largest absolute root that is not rejected.

        Returns
        -------
        low, high : array
            Infinite where nothing is rejected on that side; a ratio is never below 0.
        """
        if self.scale == "difference":
            return self.law(0.0).interval(critical)
        tested = self.status == "ok"
        estimate = np.where(tested, self.estimate, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            se = self.law(estimate).se / np.abs(self.target_mean)

        def root(null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG001
            return self.take(which).law(null).root()

        low, high = np.zeros(estimate.shape), np.full(estimate.shape, np.inf)
        return invert(root, estimate, se, critical=critical, low=low, high=high)

    @property
    def tested(self) -> BoolArray:
        """True where there is a test."""
        return np.asarray(self.status == "ok")

    @property
    def method(self) -> AnyArray:
        """Name of the law."""
        return np.full(len(self.group), "few_units")

    def signed_root(self, null: FloatArray, which: IntArray, tail: int) -> FloatArray:  # noqa: ARG002
        """The root as `equipoise.stats.inversion` has it; both tails have the same."""
        return self.take(which).root(null)

    def units(self) -> "UnitCounts":
        """Independent units on both sides, and what is known of the law."""
        natural = self.law(1.0 if self.scale == "ratio" else 0.0)
        used, other = self.group != 0, self.target * (self.group == 0) != 0
        # Third cumulant over that of the variance, of a mean; times the root of n, of a unit.
        lone = np.abs(quotient(self.sides.own_third, self.sides.own_variance**1.5))
        skewness = lone * np.sqrt(self.sides.n_eff)
        alike = self.sides.own_variance <= _ALIKE * self.sides.shape_variance

        def least(values: FloatArray, which: BoolArray) -> FloatArray:
            # Weights that are alike give whole numbers up to rounding.
            smallest = np.where(which, values, np.inf).min(axis=-1, initial=np.inf)
            return np.asarray(np.round(smallest, 9))

        return UnitCounts(
            n=least(self.sides.n_units, used),
            n_eff=least(self.sides.n_eff, used),
            n_target=least(self.sides.n_units, other),
            n_eff_target=least(self.sides.n_eff, other),
            df=natural.df,
            shape=natural.shape,
            borrowed=np.broadcast_to(self.borrowed, natural.df.shape),
            skewness=np.where(used | other, skewness, 0.0).max(axis=-1, initial=0.0),
            n_alike=least(self.sides.n_eff, (used | other) & alike),
        )

    def take(self, index: Any) -> "MeanComparison":
        """Some of the groups."""
        constant = self.constant
        links = self.links
        return replace(
            self,
            sides=self.sides[index],
            group=self.group[index],
            target=self.target[index],
            lone=self.lone[index] if self.lone.ndim else self.lone,
            constant=constant[index] if constant.estimate.ndim else constant,
            links=None
            if links is None
            else Links(
                scatter=links.scatter[index],
                satterthwaite=links.satterthwaite[index],
            ),
        )


def _regions(
    moments: CellMoments, membership: Any, target: Target
) -> tuple[UnitSums, UnitSums, UnitSums]:
    """Sums of the group alone, of both and of the target alone; no unit is in two of them."""
    sums = UnitSums.of_cells(moments).monomials
    groups = sparse.csc_array(membership, dtype=np.float64).T.tocsr()
    group = groups @ sums
    if target.kind == "rest":
        both, everyone = np.zeros_like(group), sums.sum(axis=0)
        return _present(group), _present(both), _present(everyone - group)
    mask = target_mask(target, moments)
    both = groups @ (sums * mask[:, None])
    return _present(group - both), _present(both), _present(mask @ sums - both)


def _shared_regions(
    moments: CellMoments, membership: Any, target: Target
) -> tuple[UnitSums, UnitSums, UnitSums, CrossSums]:
    """The same where units have rows in several cells."""
    shared, m = moments.shared, membership.shape[1]
    if shared is None or len(shared.side) < m:
        raise InvalidParameterError(
            "clusters with rows in several groups need the sums of every group and what is outside"
            " it (`CellMoments.shared`)."
        )
    side, link = shared.side[:m].copy(), shared.link[:m]
    side[:, 2] += shared.everyone - shared.touching[:m]
    if target.kind == "rest":
        side[:, 0], side[:, 1] = side[:, 1], 0.0
        link = np.stack([np.zeros_like(link[:, 0]), link[:, 2], np.zeros_like(link[:, 0])], axis=1)
    only, both, other = (_present(side[:, k]) for k in range(3))
    return only, both, other, CrossSums.of_links(link)


def _present(sums: FloatArray) -> UnitSums:
    """Sums of sides; those without a unit are zero, not the rounding of a difference."""
    return UnitSums.of_monomials(np.where(sums[:, :1] > 0.5, sums, 0.0))
