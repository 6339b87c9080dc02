"""Simulated people of a collector inside this process: their letters by seeded dice, their clock one that is moved.

A study is begun with a public key of its lotteries from the seed, so that a run is the same again. Nothing of this is
private.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sottovoce.collector.gathering import Gathering
from sottovoce.collector.store import CollectorStore, KeptStudy
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.study import collected_of
from sottovoce.core.arrays import Floats
from sottovoce.protocol.device import ID, REPORT, DeviceCard, card_text, read_card
from sottovoce.protocol.device_regression import Asked, channel_of_word, row_letter, word_of
from sottovoce_papers.simulation.families import Generator

Draws = Generator


class Clock:
    """A clock that a simulation moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def begun(given: dict[str, Any], seed: int, clock: Clock) -> Iterator[tuple[CollectedStudies, Gathering]]:
    """Begin a study in a log in memory, the same for the same seed."""
    store, study = CollectorStore(":memory:"), collected_of(given)
    try:
        card = card_text(study.card(f"{seed:016x}"))
        store.begin(study.name, KeptStudy(card, json.dumps(given, sort_keys=True), seed.to_bytes(16, "big"), "open"))
        studies = CollectedStudies(store, clock)
        yield studies, studies.begin(study, given)
    finally:
        store.close()


def arrivals(needs: Floats, share: float, dice: Draws) -> Any:
    """Return how many come to each point, where so large a share of those who are needed comes.

    They draw by what each point still needs; more than are needed have drawn before the last place was taken.
    """
    whole = int(needs.sum())
    count = max(round(whole * share), 1)
    if count <= whole:
        return dice.multivariate_hypergeometric(needs.astype(np.int64), count)
    return needs.astype(np.int64) + dice.multinomial(count - whole, needs / whole)


def reports_of(asked: dict[str, Any], came: Any, card: DeviceCard, values: Floats, dice: Draws) -> Any:
    """Return the reports of people who have drawn their points, each a throw of the card's die."""
    point = dice.permutation(np.repeat(np.arange(len(came)), came))
    at, period = np.array(asked["points"])[point], np.array(asked["periods"])[point]
    dithered = values + card.resolution * (dice.random(len(values)) - 0.5)
    turns = np.divide(dithered - at, period, out=np.zeros(len(values)), where=period > 0)
    above = np.where(period > 0, turns - np.floor(turns) >= 0.5, dithered > at)
    flip = dice.random(len(values)) < int(card.flips) / 2.0**62
    reports = np.empty(len(values), REPORT)
    reports["id"] = np.frombuffer(dice.bytes(ID * len(values)), "V16")
    reports["round"], reports["group"], reports["point"] = asked["round"], 0, point
    reports["letter"] = above ^ flip
    return reports


def row_report(asked: dict[str, Any], card: DeviceCard, row: Floats, dice: Draws) -> Any:
    """Return the report of one row, its response first, as a device of a regression makes it."""
    terms = card.regression
    assert terms is not None
    id, report = dice.bytes(ID), np.empty(1, REPORT)
    word = word_of(card.nonce, asked["round"], id)
    channel = channel_of_word(word, len(terms.channels))
    parts = {name: np.asarray(part).tolist() for name, part in asked["channels"][channel].items()}
    words = [int(each) for each in dice.integers(0, 1 << 64, terms.widest + 1, dtype=np.uint64)]
    under = Asked(**parts)
    letter = row_letter(terms.channels[channel], under, terms.scaled(row[1:].tolist()), float(row[0]), word, words)
    report["id"], report["round"], report["group"] = np.frombuffer(id, "V16"), asked["round"], 0
    report["point"], report["letter"] = letter >> 8, letter & 255
    return report


def gather(
    studies: CollectedStudies, one: Gathering, clock: Clock, draw: Callable[[int], Floats], dice: Draws, late: float
) -> dict[str, int]:
    """Let people come until the study is over: .7 to 1.1 of those needed in a round, some a round too late.

    ``draw`` returns values, or rows with the response first. Told are how many were asked, and how many turned away.
    """
    card, held, told = read_card(one.card), np.empty(0, REPORT), {"asked": 0, "away": 0}

    def send(joined: Any) -> None:
        reports = joined.astype(REPORT)  # numpy joins in the machine's order of bytes
        for start in range(0, len(reports), 10_000):
            said = studies.upload(one.identity + reports[start : start + 10_000].tobytes())
            told["away"] += len(said.refused)

    while not one.over:
        asked = one.asked(0)
        if asked is not None:
            needs = np.array(asked["needs"], dtype=float)
            came = arrivals(needs, float(dice.uniform(0.7, 1.1)), dice)
            values = draw(int(came.sum()))
            if "channels" in asked:
                reports = np.concatenate([row_report(asked, card, row, dice) for row in values])
            else:
                first = values if values.ndim == 1 else values[:, 0]
                reports = reports_of(asked, came, card, first, dice)
            told["asked"] += len(reports)
            slow = dice.random(len(reports)) < late
            slow[:1] = False  # a round never closes without an answer
            send(np.concatenate((reports[~slow], held)))
            held = reports[slow]
        clock.now += 101.0
        studies.commit()
    send(held)
    return told
