"""Figure 2: how much private sites are asked in excess, by the paper's algorithm and by ours.

The paper's degree of compensation is the coverage M[l + c, k] that the pair would have without noise; ours is that of
the pair the sparse vector asks for. What really is covered is simulated with half-normal scores over 100 equal bins up
to their public 1 - 1/5000 quantile. Where nothing is feasible all is covered.
"""

from pathlib import Path

from sottovoce.core.errors import Infeasible
from sottovoce.server.conformal.coverage.equal import moments
from sottovoce.sim.randomness import dice
from sottovoce_papers.harness.cell import Row, Setting, Value
from sottovoce_papers.harness.measure import Measure, exact, mean
from sottovoce_papers.simulation.conformal import repeat
from sottovoce_papers.simulation.conformal.score_distributions import score_distribution

VERSION = 1
BINS = 100
MECHANISMS = {"FedCP2-QQ": "paper", "default": "sparse-vector"}


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Compute the compensation and simulate the coverage of both."""
    del data
    seeds = dice(seed).words(len(MECHANISMS))
    rows = []
    for word, method in zip(seeds.tolist(), MECHANISMS, strict=True):
        where: dict[str, Value] = {"method": method}
        rows.append(Row(where, _measures(setting, method, replications, int(word))))
    return rows


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds."""
    size = int(setting["n"])
    return 0.1 + size / 1500 + replications * size / 4e6


def _measures(setting: Setting, method: str, replications: int, seed: int) -> dict[str, Measure]:
    sites, size = int(setting["sites"]), int(setting["n"])
    alpha, epsilon = float(setting["alpha"]), float(setting["epsilon"])
    # of the paper's B bins none is without an end; ours has one more
    bins = BINS - (method != "default")
    asked = repeat.Setting((size,) * sites, (epsilon,) * sites, MECHANISMS[method], bins, alpha)
    try:
        choice = asked.plan.choice
    except Infeasible:
        return {"compensation": exact(1.0), "coverage": exact(1.0)}
    compensation = float(moments(sites, size, choice.orders[0][0], choice.rank)[0][0])
    found = repeat.repeat(asked, replications, seed, score_distribution("half-normal"))
    return {"compensation": exact(compensation), "coverage": mean(found.coverages)}
