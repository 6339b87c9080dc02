"""Gaussian draws for the paper's three ways of inference, so that 3e8 users take a second (`moments`).

What is drawn is not people but what the methods look at: the path of the sums at a few hundred times, a group's
average, a segment's average with the point at which its children continue.
"""

from itertools import pairwise

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.regression.higrad import Tree
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.regression import studentised
from sottovoce_papers.simulation.regression.cell import Cell
from sottovoce_papers.simulation.regression.moments import Span, spans
from sottovoce_papers.simulation.regression.studentised import TREES, Covered

Generator = np.random.Generator

LOOKS = 240  # at the path; with 100 the scalar critical value is off by 4e-4 of itself, and the error falls as 1 / n^2
BATCH = 1000  # replications at a time


def predict(
    cell: Cell, n: int, replications: int, seed: int, trees: tuple[tuple[int, ...], ...] = TREES
) -> dict[str, Covered]:
    """Draw all methods' answers for a cell.

    Parameters
    ----------
    cell
        What would be run.
    n
        How many people.
    replications, seed
        How many draws, and where they come from.
    trees
        The HiGrad trees.

    Returns
    -------
    What each method covered, by the paper's name of it.

    Examples
    --------
    >>> found = predict(Cell(0.5, 2, 2.0), 3 * 10**8, 200, seed=1)
    >>> sorted(found)
    ['DC', 'HiGrad [4, 4, 4]', 'HiGrad [4, 4]', 'HiGrad [4, 8]', 'SN']
    >>> bool(found["SN"].ellipsoid.mean() > 0.88)
    True
    """
    generator, d, count = dice(seed).generator(), cell.p + 1, cell.p + 5
    plans = [Tree(branching, n) for branching in trees]
    looks = [round(n * k / LOOKS) for k in range(1, LOOKS + 1)]
    ends = {n // count, *(stop for plan in plans for _, stop in plan.spans)}
    stops = sorted({*looks, *ends})
    course = dict(zip(stops, spans(cell, stops), strict=True))
    path = [_joined(course, a, b) for a, b in pairwise([0, *looks])]
    group = _joined(course, 0, n // count)
    levels = [[_joined(course, a, b) for a, b in plan.spans] for plan in plans]
    parts: dict[str, list[Covered]] = {}
    for first in range(0, replications, BATCH):
        size = min(BATCH, replications - first)
        averages, normalisers = _path(path, generator, size)
        found = {"SN": studentised.self_normalised(averages, normalisers, n)}
        centres = _drawn(group, np.zeros((size * count, d)), generator)[1] / group.steps
        found["DC"] = studentised.groups(centres.reshape(size, count, d))
        for plan, level in zip(plans, levels, strict=True):
            segments = _segments(plan, level, generator, size)
            found[studentised.method_name(plan.branching)] = studentised.tree(plan, segments)
        for name, covered in found.items():
            parts.setdefault(name, []).append(covered)
    return {name: Covered(*(np.concatenate(x) for x in zip(*part, strict=True))) for name, part in parts.items()}


def _joined(course: dict[int, Span], start: int, stop: int) -> Span:
    """Put the spans from one stop to another together."""
    pieces = [span for end, span in course.items() if start < end <= stop]
    d = len(pieces[0].total)
    carry, noise = np.concatenate([np.eye(d), np.zeros((d, d))]), np.zeros((2 * d, 2 * d))
    for piece in pieces:
        onward = np.zeros((2 * d, 2 * d))
        onward[:, :d] = piece.carry
        onward[d:, d:] = np.eye(d)
        carry, noise = onward @ carry, onward @ noise @ onward.T + piece.noise
    return Span(stop - start, carry, noise, np.sum([piece.total for piece in pieces], axis=0))


def _drawn(span: Span, deviation: Floats, generator: Generator) -> tuple[Floats, Floats]:
    """Draw the deviations at a span's end and the sums of its points less the truth, from those at its start."""
    d = deviation.shape[1]
    scale = np.sqrt(np.maximum(np.diag(span.noise), 1e-300))
    values, vectors = np.linalg.eigh(span.noise / np.outer(scale, scale))
    root = scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    both = deviation @ span.carry.T + generator.standard_normal((len(deviation), 2 * d)) @ root.T
    return both[:, :d], both[:, d:] + span.total


def _path(path: list[Span], generator: Generator, size: int) -> tuple[Floats, Floats]:
    """Draw averages and self-normalisers: sums S_l at evenly spaced times, which stand for the times between."""
    n, d = sum(span.steps for span in path), len(path[0].total)
    deviation, sums = np.zeros((size, d)), np.zeros((len(path), size, d))
    for k, span in enumerate(path):
        deviation, sums[k] = _drawn(span, deviation, generator)
    np.cumsum(sums, axis=0, out=sums)
    average = sums[-1] / n
    times = np.cumsum([span.steps for span in path])
    bridge = sums - times[:, None, None] * average
    spread = np.einsum("kri,krj->rij", bridge, bridge, optimize=True) * (n / len(path)) / float(n) ** 2
    return average, spread


def _segments(plan: Tree, levels: list[Span], generator: Generator, size: int) -> Floats:
    """Draw a tree's segment averages, (replications, nodes, d): children continue where their parent stopped."""
    d = len(levels[0].total)
    averages = np.zeros((size, plan.nodes, d))
    ends = np.zeros((size, plan.nodes, d))
    starts = np.cumsum([0, *plan.node_counts])
    for level, span in enumerate(levels):
        nodes = np.arange(starts[level], starts[level + 1])
        before = ends[:, plan.parents[nodes], :] if level else np.zeros((size, 1, d))
        point, total = _drawn(span, before.reshape(-1, d), generator)
        ends[:, nodes, :] = point.reshape(size, -1, d)
        averages[:, nodes, :] = total.reshape(size, -1, d) / span.steps
    return averages
