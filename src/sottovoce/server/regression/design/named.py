"""Read a channel's name, as the public class takes it: auto, cq, cq:q,s, lp, box or open."""

import math
import re
from collections.abc import Sequence

import numpy as np

from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.protocol.regression.cq import cq
from sottovoce.protocol.regression.open import open_channel
from sottovoce.server.regression.design.auto import Moments, choose, setting
from sottovoce.server.regression.design.boxes import boxes
from sottovoce.server.regression.design.covariates import Covariates
from sottovoce.server.regression.design.explain import Alternative, Design, alternative
from sottovoce.server.regression.design.families import Setting, best_cq, box_mixture, lp_mixture

_WHY = "asked for by name"


def parse(
    text: str, taus: float | Sequence[float], p: int, epsilon: float, second_moments: Moments | None = None
) -> Design:
    """Return the design that a name asks for; several levels of a named channel are split over people.

    Parameters
    ----------
    text
        ``auto``, ``cq`` (the best q and s), ``cq:q,s``, ``lp``, ``box`` or ``open``.
    taus
        The quantile level, or several.
    p
        The number of slopes.
    epsilon
        The budget of one report.
    second_moments
        The public E z_j^2 after scaling to [-1, 1]; None: 1/3.

    Examples
    --------
    >>> parse("cq:2,1", 0.5, 2, 2.0).channel.letters
    2
    """
    levels, known = setting(taus, p, epsilon, second_moments)
    if text == "auto":
        return choose(levels, p, epsilon, second_moments)
    if text == "open":
        if not math.isinf(epsilon):
            raise BadInput(f"channel 'open' is not private, yet epsilon is {epsilon!r}; give epsilon = inf with it.")
        return Design.of(open_channel(levels, p), known, _WHY)
    named = [_named(text, Setting(tau, epsilon, known)) for tau in levels]
    if len(named) == 1:
        return Design.of(named[0], known, _WHY)
    return _split(named, known, epsilon)


def _named(text: str, wanted: Setting) -> RegressionChannel:
    tau, epsilon, known = wanted
    shape = re.fullmatch(r"cq:(-?\d+),(-?\d+)", text)
    if shape is not None:
        return cq(tau, known.p, epsilon, int(shape[1]), int(shape[2]))
    if text not in ("cq", "lp", "box"):
        raise BadInput(f"there is no channel {text!r}; give auto, cq, cq:q,s (for example cq:3,1), lp, box, or open.")
    if text == "lp" and (known.p == 0 or math.isinf(epsilon)):
        raise BadInput("channel 'lp' needs a slope and a finite epsilon; give channel 'auto'.")
    table = boxes((tau,), epsilon, known)
    if text == "cq" or known.p == 0:
        return best_cq(wanted, table)
    return box_mixture(wanted, table) if text == "box" else lp_mixture(wanted, table, alone=True)


def _split(channels: list[RegressionChannel], known: Covariates, epsilon: float) -> Design:
    """Return the design in which each person answers for one level, drawn at random."""
    each = [alternative(channel, known, _WHY) for channel in channels]
    size = len(channels)
    errors = np.array([a.errors[0] for a in each]) * math.sqrt(size)
    whole = Alternative("split", "each person answers for one level", errors, sum(a.trace for a in each) * size)
    return Design("split", tuple(channels), known, epsilon, (whole,), whole.description)
