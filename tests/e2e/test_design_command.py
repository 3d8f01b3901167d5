import json

import pytest

from equipoise.cli.app import main
from equipoise.design import benefit_design


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return left.value.code, captured.out, captured.err


def test_design_is_printed_as_python_prints_it(capsys):
    code, out, err = run(capsys, "design", "benefits", "--base-rate", 0.4, "--kappa", 10)
    assert (code, err) == (0, "")
    assert out.strip() == str(benefit_design(0.4, 10))


def test_every_option_reaches_the_design(capsys):
    code, out, _ = run(
        capsys, "design", "benefits", "--base-rate", 0.25, "--kappa", 5, "--kind", "assistive",
        "--minimum-benefit", 0.2, "--order", 0.5, "--json",
    )  # fmt: skip
    assert code == 0
    expected = benefit_design(0.25, 5, "assistive", 0.2, 0.5).to_dict()
    assert json.loads(out) == json.loads(json.dumps(expected))


def test_ratio_that_cannot_be_encoded_exits_with_two_and_one_line(capsys):
    code, out, err = run(capsys, "design", "benefits", "--base-rate", 0.1, "--kappa", 5)
    assert (code, out) == (2, "")
    assert err.startswith("equipoise: kappa = 5 cannot be encoded")
    assert len(err.strip().splitlines()) == 1


def test_missing_option_exits_with_two(capsys):
    code, _, err = run(capsys, "design", "benefits", "--kappa", 5)
    assert code == 2
    assert "--base-rate" in err
