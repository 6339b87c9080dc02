"""All estimators of the paper on data integration, and ours by default, side by side in its simulations.

Every estimator that uses chains sees the same chains. Along an axis of shifts the dice are the same as well: only the
shift changes from point to point.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce_papers.simulation.integration.helped import helped, measured
from sottovoce_papers.simulation.integration.laplace_chains import replicate_laplace
from sottovoce_papers.simulation.integration.paper_chains import PaperSite, Replicated, replicate
from sottovoce_papers.simulation.integration.pools import SiteCell
from sottovoce_papers.simulation.integration.shifts import Pattern
from sottovoce_papers.simulation.integration.single_chain import replicate_alone
from sottovoce_papers.simulation.integration.weighing import METHODS, weigh
from sottovoce_papers.simulation.populations import population

PRINTED, THEOREM = "w", "w2"
SOURCE_SIZE = 3  # of the target's number of records


@dataclass(frozen=True)
class Scene:
    """What is simulated, whatever the shifts: sizes, rates and chains of the target and of its sources."""

    family: str = "normal"
    tau: float = 0.5
    n: int = 20_000
    target_rate: float = 0.5
    source_rate: float = 0.5
    sources: int = 3
    chains: int = 10
    source_chains: int = 20
    power: float = 0.6

    @property
    def records(self) -> int:
        """Return the number of records of all sites."""
        return self.n * (1 + SOURCE_SIZE * self.sources)

    def target(self) -> PaperSite:
        """Return the target."""
        return PaperSite(self.n, self.chains, 0.0, self.family, self.target_rate, self.tau, self.power)

    def source(self, shift: float) -> PaperSite:
        """Return a source."""
        n = SOURCE_SIZE * self.n
        return PaperSite(n, self.source_chains, shift, self.family, self.source_rate, self.tau, self.power)


class Found(NamedTuple):
    """What a method says in every replication: its error, and its interval less the truth (NaN where it was lost).

    ``reading`` says by which variance, and is empty where there is but one.
    """

    method: str
    reading: str
    errors: Floats
    low: Floats
    high: Floats


def compare(
    scene: Scene, along: list[Pattern], replications: int, seed: int, readings: tuple[str, ...] = (PRINTED,)
) -> list[tuple[Pattern, list[Found]]]:
    """Run every estimator at every point of an axis, seeded.

    Parameters
    ----------
    scene
        What is simulated.
    along
        The sources' shifts, point by point.
    replications
        How many times.
    seed
        Where all words come from.
    readings
        Which variances of the weighted estimators are wanted.

    Examples
    --------
    >>> from sottovoce_papers.simulation.integration.shifts import patterns
    >>> scene = Scene(n=600, target_rate=0.9, source_rate=0.9, chains=4, source_chains=4)
    >>> [(point, found)] = compare(scene, patterns("none", 3, 600), 2, seed=1)
    >>> [one.method for one in found]
    ['ADP(1)', 'ADP(decay)', 'ADP(cons)', 'IVW', 'DPSGD', 'Target', 'default']
    """
    children = np.random.SeedSequence(seed).spawn(4)
    walks, noisy = (_sites(scene, along, replications, child, kind) for kind, child in enumerate(children[:2]))
    alone = replicate_alone(scene.target(), replications, children[2])
    distribution, (first, second) = population(scene.family), children[3].generate_state(2, np.uint64).tolist()
    own = measured(SiteCell(distribution, scene.tau, scene.target_rate, scene.n), replications, first)
    other = measured(SiteCell(distribution, scene.tau, scene.source_rate, SOURCE_SIZE * scene.n), replications, second)
    truth = scene.target().truth
    result = []
    for point in along:
        found = []
        for method in (*METHODS, "DPSGD"):
            sites = noisy if method == "DPSGD" else walks
            said = weigh(
                "ADP(1)" if method == "DPSGD" else method,
                sites[-1, 0.0],
                [sites[k, shift] for k, shift in enumerate(point.shifts)],
                scene.records,
            )
            halves = {PRINTED: said.printed, THEOREM: said.theorem}
            found += [_around(method, name, said.estimates - truth, halves[name]) for name in readings]
        found.append(_around("Target", "", alone.estimates - truth, alone.halves))
        errors, intervals = helped(own, other, point.shifts)
        found.append(Found("default", "", errors, intervals[:, 0], intervals[:, 1]))
        result.append((point, found))
    return result


def _around(method: str, reading: str, errors: Floats, halves: Floats) -> Found:
    return Found(method, reading, errors, errors - halves, errors + halves)


def _sites(
    scene: Scene, along: list[Pattern], replications: int, seed: np.random.SeedSequence, kind: int
) -> dict[tuple[int, float], Replicated]:
    """Run the target (-1) and every source at every shift it takes, each with dice of its own."""
    dice = seed.spawn(scene.sources + 1)
    wanted = {(k, shift) for point in along for k, shift in enumerate(point.shifts)}
    found = {}
    for k, shift in sorted({(-1, 0.0), *wanted}):
        site = scene.target() if k < 0 else scene.source(shift)
        # A sequence that has been spawned from goes on counting; the same shifts must see the same words.
        own = np.random.SeedSequence(dice[k].entropy, spawn_key=dice[k].spawn_key)
        run = replicate_laplace(site, replications, own) if kind else replicate(site, replications, own, threads=1)
        found[k, shift] = run
    return found
