"""The paper's simulated sites: populations, levels and response rates (section 4.1 of Cai, Hu and Wu).

The paper draws ten locations once for "Hete L", and its numbers at rate .9 can only come from one data set kept for all
replications; it says neither which. Both are the first numbers of numpy's old generator (MT19937) with seed 42: ten
normal numbers for the locations, and the records site after site. That was found by holding the limits of the
divide-and-conquer bias, then errors and interval lengths at rate .9, against those of some thousand seeds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.inference.quantile.asymptotic import standard_error
from sottovoce_papers.simulation.populations import Mixture, evenly, hete_d, homogeneous, population

SITES = 10
SEED = 42
FAMILIES = ("normal", "cauchy")
LEVELS = {"low": (0.3, 0.5), "high": (0.5, 0.8)}
SCENARIOS = ("Homo", "Hete L", "Hete D")


@dataclass(frozen=True)
class Scene:
    """Ten sites of equal shares.

    ``tau`` is a level, or "low" or "high" for ten levels spread evenly over [.3, .5] or [.5, .8], of which only the
    mean matters; ``rate`` is a rate of truthful answers, or "hetero" for ten rates spread evenly over [.25, .9].

    Examples
    --------
    >>> scene = Scene("normal", "Homo", "low", "hetero")
    >>> round(scene.level, 3), round(scene.truth, 4), round(float(scene.rates.mean()), 3)
    (0.4, -0.2533, 0.575)
    >>> [round(Scene("normal", "Hete L", tau, 0.9).divide_and_conquer_bias, 3) for tau in (0.3, 0.5, 0.8)]
    [0.133, 0.017, -0.19]
    """

    family: str
    scenario: str
    tau: float | str
    rate: float | str

    def __post_init__(self) -> None:
        if self.family not in FAMILIES or self.scenario not in SCENARIOS:
            raise BadInput(
                f"there is no scene {self.family} {self.scenario!r}; choose normal or cauchy and one of "
                f"{', '.join(SCENARIOS)}."
            )

    @cached_property
    def centred(self) -> Mixture:
        """Return the sites' populations, each about its own location."""
        return hete_d() if self.scenario == "Hete D" else homogeneous(population(self.family), SITES)

    @property
    def locations(self) -> Floats:
        """Return where the sites are."""
        return _generator().standard_normal(SITES) if self.scenario == "Hete L" else np.zeros(SITES)

    @cached_property
    def sites(self) -> Mixture:
        """Return the sites' populations."""
        distributions = zip(self.centred.populations, self.locations, strict=True)
        return evenly([distribution.moved(float(location)) for distribution, location in distributions])

    @property
    def level(self) -> float:
        """Return the level of the estimand."""
        return float(np.mean(LEVELS[self.tau])) if isinstance(self.tau, str) else self.tau

    @property
    def levels(self) -> Floats:
        """Return each site's own level, which matters only to sites that exchange nothing."""
        return np.linspace(*LEVELS[self.tau], SITES) if isinstance(self.tau, str) else np.full(SITES, self.tau)

    @property
    def rates(self) -> Floats:
        """Return each site's rate of truthful answers."""
        if isinstance(self.rate, str):
            return np.linspace(0.25, 0.9, SITES)
        return np.full(SITES, self.rate)

    @cached_property
    def truth(self) -> float:
        """Return the quantile that is estimated."""
        return self.sites.quantile(self.level)

    def truths(self, locations: Floats) -> Floats:
        """Return the quantiles for sites at other locations, one column of them each, by bisection.

        Examples
        --------
        >>> scene = Scene("cauchy", "Hete L", 0.8, 0.9)
        >>> bool(np.isclose(scene.truths(scene.locations[:, None])[0], scene.truth))
        True
        """
        distributions = self.centred.populations
        ends = np.array([distribution.quantile(self.level) for distribution in distributions])[:, None] + locations
        low, high = ends.min(axis=0), ends.max(axis=0)
        for _ in range(60):
            middle = (low + high) / 2
            below = np.mean(
                [distribution.cdf(middle - at) for distribution, at in zip(distributions, locations, strict=True)],
                axis=0,
            )
            low, high = np.where(below < self.level, middle, low), np.where(below < self.level, high, middle)
        return np.asarray((low + high) / 2)

    @property
    def divide_and_conquer_bias(self) -> float:
        """Return how far the mean of the sites' own quantiles lies from the quantile of all."""
        own = [
            distribution.quantile(tau) for distribution, tau in zip(self.sites.populations, self.levels, strict=True)
        ]
        return float(np.mean(own)) - self.truth

    def oracle(self, records: int) -> float:
        """Return the standard error of Theorem 3.1 with nu = 1."""
        counts, at = np.full(SITES, float(records)), self.truth
        return standard_error(
            self.sites.probabilities(at), self.sites.densities(at), self.rates, self.sites.shares, counts
        )

    def data_set(self, records: int, seed: int = SEED) -> Floats:
        """Draw the one data set of a family, scenario and horizon: records by sites, the same for all levels and rates.

        Examples
        --------
        >>> one, two = (Scene("normal", "Homo", 0.5, rate).data_set(3) for rate in (0.25, 0.9))
        >>> bool((one == two).all()), one.shape, round(float(one[0, 0]), 4)
        (True, (3, 10), 0.4967)
        """
        generator = _generator(seed)
        if self.scenario == "Hete L":
            generator.standard_normal(SITES)  # the locations come first
        draws: dict[str, Callable[[int], Floats]] = {
            "normal": generator.standard_normal,
            "cauchy": generator.standard_cauchy,
            "uniform": lambda n: generator.uniform(-1.0, 1.0, n),
        }
        families = ["normal"] * 3 + ["uniform"] * 3 + ["cauchy"] * 4
        if self.scenario != "Hete D":
            families = [self.family] * SITES
        return np.array([draws[family](records) for family in families]).T + self.locations


def _generator(seed: int = SEED) -> np.random.RandomState:
    return np.random.RandomState(seed)


def read(tau: str | float, rate: str | float) -> tuple[float | str, float | str]:
    """Return a level and a rate as a table writes them: numbers as numbers, words as words.

    Examples
    --------
    >>> read("0.5", "hetero"), read("low", 0.25)
    ((0.5, 'hetero'), ('low', 0.25))
    """
    return tau if tau in LEVELS else float(tau), rate if rate == "hetero" else float(rate)
