"""A collector that lies gets one letter from a device or none, and learns nothing from what the device does not do."""

import io
import json
import shutil
import stat
import subprocess
import threading
import urllib.error
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sottovoce.client import device
from sottovoce.client.device import Device, make_report
from sottovoce.client.kept_answers import KeptAnswers
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy
from sottovoce.protocol.device import DeviceCard, card_text, identity, read_card
from sottovoce.protocol.randomised_response import binary, flips_of
from sottovoce.sim import dice

HERE = Path(__file__).parent
KEPT: dict[str, Any] = json.loads((HERE / "device_vectors.json").read_text())
CARD = read_card(KEPT["card"])
STUDY = identity(KEPT["card"])
ASKED = {"study": STUDY.hex(), "round": 1, "group": 0, "points": [30.0], "periods": [0.0], "needs": [5]}
ONE = b'{"accepted":1,"refused":[]}'
SOUND = Path(str(files("sottovoce.collector"))) / "web" / "device.js"


class Hostile(ThreadingHTTPServer):
    """Answers each path with what it was told to, and keeps what it was sent."""

    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.says: dict[str, tuple[int, bytes]] = {"/v1/reports": (200, ONE)}
        self.sent: list[bytes] = []
        self.add(KEPT["card"])

    def add(self, card: str, named: str | None = None, **asked: Any) -> str:
        """Run the study of a card, under its own name or another; return its address."""
        study = identity(card).hex()
        path = f"/v1/studies/{named or study}"
        self.says[f"{path}/card"] = 200, card.encode()
        self.says[f"{path}/query"] = 200, json.dumps({**ASKED, "study": study, **asked}).encode()
        return self.url + path


class Answering(BaseHTTPRequestHandler):
    """One request to the server that lies."""

    server: Hostile

    def do_GET(self) -> None:
        status, body = self.server.says.get(self.path.partition("?")[0], (404, b"{}"))
        self.send_response(status)
        if status == 302:
            self.send_header("location", body.decode())
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.server.sent.append(self.rfile.read(int(self.headers["content-length"])))
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    server = Hostile()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def other_card(nonce: str, **terms: Any) -> str:
    return card_text(msgspec.structs.replace(CARD, nonce=nonce, **terms))


def test_another_card_at_the_same_address_gets_no_second_letter(hostile: Hostile, tmp_path: Path) -> None:
    device = Device(tmp_path, cap=1.0)
    url = hostile.add(KEPT["card"])
    assert device.answer(url, 44).accepted
    hostile.add(other_card("ff"), named=STUDY.hex())
    with pytest.raises(BadInput, match="not that of the study which the address names"):
        device.answer(url, 44)
    assert len(hostile.sent) == 1


def test_studies_asked_at_once_cost_no_more_than_all_may(hostile: Hostile, tmp_path: Path) -> None:
    device = Device(tmp_path, cap=1.0, total=2.0)
    urls = [hostile.add(other_card(f"{k:02x}")) for k in range(6)]
    refused: list[str] = []

    def answer(url: str) -> None:
        try:
            device.answer(url, 44)
        except BadInput as error:
            refused.append(str(error))

    threads = [threading.Thread(target=answer, args=(url,)) for url in urls for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(hostile.sent)) == len({body[:16] for body in hostile.sent}) == 2
    assert len(refused) == 8
    assert all("all studies of this device" in each for each in refused)


def test_what_a_device_keeps_is_for_its_owner_alone(hostile: Hostile, tmp_path: Path) -> None:
    Device(tmp_path / "device", cap=1.0).answer(hostile.add(KEPT["card"]), 44)
    kept = [tmp_path / "device", *(tmp_path / "device").iterdir()]
    assert len(kept) == 3
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in kept)


def test_a_report_is_kept_before_it_is_sent_and_sent_again_after_an_error(hostile: Hostile, tmp_path: Path) -> None:
    device, url = Device(tmp_path, cap=1.0), hostile.add(KEPT["card"])
    for said in [
        (500, b"{}"),
        (302, b"http://127.0.0.1:9/"),
        (200, b"no"),
        (200, b"{}"),
        (200, b'{"refused":{"a":1}}'),
    ]:
        hostile.says["/v1/reports"] = said
        with pytest.raises(BadInput):
            device.answer(url, 44)
    hostile.says["/v1/reports"] = 200, b'{"accepted":0,"refused":[[0,"the round is over"]]}'
    assert device.answer(url, -1e9).why == "the round is over"
    assert len(hostile.sent) == 6
    assert set(hostile.sent) == {next(tmp_path.glob("*.report")).read_bytes()}


def test_a_device_that_cannot_keep_its_report_sends_none(hostile: Hostile, tmp_path: Path) -> None:
    device, url = Device(tmp_path / "device", cap=1.0), hostile.add(KEPT["card"])
    (tmp_path / "device" / f"{STUDY.hex()}.card").mkdir()
    with pytest.raises(BadInput, match="cannot keep its report, so it sends none"):
        device.answer(url, 44)
    (tmp_path / "device" / f"{STUDY.hex()}.report").write_bytes(b"half")
    with pytest.raises(BadInput, match="is damaged"):
        device.answer(url, 44)
    assert not hostile.sent


def test_a_device_follows_nobody_to_another_address(hostile: Hostile, tmp_path: Path) -> None:
    url = hostile.add(KEPT["card"])
    hostile.says["/elsewhere"] = 200, KEPT["card"].encode()
    hostile.says[f"/v1/studies/{STUDY.hex()}/card"] = 302, b"/elsewhere"
    with pytest.raises(BadInput, match="refused with status 302"):
        Device(tmp_path, cap=1.0).answer(url, 44)


VALUES = (0.0, 1.0, -1.0, 44.0, 1e-300, 1e300, -1e300, 1.7e308, -1.7e308)
FAR = (0.0, 44.0, -1.7e308, 1.7e308, 5e-324)


def outcome(card: DeviceCard, asked: dict[str, Any], value: float) -> str:
    """What anybody can see of an answer beside its letter: its bytes, or the error."""
    try:
        return make_report(card, identity(card_text(card)), asked, value)[:-1].hex()
    except BadInput as error:
        return str(error)


@pytest.mark.parametrize("resolution", [0.0, 1.0, 1e308])
def test_no_question_makes_a_device_show_more_than_its_letter(
    monkeypatch: pytest.MonkeyPatch, resolution: float
) -> None:
    card = msgspec.structs.replace(CARD, resolution=resolution)
    study = identity(card_text(card)).hex()
    for point, period in product(FAR, (0.0, 5e-324, 1e-300, 1.0, 1.7e308)):
        asked = {**ASKED, "study": study, "points": [point, 0.0], "periods": [period, 1.0], "needs": [1, 3]}
        seen = set()
        for value in VALUES:
            source = dice(23)
            monkeypatch.setattr(SystemEntropy, "words", lambda _, n, source=source: source.words(n))
            seen.add(outcome(card, asked, value))
        assert len(seen) == 1
        assert len(next(iter(seen))) == 80  # they are bytes, 40 of 41


def test_no_row_makes_a_device_show_more_than_its_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    for kept in json.loads((HERE / "regression_vectors.json").read_text()):
        card = read_card(kept["card"])
        assert card.regression is not None
        names = (card.regression.response, *card.regression.columns)
        asked = {"study": kept["identity"], "round": 1, "group": 0, "channels": kept["asked"]}
        seen = set()
        for value in VALUES:
            source = dice(29)
            monkeypatch.setattr(SystemEntropy, "words", lambda _, n, source=source: source.words(n))
            seen.add(make_report(card, bytes.fromhex(kept["identity"]), asked, dict.fromkeys(names, value))[:-3])
        assert len(seen) == 1


def test_bounds_between_which_nothing_can_be_divided_are_refused() -> None:
    whole = json.loads(json.loads((HERE / "regression_vectors.json").read_text())[0]["card"])
    whole["regression"]["low"], whole["regression"]["high"] = [0.0, 0.0], [5e-324, 30.0]
    with pytest.raises(BadInput, match="do not make a regression"):
        read_card(json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def test_where_epsilon_is_nearly_nothing_the_letter_says_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    epsilon = 1e-12
    card = msgspec.structs.replace(CARD, epsilon=epsilon, flips=str(flips_of(binary(epsilon))))
    asked = {**ASKED, "study": identity(card_text(card)).hex()}
    letters = []
    for seed, value in product(range(40), (0.0, 100.0)):
        source = dice(seed)
        monkeypatch.setattr(SystemEntropy, "words", lambda _, n, source=source: source.words(n))
        letters.append(make_report(card, identity(card_text(card)), asked, value)[-1])
    assert letters[::2] == letters[1::2]  # the same dice, and another value
    assert 0 < sum(letters) < len(letters)


def twice_the_same_dice(_: Any, n: int) -> Any:
    return dice(1).words(n)


def test_each_report_has_dice_of_its_own_and_would_not_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def ids() -> int:
        return len({make_report(CARD, STUDY, ASKED, 44.0)[16:32] for _ in range(20)})

    assert ids() == 20
    monkeypatch.setattr(SystemEntropy, "words", twice_the_same_dice)  # a device that begins each time from one seed
    assert ids() == 1


def test_a_device_that_drew_again_would_be_seen(
    hostile: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, url = Device(tmp_path, cap=1.0), hostile.add(KEPT["card"])
    for _ in range(3):
        device.answer(url, 44)
    assert len(set(hostile.sent)) == 1
    monkeypatch.setattr(KeptAnswers, "report", lambda *_: None)  # a device that forgets what it has sent
    device.answer(url, 44)
    assert len(set(hostile.sent)) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"points": [10**400], "periods": [0]},
        {"points": [True]},
        {"needs": [1 << 41]},
        {"needs": "5", "points": "3", "periods": "0"},
        {"points": [0.0] * 65537, "periods": [0.0] * 65537, "needs": [1] * 65537},
        {"round": True},
        {"group": 1.0},
    ],
    ids=["beyond doubles", "a truth", "too many", "texts", "more points than bytes", "round", "group"],
)
def test_what_no_honest_collector_asks_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="does not fit its study"):
        make_report(CARD, STUDY, {**ASKED, **other}, 44.0)


def test_a_value_beyond_doubles_gets_no_letter() -> None:
    with pytest.raises(BadInput, match="one finite number"):
        make_report(CARD, STUDY, ASKED, 10**400)


def in_node(script: Path) -> str:
    words = ["node", "--no-warnings", str(HERE / "hostile.mjs"), str(script), str(HERE / "device_vectors.json")]
    words.append(str(HERE / "regression_vectors.json"))
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60).stdout


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")


@needs_node
def test_a_device_in_javascript_keeps_to_the_same() -> None:
    said = in_node(SOUND)
    assert said.endswith(" 0 wrong\n"), said
    assert int(said.split()[-4]) >= 60


TWINS = {
    "flips its sign": ("return truth || die >", "return !truth || die >"),
    "tells the truth": ("&& die >= lowest;", "|| die < 0n;"),
    "begins from one seed": ("crypto.getRandomValues(new BigUint64Array(3))", "new BigUint64Array(3)"),
    "draws again": ("  let kept = store.getItem(key);", "  store.kept.delete(key);\n  let kept = null;"),
    "draws in two tabs": ("kept = store.getItem(key); // of another tab", "kept = null; // of another tab"),
    "sends before it keeps": ("store.setItem(key, fresh);", "setTimeout(() => store.setItem(key, fresh), 50);"),
    "takes any card": ("if (named !== study) throw", "if (named === study + 1) throw"),
    "adds texts up": ('typeof card.epsilon === "number" && ', ""),
    "trusts the budget it is told": ("flips < leastFlips(cap) || ", ""),
    "lets a point say no number": ("[...points, ...periods].every(Number.isFinite) && ", ""),
    "forgets what others cost": ('JSON.parse(store.getItem("sottovoce.spent") ?? "{}")', "{}"),
    "divides by nothing": ("high[k] / 2 - each / 2 > 0", "true"),
}


@needs_node
@pytest.mark.parametrize("twin", TWINS)
def test_a_broken_twin_is_noticed(twin: str, tmp_path: Path) -> None:
    text, (sound, broken) = SOUND.read_text(), TWINS[twin]
    assert text.count(sound) == 1
    (tmp_path / "device.mjs").write_text(text.replace(sound, broken))
    assert not in_node(tmp_path / "device.mjs").endswith(" 0 wrong\n")


def test_a_refusal_lets_go_of_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.BytesIO(b"no")

    def refuses(*_: Any, **__: Any) -> Any:
        raise urllib.error.HTTPError("http://localhost", 503, "no", Message(), said)

    monkeypatch.setattr(device._OPENER, "open", refuses)
    with pytest.raises(BadInput, match="refused with status 503"):
        device._fetched("http://localhost/v1/studies")
    assert said.closed
