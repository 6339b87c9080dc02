"""The message loop asks each record at most once, and only through queries."""

import numpy as np
import pytest

from sottovoce.client.door import Door
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.local.runner import run_to_end
from sottovoce.protocol.messages import Study
from sottovoce.protocol.randomised_response import binary
from sottovoce.server.quantile.recursion.method import WalkMethod
from sottovoce.server.quantile.recursion.schedule import elapsed
from sottovoce.server.quantile.recursion.step_size import decay
from sottovoce.server.quantile.recursion.study import WalkStudy
from sottovoce.sim.randomness import dice


@pytest.mark.parametrize("schedule", ["every:1", "every:9", "log"])
def test_every_record_answers_once(schedule: str) -> None:
    sizes = np.array([40, 25, 3])
    study = WalkStudy(
        np.full(3, 0.5), np.full(3, 1 / 3), (binary(1.0),) * 3, sizes, elapsed(schedule, 40), 0.0, decay([0.5])
    )
    with np.errstate(over="ignore"):
        sites = [
            Site(Records(np.linspace(-1, 1, n)), Study(0.5, 1.0), die)
            for n, die in zip(sizes.tolist(), dice(1).split(3), strict=True)
        ]
        method = WalkMethod(study)
        end = run_to_end(method, [Door(site, b"study") for site in sites])
        state, seen = method.outcome(end), [state.round for state in end.seen.states]
    assert [site.spent for site in sites] == sizes.tolist()
    assert state.round == len(study.elapsed) == seen[-1]
    assert state.iteration == 40
