"""Sums of relative benefits by group: what every number about an entropy index is made of."""

from dataclasses import dataclass

import numpy as np

from equipoise._checks import check_finite
from equipoise._typing import AnyArray
from equipoise.exceptions import InvalidParameterError
from equipoise.moments import CellMoments, transform_quantities
from equipoise.stats.inequality.index import check_benefits, check_order, kernel, mean_benefit

__all__ = ["BenefitMoments"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenefitMoments:
    r"""Sums of :math:`(1, x, \tilde f_a(x))` by group, x = benefit / mean benefit.

    Parameters
    ----------
    order : float
        a.
    mean : float
        Mean benefit, in the unit of the data.
    moments : CellMoments
        One cell for each group, three quantities.
    """

    order: float
    mean: float
    moments: CellMoments

    @classmethod
    def from_rows(
        cls,
        benefits: object,
        group: object = None,
        *,
        order: float = 1.0,
        n_groups: int | None = None,
        cluster: AnyArray | None = None,
        weight: AnyArray | None = None,
        count: AnyArray | None = None,
    ) -> "BenefitMoments":
        """Sum rows in memory.

        Parameters
        ----------
        benefits : array of shape (n,)
            Benefit of each row.
        group : array of shape (n,), optional
            Group of each row, 0 to G - 1; by default one group.
        order : float, default 1
            Order of the index.
        n_groups : int, optional
            G.
        cluster, weight, count : array of shape (n,), optional
            Unit of each row; its sampling weight; how many identical rows it stands for.

        Returns
        -------
        BenefitMoments
        """
        a = check_order(order)
        b = check_benefits(benefits, a)
        code = np.zeros(len(b), dtype=np.int64) if group is None else np.asarray(group)
        ones = np.ones(len(b))
        omega = ones if weight is None else np.asarray(weight, dtype=np.float64)
        copies = ones if count is None else np.asarray(count, dtype=np.float64)
        mean = mean_benefit(b, omega * copies)
        x = b / mean
        moments = CellMoments.from_rows(
            np.stack([ones, x, kernel(x, a)], axis=1),
            code,
            n_cells=n_groups,
            cluster=cluster,
            weight=weight,
            count=count,
        )
        return cls(order=a, mean=mean, moments=moments)

    @classmethod
    def from_levels(
        cls, levels: object, indicators: CellMoments, *, order: float = 1.0
    ) -> "BenefitMoments":
        """Take counts of people by benefit level, such as the four outcomes of a 2 x 2 matrix.

        Parameters
        ----------
        levels : array of shape (L,)
            Benefit of each level.
        indicators : CellMoments
            One cell for each group; quantity l is the indicator of level l.
        order : float, default 1
            Order of the index.

        Returns
        -------
        BenefitMoments
        """
        a = check_order(order)
        size = indicators.total.sum(axis=0)
        b = check_finite("levels", levels, ndim=1)
        # A level that nobody has must not forbid an order, nor make the kernel infinite.
        b = np.where(size > 0.0, b, b[np.argmax(size)])
        check_benefits(b, a)
        mean = mean_benefit(b, size)
        x = b / mean
        change = np.stack([np.ones(len(x)), x, kernel(x, a)])
        return cls(order=a, mean=mean, moments=transform_quantities(indicators, change))

    @classmethod
    def from_powers(cls, powers: CellMoments, *, order: float = 1.0) -> "BenefitMoments":
        """Take sums of benefits and of their powers, as a database gives them in one scan.

        Parameters
        ----------
        powers : CellMoments
            One cell for each group; the quantities are 1, b and `b ** order` (order 0: `ln b`,
            order 1: `b ln b`).
        order : float, default 1
            Order of the index. Within 1e-4 of 0 or 1, but not equal, digits are lost.

        Returns
        -------
        BenefitMoments
        """
        a = check_order(order)
        whole = powers.total.sum(axis=0)
        mean = mean_benefit(whole[1:2] / whole[0], np.ones(1))
        if not np.isfinite(powers.product).all():
            raise InvalidParameterError(
                f"benefits to the power {a:g} overflow. Pass an `order` closer to zero, or benefits"
                " in a larger unit."
            )
        change = np.zeros((3, 3))
        change[0, 0], change[1, 1] = 1.0, 1.0 / mean
        if a == 0.0:
            change[2] = [np.log(mean) - 1.0, 1.0 / mean, -1.0]
        elif a == 1.0:
            change[2] = [1.0, -(1.0 + np.log(mean)) / mean, 1.0 / mean]
        else:
            change[2] = np.array([a - 1.0, -a / mean, mean**-a]) / (a * (a - 1.0))
        return cls(order=a, mean=mean, moments=transform_quantities(powers, change))
