"""The paper's three ways of inference simulated person by person: one trajectory, restarted groups, a HiGrad tree.

Groups start again at zero in their own time. A tree's segments continue point *and* step time along their path: only
so do the paper's trees cover at all (`predicted` says how much). All of a replication's segments share one stream of
dice, which makes them independent.
"""

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.regression.higrad import Tree
from sottovoce_papers.simulation.regression import block, single, studentised, walk
from sottovoce_papers.simulation.regression.cell import Cell
from sottovoce_papers.simulation.regression.dice import seeded
from sottovoce_papers.simulation.regression.paper import replicate
from sottovoce_papers.simulation.regression.studentised import TREES, Covered
from sottovoce_papers.simulation.regression.walk import Walk


def simulate(
    cell: Cell, n: int, replications: int, seed: int, trees: tuple[tuple[int, ...], ...] = TREES
) -> dict[str, Covered]:
    """Run all methods on a cell, each on people of its own.

    Parameters
    ----------
    cell
        What is run.
    n
        How many people.
    replications, seed
        How many times, and where the dice come from.
    trees
        The HiGrad trees.

    Returns
    -------
    What each method covered, by the paper's name of it.

    Examples
    --------
    >>> found = simulate(Cell(0.5, 1, 4.0), 4200, 3, seed=1, trees=((4, 4),))
    >>> found["HiGrad [4, 4]"].coordinates.shape, found["DC"].volume.shape
    ((3, 2), (3,))
    """
    seeds = np.random.SeedSequence(seed).generate_state(2 + len(trees), np.uint64).tolist()
    count, d = cell.p + 5, cell.p + 1
    paths = replicate(cell, (n,), replications, seeds[0], threads=1)
    found = {"SN": studentised.self_normalised(paths.deviations[:, 0], paths.normalisers[:, 0], n)}
    apart = replicate(cell, (n // count,), replications * count, seeds[1], normaliser=False, threads=1)
    found["DC"] = studentised.groups(apart.deviations.reshape(replications, count, d))
    for branching, own in zip(trees, seeds[2:], strict=True):
        plan = Tree(branching, n)
        children = np.random.SeedSequence(own).spawn(replications)
        segments = np.stack([segment_averages(cell, plan, child) for child in children])
        found[studentised.method_name(branching)] = studentised.tree(plan, segments)
    return found


def segment_averages(cell: Cell, plan: Tree, seed: int | np.random.SeedSequence) -> Floats:
    """Run one tree; return its segments' averages less the truth, (nodes, d)."""
    given, d = cell.kernel_input(), cell.p + 1
    advance = single.advance if cell.private and cell.s == 1 else block.advance
    start = np.zeros(d) if cell.start is None else np.array(cell.start)
    root = walk.begin(cell.beta, start, seeded(seed))
    nodes: list[tuple[int, Walk]] = []
    averages = np.zeros((plan.nodes, d))
    for node, (parent, size) in enumerate(zip(plan.parents.tolist(), plan.sizes.tolist(), strict=True)):
        begun, before = nodes[parent] if node else (0, root)
        # The sum of the first l points is l point - moved, so a copy of both carries the sum on along the path.
        state = before._replace(point=before.point.copy(), moved=before.moved.copy())
        with np.errstate(over="ignore"):  # words wrap around, which only matters where nothing is compiled
            advance(state, given, begun, begun + size, False)
        end = begun + size
        averages[node] = (end * state.point - state.moved - (begun * before.point - before.moved)) / size
        nodes.append((end, state))
    return averages
