"""Each person of a regression is asked once, whatever the batches, the order or the search before it."""

import os
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.client.regression import loop as loop_module
from sottovoce.client.regression import persons, randomize_row
from sottovoce.client.regression.rows import Rows
from sottovoce.local.regression import pilot as pilot_module
from sottovoce.local.regression.dithered import CHUNK, DitheredRun, order_for, walk
from sottovoce.local.regression.pilot import Pilot
from sottovoce.protocol.regression.box import cq
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.server.regression.omega import omega
from sottovoce.sim.randomness import dice

PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
CHANNEL = cq(0.5, 1, 2.0, 2, 2)


def study() -> DitheredStudy:
    return DitheredStudy(CHANNEL, omega(CHANNEL)[None], np.array([0.4]), 1.0, np.zeros((1, 2)), np.diag([1.0, 1 / 3]))


def rows_of(n: int) -> Rows:
    draws = dice(2).generator().uniform(-1, 1, (2, n))
    return Rows(np.ascontiguousarray(draws[:1].T), draws[1])


def heard(sums: Any) -> float:
    """Return how many people a segment's sums count."""
    return float(sums.counts[0] + sums.products[0].sum() + sums.pairs[0].sum() + sums.ways[0].sum())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Count which rows are handed to the compiled loop, which asks each of them once."""
    seen: Counter[int] = Counter()
    loop = loop_module.segment

    def counted(
        tables: Any, told: Any, design: Any, gain: Any, sums: Any, features: Any, response: Any, where: Any, *rest: Any
    ) -> None:
        before = heard(sums)
        loop(tables, told, design, gain, sums, features, response, where, *rest)
        assert heard(sums) - before == len(where)
        seen.update(where.tolist())

    monkeypatch.setattr(loop_module, "segment", counted)
    return seen


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 700])
def test_every_row_is_asked_once(asked: Counter[int], shuffle: bool, n: int) -> None:
    run = DitheredRun(study())
    run.ask(rows_of(n), dice(1), shuffle=shuffle)
    assert sorted(asked) == list(range(n))
    assert set(asked.values()) == {1}
    assert run.people == n


@pytest.mark.skipif(PLAIN, reason="too long uncompiled")
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_row_of_several_chunks_is_asked_once(asked: Counter[int], shuffle: bool) -> None:
    n = 2 * CHUNK + 17
    run = DitheredRun(study())
    told: list[int] = []
    run.ask(rows_of(n), dice(1), shuffle=shuffle, progress=told.append)
    assert sorted(asked) == list(range(n))
    assert set(asked.values()) == {1}
    assert sum(told) == run.people == n


def test_batches_ask_their_own_rows(asked: Counter[int]) -> None:
    run, die = DitheredRun(study()), dice(1)
    for n in (100, 1, 0, 37):
        run.ask(rows_of(n), die)
    assert run.people == 138
    assert asked[0] == 3
    assert asked[36] == 2
    assert asked[99] == 1


def test_an_order_gone_on_with_asks_the_rest(asked: Counter[int], monkeypatch: pytest.MonkeyPatch) -> None:
    # as the search does: it takes the first people of an order, the recursion all others
    n, rows, die = 3000, rows_of(3000), dice(1)
    pilot, run = Pilot((0.5,), 1, 2.0), DitheredRun(study())
    first: list[int] = []
    count = randomize_row.count_above

    def counted(response: Any, where: npt.NDArray[np.uint64], *rest: Any) -> int:
        first.extend(where.tolist())
        return count(response, where, *rest)

    monkeypatch.setattr(pilot_module, "count_above", counted)
    order = order_for(die, shuffle=True)
    walk(rows, die, order, 3, lambda r, where, words: asked.update(where[: pilot.take(r, where, words)].tolist()))
    assert pilot.guess is not None
    assert pilot.people == len(first) == len(set(first)) < n
    assert sorted(first) == sorted(asked)
    run.ask(rows, die, order._replace(start=pilot.people))
    assert sorted(asked) == list(range(n))
    assert set(asked.values()) == {1}
    assert run.people == n - pilot.people


def test_a_person_has_words_of_their_own() -> None:
    n, step_length = 500, 3
    words: list[npt.NDArray[np.uint64]] = []
    walk(rows_of(n), dice(1), False, step_length, lambda _rows, _where, w: words.append(w.copy()))
    assert np.concatenate(words).shape == (n, step_length)
    assert len(np.unique(np.concatenate(words))) == n * step_length
    assert np.array_equal(np.concatenate(words).ravel(), dice(1).words(n * step_length))


def test_a_run_keeps_no_record() -> None:
    secret = 0.123456789
    run = DitheredRun(study())
    run.ask(Rows(np.full((50, 1), secret), np.full(50, secret)), dice(1))
    assert not any(isinstance(value, Rows | persons.Persons) for value in vars(run).values())
    held = [part for part in vars(run).values() if isinstance(part, np.ndarray)]
    assert held == []
    assert "0.1234" not in repr(run.state)
