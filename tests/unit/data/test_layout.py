"""Whether a csv file begins with names, and what separates its fields."""

import csv
import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from equipoise import Audit
from equipoise.data.duckdb import NULL_WORDS, CsvWords, read
from equipoise.data.layout import Layout, find_layout
from equipoise.data.profile import profile, read_layout
from equipoise.exceptions import ColumnNotFoundError, DataError, InvalidParameterError

ROWS = [f"{age},{race},{sex},{paid}" for age, race, sex, paid in [
    (39, "White", "Male", "<=50K"), (50, "Black", "Male", ">50K"), (38, "White", "Female", "<=50K"),
    (53, "Black", "Female", ">50K"), (28, "White", "Male", "<=50K"), (37, "Black", "Male", ">50K"),
]]  # fmt: skip


def layout(*lines, separator=",", **known):
    ends = [f"{line}\n" for line in lines]
    return find_layout(ends, separator=separator, missing={*NULL_WORDS, "?"}, **known)


@pytest.mark.parametrize(
    "first",
    [
        "age,race,sex,income",
        "AGE,White,Male,y",  # words of labels, above a column of numbers
        ",race,sex,income",  # the index of a frame
    ],
)
def test_a_line_of_names_is_one(first):
    assert layout(first, *ROWS) == Layout()


@pytest.mark.parametrize(
    "lines",
    [
        ["country,2010,2015,2020", "A,1,2,3", "B,4,5,6"],
        ["0,1,2", "F,1,0.5", "M,0,0.25", "F,1,0.1"],
        ["1,2", "4,3", "9,8"],
        ["id,10,20,30", "7,1,2,3", "8,4,5,6"],
        ["sex,hired", "F,yes", "M,no", "F,no", "M,yes"],
        ["sex,2021,2020,2019", "F,1,2,3", "M,4,5,6", "F,7,8,9", "M,3,4,5"],
        ["town,2020-01,2020-02,2020-03", "a,1,2,3", "b,4,5,6"],
        ["sex,18-24,25-44,65+", "F,1,2,3", "M,4,5,6", "F,7,8,9", "M,3,4,5"],
        ["sex,08:00,10%,1_1", "F,1,2,3", "M,4,5,6", "F,7,8,9", "M,3,4,5"],
        ["sex,race,250,401,428", *["F,W,0,1,1", "M,B,1,0,0", "F,B,0,1,0", "M,W,1,0,1"] * 2],
        ["sex,0.1,0.5,0.9", "F,.1,.2,.3", "M,.4,.5,.6", "F,.7,.8,.9", "M,.3,.4,.5"],
        ["sex,race,y", "F,W,0", "M,B,1", "F,B,0", "M,W,1", "sex,race,y", "F,W,1", "M,B,0"],
        ["town,person", "a,b", "c,d"],
        ["sex,hired"],
        ["only", "1", "2"],
        [],
    ],
)
def test_numbers_that_count_up_and_words_of_no_row_are_names(lines):
    assert layout(*lines).named


@pytest.mark.parametrize(
    "lines",
    [
        ROWS,
        ["F,yes", "M,no", "F,no", "M,yes", "F,yes"],
        ["63.0,1.0,145.0", "67.0,0.0,160.0"],
        ["8,?,Lakewoodcity,0.19", "53,?,Tukwilacity,0.2", "24,3,Aberdeentown,0.5"],
        ["2024-01-05,$12.50,x1", "2024-01-04,$9.00,x2", "2024-01-03,$7.00,x3"],
        ["5,1,F", "7,0,M", "6,1,F", "5,0,M"],
    ],
)
def test_a_line_of_data_is_no_line_of_names(lines):
    found = layout(*lines)
    assert not found.named
    assert found.names == tuple(f"column_{k + 1}" for k in range(lines[0].count(",") + 1))


def test_what_is_known_of_the_first_line_is_not_looked_at():
    assert layout(*ROWS, header=True).named
    assert not layout("age,race,sex,income", *ROWS, header=False).named


def test_blanks_separate_where_nothing_else_does():
    found = layout("A11 6 x", "A12 48 y", "A11 12 x")
    assert (found.separator, found.named, found.spaced) == (" ", False, False)
    assert layout("a b", "c d e").separator == ","


def test_runs_of_blanks_separate_where_single_ones_do_not():
    found = layout("  1   F  0 ", "12   M  1", " 3 F 1   ", "4 F 0")
    assert (found.separator, found.runs, len(found.names)) == (" ", True, 3)
    assert layout("sex  paid", *["F     1", "M     0"] * 3).named
    assert not layout("1 F 0", "2 M 1").runs
    assert not layout("a text", "of  several words", "in lines").runs


def test_a_blank_behind_every_separator_belongs_to_no_field():
    assert layout("sex, hired", 'F, "no, later"', "M, yes").spaced
    assert not layout("sex, hired", "F,no").spaced


def test_a_title_above_the_table_is_no_part_of_it():
    found = layout("|1x3 Cross validator", "", *ROWS)
    assert found.skipped == ("|1x3 Cross validator", "")
    assert not found.named
    assert layout("Report of 2020", "sex,age", "F,12", "M,13", "F,14").named
    # A line of names that lacks that of the row names is no title.
    assert layout("a,b", "r1,1,2", "r2,3,4", "r3,3,4").skipped == ()


def test_a_title_with_the_separators_of_a_spreadsheet_is_no_part_of_the_table(tmp_path):
    table = ["sex,hired,pay", "F,1,20", "M,0,30", "F,0,20"]
    assert layout("Report of 2020,,", ",,", *table).skipped == ("Report of 2020,,", ",,")
    assert layout("Report of 2020,,", ",,", *table).named
    assert read(write(tmp_path, "Report,,", *table)).columns == ["sex", "hired", "pay"]
    # Names that are missing, or rows below them, are none.
    assert layout(",sex,", "a,F,x", "b,M,x", "c,F,y").skipped == ()
    assert layout("sex,,", "F,x,a", "M,x,b", "F,y,a").skipped == ()
    assert layout("Report,,", "1,F,x", "2,M,y", "3,F,y").skipped == ()
    assert layout("Report,,", *table, header=False).skipped == ()


def test_a_name_that_goes_on_in_the_next_line_is_no_title():
    table = '"sex', '(m/f)",paid', "F,1", "M,0", "F,0"
    assert layout(*table).skipped == ()
    assert layout("a title", *table).skipped == ("a title",)


def write(folder, *lines, name="t.csv"):
    path = folder / name
    opened = gzip.open if name.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8") as stream:
        stream.write("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.test"])
def test_no_row_is_lost(tmp_path, name):
    relation = read(write(tmp_path, *ROWS, name=name))
    assert relation.fetchall() == [(int(age), *words) for age, *words in csv.reader(ROWS)]
    assert relation.columns == [f"column_{k}" for k in range(1, 5)]


def test_title_blanks_and_names_all_at_once(tmp_path):
    path = write(tmp_path, "a title", *(row.replace(",", ", ") for row in ROWS))
    names = ["age", "race", "sex", "income"]
    audit = Audit(path, group="race", y_true="income", positive=">50K", names=names)
    result = audit.disparity("outcome_rate", reference={"race": "Black"})
    assert {finding.group: finding.estimate for finding in result.findings}["race=White"] == -1
    assert result.n == 6


def test_names_may_take_the_place_of_those_of_the_file(tmp_path):
    path = write(tmp_path, "a,b,c,d", *ROWS)
    assert read(path, words=CsvWords(names=tuple("wxyz"), header=True)).columns == list("wxyz")
    assert len(read(path, words=CsvWords(names=tuple("wxyz"), header=True)).fetchall()) == 6


def test_a_guess_can_be_overruled(tmp_path):
    path = write(tmp_path, *ROWS)
    assert len(read(path, words=CsvWords(header=True)).fetchall()) == 5
    named = write(tmp_path, "age,race,sex,income", *ROWS, name="named.csv")
    assert len(read(named, words=CsvWords(header=False)).fetchall()) == 7


@pytest.mark.parametrize("header", [None, True, False])
@pytest.mark.parametrize("given", [2, 5])
def test_names_are_as_many_as_columns(tmp_path, header, given):
    path = write(tmp_path, *ROWS)
    with pytest.raises(DataError, match=rf"`names` has {given} names; .*t.csv' has 4 columns"):
        Audit(path, group="a", names=list("abcde")[:given], header=header)


def test_names_for_a_file_that_may_have_its_own_ask_which_it_is(tmp_path):
    path = write(tmp_path, "age,race,sex,income", *ROWS)
    asked = {"group": "r", "y_true": "i", "positive": ">50K", "names": ["a", "r", "s", "i"]}
    with pytest.raises(DataError, match="Say `header = true` if they take the place of those"):
        Audit(path, **asked)
    assert Audit(path, **asked, header=True).disparity("outcome_rate").n == 6
    assert Audit(path, **asked, header=False).disparity("outcome_rate").n == 7


def test_names_go_by_position_in_every_file(tmp_path):
    write(tmp_path, "sex,paid", "F,1", "M,0", name="a.csv")
    write(tmp_path, "paid,sex", "1,F", "0,M", name="b.csv")
    with pytest.raises(
        DataError, match=r"go by position, and the files of .* have different first"
    ):
        read(str(tmp_path / "*.csv"), words=CsvWords(names=("s", "p"), header=True))
    write(tmp_path, "sex,paid", "F,1", "M,1", name="b.csv")
    both = read(str(tmp_path / "*.csv"), words=CsvWords(names=("s", "p"), header=True))
    assert both.columns == ["s", "p"]
    assert len(both.fetchall()) == 4


@pytest.mark.parametrize("option", [{"names": ["g", "p"]}, {"header": True}, {"header": False}])
def test_names_are_about_csv_files_alone(tmp_path, option):
    rows = pa.table({"g": ["a", "b"] * 9, "p": [0, 1, 1] * 6})
    path = str(tmp_path / "t.parquet")
    parquet.write_table(rows, path)
    (name,) = option
    for data, what in ((rows, "this table is no file"), (path, "t.parquet' is parquet")):
        with pytest.raises(InvalidParameterError, match=f"`{name}` is about .*{what}"):
            Audit(data, group="g", y_pred="p", **option)


def test_further_questions_about_a_file_with_own_names_are_asked(tmp_path):
    rows = [f"{'FM'[k % 2]},{k % 3 % 2},{k % 7 / 7:.3f}" for k in range(400)]
    audit = Audit(write(tmp_path, *rows), group="g", y_true="y", y_score="s", names=["g", "y", "s"])
    assert audit.predictive_parity(y_true=["y"], y_score=["s"]).n == 400


def test_cells_of_a_file_with_own_names_are_an_audit_again(tmp_path):
    rows = [f"{'FM'[k % 2]},{k % 3 % 2}" for k in range(90)]
    audit = Audit(write(tmp_path, *rows), group="g", y_pred="p", names=["g", "p"], header=False)
    audit.cells(metrics="selection_rate", path=tmp_path / "cells.parquet")
    again = Audit.from_cells(tmp_path / "cells.parquet")
    first, second = (each.disparity("selection_rate").findings for each in (audit, again))
    assert first == second


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"', "SEP=;\r"])
def test_the_line_that_tells_excel_what_separates_is_no_part_of_the_table(tmp_path, line):
    rows = ["F;1,5;03/04/2021", "M;2,5;25/04/2021", "F;3,5;26/04/2021"]
    end = "\r" if line.endswith("\r") else ""
    path = write(tmp_path, line, *(f"{row}{end}" for row in ["sex;size;day", *rows]))
    assert read_layout(path).skipped == (line.strip(),)
    relation = read(path, words=CsvWords(coded=frozenset({"day"})))
    assert relation.columns == ["sex", "size", "day"]
    assert [str(row[2]) for row in relation.fetchall()] == [
        "2021-04-03",
        "2021-04-25",
        "2021-04-26",
    ]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_file_of_two_bytes_a_letter_is_refused_with_its_own_command(tmp_path, encoding):
    path = tmp_path / "t.csv"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path.write_bytes(f"{mark}sex,paid\nF,1\nM,0\n".encode(encoding))
    with pytest.raises(DataError, match="`iconv -f utf-16 -t utf-8 OLD > NEW`"):
        read(str(path))


MISSING_NAMES = ["NA", "N/A", "NaN", "nan", "NULL", "null", "None", "none", "Na"]


@pytest.mark.parametrize("name", MISSING_NAMES)
def test_a_column_may_be_called_like_a_missing_value(tmp_path, name):
    rows = ["F,1,NA", "M,0,2", "F,0,3", "M,1,4"]
    path = write(tmp_path, f"{name},paid,age", *rows * 5)
    assert read(path).columns == [name, "paid", "age"]
    for roles in ({"group": name, "y_true": "paid"}, {"group": "paid", "y_true": name}):
        audit = Audit(path, **roles, positive="F" if roles["y_true"] == name else 1)
        assert audit.disparity("outcome_rate").n == 20
    assert [column.name for column in profile(path)] == [name, "paid", "age"]


def test_files_with_such_a_name_are_read_by_name(tmp_path):
    write(tmp_path, "NA,paid", "F,1", "M,0", "F,1", name="a.csv")
    write(tmp_path, "paid,NA", "1,M", "0,M", name="b.csv")
    relation = read(str(tmp_path / "*.csv"))
    assert relation.columns == ["NA", "paid"]
    assert sorted(relation.fetchall()) == [("F", 1), ("F", 1), ("M", 0), ("M", 0), ("M", 1)]


@pytest.mark.parametrize("name", ["t.txt", "t.csv.gz"])
@pytest.mark.parametrize("mark", ['"', ""])
def test_runs_of_blanks_are_read(tmp_path, name, mark):
    rows = [f"  {sex:8}{k}   {mark}{place}{mark}  " for k, (sex, place) in enumerate(
        zip(["male", "female"] * 6, ["Bern"] * 6 + ["Rome"] * 6, strict=True))]  # fmt: skip
    path = write(tmp_path, "sex      k  place", *rows, name=name)
    relation = read(path)
    assert relation.columns == ["sex", "k", "place"]
    assert relation.fetchall()[:2] == [("male", 0, "Bern"), ("female", 1, "Bern")]
    assert len(relation.fetchall()) == 12
    assert read_layout(path).runs


def test_quotes_between_runs_of_blanks(tmp_path):
    quoted = ['"a b"   1', "c    0", '"d ""e"""  1'] * 3
    rows = read(write(tmp_path, "a_name  n", *quoted)).fetchall()
    assert rows[:3] == [("a b", 1), ("c", 0), ('d "e"', 1)]
    lone = ['5"   1', "c    0", "d  1"] * 3
    assert read(write(tmp_path, "size  n", *lone)).fetchall()[:2] == [('5"', 1), ("c", 0)]


def test_what_is_wrong_with_a_file_of_runs_of_blanks_is_said(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes(b"a    1\n" * 1000 + b"\xe9   2\n")
    with pytest.raises(DataError, match="not UTF-8 text"):
        read(str(path))


def test_the_first_lines_are_looked_at_once(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "equipoise.data.duckdb.find_layout",
        lambda lines, **known: seen.append(lines) or find_layout(lines, **known),
    )
    Audit(write(tmp_path, "g,g,p", "a,a,1", "b,b,0"), group="g", y_pred="p")
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("lines", "columns"),
    [(["F,1", "M,0"], {"F"}), (["sex,paid", "F,1", "sex,0", "M,1"], {"sex"}), (["g", "a"], set())],
)
def test_a_label_that_is_the_name_of_its_column_has_a_note(tmp_path, lines, columns):
    first, *rows = lines
    group, *_ = first.split(",")
    labels = [row.split(",")[0] for row in rows] + list(columns)
    table = {group: labels * 40, "p": [0, 1, 1, 0] * 10 * len(labels)}
    result = Audit(table, group=group, y_pred="p").disparity("selection_rate")
    notes = [note.message for note in result.notes if note.code == "name-among-labels"]
    assert [message.split()[0] for message in notes] == [f"'{name}'" for name in columns]


def test_who_asks_for_a_column_of_a_file_without_names_is_told_why(tmp_path):
    path = write(tmp_path, *ROWS)
    with pytest.raises(ColumnNotFoundError, match="no line of names: give them in `names`"):
        Audit(path, group="sex")
    with pytest.raises(DataError, match=r"`names` has 2 names; .* has 4 columns"):
        Audit(path, group="a", names=["a", "b"])
    with pytest.raises(InvalidParameterError, match="`header` must be true or false"):
        Audit(path, group="a", header="no")


def test_files_of_which_only_some_have_names_are_refused(tmp_path):
    write(tmp_path, "age,race,sex,income", *ROWS, name="a.csv")
    write(tmp_path, *ROWS, name="b.csv")
    with pytest.raises(DataError, match=r"'a.csv' has a line of names, 'b.csv' has none"):
        read(str(tmp_path / "*.csv"))
    write(tmp_path, *ROWS, name="a.csv")
    assert len(read(str(tmp_path / "*.csv")).fetchall()) == 12


def test_names_that_repeat_are_not_looked_for_in_the_rows(tmp_path):
    rows = ["1,F,0", "2,M,1", "4,F,1", "9,M,0"]
    audit = Audit(write(tmp_path, *rows), group="g_1", y_true="y", names=["g", "g_1", "y"])
    assert audit.disparity("outcome_rate").n == 4


def test_a_file_of_lines_longer_than_what_is_looked_at_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("equipoise.data.duckdb.MOST_BYTES", 40)
    path = write(tmp_path, "age,race,sex,income", *ROWS)
    assert read_layout(path).named


def test_what_is_cut_at_the_end_is_not_looked_at(tmp_path, monkeypatch):
    path = write(tmp_path, "é,b", "1,2", "3,4x")
    monkeypatch.setattr("equipoise.data.duckdb.MOST_BYTES", 12)  # as far as the 4
    seen = []
    monkeypatch.setattr(
        "equipoise.data.duckdb.find_layout",
        lambda lines, **known: seen.extend(lines) or find_layout(lines, **known),
    )
    assert read_layout(path).named
    assert seen == ["é,b\n", "1,2\n"]


@pytest.mark.parametrize("sign", ["\u2028", "\x0c", "\x85"])
def test_only_ends_of_lines_end_lines(tmp_path, sign):
    path = write(tmp_path, f"te{sign}xt,sex,y", "a,F,1", "b,M,0", "b,F,0", "a,M,1")
    assert read(path).columns == [f"te{sign}xt", "sex", "y"]
    assert len(read(path).fetchall()) == 4


def test_a_field_of_extreme_length_is_read(tmp_path):
    path = write(tmp_path, "text,y", f'"{"a" * 200_000}",1', "b,0")
    assert [len(text) for text, _ in read(path).fetchall()] == [200_000, 1]


def test_a_damaged_archive_is_an_error_of_the_data(tmp_path):
    whole = write(tmp_path, "sex,y", "F,1", "M,0", name="t.csv.gz")
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(Path(whole).read_bytes()[:25])
    with pytest.raises(DataError, match=r"Cannot read .*cut.csv.gz"):
        read(str(cut))


@pytest.mark.spark
def test_spark_reads_the_same_layouts(tmp_path):
    path = write(tmp_path, *(row.replace(",", ", ") for row in ROWS))
    asked = {"group": "sex", "y_true": "income", "positive": ">50K"}
    names = ["age", "race", "sex", "income"]
    here, there = (
        Audit(path, **asked, names=names, engine=engine).disparity("outcome_rate")
        for engine in ("duckdb", "spark")
    )
    assert [f.estimate for f in here.findings] == pytest.approx(
        [f.estimate for f in there.findings]
    )
    titled = write(tmp_path, "a title", *ROWS, name="titled.csv")
    with pytest.raises(DataError, match="Spark cannot skip lines above a table"):
        Audit(titled, **asked, names=names, engine="spark")


@pytest.mark.spark
def test_spark_refuses_what_it_cannot_read(tmp_path):
    path = write(tmp_path, *["F   1", "M   0"] * 5)
    with pytest.raises(DataError, match=r"runs of blanks .* `awk"):
        Audit(path, group="column_1", y_true="column_2", engine="spark")
    rows = pa.table({"g": ["a", "b"], "p": [0, 1]})
    parquet.write_table(rows, tmp_path / "t.parquet")
    with pytest.raises(InvalidParameterError, match="`names` is about the first line"):
        Audit(str(tmp_path / "t.parquet"), group="g", names=["g", "p"], engine="spark")


@pytest.mark.spark
def test_spark_gives_the_names_to_a_file_that_only_it_can_reach(tmp_path):
    path = write(tmp_path, *ROWS)
    names = ["age", "race", "sex", "income"]
    audit = Audit(f"file://{path}", group="sex", y_true="income", positive=">50K",
                  names=names, engine="spark")  # fmt: skip
    assert audit.disparity("outcome_rate").n == 6


def test_columns_of_one_name_are_found_between_blanks(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("sex y y\n" + "F 1 0\nM 0 1\n" * 8, encoding="utf-8")
    with pytest.raises(DataError, match="'y'"):
        Audit(str(path), group="sex", y_true="y").disparity("mean_outcome")
