"""Guess from a table which column plays which part in an audit, with the reason."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise._checks import nearest, quoted, shown
from equipoise._typing import EffectMeasure
from equipoise.data.columns import KEPT_NAMES, TRUTHS
from equipoise.data.layout import Layout
from equipoise.data.profile import ColumnProfile
from equipoise.exceptions import InvalidParameterError
from equipoise.plans.toml import one_line, toml_value

__all__ = ["NO_WORDS", "Draft", "draft", "give_favourable"]

_ANY = re.IGNORECASE
CLASSES: dict[str, re.Pattern[str]] = {
    "race": re.compile(
        r"(^|_)race|(^|_)rac\d|ethni|colou?r|(^|_)(black|white|asian|hisp|latin|afam|minority)"
        r"|(^|_)etni|(^|_)ra[cz]a($|_)|ridreth|skin_(type|tone)|fitzpatrick|tribe|caste|(^|_)urm$",
        _ANY,
    ),
    "sex": re.compile(
        r"(^|_)sex|sex($|_)|gende?r|(^|_)(fe)?male($|_)|woman|women$|pronoun|geschlecht|geslacht|^sesso$"
        r"|(^|_)gener[eo]$",
        _ANY,
    ),
    "age": re.compile(
        r"(^|_)agep?($|_)|age_?(cat|band|group)|(stud|lect)age$|elderly|(over|under)_?\d\d$"
        r"|(^|_)(rid)?age_?y(ea)?rs?$|(^|_)(alter|edad|idade|leeftijd)(s?gr(uppe|oep))?$|^eta$",
        _ANY,
    ),
    "other": re.compile(
        r"religio|muslim|christian|jewish|national|nacional|(^|_)nativ|foreign|migra|citizen|disab|(^|_)dis$|marital"
        r"|marri|(^|_)mar($|_)|veteran|pregnan(t|cy)($|_)|orient|language|accent|dialect|lun(ch|k)|free_(school_)?meal|poverty|medicaid|region"
        r"|group|sensitive|protected|staatsangehorig|nazional|cittadin|herkunft|herkomst|behinder|discapac"
        r"|origine|handicap",
        _ANY,
    ),
}
"""Names that characterise people, by kind; one column of each kind is compared."""
SEXES = frozenset({"male", "female", "man", "woman", "men", "women", "m", "f", "w"})
RACES = re.compile(
    r"^(non_?hispanic_)?(black|white|asian|hispanic|latin[oax]|caucasian|african_american)"
    r"(_(alone|non_hispanic|american|or_.*))?$|native_american|american_indian|pacific_islander",
    _ANY,
)
"""Values that characterise people, whatever their column is called."""
YEARS_WORDS = re.compile(
    r"^(agep?|alter|edad|idade|eta|leeftijd)(_(in_)?years|_at_.*)?$|^(rid)?age_?y(ea)?rs?$"
    r"|^(applicant|patient|customer|client|borrower|insured|member|driver|subject|suspect|defendant"
    r"|candidate|employee|student|person|respondent|user|offender|inmate|tenant|claimant|voter|worker"
    r"|child|pupil)_(\w+_)?age$",
    _ANY,
)
LETTERS = frozenset("ASZ")
"""What papers call the protected attribute."""
PREDICTED_WORDS = re.compile(
    r"pred|decision|decid|approv|select|hired|accept|(?<!re)admit|yhat|y_hat|flagged|high_risk|offer|grant"
    r"|enrolled|^call(ed|back)?$|denied|^deny|reject|alert|advanced|shortlist|interview|invited"
    r"|promoted|recommend|empfehl|action_taken|(loan|application|approval)_status"
    r"|^model_(?!version|name|type|id$)|^(binary_)?score$"
    r"|blocked|banned|suspended|^promotion$|declin|detain|detention|(^|_)placed$|frisk|^searched"
    r"|search_conducted|screened_(in|out)$|^removed$|entscheid|bewillig|genehmig|abgelehn|eingestellt"
    r"|accorde|refuse|embauch|admis(es?)?$|apro[bv]ad|rechazad|contratad|approvat|rifiutat|goedgekeurd"
    r"|afgewezen|(^|_)funded($|_)|(risk|fraud|review)_flag|befordert|zusage|absage|otorgad|concedid",
    _ANY,
)
OUTCOME_WORDS = (
    re.compile(r"^(y|y_true|target|label|outcome|class)$", _ANY),
    re.compile(
        r"true|outcome|label|target(?!_population)|actual|repaid|recid|^termd$|terminated|conver|respon(se|ded)|take_?up|voted|confirmed"
        r"|re_?offend|re_?arrest|re_?incarcerat|return(ed)?_to_(prison|custody|jail)"
        r"|zuruckgezahlt|ruckfall|reincid|incumpl|inadimpl",
        _ANY,
    ),
    re.compile(
        r"default|event|success|surviv|arrest|dropout|graduat|^lfp$|^(vital_)?status$|income|charged?_?off|(?<!self_)employ|died|death|mortality|attrition|churn|^exited$|fraud|readmi|class|visit|^(credit_?)?risk$|(^|_)pass(ed)?($|_)|delinq|dlq|violat|purchas|insolven|ausfall"
        r"|defaut|impago",
        _ANY,
    ),
)
"""Names of outcomes, the surest first."""
SEVERAL_WORDS = re.compile(r"default|died|readmi|(^|_)result$|status$", _ANY)
REPAYMENT = re.compile(r"paid|charged.?off|default|delinq|\blate\b", _ANY)
MEASURED_WORDS = re.compile(r"true|outcome|label|target|actual|^t?(read|math|writ)", _ANY)
"""A score with such a word is what was measured, not what a model says."""
AMOUNT_WORDS = re.compile(
    r"^(t?(read|math|writ)|test|grade|gpa|spend|cost)|(^|_)charges?$|expenditure|days_in_hospital"
    r"|length_of_stay",
    _ANY,
)
PAID_WORDS = re.compile(r"^re\d\d|^(earn|wage)|(^|_)(salary|compensation)", _ANY)
"""What people earn: an outcome before any column of two values that is not the last one."""
SCORE_WORDS = re.compile(
    r"score|proba|pred.*prob|^y?_?prob$|(^|_)p_?hat$|(^|_)risk$|decile$|^rating|percentile"
    r"|puntaje|puntuac|punteggio|(risk|model|pred.*)_rank|^(y_|model_)?(pred(iction|icted)?s?|hat)$|^yhat$",
    _ANY,
)
CHANCE_WORDS = re.compile(r"_prob$|^prob_", _ANY)
"""The score of a model; in an experiment rather what people believed."""
RISK_WORDS = re.compile(r"risk|risque|riesgo|risiko|risico|rischio|(^|_)pd($|_)|toxic", _ANY)
"""Scores of which a high one is bad for a person."""
SHARE_WORDS = re.compile(r"^p_|(^|_)pd$", _ANY)
"""The score of a model where its numbers are between 0 and 1."""
MODELLED_WORDS = re.compile(r"(^|_)(pred(s|icted|ictions?)?|hat)($|_)", _ANY)
"""The score of a model where no other column has that name."""
FINAL_WORDS = re.compile(r"final|overall|total|combined", _ANY)
TREATMENT_WORDS = re.compile(
    r"treat|^arm$|^rx$|^variant$|assign|exposed|intervention|intensive|randomi|(^|_)(ab|test)_?group",
    _ANY,
)
CONTROL_WORDS = re.compile(r"control|placebo|^no e-?mail$|^regular$", _ANY)
PROPENSITY_WORDS = re.compile(r"^propensity|^(assign|treat)\w*_prob|^prob_treat", _ANY)
EFFECT_WORDS = re.compile(r"uplift|effect|(^|_)(cate|ite|tau)($|_)", _ANY)
SPLIT_WORDS = re.compile(r"^(split|fold|partition|subset|is_(train|test)|train|test)$", _ANY)
IDENTIFIER_WORDS = re.compile(
    # Not paid, valid, grid and the like.
    r"(^|_)(id|uuid|key|name|ref)($|_)|^(user|person|patient|customer)s?(_(no|nr|nbr|num|number))?$"
    r"|(?<![abpv])(?<!val)(?<!gr)id(code)?$"
    r"|^id(\d|enti(fi|$))|^index$|^row(name)?s?$|^serial(_?no)?$",
    _ANY,
)
NUMBER_WORDS = re.compile(r"(^|_)(no|nr|num|mrn|ssn)$|number$|nummer$|^unnamed", _ANY)
NAME_WORDS = re.compile(r"(first|last|sur|full|nick)_?name|^name$|e?mail_?address|phone", _ANY)
SIZE_WORDS = re.compile(r"size|count|number|^nobs$|^n?kids|child", _ANY)
SCHOOLING_WORDS = re.compile(r"^educ|degree|schooling", _ANY)
"""What people bring along: an outcome only of tables that have nothing else."""
PLACE_WORDS = re.compile(
    r"(^|_)(state|country|county|city|town|zip|postcode|code|reason|north|south|east|west|urban|rural"
    r"|c?msa|smsa|region)($|_)",
    _ANY,
)
"""What a number or a label of no order describes: never an outcome."""
UNIT_WORDS = re.compile(
    r"(?:^|_)(?<!in_)(school|hospital|clinic|household|address|village|firm|site)"
    r"(_(code|no|nr|num|number))?$",
    _ANY,
)
WEIGHT_WORDS = re.compile(
    r"weight|wgt|(^|_)wt($|_|\d)|(^|_)(per|hh|fam|asec|finl?|final|llcp)wt|^wt(mec|int|ss|finl)",
    _ANY,
)
BODY_WORDS = re.compile(r"(^|_)(height|bmi|waist|ht)($|_)", _ANY)
"""Beside these a weight is that of a body."""
COUNT_WORDS = re.compile(r"^(n|count|freq|frequency|n_rows|rows)$", _ANY)
POSITIVE_WORDS = (
    *("1", "true", "yes", "y", "t", "positive", "approved", "selected", "hired", "good"),
    *(">50k", ">50k.", "ja", "oui", "si", "sim", "pos", "+"),
)

GOOD_WORDS = re.compile(
    r"approv|hired|hire$|hiring|accept|admit|admis|grant|offer|select|repaid|repay|(^|_)call|promot|employ"
    r"|enrol|graduat|(^|_)pass(ed)?($|_)|success|(^|_)good($|_)|award|eligib|qualif|shortlist|interview"
    r"|surviv|advanced|invited|(^|_)placed$|paid($|_)|bewillig|genehmig|angenommen|eingestellt"
    r"|zuruckgezahlt|accorde|embauch|apro[bv]ad|aceptad|contratad|accettat|goedgekeurd"
    r"|(^|_)funded($|_)|befordert|zusage|otorgad|concedid",
    _ANY,
)
BAD_WORDS = re.compile(
    r"den(y|ied|ial)|default|reject|arrest|recid|(high|at).?risk|risk_|fraud|flagged|^flags?$|(model|review|alert)_flag|declin|fail|died"
    r"|death|(^|_)dead($|_)|readmi|(^|_)bad|delinq|(^|_)charged|violat|dropout|terminat|fired"
    r"|bankrupt|refus|evict|detain|detention|convict|suspend|expel|overdue|foreclos|relapse|blocked|banned|suspended"
    r"|dlq|late_pay|(^|_)late$|frisk|^searched|search_conducted|^removed$|re_?offend|incarcerat"
    r"|return(ed)?_to_(prison|custody|jail)|insolven|abgelehn|ablehn|ausfall|betrug|verhaft|ruckfall"
    r"|rejet|defaut|rechaz|denegad|impago|incumpl|reincid|inadimpl|rifiutat|afgewezen|absage",
    _ANY,
)
NEGATION = re.compile(
    r"(^|_)(not|no|non|never|without|nicht|kein|pas|sans|sin|nao|niet|geen)_(a_|an_|de_|been_)?$"
    r"|(^|_)(un|dis|de|in|ir|non|nicht)$",
    _ANY,
)
"""What before a word turns it around: not_approved, no_default, ineligible."""
FREE = re.compile(r"_?free($|_)", _ANY)
"""What behind a word turns it around: relapse_free."""

CHOICE_WORDS = re.compile(r"decis|decid|status|action_taken|entscheid", _ANY)
"""Names of decisions that need not be predictions of the outcome."""
DECIDED = re.compile(
    r"^((?:is|was|got|been|loan|model|program|pred|predicted)_)*"
    r"(approved|hired|selected|accepted|admitted|promoted|denied|rejected|declined|refused|shortlisted"
    r"|invited|interviewed|enrolled|detained|flagged|granted|called|call)(_(t|flag|y_n))?$",
    _ANY,
)
"""Names of decisions that can follow "were"."""
HAPPENED = {
    "repaid": ("repaid", "did not repay"),
    "default": ("defaulted", "did not default"),
    "defaulted": ("defaulted", "did not default"),
    "recid": ("reoffended", "did not reoffend"),
    "died": ("died", "did not die"),
    "survived": ("survived", "did not survive"),
    "employed": ("were employed", "were not employed"),
    "readmitted": ("were readmitted", "were not readmitted"),
    "graduated": ("graduated", "did not graduate"),
    "voted": ("voted", "did not vote"),
}
"""Words in names of outcomes, and what people say of those with and without."""
NO_WORDS = frozenset({"0", "false", "no", "n", "f", "nein", "non", "nao", "nee"})

AGES = (25, 45)
"""Cut points of an age."""
MOST_RATIO = 10.0
"""Of outcomes with and without treatment; larger numbers are differences of amounts."""
MOST_GROUPS = 3
MOST_SEXES = 6
MOST_LEVELS = 20
MOST_NAMED_LEVELS = 100
"""Of a column that is the only one whose name characterises people."""


@dataclass(slots=True, kw_only=True)
class Draft:
    """Guessed roles with their reasons.

    Parameters
    ----------
    roles : dict
        Arguments of `Audit`.
    reasons : dict
        Why each role was given.
    left : dict
        Columns without a role, and why.
    numbers : list of str
        Those among them that are numeric: possible features.
    amount : bool
        Whether the outcome is a number rather than one of two labels.
    names : tuple of str
        Names that were made up for columns that have none.
    warning : str
        What is wrong with the table itself, for a person to mend first.
    undecided : tuple of str
        Role and column of a decision or an outcome of which a person must say what counts as 1;
        empty where there is none.
    at_odds : str
        Column of the outcome or the score whose 1, or high values, read as bad where those of the
        decision read as good, or the other way round; empty where there is none.
    words : dict
        By role, what is said of people with and without it.
    measure : {"difference", "relative"}
        What predicted effects seem to be: ratios are never negative, and seldom all below 1.
    """

    roles: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    numbers: list[str] = field(default_factory=list)
    amount: bool = False
    names: tuple[str, ...] = ()
    warning: str = ""
    undecided: tuple[str, ...] = ()
    at_odds: str = ""
    words: dict[str, tuple[str, str]] = field(default_factory=dict)
    measure: EffectMeasure = "difference"

    def give(self, role: str, column: ColumnProfile, reason: str) -> None:
        """Give a role to a column."""
        self.roles[role] = column.name
        self.reasons[role] = reason


def draft(columns: Sequence[ColumnProfile], layout: Layout | None = None) -> Draft:
    """Guess the role of every column; a role that no column fits is left open.

    Parameters
    ----------
    columns : sequence of ColumnProfile
        From `equipoise.data.profile.profile`.
    layout : Layout, optional
        From `equipoise.data.profile.read_layout`.

    Returns
    -------
    Draft

    Examples
    --------
    Which column decides, and who is compared?

    >>> from equipoise.data.profile import profile
    >>> drafted = draft(profile({"sex": ["F", "M"] * 4, "approved": [0, 1, 1, 0] * 2}))
    >>> drafted.roles
    {'y_pred': 'approved', 'group': ['sex'], 'favourable': 1}
    """
    layout = layout or Layout()
    warning = " ".join(filter(None, (_above(layout), _no_header(columns, layout))))
    plan = Draft(names=layout.names, warning=warning)
    free = {column.name: column for column in columns}
    body = any(_named(BODY_WORDS, column) for column in columns)
    _identifiers(plan, free)
    rules: tuple[tuple[str, Callable[[ColumnProfile], bool], str], ...] = (
        (
            "weight",
            lambda c: (
                c.kind == "number"
                and not c.binary
                and not body
                and (c.low or 0) >= 0
                and _named(WEIGHT_WORDS, c)
            ),
            "its name",
        ),
        (
            "count",
            lambda c: c.whole and (c.low or 0) >= 0 and _named(COUNT_WORDS, c),
            "its name, and whole numbers: rows that stand for several",
        ),
        (
            "effect_pred",
            lambda c: c.kind == "number" and not c.binary and _named(EFFECT_WORDS, c),
            "its name, and numbers",
        ),
        (
            "treatment",
            lambda c: _zero_one(c) and _named(TREATMENT_WORDS, c),
            "its name, and two values 0 and 1",
        ),
        (
            "propensity",
            lambda c: (
                "treatment" in plan.roles
                and c.kind == "number"
                and not c.binary
                and _within(c, 0.0, 1.0)
                and _named(PROPENSITY_WORDS, c)
            ),
            "its name, and numbers between 0 and 1",
        ),
        (
            "y_pred",
            lambda c: (
                c.binary and (_named(PREDICTED_WORDS, c) or _two_decisions(c)) and not _repayment(c)
            ),
            "its name or labels, and two values",
        ),
        (
            "y_score",
            lambda c: (
                c.kind == "number"
                and c.distinct > 2
                and (
                    _named(SCORE_WORDS, c)
                    or (_named(CHANCE_WORDS, c) and "treatment" not in plan.roles)
                    or (_named(SHARE_WORDS, c) and _within(c, 0.0, 1.0))
                )
                and not _named(MEASURED_WORDS, c)
            ),
            "its name, and numbers",
        ),
    )
    for role, fits, reason in rules:
        fitting = [c for c in free.values() if not _protected(c) and fits(c)]
        fitting.sort(key=lambda c: (not _named(FINAL_WORDS, c), c.missing > 0, not _yes_or_no(c)))
        for column in fitting[:1]:
            plan.give(role, free.pop(column.name), f"{reason} ({_seen(column)})")
    _predicted_outcome(plan, free)
    if "y_true" not in plan.roles:
        _named_outcome(plan, free)
    _several_values(plan, free)
    _arms(plan, free)
    _groups(plan, free)
    _remaining(plan, free)
    _effects(plan, columns)
    _labels(plan, columns)
    _favourable(plan, columns)
    _words(plan, columns)
    return plan


def give_favourable(drafted: Draft, columns: Sequence[ColumnProfile], label: str) -> None:
    """Say which decision is good for the person, in the place of a guess.

    Parameters
    ----------
    drafted : Draft
        It is changed.
    columns : sequence of ColumnProfile
        Of the table.
    label : str
        1, 0 or a label of the decision; without decisions, of the outcome.

    Raises
    ------
    InvalidParameterError
        If no row has the label.
    """
    name = drafted.roles.get("y_pred", drafted.roles.get("y_true"))
    levels = next((column.levels for column in columns if column.name == name), ())
    known = {str(level): level for level in levels}
    positive = drafted.roles.get("positive")
    if positive in levels:
        # A label says more than 1 or 0, and stays right if `positive` is corrected.
        others = [level for level in levels if level != positive]
        known = {"1": positive, **({"0": others[0]} if len(others) == 1 else {}), **known}
    else:
        known = {"1": 1, "0": 0, **known}
    if label not in known and all(isinstance(level, bool) for level in levels):
        known |= {label: TRUTHS[label.lower()]} if label.lower() in TRUTHS else {}
    if label not in known:
        raise InvalidParameterError(
            f"`--favourable` must be 1, 0 or a label of {name!r}; no row has {label!r}."
            f"{nearest(label, map(str, levels))} Labels: {quoted(levels)}."
        )
    drafted.roles["favourable"] = known[label]
    drafted.reasons["favourable"] = "given with --favourable"


def _above(layout: Layout) -> str:
    """Say which lines above the table are not read."""
    if not layout.skipped:
        return ""
    said = ", ".join(shown(line) for line in layout.skipped[:3])
    return f"Not read, because the table starts below: {said}."


def _no_header(columns: Sequence[ColumnProfile], layout: Layout) -> str:
    """Say that the columns have no names, or that their names look like a row of data."""
    if layout.names:
        return (
            f"The first line is a row of data, so the columns are called {layout.names[0]} to"
            f" {layout.names[-1]}. Write their names into `names` and use them below, or write a"
            " line of names above the file and run `equipoise init` again; if the first line has"
            " them after all, delete `names` and write `header = true`."
        )
    names = [column.name for column in columns]
    # Of two columns of one name a reader calls the second name_1.
    numbers = [name for name in names if re.fullmatch(r"[-+.\d]*\d(_\d+)?", name.strip())]
    values = [
        column.name
        for column in columns
        if column.kind == "text" and column.name.strip() in {str(v).strip() for v in column.levels}
    ]
    if not values and 2 * len(numbers) <= len(names):
        return ""
    said = ", ".join(map(one_line, names[:4]))
    return (
        f"The names of the columns look like a row of data ({said}). If they are one, write"
        " `header = false` under [data]; if lines of names stand among the rows, delete them."
    )


def _identifiers(plan: Draft, free: dict[str, ColumnProfile]) -> None:
    for column in list(free.values()):
        each = column.distinct == column.n > MOST_LEVELS
        if reason := _unusable(column):
            plan.left[column.name] = reason
        elif _named(NAME_WORDS, column) and column.kind == "text":
            plan.left[column.name] = "a name: it identifies people"
        elif each and (
            column.kind == "text"
            or (column.whole and (_named(IDENTIFIER_WORDS, column) or _numbered(column)))
        ):
            plan.left[column.name] = "a different value in every row: an identifier"
        elif (
            "cluster" not in plan.roles
            and column.distinct > MOST_LEVELS
            and (column.whole or column.kind == "text")
            and (_named(IDENTIFIER_WORDS, column) or _named(UNIT_WORDS, column))
        ):
            plan.give("cluster", column, f"its name, and values that repeat ({_seen(column)})")
        elif "cluster" not in plan.roles and _numbers_units(column):
            plan.give(
                "cluster",
                column,
                f"numbers without a gap that repeat ({_seen(column)}), as those of people do:"
                " check this",
            )
        elif _named(IDENTIFIER_WORDS, column) and column.distinct > MOST_LEVELS:
            plan.left[column.name] = "an identifier, by its name"
        else:
            continue
        del free[column.name]


def _unusable(column: ColumnProfile) -> str:
    """Say why no audit can use a column; empty if one can."""
    if column.name in KEPT_NAMES:
        return "a name that engines keep for themselves: rename it to use it"
    if column.kind == "nested":
        return "lists or structures, which no audit can use"
    return {0: "empty", 1: "a single value"}.get(column.distinct, "")


def _numbers_units(column: ColumnProfile) -> bool:
    """Whether every number from 1 on is there, too many for a grade and most of them repeated."""
    return (
        column.whole
        and not column.missing
        and column.low in {0, 1}
        and column.high == column.distinct + column.low - 1
        and 5 * MOST_NAMED_LEVELS < column.distinct <= column.n / 2
        and not _named(SCORE_WORDS, column)
    )


def _numbered(column: ColumnProfile) -> bool:
    """Whether whole numbers, all different, count the rows or are called a number."""
    if _named(SCORE_WORDS, column) or _protected(column):
        return False
    return (column.high or 0) - (column.low or 0) == column.n - 1 or _named(NUMBER_WORDS, column)


def _predicted_outcome(plan: Draft, free: dict[str, ColumnProfile]) -> None:
    """Give the outcome to a number beside which its prediction stands."""
    for column in [c for c in free.values() if c.kind == "number" and not _protected(c)]:
        hats = [f"{column.name}_{end}" for end in ("hat", "pred", "predicted", "prediction")]
        hat = next((free[name] for name in hats if name in free), None)
        if hat is None or column.distinct < 2:
            continue
        plan.amount = not column.binary
        plan.give("y_true", free.pop(column.name), f"`{hat.name}` predicts it ({_seen(column)})")
        if "y_score" not in plan.roles and hat.kind == "number" and not hat.binary:
            plan.give("y_score", free.pop(hat.name), f"predicts `{column.name}` ({_seen(hat)})")
        return
    for column in [c for c in free.values() if _named(MODELLED_WORDS, c) and not _protected(c)]:
        if "y_score" not in plan.roles and column.kind == "number" and column.distinct > 2:
            plan.give("y_score", free.pop(column.name), f"its name, and numbers ({_seen(column)})")


def _several_values(plan: Draft, free: dict[str, ColumnProfile]) -> None:
    """Name a decision or an outcome of several values, and guess no other: a person must choose."""
    for role, words, noun in (
        ("y_pred", (PREDICTED_WORDS,), "a decision"),
        ("y_true", (*OUTCOME_WORDS[:2], SEVERAL_WORDS), "an outcome"),
    ):
        fitting = [
            c
            for c in free.values()
            if (c.kind == "text" or (role == "y_pred" and c.whole))
            and 2 < c.distinct <= MOST_LEVELS
            and not _protected(c)
            and any(_named(word, c) for word in words)
            and (role == "y_true" or not _repayment(c))
        ]
        for column in [] if {"y_pred", "y_true"} & set(plan.roles) else fitting[:1]:
            del free[column.name]
            plan.left[column.name] = (
                f"{noun} of several values ({_seen(column)}): to use it, write under"
                f" [data] {role} = {toml_value(column.name)}, and positive = the value that"
                " counts as 1"
            )
            plan.undecided = (role, column.name)


def _named_outcome(plan: Draft, free: dict[str, ColumnProfile]) -> None:
    """Give the outcome to a column whose name says so; of several, to the last of the surest."""
    for tier, words in enumerate(OUTCOME_WORDS):
        fitting = [
            c
            for c in free.values()
            if (_named(words, c) or (tier == 2 and _repayment(c)))
            and not _protected(c)
            and (c.binary or (c.kind == "number" and tier < 2 and c.distinct > 2))
        ]
        fitting = [c for c in fitting if c.binary] or fitting
        # Of two columns of one name a reader calls the second name_1.
        fitting = [c for c in fitting if re.sub(r"_1$", "", c.name) not in {*free} - {c.name}]
        if fitting:
            column = free.pop(fitting[-1].name)
            plan.amount = not column.binary
            plan.give("y_true", column, f"its name ({_seen(column)})")
            return


def _arms(plan: Draft, free: dict[str, ColumnProfile]) -> None:
    """Keep the arms of an experiment, and parts of the table, from being read as groups."""
    told = False
    for column in list(free.values()):
        arms = _named(TREATMENT_WORDS, column) and _few(column)
        if column.kind == "text" and (
            arms or any(CONTROL_WORDS.search(str(v)) for v in column.levels)
        ):
            told = True
            plan.left[column.name] = (
                f"looks like the arms of an experiment ({_seen(column)}); for `treatment` make it"
                " 0 and 1"
            )
            del free[column.name]
        elif _named(SPLIT_WORDS, column) and _few(column):
            plan.left[column.name] = f"a part of the table ({_seen(column)}), not a group of people"
            del free[column.name]
    switches = [c for c in free.values() if _zero_one(c) and not _protected(c)]
    open_arm = "effect_pred" in plan.roles and "treatment" not in plan.roles and not told
    for column in switches if open_arm and len(switches) == 1 else ():
        plan.give(
            "treatment",
            free.pop(column.name),
            f"the only 0 and 1 beside a predicted effect ({_seen(column)}): check this",
        )


def _groups(plan: Draft, free: dict[str, ColumnProfile]) -> None:
    chosen = _named_groups(free)
    why = "names or values that characterise people"
    if not chosen and not plan.names:
        chosen = _texts(plan, free)
        why = "text with few values"
    if not chosen:
        chosen = [c for c in free.values() if _few(c) and c.name in LETTERS]
        why = "a letter that papers use for groups"
    for column in chosen[MOST_GROUPS:]:
        plan.left[column.name] = "could be a group too"
    for column in chosen:
        del free[column.name]
    chosen = chosen[:MOST_GROUPS]
    if chosen:
        plan.roles["group"] = [c.name for c in chosen]
        seen = "; ".join(f"{c.name}: {_seen(c)}" for c in chosen)
        plan.reasons["group"] = f"{why} ({seen})"
    for column in chosen:
        if not _few(column) and column.kind == "number":
            plan.roles["bins"] = {column.name: [*AGES]}
            plan.reasons["bins"] = (
                "cut points for age: choose those that the law or your policy names"
            )
    for column in list(free.values()):
        if _protected(column):
            plan.left[column.name] = "characterises people: could be a group too"
            del free[column.name]


def _texts(plan: Draft, free: dict[str, ColumnProfile]) -> list[ColumnProfile]:
    """Return columns of few words; two words in the last one are an outcome if none is known."""
    texts = [c for c in free.values() if _few(c) and c.kind in {"text", "boolean"}]
    known = {"y_true", "y_pred"} & set(plan.roles) or plan.undecided
    last = [] if known else [*free.values()][-1:]
    return [c for c in texts if not (c.binary and c in last)]


def _few(column: ColumnProfile) -> bool:
    return column.kind != "other" and 2 <= column.distinct <= MOST_LEVELS


def _named_groups(free: dict[str, ColumnProfile]) -> list[ColumnProfile]:
    """Return the columns whose names characterise people, by the kind of the characteristic."""
    chosen: list[ColumnProfile] = []
    for kind in CLASSES:
        named = [
            c
            for c in free.values()
            if _few(c) and _characterises(c, kind) and _protected(c) and c not in chosen
        ]
        if kind == "age":
            marks = [c for c in named if c.binary]
            named = [c for c in named if not c.binary] or [
                c for c in free.values() if _named(YEARS_WORDS, c) and _years(c)
            ]
            named = named or (marks if len(marks) == 1 else [])
        # A column with all the values says more than one that marks a single value.
        whole = [c for c in named if not _zero_one(c)]
        whole.sort(key=lambda c: (_named(PLACE_WORDS, c), len(c.name)))
        chosen += whole[:1] or named[:2]
    many = [c for c in free.values() if c.kind == "text" and c.distinct <= MOST_NAMED_LEVELS]
    return chosen or [c for c in many if _protected(c)][:1]


def _remaining(plan: Draft, free: dict[str, ColumnProfile]) -> None:
    """Give the outcome, and failing all else the score, to what is left."""
    if not ({"y_true", "y_pred"} & set(plan.roles) or plan.undecided):
        _unnamed_outcome(plan, free)
    for column in free.values():
        plan.left[column.name] = _seen(column)
        if column.kind == "number" and not column.missing:
            plan.numbers.append(column.name)


def _unnamed_outcome(plan: Draft, free: dict[str, ColumnProfile]) -> None:
    """Outcomes tend to be the last column of a table, and to have two values."""
    fitting = [c for c in free.values() if not _named(PLACE_WORDS, c)]
    if "weight" in plan.roles:
        # Those of replicates follow the weight that is used.
        fitting = [c for c in fitting if not _named(WEIGHT_WORDS, c)]
    fitting = [c for c in fitting if not _named(SCHOOLING_WORDS, c)] or fitting
    if not fitting:
        return
    last = fitting[-1]
    told = [c for c in fitting if c.kind == "text" or _zero_one(c) or c is last]
    pairs = [c for c in told if c.binary]
    numbers = [c for c in fitting if c.kind == "number" and c.distinct > 2]
    numbers = [c for c in numbers if not _named(SIZE_WORDS, c)] or numbers
    amounts = [c for c in numbers if _named(AMOUNT_WORDS, c)]
    paid = [c for c in numbers if _named(PAID_WORDS, c)]
    if "y_score" in plan.roles:
        # Beside a score many numbers are features; two values are what it predicts.
        numbers = amounts = paid = []
        pairs = [c for c in pairs if c.kind != "text" or _yes_or_no(c)]
    ends = [last] if last in numbers else []
    few = [c for c in ends if c.distinct <= 10 and c.whole and not _named(SIZE_WORDS, c)]
    series = [c for c in ends if not amounts and _ends_a_series(c, fitting)]
    guesses = (
        (ends if "treatment" in plan.roles else [], "the last column of an experiment"),
        (few, "the last column, with few values"),
        ([c for c in ends if c in amounts], "the last column, by its name"),
        (series, "the last column, and the last of its series"),
        ([_latest(paid)] if paid and pairs[-1:] != [last] else [], "its name, and numbers"),
        (pairs[-1:], "the last column with two values"),
        (amounts[:1], "its name, and numbers"),
        (numbers[-1:], "the last numbers"),
    )
    for columns, why in guesses:
        for column in columns:
            plan.amount = not column.binary
            plan.give("y_true", free.pop(column.name), f"{why} ({_seen(column)}): check this")
            return


def _effects(plan: Draft, columns: Sequence[ColumnProfile]) -> None:
    """Tell predicted ratios of outcomes from predicted differences by their range."""
    predicted = next((c for c in columns if c.name == plan.roles.get("effect_pred")), None)
    if predicted is not None and (predicted.low or 0.0) > 0.0 and (predicted.high or 0.0) > 1.0:
        whole = plan.amount and (predicted.high or 0.0) > MOST_RATIO
        plan.measure = "difference" if whole else "relative"


def _ends_a_series(column: ColumnProfile, columns: Sequence[ColumnProfile]) -> bool:
    """Whether the same was measured before under the number below: G1, G2 and G3."""
    stem, number = re.fullmatch(r"(.*?)(\d*)", column.name, re.DOTALL).groups()  # type: ignore[union-attr]
    return bool(number) and f"{stem}{int(number) - 1}" in {c.name for c in columns}


def _latest(amounts: Sequence[ColumnProfile]) -> ColumnProfile:
    """Return the first amount, or that of the last year if names differ in years: re74, re78."""
    stem = re.sub(r"\d\d$", "", amounts[0].name)
    years = [c for c in amounts if re.sub(r"\d\d$", "", c.name) == stem]
    return max(years, key=lambda c: c.name)


def _labels(plan: Draft, columns: Sequence[ColumnProfile]) -> None:
    """Say which label counts as 1, and what to do with missing values."""
    by_name = {column.name: column for column in columns}
    labels = [by_name[plan.roles[role]] for role in ("y_pred", "y_true") if role in plan.roles]
    if len(labels) > 1 and not plan.amount and not _same_words(*labels):
        outcome = labels.pop()
        del plan.roles["y_true"], plan.reasons["y_true"]
        plan.undecided = ("y_true", outcome.name)
        plan.left[outcome.name] = (
            f"an outcome whose labels ({_seen(outcome)}) are not those of `{labels[0].name}`"
            f" ({_seen(labels[0])}): to use it, write the same two labels, such as 1 and 0, into"
            " both columns"
        )
    texts = [c for c in labels if c.kind == "text" or (c.binary and not _zero_one(c))]
    if texts:
        # `positive = 1` is the default and means labels 0 and 1: of 1 and 2 it is the other one.
        known = {
            _folded(str(level)).strip().lower(): level
            for c in texts
            for level in c.levels
            if level != 1
        }
        told = [
            level
            for bad in (False, True)
            for level in known.values()
            if (word := _valence(str(level))) and not word.negated and word.bad == bad
        ]
        named = [known[word] for word in POSITIVE_WORDS if word in known]
        positive = [*named, *told, [*known.values()][-1]][0]
        plan.roles["positive"] = positive
        plan.reasons["positive"] = (
            f"the label that counts as 1, of {', '.join(map(str, texts[0].levels))}: check this"
        )
    used = {name for role, name in plan.roles.items() if isinstance(name, str)}
    used |= set(plan.roles.get("group", ()))
    gaps = [c for c in columns if c.name in used and c.missing]
    if gaps:
        plan.roles["missing"] = "drop"
        counts = ", ".join(f"{c.name} {c.missing}" for c in gaps)
        plan.reasons["missing"] = f"missing values in the rows looked at: {counts}"


def _favourable(plan: Draft, columns: Sequence[ColumnProfile]) -> None:
    """Say which decision, or failing that which outcome, is good for the person."""
    by_name = {column.name: column for column in columns}
    decision, outcome = (by_name.get(plan.roles.get(role, "")) for role in ("y_pred", "y_true"))
    goods = {c.name: _good_label(plan, c) for c in (decision, outcome) if c is not None}
    good = next(filter(None, goods.values()), None)
    if decision is not None and outcome is not None:
        first, second = goods[decision.name], goods[outcome.name]
        if first and second:
            odd = (first[0] == _one(plan, decision)) != (second[0] == _one(plan, outcome))
            plan.at_odds = outcome.name if odd else ""
        elif second:
            # A label of the outcome is none of a decision that is no prediction of it.
            label, reason = second
            same = label in {0, 1} or label in decision.levels
            predicts = same and not _named(CHOICE_WORDS, decision)
            reason = reason.removesuffix(": check this")
            reason += f", and `{decision.name}` is taken to predict it: check this"
            good = (label, reason) if predicts else None
    elif decision is not None and good and "y_score" in plan.roles:
        score = by_name[plan.roles["y_score"]]
        valence = _valence(score.name)
        bad = _named(RISK_WORDS, score) or (valence is not None and valence.bad)
        odd = (bad or valence is not None) and bad == (good[0] == _one(plan, decision))
        plan.at_odds = plan.roles["y_score"] if odd else ""
    if good:
        plan.roles["favourable"], plan.reasons["favourable"] = good


def _good_label(plan: Draft, column: ColumnProfile) -> tuple[Any, str] | None:
    """Read from its labels, or else from its name, which label is good, with the reason."""
    if not (column.binary or column.kind == "boolean"):
        return None
    told = [(label, _valence(str(label))) for label in column.levels if column.kind == "text"]
    known = [(label, valence) for label, valence in told if valence]
    if len({valence.bad for _, valence in known}) == len(known) > 0:
        label, valence = known[0]
        other = next(level for level in column.levels if level != label)
        reason = f"`{column.name}` = {label} reads as {valence.said} for the person"
        return (other if valence.bad else label), reason
    if not (named := _valence(column.name)):
        return None
    good = 0 if named.bad else 1
    # A label says more than 1 or 0, and stays right if `positive` is corrected.
    labels = sorted(column.levels, key=lambda level: level == plan.roles.get("positive"))
    text = column.kind == "text" and plan.roles.get("positive") in labels
    reason = f"'{named.word}' in `{column.name}` reads as {named.said} for the person"
    return (labels[good] if text else good), f"{reason}: check this"


def _one(plan: Draft, column: ColumnProfile) -> Any:
    """Return the label of a column that counts as 1."""
    positive = plan.roles.get("positive", 1)
    return 1 if isinstance(positive, str) and positive not in column.levels else positive


def _same_words(decision: ColumnProfile, outcome: ColumnProfile) -> bool:
    """Whether one label can count as 1 in both columns; 0 and 1 go with any text."""
    if _zero_one(decision) or _zero_one(outcome):
        return all(_zero_one(c) or c.kind == "text" for c in (decision, outcome))
    return set(decision.levels) == set(outcome.levels)


def _words(plan: Draft, columns: Sequence[ColumnProfile]) -> None:
    """Read from names of columns what is said of people, where the values say yes and no."""
    for column in columns:
        if not _yes_or_no(column):
            continue
        name = _plain(column.name).lower()
        if column.name == plan.roles.get("y_pred") and (decided := DECIDED.search(name)):
            word = {"call": "called"}.get(decided[2], decided[2])
            plan.words["y_pred"] = (word, f"not {word}")
        if column.name == plan.roles.get("y_true") and not re.search(r"(^|_)(no|not|non)_", name):
            known = [said for word, said in HAPPENED.items() if word in name.split("_")]
            plan.words |= {"y_true": known[0]} if known else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Valence:
    """A word that is good or bad for a person."""

    word: str
    bad: bool
    negated: bool

    @property
    def said(self) -> str:
        return "bad" if self.bad else "good"


def _valence(text: str) -> _Valence | None:
    """Read whether a name or a label is good for a person; "not" before a word turns it around."""
    plain = _plain(text)
    for words, bad in ((BAD_WORDS, True), (GOOD_WORDS, False)):
        if found := words.search(plain):
            start = found.start() + found[0].startswith("_")
            no, free = NEGATION.search(plain[:start]), FREE.match(plain[found.end() :])
            end = found.end() + (free.end() if free else 0)
            word = plain[(no or found).start() : end].strip("_")
            negated = (no is None) != (free is None)
            return _Valence(word=word, bad=bad != negated, negated=negated)
    return None


def _named(words: re.Pattern[str], column: ColumnProfile) -> bool:
    return words.search(_plain(column.name)) is not None


def _yes_or_no(column: ColumnProfile) -> bool:
    labels = {_folded(str(level)).strip().lower() for level in column.levels}
    return column.binary and (_zero_one(column) or bool(labels & NO_WORDS))


def _two_decisions(column: ColumnProfile) -> bool:
    """Whether two labels are a good and a bad decision, whatever the name says."""
    if not (column.binary and column.kind == "text"):
        return False
    told = [_valence(str(level)) for level in column.levels]
    decided = all(PREDICTED_WORDS.search(_plain(str(level))) for level in column.levels)
    return decided and {word.bad for word in told if word} == {True, False}


def _repayment(column: ColumnProfile) -> bool:
    """Whether labels say what became of a loan: the status of one that was granted."""
    return column.kind == "text" and any(REPAYMENT.search(str(v)) for v in column.levels)


def _plain(name: str) -> str:
    """Return the words of a name, joined by one sign: "Applicant Race" and applicantRace alike."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", _folded(name))
    return re.sub(r"[\W_]+", "_", apart).strip("_")


def _folded(text: str) -> str:
    """Return letters without their accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def _protected(column: ColumnProfile) -> bool:
    """Whether a name, or values, characterise people: such a column is a group and nothing else."""
    named = any(_characterises(column, kind) for kind in CLASSES)
    return named and not _named(TREATMENT_WORDS, column)


def _characterises(column: ColumnProfile, kind: str) -> bool:
    return _named(CLASSES[kind], column) or _kind_of(column) == kind


def _kind_of(column: ColumnProfile) -> str | None:
    """Return what the labels of a column are: sexes, races, or neither that is known."""
    if column.kind != "text":
        return None
    labels = [_plain(str(level)).lower() for level in column.levels]
    sexes = [
        SEXES.intersection([label, *(w for w in label.split("_") if len(w) > 1)])
        for label in labels
    ]
    named = set().union(*sexes)
    if len(named) > 1 and len(labels) <= MOST_SEXES and (all(sexes) or named <= {*labels}):
        return "sex"
    return "race" if sum(RACES.search(label) is not None for label in labels) > 1 else None


def _within(column: ColumnProfile, low: float, high: float) -> bool:
    return (
        column.low is not None
        and column.high is not None
        and low <= column.low <= column.high <= high
    )


def _years(column: ColumnProfile) -> bool:
    """Whether numbers may be ages in years, on both sides of a cut point."""
    return _within(column, 0.0, 130.0) and any(
        (column.low or 0.0) < cut < (column.high or 0.0) for cut in AGES
    )


def _zero_one(column: ColumnProfile) -> bool:
    return column.kind == "boolean" or (
        column.kind == "number" and column.binary and (column.low, column.high) == (0.0, 1.0)
    )


def _seen(column: ColumnProfile) -> str:
    if column.levels and len(column.levels) <= 6:
        return ", ".join(one_line(str(level))[:30] for level in column.levels)
    if column.kind == "number":
        return f"{column.distinct} values from {column.low:g} to {column.high:g}"
    return f"{column.distinct} values"
