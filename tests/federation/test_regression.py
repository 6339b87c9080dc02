"""A regression over resident sites is that of one process, bit for bit; one message a site, and nothing else."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.federation.network import DirectPost, Network, conduct, policy, terms
from tests.server.regression.plans import in_turn

import sottovoce as sv
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
from sottovoce.federation.coordinator.rounds import Happened
from sottovoce.federation.coordinator.studies import planned
from sottovoce.federation.site.features import FeatureColumns
from sottovoce.federation.site.resident import Holding, Resident
from sottovoce.local.runner import run
from sottovoce.protocol import card as cards
from sottovoce.protocol import wire
from sottovoce.protocol.messages import Reports, Tally
from sottovoce.protocol.regression.questions import public_words
from sottovoce.server.regression.design import design_of
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.server.regression.settings import DEFAULTS, read_settings
from sottovoce.sim import dice

G = dice(21).generator()
SIZES = {"north": 4_000, "south": 6_000, "west": 2_000}
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


def federated(folder: Path, asked: dict[str, Any]) -> Any:
    network = RegressionNetwork(folder, own())
    try:
        return conduct(terms("regression", asked, SIZES), DirectPost(network), folder / "log", COIN)
    finally:
        network.shut()


class OfSites:
    """Dice of one process that deal what the sites throw, the public word of each person before their own."""

    private = False

    def __init__(self, throws: int) -> None:
        self.throws, self.asked, self.sites = throws, 0, list(own().values())
        self.ends = np.cumsum([0, *SIZES.values()]).tolist()
        self.begun = False  # whether the site whose turn it is has drawn its order

    def split(self, n: int) -> list["OfSites"]:
        return [self] * n

    def __deepcopy__(self, _: Any) -> "OfSites":
        return self

    def words(self, n: int) -> Words:
        if n == 1:  # only looked at
            return np.zeros(1, dtype=np.uint64)
        site = self.sites[int(np.searchsorted(self.ends, self.asked, side="right")) - 1]
        if not self.begun:
            self.begun = True
            return site.words(n)
        people = n // self.throws
        throws = site.words(people * (self.throws - 1)).reshape(people, -1)
        both = np.concatenate((public_words(COIN, self.asked, people)[:, None], throws), axis=1)
        self.asked += people
        self.begun = self.asked not in self.ends
        return both.ravel()


def throws(given: dict[str, Any], p: int) -> int:
    return 2 + design_of(read_settings({**DEFAULTS, **given}), p).channel.widest


def told(result: Any) -> list[Any]:
    """Return every coefficient with its interval, without names."""
    return [list(level.values()) for level in result.tables(0.95)]


@pytest.mark.parametrize(
    "more",
    [{}, {"channel": "lp", "epsilon": 2.0}, {"tau": [0.25, 0.75], "epsilon": 2.0, "channel": "auto"}],
    ids=["boxes", "pairs", "levels"],
)
def test_it_is_that_of_one_process(more: dict[str, Any], tmp_path: Path) -> None:
    asked = {**ASKED, **GUESSES, **more}
    found = federated(tmp_path, asked)
    given = {key: value for key, value in asked.items() if key not in ("response", "features", "bounds")}
    one = sv.PrivateQuantileRegressor(**given, bounds=[(0, 10), (0, 1)], randomness=OfSites(throws(given, 2)))
    for name in SIZES:
        age, night, wait = PEOPLE[name]
        one.partial_fit(np.column_stack((age, night)), wait)
    assert told(found) == told(one.result_)
    assert found.private is False
    assert (found.people, found.names) == (12_000, ("intercept", "age", "night"))


def test_categories_are_columns_of_0_and_1_and_what_is_beyond_the_bounds_is_moved_there(tmp_path: Path) -> None:
    levels = {"ward": ["day", "night", "other"]}
    asked = {**ASKED, **GUESSES, "features": ["age", "ward"], "bounds": {"age": [2.0, 8.0]}, "levels": levels}
    found = federated(tmp_path, asked)
    given = {**GUESSES, "epsilon": 4.0, "channel": "box", "clip": True, "levels": levels}
    one = sv.PrivateQuantileRegressor(**given, bounds={"age": (2, 8)}, randomness=OfSites(throws(given, 3)))
    for name in SIZES:
        age, night, wait = PEOPLE[name]
        one.partial_fit({"age": age, "ward": np.where(night > 0, "night", "day")}, wait)
    assert told(found) == told(one.result_)
    assert found.names == ("intercept", "age", "ward=night", "ward=other")


@pytest.mark.parametrize("more", [{}, {"tau": [0.25, 0.75], "channel": "cq:2,1"}], ids=["pilot", "split"])
def test_with_a_pilot_it_is_that_of_doors_in_one_process(more: dict[str, Any], tmp_path: Path) -> None:
    asked = {**ASKED, **more}
    found = federated(tmp_path, asked)
    given = {key: value for key, value in asked.items() if key not in ("response", "features")}
    settings = read_settings({**DEFAULTS, **given})
    bounds = read_bounds(settings.bounds, ("age", "night"))
    plan = RegressionPlan(settings, design_of(settings, 2), bounds, response="wait")
    rows = [Rows(bounds.scale(np.column_stack(each[:2])), each[2]) for each in PEOPLE.values()]
    expected = run(*in_turn(plan, rows, list(own().values()), COIN))
    np.testing.assert_array_equal(found.raw, expected.raw)
    assert found.to_dict() == expected.to_dict()


ONE = terms("regression", {**ASKED, **GUESSES}, SIZES)


@pytest.fixture
def network(tmp_path: Path) -> Any:
    made = RegressionNetwork(tmp_path, own())
    yield made
    made.shut()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return federated(tmp_path_factory.mktemp("undisturbed"), {**ASKED, **GUESSES}).raw


def test_sites_that_die_after_every_answer_say_the_same(network: Network, expected: Any, tmp_path: Path) -> None:
    class Restless(DirectPost):
        def send(self, site: str, order: bytes) -> None:
            first = self.network.sites[site].handle(order)  # the reply is lost, and the site dies
            self.network.stop(site)
            self.network.start(site)
            assert self.network.sites[site].handle(order) == first
            super().send(site, order)

    np.testing.assert_array_equal(conduct(ONE, Restless(network), tmp_path / "log").raw, expected)
    for name, site in network.sites.items():
        assert site.ledger.verify() == []
        [study] = site.ledger.show()["studies"]
        assert (study["asked"], study["epsilon"], study["rounds"]) == (SIZES[name], 4.0, 1)


def test_a_coordinator_that_dies_goes_on_from_its_log(network: Network, expected: Any, tmp_path: Path) -> None:
    class Dies(DirectPost):
        left = 8  # three hellos, three openings, two answers

        def receive(self, timeout: float) -> tuple[str, bytes] | None:
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            return super().receive(timeout)

    with pytest.raises(KeyboardInterrupt):
        conduct(ONE, Dies(network), tmp_path / "log")
    np.testing.assert_array_equal(conduct(ONE, DirectPost(network), tmp_path / "log").raw, expected)


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
        ({"epsilon": 1e-4}, "needs about"),
        ({"tau": None}, "tau"),
    ],
)
def test_a_card_that_makes_no_study_is_refused(
    network: Network, asked: dict[str, Any], why: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=why):
        conduct(terms("regression", {**ASKED, **GUESSES, **asked}, SIZES), DirectPost(network), tmp_path / "log")


LIES: dict[str, Any] = {
    "letters beyond their alphabet": lambda said, study: wire.seal(study, 1, Reports(1, b"\xff" * len(said.letters))),
    "too few letters": lambda said, study: wire.seal(study, 1, Reports(1, said.letters[2:])),
    "another kind": lambda said, study: wire.seal(study, 1, Tally(1, (5,))),
    "another round": lambda said, study: wire.seal(study, 2, Reports(2, said.letters)),
    "another study": lambda said, study: wire.seal(bytes(16), 1, said),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_lies_are_refused_named_and_the_truth_still_counts(
    lie: Any, network: Network, expected: Any, tmp_path: Path
) -> None:
    class Lying(DirectPost):
        lied = False

        def send(self, site: str, order: bytes) -> None:
            reply = words.reply_of(self.network.sites[site].handle(order))
            if isinstance(reply, words.Answered) and not self.lied:
                self.lied = True
                said: Any = wire.unseal(reply.envelope, reply.study, (Reports,)).message
                false = msgspec.structs.replace(reply, envelope=lie(said, reply.study))
                self.came.put((site, words.encode(false)))
            self.came.put((site, words.encode(reply)))

    seen: list[Happened] = []
    found = conduct(ONE, Lying(network), tmp_path / "log", COIN, seen.append)
    np.testing.assert_array_equal(found.raw, expected)
    assert [(each.site, each.round) for each in seen if each.what == "refused"] == [("north", 1)]


CARDS: dict[str, Any] = {
    "a channel that costs more": lambda terms: {**terms, "epsilon": 1.0},
    "no privacy": lambda terms: {**terms, "epsilon": float("inf")},
    "other columns than channels": lambda terms: {**terms, "features": ["age"], "columns": ["age"]},
    "bounds the wrong way round": lambda terms: {**terms, "low": terms["high"], "high": terms["low"]},
    "bounds that are no numbers": lambda terms: {**terms, "low": [float("nan")] * 2},
    "nobody": lambda terms: {**terms, "sizes": [4_000, 0, 2_000]},
    "no channels": lambda terms: {**terms, "channels": []},
    "no key": lambda terms: {key: value for key, value in terms.items() if key != "key"},
}


@pytest.mark.parametrize("change", CARDS.values(), ids=CARDS)
def test_a_hostile_card_is_refused_and_costs_nothing(change: Any, network: Network) -> None:
    plan = planned(ONE, Roster(tuple(SIZES), tuple(SIZES.values()), NUMBER), COIN, b"n" * 16)
    card = cards.from_bytes(cards.to_bytes(plan.card))
    hostile = msgspec.structs.replace(card, terms=change(card.terms))
    site = network.sites["north"]
    reply = words.reply_of(site.handle(words.encode(words.Invite(cards.to_bytes(hostile)))))
    assert isinstance(reply, words.Refused)
    assert "could not answer" not in reply.why
    assert site.ledger.show()["studies"] == []
