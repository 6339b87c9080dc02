"""From what was run to what is certified: results, estimators, and the logs of a coordinator and of a collector."""

import hashlib
import json
import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from sottovoce.auditing.certificate import SIMULATED, SYSTEM, CertifiedCard, CertifiedHead, StudyCosts
from sottovoce.auditing.parts import ChannelPart, ExactCost, costs_of, parts_of
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import shown
from sottovoce.protocol import card as cards
from sottovoce.protocol.card import Card
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.device import DeviceCard, identity, read_card
from sottovoce.protocol.device_regression import DeviceBlock
from sottovoce.protocol.randomised_response import binary, with_flips
from sottovoce.protocol.regression.blocks import Open, RegressionChannel
from sottovoce.protocol.selection import selection
from sottovoce.protocol.selection.geometric import NoisyCount, noisy_count, polya
from sottovoce.server.conformal.plan import SiteFacts, plan
from sottovoce.server.conformal.settings import ConformalSettings
from sottovoce.server.stored import StoredResult


def of_result(result: StoredResult) -> StudyCosts:
    """Return what is certified of a result: integers where it keeps them, else what it states."""
    asked = {"kind": result.kind, "question": _question(result)}
    run = getattr(result, "result", result)  # of a sensitivity: the result that it is of
    parts, stated = _parts_of_result(run)
    costs = list(costs_of(parts))
    whole = json.dumps(result.to_dict()["stored"], sort_keys=True, allow_nan=False)
    seeded = _seeded(run, costs)
    return StudyCosts(
        asked,
        costs,
        SIMULATED if seeded else SYSTEM,
        stated,
        digests={"result": hashlib.sha256(whole.encode()).hexdigest()},
    )


def _question(result: StoredResult) -> str:
    """Say in words what was asked; an answer is no part of it."""
    tau = getattr(result, "taus", getattr(result, "tau", None))
    level, method = getattr(result, "level", None), getattr(result, "method", None)
    said = [f"tau {tau}" if tau is not None else "", f"level {level}" if level is not None else "", method or ""]
    return ", ".join(each for each in said if each) or result.kind


def _seeded(result: Any, costs: Sequence[ExactCost]) -> bool:
    """Tell whether a result was made with dice that anybody can throw again."""
    seeded = getattr(result, "seeded", None)
    if seeded is not None:
        return bool(seeded)
    known = [each.epsilon for each in costs] or [1.0]
    return not getattr(result, "private", False) and all(map(math.isfinite, known))


def _parts_of_result(result: Any) -> tuple[list[ChannelPart], dict[str, float]]:
    """Return the parts of a result by site, and the budgets of those whose integers it does not keep."""
    kind = result.kind
    if kind == "quantile":
        return _quantile(result), {}
    if kind == "quantiles":
        return [part for each in result.results for part in _quantile(each, f", level {each.tau:g}")], {}
    if kind == "difference":
        sides = ((result.first, ", first"), (result.second, ", second"))
        return [part for each, note in sides for part in _quantile(each, note)], {}
    if kind == "thresholds":
        groups = [*((f"group {name}", each) for name, each in result.own.items()), ("small groups", result.together)]
        heard = ((note, each) for note, each in groups if each is not None)
        return [_noted(part, note) for note, each in heard for part in _parts_of_result(each)[0]], {}
    if kind == "threshold" and result.settings.mechanism is not None:
        return _selected(result), {}
    if kind == "pooled-threshold" and result.settings.mechanism == "aggregate":
        sites = len(result.names)
        epsilon = max(fact.epsilon for fact in result.facts)
        return parts_of(polya(epsilon, sites), epsilon, "sum over all sites"), {}
    if kind == "pooled-threshold" and result.settings.mechanism == "counts":
        counted = zip(result.names, result.facts, result.choice.numerators, strict=True)
        return [part for name, fact, integer in counted for part in _counted(name, fact.epsilon, integer)], {}
    if kind == "pooled-threshold":
        pairs = zip(result.names, result.facts, strict=True)
        return [part for name, fact in pairs for part in parts_of(binary(fact.epsilon), fact.epsilon, _site(name))], {}
    if kind == "regression" and result.through:
        return _of_people(result.channels, result.epsilon), {}
    stated = result.epsilon if hasattr(result, "epsilon") else None
    if isinstance(stated, float | int):
        return [], {"each person": float(stated)} if math.isfinite(stated) else {}
    known = {_site(name): float(value) for name, value in (stated or {}).items() if math.isfinite(value)}
    if known:
        return [], known
    return [part for name in getattr(result, "names", ("site",)) for part in parts_of(Open(), None, _site(name))], {}


def _noted(part: ChannelPart, group: str) -> ChannelPart:
    """Return a part with the group it is of, unless that is its site."""
    same = group.removeprefix("group ") == part.role.removeprefix("site ")
    return part if same else msgspec.structs.replace(part, role=f"{part.role}, {group}")


def _quantile(result: Any, note: str = "") -> list[ChannelPart]:
    plan = result.plan
    sites = zip(plan.names, plan.channels, plan.budgets, strict=True)
    return [part for name, channel, budget in sites for part in parts_of(channel, budget, _site(name) + note)]


def _selected(result: Any) -> list[ChannelPart]:
    """Return the selections of a threshold's sites, from what each was asked."""
    asked = zip(result.names, result.facts, result.plan.orders, strict=True)
    cells, mechanism = len(result.edges) + 1, result.settings.mechanism
    return [part for name, fact, orders in asked for part in _chosen(mechanism, name, fact, orders, cells)]


def _site(name: object) -> str:
    return f"site {name}"


def _of_people(channels: Sequence[RegressionChannel | Open], asked: float) -> list[ChannelPart]:
    """Return the parts of the channels that people answer through."""
    roles = [f"channel {k}" if len(channels) > 1 else "channel" for k in range(1, len(channels) + 1)]
    return [part for role, each in zip(roles, channels, strict=True) for part in parts_of(each, asked, role)]


def of_regression(channels: Sequence[RegressionChannel], asked: float, result: StoredResult | None) -> StudyCosts:
    """Return what is certified of a regression whose channels are at hand."""
    parts = _of_people(channels, asked)
    known = StudyCosts({"kind": "regression", "question": "coefficients"}, []) if result is None else of_result(result)
    return known._replace(costs=list(costs_of(parts)), stated={})


def of_federation(log: str, name: str) -> StudyCosts:
    """Return what is certified of a study from its coordinator's log, which nobody else may hold open."""
    from sottovoce.federation.coordinator.log import StudyLog

    with closing(StudyLog(log, name)) as held:
        study = held.study()
        if study is None or study.card is None:
            raise BadInput("the log holds no study of this name that was begun; give the log of its coordinator.")
        card = cards.from_bytes(study.card)
        heads = {site: CertifiedHead(counter, head.hex()) for site, (counter, head) in held.heads().items()}
        digests = {"replies": _replies(held)}
    costs = list(costs_of(parts_of_card(card)))
    return StudyCosts(
        {"kind": card.method, "question": name, "state": study.state},
        costs,
        SIMULATED if _said_seeded(study.roster) else SYSTEM,
        card=CertifiedCard("federation", study.card.hex(), cards.identity(card).hex()),
        digests=digests,
        ledgers=heads,
    )


def _said_seeded(roster: bytes | None) -> bool:
    """Tell whether any site said that its dice are seeded."""
    from sottovoce.core import codec
    from sottovoce.core.roster import Roster

    return roster is not None and codec.from_bytes(roster, Roster).seeded


def _replies(log: Any) -> str:
    """Return the digest of all that was asked and told, in the order of rounds and sites."""
    found, round, missed = hashlib.sha256(), 0, 0
    while missed < 1000:
        round += 1
        asked, told = log.asked(round), log.told(round)
        missed = 0 if asked or told else missed + 1
        for what, bodies in (("asked", asked), ("told", told)):
            for site in sorted(bodies):
                found.update(msgspec.msgpack.encode((what, round, site, bodies[site])))
    return found.hexdigest()


def of_collector(log: str, name: str) -> StudyCosts:
    """Return what is certified of a study from a collector's log: the card, and a digest of what rounds came to."""
    from sottovoce.collector.store import CollectorStore

    with closing(CollectorStore(log, existing=True)) as held:
        kept = held.known(name)
        if kept is None:
            raise BadInput("the log holds no study of this name; give the log that the collector wrote.")
        rounds = held.rounds(name)
    card = read_card(kept.card)
    last: dict[str, int] = {}
    for each in rounds:
        last[str(each.group)] = max(each.round, last.get(str(each.group), 0))
    return of_device_card(card, kept.card)._replace(
        randomness=SYSTEM,  # devices have no other
        digests={"rounds": rounds_digest(rounds, last)},
        rounds=last,
    )


def rounds_digest(rounds: Sequence[Any], last: dict[str, int]) -> str:
    """Return the digest of what closed rounds came to, up to the last of each group."""
    found = hashlib.sha256()
    for each in sorted(rounds, key=lambda kept: (kept.group, kept.round)):
        if each.round <= last.get(str(each.group), 0):
            found.update(msgspec.msgpack.encode((each.group, each.round, each.sums)))
    return found.hexdigest()


def of_device_card(card: DeviceCard, text: str) -> StudyCosts:
    """Return what is certified of a study of devices from its card."""
    kind = "quantile by devices" if card.regression is None else "regression by devices"
    costs = list(costs_of(parts_of_device_card(card)))
    said = CertifiedCard("device", text, identity(text).hex())
    return StudyCosts({"kind": kind, "question": card.name}, costs, card=said)


def parts_of_device_card(card: DeviceCard) -> list[ChannelPart]:
    """Return the parts of a device's card: the bit, and the blocks of a regression."""
    found = parts_of(card.channel, card.epsilon, "device, bit")
    for k, channel in enumerate(() if card.regression is None else card.regression.channels, start=1):
        for j, block in enumerate(channel.blocks, start=1):
            found.append(_device_block(block, card.epsilon, f"device, channel {k}, block {j}"))
        bit = DeviceBlock((channel.bit,), (1, 1, 2, 1))
        found.append(_device_block(bit, card.epsilon, f"device, channel {k}, bit about moments"))
    return found


def _device_block(block: DeviceBlock, asked: float, role: str) -> ChannelPart:
    form = "matrix" if block.box is None else "box"
    return ChannelPart(role, form, block.box or (), block.weights, asked)


def parts_of_card(card: Card) -> list[ChannelPart]:
    """Return the parts of a federation's study card, site by site, or refuse one that is none."""
    try:
        return _READ[card.method](card.terms)
    except BadInput:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
        raise BadInput("the study card lacks a term, or one is of another type; use the same version.") from None


def _card_bits(terms: dict[str, Any]) -> list[ChannelPart]:
    sites = zip(terms["sites"], terms["flips"], terms["budgets"], strict=True)
    return [part for name, flips, budget in sites for part in parts_of(with_flips(int(flips)), budget, _site(name))]


def _card_integration(terms: dict[str, Any]) -> list[ChannelPart]:
    found = []
    for name, kind, flips, _ in terms["sites"]:
        if kind == "private":
            channel = with_flips(int(flips))
            found += parts_of(channel, channel.epsilon, _site(name))
        elif kind == "open":
            found += parts_of(Open(), None, _site(name))
    return found


def _card_conformal(terms: dict[str, Any]) -> list[ChannelPart]:
    mechanism, sites = terms["mechanism"], list(zip(terms["sites"], terms["epsilon"], strict=True))
    if mechanism is None or mechanism == "local":
        return [part for name, budget in sites for part in parts_of(_bit(mechanism, budget), budget, _site(name))]
    if mechanism == "counts":
        made = [(name, float(budget)) for name, budget in sites]
        return [p for name, budget in made for p in _counted(name, budget, _noise(budget))]
    facts = [SiteFacts(int(size), float(budget)) for size, budget in zip(terms["sizes"], terms["epsilon"], strict=True)]
    settings = ConformalSettings(**{each.name: terms[each.name] for each in fields(ConformalSettings)})
    cells = len(terms["edges"]) + 1
    asked = zip(sites, facts, plan(facts, settings, cells).orders, strict=True)
    return [part for (name, _), fact, orders in asked for part in _chosen(mechanism, name, fact, orders, cells)]


def _noise(budget: float) -> int:
    """Return the integer of the noise of a count, zero for none."""
    return 0 if math.isinf(budget) else noisy_count(budget).numerator


def _counted(name: str, budget: float, numerator: int) -> list[ChannelPart]:
    """Return the part of a site that counts its scores at or below one edge."""
    return parts_of(NoisyCount(numerator) if numerator else Open(), budget, _site(name))


def _bit(mechanism: str | None, budget: float) -> Channel | Open:
    return Open() if mechanism is None or math.isinf(budget) else binary(budget)


def _chosen(mechanism: str, name: str, fact: SiteFacts, orders: Sequence[int], cells: int) -> list[ChannelPart]:
    """Return the part of one site that names a cell, or of one that opens its scores."""
    if math.isinf(fact.epsilon):
        return parts_of(Open(), None, _site(name))
    return parts_of(selection(mechanism, fact.size, orders[0], cells, fact.epsilon), fact.epsilon, _site(name))


def _card_coverage(terms: dict[str, Any]) -> list[ChannelPart]:
    found = []
    for k, name in enumerate(terms["sites"]):
        made = Open() if terms["noise"] is None else NoisyCount(int(terms["noise"][k]))
        found += parts_of(made, None if isinstance(made, Open) else made.epsilon, _site(name))
    return found


def _card_regression(terms: dict[str, Any]) -> list[ChannelPart]:
    from sottovoce.protocol.regression.carried import channel_of

    epsilon = float(terms["epsilon"])
    found = []
    for k, each in enumerate(terms["channels"], start=1):
        found += parts_of(channel_of(each, epsilon), epsilon, f"each person, channel {k}")
    return found


_READ = {
    "quantile": _card_bits,
    "integration": _card_integration,
    "conformal": _card_conformal,
    "coverage": _card_coverage,
    "regression": _card_regression,
}


def study_name(path: str) -> tuple[str, str]:
    """Return whose study a TOML file is, "federation" or "device", and its name."""
    from sottovoce.federation.study import read_study, read_toml

    given = read_toml(path)
    if "sites" in given:
        return "federation", read_study(path).name
    from sottovoce.collector.study import read_collected

    if "name" not in given:
        raise BadInput(f"{shown(path)} is no study: it has no name; give the TOML file of a study.")
    return "device", read_collected(path)[0].name


def log_beside(kind: str, path: str) -> str:
    """Return where the log of a study is, if nobody said so; refuse where there is none."""
    place = Path(f"{path}.log") if kind == "device" else Path(path).with_suffix(".log")
    if not place.is_file():
        raise BadInput(f"there is no log {shown(place)} of this study; run the study first, or give --log.")
    return str(place)
