"""The estimate of the paper's recursion: averages of the points, with the three inferences that need no Hessian."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.inference.common import groups
from sottovoce.inference.regression import higrad, vector_normalised
from sottovoce.inference.regression.region import Ellipsoid, confident, vector
from sottovoce.server.regression.liu_hu.chains import RegressionChains
from sottovoce.server.regression.liu_hu.step import LiuHuState
from sottovoce.server.regression.liu_hu.study import LiuHuTerms
from sottovoce.server.regression.liu_hu.warnings import warnings

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class LiuHuFit:
    """Estimate and intervals after some people, in internal units."""

    study: LiuHuTerms
    chains: RegressionChains
    state: LiuHuState

    @property
    def people(self) -> int:
        """Return how many people were asked."""
        return self.state.people

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Return sentences on where the intervals are expected to cover too little."""
        return warnings(self.study, self.chains, self.people) if self.people else ()

    @cached_property
    def centres(self) -> Floats:
        """Return the average of each chain's points, (chains, levels, d); the start where it had nobody."""
        if self.state.memories:
            return np.stack([vector_normalised.mean(m) if m.n else s for m, s in self._levels()])[None]
        counts = np.maximum(self.chains.counts(self.people), 1)
        return np.asarray(self.study.start + self.state.totals / counts[:, None, None])

    @cached_property
    def point(self) -> Floats:
        """Return the estimate (levels, d): the average of all points, or the mean over groups or leaves."""
        tree = self.chains.tree
        if tree is not None and self.people == tree.n:
            return np.stack([higrad.mean(tree, self.centres[:, level]) for level in range(self.study.levels)])
        asked = self.centres[self.chains.counts(self.people) > 0]
        if not len(asked):
            return np.array(self.study.start, dtype=np.float64)
        return np.asarray(asked[0] + (asked - asked[0]).mean(axis=0))

    def interval(self, index: int, contrast: Floats, level: float) -> tuple[float, float]:
        """Return the ends of the confidence interval of a contrast of the coefficients at one quantile level."""
        weights, wanted, rows = vector(contrast, self.study.d, "contrast"), confident(level), self._rows(index)
        tree = self.chains.tree
        if self.state.memories:
            return _heard(lambda: vector_normalised.interval(self.state.memories[index], weights, wanted))
        if tree is not None:
            return _heard(lambda: higrad.interval(tree, rows, weights, wanted))
        return _heard(lambda: groups.interval(rows, weights, wanted))

    def ellipsoid(self, index: int, level: float) -> Ellipsoid:
        """Return the confidence ellipsoid of all coefficients at one quantile level."""
        wanted, rows, tree = confident(level), self._rows(index), self.chains.tree
        if self.state.memories:
            return _heard(lambda: vector_normalised.ellipsoid(self.state.memories[index], wanted))
        if tree is not None:
            return _heard(lambda: higrad.ellipsoid(tree, rows, wanted))
        return _heard(lambda: groups.ellipsoid(rows, wanted))

    def _rows(self, index: int) -> Floats:
        """Return the chains' averages at one quantile level, or refuse them."""
        counts = self.chains.counts(self.people)
        need = 2 if self.state.memories else len(counts)
        if self.people < need or counts.min() < 1:
            raise Infeasible(
                f"{self.study.inference} intervals need at least {need} people, one for each average, "
                f"but {self.people} were asked: ask more."
            )
        return np.asarray(self.centres[:, index])

    def _levels(self) -> list[tuple[vector_normalised.VectorMemory, Floats]]:
        return list(zip(self.state.memories, self.study.start, strict=True))


def _heard(ask: Callable[[], Found]) -> Found:
    """Return what an inference says, its refusals as refusals: the question was checked before."""
    try:
        return ask()
    except BadInput as why:
        raise Infeasible(str(why)) from None
