"""Shares of geometric noise: each of ``m`` sites adds the difference of two Pólya variables (Goryczka & Xiong 2017).

A Pólya variable of index ``1 / m`` and ratio ``p`` has probabilities proportional to
``weight(k) = p^k (1/m)(1/m + 1)...(1/m + k - 1) / k!``. By the binomial series the sum of ``m`` of them is geometric,
``p^k``, and so the sum of all shares is exactly the two-sided geometric distribution ``p^|k| (1 - p) / (1 + p)``. The
ratio is ``numerator / 2^64``, so epsilon is computed; the weights are rational, so a share can be drawn without error.

A replaced record takes one from a cell and gives one to another: it costs ``2 log(1 / p)``. This is the privacy of the
sum over *all* sites, seen by somebody who sees nothing else: whoever also knows the shares of some sites, or a sum from
which some are missing, faces less noise.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from sottovoce.core.errors import BadInput
from sottovoce.protocol.selection.geometric import WORD, cost

LARGEST = 48.0  # beyond it a word has too few faces below the numerator to come within 1e-8 of the stated budget
SMALLEST = 1e-6  # below it the noise might leave the 32-bit integers of a message


@dataclass(frozen=True)
class Polya:
    """The noise of one of ``sites`` sites, whose sum has ratio ``numerator / 2^64``; ``numerator`` zero is no noise."""

    numerator: int
    sites: int

    @property
    def ratio(self) -> Fraction:
        """Return the ratio of neighbouring probabilities of the summed noise."""
        return Fraction(self.numerator, WORD)

    @property
    def epsilon(self) -> float:
        """Return the realised epsilon of a replaced record, computed from the integers."""
        return math.inf if self.numerator == 0 else cost(self.numerator, self.numerator)

    @property
    def variance(self) -> float:
        """Return the variance of the summed noise in one cell."""
        return float(2 * self.ratio / (1 - self.ratio) ** 2)

    def odds(self, count: int) -> tuple[int, int]:
        """Return ``weight(count + 1) / (p weight(count))`` as a numerator and a denominator, the first not larger."""
        return count * self.sites + 1, (count + 1) * self.sites

    def weight(self, count: int) -> Fraction:
        """Return what the probability of a count is proportional to, exactly; ``weight(0)`` is one."""
        weight = self.ratio**count
        for i in range(count):
            weight *= Fraction(*self.odds(i))
        return weight


def polya(epsilon: float, sites: int) -> Polya:
    """Return the noise share whose sum over all sites spends as much of ``epsilon`` as integers allow, and never more.

    Parameters
    ----------
    epsilon
        The budget of a record; ``math.inf`` adds no noise.
    sites
        How many sites share the noise; all of them must take part.

    Examples
    --------
    >>> noise = polya(1.0, sites=5)
    >>> noise.epsilon <= 1.0 < noise.epsilon + 1e-8
    True
    >>> round(noise.variance, 2)
    7.84
    """
    if sites < 1:
        raise BadInput(f"noise is shared by at least one site, not {sites}; give the number of sites.")
    if not epsilon >= SMALLEST:
        raise BadInput(f"epsilon must be at least {SMALLEST:g}, not {epsilon!r}; give a budget such as 1.")
    if math.isinf(epsilon):
        return Polya(0, sites)
    if epsilon > LARGEST:
        raise BadInput(
            f"epsilon {epsilon!r} is above {LARGEST:g}, the most this noise can express; "
            "give a smaller budget, or inf for no privacy."
        )
    with localcontext() as context:
        context.prec = 80
        share = Decimal(WORD) * (-Decimal(epsilon) / 2).exp()
        return Polya(int(share.to_integral_value(rounding=ROUND_CEILING)), sites)
