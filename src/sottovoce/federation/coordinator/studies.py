"""From the terms of a study and the roster of its sites to a method and a card: all that is public, nothing else."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from sottovoce.core.checks import confidence, is_one_of, number, per_site, unknown
from sottovoce.core.errors import BadInput
from sottovoce.core.roster import Roster
from sottovoce.core.unit import uncensored
from sottovoce.federation.study import StudyTerms
from sottovoce.protocol.card import Card
from sottovoce.server.method import Method

STAGES, WALKS = ("staged", "certified", "sequence"), ("regression", "self-normalised")


class PlannedRounds(NamedTuple):
    """A study that can begin: its method, its card, and who takes part, in the order of the method's replies."""

    method: Method[Any, Any]
    card: Card
    names: tuple[str, ...]
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]


def planned(terms: StudyTerms, roster: Roster, coin: bytes, nonce: bytes) -> PlannedRounds:
    """Check all terms over the roster and return what is asked; ``coin`` is the public key of its lotteries."""
    try:
        found = _PLANS[terms.method](dict(terms.asked), roster, coin, terms.rounds.least or 1)
    except TypeError as error:
        missing = [name for name in ("tau", "taus", "epsilon", "target", "threshold") if f"'{name}'" in str(error)]
        if not missing:
            raise
        raise BadInput(f"[{terms.method}] of the study has no {missing[0]}; give it.") from None
    return found._replace(card=msgspec.structs.replace(found.card, name=terms.name, nonce=nonce))


def _quantile(given: dict[str, Any], roster: Roster, coin: bytes, quorum: int) -> PlannedRounds:
    from sottovoce.server.quantile.feasibility import CERTIFIED
    from sottovoce.server.quantile.feasibility import STAGES as PLAIN
    from sottovoce.server.quantile.method import StagedQuantile
    from sottovoce.server.quantile.plan import plan_quantile
    from sottovoce.server.quantile.recursion.method import RecursionMethod, plan_recursion
    from sottovoce.server.quantile.sequence import SequenceQuantile

    name, level = given.pop("method", "staged"), confidence(given.pop("level", 0.95))
    if not is_one_of(name, (*STAGES, *WALKS)):
        raise unknown("method", name, (*STAGES, *WALKS))
    walk = {each: given.pop(each) for each in ("schedule", "participation", "graph", "norm") if each in given}
    until = given.pop("until", None)
    walks = name in WALKS
    if walk and not walks:
        raise BadInput("schedule, participation, graph and norm belong to method 'regression' or 'self-normalised'.")
    if until is not None and name != "sequence":
        raise BadInput("until belongs to method 'sequence'; choose it, or leave it out.")
    if walk.get("graph") is not None or number(walk.get("participation", 1.0), "participation") != 1:
        raise BadInput(
            "in a federation every site answers in every round, through the coordinator; leave out graph and "
            "participation."
        )
    certified = name in ("certified", "sequence")
    plan = plan_quantile(roster, **given, limits=PLAIN if walks else CERTIFIED, confidence=level, certified=certified)
    method: Method[Any, Any]
    if walks:
        schedule, norm = walk.get("schedule", "every:1"), walk.get("norm", "l2")
        recursion = plan_recursion(plan, name, schedule, 1.0, None, norm)
        method = RecursionMethod(plan, recursion, name, level)
    elif name == "sequence":
        width = None if until is None else number(until, "until")
        method = SequenceQuantile(plan, level, coin, width, quorum=min(quorum, len(plan.names)))
    else:
        method = StagedQuantile(plan, level, coin, certified or plan.atoms, quorum=min(quorum, len(plan.names)))
    return PlannedRounds(method, plan.card(name), plan.names, plan.left_out, (*plan.hints, *plan.warnings))


def _difference(given: dict[str, Any], roster: Roster, coin: bytes, quorum: int) -> PlannedRounds:  # noqa: ARG001
    from sottovoce.server.quantile.difference_method import BOTH, DifferenceQuantile, joined_card

    uncensored(roster.unit, "a difference")
    groups = [given.pop(which, None) for which in BOTH]
    for which, names in zip(BOTH, groups, strict=True):
        if not (isinstance(names, list) and names and all(name in roster.names for name in names)):
            raise BadInput(f"{which} of [difference] must be a list of sites of the study; name them.")
    if sorted(groups[0] + groups[1]) != sorted(roster.names):
        raise BadInput("first and second of [difference] must name every site of the study once; correct them.")
    if given.get("method", "staged") not in STAGES:
        raise unknown("method", given["method"], STAGES)
    found = []
    for number_, names in enumerate(groups):
        own = {key: _own_part(value, names, roster.names, key) for key, value in given.items()}
        part = _reordered(roster, names)
        found.append(_quantile(own, part, coin + bytes([number_]), 1))
    one, two = found
    method = DifferenceQuantile(one.method, two.method)  # type: ignore[arg-type]
    card = joined_card(method.plans, given.get("method", "staged"))
    warnings = tuple(dict.fromkeys((*one.warnings, *two.warnings)))
    return PlannedRounds(method, card, one.names + two.names, one.left_out + two.left_out, warnings)


def _own_part(value: Any, names: Sequence[str], known: Sequence[str], what: str) -> Any:
    """Return the part of a table of sites that names those of one group."""
    if what not in ("tau", "epsilon", "shares") or not isinstance(value, Mapping):
        return value
    if strange := [name for name in value if name not in known]:
        raise BadInput(f"{what} of [difference] names {strange[0]!r}, which is a site of neither group; correct it.")
    return {name: each for name, each in value.items() if name in names}


def _quantiles(given: dict[str, Any], roster: Roster, coin: bytes, quorum: int) -> PlannedRounds:
    from sottovoce.server.quantile.levels import StagedQuantiles
    from sottovoce.server.quantile.levels_plan import plan_levels

    plan = plan_levels(roster, **given)
    whole = plan.whole
    method = StagedQuantiles(
        plan.plans, plan.parts, plan.level, coin, plan.certified, quorum=min(quorum, len(whole.names))
    )
    left = tuple(name for name in roster.names if name not in whole.names)
    return PlannedRounds(method, whole.card("levels"), whole.names, left, plan.warnings)


def _integration(given: dict[str, Any], roster: Roster, coin: bytes, quorum: int) -> PlannedRounds:  # noqa: ARG001
    from sottovoce.server.integration.method import IntegrationMethod
    from sottovoce.server.integration.plan import check_settings, plan_integration

    target, tau, epsilon = given.pop("target", None), given.pop("tau", None), given.pop("epsilon", None)
    if target not in roster.names:
        raise BadInput("target of [integration] must be one of the sites; give its name.")
    settings = check_settings(
        given.pop("method", "valid"),
        given.pop("level", 0.95),
        tau,
        given.pop("variance", "printed"),
        given.pop("quantile", "z"),
        given.pop("caution", 1.96),
        given.pop("sites", None),
        given.pop("chains", 10),
    )
    names = (target, *(name for name in roster.names if name != target))
    bound = given.pop("bound", None)
    ordered = _reordered(roster, names)
    plan = plan_integration(settings, names, ordered, {}, tau, epsilon, bound, simulated=roster.seeded, **given)
    asked = tuple(site.name for site in plan.asked)
    left = tuple(name for name in names if name not in asked)
    return PlannedRounds(IntegrationMethod(plan), plan.card(), asked, left, tuple(plan.warnings))


def _conformal(given: dict[str, Any], roster: Roster, coin: bytes, quorum: int) -> PlannedRounds:  # noqa: ARG001
    from sottovoce.server.conformal.methods import check_edges, method_of, settle
    from sottovoce.server.conformal.plan import Participants, SiteFacts, card_of
    from sottovoce.server.conformal.settings import AUTO, check_budgets, check_settings

    if roster.unit.kind != "number":
        raise BadInput(f"scores must be numbers, not {roster.unit.plural}; give the scores of the model.")
    uncensored(roster.unit, "a score")
    epsilon, mechanism = given.pop("epsilon", None), given.pop("mechanism", AUTO)
    if mechanism == "aggregate":
        raise BadInput("a secure sum is not part of a federation; choose another mechanism.")
    private = epsilon is not None
    settings = check_settings(
        given.pop("alpha", 0.1),
        given.pop("guarantee", "marginal"),
        given.pop("delta", 0.1),
        given.pop("rule", "closest"),
        given.pop("statistics", 1),
        given.pop("exact", False),
        mechanism,
        private,
    )
    edges = check_edges(
        given.pop("minimum", None),
        given.pop("maximum", None),
        given.pop("bins", None),
        given.pop("grid", None),
        private,
    )
    budgets = check_budgets(epsilon, roster.names)
    facts = tuple(map(SiteFacts, roster.sizes, budgets))
    who = Participants(roster.names, facts, 0, roster.per_person, roster.seeded, roster.column)
    settled = settle(settings, edges, facts)
    card = card_of(who, settled.settings, settled.line)
    method: Any = method_of(who, settled.settings, settled.line, card, _word(coin) if settings.exact else None)
    promised: Any = method.promised()
    warnings = (*roster.doubts, *promised.warnings)
    return PlannedRounds(method, card, roster.names, (), warnings)


def _coverage(given: dict[str, Any], roster: Roster, coin: bytes, quorum: int) -> PlannedRounds:  # noqa: ARG001
    from sottovoce.protocol.selection.geometric import noisy_count
    from sottovoce.server.conformal.plan import Participants, SiteFacts
    from sottovoce.server.conformal.report import CoverageMethod, CoveragePlan

    if roster.unit.kind != "number":
        raise BadInput(f"scores must be numbers, not {roster.unit.plural}; give the scores of the model.")
    uncensored(roster.unit, "a score")
    if "threshold" not in given:
        raise BadInput("[coverage] of the study has no threshold; give it.")
    threshold, alpha = number(given["threshold"], "threshold"), number(given.get("alpha", 0.1), "alpha")
    if not 0 < alpha < 1:
        raise BadInput("alpha of [coverage] lies between 0 and 1; give the part of scores that may be missed.")
    level, epsilon = confidence(given.get("level", 0.95)), given.get("epsilon")
    shares, name = _weights(given.get("shares", "sites"), roster)
    budgets = [math.inf] * len(roster.names)
    noises = None
    if epsilon is not None:
        budgets = [number(value, where) for value, where in per_site(epsilon, roster.names, "epsilon")]
        noises = tuple(map(noisy_count, budgets))
    who = Participants(
        roster.names, tuple(map(SiteFacts, roster.sizes, budgets)), 0, roster.per_person, roster.seeded, roster.column
    )
    asked = CoveragePlan(threshold, alpha, level, shares, name, noises)
    return PlannedRounds(CoverageMethod(asked, who), asked.card(who), roster.names, (), roster.doubts)


def _regression(given: dict[str, Any], roster: Roster, coin: bytes, quorum: int) -> PlannedRounds:  # noqa: ARG001
    from sottovoce.core.bounds import read_bounds
    from sottovoce.core.categories import OTHER, check_declared, dummies, with_dummies
    from sottovoce.server.regression.design import design_of
    from sottovoce.server.regression.expected import barely
    from sottovoce.server.regression.feasibility import check
    from sottovoce.server.regression.plan import RegressionPlan
    from sottovoce.server.regression.settings import DEFAULTS, read_settings
    from sottovoce.server.regression.sites import SitesRegression, large_enough

    for name in ("response", "features", "tau", "epsilon"):
        if name not in given:
            raise BadInput(f"[regression] of the study has no {name}; give it.")
    response, features, level = given.pop("response"), given.pop("features"), confidence(given.pop("level", 0.95))
    if not (isinstance(features, list) and features and all(isinstance(each, str) for each in [response, *features])):
        raise BadInput("response of [regression] must be a column, and features a list of columns; correct them.")
    if len({response, *features}) <= len(features):
        raise BadInput("response and features of [regression] must be different columns; name each once.")
    if roster.unit.kind != "number":
        raise BadInput(f"the response of a regression must be numbers, not {roster.unit.plural}; give numbers.")
    uncensored(roster.unit, "a regression")
    settings = read_settings({**DEFAULTS, **given, "clip": True})
    if math.isinf(settings.epsilon) or settings.channel == "open":
        raise BadInput("a regression over sites is private; give a finite epsilon, and another channel than 'open'.")
    check_declared(settings.levels, features)
    if not all(OTHER in each for each in settings.levels.values()):
        raise BadInput(f"levels of [regression] must name {OTHER!r} for what a site holds beside them; add it.")
    names = [each for name in features for each in dummies(name, settings.levels.get(name, ())) or [name]]
    bounds = read_bounds(with_dummies(settings.bounds, names, settings.levels), names)
    design = design_of(settings, bounds)
    plan = RegressionPlan(settings, design, bounds, settings.starts(bounds.to_scaled), level, response)
    stay, said = large_enough(plan, roster.names, roster.sizes)
    left = tuple(name for name, stays in zip(roster.names, stay, strict=True) if not stays)
    roster = roster.only(stay)
    people = sum(roster.sizes)
    check(people, design, settings)
    method = SitesRegression(plan, roster.sizes, coin, private=not roster.seeded)
    card = plan.card(coin, roster.sizes)
    asked = {"sites": roster.names, "sizes": roster.sizes, "response": response, "features": features}
    asked["two_valued"] = list(settings.two_valued)
    terms = {**card.terms, **asked, "levels": settings.levels, "unit": roster.unit.kind}
    found = msgspec.structs.replace(card, terms=terms)
    return PlannedRounds(method, found, roster.names, left, (*roster.doubts, *said, *barely(plan, people)))


def _weights(given: Any, roster: Roster) -> tuple[tuple[float, ...], str]:
    """Return what each site counts in the mixture of a report."""
    if given == "sites":
        return (1 / len(roster.names),) * len(roster.names), "sites"
    if given == "records":
        return tuple(size / sum(roster.sizes) for size in roster.sizes), "records"
    if not isinstance(given, Mapping):
        raise BadInput('shares of [coverage] must be "sites", "records" or a table of shares; choose one.')
    found = [number(value, where) for value, where in per_site(given, roster.names, "shares")]
    if min(found) < 0 or abs(sum(found) - 1) > 1e-9:
        raise BadInput("the shares of [coverage] must be at least 0 and sum to 1; correct them.")
    return tuple(found), "custom"


def _reordered(roster: Roster, names: Sequence[str]) -> Roster:
    """Return the roster with its sites in another order."""
    places = [roster.names.index(name) for name in names]
    return replace(roster, names=tuple(names), sizes=tuple(roster.sizes[k] for k in places))


def _word(coin: bytes) -> int:
    """Return a public word of the lottery."""
    return int.from_bytes(coin[:8].ljust(8, b"\0"), "little")


_PLANS = {
    "quantile": _quantile,
    "quantiles": _quantiles,
    "difference": _difference,
    "integration": _integration,
    "conformal": _conformal,
    "coverage": _coverage,
    "regression": _regression,
}
