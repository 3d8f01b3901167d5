"""A question in, a result out: one folder for each family, registered here.

A question is named by its place and read when it is first asked: one family does not load another.
"""

from equipoise.results.question import register_places

register_places(
    "equipoise.audits.disparity.questions:DISPARITY",
    "equipoise.audits.disparity.questions:FLAG",
    "equipoise.audits.disparity.questions:CERTIFY",
    "equipoise.audits.disparity.questions:COMPARE",
    "equipoise.audits.disparity.questions:IMPACT_RATIOS",
    "equipoise.audits.disparity.questions:MONITOR",
    "equipoise.audits.disparity.questions:DISCOVER",
    "equipoise.audits.disparity.questions:DECOMPOSE",
    "equipoise.audits.scores.questions:PREDICTIVE_PARITY",
    "equipoise.audits.scores.questions:MARGINAL_OUTCOME",
    "equipoise.audits.scores.questions:SCORE_QUALITY",
    "equipoise.audits.scores.questions:MULTICALIBRATION",
    "equipoise.audits.improvement.questions:IMPROVABILITY",
    "equipoise.audits.improvement.questions:NECESSITY",
    "equipoise.audits.improvement.questions:DROP_TABLE",
    "equipoise.audits.inequality.questions:INEQUALITY",
    "equipoise.audits.effects.questions:TREATMENT_EFFECTS",
    "equipoise.audits.effects.questions:POLICY",
)
