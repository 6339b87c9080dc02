"""What every estimator gives back, and the contract it keeps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Estimate:
    """A point with its interval of confidence, and the number of reports behind it.

    Examples
    --------
    >>> estimate = Estimate(1.0, 0.5, 1.75, 0.95, 1000)
    >>> estimate.length, estimate.covers(0.4)
    (1.25, False)
    """

    point: float
    low: float
    high: float
    level: float
    n: int

    @property
    def length(self) -> float:
        """Return the length of the interval."""
        return self.high - self.low

    def covers(self, value: float) -> bool:
        """Tell whether the interval contains a value."""
        return self.low <= value <= self.high


class Estimator(Protocol):
    """A few pure functions over a plain state.

    The contract: inputs are never changed; merging does not depend on the order of the sites; replaying the letters
    from any state on the way gives the same end as running through.
    """

    def init(self, study: Any) -> Any:
        """Return the state before the first round."""

    def query(self, study: Any, state: Any) -> Sequence[Any]:
        """Return what each site is asked in the next round."""

    def step(self, study: Any, state: Any, letters: Sequence[Any]) -> Any:
        """Return the state after the letters of one round."""

    def estimate(self, study: Any, state: Any, level: float) -> Estimate:
        """Return the estimate so far."""
