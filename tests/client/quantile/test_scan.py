"""A query that takes a good part of a large site is answered in the order of memory, by the same records."""

import math
import os
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sottovoce.client.door import Door
from sottovoce.client.order import ROUNDS, Key
from sottovoce.client.quantile import site as module
from sottovoce.client.quantile.encode import count_ones, pick
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats, Words
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.messages import Query, Study, Tally, WalkQuery
from sottovoce.protocol.randomised_response import binary
from sottovoce.protocol.wire import seal, unseal
from sottovoce.sim.randomness import dice

FALSE_ALARM = 1e-6
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
KEY: Key = np.arange(1, ROUNDS + 1, dtype=np.uint32) * np.uint32(0x13C6EF37)
STUDY = b"0123456789abcdef"
QUERIES = [
    Query(1, (100.0, 2000.0), (41, 7)),
    Query(2, (500.0, 900.0, 1500.0), (300, 900, 250)),
    Query(3, (40.0, 1000.0, 2500.0), (1, 0, 1500)),
]
SIZE = sum(sum(query.counts) for query in QUERIES)


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let small sites be scanned too, in several pieces; return the list of rounds in which it happened."""
    seen: list[int] = []
    plain = Site._scan

    def noted(self: Site, query: Query, first: int) -> Any:
        seen.append(query.round)
        return plain(self, query, first)

    monkeypatch.setattr(module, "LARGE", 100)
    monkeypatch.setattr(module, "CHUNK", 700)
    monkeypatch.setattr(Site, "_scan", noted)
    return seen


def site_of(values: Floats | None = None, epsilon: float = 1.0, resolution: float = 0.0, seed: int = 7) -> Site:
    records = Records(np.arange(float(SIZE)) if values is None else values)
    return Site(records, Study(0.5, epsilon, resolution), dice(seed))


def test_without_noise_a_scan_counts_what_the_random_order_counts(
    scans: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned = [site.tally(query) for site in [site_of(epsilon=math.inf)] for query in QUERIES]
    assert scans == [2, 3]
    monkeypatch.setattr(module, "LARGE", SIZE)
    assert scanned == [site.tally(query) for site in [site_of(epsilon=math.inf)] for query in QUERIES]
    assert scans == [2, 3]


def test_each_record_answers_once_over_a_study(scans: list[int]) -> None:
    # without noise, points below all records count the records that answer; a record twice would leave another out
    site = site_of(epsilon=math.inf)
    seen = [site.tally(Query(query.round, (-1.0,) * len(query.counts), query.counts)).ones for query in QUERIES]
    assert seen == [query.counts for query in QUERIES]
    assert (site.spent, scans) == (SIZE, [2, 3])
    for point in (0.5, 1234.5):
        site = site_of(epsilon=math.inf)
        ones = [sum(site.tally(Query(q.round, (point,) * len(q.counts), q.counts)).ones) for q in QUERIES]
        assert sum(ones) == SIZE - math.ceil(point)


@pytest.mark.parametrize("resolution", [0.0, 3.0])
def test_a_scan_is_the_same_through_bytes_and_again(scans: list[int], resolution: float) -> None:
    direct, far = site_of(resolution=resolution), site_of(resolution=resolution)
    door = Door(far, STUDY)
    for query in QUERIES:
        data = seal(STUDY, query.round, query)
        reply = door.answer(data)
        assert unseal(reply, STUDY, [Tally]).message == direct.tally(query)
        assert door.answer(data) == reply
    assert scans == [2, 2, 3, 3]


@pytest.mark.parametrize(("resolution", "throws"), [(0.0, 1), (3.0, 2)])
def test_a_scan_draws_a_throw_a_record_that_answers(
    scans: list[int], monkeypatch: pytest.MonkeyPatch, resolution: float, throws: int
) -> None:
    source, drawn = dice(3), [0]
    draw = source.words

    def counted(n: int) -> Words:
        drawn[0] += n
        return draw(n)

    monkeypatch.setattr(source, "words", counted)
    site = Site(Records(np.arange(float(SIZE))), Study(0.5, 1.0, resolution), source, key=KEY)
    for query in QUERIES:
        site.tally(query)
    assert drawn[0] == throws * SIZE
    assert len(scans) == 2


def test_a_silent_scan_says_nothing_of_the_records(scans: list[int]) -> None:
    ends = np.array([[0.0], [1.0]])
    silent = Channel("silent", ends, ((OUTCOMES // 2, OUTCOMES // 2),) * 2, ends)
    populations = (np.arange(float(SIZE)), np.full(SIZE, -1e9), np.arange(float(SIZE))[::-1].copy())

    def told(values: Floats, channel: Channel) -> list[Tally]:
        site = Site(Records(values), Study(0.5, channel.epsilon), dice(5), channel)
        return [site.tally(query) for query in QUERIES]

    first, second, third = (told(values, silent) for values in populations)
    assert first == second == third
    assert told(populations[0], binary(1.0)) != told(populations[1], binary(1.0))
    assert len(scans) == 10


def test_a_walk_is_never_scanned(scans: list[int]) -> None:
    query = WalkQuery(1, (1000.0,), (SIZE,), 0.5)
    letters = site_of().answer(query).letters
    assert site_of().tally(Query(1, (1000.0,), (SIZE,), 0.5)).ones == (sum(letters),)
    assert scans == []


@pytest.mark.parametrize("resolution", [0.0, 3.0])
def test_compiled_and_plain_scans_agree_bit_for_bit(resolution: float) -> None:
    values, key = np.arange(50.0), dice(1).words(4).view(np.uint32)
    where, words = np.empty(50, dtype=np.uint64), dice(2).words(80 if resolution else 40)
    ends, points, seen = np.array([20, 45], dtype=np.uint64), np.array([10.0, 30.0]), []
    for picking, counting in ((pick, count_ones), (pick, getattr(count_ones, "py_func", count_ones))):
        picked, at, ones = np.empty(51), np.empty(51, dtype=np.uint64), np.zeros(2, dtype=np.int64)
        assert picking(values, 8, key, 0, 5, 45, where, picked, at) == 40
        counting(picked, at, words, 1 << 60, resolution, points, ends, ones)
        seen.append(ones.tolist())
    assert seen[0] == seen[1]


@pytest.mark.skipif(PLAIN, reason="takes minutes when not compiled")
def test_a_sorted_file_answers_like_a_shuffled_one(scans: list[int]) -> None:
    # the sums of a scanned half, two samples of 400 studies: Kolmogorov and Smirnov, false alarms 1e-6 each
    ordered = np.arange(2000.0)
    shuffled = dice(11).generator().permutation(ordered)
    query = Query(1, (600.5, 999.5), (400, 600))
    for epsilon in (1.0, math.inf):
        sums = [
            np.array([site_of(values, epsilon, seed=seed).tally(query).ones for seed in range(base, base + 400)])
            for values, base in ((ordered, 1000), (shuffled, 2000))
        ]
        for place in (0, 1):
            assert stats.ks_2samp(sums[0][:, place], sums[1][:, place]).pvalue > FALSE_ALARM
        # and like a sample without replacement: variance of a hypergeometric count within five standard errors
        if epsilon == math.inf:
            expected = 400 * 0.7 * 0.3 * (2000 - 400) / (2000 - 1)
            assert abs(sums[0][:, 0].var(ddof=1) / expected - 1) < 5 * math.sqrt(2 / 399)
    assert len(scans) == 1600
