"""Replications of each compared method in a scene, abreast: estimates and the half-lengths of their intervals.

All intervals are ``estimate -+ 6.747 sqrt(V)``, the printed critical value of equal rounds, whatever the schedule.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.inference.self_normalised.critical_values import critical_value
from sottovoce.protocol.randomised_response import epsilon_of_rate
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.federated.abreast import STAR, Lanes, Letters, begin, spread, walk
from sottovoce_papers.simulation.federated.apart import begin_apart, read_apart, walk_apart
from sottovoce_papers.simulation.federated.laplace_noise import descend
from sottovoce_papers.simulation.federated.scene import SITES, Scene

LOW, HIGH, GRID = -12.0, 12.0, 4097  # walks stay well inside; interpolating a chance there errs by less than 2e-6
ABREAST = 128


class Ends(NamedTuple):
    """Where the replications ended: estimates, how far their intervals reach to either side, and the truths."""

    points: Floats
    halves: Floats
    truths: Floats

    @property
    def errors(self) -> Floats:
        """Return the absolute errors."""
        return np.abs(self.points - self.truths)


class Block(NamedTuple):
    """Some lanes, how their letters come about, and the truths they look for."""

    lanes: Lanes
    letters: Letters
    truths: Floats


@dataclass(frozen=True, eq=False)
class Plan:
    """How a scene is walked: the rounds, their steps, the topology, how many sites answer, and on what records.

    ``data`` is the one data set (None: fresh records); ``redrawn`` sites have new locations in every replication.
    """

    rounds: Ints
    steps: Floats
    topology: int = STAR
    few: int = SITES
    data: Floats | None = None
    redrawn: bool = False


def federated(scene: Scene, how: Plan, replications: int, seed: int) -> Ends:
    """Replicate the paper's method.

    Parameters
    ----------
    scene
        Sites, level and rates.
    how
        The plan.
    replications
        How many.
    seed
        Where all randomness comes from.

    Examples
    --------
    >>> from sottovoce_papers.simulation.federated.rounds import rounds_within, steps
    >>> scene, rounds = Scene("normal", "Homo", 0.5, 0.9), rounds_within("C5", 200)
    >>> ends = federated(scene, Plan(rounds, steps(rounds, 20 * 0.9)), 3, seed=1)
    >>> ends.points.shape, bool((ends.halves > 0).all())
    ((3,), True)
    """
    return _ended(how, started(scene, how, replications, seed), _walk)


def divided(scene: Scene, how: Plan, replications: int, seed: int) -> Ends:
    """Replicate divide and conquer: sites that exchange nothing, with a step that is not divided by the rate."""
    letters = letters_of(scene, how, scene.rates, _moves(scene.levels, scene.rates) * scene.rates[:, None])
    blocks, found = _blocks(scene, how, letters, SITES, replications, seed), []
    for block in blocks:
        lanes = begin_apart(block.lanes.points[0], SITES, block.lanes.words)
        with np.errstate(over="ignore"):
            walk_apart(lanes, block.letters, how.steps)
        found.append(read_apart(lanes, len(how.steps)))
    points, spreads = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Ends(points, critical_value(0.95) * spreads, np.concatenate([block.truths for block in blocks]))


def single(scene: Scene, how: Plan, replications: int, seed: int) -> Ends:
    """Replicate one device with everybody's records, fresh, at the mean rate (Liu et al. 2023); sites take turns."""
    rates = np.full(SITES, float(scene.rates.mean()))
    letters = letters_of(scene, how, rates, (_moves(scene.level, rates) * rates[:, None])[:1])
    return _ended(how, _blocks(scene, how, letters, 1, replications, seed), _walk)


def noisy(scene: Scene, how: Plan, replications: int, seed: int) -> Ends:
    """Replicate descent with Laplace noise at the budgets of the rates."""
    letters = letters_of(scene, how, np.ones(SITES), np.empty((SITES, 2)))
    scales = 1 / np.array([epsilon_of_rate(rate) for rate in scene.rates])

    def once(block: Block, plan: Plan) -> None:
        descend(block.lanes, block.letters, scales, scene.level, plan.steps)

    return _ended(how, _blocks(scene, how, letters, 1, replications, seed), once)


def started(scene: Scene, how: Plan, replications: int, seed: int) -> list[Block]:
    """Return the paper's method before its first round."""
    letters = letters_of(scene, how, scene.rates, _moves(scene.level, scene.rates))
    return _blocks(scene, how, letters, SITES, replications, seed)


def letters_of(scene: Scene, how: Plan, rates: Floats, moves: Floats) -> Letters:
    """Return how letters come about in a scene; the locations are those of one lane."""
    grid = np.linspace(LOW, HIGH, GRID)
    distributions = zip(scene.centred.populations, rates, strict=True)
    chances = np.array(
        [rate * (1 - np.asarray(distribution.cdf(grid))) + (1 - rate) / 2 for distribution, rate in distributions]
    )
    data = np.empty((0, 0)) if how.data is None else np.ascontiguousarray(how.data)
    return Letters(chances, LOW, (GRID - 1) / (HIGH - LOW), scene.locations[:, None], data, rates, moves)


def _blocks(scene: Scene, how: Plan, letters: Letters, sites: int, replications: int, seed: int) -> list[Block]:
    """Return blocks of about equal numbers of lanes, each with its start, dice and locations."""
    generator, made = dice(seed).generator(), []
    for part in np.array_split(np.empty(replications), -(-replications // ABREAST)):
        n = len(part)
        starts, words = generator.standard_normal(n), generator.integers(0, 2**64 - 1, (4, n), np.uint64, endpoint=True)
        drawn = generator.standard_normal((SITES, n)) if how.redrawn else None
        locations = np.repeat(scene.locations[:, None], n, axis=1) if drawn is None else drawn
        truths = np.full(n, scene.truth) if drawn is None else scene.truths(drawn)
        made.append(Block(begin(starts, sites, words), letters._replace(locations=locations), truths))
    return made


def _ended(how: Plan, blocks: list[Block], run: Callable[[Block, Plan], None]) -> Ends:
    with np.errstate(over="ignore"):  # words wrap around, which only matters where nothing is compiled
        for block in blocks:
            run(block, how)
    points, halves = (np.concatenate(parts) for parts in zip(*(read(block.lanes) for block in blocks), strict=True))
    return Ends(points, halves, np.concatenate([block.truths for block in blocks]))


def read(lanes: Lanes) -> tuple[Floats, Floats]:
    """Return the estimates and half-lengths at present."""
    return lanes.memory[0].copy(), critical_value(0.95) * spread(lanes)


def _walk(block: Block, how: Plan) -> None:
    walk(block.lanes, block.letters, how.rounds, how.steps, how.topology, min(how.few, block.lanes.points.shape[0]))


def _moves(levels: float | Floats, rates: Floats) -> Floats:
    """Return where letters 0 and 1 move a point, per unit of step (Algorithm 1)."""
    tilt = (2 * levels - 1) * rates
    return np.stack([tilt - 1, tilt + 1], axis=1) / (2 * rates[:, None])
