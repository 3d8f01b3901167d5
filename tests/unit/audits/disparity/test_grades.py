import numpy as np
import pytest
from numpy.testing import assert_allclose

import equipoise as eq
from equipoise.exceptions import InvalidParameterError
from equipoise.results.result import AuditResult
from equipoise.stats.disparity.grades import ManyGroups, grade_groups

N = np.full(40, 400)
X = np.round(N * (np.repeat([0.3, 0.6], 20) + np.tile([-0.02, 0.0, 0.02, 0.01], 10))).astype(int)
NAMES = [f"branch {k:02d}" for k in range(40)]


def table(names=NAMES):
    return {
        "branch": [*names, *names, "tiny"],
        "approved": [1] * 40 + [0] * 40 + [1],
        "n": [*X, *(N - X), 8],
    }


def graded(data, **roles):
    audit = eq.Audit(data, group="branch", y_pred="approved", count="n", **roles)
    return audit.disparity("selection_rate", grades=True)


def test_groups_that_differ_have_grades_and_small_ones_have_none():
    result = graded(table())
    (own,) = result.details["grades"]
    found = grade_groups(ManyGroups(value=X / N, n=N.astype(float)))
    assert own["grade"] == [*found.grade, None]
    assert own["groups"][:2] == ["branch=branch 00", "branch=branch 01"]
    assert (own["n_grades"], own["pairs"]) == (found.n_grades, 780)
    low, high = found.spread.confidence_interval()
    assert_allclose((own["sd"], own["sd_low"], own["sd_high"]), (found.spread.estimate, low, high))
    assert own["ordered"] >= 400
    assert own["misranked"] <= 0.05
    (note,) = [note for note in result.notes if note.code == "grades"]
    assert note.message.startswith("40 groups of branch have 2 grades (1 has the highest values)")
    assert AuditResult.from_dict(result.to_dict()).details["grades"] == [own]


def test_names_and_weights_do_not_matter():
    (own,) = graded(table()).details["grades"]
    (other,) = graded(table(NAMES[::-1])).details["grades"]
    assert other["grade"][:40] == own["grade"][:40][::-1]
    weighted = graded(table() | {"w": [2.0] * 81}, weight="w").details["grades"][0]
    assert weighted["grade"] == own["grade"]


def test_means_have_grades_wherever_they_are_measured_from(rng):
    group = np.repeat(np.arange(25), 40)
    y = rng.normal(size=1000) + group
    grades = [
        eq.Audit({"g": group, "y": y + shift}, group="g", y_true="y")
        .disparity("mean_outcome", grades=True)
        .details["grades"][0]
        for shift in (0.0, 1e7)
    ]
    assert grades[0]["grade"] == grades[1]["grade"]
    assert grades[0]["n_grades"] > 10
    assert_allclose(grades[0]["sd"], np.std(np.arange(25), ddof=1), rtol=0.05)
    assert_allclose(grades[1]["sd"], grades[0]["sd"], rtol=1e-6)


def test_groups_that_are_few_or_equal_are_not_ordered():
    few = graded({"branch": ["a", "b"] * 2, "approved": [1, 1, 0, 0], "n": [40, 50, 60, 50]})
    assert few.details["grades"] == []
    assert "no-grades" in [note.code for note in few.notes]
    same = {"branch": NAMES * 2, "approved": [1] * 40 + [0] * 40, "n": [120] * 40 + [280] * 40}
    result = graded(same)
    assert result.details["grades"][0]["n_grades"] == 1
    assert "no pair of them is ordered" in str(result).replace("\n    ", " ")


@pytest.mark.parametrize(
    "options",
    [{"reference": "highest"}, {"given": "n"}, {"metric": ["selection_rate", "selection_rate"]}],
)
def test_grades_are_of_plain_comparisons(options):
    audit = eq.Audit(table(), group="branch", y_pred="approved")
    with pytest.raises(InvalidParameterError, match="`grades` are of one metric"):
        audit.disparity(**{"metric": "selection_rate", "grades": True, **options})


def test_groups_that_share_units_have_no_grades():
    with pytest.raises(InvalidParameterError, match="`grades` needs independent rows"):
        graded(table() | {"c": list(range(40)) * 2 + [0]}, cluster="c")
