"""Seals: what was edited is named, and a signature cannot be made without the key."""

import builtins
import copy
import json
import math
from functools import reduce

import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from typer.testing import CliRunner

from equipoise.cli.app import app
from equipoise.exceptions import EquipoiseError, InvalidParameterError, MissingDependencyError
from equipoise.plans.dossier import Dossier, read_results
from equipoise.plans.seal import check_seal, sealed, signing_key
from equipoise.report.html import html_report
from support.specimens import check, dossier, finding, result

RECORD = {
    "plan": "[data]",
    "data": {"files": [{"sha256": "ab"}], "rows": 10},
    "checks": [{"id": "a", "p_value": 0.1 + 0.2, "group": "race=é & sex=F"}],
    "title": "An audit",
}


def written_key(folder, key=None):
    private = ed25519.Ed25519PrivateKey.generate() if key is None else key
    path = folder / "key.pem"
    path.write_bytes(
        private.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
    )
    return path


def new_key(folder):
    return signing_key(written_key(folder))


def again(record):
    return json.loads(json.dumps(record, indent=2, ensure_ascii=False))


def test_a_seal_holds_whatever_the_spaces_and_order_of_the_file():
    record = again(sealed(RECORD))
    turned = {name: record[name] for name in reversed(record)}
    assert check_seal(turned).edited == ()
    assert "not signed" in check_seal(turned).words


def test_results_without_a_seal_say_so():
    assert "carry no seal" in check_seal(RECORD).words


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda record: record["checks"][0].update(p_value=0.04), "findings"),
        (lambda record: record.update(title="Another"), "findings"),
        (lambda record: record.update(plan="[data] "), "plan"),
        (lambda record: record["data"]["files"][0].update(sha256="cd"), "data"),
    ],
)
def test_what_was_edited_is_named(change, part):
    record = copy.deepcopy(again(sealed(RECORD)))
    change(record)
    assert check_seal(record).edited == (part,)
    assert check_seal(record).words == f"EDITED after the audit: {part}"


def test_a_signature_shows_an_edit_with_a_new_seal(tmp_path):
    record = again(sealed(RECORD, new_key(tmp_path)))
    assert check_seal(record).edited == ()
    assert f"signed with the key {record['seal']['public_key']}" in check_seal(record).words
    forged = {name: value for name, value in record.items() if name != "seal"}
    forged["title"] = "Another"
    fresh = sealed(forged)["seal"]
    forged["seal"] = record["seal"] | fresh
    assert check_seal(forged).edited == ("signature",)
    broken = record | {"seal": record["seal"] | {"public_key": "?"}}
    assert check_seal(broken).edited == ("signature",)


def leaves(value, way=()):
    """Every place of a record that holds no further ones, and every key."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in parts:
        yield (*way, name)
        if isinstance(part, (dict, list)):
            yield from leaves(part, (*way, name))


def other(value):
    """Another value, as near as one can be."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, float):
        return math.nextafter(value, math.inf)
    return value + 1 if isinstance(value, int) else f"{value} "


@pytest.mark.parametrize("signed", [False, True])
def test_an_edit_of_any_field_is_seen(tmp_path, signed):
    findings = [finding("g=a", 0.12, 0.1, 0.2, n=900), finding("g=b", -0.1, -0.2, 0.0, n=40)]
    whole = dossier(check("gaps", result(findings=findings))).to_dict() | {"answer": "Nothing."}
    record = again(sealed(whole, new_key(tmp_path) if signed else None))
    places = [way for way in leaves(record) if way[0] != "seal"]
    assert len(places) > 80
    for *way, last in places:
        for removes in (False, True):
            edited = copy.deepcopy(record)
            part = reduce(lambda inner, name: inner[name], way, edited)
            if removes:
                del part[last]
            else:
                part[last] = other(part[last])
            assert check_seal(edited).edited, (way, last, removes)


def test_an_edit_of_a_signed_seal_is_seen(tmp_path):
    record = again(sealed(RECORD, new_key(tmp_path)))
    for name in ("data", "plan", "findings", "signature", "public_key"):
        changed = record["seal"] | {name: f"{record['seal'][name]}\x1b "}
        assert check_seal(record | {"seal": changed}).edited, name
    for name in ("signature", "public_key"):
        rest = {key: value for key, value in record["seal"].items() if key != name}
        assert check_seal(record | {"seal": rest}).edited == ("signature",)


def test_the_seal_of_another_file_does_not_hold(tmp_path):
    key = new_key(tmp_path)
    first, second = again(sealed(RECORD, key)), again(sealed(RECORD | {"title": "B"}, key))
    assert check_seal(first | {"seal": second["seal"]}).edited == ("findings", "signature")


def test_results_signed_anew_name_the_other_key(tmp_path):
    """What only a reader who knows the key can see: it is told."""
    (tmp_path / "other").mkdir()
    record = again(sealed(RECORD, new_key(tmp_path)))
    forged = again(sealed(RECORD | {"title": "Another"}, new_key(tmp_path / "other")))
    assert check_seal(forged).edited == ()
    assert check_seal(forged).signer != check_seal(record).signer
    assert check_seal(forged).signer in check_seal(forged).words


@pytest.mark.parametrize(
    ("spelled", "edited"), [("1.2e1", ()), ("12.00", ()), ("12", ("findings",))]
)
def test_another_spelling_of_a_number_is_the_number(tmp_path, spelled, edited):
    text = json.dumps(sealed({"checks": [12.0]})).replace("12.0]", f"{spelled}]")
    (tmp_path / "r.json").write_text(text)
    assert check_seal(read_results(tmp_path / "r.json")).edited == edited


def test_a_key_that_is_there_twice_is_refused(tmp_path):
    """Readers differ in which of the two they take, and the seal holds for one."""
    text = json.dumps(sealed(RECORD)).replace('"p_value":', '"p_value": 0.9, "p_value":')
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(
        InvalidParameterError, match="is not JSON: the key 'p_value' is there twice"
    ):
        read_results(tmp_path / "r.json")


def test_keys_of_another_kind_are_refused(tmp_path):
    with pytest.raises(InvalidParameterError, match="cannot be read"):
        signing_key(tmp_path / "none.pem")
    (tmp_path / "text.pem").write_text("no key")
    with pytest.raises(InvalidParameterError, match="is not a private key in PEM"):
        signing_key(tmp_path / "text.pem")
    other = written_key(tmp_path, ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(InvalidParameterError, match="must be a key of Ed25519"):
        signing_key(other)


def test_without_cryptography_the_extra_is_named(tmp_path, monkeypatch):
    key = written_key(tmp_path)
    signed = sealed(RECORD, signing_key(key))
    load = builtins.__import__

    def missing(name, *args, **options):
        if name.startswith("cryptography"):
            raise ImportError(name)
        return load(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    for attempt in (lambda: signing_key(key), lambda: check_seal(signed)):
        with pytest.raises(MissingDependencyError, match=r"install `equipoise\[sign\]`|Install"):
            attempt()


@pytest.mark.parametrize("value", [None, [], {}, "x", -1, 1e308])
@pytest.mark.parametrize(
    "place", ["title", "plan", "data", "versions", "failed", "data.rows", "data.files", "min_cell"]
)
def test_edited_results_are_read_or_refused_in_a_sentence(place, value):
    """Whatever stands in a place, the report is written or one sentence says why not."""
    record = dossier().to_dict()
    *way, last = place.split(".")
    part = reduce(lambda inner, name: inner[name], way, record)
    part[last] = value
    try:
        said = html_report(Dossier.from_dict(record))[:15] + "."
    except EquipoiseError as error:
        said = str(error)
    assert said.endswith((".", "?"))
    assert "\n" not in said


def test_the_report_says_whether_results_were_edited(tmp_path):
    (tmp_path / "loans.csv").write_text("sex,approved\n" + "F,1\nM,0\nM,1\nF,1\n" * 30)
    plan = tmp_path / "audit.toml"
    plan.write_text(
        '[data]\npath = "loans.csv"\ngroup = "sex"\ny_pred = "approved"\n'
        '[[check]]\nid = "gaps"\nquestion = "disparity"\nmetric = "selection_rate"\n'
    )
    results, page = tmp_path / "results.json", tmp_path / "report.html"
    key = written_key(tmp_path)
    arguments = ["audit", str(plan), "--json", str(results), "--sign", str(key), "--quiet"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    done = CliRunner().invoke(app, ["report", str(results), "--output", str(page)])
    assert done.exit_code == 0
    assert "the seal holds" in done.stderr
    assert "edited after the audit" not in page.read_text()
    results.write_text(results.read_text().replace('"n": 120', '"n": 121'))
    done = CliRunner().invoke(app, ["report", str(results), "--output", str(page)])
    assert "EDITED after the audit: findings" in done.stderr
    assert "(edited after the audit)" in page.read_text()


def test_a_key_that_cannot_sign_ends_the_run_before_anything_is_read(tmp_path):
    (tmp_path / "loans.csv").write_text("not a table")
    (tmp_path / "audit.toml").write_text(
        '[data]\npath = "loans.csv"\ngroup = "sex"\ny_pred = "approved"\n'
        '[[check]]\nquestion = "disparity"\nmetric = "selection_rate"\n'
    )
    (tmp_path / "text.pem").write_text("no key")
    key = str(tmp_path / "text.pem")
    done = CliRunner().invoke(app, ["audit", str(tmp_path / "audit.toml"), "--sign", key])
    assert "is not a private key in PEM" in str(done.exception)


def test_results_nested_without_end_are_refused(tmp_path):
    from equipoise.plans.dossier import load

    (tmp_path / "x.json").write_text("[" * 200_000)
    with pytest.raises(InvalidParameterError, match=r"nested too deeply|is not JSON"):
        load(tmp_path / "x.json")


def test_results_in_a_folder_cannot_be_read(tmp_path):
    with pytest.raises(InvalidParameterError, match=r"cannot be read: Is a directory"):
        read_results(tmp_path)
