"""Checks that every estimator passes: modules with init, query and step are found, and each needs a case here."""

import importlib
import json
import math
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import special

from sottovoce import server
from sottovoce.inference.self_normalised.memory import Memory
from sottovoce.protocol.randomised_response import binary, epsilon_of_rate
from sottovoce.server.quantile import history
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.recursion import walk as sgd
from sottovoce.server.quantile.recursion.schedule import elapsed
from sottovoce.server.quantile.recursion.step_size import decay
from sottovoce.server.quantile.recursion.study import WalkStudy
from sottovoce.server.quantile.solutions import staged_solution
from sottovoce.server.quantile.staged import StagedStudy, staged_protocol
from sottovoce.sim.randomness import dice

SHARES, RATES, SITES = np.array([0.2, 0.3, 0.5]), np.array([0.3, 0.5, 0.9]), 3
AS_LISTED, TURNED = (0, 1, 2), (2, 0, 1)


class Subject(NamedTuple):
    """An estimator on one study: the verbs with the study filled in, and who would answer what."""

    study: Any
    init: Callable[[], Any]
    query: Callable[[Any], Any]
    step: Callable[[Any, Any], Any]
    reply: Callable[[Any], Any]
    point: Callable[[Any], float]
    plain: Callable[[Any], Any]
    back: Callable[[Any], Any]
    tolerance: float  # when the sites change places


def walk(order: Sequence[int]) -> Subject:
    sites = list(order)
    channels = tuple(binary(epsilon_of_rate(float(RATES[k]))) for k in sites)
    rounds = elapsed("every:4", 80)
    study = WalkStudy(np.full(SITES, 0.3), SHARES[sites], channels, np.full(SITES, 80), rounds, 0.2, decay(RATES))

    def reply(state: sgd.WalkState) -> list[bytes]:
        sources = dice(state.round).split(SITES)
        return [
            (sources[k].words(asked.counts[0]) >> np.uint64(63)).astype(np.uint8).tobytes()
            for k, asked in zip(sites, sgd.query(study, state), strict=True)
        ]

    def back(kept: Any) -> sgd.WalkState:
        number, iteration, points, clock, memory, sums, origin, slope = kept
        floats, counts = np.array(points), np.array(clock, dtype=np.int64)
        return sgd.WalkState(number, iteration, floats, counts, Memory(*memory), np.array(sums), origin, slope)

    return Subject(
        study,
        lambda: sgd.init(study),
        lambda state: sgd.query(study, state) if state.round < len(study.elapsed) else None,
        lambda state, letters: sgd.step(study, state, letters),
        reply,
        lambda state: sgd.estimate(study, state).point,
        lambda state: [np.asarray(part).tolist() for part in state],
        back,
        1e-9,
    )


def conversation(order: Sequence[int], records: int = 20_000) -> Subject:
    sites = list(order)
    crowd = SiteProfile(SHARES[sites], RATES[sites], np.full(SITES, records))
    study = StagedStudy(0.7, crowd, bounds=(-20.0, 20.0))

    def start() -> Any:
        return staged_protocol(study)

    def reply(state: history.History) -> Any:
        asked = history.query(start, state)
        assert asked is not None
        # each site has its own location; half of what chance would allow is added, with a sign of the round's own
        above = special.ndtr(np.array([[0.0], [0.4], [-0.2]])[sites] - asked.points)
        rates = crowd.rates[:, None]
        noise = 0.5 * np.sqrt(asked.counts) / 2 * math.sin(len(state))
        ones = np.rint(asked.counts * ((1 - rates) / 2 + rates * above) + noise).astype(np.int64)
        return np.clip(ones, 0, asked.counts)

    def point(state: history.History) -> float:
        local = history.outcome(start, state)
        assert local is not None
        return staged_solution(local).point

    return Subject(
        study,
        history.init,
        lambda state: history.query(start, state),
        lambda state, ones: history.step(start, state, ones),
        reply,
        point,
        lambda state: [ones.tolist() for ones in state],
        lambda kept: tuple(np.array(ones, dtype=np.int64) for ones in kept),
        # sites round the same fraction each its own way, so a turn moves single records between points
        0.01,
    )


def scarce(order: Sequence[int]) -> Subject:
    """Converse with a twentieth of the records, who are asked in pairs."""
    subject = conversation(order, 1_000)
    assert subject.study.scarce
    return subject


CASES: dict[str, Callable[[Sequence[int]], Subject]] = {
    "quantile.recursion.walk": walk,
    "quantile.history": conversation,
    "quantile.history-pairs": scarce,
}
ONE_PERSON = {
    "regression.liu_hu.step"
}  # a person a step: replayed bit for bit in tests/local/regression/test_liu_hu.py
every = pytest.mark.parametrize("make", CASES.values(), ids=CASES)


def test_every_estimator_has_a_case() -> None:
    names = [module.name for module in pkgutil.walk_packages(server.__path__, server.__name__ + ".")]
    modules = {name.removeprefix(server.__name__ + "."): importlib.import_module(name) for name in names}
    assert {
        name for name, module in modules.items() if all(hasattr(module, verb) for verb in ("init", "query", "step"))
    } == {*(name.partition("-")[0] for name in CASES), *ONE_PERSON}


def frozen(value: Any) -> Any:
    """Return a value that shows every number in a state, query or study."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, tuple | list):
        return [frozen(part) for part in value]
    if hasattr(value, "__dict__"):
        return {name: frozen(part) for name, part in vars(value).items() if name not in ("plan", "burnt", "channels")}
    return repr(value)


def fold(subject: Subject) -> tuple[list[Any], list[Any]]:
    states, log = [subject.init()], []
    while subject.query(states[-1]) is not None:
        log.append(subject.reply(states[-1]))
        states.append(subject.step(states[-1], log[-1]))
    assert len(log) >= 5
    return states, log


@every
def test_inputs_are_left_unchanged(make: Callable[[Sequence[int]], Subject]) -> None:
    subject = make(AS_LISTED)
    study, state = frozen(subject.study), subject.init()
    for _ in range(5):
        answers = subject.reply(state)
        before = frozen(state), frozen(answers)
        subject.query(state)
        after = subject.step(state, answers)
        assert (frozen(state), frozen(answers)) == before
        assert frozen(after) != before[0]
        state = after
    assert frozen(subject.study) == study


@every
def test_replaying_from_any_state_on_the_way_gives_the_same_questions_and_end(
    make: Callable[[Sequence[int]], Subject],
) -> None:
    states, log = fold(make(AS_LISTED))
    again = make(AS_LISTED)
    for start in range(0, len(log), 3):
        state = states[start]
        for answers in log[start:]:
            assert frozen(again.query(state)) == frozen(again.query(state))
            state = again.step(state, answers)
        assert frozen(state) == frozen(states[-1])
    for state in states:
        assert frozen(again.query(state)) == frozen(make(AS_LISTED).query(state))


@every
def test_the_state_survives_being_written_down(make: Callable[[Sequence[int]], Subject]) -> None:
    subject = make(AS_LISTED)
    states, log = fold(subject)
    for state, answers, after in list(zip(states, log, states[1:], strict=False))[::3]:
        kept = subject.back(json.loads(json.dumps(subject.plain(state))))
        assert frozen(subject.query(kept)) == frozen(subject.query(state))
        assert frozen(subject.step(kept, answers)) == frozen(after)


@every
def test_the_order_of_the_sites_does_not_matter(make: Callable[[Sequence[int]], Subject]) -> None:
    listed, turned = make(AS_LISTED), make(TURNED)
    here, there = listed.point(fold(listed)[0][-1]), turned.point(fold(turned)[0][-1])
    assert there == pytest.approx(here, rel=listed.tolerance)


@every
def test_answers_that_do_not_fit_are_refused(make: Callable[[Sequence[int]], Subject]) -> None:
    subject = make(AS_LISTED)
    state = subject.init()
    answers = subject.reply(state)
    fewer = answers[:, :-1] if isinstance(answers, np.ndarray) else [*answers[:-1], answers[-1][:-1]]
    more = answers + 10**6 if isinstance(answers, np.ndarray) else [*answers[:-1], bytes([2]) * len(answers[-1])]
    for wrong in (answers[:-1], fewer, more):
        with pytest.raises(ValueError):  # noqa: PT011 - each estimator has its own sentence
            subject.step(state, wrong)
