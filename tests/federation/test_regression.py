"""A regression over resident sites is that of one process, bit for bit; one message a site, and nothing else."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.federation.network import DirectPost, Network, conduct, policy, terms

import sottovoce as sv
from sottovoce.client.reading.arrow import pa
from sottovoce.client.reading.labels import Coded
from sottovoce.client.record import Records
from sottovoce.client.site_ledger import SiteLedger
from sottovoce.core.arrays import Floats, Words
from sottovoce.federation.site.features import FeatureColumns
from sottovoce.federation.site.resident import Holding, Resident
from sottovoce.protocol.regression.questions import public_words
from sottovoce.server.regression.design import design_of
from sottovoce.server.regression.settings import DEFAULTS, read_settings
from sottovoce.sim import dice

G = dice(21).generator()
SIZES = {"north": 4_000, "south": 6_000, "west": 2_000}
COIN = b"c" * 16
ASKED: dict[str, Any] = {
    "response": "wait", "features": ["age", "night"], "tau": 0.5, "epsilon": 4.0,
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


@pytest.mark.parametrize(
    "more",
    [{}, {"channel": "lp", "epsilon": 2.0}, {"tau": [0.25, 0.75], "channel": "box"}],
    ids=["boxes", "pairs", "levels"],
)
def test_it_is_that_of_one_process(more: dict[str, Any], tmp_path: Path) -> None:
    asked = {**ASKED, **GUESSES, **more}
    found = federated(tmp_path, asked)
    given = {key: value for key, value in asked.items() if key not in ("response", "features", "bounds")}
    throws = 2 + design_of(read_settings({**DEFAULTS, **given}), 2).channel.widest
    one = sv.PrivateQuantileRegressor(**given, bounds=[(0, 10), (0, 1)], randomness=OfSites(throws))
    for name in SIZES:
        age, night, wait = PEOPLE[name]
        one.partial_fit(np.column_stack((age, night)), wait)
    np.testing.assert_array_equal(found.raw, one.result_.raw)
    np.testing.assert_array_equal(found.intervals(0, 0.95)[0], one.result_.intervals(0, 0.95)[0])
    assert found.private is False
