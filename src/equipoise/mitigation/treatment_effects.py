"""Subtract from predicted effects what the audit data show to be wrong, and no more."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from equipoise._checks import check_finite, check_option, quoted
from equipoise._names import GroupName, joined_labels
from equipoise._typing import (
    AnyArray,
    Collapse,
    CorrectionChoice,
    EffectMeasure,
    FloatArray,
    Unseen,
)
from equipoise.exceptions import DataError, InvalidParameterError
from equipoise.stats.effects.bias import error_tests
from equipoise.stats.effects.collapse import resolve_collapse
from equipoise.stats.effects.corrections import default_correction, effect_correction
from equipoise.stats.effects.errors import UNTESTED, effect_moments, group_errors

__all__ = ["EffectDebiaser"]


class EffectDebiaser(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Correct predicted treatment effects by group.

    `fit` estimates the prediction error of every group on data of a randomised experiment that the
    model was not trained on, and how much of it to trust; `transform` subtracts that amount from
    new predictions: :math:`f(x) - c_g`, Eq. (33) of [1]_ with :math:`c_g = \gamma_g \hat B_g`.

    Parameters
    ----------
    correction : str, default "auto"
        The rule, as in `equipoise.stats.effects.corrections.effect_correction`; "auto" is "eb"
        (empirical Bayes toward the common error) for five groups or more and "bayes_zero" (toward
        zero, with a prior for how much groups differ) for fewer.
    measure : {"relative", "difference"}
        What the predictions predict.
    collapse : str, default "auto"
        How predictions are averaged in a group; see `equipoise.stats.effects.errors.group_errors`.
    alpha : float, default 0.05
        Level of "mean_if_detected", whose tests are those of the audit.
    unseen : {"raise", "common"}
        What to do with a group that `fit` did not see: an error, or the common correction.

    Attributes
    ----------
    correction_ : str
        The rule used.
    groups_ : array of shape (G,)
        Groups seen by `fit`; several columns are written ``race=Black & sex=Female``, as the audit
        does.
    amount_ : array of shape (G,)
        What is subtracted; groups that could not be tested get `common_`.
    error_, error_se_ : dict
        Estimated error and standard error of each tested group.
    untested_ : dict
        Groups without an estimate, and why.
    common_ : float
        Amount for an unseen group: the prior mean of "eb" and "npmle", else 0.
    prior_mean_, prior_sd_ : float or None
        Spread of the true errors between groups, for the empirical Bayes rules.

    Notes
    -----
    *Deviations from* [1]_: the default is not one of the paper's rules; on the scale of single
    groups they are worse than no correction when errors are small.

    References
    ----------
    .. [1] J. Persson, J. Bakker, D. Bohle, S. Feuerriegel and F. von Wangenheim (2026), Detecting
       and mitigating group bias in heterogeneous treatment effects (earlier: Detecting and
       mitigating algorithmic bias in treatment effect estimation). doi:10.48550/arXiv.2602.20383

    Examples
    --------
    A model says +20% for everyone; in one of six regions the offer does nothing.

    >>> import numpy as np
    >>> from equipoise.mitigation import EffectDebiaser
    >>> rng = np.random.default_rng(0)
    >>> region, treated = rng.integers(6, size=300_000), rng.integers(2, size=300_000)
    >>> effect = np.where(region == 0, 1.0, 1.2)
    >>> bought = rng.random(300_000) < 0.1 * np.where(treated == 1, effect, 1.0)
    >>> debiaser = EffectDebiaser().fit(
    ...     np.full(300_000, 1.2), bought, treatment=treated, group=region)
    >>> debiaser.transform(np.full(3, 1.2), group=[0, 1, 2]).round(2).tolist()
    [1.03, 1.22, 1.16]

    Predictions for that region come down to about 1; the others move by less than their noise.
    """

    correction_: str
    groups_: AnyArray
    amount_: FloatArray
    error_: dict[Any, float]
    error_se_: dict[Any, float]
    untested_: dict[Any, str]
    common_: float
    prior_mean_: float | None
    prior_sd_: float | None

    def __init__(
        self,
        *,
        correction: CorrectionChoice = "auto",
        measure: EffectMeasure = "relative",
        collapse: Collapse = "auto",
        alpha: float = 0.05,
        unseen: Unseen = "raise",
    ) -> None:
        self.correction = correction
        self.measure = measure
        self.collapse = collapse
        self.alpha = alpha
        self.unseen = unseen

    def fit(
        self,
        X: AnyArray,
        y: AnyArray,
        *,
        treatment: AnyArray,
        group: AnyArray | None = None,
        control_pred: AnyArray | None = None,
        treated_pred: AnyArray | None = None,
        cluster: AnyArray | None = None,
        sample_weight: AnyArray | None = None,
    ) -> Self:
        """Estimate the errors and the corrections.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1)
            Predicted effects.
        y : array of shape (n,)
            Outcomes.
        treatment : array of shape (n,)
            Arm, 0 or 1, assigned at random.
        group : array of shape (n,) or (n, k), or frame, optional
            Group of each row, in one column or several; without it all rows are one group.
        control_pred, treated_pred : array of shape (n,), optional
            Predicted outcomes without and with treatment, for "aipw", "hajek" and "weighted".
        cluster : array of shape (n,), optional
            Unit of randomisation, or unit that rows repeat.
        sample_weight : array of shape (n,), optional
            Sampling weights.

        Returns
        -------
        EffectDebiaser
        """
        f = _column(X)
        labels = np.zeros(len(f), dtype=np.int64) if group is None else _written(group, len(f))
        groups, code = np.unique(labels, return_inverse=True)
        collapse = resolve_collapse(
            self.measure,
            self.collapse,
            control_pred=control_pred is not None,
            treated_pred=treated_pred is not None,
        )
        moments = effect_moments(
            y,
            treatment,
            f,
            code,
            measure=self.measure,
            collapse=self.collapse,
            control_pred=control_pred,
            treated_pred=treated_pred,
            cluster=cluster,
            weight=sample_weight,
        )
        binary = bool(np.isin(np.asarray(y), (0, 1)).all())
        errors = group_errors(moments, measure=self.measure, collapse=collapse, binary=binary)
        if not len(errors.tested):
            raise DataError(
                "no group has both arms and, for relative effects, control positives; nothing can"
                " be corrected."
            )
        tests = error_tests(errors)
        self.fit_errors(groups[errors.tested], tests.estimate, tests.se, p_value=tests.p_value)
        amount = np.full(len(groups), self.common_)
        amount[errors.tested] = self.amount_
        self.groups_, self.amount_ = groups, amount
        self.untested_ = {groups[g].item(): UNTESTED[why] for g, why in errors.untested.items()}
        self.n_features_in_ = 1
        return self

    def fit_errors(
        self,
        group: AnyArray,
        error: FloatArray,
        se: FloatArray,
        *,
        p_value: FloatArray | None = None,
    ) -> Self:
        """Choose the corrections from errors that are estimated already, by an audit for instance.

        Parameters
        ----------
        group : array of shape (G,)
            Labels, plain or as an audit prints them: after ``"race=black"`` both that and
            ``"black"`` are understood.
        error, se : array of shape (G,)
            Prediction errors and their standard errors.
        p_value : array of shape (G,), optional
            Of the tests that errors are zero, for "mean_if_detected"; `details["B_p_value"]` of an
            audit.

        Returns
        -------
        EffectDebiaser

        Examples
        --------
        >>> debiaser = EffectDebiaser(correction="mean_if_detected")
        >>> debiaser = debiaser.fit_errors(["a", "b"], [0.3, 0.1], [0.1, 0.1])
        >>> debiaser.transform([1.5, 1.5], group=["a", "b"]).tolist()
        [1.2, 1.5]
        """
        check_option("correction", self.correction, CorrectionChoice)
        check_option("unseen", self.unseen, Unseen)
        b = check_finite("error", error, ndim=1)
        rule = self.correction
        if rule == "auto":
            rule = default_correction(len(b))
        found = effect_correction(
            b, check_finite("se", se), method=rule, alpha=self.alpha, p_value=p_value
        )
        self.correction_ = found.method
        self.groups_ = np.asarray(group)
        self.amount_ = found.amount
        self.common_ = found.common
        self.prior_mean_ = None if found.prior is None else found.prior.mean
        self.prior_sd_ = None if found.prior is None else found.prior.sd
        self.error_ = dict(zip(self.groups_.tolist(), b.tolist(), strict=True))
        self.error_se_ = dict(zip(self.groups_.tolist(), np.asarray(se).tolist(), strict=True))
        self.untested_ = {}
        return self

    def transform(self, X: AnyArray, *, group: AnyArray | None = None) -> FloatArray:
        """Return new predictions minus the correction of their group.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1)
            Predicted effects.
        group : array of shape (n,) or (n, k), or frame, optional
            Group of each row; needed if `fit` had groups.

        Returns
        -------
        array of the shape of X
        """
        check_is_fitted(self, "amount_")
        f = _column(X)
        if group is None:
            if len(self.groups_) > 1:
                raise InvalidParameterError(
                    f"`group` is needed: the corrections differ between {len(self.groups_)} groups."
                )
            corrected = f - self.amount_[0]
        else:
            corrected = f - self._amounts(_written(group, len(f)))
        return np.asarray(corrected.reshape(np.shape(X)))

    def fit_transform(self, X: AnyArray, y: AnyArray, **fit_params: Any) -> FloatArray:
        """Fit, then correct the same predictions.

        Parameters
        ----------
        X, y, **fit_params
            As in `fit`.

        Returns
        -------
        array of the shape of X
        """
        return self.fit(X, y, **fit_params).transform(X, group=fit_params.get("group"))

    def _amounts(self, labels: AnyArray) -> FloatArray:
        known = _forms(self.groups_.tolist())
        distinct, code = np.unique(labels, return_inverse=True)
        place = np.array([known.get(str(label), -1) for label in distinct.tolist()])
        seen = place >= 0
        if self.unseen == "raise" and not seen.all():
            missing = distinct[~seen]
            shown = quoted(missing[:5]) + (", ..." if len(missing) > 5 else "")
            raise DataError(
                f"{len(missing)} groups were not in the data of `fit`: {shown}. Fit on data that"
                ' have them, or pass `unseen="common"` for the common correction.'
            )
        amount = np.where(seen, self.amount_[np.maximum(place, 0)], self.common_)
        return np.asarray(amount[code])


def _written(group: Any, n: int) -> AnyArray:
    """Return one label for each row; several columns are written as an audit writes them."""
    columns = getattr(group, "columns", None)
    if isinstance(group, Mapping):
        columns = list(group)
    labels = np.asarray(group) if columns is None else None
    if labels is not None and labels.ndim < 2:
        if labels.shape != (n,):
            raise InvalidParameterError(
                f"`group` must have one label for each of {n} rows; got shape {labels.shape}."
            )
        return labels
    if labels is not None:
        names, parts = None, list(labels.T)
    else:
        names = [str(name) for name in columns]  # type: ignore[union-attr]
        parts = [np.asarray(group[name]) for name in columns]  # type: ignore[union-attr]
    if any(len(part) != n for part in parts):
        raise InvalidParameterError(
            f"`group` must have one label for each of {n} rows; got {len(parts[0])}."
        )
    rows = zip(*[part.tolist() for part in parts], strict=True)
    if names is None:
        return np.array([joined_labels(map(str, row)) for row in rows])
    return np.array([str(GroupName(zip(names, map(str, row), strict=True))) for row in rows])


def _forms(groups: list[Any]) -> dict[str, int]:
    """Return every way to write a group: as it is, and without the names of the columns.

    A short form that two groups share means neither.
    """
    whole = {str(group): k for k, group in enumerate(groups)}
    short: dict[str, int] = {}
    for k, group in enumerate(groups):
        parts = str(group).split(" & ")
        if all("=" in part for part in parts):
            form = " & ".join(part.split("=", 1)[1] for part in parts)
            short[form] = -1 if form in short else k
    return {form: k for form, k in short.items() if k >= 0} | whole


def _column(X: AnyArray) -> FloatArray:
    values = check_finite("X", X)
    if values.ndim == 2 and values.shape[1] == 1:
        return np.asarray(values[:, 0])
    if values.ndim != 1:
        raise InvalidParameterError(
            f"`X` must be predicted effects, one for each row; got shape {values.shape}."
        )
    return values
