"""An estimate knows its interval."""

import pytest

from sottovoce.server.quantile.estimate import Estimate


@pytest.mark.parametrize(("value", "inside"), [(0.0, True), (2.0, True), (-0.001, False), (2.001, False)])
def test_covers_its_ends_and_nothing_beyond(value: float, inside: bool) -> None:
    assert Estimate(1.0, 0.0, 2.0, 0.95, 10).covers(value) is inside


def test_length() -> None:
    assert Estimate(1.0, 0.5, 2.0, 0.95, 10).length == 1.5
