"""Table 11: nodes and weights of the HiGrad trees, as the package's own tree has them."""

from pathlib import Path

from sottovoce.inference.regression.higrad import Tree
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import exact
from sottovoce_papers.simulation.regression.studentised import TREES, method_name

VERSION = 1


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Return nodes, weight and users of a segment on every level of every tree, for n people."""
    del replications, seed, data
    return [
        Row(
            {"method": method_name(branching), "level": level},
            {"nodes": exact(count), "weight": exact(weight), "segment": exact(int(setting["n"]) // plan.nodes)},
        )
        for branching in TREES
        for plan in [Tree(branching, int(setting["n"]))]
        for level, (count, weight) in enumerate(zip(plan.node_counts, plan.weights, strict=True))
    ]
