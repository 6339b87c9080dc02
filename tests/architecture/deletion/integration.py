"""A target and sources of every kind: ``write FOLDER`` asks sites, ``read FOLDER`` has the log of replies alone."""

import math
import sys
from pathlib import Path

import msgspec

from sottovoce.core.roster import Roster
from sottovoce.core.unit import Unit
from sottovoce.protocol.card import identity
from sottovoce.server.integration.method import IntegrationMethod
from sottovoce.server.integration.plan import IntegrationPlan, check_settings, plan_integration
from sottovoce.server.integration.site_summary import SiteSummary
from sottovoce.server.method import Gather, Queries, Replies, converse, opened

ROSTER = Roster(("ours", "north", "open"), (1_500, 1_800, 300), Unit("number"))
BUDGETS = {"ours": 5.0, "north": 6.0, "open": math.inf}
TOLD = {"told": SiteSummary(16.9, 0.4, n=200)}


def planned(method: str) -> IntegrationPlan:
    settings = check_settings(method, 0.95, 0.5, "printed", "z", 1.96, None, 4)
    return plan_integration(settings, (*ROSTER.names, *TOLD), ROSTER, TOLD, 0.5, BUDGETS, bounds=(0.0, 60.0))


def asked(method: IntegrationMethod, study: bytes, log: list[list[bytes | None]]) -> Gather:
    """Ask sites in this process through bytes, and keep what they said."""
    import numpy as np

    from sottovoce.client.door import Door
    from sottovoce.client.integration.site import OpenSite
    from sottovoce.client.quantile.site import Site
    from sottovoce.client.record import Records
    from sottovoce.protocol.wire import seal
    from sottovoce.sim.randomness import dice

    source, doors = dice(7).generator(), []
    for k, site in enumerate(method.plan.asked):
        if site.study is not None:
            records = Records(source.gamma(2.0, 10.0, site.size))
            kind = OpenSite if site.kind == "open" else Site
            doors.append(Door(kind(records, site.study.study_of(0), dice(k)), study))

    def gather(queries: Queries) -> Replies:
        with np.errstate(over="ignore"):  # not compiled, the mixing of the order wraps round aloud
            said: list[bytes | None] = [
                None if message is None else door.answer(seal(study, queries.round, message))
                for door, message in zip(doors, queries.messages, strict=False)
            ]
        log.append([*said, None])
        return opened(method, study, queries, log[-1])

    return gather


def replayed(method: IntegrationMethod, study: bytes, log: list[list[bytes | None]]) -> Gather:
    rounds = iter(log)
    return lambda queries: opened(method, study, queries, next(rounds))


def main(mode: str, folder: Path) -> None:
    for name in ("valid", "adaptive"):  # staged sites, and the paper's chains
        plan, path = planned(name), folder / f"{name}.log"
        method, study = IntegrationMethod(plan), identity(plan.card())
        log: list[list[bytes | None]] = []
        if mode == "read":
            log = msgspec.msgpack.decode(path.read_bytes(), type=list[list[bytes | None]])
        gather = replayed(method, study, log) if mode == "read" else asked(method, study, log)
        result = method.outcome(converse(method, gather))
        print(result.summary())  # noqa: T201
        print(result.sensitivity().table())  # noqa: T201
        path.write_bytes(msgspec.msgpack.encode(log))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
