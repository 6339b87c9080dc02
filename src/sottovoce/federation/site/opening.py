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
from sottovoce.client.order import Key
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.client.site_ledger import StudyLedger
from sottovoce.core.bounds import read_bounds
from sottovoce.core.categories import OTHER, dummies
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.core.shown import quoted
from sottovoce.federation.site.features import AskedColumns, FeatureColumns
from sottovoce.federation.site.policy import SitePolicy
from sottovoce.protocol.card import Card
from sottovoce.protocol.exact import within
from sottovoce.protocol.messages import Study
from sottovoce.protocol.randomised_response import with_flips
from sottovoce.protocol.selection.geometric import NoisyCount

MOST_FLIPS = 1 << 63
MOST_COLUMNS = 200  # of covariates and levels: they are held in memory as numbers
NO_COLUMNS = "the policy of this site opens no columns for a regression; ask its operator."


class SiteMeans(NamedTuple):
    """What a site needs to answer: its dice, the key of its order, its ledger, and columns beside the records."""

    dice: RandomSource
    key: Key
    storage: StudyLedger
    features: FeatureColumns | None = None


class OwnPart(NamedTuple):
    """A site's part of a study: its cost a record, how many take part, how the site is opened, and in which order."""

    epsilon: float
    size: int
    opened: Callable[[Records, SiteMeans], AnsweringSite]
    ordered: bool = True  # whether records answer one after the other, in a random order
    columns: AskedColumns | None = None  # what is asked beside the records


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
    """Send one message of scores: ranks, a cell, a noisy count, or a bit each."""
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
    kind = CoverageSite if mechanism == "counts" else CalibrationSite
    return OwnPart(
        budget,
        terms["sizes"][place],
        lambda records, own: kind(records, budget, own.dice, storage=own.storage, limits=limits),
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


def _regression(terms: dict[str, Any], place: int, policy: SitePolicy) -> OwnPart:
    """Send one letter a person, from a loop at this site, and before a bit each of the few who are asked in a pilot."""
    from sottovoce.client.regression.site_people import SitePeople
    from sottovoce.protocol.regression.carried import channel_of

    epsilon, sizes, key = float(terms["epsilon"]), terms["sizes"], bytes(terms["key"])
    if math.isinf(epsilon) or not epsilon > 0 or not all(type(size) is int and size > 0 for size in sizes):
        raise BadInput("a regression over sites needs a finite epsilon and people at every site; correct the card.")
    channels = [channel_of(each, epsilon) for each in terms["channels"]]
    asked = _columns(terms, {channel.p for channel in channels})
    limits = policy.limits._replace(epsilon=max(policy.limits.epsilon, epsilon))  # the policy has allowed it already

    def opened(records: Records, own: SiteMeans) -> AnsweringSite:
        if own.features is None:
            raise BadInput(NO_COLUMNS)
        rows, before = own.features.rows(asked, records.values()), sum(sizes[:place])
        return SitePeople(
            rows, channels, own.dice, epsilon=epsilon, key=key, before=before, storage=own.storage, order=own.key,
            limits=limits,
        )  # fmt: skip

    return OwnPart(epsilon, sizes[place], opened, columns=asked)


def _columns(terms: dict[str, Any], coefficients: set[int]) -> AskedColumns:
    """Read which columns a study asks for, as the channels and the bounds have them."""
    features = tuple(str(each) for each in terms["features"])
    levels = {str(name): tuple(map(str, given)) for name, given in terms["levels"].items()}
    names = [each for name in features for each in (dummies(name, levels[name]) if name in levels else [name])]
    if len(names) > MOST_COLUMNS:
        raise BadInput(f"the study card asks for more than {MOST_COLUMNS} columns of covariates; name fewer.")
    if coefficients != {len(names)} or not set(levels) <= set(features) or names != list(terms["columns"]):
        raise BadInput("the covariates of the study card do not fit its channels; correct it.")
    if len(set(features)) < len(features) or not all(OTHER in each for each in levels.values()):
        raise BadInput(f"the study card names a covariate twice, or levels without {OTHER!r}; correct it.")
    bounds = read_bounds(list(zip(terms["low"], terms["high"], strict=True)), names)
    two_valued = tuple(str(each) for each in terms.get("two_valued", ()))
    if not set(two_valued) <= set(names):
        raise BadInput("the study card declares a column of two values that it does not ask for; correct it.")
    return AskedColumns(str(terms["response"]), features, levels, bounds, two_valued)


def check_columns(asked: AskedColumns, value: str, features: FeatureColumns | None) -> None:
    """Refuse a regression on columns that this site does not open."""
    if features is None:
        raise BadInput(NO_COLUMNS)
    if asked.response != value:
        raise BadInput(
            f"the study asks for the response {quoted(asked.response)}, which is not the value of this site's policy; "
            "ask its operator."
        )
    features.check(asked)


_PARTS: dict[str, Callable[[dict[str, Any], int, SitePolicy], OwnPart]] = {
    "quantile": _quantile,
    "integration": _integration,
    "conformal": _conformal,
    "coverage": _coverage,
    "regression": _regression,
}
