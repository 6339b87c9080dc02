"""Extreme parameters are refused in one sentence before any record answers, or are harmless; nothing crashes."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.regression.regressor import PrivateQuantileRegressor
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records, overlap
from sottovoce.core.errors import BadInput
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
DRAWS = dice(1).generator()
SITES = {"a": DRAWS.normal(10, 2, 3_000), "b": DRAWS.normal(10, 2, 3_000)}
OTHERS = {"c": DRAWS.normal(10, 2, 3_000)}
SCORES = {"a": abs(DRAWS.normal(size=300)), "b": abs(DRAWS.normal(size=300))}
X, Y = DRAWS.uniform(0, 10, (500, 2)), DRAWS.normal(size=500)
FACTS: dict[str, Any] = {"epsilon": 4.0, "bounds": (0, 10), "density": 0.2, "size": 3.0}


def walk(**given: Any) -> Any:
    return sv.federated_quantile(SITES, 0.5, 4.0, method="self-normalised", **given)


def fit(**given: Any) -> Any:
    return PrivateQuantileRegressor(**{**FACTS, **given}).fit(X, Y)


def one(tau: Any = 0.5, epsilon: Any = 4.0, **given: Any) -> Any:
    return sv.federated_quantile(SITES, tau, epsilon, **given)


def several(taus: Any, epsilon: Any, **given: Any) -> Any:
    return sv.federated_quantiles(SITES, taus, epsilon, **given)


REFUSED: dict[str, Callable[[], Any]] = {
    "resolution": lambda: one(resolution=1e-310),
    "huge resolution": lambda: one(resolution=1e308),
    "bounds": lambda: one(bounds=(0, 5e-324)),
    "far bounds": lambda: one(bounds=(-1e308, 1e308)),
    "equal bounds": lambda: one(bounds=(1e20, math.nextafter(1e20, 1e21))),
    "until": lambda: one(method="sequence", until=1e-310),
    "tau": lambda: one(5e-324),
    "tau next to one": lambda: one(1 - 1e-16),
    "tau as a fraction": lambda: one(Fraction(1, 10**400)),
    "epsilon": lambda: one(epsilon=Decimal("1e-400")),
    "participation": lambda: walk(participation=1e-320),
    "no participation": lambda: walk(participation=np.array([])),
    "schedule": lambda: walk(schedule="every:100000000000000000000"),
    "long schedule": lambda: walk(schedule="every:" + "9" * 5_000),
    "graph": lambda: sv.federated_quantile(
        {f"s{i}": [float(i)] for i in range(2_001)}, 0.5, 9.0, method="self-normalised", graph="ring"
    ),
    "norm": lambda: walk(norm=np.array([])),
    "method": lambda: one(method=np.array([])),
    "kind": lambda: one(kind=np.array([])),
    "missing": lambda: one(missing=np.array([])),
    "shares": lambda: one(shares={"a": 5e-324, "b": 1.0}),
    "levels": lambda: several(np.array(0.5), 4.0),
    "far levels": lambda: several([1e-310, 0.5], 4.0),
    "many levels": lambda: several([i / 200 for i in range(1, 200)], 4.0),
    "split": lambda: several([0.4, 0.6], 4.0, split=np.array(0.5)),
    "method of levels": lambda: several([0.4, 0.6], 4.0, method=np.array([])),
    "difference": lambda: sv.quantile_difference(SITES, OTHERS, 5e-324, 4.0),
    "shortfall": lambda: sv.expected_shortfall(SITES, 5e-324, 4.0, bounds=(0, 9)),
    "shortfall without bounds": lambda: sv.expected_shortfall(SITES, 0.5, 4.0, bounds=None),
    "bounds of a shortfall": lambda: sv.expected_shortfall(SITES, 0.5, 4.0, bounds=(-math.inf, 9)),
    "tail": lambda: sv.expected_shortfall(SITES, 0.5, 4.0, bounds=(0, 9), tail=np.array([])),  # type: ignore[arg-type]
    "split of a shortfall": lambda: sv.expected_shortfall(SITES, 0.5, 4.0, bounds=(0, 9), split=1e-310),
    "compare": lambda: sv.compare(1.0, None),  # type: ignore[arg-type]
    "summary": lambda: sv.SiteSummary(1.0, 0.1, n=10**20),
    "weights": lambda: sv.coverage_report(1.0, SCORES, alpha=0.1, weights={"a": 5e-324, "b": 1.0}),
    "local scores": lambda: sv.conformal_threshold(SCORES, 0.1, epsilon=1e-18, maximum=5.0, mechanism="local"),
    "variance": lambda: sv.asymptotic_variance([0.5], [1e-310], [0.5], [1.0]),
    "rates": lambda: sv.asymptotic_variance([0.5], [1.0], [1e-310], [1.0]),
    "nu": lambda: sv.asymptotic_variance([0.5], [1.0], [0.5], [1.0], nu=None),  # type: ignore[arg-type]
    "huge densities": lambda: sv.asymptotic_variance([0.5], [10**400], [0.5], [1.0]),
    "regression tau": lambda: fit(tau=5e-324),
    "ragged tau": lambda: fit(tau=[0.5, [0.6]]),
    "groups": lambda: fit(inference="groups", groups=1e9),
    "tree": lambda: fit(inference="higrad", tree=(1_000, 1_000)),
    "start": lambda: fit(start=10**400),
    "moments": lambda: fit(second_moments=10**400),
    "columns": lambda: PrivateQuantileRegressor(**FACTS).fit(np.ones((400, 301)), np.arange(400.0)),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_it_is_refused_in_a_sentence_before_anybody_answers(
    call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError("somebody was asked")

    for name in ("answer", "tally"):
        monkeypatch.setattr(Site, name, refuse)
    monkeypatch.setattr("os.urandom", refuse)
    with pytest.raises(BadInput) as raised:
        call()
    text = str(raised.value)
    assert len(text) < 400
    assert "\n" not in text


def test_small_but_sensible_parameters_still_work() -> None:
    results = [one(bounds=(0, 1e9)), one(Fraction(1, 2), Decimal(4), resolution=1e-9)]
    assert all(isinstance(result, QuantileResult) for result in results)


def test_groups_of_many_sites_are_compared_in_the_order_of_memory() -> None:
    whole = np.zeros((4_000, 5))
    first, second = ([Records(row) for row in whole[start::2]] for start in (0, 1))
    assert not overlap(first, second)
    assert overlap(first, [*second, Records(whole.ravel()[2_002:2_003])])
    assert overlap([Records(whole.ravel())], second[:1])
    assert not overlap(first[:3], [])
    assert first[0].overlaps(first[0])
    assert not first[0].overlaps(first[1])
