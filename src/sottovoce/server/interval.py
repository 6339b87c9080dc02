"""What every method gives back: an interval of confidence, and a test that agrees with it."""

from typing import NamedTuple

ALTERNATIVES = ("two-sided", "greater", "less")


class Interval(NamedTuple):
    """An interval of confidence."""

    low: float
    high: float


class Test(NamedTuple):
    """A test of a supposed quantile."""

    value: float
    alternative: str
    pvalue: float
