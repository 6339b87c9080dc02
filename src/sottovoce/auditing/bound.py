"""A lower bound on epsilon from what a client really sent about two neighbouring inputs, at a stated confidence.

If a client keeps to epsilon, any event has probabilities within a factor exp(epsilon) of each other under both inputs.
A quarter of the transcripts proposes events on everything in their bytes, a quarter chooses one, and the other half
judges it: Clopper and Pearson (1934, doi:10.1093/biomet/26.4.404) bound its two probabilities, and the logarithm of
their ratio bounds epsilon from below. No choice has seen what it is judged by, so no search can flag an honest client.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, bdtrc, betaincinv

from sottovoce.core.arrays import Floats, Ints

Transcript = tuple[bytes, ...]  # all that a client sent in one trial, message by message
MOST_BYTES = 512  # of a transcript that are looked at one by one: the first and the last half of them
JUDGED = 2  # times as many transcripts judge an event as propose it, or choose it


class Feature(NamedTuple):
    """Something to read off a transcript: its values as whole numbers, under the first input and the second."""

    name: str
    first: Ints
    second: Ints


class EpsilonBound(NamedTuple):
    """What an event shows: how often it came under the likelier input and the other, and the bound on epsilon."""

    epsilon: float
    event: str
    often: int
    seldom: int
    trials: int


def lower_bound(
    first: Sequence[Transcript],
    second: Sequence[Transcript],
    alpha: float,
    read: Callable[[Transcript], Hashable] | None = None,
) -> EpsilonBound:
    """Return a lower bound on epsilon that is too high with probability ``alpha`` at most.

    ``read`` says what a transcript tells, if that is known; everything in the bytes is looked at in any case.

    >>> said = lower_bound([(b"yes",)] * 400, [(b"no",)] * 400, 1e-3)
    >>> round(said.epsilon, 2), said.often, said.seldom, said.trials
    (3.25, 200, 0, 200)
    """
    features = features_of(first, second, read)
    best: tuple[float, Feature, frozenset[int], bool] | None = None
    errors = NormalDist().inv_cdf(1 - alpha / 2)
    for feature in features:
        for turned in (False, True):
            more, fewer = (feature.second, feature.first) if turned else (feature.first, feature.second)
            values = _proposed(more[0::4], fewer[0::4], errors)
            if not values:
                continue
            counts = [_count(each[1::4], values) for each in (more, fewer)]
            score = float(_promised(counts[0], counts[1], len(more[1::4]), len(fewer[1::4]), errors))
            if best is None or score > best[0]:
                best = score, feature, values, turned
    if best is None:
        return EpsilonBound(0.0, "none: both inputs send the same", 0, 0, len(first) // 2)
    _, feature, values, turned = best
    halves = [np.concatenate([each[2::4], each[3::4]]) for each in (feature.first, feature.second)]
    more, fewer = halves[::-1] if turned else halves
    often, seldom = _count(more, values), _count(fewer, values)
    return EpsilonBound(bound_of(often, seldom, len(more), len(fewer), alpha), feature.name, often, seldom, len(more))


def bound_of(often: int, seldom: int, n: int, m: int, alpha: float) -> float:
    """Return the bound of an event that came ``often`` in n trials under one input and ``seldom`` in m under another.

    >>> round(bound_of(731, 269, 1000, 1000, 1e-3), 2), bound_of(5, 5, 10, 10, 0.05)
    (0.77, 0.0)
    """
    if often == 0:
        return 0.0
    low = float(betaincinv(often, n - often + 1, alpha / 2))
    high = 1.0 if seldom >= m else float(betaincinv(seldom + 1, m - seldom, 1 - alpha / 2))
    return max(math.log(low / high), 0.0) if low > 0 and high > 0 else 0.0


def law_p_value(letters: Sequence[int], law: Sequence[float]) -> float:
    """Return the p-value of letters against the distribution that the integers state: exact, Bonferroni over letters.

    >>> law_p_value([0, 1] * 200, [0.5, 0.5]) > 0.5, law_p_value([0] * 400, [0.7, 0.3]) < 1e-9
    (True, True)
    """
    n, smallest = len(letters), 1.0
    if any(not 0 <= letter < len(law) for letter in letters):
        return 0.0
    seen = np.bincount(np.array(letters, dtype=np.int64), minlength=len(law))
    for count, chance in zip(seen.tolist(), law, strict=True):
        if chance <= 0 or chance >= 1:
            tail = 0.0 if (count > 0 if chance <= 0 else count < n) else 1.0
        else:
            above = 1.0 if count == 0 else float(bdtrc(count - 1, n, chance))
            tail = 2 * min(float(bdtr(count, n, chance)), above)
        smallest = min(smallest, tail)
    return min(1.0, smallest * len(law))


def repeats_p_value(transcripts: Sequence[Transcript], collision: float) -> float:
    """Return the p-value of runs that say the same: fresh noise repeats itself with a known, small probability.

    The transcripts about one input are cut into two, four and eight runs. Two of n honest letters each agree with
    probability ``collision`` to the n-th at most, ``collision`` being a bound for one.

    >>> repeats_p_value([(b"1",)] * 400, 0.6) < 1e-20, repeats_p_value([(bytes([k % 251]),) for k in range(400)], 0.6)
    (True, 1.0)
    """
    smallest = 1.0
    for runs in (2, 4, 8):
        length = len(transcripts) // runs
        if not length:
            continue
        cut = [tuple(transcripts[k * length : (k + 1) * length]) for k in range(runs)]
        if len(set(cut)) < runs:
            smallest = min(smallest, math.comb(runs, 2) * collision**length)
    return min(1.0, 3 * smallest)


def features_of(
    first: Sequence[Transcript], second: Sequence[Transcript], read: Callable[[Transcript], Hashable] | None = None
) -> list[Feature]:
    """Return everything to be looked at: what is told, lengths, whole messages, repetitions, bytes and bits."""
    whole: list[tuple[str, Callable[[Transcript], Hashable]]] = [
        ("lengths", lambda said: tuple(map(len, said))),
        ("all bytes", lambda said: said),
        ("which messages are equal", lambda said: tuple(said.index(each) for each in said)),
        ("sum of all bits", lambda said: sum(int.from_bytes(each, "big").bit_count() for each in said)),
    ]
    if read is not None:
        whole.insert(0, ("what was told", read))
    parts = max(map(len, (*first, *second)), default=0)
    if parts > 1:
        whole += [(f"message {k + 1}", partial(_message, k)) for k in range(parts)]
    found = [_coded(name, list(map(of, first)), list(map(of, second))) for name, of in whole]
    rows = _rows(first, second)
    for k in range(rows[0].shape[1]):
        columns = [each[:, k].astype(np.int64) for each in rows]
        if columns[0].size and (np.ptp(columns[0]) or np.ptp(columns[1]) or columns[0][0] != columns[1][0]):
            found.append(Feature(f"byte {k + 1}", *columns))
            found += [Feature(f"bit {b + 1} of byte {k + 1}", *(each >> b & 1 for each in columns)) for b in range(8)]
    return found


def _message(k: int, said: Transcript) -> Hashable:
    """Return one message of a transcript, or none."""
    return said[k : k + 1]


def _coded(name: str, first: list[Any], second: list[Any]) -> Feature:
    """Give each value of a feature a number."""
    codes: dict[Any, int] = {}
    for value in (*first, *second):
        codes.setdefault(value, len(codes))
    return Feature(name, *(np.array([codes[value] for value in each], dtype=np.int64) for each in (first, second)))


def _rows(first: Sequence[Transcript], second: Sequence[Transcript]) -> list[npt.NDArray[np.uint8]]:
    """Return the bytes of transcripts as rows of one length: the beginning and the end of each."""
    joined = [[b"".join(said) for said in each] for each in (first, second)]
    longest = max((len(said) for each in joined for said in each), default=0)
    if longest <= MOST_BYTES:
        return [np.array([list(said.ljust(longest, b"\0")) for said in each], dtype=np.uint8) for each in joined]
    half = MOST_BYTES // 2
    cut = [[list(said[:half].ljust(half, b"\0") + said[-half:].rjust(half, b"\0")) for said in each] for each in joined]
    return [np.array(each, dtype=np.uint8) for each in cut]


def _proposed(more: Ints, fewer: Ints, errors: float) -> frozenset[int]:
    """Return the values, by falling likelihood ratio, that together promise the largest bound."""
    values, where = np.unique(np.concatenate([more, fewer]), return_inverse=True)
    if len(values) < 2:
        return frozenset()
    a = np.bincount(where[: len(more)], minlength=len(values)).astype(float)
    b = np.bincount(where[len(more) :], minlength=len(values)).astype(float)
    order = np.argsort(-(a + 0.5) / (b + 0.5), kind="stable")
    upto_a, upto_b = np.cumsum(a[order])[:-1], np.cumsum(b[order])[:-1]
    gain = _promised(upto_a, upto_b, len(more), len(fewer), errors)
    return frozenset(values[order[: int(np.argmax(gain)) + 1]].tolist())


def _promised(often: Any, seldom: Any, n: int, m: int, errors: float) -> Any:
    """Return what events promise to show to those who judge: the log of a ratio, less so many standard errors."""
    ratio = np.log((often + 0.5) / (n + 1)) - np.log((seldom + 0.5) / (m + 1))
    return ratio - errors * np.sqrt((1 / (often + 0.5) + 1 / (seldom + 0.5)) / JUDGED)


def _count(seen: Ints, values: frozenset[int]) -> int:
    """Count how often an event came."""
    return int(np.isin(seen, np.array(sorted(values)), kind="sort").sum()) if values else 0


def noise_of(law: Sequence[Sequence[float]]) -> float:
    """Return the chance that two honest letters about one input agree, at most."""
    table: Floats = np.array(law, dtype=np.float64)
    return float(np.square(table).sum(axis=1).max())


def shown_by(more: Floats, fewer: Floats, trials: int = 500) -> float:
    """Return about what so many trials show of two distributions: by this the most telling neighbours are chosen.

    >>> law = np.array([0.731, 0.269])
    >>> round(shown_by(law, law[::-1]), 2)
    0.78
    """
    order = np.argsort(-more / np.maximum(fewer, 1e-300), kind="stable")
    often, seldom = (np.cumsum(each[order])[:-1] * trials for each in (more, fewer))
    return float(np.max(_promised(often, seldom, trials, trials, 3.0), initial=-np.inf))
