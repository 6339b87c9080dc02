"""The one round of any conformal threshold, by its settings: votes on a rank, or answers that are summed."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sottovoce.core.errors import BadInput
from sottovoce.protocol.card import Card, identity
from sottovoce.server.conformal.base import Threshold
from sottovoce.server.conformal.plan import Participants, SiteFacts, plan
from sottovoce.server.conformal.settings import AUTO, COUNTED, RATIOS, SCANNED, ConformalSettings
from sottovoce.server.conformal.votes import VotesMethod, take_rank
from sottovoce.server.method import Method

if TYPE_CHECKING:
    from sottovoce.server.conformal.coverage.predicted import Forecast
    from sottovoce.server.conformal.public_grid import PublicGrid

PLENTY = 300.0  # of epsilon times the scores of a site: cells are then as good as they get
FINE = 96  # edges of cells where scores are plenty


class SettledMechanism(NamedTuple):
    """Settings with their mechanism, the edges, and what is to be expected of them."""

    settings: ConformalSettings
    line: tuple[float, ...]
    expected: "Forecast | None" = None  # none where nothing was weighed


def check_edges(minimum: Any, maximum: Any, bins: Any, grid: Any, private: bool) -> "PublicGrid | None":
    """Return the public grid of a private study; without privacy there is none."""
    if private:
        from sottovoce.server.conformal.public_grid import check_grid

        return check_grid(minimum, maximum, bins, grid)
    given = {"maximum": maximum, "minimum": minimum, "bins": bins, "grid": grid}
    for name, value in given.items():
        if value is not None:
            raise BadInput(
                f"{name} belongs to a private study, and epsilon is not given; give it, or leave {name} out."
            )
    return None


def settle(settings: ConformalSettings, grid: "PublicGrid | None", facts: Sequence[SiteFacts]) -> SettledMechanism:
    """Return the settings with a mechanism in place of "auto", and the edges, from public numbers alone."""
    if settings.mechanism is None or grid is None:
        return SettledMechanism(settings, ())
    if settings.mechanism not in RATIOS:
        return SettledMechanism(settings, tuple(grid.steps(settings.mechanism).tolist()))
    alike = alike_sites(facts)
    if settings.mechanism == AUTO and (alike.size * alike.epsilon >= PLENTY or settings.rule == "paper"):
        line = grid.steps(SCANNED) if grid.fixed else grid.ratios(FINE)
        return SettledMechanism(replace(settings, mechanism=SCANNED), tuple(line.tolist()))
    from sottovoce.server.conformal.automatic import weighed

    return SettledMechanism(*weighed(settings, grid, tuple(sorted(facts)), alike))


def alike_sites(facts: Sequence[SiteFacts]) -> SiteFacts:
    """Return the size and budget of sites that are all alike, in place of these.

    >>> alike_sites([SiteFacts(10, 1.0), SiteFacts(30, 2.0), SiteFacts(20, math.inf)])
    SiteFacts(size=20, epsilon=1.5)
    """
    finite = [fact.epsilon for fact in facts if math.isfinite(fact.epsilon)]
    return SiteFacts(max(round(sum(fact.size for fact in facts) / len(facts)), 1), sum(finite) / len(finite))


def method_of(
    who: Participants, settings: ConformalSettings, line: tuple[float, ...], card: Card, word: int | None = None
) -> Method[Any, Threshold]:
    """Return the round of a study, planned from public numbers alone; ``word`` draws the rank of an exact one."""
    if settings.pooled:
        from sottovoce.server.conformal.pooled import CountsMethod, SumMethod, TallyMethod, plan_pooled

        choice = plan_pooled(who.facts, settings, len(line), identity(card))
        if settings.mechanism == COUNTED:
            return CountsMethod(choice, settings, who, line)
        return (TallyMethod if settings.mechanism == "local" else SumMethod)(choice, settings, who, line)
    planned = plan(who.facts, settings, len(line) + 1 if line else 0)
    return VotesMethod(planned, who, line, take_rank(planned, word))
