"""How much longer intervals will be than with all people asked at the point and the slope known, before anybody is.

The doubt of a coefficient's standard error falls as people are asked about it, and as many are asked as the doubt is
worth (decision 0076), so both are the fixed point of two public formulas: what a bit or a dither tells, and the shares.
"""

import math
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.dithered.asking import DITHERED, INTERCEPT, MOMENTS, PRODUCTS, WORTH
from sottovoce.protocol.regression.dithered.density import reach
from sottovoce.protocol.regression.dithered.functionals import SQUARE
from sottovoce.protocol.regression.dithered.moments import POSSIBLE
from sottovoce.protocol.regression.dithered.vech import product

SLOPE_PRIOR, DENSITY_PRIOR = 0.15, 0.5  # standard deviations, relative, of what dithers have to tell
MOST_DOUBT = 1.0  # nothing longer is predicted
ROUNDS = 60  # until shares and doubts agree
ONWARDS = 0.64  # of the doubt: by so much more an interval is longer, set on 15 of 29 cells (decision 0077)


class Predicted(NamedTuple):
    """For each contrast its standard error at density 1, its doubt, and by what its interval is longer."""

    error: Floats
    doubt: Floats
    longer: Floats


def predict(
    moments: Floats,
    omega: Floats,
    tau: float,
    people: float,
    truth: float,
    z: float,
    contrasts: Floats | None = None,
    *,
    known: bool = False,
) -> Predicted:
    """Return the prediction for one level at density 1, which the doubts do not depend on; contrasts are columns.

    ``omega`` is the noise of a gradient, ``truth`` how often a bit about moments is the record's own.

    >>> sure, unsure = (predict(np.eye(2), 4 * np.eye(2), 0.5, n, 0.5, 1.96).doubt.max() for n in (10**6, 10**4))
    >>> bool(sure < unsure)
    True
    """
    d, inverse = len(moments), np.linalg.inv(moments)
    u = inverse @ (np.eye(d) if contrasts is None else contrasts)
    w = inverse @ omega @ u
    variance = np.einsum("ja,jk,ka->a", u, omega, u)
    size = [np.einsum("ja,jk,ka->a", each, moments, each) for each in (u, w)]
    noise = [np.einsum("ja,jk,ka->a", each, omega, each) for each in (u, w)]
    step = reach(min(tau, 1 - tau)) ** 2
    bit = (SQUARE / 2) ** 2 / truth**2 * size[0] * size[1] / variance**2
    way = np.minimum(noise[1] * size[0], noise[0] * size[1]) / (step * variance**2)
    top = float(omega[0, 0]) / step
    gradient = product(u.T, w.T) / variance[:, None]
    first = 0.0 if known else 1.0
    prior = first * np.square(gradient[:, 1:]).sum(axis=1) * POSSIBLE[0] ** 2
    doubts = np.stack([prior, np.full(len(variance), SLOPE_PRIOR**2), np.full(len(variance), DENSITY_PRIOR**2)])
    asked = told = 0.0
    for _ in range(ROUNDS):
        asked = min(max(WORTH * float(doubts[0].max()), MOMENTS[0]), MOMENTS[1]) * first
        told = min(max(WORTH * float(doubts.sum(axis=0).max()), DITHERED[0]), DITHERED[1])
        part = INTERCEPT[0] + INTERCEPT[1] * min(float(doubts[2, 0]) / float(doubts.sum(axis=0).max()), 1.0)
        bits, ways = people * asked * (1 - PRODUCTS) / d, people * told * (1 - part) / d
        fresh = np.stack(
            [
                1 / (1 / np.maximum(prior, 1e-300) + bits / bit),
                1 / (1 / SLOPE_PRIOR**2 + ways / way),
                np.full(len(variance), 1 / (1 / DENSITY_PRIOR**2 + people * told * part / top)),
            ]
        )
        doubts = np.sqrt(doubts * fresh)
    squared = np.minimum(doubts.sum(axis=0), MOST_DOUBT**2)
    longer = np.exp((z**2 - 1) / 2 * squared + ONWARDS * np.sqrt(squared)) / math.sqrt(1 - asked - told)
    return Predicted(np.sqrt(variance / people), np.sqrt(squared), np.asarray(longer))
