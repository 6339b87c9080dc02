"""Far more people than were planned for answer in one round: a study ends early, and no study breaks by it."""

import math
from typing import Any

import numpy as np
import pytest
from benchmarks.collector_late import METHODS
from benchmarks.collector_people import Clock, arrivals, begun, reports_of

from sottovoce.collector.replaying import check_replay
from sottovoce.protocol.device import REPORT, read_card
from sottovoce.sim import dice

PEOPLE = 1500


@pytest.mark.parametrize("times", [0.9, 1.0, 2.0])
@pytest.mark.parametrize("at", [1, 3, 6, 12])
@pytest.mark.parametrize("method", [name for name in METHODS if name != "regression"])
def test_a_flood_in_one_round_ends_a_study_and_breaks_none(method: str, at: int, times: float) -> None:
    given: dict[str, Any] = {"name": "x", "people": PEOPLE, "quantile": METHODS[method]}
    generator, clock = dice(at).generator(), Clock()
    with begun(given | {"rounds": {"grace": 0, "deadline": 100}}, at, clock) as (studies, one):
        card = read_card(one.card)
        while not one.over:
            asked = one.asked(0)
            if asked is not None:
                needs = np.array(asked["needs"], dtype=float)
                share = max(times * PEOPLE / needs.sum(), 1.0) if asked["round"] == at else 1.0
                came = arrivals(needs, share, generator)
                values = np.round(generator.gamma(4, 10, int(came.sum())))
                body = reports_of(asked, came, card, values, generator).astype(REPORT).tobytes()
                assert studies.upload(one.identity + body).refused == ()
            clock.now += 101.0
            studies.commit()
        found = one.estimate(0)
        assert found["reports"] >= min(times, 1.0) * PEOPLE
        for level in found["levels"]:
            low, high = level["interval"] or (0, 120)
            assert -math.inf < (0 if low is None else low) <= (120 if high is None else high) < math.inf
        assert check_replay(one.study, one_log(studies))["groups"][0]["levels"] == found["levels"]


def one_log(studies: Any) -> Any:
    """Return the log of studies."""
    return studies._store
