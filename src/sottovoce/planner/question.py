"""What every planned question is: widths of its intervals as a function of who is asked and what they pay.

A question is a forward direction alone; `planner.search` turns it round.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from sottovoce.planner.crowd import PlannedCrowd

Budgets = float | Mapping[str, float]


class PlannedWidth(NamedTuple):
    """How wide one interval will be: by the guess, and by the shapes for which it is shortest and longest.

    ``low`` and ``high`` are the quantiles from which and to which it will reach, where they are known.
    """

    of: str
    value: float
    shortest: float
    longest: float
    low: float | None = None
    high: float | None = None


class Yardstick(NamedTuple):
    """What the same people would tell under another model of trust; ``how`` says by which formula or design."""

    model: str
    widths: tuple[float, ...]
    how: str


class PlannedQuestion(Protocol):
    """One question: its forward direction, and what it rests on."""

    @property
    def title(self) -> str:
        """Return what is asked, in words."""

    @property
    def unit(self) -> str:
        """Return in what the widths are told: "values" or "levels"."""

    @property
    def assumption(self) -> str:
        """Return what the widths rest on."""

    def widths(self, crowd: PlannedCrowd, epsilon: Budgets) -> list[PlannedWidth]:
        """Return how wide every interval will be, or raise `Infeasible`."""

    def wished(self, widths: Sequence[PlannedWidth]) -> Sequence[PlannedWidth]:
        """Return the intervals that one number for all is about."""

    def yardsticks(self, crowd: PlannedCrowd, epsilon: Budgets) -> list[Yardstick]:
        """Return what other models of trust would come to."""

    def warnings(self, crowd: PlannedCrowd, epsilon: Budgets) -> Sequence[str]:
        """Return what is worth knowing before anybody is asked."""

    def settings(self) -> dict[str, Any]:
        """Return the settings as plain values."""
