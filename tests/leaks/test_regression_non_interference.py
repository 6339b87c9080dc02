"""A regression's reports say nothing when the die never lets a record speak; at epsilon 1 they do."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.client.door import Door
from sottovoce.client.regression.persons import Persons
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Words
from sottovoce.local.regression.dithered import DitheredRun
from sottovoce.local.regression.pilot import Pilot
from sottovoce.protocol.regression.blocks import COMMON, RegressionChannel, tables_of
from sottovoce.protocol.regression.box import cq
from sottovoce.protocol.regression.dithered.state import DitheredState
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.wire import seal
from sottovoce.server.method import Queries, Replies, converse, opened
from sottovoce.server.regression.design import parse
from sottovoce.server.regression.dithered.method import BY_SHARE, ONE_BY_ONE, BatchRule, DitheredMethod
from sottovoce.server.regression.omega import omega
from sottovoce.sim.randomness import SeededSource, dice

Floats = npt.NDArray[np.float64]
N, P = 400, 2
STUDY, KEY = b"the study's name", b"the public key.."


def population(features: Floats, response: Floats) -> Rows:
    return Rows(np.ascontiguousarray(features), response)


GRID = np.stack([np.linspace(-1, 1, N), np.cos(np.arange(N))], axis=1)
LOW = population(GRID, np.linspace(-1, 1, N))
OTHERS = {
    "other responses": population(GRID, 1e6 + np.exp(np.linspace(0, 9, N))),
    "other covariates": population(-GRID[:, ::-1], np.linspace(-1, 1, N)),
    "all others": population(np.ones((N, P)), np.full(N, -1e9)),
    "turned round": population(GRID[::-1], np.linspace(-1, 1, N)[::-1].copy()),
}


class Quiet:
    """Dice on whose last word of each person no record speaks: it is cut to the faces common to all records."""

    private = False

    def __init__(self, die: SeededSource, channel: RegressionChannel, step_length: int) -> None:
        tables = tables_of(channel)
        common = [int(x) for x in tables.outcomes[:, COMMON] if x] + [int(x) for x in tables.steps[:, 0, -1] if x]
        self._die, self._most, self._stride = die, np.uint64(min(common)), step_length

    def words(self, n: int) -> Words:
        words = self._die.words(n).reshape(-1, self._stride)
        words[:, -1] = (words[:, -1] >> np.uint64(2)) % self._most << np.uint64(2)
        return words.ravel()

    def split(self, n: int) -> list["Quiet"]:
        raise NotImplementedError


CHANNELS: dict[str, Callable[[float], RegressionChannel]] = {
    "cq": lambda epsilon: cq(0.5, P, epsilon, 3, 2),
    "box": lambda epsilon: parse("box", 0.5, P, epsilon).channel,
    "pair": lambda epsilon: parse("lp", 0.75, P, epsilon).channel,
    "two levels": lambda epsilon: parse("auto", (0.25, 0.75), P, epsilon).channel,
}


def study(channel: RegressionChannel) -> DitheredStudy:
    levels, d = len(channel.taus), P + 1
    noise = np.array([omega(channel, level=level) for level in range(levels)])
    moments = np.diag([1.0, 1 / 3, 1 / 3])
    return DitheredStudy(channel, noise, np.full(levels, 0.4), 1.0, np.zeros((levels, d)), moments)


def bytes_of(state: DitheredState) -> bytes:
    """All that the reports of a run have left, down to the bits."""
    parts = [
        state.point,
        *state.sums,
        *(part for one in state.behind for part in one.sums),
        *state.design,
        *state.gain[:2],
    ]
    return b"".join(np.asarray(part).tobytes() for part in parts)


def run(channel: RegressionChannel, rows: Rows, quiet: bool) -> bytes:
    one, step_length = DitheredRun(study(channel)), 2 + max(channel.widest, 1)
    one.ask(rows, Quiet(dice(31), channel, step_length) if quiet else dice(31), shuffle=False)
    assert one.people == N
    return bytes_of(one.state)


def conversation(channel: RegressionChannel, rows: Rows, quiet: bool, batches: BatchRule = ONE_BY_ONE) -> bytes:
    """All queries and reports of a run, message by message."""
    own = dice(32)
    persons = Persons(rows, channel, Quiet(own, channel, 1 + max(channel.widest, 1)) if quiet else own)
    door, method = Door(persons, STUDY), DitheredMethod(study(channel), N, KEY, batches)
    log: list[bytes] = []

    def gather(queries: Queries) -> Replies:
        (message,) = queries.messages
        assert message is not None
        query = seal(STUDY, queries.round, message)
        log.extend((query, door.answer(query)))
        return opened(method, STUDY, queries, log[-1:])

    assert method.outcome(converse(method, gather)).people == N
    assert len(log) == 2 * N if batches == ONE_BY_ONE else 20 < len(log) < N
    return b"".join(log)


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("name", CHANNELS)
def test_a_run_says_nothing_where_no_record_speaks(name: str, other: Rows) -> None:
    channel = CHANNELS[name](1.0)
    assert run(channel, LOW, quiet=True) == run(channel, other, quiet=True)


@pytest.mark.parametrize("batches", [ONE_BY_ONE, BY_SHARE], ids=["one by one", "batches"])
@pytest.mark.parametrize("name", CHANNELS)
def test_messages_say_nothing_where_no_record_speaks(name: str, batches: BatchRule) -> None:
    channel = CHANNELS[name](1.0)
    transcripts = {conversation(channel, rows, quiet=True, batches=batches) for rows in (LOW, *OTHERS.values())}
    assert len(transcripts) == 1


@pytest.mark.parametrize("name", CHANNELS)
def test_the_same_comparison_sees_epsilon_one(name: str) -> None:
    channel = CHANNELS[name](1.0)
    assert run(channel, LOW, quiet=False) == run(channel, LOW, quiet=False)
    runs = {run(channel, rows, quiet=False) for rows in (LOW, *OTHERS.values())}
    assert len(runs) == 1 + len(OTHERS)
    for batches in (ONE_BY_ONE, BY_SHARE):
        one, other = (conversation(channel, rows, False, batches) for rows in (LOW, OTHERS["all others"]))
        assert one != other


@pytest.mark.parametrize("name", ["cq", "box"])
def test_a_budget_next_to_nothing_says_next_to_nothing(name: str) -> None:
    # a record speaks on one face in a million or so: with these dice, none of four hundred does
    channel = CHANNELS[name](1e-6)
    assert channel.epsilon < 1e-6
    assert run(channel, LOW, quiet=False) == run(channel, OTHERS["all others"], quiet=False)


def test_the_search_says_nothing_at_a_budget_next_to_nothing() -> None:
    where, words = np.arange(N, dtype=np.uint64), dice(4).words(3 * N).reshape(N, 3)
    said = {}
    for epsilon in (1e-6, 1.0):
        counts = []
        for rows in (LOW, OTHERS["all others"]):
            pilot = Pilot((0.5,), P, epsilon)
            pilot.take(rows, where, words)
            log = pilot.__getstate__()
            counts.append(b"".join(part.tobytes() for part in (*log["log"], *log["now"])))
        said[epsilon] = counts
    assert said[1e-6][0] == said[1e-6][1]
    assert said[1.0][0] != said[1.0][1]
