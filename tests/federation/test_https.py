"""The direct carrier: sites poll over mutual TLS, are known by their certificates, and nobody else is."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.federation.network import WAITS, DirectPost, Network, conduct, terms

from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import parts_of
from sottovoce.federation import words
from sottovoce.federation.certificates import write_certificates
from sottovoce.federation.coordinator.http import HttpPost
from sottovoce.federation.site.poll import SiteLine, connect, poll
from sottovoce.federation.study import Certificates
from sottovoce.sim import dice

pytestmark = pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
STUDY = terms("quantile", {"tau": 0.5, "epsilon": 3.0, "bounds": [0.0, 60.0]})
PARTS = ("authority.pem", "certificate.pem", "key.pem")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certificates") / "all"
    write_certificates(made, [*WAITS, "stranger"], ["localhost", "127.0.0.1"])
    return made


def files(folder: Path, name: str) -> Certificates:
    return Certificates(*(folder / name / part for part in PARTS))


def network(folder: Path) -> Network:
    return Network(folder, dict(zip(WAITS, parts_of(dice(7), len(WAITS)), strict=True)))


@contextmanager
def polling(made: Network, url: str, certificates: Path | None) -> Iterator[threading.Event]:
    stop, threads, clients = threading.Event(), [], []
    for name, resident in made.sites.items():
        line = SiteLine(url, name, *(() if certificates is None else files(certificates, name)))
        clients.append(connect(line))
        threads.append(threading.Thread(target=poll, args=(clients[-1], resident, stop), kwargs={"once": True}))
    for thread in threads:
        thread.start()
    try:
        yield stop
    finally:
        stop.set()
        for thread in threads:
            thread.join(30.0)
        for client in clients:
            client.close()


@pytest.mark.parametrize("secure", [True, False], ids=["mutual TLS", "loopback"])
def test_a_study_over_the_wire_is_that_of_one_process(secure: bool, folder: Path, tmp_path: Path) -> None:
    direct, wired = tmp_path / "direct", tmp_path / "wired"
    direct.mkdir()
    wired.mkdir()
    one, two = network(direct), network(wired)
    try:
        expected = conduct(STUDY, DirectPost(one), direct / "log")
        own = files(folder, "coordinator") if secure else None
        with HttpPost(STUDY.sites, "127.0.0.1", 0, own) as post:
            url = f"{'https' if secure else 'http'}://127.0.0.1:{post.port}"
            with polling(two, url, folder if secure else None):
                found = conduct(STUDY, post, wired / "log")
    finally:
        one.shut()
        two.shut()
    assert (found.estimate, found.interval) == (expected.estimate, expected.interval)


def exchange(url: str, folder: Path, name: str, **given: Any) -> httpx.Response:
    with connect(SiteLine(url, name, *files(folder, name))) as client:
        return client.post("/exchange", timeout=3.0, **given)


def test_a_name_is_what_the_certificate_says(folder: Path) -> None:
    with HttpPost(["north"], "127.0.0.1", 0, files(folder, "coordinator")) as post:
        url = f"https://127.0.0.1:{post.port}"
        order = words.encode(words.Who("waits"))
        post.send("north", order)
        assert exchange(url, folder, "north").content == order
        assert exchange(url, folder, "stranger").status_code == 403
        assert exchange(url, folder, "stranger", headers={"x-site": "north"}).status_code == 403
        large = exchange(url, folder, "north", content=bytes(words.MOST + 1))
        assert large.status_code == 413
        assert post.receive(0.01) is None


def test_other_authorities_and_no_certificate_at_all_are_turned_away(folder: Path, tmp_path: Path) -> None:
    write_certificates(tmp_path / "other", ["north"], ["127.0.0.1"])
    with HttpPost(["north"], "127.0.0.1", 0, files(folder, "coordinator")) as post:
        url = f"https://127.0.0.1:{post.port}"
        mixed = SiteLine(
            url, "north", folder / "north" / PARTS[0], *(tmp_path / "other" / "north" / p for p in PARTS[1:])
        )
        with connect(mixed) as client, pytest.raises(httpx.TransportError):
            client.post("/exchange")
        other = SiteLine(url, "north", *files(tmp_path / "other", "north"))  # it trusts another authority
        with connect(other) as client, pytest.raises(httpx.ConnectError):
            client.post("/exchange")
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{url}/exchange", verify=False, trust_env=False)


def test_an_order_is_handed_out_until_it_is_answered(folder: Path) -> None:
    with HttpPost(["north"], "127.0.0.1", 0, files(folder, "coordinator")) as post:
        url = f"https://127.0.0.1:{post.port}"
        post.send("north", b"first")
        assert not post.handed("north")
        got = exchange(url, folder, "north")
        assert post.handed("north")
        assert got.content == exchange(url, folder, "north").content == b"first"
        mark = got.headers["x-order"]
        post.send("north", b"second")  # before the reply to the first has come
        late = exchange(url, folder, "north", content=b"reply", headers={"x-order": mark})
        assert late.content == b"second"
        post.send("north", b"third")
        assert post.receive(1.0) == ("north", b"reply")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (SiteLine("http://192.0.2.1:80", "north"), "without certificates a site talks over loopback alone"),
        (SiteLine("https://localhost:1", "north"), "without certificates a site talks over loopback alone"),
        (SiteLine("localhost:1", "north"), "must be a URL such as"),
    ],
)
def test_a_site_without_certificates_talks_over_loopback_alone(line: SiteLine, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        connect(line)


def test_a_coordinator_without_certificates_listens_on_loopback_alone(folder: Path) -> None:
    with pytest.raises(BadInput, match="listens on loopback alone"):
        HttpPost(["north"], "0.0.0.0", 0, None)
    with HttpPost(["north"], "127.0.0.1", 0, None) as post, pytest.raises(BadInput, match="is the port taken"):
        HttpPost(["north"], "127.0.0.1", post.port, None).__enter__()


def test_keys_are_never_written_over_and_are_for_their_owner_alone(folder: Path) -> None:
    assert (folder / "north" / "key.pem").stat().st_mode & 0o077 == 0
    with pytest.raises(BadInput, match="is not an empty folder"):
        write_certificates(folder, ["north"])
