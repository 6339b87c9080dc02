"""`sv.audit` and its command: what they take, what they tell, and how they end."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import sottovoce as sv
from sottovoce.auditing import audit as auditing
from sottovoce.auditing.bits import bit_site
from sottovoce.auditing.outcome import Audit
from sottovoce.auditing.sources import study_name
from sottovoce.auditing.suite import CLIENTS
from sottovoce.cli import app
from sottovoce.core.errors import BadInput
from sottovoce.protocol.randomised_response import binary
from sottovoce.protocol.regression.blocks import Open
from sottovoce.protocol.regression.box import cq
from sottovoce.protocol.regression.box_channel import box_channel
from sottovoce.protocol.selection import selection
from sottovoce.protocol.selection.geometric import noisy_count, polya
from sottovoce.sim.randomness import dice


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["audit", *words])


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize(
    "channel",
    [
        binary(1.0),
        cq(0.5, 2, 1.0, q=2, s=1),
        cq(0.25, 2, 1.0, q=9, s=3),
        selection("sparse-vector", 40, 30, 11, 1.0),
        noisy_count(1.0),
        polya(1.0, 5),
        box_channel("cq", 1.0, kinds=2, slopes=1, cells=3),
    ],
    ids=lambda each: type(each).__name__,
)
def test_channels_are_audited(channel: Any) -> None:
    found = sv.audit(channel, samples=200, confidence=1 - 1e-6)
    assert found.honest
    assert found.epsilon == pytest.approx(1.0, abs=1e-8)
    assert found.bound <= found.epsilon
    assert repr(found).startswith("<Audit: exact epsilon 1, at least ")
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["honest"]


def test_what_is_not_private_is_called_so() -> None:
    for nothing in (Open(), binary(math.inf)):
        found = sv.audit(nothing)
        assert (found.epsilon, found.clients) == (math.inf, ())
        assert "infinite (no privacy)" in repr(found)
        assert found.to_dict()["epsilon"] is None


@pytest.mark.parametrize(
    "words",
    [
        {"what": "nowhere.json"},
        {"what": None},
        {"what": True},
        {"what": math.inf},
        {"what": 0},
        {"what": -1.0},
        {"what": math.nan},
        {"samples": 7},
        {"samples": 1e9},
        {"samples": 200.5},
        {"samples": "many"},
        {"confidence": 1.0},
        {"confidence": 0.1},
        {"confidence": math.nan},
        {"clients": "nobody"},
        {"clients": []},
        {"clients": [1]},
        {"clients": 7},
    ],
    ids=str,
)
def test_bad_input_is_one_sentence(words: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        sv.audit(**{"samples": 0, **words})
    assert "\n" not in str(refused.value)


def test_a_fault_of_the_integers_is_a_fault_of_the_audit() -> None:
    made = bit_site(binary(1.0), 0.9)
    study = auditing._channel(binary(1.0))[0]._replace(costs=[made.cost])
    found = Audit(study, (), 0.999, False)
    assert not found.honest
    assert "more than the 0.9 asked" in found.faults[0]
    assert "NOT as stated" in found.summary()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return the file of a regression."""
    x = dice(1).generator().uniform(0, 1, (500, 1))
    guesses: dict[str, Any] = {"bounds": (0, 1), "density": 0.5, "size": 1.0}
    return (
        sv.PrivateQuantileRegressor(0.5, 2.0, **guesses, randomness=dice(2)).fit(x, x[:, 0]).save(tmp_path / "r.json")
    )


def test_a_stored_regression_is_audited_by_its_integers(kept: Path) -> None:
    found = sv.audit(kept, samples=100, confidence=1 - 1e-6)
    assert found.honest
    assert found.epsilon == pytest.approx(2.0, abs=1e-8)
    assert len(found.costs) > 1
    assert found.clients
    assert not found.study.stated


def test_a_regression_that_states_less_than_it_cost_is_refused(kept: Path) -> None:
    values = json.loads(kept.read_text())
    values["stored"]["state"][0][3] = values["epsilon"] = 0.1
    kept.write_text(json.dumps(values))
    done = run(str(kept))
    assert done.exit_code == 2
    assert "this is not a stored regression" in done.stderr
    values["stored"]["state"].pop()  # as it was stored before integers were kept
    kept.write_text(json.dumps(values))
    done = run(str(kept), "--samples", "0")
    assert done.exit_code == 2
    assert "Exact epsilon: not known, stated 0.1" in done.stdout
    assert "NOT CHECKED" in done.stdout
    assert "nothing was found" not in done.stdout
    found = sv.audit(kept, samples=0)
    assert (found.honest, found.checked, found.to_dict()["epsilon"]) == (False, False, None)


def test_the_command_tells_and_certifies(tmp_path: Path) -> None:
    certificate, page = tmp_path / "c.json", tmp_path / "p.html"
    done = run("--epsilon", "1", "--samples", "0", "--certificate", str(certificate), "--report", str(page))
    assert done.exit_code == 0, done.stderr
    assert "nothing was found against it" in done.stdout
    assert "<h2>Privacy statement</h2>" in page.read_text()
    assert "<script" not in page.read_text()
    verified = run("--verify", str(certificate), "--json")
    assert verified.exit_code == 0
    assert json.loads(verified.stdout)["holds"]


def test_the_command_ends_with_1_where_a_client_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.broken_twins import TWINS

    broken = TWINS["library: always the truth"]
    monkeypatch.setitem(CLIENTS, "library", lambda epsilon: [broken(epsilon)])
    done = run("--epsilon", "1", "--samples", "200", "--clients", "library", "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert not told["honest"]
    assert any("costs epsilon" in fault for fault in told["faults"])


def test_the_command_ends_with_2_where_a_certificate_does_not_hold(tmp_path: Path) -> None:
    path = sv.audit(1.0, samples=0).save_certificate(tmp_path / "c.json")
    path.write_text(path.read_text().replace('"package":"', '"package":"9'))
    done = run("--verify", str(path))
    assert done.exit_code == 2
    assert "the digest of the certificate" in done.stdout
    assert done.stderr.strip() == "sottovoce: the certificate does not hold; see what is wrong above."


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--epsilon", "one"],
        ["--epsilon", "0"],
        ["--epsilon", "1", "result.json"],
        ["--epsilon", "1", "--ledger", "x"],
        ["--epsilon", "1", "--clients", "nobody"],
        ["--epsilon", "1", "--samples", "3"],
        ["--epsilon", "1", "--samples", "0", "--report", "x.png"],
        ["--epsilon", "1", "--samples", "0", "--certificate", "/nowhere/c.json"],
        ["nowhere.json"],
        ["nowhere.toml"],
        ["--verify", "nowhere.json"],
        ["--verify", "c.json", "--epsilon", "1"],
    ],
    ids=" ".join,
)
def test_bad_words_end_with_2(words: list[str]) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "unexpected" not in done.stderr


def test_a_study_says_whose_it_is(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('name = "a"\nsites = ["x"]\n[quantile]\ntau = 0.5\nepsilon = 1.0\n')
    assert study_name(str(path)) == ("federation", "a")
    done = run(str(path))
    assert (done.exit_code, "run the study first" in done.stderr) == (2, True)
    path.write_text('name = "b"\npeople = 5000\n[quantile]\ntau = 0.5\nepsilon = 1.0\n')
    assert study_name(str(path)) == ("device", "b")
    path.write_text("x = 1\n")
    assert run(str(path)).exit_code == 2


@pytest.mark.parametrize("mechanism", ["sparse-vector", "exponential", "counts", "local", "aggregate"])
def test_thresholds_by_group_are_audited_message_by_message(mechanism: str) -> None:
    scores = {name: abs(dice(k).generator().normal(size=400)) for k, name in enumerate("abc")}
    by: dict[str, Any] = {name: ["f", "m"] * 200 for name in "ab"} | {"c": "c"}
    asked: dict[str, Any] = {"epsilon": {"a": 2.0, "b": 2.0, "c": math.inf}, "maximum": 5.0, "mechanism": mechanism}
    found = sv.audit(sv.conformal_thresholds(scores, 0.3, by=by, **asked, randomness=dice(1)), samples=0)
    roles = [each.part.role for each in found.study.costs]
    places = ["sum over all sites"] if mechanism == "aggregate" else ["site a", "site b"]
    assert roles == [f"{place}, group {group}" for group in "fm" for place in places] + ["site c"]
    assert [each.epsilon for each in found.study.costs] == pytest.approx([2.0] * (len(roles) - 1) + [math.inf])
    assert found.honest
    assert found.study.randomness == "simulated"
