"""COMPAS through the public audit: the published intervals, and what is left of them.

Numbers of the corrected table were computed independently by profile empirical likelihood.
"""

import pytest

import equipoise as eq

# group, rows, corrected 95% interval, p-value
CORRECTED = [
    ("race=African-American", 2174, -0.0002, 0.0772, 0.0510),
    ("race=African-American & age_cat=Less than 25", 646, 0.0266, 0.1247, 0.0026),
    ("race=African-American & age_cat=25 - 45", 1281, -0.0067, 0.0779, 0.0992),
    ("race=African-American & age_cat=Greater than 45", 247, -0.1152, 0.0250, 0.210),
    ("race=African-American & sex=Male", 1837, 0.0203, 0.0994, 0.0029),
    ("race=African-American & sex=Female", 337, -0.1406, -0.0153, 0.0146),
    ("race=African-American & sex=Male & age_cat=Less than 25", 526, 0.0606, 0.1627, 2.4e-5),
    ("race=African-American & sex=Female & age_cat=Less than 25", 120, -0.1779, 0.0116, 0.086),
    ("race=African-American & sex=Male & age_cat=25 - 45", 1093, 0.0093, 0.0963, 0.0173),
    ("race=African-American & sex=Female & age_cat=25 - 45", 188, -0.1433, 0.0134, 0.105),
    ("age_cat=Less than 25", 999, 0.0101, 0.0865, 0.013),
    ("age_cat=25 - 45", 1924, -0.0080, 0.0553, 0.143),
    ("age_cat=Greater than 45", 394, -0.1042, 0.0025, 0.062),
    ("sex=Male & age_cat=25 - 45", 1593, 0.0007, 0.0685, 0.045),
]


@pytest.fixture(scope="module")
def result():
    audit = eq.Audit(
        eq.datasets.load_compas_counts(),
        group=["race", "sex", "age_cat"],
        count="count",
        y_true="two_year_recid",
        y_pred="high_risk",
    )
    return audit.disparity("ppv", reference={"race": "Caucasian"}, method="el")


@pytest.mark.parametrize(
    ("group", "n", "low", "high", "p"), CORRECTED, ids=[c[0] for c in CORRECTED]
)
def test_empirical_likelihood_prints_the_corrected_table(result, group, n, low, high, p):
    finding = next(f for f in result.findings if f.group == group)
    assert finding.n == n
    # Overlapping groups use the influence function, the table profiles and has chi-square for F.
    assert finding.ci.low == pytest.approx(low, abs=1e-3)
    assert finding.ci.high == pytest.approx(high, abs=1e-3)
    assert finding.p_value == pytest.approx(p, rel=0.06, abs=1.5e-3)


def test_no_defendant_repeats_so_counts_equal_rows(result, data_file, monkeypatch):
    monkeypatch.setenv("EQUIPOISE_DATA", str(data_file("compas-scores-two-years.csv").parent))
    frame = eq.datasets.fetch_compas().to_pandas()
    frame["high_risk"] = (frame["decile_score"] >= 5).astype(int)
    rows = eq.Audit(
        frame, group=["race", "sex", "age_cat"], y_true="two_year_recid", y_pred="high_risk"
    ).disparity("ppv", reference={"race": "Caucasian"}, method="el")
    assert rows.findings == result.findings
    assert rows.joint == result.joint
