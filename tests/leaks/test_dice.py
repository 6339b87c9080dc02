"""Noise comes from the operating system alone, and a result that used anything else says so."""

import importlib
import inspect
import math
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.client.order import ROUNDS
from sottovoce.client.quantile.site import Site
from sottovoce.core.random_source import is_private
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.sim.randomness import dice

METHODS = ("staged", "regression", "self-normalised")
VALUES = {"north": np.tan(np.linspace(-1.4, 1.4, 1200)), "south": np.linspace(-2.0, 5.0, 800)}


def run(method: str = "staged", epsilon: Any = 3.0, **options: Any) -> QuantileResult:
    return sv.federated_quantile(VALUES, 0.5, epsilon, method=method, bounds=(-9, 9), **options)


@pytest.fixture
def no_numpy_random(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("numpy.random")

    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError("numpy's generator was asked")

    for name in dir(module):
        if not name.startswith("_") and callable(getattr(module, name)) and not isinstance(getattr(module, name), type):
            monkeypatch.setattr(module, name, refuse)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("no_numpy_random")
def test_a_study_needs_no_generator(method: str) -> None:
    with pytest.raises(AssertionError, match="was asked"):
        importlib.import_module("numpy.random").default_rng(1)
    assert math.isfinite(run(method).estimate)


@pytest.mark.parametrize("method", METHODS)
def test_every_word_is_the_systems(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    system = importlib.import_module("os").urandom

    def counted(n: int) -> Any:
        drawn.append(n)
        return system(n)

    monkeypatch.setattr("os.urandom", counted)
    result = run(method)
    assert result.reports == 2000
    # a word a record, eight 32-bit keys for each of two orders, and two words for the coin of the lottery
    coin = 2 if method not in ("regression", "self-normalised") else 0
    assert sum(drawn) == 8 * (result.reports + ROUNDS + coin)
    assert len(drawn) < 300


@pytest.mark.parametrize("method", METHODS)
def test_without_the_system_there_is_no_study(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def dry(n: int) -> bytes:
        raise OSError("no entropy")

    monkeypatch.setattr("os.urandom", dry)
    with pytest.raises(OSError, match="no entropy"):
        run(method)


@pytest.mark.parametrize("method", METHODS)
def test_nobody_can_repeat_a_private_study(method: str) -> None:
    assert run(method).estimate != run(method).estimate
    seeded = [run(method, randomness=dice(4)) for _ in range(2)]
    assert seeded[0].estimate == seeded[1].estimate


@pytest.mark.parametrize("method", METHODS)
def test_a_result_says_whether_it_is_private(method: str) -> None:
    assert run(method).private is True
    assert run(method, randomness=dice(1)).private is False
    assert run(method, math.inf).private is False
    assert run(method, {"north": 3.0, "south": math.inf}).private is False
    assert "protects nobody" in run(method, randomness=dice(1)).promise


def test_there_is_no_seed_anywhere_in_the_public_face() -> None:
    assert not [name for name in inspect.signature(Site).parameters if "seed" in name or "random" in name]
    assert "seed" not in inspect.signature(sv.federated_quantile).parameters
    with pytest.raises(TypeError):
        run(seed=1)


def test_seeded_dice_cannot_claim_to_be_private() -> None:
    assert not is_private(dice(1))
    assert not any(map(is_private, dice(1).split(3)))
