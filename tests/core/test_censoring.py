"""Limits beyond which values are symbols: how they are written, what is beyond, and what an answer says of it."""

import math

import pytest

from sottovoce.core.censoring import Censoring, read_censoring
from sottovoce.core.errors import BadInput

INFINITE = math.inf


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("<5", "<5"),
        (" < 5 ", "<5"),
        ("≤5", "<=5"),
        (">=1e3", ">=1000"),
        ("<.5;>200", "<0.5,>200"),
        (">200 <5", "<5,>200"),
        (["<5", "<10", ">300", ">200"], "<10,>200"),
        (["<5", "<=5"], "<=5"),
        ([">7", ">=7"], ">=7"),
        ("<-2", "<-2"),
        ("<0", "<0"),
    ],
)
def test_limits_are_read_and_the_widest_counts(given: str | list[str], text: str) -> None:
    found = read_censoring(given)
    assert str(found) == text
    assert read_censoring(text) == found == read_censoring(found)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("5", "no limit"),
        ("", "no limit"),
        ([], "empty"),
        (5, "an int"),
        (["<5", 7], "a list"),
        ("<nan", "no limit"),
        ("<1e999", "no limit"),
        ("<0,5", "no limit"),
        ("<5,>5", "no value between 5 and 5"),
        ("<9,>4", "no value between 9 and 4"),
        ("<5 mg", "no limit"),
    ],
)
def test_what_is_no_limit_is_refused_in_one_sentence(given: object, why: str) -> None:
    with pytest.raises(BadInput, match=why) as caught:
        read_censoring(given)
    assert str(caught.value).startswith("censored ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["<5", "<=5", ">200", ">=200", "<5,>200", "<0.02", "<-2", "<0", "<1e-9", ">1e9", "<3,>4"]
)
def test_what_stands_for_a_symbol_lies_beyond_its_limit_and_is_the_symbol(text: str) -> None:
    limits = read_censoring(text)
    assert limits is not None
    low, high = limits.codes
    assert low < limits.low or not limits.below
    assert high > limits.high or not limits.above
    for code, symbol, side in ((low, limits.below, -1), (high, limits.above, 1)):
        if symbol:
            assert math.isfinite(code)
            assert limits.shown(code) == symbol
            assert limits.side(code) == side
    assert limits.coarsest > 0


def test_the_limit_itself_belongs_to_the_symbol_where_it_says_so() -> None:
    opened, closed = Censoring(5.0, 9.0), Censoring(5.0, 9.0, low_closed=True, high_closed=True)
    assert [opened.side(value) for value in (4.9, 5.0, 9.0, 9.1)] == [-1, 0, 0, 1]
    assert [closed.side(value) for value in (4.9, 5.0, 9.0, 9.1)] == [-1, -1, 1, 1]


def test_ends_between_a_limit_and_its_symbol_say_what_the_records_can_say() -> None:
    limits = Censoring(low=5.0, high=200.0)
    assert limits.codes == (0.0, 400.0)
    assert limits.known(7.0) == limits.known(7.0, -1) == limits.known(7.0, 1) == 7.0
    assert limits.known(2.0) == -INFINITE  # an estimate: the symbol
    assert limits.known(2.0, -1) == 5.0  # nothing lies between the symbol and the limit
    assert limits.known(0.0, -1) == -INFINITE
    assert limits.shown(limits.known(2.0, 1)) == "<5"
    assert limits.known(300.0) == INFINITE
    assert limits.known(300.0, 1) == 200.0
    assert limits.known(400.0, 1) == INFINITE
    assert limits.shown(limits.known(300.0, -1)) == ">200"
    assert limits.settled(-INFINITE, limits.known(2.0, 1))
    assert not limits.settled(-INFINITE, 5.0)
    assert not limits.settled(-INFINITE, INFINITE)


def test_closed_limits_leave_ends_next_to_them() -> None:
    limits = Censoring(low=5.0, low_closed=True)
    assert limits.known(2.0, -1) > 5.0
    assert limits.known(2.0, 1) == 5.0
    assert limits.shown(5.0) == "<=5"
    assert Censoring(low=5.0).plain(Censoring(low=5.0).known(2.0, 1)) == 5.0
