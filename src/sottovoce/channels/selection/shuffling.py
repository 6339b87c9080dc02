"""What shuffling the sites' messages would add to their privacy (Feldman, McMillan and Talwar 2021), in closed form.

If m messages, each epsilon-private, reach the server in random order, together they are (epsilon', delta)-private with

    epsilon' = log(1 + (w - 1) / (w + 1) (8 sqrt(w log(4 / delta) / m) + 8 w / m)),      w = exp(epsilon),

provided that epsilon <= log(m / (16 log(2 / delta))). For delta = 1e-6 that takes m > 232 sites however small epsilon:
with fewer there is no amplification at all. Nothing in this package counts on it.
"""

import math

from sottovoce.errors import BadInput

DELTA = 1e-6


def sites_needed(delta: float = DELTA) -> int:
    """Return the largest number of sites for which shuffling amplifies nothing, whatever epsilon.

    >>> sites_needed()
    232
    """
    return math.floor(16 * math.log(2 / delta))


def shuffled_epsilon(epsilon: float, sites: int, delta: float = DELTA) -> float:
    """Return the epsilon of shuffled messages, with a delta; the same epsilon where shuffling does not amplify.

    Parameters
    ----------
    epsilon
        What each message costs by itself.
    sites
        How many messages are shuffled.
    delta
        The chance with which the smaller epsilon need not hold.

    Examples
    --------
    >>> shuffled_epsilon(1.0, 232), round(shuffled_epsilon(1.0, 1000), 3), round(shuffled_epsilon(1.0, 10_000), 3)
    (1.0, 0.566, 0.214)
    """
    if not 0 < delta < 1:
        raise BadInput(f"delta must lie strictly between 0 and 1, not {delta!r}; give one such as 1e-6.")
    if sites <= 16 * math.log(2 / delta) or epsilon > math.log(sites / (16 * math.log(2 / delta))):
        return epsilon
    odds = math.exp(epsilon)
    spread = 8 * math.sqrt(odds * math.log(4 / delta)) / math.sqrt(sites) + 8 * odds / sites
    return min(epsilon, math.log1p((odds - 1) / (odds + 1) * spread))
