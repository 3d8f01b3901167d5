"""Ask every question of tables of every type: ``python tests/fuzz/typed.py 0 1000``.

Table k is drawn from the seed k: the type of each column, which roles are given, where values are
missing or impossible, and what holds the rows. Every question that is asked of it is a case; all
are asked together, as a plan does, and one of them alone. The oracle knows no types: each value is
a number between 0 and the size of its column's list, and counting those numbers is all it does. A
case fails on an error that is not one of ours, on a message of several lines, on a warning, on a
group with other rows than the oracle counts, or on another answer alone than together.

A third number is the share of the questions that are asked of a table beside the plain rates, a
fourth the seconds after which to stop; a name after them is a container that holds all tables.
"""

import json
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2] / "src"), str(Path(__file__).parents[1])]

import equipoise as eq
from equipoise.audits.asking import ask_all, declare
from equipoise.exceptions import EquipoiseError
from support.soundness import assert_sound, differences

__all__ = ["HOLD", "QUESTIONS", "Table", "cases", "checked"]

ZONED = [datetime(2024, 10, 27, 0, 30, tzinfo=UTC) + timedelta(hours=k) for k in range(4)]
KEYS = {
    "truth": ([True, False], pa.bool_()),
    "int8": ([-128, 0, 127], pa.int8()),
    "int64": ([2**62, 2**62 + 1, -(2**63)], pa.int64()),
    "uint8": ([0, 1, 255], pa.uint8()),
    "uint64": ([2**64 - 1, 2**64 - 2, 0], pa.uint64()),
    "float16": (np.array([0.5, 2.0, -1.5], dtype=np.float16).tolist(), pa.float16()),
    "float32": (np.array([0.1, 0.2, -3.0], dtype=np.float32).tolist(), pa.float32()),
    "float64": ([-0.0, 0.0, 0.1, 0.30000000000000004, 1e300, 5e-324], pa.float64()),
    "decimal": ([Decimal("1.10"), Decimal("-0.50"), Decimal("20.00")], pa.decimal128(10, 2)),
    "long decimal": (
        [Decimal("0.1000000000000000001"), Decimal("0.1000000000000000002")],
        pa.decimal128(38, 19),
    ),
    "text": (["a", "b", "a\0", " a", "A", "é", "e\u0301", "<b>", "None", "NA"], pa.string()),
    "long text": (["x" * 5000, "x" * 5000 + "y", "NULL", "nan"], pa.large_string()),
    "dictionary": (["u", "v", "w"], pa.dictionary(pa.int8(), pa.string())),
    "date": ([date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)], pa.date32()),
    "date64": ([date(1970, 1, 1), date(2024, 2, 29)], pa.date64()),
    "clock": ([clock(0, 0), clock(23, 59, 59)], pa.time64("us")),
    "moment": ([moment.replace(tzinfo=None) for moment in ZONED], pa.timestamp("us")),
    "moment in ns": ([1, 2, 1_700_000_000_000_000_001], pa.timestamp("ns")),
    "zoned moment": (
        ZONED,
        pa.timestamp("us", tz="Europe/Berlin"),
    ),
    "span": ([timedelta(0), timedelta(microseconds=1), timedelta(days=400)], pa.duration("us")),
    "bytes": ([b"a", b"\xff", b""], pa.binary()),
    "no type": ([None], pa.null()),
    "list": ([[1], [2]], pa.list_(pa.int8())),
    "struct": ([{"a": 1}, {"a": 2}], pa.struct([("a", pa.int8())])),
}
"""Values of group, cluster, stratum and time columns, by type."""

UNUSABLE = {"no type", "list", "struct"}
WRITTEN = {"int8", "text", "dictionary", "date"}
"""Types that a csv file brings back; those of text without odd characters."""

LABELS = {
    "int8": ([0, 1], pa.int8()),
    "int64": ([0, 1], pa.int64()),
    "uint64": ([0, 1], pa.uint64()),
    "truth": ([False, True], pa.bool_()),
    "float32": ([0.0, 1.0], pa.float32()),
    "float64": ([-0.0, 1.0], pa.float64()),
    "decimal": ([Decimal("0.00"), Decimal("1.00")], pa.decimal128(5, 2)),
    "text": (["no", "yes"], pa.string()),
    "dictionary": (["no", "yes"], pa.dictionary(pa.int16(), pa.string())),
    "three": ([0, 1, 2], pa.int8()),
    "date": ([date(2024, 1, 1), date(2024, 1, 2)], pa.date32()),
}
NUMBERS = {
    "float16": ([0.0, 0.25, 0.5, 1.0], pa.float16()),
    "float32": ([0.0, 0.125, 0.75, 1.0], pa.float32()),
    "float64": ([0.1, 0.2, 0.7, 0.9, 1.0], pa.float64()),
    "int8": ([0, 1, 3], pa.int8()),
    "uint64": ([0, 1, 2**63], pa.uint64()),
    "decimal": ([Decimal("0.10"), Decimal("0.90")], pa.decimal128(10, 2)),
    "truth": ([False, True], pa.bool_()),
    "tiny": ([1e-60, 3e-60, 2e-310], pa.float64()),
    "small": ([1e-30, 2e-9, 0.0], pa.float64()),
    "large": ([1e30, -1e30, 1.0, 2.0**53], pa.float64()),
    "huge": ([1e300, 1.0], pa.float64()),
    "infinite": ([float("inf"), 0.5], pa.float64()),
    "text": (["0.5", "high"], pa.string()),
    "constant": ([0.5], pa.float64()),
}
COUNTS = {
    "int64": ([0, 1, 2, 5], pa.int64()),
    "uint8": ([1, 2, 200], pa.uint8()),
    "float64": ([1.0, 3.0], pa.float64()),
    "decimal": ([Decimal("1.00"), Decimal("4.00")], pa.decimal128(8, 2)),
    "half": ([0.5, 1.0], pa.float64()),
    "negative": ([-1, 1], pa.int64()),
    "great": ([2**52, 1], pa.int64()),
}
ROLES = {
    "y_true": ("y", LABELS),
    "y_pred": ("p", LABELS),
    "y_score": ("s", NUMBERS),
    "treatment": ("t", LABELS),
    "effect_pred": ("e", NUMBERS),
    "weight": ("w", NUMBERS),
    "count": ("k", COUNTS),
    "cluster": ("u", KEYS),
    "time": ("week", KEYS),
}
OTHERS = {"rival": NUMBERS, "rule": LABELS, "factor": KEYS}
USUAL = {"y": "int64", "p": "int64", "s": "float64", "t": "int64", "e": "float64"} | {
    "rival": "float64",
    "rule": "int64",
    "factor": "text",
    "w": "float64",
    "k": "int64",
    "week": "int8",
}
"""The type that a column has when nothing is to be wrong with it."""

METRICS = {
    "selection_rate": ("p",),
    "outcome_rate": ("y",),
    "accuracy": ("y", "p"),
    "error_rate": ("y", "p"),
    "tpr": ("y", "p"),
    "fpr": ("y", "p"),
    "ppv": ("y", "p"),
    "for": ("y", "p"),
    "mean_score": ("s",),
}
GIVEN = {"tpr": (0, 1, 1), "fpr": (0, 0, 1), "ppv": (1, 1, 0), "for": (1, 0, 0)}
"""For rates of a part: which column has which value in its rows, and which column is averaged."""
QUESTIONS = {
    "disparity": [
        {},
        {"method": "plug_in"},
        {"reference": "rest"},
        {"reference": "highest"},
        {"scale": "ratio"},
        {"method": "eel"},
        {"method": "el"},
        {"simultaneous": True},
        {"given": "factor"},
    ],
    "flag": [{"margin": 0.05}, {"adjust": "holm", "alternative": "less"}],
    "certify": [{"margin": 0.1}],
    "compare": [{"baseline": "rule"}, {"baseline": "rival"}],
    "decompose": [{"given": "factor"}],
    "impact_ratios": [{}],
    "monitor": [{}, {"margin": 0.1}],
    "discover": [{"features": ["factor"], "min_size": 0.1}],
    "predictive_parity": [{"unit": "row"}, {"bandwidth": 0.2, "unit": "row"}],
    "score_quality": [{}, {"metrics": ["auc"]}],
    "marginal_outcome": [{"threshold": 0.5, "unit": "row"}],
    "improvability": [
        {"candidate": "rule", "accuracy": "accuracy", "n_splits": 2, "n_resamples": 99},
        {"candidate": "rival", "accuracy": "tpr", "capacity": 0.5, "inference": "analytic"},
    ],
    "necessity": [
        {"candidate": "rule", "accuracy": "accuracy", "fairness": "selection_rate"}
        | {"inference": "analytic"}
    ],
    "inequality": [{"benefits": "speicher"}, {"benefits": "s"}, {"benefits": "s", "order": 0.0}],
    "treatment_effects": [{"n_repeats": 0}, {"measure": "difference", "n_repeats": 0}],
    "multicalibration": [{"segments": ["factor"]}, {"hypothesis": "parity", "depth": 1}],
    "policy": [{"threshold": 0.5}, {"budget": 0.5}],
}
PLAIN = [
    ("disparity", {"method": "plug_in"}),
    ("disparity", {}),
    ("disparity", {"reference": "rest", "method": "eel"}),
    ("flag", {"margin": 0.05, "method": "eel"}),
    ("certify", {"margin": 0.1, "method": "eel"}),
]
"""Questions that are asked with every metric: once a table is read, they cost milliseconds."""

PRINTED = 4
"""Of the answers of a table one in so many is printed too, which costs as much as the answer."""

SLOW = {"compare": 0.3, "impact_ratios": 0.3, "treatment_effects": 0.3, "improvability": 0.5}
"""Share of tables of which a slow question is asked."""

CLUSTERED = 10
"""Of the tables with clusters one in so many is asked when tables are many."""

SECOND = 0.1
"""Share of tables of which one question is asked alone too."""

BY_METRIC = {"disparity", "flag", "certify"}
"""Questions with a finding for each group, whose rows are those of the metric."""


class Table:
    """A table of random types, and for each column the number of each row's value."""

    def __init__(self, seed, container=None):
        rng = self.rng = np.random.default_rng(seed)
        self.n = int(rng.choice([1, 5, 20, 60, 200], p=[0.05, 0.15, 0.4, 0.3, 0.1]))
        self.container = container or str(rng.choice(list(HOLD)))
        self.kinds, self.codes, self.absent, self.arrays = {}, {}, {}, {}
        # A few columns are odd; the rest is what people have, or no case would be answered.
        odd = set(rng.choice(["g", "y", "p", "s", "t", "e", "w", "k", "u", "week", "rival"], 3))
        groups = ["g", "h"][: 1 + (rng.random() < 0.2)]
        for name in groups:
            self._add(name, KEYS, None if name == "g" else "text")
        self.roles = {"group": groups}
        for role, (name, kinds) in ROLES.items():
            if name in {"w", "k", "u"} and rng.random() > 0.25:
                continue
            self._add(name, kinds, None if name in odd or name == "u" else USUAL[name])
            self.roles[role] = name
        for name, kinds in OTHERS.items():
            self._add(name, kinds, None if name in odd or name == "factor" else USUAL[name])
        self.roles["missing"] = str(rng.choice(["raise", "drop"], p=[0.3, 0.7]))
        if any(self.kinds[name] in {"text", "dictionary"} for name in ("y", "p")):
            self.roles["positive"] = "yes"
        self.table = pa.table(self.arrays)

    def _add(self, name, kinds, kind):
        rng = self.rng
        names = list(kinds)
        if self.container == "csv" and kinds is KEYS:
            names = sorted(WRITTEN)
        kind = kind or str(rng.choice(names))
        values, dtype = kinds[kind]
        if kinds is KEYS and self.container == "csv" and kind == "text":
            values = ["a", "b", "é", "<b>", "x y"]
        code = rng.integers(0, len(values), self.n)
        missing = rng.random(self.n) < (0.1 if rng.random() < 0.1 else 0.0)
        listed = [None if gap else values[k] for k, gap in zip(code, missing, strict=True)]
        self.kinds[name], self.codes[name] = kind, code
        self.absent[name] = missing | np.array([values[k] is None for k in code])
        self.arrays[name] = pa.array(listed, type=dtype)
        self.values = getattr(self, "values", {}) | {name: values}

    def key(self, name):
        """Return the number of each row's value, equal values having one."""
        known = {}
        for k, value in enumerate(self.values[name]):
            known.setdefault(str(value) if isinstance(value, (list, dict)) else value, k)
        first = [known[str(v) if isinstance(v, (list, dict)) else v] for v in self.values[name]]
        return np.array(first)[self.codes[name]]

    def number(self, name):
        """Return a column of labels or numbers as floats; labels of text are compared with yes."""
        values = [
            float(value == "yes") if isinstance(value, (str, date)) else float(value)
            for value in self.values[name]
        ]
        return np.array(values)[self.codes[name]]

    def complete(self, columns):
        """Return which rows have all of the columns and stand for at least one row."""
        used = [*self.roles["group"], *columns, *(c for c in "wku" if c in self.arrays)]
        whole = ~np.any([self.absent[name] for name in used], axis=0)
        return whole & (self.times() > 0)

    def times(self):
        return self.number("k") if "k" in self.arrays else np.ones(self.n)

    def held(self, folder):
        """Return what holds the rows, as the audit gets it."""
        return (HOLD | DEAR)[self.container](self.table, Path(folder) / "t")


def _in_polars(table, _):
    import polars as pl

    return pl.from_arrow(table)


def _in_duckdb(table, _):
    import duckdb

    halves = [field.name for field in table.schema if pa.types.is_float16(field.type)]
    for name in halves:  # which DuckDB itself does not take
        place = table.column_names.index(name)
        table = table.set_column(place, name, table.column(name).cast(pa.float32()))
    return duckdb.connect().from_arrow(table)


def _in_parquet(table, file):
    parquet.write_table(table, file.with_suffix(".parquet"))
    return file.with_suffix(".parquet")


def _in_csv(table, file):
    plain = {
        name: column.cast(pa.string()) if pa.types.is_decimal(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    csv.write_csv(pa.table(plain), file.with_suffix(".csv"))
    return file.with_suffix(".csv")


def _in_ibis(table, _):
    import ibis

    empty = [field.name for field in table.schema if pa.types.is_null(field.type)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = _in_duckdb(table.drop_columns(empty), _).to_arrow_table()
        return ibis.duckdb.connect().create_table("t", rows)


def _in_spark(table, _):
    from support.engines import spark_session

    return spark_session().createDataFrame(table)


HOLD = {
    "pyarrow": lambda table, _: table,
    "pandas": lambda table, _: table.to_pandas(),
    "polars": _in_polars,
    "polars lazy": lambda table, _: _in_polars(table, _).lazy(),
    "duckdb": _in_duckdb,
    "dict": lambda table, _: table.to_pydict(),
    "parquet": _in_parquet,
    "csv": _in_csv,
}
DEAR = {"ibis": _in_ibis, "spark": _in_spark}
"""Containers that take a second or more for a table, which are asked for by name."""


def cases(table, share=1.0, plain=PLAIN[:1]):
    """Yield the questions that are asked of a table: their name and options.

    First the `plain` ones of every metric; then a `share` of the questions.
    """
    rng = table.rng
    for question, options in plain:
        for metric in METRICS:
            yield question, {"metric": metric} | options
    for question, options in QUESTIONS.items():
        if rng.random() < share * SLOW.get(question, 1.0):
            chosen = dict(options[int(rng.integers(len(options)))])
            if question in {*BY_METRIC, "compare", "decompose", "monitor", "discover"}:
                chosen["metric"] = str(rng.choice(list(METRICS)))
            yield question, chosen


def expected(table, metric):
    """Return the rows of each group, and its mean, by counting."""
    columns = METRICS[metric]
    rows = table.complete(columns)
    numbers = [table.number(name) for name in columns]
    if metric in GIVEN:
        part, label, averaged = GIVEN[metric]
        rows, value = rows & (numbers[part] == label), numbers[averaged]
    elif len(numbers) == 2:
        value = ((numbers[0] == numbers[1]) == (metric == "accuracy")).astype(float)
    else:
        value = numbers[0]
    counts = Counter()
    keys = {name: table.key(name) for name in table.roles["group"]}
    weight = table.times() * (table.number("w") if "w" in table.arrays else 1.0)
    whole = _mean(value, weight, rows)
    subsets = [(name,) for name in keys] + ([tuple(keys)] if len(keys) > 1 else [])
    for subset in subsets:
        for key in {tuple(keys[name][i] for name in subset) for i in np.flatnonzero(rows)}:
            inside = rows & np.all([keys[n] == k for n, k in zip(subset, key, strict=True)], axis=0)
            gap = None if whole is None else _mean(value, weight, inside)
            counts[int(table.times()[inside].sum()), gap if gap is None else gap - whole] += 1
    return counts


def _mean(value, weight, rows):
    total = weight[rows].sum()
    return None if total == 0 else float((value * weight)[rows].sum() / total)


def checked(table, question, options, result, *, printed=True):
    """Raise if a result has other rows than the oracle counts."""
    assert_sound(result, printed=printed)
    if question in BY_METRIC and "given" not in options:
        counts = expected(table, options["metric"])
        found = Counter(finding.n for finding in result.findings if finding.n)
        wanted = Counter()
        for (n, _), times in counts.items():
            wanted[n] += times
        assert found == wanted, f"rows of groups {found}, by counting {wanted}"
        if options.get("reference") is None and options.get("scale") is None:
            # Sums of 1e30 and -1e30 leave no digit of 1.
            size = max(abs(table.number(name)).max() for name in METRICS[options["metric"]])
            for finding in result.findings:
                gaps = [gap for n, gap in counts if n == finding.n and gap is not None]
                if finding.estimate is not None and finding.n:
                    near = min(abs(finding.estimate - gap) for gap in gaps)
                    allowed = max(1e-9 * max(1.0, *map(abs, gaps)), 1e-13 * size)
                    assert near <= allowed, (finding, gaps)
    elif question == "score_quality":
        rows = table.complete(("y", "s"))
        assert result.n == int(table.times()[rows].sum()), (result.n, rows.sum())


def ask(seed, found, share=1.0, container=None, plain=PLAIN[:1]):
    """Ask questions of one table; note what failed."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            table = Table(seed, container)
            held = table.held(folder)
            audit = eq.Audit(held, **table.roles)
        except EquipoiseError as error:
            found["refused"] += 1
            _one_sentence(seed, "Audit", error, found)
            return
        except Exception as error:  # noqa: BLE001
            found["failures"].append([seed, "Audit", _last(error)])
            return
        asked = list(cases(table, share, plain))
        try:
            results = ask_all([declare(getattr(eq.Audit, name), audit, **o) for name, o in asked])
        except Exception as error:  # noqa: BLE001
            found["failures"].append([seed, "together", _last(error)])
            results = [_alone(audit, name, options) for name, options in asked]
        for k, ((question, options), result) in enumerate(zip(asked, results, strict=True)):
            printed = (seed + k) % PRINTED == 0
            _judge(seed, table, question, options, result, found, printed=printed)
        if table.rng.random() < SECOND:
            place = int(table.rng.integers(len(asked)))
            question, options = asked[place]
            alone = _alone(eq.Audit(held, **table.roles), question, options)
            if differences(_record(alone), _record(results[place])):
                failure = [seed, question, json.dumps(options), "alone and together differ"]
                found["failures"].append(failure)


def _alone(audit, question, options):
    """Ask one question of its own; return the error if it ends in one."""
    try:
        return getattr(audit, question)(**options)
    except Exception as error:  # noqa: BLE001
        return error


def _judge(seed, table, question, options, result, found, *, printed):
    if isinstance(result, EquipoiseError):
        found["refused"] += 1
        _one_sentence(seed, question, result, found)
        return
    error = result
    if not isinstance(result, Exception):
        error = _complaint(table, question, options, result, printed=printed)
    if error is None:
        found["answered"] += 1
    else:
        found["failures"].append([seed, question, json.dumps(options), _last(error)])


def _complaint(table, question, options, result, *, printed):
    """Return what is wrong with an answer, or None."""
    try:
        checked(table, question, options, result, printed=printed)
    except Exception as error:  # noqa: BLE001
        return error
    return None


def _record(result):
    """Return what a result writes but the queries, which differ, or what an error says."""
    return str(result) if isinstance(result, Exception) else result.to_dict()


def _one_sentence(seed, question, error, found):
    found["sentences"][f"{question}: {str(error)[:60]}"] += 1
    if "\n" in str(error) or not str(error).endswith((".", "?")) or len(str(error)) > 2000:
        found["failures"].append([seed, question, str(error)[:300]])


def _last(error):
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"{type(error).__name__}: {str(error)[:300]} ({Path(frame.filename).name}:{frame.lineno})"
    )


def main(first, last, share, seconds, container=None):
    warnings.simplefilter("error")
    found = {"answered": 0, "refused": 0, "failures": [], "sentences": Counter()}
    start, seed = time.monotonic(), first
    while seed < last and time.monotonic() - start < seconds:
        # Sums of clusters cost twenty times the others: most tables that have them wait for
        # another day.
        if "u" not in Table(seed, container).arrays or seed % CLUSTERED == 0:
            ask(seed, found, share, container, PLAIN[1:])
        seed += 1
        if seed % 100 == 0:
            cases_so_far = found["answered"] + found["refused"] + len(found["failures"])
            print(f"{seed - first} tables, {cases_so_far} cases", file=sys.stderr, flush=True)
    sentences = found.pop("sentences")
    cost = {"cpu_seconds": round(time.process_time())}
    print(json.dumps({"tables": [first, seed]} | cost | found, indent=1))
    for sentence, times in sentences.most_common(400):
        print(times, sentence, file=sys.stderr)


if __name__ == "__main__":
    given = sys.argv[1:]
    container = given.pop() if not given[-1].replace(".", "").isdigit() else None
    share, seconds = (*map(float, given[2:]), *[1.0, float("inf")][len(given) - 2 :])
    main(int(given[0]), int(given[1]), share, seconds, container)
