"""What the paper hopes from shuffling the sites' messages, by the theorem it quotes; nothing here counts on it.

Feldman, McMillan and Talwar (2021): if m people each send an epsilon-private message about all that they hold, then in
random order the messages are together (epsilon', delta)-private with

    epsilon' = log(1 + (w - 1) / (w + 1) (8 sqrt(w log(4 / delta) / m) + 8 w / m)),      w = exp(epsilon),

provided that epsilon <= log(m / (16 log(2 / delta))). For delta = 1e-6 that takes m > 232 however small epsilon.

It does not apply here. A site's message is epsilon-private for one replaced score, not for all the scores of the site,
so the messages of other sites need not look like it and give no cover: let 999 sites hold low scores alone and one site
high ones, and its message stands out in any order. So shuffling adds nothing to the privacy of a record, whatever m.
"""

import math

from sottovoce.core.errors import BadInput

DELTA = 1e-6


def messages_needed(delta: float = DELTA) -> int:
    """Return the number of messages up to which even the theorem amplifies nothing, whatever epsilon.

    >>> messages_needed()
    232
    """
    return math.floor(16 * math.log(2 / delta))


def shuffled_epsilon(epsilon: float, messages: int, delta: float = DELTA) -> float:
    """Return the theorem's epsilon of shuffled messages, each about all that its sender holds; the same if not less.

    Parameters
    ----------
    epsilon
        What each message costs by itself.
    messages
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
    if messages <= 16 * math.log(2 / delta) or epsilon > math.log(messages / (16 * math.log(2 / delta))):
        return epsilon
    odds = math.exp(epsilon)
    spread = 8 * math.sqrt(odds * math.log(4 / delta)) / math.sqrt(messages) + 8 * odds / messages
    return min(epsilon, math.log1p((odds - 1) / (odds + 1) * spread))
