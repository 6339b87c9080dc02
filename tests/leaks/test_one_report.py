"""Each record answers at most once, whatever is asked, retried or refused."""

import inspect
import math
import os
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sottovoce as sv
from sottovoce.client.order import Key, bits_for, order_key, place
from sottovoce.client.quantile import encode
from sottovoce.client.quantile import site as site_module
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.local.quantile import source as source_module
from sottovoce.protocol.messages import Query, Study, to_bytes
from sottovoce.sim.randomness import dice

PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"


@settings(deadline=None, max_examples=10 if PLAIN else 100)
@given(st.integers(1, 200), st.integers(0, 2**32))
def test_places_are_a_permutation(n: int, seed: int) -> None:
    key = order_key(dice(seed))
    assert {int(place(i, n, bits_for(n), key)) for i in range(n)} == set(range(n))


@settings(deadline=None, max_examples=10 if PLAIN else 100)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(0, 2**32), st.booleans())
def test_slices_together_count_every_record_once(slices: list[int], seed: int, letters: bool) -> None:
    # without noise, the ones over disjoint rounds at one point are the records above it: none twice, none left out
    n = sum(slices) + 1
    point = 0.37 * n
    site = Site(Records(np.arange(float(n))), Study(0.5, math.inf), dice(seed))
    ones = 0
    for number, count in enumerate([*slices, 1], start=1):
        query = Query(number, (point,), (count,))
        ones += sum(site.answer(query).letters) if letters else site.tally(query).ones[0]
    assert ones == np.count_nonzero(np.arange(n) > point)
    assert site.spent == n
    with pytest.raises(BadInput):
        site.answer(Query(99, (point,), (1,)))


def test_every_point_of_a_query_takes_other_records() -> None:
    values = np.arange(60.0)
    site = Site(Records(values), Study(0.5, math.inf), dice(3))
    ones = site.tally(Query(1, (29.5,) * 6, (10,) * 6)).ones
    assert sum(ones) == 30
    assert len(set(ones)) > 1


def bytes_of(site: Site, query: Query) -> bytes:
    return to_bytes(site.answer(query))


def test_a_retry_sends_the_same_bytes() -> None:
    site = Site(Records(np.arange(500.0)), Study(0.5, 0.5))  # the system's dice: fresh noise would show
    query = Query(1, (250.0,), (400,))
    sent = bytes_of(site, query)
    assert all(bytes_of(site, query) == sent for _ in range(5))
    assert site.spent == 400


@pytest.mark.parametrize(
    "changed",
    [
        Query(2, (251.0,), (100,)),
        Query(2, (250.0,), (99,)),
        Query(2, (250.0,), (100,), 0.1),
        Query(1, (250.0,), (100,)),
    ],
)
def test_a_changed_query_for_a_past_round_is_refused_and_changes_nothing(changed: Query) -> None:
    site, twin = (Site(Records(np.arange(500.0)), Study(0.5, 1.0), dice(8)) for _ in range(2))
    for each in (site, twin):
        each.answer(Query(1, (200.0,), (100,)))
        each.answer(Query(2, (250.0,), (100,)))
    with pytest.raises(BadInput, match="already answered"):
        site.answer(changed)
    with pytest.raises(BadInput, match="already answered"):
        site.tally(changed)
    assert site.spent == twin.spent == 200
    for query in (Query(2, (250.0,), (100,)), Query(3, (260.0,), (300,))):
        assert bytes_of(site, query) == bytes_of(twin, query)


def test_overspending_is_refused_before_anything_is_spent() -> None:
    site, twin = (Site(Records(np.arange(100.0)), Study(0.5, 1.0), dice(8)) for _ in range(2))
    with pytest.raises(BadInput, match="only 100 have not answered"):
        site.answer(Query(1, (50.0, 60.0), (60, 41)))
    assert site.spent == 0
    assert bytes_of(site, Query(1, (50.0,), (100,))) == bytes_of(twin, Query(1, (50.0,), (100,)))


def test_a_site_that_breaks_off_has_spent_nothing_and_says_one_thing_only(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(Records(np.arange(100.0)), Study(0.5, math.inf), dice(8))

    def broken(*args: Any) -> float:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(site_module, "answer", broken)
        with pytest.raises(KeyboardInterrupt):
            site.tally(Query(1, (49.5,), (40,)))
    # nothing was said before it was kept, so nothing is spent, and the same records may answer after all
    assert site.spent == 0
    answered = site.tally(Query(1, (49.5,), (40,)))
    assert site.spent == 40
    assert site.tally(Query(1, (49.5,), (40,))) == answered
    assert answered.ones[0] + site.tally(Query(2, (49.5,), (60,))).ones[0] == 50


@pytest.mark.parametrize("method", ["staged", "regression", "self-normalised"])
def test_a_whole_study_asks_each_record_at_most_once(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[tuple[int, int]] = Counter()
    answer, fetch = encode.answer, source_module.fetch

    def note(values: npt.NDArray[np.float64], bits: int, key: Key, start: int, count: int) -> None:
        for i in range(start, start + count):
            asked[values.ctypes.data, int(place(i, len(values), bits, key))] += 1

    def counted(kernel: Any, filled: str) -> Any:
        names = inspect.signature(getattr(kernel, "py_func", kernel))

        def call(*args: Any) -> Any:
            given = names.bind(*args).arguments
            note(given["values"], given["bits"], given["key"], given["start"], len(given[filled]))
            return kernel(*args)

        return call

    monkeypatch.setattr(site_module, "answer", counted(answer, "letters"))
    monkeypatch.setattr(source_module, "fetch", counted(fetch, "fetched"))
    values = {"north": np.tan(np.linspace(-1.4, 1.4, 1200)), "south": np.linspace(-2.0, 5.0, 800)}
    result = sv.federated_quantile(values, 0.5, 3.0, method=method, randomness=sv.sim.dice(5))
    assert set(asked.values()) == {1}
    assert len(asked) == result.reports
    assert result.reports <= 2000
    sizes = Counter(where for where, _ in asked)
    assert min(sizes.values()) <= 800
    assert len(sizes) == 2
