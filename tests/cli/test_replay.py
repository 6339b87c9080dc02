"""What `sottovoce replay` says of each group: the interval of every level or coefficient, and which end is open."""

from typing import Any

import pytest

from sottovoce.cli.collect import _known


def row(tau: float, interval: list[float | None] | None) -> dict[str, Any]:
    return {"tau": tau, "interval": interval, "estimate": None}


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ([row(0.5, None)], ["no interval yet"]),
        ([row(0.5, [1.5, 1234.5678])], ["1.5 to 1234.57"]),
        ([row(0.9, [3.0, None])], ["3 to open"]),
        ([row(0.5, [124.0, 134.0]), row(0.95, None)], ["tau 0.5: 124 to 134", "tau 0.95: no interval yet"]),
        (
            [{"tau": 0.5, "coefficients": [{"name": "age", "interval": [0, 1]}, {"name": "ward", "interval": None}]}],
            ["age: 0 to 1", "ward: no interval yet"],
        ),
        ([{"tau": 0.5, "coefficients": None, "why": "searching"}], ["no interval yet"]),
    ],
)  # fmt: skip
def test_every_level_and_coefficient_has_its_interval(levels: list[dict[str, Any]], words: list[str]) -> None:
    assert list(_known(levels)) == words
