"""A question in, a result out: one folder for each family, registered here."""

from equipoise.audits.disparity.questions import CERTIFY, DISPARITY, FLAG
from equipoise.audits.effects.questions import TREATMENT_EFFECTS
from equipoise.audits.improvement.questions import IMPROVABILITY
from equipoise.audits.inequality.questions import INEQUALITY
from equipoise.audits.scores.questions import MARGINAL_OUTCOME, PREDICTIVE_PARITY
from equipoise.results.question import register

register(
    DISPARITY,
    FLAG,
    CERTIFY,
    PREDICTIVE_PARITY,
    MARGINAL_OUTCOME,
    IMPROVABILITY,
    INEQUALITY,
    TREATMENT_EFFECTS,
)
