"""A confidence sequence through the public call."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice

SOURCE = dice(21).generator()
WAITS = {"north": SOURCE.gamma(2.0, 10.0, 30_000), "south": SOURCE.gamma(2.0, 10.0, 20_000)}
MORE = {"west": SOURCE.gamma(2.0, 10.0, 40_000)}
TRUTH = 16.7835


def sequence(sites: Any = WAITS, seed: int = 1, **options: Any) -> Any:
    return sv.federated_quantile(sites, 0.5, 2.0, method="sequence", randomness=dice(seed), **options)


@pytest.fixture(scope="module")
def first() -> Any:
    return sequence()


def test_every_look_covers_and_the_text_says_so(first: Any) -> None:
    rows = first.trajectory
    assert first.method == "sequence"
    assert np.all((rows["low"] < TRUTH) & (rows["high"] >= TRUTH))
    assert rows["low"][-1] == first.interval.low
    assert len(rows["round"]) >= 20
    assert "at least 95 % at every time, for every distribution" in " ".join(first.summary().split())
    assert first.interval_at(0.8).low >= first.interval.low
    assert first.test(TRUTH).pvalue > 0.05 >= first.test(first.interval.low).pvalue


def test_it_is_stored_and_read_back(first: Any, tmp_path: Path) -> None:
    back = sv.load(first.save(tmp_path / "result.json"))
    assert back.to_dict() == first.to_dict()
    assert {k: v.tolist() for k, v in back.trajectory.items()} == {k: v.tolist() for k, v in first.trajectory.items()}
    assert sequence(MORE, 2, after=back).estimate == sequence(MORE, 2, after=first).estimate


def test_it_is_drawn(first: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert first.plot(tmp_path / "sequence.png").stat().st_size > 20_000


def test_it_stops_early_and_the_rest_stays_unasked() -> None:
    result = sequence(until=4)
    assert result.interval.high - result.interval.low <= 4
    assert result.reports < 25_000
    json.dumps(result.to_dict())


def test_what_is_rounded_stops_where_the_rounded_interval_is_short_enough() -> None:
    counts = SOURCE.poisson(40, 30_000)
    result = sv.federated_quantile([counts], 0.5, 2.0, method="sequence", until=2, randomness=dice(6))
    assert result.interval.high - result.interval.low <= 2
    assert result.interval.low <= 40 <= result.interval.high
    assert result.reports < 30_000


def test_it_goes_on_with_new_records(first: Any) -> None:
    second = sequence(MORE, 3, after=first)
    one, two = first.interval, second.interval
    assert one.low <= two.low < TRUTH < two.high <= one.high
    assert two.high - two.low < one.high - one.low
    assert second.reports <= 40_000 < second.trajectory["reports"][-1]
    assert len(second.trajectory["round"]) > len(first.trajectory["round"])


def test_times_stop_at_a_duration() -> None:
    days = np.datetime64("2024-01-01") + SOURCE.integers(0, 400, 30_000)
    result = sv.federated_quantile([days], 0.5, 3.0, method="sequence", until="60 days", randomness=dice(4))
    assert result.interval.high - result.interval.low <= 60
    assert result.reports < 30_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "staged", "until": 3}, "until and after belong to method 'sequence'"),
        ({"method": "certified", "until": 3}, "until and after belong to method 'sequence'"),
        ({"until": 0}, "until must be positive"),
        ({"until": "soon"}, "until"),
        ({"after": 3}, "after must be an earlier result of method 'sequence'"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        sv.federated_quantile(MORE, 0.5, 2.0, **{"method": "sequence", **options})


def test_an_earlier_result_about_something_else_is_refused(first: Any) -> None:
    with pytest.raises(BadInput, match=r"about the 0\.5 quantile"):
        sv.federated_quantile(MORE, 0.6, 2.0, method="sequence", after=first)
    with pytest.raises(BadInput, match="another unit or resolution"):
        sv.federated_quantile(MORE, 0.5, 2.0, method="sequence", after=first, resolution=1)
    with pytest.raises(BadInput, match="answered for the earlier result"):
        sequence({"north": WAITS["north"]}, after=first)
    with pytest.raises(BadInput, match="nothing needs to be asked"):
        sequence(MORE, after=first, until=100)
    staged = sv.federated_quantile(WAITS, 0.5, 2.0, randomness=dice(5))
    with pytest.raises(BadInput, match="after must be an earlier result of method 'sequence'"):
        sequence(MORE, after=staged)
    with pytest.raises(BadInput, match="after belongs to federated_quantile"):
        sv.quantile_difference(WAITS, MORE, 0.5, 2.0, method="sequence", after=first)
