"""A site's part of a sum over all sites: the counts of its scores on a public grid, plus its share of the noise.

A single message is **not** private by the stated epsilon: its noise is one share of many. The messages are integers
modulo 2^32 so that a secure aggregation can mask them (`masked`); the epsilon holds for the sum over all sites alone.
So a site takes the number of sites from the card that it has agreed to, never from a query: one site that believed in a
million others would send exact counts.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from sottovoce.client.conformal.draw import cell_counts, geometric
from sottovoce.client.conformal.site import LIMITS, OneMessageSite, check_words
from sottovoce.client.door import SiteLimits
from sottovoce.client.ledger import Storage
from sottovoce.client.order import Key
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.protocol.card import Card
from sottovoce.protocol.exact import within
from sottovoce.protocol.messages import Study, SumQuery, SumShare
from sottovoce.protocol.selection.geometric import SMALLEST, WORD, Polya, polya
from sottovoce.protocol.selection.geometric import ratio as ratio_of

MOST_SITES = 10_000  # of a sum: a share of less noise than that hides nothing by itself, should the masks fail
_MOST_NOISE = polya(SMALLEST, 1).numerator  # more would leave the 32-bit integers of a message
Vector = npt.NDArray[np.uint32]


def questioned_site(
    scores: Records,
    budget: float,
    dice: RandomSource | None = None,
    *,
    storage: Storage | None = None,
    key: Key | None = None,
    limits: SiteLimits = LIMITS,
) -> Site:
    """Return a site each of whose records answers one question through its own budget: mechanism "local"."""
    return Site(
        scores, Study(0.5, budget), dice, storage=storage, key=key, limits=limits
    )  # nothing here depends on tau


def agreed_sites(card: Card, name: str, most: int = MOST_SITES) -> int:
    """Return how many sites share the noise of a study, from the card that this site has agreed to.

    The card's term ``sites`` lists every site by name, this one (``name``) among them; ``most`` is how many sites this
    one is ready to share noise with.
    """
    names = card.terms.get("sites")
    if not isinstance(names, list | tuple) or len(set(map(str, names))) != len(names) or name not in names:
        raise BadInput("the study card does not list every site once, this one among them; correct the card.")
    if len(names) > most:
        raise BadInput(f"the study card lists more than {most:,} sites for one sum; part the study.")
    return len(names)


class SharingSite(OneMessageSite):
    """A place that holds scores and gives its share of one secure sum.

    How many ``sites`` share the noise is what it knows from the card (`agreed_sites`), not what it is told; ``budget``
    is what the sum over all sites may cost a record, ``math.inf`` for no privacy.

    >>> import math
    >>> site = SharingSite(Records(np.array([0.5, 1.5, 2.5])), 2, math.inf)
    >>> site.answer(SumQuery((1.0, 2.0), 0, 2))
    SumShare(counts=(1, 1))
    """

    __slots__ = ("_sites",)

    kinds = (SumQuery,)
    asked_for = "for its share of a sum"

    def __init__(
        self,
        scores: Records,
        sites: int,
        budget: float,
        dice: RandomSource | None = None,
        *,
        storage: Storage | None = None,
        limits: SiteLimits = LIMITS,
    ) -> None:
        super().__init__(scores, budget, dice, storage=storage, limits=limits)
        self._sites = sites

    def answer(self, query: SumQuery) -> SumShare:
        """Return the noisy counts above each edge up to the next; a retry gets the same, another query is refused."""
        edges = self._check_grid(query.edges)
        if query.sites != self._sites:
            raise BadInput("the query names another number of sites than the study card; ask as many as have agreed.")
        if not 0 <= query.noise <= _MOST_NOISE:
            raise BadInput("the integer of the noise is out of range; make it of the study's epsilon.")
        if not within(ratio_of(query.noise, query.noise) if query.noise else None, self._budget):
            raise BadInput(
                f"the sum would cost a record more than this site's budget of {self._budget:.6g}; ask for more noise."
            )
        check_words(query.noise, 2 * len(edges))
        noise = Polya(query.noise, query.sites)

        def drawn() -> SumShare:
            counts: list[int] = noisy_counts(cell_counts(self._scores, edges), noise, self._dice).tolist()
            return SumShare(tuple(counts))

        return self._once(query, SumShare, drawn)


def noisy_counts(counts: Ints, noise: Polya, dice: RandomSource) -> Vector:
    """Return the counts of all cells but the lowest with a share of noise, modulo 2^32.

    The count of the lowest cell stands first, and is not sent.
    """
    ends = len(counts) - 1
    up, down = draw_polya(noise, ends, dice), draw_polya(noise, ends, dice)
    return np.asarray(np.mod(counts[1:] + up - down, 1 << 32), dtype=np.uint32)


def draw_polya(noise: Polya, n: int, dice: RandomSource) -> Ints:
    """Draw Pólya variables without error: a geometric proposal k survives k throws of ``noise.odds``."""
    drawn = np.zeros(n, dtype=np.int64)
    if noise.numerator == 0:
        return drawn
    waiting = np.arange(n)
    while waiting.size:
        proposed = geometric(noise.numerator, waiting.size, dice)
        survived = _survive(proposed, noise, dice)
        drawn[waiting[survived]] = proposed[survived]
        waiting = waiting[~survived]
    return drawn


def _survive(counts: Ints, noise: Polya, dice: RandomSource) -> npt.NDArray[np.bool_]:
    """Tell which proposals are kept, each with probability weight(count) / ratio^count."""
    alive = np.ones(len(counts), dtype=np.bool_)
    for i in range(int(np.max(counts, initial=0))):
        thrown = np.flatnonzero(alive & (counts > i))
        if not thrown.size:
            break
        alive[thrown] = _throw(*noise.odds(i), thrown.size, dice)
    return alive


def _throw(numerator: int, denominator: int, n: int, dice: RandomSource) -> npt.NDArray[np.bool_]:
    """Throw ``n`` coins that show true with probability numerator / denominator exactly."""
    last = np.uint64(WORD - 1 - WORD % denominator)  # words beyond it would favour the small remainders: throw again
    words = dice.words(n).copy()
    while (beyond := np.flatnonzero(words > last)).size:
        words[beyond] = dice.words(beyond.size)
    return np.asarray(words % np.uint64(denominator) < np.uint64(numerator))


def masked(vector: Vector, place: int, shared: Mapping[int, RandomSource]) -> Vector:
    """Return a message under the pairwise masks that its site shares with every other site.

    Each pair adds and takes off the same words (Bonawitz et al. 2017, without dropouts,
    https://doi.org/10.1145/3133956.3133982): the masks cancel in the sum over all sites, and a single masked message is
    uniform, whatever it hides. The words of a pair must come from a secret that only the two share, through a generator
    that nobody can predict: agreeing on it is the task of the secure-aggregation layer, and seeded dice of a simulation
    are not fit for it.

    ``shared`` has, for the number of each other site, dice that throw the same words at both.

    >>> from sottovoce.sim.randomness import dice
    >>> first = masked(np.array([7, 3], dtype=np.uint32), 0, {1: dice(5)})
    >>> second = masked(np.array([1, 4], dtype=np.uint32), 1, {0: dice(5)})
    >>> (first + second).tolist()
    [8, 7]
    """
    if place in shared:
        raise ValueError("a site shares no mask with itself")
    hidden = vector.astype(np.uint32)
    for other, dice in sorted(shared.items()):
        # the low half of a uniform word is uniform; unsigned arrays wrap around without a warning
        mask = dice.words(len(vector)).astype(np.uint32)
        hidden = hidden + mask if place < other else hidden - mask
    return hidden
