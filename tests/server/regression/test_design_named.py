"""Channels by name: what each name gives, and what is refused."""

import math

import pytest

from sottovoce.core.errors import BadInput
from sottovoce.server.regression.design import choose, parse


@pytest.mark.parametrize(
    ("text", "name"), [("cq", "cq:3,1"), ("cq:4,2", "cq:4,2"), ("lp", "lp"), ("box", "box"), ("auto", "lp")]
)
def test_names(text: str, name: str) -> None:
    design = parse(text, 0.75, 2, 1.0)
    assert design.name == design.channel.name == name
    assert design.channel.epsilon <= 1.0
    assert name in design.explain()


def test_lp_and_box_have_budgets_beyond_where_they_are_best() -> None:
    for text, epsilon in (("lp", 0.05), ("lp", 16.0), ("box", 0.05), ("box", 8.0), ("cq", 16.0)):
        design = parse(text, 0.75, 3, epsilon)
        assert 0 <= epsilon - design.channel.epsilon < 1e-8
        assert design.alternative.trace >= choose(0.75, 3, epsilon).alternative.trace * 0.998


def test_without_privacy() -> None:
    assert parse("open", 0.5, 2, math.inf).channel.epsilon == math.inf
    assert parse("cq", 0.5, 2, math.inf).channel.name.startswith("cq:64,")
    assert parse("cq:3,2", 0.5, 2, math.inf).channel.epsilon == math.inf


def test_several_levels_of_a_named_channel_are_split() -> None:
    design = parse("cq:2,1", (0.25, 0.75), 2, 1.0)
    assert design.split
    assert [channel.taus for channel in design.channels] == [(0.25,), (0.75,)]
    one = parse("cq:2,1", 0.25, 2, 1.0)
    assert design.alternative.errors[0] == pytest.approx(one.alternative.errors[0] * math.sqrt(2))


@pytest.mark.parametrize(
    ("text", "p", "epsilon", "words"),
    [
        ("cp", 2, 1.0, "there is no channel 'cp'"),
        ("cq:2", 2, 1.0, "there is no channel 'cq:2'"),
        ("cq:1,1", 2, 1.0, "at least 2 steps"),
        ("cq:2,4", 2, 1.0, "not s = 4"),
        ("cq:2,0", 2, 1.0, "not s = 0"),
        ("cq:8,20", 19, 1.0, "more than the 2^32 a report can carry"),
        ("open", 2, 1.0, "is not private"),
        ("lp", 0, 1.0, "needs a slope"),
        ("lp", 2, math.inf, "finite epsilon"),
        ("box", 2, 30.0, "at most at 24"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(text: str, p: int, epsilon: float, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(text, 0.5, p, epsilon)
    assert words in str(caught.value)
    assert "; give" in str(caught.value)
