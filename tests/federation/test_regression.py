"""A regression over resident sites is that of one process, bit for bit; one message a site, and nothing else."""

import json
import socket
import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.federation.network import DirectPost, Network, conduct, policy, terms
from tests.server.regression.plans import over_sites
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli import app
from sottovoce.client.reading.arrow import pa
from sottovoce.client.reading.labels import Coded
from sottovoce.client.record import Records
from sottovoce.client.regression.rows import Rows
from sottovoce.client.site_ledger import SiteLedger
from sottovoce.core.arrays import Floats, Words
from sottovoce.core.bounds import read_bounds
from sottovoce.core.errors import BadInput
from sottovoce.core.roster import Roster
from sottovoce.core.unit import NUMBER
from sottovoce.federation import words
from sottovoce.federation.coordinator.exchange import Happened
from sottovoce.federation.coordinator.studies import planned
from sottovoce.federation.serving import stay
from sottovoce.federation.site.features import FeatureColumns
from sottovoce.federation.site.resident import Holding, Resident
from sottovoce.local.regression.dithered import DitheredRun
from sottovoce.local.runner import run
from sottovoce.protocol import card as cards
from sottovoce.protocol import wire
from sottovoce.protocol.messages import Reports, Tally
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.questions import public_words
from sottovoce.server.regression.design import design_of
from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.server.regression.settings import DEFAULTS, read_settings
from sottovoce.sim import dice

G = dice(21).generator()
SIZES = {"north": 11_000, "south": 9_000, "west": 4_000}
COIN = b"c" * 16
ASKED: dict[str, Any] = {
    "response": "wait", "features": ["age", "night"], "tau": 0.5, "epsilon": 4.0, "channel": "box",
    "bounds": {"age": [0.0, 10.0], "night": [0.0, 1.0]},
}  # fmt: skip
GUESSES: dict[str, Any] = {"density": 0.1, "size": 20.0, "start": 35.0}


def people(n: int) -> tuple[Floats, Floats, Floats]:
    age, night = G.uniform(0.0, 10.0, n), (G.uniform(0.0, 1.0, n) < 0.4).astype(np.float64)
    return age, night, 20.0 + 3.0 * age + 4.0 * night + G.logistic(0.0, 2.0, n)


PEOPLE = {name: people(n) for name, n in SIZES.items()}


class RegressionNetwork(Network):
    """Resident sites that hold covariates beside their records."""

    def start(self, name: str) -> None:
        age, night, wait = PEOPLE[name]
        held = Records(wait)
        wards = Coded(night.astype(np.int64), pa.array(["day", "night"]))
        beside = FeatureColumns({"age": age, "night": night}, {"ward": wards})
        holding = Holding(held, name.encode() * 3, None, "wait", beside)
        ledger = SiteLedger(self.folder / f"{name}.ledger")
        self.sites[name] = Resident(policy(name, **self.limits), holding, ledger, dice=self.own[name])


def own() -> dict[str, Any]:
    return dict(zip(SIZES, dice(7).split(3), strict=True))


def federated(folder: Path, asked: dict[str, Any], sites: Any = tuple(SIZES)) -> Any:
    network = RegressionNetwork(folder, own())
    try:
        return conduct(terms("regression", asked, sites), DirectPost(network), folder / "log", COIN)
    finally:
        network.shut()


class OfOneSite:
    """Dice of one process that deal what a site throws: its order, then everybody's public word before their own."""

    private = False

    def __init__(self, name: str, throws: int) -> None:
        self.throws, self.site, self.begun = throws, own()[name], False
        self.asked = sum(list(SIZES.values())[: list(SIZES).index(name)])

    def split(self, n: int) -> list["OfOneSite"]:
        return [self] * n

    def __deepcopy__(self, _: Any) -> "OfOneSite":
        return self

    def words(self, n: int) -> Words:
        if n == 1:  # only looked at
            return np.zeros(1, dtype=np.uint64)
        if not self.begun:
            self.begun = True
            drawn: Words = self.site.words(n)
            return drawn
        people = n // self.throws
        throws = self.site.words(people * (self.throws - 1)).reshape(people, -1)
        both: Words = np.concatenate((public_words(COIN, self.asked, people)[:, None], throws), axis=1)
        self.asked += people
        return both.ravel()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return federated(tmp_path_factory.mktemp("undisturbed"), {**ASKED, **GUESSES})


def plan_of(asked: dict[str, Any]) -> RegressionPlan:
    given = {key: value for key, value in asked.items() if key not in ("response", "features")}
    settings = read_settings({**DEFAULTS, **given})
    bounds = read_bounds(settings.bounds, ("age", "night"))
    return RegressionPlan(
        settings, design_of(settings, bounds), bounds, settings.starts(bounds.to_scaled), response="wait"
    )


def rows_of(name: str, plan: RegressionPlan) -> Rows:
    age, night, wait = PEOPLE[name]
    return Rows(plan.bounds.scale(np.column_stack((age, night))), wait)


def told(result: Any) -> list[Any]:
    """Return every coefficient with its interval, without names."""
    return [list(level.values()) for level in result.tables(0.95)]


@pytest.mark.parametrize("more", [{}, {"tau": [0.25, 0.75], "channel": "auto"}], ids=["boxes", "levels"])
def test_it_is_that_of_loops_in_one_process(more: dict[str, Any], expected: Any, tmp_path: Path) -> None:
    asked = {**ASKED, **GUESSES, **more}
    found = federated(tmp_path, asked) if more else expected
    plan = plan_of(asked)
    [study] = plan.studies(plan.guess(None))
    assert isinstance(study, DitheredStudy)
    runs = [DitheredRun(study) for _ in SIZES]
    for name, loop in zip(SIZES, runs, strict=True):
        loop.ask(rows_of(name, plan), OfOneSite(name, 2 + study.channel.widest))
    fit = DitheredFit.of(study, *(loop.state for loop in runs))
    assert told(found) == told(plan.result([fit], sum(SIZES.values()), False))
    assert more or None not in [row.interval for row in found.tables(0.95)[0].values()]
    assert (found.private, found.people, found.facts.sites) == (False, sum(SIZES.values()), 3)
    assert found.names == ("intercept", "age", "night")


def test_of_one_site_it_is_that_of_the_estimator_with_categories_and_clipping(tmp_path: Path) -> None:
    levels = {"ward": ["day", "night", "other"]}
    asked = {**ASKED, **GUESSES, "features": ["age", "ward"], "bounds": {"age": [2.0, 8.0]}, "levels": levels}
    found = federated(tmp_path, asked, ("north",))
    given = {**GUESSES, "epsilon": 4.0, "channel": "box", "clip": True, "levels": levels}
    throws = 2 + design_of(read_settings({**DEFAULTS, **given}), read_bounds(None, "abc")).channel.widest
    one = sv.PrivateQuantileRegressor(**given, bounds={"age": (2, 8)}, randomness=OfOneSite("north", throws))
    age, night, wait = PEOPLE["north"]
    one.partial_fit({"age": age, "ward": np.where(night > 0, "night", "day")}, wait)
    assert told(found) == told(one.result_)
    assert found.names == ("intercept", "age", "ward=night", "ward=other")


def test_with_a_pilot_and_split_levels_it_is_that_of_doors_in_one_process(tmp_path: Path) -> None:
    asked = {**ASKED, "tau": [0.25, 0.75], "epsilon": 8.0}
    found = federated(tmp_path, asked, ("north", "south"))
    plan = plan_of(asked)
    rows = [rows_of(name, plan) for name in ("north", "south")]
    expected = run(*over_sites(plan, rows, list(own().values())[:2], COIN))
    np.testing.assert_array_equal(found.raw, expected.raw)
    assert found.people == expected.people == 20_000


def test_a_site_too_small_for_a_loop_is_left_out_and_said(tmp_path: Path) -> None:
    made = RegressionNetwork(tmp_path, own())
    seen: list[Happened] = []
    try:
        study = terms("regression", {**ASKED, **GUESSES, "epsilon": 2.0}, SIZES)
        found = conduct(study, DirectPost(made), tmp_path / "log", COIN, seen.append)
        [said] = [each.words for each in seen if "left out" in each.words]
        assert said.startswith("site 'west' has too few people and is left out, not asked")
        assert (found.people, found.facts.sites) == (20_000, 2)
        assert made.sites["west"].ledger.show()["studies"] == []
    finally:
        made.shut()


ONE = terms("regression", {**ASKED, **GUESSES}, SIZES)


@pytest.fixture
def network(tmp_path: Path) -> Any:
    made = RegressionNetwork(tmp_path, own())
    yield made
    made.shut()


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return sites that are asked nothing but what they refuse."""
    made = RegressionNetwork(tmp_path_factory.mktemp("untouched"), own())
    yield made
    assert all(site.ledger.show()["studies"] == [] for site in made.sites.values())
    made.shut()


def test_sites_that_die_after_every_answer_say_the_same(network: Network, expected: Any, tmp_path: Path) -> None:
    class Restless(DirectPost):
        def send(self, site: str, order: bytes) -> None:
            first = self.network.sites[site].handle(order)  # the reply is lost, and the site dies
            self.network.stop(site)
            self.network.start(site)
            assert self.network.sites[site].handle(order) == first
            super().send(site, order)

    assert told(conduct(ONE, Restless(network), tmp_path / "log")) == told(expected)
    for name, site in network.sites.items():
        assert site.ledger.verify() == []
        [study] = site.ledger.show()["studies"]
        assert (study["asked"], study["epsilon"], study["rounds"]) == (SIZES[name], 4.0, 1)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a column that is not there": (
        {"features": ["age", "weight"]},
        {},
        "column 'weight', which the policy .* features",
    ),
    "categories that are numbers": ({"levels": {"night": ["0", "1", "other"]}}, {}, "column 'night', .* categories"),
    "another response": ({"response": "cost"}, {}, "the response 'cost', which is not the value"),
    "too dear": ({}, {"epsilon": 3.0}, "costs a record more than epsilon 3"),
    "too dear in all": ({}, {"total": 3.0}, "cost more than this site allows over all studies"),
    "a method that is not allowed": ({}, {"methods": ["quantile"]}, "does not allow regression studies"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_site_refuses_before_anything_is_spent(case: tuple[Any, Any, str], tmp_path: Path) -> None:
    asked, limits, why = case
    bounds = {name: [0.0, 10.0] for name in asked.get("features", ["age"] if "levels" in asked else ["age", "night"])}
    made = RegressionNetwork(tmp_path, own(), **limits)
    try:
        study = terms("regression", {**ASKED, **GUESSES, "bounds": bounds, **asked}, SIZES)
        with pytest.raises(BadInput, match=why):
            conduct(study, DirectPost(made), tmp_path / "log")
        assert all(site.ledger.show()["studies"] == [] for site in made.sites.values())
    finally:
        made.shut()


def test_a_site_without_covariates_refuses(tmp_path: Path) -> None:
    made = Network(tmp_path, own())
    try:
        with pytest.raises(BadInput, match="opens no columns for a regression"):
            conduct(ONE, DirectPost(made), tmp_path / "log")
    finally:
        made.shut()


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"features": []}, "features a list of columns"),
        ({"features": ["wait"]}, "must be different columns"),
        ({"epsilon": float("inf")}, "is private; give a finite epsilon"),
        ({"epsilon": {"north": 1.0}}, "epsilon"),
        ({"levels": {"night": ["0", "1"]}, "bounds": {"age": [0.0, 1.0]}}, "must name 'other'"),
        ({"levels": {"ward": ["0", "other"]}}, "levels names 'ward'"),
        ({"bounds": {"age": [0.0, 1.0]}}, "night"),
        ({"inference": "groups"}, "'inference', which is not known"),
        ({"epsilon": 1e-4}, "no site has them"),
        ({"tau": None}, "tau"),
    ],
)
def test_a_card_that_makes_no_study_is_refused(
    untouched: Network, asked: dict[str, Any], why: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=why):
        conduct(terms("regression", {**ASKED, **GUESSES, **asked}, SIZES), DirectPost(untouched), tmp_path / "log")


LIES: dict[str, Any] = {
    "not one of its alphabet": lambda said, study: wire.seal(study, 1, Reports(1, b"\xff" * len(said.letters))),
    "one letter for each": lambda said, study: wire.seal(study, 1, Reports(1, said.letters[2:])),
    "asked for a loop": lambda said, study: wire.seal(study, 1, Tally(1, (5,))),
    "belongs to another round": lambda said, study: wire.seal(study, 2, Reports(2, said.letters)),
    "belongs to another study": lambda said, study: wire.seal(bytes(16), 1, said),
}


def test_lies_are_refused_and_named_and_a_coordinator_that_dies_goes_on(
    network: Network, expected: Any, tmp_path: Path
) -> None:
    class Lying(DirectPost):
        lied = False

        def send(self, site: str, order: bytes) -> None:
            reply = words.reply_of(self.network.sites[site].handle(order))
            if isinstance(reply, words.Answered) and not self.lied:
                self.lied = True
                said: Any = wire.unseal(reply.envelope, reply.study, (Reports,)).message
                for lie in LIES.values():
                    false = msgspec.structs.replace(reply, envelope=lie(said, reply.study))
                    self.came.put((site, words.encode(false)))
            self.came.put((site, words.encode(reply)))

        def receive(self, timeout: float) -> tuple[str, bytes] | None:
            if self.lied and self.came.qsize() == 1:
                raise KeyboardInterrupt  # all have answered, and of the last nobody knows
            return super().receive(timeout)

    seen: list[Happened] = []
    with pytest.raises(KeyboardInterrupt):
        conduct(ONE, Lying(network), tmp_path / "log", COIN, seen.append)
    assert told(conduct(ONE, DirectPost(network), tmp_path / "log")) == told(expected)
    refused = [each for each in seen if each.what == "refused"]
    assert [(each.site, each.round) for each in refused] == [("north", 1)] * len(LIES)
    for each, why in zip(refused, LIES, strict=True):
        assert why in each.words


CARDS: dict[str, Any] = {
    "a channel that costs more": lambda terms: {**terms, "epsilon": 1.0},
    "no privacy": lambda terms: {**terms, "epsilon": float("inf")},
    "other columns than channels": lambda terms: {**terms, "features": ["age"], "columns": ["age"]},
    "bounds the wrong way round": lambda terms: {**terms, "low": terms["high"], "high": terms["low"]},
    "bounds that are no numbers": lambda terms: {**terms, "low": [float("nan")] * 2},
    "nobody": lambda terms: {**terms, "sizes": [SIZES["north"], 0, 1]},
    "columns without end": lambda terms: {
        **terms,
        "levels": {"ward": [*map(str, range(300)), "other"]},
        "features": ["ward"],
    },
    "no channels": lambda terms: {**terms, "channels": []},
    "no key": lambda terms: {key: value for key, value in terms.items() if key != "key"},
}


@pytest.mark.parametrize("change", CARDS.values(), ids=CARDS)
def test_a_hostile_card_is_refused_and_costs_nothing(change: Any, untouched: Network) -> None:
    plan = planned(ONE, Roster(tuple(SIZES), tuple(SIZES.values()), NUMBER), COIN, b"n" * 16)
    card = cards.from_bytes(cards.to_bytes(plan.card))
    hostile = msgspec.structs.replace(card, terms=change(card.terms))
    site = untouched.sites["north"]
    reply = words.reply_of(site.handle(words.encode(words.Invite(cards.to_bytes(hostile)))))
    assert isinstance(reply, words.Refused)
    assert "could not answer" not in reply.why
    assert site.ledger.show()["studies"] == []


def test_the_commands_conduct_a_regression_over_files(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    features = '["age", "night"]'
    (tmp_path / "study.toml").write_text(
        'name = "waits"\nsites = ["north", "west"]\n[regression]\nresponse = "wait"\n'
        f'features = {features}\ntau = 0.5\nepsilon = 4.0\nchannel = "box"\ndensity = 0.1\nsize = 20.0\n'
        "start = 35.0\n[regression.bounds]\nage = [0, 10]\nnight = [0, 1]\n[rounds]\nwait = 60\n"
    )
    staying = []
    for name in ("north", "west"):
        table = np.column_stack(PEOPLE[name])
        np.savetxt(tmp_path / f"{name}.csv", table, delimiter=",", header="age,night,wait", comments="", fmt="%.6f")
        (tmp_path / f"{name}.toml").write_text(
            f'name = "{name}"\nsource = "waits"\n[records]\nvalue = "wait"\nfeatures = {features}\n'
            "[limits]\nepsilon = 4.0\ntotal = 5.0\n"
        )
        given = {"coordinator": f"http://127.0.0.1:{port}", "insecure": True, "once": True}
        files = tmp_path / f"{name}.toml", [str(tmp_path / f"{name}.csv")]
        staying.append(threading.Thread(target=stay, args=files, kwargs=given, daemon=True))
    for thread in staying:
        thread.start()
    asked = ["serve", str(tmp_path / "study.toml"), "--insecure", "--port", str(port), "--json", "--quiet"]
    done = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "result.json")])
    for thread in staying:
        thread.join(30.0)
    assert done.exit_code == 0, done.output
    found, kept = json.loads(done.stdout), sv.load(tmp_path / "result.json")
    assert (found["private"], found["people"], set(found["ledgers"])) == (True, 15_000, {"north", "west"})
    assert kept.raw[0, 1] == pytest.approx(3.0, abs=1.0)
