import json

import pytest

from equipoise.cli.app import main
from equipoise.design import benefit_design, power


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


def test_sample_size_prints_the_rows_needed(capsys):
    words = "design sample-size certify --share 0.1 --rate 0.4 --target rest --margin 0.05"
    code, out, err = run(capsys, *words.split())
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "certify: n = 9135, level of one test 0.05"


def test_power_takes_several_groups_and_prints_json(capsys):
    words = "design power flag --n 5000 --share 0.1 --share 0.2 --disparity 0.05 --rate 0.4 --json"
    code, out, _ = run(capsys, *words.split())
    found = json.loads(out)
    assert code == 0
    assert found["n_group"] == [500.0, 1000.0]
    assert 0.7 < found["power"][0] < found["power"][1] < 1.0


def test_impossible_share_exits_with_two_and_one_line(capsys):
    words = "design power flag --n 100 --share 3 --rate 0.4"
    code, out, err = run(capsys, *words.split())
    assert (code, out) == (2, "")
    assert err.strip() == "equipoise: `share` must be in (0, 1); got 3.0. Pass 0.03 for 3%."


def test_inequality_is_planned_with_a_spread_for_each_group(capsys):
    words = "design power inequality --n 2000 --share 0.7 --share 0.3 --disparity 1 --disparity 0.9"
    code, out, _ = run(capsys, *words.split(), "--sd", 0.5, "--sd", 0.6, "--skewness", 0.5)
    assert code == 0
    plan = power(
        "inequality", n=2000, share=[0.7, 0.3], disparity=[1, 0.9], sd=[0.5, 0.6], skewness=0.5
    )
    assert out.strip() == str(plan)


def test_a_target_from_elsewhere_has_its_standard_error(capsys):
    words = "design power disparity --n 99 --share 0.9 --disparity 0.4 --sd 1 --target known"
    _, out, _ = run(capsys, *words.split(), "--target-se", 0.1, "--json")
    assert json.loads(out)["se"] == [pytest.approx((1 / 89.1 + 0.01) ** 0.5)]
