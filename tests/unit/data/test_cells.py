"""Cells that travel: exact where nothing is withheld, and silent about what is."""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import equipoise as eq
from equipoise.cli.app import app
from equipoise.data.cells import METADATA, identity, read_cells, withheld
from equipoise.data.table import Quantity
from equipoise.exceptions import DataError, InvalidParameterError, MissingValuesError
from equipoise.results.question import questions

ROLES = {"group": ["race", "sex"], "y_true": "repaid", "y_pred": "approved"}
METRICS = ["selection_rate", "tpr", "accuracy"]


def people(seed=0, n=600, races="abc"):
    rng = np.random.default_rng(seed)
    return {
        "race": rng.choice(list(races), n),
        "sex": rng.choice(["F", "M"], n),
        "repaid": rng.integers(0, 2, n),
        "approved": rng.integers(0, 2, n),
        "person": rng.integers(0, n // 4, n),
        "weight": rng.integers(1, 5, n) / 2,
        "score": rng.integers(0, 100, n) / 100,
        "job": rng.choice(["clerk", "cook", "driver"], n),
        "week": rng.integers(1, 4, n),
        "before": rng.integers(0, 2, n),
        "arm": rng.integers(0, 2, n),
        "effect": rng.integers(0, 100, n) / 100,
    }


def part(table, chosen):
    return {name: values[chosen] for name, values in table.items()}


QUESTIONS = {
    "disparity": lambda audit, metric: audit.disparity(metric),
    "eel": lambda audit, metric: audit.disparity(metric, method="eel"),
    "rest": lambda audit, metric: audit.disparity(metric, reference="rest", method="eel"),
    "flag": lambda audit, metric: audit.flag(metric, margin=0.05, method="eel"),
    "certify": lambda audit, metric: audit.certify(metric, margin=0.2, method="eel"),
    "impact_ratios": lambda audit, metric: audit.impact_ratios(metric),
}


def alike(first, second):
    one, two = first.to_dict(), second.to_dict()
    for a, b in zip(one.pop("findings"), two.pop("findings"), strict=True):
        assert a.keys() == b.keys()
        for name, value in a.items():
            if isinstance(value, float):
                assert b[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
            else:
                assert b[name] == value, name


READY = {
    "candidate": "before",
    "accuracy": "accuracy",
    "fairness": "selection_rate",
    "inference": "analytic",
}
WITHOUT_METRIC = {
    "treatment_effects",
    "inequality",
    "multicalibration",
    "improvability",
    "necessity",
}
EXPERIMENT = ROLES | {"treatment": "arm", "effect_pred": "effect", "y_score": "score"}
OF_CELLS = {
    "given": ("disparity", {"given": ["job"]}),
    "flag given": ("flag", {"given": ["job"], "margin": 0.05}),
    "certify given": ("certify", {"given": ["job"], "margin": 0.3}),
    "decompose": ("decompose", {"given": ["job"]}),
    "highest": ("disparity", {"reference": "highest"}),
    "two models": ("compare", {"baseline": "before", "candidate": "approved"}),
    "two periods": ("compare", {"baseline": 1, "period": "week"}),
    "monitor": ("monitor", {"time": "week"}),
    "effects": ("treatment_effects", {"measure": "difference", "n_repeats": 0}),
    "inequality": ("inequality", {"benefits": "speicher"}),
    "several metrics": ("disparity", {"metric": ["selection_rate", "tpr"]}),
    "lowest": ("disparity", {"reference": "lowest"}),
    "all together": ("disparity", {"simultaneous": True, "scale": "ratio"}),
    "segments": ("multicalibration", {}),
    "survey": ("disparity", {"reference": "rest"}, {"strata": "job", "weight": "weight"}),
    "counted": ("disparity", {}, {"count": "week"}),
    "ready candidate": ("improvability", READY),
    "candidate and decisions": (
        "improvability",
        READY | {"inference": "bootstrap", "n_resamples": 200},
    ),
    "dossier": ("necessity", READY),
    "dossier of counts": ("necessity", READY | {"fairness": "tpr"}, {"count": "week"}),
    "arms of people": (
        "treatment_effects",
        {"measure": "difference", "n_repeats": 0},
        {"cluster": "person"},
    ),
}
OF_ROWS = {
    "discover": {},
    "policy": {"budget": 0.3},
    "predictive_parity": {},
    "marginal_outcome": {"threshold": 0.5},
    "score_quality": {},
    "drop_table": {"estimator": LogisticRegression(), "features": ["week"]},
}


def sites_of(table, n_sites, seed, *, by=None, **roles):
    """Deal the rows, or whole clusters, to sites; return the audit of each."""
    of = np.arange(len(table["race"])) if by is None else table[by]
    site = np.random.default_rng(seed).integers(0, n_sites, of.max() + 1)[of]
    parts = [part(table, site == k) for k in range(n_sites) if (site == k).any()]
    return [eq.Audit(rows, **roles) for rows in parts]


@settings(max_examples=5)
@given(
    seed=st.integers(0, 10_000),
    n_sites=st.integers(1, 3),
    question=st.sampled_from(list(QUESTIONS)),
    metric=st.sampled_from(METRICS),
)
def test_the_merged_cells_of_a_random_partition_are_the_table(seed, n_sites, question, metric):
    table = people(seed, n=300)
    sites = sites_of(table, n_sites, seed, **ROLES)
    merged = eq.merge(*(site.cells(metrics=metric, suppress_below=1) for site in sites))
    ask = QUESTIONS[question]
    alike(ask(eq.Audit.from_cells(merged), metric), ask(eq.Audit(table, **ROLES), metric))


@pytest.mark.parametrize("question", OF_CELLS)
@settings(max_examples=2)
@given(seed=st.integers(0, 10_000), n_sites=st.integers(2, 3))
def test_every_question_about_cells_is_answered_from_merged_cells(question, seed, n_sites):
    name, options, *more = OF_CELLS[question]
    roles = EXPERIMENT | (more[0] if more else {})
    table = people(seed, n=600)
    about = {"metric": "selection_rate"}
    if name in WITHOUT_METRIC or "metric" in options:
        about = {}
    merged = eq.merge(
        *(
            site.cells(
                metrics="selection_rate",
                questions=[{"question": name, **options}],
                suppress_below=1,
            )
            for site in sites_of(table, n_sites, seed, by=roles.get("cluster"), **roles)
        )
    )
    there, here = eq.Audit.from_cells(merged), eq.Audit(table, **roles)
    alike(getattr(there, name)(**about, **options), getattr(here, name)(**about, **options))


def test_every_question_is_one_of_cells_or_one_of_rows():
    from_cells = {name for name, *_ in OF_CELLS.values()} | {"flag", "certify", "impact_ratios"}
    assert from_cells | {*OF_ROWS} == {*questions()}
    assert not from_cells & {*OF_ROWS}


@pytest.mark.parametrize("question", OF_ROWS)
def test_what_needs_rows_is_neither_written_nor_asked_of_cells(question):
    audit = eq.Audit(people(), features=["week", "before"], **EXPERIMENT)
    options = OF_ROWS[question] | ({"metric": "error_rate"} if question == "discover" else {})
    with pytest.raises(InvalidParameterError, match=f"^`{question}` needs rows, and"):
        audit.cells(metrics="error_rate", questions=[{"question": question, **options}])
    there = eq.Audit.from_cells(audit.cells(metrics="error_rate", suppress_below=1))
    with pytest.raises(InvalidParameterError, match=f"^`{question}` needs (rows|sums)"):
        getattr(there, question)(**options)


def test_decisions_are_counted_in_cells_and_scores_are_not():
    table = people() | {"rival": np.arange(600) / 600.0}
    audit = eq.Audit(table, **ROLES)
    for question, options in (
        ("improvability", READY | {"candidate": "rival", "capacity": 0.5}),
        ("necessity", READY | {"candidate": "rival"}),
        ("improvability", READY | {"fairness": "tpr", "capacity": 0.5}),
    ):
        with pytest.raises(InvalidParameterError, match=f"^`{question}` needs rows, and"):
            audit.cells(metrics="tpr", questions=[{"question": question, **options}])


@pytest.mark.parametrize("column", ["before", "repaid", "approved"])
def test_missing_decisions_are_those_of_the_rows(column):
    table = {name: values.tolist() for name, values in people().items()}
    table[column][::25] = [None] * 24
    asked = [{"question": "necessity", **READY}]
    with pytest.raises(MissingValuesError, match=f"'{column}' has 24 missing values in 600 rows"):
        eq.Audit(table, **ROLES).cells(metrics="tpr", questions=asked)
    audit = eq.Audit(table, missing="drop", **ROLES)
    written = audit.cells(metrics="tpr", questions=asked, suppress_below=1)
    alike(eq.Audit.from_cells(written).necessity(**READY), audit.necessity(**READY))


def test_an_option_that_a_question_does_not_have_is_named():
    with pytest.raises(InvalidParameterError, match=r"`disparity` has no option 'givn'\. Did"):
        eq.Audit(people(), **ROLES).cells(
            metrics="tpr", questions=[{"question": "disparity", "givn": ["job"]}]
        )


def test_bands_of_equal_shares_need_rows_to_be_cut():
    job = {"question": "disparity", "given": ["age"], "bands": {"age": [30, 50]}}
    table = people() | {"age": np.arange(600) % 60}
    audit = eq.Audit.from_cells(
        eq.Audit(table, **ROLES).cells(metrics="selection_rate", questions=[job], suppress_below=1)
    )
    asked = {"given": ["age"], "bands": {"age": [30, 50]}}
    assert audit.disparity("selection_rate", **asked).n == 600
    with pytest.raises(InvalidParameterError, match="name the cut points of 'age' in `bands`"):
        audit.disparity("selection_rate", given=["age"], bands={"age": 3})


def test_people_are_never_the_keys_of_a_file():
    audit = eq.Audit(people(), time="week", cluster="person", **ROLES)
    with pytest.raises(InvalidParameterError, match="`monitor` needs rows, and none are written"):
        audit.cells(metrics="selection_rate", questions=["monitor"], suppress_below=1)


def test_cells_are_those_of_all_columns_that_are_asked_about(tmp_path):
    table = people(n=900)
    table["job"][::30] = "rare"
    path = tmp_path / "site.parquet"
    given = {"question": "disparity", "given": ["job"]}
    written = eq.Audit(table, **ROLES).cells(
        metrics="selection_rate", questions=["disparity", given], path=path
    )
    assert b"rare" not in path.read_bytes()
    assert written.withheld_cells >= 2
    by_group, by_job = sorted(written.answers.values(), key=lambda cells: len(cells.columns))
    assert (by_group.columns, by_job.columns) == (("race", "sex"), ("race", "sex", "job"))
    assert by_group.n.sum() == by_job.n.sum() == 900 - written.withheld_rows
    assert by_job.n.min() >= 10


def test_a_missing_factor_is_a_cell_that_may_be_small():
    """Rows without a job would follow from the table by groups and the one by jobs."""
    table = people(n=900)
    job = table["job"].tolist()
    table["job"] = [None if k % 30 == 0 else label for k, label in enumerate(job)]
    given = {"question": "disparity", "given": ["job"]}
    written = eq.Audit(table, **ROLES, missing="drop").cells(
        metrics="selection_rate", questions=["disparity", given]
    )
    by_group, by_job = sorted(written.answers.values(), key=lambda cells: len(cells.columns))
    assert by_group.n.sum() == by_job.n.sum()
    assert by_job.dropped == 0
    assert written.withheld_rows > 30


def test_a_site_whose_clusters_are_in_one_cell_each_adds_to_others():
    table = people(n=400)
    site = np.arange(400) >= 200
    table["person"][site] = 1000 + np.arange(200)
    roles = ROLES | {"cluster": "person"}
    parts = [eq.Audit(part(table, site == one), **roles) for one in (True, False)]
    found = [one.cells(metrics="tpr", suppress_below=1) for one in parts]
    for merged in (eq.merge(*found), eq.merge(*found[::-1])):
        for ask in (QUESTIONS["disparity"], QUESTIONS["rest"], QUESTIONS["flag"]):
            there = ask(eq.Audit.from_cells(merged), "tpr")
            alike(there, ask(eq.Audit(table, **roles), "tpr"))


@settings(max_examples=3)
@given(seed=st.integers(0, 10_000), n_sites=st.integers(1, 3), weighted=st.booleans())
def test_sites_with_clusters_of_their_own_merge_too(seed, n_sites, weighted):
    table = people(seed, n=300)
    roles = ROLES | {"cluster": "person"} | ({"weight": "weight"} if weighted else {})
    sites = sites_of(table, n_sites, seed, by="person", **roles)
    merged = eq.merge(*(site.cells(metrics=["tpr"], suppress_below=1) for site in sites))
    whole = eq.Audit(table, **roles).cells(metrics=["tpr"], suppress_below=1)
    assert merged.answers.keys() == whole.answers.keys()
    for name, cells in whole.answers.items():
        other = merged.answers[name]
        assert other.n_units == cells.n_units
        np.testing.assert_allclose(other.total, cells.total, rtol=1e-9)
        np.testing.assert_allclose(other.product, cells.product, rtol=1e-9)
        if cells.shared is not None:
            np.testing.assert_allclose(other.shared.side, cells.shared.side, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(other.shared.link, cells.shared.link, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("extra", [{}, {"weight": "weight"}, {"cluster": "person"}])
def test_a_file_holds_what_memory_holds(tmp_path, extra):
    path = tmp_path / "site.parquet"
    audit = eq.Audit(people(), y_score="score", **(ROLES | extra))
    written = audit.cells(metrics=["tpr", "mean_score"], path=path, suppress_below=1)
    again = read_cells(path)
    assert again.content() == written.content()
    assert (again.roles, again.kinds, again.sources) == (
        written.roles,
        written.kinds,
        written.sources,
    )
    assert sorted(tmp_path.iterdir()) == [path]


def test_no_row_and_no_small_cell_is_written(tmp_path):
    table = people(n=400)
    table["race"][:3] = "rare"
    path = tmp_path / "site.parquet"
    cells = eq.Audit(table, **ROLES).cells(metrics=METRICS, path=path)
    assert cells.withheld_cells >= 2
    assert b"rare" not in path.read_bytes()
    rows = pq.read_table(path)
    assert rows.num_rows < 100
    smallest = min(n for n in rows["n"].to_pylist() if n is not None)
    assert smallest >= 10
    result = eq.Audit.from_cells(path).disparity("selection_rate")
    assert "withheld-cells" in {note.code for note in result.notes}
    assert result.n == 400 - cells.withheld_rows


def margins(labels):
    """Every sum of cells over some of the columns, as the rows of a linear system."""
    system = []
    for size in range(len(labels[0])):
        for chosen in combinations(range(len(labels[0])), size):
            keys = [tuple(label[c] for c in chosen) for label in labels]
            system += [[float(key == one) for key in keys] for one in sorted(set(keys))]
    return np.array(system)


@settings(max_examples=40)
@given(
    st.lists(st.integers(2, 4), min_size=1, max_size=3),
    st.integers(0, 10_000),
    st.integers(2, 12),
)
def test_no_withheld_count_can_be_solved_for(levels, seed, limit):
    rng = np.random.default_rng(seed)
    labels = [tuple(str(x) for x in index) for index in np.ndindex(*levels)]
    n = rng.integers(1, 60, len(labels))
    try:
        hidden = withheld(labels, n, limit)
    except DataError:
        return
    assert hidden[n < limit].all()
    if not hidden.any():
        return
    assert n[hidden].sum() >= limit
    # The reader knows all margins of the table, and every count that is written.
    system = margins(labels)[:, hidden]
    rank = np.linalg.matrix_rank(system)
    for k in range(hidden.sum()):
        one = np.eye(hidden.sum())[k]
        assert np.linalg.matrix_rank(np.vstack([system, one])) == rank + 1


def test_a_table_of_small_cells_is_not_written():
    with pytest.raises(DataError, match=r"of 6 cells would be withheld, .* Name fewer or coarser"):
        eq.Audit(people(n=40), **ROLES).cells(metrics=METRICS)


def test_fewer_group_columns_are_rolled_up():
    table = people()
    cells = eq.Audit(table, **ROLES).cells(metrics="tpr", suppress_below=1)
    audit = eq.Audit.from_cells(cells)
    audit.table = audit.table.grouped_by(["sex"])
    there = audit.disparity("tpr")
    here = eq.Audit(table, **(ROLES | {"group": "sex"})).disparity("tpr")
    alike(there, here)


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda audit: audit.predictive_parity(), "`predictive_parity` needs rows"),
        (
            lambda audit: audit.disparity("mean_score"),
            "`disparity` needs sums that the file of cells does not hold; it holds .*'tpr'",
        ),
        (lambda audit: audit.marginal_outcome(0.5), "`marginal_outcome` needs rows"),
    ],
)
def test_what_needs_rows_is_refused_by_name(ask, sentence):
    cells = eq.Audit(people(), y_score="score", **ROLES).cells(metrics="tpr")
    audit = eq.Audit.from_cells(cells)
    with pytest.raises(InvalidParameterError, match=sentence):
        ask(audit)


def test_quantities_without_a_name_are_not_written():
    import narwhals as nw

    table = eq.Audit(people(), **ROLES).table
    assert identity(table.sums([Quantity.of(nw.lit(1.0))], {})) is None


def test_files_merge_when_they_are_of_one_kind_and_of_different_tables(tmp_path):
    one = eq.Audit(people(1), **ROLES).cells(metrics="tpr", path=tmp_path / "a.parquet")
    other = eq.Audit(people(2), **ROLES).cells(metrics="fpr")
    with pytest.raises(InvalidParameterError, match="the same metrics; got"):
        eq.merge(one, other)
    with pytest.raises(InvalidParameterError, match="share no rows; both hold those of the table"):
        eq.merge(one, tmp_path / "a.parquet")
    with pytest.raises(InvalidParameterError, match="`merge` needs files of cells"):
        eq.merge()
    with pytest.raises(InvalidParameterError, match="the same roles; got"):
        eq.merge(one, replace(other, roles=replace(other.roles, missing="drop"), metrics=("tpr",)))


def test_metrics_are_names():
    audit = eq.Audit(people(), **ROLES)
    for metrics in ([], [eq.Metric("mine", "score")]):
        with pytest.raises(InvalidParameterError, match="`metrics` must be names of metrics"):
            audit.cells(metrics=metrics)
    with pytest.raises(InvalidParameterError, match="cells are those of groups"):
        eq.Audit(people(), y_pred="approved").cells(metrics="selection_rate")
    with pytest.raises(InvalidParameterError, match="needs `y_score`"):
        audit.cells(metrics="mean_score")


def edited(path, change):
    table = pq.read_table(path)
    record = json.loads(table.schema.metadata[METADATA])
    change(record)
    pq.write_table(table.replace_schema_metadata({METADATA: json.dumps(record)}), path)


def test_other_files_are_refused_in_a_sentence(tmp_path):
    path = tmp_path / "x.parquet"
    with pytest.raises(DataError, match="not found"):
        read_cells(path)
    path.write_text("race,sex")
    with pytest.raises(DataError, match="it is not parquet"):
        read_cells(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(DataError, match="is not a file of cells"):
        read_cells(path)
    audit = eq.Audit(people(), **ROLES)
    audit.cells(metrics="tpr", path=path)
    edited(path, lambda record: record.update(schema_version=9))
    with pytest.raises(DataError, match="has schema_version 9; this version reads 1"):
        read_cells(path)
    audit.cells(metrics="tpr", path=path)
    edited(path, lambda record: record["declarations"][0].update(quantities=7))
    with pytest.raises(DataError, match="is damaged, or was edited"):
        read_cells(path)
    with pytest.raises(DataError, match="cannot be written"):
        audit.cells(metrics="tpr", path=tmp_path / "no" / "x.parquet")


def _more_rows(table):
    return table.set_column(4, "n", pa.array([(n or 0) + 1 for n in table["n"].to_pylist()]))


def _one_label(table):
    labels = [["b", *names[1:]] if names else names for names in table["labels"].to_pylist()]
    return table.set_column(2, "labels", pa.array(labels, pa.list_(pa.string())))


def _one_cell_less(table):
    return table.slice(1)


def _first_number(table, value):
    numbers = table["numbers"].to_pylist()
    numbers[0][0] = value
    return table.set_column(5, "numbers", pa.array(numbers, pa.list_(pa.float64())))


def _record(table, change):
    record = json.loads(table.schema.metadata[METADATA])
    change(record)
    return table.replace_schema_metadata({METADATA: json.dumps(record)})


@pytest.mark.parametrize(
    "edit",
    [
        _more_rows,
        _one_label,
        _one_cell_less,
        lambda table: _first_number(table, 1e6),
        lambda table: _first_number(table, float("nan")),
        lambda table: _record(table, lambda record: record.update(suppress_below=1)),
        lambda table: _record(table, lambda record: record.update(metrics=["fpr"])),
        lambda table: _record(table, lambda record: record["roles"].update(y_pred="repaid")),
        lambda table: _record(table, lambda record: record.pop("sha256")),
        lambda table: table.drop_columns(["numbers"]),
    ],
    ids=["n", "label", "cell", "number", "nan", "limit", "metric", "role", "hash", "column"],
)
def test_an_edited_file_is_refused(edit, tmp_path):
    path = tmp_path / "site.parquet"
    eq.Audit(people(), **ROLES).cells(metrics="tpr", path=path)
    table = pq.read_table(path)
    changed = edit(table)
    metadata = {**table.schema.metadata, **(changed.schema.metadata or {})}
    pq.write_table(changed.replace_schema_metadata(metadata), path)
    with pytest.raises(DataError, match=r"is damaged, or was edited \([^\n]*\)\.$"):
        eq.Audit.from_cells(path)


def test_people_of_two_sites_are_told_apart_by_a_note():
    """Nobody can see from sums that a person has rows at two sites."""
    table = people(n=400)
    roles = ROLES | {"cluster": "person"}
    halves = [part(table, np.arange(400) % 2 == k) for k in (0, 1)]
    sites = [eq.Audit(half, **roles).cells(metrics="tpr", suppress_below=1) for half in halves]
    merged = eq.Audit.from_cells(eq.merge(*sites)).disparity("tpr")
    (note,) = (note for note in merged.notes if note.code == "clusters-of-sites")
    assert note.message == "Sums of 2 tables were added: who has rows in two of them counts as two."
    for one in (
        eq.Audit.from_cells(sites[0]).disparity("tpr"),
        eq.Audit(table, **roles).disparity("tpr"),
    ):
        assert "clusters-of-sites" not in {note.code for note in one.notes}


def test_the_command_line_writes_and_merges(tmp_path):
    import polars as pl

    files = []
    for k in (1, 2, 3):
        source, target = tmp_path / f"{k}.csv", tmp_path / f"{k}.parquet"
        pl.DataFrame(people(k)).write_csv(source)
        arguments = ["--group", "race", "--group", "sex", "--y-true", "repaid"]
        arguments += ["--y-pred", "approved", "--metric", "tpr", "--output", str(target)]
        done = CliRunner().invoke(app, ["cells", str(source), *arguments])
        assert done.exit_code == 0, done.stderr
        assert "6 cells; 0 with 0 rows were withheld" in done.stderr
        files.append(str(target))
    merged = tmp_path / "all.parquet"
    done = CliRunner().invoke(app, ["merge", *files, "--output", str(merged)])
    assert done.exit_code == 0, done.stderr
    assert "6 cells of 3 tables" in done.stderr
    whole = {name: np.concatenate([people(k)[name] for k in (1, 2, 3)]) for name in people(1)}
    alike(eq.Audit.from_cells(merged).disparity("tpr"), eq.Audit(whole, **ROLES).disparity("tpr"))
    refused = CliRunner().invoke(app, ["merge", *files, "--output", files[0]])
    assert isinstance(refused.exception, InvalidParameterError)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_in_a_file_gives_a_withheld_cell_away(seed, tmp_path):
    """Solve the linear system of all numbers that a file holds, for the counts of every cell."""
    rng = np.random.default_rng(seed)
    table = people(seed, n=500)
    table["race"] = np.where(rng.random(500) < 0.03, "d", table["race"])
    path = tmp_path / "site.parquet"
    asked = ["disparity", "impact_ratios"]
    eq.Audit(table, **ROLES).cells(metrics=["selection_rate", "tpr"], questions=asked, path=path)
    cells = read_cells(path)
    labels = sorted(set(zip(table["race"], table["sex"], strict=True)))
    n = {one: np.sum((table["race"] == one[0]) & (table["sex"] == one[1])) for one in labels}
    written = {one for own in cells.answers.values() for one in zip(*own.labels, strict=True)}
    hidden = [one for one in labels if one not in written]
    assert all(one in hidden for one in labels if n[one] < 10)
    # What the reader knows: every count that is written, how many rows are withheld in all, and,
    # from elsewhere, every margin of the whole table.
    system, right = [[float(one in hidden) for one in labels]], [float(cells.withheld_rows)]
    for own in cells.answers.values():
        keys = [{key} for key in zip(*own.labels, strict=True)] or [written]
        for those, count in zip(keys, own.n.tolist(), strict=True):
            system.append([float(one in those) for one in labels])
            right.append(float(count))
    for column in (0, 1):
        for level in {one[column] for one in labels}:
            system.append([float(one[column] == level) for one in labels])
            right.append(float(sum(n[one] for one in labels if one[column] == level)))
    matrix = np.array(system)
    truth = np.array([float(n[one]) for one in labels])
    np.testing.assert_allclose(matrix @ truth, right)
    rank = np.linalg.matrix_rank(matrix)
    for one in hidden:
        unit = np.array([[float(other == one) for other in labels]])
        assert np.linalg.matrix_rank(np.vstack([matrix, unit])) == rank + 1, one
