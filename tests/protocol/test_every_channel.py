"""Checks that every channel passes: modules with EXAMPLES are found, none needs to be listed."""

import importlib
import math
import os
import pkgutil
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from scipy import special
from tests.protocol.written_out import dense_channel

from sottovoce import protocol
from sottovoce.client.order import bits_for, order_key
from sottovoce.client.quantile.encode import answer
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.exact import logarithm, within
from sottovoce.protocol.regression.blocks import Open, RegressionChannel
from sottovoce.protocol.regression.box_channel import BoxChannel
from sottovoce.protocol.walk import moves
from sottovoce.sim.randomness import dice

FALSE_ALARM = 1e-6
DRAWS = 1_000 if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" else 100_000


WRITTEN_OUT = 20_000  # entries of a matrix up to which a structured channel is checked letter by letter

Made = Channel | RegressionChannel


def found() -> Iterator[tuple[str, float, Callable[..., Made]]]:
    for module in pkgutil.walk_packages(protocol.__path__, protocol.__name__ + "."):
        for budget, make in getattr(importlib.import_module(module.name), "EXAMPLES", ()):
            yield module.name.rpartition(".")[2], budget, make


def structured(made: Made) -> list[tuple[BoxChannel, list[float]]]:
    """The box channels of a mechanism, each with the values of its sides."""
    if isinstance(made, Channel):
        return []
    return [
        (block.channel, made.side_scores(0).tolist() if block.side else [made.radius])
        for block in made.blocks
        if isinstance(block.channel, BoxChannel)
    ]


def matrices(made: Made) -> list[Channel]:
    """Every distribution of a mechanism that is small enough to write out."""
    if isinstance(made, Channel):
        return [made]
    plain = [block.channel for block in made.blocks if isinstance(block.channel, Channel)]
    boxes = [
        dense_channel(box, np.array(sides))
        for box, sides in structured(made)
        if box.letters * box.kinds * box.positions**box.slopes <= WRITTEN_OUT
    ]
    return plain + boxes


SUBJECTS = list(found())
every = pytest.mark.parametrize(
    ("budget", "make"), [s[1:] for s in SUBJECTS], ids=[f"{name}-{budget:.3g}" for name, budget, _ in SUBJECTS]
)


def test_there_are_subjects() -> None:
    assert {name for name, _, _ in SUBJECTS} >= {"randomised_response", "lp", "box"}
    assert all(len([s for s in SUBJECTS if s[0] == name]) >= 3 for name, _, _ in SUBJECTS)


@every
def test_rows_are_laws(budget: float, make: Callable[..., Made]) -> None:
    for channel in matrices(make(epsilon=budget)):
        assert all(type(w) is int for row in channel.weights for w in row)
        assert all(w >= 0 for row in channel.weights for w in row)
        assert {sum(row) for row in channel.weights} == {channel.total}
        assert channel.total > 0
        assert channel.distribution.sum(axis=1) == pytest.approx(1.0, abs=1e-15)
    for box, _ in structured(make(epsilon=budget)):
        inside = box.inside * (box.low + box.extra)
        assert inside + (box.letters - box.inside) * box.low + box.spare == box.total


@every
def test_decoding_gives_the_vertices_back(budget: float, make: Callable[..., Made]) -> None:
    for channel in matrices(make(epsilon=budget)):
        size = 1 + float(np.abs(channel.table).max())
        assert np.abs(channel.distribution @ channel.table - channel.vertices).max() <= 1e-9 * size
        # the table holds rounded floats: summed in fractions, its rounding is all that is left
        for row, vertex in zip(channel.weights, channel.vertices, strict=True):
            for axis in range(channel.table.shape[1]):
                terms = [w * Fraction(float(t)) for w, t in zip(row, channel.table[:, axis], strict=True)]
                decoded = sum(terms, Fraction(0))
                assert abs(decoded / channel.total - Fraction(float(vertex[axis]))) <= Fraction(size) / 2**52


@every
def test_structured_decoding_is_unbiased_in_fractions(budget: float, make: Callable[..., Made]) -> None:
    for box, sides in structured(make(epsilon=budget)):
        values = [Fraction(side) for side in sides]
        inverse = box.decoder(np.array(sides))
        blind, spare = Fraction(box.letters * box.low, box.total), Fraction(box.spare, box.total)
        for value in values:
            heard = box.truth * value + blind * sum(values) / len(values) + spare * values[0]
            assert (heard - inverse.shift_side) * inverse.side == value
        for at in range(box.positions if box.slopes else 0):
            inside = sum((box.value(cell) for cell in range(at, at + box.width)), Fraction(0)) / box.width
            mean = sum((box.value(cell) for cell in range(box.cells)), Fraction(0))
            slope = Fraction(2 * at, box.positions - 1) - 1
            for value in values:
                heard = box.truth * value * inside + blind * mean + spare * values[0] * box.value(0)
                assert (heard - inverse.shift_slope) * inverse.slope == value * slope


@every
def test_epsilon_is_within_the_budget_and_close_to_it(budget: float, make: Callable[..., Made]) -> None:
    made = make(epsilon=budget)
    parts = [made] if isinstance(made, Channel) else [block.channel for block in made.blocks]
    assert within(made.ratio, budget)
    for channel in parts:
        assert not isinstance(channel, Open)
        assert within(channel.ratio, budget)
        if math.isinf(budget):
            assert channel.ratio is None
            continue
        assert channel.epsilon <= budget
        assert budget - channel.epsilon < 1e-8


@every
def test_the_matrix_of_a_box_has_the_ratio_that_the_box_states(budget: float, make: Callable[..., Made]) -> None:
    for box, sides in structured(make(epsilon=budget)):
        if box.letters * box.kinds * box.positions**box.slopes <= WRITTEN_OUT:
            assert dense_channel(box, np.array(sides)).ratio == box.ratio


@every
def test_one_face_less_for_the_rarest_letter_would_break_the_budget(budget: float, make: Callable[..., Made]) -> None:
    made = make(epsilon=budget)
    if math.isinf(budget):
        pytest.skip("no budget, no edge")
    for box, _ in structured(made):
        less = box.low - 1
        more = (box.total - box.letters * less) // box.inside
        assert not within(Fraction(less + more, less), budget)
    if not isinstance(made, Channel):
        return
    columns = list(zip(*made.weights, strict=True))
    low, high = max(((min(c), max(c)) for c in columns), key=lambda pair: Fraction(pair[1], pair[0]))
    assert not within(Fraction(high + 1, low - 1), budget)
    # so far inside that no rounding of the check itself decides
    assert logarithm(Fraction(high + 1, low - 1)) - made.epsilon < 1e-7


@every
def test_the_sampler_has_the_law(budget: float, make: Callable[..., Made]) -> None:
    channel = make(epsilon=budget)
    if not isinstance(channel, Channel) or len(channel.weights) != 2 or len(channel.weights[0]) != 2:
        pytest.skip("the kernel sends one bit")
    source, values = dice(2024), np.zeros(DRAWS)
    letters, room = np.empty(DRAWS, dtype=np.uint8), np.empty(DRAWS, dtype=np.uint64)
    for symbol, point in ((0, 1.0), (1, -1.0)):
        answer(
            values, bits_for(DRAWS), order_key(source), 0, source.words(DRAWS), channel.weights[0][1], 0.0,
            point, 0.0, 0.0, moves(channel, 0.5), letters, room,
        )  # fmt: skip
        seen = np.bincount(letters, minlength=2)
        expected = DRAWS * channel.distribution[symbol]
        certain = expected == 0
        assert not seen[certain].any()
        statistic = float(np.sum((seen - expected)[~certain] ** 2 / expected[~certain]))
        degrees = int(np.count_nonzero(~certain)) - 1
        if expected[~certain].min() < 10:  # too rare for chi-square: a Poisson tail instead
            rare = int(np.argmin(expected))
            tail = special.pdtrc(int(seen[rare]) - 1, float(expected[rare])) if seen[rare] else 1.0
            assert tail > FALSE_ALARM
        elif degrees:
            assert special.chdtrc(degrees, statistic) > FALSE_ALARM, (symbol, seen, expected)
