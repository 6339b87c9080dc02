from collections.abc import Generator

import numpy as np
import pytest

from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput
from sottovoce.server.quantile import history
from sottovoce.server.quantile.asking import Ask, SiteProfile
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.staged import Local, StagedStudy, staged_protocol
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.populations import population

CROWD = SiteProfile(np.array([0.25, 0.75]), np.array([0.5, 0.9]), np.array([5_000, 15_000]))


def start() -> Generator[Ask, Ints, Local | Fitted]:
    return staged_protocol(StagedStudy(0.5, CROWD))


def answered(ask: Ask, generator: np.random.Generator) -> Ints:  # noqa: TID251 - a type, nothing is drawn from it
    above = 1 - population("normal").cdf(ask.points)
    chances = CROWD.rates[:, None] * above + (1 - CROWD.rates[:, None]) / 2
    return np.asarray(generator.binomial(ask.counts, chances), dtype=np.int64)


def whole() -> tuple[history.History, list[Ask]]:
    generator, log, asks = dice(3).generator(), history.init(), []
    while (ask := history.query(start, log)) is not None:
        asks.append(ask)
        log = history.step(start, log, answered(ask, generator))
    return log, asks


def test_a_log_replays_to_the_same_queries_and_the_same_end() -> None:
    log, asks = whole()
    for i, ask in enumerate(asks):
        again = history.query(start, log[:i])
        assert again is not None
        np.testing.assert_array_equal(again.points, ask.points)
        np.testing.assert_array_equal(again.counts, ask.counts)
        assert history.outcome(start, log[:i]) is None
    first, second = history.outcome(start, log), history.outcome(start, log)
    assert isinstance(first, Local)
    assert isinstance(second, Local)
    assert first.centre == second.centre
    assert first.milestones == second.milestones
    assert sum(int(ask.counts.sum()) for ask in asks) == CROWD.sizes.sum()


def test_an_answer_that_does_not_fit_is_refused_and_the_log_stays() -> None:
    log = history.init()
    ask = history.query(start, log)
    assert ask is not None
    for bad in (ask.counts + 1, ask.counts[:1], -ask.counts - 1):
        with pytest.raises(BadInput, match="round 1 asked 2 sites"):
            history.step(start, log, bad)
    assert log == ()


def test_nothing_can_be_added_to_a_finished_conversation() -> None:
    log, _ = whole()
    with pytest.raises(BadInput, match="is over"):
        history.step(start, log, log[0])
