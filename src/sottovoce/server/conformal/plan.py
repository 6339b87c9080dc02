"""What to ask of the sites for a conformal threshold, decided from public numbers before any score is touched.

The quantile of quantiles of Humbert, Le Bars, Bellet and Arlot, One-Shot Federated Conformal Prediction (ICML 2023,
https://doi.org/10.48550/arXiv.2302.06322), for sites of any sizes and budgets.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.protocol.card import Card
from sottovoce.protocol.messages import CellQuery, OrderQuery
from sottovoce.protocol.selection import Mechanism, selection
from sottovoce.server.conformal.coverage.choose import Aim, Choice, choose, distribution_grid, infinite, survival
from sottovoce.server.conformal.coverage.equal import ROUNDING, paper_private
from sottovoce.server.conformal.coverage.voters import Kind
from sottovoce.server.conformal.settings import SCANNED, ConformalSettings

LEAP, HALVINGS, MOST = 8.0, 2, 10_000_000  # of the search for a sufficient number of scores, told to two digits
RARE = 0.001  # of infinite sets by noise alone, below which nothing is said
OFTEN = 0.5  # of infinite sets by noise alone: beyond it a private answer is not worth its budget


class SiteFacts(NamedTuple):
    """What is public of a site: its size and the budget of a record, infinite for none."""

    size: int
    epsilon: float


class Participants(NamedTuple):
    """Who takes part, and what else is public of a study before anything is asked."""

    names: tuple[str, ...]
    facts: tuple[SiteFacts, ...]
    dropped: int = 0
    per_person: bool = False
    seeded: bool = False
    column: str = ""


@dataclass(frozen=True)
class ConformalPlan:
    """Sites sorted into kinds, what each kind is asked, and how the answers are counted; it holds public numbers only.

    ``cells`` of the public grid are 0 without privacy; ``choice`` goes by kinds: those of the distinct facts, in
    increasing order.
    """

    facts: tuple[SiteFacts, ...]
    settings: ConformalSettings
    cells: int
    choice: Choice

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """Return what the design knows of each kind of site."""
        order = self.choice.orders[0][0] if self.settings.mechanism == "paper" else None
        return tuple(kind_of(fact, self.settings, self.cells, order) for fact in sorted(set(self.facts)))

    @cached_property
    def kind_of(self) -> tuple[int, ...]:
        """Return the kind of each site."""
        return _sorted_out(self.facts)

    @cached_property
    def number(self) -> tuple[int, ...]:
        """Return how many sites there are of each kind."""
        return tuple(np.bincount(self.kind_of).tolist())

    @property
    def orders(self) -> list[tuple[int, ...]]:
        """Return what each site is asked."""
        return [self.choice.orders[kind] for kind in self.kind_of]

    @property
    def votes(self) -> list[int]:
        """Return the votes of each value of each site."""
        return [self.choice.votes[kind] for kind in self.kind_of]

    def queries(self, edges: tuple[float, ...]) -> list[OrderQuery | CellQuery]:
        """Return the one question of each site; sites of a kind share it."""
        asked: list[OrderQuery | CellQuery] = []
        for fact, orders in zip(sorted(set(self.facts)), self.choice.orders, strict=True):
            if self._open(fact):
                asked.append(OrderQuery(orders))
            else:
                asked.append(CellQuery(str(self.settings.mechanism), orders[0], fact.epsilon, edges))
        return [asked[kind] for kind in self.kind_of]

    def warnings(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return what sizes and budgets tell before anything is asked: who cannot answer, and what noise may do."""
        found = []
        short = [
            f"{name!r} ({fact.size:,} scores, asked for order {max(asked):,})"
            for name, fact, asked in zip(names, self.facts, self.orders, strict=True)
            if math.isinf(fact.epsilon) and max(asked) > fact.size
        ]
        if short:
            listed = ", ".join(short[:4]) + (f" and {len(short) - 4:,} more" if len(short) > 4 else "")
            found.append(f"too few scores for the order asked, so the answer is infinity: {listed}")
        if self.settings.mechanism == SCANNED:  # of others a rough bound is known
            found += noise_warnings(infinite(self.kinds, self.number, self.choice))
        return tuple(found)

    def spent(self) -> tuple[float, ...] | None:
        """Return what a record pays at each site, from the integers of its mechanism; None without privacy."""
        if self.settings.mechanism is None:
            return None
        name, paid = self.settings.mechanism, []
        for fact, orders in zip(sorted(set(self.facts)), self.choice.orders, strict=True):
            mechanism = None if self._open(fact) else selection(name, fact.size, orders[0], self.cells, fact.epsilon)
            paid.append(math.inf if mechanism is None else mechanism.epsilon)
        return tuple(paid[kind] for kind in self.kind_of)

    def _open(self, fact: SiteFacts) -> bool:
        """Tell whether a site answers without privacy."""
        return self.settings.mechanism is None or math.isinf(fact.epsilon)

    def __getstate__(self) -> dict[str, Any]:
        """Keep the public numbers; what follows from them is computed again."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def noise_warnings(chance: float) -> tuple[str, ...]:
    """Say how often noise alone makes the set infinite, unless that is rare."""
    if chance <= RARE:
        return ()
    often = f"{chance:.1%} of calibrations"
    return (f"noise alone makes the set infinite in {often}; more scores or a larger epsilon would help",)


def card_of(who: Participants, settings: ConformalSettings, edges: Sequence[float], name: str = "") -> Card:
    """Return the card of a study: what every party agrees on, and what names it in every message."""
    terms = {
        **asdict(settings),
        "edges": list(edges),
        "sites": list(who.names),
        "sizes": [fact.size for fact in who.facts],
        "epsilon": [fact.epsilon for fact in who.facts],
        "per_person": who.per_person,
    }
    return Card("conformal", terms, name)


def _sorted_out(sites: Sequence[SiteFacts]) -> tuple[int, ...]:
    """Return the place of each site's facts among the distinct ones."""
    return tuple(map({fact: i for i, fact in enumerate(sorted(set(sites)))}.__getitem__, sites))


def plan(sites: Sequence[SiteFacts], settings: ConformalSettings, cells: int) -> ConformalPlan:
    """Choose orders, votes and rank, or refuse what so few scores cannot promise."""
    facts = sorted(set(sites))
    number = tuple(np.bincount(_sorted_out(sites)).tolist())
    if settings.mechanism == "paper":
        return ConformalPlan(tuple(sites), settings, cells, _paper(facts, number, settings, cells))
    if settings.mechanism is None and settings.conditional and settings.rule == "paper" and len(facts) > 1:
        raise BadInput("the paper's theorem 3.3 is for sites of one size, and these differ; choose rule 'closest'.")
    kinds, found = chosen(tuple(facts), number, settings, cells_of_failure(settings, cells))
    if found is None or useless(kinds, number, found, settings):
        raise Infeasible(_too_few(sites, settings, cells))
    return ConformalPlan(tuple(sites), settings, cells, found)


@functools.lru_cache(maxsize=512)  # of sites that are each asked alone, every size is a question of its own
def chosen(
    facts: tuple[SiteFacts, ...], number: tuple[int, ...], settings: ConformalSettings, cells: int
) -> tuple[tuple[Kind, ...], Choice | None]:
    """Return the kinds of sites and the best choice for them; the same question is thought about once."""
    kinds = tuple(kind_of(fact, settings, cells) for fact in facts)
    return kinds, choose(kinds, number, aim_of(settings), settings.statistics)


def cells_of_failure(settings: ConformalSettings, cells: int) -> int:
    """Return by how many cells the failure of an answer is known; that of a scan is the same for any number of them.

    So whoever has tried other grids has thought about it before (`chosen`).
    """
    return 2 if settings.mechanism == SCANNED else cells


def useless(kinds: Sequence[Kind], number: Sequence[int], choice: Choice, settings: ConformalSettings) -> bool:
    """Tell whether noise alone makes most sets infinite; of the exponential mechanisms only a rough bound is known."""
    return settings.mechanism == SCANNED and infinite(kinds, number, choice) > OFTEN


def aim_of(settings: ConformalSettings) -> Aim:
    """Return the guarantee in the words of the design."""
    return Aim(settings.alpha, settings.delta if settings.conditional else None, settings.rule, settings.exact)


def kind_of(fact: SiteFacts, settings: ConformalSettings, cells: int, order: int | None = None) -> Kind:
    """Return what the design must know of a site; only the paper's answer fails otherwise for another order."""
    if math.isinf(fact.epsilon) or settings.mechanism is None:
        return Kind(fact.size)
    mechanism = partial(selection, settings.mechanism, fact.size, cells=cells, epsilon=fact.epsilon)
    return Kind(
        fact.size,
        mechanism(fact.size if order is None else order).failure,
        settings.mechanism != SCANNED,
        partial(_unbounded, mechanism),
    )


def _unbounded(mechanism: Callable[[int], Mechanism], order: int) -> float:
    """Return the chance that noise alone makes a site's answer infinite."""
    return mechanism(order).unbounded


def _paper(facts: Sequence[SiteFacts], number: tuple[int, ...], settings: ConformalSettings, cells: int) -> Choice:
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
    kinds = (kind_of(facts[0], settings, cells, pair.order),)
    # a first guess of the standard deviation, to lay the grid by: that of the pooled empirical quantile at its worst
    choice = Choice(((pair.order,),), (1,), pair.rank, pair.mean, 0.5 / math.sqrt(size * number[0]))
    grid = distribution_grid(kinds, choice._replace(mean=1 - settings.alpha))
    held = survival(kinds, number, choice, grid.levels)
    # the paper's own bound is 1 - alpha; averaging over the scores gives a better one, where it is better
    mean = max(float(grid.mean(held)), 1 - settings.alpha)
    return choice._replace(mean=mean, sd=float(grid.sd(held)))


def _too_few(sites: Sequence[SiteFacts], settings: ConformalSettings, cells: int) -> str:
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


def _private_needed(sites: Sequence[SiteFacts], settings: ConformalSettings, cells: int) -> int | None:
    """Return about how many scores sites like these would need, shared out evenly; None if not even MOST would do."""
    total, number, least = sum(site.size for site in sites), len(sites), (1 - settings.alpha) / settings.alpha
    epsilon = sorted(site.epsilon for site in sites)[number // 2]

    def enough(scores: float) -> bool:
        kinds = (kind_of(SiteFacts(max(math.ceil(scores / number), 1), epsilon), settings, cells),)
        found = choose(kinds, (number,), aim_of(settings))
        return found is not None and not useless(kinds, (number,), found, settings)

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
