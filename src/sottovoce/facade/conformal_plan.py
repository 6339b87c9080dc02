"""What to ask of the sites for a conformal threshold, decided from public numbers before any score is touched."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sottovoce.channels.selection.named import selection
from sottovoce.design.coverage.choose import Aim, Choice, choose, law_grid, survival
from sottovoce.design.coverage.equal import ROUNDING
from sottovoce.design.coverage.paper_private import paper_private
from sottovoce.design.coverage.voters import Kind
from sottovoce.errors import BadInput, Refused
from sottovoce.facade.conformal_base import SiteFacts
from sottovoce.facade.conformal_settings import Settings

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """Sites sorted into kinds, what each kind is asked, and how the answers are counted."""

    kinds: tuple[Kind, ...]
    number: tuple[int, ...]
    kind_of: tuple[int, ...]
    choice: Choice

    @property
    def orders(self) -> list[tuple[int, ...]]:
        """Return what each site is asked."""
        return [self.choice.orders[kind] for kind in self.kind_of]

    @property
    def votes(self) -> list[int]:
        """Return the votes of each value of each site."""
        return [self.choice.votes[kind] for kind in self.kind_of]


def plan(sites: Sequence[SiteFacts], settings: Settings, cells: int) -> Plan:
    """Choose orders, votes and rank, or refuse what so few scores cannot promise."""
    facts = sorted(set(sites))
    kind_of = tuple(map({fact: i for i, fact in enumerate(facts)}.__getitem__, sites))
    number = tuple(np.bincount(kind_of).tolist())
    if settings.mechanism == "paper":
        return _paper(facts, number, kind_of, settings, cells)
    kinds = tuple(_kind(fact, settings, cells) for fact in facts)
    found = choose(kinds, number, aim_of(settings), settings.statistics)
    if found is None:
        raise Refused(_too_few(sites, settings))
    return Plan(kinds, number, kind_of, found)


def aim_of(settings: Settings) -> Aim:
    """Return the promise in the words of the design."""
    return Aim(settings.alpha, settings.delta if settings.conditional else None, settings.rule)


def _kind(fact: SiteFacts, settings: Settings, cells: int) -> Kind:
    """Return what the design must know of a site; how far an answer may fail does not depend on the order asked."""
    if math.isinf(fact.epsilon) or settings.mechanism is None:
        return Kind(fact.size)
    mechanism = selection(settings.mechanism, fact.size, fact.size, cells, fact.epsilon)
    return Kind(fact.size, mechanism.failure, bounded=settings.mechanism == "exponential")


def _paper(
    facts: Sequence[SiteFacts], number: tuple[int, ...], kind_of: tuple[int, ...], settings: Settings, cells: int
) -> Plan:
    """Ask what the paper's private algorithm asks; it knows sites of one size with one budget."""
    if len(facts) > 1 or math.isinf(facts[0].epsilon):
        raise BadInput("mechanism 'paper' needs sites of one size with one budget; choose 'sparse-vector'.")
    size, epsilon = facts[0]
    pair = paper_private(number[0], size, settings.alpha, epsilon, cells)
    if pair is None:
        raise Refused(
            f"the paper's mechanism has no finite set for {number[0]:,} sites of {size:,} scores at epsilon "
            f"{epsilon:g}; add scores, or choose mechanism 'sparse-vector'."
        )
    kinds = (Kind(size, selection("paper", size, pair.order, cells, epsilon).failure, bounded=True),)
    choice = Choice(((pair.order,),), (1,), pair.rank, pair.mean, 0.5 / math.sqrt(size * number[0]))
    grid = law_grid(kinds, choice._replace(mean=1 - settings.alpha))
    held = survival(kinds, number, choice, grid.levels)
    # the paper's own bound is 1 - alpha; averaging over the scores gives a better one, where it is better
    mean = max(float(grid.mean(held)), 1 - settings.alpha)
    return Plan(kinds, number, kind_of, choice._replace(mean=mean, spread=float(grid.spread(held))))


def _too_few(sites: Sequence[SiteFacts], settings: Settings) -> str:
    """Say how many scores a finite set would need."""
    total = sum(site.size for site in sites)
    held = f"{total:,} score{'' if total == 1 else 's'}"
    level, alpha = 1 - settings.alpha, settings.alpha
    promise = f"cover {level:.6g}" + (f" with confidence {1 - settings.delta:.6g}" if settings.conditional else "")
    if settings.mechanism is not None:
        return (
            f"no finite set can {promise} from {held} at {len(sites):,} sites with these budgets; add scores, raise "
            "epsilon, or raise alpha."
        )
    if settings.conditional and settings.rule == "paper":
        needed = math.ceil(math.log(1 / settings.delta) / (2 * alpha**2) * (1 - ROUNDING))
        whose = " by the paper's theorem 3.3"
    elif settings.conditional:
        needed, whose = math.ceil(math.log(settings.delta) / math.log(level) * (1 - ROUNDING)), ""
    else:
        needed, whose = math.ceil(level / alpha * (1 - ROUNDING)), ""
    if total < needed:
        return (
            f"no finite set can {promise}{whose} from {held} in all; at least {needed:,} are needed: add scores, or "
            "raise alpha."
        )
    return (
        f"rule {settings.rule!r} has no finite set that can {promise} from {held} at {len(sites):,} sites so small; "
        "choose rule 'closest', or add scores."
    )
