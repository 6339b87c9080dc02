"""What a trusted curator would tell: sampling and Laplace noise, and the order of the yardsticks."""

import math

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.planner.trust import central_half, sampling_error

LEVEL = 0.95


@pytest.mark.parametrize(("sampling", "noise"), [(1.0, 0.1), (1.0, 1.0), (0.2, 1.0), (1.0, 1e-4), (1e-3, 1.0)])
def test_the_interval_holds_normal_plus_laplace_noise(sampling: float, noise: float) -> None:
    draws = sv.sim.dice(11).generator()
    n = 400_000
    missed = np.abs(draws.normal(0, sampling, n) + draws.laplace(0, noise, n)) > central_half(sampling, noise, LEVEL)
    error = math.sqrt(LEVEL * (1 - LEVEL) / n)
    assert abs(missed.mean() - (1 - LEVEL)) < 4.9 * error  # false alarm below 1e-6


def test_the_exponential_mechanism_on_ranks_is_that_laplace_noise() -> None:
    n, tau, epsilon, runs = 4_000, 0.5, 0.05, 4_000
    draws = sv.sim.dice(12).generator()
    ranks = np.arange(n + 1)
    chances = np.exp(-epsilon * np.abs(ranks - n * tau) / 2)
    missed = []
    for _ in range(runs):
        edges = np.concatenate(([0.0], np.sort(draws.random(n)), [1.0]))  # public bounds 0 and 1
        weights = np.diff(edges) * chances
        cell = draws.choice(n + 1, p=weights / weights.sum())
        missed.append(draws.uniform(edges[cell], edges[cell + 1]) - tau)
    half = central_half(sampling_error(tau, np.ones(1), np.full(1, float(n))), 2 / (epsilon * n), LEVEL)
    held = np.mean(np.abs(missed) <= half)
    assert abs(held - LEVEL) < 4.9 * math.sqrt(LEVEL * (1 - LEVEL) / runs)


def test_the_less_trust_the_wider() -> None:
    for epsilon in (0.1, 0.5, 1.0, 4.0):
        found = sv.plan(epsilon=epsilon, people=2_000_000, sd=15.0)
        best, central, bare = (each.widths[0] for each in found.yardsticks)
        assert found.width > best > central > bare
    assert [each.model for each in found.yardsticks] == ["local, at best", "central", "no privacy"]


def test_without_privacy_a_curator_knows_no_more() -> None:
    found = sv.plan(epsilon=math.inf, people=20_000, sd=15.0)
    _, central, bare = (each.widths[0] for each in found.yardsticks)
    assert central == pytest.approx(bare)
