"""What a site is told of a regression goes to plain values and back, and costs what its integers say."""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.server.regression.plans import WAYS, plan_of

from sottovoce.core import codec
from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.blocks import RegressionChannel, open_channel, tables_of
from sottovoce.protocol.regression.box import box
from sottovoce.protocol.regression.carried import (
    CarriedRun,
    carried,
    channel_of,
    most_people,
    packed,
    run_of,
    run_to_bytes,
    unpacked,
    whose,
)
from sottovoce.protocol.regression.dithered.state import init
from sottovoce.protocol.wire import LARGEST
from sottovoce.server.regression.design import parse

CHANNELS: dict[str, Callable[[], RegressionChannel]] = {
    "lp": lambda: parse("lp", 0.75, 2, 1.0).channel,
    "cq": lambda: parse("cq:3,2", 0.5, 2, 2.0).channel,
    "box": lambda: parse("box", 0.5, 2, 4.0).channel,
    "levels": lambda: box((0.25, 0.75), 2, 4.0, slopes=1, cells=4, width=1, alone=0.3),
}


def sent(channel: RegressionChannel) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(carried(channel)))


@pytest.mark.parametrize("make", CHANNELS.values(), ids=CHANNELS)
def test_a_channel_arrives_with_every_integer(make: Callable[[], RegressionChannel]) -> None:
    channel = make()
    again = channel_of(sent(channel), channel.epsilon)
    assert (again.ratio, again.epsilon, again.letters) == (channel.ratio, channel.epsilon, channel.letters)
    for one, other in zip(tables_of(channel), tables_of(again), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("make", CHANNELS.values(), ids=CHANNELS)
def test_a_channel_that_costs_more_than_the_study_says_is_refused(make: Callable[[], RegressionChannel]) -> None:
    channel = make()
    with pytest.raises(BadInput, match="more than its epsilon"):
        channel_of(sent(channel), math.nextafter(channel.epsilon, 0))


WRONG: dict[str, Callable[[list[Any]], Any]] = {
    "no blocks": lambda plain: [plain[0], plain[1], []],
    "a level beyond 1": lambda plain: [[1.5], plain[1], plain[2]],
    "another number of slopes": lambda plain: [plain[0], plain[1] + 1, plain[2]],
    "gains that are no numbers": lambda plain: [
        plain[0], plain[1], [[b[0], b[1], [[math.nan] * len(b[2][0])], *b[3:]] for b in plain[2]]
    ],
    "other integers": lambda plain: [
        plain[0], plain[1], [[*b[:3], [*b[3][:-1], b[3][-1] + 1], *b[4:]] for b in plain[2]]
    ],
    "text": lambda plain: "box",
    "nothing": lambda plain: None,
}  # fmt: skip


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_what_is_no_channel_is_refused(change: Callable[[list[Any]], Any]) -> None:
    with pytest.raises(BadInput):
        channel_of(change(sent(CHANNELS["box"]())), 4.0)


def test_exact_scores_are_no_channel() -> None:
    with pytest.raises(BadInput, match="a channel that does not exist"):
        channel_of(sent(open_channel(0.5, 2)), math.inf)


@pytest.fixture(scope="module")
def run() -> tuple[Any, Any, CarriedRun]:
    plan = plan_of(**WAYS["dithered"])
    [study] = plan.studies(plan.guess(None))
    data = run_to_bytes(study, init(study))  # type: ignore[arg-type]
    return study.channel, data, codec.from_bytes(data, CarriedRun)


def test_where_a_recursion_stands_arrives_bit_for_bit(run: tuple[Any, Any, CarriedRun]) -> None:
    channel, data, _ = run
    assert run_to_bytes(*run_of(data, channel)) == data


def changed(**state: Any) -> Callable[[CarriedRun], Any]:
    return lambda run: run._replace(state=run.state._replace(**state))


BAD: dict[str, Callable[[CarriedRun], Any]] = {
    "a look that never comes": changed(until=0),
    "people before the beginning": changed(people=-1),
    "a look beyond all numbers": changed(until=1 << 60),
    "a point too short": changed(point=np.zeros((1, 1))),
    "a point of no axes": changed(point=np.zeros(())),
    "a point that is no number": changed(point=np.full((1, 3), np.nan)),
    "other sums": lambda run: run._replace(state=run.state._replace(sums=run.state.sums._replace(counts=np.zeros(3)))),
    "no guess": lambda run: run._replace(terms=run.terms._replace(density=np.zeros(1))),
    "an infinite guess": lambda run: run._replace(terms=run.terms._replace(size=math.inf)),
    "other moments": lambda run: run._replace(terms=run.terms._replace(moments=np.eye(2))),
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD)
def test_what_compiled_code_may_not_see_is_refused(
    change: Callable[[CarriedRun], Any], run: tuple[Any, Any, CarriedRun]
) -> None:
    channel, data, plain = run
    with pytest.raises(BadInput):
        run_of(codec.to_bytes(change(plain)), channel)
    with pytest.raises(BadInput, match="does not say where"):
        run_of(data[:-1], channel)


@pytest.mark.parametrize("letters", [2, 256, 257, 65_536, 65_537, 1 << 32])
def test_letters_fit_their_bytes_and_a_turn_its_message(letters: int) -> None:
    said = np.array([0, letters - 1, 1], dtype=np.int64)
    np.testing.assert_array_equal(unpacked(packed(said, letters), letters), said)
    assert len(packed(said, letters)) // 3 * most_people(letters) <= LARGEST // 2
    if letters > 256:
        with pytest.raises(BadInput, match="not whole"):
            unpacked(b"\0\0\0", letters)


def test_everybody_has_one_channel() -> None:
    words = np.arange(3_000, dtype=np.uint64) << np.uint64(50)
    assert set(whose(words, 3).tolist()) == {0, 1, 2}
    assert not whose(words, 1).any()
