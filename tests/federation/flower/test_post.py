"""A post over Flower's nodes, on a grid that loses, doubles and reorders, whose nodes change their ids."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.federation.network import WAITS, Network, conduct, terms

import sottovoce as sv
from sottovoce.api.quantile.planning import coin_of, plan_study
from sottovoce.core.random_source import parts_of
from sottovoce.core.unit import NUMBER
from sottovoce.federation import words
from sottovoce.federation.flower.post import AGAIN, LOOK, PATIENCE, SILENT, GridPost
from sottovoce.sim import dice

WHO = words.encode(words.Who("waits"))
SEED = 7


def hello(name: str) -> bytes:
    return words.encode(words.Hello(name, 5, NUMBER, 0, bytes(16)))


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 1e-3)


class Nodes:
    """A grid by hand: what was pushed lies here until a test answers it."""

    def __init__(self, *listed: int) -> None:
        self.listed, self.pushed, self.replies = list(listed), list[tuple[str, int, bytes]](), dict[str, bytes | None]()

    def nodes(self) -> Collection[int]:
        return self.listed

    def push(self, letters: Sequence[tuple[int, bytes]]) -> Sequence[str | None]:
        marks = [f"m{len(self.pushed) + k}" for k in range(len(letters))]
        self.pushed += [(mark, node, body) for mark, (node, body) in zip(marks, letters, strict=True)]
        return marks

    def pull(self, marks: Collection[str]) -> Iterable[tuple[str, bytes | None]]:
        return [(mark, self.replies.pop(mark)) for mark in list(self.replies) if mark in marks]

    def answer(self, node: int, reply: bytes | None) -> None:
        """Answer the last letter to a node."""
        self.replies[[mark for mark, to, _ in self.pushed if to == node][-1]] = reply

    def to(self, node: int) -> list[bytes]:
        return [body for _, to, body in self.pushed if to == node]


def post_over(nodes: Any, **more: Any) -> tuple[GridPost, Clock]:
    clock = Clock()
    return GridPost(nodes, "waits", ("north", "south"), clock=clock, sleep=clock.sleep, **more), clock


def test_nodes_are_asked_who_they_are_and_their_hello_is_the_reply() -> None:
    nodes = Nodes(11, 22, 33)
    post, _ = post_over(nodes)
    post.send("north", WHO)
    assert post.receive(0.1) is None
    assert [nodes.to(node) for node in (11, 22, 33)] == [[WHO]] * 3
    nodes.answer(22, hello("north"))
    nodes.answer(11, hello("elsewhere"))
    assert post.receive(1.0) == ("north", hello("north"))
    post.send("north", b"order")
    assert post.receive(0.1) is None
    assert nodes.to(22) == [WHO, b"order"]
    assert nodes.to(11) == nodes.to(33) == [WHO]


def named(nodes: Nodes, **more: Any) -> tuple[GridPost, Clock]:
    """Return a post that knows node 1 as north and node 2 as south."""
    post, clock = post_over(nodes, **more)
    post.receive(0.0)
    nodes.answer(1, hello("north"))
    nodes.answer(2, hello("south"))
    post.receive(0.0)
    return post, clock


def test_an_order_is_on_its_way_once_and_sent_again_when_patience_ends() -> None:
    nodes = Nodes(1, 2)
    post, clock = named(nodes)
    for _ in range(3):
        post.send("north", b"order")
        post.receive(1.0)
    assert nodes.to(1) == [WHO, b"order"]
    clock.now += PATIENCE
    post.receive(0.0)
    assert nodes.to(1) == [WHO, b"order", b"order"]


def test_a_restarted_node_is_found_by_its_name() -> None:
    nodes = Nodes(1, 2)
    post, clock = named(nodes)
    post.send("north", b"order")
    post.receive(0.0)
    nodes.listed.append(5)
    clock.now += LOOK
    post.receive(0.0)
    nodes.answer(5, hello("north"))
    post.receive(0.0)
    post.receive(1.0)
    assert nodes.to(5) == [WHO]  # the first one may still answer
    clock.now += SILENT
    post.receive(0.0)
    assert nodes.to(5) == [WHO, b"order"]
    nodes.answer(5, b"reply")
    assert post.receive(1.0) == ("north", b"reply")
    clock.now += PATIENCE + LOOK
    post.receive(0.0)
    assert nodes.to(1) == [WHO, b"order", WHO]  # a stranger again
    post.send("north", b"next")
    post.receive(0.0)
    assert nodes.to(5)[-1] == b"next"


def test_a_name_does_not_leave_a_node_that_answers() -> None:
    nodes = Nodes(1, 2)
    post, clock = named(nodes)
    nodes.listed.append(5)
    clock.now += LOOK
    post.receive(0.0)
    nodes.answer(5, hello("north"))
    for k in range(5):
        order = b"order %d" % k
        post.send("north", order)
        post.receive(0.0)
        nodes.answer(1, b"reply")
        assert post.receive(0.0) == ("north", b"reply")
        clock.now += SILENT
    assert nodes.to(5) == [WHO]


def test_a_node_that_is_gone_hands_its_name_over_at_once() -> None:
    nodes = Nodes(1, 2)
    post, clock = named(nodes)
    nodes.listed[:] = [2, 5]
    clock.now += LOOK
    post.send("north", b"order")
    post.receive(0.0)
    nodes.answer(5, hello("north"))
    post.receive(0.0)
    clock.now += LOOK
    post.receive(0.0)
    assert nodes.to(5) == [WHO, b"order"]


def test_a_failing_node_is_not_hammered() -> None:
    nodes = Nodes(1, 2)
    post, _ = named(nodes)
    post.send("north", b"order")
    post.receive(0.0)
    nodes.answer(1, None)
    assert post.receive(5.0) is None
    assert nodes.to(1) == [WHO, b"order"]
    post.send("north", b"order")
    post.receive(0.0)
    assert nodes.to(1) == [WHO, b"order", b"order"]


@pytest.mark.parametrize("reply", [None, b"rubbish", words.encode(words.Refused(bytes(16), "nobody"))])
def test_a_node_with_nobody_behind_it_is_asked_again_later(reply: bytes | None) -> None:
    nodes = Nodes(1)
    post, clock = post_over(nodes)
    post.receive(0.0)
    nodes.answer(1, reply)
    assert post.receive(LOOK) is None
    assert nodes.to(1) == [WHO]
    clock.now += AGAIN
    post.receive(0.0)
    assert nodes.to(1) == [WHO, WHO]


def test_pinned_nodes_alone_are_heard() -> None:
    nodes = Nodes(1, 2, 3)
    post, _ = post_over(nodes, pinned={"north": 3, "south": 2})
    post.send("north", WHO)
    assert post.receive(3 * LOOK) is None
    assert [node for _, node, _ in nodes.pushed] == [3]
    nodes.answer(3, hello("north"))
    assert post.receive(0.0) == ("north", hello("north"))


class BadGrid:
    """Nodes before resident sites: letters get lost, replies come twice, late and in another order, ids change."""

    def __init__(self, network: Network, seed: int) -> None:
        self.network, self.chance = network, dice(seed).generator()
        self.home = {name: k for k, name in enumerate(network.sites)}
        self.listed = set(self.home.values())
        self.count, self.waiting = 0, list[tuple[str, bytes | None]]()
        self.lost = self.moved = 0

    def nodes(self) -> Collection[int]:
        return self.listed

    def push(self, letters: Sequence[tuple[int, bytes]]) -> Sequence[str | None]:
        return [self.take(node, body) for node, body in letters]

    def take(self, node: int, body: bytes) -> str | None:
        self.count += 1
        sites = [name for name, home in self.home.items() if home == node]
        luck = self.chance.random()
        if not sites or luck < 0.1:
            self.lost += 1
            return f"{self.count}" if luck < 0.07 else None
        reply = self.network.sites[sites[0]].handle(body)
        if luck < 0.2:
            self.lost += 1  # answered, and the reply is lost
        else:
            self.waiting += [(f"{self.count}", None if luck < 0.25 else reply)] * (1 + (luck > 0.8))
        if luck > 0.9:  # the node dies with what it has not sent, and comes back under a new id; the old stays listed
            self.home[sites[0]] = node + 10
            self.listed.add(node + 10)
            self.moved += 1
        return f"{self.count}"

    def pull(self, marks: Collection[str]) -> Iterable[tuple[str, bytes | None]]:
        order = self.chance.permutation(len(self.waiting))
        come = [self.waiting[k] for k in order if self.chance.random() < 0.7]
        self.waiting = [each for each in self.waiting if each not in come]
        return come


def test_a_bad_grid_changes_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    for module in ("exchange", "rounds"):
        monkeypatch.setattr(f"sottovoce.federation.coordinator.{module}.time", SimpleNamespace(monotonic=clock))
    asked: dict[str, Any] = {"tau": 0.5, "epsilon": 4.0}
    network = Network(tmp_path, dict(zip(WAITS, parts_of(dice(SEED), len(WAITS)), strict=True)))
    grid = BadGrid(network, 3)
    post = GridPost(grid, "waits", tuple(WAITS), clock=clock, sleep=clock.sleep)
    coin = coin_of(plan_study(WAITS, **asked).plan, dice(SEED))
    try:
        found = conduct(terms("quantile", asked, wait=1e6), post, tmp_path / "log", coin)
    finally:
        network.shut()
    expected = sv.federated_quantile(WAITS, **asked, randomness=dice(SEED))
    assert (found.estimate, found.interval) == (expected.estimate, expected.interval)
    assert (found.rounds, found.reports) == (expected.rounds, expected.reports)
    assert min(grid.lost, grid.moved) > 2
