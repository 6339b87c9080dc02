"""A regression's log of messages is written with every side, and read with the server's sides alone."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sottovoce.core import codec
from sottovoce.core.bounds import read_bounds
from sottovoce.protocol.card import identity
from sottovoce.protocol.wire import seal
from sottovoce.server.load import from_dict
from sottovoce.server.method import Queries, Replies, converse, opened, restore
from sottovoce.server.regression.design import design_of
from sottovoce.server.regression.method import RegressionMethod
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.server.regression.settings import DEFAULTS, read_settings

PEOPLE = 800
ASKED: dict[str, dict[str, Any]] = {
    "dithered": {"epsilon": 8.0},  # with a pilot
    "levels": {"epsilon": 4.0, "tau": [0.25, 0.75], "channel": "cq:2,1", "density": 0.4, "size": 1.0},
    "paper": {"epsilon": 4.0, "inference": "groups", "density": 0.5, "size": 1.0},
}


def planned(options: dict[str, Any]) -> RegressionPlan:
    """Make the plan, from public terms alone."""
    settings = read_settings({**DEFAULTS, "bounds": {"hours": (0, 10), "nights": (0, 7)}, **options})
    bounds = read_bounds(settings.bounds, ("hours", "nights"))
    return RegressionPlan(
        settings, design_of(settings, bounds), bounds, settings.starts(bounds.to_scaled), response="pay"
    )


def shown(result: Any) -> str:
    """Return the summary, after the result was stored and read back."""
    back = from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
    assert back.summary() == result.summary()
    return str(back.summary())


def write(folder: Path) -> None:
    """Ask people, keep what was said, and print what it came to."""

    from sottovoce.client.regression.rows import Rows
    from sottovoce.local.regression.doors import open_doors
    from sottovoce.sim.randomness import dice

    source = dice(1).generator()
    features = source.uniform(-1.0, 1.0, (PEOPLE, 2))
    rows = Rows(features, 20.0 + features[:, 0] + source.logistic(0.0, 0.5, PEOPLE))
    for name, options in ASKED.items():
        method, doors, study = open_doors(planned(options), rows, dice(2))
        log: list[list[str | None]] = []

        def gather(queries: Queries) -> Replies:
            said = [
                None if message is None else door.answer(seal(study, queries.round, message))  # noqa: B023
                for door, message in zip(doors, queries.messages, strict=True)  # noqa: B023
            ]
            log.append([None if data is None else data.hex() for data in said])  # noqa: B023
            return opened(method, study, queries, said)  # noqa: B023

        print(shown(method.outcome(converse(method, gather))))  # noqa: T201
        kept = {"people": list(method.people), "key": method.key.hex(), "log": log}
        (folder / f"{name}.json").write_text(json.dumps(kept))


def read(folder: Path) -> None:
    """Make the results from the log, half of it before and half of it after a restart."""
    for name, options in ASKED.items():
        kept = json.loads((folder / f"{name}.json").read_text())
        key = bytes.fromhex(kept["key"])
        plan = planned(options)
        study = identity(plan.card(key, kept["people"]))
        method = RegressionMethod(plan, kept["people"], key, private=False)
        state, half = method.init(), len(kept["log"]) // 2
        for place, said in enumerate(kept["log"]):
            if place == half:
                method = RegressionMethod(plan, kept["people"], key, private=False)
                state = restore(method, codec.to_bytes(state))
            queries = method.query(state)
            assert queries is not None
            state = method.step(state, opened(method, study, queries, heard(said)))
        assert method.query(state) is None
        print(shown(method.outcome(state)))  # noqa: T201
    assert not [module for module in sys.modules if module.startswith(("sottovoce.client", "sottovoce.api"))]


def heard(said: Sequence[str | None]) -> list[bytes | None]:
    """Return the bytes of a round."""
    return [None if data is None else bytes.fromhex(data) for data in said]


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](Path(sys.argv[2]))
