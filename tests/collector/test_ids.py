"""An index of ids says of each what it said before, in memory or on disk, and never takes a known one for new."""

import numpy as np
import pytest

from sottovoce.collector.ids import IdIndex
from sottovoce.sim import dice


def ids(seed: int, n: int) -> list[bytes]:
    whole = dice(seed).words(2 * n).tobytes()
    return [whole[16 * k : 16 * k + 16] for k in range(n)]


@pytest.mark.parametrize("recent", [16, 64, 1000, 5000])
def test_every_id_is_known_from_its_first_answer_on(recent: int) -> None:
    index = IdIndex(3000, recent)
    known: dict[bytes, int] = {}
    order = dice(2).words(6000)
    some = ids(1, 3000)
    for word in order.tolist():
        id, said = some[word % 3000], word >> 40
        assert index.said(id, said) == known.get(id)
        known.setdefault(id, said)
    assert len(index) == len(known)


def test_ids_that_share_their_first_bytes_are_told_apart() -> None:
    index = IdIndex(100, recent=50)
    some = [bytes(8) + id[8:] for id in ids(3, 2000)]
    assert all(index.said(id, k) is None for k, id in enumerate(some))
    assert [index.said(id, 0) for id in some] == list(range(2000))


def test_the_filter_lets_nearly_all_new_ids_pass() -> None:
    index = IdIndex(20_000, recent=1000)
    for id in ids(4, 20_000):
        index.said(id, 1)
    seen = [index._may_have(id) for id in ids(5, 20_000)]
    assert sum(seen) <= 60  # .056 % expected, 11 of 20,000; above 60 with a probability below 1e-20
    some = ids(4, 19_000)
    assert all(index._may_have(id) for id in some)


def test_places_are_the_same_one_by_one_and_many_at_a_time() -> None:
    index = IdIndex(100, recent=4)
    some = ids(6, 4)
    for id in some:
        index.said(id, 0)
    found = bytearray(len(index._bytes))
    for id in some:
        for place in index._places(id):
            found[place >> 3] |= 1 << (place & 7)
    assert found == index._bytes


def test_ids_that_were_taken_before_are_filled_in_at_once() -> None:
    some = ids(7, 2500)
    index = IdIndex(100, recent=1000)
    index.fill(b"".join(some[:2400]), np.arange(2400, dtype=np.uint64))
    index.fill(b"".join(some[2400:]), np.arange(2400, 2500, dtype=np.uint64))
    assert len(index) == 2500
    assert [index.said(id, 0) for id in some] == list(range(2500))
    assert index.known(ids(8, 1)[0]) is None


def test_the_filter_grows_with_more_ids_than_were_expected() -> None:
    index = IdIndex(10, recent=100)
    some = ids(9, 20_000)
    index.fill(b"".join(some), np.zeros(20_000, np.uint64))
    assert sum(index._may_have(id) for id in ids(10, 20_000)) <= 300  # at 12 bits an id .7 % of 20,000 are expected
    assert all(index.known(id) == 0 for id in some[::100])
