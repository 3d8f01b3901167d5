"""The embedded engine: DuckDB connections and files."""

import atexit
import csv
import io
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import chain, islice
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import unquote

from equipoise._checks import not_distinct, shown
from equipoise.data.fingerprint import sources
from equipoise.data.layout import LINES, Layout, csv_rows, find_layout
from equipoise.data.query import engine_error, reason
from equipoise.exceptions import DataError, InvalidParameterError, ResourceError

__all__ = [
    "CsvWords",
    "check_no_words",
    "check_one_schema",
    "connection",
    "csv_dialect",
    "csv_headers",
    "cut_words",
    "from_arrow",
    "read",
    "resolve",
]

# What csv writers use for "missing"; anything else is text.
NULL_WORDS = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None"]

NOT_TEXT = "it is not UTF-8 text. Convert it first: `iconv -f latin1 -t utf-8 OLD > NEW`."

OTHER_FILES = {
    b"\xff\xfe": NOT_TEXT.replace("latin1", "utf-16"),
    b"\xfe\xff": NOT_TEXT.replace("latin1", "utf-16"),
    b"\x1f\x8b": "it is packed by gzip. Give it the ending `.csv.gz`.",
    b"PK\x03\x04": "it is a workbook of Excel, or a zip archive. Save its table as csv (UTF-8).",
    b"PAR1": "it is a parquet file. Give it the ending `.parquet`.",
}
"""How files begin that are no csv files, whatever their names, and what to do with them."""

ROW_NAMES = 20
"""Lines that show whether each begins with a name that the first line has no name for."""

SEPARATOR_LINE = re.compile(r"\"?sep=(.)\"?\r?\n", re.IGNORECASE)
"""A first line by which Excel is told what separates fields."""

MOST_BYTES = 1_000_000
"""Of a csv file, that show how it is to be read."""

SINGLE_QUOTED = re.compile("'.*'", re.DOTALL)

LOOKED_AT = 20_480
"""Rows that show which words a column of truth values is written in."""

WHOLE = frozenset({"BIGINT", "HUGEINT"})
TIMES = frozenset({"TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"})

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".data", ".csv.gz", ".tsv.gz", ".csv.zst")
PARQUET_ENDINGS = (".parquet", ".pq")


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvWords:
    """What words of a csv file mean, by the part that a column plays.

    Parameters
    ----------
    coded : frozenset of str
        Columns of text in which the words of `NULL_WORDS` mean "missing". In others they are words,
        and only an empty field is missing.
    truths : frozenset of str
        Columns in which "yes", "no", "T" and "F" are truth values. In others they are words: a
        group whose only label is F is no falsehood.
    text : frozenset of str
        Columns that are text whatever they hold.
    reals : frozenset of str
        Columns of real numbers, of which the first may all be whole.
    header : bool, optional
        Whether the first line has the names of the columns; by default it is looked at.
    names : tuple of str
        Names of the columns, in the place of those of the file; empty to take these.
    """

    coded: frozenset[str] = frozenset()
    truths: frozenset[str] = frozenset()
    text: frozenset[str] = frozenset()
    reals: frozenset[str] = frozenset()
    header: bool | None = None
    names: tuple[str, ...] = ()

    def is_word(self, name: str, kind: str) -> bool:
        """Return whether any word of a column is a value."""
        return kind == "VARCHAR" and name not in self.coded

    def types(self, found: Mapping[str, str], sample: Any) -> dict[str, str]:
        """Return the types of columns, given those that a reader found and some rows as text."""
        types = dict(found)
        for name, kind in found.items():
            if name in self.text:
                types[name] = "VARCHAR"
            elif name in self.reals and kind in WHOLE:
                types[name] = "DOUBLE"
            elif kind in TIMES and sample.filter(_is_cut(_quoted(name), kind)).limit(1).fetchall():
                types[name] = "VARCHAR"
            elif kind == "BOOLEAN" and name not in self.truths:
                column = _quoted(name)
                known = f"lower({column}) IN ('true', 'false') OR {column} IN ({_null_words()})"
                other = sample.filter(f"NOT ({known})")
                types[name] = "VARCHAR" if other.limit(1).fetchall() else kind
        return types


SETTINGS = {
    "EQUIPOISE_MEMORY_LIMIT": "memory_limit",
    "EQUIPOISE_THREADS": "threads",
    "EQUIPOISE_TEMP": "",
}
"""Variables of the environment, and what DuckDB calls them."""


@cache
def _without_files(process: int, settings: tuple[str | None, ...]) -> Any:  # noqa: ARG001
    """Return the connection that reads no file: it takes longer to open than most tables to scan.

    The threads of DuckDB do not come along when a process forks: each has a connection of its own.
    """
    return connection()


def connection(*files: str) -> Any:
    """Return a fresh in-memory connection that reads the named files and nothing else.

    It installs and loads no extension, reaches no other file and no network, takes no table from
    the variables of Python, and none of this can be changed any more.

    ``EQUIPOISE_MEMORY_LIMIT`` (for instance ``2GB``) and ``EQUIPOISE_THREADS`` set DuckDB's limits.
    What does not fit into memory is spilled to a private folder of this process, in
    ``EQUIPOISE_TEMP`` or else where the system keeps temporary files, and never stays there.
    """
    import duckdb

    config: dict[str, Any] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "python_enable_replacements": False,
        # Each connection has a folder of its own, made when needed: DuckDB empties it at the end.
        "temp_directory": f"{_spill_folder(os.environ.get('EQUIPOISE_TEMP'))}/{token_hex(8)}",
    }
    for variable, setting in SETTINGS.items():
        if setting and os.environ.get(variable):
            config[setting] = os.environ[variable]
    try:
        engine = duckdb.connect(":memory:", config=config)
        engine.execute(f"SET allowed_paths = [{', '.join(map(_literal, files))}]")
        engine.execute("SET enable_external_access = false")
        engine.execute("SET enable_progress_bar = false")
        engine.execute("SET lock_configuration = true")
    except duckdb.Error as error:
        raise DataError(f"DuckDB refused its settings: {reason(error)}") from error
    return engine


def _literal(text: str) -> str:
    quote = "'"
    return f"{quote}{text.replace(quote, 2 * quote)}{quote}"


@cache
def _spill_folder(parent: str | None) -> str:
    """Make the folder of this process that only its owner can read; it goes with the process."""
    try:
        if parent:
            Path(parent).mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="equipoise-", dir=parent or None)
    except OSError as error:
        place = shown(parent or tempfile.gettempdir())
        raise ResourceError(
            f"No folder for temporary files can be made in {place}: {error.strerror}. Name another"
            " in EQUIPOISE_TEMP."
        ) from error
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(_empty_caches)
    return folder


def _empty_caches() -> None:
    """Empty the caches of narwhals, which keep types of DuckDB alive beyond the interpreter.

    DuckDB counts what is still alive then, and prints dozens of lines about it to stderr.
    """
    _without_files.cache_clear()
    module = sys.modules.get("narwhals._namespace")
    for kept in () if module is None else vars(module).values():
        if hasattr(kept, "cache_clear"):
            kept.cache_clear()


def from_arrow(table: Any) -> Any:
    """Return a relation over an Arrow table."""
    import duckdb
    import pyarrow as pa

    for k, column in enumerate(table.schema):
        if column.type == pa.float16():  # DuckDB has no half precision
            table = table.set_column(k, column.name, table.column(k).cast(pa.float32()))
        if pa.types.is_duration(column.type) and _are_cut(table.column(k)):
            table = table.set_column(k, column.name, table.column(k).cast(pa.int64()))
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if getattr(kind, "extension_name", "").startswith("pandas."):
            table = table.set_column(k, column.name, _in_words(table.column(k)))
    try:
        settings = tuple(os.environ.get(variable) for variable in SETTINGS)
        return _without_files(os.getpid(), settings).cursor().from_arrow(table)
    except duckdb.Error as error:
        raise DataError(f"The table could not be read: {reason(error)}") from error


def _in_words(column: Any) -> Any:
    """Write periods and intervals of pandas, which DuckDB would take for numbers and structures."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array(
            [chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type
        )
    return pa.array(column.to_pandas().astype("string"), from_pandas=True)


def _are_cut(spans: Any) -> bool:
    """Return whether spans of time would lose digits in DuckDB, or come back with others.

    It keeps microseconds, and gives back nanoseconds in 64 bits: no more than 292 years.
    """
    import pyarrow as pa

    try:
        spans.cast(pa.duration("us")).cast(pa.duration("ns"))
    except pa.ArrowInvalid:
        return True
    return False


def read(path: str, *, words: CsvWords | None = None, used: Collection[str] = ()) -> Any:
    """Return a relation over a csv or parquet file, a folder of parquet files, or a glob.

    Parameters
    ----------
    path : str
        What to read.
    words : CsvWords, optional
        What words of a csv file mean; by default those of `NULL_WORDS` mean "missing" in every
        column, and truth values are whatever looks like them.
    used : collection of str
        Columns that must be told apart from all others.

    Returns
    -------
    duckdb.DuckDBPyRelation
    """
    return _opened(path, words, used)[0]


def _opened(
    path: str, words: CsvWords | None, used: Collection[str]
) -> tuple[Any, list[str], Layout]:
    """Return a relation over a path, its files, and how they are read if they are csv."""
    files, kind = resolve(path)
    if any(os.path.getsize(file) == 0 for file in files):  # noqa: PTH202
        raise DataError(f"Cannot read {shown(path)}: the file is empty.")
    layout = Layout()
    with _read_errors(path):
        if kind == "csv":
            layout = csv_layout(files, path, words)
            if layout.runs:
                files = list(map(_single_blanks, files))
        else:
            check_no_words(words, f"{shown(path)} is parquet")
        reader = connection(*files)
        if kind == "csv":
            relation = _read_csv(reader, files, path, words, layout)
        else:
            relation = _read_parquet(reader, files, path)
        # Binding reads only headers; one row shows corrupt files before an audit is under way.
        relation.limit(1).to_arrow_table()
    if kind == "csv":
        _check_names(relation.columns, files[0], path)
        if again := _repeated_names(reader, files, layout, relation.columns, used):
            raise not_distinct(again)
    return relation, files, layout


@contextmanager
def _read_errors(path: str) -> Iterator[None]:
    """Say in one line of ours why a path cannot be read."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise engine_error(error) from error
    except duckdb.Error as error:
        for file in resolve(path)[0] if "sniffing file" in str(error) else []:
            if fault := _fault(file):
                raise DataError(f"Cannot read {shown(file)}: {fault}.") from error
        raise DataError(f"Cannot read {shown(path)}: {_explained(error)}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"Cannot read {shown(path)}: {NOT_TEXT}") from error
    except ResourceError:
        raise
    except (OSError, csv.Error) as error:
        raise DataError(f"Cannot read {shown(path)}: {reason(error)}") from error


def _read_parquet(reader: Any, files: list[str], path: str) -> Any:
    check_one_schema(reader, files, path)
    # Folders named like ``race=Black`` are a column, as they are for Spark.
    hive = any("=" in file for file in files)
    relation = reader.read_parquet(files, hive_partitioning=hive)
    if hive:
        _check_folders(reader, files, path)
    return relation


def check_no_words(words: CsvWords | None, what: str) -> None:
    """Raise if something is said of the first line of a table that has none."""
    given = {} if words is None else {"names": words.names or None, "header": words.header}
    for option, value in given.items():
        if value is not None:
            raise InvalidParameterError(
                f"`{option}` is about the first line of a csv file; {what}, and has the names of"
                f" its columns. Leave `{option}` out, or rename the columns."
            )


def _single_blanks(file: str) -> str:
    """Copy a csv file of runs of blanks with single ones, which DuckDB can read.

    The copy is in a private folder that goes with this process.
    """
    import pyarrow as pa

    copy = Path(_spill_folder(os.environ.get("EQUIPOISE_TEMP")), f"{token_hex(8)}.txt")
    with (
        pa.input_stream(file, compression="detect") as stream,
        io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as lines,
        copy.open("w", encoding="utf-8", newline="") as single,
    ):
        ends = (f"{line.rstrip()}\n" for line in lines)
        rows = csv.reader(ends, delimiter=" ", skipinitialspace=True)
        written = csv.writer(single, delimiter=" ", lineterminator="\n")
        written.writerows(row for row in rows if row)
    return str(copy)


def _check_names(names: Sequence[str], file: str, path: str) -> None:
    """Refuse a csv file whose columns were not told apart."""
    if all(SINGLE_QUOTED.fullmatch(name) for name in names):
        raise DataError(
            f"{shown(path)} has the names of its columns in single quotes, which are part of a word"
            " in a csv file. Write double quotes, or none."
        )
    if len(names) == 1:
        if fault := _fault(file):
            raise DataError(f"Cannot read {shown(path)}: {fault}.")
        raise DataError(
            f"{shown(path)} has a single column {shown(names[0])}; the delimiter must be"
            " a comma, a tab, a semicolon, a bar, or blanks that are in every line."
        )


def _read_csv(
    reader: Any, files: list[str], path: str, words: CsvWords | None, layout: Layout
) -> Any:
    if words is not None and words.names:
        _check_own_names(reader, files, path, layout)
    headers = csv_headers(reader, files, layout)
    # Else files whose lines end otherwise than those of the first are not read, without a word.
    by_name = len(files) > 1
    _check_headers(headers, path)
    marks = _marks(layout)
    text = reader.read_csv(files, na_values=[""], union_by_name=by_name, all_varchar=True, **marks)
    relation = reader.read_csv(files, na_values=NULL_WORDS, union_by_name=by_name, **marks)
    if relation.columns != text.columns:
        # A name such as "NA" is none to a reader for which that word is missing.
        relation = _under_names(reader, headers, text.columns, marks)
    if words is None:
        return _without_blanks(relation, layout)
    # The reader knows one list of words for all columns: read text, and cast what is not.
    relation, text = _without_blanks(relation, layout), _without_blanks(text, layout)
    found = dict(zip(relation.columns, map(str, relation.types), strict=True))
    types = words.types(found, text.limit(LOOKED_AT))
    formats = _time_formats(reader, files[0], types, layout)
    types |= {
        name: "VARCHAR"
        for name, kind in types.items()
        if kind in formats and _has_two_readings(text, name, formats[kind])
    }
    all_seen = _all_seen(files, text)
    is_text = any(words.is_word(name, kind) for name, kind in types.items())
    if all_seen and not is_text and types == found:
        return relation
    columns = []
    for name, kind in types.items():
        column = _quoted(name)
        if not words.is_word(name, kind):
            value = f"CASE WHEN {column} NOT IN ({_null_words()}) THEN {column} END"
            if kind in formats:
                value = f"strptime({value}, '{formats[kind]}')"
            cut = "" if all_seen else _is_cut(column, kind, is_truth=name in words.truths)
            cast = f"CAST({value} AS {kind})"
            if cut:
                start, remedy = map(_literal, cut_words(name, kind))
                told = f"error({start} || left({column}, 40) || {remedy})"
                cast = f"CASE WHEN {cut} THEN {told} ELSE {cast} END"
            column = f"{cast} AS {column}"
        columns.append(column)
    return text.project(", ".join(columns))


def _under_names(
    reader: Any, headers: Mapping[str, list[str]], names: Sequence[str], marks: dict[str, Any]
) -> Any:
    """Read csv files that have the same columns, by the names that these have as text."""
    chosen = ", ".join(map(_quoted, names))
    relations = [
        reader.read_csv(file, **{**marks, "na_values": NULL_WORDS, "names": header or names})
        for file, header in headers.items()
    ]
    return reduce(
        lambda first, second: first.union(second),
        [relation.project(chosen) for relation in relations],
    )


def _all_seen(files: Sequence[str], relation: Any) -> bool:
    """Return whether every row of csv files had a say in the types of their columns."""
    return len(files) == 1 and len(relation.limit(LOOKED_AT + 1)) <= LOOKED_AT


def _is_cut(
    column: str, kind: str, *, is_truth: bool = False, matches: str = "regexp_matches"
) -> str:
    """Return the condition under which a cast of text to a type loses a part of it.

    The types of a file are those of its first rows; DuckDB rounds a later 0.6 to 1, takes the hour
    from a moment and the zeros from a code, and says nothing. Spark knows the same functions but
    the one that `matches` a pattern.
    """
    if kind in WHOLE:
        number = f"TRY_CAST({column} AS DOUBLE)"
        point = " OR ".join(f"contains({column}, '{mark}')" for mark in ".eE")
        zero = f"{column} LIKE '0%' AND NOT contains({column}, '.')"
        # Most whole numbers of an audit are labels of one digit: the first condition is cheap.
        return f"length({column}) > 1 AND (({point}) AND {number} <> round({number}) OR {zero})"
    if kind == "DATE":
        return f"TRY_CAST({column} AS TIMESTAMP) <> TRY_CAST({column} AS DATE)"
    if kind in TIMES:
        zone = "" if kind.endswith("ZONE") else "|:[0-9.]+ ?([-+][0-9:]+|Z)$"
        nanoseconds = "[.][0-9]{6}[0-9]*[1-9]"
        return f"{matches}({column}, '{nanoseconds}{zone}')"
    if kind == "BOOLEAN" and not is_truth:
        return f"lower({column}) NOT IN ('true', 'false') AND {column} NOT IN ({_null_words()})"
    return ""


def cut_words(name: str, kind: str) -> tuple[str, str]:
    """Return what is said before and after a field that would lose a part."""
    return (
        f"Column {shown(name)} is {kind} in the first rows, and further down has ",
        ", which would lose a part. Pass a frame, or a parquet file, where types are known.",
    )


def csv_layout(files: Sequence[str], path: str, words: CsvWords | None = None) -> Layout:
    """Return how csv files are read: the separator of the first, and the names of the columns.

    Raises
    ------
    DataError
        If some files have a line of names and others have none, or names were given and the first
        line seems to have some too.
    """
    words = words or CsvWords()
    found = {file: _layout_of(file, words.header) for file in files}
    first, *others = found.values()
    for file, other in zip(files[1:], others, strict=True):
        if bool(other.names) != bool(first.names):
            known, unknown = (file, files[0]) if first.names else (files[0], file)
            raise DataError(
                f"The files of {path!r} differ: {Path(known).name!r} has a line of names,"
                f" {Path(unknown).name!r} has none. Write one into each, or say `header = true` or"
                " `false` if they do not differ."
            )
    if words.names and words.header is None and not first.names:
        raise DataError(
            f"`names` are given, and the first line of {shown(path)} may have names too. Say"
            " `header = true` if they take the place of those, `header = false` if that line is a"
            " row of data."
        )
    return replace(first, names=words.names or first.names, named=not first.names)


def _layout_of(file: str, header: bool | None) -> Layout:
    import pyarrow as pa

    with pa.input_stream(file, compression="detect") as stream:
        start = stream.read(MOST_BYTES)
    for beginning, remedy in OTHER_FILES.items():
        if start.startswith(beginning):
            raise DataError(f"Cannot read {shown(file)}: {remedy}")
    # `str.splitlines` would end lines inside of fields, at U+2028 and the like.
    lines = list(io.StringIO(start.decode("utf-8-sig", errors="replace"), newline=""))
    if len(start) == MOST_BYTES and len(lines) > 1:  # the last line may be cut
        del lines[-1]
    told = lines[:1] if lines and SEPARATOR_LINE.fullmatch(lines[0]) else []
    separator, marks = _separator_and_marks(file, len(told))
    layout = find_layout(
        lines[len(told) : LINES],
        separator=separator,
        missing=frozenset({*NULL_WORDS, "?"}),
        header=header,
    )
    above = (*(line.strip() for line in told), *layout.skipped)
    return layout if layout.runs else replace(layout, **marks, skipped=above)


def _separator_and_marks(file: str, above: int) -> tuple[str, dict[str, Any]]:
    """Return what separates fields below some lines, and the marks around them.

    DuckDB would take single quotes for marks too, and 'a' and a for one word. Marks are given, not
    left to its sample: a field such as ``"Mfg ""ID"" Removed"`` far below would end the file.
    """
    import duckdb

    reader = connection(file)
    try:
        separator, escape, *_ = _sniffed(reader, file, '"', above)
    except duckdb.Error:
        # A quote that is never closed is part of a word.
        separator, *_ = _sniffed(reader, file, "", above)
        return separator, {"quote": "", "escape": ""}
    return separator, {"quote": '"', "escape": "\\" if escape == "\\" else '"'}


def _sniffed(reader: Any, file: str, quote: str, above: int) -> tuple[str, ...]:
    """Return separator, escape, and formats of dates and of times, as DuckDB finds them."""
    found = "SELECT Delimiter, Escape, DateFormat, TimestampFormat FROM sniff_csv(?, nullstr=?, "
    # A number of lines that is given, be it 0, is not looked for.
    below = found + ("quote=?, skip=?)" if above else "quote=?)")
    given = [file, NULL_WORDS, quote, *([above] if above else [])]
    (row,) = reader.execute(below, given).fetchall()
    return tuple(row)


def _marks(layout: Layout) -> dict[str, Any]:
    """Return what DuckDB must be told of a layout."""
    names = {"names": list(layout.names)} if layout.names else {}
    # DuckDB would put the 1 of a folder `seed=1` in the place of every value of a column `seed`.
    folders = {"hive_partitioning": False}
    blank = {"sep": " "} if layout.separator == " " else {}
    quotes = {"quotechar": layout.quote, "escapechar": layout.escape}
    above = {"skiprows": len(layout.skipped)} if layout.skipped else {}
    return {"header": layout.named, **names, **blank, **quotes, **above, **folders}


def _without_blanks(relation: Any, layout: Layout) -> Any:
    """Take the blank after a separator from the words behind it."""
    if not layout.spaced:
        return relation
    kinds = zip(relation.columns, map(str, relation.types), strict=True)
    columns = [
        f"ltrim({name}) AS {name}" if kind == "VARCHAR" else name
        for name, kind in ((_quoted(name), kind) for name, kind in kinds)
    ]
    return relation.project(", ".join(columns))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _null_words() -> str:
    return ", ".join(map(_literal, NULL_WORDS))


def _time_formats(
    reader: Any, file: str, types: Mapping[str, str], layout: Layout
) -> dict[str, str]:
    """Return the formats of dates and times that are not ISO."""
    if not {"DATE", "TIMESTAMP"} & set(types.values()):
        return {}
    _, _, *found = _sniffed(reader, file, layout.quote, len(layout.skipped))
    return {kind: form for kind, form in zip(("DATE", "TIMESTAMP"), found, strict=True) if form}


def _has_two_readings(text: Any, name: str, form: str) -> bool:
    """Return whether the dates of a column are dates with day and month exchanged too.

    One file of a series would be read one way and the next the other way: they are words.
    """
    if form.startswith("%Y"):
        return False
    marks = {"%d": "%m", "%m": "%d"}
    exchanged = re.sub("%[dm]", lambda found: marks[found[0]], form)
    column = _quoted(name)
    other = text.filter(
        f"{column} NOT IN ({_null_words()}) AND try_strptime({column}, '{exchanged}') IS NULL"
    )
    return "%y" in form or not other.limit(1).fetchall()


def csv_headers(reader: Any, files: list[str], layout: Layout) -> dict[str, list[str]]:
    """Return csv files, each with its header if there are several."""
    if len(files) == 1:
        return {files[0]: []}
    return {file: reader.read_csv(file, **_marks(layout)).columns for file in files}


def _check_own_names(reader: Any, files: list[str], path: str, layout: Layout) -> None:
    """Raise unless names that were given can take the place of those of the files."""
    marks = _marks(replace(layout, names=()))
    headers = [reader.read_csv(file, **marks).columns for file in files]
    for file, header in zip(files, headers, strict=True):
        if len(header) != len(layout.names):
            raise DataError(
                f"`names` has {len(layout.names)} names; {shown(file)} has {len(header)} columns."
                " Name each, in the order of the file."
            )
        if layout.named and header != headers[0]:
            raise DataError(
                f"`names` go by position, and the files of {shown(path)} have different first"
                " lines. Leave `names` out, or write the same line into each."
            )


def _repeated_names(
    reader: Any, files: list[str], layout: Layout, names: Sequence[str], used: Collection[str]
) -> list[str]:
    """Return those used names, in lower case, that stand for columns of a csv file which differ.

    DuckDB calls the second `g` ``g_1``, and so it does where the file has ``G``. Copies of a column
    are harmless, and common: the scores of COMPAS are in their file twice. A column without a name
    becomes ``column0``, and what the file calls so becomes ``column0_1``.
    """
    known = {name.lower() for name in names}
    twins = [re.fullmatch(r"(.+)_\d+", name.lower()) for name in names]
    if layout.names or not any(twin and twin[1] in known for twin in twins):
        return []
    marks = _marks(layout)
    first_line = reader.read_csv(files[0], all_varchar=True, **marks | {"header": False})
    (header,) = first_line.limit(1).fetchall()
    columns: dict[str, list[str]] = {}
    for written, name in zip(header, names, strict=True):
        for called in sorted({str(written or "").strip().lower(), name.lower()}):
            columns.setdefault(called, []).append(_quoted(name))
    rows = reader.read_csv(files, all_varchar=True, union_by_name=True, **marks)
    differing = []
    for name in sorted({name.lower() for name in used} & set(columns)):
        first, *copies = columns[name]
        differ = " OR ".join(f"{first} IS DISTINCT FROM {copy}" for copy in copies)
        if copies and rows.filter(differ).limit(1).fetchall():
            differing.append(name)
    return differing


def _check_headers(headers: Mapping[str, list[str]], path: str) -> None:
    """Raise unless csv files have the same columns, in whatever order."""
    first, *others = headers.items()
    for file, header in others:
        if set(header) != set(first[1]):
            for one, names in (first, (file, header)):
                _check_names(names, one, one)
            raise _different(path, first, (file, header))


def check_one_schema(reader: Any, files: list[str], path: str) -> None:
    """Raise unless all parquet files have the same columns of the same types.

    DuckDB would cast the values of later files to the types of the first, and Spark would drop
    columns; neither says so.
    """
    found = reader.execute(
        """
        SELECT file_name, string_agg(name || ' ' || coalesce(duckdb_type, type), ', ' ORDER BY name)
        FROM parquet_schema(?) WHERE num_children IS NULL GROUP BY file_name ORDER BY file_name
        """,
        [files],
    ).fetchall()
    first_file, first = found[0]
    for file, columns in found[1:]:
        if columns != first:
            raise _different(path, (first_file, first.split(", ")), (file, columns.split(", ")))


def _check_folders(reader: Any, files: list[str], path: str) -> None:
    """Raise if a column is in the files too, with other values than the names of folders say."""
    columns = set(reader.read_parquet(files, hive_partitioning=False).columns)
    for file in files:
        for name, sign, value in (part.partition("=") for part in Path(file).parent.parts):
            if not sign or name not in columns:
                continue
            differ = f"CAST({_quoted(name)} AS VARCHAR) IS DISTINCT FROM {_literal(unquote(value))}"
            own = reader.read_parquet(file, hive_partitioning=False)
            if own.filter(differ).limit(1).fetchall():
                raise DataError(
                    f"{shown(file)} has a column {shown(name)} with other values than the name of"
                    f" its folder says. Drop it from the files of {shown(path)}, or rename the"
                    " folder."
                )


def _different(
    path: str, first: tuple[str, Iterable[str]], second: tuple[str, Iterable[str]]
) -> DataError:
    """Say which columns one file has and another has not."""
    ours, theirs = set(first[1]), set(second[1])
    return DataError(
        f"The files of {path!r} differ in their columns: {Path(first[0]).name!r} has"
        f" {_listed(ours - theirs)}, {Path(second[0]).name!r} has {_listed(theirs - ours)}."
        " Rewrite them alike; nothing is cast silently."
    )


def _listed(columns: set[str]) -> str:
    return ", ".join(sorted(columns)) or "nothing else"


def csv_dialect(
    path: str, words: CsvWords | None, used: Collection[str]
) -> tuple[Layout, dict[str, str], dict[str, str]]:
    """Return how a csv file is read, the types of its columns, and when Spark would cut a field.

    The conditions are SQL of Spark about columns of text.
    """
    relation, files, layout = _opened(path, words, used)
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    cuts: dict[str, str] = {}
    if words is not None and not _all_seen(files, relation):
        cuts = {
            name: _is_cut(f"`{name}`", kind, is_truth=name in words.truths, matches="regexp_like")
            for name, kind in types.items()
        }
    return layout, types, cuts


def resolve(path: str) -> tuple[list[str], str]:
    """Return the files behind a path, and whether they are parquet or csv."""
    files, folder = [str(file) for file in sources(path)], os.path.isdir(path)  # noqa: PTH112
    name = path.lower()
    if folder or name.endswith(PARQUET_ENDINGS):
        kind = "parquet"
    elif name.endswith(CSV_ENDINGS) or (files and all(map(_is_text, files))):
        kind = "csv"
    else:
        endings = ", ".join((*CSV_ENDINGS, *PARQUET_ENDINGS))
        raise DataError(
            f"{shown(path)} has an unknown ending; known are {endings}. Save it as one of these, or"
            " rename a file that is one."
        )
    if not files:
        raise DataError(
            f"Folder {shown(path)} holds no parquet file."
            if folder
            else f"File {shown(path)} not found."
        )
    return files, kind


def _is_text(file: str) -> bool:
    """Whether a file of any ending begins with text, as a csv file does: a name says little."""
    with open(file, "rb") as stream:  # noqa: PTH123
        start = stream.read(4096)
    return bool(start) and b"\0" not in start and start[:1] not in b"{[<"


def _fault(file: str) -> str:
    """Say what keeps a csv file from being a table; nothing where its lines are alike."""
    import pyarrow as pa

    with (
        pa.input_stream(file, compression="detect") as stream,
        io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace") as lines,
    ):
        start = list(islice(lines, LINES))
        names = {mark: max(map(len, csv_rows(start[:1], mark)), default=1) for mark in ",\t;|"}
        mark = max(names, key=lambda mark: names[mark])
        mark = mark if names[mark] > 1 else " "
        first, *below = csv_rows(start, mark, runs=mark == " ") or [[]]
        fields, looked_at = len(first), below[:ROW_NAMES]
        own = {row[0] for row in looked_at}
        if fields > 1 and {*map(len, looked_at)} == {fields + 1} and len(own) == len(looked_at):
            return (
                f"the first line has {fields} names, and lines below it {fields + 1} fields, as"
                " where R has written names of rows; write a name for these before the first"
            )
        if mark == " ":
            return ""
        width = Counter(map(len, [first, *below])).most_common(1)[0][0]
        if fields != width:
            return (
                f"the first line has {fields} fields, and lines below it {width}; delete it where"
                f" it is a title, or put quotes around fields that have {mark!r} in them"
            )
        odd = _odd_line(chain(start, lines), mark, width)
        if not odd and isinstance(lines.newlines, tuple):
            return (
                "some lines end as on Windows, and others do not; make them alike:"
                " `sed 's/\\r$//' OLD > NEW`"
            )
        return odd


def _odd_line(lines: Iterable[str], mark: str, width: int) -> str:
    """Say which line has more or fewer fields, or a quote that is not closed."""
    number, rows = 1, csv.reader(lines, delimiter=mark, strict=True)
    remedy = "correct that line, or delete it"
    try:
        for row in rows:
            if row and len(row) != width:
                return f"line {number} has {len(row)} fields, the first has {width}; {remedy}"
            number = rows.line_num + 1
    except csv.Error:
        return f"line {number} has a quote that is not closed at the end of its field; {remedy}"
    return ""


def _explained(error: Exception) -> str:
    """Say in the reader's words what DuckDB says in its own."""
    if "not utf-8" in str(error):
        return NOT_TEXT
    if "sniffing file" in str(error):
        return "no delimiter gives every line the same columns; is it a csv file?"
    return reason(error)
