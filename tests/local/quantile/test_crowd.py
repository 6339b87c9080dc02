"""Sites that answer together: the bits of the path by messages, each record once, refusals that cost nothing."""

import copy
import math
import os
import pickle  # noqa: TID251 - shown to be refused
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.quantile import planning
from sottovoce.client.door import Door
from sottovoce.client.quantile.site import LARGE, Site
from sottovoce.client.reading.table import read_sites
from sottovoce.core.arrays import Floats, Ints, Words
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.local.quantile import crowd as module
from sottovoce.local.quantile.crowd import MANY, SMALL, SiteCrowd, are_many, tally
from sottovoce.local.runner import through_bytes
from sottovoce.protocol.channel import OUTCOMES
from sottovoce.protocol.messages import Query, Tally
from sottovoce.server.method import Queries, converse
from sottovoce.server.quantile.conversation import AskedRound
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.plan import QuantilePlan, plan_quantile
from sottovoce.sim.randomness import SeededSource, dice

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")
SIZES = tuple(dice(4).generator().integers(2, 300, MANY + 8).tolist())
NAMES = [f"s{k}" for k in range(len(SIZES))]
EPSILON = {name: (1.0, 2.0, 4.0, math.inf)[k % 4] for k, name in enumerate(NAMES)}
PRIVATE = {name: 1.0 + k % 3 for k, name in enumerate(NAMES)}


def sites_of(seed: int = 1, factor: int = 1) -> dict[str, Floats]:
    generator = dice(seed).generator()
    return {name: np.round(generator.normal(50.0, 20.0, factor * n), 3) for name, n in zip(NAMES, SIZES, strict=True)}


def opened(
    randomness: Sequence[RandomSource], epsilon: Any = EPSILON, resolution: float | None = None
) -> tuple[SiteCrowd, list[Site], QuantilePlan]:
    table = read_sites(sites_of())
    plan = plan_quantile(table.roster, 0.5, epsilon, resolution=resolution)
    crowd = SiteCrowd(table.records, plan, randomness)
    again = dice(7).split(len(SIZES)) if len({id(own) for own in randomness}) > 1 else [dice(7)] * len(SIZES)
    pairs = enumerate(zip(table.records, again, strict=True))
    return crowd, [Site(own, plan.study_of(k), die, plan.channels[k]) for k, (own, die) in pairs], plan


def asked(round: int, points: Sequence[float], counts: Ints, silent: Sequence[int] = ()) -> AskedRound:
    speaks = np.any(counts, axis=1)
    speaks[list(silent)] = False
    return AskedRound(round, np.array(points), counts, speaks)


def rounds() -> list[AskedRound]:
    sizes = np.array(SIZES)
    few = np.stack([sizes % 2, sizes * 0], axis=1)
    part = np.stack([sizes // 5, sizes // 7, sizes // 3], axis=1)
    rest = (sizes - few.sum(axis=1) - part.sum(axis=1))[:, None]
    return [asked(1, (40.0, 60.0), few), asked(2, (45.0, 50.0, 57.5), part), asked(5, (48.0,), rest)]


def phases() -> list[AskedRound]:
    """Return the same rounds, with a period at some points."""
    first, second, third = rounds()
    periods = [np.array([0.0, 0.01]), np.array([0.5, 0.0, 7.25]), np.array([1e-300])]
    return [replace(each, periods=own) for each, own in zip((first, second, third), periods, strict=True)]


@pytest.mark.parametrize("resolution", [None, 0.5])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("make", [rounds, phases])
def test_the_sums_are_those_of_the_sites_one_by_one(
    monkeypatch: pytest.MonkeyPatch, resolution: float | None, shared: bool, make: Callable[[], list[AskedRound]]
) -> None:
    monkeypatch.setattr(module, "TOGETHER", 300)
    own: Sequence[SeededSource] = [dice(7)] * len(SIZES) if shared else dice(7).split(len(SIZES))
    crowd, sites, _ = opened(own, resolution=resolution)
    for round in make():
        told = crowd.reply(round)
        assert list(told) == [
            None if message is None else site.reply(round.round, message)
            for site, message in zip(sites, round, strict=True)
        ]
    assert crowd.spent.tolist() == [site.spent for site in sites] == list(SIZES)


def test_without_noise_every_record_is_counted_once() -> None:
    for point in (-1e9, 30.0, 51.0):
        crowd, _, _ = opened([SystemEntropy()] * len(SIZES), math.inf)
        ones = sum(
            crowd.reply(replace(round, points=np.full(len(round.points), point))).ones.sum() for round in rounds()
        )
        assert ones == sum(int(np.sum(values > point)) for values in sites_of().values())
        assert crowd.spent.tolist() == list(SIZES)


CALLS: list[dict[str, Any]] = [
    {"epsilon": PRIVATE},
    {"epsilon": EPSILON, "shares": "equal"},
    {"epsilon": 3.0, "resolution": 0.001, "bounds": (0.0, 100.0)},
    {"epsilon": 3.0, "scale": 20.0},
]


@compiled
@pytest.mark.parametrize("options", CALLS)
@pytest.mark.parametrize("taus", [0.4, [0.3, 0.6]])
def test_a_study_is_bit_for_bit_that_of_the_messages(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], taus: Any
) -> None:
    ask: Any = sv.federated_quantiles if isinstance(taus, list) else sv.federated_quantile
    seen: list[list[int]] = []
    results = []
    for many in (are_many, lambda _: False):
        monkeypatch.setattr(planning, "are_many", many)
        seen.append([])
        sites = sites_of(2, 20)
        results.append(ask(sites, taus, randomness=dice(9), progress=seen[-1].append, **options))
    assert results[0].to_dict() == results[1].to_dict()
    assert seen[0] == seen[1]
    assert sum(seen[0]) == 20 * sum(SIZES)


@compiled
def test_a_log_of_the_crowd_is_that_of_the_bytes_and_replays() -> None:
    table = read_sites(sites_of(3, 20))
    plan = plan_quantile(table.roster, 0.5, 2.0)
    method, study = StagedQuantile(plan), b"0123456789abcdef"
    crowd = SiteCrowd(table.records, plan, dice(5).split(len(SIZES)))
    together = converse(method, crowd.gather())
    sites = planning.Prepared(plan, table).open(dice(5))
    by_bytes = converse(
        StagedQuantile(plan), through_bytes(StagedQuantile(plan), [Door(site, study) for site in sites], study)
    )
    assert together.rounds == by_bytes.rounds > 5
    for one, two in zip(together.asked, by_bytes.asked, strict=True):
        assert one.points.tobytes() == two.points.tobytes()
        assert np.array_equal(one.counts, two.counts)
    for ones, said in zip(together.answered, by_bytes.answered, strict=True):
        assert np.array_equal(ones, said)
    plain = together._replace(answered=tuple(np.ascontiguousarray(ones) for ones in together.answered))
    assert StagedQuantile(plan).outcome(plain).to_dict() == method.outcome(together).to_dict()


def test_a_retry_gets_the_same_and_costs_nothing() -> None:
    crowd, _, _ = opened(dice(7).split(len(SIZES)))
    first, second, _ = rounds()
    crowd.reply(first)
    told, spent = crowd.reply(second), crowd.spent
    assert crowd.reply(replace(second)) == told
    part = crowd.reply(replace(second, speaks=second.speaks & (np.arange(len(SIZES)) % 3 == 1)))
    assert [reply for reply in part if reply is not None] == [
        told[k] for k in range(len(SIZES)) if k % 3 == 1 and second.speaks[k]
    ]
    assert crowd.spent.tolist() == spent.tolist()
    for other in (
        first,
        replace(second, points=second.points + 1.0),
        replace(second, counts=second.counts + 1),
        replace(second, round=1),
        replace(second, periods=np.ones(3)),
    ):
        with pytest.raises(BadInput, match=r"was already answered, up to round 2; ask a later round"):
            crowd.reply(other)
    assert crowd.spent.tolist() == spent.tolist()


def test_a_site_that_is_not_asked_spends_nothing() -> None:
    crowd, _, _ = opened(dice(7).split(len(SIZES)))
    second = rounds()[1]
    quiet = asked(1, second.points.tolist(), second.counts, silent=[3, 5])
    told = crowd.reply(quiet)
    assert told[3] is None
    assert crowd.spent[[3, 5]].tolist() == [0, 0]
    assert crowd.spent[4] == second.counts[4].sum()


BAD = [
    (0, (50.0,), 1),
    (2_000_000, (50.0,), 1),
    (1, (), 1),
    (1, (math.nan,), 1),
    (1, (math.inf,), 1),
    (1, (50.0,), -1),
    (1, (50.0,), 501),
]


@pytest.mark.parametrize("periods", [(1.0, 1.0), (), (math.nan, 0.0, 0.0), (math.inf, 0.0, 0.0), (-0.5, 0.0, 0.0)])
def test_periods_that_are_none_cost_nothing(periods: tuple[float, ...]) -> None:
    crowd, _, _ = opened(dice(7).split(len(SIZES)))
    with pytest.raises(BadInput, match=r"round 2 needs no period, or a finite one of at least zero a point; correct"):
        crowd.reply(replace(rounds()[1], periods=np.array(periods)))
    assert crowd.spent.sum() == 0
    assert crowd.reply(rounds()[1]) == opened(dice(7).split(len(SIZES)))[0].reply(rounds()[1])


@pytest.mark.parametrize(("round", "points", "count"), BAD)
def test_what_cannot_be_answered_costs_nothing(round: int, points: tuple[float, ...], count: int) -> None:
    crowd, _, _ = opened(dice(7).split(len(SIZES)))
    counts = np.full((len(SIZES), len(points)), count)
    with pytest.raises(BadInput):
        crowd.reply(AskedRound(round, np.array(points), counts, np.ones(len(SIZES), dtype=bool)))
    with pytest.raises(BadInput, match="one count"):
        crowd.reply(AskedRound(1, np.zeros(1), np.ones((3, 1), dtype=np.int64), np.ones(3, dtype=bool)))
    assert crowd.spent.sum() == 0
    # the dice have not been thrown either
    assert crowd.reply(rounds()[1]) == opened(dice(7).split(len(SIZES)))[0].reply(rounds()[1])


def test_an_answer_that_breaks_off_spends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd, _, _ = opened([SystemEntropy()] * len(SIZES))

    def broken(self: SystemEntropy, n: int) -> Words:
        raise OSError("no entropy")

    monkeypatch.setattr(SystemEntropy, "words", broken)
    with pytest.raises(OSError, match="no entropy"):
        crowd.reply(rounds()[1])
    assert crowd.spent.sum() == 0


def test_a_study_that_a_site_would_refuse_is_refused() -> None:
    table = read_sites(sites_of())
    plan = plan_quantile(table.roster, 0.5, 1.0)
    own = [SystemEntropy()] * len(SIZES)
    for wrong in (
        replace(plan, budgets=(*plan.budgets[:-1], 0.5)),
        replace(plan, budgets=(-1.0, *plan.budgets[1:])),
        replace(plan, taus=np.where(np.arange(len(SIZES)) == 2, 1.0, 0.5)),
        replace(plan, resolution=math.inf),
    ):
        with pytest.raises(BadInput, match="study"):
            SiteCrowd(table.records, wrong, own)


def test_records_stay_hidden() -> None:
    crowd, _, _ = opened([SystemEntropy()] * len(SIZES))
    crowd.reply(rounds()[0])
    assert repr(crowd) == f"SiteCrowd({len(SIZES)} sites, {sum(n % 2 for n in SIZES)} records answered, values hidden)"
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="records do not leave"):
            leave(crowd)


def test_silent_letters_say_nothing_of_the_records() -> None:
    counts = np.array([[3, 40], [0, 21]])
    flips, words = np.full(2, OUTCOMES // 2 << 2, dtype=np.uint64), dice(3).words(128)
    told = []
    for values in (np.linspace(-1.0, 1.0, 64), np.full(64, 1e9)):
        for lowest in (flips, flips // np.uint64(4)):
            ones = np.zeros((2, 2), dtype=np.int64)
            tally(
                values, np.array([0, 43]), np.array([0.0, 0.5]), np.array([0.0, 0.7]), counts, words, lowest, 0.0, ones
            )
            told.append(ones.tolist())
    assert told[0] == told[2]
    assert told[1] != told[3]


@compiled
def test_private_needs_the_systems_dice_and_finite_budgets() -> None:
    system: Sequence[RandomSource] = [SystemEntropy()] * len(SIZES)
    assert opened(system, 1.0)[0].private
    assert not opened(system, EPSILON)[0].private
    assert not opened(dice(7).split(len(SIZES)), 1.0)[0].private
    sites = sites_of(2, 20)
    assert sv.federated_quantile(sites, 0.5, 2.0).private
    assert not sv.federated_quantile(sites, 0.5, 2.0, randomness=dice(1)).private


def test_only_many_small_sites_answer_together() -> None:
    assert are_many([SMALL] * MANY)
    assert not are_many([SMALL] * (MANY - 1))
    assert not are_many([SMALL + 1] * MANY)
    assert not are_many([*[10] * 1000, LARGE + 1])


def test_they_are_asked_together_or_not_at_all() -> None:
    crowd, _, _ = opened([SystemEntropy()] * len(SIZES))
    with pytest.raises(TypeError, match="asked together"):
        crowd.gather()(Queries(1, [Query(1, (0.0,), (1,))] * len(SIZES)))


def test_a_round_is_the_sequence_of_its_messages() -> None:
    first, second, _ = rounds()
    assert len(first) == len(SIZES)
    assert first[next(k for k, n in enumerate(SIZES) if n % 2 == 0)] is None
    assert second[1:3] == [Query(2, (45.0, 50.0, 57.5), tuple(row)) for row in second.counts[1:3].tolist()]
    assert second == list(second)
    told = opened(dice(7).split(len(SIZES)))[0].reply(second)
    assert isinstance(told[1], Tally)
    assert told != second
