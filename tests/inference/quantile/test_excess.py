"""The ends of a shortfall: never wrong more often than they say, whatever the distribution and the guessed quantile."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sottovoce.core.arrays import Floats
from sottovoce.inference.quantile.excess import Excess, highest_chance, lower_end, lowest_chance, middle, upper_end
from sottovoce.sim.randomness import dice

FAR, MASS = 10.0, 0.2
Survival = Callable[[Any], Any]
LAWS: dict[str, Survival] = {
    "exponential": lambda x: np.exp(-np.asarray(x)),
    "atom at the quantile": lambda x: np.where(np.asarray(x) < 1.0, 0.5, 0.05 * (np.asarray(x) < 6.0)),
    "atom at the bound": lambda x: np.where(np.asarray(x) < 0.0, 1.0, 0.3 * np.exp(-np.asarray(x)) + 0.02),
    "gap": lambda x: np.where(np.asarray(x) < 1.0, 0.2 + 0.8 * (1 - np.asarray(x)), np.clip((10 - x) / 5, 0, 0.2)),
    "nothing beyond": lambda x: (np.asarray(x) < 2.0) * 1.0,
}


def truth(law: Survival) -> tuple[float, float]:
    """Return the quantile and the shortfall of a law limited to [0, FAR]."""
    x = np.linspace(0, FAR, 2_000_001)
    s = law(x) * (x < FAR)
    return float(x[np.argmax(s <= MASS)]), float(np.minimum(s / MASS, 1.0).sum() * (x[1] - x[0]))


def excess(counts: Callable[[Floats, int], Any], start: float, edge: float, low: float, rate: float) -> Excess:
    """Return what is heard if so many reports at each point say "beyond"."""
    number, each, first = 40, 60, 16
    grid = start + (FAR - start) / number * np.arange(float(number))
    near = int((edge - low) * number * each / (FAR - start))
    least = np.asarray(counts(grid, each), dtype=np.int64)
    at_edge = int(counts(np.array([edge]), near)[0])
    begun = int(np.sum(counts(start + (FAR - start) / first * np.arange(float(first)), 15)))
    return Excess(
        MASS, rate, start, FAR, each, least, least, edge, near, at_edge, 15 * first, begun, begun, first, number
    )


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("off", [(0.0, 0.0, 0.0), (-0.4, 0.3, -0.5), (0.5, 0.5, -0.1)])
def test_without_noise_the_ends_enclose_the_shortfall(law: Survival, off: tuple[float, float, float]) -> None:
    quantile, shortfall = truth(law)
    start, edge, low = (min(max(quantile + part, 0.0), FAR - 0.1) for part in off)
    heard = excess(lambda x, n: n * 10_000 * law(x), start, edge, low, 1.0)
    heard = heard._replace(each=heard.each * 10_000, near=heard.near * 10_000, first=heard.first * 10_000)
    high, least = upper_end(heard, 0.01), lower_end(heard, low, max(edge, quantile), 0.01)
    assert least <= shortfall + 1e-5
    assert high >= shortfall - 1e-5
    # the first grid is coarse, and an error d in the quantile costs d squared at most, in units of its own spread
    assert high - shortfall < 0.35 + max(off[0], 0.0) + 2 * off[0] ** 2 / MASS
    assert shortfall - least < 0.6 + (edge - low) + max(quantile - low, 0.0)


@pytest.mark.parametrize("rate", [0.3, 0.9, 1.0])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_neither_end_is_wrong_more_often_than_it_says(law: Survival, rate: float) -> None:
    """Misses of 1,000 runs stay below what chance allows with probability 1e-6 a test."""
    quantile, shortfall = truth(law)
    generator, runs, error = dice(17).generator(), 1_000, 0.1
    start, edge, low = max(quantile - 0.1, 0.0), min(quantile + 0.3, FAR - 0.1), max(quantile - 0.2, 0.0)

    def counts(x: Floats, n: int) -> Any:
        return generator.binomial(n, (1 - rate) / 2 + rate * law(x))

    found = [excess(counts, start, edge, low, rate) for _ in range(runs)]
    most = stats.binom.isf(1e-6, runs, error)
    assert sum(upper_end(each, error) < shortfall - 1e-5 for each in found) <= most
    assert sum(lower_end(each, low, edge, error) > shortfall + 1e-5 for each in found) <= most
    if rate < 1 and law is LAWS["exponential"]:
        assert sum(upper_end(each, 0.4) < shortfall for each in found) > 0  # it can be seen to miss
    far = [lower_end(each, low, edge + 1.0, error) for each in found[:200]]  # an end beyond the one that was asked
    assert sum(end > shortfall + 1e-5 for end in far) <= stats.binom.isf(1e-6, 200, error)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_estimate_is_unbiased_about_the_true_quantile(law: Survival) -> None:
    quantile, shortfall = truth(law)
    generator = dice(19).generator()

    def counts(x: Floats, n: int) -> Any:
        return generator.binomial(n, 0.2 + 0.6 * law(x))

    found = [middle(excess(counts, quantile, quantile + 0.3, quantile, 0.6), smooth=True) for _ in range(2_000)]
    noise = np.std(found) / np.sqrt(2_000)
    grid = (FAR - quantile) / 40  # reading between points costs at most half a step and its tail
    assert abs(np.mean(found) - shortfall) < 5 * noise + grid / 2


def test_limits_of_a_chance_are_those_of_clopper_and_pearson() -> None:
    for count, of, error in ((3, 50, 0.025), (0, 7, 0.1), (7, 7, 0.1), (480_000, 1_000_000, 0.005)):
        low = stats.beta.ppf(error, count, of - count + 1) if count else 0.0
        high = stats.beta.isf(error, count + 1, of - count) if count < of else 1.0
        assert lowest_chance(count, of, error) == pytest.approx(low, rel=1e-9)
        assert highest_chance(count, of, error) == pytest.approx(high, rel=1e-9)


def test_coins_that_differ_are_no_worse_than_equal_ones() -> None:
    """The exact law of a sum of different coins: its limits miss the mean at most as often as they say."""
    generator = dice(23).generator()
    for _ in range(40):
        chances = generator.choice([0.05, 0.3, 0.5, 0.95], size=30) * generator.uniform(0.2, 1.0)
        law = np.array([1.0])
        for chance in chances:
            law = np.convolve(law, [1 - chance, chance])
        for error in (0.01, 0.05, 0.2):
            above = [highest_chance(count, 30, error) < chances.mean() for count in range(31)]
            below = [lowest_chance(count, 30, error) > chances.mean() for count in range(31)]
            assert law[above].sum() <= error
            assert law[below].sum() <= error
