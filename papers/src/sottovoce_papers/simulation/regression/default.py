"""Replications of the default method, people drawn afresh each time: the production path itself, on seeded dice."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats
from sottovoce.local.regression.dithered import DitheredRun
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.server.regression.design import choose, parse
from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce.server.regression.omega import omega
from sottovoce.sim.randomness import SeededSource, dice
from sottovoce_papers.simulation.regression.designs import Design

T = TypeVar("T")


class Setting(NamedTuple):
    """A design at a level and a budget; guesses are the paper's, wrong by the given factors."""

    design: Design
    tau: float
    epsilon: float
    channel: str = "auto"
    density_factor: float = 1.0
    size_factor: float = 1.0
    known: bool = False

    def study(self) -> DitheredStudy:
        """Return the study, with public guesses that fit the paper's design."""
        p, tau = self.design.p, self.tau
        made = choose(tau, p, self.epsilon) if self.channel == "auto" else parse(self.channel, tau, p, self.epsilon)
        guess = self.density_factor * 2 * tau * (1 - tau)  # logistic errors of scale 1/2
        moments = self.design.second_moments if self.known else np.diag([1.0, *[1 / 3] * p])
        return DitheredStudy(
            made.channel,
            omega(made.channel)[None],
            np.array([guess]),
            self.size_factor,
            np.zeros((1, p + 1)),
            moments,
            self.known,
        )


def replicate(
    setting: Setting,
    people: Sequence[int],
    keep: Callable[[DitheredFit], T],
    replications: int,
    seed: int,
    threads: int = 2,
) -> list[list[T]]:
    """Run a setting many times; return what is kept of each at each number of people.

    Examples
    --------
    >>> from sottovoce_papers.simulation.regression.designs import paper
    >>> runs = replicate(Setting(paper(1), 0.5, 4.0, "cq:2,1"), [100, 200], lambda fit: fit.people, 2, seed=1)
    >>> runs
    [[100, 200], [100, 200]]
    """
    study = setting.study()

    def once(die: SeededSource) -> list[T]:
        run, kept, generator = DitheredRun(study), [], die.generator()
        for n in people:
            features, response = setting.design.sample(generator, n - run.people, setting.tau)
            run.ask(Rows(np.ascontiguousarray(features), response), die, shuffle=False)
            kept.append(keep(run.estimate()))
        return kept

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(once, dice(seed).split(replications)))


def sandwich(setting: Setting, draws: int = 400_000, seed: int = 7) -> Floats:
    """Return n x the asymptotic covariance of the estimate, H^-1 Omega H^-1, Omega measured at the truth."""
    study = setting.study()
    generator = dice(seed).generator()
    features, response = setting.design.sample(generator, draws, setting.tau)
    still = study.omega * 1e-12  # a gain so small that the point stays at the truth
    frozen = DitheredStudy(
        study.channel, still, study.density, 1e-9, setting.design.beta[None], study.moments, known=True
    )
    run = DitheredRun(frozen)
    run.ask(Rows(np.ascontiguousarray(features), response), dice(seed + 1), shuffle=False)
    spread = run.estimate().knowledge.omegas[0]
    inverse = np.linalg.inv(setting.design.hessian(setting.tau))
    return np.asarray(inverse @ spread @ inverse.T)
