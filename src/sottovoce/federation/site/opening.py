"""From a study card to the site that answers it: what the card says of this site, checked, and the site of its method.

A card comes from the coordinator, so it is hostile until checked: a site reads its own line of it, holds it against its
own records and policy, and takes budget, size and channel from nowhere else.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from sottovoce.client.conformal.shares import questioned_site
from sottovoce.client.conformal.site import LIMITS, CalibrationSite, CoverageSite
from sottovoce.client.door import AnsweringSite, SiteLimits
from sottovoce.client.integration.site import OpenSite
from sottovoce.client.ledger import Storage
from sottovoce.client.order import Key
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.federation.site.policy import SitePolicy
from sottovoce.protocol.card import Card
from sottovoce.protocol.exact import within
from sottovoce.protocol.messages import Study
from sottovoce.protocol.randomised_response import with_flips
from sottovoce.protocol.selection.geometric import NoisyCount

MOST_FLIPS = 1 << 63


class SiteMeans(NamedTuple):
    """What a site needs to answer: its dice, the key of its order, and where its ledger keeps entries."""

    dice: RandomSource
    key: Key
    storage: Storage


class OwnPart(NamedTuple):
    """A site's part of a study: its cost a record, how many take part, how the site is opened, and in which order."""

    epsilon: float
    size: int
    opened: Callable[[Records, SiteMeans], AnsweringSite]
    ordered: bool = True  # whether records answer one after the other, in a random order


def part_of(card: Card, policy: SitePolicy) -> OwnPart:
    """Return this site's part of a study, or refuse what its policy does not allow or what is no part at all."""
    try:
        sites, place = _place(card, policy.name)
        policy.check_study(card.name, card.method, sites)
        part = _PARTS[card.method](card.terms, place, policy)
    except BadInput:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
        raise BadInput("the study card lacks a term, or one is of another type; use the same version.") from None
    if type(part.size) is not int or part.size < 1:
        raise BadInput("the study card gives this site no records; correct it.")
    policy.check_budget(part.epsilon)
    return part


def _place(card: Card, name: str) -> tuple[int, int]:
    """Return how many sites a study has, and the place of one among them."""
    listed = [each[0] if card.method == "integration" else each for each in card.terms["sites"]]
    if listed.count(name) != 1 or len(set(listed)) < len(listed):
        raise BadInput("the study card does not list every site once, this one among them; correct it.")
    return len(listed), listed.index(name)


def _quantile(terms: dict[str, Any], place: int, policy: SitePolicy) -> OwnPart:
    """Answer one bit a record, whatever the design: stages, certificates, walks."""
    study = Study(float(terms["taus"][place]), float(terms["budgets"][place]), float(terms["resolution"]))
    return OwnPart(study.epsilon, terms["sizes"][place], _bits(study, int(terms["flips"][place]), policy.limits))


def _bits(study: Study, flips: int, limits: SiteLimits) -> Callable[[Records, SiteMeans], AnsweringSite]:
    """Return what opens a site of randomised response."""
    if not 0 <= flips < MOST_FLIPS:
        raise BadInput("the study card names a channel that does not exist; use the same version.")
    channel = with_flips(flips)
    if not within(channel.ratio, study.epsilon):
        raise BadInput("the channel of the study card costs a record more than its budget; correct the card.")
    own = limits._replace(epsilon=max(limits.epsilon, study.epsilon))  # the policy has allowed it already
    return lambda records, own_: Site(
        records, study, own_.dice, channel, storage=own_.storage, key=own_.key, limits=own
    )


def _integration(terms: dict[str, Any], place: int, policy: SitePolicy) -> OwnPart:
    """Answer a staged study of this site alone or the paper's chains, or open the order statistics."""
    _, kind, flips, size = terms["sites"][place]
    tau, resolution = float(terms["tau"]), float(terms["resolution"])
    if kind == "open":
        study, limits = Study(tau, math.inf, resolution), policy.limits._replace(epsilon=math.inf)
        return OwnPart(
            math.inf,
            size,
            lambda records, own: OpenSite(records, study, own.dice, storage=own.storage, limits=limits),
            ordered=False,
        )
    if kind != "private":
        raise BadInput("the study card asks nothing of this site; leave it out.")
    study = Study(tau, with_flips(int(flips)).epsilon, resolution)
    return OwnPart(study.epsilon, size, _bits(study, int(flips), policy.limits))


def _conformal(terms: dict[str, Any], place: int, policy: SitePolicy) -> OwnPart:
    """Send one message of scores: ranks, a cell, or a bit each."""
    budget, mechanism = float(terms["epsilon"][place]), terms["mechanism"]
    limits = SiteLimits(
        max(budget, policy.limits.epsilon), min(LIMITS.points, policy.limits.points), 1, policy.limits.size
    )
    if mechanism == "aggregate":
        raise BadInput("a secure sum is not part of a federation; choose another mechanism.")
    if mechanism == "local":
        study = Study(0.5, budget)
        return OwnPart(
            budget,
            terms["sizes"][place],
            lambda records, own: questioned_site(
                records, study.epsilon, own.dice, storage=own.storage, key=own.key, limits=limits
            ),
        )
    return OwnPart(
        budget,
        terms["sizes"][place],
        lambda records, own: CalibrationSite(records, budget, own.dice, storage=own.storage, limits=limits),
        ordered=False,
    )


def _coverage(terms: dict[str, Any], place: int, policy: SitePolicy) -> OwnPart:
    """Count how many scores a threshold covers."""
    noise = terms["noise"]
    budget = math.inf if noise is None else NoisyCount(int(noise[place])).epsilon
    limits = LIMITS._replace(epsilon=max(budget, policy.limits.epsilon))
    return OwnPart(
        budget,
        terms["sizes"][place],
        lambda records, own: CoverageSite(records, budget, own.dice, storage=own.storage, limits=limits),
        ordered=False,
    )


_PARTS: dict[str, Callable[[dict[str, Any], int, SitePolicy], OwnPart]] = {
    "quantile": _quantile,
    "integration": _integration,
    "conformal": _conformal,
    "coverage": _coverage,
}
