"""Results built by hand, one for each question, with the shapes the audits give."""

from equipoise.plans.dossier import Check, Dossier
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.result import AuditResult

SMALL = Note(code="small-group", message="Too few rows to test: 4, at least 10 are needed.")


def finding(group, estimate=None, low=None, high=None, **changes):
    fields = {
        "estimand": Estimand("fpr", "gap", scale="difference", noun="false positive rate"),
        "decision": Decision.NOT_DETECTED,
        "n": 100,
        "method": "empirical likelihood",
        "reference": "the population",
        "p_value": 0.2,
        "p_value_raw": 0.1,
        "statistic": 1.5,
    }
    if estimate is None:
        fields |= {"decision": Decision.NOT_TESTED, "notes": (SMALL,)}
        fields |= dict.fromkeys(("p_value", "p_value_raw", "statistic"))
    else:
        fields["ci"] = ConfidenceInterval(low=low, high=high)
    return Finding(group=group, estimate=estimate, **(fields | changes))


def result(audit="disparity", findings=(), **changes):
    fields = {
        "null": "every gap is zero",
        "alternative": "the gap is not zero",
        "alpha": 0.05,
        "method": "empirical likelihood",
        "n": 7214,
    }
    return AuditResult(audit=audit, findings=tuple(findings), **(fields | changes))


def joint(decision=Decision.DETECTED, p=0.0001, **changes):
    fields = {"null": "all gaps are zero", "method": "joint empirical likelihood"}
    fields |= {"statistic": 41.2, "df": 3.0}
    return JointTest(decision=decision, p_value=p, **(fields | changes))


def dossier(*checks, **changes):
    fields = {
        "title": "COMPAS: false positives by race and sex",
        "created": "2026-11-16 02:00 UTC",
        "plan": '[data]\npath = "compas.csv"\n',
        "multiplicity": "none",
        "data": {
            "source": "compas.csv",
            "rows": 7214,
            "roles": {"group": ["race", "sex"], "y_true": "two_year_recid"},
            "files": [{"name": "compas.csv", "bytes": 2546489, "sha256": "ab" * 32}],
        },
        "versions": {"equipoise": "0.1.0", "python": "3.11.9"},
        "checks": tuple(checks),
    }
    return Dossier(**(fields | changes))


def check(question, result, name=None, **options):
    return Check(id=name or question, question=question, options=options, result=result)
