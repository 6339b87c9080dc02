import os

import numpy as np
import pytest

from sottovoce.core.arrays import Floats, Words
from sottovoce.inference.self_normalised import memory as self_normalised
from sottovoce.inference.self_normalised.memory import average, variance
from sottovoce.server.quantile.recursion.schedule import elapsed
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation import fast
from sottovoce_papers.simulation.federated import abreast
from sottovoce_papers.simulation.federated.abreast import ALONE, RING, STAR, Letters, begin, spread, walk
from sottovoce_papers.simulation.federated.apart import begin_apart, read_apart, walk_apart
from sottovoce_papers.simulation.federated.replicate import Plan, federated
from sottovoce_papers.simulation.federated.rounds import steps
from sottovoce_papers.simulation.federated.scene import Scene
from sottovoce_papers.simulation.regression.dice import roll, unit

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")
NONE = np.empty((0, 0))


@pytest.fixture(autouse=True)
def _words_wrap():  # type: ignore[no-untyped-def]
    with np.errstate(over="ignore"):
        yield


def words(n: int, seed: int = 1) -> Words:
    return dice(seed).words(4 * n).reshape(4, n)


def truthful(data: Floats, tau: float) -> Letters:
    """Return letters without coins: each is the truth."""
    sites = data.shape[1]
    return Letters(np.zeros((sites, 2)), 0.0, 1.0, NONE, data, np.ones(sites), np.tile([tau - 1, tau], (sites, 1)))


def test_the_lanes_dice_are_those_of_the_scalar_kernels() -> None:
    lanes, faces = words(3), np.empty(3)
    state = tuple(lanes[:, 1].copy())
    for _ in range(5):
        abreast.toss(lanes, faces)
        following, word = roll(state)
        state = tuple(np.uint64(part) for part in following)
        assert faces[1] == unit(np.uint64(word))


@pytest.mark.parametrize("topology", [STAR, ALONE, RING])
def test_with_truthful_letters_the_walk_is_the_plain_recursion(topology: int) -> None:
    sites, tau = 4, 0.3
    rounds = np.array([1, 1, 2, 3, 3], dtype=np.int64)
    data = dice(3).generator().standard_normal((int(rounds.sum()), sites))
    each = steps(rounds, 5.0)
    lanes = begin(np.array([0.4, -1.0]), sites, words(2))
    walk(lanes, truthful(data, tau), rounds[:2], each[:2], topology, sites)
    walk(lanes, truthful(data, tau), rounds[2:], each[2:], topology, sites)
    ring = (np.eye(sites) + np.roll(np.eye(sites), 1, axis=0) + np.roll(np.eye(sites), -1, axis=0)) / 3
    for lane, start in enumerate((0.4, -1.0)):
        points, memory, t = np.full(sites, start), self_normalised.init(), 0
        for length, step in zip(rounds, each, strict=True):
            for _ in range(length):
                points = points + step * (tau - (data[t] <= points))
                t += 1
            middle = points.mean()
            points = {STAR: np.full(sites, middle), ALONE: points, RING: ring @ points}[topology]
            memory = self_normalised.look(memory, float(middle), float(length))
        assert np.isclose(lanes.memory[0, lane], average(memory), atol=1e-14)
        assert np.isclose(spread(lanes)[lane] ** 2, variance(memory), rtol=1e-9)


def test_sites_apart_have_estimates_and_self_normalisers_of_their_own() -> None:
    data, rounds, tau = dice(4).generator().standard_normal((7, 3)), np.ones(7, dtype=np.int64), 0.6
    each = steps(rounds, 5.0)
    lanes = begin_apart(np.array([0.2, -0.3]), 3, words(2))
    walk_apart(lanes, truthful(data, tau), each)
    points, spreads = read_apart(lanes, 7)
    memories = [self_normalised.init() for _ in range(3)]
    at = np.full(3, -0.3)
    for row, step in zip(data, each, strict=True):
        at = at + step * (tau - (row <= at))
        memories = [self_normalised.look(memory, float(q), 1.0) for memory, q in zip(memories, at, strict=True)]
    assert np.isclose(points[1], np.mean([average(memory) for memory in memories]))
    assert np.isclose(spreads[1] ** 2, np.mean([variance(memory) for memory in memories]))


def test_exactly_so_many_sites_are_chosen_and_each_as_often() -> None:
    chosen, lanes = np.empty((10, 400)), words(400)
    abreast.choose(chosen, lanes, np.empty(400), 5)
    assert set(chosen.sum(axis=0)) == {5.0}
    # a site is in 200 of 400 lanes, sd 10; ten sites, false alarm 1e-6
    assert np.all(np.abs(chosen.sum(axis=1) - 200) < 53)


def test_only_the_chosen_sites_count_in_the_average() -> None:
    points, middle = np.arange(8.0).reshape(4, 2), np.empty(2)
    chosen = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    abreast.merge(points, np.empty((4, 2)), chosen, 2, STAR, middle)
    assert middle.tolist() == [2.0, 5.0]
    assert (points == middle).all()


def test_sites_spend_records_only_when_chosen() -> None:
    data = np.array([[1.0, -1.0], [2.0, -2.0]])
    turns, points = np.array([0, 1]), np.zeros(2)
    abreast.ask_own(points, np.full(2, 0.5), data[:, 0], turns, np.array([1.0, 0.0]), 1.0, -1.0, 1.0)
    assert turns.tolist() == [1, 1]
    assert points.tolist() == [1.0, 0.0]


@compiled
@pytest.mark.parametrize(("scenario", "rate"), [("Homo", 0.25), ("Hete L", "hetero")])
def test_fresh_letters_follow_the_distribution_of_the_method_itself(scenario: str, rate: float | str) -> None:
    scene, n, often = Scene("normal", scenario, 0.3, rate), 400, 600
    cell = fast.Cell(scene.sites, 0.3, tuple(map(float, scene.rates)), n, "every:5", start=0.5)
    kept = fast.replicate(cell, lambda _, state: (average(state.memory), variance(state.memory)), often, 5, threads=1)
    slow_points, slow_spreads = np.array(kept).T
    rounds = np.array(elapsed("every:5", n))
    plan = Plan(rounds, steps(rounds, 20 * float(scene.rates.mean())))
    ends = _from(scene, plan, often, 0.5)
    for ours, theirs in ((ends[0], slow_points), (np.log(ends[1]), np.log(slow_spreads))):
        error = np.sqrt((ours.var() + theirs.var()) / often)
        assert abs(ours.mean() - theirs.mean()) < 5 * error  # false alarm 6e-7
        assert abs(np.log(ours.var() / theirs.var())) < 5 * np.sqrt(2 * 3 / often)  # kurtosis at most 4


def _from(scene: Scene, plan: Plan, often: int, start: float) -> tuple[Floats, Floats]:
    from sottovoce_papers.simulation.federated import replicate

    (block,) = replicate.started(scene, plan, 128, 1)[:1]
    lanes = begin(np.full(often, start), 10, words(often))
    letters = block.letters._replace(locations=np.repeat(scene.locations[:, None], often, axis=1))
    walk(lanes, letters, plan.rounds, plan.steps, STAR, 10)
    return lanes.memory[0], spread(lanes) ** 2


def test_replications_do_not_depend_on_how_many_follow() -> None:
    scene, rounds = Scene("normal", "Homo", 0.5, 0.9), np.ones(4, dtype=np.int64)
    plan = Plan(rounds, steps(rounds, 10.0))
    assert federated(scene, plan, 3, 1).points.tolist() == federated(scene, plan, 3, 1).points.tolist()
    assert federated(scene, plan, 3, 1).points.tolist() != federated(scene, plan, 3, 2).points.tolist()
