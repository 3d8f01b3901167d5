"""The roles of a table become words, and say which values are better for people."""

import pytest

import equipoise as eq
from equipoise.audits.words import words_of
from equipoise.data.metrics import METRICS
from equipoise.data.roles import Roles


def told(metric, **roles):
    return words_of(Roles(**roles), [metric]).metrics[metric]


DECIDED = {"y_pred": "high_risk", "y_true": "recid"}


@pytest.mark.parametrize(
    ("metric", "good_decision", "bad_decision"),
    [
        ("selection_rate", "higher", "lower"),
        ("tpr", "higher", "lower"),
        ("fpr", "higher", "lower"),
        ("tnr", "lower", "higher"),
        ("fnr", "lower", "higher"),
        ("ppv", None, "higher"),
        ("fdr", None, "lower"),
        ("npv", "higher", None),
        ("for", "lower", None),
        ("accuracy", "higher", "higher"),
        ("error_rate", "lower", "lower"),
        ("outcome_rate", None, None),
        ("mean_score", "higher", "lower"),
        ("mean_outcome", None, None),
        ("squared_error", "lower", "lower"),
    ],
)
def test_which_values_are_better_follows_from_the_good_decision(
    metric, good_decision, bad_decision
):
    roles = DECIDED | {"y_score": "score"}
    assert told(metric, favourable=1, **roles).better == good_decision
    assert told(metric, favourable=0, **roles).better == bad_decision
    if METRICS[metric].better is None or metric in {"ppv", "npv", "fdr", "for"}:
        assert told(metric, **roles).better is None


def test_without_decisions_the_outcome_is_good_or_bad():
    assert told("outcome_rate", y_true="repaid", favourable=1).better == "higher"
    assert told("mean_outcome", y_true="default", favourable=0).better == "lower"


@pytest.mark.parametrize(
    ("positive", "favourable", "selected", "not_selected", "good"),
    [
        (1, 0, "have `high_risk` = 1", "have `high_risk` = 0", "not_selected"),
        (0, 0, "have `high_risk` = 0", "have `high_risk` = 1", "selected"),
        ("yes", 1, "have `high_risk` = yes", "have `high_risk` other than yes", "selected"),
        ("yes", 0, "have `high_risk` = yes", "have `high_risk` other than yes", "not_selected"),
        ("yes", "yes", "have `high_risk` = yes", "have `high_risk` other than yes", "selected"),
        ("yes", "no", "have `high_risk` other than no", "have `high_risk` = no", "not_selected"),
        (1, None, "have `high_risk` = 1", "have `high_risk` = 0", None),
    ],
)
def test_labels_are_said_as_the_column_has_them(positive, favourable, selected, not_selected, good):
    words = words_of(Roles(**DECIDED, positive=positive, favourable=favourable), [])
    assert (words.selected, words.not_selected, words.favourable) == (selected, not_selected, good)


def test_a_metric_of_ones_own_has_no_words():
    assert words_of(Roles(), ["profit"]).metrics == {}
    assert words_of(Roles(), []).selected == "were selected"


def test_a_misspelt_favourable_label_is_refused_before_anybody_is_called_worse_off():
    data = {"g": ["a", "b"] * 50, "d": ["approved"] * 30 + ["denied"] * 70}
    audit = eq.Audit(data, group="g", y_pred="d", positive="approved", favourable="aproved")
    with pytest.raises(eq.exceptions.NotBinaryError, match="Did you mean 'approved'"):
        audit.disparity("selection_rate")


def test_no_margin_is_written_without_a_sign():
    data = {"g": ["a", "b"] * 50, "d": [1] * 30 + [0] * 70}
    flags = eq.Audit(data, group="g", y_pred="d").flag("selection_rate", alternative="two-sided")
    assert flags.null.endswith("is equal to 0")
