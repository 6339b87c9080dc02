"""No channel costs more than it was asked to: the ratio is written out of the integers, by other means than the code's.

The settings are those of findings on earlier versions, and drawn ones: levels down to 1e-6 from either end, up to 20
slopes, budgets from 1e-6 to 30.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from sottovoce.api.regression.regressor import PrivateQuantileRegressor
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.randomised_response import binary
from sottovoce.protocol.regression import lp
from sottovoce.protocol.regression.box import box
from sottovoce.protocol.regression.box_channel import BoxChannel
from sottovoce.protocol.regression.lp import lp_pair
from sottovoce.server.regression.design import Design, parse
from sottovoce.server.regression.omega import covariates

NAMES = ("auto", "lp", "box", "cq", "cq:2,1", "cq:3,2")
LOW, HIGH = -6.0, 1.4771  # of the decimal logarithm of a budget: 1e-6 to 30


def costs_at_most(channel: object, epsilon: float) -> bool:
    """Tell whether a letter is at most exp(epsilon) times as likely for one record as for another, letter by letter."""
    with localcontext() as context:
        context.prec = 150
        most = Fraction(Decimal(epsilon).exp())
    if isinstance(channel, BoxChannel):
        return channel.low > 0 and channel.low + channel.extra <= most * channel.low
    assert isinstance(channel, Channel)
    assert {sum(row) for row in channel.weights} == {OUTCOMES}
    return all(0 < max(column) <= most * min(column) for column in zip(*channel.weights, strict=True))


def written_out(design: Design, epsilon: float) -> bool:
    parts = [
        part for channel in design.channels for part in (channel.bit, *(block.channel for block in channel.blocks))
    ]
    return all(costs_at_most(part, epsilon) for part in (*parts, binary(design.epsilon)))


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(
    name=some.sampled_from(NAMES),
    far=some.floats(LOW, -0.31),
    upper=some.booleans(),
    p=some.integers(1, 20),
    size=some.floats(LOW, HIGH),
    moments=some.one_of(some.none(), some.floats(1e-6, 1.0)),
)
def test_no_channel_costs_more_than_its_budget(
    name: str, far: float, upper: bool, p: int, size: float, moments: Any
) -> None:
    tau, epsilon = 1 - 10.0**far if upper else 10.0**far, 10.0**size
    try:
        design = parse(name, tau, p, epsilon, moments)
    except BadInput:
        assert epsilon > 24  # nothing else is refused
        return
    assert design.epsilon <= epsilon
    assert written_out(design, epsilon)


@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(
    far=some.floats(LOW, -0.31), size=some.floats(LOW, 0), weight=some.floats(-2, 4), moment=some.floats(1e-3, 1.0)
)  # fmt: skip
def test_nor_does_a_pair(far: float, size: float, weight: float, moment: float) -> None:
    epsilon = 10.0**size
    assert costs_at_most(lp_pair(10.0**far, epsilon, 10.0**weight, moment), epsilon)


@pytest.mark.parametrize(
    ("name", "tau", "p", "epsilon", "moments"),
    [
        ("auto", 0.99999, 3, 0.021, 0.9),
        ("auto", 0.99999, 1, 0.1, None),
        ("auto", 1e-5, 10, 0.1, None),
        ("lp", 0.99, 2, 1e-3, None),
        ("lp", 0.75, 2, 1e-4, 0.05),
        ("lp", 0.5, 1, 1e-6, 0.9),
    ],
)
def test_what_was_found_is_gone(name: str, tau: float, p: int, epsilon: float, moments: float | None) -> None:
    assert written_out(parse(name, tau, p, epsilon, moments), epsilon)


def test_the_blank_letter_makes_up_for_rows_that_the_solver_left_unequal() -> None:
    solved = lp_pair(0.75, 1e-4, 1.0, 0.9)
    assert OUTCOMES >> 20 < min(row[-1] for row in solved.weights) < OUTCOMES >> 8


def test_without_the_larger_blank_the_constructor_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lp, "wanted_blank", lambda *_: OUTCOMES >> 20)
    lp._solved.cache_clear()
    with pytest.raises(BadInput, match=r"'lp' would cost \S+, more than its epsilon 0\.0001;"):
        lp_pair(0.75, 1e-4, 1.0, 0.9)
    lp._solved.cache_clear()


def test_a_design_checks_its_channels_again() -> None:
    dear = box((0.5,), 2, 2.0, slopes=1, cells=4, width=2)
    with pytest.raises(BadInput, match=r"would cost 2\.0, more than its epsilon 1\.0"):
        Design("dear", (dear,), covariates(2), 1.0, (), "for a test")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_fitting_passes_the_same_gate(method: str) -> None:
    given: dict[str, Any] = {"bounds": [(-1, 1)] * 3, "density": 1.0, "size": 1.0}
    X, y = np.linspace(-1, 1, 12_000).reshape(-1, 3) ** np.arange(1, 4), np.arange(4_000.0)  # noqa: N806
    dear = box((0.5,), 3, 2.0, slopes=1, cells=4, width=2)
    with pytest.raises(BadInput, match="above the budget"):
        getattr(PrivateQuantileRegressor(0.5, epsilon=1.0, channel=dear, **given), method)(X, y)
    found = PrivateQuantileRegressor(0.99999, epsilon=0.021, second_moments=0.9, **given)
    if method == "fit":
        with pytest.raises(BadInput, match="people at epsilon"):
            found.fit(X, y)
        return
    found.partial_fit(X, y)
    assert found.private_
    assert found.epsilon_ <= 0.021
