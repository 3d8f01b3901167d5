"""What leaves the engine, by question: the table of the guide is measured."""

import re
from pathlib import Path

import narwhals as nw
import pyarrow as pa
import pytest

import equipoise as eq
from equipoise.audits import measure
from equipoise.data import table
from reference.test_engines import CASES, ROWS

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "scale.md"
LINE = re.compile(r"^\| (\w+) \| (sums|rows) \|$", re.MULTILINE)

ASKED = {
    "disparity": ["rates of text and Boolean groups", "rates of categories with clusters"],
    "flag": ["rates of integer groups with counts"],
    "certify": ["rates of dates with weights"],
    "inequality": ["inequality of decisions", "inequality of a column"],
    "treatment_effects": ["treatment effects", "treatment effects, split"],
    "predictive_parity": ["predictive parity of rows", "predictive parity of users"],
    "marginal_outcome": ["marginal outcome"],
    "improvability": ["improvability by another score"],
}


def repeated(times):
    """The rows several times over, each time with other users."""
    place = ROWS.column_names.index("user")
    users = ROWS.column("user").to_numpy()
    return pa.concat_tables(
        ROWS.set_column(place, "user", pa.array(users + 150 * k)) for k in range(times)
    )


@pytest.fixture
def collected(monkeypatch):
    """Sizes of all that was collected, for a table that is too large to be tested from rows."""
    sizes = []
    collect, batches = nw.LazyFrame.collect, table.record_batches

    def counting(frame, *args, **options):
        found = collect(frame, *args, **options)
        sizes.append(len(found))
        return found

    def streaming(frame):
        for batch in batches(frame):
            sizes.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(nw.LazyFrame, "collect", counting)
    monkeypatch.setattr(table, "record_batches", streaming)
    monkeypatch.setattr(measure, "WORK_LIMIT", 0)
    return sizes


def test_the_guide_names_every_question():
    assert sorted(dict(LINE.findall(GUIDE.read_text()))) == sorted(ASKED)


@pytest.mark.parametrize("question", ASKED)
def test_what_is_collected_is_what_the_guide_says(question, collected):
    leaves = dict(LINE.findall(GUIDE.read_text()))[question]
    for case in ASKED[question]:
        roles, ask = CASES[case]
        totals = []
        for times in (4, 16):
            collected.clear()
            assert ask(eq.Audit(repeated(times), missing="drop", **roles)).audit == question
            totals.append(sum(collected))
        # Four times the rows and users: sums stay as many (empty blocks fill up), rows do not.
        growth = totals[1] / totals[0]
        assert growth < 1.2 if leaves == "sums" else growth > 3.5, (case, totals)
