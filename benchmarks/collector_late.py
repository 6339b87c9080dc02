"""How many answers a collector turns away as late: devices that come by chance and answer after a delay.

Each asks, thinks for a time that is lognormal (sigma 1) around its median, and sends; where nobody is asked, it asks
again after .2 s. Time is simulated; the fold's clock is moved from one event to the next.
"""

import heapq
from typing import Any, NamedTuple

import numpy as np

from benchmarks.collector_people import Clock, begun, reports_of, row_report
from sottovoce.protocol.device import read_card
from sottovoce.sim import dice as seeded

TICK, AGAIN = 0.05, 0.2  # seconds between looks at deadlines, and until a device asks again
BOUNDS = [0, 120]
METHODS: dict[str, dict[str, Any]] = {
    "staged": {"tau": 0.5, "method": "staged", "epsilon": 1.0, "bounds": BOUNDS},
    "certified": {"tau": 0.5, "method": "certified", "epsilon": 1.0, "bounds": BOUNDS},
    "sequence": {"tau": 0.5, "method": "sequence", "epsilon": 1.0, "bounds": BOUNDS},
    "levels": {"tau": [0.5, 0.8], "method": "staged", "epsilon": 1.0, "bounds": BOUNDS},
    "regression": {"response": "wait", "tau": 0.5, "epsilon": 4.0, "features": {"age": [18, 90]}},
}
# devices a second, the median of their delay, and the grace of a round, in seconds
CROWDS = ((50.0, 0.5, 1.0), (50.0, 2.0, 1.0), (10.0, 5.0, 1.0), (10.0, 5.0, 3.0))
PEOPLE = 6000


class Late(NamedTuple):
    """Of those who were asked: how many were late and counted, and how many were turned away."""

    asked: int
    counted: int
    away: int


def simulate(method: str, rate: float, delay: float, grace: float, seed: int, people: int = PEOPLE) -> Late:
    """Let devices answer a study to its end."""
    dice, clock = seeded(seed).generator(), Clock()
    kind = "regression" if method == "regression" else "quantile"
    given = {"name": "late", "people": people, kind: METHODS[method], "rounds": {"grace": grace}}
    with begun(given, seed, clock) as (studies, one):
        card, tick, number = read_card(one.card), clock.now, 0
        events: list[tuple[float, int, bytes | None, bool]] = [(clock.now, 0, None, True)]
        asked = away = 0
        while events:
            clock.now, _, report, comes = heapq.heappop(events)
            while tick <= clock.now:
                now, clock.now = clock.now, tick
                studies.commit()
                clock.now, tick = now, tick + TICK
            if report is not None:
                away += len(studies.upload(one.identity + report).refused)
                continue
            if one.over:
                continue
            number += 1
            if comes:  # and another one will
                heapq.heappush(events, (clock.now + float(dice.exponential(1 / rate)), -number, None, True))
            query = one.asked(0)
            if query is None:
                heapq.heappush(events, (clock.now + AGAIN, number, None, False))
                continue
            age = float(dice.integers(18, 91))
            wait = float(round(5 + 0.2 * age + dice.exponential(6)))
            if "channels" in query:
                made = row_report(query, card, np.array([wait, age]), dice)
            else:
                needs = np.array(query["needs"], dtype=float)
                made = reports_of(query, dice.multinomial(1, needs / needs.sum()), card, np.array([wait]), dice)
            asked += 1
            heapq.heappush(events, (clock.now + delay * float(np.exp(dice.normal())), number, made.tobytes(), False))
        return Late(asked, int(one.estimate(0)["late"]), away)


def run() -> None:
    """Print the shares that were late and counted, and turned away."""
    print(f"\nof the answers of {PEOPLE:,} people: turned away (late and counted)")
    print(f"{'':12}" + "".join(f"{f'{rate:g}/s, {delay:g} s, {grace:g} s':>20}" for rate, delay, grace in CROWDS))
    for method in METHODS:
        found = [simulate(method, *crowd, seed=31 + k) for k, crowd in enumerate(CROWDS)]
        cells = [f"{each.away / each.asked:.1%} ({each.counted / each.asked:.1%})" for each in found]
        print(f"{method:12}" + "".join(f"{cell:>20}" for cell in cells))
