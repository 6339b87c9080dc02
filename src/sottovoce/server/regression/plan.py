"""The plan of a private quantile regression: what is public of it before anybody is asked, and what that leads to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import Bounds
from sottovoce.core.errors import BadInput
from sottovoce.protocol.card import Card
from sottovoce.protocol.randomised_response import binary
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.protocol.regression.carried import carried
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.server.regression.design import Design
from sottovoce.server.regression.fits import RegressionFit, SearchingFit, SplitFit
from sottovoce.server.regression.omega import omega_at
from sottovoce.server.regression.pilot import Guess
from sottovoce.server.regression.result import RegressionResult
from sottovoce.server.regression.settings import RegressionSettings
from sottovoce.server.regression.study import LiuHuStudy, paper_scale
from sottovoce.server.regression.summary import RegressionFacts

RegressionStudy = DitheredStudy | LiuHuStudy


@dataclass(frozen=True, eq=False)
class RegressionPlan:
    """What is asked and how: settings, channels, the bounds of the covariates, and where the coefficients start."""

    settings: RegressionSettings
    design: Design
    bounds: Bounds
    starts: Floats | None = None  # (levels, d), scaled; None: nobody guessed
    level: float = 0.95
    response: str = ""

    @property
    def p(self) -> int:
        """Return the number of covariates."""
        return len(self.bounds.names)

    @property
    def epsilon(self) -> float:
        """Return the realised epsilon of a report, computed from the channels that people may be asked through."""
        found = [channel.epsilon for channel in self.design.channels]
        if self.settings.inference == "dithered" and math.isfinite(self.design.epsilon):
            found += [channel.bit.epsilon for channel in self.design.channels]
        if self.settings.searches:
            found.append(binary(self.design.epsilon).epsilon)
        return max(found)

    def guess(self, found: Guess | None) -> Guess:
        """Return the guesses that were given, and for the rest what the pilot found."""
        settings = self.settings
        density = settings.density if settings.density is not None else getattr(found, "density", None)
        size = settings.size if settings.size is not None else getattr(found, "size", None)
        if density is None or size is None:
            raise BadInput("density and size are neither given nor found; run the pilot before.")
        start = np.zeros((len(settings.taus), self.p + 1)) if found is None else found.start
        return Guess(density, size, start if self.starts is None else self.starts)

    def studies(self, guess: Guess) -> list[RegressionStudy]:
        """Return what each channel's people take part in."""
        found: list[RegressionStudy] = []
        first = 0
        for channel in self.design.channels:
            own = slice(first, first + len(channel.taus))
            first = own.stop
            found.append(self._study(channel, Guess(guess.density[own], guess.size, guess.start[own])))
        return found

    def _study(self, channel: RegressionChannel, guess: Guess) -> RegressionStudy:
        settings, known = self.settings, self.design.known
        noise = np.array([omega_at(channel, known, level) for level in range(len(channel.taus))])
        moments = known.information
        if settings.inference == "dithered":
            public = settings.public_moments(self.bounds)
            sure, declared = (False, None) if public is None else (public.known, public.declared)
            return DitheredStudy(
                channel, noise, guess.density, guess.size, guess.start, moments, sure, settings.limit, declared
            )
        taus = np.array(channel.taus)
        return LiuHuStudy(
            channel,
            noise,
            guess.start,
            paper_scale(channel, guess.size, second_moments=known.cross),
            limit=settings.limit,
            inference=settings.inference,
            groups=settings.groups or 0,
            tree=settings.tree,
            noise=float(np.mean(taus * (1 - taus) / guess.density)),  # the scale of logistic errors of that density
            moments=moments,
        )

    def result(
        self, fits: Sequence[RegressionFit], people: int, private: bool, clipped: int = 0, sites: int = 1
    ) -> RegressionResult:
        """Return the result of the channels' fits; without any, that of a search that goes on."""
        channels = self.design.channels
        if not fits:
            fits = [SearchingFit(people, np.full((len(channel.taus), self.p + 1), np.nan)) for channel in channels]
        elif self.design.split:
            fits = [SplitFit(fit, len(channels)) for fit in fits]
        epsilon = self.epsilon
        facts = RegressionFacts(
            self.settings.taus,
            self.settings.several,
            self.settings.inference,
            epsilon,
            private and math.isfinite(epsilon),
            people,
            self.design.name,
            self.design.why,
            max(channel.letters for channel in channels),
            self.design.split,
            self.level,
            self.response,
            sites,
        )
        through = tuple(carried(channel) for channel in channels)
        return RegressionResult(facts, self.bounds, tuple(fits), clipped, through)

    def card(self, key: bytes, people: Sequence[int], nonce: bytes = b"") -> Card:
        """Return the study card: the public terms, channels with the integers that decide their epsilon."""
        settings = self.settings
        terms = {
            "tau": list(settings.taus),
            "epsilon": settings.epsilon,
            "inference": settings.inference,
            "columns": list(self.bounds.names),
            "low": self.bounds.low.tolist(),
            "high": self.bounds.high.tolist(),
            "searches": settings.searches,
            "channels": [carried(channel) for channel in self.design.channels],
            "people": list(people),
            "key": key,
        }
        return Card("regression", terms, self.response, nonce)
