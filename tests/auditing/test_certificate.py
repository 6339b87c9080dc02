"""Certificates: they hold no record, verify what can be computed again, and refuse or notice everything else."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import sqlalchemy as sa
from tests.federation.network import WAITS, DirectPost, Network, conduct, terms
from tests.leaks.test_results import COLUMNS, MAKERS, RECORDS, TEXTS
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.auditing.audit import audit, audit_log
from sottovoce.auditing.certificate import StudyCertificate, digest_of, parse, read, text_of
from sottovoce.auditing.chain import read_chain
from sottovoce.auditing.verify import verify
from sottovoce.cli import app
from sottovoce.collector.store import CollectorStore, KeptStudy
from sottovoce.collector.study import collected_of
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy
from sottovoce.protocol.card import Card, identity, to_bytes
from sottovoce.protocol.device import card_text
from sottovoce.sim import dice

STUDY = {"name": "age", "people": 5_000, "quantile": {"tau": 0.5, "epsilon": 1.0}}
ROWS: dict[str, Any] = {
    "name": "rows",
    "people": 200_000,
    "regression": {
        "response": "y", "features": {"a": [0, 9], "b": [0, 9]}, "tau": 0.5, "epsilon": 2.0, "density": 0.3, "size": 2,
    },
}  # fmt: skip


def again(path: Path, change: Callable[[dict[str, Any]], None], *, sealed: bool = True) -> Path:
    """Write a changed certificate, with a digest that fits again."""
    plain = json.loads(path.read_text())
    change(plain)
    found = msgspec.convert(plain, StudyCertificate)
    if sealed:
        found = msgspec.structs.replace(found, digest=digest_of(found))
    other = path.with_name("changed.json")
    other.write_text(text_of(found))
    return other


@pytest.mark.parametrize("kind", MAKERS)
def test_every_kind_of_result_is_certified_without_a_record(kind: str, tmp_path: Path) -> None:
    result = MAKERS[kind]()
    found = audit(result, samples=0)
    assert not found.faults
    assert found.honest == found.checked == bool(found.costs)
    stated = getattr(result, "epsilon", None)
    if isinstance(stated, dict) and found.costs:
        told = {each.part.role.removeprefix("site "): each.epsilon for each in found.costs}
        assert told == pytest.approx(stated, abs=0)
    path = found.save_certificate(tmp_path / "c.json")
    data, text = path.read_bytes(), path.read_text()
    assert not any(record in data for record in RECORDS)
    assert not any(record in text for record in TEXTS)
    assert read(path).randomness == "simulated"
    assert verify(path).holds
    assert json.loads(text) == found.certificate()


def test_a_result_is_audited_as_it_is_and_from_its_file(tmp_path: Path) -> None:
    result = sv.federated_quantile(COLUMNS, 0.5, {"north": 1.0, "south": math.inf}, randomness=SystemEntropy())
    found = sv.audit(result.save(tmp_path / "r.json"), samples=0)
    assert found.certificate() == sv.audit(result, samples=0).certificate()
    assert math.isinf(found.epsilon)
    assert found.certificate()["randomness"] == "operating system"
    assert [each["epsilon"] for each in found.certificate()["costs"]] == [pytest.approx(1.0), None]


def test_a_regressor_has_the_integers_of_its_channel(tmp_path: Path) -> None:
    x = dice(1).generator().uniform(0, 1, (2_000, 1))
    model = sv.PrivateQuantileRegressor(0.5, 2.0, bounds=(0, 1), density=0.5, size=1.0, randomness=dice(2)).fit(
        x, x[:, 0]
    )
    found = sv.audit(model, samples=100, confidence=1 - 1e-6)
    assert found.honest
    assert {each.part.form for each in found.costs} <= {"box", "matrix"}
    assert verify(found.save_certificate(tmp_path / "c.json")).holds


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("federation")
    network = Network(folder, {name: SystemEntropy() for name in WAITS})
    try:
        conduct(terms("quantile", {"tau": 0.5, "epsilon": 2.0}), DirectPost(network), folder / "log")
    finally:
        network.shut()
    audit_log("federation", str(folder / "log"), "waits", 0, 0.999).save_certificate(folder / "c.json")
    return folder


def test_a_federation_is_certified_with_its_ledgers(federation: Path) -> None:
    from sottovoce.api.ledger import write_export

    certificate = federation / "c.json"
    assert set(read(certificate).ledgers) == set(WAITS)
    write_export(federation / "north.ledger", federation / "north.jsonl")
    ledgers = [str(federation / name) for name in ("north.jsonl", "south.ledger")]
    found = verify(certificate, ledgers)
    assert found.holds
    said = " ".join(found.verified)
    for site in ("north", "south"):
        assert f"the ledger of '{site}' had the certified head" in said
        assert f"the ledger of '{site}' has kept this study, by the same card" in said
    assert "no export of them was given" in " ".join(found.unverified)
    assert "the certified integers are those of the card" in said


def test_an_export_that_was_changed_is_refused(federation: Path, tmp_path: Path) -> None:
    from sottovoce.api.ledger import export

    lines = [json.loads(line) for line in export(federation / "west.ledger")]
    at = next(k for k, line in enumerate(lines) if line.get("what") == "reply")
    for name, value in (("count", lines[at]["count"] + 1), ("reply", "00" * 32), ("counter", 77), ("chain", "00" * 32)):
        other = [dict(line) for line in lines]
        other[at][name] = value
        (tmp_path / "e.jsonl").write_text("\n".join(map(json.dumps, other)))
        with pytest.raises(BadInput, match="chain breaks"):
            read_chain(tmp_path / "e.jsonl")
    for text in ("", "[]", "{}", "[" * 100_000, '{"line":"ledger"}', "\x00" * 40):
        (tmp_path / "e.jsonl").write_text(text)
        with pytest.raises(BadInput, match="export of a ledger"):
            read_chain(tmp_path / "e.jsonl")


def test_another_ledger_has_other_heads(federation: Path) -> None:
    other = again(federation / "c.json", lambda plain: plain["ledgers"]["north"].update(head="00" * 32))
    found = verify(other, [str(federation / "north.ledger")])
    assert "never had a head that is certified" in " ".join(found.wrong)


@pytest.fixture(params=[STUDY, ROWS], ids=["value", "row"])
def collector(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    study = collected_of(request.param)
    store = CollectorStore(str(tmp_path / "log"))
    store.begin(study.name, KeptStudy(card_text(study.card("ab")), None, bytes(16), "open"))
    for round in (1, 2, 3):
        store.close_round(study.name, 0, round, f"sums of round {round}")
    store.commit()
    store.close()
    return tmp_path / "log", study.name


def test_a_collector_is_certified_with_its_rounds(collector: tuple[Path, str], tmp_path: Path) -> None:
    log, name = collector
    with pytest.raises(BadInput, match="no study of this name"):
        audit_log("device", str(log), "another", 0, 0.999)
    found = audit_log("device", str(log), name, 0, 0.999)
    path = found.save_certificate(tmp_path / "c.json")
    assert "sums of" not in path.read_text()
    verified = verify(path, log=str(log))
    assert verified.holds
    assert "3 rounds of the collector came to what is certified." in verified.verified
    assert "its log was not given" in " ".join(verify(path).unverified)
    store = CollectorStore(str(log))
    store.close_round(name, 0, 4, "later rounds do not matter")
    store.commit()
    assert verify(path, log=str(log)).holds
    store._base.execute(sa.text("UPDATE round SET sums = 'others' WHERE round = 2"))
    store.commit()
    store.close()
    assert "not what is certified" in " ".join(verify(path, log=str(log)).wrong)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return sv.audit(1.0, samples=0).save_certificate(tmp_path / "c.json")


CHANGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "epsilon": lambda plain: plain["costs"][0].update(epsilon=0.5),
    "ratio": lambda plain: plain["costs"][0].update(ratio=["3", "1"]),
    "asked less": lambda plain: plain["costs"][0]["part"].update(asked=0.9),
    "weights": lambda plain: plain["costs"][0]["part"].update(weights=[["5"]]),
    "unbounded": lambda plain: plain["costs"][0].update(ratio=None, epsilon=None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_mismatch_is_told(kept: Path, change: str) -> None:
    found = verify(again(kept, CHANGES[change]))
    assert not found.holds
    assert len(found.wrong) == 1
    assert "'library, one bit'" in found.wrong[0]


def test_a_slip_is_seen_by_the_digest(kept: Path) -> None:
    other = again(kept, lambda plain: plain.update(package="9.9"), sealed=False)
    assert "the digest of the certificate is not that of its fields" in verify(other).wrong[0]


def test_other_integers_than_the_cards_are_seen(federation: Path) -> None:
    def cheaper(plain: dict[str, Any]) -> None:
        plain["costs"] = plain["costs"][1:]

    assert "not those of the card" in " ".join(verify(again(federation / "c.json", cheaper)).wrong)
    other = again(federation / "c.json", lambda plain: plain["card"].update(study="00" * 16))
    assert "another study" in " ".join(verify(other).wrong)
    other = again(federation / "c.json", lambda plain: plain["card"].update(text="zz"))
    assert "not one that this version reads" in " ".join(verify(other).wrong)


def many(plain: dict[str, Any], forms: int) -> None:
    """Fill a certificate with different exponential mechanisms."""
    part = {"role": "x", "form": "paper", "shape": [9, 5, 3], "asked": 1.0}
    cost = {"ratio": None, "epsilon": None}
    plain["costs"] = [{"part": {**part, "weights": [[str((1 << 63) + k)] * 2]}, **cost} for k in range(forms)]


HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "no JSON": lambda _: b"\xff\xfe{}",
    "deep": lambda _: b'{"asked":' + b"[" * 200_000,
    "deep objects": lambda _: b'{"a":' * 100_000,
    "a field more": lambda data: data.replace(b'{"asked"', b'{"answer":1,"asked"', 1),
    "a field less": lambda data: data.replace(b'"format":1,', b""),
    "NaN": lambda data: data.replace(b'"epsilon":1.0', b'"epsilon":NaN', 1),
    "infinity": lambda data: data.replace(b'"epsilon":1.0', b'"epsilon":1e999', 1),
    "text for a number": lambda data: data.replace(b'"format":1', b'"format":"1"'),
    "another format": lambda data: data.replace(b'"format":1', b'"format":2'),
    "huge integer": lambda data: data.replace(b'"format":1', b'"format":1' + b"0" * 100_000),
    "huge weight": lambda data: data.replace(b'"weights":[["', b'"weights":[["9' + b"9" * 500_000, 1),
    "negative": lambda data: data.replace(b'"epsilon":1.0', b'"epsilon":-1.0', 1),
    "blanks": lambda data: data.replace(b",", b", ", 1),
    "no line's end": lambda data: data.rstrip(),
    "two": lambda data: data + data,
    "digest": lambda data: data.replace(b'"digest":"', b'"digest":"z', 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_certificates_are_refused_in_one_sentence(kept: Path, name: str) -> None:
    data = HOSTILE[name](kept.read_bytes())
    kept.write_bytes(data)
    assert data != b"" or name == "nothing"
    with pytest.raises(BadInput) as refused:
        verify(kept)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


def test_what_would_take_long_is_refused(kept: Path) -> None:
    with pytest.raises(BadInput, match="too many to compute"):
        verify(again(kept, lambda plain: many(plain, 17)))
    huge = again(kept, lambda plain: many(plain, 1))
    plain = json.loads(huge.read_text())
    plain["costs"][0]["part"].update(shape=[1 << 50, 1 << 49, 3])
    found = msgspec.convert(plain, StudyCertificate)
    huge.write_text(text_of(msgspec.structs.replace(found, digest=digest_of(found))))
    assert "too long to be computed here" in " ".join(verify(huge).unverified)


@pytest.mark.parametrize("large", ["slopes", "p"])
def test_a_card_with_a_huge_number_is_refused_at_once(kept: Path, large: str) -> None:
    block = {"probability": 1.0, "slopes": [1], "gains": [[1.0, 1.0]], "box": [2, 1, 2, 1, 1, 1, 1]}
    channel: dict[str, Any] = {"taus": [0.5], "p": 1, "blocks": [block]}
    if large == "slopes":
        block["box"] = [2, 1 << 40, 2, 1, 1, 1, 1]
    else:
        channel["p"] = 1 << 60
    card = Card("regression", {"sites": ["a"], "epsilon": 1.0, "channels": [channel]}, "x")
    told = {"form": "federation", "text": to_bytes(card).hex(), "study": identity(card).hex()}
    assert "not one that this version reads" in " ".join(verify(again(kept, lambda p: p.update(card=told))).wrong)


def test_a_study_is_certified_by_the_command(federation: Path, tmp_path: Path) -> None:
    study, path = tmp_path / "study.toml", tmp_path / "c.json"
    study.write_text(f'name = "waits"\nsites = {json.dumps(list(WAITS))}\n[quantile]\ntau = 0.5\nepsilon = 2.0\n')
    words = ["audit", str(study), "--log", str(federation / "log"), "--samples", "0", "--certificate", str(path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    done = CliRunner().invoke(app, ["audit", "--verify", str(path), "--ledger", str(federation / "west.ledger")])
    assert done.exit_code == 0, done.stdout
    assert "had the certified head" in done.stdout


def test_mutated_certificates_never_crash(kept: Path) -> None:
    data, generator = kept.read_bytes(), dice(9).generator()
    refused = 0
    for _ in range(400):
        at, cut = (int(each) for each in generator.integers(0, len(data), 2))
        other = bytearray(data)
        other[at] = int(generator.integers(0, 256))
        kept.write_bytes(bytes(other[:cut] if generator.random() < 0.2 else other))
        if kept.read_bytes() == data:
            continue
        try:
            assert not verify(kept).holds
        except BadInput:
            refused += 1
    assert refused > 100


def test_no_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", Path("/dev/zero")):
        with pytest.raises(BadInput, match="no file"):
            read(path)
    with pytest.raises(BadInput, match="not a certificate"):
        parse(np.arange(9).tobytes())
