"""The bound holds where epsilon is spent in full, sees what is worse, and looks at everything in the bytes."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sottovoce.auditing.bound import bound_of, law_p_value, lower_bound, repeats_p_value
from sottovoce.sim import dice

FALSE_ALARM = 1e-6


def said(chances: list[float], n: int, generator: Any) -> list[tuple[bytes, ...]]:
    """Return transcripts of one letter with a random id."""
    letters = generator.choice(len(chances), n, p=chances)
    ids = generator.bytes(8 * n)
    return [(ids[8 * k : 8 * k + 8] + bytes([letter]),) for k, letter in enumerate(letters.tolist())]


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_the_bound_is_too_high_as_seldom_as_it_says(epsilon: float) -> None:
    generator, alpha, runs, n = dice(1).generator(), 0.05, 80, 200
    flip = 1 / (1 + math.exp(epsilon))
    laws = [1 - flip, flip], [flip, 1 - flip]
    wrong = sum(
        lower_bound(said(laws[0], n, generator), said(laws[1], n, generator), alpha).epsilon > epsilon
        for _ in range(runs)
    )
    assert wrong <= binom.isf(FALSE_ALARM, runs, alpha)


def test_clopper_and_pearson_cover() -> None:
    # over all counts, exactly: the chance that the bound passes the truth, where the truth is reached
    n, epsilon, alpha = 60, 1.0, 0.05
    often, seldom = math.e / (1 + math.e), 1 / (1 + math.e)
    chance = sum(
        binom.pmf(a, n, often) * binom.pmf(b, n, seldom)
        for a in range(n + 1)
        for b in range(n + 1)
        if bound_of(a, b, n, n, alpha) > epsilon
    )
    assert 0 < chance <= alpha


def test_more_reports_show_more() -> None:
    generator = dice(2).generator()
    laws = [0.731, 0.269], [0.269, 0.731]
    shown = [
        lower_bound(said(laws[0], n, generator), said(laws[1], n, generator), 1e-3).epsilon for n in (200, 2000, 20_000)
    ]
    assert all(a < b for a, b in pairwise(shown))
    assert shown[-1] > 0.9


@pytest.mark.parametrize(
    ("first", "second", "event"),
    [
        ((b"ab",), (b"abc",), "lengths"),
        ((b"a", b"a"), (b"a", b"b"), "which messages are equal"),
        ((bytes(600) + b"x",), (bytes(600) + b"y",), "all bytes"),
    ],
)
def test_whatever_differs_is_seen(first: tuple[bytes, ...], second: tuple[bytes, ...], event: str) -> None:
    found = lower_bound([first] * 400, [second] * 400, 1e-3)
    assert found.epsilon > 3
    assert found.often == 200
    assert event


def test_a_bit_among_random_bytes_is_seen() -> None:
    generator = dice(3).generator()
    rows = [generator.integers(0, 256, (800, 12), dtype=np.uint8) for _ in range(2)]
    for side, each in enumerate(rows):
        each[:, 7] = (each[:, 7] & 0xFB) | (side << 2)
    transcripts = [[(row.tobytes(),) for row in each] for each in rows]
    found = lower_bound(transcripts[0], transcripts[1], 1e-3)
    assert (found.event, found.often, found.seldom) == ("bit 3 of byte 8", 400, 0)


def test_random_bytes_show_nothing() -> None:
    generator = dice(4).generator()
    found = [
        lower_bound([(generator.bytes(30),) for _ in range(400)], [(generator.bytes(30),) for _ in range(400)], 0.05)
        for _ in range(20)
    ]
    assert sum(each.epsilon > 0 for each in found) <= binom.isf(FALSE_ALARM, 20, 0.05)


def test_the_law_is_held_to() -> None:
    generator, chances = dice(5).generator(), [0.5, 0.3, 0.2, 0.0]
    small = [law_p_value(generator.choice(4, 300, p=chances).tolist(), chances) < 0.05 for _ in range(200)]
    assert sum(small) <= binom.isf(FALSE_ALARM, 200, 0.05)
    assert law_p_value([3], chances) == 0.0
    assert law_p_value([-1], chances) == 0.0
    assert law_p_value([4], chances) == 0.0


def test_fresh_noise_repeats_itself_by_chance_alone() -> None:
    letters = [(b"%d" % k,) for k in dice(6).generator().integers(0, 2, 400)]
    assert repeats_p_value(letters, 0.5) == 1.0
    assert repeats_p_value(letters[:100] * 4, 0.5) < 1e-20
    assert repeats_p_value([(b"0",)] * 400, 1.0) == 1.0  # where nothing is thrown, repetition says nothing
