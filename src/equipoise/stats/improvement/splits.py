r"""One p-value from several random splits of the same data.

The splits share rows, so their p-values depend on each other in an unknown way; only rules that are
valid whatever the dependence (or under exchangeability) are offered. The smallest p-value, Fisher's
rule, cross-fitting with summed statistics and, for more than five splits, Cauchy's rule are not.
"""

import numpy as np

from equipoise._checks import check_finite, check_option
from equipoise._typing import AnyArray, FloatArray, SplitRule
from equipoise.exceptions import InvalidParameterError

__all__ = ["central_p_value", "combine_splits"]


def combine_splits(p_values: AnyArray, rule: SplitRule = "median") -> FloatArray:
    r"""Return the p-value of all splits together.

    The null hypothesis is the one that every split tests.

    Parameters
    ----------
    p_values : array of shape (K, ...)
        One p-value for each split, in the order in which the splits were drawn.
    rule : {"median", "exch_median", "bonferroni"}, default "median"
        "median": twice the median (Corollary 1 of [1]_), the lower one for even K.
        "exch_median": the smallest, over the first k splits, of twice their median ([2]_); more
        powerful, but it depends on the order of the splits.
        "bonferroni": K times the smallest.

    Returns
    -------
    array of shape (...)
        At most 1. A single split keeps its p-value.

    Notes
    -----
    Twice the median is valid by Markov's inequality: half of the p-values at or below
    :math:`\alpha/2` has probability at most :math:`\alpha`. [1]_ compares the median with
    :math:`\alpha/2`; this returns twice the median, to be compared with :math:`\alpha`.

    References
    ----------
    .. [1] Auerbach, Liang, Tabord-Meehan and Okumura (2024). Testing the fairness-improvability of
       algorithms.
    .. [2] Gasparin, Wang and Ramdas (2024). Combining exchangeable p-values. arXiv 2404.03484.

    Examples
    --------
    Five splits of the linear candidate in Table 1 of [1]_; what may be reported?

    >>> splits = [0.0491, 0.0520, 0.0196, 0.0312, 0.0159]
    >>> combine_splits(splits).round(4).item()
    0.0624

    A p-value of 0.062: not below 5%, although three single splits are.
    """
    central = central_p_value(p_values, rule)
    n_splits = len(np.asarray(p_values))
    if n_splits == 1:
        return central
    factor = n_splits if rule == "bonferroni" else 2
    return np.asarray(np.minimum(factor * central, 1.0))


def central_p_value(p_values: AnyArray, rule: SplitRule = "median") -> FloatArray:
    """Return the p-value that a rule multiplies: the lower median, or the smallest.

    Parameters
    ----------
    p_values, rule
        As in `combine_splits`.

    Returns
    -------
    array of shape (...)
        Never above what `combine_splits` returns.

    Examples
    --------
    >>> central_p_value([0.0491, 0.0520, 0.0196, 0.0312, 0.0159]).item()
    0.0312
    """
    p = check_finite("p_values", p_values)
    if p.ndim == 0 or not len(p) or (p < 0).any() or (p > 1).any():
        raise InvalidParameterError(
            f"`p_values` must hold one p-value in [0, 1] for each split; got {p_values!r}."
        )
    check_option("rule", rule, SplitRule)
    if rule == "bonferroni":
        return np.asarray(p.min(axis=0))
    if rule == "median":
        return _lower_median(p)
    return np.asarray(np.min([_lower_median(p[:k]) for k in range(1, len(p) + 1)], axis=0))


def _lower_median(p: FloatArray) -> FloatArray:
    return np.asarray(np.sort(p, axis=0)[(len(p) + 1) // 2 - 1])
