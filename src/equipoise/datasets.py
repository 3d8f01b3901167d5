"""Data sets for examples and tests: one bundled table of counts, others fetched once.

A file is looked for in the folder named by ``EQUIPOISE_DATA``, then in the cache
(``~/.cache/equipoise``, or ``EQUIPOISE_CACHE``), and is downloaded otherwise. Its SHA-256 must be
one of those listed here; the cache is written atomically.
"""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from equipoise.data.duckdb import connection
from equipoise.exceptions import DataError, ResourceError

__all__ = ["fetch_adult", "fetch_compas", "load_compas_counts"]

TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    name: str
    url: str
    sha256: tuple[str, ...]


COMPAS = _Source(
    name="compas-scores-two-years.csv",
    url="https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores-two-years.csv",
    sha256=(
        "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
        # The same file without the columns that identify a person.
        "a5e5c34bfd2d1f065bb12a44c0323421baf74b98b97d585915a0c2e1513ecaba",
    ),
)
ADULT_TRAIN = _Source(
    name="adult.data",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
    sha256=("5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",),
)
ADULT_TEST = _Source(
    name="adult.test",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.test",
    sha256=("a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",),
)
ADULT_COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status"),
    *("occupation", "relationship", "race", "sex", "capital_gain", "capital_loss"),
    *("hours_per_week", "native_country", "income"),
]


def load_compas_counts() -> Any:
    """Return ProPublica's COMPAS file as counts of identical defendants.

    The table has 7,214 defendants in the columns `race`, `sex`, `age_cat`, `decile_score`,
    `two_year_recid`, with `count` for how many defendants share a row, and `high_risk`, which is 1
    from decile 5 on. It holds figures only, no personal rows.

    Returns
    -------
    pyarrow.Table

    Examples
    --------
    How many defendants does it count?

    >>> from equipoise.datasets import load_compas_counts
    >>> sum(load_compas_counts()["count"].to_pylist())
    7214
    """
    with resources.as_file(resources.files("equipoise") / "compas_counts.csv") as path:
        return connection(str(path)).read_csv(str(path)).to_arrow_table()


def fetch_compas() -> Any:
    """Return ProPublica's two-year COMPAS file, a row for each defendant.

    Returns
    -------
    pyarrow.Table
        All columns of the source; the score is `decile_score`, the outcome `two_year_recid`.
    """
    path = str(_path(COMPAS))
    return connection(path).read_csv(path).to_arrow_table()


def fetch_adult(part: str = "train") -> Any:
    """Return the UCI Adult census file.

    Parameters
    ----------
    part : {"train", "test"}
        The 32,561 training or the 16,281 test rows.

    Returns
    -------
    pyarrow.Table
        `income` is 1 above 50,000 dollars; a question mark in the source is null.
    """
    sources = {"train": (ADULT_TRAIN, 0), "test": (ADULT_TEST, 1)}
    if part not in sources:
        raise DataError(f"`part` must be 'train' or 'test'; got {part!r}.")
    source, skip = sources[part]
    path = str(_path(source))
    relation = connection(path).read_csv(
        path,
        header=False,
        names=ADULT_COLUMNS,
        skiprows=skip,
        sep=", ",
        na_values=["?"],
        null_padding=False,
    )
    rest = ", ".join(ADULT_COLUMNS[:-1])
    return relation.project(f"{rest}, (income LIKE '>50K%')::BIGINT AS income").to_arrow_table()


def _path(source: _Source) -> Path:
    local = os.environ.get("EQUIPOISE_DATA")
    if local and (Path(local) / source.name).exists():
        return _verified(Path(local) / source.name, source)
    cache = Path(os.environ.get("EQUIPOISE_CACHE", Path.home() / ".cache" / "equipoise"))
    file = cache / source.name
    if not file.exists():
        try:
            cache.mkdir(parents=True, exist_ok=True)
            _download(source, file)
        except OSError as error:
            raise ResourceError(
                f"{source.name!r} cannot be kept in {str(cache)!r}: {error.strerror}. Name another"
                " folder in EQUIPOISE_CACHE."
            ) from error
    return _verified(file, source)


def _verified(file: Path, source: _Source) -> Path:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if digest not in source.sha256:
        raise DataError(
            f"{str(file)!r} is not the expected file: its SHA-256 is {digest}. Remove it and retry."
        )
    return file


def _download(source: _Source, file: Path) -> None:
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(source.url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
            content = answer.read()
    except (urllib.error.URLError, TimeoutError) as error:
        raise DataError(
            f"{source.name!r} could not be downloaded ({error}). Put the file into a folder"
            " and name it in EQUIPOISE_DATA."
        ) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest not in source.sha256:
        raise DataError(f"The download of {source.name!r} has an unexpected SHA-256: {digest}.")
    with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".tmp", delete=False) as part:
        part.write(content)
    Path(part.name).replace(file)
