"""`sottovoce serve --without` and `--give-up`, over HTTP: a study that was paused goes on, or ends for good."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.federation.network import WAITS, DirectPost, Network
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.core.random_source import parts_of
from sottovoce.federation import words
from sottovoce.federation.coordinator import exchange
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.federation.coordinator.rounds import Rounds
from sottovoce.federation.serving import give_up_study, serve_study
from sottovoce.federation.site.poll import SiteLine, connect, poll
from sottovoce.federation.status import Notice
from sottovoce.federation.study import read_study
from sottovoce.sim import dice

pytestmark = pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
CARD = """
name = "waits"
sites = ["north", "south", "west"]
[quantile]
tau = 0.5
epsilon = 3.0
bounds = [0.0, 60.0]
method = "sequence"
until = 20.0
[rounds]
wait = 20.0
deadline = 1.0
"""


@pytest.fixture
def card(tmp_path: Path) -> Path:
    card = tmp_path / "study.toml"
    card.write_text(CARD)
    return card


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    made = Network(tmp_path, dict(zip(WAITS, parts_of(dice(7), len(WAITS)), strict=True)))
    yield made
    made.shut()


class Killed(BaseException):
    """What kills a coordinator."""


def killed(card: Path, network: Network) -> None:
    """Conduct a study until its coordinator is killed: south was asked nothing yet."""

    class Silent(DirectPost):
        def send(self, site: str, order: bytes) -> None:
            if site == "west" and isinstance(words.order_of(order), words.Question):
                raise Killed
            if site != "south" or not isinstance(words.order_of(order), words.Question):
                super().send(site, order)

    terms = read_study(card)
    log = StudyLog(card.with_suffix(".log"), terms.name)
    try:
        conducted = Rounds(terms, log, Silent(network), random=lambda: b"c" * 16)
        with pytest.raises(Killed):
            conducted.conduct()
    finally:
        log.close()


class Sites:
    """Sites that poll as soon as a coordinator listens."""

    def __init__(self, network: Network, names: list[str]) -> None:
        self.network, self.names, self.threads = network, names, list[threading.Thread]()
        self.told: list[dict[str, Any]] = []

    def watch(self, notice: Notice) -> None:
        self.told.append(notice.fields)
        if notice.fields["event"] == "listening":
            for name in self.names:
                thread = threading.Thread(target=self.answer, args=(name, notice.fields["address"]))
                self.threads.append(thread)
                thread.start()

    def answer(self, name: str, address: str) -> None:
        with connect(SiteLine(f"http://{address}", name)) as client:
            poll(client, self.network.sites[name], threading.Event(), once=True)

    def end(self) -> None:
        for thread in self.threads:
            thread.join(20.0)


def test_it_goes_on_without_a_site_and_its_sites_are_told(card: Path, network: Network) -> None:
    killed(card, network)
    sites = Sites(network, ["north", "south", "west"])
    served = serve_study(card, port=0, insecure=True, watch=sites.watch, without=["south"])
    sites.end()
    assert served.result.plan.names == ("north", "west")
    assert [(each["site"], each["round"]) for each in sites.told if each["event"] == "departed"] == [("south", 1)]
    states = {name: each.ledger.show()["studies"][0]["state"] for name, each in network.sites.items()}
    assert states == {"north": "closed", "south": "released", "west": "closed"}
    refused = CliRunner().invoke(app, ["serve", str(card), "--insecure", "--without", "west"])
    assert (refused.exit_code, "the study is over, so that no site can leave it" in refused.output) == (2, True)


def test_it_is_given_up_and_whoever_is_there_is_told(
    card: Path, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["serve", str(card), "--insecure", "--port", "0", "--quiet"]
    for wrong, why in (
        (["--give-up"], "holds no such study"),
        (["--without", "south"], "the study has not begun"),
        (["--without", "south", "--give-up"], "leave one out"),
    ):
        refused = CliRunner().invoke(app, [*command, *wrong])
        assert (refused.exit_code, why in refused.output) == (2, True)
    killed(card, network)
    for wrong, why in (
        (["--without", "east"], "east"),
        (["--without", "south", "--without", "north", "--without", "west"], "some of its sites"),
    ):
        refused = CliRunner().invoke(app, [*command, *wrong])
        assert (refused.exit_code, why in refused.output) == (2, True)
    sites = Sites(network, ["south"])
    assert give_up_study(card, port=0, insecure=True, watch=sites.watch) == (True, ["north", "west"])
    sites.end()
    assert network.sites["south"].ledger.show()["sources"] == []
    monkeypatch.setattr(exchange, "LONGEST", 0.01)
    said = CliRunner().invoke(app, [*command, "--give-up", "--json"])
    assert (said.exit_code, json.loads(said.output)) == (0, {"given_up": True, "not_heard": ["north", "south", "west"]})
    said = CliRunner().invoke(app, [*command, "--give-up"])
    assert "Not heard yet:  north, south, west; repeat this command when they are there." in said.output
    refused = CliRunner().invoke(app, command)
    assert (refused.exit_code, "this study was given up" in refused.output) == (2, True)
