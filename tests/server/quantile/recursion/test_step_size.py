"""Step rules have the printed sizes."""

import pytest

from sottovoce.server.quantile.recursion.step_size import constant, decay, refresh_due, step_length


@pytest.mark.parametrize(("number", "lasts"), [(1, 1), (500, 5), (10_000, 13)])
def test_decay_is_the_printed_rule(number: int, lasts: int) -> None:
    expected = 20 * 0.5 / (number**0.51 + 100) / lasts * 3.0
    assert step_length(decay([0.25, 0.75], unit=3.0), number, lasts, 1.0) == pytest.approx(expected, rel=1e-14)


def test_constant_is_free_of_round_and_length() -> None:
    pace = constant(2500, slope=0.4, kappa=0.5)
    assert step_length(pace, 1, 1, 0.4) == step_length(pace, 999, 7, 0.4) == pytest.approx(0.5 / (0.4 * 50), rel=1e-14)


def test_refreshes_double() -> None:
    pace = constant(100, 1.0)
    assert [m for m in range(1, 300) if refresh_due(pace, m)] == [32, 64, 128, 256]
    assert not any(refresh_due(decay([1.0]), m) for m in range(1, 300))
