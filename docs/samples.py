"""Finished sample reports, one for each kind of reader: `make samples` writes them and their page.

The pages are what `equipoise audit` writes for the plans in ``docs/samples``; the experiment is
simulated, all else is the bundled table.
"""

import csv
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from equipoise.cli.delivery import findings
from equipoise.plans.dossier import Dossier
from equipoise.plans.gate import junit_xml
from equipoise.plans.plan import read_plan
from equipoise.plans.run import execute
from equipoise.report.html import html_report

HERE = Path(__file__).parent
TEMPLATES = HERE.parent / "src/equipoise/plans/templates"
PAGE = HERE / "samples.md"
SAMPLES = {
    "compliance": ("A compliance team", "equipoise demo --output report.html"),
    "regulator": (
        "A regulator or an expert witness",
        "equipoise audit docs/samples/regulator.toml --output report.html",
    ),
    "pipeline": (
        "An engineer with a pipeline",
        "equipoise audit docs/samples/pipeline.toml --fail-on detected --junit junit.xml",
    ),
    "experiment": (
        "An experimentation platform",
        "equipoise audit samples/experiment.toml --output report.html   # after `make samples`",
    ),
}
TOP = """# Finished samples

One for each kind of reader: what is printed and, on the site, the report beside it. `make samples`
writes these reports into the folder `samples`; the tables are the bundled COMPAS counts and a
simulated experiment. Every number below is computed again by a test.
"""


def experiment() -> list[tuple[object, ...]]:
    """Return a table of customers, with a line of names: the letter does less in the country."""
    rng = np.random.default_rng(2026)
    letter, country, chance = rng.random((3, 20_000))
    rows: list[tuple[object, ...]] = [("region", "letter", "visited", "predicted_effect")]
    for sent, rural, draw in zip(letter < 0.5, country < 0.4, chance, strict=True):
        visited = draw < 0.2 + sent * (0.04 if rural else 0.10)
        rows.append(("country" if rural else "town", int(sent), int(visited), 0.1))
    return rows


def dossier(name: str) -> Dossier:
    """Ask the questions of a sample, and keep what may leave the process."""
    if name == "compliance":
        return execute(read_plan(TEMPLATES / "demo.toml")).disclosed()
    if name != "experiment":
        return execute(read_plan(HERE / "samples" / f"{name}.toml")).disclosed()
    with tempfile.TemporaryDirectory() as folder:
        write_experiment(Path(folder))
        return execute(read_plan(Path(folder) / "experiment.toml")).disclosed()


def write_experiment(folder: Path) -> None:
    """Put the simulated table beside its plan."""
    shutil.copy(HERE / "samples/experiment.toml", folder)
    with (folder / "experiment.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(experiment())


def page(answered: dict[str, Dossier]) -> str:
    """Return the page: what each sample prints, and what else it leaves."""
    parts = [TOP]
    for name, (reader, command) in SAMPLES.items():
        said = findings(answered[name], quiet=name == "compliance")
        parts.append(
            f"## {reader}\n\n{answered[name].title}:"
            f' <a href="samples/{name}.html">the report</a>.\n\n'
            f"```console\n$ {command}\n```\n\n```text\n{said.rstrip()}\n```\n"
        )
        if name == "pipeline":
            xml = junit_xml(answered[name].checks, "detected")
            parts.append(f"and `junit.xml` has\n\n```xml\n{xml.rstrip()}\n```\n")
    return "\n".join(parts)


def reports(answered: dict[str, Dossier]) -> dict[str, str]:
    """Return the HTML of every sample by name."""
    return {name: html_report(one) for name, one in answered.items()}


def main(folder: Path) -> None:
    """Write the page of the docs, and the reports into a folder."""
    answered = {name: dossier(name) for name in SAMPLES}
    PAGE.write_text(page(answered), encoding="utf-8")
    folder.mkdir(exist_ok=True)
    write_experiment(folder)
    for name, text in reports(answered).items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
