"""A question in, a result out: one folder for each family, registered here."""

from equipoise.audits.disparity.questions import (
    CERTIFY,
    DECOMPOSE,
    DISPARITY,
    FLAG,
    IMPACT_RATIOS,
)
from equipoise.audits.disparity.questions_over_time import COMPARE, DISCOVER, MONITOR
from equipoise.audits.effects.questions import POLICY, TREATMENT_EFFECTS
from equipoise.audits.improvement.questions import DROP_TABLE, IMPROVABILITY, NECESSITY
from equipoise.audits.inequality.questions import INEQUALITY
from equipoise.audits.scores.questions import (
    MARGINAL_OUTCOME,
    MULTICALIBRATION,
    PREDICTIVE_PARITY,
    SCORE_QUALITY,
)
from equipoise.results.question import register

register(
    DISPARITY,
    FLAG,
    CERTIFY,
    COMPARE,
    IMPACT_RATIOS,
    MONITOR,
    DISCOVER,
    DECOMPOSE,
    PREDICTIVE_PARITY,
    MARGINAL_OUTCOME,
    SCORE_QUALITY,
    MULTICALIBRATION,
    IMPROVABILITY,
    NECESSITY,
    DROP_TABLE,
    INEQUALITY,
    TREATMENT_EFFECTS,
    POLICY,
)
