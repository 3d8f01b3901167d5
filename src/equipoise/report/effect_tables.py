"""What a reader of effects needs beside the biases: every number of a group on one line."""

from typing import Any

from equipoise.audits.effects.questions import EffectDetails, correction_words
from equipoise.report.improvement_tables import PlainTable
from equipoise.results.details import details_of
from equipoise.results.formats import number, p_value
from equipoise.results.result import AuditResult

__all__ = ["effect_tables"]


def effect_tables(result: AuditResult) -> tuple[PlainTable, ...]:
    """Return the table of effects and corrections, and that of what corrections leave.

    Parameters
    ----------
    result : AuditResult
        Of `Audit.treatment_effects`; one without tested groups has no such tables.

    Returns
    -------
    tuple of PlainTable
    """
    details = details_of(result.details, EffectDetails)
    if not details.group:
        return ()
    if details.paper is not None:
        return (*_published(details, details.paper), *_checks(details))
    several = len(set(details.arm)) > 1
    names = [
        f"{g}, {arm}" if several else g for g, arm in zip(details.group, details.arm, strict=True)
    ]
    amounts = _amounts(details)
    slopes = details.slopes or [{"slope": None, "se": None}] * len(names)
    lines = PlainTable(
        caption="Effect, prediction, error and correction of each group (rule:"
        f" {correction_words(details.correction, code=True)}; standard errors and intervals in"
        " brackets)",
        columns=("Group", "Effect", "Predicted", "Error", "Subtract", "Remaining", "Slope"),
        rows=tuple(
            (
                name,
                f"{number(details.tau[k])} ({number(details.tau_se[k])})",
                number(details.tau_f[k]),
                f"{number(details.B[k])} {_ends(details.B_ci[k])}",
                number(amounts[k]),
                f"{number(details.remaining['B'][k])} {_ends(details.remaining['B_ci'][k])}",
                f"{number(slopes[k]['slope'])} ({number(slopes[k]['se'])})"
                if slopes[k]["slope"] is not None
                else "",
            )
            for k, name in enumerate(names)
        ),
    )
    return (lines, *_evaluation(details), *_prices(details), *_checks(details))


def _published(details: EffectDetails, found: dict[str, Any]) -> tuple[PlainTable, ...]:
    """Return the tables of the published procedure."""
    lines = PlainTable(
        caption="Effect, prediction and error of each group by the published procedure (standard"
        " errors and intervals in brackets)",
        columns=("Group", "Effect", "Predicted", "Error", "Error of the rest"),
        rows=tuple(
            (
                name,
                f"{number(details.tau[k])} ({number(details.tau_se[k])})",
                f"{number(details.tau_f[k])} ({number(details.tau_f_se[k])})",
                f"{number(details.B[k])} {_ends(details.B_ci[k])}",
                number(details.rest[k]),
            )
            for k, name in enumerate(details.group)
        ),
    )
    names = ("strategies", "error_mean_square", "bias_mean_square", "rejected")
    strategies = PlainTable(
        caption="Mean square of what a strategy leaves on the other half, sampling noise included",
        columns=("Strategy", "Errors", "Biases", "Still detected"),
        rows=tuple(
            (
                correction_words(rule, code=True),
                number(error),
                number(bias),
                f"{100 * rejected:.0f}%",
            )
            for rule, error, bias, rejected in zip(*(found[x] for x in names), strict=True)
        ),
    )
    return lines, strategies


def _amounts(details: EffectDetails) -> list[float]:
    """Return the correction shown, arm after arm."""
    if not details.by_arm:
        return details.corrections[details.correction or "none"]
    rules = {entry["arm"]: entry["correction"] for entry in details.by_arm}
    return [details.corrections[rules[arm]][k] for k, arm in enumerate(details.arm)]


def _ends(bounds: list[float | None]) -> str:
    low, high = (
        ("-inf" if bounds[0] is None else number(bounds[0])),
        ("inf" if bounds[1] is None else number(bounds[1])),
    )
    return f"[{low}, {high}]"


def _evaluation(details: EffectDetails) -> tuple[PlainTable, ...]:
    found, advice = details.evaluation, details.recommended
    if found is None or advice is None:
        return ()
    recommended, candidate = (
        correction_words(advice[part], code=True) for part in ("rule", "candidate")
    )
    table = PlainTable(
        caption="Mean square of the errors that a rule leaves on the other half, sampling noise"
        f" taken out. Recommended: {recommended} (no group errs: p {p_value(advice['p_zero'])};"
        f" expected change by {candidate}: {number(advice['delta'])}, standard error"
        f" {number(advice['delta_se'])})",
        columns=("Rule", "Errors", "Biases", "Still detected"),
        rows=tuple(
            (
                correction_words(rule, code=True),
                number(error),
                number(bias),
                f"{100 * rejected:.0f}%",
            )
            for rule, error, bias, rejected in zip(
                found["corrections"],
                found["error_mean_square"],
                found["bias_mean_square"],
                found["rejected"],
                strict=True,
            )
        ),
    )
    return (table,)


def _prices(details: EffectDetails) -> tuple[PlainTable, ...]:
    """Return what each rule buys and costs."""
    if not details.frontier:
        return ()
    decided = details.rule is not None
    caption = (
        "What a correction buys and costs on rows that it has not seen: the error of groups that"
        " remains (root mean square), the change of the personal squared error (it falls with that"
        " of the groups: there is no price to pay in accuracy)"
    )
    if decided:
        caption += ", and the change of what decisions gain, with an interval"
    columns = ("Rule", "Error of groups", "Personal squared error")
    return (
        PlainTable(
            caption=caption,
            columns=(*columns, "Gain of decisions", "Changed") if decided else columns,
            rows=tuple(
                (
                    correction_words(entry["rule"], code=True),
                    number(entry["group_error"]),
                    f"{number(entry['loss'])} ({number(entry['loss_se'])})",
                    *(
                        (
                            _with_ends(entry),
                            f"{100 * entry['flipped']:.1f}%",
                        )
                        if decided
                        else ()
                    ),
                )
                for entry in details.frontier
            ),
        ),
    )


def _with_ends(entry: dict[str, Any]) -> str:
    return f"{number(entry['value'])} {_ends([entry['value_low'], entry['value_high']])}"


def _checks(details: EffectDetails) -> tuple[PlainTable, ...]:
    ratio, balance = details.checks.get("sample_ratio"), details.checks.get("balance")
    if ratio is None:
        return ()
    columns: tuple[str, ...] = ("Group", "Treated", "p (shares)")
    rows: list[tuple[str, ...]] = [
        (group, f"{100 * share:.1f}%", p_value(p))
        for group, share, p in zip(ratio["group"], ratio["share"], ratio["p_value"], strict=True)
    ]
    if balance is not None:
        columns = (*columns, "p (balance)", "Largest difference (sd)", "Covariate")
        rows = [
            (
                *row,
                p_value(balance["p_value"][k]),
                number(balance["largest"][k]),
                balance["covariate"][k],
            )
            for k, row in enumerate(rows)
        ]
    return (
        PlainTable(
            caption="Checked: the arms of the experiment", columns=columns, rows=tuple(rows)
        ),
    )
