"""What every estimator gives back."""

from dataclasses import dataclass


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
