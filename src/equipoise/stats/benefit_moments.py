"""Sums of relative benefits by group: what every number about an entropy index is made of."""

from dataclasses import dataclass

import numpy as np

from equipoise._typing import AnyArray
from equipoise.exceptions import InvalidParameterError
from equipoise.stats.entropy import check_benefits, check_order, kernel, mean_benefit
from equipoise.stats.moments import CellMoments, CrossMoments, merge_cells, transform_quantities

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
        cls, levels: object, group: AnyArray, cells: CellMoments, *, order: float = 1.0
    ) -> "BenefitMoments":
        """Sum cells whose rows all have the same benefit, such as the four cells of a 2 x 2 matrix.

        Parameters
        ----------
        levels : array of shape (K,)
            Benefit of each cell.
        group : array of shape (K,)
            Group of each cell, 0 to G - 1.
        cells : CellMoments
            K cells with the single quantity 1: counts, weights and their squares.
        order : float, default 1
            Order of the index.

        Returns
        -------
        BenefitMoments
        """
        a = check_order(order)
        occupied = cells.n > 0
        b = np.asarray(levels, dtype=np.float64)
        b = np.where(occupied, b, b[occupied][0] if occupied.any() else b)
        check_benefits(b, a)
        mean = mean_benefit(b, cells.total[:, 0])
        x = b / mean
        shape = np.stack([np.ones(len(x)), x, kernel(x, a)], axis=1)
        cross = cells.cross
        if cross is not None:
            pair = shape[cross.first][:, :, None] * shape[cross.second][:, None, :]
            cross = CrossMoments(
                first=cross.first, second=cross.second, product=cross.product * pair
            )
        fine = CellMoments(
            n=cells.n,
            total=cells.total * shape,
            product=cells.product * shape[:, :, None] * shape[:, None, :],
            n_units=cells.n_units,
            cross=cross,
        )
        return cls(order=a, mean=mean, moments=merge_cells(fine, group))

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
