"""A calibration site sends one message in its life, never more than its budget, and nothing else about its scores."""

import copy
import importlib
import math
from collections.abc import Callable

import numpy as np
import pytest

from sottovoce.client.conformal.site import CalibrationSite, Query
from sottovoce.client.door import Door, SiteLimits
from sottovoce.client.ledger import MemoryStorage
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy
from sottovoce.protocol.messages import CellQuery, CellReport, OrderQuery, OrderReport, Tally
from sottovoce.protocol.selection import SELECTIONS, selection
from sottovoce.protocol.wire import seal
from sottovoce.sim.randomness import dice

pickled: Callable[[object], bytes] = importlib.import_module("pickle").dumps
SECRETS = np.array([0.123456789, 0.234567891, 0.345678912, 0.456789123] * 25)
EDGES = tuple(np.linspace(0.05, 1.0, 20).tolist())
CELL = CellQuery("sparse-vector", 90, 1.0, EDGES)


def site(budget: float = 1.0, seed: int | None = 1) -> CalibrationSite:
    return CalibrationSite(Records(SECRETS.copy()), budget, None if seed is None else dice(seed))


def test_order_statistics_of_an_open_site() -> None:
    report = site(math.inf).answer(OrderQuery((1, 100, 50, 101)))
    assert report == OrderReport((0.123456789, 0.456789123, 0.234567891, math.inf))


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_cell_of_a_private_site_has_the_law_of_the_mechanism(name: str) -> None:
    query = CellQuery(name, 90, 1.0, (0.2, 0.4, 0.6))
    drawn = [site(seed=seed).answer(query) for seed in range(400)]
    assert all(isinstance(report, CellReport) for report in drawn)
    found = np.bincount([report.cell for report in drawn if isinstance(report, CellReport)], minlength=4)
    distribution = selection(name, 100, 90, 4, 1.0).distribution(np.array([25, 50, 25, 0]))
    # Hoeffding, over four cells: false alarm 1e-6
    assert np.abs(found / 400 - distribution).max() < math.sqrt(math.log(2 * 4 / 1e-6) / (2 * 400))


def test_the_same_query_gets_the_same_message_and_no_other_gets_any() -> None:
    cases: tuple[tuple[float, Query, list[Query]], ...] = (
        (1.0, CELL, [CellQuery("sparse-vector", 91, 1.0, EDGES), CellQuery("exponential", 90, 1.0, EDGES)]),
        (1.0, CELL, [CellQuery("sparse-vector", 90, 0.5, EDGES), CellQuery("sparse-vector", 90, 1.0, EDGES[:-1])]),
        (math.inf, OrderQuery((90,)), [OrderQuery((91,)), OrderQuery((90, 91)), CELL]),
    )
    for budget, first, others in cases:
        asked = CalibrationSite(Records(SECRETS.copy()), budget)  # the system's dice: a second draw would differ
        said = asked.answer(first)
        for _ in range(20):
            assert asked.answer(first) is said
        for other in others:
            with pytest.raises(
                BadInput, match="has sent its one message; it answers the same query again, and no other"
            ):
                asked.answer(other)
        assert asked.answer(first) is said


def test_the_message_is_drawn_from_the_dice_alone() -> None:
    query = CellQuery("sparse-vector", 90, 0.2, EDGES)
    assert len({site(seed=7).answer(query) for _ in range(5)}) == 1
    assert len({site(seed=None).answer(query) for _ in range(200)}) > 1  # all alike with a chance below 1e-6


def test_a_message_that_could_not_be_drawn_was_never_said_and_is_not_spent() -> None:
    class Broken:
        private = True

        def words(self, n: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
            raise OSError("no entropy")

        def split(self, n: int) -> "list[Broken]":
            return [self] * n

    asked = CalibrationSite(Records(SECRETS.copy()), 1.0, Broken())
    for query in (CELL, CellQuery("sparse-vector", 91, 1.0, EDGES)):
        with pytest.raises(OSError, match="no entropy"):
            asked.answer(query)
    assert asked.spent == 0


def test_what_was_said_is_known_after_a_new_start() -> None:
    storage = MemoryStorage()
    said = CalibrationSite(Records(SECRETS.copy()), 1.0, storage=storage).answer(CELL)
    again = CalibrationSite(Records(SECRETS.copy()), 1.0, storage=storage)
    assert again.spent == 100
    assert again.answer(CELL) == said
    with pytest.raises(BadInput, match="has sent its one message"):
        again.answer(CellQuery("sparse-vector", 91, 1.0, EDGES))


def test_a_site_has_limits_of_its_own() -> None:
    few = CalibrationSite(Records(SECRETS.copy()), 9.0, dice(1), limits=SiteLimits(epsilon=0.5, points=20))
    with pytest.raises(BadInput, match=r"more than this site's budget of 0\.5"):
        few.answer(CELL)
    with pytest.raises(BadInput, match="answers 1 to 20 points"):
        few.answer(CellQuery("sparse-vector", 90, 0.5, (*EDGES, 2.0)))
    with pytest.raises(BadInput, match="takes too long to draw"):
        site().answer(CellQuery("sparse-vector", 90, 1e-5, tuple(np.arange(30_000.0).tolist())))
    with pytest.raises(BadInput, match="answers round 1 alone"):
        few.reply(2, CELL)
    with pytest.raises(BadInput, match="order statistics or for a cell"):
        few.reply(1, Tally(1, (3,)))
    assert few.spent == 0


def test_behind_a_door_it_answers_bytes_and_repeats_them() -> None:
    study = b"0123456789abcdef"
    door = Door(CalibrationSite(Records(SECRETS.copy()), 1.0), study)
    asked = seal(study, 1, CELL)
    assert door.answer(asked) == door.answer(asked)
    with pytest.raises(BadInput, match="has sent its one message"):
        door.answer(seal(study, 1, CellQuery("sparse-vector", 91, 1.0, EDGES)))
    with pytest.raises(BadInput, match="another kind"):
        door.answer(seal(study, 1, CellReport(3)))


@pytest.mark.parametrize("budget", [0.999999, 0.5, 1e-9])
def test_a_query_beyond_the_budget_is_refused_and_spends_nothing(budget: float) -> None:
    asked = site(budget)
    with pytest.raises(BadInput, match=r"would cost epsilon 1, more than this site's budget"):
        asked.answer(CELL)
    if budget == 0.5:
        assert asked.answer(CellQuery("sparse-vector", 90, 0.5, EDGES)) == asked.answer(
            CellQuery("sparse-vector", 90, 0.5, EDGES)
        )


def test_the_budget_counts_what_a_mechanism_costs_and_not_what_it_states() -> None:
    cheap = CellQuery("paper", 90, 1.0, EDGES)
    cost = selection("paper", 100, 90, 21, 1.0).epsilon
    assert cost < 0.56
    assert isinstance(site(0.56).answer(cheap), CellReport)
    with pytest.raises(BadInput, match="would cost epsilon"):
        site(0.55).answer(cheap)


def test_a_private_site_never_sends_scores() -> None:
    asked = site(5.0)
    with pytest.raises(BadInput, match="budget of 5; ask it for a cell, not for scores"):
        asked.answer(OrderQuery((90,)))
    assert isinstance(asked.answer(CELL), CellReport)  # nothing was spent


@pytest.mark.parametrize("budget", [0.0, -1.0, math.nan, -math.inf])
def test_a_budget_is_positive(budget: float) -> None:
    with pytest.raises(BadInput, match="the budget of a site must be positive"):
        site(budget)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (CellQuery("sparse-vector", 90, 1.0, ()), "a grid is a list of finite edges"),
        (CellQuery("sparse-vector", 90, 1.0, (1.0, 0.5)), "each larger than the one before"),
        (CellQuery("sparse-vector", 90, 1.0, (0.5, math.inf)), "finite edges"),
        (CellQuery("sparse-vector", 90, 1.0, (0.5, math.nan)), "finite edges"),
        (CellQuery("sparse-vector", 90, math.inf, EDGES), "makes no selection"),
        (CellQuery("sparse-vector", 90, 0.0, EDGES), "makes no selection"),
        (CellQuery("sparse-vector", 90, math.nan, EDGES), "makes no selection"),
        (CellQuery("exponential", 101, 1.0, EDGES), "is not between 1 and the number of scores"),
        (CellQuery("none", 90, 1.0, EDGES), "there is no such mechanism"),
        (CellQuery("sparse-vector", 90, 1e300, EDGES), "makes no selection"),
        (CellQuery("sparse-vector", 2**60, 1.0, EDGES), "is beyond 2"),
        (OrderQuery((0,)), "ranks of scores begin at 1"),
        (OrderQuery((5, -1)), "ranks of scores begin at 1"),
        (OrderQuery(()), "ask for one at least"),
        (OrderQuery(tuple(range(1, 7))), "sends 5 scores at most"),
    ],
)
def test_a_query_that_makes_no_sense_spends_nothing(query: Query, sentence: str) -> None:
    budget = math.inf if isinstance(query, OrderQuery) else 1.0
    asked = site(budget)
    with pytest.raises(BadInput, match=sentence) as caught:
        asked.answer(query)
    assert not [value for value in SECRETS[:4].tolist() if repr(value)[:6] in str(caught.value)]
    fine: Query = OrderQuery((1,)) if budget == math.inf else CELL
    assert asked.answer(fine) == asked.answer(fine)


def test_a_site_shows_nothing_and_cannot_be_copied() -> None:
    asked = site()
    assert len(asked) == 100
    assert repr(asked) == str(asked) == "CalibrationSite(100 scores, values hidden)"
    with pytest.raises(TypeError):
        vars(asked)
    for duplicate in (pickled, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            duplicate(asked)


def test_without_dice_it_is_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    words = SystemEntropy.words

    def counted(self: SystemEntropy, n: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        drawn.append(n)
        return words(self, n)

    monkeypatch.setattr(SystemEntropy, "words", counted)
    CalibrationSite(Records(SECRETS.copy()), 1.0).answer(CELL)
    assert drawn
