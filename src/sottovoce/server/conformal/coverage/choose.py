"""What to ask of sites of any sizes, private or not, and which of their answers to take.

Each site is asked for the orders whose values lie below the level 1 - alpha with given chances, near one half where a
vote tells most; its votes are slope over variance of that chance, the best weights of a sum of votes, which without
privacy are as the square roots of the sizes. Over a few such chances the exact distribution decides, by the rule asked
for:

* "closest" takes the smallest root mean square distance of the coverage from 1 - alpha, "paper" the smallest mean;
* "marginal" holds the mean at 1 - alpha or more, "training-conditional" the probability that one calibration covers
  that much at 1 - delta or more (and then takes the smallest mean).

Without privacy, sites of equal size with one value each are searched through, order by order (`equal.py`); the paper's
rule for unequal sizes is one candidate: the split-conformal order at each site, one vote each.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sottovoce.core.arrays import Bools, Floats
from sottovoce.server.conformal.coverage import equal
from sottovoce.server.conformal.coverage.voters import (
    EXPONENTIAL,
    NORMAL,
    Kind,
    LevelGrid,
    below,
    corners,
    information,
    level_grid,
    orders_for,
)

if TYPE_CHECKING:
    from sottovoce.server.conformal.coverage.voting import Voters


# Votes of the site that tells most: the first that keep `ALMOST` all of what the best weights would tell, since more
# only make the distribution longer (docs/decisions/0032).
VOTES = (24, 96, 384, 1536)
ALMOST = 0.99
# Chances that a site's value lies below the level 1 - alpha. A vote tells most near one half, so these come first: many
# kinds of sites try the first few only. The grid was chosen by hand (docs/decisions/0032); the exact distribution
# decides among them, so a coarse grid costs width and no validity.
CHANCES = (0.5, 0.55, 0.45, 0.6, 0.4, 0.65, 0.35, 0.7, 0.3, 0.8, 0.2, 0.9, 0.1, 0.97, 0.03)
SMALL = 50_000  # scores of a site up to which a finer grid of chances is tried
MANY, FEW = 40, 5  # kinds of sites beyond which only some chances, or one, are tried
# How many deviations from the middle the outermost of several orders stands, by their number; chosen by hand.
APART = {1: (0.0,), 2: (0.4, 0.6, 0.8), 3: (0.7, 0.85, 1.0), 4: (0.9, 1.05), 5: (1.0, 1.2, 1.4)}


class Aim(NamedTuple):
    """What is promised: coverage 1 - alpha on average, or of one calibration but for a part delta of them."""

    alpha: float
    delta: float | None = None  # None: on average
    rule: str = "closest"
    lowest: bool = False  # take the smallest valid rank, so that the one below it is not valid

    def reached(self, means: Floats) -> Bools:
        """Tell which mean coverages keep the promise on average."""
        return np.asarray(means >= 1 - self.alpha - min(equal.ROUNDING, 1e-6 * self.alpha))


class Choice(NamedTuple):
    """What is asked of each kind of site, how many votes its values have, and which rank of all votes is taken."""

    orders: tuple[tuple[int, ...], ...]
    votes: tuple[int, ...]
    rank: int
    mean: float
    sd: float


def choose(kinds: Sequence[Kind], number: Sequence[int], aim: Aim, statistics: int = 1) -> Choice | None:
    """Return the best choice for sites of several kinds; None if no threshold can keep the promise.

    >>> choice = choose([Kind(20), Kind(1000)], [15, 5], Aim(0.1))
    >>> choice.orders, choice.votes, round(choice.mean, 4), round(choice.sd, 4)
    (((19,), (901,)), (1, 8), 0.9002, 0.0051)
    """
    plain = all(kind.failure is None for kind in kinds)
    if len(kinds) == 1 and plain and statistics == 1:
        return _equal(kinds[0].size, number[0], aim)
    best: tuple[float, Choice] | None = None
    for tried, orders in enumerate(_candidates(kinds, aim, statistics)):
        if best is not None and tried >= (1 if len(kinds) > 5 * MANY else FEW if len(kinds) > MANY else math.inf):
            break
        votes = _votes(kinds, number, orders, aim)
        found = _rank(kinds, number, orders, votes, aim)
        if found is not None and not any(kind.bounded for kind in kinds):  # an infinite set is worth nothing
            found = found[0] + infinite(kinds, number, found[1]), found[1]
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return None if best is None else best[1]


def rank_of(
    kinds: Sequence[Kind], number: Sequence[int], orders: tuple[tuple[int, ...], ...], aim: Aim
) -> Choice | None:
    """Return votes and rank for orders that were asked already; None if no rank keeps the promise.

    >>> found = rank_of([Kind(99)], [5], ((90,),), Aim(0.1))  # the orders of five sites' own split-conformal thresholds
    >>> found.rank, round(found.mean, 3)
    (3, 0.902)
    """
    found = _rank(kinds, number, orders, _votes(kinds, number, orders, aim), aim)
    return None if found is None else found[1]


def survival(kinds: Sequence[Kind], number: Sequence[int], choice: Choice, levels: Floats) -> Floats:
    """Return the probability that the coverage of one calibration is at least each level."""
    if len(kinds) == 1 and len(choice.orders[0]) == 1:
        from scipy.special import betainc

        chance = below(kinds, np.array(choice.orders), levels)[0, 0]
        rank = -(-choice.rank // choice.votes[0])
        return np.asarray(betainc(number[0] - rank + 1, rank, 1 - chance))
    from sottovoce.server.conformal.coverage.voting import vote_distribution

    return np.asarray(
        vote_distribution(_voters(kinds, number, choice.orders, choice.votes, levels)).at_most(
            np.array([choice.rank - 1])
        )[:, 0]
    )


def infinite(kinds: Sequence[Kind], number: Sequence[int], choice: Choice) -> float:
    """Return the chance that noise alone makes the threshold infinite, were no score beyond the grid.

    Without privacy it is 1 where the rank reaches sites that have fewer scores than the order asked, and else 0.
    """
    from sottovoce.server.conformal.coverage.voting import Voters, vote_distribution

    held = np.array(
        [
            [1.0 if kind.failure is None and order <= kind.size else _stays(kind, order) for order in asked]
            for kind, asked in zip(kinds, choice.orders, strict=True)
        ]
    )
    tails = np.ones((len(kinds), 1, held.shape[1] + 2))
    tails[:, 0, 1:-1], tails[:, 0, -1] = held, 0.0
    voters = Voters(tails[:, :, :-1] - tails[:, :, 1:], np.array(choice.votes), np.array(number))
    return float(vote_distribution(voters).at_most(np.array([choice.rank - 1]))[0, 0])


def lower_neighbour(kinds: Sequence[Kind], number: Sequence[int], choice: Choice) -> Choice:
    """Return the same choice one rank lower; the rank 0 covers nothing.

    >>> choice = choose([Kind(40)], [10], Aim(0.1))
    >>> choice[:3], round(choice.mean, 5), round(lower_neighbour([Kind(40)], [10], choice).mean, 5)
    ((((36,),), (1,), 7), 0.90112, 0.88929)
    """
    if choice.rank == 1:
        return choice._replace(rank=0, mean=0.0, sd=0.0)
    grid = distribution_grid(kinds, choice)
    lower = choice._replace(rank=choice.rank - 1)
    held = survival(kinds, number, lower, grid.levels)
    return lower._replace(mean=float(grid.mean(held)), sd=float(grid.sd(held)))


def distribution_grid(kinds: Sequence[Kind], choice: Choice) -> LevelGrid:
    """Return levels that hold the distribution of the coverage of a choice."""
    return _grid(kinds, choice.orders, choice.votes, choice.mean, choice.sd / (choice.mean * (1 - choice.mean)))


def _equal(size: int, number: int, aim: Aim) -> Choice | None:
    """Search all orders and ranks."""
    if aim.delta is None:
        pair = (equal.argmin if aim.rule == "paper" else equal.closest)(number, size, aim.alpha)
    else:
        pair = (equal.theorem if aim.rule == "paper" else equal.conditional)(number, size, aim.alpha, aim.delta)
    return None if pair is None else Choice(((pair.order,),), (1,), pair.rank, pair.mean, pair.sd)


def _candidates(kinds: Sequence[Kind], aim: Aim, statistics: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield orders for all kinds that are worth trying, the likeliest first."""
    level = 1 - aim.alpha
    if aim.rule == "paper" and all(kind.failure is None for kind in kinds):
        yield tuple((math.ceil(level * (kind.size + 1) * (1 - equal.ROUNDING)),) for kind in kinds)
        return
    normal, seen = NormalDist(), set()
    every = len(kinds) == 1 and statistics == 1 and kinds[0].size <= SMALL  # an order more or less matters there
    chances = np.linspace(0.96, 0.04, 47).tolist() if every else list(CHANCES)
    if aim.delta is not None:  # few sites can be that sure only if each is
        chances += [part * aim.delta ** (1 / root) for root in (1, 2, 3, 5) for part in (0.99, 0.8, 0.5, 0.1, 0.01)]
    for middle in chances:
        for apart in APART[statistics]:
            wanted = np.array(
                [normal.cdf(normal.inv_cdf(middle) - step) for step in np.linspace(-apart, apart, statistics)]
            )
            orders = tuple(map(tuple, orders_for(kinds, level, wanted).tolist()))
            if orders not in seen:
                seen.add(orders)
                yield orders


def _votes(kinds: Sequence[Kind], number: Sequence[int], orders: Sequence[Sequence[int]], aim: Aim) -> tuple[int, ...]:
    """Return whole numbers in proportion to what each kind of site tells, as large as it takes to be so."""
    if len(kinds) == 1 or (aim.rule == "paper" and all(kind.failure is None for kind in kinds)):
        return (1,) * len(kinds)
    told, count = information(kinds, np.array(orders), 1 - aim.alpha), np.array(number)
    if not told.max() > 0:
        return (1,) * len(kinds)
    chance = below(kinds, np.array(orders), np.array([1 - aim.alpha]))[:, :, 0]
    noise = np.mean(chance * (1 - chance), axis=1)
    for most in VOTES:
        votes = np.maximum(np.rint(most * told / told.max()), 1.0)
        # of what the best weights could tell; many small sites with a vote each may drown a large one
        if (count @ (votes * told * noise)) ** 2 >= ALMOST * (count @ (votes**2 * noise)) * (count @ (told**2 * noise)):
            break
    whole = votes.astype(np.int64)
    return tuple((whole // np.gcd.reduce(whole)).tolist())


def _rank(
    kinds: Sequence[Kind], number: Sequence[int], orders: tuple[tuple[int, ...], ...], votes: tuple[int, ...], aim: Aim
) -> tuple[float, Choice] | None:
    """Return the best rank that keeps the promise, with what it is worth by the rule; None if none does."""
    from sottovoce.server.conformal.coverage.voting import mean_and_variance, vote_distribution

    level = 1 - aim.alpha
    near = np.array([level - 1e-4 * aim.alpha, level, level + 1e-4 * aim.alpha])
    centre, variance = mean_and_variance(_voters(kinds, number, orders, votes, near))
    slope = (centre[2] - centre[0]) / (near[2] - near[0])
    if not slope > 0:
        return None
    deviation = math.sqrt(float(variance[1])) / slope / (level * aim.alpha)
    grid = _grid(kinds, orders, votes, level, max(deviation, 1e-9))
    voters = _voters(kinds, number, orders, votes, grid.levels)
    reach = 8 * math.sqrt(float(variance[1])) + 40 * max(votes)
    ranks = np.arange(max(1, int(centre[1] - reach)), min(voters.total, int(centre[1] + reach) + 1) + 1)
    held = vote_distribution(voters).at_most(ranks - 1)
    means = grid.mean(held)
    if aim.delta is None:
        valid = aim.reached(means)
    else:
        at = vote_distribution(_voters(kinds, number, orders, votes, np.array([level]))).at_most(ranks - 1)[0]
        valid = at >= 1 - aim.delta - min(equal.ROUNDING, 1e-6 * aim.delta)
    if not valid.any():
        return None
    sds = grid.sd(held)
    worth = means if aim.delta is not None or aim.rule == "paper" else (means - level) ** 2 + sds**2
    i = int(np.argmax(valid) if aim.lowest else np.argmin(np.where(valid, worth, np.inf)))
    return float(worth[i]), Choice(orders, votes, int(ranks[i]), float(means[i]), float(sds[i]))


def _voters(
    kinds: Sequence[Kind], number: Sequence[int], orders: Sequence[Sequence[int]], votes: Sequence[int], levels: Floats
) -> "Voters":
    """Return the distribution of each kind's values below the levels."""
    from sottovoce.server.conformal.coverage.voting import Voters

    tails = np.zeros((len(kinds), len(levels), len(orders[0]) + 2))
    tails[:, :, 0] = 1.0
    tails[:, :, 1:-1] = below(kinds, np.array(orders), levels).transpose(0, 2, 1)
    return Voters(tails[:, :, :-1] - tails[:, :, 1:], np.array(votes), np.array(number))


def _stays(kind: Kind, order: int) -> float:
    """Return the chance that a site without scores beyond the grid does not answer infinity."""
    return 0.0 if kind.unbounded is None else 1 - kind.unbounded(order)


def _grid(
    kinds: Sequence[Kind], orders: Sequence[Sequence[int]], votes: Sequence[int], level: float, deviation: float
) -> LevelGrid:
    """Return levels that hold a distribution of coverage: noise for privacy falls off more slowly, and has corners."""
    reach = NORMAL if all(kind.failure is None for kind in kinds) else EXPONENTIAL
    return level_grid(level, deviation, reach, corners(kinds, orders, votes))
