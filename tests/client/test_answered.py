"""Rows that have answered are found again by content and by identity, and by chance they are not."""

import math
import threading

import numpy as np
import pytest

from sottovoce.client import answered
from sottovoce.client.answered import AnsweredRows, shared_columns
from sottovoce.client.digest_index import DigestIndex
from sottovoce.client.fingerprint import Column, _digests, digests_of, mark, row_words, words_of
from sottovoce.core.errors import BadInput
from sottovoce.core.kernels import COMPILED
from sottovoce.sim import dice

G = dice(5).generator()
SMOOTH = G.normal(size=9_000)
SCORES = G.integers(0, 11, 9_000).astype(float)
COINS = G.integers(0, 2, 9_000).astype(float)


def look(memory: AnsweredRows, *columns: Column) -> tuple[float, ...]:
    return memory.look(columns, mark(columns))


def book(memory: AnsweredRows, *columns: Column, epsilon: float = 1.0) -> tuple[float, ...]:
    return memory.book(columns, mark(columns), [epsilon] * len(columns))


@pytest.mark.parametrize("column", [SMOOTH, SCORES, COINS], ids=["smooth", "scores", "coins"])
def test_the_same_column_adds_up_wherever_it_lies(column: np.ndarray) -> None:
    memory = AnsweredRows()
    assert book(memory, column) == (1.0,)
    assert book(memory, column, epsilon=2.0) == (3.0,)
    assert look(memory, np.array(column.tolist())) == (3.0,)


@pytest.mark.parametrize("column", [SMOOTH, SCORES], ids=["smooth", "scores"])
def test_another_order_is_the_same_column(column: np.ndarray) -> None:
    memory = AnsweredRows()
    book(memory, column)
    assert look(memory, column[::-1].copy()) == look(memory, G.permutation(column)) == (1.0,)


def test_a_part_of_a_column_and_a_column_around_it_are_found() -> None:
    memory = AnsweredRows()
    book(memory, SMOOTH)
    assert look(memory, SMOOTH[4_000:4_400].copy()) == (1.0,)
    assert look(memory, np.concatenate([G.normal(size=5_000), SMOOTH])) == (1.0,)
    assert look(memory, SMOOTH[:20].copy(), G.normal(size=300)) == (1.0, 0.0)


def test_folds_cost_the_dearest_row() -> None:
    memory, folds = AnsweredRows(), np.arange(9_000) % 5
    for fold in range(5):
        total = book(memory, SMOOTH[folds != fold])
    assert total == (4.0,)  # rows of the first fold: four times; of the last: four in all too
    assert look(memory, SMOOTH) == (4.0,)


def test_a_large_study_is_found_by_a_part_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sottovoce.client.fingerprint.KEPT", 1 << 10)
    memory, large = AnsweredRows(), G.normal(size=120_000)
    book(memory, large)
    assert len(memory.rows) < 3_000
    assert look(memory, large[:60_000].copy()) == (1.0,)
    assert look(memory, G.normal(size=60_000)) == (0.0,)


@pytest.mark.parametrize(
    "fresh",
    [
        lambda g: g.normal(size=3_000),
        lambda g: g.integers(0, 11, 3_000).astype(float),
        lambda g: g.integers(0, 2, 3_000).astype(float),
        lambda g: np.zeros(3_000),
        lambda g: np.round(g.lognormal(10, 0.6, 3_000)),  # whole amounts, many of them unique
        lambda g: np.round(g.lognormal(3, 0.6, 3_000), 2),  # prices
        lambda g: g.poisson(3, 3_000).astype(float),
        lambda g: np.where(g.random(3_000) < 0.6, 0.0, g.exponential(size=3_000)),
        lambda g: np.sort(g.integers(0, 2, 3_000)).astype(float),
    ],
)
def test_other_people_are_not_taken_for_the_same(fresh: object) -> None:
    # 60 groups a population; a false alarm in any of 9 x 59 looks would need a chance of 1e-9 a pair
    memory, g = AnsweredRows(), dice(6).generator()
    assert callable(fresh)
    for _ in range(60):
        column = fresh(g)
        if column.any():
            assert look(memory, column) == (0.0,)
        book(memory, column)


def test_two_sites_of_a_study_with_the_same_rows_are_found() -> None:
    g = dice(7).generator()
    mixed = np.concatenate([SMOOTH[:2_000], g.normal(size=3_000)])
    for pair in ([SMOOTH, SMOOTH[::-1].copy()], [SCORES, SCORES.copy()], [COINS, COINS.copy()], [SMOOTH, mixed]):
        assert shared_columns(pair, mark(pair)) == (0, 1)
    many = [g.normal(size=30) for _ in range(400)]
    assert shared_columns(many, mark(many)) is None
    many[300] = many[17][::-1].copy()
    assert shared_columns(many, mark(many)) == (17, 300)


def test_two_sites_that_are_alike_are_not_the_same() -> None:
    g = dice(8).generator()
    for _ in range(200):
        for pair in (
            [g.integers(0, 2, 300).astype(float), g.integers(0, 2, 300).astype(float)],
            [np.zeros(300), np.zeros(300)],
            [np.round(g.normal(100, 15, 300)), np.round(g.normal(100, 15, 300))],
            [np.sort(g.integers(0, 2, 300).astype(float)), np.sort(g.integers(0, 2, 300).astype(float))],
            [np.array([0.0, 1.0]), np.array([0.0, 1.0])],
        ):
            assert shared_columns(pair, mark(pair)) is None


def test_the_same_memory_needs_no_distinct_values() -> None:
    memory, zeros = AnsweredRows(), np.zeros(500)
    book(memory, zeros)
    assert look(memory, zeros) == (1.0,)
    assert look(memory, np.zeros(500)) == (0.0,)
    zeros[:] = G.normal(size=500)
    assert look(memory, zeros) == (0.0,)  # the room is the same, the records are not


def test_memory_that_is_given_back_is_not_taken_for_what_lay_there() -> None:
    memory = AnsweredRows()
    column = np.zeros(500)
    book(memory, column)
    address = column.__array_interface__["data"][0]
    del column
    held = [home() for homes in memory.homes.values() for home, _ in homes]
    assert address in memory.homes
    assert held == [None]


def test_the_limit_refuses_and_books_nothing() -> None:
    memory = AnsweredRows(limit=2.5)
    book(memory, SMOOTH, epsilon=2.0)
    with pytest.raises(BadInput, match=r"epsilon 3 in all, of which 2 is spent already, and the limit is 2\.5"):
        book(memory, SMOOTH)
    assert book(memory, SMOOTH, epsilon=0.5) == (2.5,)
    with pytest.raises(BadInput, match="epsilon inf in all, and the limit"):
        book(memory, SCORES, epsilon=math.inf)


def test_threads_cannot_pass_the_limit_together() -> None:
    memory, refused = AnsweredRows(limit=3.0), []

    def ask() -> None:
        try:
            book(memory, SMOOTH)
        except BadInput:
            refused.append(1)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(refused), sum(memory.costs)) == (5, 3.0)


def test_many_studies_are_kept_in_bounded_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answered, "MOST", 1 << 12)
    memory, g = AnsweredRows(), dice(9).generator()
    first = g.normal(size=1_000)
    book(memory, first)
    for _ in range(60):
        book(memory, g.normal(size=1_000))
    assert len(memory.rows) < (1 << 12) + 17_000
    assert look(memory, first) == (1.0,)
    assert look(memory, np.concatenate([first, g.normal(size=500)])) == (1.0,)


def test_no_value_is_kept() -> None:
    memory, column = AnsweredRows(), np.sqrt(np.arange(1.0, 3_001.0))
    book(memory, column)
    kept = np.concatenate([memory.rows.runs[0].digests, mark([column]).together, mark([column]).ordered])
    assert not np.isin(words_of(column), kept).any()
    assert not np.isin(np.arange(1, 3_001, dtype=np.uint64), kept).any()


def test_rows_are_told_apart_by_any_column_whatever_their_bounds() -> None:
    features = np.round(G.uniform(0, 24, (500, 2)))
    response = np.round(G.normal(size=500))
    one = row_words(features, response)
    scaled = (features - 12.0) / 12.0 * 12.0 + 12.0
    assert (row_words(scaled, response) == one).all()
    other = features.copy()
    other[3, 1] += 1
    assert np.flatnonzero(row_words(other, response) != one).tolist() == [3]
    assert (row_words(features, response + 1) != one).all()


@pytest.mark.skipif(not COMPILED, reason="there is one way without the compiler")
def test_one_compiled_pass_gives_the_digests_of_the_passes_of_numpy() -> None:
    draw = dice(61).generator()
    piece = np.round(draw.normal(size=3_000), 2)
    piece[::7] = -0.0
    starts, limit = np.array([0, 0, 1_000, 1_001, 2_999, 3_000, 3_000]), np.uint64(1 << 62)
    for found, expected in zip(_digests(piece, starts, limit), digests_of(piece, starts, limit), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert 0 < len(found) < len(piece)


def test_an_index_finds_every_owner_of_a_digest_once_however_many_there_are() -> None:
    draw = dice(62).generator()
    index, owners = DigestIndex(), {}
    for owner in range(40):
        digests = np.sort(draw.integers(0, 3_000, int(draw.integers(1, 200)), dtype=np.uint64))
        owners[owner] = set(digests.tolist())
        index.add(digests, np.full(len(digests), owner))
    sought = np.arange(0, 4_000, 3, dtype=np.uint64)
    expected = {(at, owner) for at, one in enumerate(sought.tolist()) for owner in owners if one in owners[owner]}
    places, found = index.find(sought)
    pairs = list(zip(places.tolist(), found.tolist(), strict=True))
    assert set(pairs) == expected
    assert len(pairs) == len(expected)
    assert len(index.runs) <= 12
    limit = index.thin(100)
    assert len(index) <= 100
    assert set(index.find(sought)[0].tolist()) == {at for at, _ in expected if sought[at] < limit}
