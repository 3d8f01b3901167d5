"""Everything one plan produced: the answers, and what is needed to repeat them."""

from dataclasses import dataclass
from typing import Any

from equipoise._typing import Multiplicity
from equipoise.exceptions import InvalidParameterError
from equipoise.results.result import READABLE_VERSIONS, SCHEMA_VERSION, AuditResult

__all__ = ["Check", "Dossier"]

_PLAIN = ("title", "created", "plan", "multiplicity", "data", "versions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question of a plan with its answer.

    Parameters
    ----------
    id : str
        Unique in the plan; names the section of the report and the test suite of the gate.
    question : str
        The method of `Audit` that was called.
    options : dict
        Its arguments, as the plan gives them.
    result : AuditResult
        The answer.
    group : tuple of str, optional
        Group columns of this check, where they are not those of the plan.
    """

    id: str
    question: str
    options: dict[str, Any]
    result: AuditResult
    group: tuple[str, ...] | None = None

    @property
    def call(self) -> str:
        """The same question as a line of Python."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        audit = "audit" if self.group is None else f"Audit(..., group={list(self.group)})"
        return f"{audit}.{self.question}({arguments})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """The checks of a plan with their results, the data and the versions behind them.

    Parameters
    ----------
    title : str
        Heading of the report.
    created : str
        When, in UTC, as ISO 8601.
    plan : str
        The text of the plan, character by character.
    multiplicity : {"none", "bonferroni"}
        Whether the level was shared among the checks.
    data : dict
        ``source``, ``rows``, ``roles`` and the fingerprint of every file.
    versions : dict
        Name and version of equipoise, Python and the libraries that computed.
    checks : tuple of Check
        In the order of the plan.
    """

    title: str
    created: str
    plan: str
    multiplicity: Multiplicity
    data: dict[str, Any]
    versions: dict[str, str]
    checks: tuple[Check, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as a JSON-safe dictionary with a `schema_version`."""
        return {
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in _PLAIN},
            "checks": [
                {
                    "id": check.id,
                    "question": check.question,
                    "options": check.options,
                    "group": None if check.group is None else list(check.group),
                    "result": check.result.to_dict(),
                }
                for check in self.checks
            ],
        }

    @classmethod
    def from_dict(cls, data: Any) -> "Dossier":
        """Rebuild a dossier from `to_dict`; raise when the dictionary is not one."""
        if not isinstance(data, dict) or "checks" not in data:
            raise InvalidParameterError(
                "results must be the file that `equipoise audit PLAN.toml --json FILE` writes;"
                " found no 'checks' in it."
            )
        if data.get("schema_version") not in READABLE_VERSIONS:
            raise InvalidParameterError(
                f"results have schema_version {data.get('schema_version')!r}; this version reads"
                f" {READABLE_VERSIONS}. Run the audit again."
            )
        try:
            checks = tuple(
                Check(
                    **{name: record[name] for name in ("id", "question", "options")},
                    group=None if record["group"] is None else tuple(record["group"]),
                    result=AuditResult.from_dict(record["result"]),
                )
                for record in data["checks"]
            )
            return cls(**{name: data[name] for name in _PLAIN}, checks=checks)
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidParameterError(
                f"results are incomplete or were edited ({error!r}). Run the audit again."
            ) from error
