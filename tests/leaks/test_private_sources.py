"""A result is private only if the package's own source of the system's entropy was used, in every public call."""

from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.regression.regressor import PrivateQuantileRegressor
from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy
from sottovoce.sim.randomness import dice

SITES = {"north": dice(1).generator().normal(size=3_000), "south": dice(2).generator().normal(size=3_000)}
X, Y = np.linspace(-1, 1, 3_000)[:, None], SITES["north"]

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Claims(SystemEntropy):
    """Reproducible words that call themselves private."""

    private = True

    def __init__(self) -> None:
        self._seeded = dice(3)

    def words(self, n: int) -> Words:
        return self._seeded.words(n)

    def split(self, n: int) -> list[Any]:
        return [self] * n


def regression(randomness: Any) -> bool:
    model = PrivateQuantileRegressor(bounds=(-1, 1), epsilon=4.0, density=0.4, size=1.0, randomness=randomness)
    return bool(model.partial_fit(X, Y).private_)


def many(randomness: Any) -> bool:
    values = {f"site {i}": SITES["north"][i::60] for i in range(60)}
    return sv.federated_quantile(values, 0.5, 4.0, randomness=randomness).private


CALLS = {
    "one level": lambda r: sv.federated_quantile(SITES, 0.5, 4.0, randomness=r).private,
    "walk": lambda r: sv.federated_quantile(SITES, 0.5, 4.0, method="self-normalised", randomness=r).private,
    "many sites": many,
    "levels": lambda r: sv.federated_quantiles(SITES, [0.4, 0.6], 4.0, randomness=r).private,
    "difference": lambda r: sv.quantile_difference([SITES["north"]], [SITES["south"]], 0.5, 4.0, randomness=r).private,
    "shortfall": lambda r: sv.expected_shortfall(SITES, 0.7, 4.0, bounds=(-9, 9), randomness=r).private,
    "integration": lambda r: sv.integrated_quantile(Y, {"b": SITES["south"]}, 0.5, 4.0, randomness=r).private,
    "threshold": lambda r: sv.conformal_threshold(SITES, 0.1, epsilon=4.0, maximum=9.0, randomness=r).private,
    "report": lambda r: sv.coverage_report(1.0, SITES, alpha=0.1, epsilon=4.0, randomness=r).private,
    "regression": regression,
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_only_the_systems_own_entropy_is_private(call: Any) -> None:
    assert call(None)
    assert call(SystemEntropy())
    assert not call(Claims())
    assert not call(dice(1))


@pytest.mark.parametrize("odd", [1, dice(1).generator(), type("Half", (), {"words": 1, "split": 2})()])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_is_no_source_is_refused(call: Any, odd: Any) -> None:
    with pytest.raises(BadInput, match=r"^randomness must be None or sim\.dice\(seed\), not a"):
        call(odd)
