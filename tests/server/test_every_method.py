"""Checks that every method passes: classes with init, query, step and outcome are found, and each needs a case."""

import functools
import importlib
import inspect
import pkgutil
from typing import Any

import pytest

from sottovoce import server
from sottovoce.core import codec
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.protocol.messages import Message
from sottovoce.protocol.wire import seal
from sottovoce.server.method import Method, opened, restore

from . import cases
from .cases.subject import AS_LISTED, TURNED, Case

CASES: dict[str, Case] = {}
for found in pkgutil.iter_modules(cases.__path__, cases.__name__ + "."):
    CASES |= getattr(importlib.import_module(found.name), "CASES", {})
NOTHING_TO_ASK = {"PublishedSummary"}
VERBS = {"init", "query", "step", "outcome", "replies", "state"}
every = pytest.mark.parametrize("make", CASES.values(), ids=CASES)


def verbs(kind: type) -> set[str]:
    """Return what an instance of a class has: its own attributes, and what its __init__ sets."""
    source = inspect.getsource(kind)
    return {verb for verb in VERBS if hasattr(kind, verb) or f"self.{verb}" in source}


def test_every_method_has_a_case() -> None:
    kinds = set()
    for module in pkgutil.walk_packages(server.__path__, server.__name__ + "."):
        for name, kind in vars(importlib.import_module(module.name)).items():
            own = inspect.isclass(kind) and kind.__module__ == module.name and kind is not Method
            if own and not inspect.isabstract(kind) and verbs(kind) >= VERBS:
                kinds.add(name)
    assert kinds - NOTHING_TO_ASK == {name.partition("-")[0] for name in CASES}


@functools.cache
def fold(make: Case, order: tuple[int, ...] = AS_LISTED) -> tuple[Method[Any, Any], list[Any], list[Any]]:
    """Run a method through, once for all checks; return it with all its states and replies."""
    subject = make(order)
    method = subject.make()
    states, log = [method.init()], []
    while (queries := method.query(states[-1])) is not None:
        log.append(subject.reply(states[-1], queries))
        states.append(method.step(states[-1], log[-1]))
    return method, states, log


@every
def test_a_state_goes_to_bytes_and_back_and_on_from_there(make: Case) -> None:
    subject = make(AS_LISTED)
    method, states, log = fold(make)
    for i in [*range(0, len(log), subject.stride), len(log)]:
        kept = codec.to_bytes(states[i])
        again = subject.make()
        state = restore(again, kept)
        assert codec.to_bytes(state) == kept
        assert again.query(state) == method.query(states[i])
        if i < len(log):
            assert codec.to_bytes(again.step(state, log[i])) == codec.to_bytes(states[i + 1])
    assert subject.point(again.outcome(state)) == subject.point(method.outcome(states[-1]))


@every
def test_states_are_never_changed(make: Case) -> None:
    subject = make(AS_LISTED)
    method = subject.make()
    state, kept = method.init(), []
    while (queries := method.query(state)) is not None:
        kept.append((state, codec.to_bytes(state)))
        state = method.step(state, subject.reply(state, queries))
    method.outcome(state)
    assert all(codec.to_bytes(state) == before for state, before in kept)


@every
def test_the_order_of_the_sites_does_not_matter(make: Case) -> None:
    points = []
    for order in (AS_LISTED, TURNED):
        subject = make(order)
        method, states, _ = fold(make, order)
        points.append(subject.point(method.outcome(states[-1])))
    assert points[1] == pytest.approx(points[0], rel=make(AS_LISTED).tolerance, abs=1e-12)


@every
def test_who_did_not_answer_is_asked_again(make: Case) -> None:
    subject = make(AS_LISTED)
    method, states, log = fold(make)
    for i in list(range(0, len(log), subject.stride)):
        queries = method.query(states[i])
        assert queries is not None
        nobody = method.step(states[i], [None] * len(queries.messages))
        assert method.query(nobody) == queries
        asked = [k for k, message in enumerate(queries.messages) if message is not None]
        state = nobody
        for k in asked:  # one after the other
            state = method.step(state, [reply if j == k else None for j, reply in enumerate(log[i])])
        assert codec.to_bytes(state) == codec.to_bytes(states[i + 1])


@every
def test_replies_go_through_their_envelopes(make: Case) -> None:
    subject = make(AS_LISTED)
    method, states, log = fold(make)
    for i in range(0, len(log), subject.stride):
        queries = method.query(states[i])
        assert queries is not None
        sent = [None if reply is None else seal(b"study", queries.round, reply) for reply in log[i]]
        assert opened(method, b"study", queries, sent) == list(log[i])
        first = next(data for data in sent if data is not None)
        for study, number in ((b"other", queries.round), (b"study", queries.round + 1)):
            with pytest.raises(BadInput, match="another"):
                opened(method, study, queries._replace(round=number), [first])


class Stranger(Message, frozen=True):
    """A kind of message that nobody sent for."""

    round: int = 1


@every
def test_replies_that_do_not_fit_are_refused_and_the_state_stays(make: Case) -> None:
    subject = make(AS_LISTED)
    method, states, log = fold(make)
    state, before = states[0], codec.to_bytes(states[0])
    k = next(i for i, reply in enumerate(log[0]) if reply is not None)
    wrong = [
        log[0][:-1],
        [*log[0], log[0][k]],
        [],
        [Stranger() if i == k else reply for i, reply in enumerate(log[0])],
    ]
    for replies in wrong:
        with pytest.raises(BadInput):
            method.step(state, replies)
        assert codec.to_bytes(state) == before
    with pytest.raises(BadInput):
        method.step(states[-1], log[-1])
    if not subject.anytime:
        with pytest.raises((BadInput, SearchFailed)):
            method.outcome(states[0])
