"""Devices in Python and JavaScript send the same letters and bytes, from the same integers, and keep to their caps."""

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sottovoce.client.device import DeviceAnswer, make_report
from sottovoce.client.quantile.encode import speak
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy
from sottovoce.protocol.device import DeviceCard, card_text, check_cap, drawn, identity, letter_of, pack, read_card
from sottovoce.protocol.device import unpack as unpacked
from sottovoce.protocol.randomised_response import binary, flips_of
from sottovoce.sim import dice

HERE = Path(__file__).parent
KEPT: dict[str, Any] = json.loads((HERE / "device_vectors.json").read_text())
CARD = read_card(KEPT["card"])
STUDY = identity(KEPT["card"])


def query(**other: Any) -> dict[str, Any]:
    whole = {
        "study": STUDY.hex(),
        "round": 3,
        "group": 0,
        "points": [30.0, 50.0],
        "periods": [0.0, 0.0],
        "needs": [5, 5],
    }
    return whole | other


def test_the_vectors_are_those_of_this_program() -> None:
    assert all(str(flips_of(binary(epsilon))) == flips for epsilon, flips in KEPT["flips"])
    for value, point, flips, words, resolution, period, letter in KEPT["letters"]:
        assert letter_of(value, point, int(flips), (int(words[0]), int(words[1])), resolution, period) == letter
    assert all(drawn(needs, int(word)) == point for needs, word, point in KEPT["lots"])
    study, id, *where, body = KEPT["report"]
    assert (bytes.fromhex(study) + pack(bytes.fromhex(id), *where)).hex() == body
    assert STUDY.hex() == KEPT["identity"]


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_javascript_says_the_same() -> None:
    script = Path(str(files("sottovoce.collector"))) / "web" / "device.js"
    words = ["node", "--no-warnings", str(HERE / "vectors.mjs"), str(script), str(HERE / "device_vectors.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.splitlines()[-1:] == [f"{8 + 4 + len(KEPT['letters']) + 3} compared, 0 wrong"], done


@pytest.mark.parametrize("resolution", [0.0, 1.0])
def test_a_letter_is_that_of_a_sites_record(resolution: float) -> None:
    n, flips, point = 2000, flips_of(binary(1.0)), 0.1
    words = dice(17).words(2 * n if resolution else n)
    values = np.asarray((dice(18).words(n) >> np.uint64(11)) * 2.0**-52 - 1, dtype=np.float64)
    letters = np.zeros(n, np.uint8)
    speak(values, np.arange(n, dtype=np.uint64), words, flips, resolution, point, 0.0, 0.0, np.zeros(2), letters)
    pairs = words.reshape(n, -1).tolist()
    said = [
        letter_of(value, point, flips, (pair[0], pair[-1]), resolution, 0.0)
        for value, pair in zip(values.tolist(), pairs, strict=True)
    ]
    assert said == letters.tolist()


def test_letters_of_a_device_have_the_law_of_the_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    source = dice(5)
    monkeypatch.setattr(SystemEntropy, "words", lambda _, n: source.words(n))
    n = 4000
    bodies = [make_report(CARD, STUDY, query(points=[30.0], periods=[0.0], needs=[1]), 90.0) for _ in range(n)]
    ones = sum(body[-1] for body in bodies)
    truth = 1 - int(CARD.flips) / 2**62
    low, high = binom.ppf([5e-7, 1 - 5e-7], n, truth)  # false alarms: one in a million
    assert low <= ones <= high
    assert len({body[16:32] for body in bodies}) == n


def test_a_cap_is_compared_in_integers() -> None:
    check_cap(CARD, 1.0)
    with pytest.raises(BadInput, match="more epsilon than this device allows"):
        check_cap(CARD, np.nextafter(1.0, 0) - 1e-15)
    cheaper = DeviceCard("waits", (0.5,), 1.0, str(int(CARD.flips) - 1))
    with pytest.raises(BadInput, match="more epsilon"):
        read_card(card_text(cheaper))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        "[" * 100_000,
        KEPT["card"] + " ",
        KEPT["card"].replace('"version":1', '"version":2'),
        KEPT["card"].replace('"flips":"', '"flips":"0'),
        KEPT["card"].replace('"nonce"', '"more":1,"nonce"'),
    ],
)
def test_what_is_no_card_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="card"):
        read_card(text)


@pytest.mark.parametrize(
    "other",
    [
        {"study": "00" * 16},
        {"needs": [0, 0]},
        {"needs": [1]},
        {"needs": [1, -1]},
        {"needs": [True, 1.5]},
        {"points": ["a", 1.0]},
        {"points": [float("nan"), 1.0]},
        {"periods": [-1.0, 0.0]},
        {"round": 0},
        {"round": 1 << 33},
        {"group": 2},
        {"group": "0"},
        {"points": None},
    ],
    ids=str,
)
def test_a_query_that_does_not_fit_gets_no_letter(other: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="does not fit its study; nothing was answered"):
        make_report(CARD, STUDY, query(**other), 1.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "5", None, True])
def test_what_is_no_number_gets_no_letter(value: Any) -> None:
    with pytest.raises(BadInput, match="one finite number"):
        make_report(CARD, STUDY, query(), value)


def test_an_answer_shows_no_letter() -> None:
    assert repr(DeviceAnswer(b"\x01", True)) == "DeviceAnswer(accepted=True)"


@pytest.mark.parametrize(
    "body", [b"", STUDY, STUDY + bytes(24), STUDY + bytes(26), bytes(16 + 25), STUDY + bytes(250_025)]
)
def test_what_is_no_upload_is_refused(body: bytes) -> None:
    with pytest.raises(BadInput, match=r"an upload is 16 bytes|another study"):
        unpacked(body, STUDY)
