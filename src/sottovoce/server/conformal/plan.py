"""What to ask of the sites for a conformal threshold, decided from public numbers before any score is touched."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.protocol.selection import Mechanism, selection
from sottovoce.server.conformal.base import SiteFacts
from sottovoce.server.conformal.coverage.choose import Aim, Choice, choose, distribution_grid, infinite, survival
from sottovoce.server.conformal.coverage.equal import ROUNDING, paper_private
from sottovoce.server.conformal.coverage.voters import Kind
from sottovoce.server.conformal.settings import Settings

LEAP, HALVINGS, MOST = 8.0, 2, 10_000_000  # of the search for a sufficient number of scores
OFTEN = 0.5  # of infinite sets by noise alone: beyond it a private answer is not worth its budget


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
    if settings.mechanism is None and settings.conditional and settings.rule == "paper" and len(facts) > 1:
        raise BadInput("the paper's theorem 3.3 is for sites of one size, and these differ; choose rule 'closest'.")
    kinds = tuple(_kind(fact, settings, cells) for fact in facts)
    found = choose(kinds, number, aim_of(settings), settings.statistics)
    if found is None or _useless(kinds, number, found, settings):
        raise Infeasible(_too_few(sites, settings, cells))
    return Plan(kinds, number, kind_of, found)


def _useless(kinds: Sequence[Kind], number: Sequence[int], choice: Choice, settings: Settings) -> bool:
    """Tell whether noise alone makes most sets infinite; of the exponential mechanisms only a rough bound is known."""
    return settings.mechanism == "sparse-vector" and infinite(kinds, number, choice) > OFTEN


def aim_of(settings: Settings) -> Aim:
    """Return the promise in the words of the design."""
    return Aim(settings.alpha, settings.delta if settings.conditional else None, settings.rule, settings.exact)


def _kind(fact: SiteFacts, settings: Settings, cells: int) -> Kind:
    """Return what the design must know of a site; how far an answer may fail does not depend on the order asked."""
    if math.isinf(fact.epsilon) or settings.mechanism is None:
        return Kind(fact.size)
    mechanism = partial(selection, settings.mechanism, fact.size, cells=cells, epsilon=fact.epsilon)
    return Kind(
        fact.size, mechanism(fact.size).failure, settings.mechanism != "sparse-vector", partial(_unbounded, mechanism)
    )


def _unbounded(mechanism: Callable[[int], Mechanism], order: int) -> float:
    """Return the chance that noise alone makes a site's answer infinite."""
    return mechanism(order).unbounded


def _paper(
    facts: Sequence[SiteFacts], number: tuple[int, ...], kind_of: tuple[int, ...], settings: Settings, cells: int
) -> Plan:
    """Ask what the paper's private algorithm asks; it knows sites of one size with one budget."""
    if len(facts) > 1 or math.isinf(facts[0].epsilon):
        raise BadInput("mechanism 'paper' needs sites of one size with one budget; choose 'sparse-vector'.")
    size, epsilon = facts[0]
    pair = paper_private(number[0], size, settings.alpha, epsilon, cells)
    if pair is None:
        raise Infeasible(
            f"the paper's mechanism has no finite set for {number[0]:,} sites of {size:,} scores at epsilon "
            f"{epsilon:g}; add scores, or choose mechanism 'sparse-vector'."
        )
    mechanism = partial(selection, "paper", size, cells=cells, epsilon=epsilon)
    kinds = (Kind(size, mechanism(pair.order).failure, bounded=True, unbounded=partial(_unbounded, mechanism)),)
    choice = Choice(((pair.order,),), (1,), pair.rank, pair.mean, 0.5 / math.sqrt(size * number[0]))
    grid = distribution_grid(kinds, choice._replace(mean=1 - settings.alpha))
    held = survival(kinds, number, choice, grid.levels)
    # the paper's own bound is 1 - alpha; averaging over the scores gives a better one, where it is better
    mean = max(float(grid.mean(held)), 1 - settings.alpha)
    return Plan(kinds, number, kind_of, choice._replace(mean=mean, sd=float(grid.sd(held))))


def _too_few(sites: Sequence[SiteFacts], settings: Settings, cells: int) -> str:
    """Say how many scores a finite set would need."""
    total = sum(site.size for site in sites)
    held = f"{total:,} score{'' if total == 1 else 's'}"
    level, alpha = 1 - settings.alpha, settings.alpha
    promise = f"cover {level:.10g}" + (f" with confidence {1 - settings.delta:.10g}" if settings.conditional else "")
    if settings.mechanism is not None:
        found = _private_needed(sites, settings, cells)
        enough = f"not even {MOST:,}" if found is None else f"about {found:,}"
        return (
            f"no finite set can {promise} from {held} at {len(sites):,} site{'' if len(sites) == 1 else 's'} with "
            f"these budgets; {enough} would do: add scores, raise epsilon, or raise alpha."
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
        f"rule {settings.rule!r} finds no finite set that can {promise} from {held} at {len(sites):,} sites so small; "
        "add scores, or join sites."
    )


def _private_needed(sites: Sequence[SiteFacts], settings: Settings, cells: int) -> int | None:
    """Return about how many scores sites like these would need, shared out evenly; None if not even MOST would do."""
    total, number, least = sum(site.size for site in sites), len(sites), (1 - settings.alpha) / settings.alpha
    epsilon = sorted(site.epsilon for site in sites)[number // 2]

    def enough(scores: float) -> bool:
        kinds = (_kind(SiteFacts(max(math.ceil(scores / number), 1), epsilon), settings, cells),)
        found = choose(kinds, (number,), aim_of(settings))
        return found is not None and not _useless(kinds, (number,), found, settings)

    low, high = float(total), max(LEAP * total, least)
    while high <= MOST and not enough(high):
        low, high = high, LEAP * high
    if high > MOST:
        return None
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    digits = int(10 ** max(len(str(math.ceil(high))) - 2, 0))
    return math.ceil(high / digits) * digits
