"""Operating-system words: all of them, in one draw, and nobody else's."""

import copy
from typing import Any

import numpy as np
import pytest

from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy, is_private, parts_of
from sottovoce.sim.randomness import dice


def test_words_are_the_systems_bytes_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def fake(n: int) -> bytes:
        asked.append(n)
        return bytes(i % 256 for i in range(n))

    monkeypatch.setattr("os.urandom", fake)
    words = SystemEntropy().words(1000)
    assert asked == [8000]
    assert words.dtype == np.uint64
    assert words.tobytes() == bytes(i % 256 for i in range(8000))


def test_every_bit_is_used() -> None:
    words = SystemEntropy().words(4096)
    ones = np.array([int(np.count_nonzero(words & np.uint64(1 << bit))) for bit in range(64)])
    # 64 fair bits of 4096 throws: six standard deviations (32) on either side leave 64 * 2e-9
    assert np.all(np.abs(ones - 2048) < 6 * 32)
    assert len(np.unique(words)) == 4096


def test_two_draws_differ_and_the_words_are_read_only() -> None:
    source = SystemEntropy()
    assert source.words(4).tolist() != source.words(4).tolist()
    assert not source.words(4).flags.writeable


def test_it_is_private_and_splits_into_itself() -> None:
    source = SystemEntropy()
    assert is_private(source)
    assert len(source.split(3)) == 3
    assert all(map(is_private, source.split(3)))
    assert is_private(copy.deepcopy(source))


class Constant(SystemEntropy):
    """What calls itself private, and is not."""

    private = True

    def words(self, n: int) -> Words:
        return np.full(n, 1 << 63, dtype=np.uint64)

    def split(self, n: int) -> list[Any]:
        return [self] * n


def test_nobody_else_is_private_whatever_they_say() -> None:
    assert not is_private(Constant())
    assert not is_private(dice(1))
    with pytest.raises(AttributeError):
        SystemEntropy().words = Constant().words  # type: ignore[method-assign]


class Odd:
    """A source whose parts are anything."""

    def __init__(self, parts: Any, said: Any = None) -> None:
        self._parts, self._said = parts, said

    def split(self, n: int) -> Any:
        return [self] * n if self._parts is None else self._parts

    def words(self, n: int) -> Any:
        return self._said(n)


@pytest.mark.parametrize(
    "odd",
    [
        Odd([]),
        Odd(5),
        Odd([1, 2, 3]),
        Odd(None, lambda n: [0] * n),
        Odd(None, lambda n: np.zeros(n)),
        Odd(None, lambda n: np.zeros(n + 1, dtype=np.uint64)),
        Odd(None, lambda n: {}[n]),
    ],
)
def test_a_source_without_words_is_refused_before_anything_is_drawn(odd: Odd) -> None:
    with pytest.raises(BadInput, match=r"^randomness must split into 3 sources .* a Odd does not; give sim\.dice"):
        parts_of(odd, 3)


def test_a_sources_parts_are_handed_on() -> None:
    source = Odd(None, lambda n: np.arange(n, dtype=np.uint64))
    assert parts_of(source, 2) == [source, source]
    drawn, looked_at = dice(7).split(1)[0], parts_of(dice(7), 1)[0]
    assert drawn.words(3).tolist() == looked_at.words(3).tolist()  # nothing of a seeded source is used up


def test_no_words_is_no_words() -> None:
    assert SystemEntropy().words(0).tolist() == []
