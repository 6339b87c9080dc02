"""The parts of every channel and mechanism say its exact cost again, and what is no mechanism is refused in time."""

import importlib
import math
import pkgutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import msgspec
import pytest

from sottovoce import protocol
from sottovoce.auditing.parts import FORMS, ChannelPart, TooLong, cost_of, costs_of, parts_of
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES
from sottovoce.protocol.randomised_response import binary, flips_of
from sottovoce.protocol.regression.blocks import Open, open_channel
from sottovoce.protocol.selection import SELECTIONS, selection
from sottovoce.protocol.selection.geometric import noisy_count, polya


def channels() -> Iterator[tuple[float, Callable[..., Any]]]:
    for module in pkgutil.walk_packages(protocol.__path__, protocol.__name__ + "."):
        yield from getattr(importlib.import_module(module.name), "EXAMPLES", ())


EXAMPLES = list(channels())


def as_kept(part: ChannelPart) -> ChannelPart:
    """Send a part through JSON, as a certificate keeps it."""
    return msgspec.json.decode(msgspec.json.encode(part), type=ChannelPart)


@pytest.mark.parametrize(("budget", "make"), EXAMPLES)
def test_every_channel_costs_what_its_parts_say(budget: float, make: Callable[..., Any]) -> None:
    made = make(epsilon=budget)
    found = [cost_of(as_kept(part)) for part in parts_of(made, budget)]
    assert all(each.kept for each in found)
    ratios = [each.ratio for each in found]
    if made.ratio is None:
        assert None in ratios
    else:
        known = [ratio for ratio in ratios if ratio is not None]
        assert len(known) == len(ratios)
        bits = [part for part in parts_of(made, budget) if "moments" not in part.role]
        assert max(cost_of(part).ratio or Fraction(0) for part in bits) == made.ratio


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("name", SELECTIONS)
def test_every_selection_does(name: str, epsilon: float) -> None:
    made = selection(name, 40, 30, 11, epsilon)
    [part] = parts_of(made, epsilon)
    assert part.form == name
    assert cost_of(as_kept(part)).ratio == made.ratio


def test_counts_sums_and_open_scores_do() -> None:
    for epsilon in (0.1, 1.0, 9.0):
        [count], [total] = costs_of(parts_of(noisy_count(epsilon))), costs_of(parts_of(polya(epsilon, 7)))
        assert (count.epsilon, total.epsilon) == (noisy_count(epsilon).epsilon, polya(epsilon, 7).epsilon)
    for nothing in (Open(), open_channel(0.5, 2), polya(math.inf, 3), binary(math.inf)):
        assert [each.epsilon for each in costs_of(parts_of(nothing))] == [math.inf]
        assert all(each.kept for each in costs_of(parts_of(nothing, math.inf)))
        assert not any(each.kept for each in costs_of(parts_of(nothing, 9.0)) if each.part.asked is not None)


def test_one_face_less_is_seen() -> None:
    flips = flips_of(binary(1.0))
    kept, dear = (ChannelPart("bit", "bit", (), ((str(each),),), 1.0) for each in (flips, flips - 1))
    assert cost_of(kept).kept
    assert not cost_of(dear).kept


BAD = [
    ("bit", (), (("5", "6"),)),
    ("bit", (1,), (("5",),)),
    ("bit", (), ()),
    ("bit", (), ((str(OUTCOMES),),)),
    ("bit", (), (("-5",),)),
    ("bit", (), (("٣",),)),
    ("bit", (), (("9" * 400_000,),)),
    ("matrix", (), (("1", "2"), ("3",))),
    ("matrix", (), (("0", "0"), ("0", "0"))),
    ("matrix", (), (("1", "2"), ("1", "3"))),
    ("matrix", (), ((), ())),
    ("box", (2, 1, 2), (("1", "1", "1"),)),
    ("box", (2, 1 << 60, 9, 1), (("1", "1", "1"),)),
    ("box", (2, -5, 9, 1), (("1", "1", "1"),)),
    ("box", (2, 1, 2, 1), (("1", "1", "1"),)),
    ("sum", (0,), (("1",),)),
    ("sparse-vector", (0, 1, 3), (("1", "1"),)),
    ("sparse-vector", (9, 1, 3), (("0", "1"),)),
    ("exponential", (9, 99, 3), (("5", "5"),)),
    ("paper", (9, 9, 3), (("5", "5"),)),
    ("paper", (9, 1, 3), (("0", "5"),)),
    ("open", (), (("1",),)),
    ("another", (), ()),
]


@pytest.mark.parametrize(("form", "shape", "weights"), BAD)
def test_what_is_no_mechanism_is_refused(form: str, shape: Any, weights: Any) -> None:
    with pytest.raises(BadInput):
        cost_of(ChannelPart("x", form, shape, weights, 1.0))


@pytest.mark.parametrize("form", ["exponential", "paper"])
@pytest.mark.parametrize("numerator", [(1 << 64) - 1, (1 << 64) - (1 << 40), 1 << 63, 1])
def test_long_tables_are_not_begun(form: str, numerator: int) -> None:
    with pytest.raises(TooLong):
        cost_of(ChannelPart("x", form, (1 << 50, 1 << 49, 3), ((str(numerator),) * 2,), 1.0))


def test_every_form_has_a_case_here() -> None:
    assert {form for form, _, _ in BAD} >= set(FORMS) - {"count"}
