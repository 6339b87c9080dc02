"""What a site needs for the loop of a regression by itself: channels, and where the recursion stands.

All of it is public, and comes from a coordinator, so it is hostile until checked: epsilon is computed from the
channel's integers, and arrays have the shapes that compiled code looks into.
"""

import math
from typing import Any, NamedTuple

import msgspec
import numpy as np

from sottovoce.core import codec
from sottovoce.core.arrays import Ints, Words
from sottovoce.core.errors import BadInput
from sottovoce.core.kernels import njit
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.regression.blocks import Block, Open, RegressionChannel
from sottovoce.protocol.regression.box_channel import BoxChannel
from sottovoce.protocol.regression.dithered.declared import Declared, check_declared
from sottovoce.protocol.regression.dithered.state import DitheredState, check_state
from sottovoce.protocol.regression.dithered.study import DitheredStudy, StoredDithered
from sottovoce.protocol.regression.questions import uniform

CHANNEL_OF = 1 << 23  # the public draw of a person's channel
MOST = 1 << 23  # bytes of letters: they fit a message
Table = tuple[tuple[float, ...], ...]


class CarriedBlock(NamedTuple):
    """A block as plain values: either a box's integers, or a matrix of weights with its vertices and its table."""

    probability: float
    slopes: tuple[int, ...] | None
    gains: Table
    box: tuple[int, int, int, int, int, int, int] | None = None
    weights: tuple[tuple[int, ...], ...] = ()
    vertices: Table = ()
    table: Table = ()


class CarriedChannel(NamedTuple):
    """A channel as plain values, for a study card; without blocks it sends exact scores."""

    taus: tuple[float, ...]
    p: int
    blocks: tuple[CarriedBlock, ...]


class CarriedRun(NamedTuple):
    """Where the recursion of one channel stands, with its public guesses."""

    terms: StoredDithered
    limit: float
    state: DitheredState
    known: bool = False
    declared: Declared | None = None


def carried(channel: RegressionChannel) -> CarriedChannel:
    """Return a channel as plain values.

    >>> from sottovoce.protocol.regression.box import cq
    >>> channel_of(msgspec.to_builtins(carried(cq(0.5, 2, 2.0, q=2, s=1))), 2.0).letters
    2
    """
    blocks = []
    for block in channel.blocks:
        through, gains = block.channel, _table(block.gains)
        if isinstance(through, Open):
            return CarriedChannel(channel.taus, channel.p, ())
        if isinstance(through, BoxChannel):
            box = (
                through.kinds, through.slopes, through.cells, through.width, through.low, through.extra, through.spare,
            )  # fmt: skip
            blocks.append(CarriedBlock(block.probability, block.slopes, gains, box))
        else:
            parts = through.weights, _table(through.vertices), _table(through.table)
            blocks.append(CarriedBlock(block.probability, block.slopes, gains, None, *parts))
    return CarriedChannel(channel.taus, channel.p, tuple(blocks))


def channel_of(given: Any, epsilon: float) -> RegressionChannel:
    """Read a channel of a study card, or refuse one that is none or costs a person more than epsilon."""
    refused = BadInput("the study card names a channel that does not exist; use the same version.")
    try:
        plain = msgspec.convert(given, CarriedChannel)
        if not plain.blocks or not all(0 < tau < 1 for tau in plain.taus):
            raise refused
        blocks = tuple(_block(each) for each in plain.blocks)
        return RegressionChannel("carried", plain.taus, plain.p, blocks, budget=epsilon)
    except BadInput:
        raise
    except (msgspec.ValidationError, ValueError, TypeError, ArithmeticError, LookupError):
        raise refused from None


def _block(plain: CarriedBlock) -> Block:
    """Build one block again."""
    gains = _array(plain.gains)
    if plain.box is not None:
        return Block(plain.probability, BoxChannel("box", *plain.box), plain.slopes, gains)
    matrix = Channel("matrix", _array(plain.vertices), plain.weights, _array(plain.table))
    return Block(plain.probability, matrix, plain.slopes, gains)


def run_to_bytes(study: DitheredStudy, state: DitheredState) -> bytes:
    """Encode where a recursion stands."""
    return codec.to_bytes(CarriedRun(study.terms, study.limit, state, study.known, study.declared))


def run_of(data: bytes, channel: RegressionChannel) -> tuple[DitheredStudy, DitheredState]:
    """Decode where the recursion of a channel stands, or refuse what is none."""
    try:
        terms, limit, state, known, declared = codec.from_bytes(data, CarriedRun)
    except BadInput:
        raise BadInput("the query does not say where the regression stands; correct the query.") from None
    _, omega, density, size, start, moments = terms
    levels, d = len(channel.taus), channel.p + 1
    shapes = [(levels, d, d), (levels,), (levels, d), (d, d)]
    numbers = [omega, density, start, moments, state.point, *state.design, *state.gain[:2], *state.sums]
    numbers += [part for each in state.behind for part in (*each.sums, *each[3:])]
    if (
        [part.shape for part in numbers[:4]] != shapes
        or not all(np.isfinite(part).all() for part in numbers)
        or not (0 < size < math.inf and limit > 0 and state.gain.limit > 0 and density.min() > 0)
    ):
        raise BadInput("where the regression stands does not fit the channel; correct the query.")
    if declared is not None:
        check_declared(declared, channel.p)
    study = DitheredStudy(channel, omega, density, size, start, moments, known, limit, declared)
    check_state(study, state)
    return study, state


def whose(words: Words, channels: int) -> Ints:
    """Return which channel the public word of each person gives them."""
    drawn = np.zeros(len(words), dtype=np.int64)
    if channels > 1:
        with np.errstate(over="ignore"):  # not compiled, the mixing of a public word wraps round aloud
            _draw(words, channels, drawn)
    return drawn


@njit(cache=True, nogil=True)
def _draw(words: Words, channels: int, drawn: Ints) -> None:
    """Fill in the channel of each person."""
    for i in range(len(words)):
        drawn[i] = int(uniform(words[i], CHANNEL_OF) * channels)


def most_people(letters: int) -> int:
    """Return how many people one query may ask; ``letters`` is the size of the largest alphabet."""
    return MOST // _width(letters).itemsize


def packed(letters: Ints, most: int) -> bytes:
    """Write letters as bytes, as few a person as the largest alphabet needs.

    >>> len(packed(np.array([1, 0, 5]), 6)), unpacked(packed(np.array([1, 0, 500]), 501), 501).tolist()
    (3, [1, 0, 500])
    """
    return letters.astype(_width(most)).tobytes()


def unpacked(data: bytes, most: int) -> Ints:
    """Read letters from bytes, or refuse."""
    if len(data) % _width(most).itemsize:
        raise BadInput("the letters are not whole; answer with one a person.")
    return np.frombuffer(data, dtype=_width(most)).astype(np.int64)


def _width(most: int) -> np.dtype[Any]:
    """Return the smallest unsigned type that holds the letters of an alphabet."""
    return np.dtype("u1" if most <= 1 << 8 else "<u2" if most <= 1 << 16 else "<u4")


def _table(array: Any) -> Table:
    """Return an array of two axes as tuples."""
    return tuple(tuple(float(each) for each in row) for row in array)


def _array(table: Table) -> Any:
    """Return a table of finite numbers as an array."""
    found = np.array(table, dtype=np.float64)
    if not np.isfinite(found).all():
        raise ValueError("not finite")
    return found
