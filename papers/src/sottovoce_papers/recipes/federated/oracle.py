"""C1 in a scene of Cai, Hu and Wu with two intervals: the self-normalised one and that of the true variance.

Setting as of `walk`, without the method; the oracle's half-length is 1.96 standard errors of Theorem 3.1.
"""

from pathlib import Path

from sottovoce.inference.common.normal import two_sided
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import Measure, exact, mean, share
from sottovoce_papers.recipes.federated import walk
from sottovoce_papers.simulation.federated.scene import Scene

VERSION = 1
PER_CENT = 100.0  # the print gives lengths in hundredths


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:  # noqa: ARG001 - a recipe's arguments
    """Replicate C1 and hold both intervals against the truth."""
    scene = walk.scene_of(setting)
    ends = walk.ends_of({**setting, "method": "C1"}, scene, replications, seed)
    errors = ends.errors
    half = oracle_half(scene, int(setting["records"]))
    error = mean(errors)
    oracle = {"coverage": share(errors <= half), "length_e2": exact(PER_CENT * 2 * half), "mae": error}
    own: dict[str, Measure] = {
        "coverage": share(errors <= ends.halves),
        "length_e2": mean(PER_CENT * 2 * ends.halves),
        "mae": error,
    }
    return [Row({"method": "Normal"}, oracle), Row({"method": "SN"}, own)]


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds."""
    return walk.cost({**setting, "method": "C1"}, replications)


def oracle_half(scene: Scene, records: int) -> float:
    """Return half the length of the interval that knows the variance."""
    return two_sided(0.95) * scene.oracle(records)
