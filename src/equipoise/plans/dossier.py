"""Everything one plan produced: the answers, and what is needed to repeat them."""

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from equipoise._typing import Multiplicity
from equipoise.exceptions import InvalidParameterError
from equipoise.results.disclosure import MIN_CELL, withheld_groups, without
from equipoise.results.result import READABLE_VERSIONS, SCHEMA_VERSION, AuditResult

__all__ = ["Check", "Dossier", "load", "read_results"]

_PLAIN: dict[str, type] = {
    "title": str,
    "created": str,
    "plan": str,
    "multiplicity": str,
    "data": dict,
    "versions": dict,
}
_DATA: dict[str, type] = {"source": str, "rows": int, "roles": dict, "files": list}
_FILE: dict[str, type] = {"name": str, "bytes": int, "sha256": str}
"""What a dossier holds as it is, and what must be in its data."""


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
    min_cell : int
        Rows that a group needs for its numbers to leave the process.
    failed : dict
        Why checks could not be answered, by id; the others are.
    """

    title: str
    created: str
    plan: str
    multiplicity: Multiplicity
    data: dict[str, Any]
    versions: dict[str, str]
    checks: tuple[Check, ...]
    min_cell: int = MIN_CELL
    failed: dict[str, str] = field(default_factory=dict)

    def disclosed(self) -> "Dossier":
        """Return the dossier without the numbers of groups of fewer than `min_cell` rows."""
        hidden = withheld_groups([check.result for check in self.checks], self.min_cell)
        return replace(
            self,
            checks=tuple(
                replace(check, result=without(check.result, hidden, self.min_cell))
                for check in self.checks
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as a JSON-safe dictionary with a `schema_version`."""
        return {
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in _PLAIN},
            "min_cell": self.min_cell,
            "failed": self.failed,
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
            limit = data.get("min_cell", MIN_CELL)
            failed = data.get("failed", {})
            _check_kinds(data | {"failed": failed}, _PLAIN | {"failed": dict})
            _check_kinds(data["data"], _DATA)
            _check_kinds(data["versions"], {"equipoise": str})
            for file in data["data"]["files"]:
                _check_kinds(file, _FILE)
            plain = {name: data[name] for name in _PLAIN}
            return cls(**plain, checks=checks, min_cell=limit, failed=failed)
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidParameterError(
                f"results are incomplete or were edited ({error!r}). Run the audit again."
            ) from error


def _check_kinds(record: dict[str, Any], kinds: dict[str, type]) -> None:
    """Raise a `TypeError` unless a part of results has entries of these kinds."""
    for name, kind in kinds.items():
        if not isinstance(record[name], kind):
            raise TypeError(f"{name!r} is no {kind.__name__}")


def load(path: str | Path) -> Dossier:
    """Read the results that ``equipoise audit PLAN.toml --json FILE`` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Dossier
        ``checks`` has the id, the question and the result of each; numbers that were withheld are
        not in the file.

    Raises
    ------
    InvalidParameterError
        When there is no such file, or it holds something else.
    """
    return Dossier.from_dict(read_results(path))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; of a key that is there twice, readers differ in what it says."""
    record = dict(pairs)
    if len(record) < len(pairs):
        key = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"the key {key!r} is there twice")
    return record


def read_results(path: str | Path) -> Any:
    """Read a file of results as JSON; raise if there is none."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=_once)
    except FileNotFoundError as error:
        raise InvalidParameterError(
            f"Results {str(path)!r} not found. `equipoise audit PLAN.toml --json FILE` writes them."
        ) from error
    except OSError as error:
        raise InvalidParameterError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidParameterError(f"{str(path)!r} is not JSON: {error}.") from error
    except RecursionError as error:
        raise InvalidParameterError(f"{str(path)!r} is nested too deeply for results.") from error
