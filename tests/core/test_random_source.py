"""Operating-system words: all of them, in one draw, and nobody else's."""

import numpy as np
import pytest

from sottovoce.core.random_source import SystemEntropy


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


def test_it_says_that_it_is_private_and_splits_into_itself() -> None:
    source = SystemEntropy()
    assert source.private is True
    assert len(source.split(3)) == 3
    assert all(part.private for part in source.split(3))


def test_no_words_is_no_words() -> None:
    assert SystemEntropy().words(0).tolist() == []
