"""From a wished width back to people or epsilon: the least that meets it, by a search over what falls with both."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from sottovoce.core.checks import label_text, number
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.planner.crowd import MOST_PEOPLE, PlannedCrowd
from sottovoce.planner.question import Budgets, PlannedQuestion, PlannedWidth

MOST_EPSILON, LEAST_EPSILON = 10.0, 0.01  # beyond ten a report is as good as open
CLOSE = 1.002  # between the end of a search and the answer: three digits are told

Meets = Callable[[float], bool]


class Wish:
    """The widths that are wished for: one for every interval, or one each for some of them."""

    def __init__(self, width: Any) -> None:
        if isinstance(width, Mapping):
            self.each: dict[str, float] = {
                label_text(of): _width(value, f"width of {of!r}") for of, value in width.items()
            }
            self.all = math.inf  # of intervals that are not named
            if not self.each:
                raise BadInput("width is an empty mapping; give one width, or one an interval.")
        else:
            self.each, self.all = {}, _width(width, "width")

    def met(self, question: PlannedQuestion, widths: list[PlannedWidth]) -> bool:
        """Tell whether every interval is short enough; one number is not about all of them (`wished`)."""
        if not self.each:
            return all(each.value <= self.all for each in question.wished(widths))
        known = {each.of for each in widths}
        for name in self.each:
            if name not in known:
                raise BadInput(f"width names {name!r}, and the intervals are {', '.join(map(repr, sorted(known)))}.")
        return all(each.value <= self.each.get(each.of, self.all) for each in widths)

    @property
    def words(self) -> str:
        """Say what is wished."""
        if not self.each:
            return f"a width of {self.all:g}"
        return "widths of " + ", ".join(f"{width:g} ({of})" for of, width in self.each.items())

    def plain(self) -> Any:
        """Return what is wished as plain values."""
        return self.each or self.all


def _width(value: Any, where: str) -> float:
    """Return a positive width, or refuse."""
    width = number(value, where)
    if not 0 < width < math.inf:
        raise BadInput(f"{where} must be positive and finite, not {width:g}; give the length of the interval you wish.")
    return width


def meets(question: PlannedQuestion, wish: Wish, crowd: PlannedCrowd, epsilon: Budgets) -> bool:
    """Tell whether so many people at this budget meet a wish."""
    try:
        return wish.met(question, question.widths(crowd, epsilon))
    except Infeasible:
        return False


def people_for(question: PlannedQuestion, wish: Wish, crowd: PlannedCrowd, epsilon: Budgets) -> float | None:
    """Return the least people that meet a wish, divided as the crowd is; None if no number does."""
    found = least(lambda n: meets(question, wish, crowd.of(n), epsilon), float(10 * crowd.sites), MOST_PEOPLE)
    return None if found is None else rounded_up(max(found, crowd.sites), 1.0)


def epsilon_for(question: PlannedQuestion, wish: Wish, crowd: PlannedCrowd) -> float | None:
    """Return the least budget that meets a wish, the same for all; None if no budget below ten does."""
    found = least(lambda paid: meets(question, wish, crowd, paid), LEAST_EPSILON, MOST_EPSILON)
    return None if found is None else min(rounded_up(found, 0.0), MOST_EPSILON)


def least(enough: Meets, start: float, most: float) -> float | None:
    """Return the least number that is enough, to a fifth of a percent; None if the most is not.

    >>> round(least(lambda n: n * n >= 2, 0.01, 100), 2), least(lambda n: False, 1, 100)
    (1.41, None)
    """
    high = start
    while not enough(high):
        if high >= most:
            return None
        high = min(high * 4, most)
    if high == start:
        return start
    low = high / 4
    while high / low > CLOSE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def rounded_up(value: float, step: float) -> float:
    """Round up to three digits, and to a multiple of a step, if there is one.

    >>> rounded_up(40123.0, 1.0), rounded_up(1.4142, 0.0), rounded_up(31.2, 1.0)
    (40200.0, 1.42, 32.0)
    """
    unit = max(10.0 ** (math.floor(math.log10(value)) - 2), step)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.12g}")


def advice(question: PlannedQuestion, wish: Wish, crowd: PlannedCrowd, epsilon: Budgets | None) -> str:
    """Say what a wish would take: so many people at this budget, or such a budget with these people."""
    ways = []
    paid: Budgets = 1.0 if epsilon is None else epsilon
    enough = people_for(question, wish, crowd, paid)
    if enough is not None:
        ways.append(f"about {enough:,.0f} people at {budget_words(paid)}")
    if crowd.known:
        budget = epsilon_for(question, wish, crowd)
        there = f"{crowd.total:,.0f} people"
        if budget is not None:
            ways.append(f"epsilon {budget:g} with {there}")
        elif ways:
            ways[-1] += f", and no epsilon up to {MOST_EPSILON:g} brings it with {there}"
    return f"{wish.words} needs {', or '.join(ways)}" if ways else ""


def budget_words(epsilon: Budgets) -> str:
    """Say what is paid."""
    if not isinstance(epsilon, Mapping):
        return f"epsilon {epsilon:g}"
    paid = sorted(float(each) for each in epsilon.values())
    return f"epsilon {paid[0]:g}" if paid[0] == paid[-1] else f"epsilon {paid[0]:g} to {paid[-1]:g}"
