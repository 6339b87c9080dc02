"""The fused loop and the messages, one by one, are the same bit for bit on the same dice."""

import math
import os

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.client.regression.lent import lent
from sottovoce.client.regression.randomize_row import randomize_row, show
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Words
from sottovoce.core.kernels import njit
from sottovoce.local.regression.liu_hu import LiuHuRun
from sottovoce.protocol.regression.blocks import FORM, OPEN, RegressionChannel, Tables, open_channel
from sottovoce.protocol.regression.box import box, cq
from sottovoce.protocol.regression.lp import lp_pair
from sottovoce.server.regression.design import parse
from sottovoce.server.regression.liu_hu.step import (
    ChainQuery,
    LiuHuState,
    RegressionChains,
    chains_of,
    init,
    query,
    step,
)
from sottovoce.server.regression.mixing import MixedPart, mixture
from sottovoce.server.regression.omega import covariates
from sottovoce.server.regression.study import LiuHuStudy
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.regression.designs import paper

N = 131
Floats = npt.NDArray[np.float64]

CHANNELS = {
    "cq, one coordinate": cq(0.75, 2, 2.0, q=3, s=1),
    "cq, two": cq(0.5, 2, 2.0, q=2, s=2),
    "cq, all": cq(0.5, 2, 4.0, q=4, s=3),
    "cq, truth": cq(0.5, 2, math.inf, q=3, s=2),
    "box": box((0.75,), 2, 4.0, slopes=2, cells=10, width=4),
    "box, one slope, face alone": box((0.5,), 2, 2.0, slopes=1, cells=6, width=2, alone=0.3),
    "matrix": parse("lp", 0.75, 2, 1.0).channel,
    "open": open_channel(0.75, 2),
    "box, two levels": box((0.25, 0.75), 2, 4.0, slopes=2, cells=10, width=4),
    "open, two levels": open_channel((0.25, 0.75), 2),
    "no slope": cq(0.5, 0, 1.0, q=2, s=1),
}


def study(channel: RegressionChannel, inference: str, limit: float = math.inf) -> LiuHuStudy:
    levels, d = len(channel.taus), channel.p + 1
    start = np.linspace(-0.3, 0.2, levels * d).reshape(levels, d)
    noise = np.tile(np.eye(d), (levels, 1, 1))
    return LiuHuStudy(channel, noise, start, 20.0, limit=limit, inference=inference, groups=4, tree=(2, 3))


def people(p: int) -> Rows:
    return Rows(*paper(p).sample(dice(9).generator(), N, 0.5))


def answer(
    tables: Tables, asked: ChainQuery, features: Floats, response: Floats, who: int, words: Words
) -> int | Floats:
    """Return one person's report to a query: a letter or, without a channel, the exact score (levels, d)."""
    points = asked.points[None]
    if tables.plan[asked.block, FORM] == OPEN:
        _, levels, d = points.shape
        values = np.zeros((levels, d))
        show(tables.score, features, response, who, points, 0, np.zeros(d, dtype=np.int64), values)
        return values
    letter = randomize_row(
        tables.plan, tables.outcomes, tables.steps, tables.score, tables.radius, asked.block, asked.chosen,
        features, response, who, points, 0, words[None], 0,
    )  # fmt: skip
    return int(letter)


def by_messages(one: LiuHuStudy, rows: Rows, seed: int) -> tuple[RegressionChains, LiuHuState]:
    chains = chains_of(one, rows.size)
    state, throws = init(one, chains), dice(seed)
    step_length = 2 + max(one.channel.widest, 1)
    for who in range(rows.size):
        words = throws.words(step_length)
        asked = query(one, chains, state, words[0])
        report = answer(one.tables, asked, rows.features(), rows.response(), who, words)
        state = step(one, chains, state, asked, report)
    return chains, state


def bits(state: LiuHuState) -> list[bytes]:
    arrays = [state.points, state.totals, *(part for memory in state.memories for part in memory[1:])]
    return [np.asarray(array).tobytes() for array in arrays]


@pytest.mark.parametrize("inference", ["self-normalised", "groups", "higrad"])
@pytest.mark.parametrize("name", CHANNELS)
def test_messages_and_loop_agree_bit_for_bit(name: str, inference: str) -> None:
    one = study(CHANNELS[name], inference)
    rows = people(one.channel.p)
    _, slow = by_messages(one, rows, seed=21)
    run = LiuHuRun(one, N)
    run.ask(rows, dice(21), shuffle=False)
    assert run.people == slow.people == N
    assert bits(run.state) == bits(slow)
    assert (slow.points != one.start).any(axis=(1, 2)).all()


def test_the_limit_binds_in_both() -> None:
    one = study(CHANNELS["open"], "self-normalised", limit=0.05)
    _, slow = by_messages(one, people(2), seed=3)
    run = LiuHuRun(one)
    run.ask(people(2), dice(3), shuffle=False)
    assert bits(run.state) == bits(slow)
    assert np.max(abs(slow.points[0] - one.start)) == pytest.approx(0.05)


def test_a_mixture_of_forms_agrees() -> None:
    """A matrix on one slope beside the face alone, the public draw deciding between them."""
    known = covariates(2)
    parts = [MixedPart(lp_pair(0.5, 1.0, 1.0), (1,)), MixedPart(lp_pair(0.5, 1.0, 1.0), (2,))]
    channel = mixture("mixed", (0.5,), 1.0, known, parts, [0.5, 0.5])
    one = study(channel, "groups")
    _, slow = by_messages(one, people(2), seed=4)
    run = LiuHuRun(one)
    run.ask(people(2), dice(4), shuffle=False)
    assert bits(run.state) == bits(slow)


def test_a_lent_array_is_the_array() -> None:
    given = np.arange(6.0).reshape(2, 3)

    @njit()
    def doubled(array: Floats) -> float:
        view = lent(array)
        view[1, 2] *= 2.0
        return float(view.sum())

    assert doubled(given) == 20.0
    assert given[1, 2] == 10.0
    assert os.environ.get("NUMBA_DISABLE_JIT", "0") == "0" or lent(given) is given
