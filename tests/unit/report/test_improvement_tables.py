import numpy as np
import pytest

import equipoise as eq
from equipoise.report.html import html_report
from equipoise.report.improvement_tables import improvement_tables
from support.specimens import check, dossier


@pytest.fixture(scope="module")
def necessity():
    rng = np.random.default_rng(5)
    n = 3000
    group, skill = np.where(rng.random(n) < 0.4, "<b>", "w"), rng.normal(size=n)
    data = {
        "group": group,
        "y": (skill + 0.3 * rng.normal(size=n) > 0).astype(int),
        "now": (skill + rng.normal(size=n) * (1 + (group == "<b>")) > 0).astype(int),
        "rival": (skill + 0.1 * rng.normal(size=n) > 0).astype(int),
    }
    audit = eq.Audit(data, group="group", y_true="y", y_pred="now")
    return audit.improvability("rival", accuracy="accuracy", n_resamples=999, rng=1)


def test_every_criterion_of_every_split_is_written_as_the_result_has_it(necessity):
    by_split, deltas = improvement_tables(necessity)
    criteria = necessity.details["splits"][0]["criteria"]
    assert len(criteria) == 3
    assert [row[:2] for row in by_split.rows] == [("1", c["criterion"]) for c in criteria]
    for row, criterion in zip(by_split.rows, criteria, strict=True):
        assert float(row[2]) == pytest.approx(criterion["a1"], rel=0.01)
        assert float(row[3]) == pytest.approx(criterion["a0"], rel=0.01)
    assert dict(deltas.rows).keys() == necessity.details["deltas"].keys()
    assert float(dict(deltas.rows)["fairness"]) == pytest.approx(
        necessity.details["deltas"]["fairness"], rel=0.01
    )


def test_an_improvement_that_is_not_shown_is_none(necessity):
    record = necessity.to_dict()
    record["details"]["deltas"]["fairness"] = None
    again = type(necessity).from_dict(record)
    assert dict(improvement_tables(again)[1].rows)["fairness"] == "none"


def test_the_page_shows_both_tables_and_escapes_names(necessity):
    page = html_report(dossier(check("improvability", necessity)))
    assert page.count('<table class="plain">') == 2
    assert "of group: &lt;b&gt;" in page
    assert "of group=<b>" not in page
