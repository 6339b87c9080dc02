"""Thresholds of every mechanism and their reports: ``write FOLDER`` asks sites, ``read FOLDER`` has the log alone."""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from sottovoce.core import codec
from sottovoce.protocol.card import identity
from sottovoce.protocol.messages import Message
from sottovoce.protocol.selection.geometric import noisy_count
from sottovoce.server.conformal.methods import method_of
from sottovoce.server.conformal.plan import Participants, SiteFacts, card_of
from sottovoce.server.conformal.report import CoverageMethod, CoveragePlan
from sottovoce.server.conformal.settings import check_settings
from sottovoce.server.load import from_dict
from sottovoce.server.method import Method, opened, restore

SIZES = (600, 1_000, 800)
EDGES = tuple(0.5 + 0.5 * cell for cell in range(8))
MECHANISMS = (None, "sparse-vector", "exponential", "local", "aggregate", "counts")
TRUTH = math.log(10.0)  # the 0.9 quantile of the exponential scores
Log = list[bytes]
Say = Callable[[int, int, Message], bytes]  # what the site at a place replies to a query of a round


def participants(epsilon: float) -> Participants:
    return Participants(("north", "south", "east"), tuple(SiteFacts(size, epsilon) for size in SIZES))


def asked(mechanism: str | None, who: Participants) -> tuple[Method[Any, Any], bytes]:
    """Return the method of a mechanism, and the name of its study."""
    private = mechanism is not None
    settings = check_settings(0.1, "marginal", 0.1, "closest", 1, False, mechanism or "sparse-vector", private)
    line = () if not private else EDGES[4:7] if mechanism == "counts" else EDGES  # an edge a site at most
    card = card_of(who, settings, line)
    return method_of(who, settings, line, card), identity(card)


def sites(name: str, epsilon: float, study: bytes, log: Log) -> Say:
    """Open sites in this process, and keep what they say."""
    import numpy as np

    from sottovoce.client.conformal.shares import SharingSite
    from sottovoce.client.conformal.site import CalibrationSite, CoverageSite
    from sottovoce.client.door import Door
    from sottovoce.client.quantile.site import Site
    from sottovoce.client.record import Records
    from sottovoce.protocol.messages import Study
    from sottovoce.protocol.wire import seal
    from sottovoce.sim.randomness import dice

    source, doors = dice(7).generator(), []
    for place, size in enumerate(SIZES):
        records, own, site = Records(source.exponential(size=size)), dice(place), None
        if name in ("report", "counts"):
            site = Door(CoverageSite(records, epsilon, own), study)
        elif name == "local":
            site = Door(Site(records, Study(0.5, epsilon), own), study)
        elif name == "aggregate":
            site = Door(SharingSite(records, len(SIZES), epsilon, own), study)
        doors.append(Door(CalibrationSite(records, epsilon, own), study) if site is None else site)

    def say(place: int, round: int, message: Message) -> bytes:
        with np.errstate(over="ignore"):  # not compiled, the mixing of the order wraps round aloud
            log.append(doors[place].answer(seal(study, round, message)))
        return log[-1]

    return say


def replayed(log: Log) -> Say:
    replies = iter(log)
    return lambda place, round, message: next(replies)


def made(method: Method[Any, Any], study: bytes, say: Say) -> Any:
    """Ask one site after the other, the state through its bytes each time, and the result through its JSON."""
    state = method.init()
    while (queries := method.query(state)) is not None:
        place = next(i for i, message in enumerate(queries.messages) if message is not None)
        message = queries.messages[place]
        assert message is not None
        replies: list[bytes | None] = [None] * len(SIZES)
        replies[place] = say(place, queries.round, message)
        state = restore(method, codec.to_bytes(method.step(state, opened(method, study, queries, replies))))
    result = method.outcome(state)
    again = from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
    assert again == result
    assert again.summary() == result.summary()
    return again


def main(mode: str, folder: Path) -> None:
    def run(name: str, kind: str, method: Method[Any, Any], study: bytes, epsilon: float) -> Any:
        path, log = folder / f"{name}.log", Log()
        if mode == "read":
            log = msgspec.msgpack.decode(path.read_bytes(), type=Log)
        result = made(method, study, replayed(log) if mode == "read" else sites(kind, epsilon, study, log))
        print(result.summary())  # noqa: T201
        path.write_bytes(msgspec.msgpack.encode(log))
        return result

    for mechanism in MECHANISMS:
        epsilon = math.inf if mechanism is None else 6.0
        who, name = participants(epsilon), mechanism or "open"
        threshold = run(name, name, *asked(mechanism, who), epsilon)
        assert abs(threshold.value - TRUTH) < 0.8, (mechanism, threshold.value)
        assert threshold.coverage >= 0.9
        noises = None if mechanism is None else (noisy_count(2.0),) * len(SIZES)
        planned = CoveragePlan(threshold.value, 0.1, 0.95, (1 / 3,) * 3, "sites", noises, threshold.coverage)
        study = identity(planned.card(who))
        run(f"{name}-report", "report", CoverageMethod(planned, who), study, math.inf if noises is None else 2.0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
