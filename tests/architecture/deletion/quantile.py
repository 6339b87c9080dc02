"""Quantiles of every method: ``write FOLDER`` asks sites, ``read FOLDER`` has their log alone."""

import sys
from pathlib import Path
from typing import Any

import msgspec

from sottovoce.core.roster import Roster
from sottovoce.core.unit import Unit
from sottovoce.protocol.card import identity
from sottovoce.server.method import Gather, Method, Queries, Replies, converse, opened
from sottovoce.server.quantile.groups.method import StagedGroups
from sottovoce.server.quantile.groups.plan import plan_groups
from sottovoce.server.quantile.levels import StagedQuantiles
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.plan import QuantilePlan, plan_quantile
from sottovoce.server.quantile.recursion.method import RecursionMethod, plan_recursion
from sottovoce.server.quantile.shortfall.method import StagedShortfall
from sottovoce.server.quantile.shortfall.plan import ShortfallPlan

SIZES = (4_000, 3_000)
ROSTER = Roster(("north", "south"), SIZES, Unit("number"))


def planned(tau: float = 0.5, sizes: tuple[int, int] = SIZES) -> QuantilePlan:
    roster = Roster(ROSTER.names, sizes, ROSTER.unit)
    return plan_quantile(roster, tau, {"north": 4.0, "south": 6.0}, bounds=(0.0, 40.0))


def methods() -> dict[str, tuple[QuantilePlan, Method[Any, Any]]]:
    plan, plans = planned(), [planned(0.4), planned(0.6)]
    groups = plan_groups(ROSTER, 0.5, {"north": 4.0, "south": 6.0}, bounds=(0.0, 40.0))
    recursion = plan_recursion(plan, "regression", "every:50", 1.0, None, "l2")
    return {
        "staged": (plan, StagedQuantile(plan)),
        "certified": (plan, StagedQuantile(plan, coin=b"coin", certified=True)),
        "levels": (plan, StagedQuantiles(plans, [0.5, 0.5])),
        "groups": (groups.whole, StagedGroups(groups, b"coin")),
        "shortfall": (plan, StagedShortfall(ShortfallPlan(plan, True, 0.5, 0.95, True), b"coin")),
        "recursion": (plan, RecursionMethod(plan, recursion, "regression")),
    }


def asked(plan: QuantilePlan, study: bytes, method: Method[Any, Any], log: list[list[bytes | None]]) -> Gather:
    """Ask sites in this process through bytes, and keep what they said."""
    import numpy as np

    from sottovoce.client.door import Door
    from sottovoce.client.quantile.site import Site
    from sottovoce.client.record import Records
    from sottovoce.protocol.wire import seal
    from sottovoce.sim.randomness import dice

    source = dice(7).generator()
    columns = [source.gamma(2.0, 10.0, n) for n in SIZES]
    doors = [
        Door(Site(Records(column), plan.study_of(k), dice(k), plan.channels[k]), study)
        for k, column in enumerate(columns)
    ]

    def gather(queries: Queries) -> Replies:
        with np.errstate(over="ignore"):  # not compiled, the mixing of the order wraps round aloud
            log.append(
                [
                    None if message is None else door.answer(seal(study, queries.round, message))
                    for door, message in zip(doors, queries.messages, strict=True)
                ]
            )
        return opened(method, study, queries, log[-1])

    return gather


def replayed(study: bytes, method: Method[Any, Any], log: list[list[bytes | None]]) -> Gather:
    rounds = iter(log)
    return lambda queries: opened(method, study, queries, next(rounds))


def main(mode: str, folder: Path) -> None:
    for name, (plan, method) in methods().items():
        study, path = identity(plan.card(name)), folder / f"{name}.log"
        log: list[list[bytes | None]] = []
        if mode == "read":
            log = msgspec.msgpack.decode(path.read_bytes(), type=list[list[bytes | None]])
        gather = replayed(study, method, log) if mode == "read" else asked(plan, study, method, log)
        result = method.outcome(converse(method, gather))
        print(result.summary())  # noqa: T201
        path.write_bytes(msgspec.msgpack.encode(log))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
