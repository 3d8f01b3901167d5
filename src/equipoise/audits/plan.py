"""Plans: a TOML file that names the data, the roles and the questions."""

import inspect
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equipoise._checks import nearest, quoted
from equipoise.audits.audit import Audit
from equipoise.audits.result import AuditResult
from equipoise.audits.subgroup_comparison import External
from equipoise.exceptions import InvalidParameterError

__all__ = ["QUESTIONS", "Check", "Plan", "read_plan", "run_check"]

QUESTIONS = (
    "disparity",
    "flag",
    "certify",
    "predictive_parity",
    "marginal_outcome",
    "improvability",
    "inequality",
    "treatment_effects",
)
"""Methods of `Audit` that a plan may ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question of a plan with its options."""

    question: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a plan file says.

    Parameters
    ----------
    path : str
        The data, relative to the plan's folder unless absolute.
    roles : dict
        Arguments of `Audit`.
    checks : tuple of Check
        The questions, in order.
    report : dict
        `title` and `order` of the page.
    text : str
        The file as written.
    """

    path: str
    roles: dict[str, Any]
    checks: tuple[Check, ...]
    report: dict[str, Any] = field(default_factory=dict)
    text: str = ""


def read_plan(file: str | Path) -> Plan:
    """Read and check a plan; every unknown key is an error that names the nearest known one.

    Parameters
    ----------
    file : str or Path
        A TOML file.

    Returns
    -------
    Plan
    """
    source = Path(file)
    try:
        text = source.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except FileNotFoundError as error:
        raise InvalidParameterError(f"Plan {str(source)!r} not found.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidParameterError(f"Plan {str(source)!r} is not valid TOML: {error}.") from error
    _known("the plan", content, ("data", "check", "report"))
    data = content.get("data")
    if not isinstance(data, dict) or "path" not in data:
        raise InvalidParameterError("The plan needs a [data] table with a `path`.")
    roles = {key: value for key, value in data.items() if key != "path"}
    _known("[data]", roles, tuple(set(_parameters(Audit.__init__)) - {"data", "engine"}))
    report = content.get("report", {})
    _known("[report]", report, ("title", "order"))
    checks = content.get("check", [])
    if not isinstance(checks, list) or not checks:
        raise InvalidParameterError("The plan asks nothing; add a [[check]] with a `question`.")
    path = Path(str(data["path"]))
    return Plan(
        path=str(path if path.is_absolute() else source.parent / path),
        roles=roles,
        checks=tuple(_check(k, check) for k, check in enumerate(checks, start=1)),
        report=report,
        text=text,
    )


def run_check(audit: Audit, check: Check) -> AuditResult:
    """Ask one question of a plan."""
    options = dict(check.options)
    external = options.get("reference")
    if isinstance(external, dict) and set(external) == {"value", "se"}:
        options["reference"] = External(**external)
    result: AuditResult = getattr(audit, check.question)(**options)
    return result


def _check(number: int, content: Any) -> Check:
    where = f"[[check]] {number}"
    question = content.get("question") if isinstance(content, dict) else None
    if question not in QUESTIONS:
        hint = nearest(question, QUESTIONS) if isinstance(question, str) else ""
        raise InvalidParameterError(
            f"{where} needs a `question`, one of {quoted(QUESTIONS)}; got {question!r}.{hint}"
        )
    method = getattr(Audit, question, None)
    if method is None:
        raise InvalidParameterError(f"{where}: {question!r} is not available in this version.")
    options = {key: value for key, value in content.items() if key != "question"}
    parameters = _parameters(method)
    _known(where, options, tuple(parameters))
    needed = [name for name, p in parameters.items() if p.default is inspect.Parameter.empty]
    absent = [name for name in needed if name not in options]
    if absent:
        raise InvalidParameterError(f"{where}: {question!r} needs {quoted(absent)}.")
    return Check(question=question, options=options)


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    parameters = dict(inspect.signature(function).parameters)
    parameters.pop("self")
    return parameters


def _known(where: str, content: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in content:
        if key not in known:
            raise InvalidParameterError(
                f"{where} has the unknown key {key!r}.{nearest(key, known)}"
                f" Known keys: {quoted(sorted(known))}."
            )
