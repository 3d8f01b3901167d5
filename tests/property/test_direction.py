"""How labels are coded does not change what is said, nor of whom."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.results.wording import headline

MIRRORED = {"selection_rate": "selection_rate", "fpr": "fnr", "tpr": "tnr", "ppv": "npv"}


@st.composite
def tables(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(120, 400))
    group = rng.choice(["a", "b", "c"], n)
    rates = {name: draw(st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9])) for name in "abc"}
    chance = np.array([rates[name] for name in group])
    y_pred = (rng.random(n) < chance).astype(int)
    y_true = (rng.random(n) < 0.5).astype(int)
    return {"g": group, "p": y_pred, "t": y_true}


def sentence(table, metric, *, favourable, turned, question, **options):
    audit = eq.Audit(table, group="g", y_pred="p", y_true="t", favourable=favourable)
    if question == "certify":
        options["margin"] = 0.05
    if question != "impact_ratios":
        options.setdefault("reference", "rest")
    result = getattr(audit, question)(metric, **options)
    said = ("were approved", "were denied", "repaid", "did not repay")
    one, other, yes, no = (said[1], said[0], said[3], said[2]) if turned else said
    words = replace(result.words, selected=one, not_selected=other, outcome=yes, no_outcome=no)
    text = headline(replace(result, words=words))
    return text.replace(result.findings[0].estimand.noun, "rate")


@given(
    table=tables(),
    metric=st.sampled_from(sorted(MIRRORED)),
    question=st.sampled_from(["disparity", "certify"]),
)
def test_labels_turned_round_give_the_same_sentence_about_the_same_people(table, metric, question):
    before = sentence(table, metric, favourable=1, turned=False, question=question)
    other = table | {"p": 1 - table["p"], "t": 1 - table["t"]}
    after = sentence(other, MIRRORED[metric], favourable=0, turned=True, question=question)
    assert after == before


def lead(table, metric, **options):
    """Return what the headline says first: where something is shown, of whom."""
    return sentence(table, metric, **options).partition("; ")[0]


@settings(max_examples=10)
@given(table=tables(), metric=st.sampled_from(sorted(MIRRORED)))
def test_of_two_categories_the_same_is_worse_off_however_decisions_are_coded(table, metric):
    two = table["g"] != "c"
    table = {name: column[two] for name, column in table.items()}
    before = lead(table, metric, favourable=1, turned=False, question="impact_ratios")
    other = table | {"p": 1 - table["p"], "t": 1 - table["t"]}
    mirrored = MIRRORED[metric]
    after = lead(other, mirrored, favourable=0, turned=True, question="impact_ratios")
    shown = "worse off" in before
    assert shown == ("worse off" in after)
    if shown:
        # A ratio depends on which decision it counts; who is worse off does not.
        assert after == before
