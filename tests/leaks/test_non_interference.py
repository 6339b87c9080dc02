"""At epsilon 0 and the same dice, two populations give byte-identical transcripts; at epsilon 1 they differ."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.client.door import Door
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.roster import Roster
from sottovoce.core.unit import Unit
from sottovoce.local.quantile import compiled_walk as fused
from sottovoce.local.quantile.compiled_walk import Coin
from sottovoce.local.quantile.source import Source
from sottovoce.local.runner import run, through_bytes
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.messages import Query, Study, to_bytes
from sottovoce.protocol.randomised_response import binary
from sottovoce.server.method import converse
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.conversation import Conversation
from sottovoce.server.quantile.feasibility import CERTIFIED
from sottovoce.server.quantile.method import default_protocol
from sottovoce.server.quantile.plan import plan_quantile
from sottovoce.server.quantile.recursion import walk as sgd
from sottovoce.server.quantile.recursion.method import WalkMethod
from sottovoce.server.quantile.recursion.schedule import decay, elapsed
from sottovoce.server.quantile.recursion.walk import WalkStudy
from sottovoce.server.quantile.shortfall.method import StagedShortfall
from sottovoce.server.quantile.shortfall.plan import ShortfallPlan
from sottovoce.server.quantile.solutions import staged_solution
from sottovoce.server.quantile.staged import StagedStudy
from sottovoce.sim.randomness import dice

ENDS = np.array([[0.0], [1.0]])
# letters that say nothing about the symbol; no table decodes them, so any finite one will do
SILENT = Channel("silent", ENDS, ((OUTCOMES // 2, OUTCOMES // 2),) * 2, ENDS)
SIZES = (700, 400)
TAUS = {"stages": 0.5, "pairs": 0.2, "certified": 0.5, "shortfall": 0.5}  # at which these records are asked so
Floats = npt.NDArray[np.float64]

LOW = [np.linspace(-1.0, 1.0, n) for n in SIZES]
HIGH = [1e6 + np.exp(np.linspace(0.0, 9.0, n))[::-1].copy() for n in SIZES]
TURNED = [-values for values in LOW]


def sites_of(population: Sequence[Floats], channel: Channel, resolution: float = 0.0) -> list[Site]:
    return [
        Site(Records(values), Study(0.5, channel.epsilon, resolution), die, channel)
        for values, die in zip(population, dice(31).split(len(SIZES)), strict=True)
    ]


def reports(population: Sequence[Floats], channel: Channel, resolution: float = 0.0) -> bytes:
    """Return all bytes of a series of frozen and walking queries."""
    sites = sites_of(population, channel, resolution)
    queries = [
        Query(1, (0.0,), (50,)),
        Query(2, (-0.5, 0.0, 0.5), (20, 60, 20)),
        Query(3, (0.1,), (100,), 0.05),
        Query(4, (0.2, 1e6), (30, 30), 2.0),
        Query(5, (0.2, 0.0, 0.0), (30, 10, 20), 0.0, (0.3, 0.0, 1e-9)),
    ]
    return b"".join(to_bytes(site.answer(query)) for query in queries for site in sites)


class Noting(Door):
    """A door that keeps every byte that goes through it."""

    def __init__(self, site: Site, log: list[bytes]) -> None:
        super().__init__(site, b"study")
        self.log = log

    def answer(self, data: bytes) -> bytes:
        reply = super().answer(data)
        self.log.extend((data, reply))
        return reply


def conversation(population: Sequence[Floats], channel: Channel, kind: str) -> bytes:
    """Return all bytes of a whole conversation, queries and tallies: in stages, in pairs, or certified."""
    log: list[bytes] = []

    crowd = SiteProfile(np.array([0.6, 0.4]), np.array([0.9, 0.9]), np.array(SIZES))
    doors = [Noting(site, log) for site in sites_of(population, channel)]
    tau = TAUS[kind]
    if kind == "shortfall":
        return b"".join([*beyond(doors, log), *log])
    study = StagedStudy(tau, crowd, bounds=(-9.0, 9.0), coin=b"coin")
    assert kind == "certified" or (study.too_few, study.scarce) == (False, kind == "pairs")
    method = Conversation(lambda: default_protocol(study, kind == "certified"))
    outcome = method.outcome(converse(method, through_bytes(method, doors, b"study")))
    log.append(repr(staged_solution(outcome).interval(0.95)).encode())
    return b"".join(log)


def beyond(doors: Sequence[Door], log: list[bytes]) -> list[bytes]:
    """Run a shortfall through doors; return what came of it."""
    roster = Roster(("north", "south"), SIZES, Unit("number"))
    plan = plan_quantile(roster, 0.5, 3.0, bounds=(-9.0, 9.0), thinned=0.5, limits=CERTIFIED)
    method = StagedShortfall(ShortfallPlan(plan, True, 0.5, 0.95, True), b"coin")
    result = method.outcome(converse(method, through_bytes(method, doors, b"study")))
    return [repr((result.interval, result.estimate)).encode()]


def walk(population: Sequence[Floats], channel: Channel, fuse: bool) -> bytes:
    """Return the last state of the paper's walk, which is all that its reports leave."""
    study = WalkStudy(
        np.full(2, 0.5),
        np.array([0.6, 0.4]),
        (channel,) * 2,
        np.array(SIZES),
        elapsed("every:5", 700),
        0.1,
        decay([0.5]),
    )
    dies = dice(31).split(2)
    if fuse:
        feeds = [Source(values, channel, die) for values, die in zip(population, dies, strict=True)]
        state = fused.run(study, feeds, Coin(study, dice(1)))
    else:
        method = WalkMethod(study, Coin(study, dice(1)).by_round(len(study.elapsed)))
        state = run(method, [Door(site, b"study") for site in sites_of(population, channel)])
    assert sgd.reports(study, state) == sum(SIZES)
    return b"".join(np.asarray(part, dtype=np.float64).tobytes() for part in state)


@pytest.mark.parametrize("other", [HIGH, TURNED], ids=["another population", "the same turned round"])
def test_reports_say_nothing_at_epsilon_zero(other: list[Floats]) -> None:
    assert SILENT.epsilon == 0.0
    assert reports(LOW, SILENT) == reports(other, SILENT)
    assert reports(LOW, SILENT, 0.25) == reports(other, SILENT, 0.25)


@pytest.mark.parametrize("kind", TAUS)
def test_a_conversation_says_nothing_at_epsilon_zero(kind: str) -> None:
    assert conversation(LOW, SILENT, kind) == conversation(HIGH, SILENT, kind)


@pytest.mark.parametrize("fuse", [False, True], ids=["messages", "fused"])
def test_a_walk_says_nothing_at_epsilon_zero(fuse: bool) -> None:
    assert walk(LOW, SILENT, fuse) == walk(HIGH, SILENT, fuse)


def test_the_same_comparison_sees_epsilon_one() -> None:
    channel = binary(1.0)
    assert reports(LOW, channel) == reports(LOW, channel)
    assert reports(LOW, channel) != reports(HIGH, channel)
    for kind in TAUS:
        assert conversation(LOW, channel, kind) == conversation(LOW, channel, kind)
        assert conversation(LOW, channel, kind) != conversation(HIGH, channel, kind)
    for fuse in (False, True):
        assert walk(LOW, channel, fuse) != walk(HIGH, channel, fuse)
