"""One row a person: exactly one, each equally likely, decided by the words alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.client.reading.frames import one_row_a_person
from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(0, 2**32))
def test_every_person_keeps_exactly_one_row(persons: list[int], seed: int) -> None:
    codes = np.array(persons, dtype=np.int64)
    rows = one_row_a_person(codes, dice(seed).words)
    assert sorted(codes[rows].tolist()) == sorted(set(persons))
    assert rows.tolist() == sorted(rows.tolist())


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**64 - 1)), min_size=1, max_size=30, unique_by=lambda p: p[1])
)
def test_the_smallest_word_wins(pairs: list[tuple[int, int]]) -> None:
    words = np.array([word for _, word in pairs], dtype=np.uint64)
    rows = one_row_a_person(np.array([person for person, _ in pairs], dtype=np.int64), lambda n: words)
    best = {person: min(word for who, word in pairs if who == person) for person, _ in pairs}
    assert {pairs[row] for row in rows} == set(best.items())


def test_each_row_is_equally_likely() -> None:
    """Chi-square with 2 degrees of freedom, whose tail is exp(-x / 2): false alarms at rate 1e-6."""
    people = 30_000
    rows = one_row_a_person(np.tile(np.arange(people), 3), dice(20260).words)
    counts = np.bincount(rows // people, minlength=3)
    assert counts.sum() == people
    assert ((counts - people / 3) ** 2 / (people / 3)).sum() < -2 * np.log(1e-6)


def test_dice_are_required_and_checked() -> None:
    persons = np.zeros(3, dtype=np.int64)
    with pytest.raises(BadInput, match="person is given without dice"):
        one_row_a_person(persons, None)
    with pytest.raises(TypeError, match="as many uint64 words"):
        one_row_a_person(persons, lambda n: np.zeros(n + 1, dtype=np.uint64))
    with pytest.raises(TypeError, match="as many uint64 words"):
        one_row_a_person(persons, lambda n: np.zeros(n))  # type: ignore[arg-type,return-value]
