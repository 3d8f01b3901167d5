"""The result of an audit: findings, and the ways a person reads them."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise._names import GroupName
from equipoise.exceptions import InvalidParameterError
from equipoise.results.details import Details
from equipoise.results.disclosure import MIN_CELL, disclosed
from equipoise.results.estimand import Estimand
from equipoise.results.finding import ConfidenceInterval, Decision, Finding, JointTest, Note
from equipoise.results.question import Question, find_question
from equipoise.results.words import Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLUMNS", "READABLE_VERSIONS", "SCHEMA_VERSION", "AuditResult"]

SCHEMA_VERSION = 2
READABLE_VERSIONS = (1, 2)
"""Version 1 has no parts of estimands and no decision "estimated"."""

COLUMNS = (
    "group",
    "estimand",
    "estimate",
    "ci_low",
    "ci_high",
    "confidence_level",
    "statistic",
    "p_value",
    "p_value_raw",
    "decision",
    "n",
    "reference",
    "method",
    "notes",
)
"""Columns of `AuditResult.to_frame`, the same for every audit."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditResult:
    """What was asked, of which data, by which test, and what was found.

    Parameters
    ----------
    audit : str
        The question: ``"disparity"``, ``"flag"``, ...
    null, alternative : str
        The hypotheses in words.
    alpha : float
        Level of the tests.
    method : str
        The test, in words.
    n : int
        Rows used.
    findings : tuple of Finding
        One for every group asked for; none is left out.
    joint : JointTest, optional
        One test for all groups.
    notes : tuple of Note
        Remarks on the whole audit.
    details : Details or dict
        Numbers beyond the table: a typed record that also reads as a dictionary; its names are
        documented with each audit. `to_dict` leaves out what lives in memory only.
    words : Words
        What columns, labels and people are called, and which decision is good for them.
    queries : tuple of str
        What was sent to the engine; see `sql`. They live in memory only.
    """

    audit: str
    null: str
    alternative: str
    alpha: float
    method: str
    n: int
    findings: tuple[Finding, ...]
    joint: JointTest | None = None
    notes: tuple[Note, ...] = ()
    details: Details = field(default_factory=dict)  # type: ignore[assignment]
    words: Words = field(default_factory=Words)
    queries: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        details: object = self.details
        if isinstance(details, dict):
            object.__setattr__(self, "details", self.question.details(**details))

    @property
    def question(self) -> Question:
        """The question that this result answers."""
        return find_question(self.audit)

    @property
    def lines(self) -> tuple[Finding, ...]:
        """The findings with a line of their own; the others are told beside that of their group."""
        parts = self.question.parts
        return tuple(
            finding
            for finding in self.findings
            if finding.estimand.kind not in parts or finding.decision is Decision.DETECTED
        )

    @property
    def all_or_nothing(self) -> bool:
        """Whether findings are requirements of one claim, so that only the joint test counts."""
        return self.joint is not None and self.question.one_claim

    @property
    def detected(self) -> bool:
        """Whether any finding, or the joint test, is `DETECTED`."""
        tests: list[Finding | JointTest] = [] if self.all_or_nothing else list(self.findings)
        if self.joint is not None:
            tests.append(self.joint)
        return any(test.decision is Decision.DETECTED for test in tests)

    def __eq__(self, other: object) -> bool:
        # Algorithms that were fitted alike are different objects; what is written decides.
        if not isinstance(other, AuditResult):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the findings as a tidy table.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default pandas if it is installed, else polars, else pyarrow.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            The columns of `COLUMNS`, a row for each finding; a missing number is null.
        """
        records = [_record(finding) for finding in self.findings]
        columns = {name: [record[name] for record in records] for name in COLUMNS}
        return _frame(columns, backend)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as a JSON-safe dictionary with a `schema_version`."""
        joint = None
        if self.joint is not None:
            joint = {
                "null": self.joint.null,
                "decision": self.joint.decision.value,
                "method": self.joint.method,
                "statistic": self.joint.statistic,
                "df": self.joint.df,
                "p_value": self.joint.p_value,
                "notes": [_note(note) for note in self.joint.notes],
            }
        return {
            "schema_version": SCHEMA_VERSION,
            "audit": self.audit,
            "null": self.null,
            "alternative": self.alternative,
            "alpha": self.alpha,
            "method": self.method,
            "n": self.n,
            "findings": [
                _record(finding)
                | _parts(finding.estimand)
                | _named(finding)
                | {"withheld": finding.withheld}
                | {"notes": [_note(note) for note in finding.notes]}
                for finding in self.findings
            ],
            "joint": joint,
            "notes": [_note(note) for note in self.notes],
            "details": self.details.to_dict(),
            "words": self.words.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "AuditResult":
        """Rebuild a result from `to_dict`; the report does so from a file."""
        version = data.get("schema_version")
        if version not in READABLE_VERSIONS:
            raise InvalidParameterError(
                f"results have schema_version {version!r}; this version reads {READABLE_VERSIONS}."
            )
        joint = data["joint"]
        return cls(
            **{name: data[name] for name in ("audit", "null", "alternative", "alpha", "method")},
            n=data["n"],
            findings=tuple(_finding(record) for record in data["findings"]),
            joint=None if joint is None else _joint(joint),
            notes=_notes(data["notes"]),
            details=data["details"],
            words=Words.from_dict(data.get("words", {})),
        )

    def disclosed(self, *, min_cell: int = MIN_CELL) -> "AuditResult":
        """Return the result without the numbers of groups of fewer than `min_cell` rows.

        Further groups are left out where the count of such a group would follow from theirs. Use
        it before a result leaves those who may see the rows; the command line always does.

        Parameters
        ----------
        min_cell : int, default 5
            Rows that a group needs; 1 withholds nothing.

        Returns
        -------
        AuditResult
            Withheld findings keep their group and decision, and `withheld` is true.
        """
        return disclosed(self, min_cell)

    def sql(self) -> list[str]:
        """Return the queries behind the result, in the order in which they were sent.

        Questions that are asked together share them.

        Returns
        -------
        list of str
            SQL as DuckDB or the database got it; for Spark the formatted plan. Empty for a result
            that was read from a file, or made of cells.
        """
        return list(self.queries)

    def plot(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the result; returns the matplotlib axes."""
        from equipoise.plot import draw

        return draw(self, ax=ax)

    def __str__(self) -> str:
        from equipoise.results.tables import table

        return table(self)

    def __repr__(self) -> str:
        return (
            f"AuditResult(audit={self.audit!r}, n={self.n}, findings={len(self.findings)},"
            f" detected={self.detected})"
        )

    def _repr_html_(self) -> str:
        from equipoise.results.tables import html_table

        return html_table(self)


def _record(finding: Finding) -> dict[str, Any]:
    ci = finding.ci
    return {
        "group": finding.group,
        "estimand": finding.estimand,
        "estimate": finding.estimate,
        "ci_low": None if ci is None else ci.low,
        "ci_high": None if ci is None else ci.high,
        "confidence_level": None if ci is None else ci.confidence_level,
        "statistic": finding.statistic,
        "p_value": finding.p_value,
        "p_value_raw": finding.p_value_raw,
        "decision": finding.decision.value,
        "n": None if finding.withheld else finding.n,
        "reference": finding.reference,
        "method": finding.method,
        "notes": "; ".join(note.message for note in finding.notes),
    }


def _note(note: Note) -> dict[str, str]:
    return {"code": note.code, "message": note.message}


def _notes(records: list[dict[str, str]]) -> tuple[Note, ...]:
    return tuple(Note(code=record["code"], message=record["message"]) for record in records)


def _finding(record: dict[str, Any]) -> Finding:
    for name in ("estimate", "ci_low", "ci_high", "statistic", "p_value", "p_value_raw", "n"):
        value = record[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise TypeError(f"{name} must be a number")
    ci = None
    if record["confidence_level"] is not None:
        ci = ConfidenceInterval(
            low=record["ci_low"],
            high=record["ci_high"],
            confidence_level=record["confidence_level"],
        )
    plain = ("estimate", "statistic", "p_value", "p_value_raw", "method")
    return Finding(
        **{name: record[name] for name in plain},
        n=record["n"] or 0,
        withheld=record.get("withheld", False),
        group=_name(record, "group"),
        reference=_name(record, "reference"),
        estimand=_estimand(record),
        decision=_decision(record),
        ci=ci,
        notes=_notes(record["notes"]),
    )


def _named(finding: Finding) -> dict[str, list[list[str]] | None]:
    """Write the columns and labels of the group and of what it is compared with."""
    return {
        f"{role}_parts": [list(part) for part in name.parts]
        if isinstance(name, GroupName)
        else None
        for role, name in (("group", finding.group), ("reference", finding.reference))
    }


def _name(record: dict[str, Any], role: str) -> str:
    parts = record.get(f"{role}_parts")
    return record[role] if parts is None else GroupName((c, label) for c, label in parts)


def _parts(estimand: Estimand) -> dict[str, str | None]:
    return {
        "metric": estimand.metric,
        "kind": estimand.kind,
        "scale": estimand.scale,
        "noun": estimand.noun,
    }


def _estimand(record: dict[str, Any]) -> Estimand:
    if "kind" not in record:  # schema_version 1
        return Estimand(record["estimand"])
    return Estimand(record["metric"], record["kind"], scale=record["scale"], noun=record["noun"])


def _decision(record: dict[str, Any]) -> Decision:
    decision = Decision(record["decision"])
    # Version 1 wrote "not detected" beside numbers that nobody had tested.
    if "kind" not in record and decision is Decision.NOT_DETECTED and record["p_value"] is None:
        return Decision.ESTIMATED
    return decision


def _joint(record: dict[str, Any]) -> JointTest:
    return JointTest(
        **{name: record[name] for name in ("null", "method", "statistic", "df", "p_value")},
        decision=Decision(record["decision"]),
        notes=_notes(record["notes"]),
    )


def _frame(columns: dict[str, list[Any]], backend: str | None) -> Any:
    import importlib.util

    known = ("pandas", "polars", "pyarrow")
    if backend is None:
        backend = next(name for name in known if importlib.util.find_spec(name))
    if backend not in known:
        raise InvalidParameterError(f"`backend` must be one of {known}; got {backend!r}.")
    import pyarrow as pa

    number = pa.float64()
    types = dict.fromkeys(COLUMNS, number) | dict.fromkeys(
        ("group", "estimand", "decision", "reference", "method", "notes"), pa.string()
    )
    types["n"] = pa.int64()
    table = pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})
    if backend == "pandas":
        return table.to_pandas()
    if backend == "polars":
        import polars as pl

        return pl.from_arrow(table)
    return table
