"""Rounded records are noticed, continuous ones are left alone."""

import numpy as np
import pytest

from sottovoce.client.quantile.ties import SAMPLE, look_rounded
from sottovoce.client.record import Records
from sottovoce.sim.randomness import dice


def normal(n: int, seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return dice(seed).generator().standard_normal(n)


@pytest.mark.parametrize("n", [200, SAMPLE, 50_000])
def test_continuous_records_do_not_look_rounded(n: int) -> None:
    assert not look_rounded(Records(normal(n)))
    assert not look_rounded(Records(normal(n, 2)))


@pytest.mark.parametrize("n", [200, SAMPLE, 50_000])
def test_records_to_one_digit_do(n: int) -> None:
    assert look_rounded(Records(np.round(normal(n), 1)))


def test_a_sorted_file_looks_the_same() -> None:
    assert look_rounded(Records(np.sort(np.round(normal(50_000), 1))))
    assert not look_rounded(Records(np.sort(normal(50_000))))


def test_records_that_are_partly_rounded_are_noticed_when_these_weigh() -> None:
    assert look_rounded(Records(np.concatenate([np.round(normal(5000), 1), normal(5000, 2)])))
    assert not look_rounded(Records(np.concatenate([np.round(normal(50), 1), normal(5000, 2)])))


def test_a_handful_of_records_says_nothing() -> None:
    assert not look_rounded(Records(np.zeros(99)))
    assert look_rounded(Records(np.zeros(100)))
