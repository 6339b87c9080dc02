"""Plans and rows for the tests of whole regressions."""

from collections.abc import Sequence
from typing import Any

from sottovoce.client.door import Door
from sottovoce.client.order import order_key
from sottovoce.client.regression.rows import Rows
from sottovoce.client.regression.site_people import SitePeople
from sottovoce.core.bounds import read_bounds
from sottovoce.server.regression.design import design_of
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.server.regression.settings import DEFAULTS, read_settings
from sottovoce.server.regression.sites import SitesRegression
from sottovoce.sim.randomness import dice

GUESSES: dict[str, Any] = {"density": 0.5, "size": 1.5, "start": 0.5}
WAYS: dict[str, dict[str, Any]] = {
    "dithered": {**GUESSES, "epsilon": 2.0},
    "pilot": {"epsilon": 4.0},
    "shared": {**GUESSES, "epsilon": 6.0, "tau": [0.25, 0.75]},
    "split": {"epsilon": 4.0, "tau": [0.25, 0.75], "channel": "cq:2,1"},
    "self-normalised": {**GUESSES, "epsilon": 2.0, "inference": "self-normalised"},
    "groups": {**GUESSES, "epsilon": 2.0, "inference": "groups", "groups": 4},
    "higrad": {"epsilon": 4.0, "inference": "higrad", "tree": (2, 2)},
}


def plan_of(**options: Any) -> RegressionPlan:
    settings = read_settings({**DEFAULTS, "bounds": (-1, 1), **options})
    bounds = read_bounds(settings.bounds, ("a", "b"))
    return RegressionPlan(settings, design_of(settings, bounds), bounds, settings.starts(bounds.to_scaled), 0.9, "wait")


def over_sites(
    plan: RegressionPlan, rows: Sequence[Rows], own: Sequence[Any], key: bytes = b"c" * 16
) -> tuple[SitesRegression, list[Door]]:
    """Return a regression over sites in this process, and the doors of the sites."""
    sizes = [each.size for each in rows]
    doors = [
        SitePeople(
            part, plan.design.channels, source, epsilon=plan.design.epsilon, key=key, before=sum(sizes[:k]),
            order=order_key(source),
        )
        for k, (part, source) in enumerate(zip(rows, own, strict=True))
    ]  # fmt: skip
    return SitesRegression(plan, sizes, key, private=False), [Door(each, b"study") for each in doors]


def rows_of(n: int, seed: int = 1) -> Rows:
    source = dice(seed).generator()
    features = source.uniform(-1, 1, (n, 2))
    return Rows(features, 1.0 + features[:, 0] - 0.5 * features[:, 1] + source.logistic(0.0, 0.5, n))
