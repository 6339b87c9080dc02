"""The ranks of the exact interval, summed from binomial chances, are those of the incomplete beta function."""

import pytest
from scipy.special import betainc

from sottovoce.client.integration.site import ranks


@pytest.mark.parametrize("n", [1, 2, 7, 20, 333, 4_096, 1_000_000])
@pytest.mark.parametrize("tau", [1e-6, 0.01, 0.25, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-9])
def test_they_are_the_innermost_ranks_that_keep_the_level(n: int, tau: float, level: float) -> None:
    lower, upper = ranks(n, tau, level)
    share = (1 - level) / 2 * (1 + 1e-12)

    def fewer(rank: int) -> float:  # the chance that fewer than `rank` records lie at or below the quantile
        return float(betainc(n - rank + 1, rank, 1 - tau)) if rank > 0 else 0.0

    def at_least(rank: int) -> float:  # that at least `rank` do
        return float(betainc(rank, n - rank + 1, tau)) if rank <= n else 0.0

    assert fewer(lower) <= share
    assert lower == n or fewer(lower + 1) > share
    assert at_least(upper) <= share
    assert upper == 1 or at_least(upper - 1) > share
