"""What a regression's answers came to, one fit a channel: its kinds, and how each is stored."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import Infeasible
from sottovoce.inference.regression.region import Ellipsoid
from sottovoce.protocol.regression.dithered.knowledge import Knowledge
from sottovoce.protocol.regression.dithered.study import DitheredStudy, StoredDithered
from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce.server.regression.liu_hu.fit import LiuHuFit
from sottovoce.server.regression.liu_hu.step import LiuHuState, chains_of
from sottovoce.server.regression.study import LiuHuStudy, StoredLiuHu

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class SearchingFit:
    """What is known while the first people are still being asked for location and scale: nothing."""

    people: int
    point: Floats

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say that there is no estimate yet."""
        return (self._sentence,)

    @property
    def _sentence(self) -> str:
        return (
            f"{self.people:,} people were asked for location and scale, and that search is not over: "
            "ask more people, or give density and size, public guesses."
        )

    def determined(self, index: int, contrast: Floats) -> bool:  # noqa: ARG002
        """Tell that nothing is known."""
        return False

    def interval(self, index: int, contrast: Floats, level: float) -> tuple[float, float]:  # noqa: ARG002
        """Refuse."""
        raise Infeasible(self._sentence)

    def ellipsoid(self, index: int, level: float) -> Ellipsoid:  # noqa: ARG002
        """Refuse."""
        raise Infeasible(self._sentence)


@dataclass(frozen=True, eq=False)
class SplitFit:
    """The fit of a level that a part of the people answered for; its refusals say that they count this part alone."""

    fit: "RegressionFit"
    levels: int

    @property
    def people(self) -> int:
        """Return how many people were asked for this level."""
        return self.fit.people

    @property
    def point(self) -> Floats:
        """Return the coefficients."""
        return self.fit.point

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what the user should know of the fit."""
        return self.fit.warnings

    def determined(self, index: int, contrast: Floats) -> bool:
        """Tell whether the people of this level tell enough of a contrast to rely on its estimate."""
        return self.fit.determined(index, contrast)

    def interval(self, index: int, contrast: Floats, level: float) -> tuple[float, float]:
        """Return the interval of a contrast, or refuse."""
        return self._told(lambda: self.fit.interval(index, contrast, level))

    def needed(self, index: int, contrast: Floats) -> int:
        """Return about how many people of all levels determine a contrast of this one."""
        return self.fit.needed(index, contrast) * self.levels if isinstance(self.fit, DitheredFit) else self.fit.people

    def missing(self, index: int, contrast: Floats) -> str:
        """Say why a contrast's interval has no ends."""
        return self._counted(self.fit.missing(index, contrast)) if isinstance(self.fit, DitheredFit) else ""

    def ellipsoid(self, index: int, level: float) -> Ellipsoid:
        """Return the ellipsoid of the coefficients, or refuse."""
        return self._told(lambda: self.fit.ellipsoid(index, level))

    def _told(self, ask: Callable[[], Found]) -> Found:
        try:
            return ask()
        except Infeasible as why:
            raise Infeasible(self._counted(str(why))) from None

    def _counted(self, sentence: str) -> str:
        return f"{sentence.removesuffix('.')}; counted are the people of this level, one in {self.levels} of all."


RegressionFit = DitheredFit | LiuHuFit | SearchingFit | SplitFit  # an estimate in units of scaled covariates


class StoredFit(NamedTuple):
    """One fit as it is stored: one of its kinds, or none while the search for location and scale went on."""

    people: int
    shape: tuple[int, int]  # of the point
    split: int = 0  # of how many levels each person answered for one; 0: for all
    dithered: tuple[StoredDithered, Knowledge] | None = None
    liu_hu: tuple[StoredLiuHu, int, LiuHuState] | None = None  # with the people a tree was made for


def stored(fit: RegressionFit) -> StoredFit:
    """Return the plain state of a fit."""
    if isinstance(fit, SplitFit):
        return stored(fit.fit)._replace(split=fit.levels)
    shape = (int(fit.point.shape[0]), int(fit.point.shape[1]))
    if isinstance(fit, DitheredFit):
        terms = fit.study.terms if isinstance(fit.study, DitheredStudy) else fit.study
        return StoredFit(fit.people, shape, dithered=(terms, fit.knowledge))
    if isinstance(fit, LiuHuFit):
        public = fit.study.terms if isinstance(fit.study, LiuHuStudy) else fit.study
        planned = fit.people if fit.chains.tree is None else fit.chains.tree.n
        return StoredFit(fit.people, shape, liu_hu=(public, planned, fit.state))
    return StoredFit(fit.people, shape)


def restored(state: StoredFit) -> RegressionFit:
    """Return the fit of a plain state that was checked (`kept.is_kept`)."""
    fit: RegressionFit
    if state.dithered is not None:
        terms, knowledge = state.dithered
        fit = DitheredFit(terms, state.people, knowledge)
    elif state.liu_hu is not None:
        public, planned, run = state.liu_hu
        fit = LiuHuFit(public, chains_of(public, planned), run)
    else:
        fit = SearchingFit(state.people, np.full(state.shape, np.nan))
    return SplitFit(fit, state.split) if state.split else fit
