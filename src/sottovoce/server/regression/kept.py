"""Whether what a file says of a regression is one: names, shapes and numbers, before anything is computed with them.

A file is hostile until checked. What a run could not have come to is refused here, so that no number of it leads to a
table without meaning, to an error of another library, or to memory that nobody has.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import Bounds
from sottovoce.core.checks import LARGEST
from sottovoce.protocol.regression.dithered.knowledge import DROPS, Knowledge
from sottovoce.protocol.regression.dithered.segments import Tight
from sottovoce.protocol.regression.dithered.study import StoredDithered
from sottovoce.server.regression.design import LARGEST as LARGEST_EPSILON
from sottovoce.server.regression.fits import StoredFit
from sottovoce.server.regression.liu_hu.step import LiuHuState
from sottovoce.server.regression.settings import MOST_DEEP, MOST_GROUPS
from sottovoce.server.regression.study import StoredLiuHu
from sottovoce.server.regression.summary import METHODS, RegressionFacts

MOST = 1 << 53  # people


def is_kept(facts: RegressionFacts, bounds: Bounds, fits: Sequence[StoredFit]) -> bool:
    """Tell whether the parts of a stored regression are those of one."""
    levels, d = [len(facts.taus), *([1] if facts.split else [])], len(bounds.low) + 1
    return (
        _is_run(facts)
        and _are_bounds(bounds)
        and sum(fit.shape[0] for fit in fits) == levels[0]
        and sum(fit.people for fit in fits) <= facts.people
        and all(fit.shape == (levels[-1], d) and _is_fit(fit, facts) for fit in fits)
    )


def _is_run(facts: RegressionFacts) -> bool:
    """Tell whether a regression can have been run so."""
    ascending = list(facts.taus) == sorted(set(facts.taus)) and all(0 < tau < 1 for tau in facts.taus)
    counted = 0 < facts.people < MOST and 1 <= facts.sites < MOST and 0 <= facts.letters < MOST
    promised = 0 < facts.epsilon <= LARGEST_EPSILON * (1 + 1e-6) or (math.isinf(facts.epsilon) and not facts.private)
    return (
        bool(facts.taus) and ascending and counted and promised and facts.inference in METHODS and 0 < facts.level < 1
    )


def _are_bounds(bounds: Bounds) -> bool:
    """Tell whether bounds are those of some columns."""
    p = len(bounds.names)
    shaped = bounds.low.shape == bounds.high.shape == (p,) and 1 <= p == len(set(bounds.names))
    finite = shaped and bool(np.isfinite(bounds.low).all() and np.isfinite(bounds.high).all())
    return finite and bool(np.all(bounds.half > 0))


def _is_fit(fit: StoredFit, facts: RegressionFacts) -> bool:
    """Tell whether a fit is one of its kind; without answers it has none."""
    if not 0 <= fit.people < MOST or fit.split not in (0, len(facts.taus)) or not _moderate(fit):
        return False
    if fit.dithered is not None:
        return fit.liu_hu is None and facts.inference == "dithered" and _is_dithered(fit.shape, *fit.dithered)
    if fit.liu_hu is not None:
        return facts.inference == fit.liu_hu[0].inference and _is_liu_hu(fit.shape, *fit.liu_hu)
    return True


def _is_dithered(shape: tuple[int, int], terms: StoredDithered, knowledge: Knowledge) -> bool:
    """Tell whether terms and knowledge are those of one dithered run."""
    levels, d = shape
    told = (terms.omega, terms.density, terms.start, terms.moments, knowledge.omegas)
    shapes = [(levels, d, d), (levels,), (levels, d), (d, d), (levels, d, d)]
    square = [part for slope in knowledge.slopes for part in (slope.matrix, slope.steady)]
    return (
        len(terms.taus) == levels == len(knowledge.slopes) == len(knowledge.curves)
        and [part.shape for part in told] == shapes
        and len(knowledge.windows) == len(DROPS)
        and all(_is_sum(sums, levels, d) for sums in (*knowledge.windows, knowledge.whole))
        and terms.size > 0
        and bool(np.all(terms.density > 0))
        and all(map(_is_definite, (*terms.omega, terms.moments, *knowledge.omegas)))
        and all(part.shape == (d, d) and np.linalg.matrix_rank(part) == d for part in square)
    )


def _is_sum(sums: Tight, levels: int, d: int) -> bool:
    """Tell whether sums are those of people at the point."""
    shaped = sums.vectors.shape == (2, levels, d) and sums.squares.shape == (2, levels, d, d)
    return shaped and 0 <= sums.looked <= sums.people < MOST


def _is_liu_hu(shape: tuple[int, int], terms: StoredLiuHu, planned: int, run: LiuHuState) -> bool:
    """Tell whether terms and state are those of one run of the paper's recursion."""
    levels, d = shape
    chains = len(run.points)
    few = 1 <= terms.chains <= MOST_GROUPS + d and len(terms.tree) <= MOST_DEEP
    few = few and all(1 <= branches <= MOST_GROUPS for branches in terms.tree) and math.prod(terms.tree) <= MOST_GROUPS
    steps = terms.scale > 0 and terms.noise > 0 and terms.offset >= 0 and 0.5 < terms.power < 1
    return (
        few
        and steps
        and 0 <= run.people <= planned < MOST
        and terms.omega.shape == (levels, d, d)
        and terms.start.shape == (levels, d)
        and (terms.moments is None or terms.moments.shape == (d, d))
        and all(map(_is_definite, terms.omega))
        and run.points.shape == run.totals.shape == (chains, levels, d)
        and len(run.memories) == (levels if terms.inference == "self-normalised" else 0)
        and all(0 <= each.n <= run.people and each.outer.shape == (d, d) for each in run.memories)
        and all(part.shape == (d,) for each in run.memories for part in (each.reference, each.total, each.first))
    )


def _is_definite(matrix: Floats) -> bool:
    """Tell whether a matrix is symmetric and positive definite."""
    return bool(np.allclose(matrix, matrix.T, rtol=1e-6, atol=0.0) and np.linalg.eigvalsh(matrix)[0] > 0)


def _moderate(value: Any) -> bool:
    """Tell whether all numbers of a state are finite, and small enough to be computed with."""
    return all(math.isfinite(each) and abs(each) <= LARGEST for each in _numbers(value))


def _numbers(value: Any) -> Iterator[float]:
    """Yield the numbers of a plain state, of an array the one farthest from zero."""
    if isinstance(value, np.ndarray):
        yield float(np.abs(value).max()) if value.size else 0.0
    elif isinstance(value, tuple):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, int | float):
        yield value
