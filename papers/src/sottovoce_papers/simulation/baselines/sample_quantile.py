"""What could be had without privacy: the weighted sample quantile between two order statistics (Woodruff 1952)."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.server.quantile.estimate import Estimate
from sottovoce_papers.simulation.methods import Sample


@dataclass(frozen=True)
class SampleQuantile:
    """The quantile of the pooled records, each weighted by its site's share over its site's size.

    The interval runs between the quantiles at ``tau -+ z sqrt(sum p_k^2 F_k (1 - F_k) / n_k)``.

    Examples
    --------
    >>> estimate = SampleQuantile(0.5)([np.arange(101.0)], seed=0, level=0.95)
    >>> estimate.point, estimate.low, estimate.high
    (50.0, 40.0, 60.0)
    """

    tau: float
    shares: Sequence[float] | None = None

    def __call__(self, sample: Sample, seed: int, level: float) -> Estimate:  # noqa: ARG002 - nothing here is random
        """Return the sample quantile and its interval."""
        n = np.array([len(values) for values in sample])
        shares = np.full(len(n), 1 / len(n)) if self.shares is None else np.asarray(self.shares, dtype=np.float64)
        values = np.concatenate(list(sample))
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(np.repeat(shares / n, n)[order])
        values = values[order]

        def at(u: float) -> float:
            return float(values[min(int(np.searchsorted(reached, u - 1e-12)), len(values) - 1)])

        point = at(self.tau)
        error = float(np.sqrt(np.sum(shares**2 * _spreads(sample, point) / n)))
        z = NormalDist().inv_cdf((1 + level) / 2)
        return Estimate(point, at(self.tau - z * error), at(self.tau + z * error), level, len(values))


def _spreads(sample: Sample, point: float) -> Floats:
    """Return the variance of "below the point" at each site."""
    below: Floats = np.array([float(np.mean(values <= point)) for values in sample])
    return below * (1 - below)
