"""The methods of quantile regression; behind their doors are people, in the order they stand in."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.server.regression.plans import WAYS, over_sites, plan_of, rows_of

from sottovoce.client.door import Door
from sottovoce.client.regression.persons import Persons
from sottovoce.local.regression.doors import open_doors
from sottovoce.server.regression.dithered.method import BY_SHARE, ONE_BY_ONE, BatchRule, DitheredMethod
from sottovoce.server.regression.liu_hu.method import LiuHuMethod
from sottovoce.server.regression.method import RegressionMethod
from sottovoce.server.regression.sites import SitesRegression
from sottovoce.sim.randomness import dice

from .subject import Case, Subject, answered_by

KEY, N = b"0123456789abcdef", 300


def whole(way: str, batches: BatchRule = BY_SHARE, anytime: bool = False) -> Case:
    def made(order: Sequence[int]) -> Subject:
        plan = plan_of(**WAYS[way])
        method, doors, _ = open_doors(plan, rows_of(700), dice(3), batches)
        return Subject(
            lambda: RegressionMethod(plan, method.people, method.key, batches, private=False),
            answered_by(doors),
            lambda result: float(result.scaled.sum()),
            stride=5,
            anytime=anytime,
        )

    return made


def part(way: str, batches: BatchRule | None) -> Case:
    """Return one recursion of a regression without its pilot."""

    def made(order: Sequence[int]) -> Subject:
        plan = plan_of(**WAYS[way])
        (channel,) = plan.design.channels
        (study,) = plan.studies(plan.guess(None))
        door = Door(Persons(rows_of(N), channel, dice(5), key=KEY), b"study")
        kind: Any = LiuHuMethod if batches is None else DitheredMethod
        extra = () if batches is None else (batches,)
        return Subject(
            lambda: kind(study, N, KEY, *extra),
            answered_by([door]),
            lambda fit: float(np.sum(fit.point)),
            stride=17,
            anytime=True,
        )

    return made


def sites(way: str, sizes: Sequence[int]) -> Case:
    """Return a regression over sites; public words are numbered in their order, which is a part of the study."""

    def made(order: Sequence[int]) -> Subject:
        plan, rows = plan_of(**WAYS[way]), [rows_of(n, seed) for seed, n in enumerate(sizes)]
        method, doors = over_sites(plan, rows, dice(5).split(len(sizes)))
        return Subject(
            lambda: SitesRegression(plan, method.people, method.key, private=False),
            answered_by(doors),
            lambda result: float(result.scaled.sum()),
            anytime=not plan.settings.searches,
        )

    return made


CASES: dict[str, Case] = {
    "RegressionMethod-pilot": whole("pilot"),
    "RegressionMethod-split": whole("split"),
    "RegressionMethod-groups": whole("groups", anytime=True),
    "DitheredMethod-one by one": part("dithered", ONE_BY_ONE),
    "DitheredMethod-batches": part("dithered", BY_SHARE),
    "SitesRegression-pilot": sites("pilot", (300, 200, 400)),
    "SitesRegression-levels": sites("shared", (100, 200)),
    "LiuHuMethod": part("self-normalised", None),
}
