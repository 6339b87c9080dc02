"""One step: nothing is changed in place, the point moves against the gradient and stays within its limit."""

import numpy as np

from sottovoce.inference.regression import vector_normalised
from sottovoce.protocol.regression.blocks import open_channel
from sottovoce.server.regression.liu_hu.step import chains_of, init, query, step
from sottovoce.server.regression.study import LiuHuStudy

WORD = np.uint64(12345)


def study(inference: str = "self-normalised", limit: float = np.inf) -> LiuHuStudy:
    start = np.array([[0.5, -0.5]])
    return LiuHuStudy(
        open_channel(0.5, 1), np.eye(2)[None], start, 301.0, limit=limit, inference=inference, tree=(2,), groups=2
    )


def test_a_step_goes_against_the_gradient() -> None:
    one = study()
    chains = chains_of(one)
    state = init(one, chains)
    asked = query(one, chains, state, WORD)
    assert asked.points.tolist() == [[0.5, -0.5]]
    assert asked.step == 1.0
    after = step(one, chains, state, asked, np.array([[0.25, -0.75]]))
    assert after.points.tolist() == [[[0.25, 0.25]]]
    assert after.people == 1
    assert vector_normalised.mean(after.memories[0]).tolist() == [0.25, 0.25]
    assert state.points.tolist() == [[[0.5, -0.5]]]
    assert state.memories[0].n == 0
    assert not state.memories[0].outer.any()


def test_the_point_is_projected() -> None:
    one = study(limit=0.5)
    chains = chains_of(one)
    state = init(one, chains)
    after = step(one, chains, state, query(one, chains, state, WORD), np.array([[9.0, -9.0]]))
    assert after.points.tolist() == [[[0.0, 0.0]]]


def test_groups_do_not_touch_each_other() -> None:
    one = study("groups")
    chains = chains_of(one)
    state = init(one, chains)
    for size in (0.25, 0.5):
        state = step(one, chains, state, query(one, chains, state, WORD), np.full((1, 2), size))
    assert state.points.tolist() == [[[0.25, -0.75]], [[0.0, -1.0]]]
    assert state.totals.tolist() == [[[-0.25, -0.25]], [[-0.5, -0.5]]]
    assert state.memories == ()


def test_leaves_start_where_their_parent_ended() -> None:
    one = study("higrad")
    chains = chains_of(one, 3)
    state = init(one, chains)
    state = step(one, chains, state, query(one, chains, state, WORD), np.array([[0.25, 0.0]]))
    asked = query(one, chains, state, WORD)
    assert asked.chain == 1
    assert asked.points.tolist() == [[0.25, -0.5]]
    assert asked.step == 301.0 / (2.0**0.65 + 300.0)
    state = step(one, chains, state, asked, np.zeros((1, 2)))
    assert state.points.tolist() == [[[0.25, -0.5]], [[0.25, -0.5]], [[0.25, -0.5]]]
