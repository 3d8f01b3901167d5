import pytest

from equipoise import datasets
from equipoise import datasets as source
from equipoise.exceptions import DataError, ResourceError


def test_compas_counts_are_the_counts_of_the_file(data_file, monkeypatch):
    monkeypatch.setenv("EQUIPOISE_DATA", str(data_file("compas-scores-two-years.csv").parent))
    keys = ["race", "sex", "age_cat", "decile_score", "two_year_recid"]
    rows = datasets.fetch_compas().to_pandas()
    counted = rows.groupby(keys).size()
    bundled = datasets.load_compas_counts().to_pandas().set_index(keys)["count"]
    assert bundled.sort_index().to_dict() == counted.sort_index().to_dict()


def test_high_risk_starts_at_decile_five():
    frame = datasets.load_compas_counts().to_pandas()
    assert ((frame["decile_score"] >= 5) == (frame["high_risk"] == 1)).all()


@pytest.mark.parametrize(
    ("part", "rows", "rate"), [("train", 32561, 0.2408), ("test", 16281, 0.2362)]
)
def test_adult_has_the_published_size_and_rate(data_file, monkeypatch, part, rows, rate):
    monkeypatch.setenv("EQUIPOISE_DATA", str(data_file("adult.data").parent))
    frame = datasets.fetch_adult(part).to_pandas()
    assert len(frame) == rows
    assert frame["income"].mean() == pytest.approx(rate, abs=5e-5)
    assert set(frame["sex"]) == {"Male", "Female"}


def test_an_unknown_part_is_refused():
    with pytest.raises(DataError, match="`part` must be 'train' or 'test'; got 'all'"):
        datasets.fetch_adult("all")


def test_a_file_with_another_checksum_is_refused(tmp_path, monkeypatch):
    (tmp_path / "adult.data").write_text("39, State-gov\n")
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path))
    with pytest.raises(DataError, match="is not the expected file: its SHA-256"):
        datasets.fetch_adult()


@pytest.fixture
def local_source(tmp_path, monkeypatch):
    """A source served from a file: URL, so that the download itself is real."""
    import hashlib

    served = tmp_path / "served.csv"
    served.write_bytes(b"a\n1\n")
    digest = hashlib.sha256(served.read_bytes()).hexdigest()
    monkeypatch.delenv("EQUIPOISE_DATA", raising=False)
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path / "cache"))
    return source._Source(name="x.csv", url=served.as_uri(), sha256=(digest,)), served


def test_a_download_is_cached_whole(local_source, tmp_path):
    known, served = local_source
    assert source._path(known).read_bytes() == b"a\n1\n"
    served.unlink()
    assert source._path(known).read_bytes() == b"a\n1\n"
    assert [file.name for file in (tmp_path / "cache").iterdir()] == ["x.csv"]


def test_a_wrong_download_is_not_cached(local_source, tmp_path):
    known, served = local_source
    served.write_bytes(b"tampered")
    with pytest.raises(DataError, match="unexpected SHA-256"):
        source._path(known)
    assert not list((tmp_path / "cache").iterdir())


def test_a_cache_that_cannot_be_made_is_one_sentence(local_source, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(
        ResourceError, match=r"cannot be kept in .*: Not a directory\. Name another"
    ):
        source._path(local_source[0])


def test_a_failed_download_says_what_to_do(local_source):
    known, served = local_source
    served.unlink()
    with pytest.raises(DataError, match="could not be downloaded"):
        source._path(known)
