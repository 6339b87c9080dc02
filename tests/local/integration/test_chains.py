"""Chains over a site: the message path bit for bit, each record at most once, nothing said at epsilon 0."""

import os
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import special

from sottovoce.client.door import Door
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core import codec
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.local import integration as module
from sottovoce.local.integration import finish_chains, run_chains, walk_chains
from sottovoce.local.quantile import compiled_walk as fused
from sottovoce.local.quantile.source import Faces, Source
from sottovoce.local.runner import run_to_end, through_bytes
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.messages import Study
from sottovoce.protocol.randomised_response import binary, epsilon_of_rate
from sottovoce.server.integration.chains import Chained, ChainMethod, ChainState, ChainStudy, chain, measure
from sottovoce.server.method import converse
from sottovoce.sim.randomness import dice

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")
ENDS = np.array([[0.0], [1.0]])
# letters that say nothing about the symbol
SILENT = Channel("silent", ENDS, ((OUTCOMES // 2, OUTCOMES // 2),) * 2, ENDS)
STUDY = b"chains of a site"
VALUES = 47.0 + 3.0 * dice(8).generator().standard_normal(437)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make pieces shorter than a chain; uncompiled, the order's arithmetic wraps round aloud."""
    monkeypatch.setattr(fused, "PIECE", 64)
    with np.errstate(over="ignore"):
        yield


def site_of(values: Floats, channel: Channel, resolution: float = 0.0, tau: float = 0.5, seed: int = 3) -> Site:
    return Site(Records(values), Study(tau, channel.epsilon, resolution), dice(seed), channel)


def door_of(site: Site) -> Door:
    return Door(site, STUDY)


def by_messages(site: Site, study: ChainStudy, through: bool = False) -> tuple[ChainMethod, ChainState]:
    """Run the same chains query by query, one chain after the other, in this process or through bytes."""
    method, doors = ChainMethod(study, site.size), [door_of(site)]
    if through:
        return method, converse(method, through_bytes(method, doors, STUDY))
    return method, run_to_end(method, doors)


def searched(site: Site, study: ChainStudy) -> tuple[ChainMethod, ChainState]:
    """Run the search alone, by messages."""
    method, door = ChainMethod(study, site.size), door_of(site)
    state = method.init()
    while state.start is None and (asked := method.query(state)) is not None:
        assert asked.messages[0] is not None
        state = method.step(state, [door.ask(asked.round, asked.messages[0])])
    return method, state


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize("resolution", [0.0, 0.25])
@pytest.mark.parametrize("tau", [0.5, 0.3])
def test_equals_the_message_path(resolution: float, tau: float, through: bool) -> None:
    channel = binary(epsilon_of_rate(0.6))
    study = ChainStudy(tau, channel, chains=4, start=46.0, unit=3.0)
    method, state = by_messages(site_of(VALUES, channel, resolution, tau), study, through)
    twin = ChainMethod(study, len(VALUES))
    assert finish_chains(twin, twin.init(), site_of(VALUES, channel, resolution, tau)) == state
    assert len(set(state.averages)) == 4
    found = run_chains(site_of(VALUES, channel, resolution, tau), study)
    assert found == method.outcome(state) == Chained(measure(state.averages), 109, 436)


@compiled
def test_equals_the_message_path_after_a_search() -> None:
    channel = binary(4.0)
    study = ChainStudy(0.5, channel, chains=5)
    values = 47.0 + 3.0 * dice(9).generator().standard_normal(9_000)
    told: list[int] = []
    site = site_of(values, channel)
    found = run_chains(site, study, progress=told.append)
    method, state = by_messages(site_of(values, channel), study)
    assert found == method.outcome(state)
    assert found.measured == measure(state.averages)
    assert found.reports == sum(told)
    assert site.spent - found.reports < 5
    assert found.rounds == state.search.rounds + told[-1]
    assert told[-5:] == told[-1:] * 5


@compiled
def test_the_twin_ends_in_the_state_of_the_messages() -> None:
    channel = binary(4.0)
    study = ChainStudy(0.5, channel, chains=3)
    values = 47.0 + 3.0 * dice(9).generator().standard_normal(3_000)
    _, state = by_messages(site_of(values, channel), study, through=True)
    site = site_of(values, channel)
    method, found = searched(site, study)
    twin = finish_chains(method, found, site)
    assert codec.to_bytes(twin) == codec.to_bytes(state)


class Spied(Source):
    """A source that remembers what it handed out, and what the site had spent by then."""

    seen: list[float]
    site: Site

    def fetch(self, values: Floats, faces: Faces) -> int:
        n = super().fetch(values, faces)
        assert self.site.spent == self.site.size
        self.seen.extend(values[:n].tolist())
        return n


@pytest.mark.parametrize("chains", [2, 3, 4])
def test_every_record_answers_at_most_once_and_is_spent_before(chains: int, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = binary(1.0)
    site = site_of(np.arange(437.0), channel)
    seen: list[float] = []
    monkeypatch.setattr(module, "Source", Spied)
    monkeypatch.setattr(Spied, "seen", seen, raising=False)
    monkeypatch.setattr(Spied, "site", site, raising=False)
    found = run_chains(site, ChainStudy(0.5, channel, chains, start=200.0, unit=100.0))
    assert len(seen) == len(set(seen)) == found.reports == 437 // chains * chains
    with pytest.raises(BadInput):
        run_chains(site, ChainStudy(0.5, channel, chains, start=200.0, unit=100.0))


@compiled
def test_the_records_of_the_search_do_not_answer_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # a source goes on behind the records that have answered, in the same random order
    channel = binary(3.0)
    values = np.arange(8_000.0)
    site = site_of(values, channel)
    taken: list[int] = []

    def spy(*rest: object) -> Source:
        taken.append(site.spent)
        source = Source(*rest)  # type: ignore[arg-type]
        taken.append(source.left)
        return source

    monkeypatch.setattr(module, "Source", spy)
    told: list[int] = []
    found = run_chains(site, ChainStudy(0.5, channel, 4), progress=told.append)
    searched = sum(told[:-4])
    assert searched > 100
    assert taken == [8_000, 8_000 - searched]
    assert found.reports == searched + 4 * ((8_000 - searched) // 4)


def test_chains_say_nothing_at_epsilon_zero() -> None:
    low, high = np.linspace(-1.0, 1.0, 410), 1e6 + np.exp(np.linspace(9.0, 0.0, 410))

    def averages(values: Floats, channel: Channel) -> bytes:
        one = chain(ChainStudy(0.5, channel, 4, start=0.1, unit=1.0), 0.1, 1.0, 102)
        found = walk_chains(one, 4, Source(*site_of(values, channel).hand_over(1)))
        assert len(set(found.tolist())) == 4
        return found.tobytes()

    assert SILENT.epsilon == 0.0
    assert averages(low, SILENT) == averages(high, SILENT)
    assert averages(low, binary(1.0)) != averages(high, binary(1.0))


@compiled
def test_a_search_and_chains_say_nothing_at_epsilon_zero() -> None:
    low, high = np.linspace(-1.0, 1.0, 6_000), 1e6 + np.exp(np.linspace(9.0, 0.0, 6_000))

    def ended(values: Floats, channel: Channel) -> object:
        site = site_of(values, channel)
        try:
            return run_chains(site, ChainStudy(0.5, channel, 4), bounds=(-9.0, 9.0))
        except SearchFailed as lost:  # noise alone may lead nowhere: then it does so for both
            return str(lost), site.spent

    assert ended(low, SILENT) == ended(high, SILENT)
    assert ended(low, binary(3.0)) != ended(high, binary(3.0))


def test_what_cannot_run_is_refused_before_anything_is_spent() -> None:
    channel = binary(1.0)
    site = site_of(VALUES, channel)
    with pytest.raises(BadInput, match="the study's channel is not the site's"):
        run_chains(site, ChainStudy(0.5, binary(2.0), 4))
    with pytest.raises(BadInput, match="5 chains need at least 500 records, and there are 437"):
        run_chains(site, ChainStudy(0.5, channel, 5))
    assert site.spent == 0


@compiled
def test_a_search_that_eats_the_records_is_lost() -> None:
    channel = binary(0.4)
    site = site_of(VALUES, channel)
    with pytest.raises(SearchFailed, match="the search left too few records: 4 chains need at least 400 records"):
        run_chains(site, ChainStudy(0.5, channel, 4))


@compiled
@pytest.mark.parametrize(("location", "scale"), [(0.0, 1.0), (47_000.0, 9_000.0)])
def test_intervals_cover(location: float, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the median Student's interval covers 95 %; fewer than this many of 120 have a chance of 1e-6."""
    monkeypatch.undo()
    channel, runs = binary(epsilon_of_rate(0.9)), 120
    covered = 0
    for seed, die in enumerate(dice(41).split(runs)):
        values = location + scale * die.generator().standard_normal(6_000)
        low, high = run_chains(site_of(values, channel, seed=seed), ChainStudy(0.5, channel)).measured.interval(0.95)
        covered += low < location < high
    fewest = next(k for k in range(runs) if special.bdtr(k, runs, 0.95) > 1e-6)
    assert fewest > 95
    assert covered >= fewest
