"""Find the channel of a private quantile regression: by name, by itself, or as somebody built it."""

from functools import lru_cache

import numpy as np

from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.server.regression.design import Design, parse
from sottovoce.server.regression.design.covariates import covariates
from sottovoce.server.regression.settings import Settings


def design_of(settings: Settings, p: int) -> Design:
    """Return the design for ``p`` covariates; it looks at public numbers alone, and spends nothing."""
    moments = settings.second_moments
    if isinstance(settings.channel, RegressionChannel):
        return _given(settings.channel, settings, p)
    key = None if moments is None else (moments.shape, tuple(float(moment) for moment in moments.ravel()))
    return _parsed(settings.channel, settings.taus, p, settings.epsilon, key)


@lru_cache(maxsize=64)
def _parsed(
    text: str,
    taus: tuple[float, ...],
    p: int,
    epsilon: float,
    key: tuple[tuple[int, ...], tuple[float, ...]] | None,
) -> Design:
    # a search of up to two seconds, whose answer every refit needs again
    moments = None if key is None else np.array(key[1]).reshape(key[0])
    return parse(text, taus, p, epsilon, moments)


def _given(channel: RegressionChannel, settings: Settings, p: int) -> Design:
    """Return the design of a channel that somebody built, unless it is one for another regression."""
    if channel.p != p:
        raise BadInput(f"the channel is for {channel.p} covariates and X has {p}; build it for {p}.")
    if channel.taus != settings.taus:
        raise BadInput(f"the channel is for tau {channel.taus} and tau is {settings.taus}; give both the same levels.")
    if channel.epsilon > settings.epsilon:
        raise BadInput(
            f"the channel's epsilon is {channel.epsilon:.9g}, above the budget epsilon={settings.epsilon:g}; "
            "raise the budget, or build the channel for it."
        )
    return Design.of(channel, covariates(p, settings.second_moments), "given")
