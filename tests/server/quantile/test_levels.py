"""Several conversations at once say what they would have said alone."""

from collections.abc import Generator

import numpy as np
import pytest

from sottovoce.core.arrays import Ints
from sottovoce.server.quantile.asking import Ask
from sottovoce.server.quantile.levels import together


def counting(name: str, rounds: int, width: int) -> Generator[Ask, Ints, tuple[str, list[list[list[int]]]]]:
    """Ask for some rounds, and return everything heard."""
    heard = []
    for i in range(rounds):
        points = 100 * rounds + 10 * i + np.arange(float(width))
        heard.append((yield Ask(points, np.full((2, width), i + 1))).tolist())
    return name, heard


def letters(ask: Ask) -> Ints:
    """Answer by the points alone, so that a mix-up shows."""
    return np.stack([ask.points, 2 * ask.points]).astype(np.int64)


def run(talk: Generator[Ask, Ints, object]) -> tuple[object, list[Ask]]:
    asks = []
    try:
        ask = next(talk)
        while True:
            asks.append(ask)
            ask = talk.send(letters(ask))
    except StopIteration as stop:
        return stop.value, asks


def test_joined_conversations_equal_separate_ones() -> None:
    shapes = [("long", 5, 3), ("short", 2, 1), ("middle", 3, 4)]
    joined, asks = run(together([counting(*shape) for shape in shapes]))
    alone = [run(counting(*shape)) for shape in shapes]
    assert joined == [outcome for outcome, _ in alone]
    assert len(asks) == 5  # as many rounds as the longest alone
    assert [len(ask.points) for ask in asks] == [8, 8, 7, 3, 3]
    assert sum(int(ask.counts.sum()) for ask in asks) == sum(int(ask.counts.sum()) for _, own in alone for ask in own)


def test_outcomes_keep_their_order_whoever_ends_first() -> None:
    joined, _ = run(together([counting("b", 1, 1), counting("a", 4, 2)]))
    assert [name for name, _ in joined] == ["b", "a"]  # type: ignore[attr-defined]


def test_one_that_is_lost_is_heard() -> None:
    def lost() -> Generator[Ask, Ints, None]:
        yield Ask(np.zeros(1), np.ones((2, 1), dtype=np.int64))
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        run(together([counting("a", 3, 1), lost()]))
