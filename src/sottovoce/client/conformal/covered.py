"""How many scores of a site a threshold covers: what it says in a second round, with or without noise."""

import numpy as np

from sottovoce.client.conformal.noise import geometric
from sottovoce.client.record import Records
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.selection.geometric import NoisyCount


def count_covered(scores: Records, threshold: float) -> int:
    """Count the scores at or below a threshold.

    >>> count_covered(Records(np.array([1.0, 2.0, 3.0])), 2.0)
    2
    """
    return int(np.count_nonzero(scores.values() <= threshold))


def noisy_covered(scores: Records, threshold: float, noise: NoisyCount, dice: RandomSource) -> int:
    """Count the scores at or below a threshold and add noise; the sum may fall outside 0 to the number of scores.

    Parameters
    ----------
    scores
        The scores of a site.
    threshold
        The threshold that was broadcast.
    noise
        The law of the noise.
    dice
        The source of words.

    Examples
    --------
    >>> from sottovoce.protocol.selection.geometric import noisy_count
    >>> from sottovoce.sim.randomness import dice
    >>> noisy_covered(Records(np.arange(100.0)), 89.0, noisy_count(1.0), dice(1))
    92
    """
    up, down = geometric(noise.numerator, 2, dice)
    return count_covered(scores, threshold) + int(up - down)
